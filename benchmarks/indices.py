"""Arithmetic with labels against SQL by hand and NumPy: conditions, windows, differences."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

import ucle
from benchmarks.measure import THREADS, Table, race, ratio

ENTRIES, TAPS = 10_000_000, 16
"""Entries of a vector that is shifted; positions of a window over a tenth of it."""

IDS, TARGETS, WIDTH = 100_000, 10_000, 64
"""Entries of an index, rows that they point to, and the width of these."""

HAND = {
    "upper": "SELECT i, sum(v) AS v FROM A WHERE i < j GROUP BY i",
    "band": "SELECT i, sum(v) AS v FROM A WHERE j BETWEEN i - 2 AND i + 2 GROUP BY i",
    "diff": "SELECT i, lead(v) OVER (ORDER BY i) - v AS v FROM x QUALIFY lead(v) OVER (ORDER BY i) "
    "IS NOT NULL",
    "shift": "SELECT i, lag(v, 1, 0.0) OVER (ORDER BY i) AS v FROM x",
    "cumsum": "SELECT i, sum(v) OVER (ORDER BY i ROWS UNBOUNDED PRECEDING) AS v FROM x",
    "cumsum by key": "SELECT i, sum(v) OVER (ORDER BY i ROWS UNBOUNDED PRECEDING) AS v FROM s",
    "window": f"SELECT s.i - k.i AS i, sum(s.v * k.v) AS v FROM s, k "
    f"WHERE s.i - k.i BETWEEN 0 AND {ENTRIES // 10 - TAPS} GROUP BY 1",
}
TEXTS = {
    "upper": "Z[i] += (i < j) * A[i,j]",
    "band": "Z[i] += (abs(i - j) <= 2) * A[i,j]",
    "diff": "Z[i] = x[i+1] - x[i]",
    "shift": "Z[i] = x[~(i-1)]",
    "cumsum": "Z[i] = cumsum[i](x[i])",
    "cumsum by key": "Z[i] = cumsum[i](s[i])",
    "window": "Z[i] += s[i+w] * k[w]",
}


def _tables(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute(
        "CREATE TABLE A AS SELECT (n % 5000)::INT AS i, (n // 5000)::INT AS j, random() + 1 AS v "
        "FROM range(1000000) r(n)"
    )
    for name, size in (("x", ENTRIES), ("s", ENTRIES // 10), ("k", TAPS)):
        connection.execute(
            f"CREATE TABLE {name} AS SELECT n::INT AS i, random() + 1 AS v FROM range({size}) r(n)"
        )


def _in_tables(connection: duckdb.DuckDBPyConnection) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for name, text in TEXTS.items():
        used = {x: x for x in "Axsk" if re.search(rf"\b{x}\[", text)}
        bounds = {"i": ENTRIES} if name == "shift" else None
        program = ucle.einsum_program(text, inputs=used, database=connection, bounds=bounds)
        if name == "cumsum by key":
            program = program.with_decomposition({"Z": ["i"]})

        def by_hand(query: str = HAND[name]) -> None:
            connection.execute(f"CREATE OR REPLACE TEMP TABLE by_hand AS {query}")

        yield f"{name}: {text}", {"theirs": by_hand, "ucle": _run(program, connection)}


def _in_arrays(connection: duckdb.DuckDBPyConnection) -> Iterator[tuple[str, Mapping[str, Any]]]:
    A = np.random.default_rng(0).random((1500, 1500))

    def upper() -> Any:
        return np.triu(A, 1)

    def shifted() -> Any:
        return A[1:, 1:] - A[:-1, :-1]

    B = np.random.default_rng(1).random((1000, 1000))
    s = connection.sql("SELECT v FROM s ORDER BY i").fetchnumpy()["v"]
    for text, numpy in (
        ("Z[i,j] = cumsum[j](B[i,j])", lambda: np.cumsum(B, axis=1)),
        ("Z[i,j] = cumsum[i](B[i,j])", lambda: np.cumsum(B, axis=0)),
        ("Z[i,j] = cummax[j](B[i,j])", lambda: np.maximum.accumulate(B, axis=1)),
        ("Z[i] = cumsum[i](s[i])", lambda: np.cumsum(s)),
        ("Z[i] = B[i//1000,i%1000]", lambda: B.ravel().copy()),
        ("Z[i] = B[i%1000,i//1000]", B.T.ravel),
        ("Z[i,j] = (i < j) * A[i,j]", upper),
        ("Z[i,j] = A[i+1,j+1] - A[i,j]", shifted),
    ):
        arrays = {"A": A, "B": B, "s": "s"}
        used = {name: arrays[name] for name in arrays if f"{name}[" in text}
        program = ucle.einsum_program(text, inputs=used, database=connection)
        yield f"NumPy: {text}", {"theirs": numpy, "ucle": _run(program, connection)}


def _at_entries(connection: duckdb.DuckDBPyConnection) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield gathers and scatters of NumPy arrays, and of tables, against NumPy."""
    rng = np.random.default_rng(0)
    ids = rng.integers(0, TARGETS, IDS)
    W, v = rng.random((TARGETS, WIDTH)), rng.random(IDS)
    rows = rng.random((IDS, WIDTH))
    arrays = {"W": W, "v": v, "R": rows, "idx": ids}
    connection.register("drawn", pa.table({"i": np.arange(IDS), "n": ids, "v": v}))
    connection.execute("CREATE TABLE idx AS SELECT i::INT AS i, n AS v FROM drawn")
    connection.execute("CREATE TABLE v AS SELECT i::INT AS i, v FROM drawn")

    def gathered() -> Any:
        return W[ids]

    def added() -> Any:
        return np.bincount(ids, v, TARGETS)

    def largest() -> None:
        np.maximum.at(np.full(TARGETS, -np.inf), ids, v)

    def rows_added() -> None:
        np.add.at(np.zeros((TARGETS, WIDTH)), ids, rows)

    for text, numpy, tables in (
        ("Z[i,k] = W[idx[i],k]", gathered, ("idx",)),
        ("H[idx[i]] += v[i]", added, ("idx", "v")),
        ("H[idx[i]] max= v[i]", largest, ("idx", "v")),
        ("H[idx[i],k] += R[i,k]", rows_added, ("idx",)),
    ):
        used = {name: x for name, x in arrays.items() if f"{name}[" in text}
        for title, inputs in (
            ("NumPy array", used),
            ("table", used | {name: name for name in tables}),
        ):
            program = ucle.einsum_program(text, inputs=inputs, database=connection)
            yield f"{title}: {text}", {"theirs": numpy, "ucle": _run(program, connection)}


