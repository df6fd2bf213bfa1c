"""Find all tests that notice planted mistakes, beyond the first: the kill matrix.

    python -m tests.mutations.kill_matrix [--seconds 2700] [--each 60] [--sample 60] [--jobs 2]
    python -m tests.mutations.kill_matrix --report

For a mistake, tests are tried that run its lines: one instance of each test function, of at most
`LONGEST` seconds, in an order drawn for the mistake, up to ``--each`` seconds of processor time.
Which lines a test runs is measured once (`coverage` with a context for each test) and kept in
`LINES`, which is not committed; what was tried and what failed is kept in `KILLS`, which is. A run
stops after ``--seconds`` and the next one goes on behind it. ``--sample`` takes that many mistakes,
drawn by `SEED`; 0 takes all.
"""

from __future__ import annotations

import argparse
import json
import os
import queue
import random
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path

from .catalogue import MUTATIONS
from .mutation import Mutation
from .run import MEMORY, ROOT, copy_tree, planted

KILLS = Path(__file__).with_name("kills.json")
LINES = ROOT / ".kill_matrix"
"""Folder of this script's data: the coverage of each test, and its processor time."""
SEED = 38
LONGEST = 5.0
"""Seconds of processor time of a test that is tried."""
AT_ONCE = 120
"""Tests that one process collects: it imports their modules first."""
NO_END = 30
"""Seconds of processor time after which a test counts as failed."""
LAUNCH = f"""
import resource, sys, pytest
resource.setrlimit(resource.RLIMIT_AS, ({MEMORY}, {MEMORY}))
sys.exit(pytest.main(sys.argv[1:]))
"""


@dataclass
class Row:
    """One mistake: how many tests run its lines, which of them were tried, and which failed."""

    run_its_lines: int = 0
    tried: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)


def measure_lines(jobs: int) -> None:
    """Run one instance of each test function; keep which lines it runs and how long it takes."""
    LINES.mkdir(exist_ok=True)
    files = sorted({mutation.file for mutation in MUTATIONS})
    settings = LINES / "coveragerc"
    include = "\n    ".join(str(ROOT / file) for file in files)
    settings.write_text(f"[run]\ndata_file = {LINES / 'coverage'}\ninclude =\n    {include}\n")
    command = [sys.executable, "-m", "pytest", "-q", "--all", "-n", str(jobs), "--dist=worksteal",
               "-p", "mutations.outcomes", f"--outcomes={LINES / 'seconds'}", "--instances",
               "--cov", f"--cov-config={settings}", "--cov-context=test",
               "--cov-report="]  # fmt: skip
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "tests")}
    subprocess.run(command, cwd=ROOT, env=environment, check=False)


def read_seconds() -> dict[str, float]:
    """Return the processor time of each test that was measured and passed."""
    found: dict[str, float] = {}
    for path in LINES.glob("seconds.*"):
        for line in path.read_text().splitlines():
            entry = json.loads(line)
            if entry["outcome"] == "passed":
                found[entry["test"]] = entry["seconds"]
    return found


def tests_of_lines(mutations: Iterable[Mutation]) -> dict[str, list[str]]:
    """Return for each mistake the tests that run a line of it; of its file, if none of its lines
    belongs to a test, as those of tables do, which run when they are imported."""
    seconds = read_seconds()
    runs: defaultdict[str, defaultdict[int, set[str]]] = defaultdict(lambda: defaultdict(set))
    with sqlite3.connect(LINES / "coverage") as database:
        rows = database.execute(
            "SELECT path, context, numbits FROM line_bits"
            " JOIN file ON file.id = file_id JOIN context ON context.id = context_id"
        )
        for path, context, bits in rows:
            test = context.partition("|")[0]
            if seconds.get(test, LONGEST) < LONGEST:
                for line in lines_of_bits(bits):
                    runs[str(Path(path).relative_to(ROOT))][line].add(test)
    found = {}
    for mutation in mutations:
        text = (ROOT / mutation.file).read_text(encoding="utf-8")
        first = text[: text.index(mutation.old)].count("\n") + 1
        of_file = runs[mutation.file]
        lines = range(first, first + mutation.old.rstrip("\n").count("\n") + 1)
        tests = set().union(*(of_file[line] for line in lines)) or set().union(*of_file.values())
        found[mutation.name] = sorted(tests)
    return found


def lines_of_bits(bits: bytes) -> list[int]:
    """Return the numbers whose bits are set, as coverage's databases keep lines.

    >>> lines_of_bits(bytes([0b10, 0b1]))
    [1, 8]
    """
    return [8 * at + bit for at, byte in enumerate(bits) for bit in range(8) if byte >> bit & 1]


def try_tests(tree: Path, mutation: Mutation, tests: Sequence[str], each: float) -> dict[str, str]:
    """Plant a mistake in a copy and run tests for so many seconds; returns the outcome of each."""
    if not tests:
        return {}
    with planted(tree, mutation), tempfile.TemporaryDirectory() as folder:
        listed, written = Path(folder, "listed"), Path(folder, "outcomes")
        listed.write_text("\n".join(tests), encoding="utf-8")
        files = sorted({test.partition("::")[0] for test in tests})
        command = [sys.executable, "-c", LAUNCH, "-q", "--tb=no", "--all", "-p", "no:cacheprovider",
                   "-p", "mutations.outcomes", f"--outcomes={written}", f"--no-end={NO_END}",
                   f"--budget={each}", f"--listed={listed}", *files]  # fmt: skip
        environment = {**os.environ, "PYTHONPATH": f"{tree}{os.pathsep}{tree / 'tests'}"}
        subprocess.run(command, cwd=tree, env=environment, capture_output=True, check=False)
        lines = [line for path in Path(folder).glob("outcomes.*") for line in path.open()]
    return {entry["test"]: entry["outcome"] for entry in map(json.loads, lines)}


