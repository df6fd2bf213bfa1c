"""Plants the mistakes of the catalogue, one at a time, and reports which test notices each.

    python -m tests.mutations.run [--only NAME] [--jobs N] [--limit SECONDS]

Mistakes are planted in a copy of the sources, laid out as they are installed, that comes first on
the import path; the repository is not touched. For each, the tests that its entry names run up to
the first failure; `make test` always runs these. The exit status is 1 if a mistake survives, if the
text that it replaces is not found exactly once, or if the tests fail without any.
"""

from __future__ import annotations

import argparse
import os
import queue
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from .catalogue import MUTATIONS
from .mutation import Mutation

ROOT = Path(__file__).parents[2]
PACKAGES = {"ucle": "ucle", "examples/demo": "ucle/demo", "sqlgen": "ucle/sqlgen",
            "stats": "ucle/stats", "udf_kernels": "ucle/udf_kernels"}  # fmt: skip
"""The place where each folder of the repository is installed."""
USED_BY_TESTS = ("tests", "docs", "examples", "benchmarks", "extension", "notebooks")
LIMIT = 300.0
"""Seconds for one run of tests. To have no end is not to be noticed: a slow machine has none."""
MEMORY = 8 * 2**30
"""Bytes of address space for one run: a mistake in a join can make a dense tensor of anything."""
NOBODY = "nobody"
LAUNCH = f"""
import resource, sys, pytest
resource.setrlimit(resource.RLIMIT_AS, ({MEMORY}, {MEMORY}))
sys.exit(pytest.main(sys.argv[1:]))
"""


@dataclass(frozen=True)
class Outcome:
    """The outcome of one mistake: noticed or not, by which test, after how many seconds."""

    mutation: Mutation
    noticed: bool
    by: str
    seconds: float

    def __str__(self) -> str:
        mark = "caught  " if self.noticed else "SURVIVED"
        return f"{mark} {self.seconds:6.1f} s  {self.mutation.name:<32} {self.by}"


def stale(mutations: Sequence[Mutation] = MUTATIONS, root: Path = ROOT) -> list[str]:
    """The mistakes whose old text is not found exactly once, with how often it is."""
    found = []
    for mutation in mutations:
        path = root / mutation.file
        count = path.read_text(encoding="utf-8").count(mutation.old) if path.exists() else 0
        if count != 1:
            found.append(f"{mutation.name}: its old text occurs {count} times in {mutation.file}")
    return found


def copy_tree(target: Path, root: Path = ROOT) -> Path:
    """Copy sources and tests as they are installed; returns the folder."""
    ignored = shutil.ignore_patterns("__pycache__", "csrc", ".*")
    for source, place in PACKAGES.items():
        shutil.copytree(root / source, target / place, ignore=ignored)
    for folder in USED_BY_TESTS:
        shutil.copytree(root / folder, target / folder, ignore=ignored)
    for file in (root / "pyproject.toml", *root.glob("*.md")):
        shutil.copy(file, target)
    return target


def place_of(file: str, tree: Path) -> Path:
    """The path of a repository file in a copy."""
    for package, place in PACKAGES.items():
        if file.startswith(f"{package}/"):
            return tree / place / file.removeprefix(f"{package}/")
    return tree / file


def run_mutation(tree: Path, mutation: Mutation, limit: float = LIMIT) -> Outcome:
    """Plant a mistake in a copy, run the tests that it names, and take it back."""
    started = time.monotonic()
    with planted(tree, mutation):
        noticed, by = run_tests(tree, mutation.targets, limit)
    return Outcome(mutation, noticed, by, time.monotonic() - started)


@contextmanager
def planted(tree: Path, mutation: Mutation) -> Iterator[None]:
    """Have a mistake in a copy for as long as a block runs."""
    path = place_of(mutation.file, tree)
    before = path.read_text(encoding="utf-8")
    try:
        _write(path, before.replace(mutation.old, mutation.new))
        yield
    finally:
        _write(path, before)


