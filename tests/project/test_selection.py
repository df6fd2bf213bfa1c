"""Tests of the selection of `make test`, and that nothing is left out for ever."""

from __future__ import annotations

import itertools
import random
from types import SimpleNamespace
from typing import Any

import pytest
from mutations.catalogue import MUTATIONS
from selection import CATCHING, FEW, Selection, choose_cover, in_shard

PRODUCT = [
    {"kernel": kernel, "type": type_, "route": route}
    for kernel, type_, route in itertools.product(range(6), range(4), range(2))
]


def covered(chosen: list[dict[str, int]], size: int) -> set[Any]:
    return {pair for each in chosen for pair in itertools.combinations(sorted(each.items()), size)}


@pytest.mark.sample(None)
@pytest.mark.parametrize("seed", range(20))
def test_values_are_covered_first_and_then_pairs(seed: int) -> None:
    def choose(limit: int) -> list[dict[str, int]]:
        return [PRODUCT[n] for n in choose_cover(PRODUCT, limit, random.Random(seed))]

    assert covered(choose(6), 1) == covered(PRODUCT, 1)
    assert len(choose(6)) == 6
    # 24 pairs of the two longest parameters; greedy takes a few more than there have to be.
    assert covered(choose(30), 2) == covered(PRODUCT, 2)


def test_few_are_all_taken() -> None:
    assert choose_cover(PRODUCT[:FEW], FEW, random.Random(0)) == list(range(FEW))
    assert choose_cover(PRODUCT, None, random.Random(0)) == list(range(len(PRODUCT)))


def test_seeds_reach_everything() -> None:
    """Instances of one parameter are drawn alike often."""
    instances = [{"seed": n} for n in range(50)]
    counts = [0] * 50
    for seed in range(500):
        for place in choose_cover(instances, FEW, random.Random(seed)):
            counts[place] += 1
    assert min(counts) > 20, counts
    assert max(counts) < 70, counts


def selection(*arguments: str, **options: Any) -> Selection:
    defaults = {"all": False, "keyword": "", "markexpr": "", "update_golden": False, "seed": 7}
    option = SimpleNamespace(**(defaults | {"shard": None, "timing": False} | options))
    return Selection(SimpleNamespace(option=option, args=arguments))  # type: ignore[arg-type]


class Item:
    """The parts of a test that the selection looks at."""

    def __init__(self, nodeid: str, marks: dict[str, Any] | None = None, **indices: int) -> None:
        self.nodeid = nodeid
        self.callspec = SimpleNamespace(indices=indices)
        self.marks = marks or {}

    def get_closest_marker(self, name: str) -> Any:
        return SimpleNamespace(args=self.marks[name]) if name in self.marks else None


def left(chooser: Selection, items: list[Item]) -> list[str]:
    config: Any = SimpleNamespace(
        option=chooser.option, hook=SimpleNamespace(pytest_deselected=lambda items: None)
    )
    chosen: Any = list(items)
    chooser.pytest_collection_modifyitems(config, chosen)
    return [item.nodeid for item in chosen]


def test_what_is_chosen() -> None:
    many = [Item(f"tests/a.py::many[{n}]", n=n) for n in range(100)]
    whole = [Item(f"tests/a.py::whole[{n}]", {"sample": (None,)}, n=n) for n in range(30)]
    slow = [Item("tests/a.py::slow", {"slow": ()})]
    catching = [Item(sorted(CATCHING)[0], {"slow": ()})]
    items = [*many, *whole, *slow, *catching]
    chosen = left(selection(), items)
    assert sum("many" in name for name in chosen) == FEW
    assert sum("whole" in name for name in chosen) == 30
    assert "tests/a.py::slow" not in chosen
    assert catching[0].nodeid in chosen
    assert left(selection(), items) == chosen, "the same seed, the same tests"
    assert left(selection(seed=8), items) != chosen
    assert left(selection(all=True), items) == [item.nodeid for item in items]
    assert left(selection(keyword="m"), items) == [item.nodeid for item in items]


def test_what_is_named_is_chosen() -> None:
    many = [Item(f"tests/a.py::many[{n}]", n=n) for n in range(100)]
    slow = [Item("tests/a.py::slow", {"slow": ()})]
    assert "tests/a.py::slow" in left(selection("tests/a.py::slow"), many + slow)
    for n in (3, 77):
        assert f"tests/a.py::many[{n}]" in left(selection(f"tests/a.py::many[{n}]"), many)


def test_long_functions_take_turns() -> None:
    marks: dict[str, Any] = {"turns": (3,), "sample": (2,)}
    long = [Item(f"tests/a.py::long[{n}]", marks, n=n) for n in range(10)]
    drawn = [len(left(selection(seed=seed), long)) for seed in range(300)]
    assert set(drawn) == {0, 2}
    assert 60 < drawn.count(2) < 140
    for seed in range(5):
        assert left(selection("tests/a.py::long", seed=seed), long)
        assert "tests/a.py::long[4]" in left(selection("tests/a.py::long[4]", seed=seed), long)
    catching = [Item(sorted(CATCHING)[0], {"turns": (1000,)})]
    assert left(selection(), catching)


def test_shards_are_parts() -> None:
    names = [f"tests/a.py::test[{n}]" for n in range(200)]
    parts = [[name for name in names if in_shard(name, (k, 4))] for k in range(1, 5)]
    assert sorted(itertools.chain(*parts)) == sorted(names)
    assert all(20 < len(part) < 80 for part in parts)


def test_mistakes_name_single_tests() -> None:
    """Each commit draws other tests of a folder or a file, which might not catch it then."""
    for mutation in MUTATIONS:
        for target in mutation.targets:
            assert "::" in target, f"{mutation.name}: {target}"