def extend(names: Sequence[str], seconds: float, each: float, jobs: int) -> None:
    """Try further tests for each of these mistakes, and keep what came of it after each of them.

    Those of which least is known come first.
    """
    rows = read_rows()
    names = sorted(names, key=lambda name: len(rows[name].tried) if name in rows else 0)
    by_name = {mutation.name: mutation for mutation in MUTATIONS}
    covering = tests_of_lines(by_name[name] for name in names)
    end = time.monotonic() + seconds

    def go_on(name: str, trees: queue.Queue[Path]) -> None:
        if time.monotonic() > end:
            return
        row = rows.setdefault(name, Row())
        tests = [test for test in covering[name] if test not in set(row.tried)]
        random.Random(f"{SEED} {name}").shuffle(tests)
        tree = trees.get()
        try:
            outcomes = try_tests(tree, by_name[name], tests[:AT_ONCE], each)
        finally:
            trees.put(tree)
        row.run_its_lines = len(covering[name])
        row.tried = sorted({*row.tried, *outcomes})
        row.failed = sorted({*row.failed, *(x for x, end in outcomes.items() if end == "failed")})
        write_rows(rows)
        print(f"{name:<40} {len(row.tried):>4} of {row.run_its_lines:>4} tried, "
              f"{len(row.failed):>4} failed", flush=True)  # fmt: skip

    with tempfile.TemporaryDirectory(prefix="ucle_kill_matrix_") as folder:
        trees: queue.Queue[Path] = queue.Queue()
        for number in range(jobs):
            trees.put(copy_tree(Path(folder, str(number)).resolve()))
        with ThreadPoolExecutor(jobs) as pool:
            list(pool.map(lambda name: go_on(name, trees), names))


def read_rows() -> dict[str, Row]:
    """Return the matrix as far as it is known."""
    if not KILLS.exists():
        return {}
    kept = json.loads(KILLS.read_text(encoding="utf-8"))
    names = kept["tests"]
    return {
        name: Row(
            row["run_its_lines"],
            [names[number] for number in row["tried"]],
            [names[number] for number in row["failed"]],
        )
        for name, row in kept["mistakes"].items()
    }


def write_rows(rows: Mapping[str, Row]) -> None:
    """Keep the matrix: names of tests once, then a line for each mistake."""
    names = sorted({test for row in list(rows.values()) for test in row.tried})
    numbers = {name: number for number, name in enumerate(names)}
    lines = []
    for name, row in sorted(rows.items()):
        entry = asdict(row)
        for key in ("tried", "failed"):
            entry[key] = [numbers[test] for test in entry[key]]
        lines.append(f"  {json.dumps(name)}: {json.dumps(entry, separators=(',', ':'))}")
    listed = ",\n".join(f"  {json.dumps(name)}" for name in names)
    text = ",\n".join(lines)
    new = KILLS.with_suffix(".new")
    new.write_text(f'{{"tests": [\n{listed}\n], "mistakes": {{\n{text}\n}}}}\n', encoding="utf-8")
    new.replace(KILLS)


def report() -> str:
    """Return what the matrix says: mistakes that one test alone catches, tests that caught none."""
    rows = read_rows()
    tried = Counter(test for row in rows.values() for test in row.tried)
    failed = Counter(test for row in rows.values() for test in row.failed)
    lonely = {name: row.failed for name, row in rows.items() if len(row.failed) < 2}
    idle = sorted((test for test in tried if not failed[test]), key=lambda x: (-tried[x], x))
    lines = [
        f"{len(rows)} mistakes, {sum(tried.values()):,} runs of {len(tried):,} tests, "
        f"{sum(failed.values()):,} failed; a mistake was caught by "
        f"{sorted(len(row.failed) for row in rows.values())[len(rows) // 2]} tests in the median.",
        "",
        "Caught by one test of those that were tried, or by none:",
        *(f"  {name}: {', '.join(tests) or 'none'}" for name, tests in sorted(lonely.items())),
        "",
        f"Tried ten times or more and never failed: {sum(tried[x] >= 10 for x in idle)} tests",
        *(f"  {tried[test]:>3}  {test}" for test in idle if tried[test] >= 10),
    ]
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Extend the matrix, or say what is in it; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutations.kill_matrix")
    parser.add_argument("--seconds", type=float, default=2700)
    parser.add_argument("--each", type=float, default=60)
    parser.add_argument("--sample", type=int, default=60)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--report", action="store_true")
    options = parser.parse_args(arguments)
    if options.report:
        print(report())
        return 0
    if not (LINES / "coverage").exists():
        measure_lines(options.jobs)
    names = sorted(mutation.name for mutation in MUTATIONS)
    if options.sample:
        names = sorted(random.Random(SEED).sample(names, min(options.sample, len(names))))
    extend(names, options.seconds, options.each, options.jobs)
    return 0


if __name__ == "__main__":
    sys.exit(main())