def _run(program: Any, connection: duckdb.DuckDBPyConnection) -> Callable[[], Any]:
    return lambda: program.execute(connection)


def _rows(rounds: int) -> Iterator[Sequence[str]]:
    with ucle.connect(threads=THREADS) as connection:
        _tables(connection)
        for side in (_in_tables, _in_arrays, _at_entries):
            for name, sides in side(connection):
                times = race(sides, rounds)
                seconds = [f"{times[x]:.4f}" for x in ("theirs", "ucle")]
                title, _, text = name.partition(": ")
                program = f"{title}: `{text}`"  # or brackets and parentheses would be links
                yield program, *seconds, ratio(times["ucle"] / times["theirs"])


TABLE = Table(
    "indices",
    "Arithmetic with labels",
    "A (1,000,000 entries in 5,000 x 200), x (10,000,000 entries), s (1,000,000) and k (16)\n"
    "are tables. In the rows that begin with `NumPy`, A is an array of 1500 x 1500 and B an\n"
    "array of 1000 x 1000. idx has 100,000 positions of 10,000 rows; W and R are 64 wide.\n"
    "`by hand` is NumPy, or SQL with windows or WHERE that creates a table. Goal:\n"
    "differences, shifts and sums take at most 3 times as long as a window of SQL.",
    ("program", "by hand", "ucle", "ucle / by hand"),
    _rows,
)
