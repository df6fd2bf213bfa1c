"""The jobs measured: ``python -m benchmarks.jobs.run [NAMES]``, with the extra `examples`.

Prints a table. Without names, it is also written to ``benchmarks/results/jobs.md``.
"""

from __future__ import annotations

import compileall
import importlib
import os
import site
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import click
import numpy as np
import pandas as pd

import ucle.sqlgen
import ucle.stats
import ucle.udf_kernels
from benchmarks.comparison import lines_of
from benchmarks.jobs.data import MAKERS, make
from benchmarks.measure import machine, ratio

RESULTS = Path(__file__).parents[1] / "results" / "jobs.md"

TOLERANCE = 1e-5
"""The largest difference between answers, relative to the largest entry: some are float32."""

COLUMNS = (
    "job",
    "lines ucle",
    "lines",
    "first run",
    "second run",
    "alternative, first",
    "alternative",
    "which",
    "second / alternative",
)

PAGE = """\
# Jobs from files to answers

Jobs of data analysts (`benchmarks/jobs`): with ucle, as its documentation shows, and with the
library that most people would use instead. Both read the same files in each run. Each job has a
process of its own, in which both sides take turns and run twice. The columns show the processor
seconds of the first and of the second run, without imports. ucle compiles in the first run; in the
second, it finds the plan and the statistics of the files in its caches. The answers of both runs
are compared before a row is written. `lines` are lines of code, without imports.

{machine}

{rows}
"""


@click.command()
@click.argument("names", nargs=-1, type=click.Choice(list(MAKERS)))
@click.option("--folder", type=Path, help="Where the files are made; temporary by default.")
def main(names: tuple[str, ...], folder: Path | None) -> None:
    """Measure jobs, and print a table; write it if all are measured."""
    _write_byte_code()
    lines = []
    with tempfile.TemporaryDirectory() as temporary:
        for line in table(names or tuple(MAKERS), folder or Path(temporary)):
            click.echo(line)
            lines.append(line)
    if not names:
        text = PAGE.format(machine=machine(1).partition("; ")[2], rows="\n".join(lines))
        RESULTS.write_text(text, encoding="utf-8")


def table(names: Sequence[str], folder: Path) -> Iterator[str]:
    """Yield the lines of the table, each as soon as it is known."""
    yield f"| {' | '.join(COLUMNS)} |"
    yield f"|{' --- |' * len(COLUMNS)}"
    for name in names:
        make(name, folder / name)
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
            cells = process.submit(measure, name, folder / name).result()
        yield f"| {' | '.join(cells)} |"


def measure(name: str, folder: Path) -> Sequence[str]:
    """Run both sides of a job twice, in turn; return the row."""
    job = importlib.import_module(f"benchmarks.jobs.{name}")
    sides = job.ucle_side, job.other_side
    times: list[float] = []
    for _ in range(2):
        (ucle_seconds, found), (other_seconds, expected) = (_timed(side, folder) for side in sides)
        wrong = difference(found, expected)
        if not wrong <= TOLERANCE:
            raise SystemExit(f"{name}: the answers differ by {wrong:.1e}")
        times += ucle_seconds, other_seconds
    ucle_first, other_first, ucle_second, other_second = times
    return (
        job.JOB,
        *(str(sum(lines_of(x) for x in _functions(job, side))) for side in sides),
        *(f"{x:.2f}" for x in (ucle_first, ucle_second, other_first, other_second)),
        job.OTHER,
        ratio(ucle_second / other_second),
    )


def difference(found: Any, expected: Any) -> float:
    """The largest difference, relative to the largest entry.

    Frames are compared by their key columns, which are all but the last: a missing row is a 0.

    >>> difference(pd.DataFrame({"i": ["a"], "val": [2.0]}), pd.DataFrame({"i": [], "val": []}))
    inf
    >>> difference(np.array([1.0, 2.0]), np.array([1.0, 4.0]))
    0.5
    """
    if isinstance(expected, pd.DataFrame):
        found, expected = (
            frame.set_index(list(frame.columns[:-1])).iloc[:, 0].rename_axis(None)
            if frame.shape[1] == 2
            else frame.set_index(list(frame.columns[:-1])).iloc[:, 0]
            for frame in (found, expected)
        )
        found, expected = found.align(expected, fill_value=0.0)
    found, expected = np.asarray(found, float), np.asarray(expected, float)
    largest = abs(expected).max()
    return float(abs(found - expected).max() / largest) if largest else np.inf


def _write_byte_code() -> None:
    """Compile what the sides import to byte code, as installers do for packages.

    A first run that compiled the sources of its libraries would mostly be that.
    """
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    packages = ucle, ucle.sqlgen, ucle.stats, ucle.udf_kernels
    for folder in (*site.getsitepackages(), *(x.__path__[0] for x in packages)):
        compileall.compile_dir(folder, quiet=2, workers=os.cpu_count() or 1)


def _functions(job: Any, side: Callable[..., Any]) -> Iterator[Callable[..., Any]]:
    """Yield a side and the functions of its module that it calls."""
    yield side
    for name, function in vars(job).items():
        if name.startswith("_") and callable(function) and name in side.__code__.co_names:
            yield function


def _timed(side: Callable[[Path], Any], folder: Path) -> tuple[float, Any]:
    start = time.process_time()
    answer = side(folder)
    return time.process_time() - start, answer


if __name__ == "__main__":
    main()