def _write(path: Path, text: str) -> None:
    """Write a module. Of the same size within the same second, its old byte code would stay."""
    path.write_text(text, encoding="utf-8")
    for compiled in (path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"):
        compiled.unlink()


def run_tests(tree: Path, targets: Sequence[str], limit: float) -> tuple[bool, str]:
    """Run tests of a copy up to the first failure: whether one failed, and which."""
    options = ["-x", "-q", "--all", "--no-header", "--tb=no", "-rfE", "-p", "no:cacheprovider"]
    command = [sys.executable, "-c", LAUNCH, *options, *targets]
    environment = {**os.environ, "PYTHONPATH": str(tree)}
    try:
        done = subprocess.run(
            command, cwd=tree, env=environment, capture_output=True, text=True, timeout=limit,
            check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return False, f"no end after {limit:.0f} s"
    failed = re.search(r"^(?:FAILED|ERROR) (\S+::.+?)(?: - .*)?$", done.stdout, re.MULTILINE)
    if done.returncode == 0:
        return False, NOBODY
    if done.returncode == 1 and failed:
        return True, failed[1]
    if done.returncode < 0:
        return True, f"the process ended with signal {-done.returncode}"
    # A mistake that cannot even be imported says nothing about the tests.
    return False, "the tests do not run: " + " ".join((done.stdout + done.stderr).split())[-200:]


def check_copy(tree: Path) -> None:
    """The copy, and nothing else, is what its tests import."""
    code = "import ucle.udf_kernels as kernels; print(ucle.__file__, kernels.__file__)"
    code = f"import ucle; {code}"
    environment = {**os.environ, "PYTHONPATH": str(tree)}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tree, env=environment, capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    assert all(Path(line).is_relative_to(tree) for line in done.stdout.split()), done.stdout


def run_all(mutations: Sequence[Mutation], jobs: int, limit: float) -> Iterator[Outcome]:
    """Run mistakes in as many copies as there are jobs; outcomes in the order of the catalogue."""
    with tempfile.TemporaryDirectory(prefix="ucle_mutations_") as folder:
        trees: queue.Queue[Path] = queue.Queue()
        for number in range(jobs):
            trees.put(copy_tree(Path(folder, str(number)).resolve()))

        def in_some_tree(work: Callable[[Path], Outcome]) -> Outcome:
            tree = trees.get()
            try:
                return work(tree)
            finally:
                trees.put(tree)

        first = trees.queue[0]
        check_copy(first)
        yield baseline(first, mutations)
        with ThreadPoolExecutor(jobs) as pool:
            yield from pool.map(
                lambda mutation: in_some_tree(lambda tree: run_mutation(tree, mutation, limit)),
                mutations,
            )


def baseline(tree: Path, mutations: Sequence[Mutation]) -> Outcome:
    """The tests that entries name, without a mistake: they have to pass to mean anything."""
    targets = list(dict.fromkeys(test for mutation in mutations for test in mutation.targets))
    nothing = Mutation("(no mistake)", "", "", "", "nothing")
    started = time.monotonic()
    failed, by = run_tests(tree, targets, 10 * LIMIT)
    passed = not failed and by == NOBODY
    return Outcome(nothing, passed, "all pass" if passed else by, time.monotonic() - started)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the catalogue; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutations.run")
    parser.add_argument("--only", action="append", default=[], metavar="NAME")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--limit", type=float, default=LIMIT, help="seconds for each")
    options = parser.parse_args(arguments)
    mutations = [m for m in MUTATIONS if not options.only or m.name in options.only]
    names = {mutation.name for mutation in mutations}
    unknown = [f"no mistake is called {name}" for name in options.only if name not in names]
    if problems := unknown + stale(mutations):
        print("\n".join(problems))
        return 1
    started, outcomes = time.monotonic(), []
    for outcome in run_all(mutations, options.jobs, options.limit):
        print(outcome, flush=True)
        outcomes.append(outcome)
    survived = [outcome for outcome in outcomes if not outcome.noticed]
    print(f"{len(mutations)} mistakes, {len(survived)} problems, "
          f"{time.monotonic() - started:.0f} s")  # fmt: skip
    return 1 if survived else 0


if __name__ == "__main__":
    sys.exit(main())
