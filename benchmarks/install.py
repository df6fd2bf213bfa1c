"""The cost of ucle before it computes anything: import time, and disk space.

CPU time is that of whole processes, with byte code from an earlier process. Python attributes it to
packages (``-X importtime``), each without those that it imports. Installed size is that of a new
environment without extras, with packages from pip's configured source.

    python -m benchmarks.run install --rounds 9
"""

from __future__ import annotations

import os
import re
import resource
import statistics
import subprocess
import sys
import sysconfig
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.measure import Table

ROOT = Path(__file__).parents[1]

SCRIPTS = {
    "Python alone": "pass",
    "import ucle": "import ucle",
    "every public name": "from ucle import *",
    "import numpy": "import numpy",
    "import duckdb": "import duckdb",
    "import sqlglot": "import sqlglot",
    "one ucle.einsum": "import ucle; ucle.einsum('ij,j->i', [[1, 2], [3, 4]], [1, 1])",
}

COMPUTED = """
import time, ucle
for _ in range(3):
    wall, cpu = time.perf_counter(), time.process_time()
    ucle.array([[1.0, 2.0], [3.0, 4.0]]).sum(0).to_numpy()
    print(time.perf_counter() - wall, time.process_time() - cpu)
"""
"""Prints two times: the first loads the libraries, the second is that of later calls."""

LARGEST = 8
"""Packages that are listed individually."""


def python(*arguments: str) -> tuple[float, str]:
    """Return the CPU seconds of a process, and its output."""
    hidden = ("PYTHONDONTWRITEBYTECODE", "PYTHONPROFILEIMPORTTIME")
    environment = {name: value for name, value in os.environ.items() if name not in hidden}
    before = _spent()
    done = subprocess.run(
        [sys.executable, *arguments],
        env=environment,
        check=True,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    return _spent() - before, done.stdout


def _spent() -> float:
    """Return CPU seconds of all child processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def imports(rounds: int) -> Iterator[Sequence[str]]:
    """Measure the CPU seconds of processes that import, in turn."""
    seconds: dict[str, list[float]] = {name: [] for name in SCRIPTS}
    for number in range(rounds + 1):
        for name, script in SCRIPTS.items():
            taken, _ = python("-c", script)
            if number:  # the first may have written byte code
                seconds[name].append(taken)
    for name, taken_each in seconds.items():
        yield name, f"{statistics.median(taken_each):.3f} s"


def contributors(rounds: int) -> Iterator[Sequence[str]]:
    """Yield the packages that account for importing every public name."""
    rows: list[Counter[str]] = []
    for _ in range(rounds):
        _, said = python("-X", "importtime", "-c", "from ucle import *")
        own = re.findall(r"^import time:\s+(\d+) \|\s+\d+ \|\s+(\w+)", said, re.MULTILINE)
        counted: Counter[str] = Counter()
        for microseconds, package in own:
            counted[package.removeprefix("_")] += int(microseconds)
        rows.append(counted)
    medians = {
        package: statistics.median(row[package] for row in rows) / 1e6
        for package in set().union(*rows)
    }
    shown = sorted(medians, key=medians.__getitem__, reverse=True)[:LARGEST]
    for package in shown:
        yield f"every public name, in {package}", f"{medians[package]:.3f} s"
    rest = sum(value for package, value in medians.items() if package not in shown)
    yield f"every public name, in {len(medians) - len(shown)} others", f"{rest:.3f} s"


def computations(rounds: int) -> Iterator[Sequence[str]]:
    """Measure a small lazy tensor, the first of a process and the second."""
    runs = [
        [line.split() for line in python("-c", COMPUTED)[1].splitlines()] for _ in range(rounds)
    ]
    for name, at in (("first", 0), ("second", 1)):
        wall, cpu = (statistics.median(float(run[at][n]) for run in runs) for n in (0, 1))
        yield f"the {name} small lazy tensor", f"{wall:.3f} s, {cpu:.3f} s of CPU"


def sizes() -> Iterator[Sequence[str]]:
    """Measure the megabytes of a new environment, without pip and without byte code."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
        inside = sysconfig.get_path("scripts", "venv", {"base": folder})
        pip = [sys.executable, "-m", "pip", "--python", f"{inside}/python"]
        install = [*pip, "install", "--quiet", "--no-compile", str(ROOT)]
        subprocess.run(install, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        packages = Path(sysconfig.get_path("purelib", "venv", {"base": folder}))
        held: Counter[str] = Counter()
        for path in packages.rglob("*"):
            if path.is_file():
                top = path.relative_to(packages).parts[0]
                held[re.split(r"[.-]", top)[0].removeprefix("_")] += path.stat().st_size
    yield "installed, without extras", f"{held.total() / 1e6:.0f} MB"
    for package, size in held.most_common(5):
        yield f"installed, {package}", f"{size / 1e6:.0f} MB"


def rows(rounds: int) -> Iterator[Sequence[str]]:
    """Yield importing, its contributors, computing, and installing."""
    yield from imports(rounds)
    yield from contributors(rounds)
    yield from computations(rounds)
    yield from sizes()


TABLE = Table(
    "install",
    "What ucle costs before it computes anything",
    "CPU seconds of processes that only import, and the packages that take most of the time\n"
    "when every public name is imported. Each package is counted without those that it\n"
    "imports, as measured by `-X importtime`, which itself takes time. The lazy tensors are\n"
    "the first and the second computation of a process. Installed sizes do not include byte\n"
    "code.",
    ("what", "takes"),
    rows,
)
