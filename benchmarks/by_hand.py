"""A program as a person writes it, as it is rewritten, and as an expert would write it.

Each side is a program of its own on the same connection, so that only the form differs. There may
also be a version with NumPy or SciPy, by hand, which also provides the expected answer.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import duckdb
import pyarrow as pa
import scipy.sparse as sp

import ucle
from benchmarks.measure import THREADS, Table, capped, expect_close, race, ratio
from ucle.errors import MemoryLimitError

REACH = 1.2
"""The most times the time of the expert's program that the rewritten one may take."""

LONG = 2.0
"""Seconds of compiling from which on it is timed only once."""

CAP = 30.0
"""Seconds after which a program in its written form is interrupted."""

TOLERANCE = 1e-7


@dataclass(frozen=True)
class Relation:
    """An input that becomes a table: coordinates by label, each entry worth 1."""

    keys: Mapping[str, Any]
    bounds: Sequence[int]


@dataclass(frozen=True)
class Case:
    """A program, the expert's version, and its inputs; `law` is its `rewrite` option."""

    name: str
    text: str
    by_hand: str
    inputs: Mapping[str, Any]
    law: str = "safe"
    outputs: Sequence[str] = ()
    """The requested outputs; by default all that no statement reads."""
    in_memory: Callable[[], Any] | None = None
    """Computes the first output with NumPy or SciPy, by hand."""
    cause: str = ""
    """The reason for a missed target, where it is known."""


HEADER = (
    "program",
    "rewrite",
    "as written",
    "rewritten",
    "by hand",
    "written / rewritten",
    "rewritten / by hand",
    "compile",
    "what was done",
    "goal",
)


def table(
    name: str, title: str, notes: str, cases: Callable[[], Iterable[Case]], *, in_memory: bool
) -> Table:
    """Return a table of cases, with a column for NumPy and SciPy where cases have them."""

    def rows(rounds: int) -> Iterator[Sequence[str]]:
        for case in cases():
            yield measure(case, rounds)

    header = list(HEADER)
    if in_memory:
        header.insert(5, "SciPy")
    return Table(name, title, notes, header, rows)


def measure(case: Case, rounds: int) -> Sequence[str]:
    """Measure a case; return its row."""
    with ucle.connect(threads=THREADS) as connection:
        inputs = {name: _stored(connection, name, x) for name, x in case.inputs.items()}

        def compiled(text: str, law: str, association: str = "free") -> ucle.EinsumProgram:
            return ucle.einsum_program(
                text.replace(";", "\n"),
                database=connection,
                inputs=inputs,
                outputs=list(case.outputs) or None,
                rewrite=law,
                association=association,
            )

        compiling, rewritten = _compiling(lambda: compiled(case.text, case.law), rounds)
        programs = {"rewritten": rewritten, "by hand": compiled(case.by_hand, "none")}
        instead = ""
        try:
            written = compiled(case.text, "none", "as-written")
        except MemoryLimitError:
            instead = "does not fit"
        else:
            if capped(connection, lambda: written.execute(connection).close(), CAP) < CAP:
                programs = {"written": written, **programs}
            else:
                instead = f"over {CAP:g}"
        sides: dict[str, Callable[[], Any]] = {
            side: lambda p=program: p.execute(connection) for side, program in programs.items()
        }
        if case.in_memory is not None:
            sides = {"in memory": case.in_memory, **sides}
        times = race(sides, rounds, _check(case))
    lowering = rewritten.compiled.front.lowering
    told = lowering.rewrite("rewritten") or lowering.rewrite("masks")
    to_hand = times["rewritten"] / times["by hand"]
    missed = f"missed: {case.cause}" if case.cause else "missed"
    row = [
        case.name,
        case.law,
        instead or f"{times['written']:.3f}",
        f"{times['rewritten']:.3f}",
        f"{times['by hand']:.3f}",
        "" if instead else ratio(times["written"] / times["rewritten"]),
        ratio(to_hand),
        f"{1000 * compiling:.0f}",
        "; ".join(f"`{line}`" for line in told.lines) if told else "as written",
        "reached" if to_hand <= REACH else missed,
    ]
    if case.in_memory is not None:
        row.insert(5, f"{times['in memory']:.3f}")
    return row


def _compiling(
    compiled: Callable[[], ucle.EinsumProgram], rounds: int
) -> tuple[float, ucle.EinsumProgram]:
    """Measure compiling, without the first time unless it takes long; return the program, too."""
    start = time.perf_counter()
    program = compiled()
    first = time.perf_counter() - start
    return (first if first > LONG else race({"": compiled}, min(rounds, 3))[""]), program


def _check(case: Case) -> Callable[[str, Any], None]:
    """Return a function that compares the results of all sides with those of the first one."""
    expected: dict[str, Any] = {}

    def check(side: str, result: Any) -> None:
        of_ucle = isinstance(result, Mapping)
        found = (
            {name: result[name].to_numpy() for name in result}
            if of_ucle
            else {case.outputs[0]: result.toarray() if sp.issparse(result) else result}
        )
        for name, array in found.items():
            known = expected.setdefault(name, array)
            expect_close(f"{case.name}, {side}, {name}", array, known, TOLERANCE)

    return check


def _stored(connection: duckdb.DuckDBPyConnection, name: str, value: Any) -> Any:
    """Store a relation as a table of the database; other inputs stay in memory."""
    if not isinstance(value, Relation):
        return value
    connection.register("source", pa.table(dict(value.keys)))
    connection.execute(f'CREATE TABLE "{name}" AS FROM source').fetchall()
    connection.unregister("source")
    return ucle.table(name, list(value.keys), 1.0, bounds=tuple(value.bounds))
