"""An experiment of a paper: a program, what computes the same in memory, and a line of a table."""

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
"""Sides that are at hand wherever benchmarks run."""


@dataclass(frozen=True)
class Task:
    """What is raced.

    Attributes:
        peers: what computes the same in memory; the answer of the first is the right one.
        text: the program.
        inputs: by name: sparse matrices, which become tables of entries, arrays, or what makes an
            input on a connection.
        output: the tensor that is compared.
        run: what is called instead, where one program is not all, as in a loop. It is made on a
            connection.
        options: of `einsum_program`.
        fill: what an entry is worth that a peer does not store.
        arrange: what brings the program's array into the shape of the peers'.
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
    """One line: `prepare` raises `FileNotFoundError` where its data is not there."""

    section: str
    name: str
    prepare: Callable[[], Task]
    reports: str


def header(sides: Sequence[str]) -> Sequence[str]:
    """The names of the columns of `line`."""
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
    """Measure an experiment, or say why not."""
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
    """The rows of a table."""
    return lambda rounds: (line(x, sides, rounds) for x in experiments())


def _prepared(task: Task, connection: duckdb.DuckDBPyConnection) -> tuple[Callable[[], Any], float]:
    """What is called, and the seconds that it takes to compile where inputs are stored already."""
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
    """Refuse to time a wrong answer; infinities are to be at the same places."""
    if not isinstance(expected, np.ndarray):
        return expect_close(name, found, expected, 1e-9)
    finite = np.isfinite(expected)
    if found.shape != expected.shape or not np.array_equal(finite, np.isfinite(found)):
        raise SystemExit(f"{name} is wrong")
    numbers = (np.asarray(x[finite], dtype=np.float64) for x in (found, expected))
    return expect_close(name, *numbers, 1e-9)
