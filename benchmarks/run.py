"""Sparse attention and graph convolution: ucle against scipy and purely relational SQL.

Run with ``python -m benchmarks.run``. All sides work on the same inputs in one process on the same
DuckDB, in turn; medians and their ratios are printed and written to ``benchmarks/RESULTS.md``.
Times are of execution alone, with inputs stored in the layout that the optimiser chose. Each answer
is compared with scipy's before its time counts.
"""

from __future__ import annotations

import os
import platform
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import duckdb
import numpy as np
import scipy.sparse as sp

import ucle
from benchmarks.stored import store_chosen, store_coo
from benchmarks.workloads import GRAPHS, Workload, attention, gcn

RESULTS = Path(__file__).parent / "RESULTS.md"


PAUSE = 0.25
"""Seconds before each run: a BLAS keeps its threads spinning for a while after its last call, and
they would take a core from whoever comes next."""


def timed(function: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds and result of one call."""
    time.sleep(PAUSE)
    start = time.perf_counter()
    result = function()
    return time.perf_counter() - start, result


def error(found: Any, expected: Any) -> float:
    """Largest difference, relative to the largest expected value."""
    difference = abs(found - expected)
    return float(difference.max() / abs(expected).max())


def measure(workload: Workload, rounds: int, relational_rounds: int) -> Iterator[str]:
    """Time the three sides in turn; yields one row of the table."""
    connection = ucle.connect(threads=2)
    program = store_chosen(connection, workload.program, workload.inputs)
    relational = duckdb.connect(config={"threads": 2})
    store_coo(relational, workload.inputs)

    def run_relational() -> None:
        relational.execute(f"DROP TABLE IF EXISTS {workload.name}").fetchall()
        relational.execute(workload.relational).fetchall()

    times: dict[str, list[float]] = {"scipy": [], "ucle": [], "relational": []}
    expected = workload.reference()
    program.execute(connection).close()
    for number in range(rounds):
        times["scipy"].append(timed(workload.reference)[0])
        seconds, result = timed(lambda: program.execute(connection))
        times["ucle"].append(seconds)
        if number == 0:
            check(workload, result, expected)
        result.close()
        if number < relational_rounds:
            times["relational"].append(timed(run_relational)[0])
    scipy_, ucle_, sql = (statistics.median(values) for values in times.values())
    yield (
        f"| {workload.name} | {workload.graph} | {scipy_:.3f} | {ucle_:.3f} | {sql:.2f} "
        f"| {ucle_ / scipy_:.2f} | {sql / ucle_:.0f} |"
    )


def check(workload: Workload, result: ucle.Result, expected: Any) -> None:
    """Refuse to time a wrong answer."""
    tensor = result[workload.output]
    found = sp.csr_array(tensor.to_scipy()) if sp.issparse(expected) else tensor.to_numpy()
    if (worst := error(found, expected)) > 1e-9:
        raise SystemExit(f"{workload.name} on {workload.graph} is wrong by {worst:.1e}")


def header() -> list[str]:
    """What was measured, on what."""
    return [
        "# Execution against scipy and relational SQL",
        "",
        f"Medians, DuckDB {duckdb.__version__} with two threads, NumPy {np.__version__}, "
        f"{platform.machine()} with {os.cpu_count()} cores. Seconds; ratios below 1 in the column "
        "ucle / scipy mean that ucle is faster.",
        "",
        "| program | graph | scipy | ucle | relational | ucle / scipy | relational / ucle |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: |",
    ]


@click.command()
@click.option("--rounds", default=7, help="Runs of scipy and ucle.")
@click.option("--relational-rounds", default=3, help="Runs of the relational script.")
@click.option("--graph", "graphs", multiple=True, default=("planetoid_cora", "amazon_photo"))
def main(rounds: int, relational_rounds: int, graphs: tuple[str, ...]) -> None:
    """Measure and print the table."""
    if not GRAPHS.is_dir():
        raise SystemExit(f"the graphs are not there: {GRAPHS}")
    lines = header()
    click.echo("\n".join(lines))
    for graph in graphs:
        for workload in (attention(graph), gcn(graph)):
            for row in measure(workload, rounds, relational_rounds):
                click.echo(row)
                lines.append(row)
    RESULTS.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
