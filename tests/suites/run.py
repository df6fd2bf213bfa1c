"""Runs tests that others wrote on ucle's einsum, from their installed packages.

    python tests/suites/run.py [--workers 2] [NumPy | opt_einsum | sparse ...]

Each suite runs in a process of its own with the adapter of its name, which puts ucle in the place
of what the suite tests. Prints what passed, what failed, and what was skipped and why; fails if a
test does, or if a suite has none.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
SAMPLED = "sampled"
"""The beginning of the reason for which `recorder.sample` skips a test."""


@dataclass(frozen=True)
class Suite:
    """Test modules of an installed package, and the plugin that adapts them."""

    package: str
    adapter: str
    modules: tuple[str, ...]


SUITES = {
    "NumPy": Suite("numpy", "numpy_suite", ("numpy._core.tests.test_einsum",)),
    "opt_einsum": Suite(
        "opt_einsum",
        "opt_einsum_suite",
        tuple(
            f"opt_einsum.tests.test_{name}"
            for name in ("contract", "input", "edge_cases", "blas", "sharing")
        ),
    ),
    "sparse": Suite("sparse", "sparse_suite", ("sparse.numba_backend.tests.test_einsum",)),
}


@dataclass(frozen=True)
class Outcome:
    """The result of a run of a suite: a record for each test, and pytest's output."""

    records: list[dict[str, Any]]
    seconds: float
    output: str

    def count(self, outcome: str) -> int:
        """Count the tests that ended so; tests that were not drawn have an outcome of their own."""
        return sum(_outcome(record) == outcome for record in self.records)

    @property
    def calls(self) -> int:
        """The number of calls of einsum that were made and checked."""
        return sum(record["calls"] for record in self.records)

    @property
    def failed(self) -> bool:
        """True if a test failed, or none passed."""
        return self.count("failed") > 0 or self.count("passed") == 0

    def skipped(self) -> list[str]:
        """Each reason, with the tests that it holds for and how many sets of parameters."""
        tests: dict[str, Counter[str]] = {}
        for record in self.records:
            if record["outcome"] == "skipped":
                name = record["test"].partition("[")[0]
                tests.setdefault(record["reason"], Counter())[name] += 1
        return [
            f"{reason}: " + ", ".join(f"{name} ({n})" for name, n in sorted(counts.items()))
            for reason, counts in sorted(tests.items())
        ]

    def notes(self) -> list[str]:
        """The changes to tests that ran."""
        return [note for record in self.records for note in record["notes"]]


def _outcome(record: dict[str, Any]) -> str:
    return "not drawn" if record["reason"].startswith(SAMPLED) else str(record["outcome"])


def run(suite: Suite, workers: int) -> Outcome:
    """Run a suite; away from the repository, so that the installed packages are found."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.json")
        started = time.perf_counter()
        finished = subprocess.run(
            [
                *(sys.executable, "-m", "pytest", "-c", str(HERE / "pytest.ini")),
                *("-p", "recorder", "-p", suite.adapter, "--suite-report", str(report)),
                *("-q", "--no-header", "--tb=short", "-n", str(workers)),
                *("--rootdir", folder, "--pyargs", *suite.modules),
            ],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(HERE)},
            capture_output=True,
            text=True,
            check=False,
        )
        seconds = time.perf_counter() - started
        records = json.loads(report.read_text()) if report.exists() else []
    return Outcome(records, seconds, finished.stdout + finished.stderr)


def print_table(outcomes: dict[str, Outcome]) -> None:
    """Counts of every suite, then what was skipped or changed, and why."""
    row = "{:<10} {:<8} {:>7} {:>7} {:>8} {:>10} {:>13} {:>8}"
    columns = ("passed", "failed", "skipped", "not drawn")
    print(row.format("suite", "version", *columns, "einsum calls", "seconds"))
    for name, outcome in outcomes.items():
        counts = [outcome.count(kind) for kind in columns]
        installed = version(SUITES[name].package)
        print(row.format(name, installed, *counts, outcome.calls, round(outcome.seconds)))
    for name, outcome in outcomes.items():
        for title, lines in (("skipped", outcome.skipped()), ("changed", outcome.notes())):
            if lines:
                print(f"\n{name}, {title}", *lines, sep="\n  ")


def main() -> int:
    """Run the suites that are named, or all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("suites", nargs="*", metavar="suite", help=", ".join(SUITES))
    parser.add_argument("--workers", type=int, default=2, help="processes for each suite")
    arguments = parser.parse_args()
    if unknown := [name for name in arguments.suites if name not in SUITES]:
        parser.error(f"unknown suite {unknown[0]}; there are {', '.join(SUITES)}")
    chosen = arguments.suites or list(SUITES)
    outcomes = {name: run(SUITES[name], arguments.workers) for name in chosen}
    for outcome in outcomes.values():
        if outcome.failed:
            print(outcome.output)
    print_table(outcomes)
    return int(any(outcome.failed for outcome in outcomes.values()))


if __name__ == "__main__":
    sys.exit(main())
