"""Chooses what runs of all the tests that there are.

`make test` is a selection, `make test-all` (pytest's option ``--all``) is everything. Of a function
with many parameters the selection has `FEW`: first such that each value of each parameter occurs,
then each pair of values of two parameters, as far as that goes; what is left is drawn by a seed.
The seed is the commit, so that one commit after another sees all of them; the header of a run
says it, and ``--seed`` runs the same selection again. Four things are said beside a test:

- ``@pytest.mark.sample(n)``: n of its instances are chosen, `None` for all of them, so that a
  function takes a second of processor time at most, and one that takes next to none is not cut;
- ``@pytest.mark.turns(n)``: one instance takes seconds; one commit of n runs the function;
- ``@pytest.mark.slow``: it takes longer still, and is left to `make test-all`;
- the mistakes in `tests/mutations` name tests that catch them: these are always chosen.

A test that the command line names with its parameters, or picks by ``-k`` or ``-m``, is chosen.
"""

from __future__ import annotations

import random
import subprocess
import zlib
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path

import pytest
from mutations.catalogue import MUTATIONS

FEW = 4
"""The number of instances that are chosen of a test function."""

Values = Mapping[str, Hashable]
"""The value of each parameter of one instance, or what stands for it."""


class Selection:
    """The plugin: options, marks, the header, and what is deselected."""

    def __init__(self, config: pytest.Config) -> None:
        self.option = option = config.option
        self.everything = bool(
            option.all or option.keyword or option.markexpr or option.update_golden
        )
        self.named = [_node_id(argument) for argument in config.args if "::" in argument]
        # Workers get the options of the process that starts them, and so its seed.
        if option.seed is None:
            option.seed = seed_of_commit(config.rootpath)
        self.seed: int = option.seed

    def pytest_report_header(self) -> str:
        """One line that says what is run, and how to run it again."""
        if self.everything:
            return "tests: all that match"
        return f"tests: a selection, --seed={self.seed}; --all runs every test"

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> None:
        """Leave in `items` what is chosen, in the order in which it was collected."""
        chosen = {id(item) for item in (items if self.everything else self._choose(items))}
        if shard := self.option.shard:
            timing = {id(item) for item in items if item.get_closest_marker("timing")}
            chosen &= {id(item) for item in items if in_shard(item.nodeid, shard)}
            chosen |= timing if self.option.timing else set()
        if left_out := [item for item in items if id(item) not in chosen]:
            config.hook.pytest_deselected(items=left_out)
            items[:] = [item for item in items if id(item) in chosen]

    def _choose(self, items: Iterable[pytest.Item]) -> Iterator[pytest.Item]:
        functions: defaultdict[str, list[pytest.Item]] = defaultdict(list)
        for item in items:
            if item.nodeid in CATCHING or self._is_named(item):
                yield item
            elif not item.get_closest_marker("slow"):
                functions[item.nodeid.partition("[")[0]].append(item)
        for function, instances in functions.items():
            generator = random.Random(f"{self.seed} {function}")
            if generator.randrange(_turns(instances[0])) and function not in self.named:
                continue
            values = [_values(item) for item in instances]
            for place in choose_cover(values, _limit(instances[0]), generator):
                yield instances[place]

    def _is_named(self, item: pytest.Item) -> bool:
        """Return whether the command line names this very test, or its slow function."""
        if item.nodeid in self.named:
            return True
        return bool(item.get_closest_marker("slow")) and any(
            item.nodeid.startswith(f"{name}[") for name in self.named
        )


CATCHING = frozenset(target for mutation in MUTATIONS for target in mutation.targets)
"""Tests by which a planted mistake is noticed."""


def choose_cover(
    instances: Sequence[Values], limit: int | None, generator: random.Random
) -> list[int]:
    """Return places of at most `limit` instances that cover their values, then pairs of these.

    Greedy, as in AETG (Cohen and others, 1997): each step takes the instance with the most values
    that did not occur yet, then with the most pairs of values; the generator decides ties.

    >>> routes = [{"route": r, "size": s} for r in "ab" for s in (1, 2, 3)]
    >>> chosen = [routes[place] for place in choose_cover(routes, 3, random.Random(0))]
    >>> sorted(each["size"] for each in chosen), len({each["route"] for each in chosen})
    ([1, 2, 3], 2)
    """
    places = list(range(len(instances)))
    if limit is None or len(places) <= limit:
        return places
    generator.shuffle(places)
    singles = [frozenset(each.items()) for each in instances]
    pairs = [frozenset(combinations(sorted(each.items(), key=repr), 2)) for each in instances]
    seen: set[Hashable] = set()
    chosen: list[int] = []
    while len(chosen) < limit:
        best = max(places, key=lambda n: (len(singles[n] - seen), len(pairs[n] - seen)))
        places.remove(best)
        chosen.append(best)
        seen |= singles[best] | pairs[best]
    return sorted(chosen)


def in_shard(test: str, shard: tuple[int, int]) -> bool:
    """Return whether a test belongs to the part of this number, out of so many.

    >>> [in_shard("tests/test_a.py::test_b", (number, 3)) for number in (1, 2, 3)].count(True)
    1
    """
    number, parts = shard
    return zlib.crc32(test.encode()) % parts == number - 1


def seed_of_commit(root: Path) -> int:
    """Return a number that stands for the commit in `root`; 0 where there is none."""
    try:
        done = subprocess.run(
            ["git", "rev-parse", "--short=8", "HEAD"], cwd=root, capture_output=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return 0
    return int(done.stdout, 16)


def _values(item: pytest.Item) -> Values:
    """Return the numbers of an instance's values: the values themselves may not be hashable."""
    callspec = getattr(item, "callspec", None)
    return {} if callspec is None else callspec.indices


def _shard(text: str) -> tuple[int, int]:
    number, parts = map(int, text.split("/"))
    if not 1 <= number <= parts:
        raise ValueError(text)
    return number, parts


def _limit(item: pytest.Item) -> int | None:
    mark = item.get_closest_marker("sample")
    return FEW if mark is None else mark.args[0]


def _turns(item: pytest.Item) -> int:
    mark = item.get_closest_marker("turns")
    return 1 if mark is None else mark.args[0]


def _node_id(argument: str) -> str:
    """Return an argument of the command line as node ids are written."""
    path, _, rest = argument.partition("::")
    root, absolute = Path(__file__).parents[1], Path(path).resolve()
    if absolute.is_relative_to(root):
        path = absolute.relative_to(root).as_posix()
    return f"{path}::{rest}"


def add_options(parser: pytest.Parser) -> None:
    """Add the options of the selection."""
    group = parser.getgroup("selection")
    group.addoption("--all", action="store_true", help="run every test, not a selection of them")
    group.addoption("--seed", type=int, help="draw the selection by this, and not by the commit")
    group.addoption("--timing", action="store_true", help="and all tests that are marked so")
    group.addoption("--shard", type=_shard, metavar="K/N", help="run the K-th of N parts")


def add_marks(config: pytest.Config) -> None:
    """Register the marks of the selection."""
    config.addinivalue_line("markers", "slow: left to `make test-all`, as it takes seconds")
    config.addinivalue_line("markers", "turns(n): one commit of n runs it, as it takes seconds")
    config.addinivalue_line("markers", "timing: has failed beside busy processes once")
    config.addinivalue_line("markers", "sample(n): so many instances are chosen; None: all")
