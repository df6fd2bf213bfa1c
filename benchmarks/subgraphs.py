"""How often small patterns occur in large graphs, from their text in one line.

For each query of the data: what ucle takes to compile and to run it, what the same takes in plain
SQL whose joins were ordered by hand, and how far the estimators are off for the product of all
factors, of which there are as many entries as there are occurrences. What takes longer than the cap
is ended, and counts as the cap.
"""

from __future__ import annotations

import json
import statistics
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from typing import Any

import duckdb

import ucle
from benchmarks.measure import THREADS, Table
from benchmarks.paper.algebra import SUBGRAPHS, subgraph
from benchmarks.paper.tasks import Task
from benchmarks.peers import duckdb_relational
from benchmarks.stored import input_tables
from ucle.ir.layouts import Layout
from ucle.stats.estimate import Measured
from ucle.stats.estimators import ESTIMATORS

CAP = 60.0
"""Seconds after which a run is ended."""

GRAPHS = ("yeast", "wordnet")


def _capped(connection: duckdb.DuckDBPyConnection, run: Callable[[], Any]) -> float:
    """The seconds that a run takes, or the cap."""
    timer = threading.Timer(CAP, connection.interrupt)
    timer.start()
    start = time.perf_counter()
    try:
        run()
    except (ucle.ExecutionError, duckdb.Error):
        if time.perf_counter() - start < CAP:
            raise
        return CAP
    finally:
        timer.cancel()
    return time.perf_counter() - start


def _off(task: Task, connection: duckdb.DuckDBPyConnection, inputs: Any) -> dict[str, float]:
    """How many times too high or too low each estimator is for the product of all factors."""
    labels = sorted({name for part in task.program.split("[")[1:] for name in _names(part)})
    text = task.program.replace("found +=", f"found[{','.join(labels)}] =")
    program = ucle.einsum_program(
        text,
        inputs=inputs,
        database=connection,
        decomposition="relational",
        association="as-written",
    ).compiled
    truth = max(float(task.expected()), 1.0)
    every = Layout.of([True] * len(labels))
    found = {}
    for name, estimator in ESTIMATORS.items():
        known = Measured(program.statistics.measured, estimator).of(program.program)
        estimate = max(known.rows("found", every).estimate, 1.0)
        found[name] = max(estimate / truth, truth / estimate)
    return found


def _names(part: str) -> list[str]:
    return part.partition("]")[0].split(",")


def _measure(graph: str, query: str, rounds: int) -> tuple[list[str], dict[str, float]]:
    task = subgraph(f"{graph}/{query}")
    with ucle.connect(threads=THREADS) as connection, closing(duckdb_relational.Engine()) as peer:
        inputs = input_tables(connection, task.inputs)
        peer.load(task)
        compiled, runs, theirs = [], [], []
        for _ in range(rounds):
            start = time.perf_counter()
            program = ucle.einsum_program(task.program, inputs=inputs, database=connection)
            compiled.append(time.perf_counter() - start)

            def execute(program: ucle.EinsumProgram = program) -> None:
                with program.execute(connection) as result:
                    assert float(result["found"].to_numpy()) == task.expected()

            runs.append(_capped(connection, execute))
            theirs.append(_capped(peer.connection, peer.run))
        off = _off(task, connection, inputs)
    seconds = [statistics.median(times) for times in (compiled, runs, theirs)]
    return [f"{x:.3f}" for x in seconds], off


def _rows(rounds: int) -> Iterator[Sequence[str]]:
    for graph in GRAPHS:
        queries = json.loads((SUBGRAPHS / graph / "queries.json").read_text(encoding="utf-8"))
        errors: dict[str, list[float]] = {name: [] for name in ESTIMATORS}
        for query in queries:
            seconds, off = _measure(graph, query["name"], rounds)
            for name, factor in off.items():
                errors[name].append(factor)
            yield (graph, query["name"], *seconds, *(f"{off[name]:.3g}" for name in ESTIMATORS))
        medians = (f"{statistics.median(errors[name]):.3g}" for name in ESTIMATORS)
        yield (graph, "median", "", "", "", *medians)


TABLE = Table(
    "subgraphs",
    "Counts of subgraphs",
    f"From the text of one product, the labels of vertices as factors. Runs end at {CAP:g} s. The\n"
    "last columns tell how many times each estimator is off for the number of occurrences.",
    ("graph", "query", "compile", "run", "SQL by hand", *(f"off: {x}" for x in ESTIMATORS)),
    _rows,
)
