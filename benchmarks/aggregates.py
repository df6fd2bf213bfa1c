"""Every family of aggregates at 64 numbers a group, against plain SQL on the same DuckDB.

Each side runs a statement of ours that makes a table: once with kernels on tables of lists, once on
the same tensors with one row per entry.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import ucle
from benchmarks.measure import THREADS, Table, race, ratio
from benchmarks.stored import array_table

GROUPS, MEMBERS, WIDTH = 50_000, 5, 64


@dataclass(frozen=True)
class Family:
    """One statement, and the promoted labels of its result."""

    name: str
    statement: str
    shapes: dict[str, tuple[int, ...]]
    dtype: Any = np.float64


def families() -> Iterator[Family]:
    """Yield every ⊕, over plain vectors and over the results of kernels on pairs."""
    vectors = (GROUPS, MEMBERS, WIDTH)
    for operation, mark in (("sum", "+="), ("prod", "*="), ("min", "min="), ("max", "max=")):
        yield Family(f"{operation} of vectors", f"Z[g,k] {mark} X[g,r,k]", {"X": vectors})
    for operation in ("any", "all"):
        statement = f"Z[g,k] {operation}= X[g,r,k]"
        yield Family(f"{operation} of vectors", statement, {"X": vectors}, np.bool_)
    for operation, mark, symbol in (
        ("sum of vector * number", "+=", "*"),
        ("minimum of vector + number", "min=", "+"),
        ("maximum of vector * number", "max=", "*"),
    ):
        statement = f"Z[g,k] {mark} X[g,r,k] {symbol} Y[g,r]"
        yield Family(operation, statement, {"X": vectors, "Y": vectors[:2]})
    for operation, mark, symbol in (
        ("sum of vector * vector", "+=", "*"),
        ("minimum of vector + vector", "min=", "+"),
        ("product of vector + vector", "*=", "+"),
    ):
        statement = f"Z[g,k] {mark} X[g,r,k] {symbol} Y[g,r,k]"
        yield Family(operation, statement, {"X": vectors, "Y": vectors})
    short = (*vectors[:2], 8)
    yield Family(
        "sum of outer products 8 x 8", "Z[g,k,l] += X[g,r,k] * Y[g,r,l]", {"X": short, "Y": short}
    )
    yield Family(
        "sum of vector 8 times matrix 8 x 64",
        "Z[g,l] += X[g,r,k] * W[r,k,l]",
        {"X": short, "W": (MEMBERS, 8, WIDTH)},
    )
    yield Family(
        "sum of matrix 64 x 8 times vector 8",
        "Z[g,l] += W[r,l,k] * X[g,r,k]",
        {"X": short, "W": (MEMBERS, WIDTH, 8)},
    )
    yield Family(
        "sum of matrix products 8 x 8 x 8",
        "Z[g,k,m] += X[g,r,k,l] * W[r,l,m]",
        {"X": (GROUPS, MEMBERS, 8, 8), "W": (MEMBERS, 8, 8)},
    )
    yield Family(
        "maximum of outer products 8 x 8",
        "Z[g,k,l] max= X[g,r,k] * Y[g,r,l]",
        {"X": short, "Y": short},
    )


def measure(family: Family, rounds: int) -> dict[str, float]:
    """Time both sides on the same numbers."""
    random = np.random.default_rng(0)
    inputs = {
        name: random.random(shape) > 0.5
        if family.dtype is np.bool_
        else random.random(shape) + 0.5  # no zeros, which plain SQL would not store
        for name, shape in family.shapes.items()
    }
    with ucle.connect(threads=THREADS) as connection:
        tables: dict[str, dict[str, Any]] = {"kernels": {}, "plain": {}}
        for name, array in inputs.items():
            kept = range(2 if array.shape[0] == GROUPS else 1)
            mix = " + ".join(f"l{axis} * {7919**axis}" for axis in kept)
            for side, promoted in (("kernels", kept), ("plain", range(array.ndim))):
                table = f"{name}_{side}"
                tables[side][name] = array_table(connection, table, array, array.shape, promoted)
                connection.execute(
                    f"CREATE OR REPLACE TABLE {table} AS FROM {table} ORDER BY hash({mix})"
                ).fetchall()
        programs = {
            side: ucle.einsum_program(
                family.statement,
                database=connection,
                decomposition={"Z": ["g", "r"]} if side == "kernels" else "relational",
                **tables[side],
            )
            for side in ("plain", "kernels")
        }
        sides = {
            side: lambda p=program: p.execute(connection) for side, program in programs.items()
        }
        return race(sides, rounds)


def _rows(rounds: int) -> Iterator[Sequence[str]]:
    for family in families():
        times = measure(family, min(rounds, 5))
        seconds = [f"{times[side]:.4f}" for side in ("plain", "kernels")]
        yield family.name, *seconds, ratio(times["plain"] / times["kernels"])


TABLE = Table(
    "aggregates",
    "Aggregates over arrays, compared with plain SQL",
    f"Each aggregate runs over {GROUPS:,} groups of {MEMBERS} arrays. The result of a group\n"
    f"has {WIDTH} numbers. On both sides, the rows are in random order. Goal: 10 times as\n"
    "fast as plain SQL.",
    ("aggregate", "plain SQL", "kernels", "plain / kernels"),
    _rows,
)
