"""An experiment of a paper: a program, the same computation in memory, and a line of a table."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import duckdb
import numpy as np

import ucle
from benchmarks.measure import THREADS, expect_close, race, ratio
from benchmarks.references.peers import Peers, to_array
from benchmarks.stored import entries_table

OWN = "ucle"
IN_PYTHON = ("SciPy", "NumPy")
"""Sides that are available wherever benchmarks run."""


@dataclass(frozen=True)
class Task:
    """The sides of a race.

    Attributes:
        peers: the same computation in memory, by side; the first one's answer is the right one.
        text: the program.
        inputs: by name: sparse matrices, which become tables of entries, arrays, or functions that
            make an input on a connection.
        output: the tensor that is compared.
        run: makes the call on a connection where it is more than one program, as in a loop.
        options: of `einsum_program`.
        fill: the value of an entry that a peer does not store.
        arrange: converts the program's array to the shape of the peers' arrays.
    """

    peers: Peers
    text: str = ""
    inputs: Mapping[str, Any] = field(default_factory=dict)
    output: str = ""
    run: Callable[[duckdb.DuckDBPyConnection], Callable[[], Any]] | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    fill: float = 0
    arrange: Callable[[Any], Any] = lambda array: array


@dataclass(frozen=True)
class Experiment:
    """One line; `prepare` raises `FileNotFoundError` where its data is missing."""

    section: str
    name: str
    prepare: Callable[[], Task]
    reports: str


def header(sides: Sequence[str]) -> Sequence[str]:
    """Return the names of the columns of `line`."""
    return (
        "section",
        "work",
        "compile",
        OWN,
        *sides,
        f"{OWN} / {' or '.join(side for side in sides if side in IN_PYTHON)}",
        f"{OWN} / fastest",
        "the paper reports",
    )


def line(experiment: Experiment, sides: Sequence[str], rounds: int) -> Sequence[str]:
    """Measure an experiment, or give the reason why it was not measured."""
    start = [experiment.section, experiment.name]
    try:
        task = experiment.prepare()
    except FileNotFoundError:
        return [*start, "skipped: data is not there", *[""] * (len(sides) + 3), experiment.reports]
    with contextlib.closing(ucle.connect(threads=THREADS)) as connection:
        run, compiling = _prepared(task, connection)
        calls = {OWN: run} | {side: call for side, call in task.peers.items() if call is not None}
        expected = to_array(next(call for call in task.peers.values() if call)(), task.fill)

        def check(side: str, found: Any) -> None:
            answer = found[task.output] if isinstance(found, ucle.Result) else found
            if isinstance(answer, ucle.TensorRelation):
                answer = (
                    answer.to_numpy() if isinstance(expected, np.ndarray) else answer.to_scipy()
                )
            array = to_array(answer, task.fill)
            array = task.arrange(array) if side == OWN else array
            _expect(f"{experiment.name}, {side}", array, expected)

        times = race(calls, rounds, check)
    cells = [f"{times[side]:.4f}" if side in times else _absent(task, side) for side in sides]
    first = next(side for side in sides if side in times)
    fastest = min(seconds for side, seconds in times.items() if side != OWN)
    return [
        *start,
        f"{compiling:.2f}",
        f"{times[OWN]:.4f}",
        *cells,
        ratio(times[OWN] / times[first]),
        ratio(times[OWN] / fastest),
        experiment.reports,
    ]


def lines(
    experiments: Callable[[], Iterator[Experiment]], sides: Sequence[str]
) -> Callable[[int], Iterator[Sequence[str]]]:
    """Return the rows of a table."""
    return lambda rounds: (line(x, sides, rounds) for x in experiments())


def _prepared(task: Task, connection: duckdb.DuckDBPyConnection) -> tuple[Callable[[], Any], float]:
    """Return a prepared call, and the seconds to compile it where inputs are stored already."""
    if task.run is not None:
        start = time.perf_counter()
        return task.run(connection), time.perf_counter() - start
    inputs = {
        name: value(connection) if callable(value) else entries_table(connection, name, value)
        for name, value in task.inputs.items()
    }
    tables = [name for name, value in inputs.items() if not isinstance(value, np.ndarray)]

    def compiled() -> ucle.EinsumProgram:
        return ucle.einsum_program(
            task.text, inputs=inputs, database=connection, store=tables, **task.options
        )

    compiled()
    start = time.perf_counter()
    program = compiled()
    seconds = time.perf_counter() - start
    return lambda: program.execute(connection), seconds


def _absent(task: Task, side: str) -> str:
    return "not installed" if side in task.peers else ""


def _expect(name: str, found: Any, expected: Any) -> None:
    """Refuse to time a wrong answer; infinities have to be in the same places."""
    if not isinstance(expected, np.ndarray):
        return expect_close(name, found, expected, 1e-9)
    finite = np.isfinite(expected)
    if found.shape != expected.shape or not np.array_equal(finite, np.isfinite(found)):
        raise SystemExit(f"{name} is wrong")
    numbers = (np.asarray(x[finite], dtype=np.float64) for x in (found, expected))
    return expect_close(name, *numbers, 1e-9)
