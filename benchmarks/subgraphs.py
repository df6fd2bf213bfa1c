"""Counts of small patterns in large graphs, from their text in one line.

For each query of the data (section 7.3 of Galley has these and more) the table has the time of ucle
to compile and to run it, and the times in plain SQL: with joins and sums ordered by hand, and as
one join that DuckDB orders. It also has the errors of the estimators for the product of all
factors, which has as many entries as there are matches. Runs that exceed the cap are interrupted
and count as the cap.
"""

from __future__ import annotations

import json
import os
import statistics
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Any

import duckdb

import ucle
from benchmarks.by_hand import REACH
from benchmarks.measure import THREADS, Table, capped, ratio
from benchmarks.paper.algebra import SUBGRAPHS, subgraph
from benchmarks.paper.tasks import Task
from benchmarks.peers import duckdb_relational
from benchmarks.stored import input_tables
from ucle.ir.layouts import Layout
from ucle.stats.estimate import MeasuredInputs
from ucle.stats.estimators import ESTIMATORS

CAP = float(os.environ.get("UCLE_BENCH_CAP", "60"))
"""Seconds after which a run is interrupted."""

GRAPHS = ("yeast", "wordnet")


def _off(task: Task, connection: duckdb.DuckDBPyConnection, inputs: Any) -> dict[str, float]:
    """The factor by which each estimator is too high or too low for the product of all factors."""
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
        known = MeasuredInputs(program.statistics.measured, estimator).of(program.program)
        estimate = max(known.rows("found", every).estimate, 1.0)
        found[name] = max(estimate / truth, truth / estimate)
    return found


def _names(part: str) -> list[str]:
    return part.partition("]")[0].split(",")


def one_join(task: Task) -> str:
    """Return the count as one join, in the order that DuckDB finds."""
    factors = [part.rstrip("]").split("[") for part in task.program.split(" += ")[1].split(" * ")]
    places: dict[str, str] = {}
    equal, tables = [], []
    for number, (name, labels) in enumerate(factors):
        tables.append(f"{name} t{number}")
        for axis, label in enumerate(labels.split(",")):
            column = f"t{number}.c{axis}"
            if label in places:
                equal.append(f"{places[label]} = {column}")
            places.setdefault(label, column)
    return f"SELECT count(*) FROM {', '.join(tables)} WHERE {' AND '.join(equal)}"


def _theirs(peer: duckdb_relational.Engine, task: Task) -> None:
    found = peer.connection.execute(one_join(task)).fetchone()
    assert found == (task.expected(),)


def _measure(graph: str, query: str, rounds: int) -> tuple[dict[str, float], dict[str, float]]:
    task = subgraph(f"{graph}/{query}")
    with ucle.connect(threads=THREADS) as connection, closing(duckdb_relational.Engine()) as peer:
        inputs = input_tables(connection, task.inputs)
        peer.load(task)
        peer.connection.execute("SET max_temp_directory_size = '1GB'")
        found: dict[str, list[float]] = {x: [] for x in ("compile", "run", "by hand", "one join")}
        for _ in range(rounds):
            start = time.perf_counter()
            program = ucle.einsum_program(task.program, inputs=inputs, database=connection)
            found["compile"].append(time.perf_counter() - start)

            def execute(program: ucle.EinsumProgram = program) -> None:
                with program.execute(connection) as result:
                    assert float(result["found"].to_numpy()) == task.expected()

            found["run"].append(capped(connection, execute, CAP))
            found["by hand"].append(capped(peer.connection, peer.run, CAP))
            if CAP not in found["one join"]:
                found["one join"].append(capped(peer.connection, lambda: _theirs(peer, task), CAP))
        off = _off(task, connection, inputs)
    return {name: statistics.median(times) for name, times in found.items()}, off


def _row(seconds: dict[str, float]) -> list[str]:
    both = seconds["compile"] + seconds["run"]
    return [
        *(f"{x:.3f}" for x in seconds.values()),
        ratio(seconds["run"] / seconds["by hand"]),
        ratio(both / seconds["by hand"]),
        ratio(both / seconds["one join"]),
    ]


def _rows(rounds: int) -> Iterator[Sequence[str]]:
    for graph in GRAPHS:
        queries = json.loads((SUBGRAPHS / graph / "queries.json").read_text(encoding="utf-8"))
        errors: dict[str, list[float]] = {name: [] for name in ESTIMATORS}
        total: dict[str, float] = {}
        for query in queries:
            seconds, off = _measure(graph, query["name"], rounds)
            for name, factor in off.items():
                errors[name].append(factor)
            for name, time_ in seconds.items():
                total[name] = total.get(name, 0.0) + time_
            row = _row(seconds)
            offs = (f"{off[name]:.3g}" for name in ESTIMATORS)
            yield (graph, query["name"], *row, *offs, _reach(row))
        medians = (f"{statistics.median(errors[name]):.3g}" for name in ESTIMATORS)
        row = _row(total)
        yield (graph, "sum; median", *row, *medians, _reach(row))


def _reach(row: Sequence[str]) -> str:
    return "reached" if float(row[4]) <= REACH else "missed"


TABLE = Table(
    "subgraphs",
    "Counts of subgraphs",
    "Each query counts the occurrences of a pattern. Its text is one product, in which\n"
    "labels of vertices are factors. Seconds of ucle to compile and to run, of SQL whose\n"
    "joins and sums were ordered by hand, and of a single join that DuckDB orders. Runs are\n"
    f"stopped after {CAP:g} s and count as {CAP:g} s. The next three columns divide ucle's\n"
    "run by the SQL by hand, and compilation plus run (`both`) by the SQL by hand and by\n"
    "the single join. The columns `off` show the factor by which each estimator misses the\n"
    f"number of occurrences. Goal: a run of at most {REACH:g} times the SQL by hand.",
    (
        "graph",
        "query",
        "compile",
        "run",
        "SQL by hand",
        "one join",
        "run to by hand",
        "both to by hand",
        "both to one join",
        *(f"off: {x}" for x in ESTIMATORS),
        "goal",
    ),
    _rows,
)
