"""Few tuples with large arrays: one thread against several.

DuckDB gives one thread 122,880 rows of a table; `ucle.plan.split_small_scans` splits smaller ones.
The first lines have a kernel that only sleeps, which shows on any machine what runs in parallel.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from unittest import mock

import duckdb
import numpy as np
import pyarrow as pa

import ucle
from benchmarks.measure import THREADS, Table, expect_close, race, ratio
from ucle.options import Optimisations
from ucle.run.build import build
from ucle.udf_kernels import arrow

SLEEP, TUPLES, SLEEPERS = 0.01, 64, 8
"""Seconds that the sleeping kernel takes for a tuple, number of tuples, and of threads."""

Decomposition = Mapping[str, Sequence[str]]


@dataclass(frozen=True)
class Work:
    """A program over tables of `tuples` rows, each with an array.

    Attributes:
        name: of the line.
        text: the program.
        tables: by name, the key columns with their sizes, and the shape of the array.
        decomposition: of the program.
        reach: the share of one thread's time that is to be reached.
    """

    name: str
    text: str
    tables: Mapping[str, tuple[Mapping[str, int], tuple[int, ...]]]
    decomposition: Decomposition
    reach: float


def _vectors(size: int, rows: int = TUPLES) -> tuple[Mapping[str, int], tuple[int, ...]]:
    return {"i": rows}, (size,)


SLEEPING = (
    Work(
        "sleep, a join",
        "Z[i,k] = A[i,k] * B[i,k]",
        {"A": _vectors(2), "B": _vectors(2)},
        {"Z": ["i"]},
        0.2,
    ),
    Work(
        "sleep, a cross join",
        "Z[i,j] += A[i,k] * W[j,k]",
        {"A": _vectors(2), "W": ({"j": 1}, (2,))},
        {"Z": ["i", "j"]},
        0.2,
    ),
    Work(
        "sleep, into groups",
        "Z[r] += A[r,i,k] * B[i,k]",
        {"A": ({"r": 8, "i": 8}, (2,)), "B": _vectors(2, 8)},
        {"Z": ["r", "i"]},
        0.2,
    ),
    Work(
        "sleep, into one number",
        "Z += A[i,k] * B[i,k]",
        {"A": _vectors(2), "B": _vectors(2)},
        {"Z": ["i"]},
        0.2,
    ),
)

REAL = (
    Work(
        "products of matrices, 16 of 768 x 768",
        "Z[b,i,k] += A[b,i,j] * B[b,j,k]",
        {"A": ({"b": 16}, (768, 768)), "B": ({"b": 16}, (768, 768))},
        {"Z": ["b"]},
        0.6,
    ),
    Work(
        "rows of matrices by a matrix, 8 of 512 x 2,048",
        "Z[b,i,k] += A[b,i,j] * W[j,k]",
        {"A": ({"b": 8}, (512, 2048)), "W": ({}, (2048, 2048))},
        {"Z": ["b"]},
        0.6,
    ),
    Work(
        "blocks of a product, 4 x 4 of 512 x 512",
        "Z[a,c,i,k] += A[a,b,i,j] * B[b,c,j,k]",
        {"A": ({"a": 4, "b": 4}, (512, 512)), "B": ({"b": 4, "c": 4}, (512, 512))},
        {"Z": ["a", "b", "c"]},
        0.6,
    ),
    Work(
        "inner products, 1,024 by 1,024 vectors of 4,096",
        "Z[i,j] += A[i,k] * B[j,k]",
        {"A": _vectors(4096, 1024), "B": ({"j": 1024}, (4096,))},
        {"Z": ["i", "j"]},
        0.6,
    ),
    Work(
        "a sum of products, 512 by 512 vectors",
        "Z[j,k] += A[i,j] * B[i,k]",
        {"A": _vectors(512, 4096), "B": _vectors(512, 4096)},
        {"Z": ["i"]},
        0.6,
    ),
)


def _create(connection: duckdb.DuckDBPyConnection, work: Work) -> None:
    """Create the tables of a program, with random numbers."""
    rng = np.random.default_rng(0)
    for name, (keys, shape) in work.tables.items():
        rows = math.prod(keys.values())
        places = np.indices(tuple(keys.values())).reshape(len(keys), rows)
        arrays = rng.random((rows, math.prod(shape)))
        offsets = np.arange(len(arrays) + 1) * arrays.shape[1]
        columns = {key: place.astype(np.int32) for key, place in zip(keys, places, strict=True)}
        lists = pa.LargeListArray.from_arrays(offsets, arrays.ravel())
        connection.register("rows", pa.table({**columns, "val": lists}))
        connection.execute(f"CREATE TABLE {name} AS SELECT * FROM rows")
        connection.unregister("rows")


@contextlib.contextmanager
def sleeping() -> Iterator[None]:
    """Make every kernel of two operands sleep for each of its rows, in addition to its work.

    These are the Arrow functions, which Python calls: sleep lets other threads run.
    """
    run: Callable[..., Any] = arrow._run

    def slow(kernel: Any, memory_limit: int, arrays: list[Any]) -> Any:
        if kernel.name in ("vec_mult", "inner_prod"):
            time.sleep(SLEEP * len(arrays[0]))
        return run(kernel, memory_limit, arrays)

    with mock.patch.object(arrow, "_run", slow):
        yield


def _program(
    connection: duckdb.DuckDBPyConnection, work: Work, least: float | None
) -> ucle.EinsumProgram:
    """Compile the program with slices from a cost on, or without slices."""
    program = ucle.einsum_program(
        work.text,
        inputs={
            name: ucle.table(name, list(keys), "val", shape=shape)
            for name, (keys, shape) in work.tables.items()
        },
        database=connection,
        decomposition=work.decomposition,
    )
    options = replace(program.options, optimisations=Optimisations(slices=least))
    return ucle.EinsumProgram(build(program._build.request, connection, options))


def _measure(work: Work, rounds: int, *, sleeps: bool) -> Sequence[str]:
    threads = SLEEPERS if sleeps else THREADS
    opened = (
        duckdb.connect(config={"threads": threads}) if sleeps else ucle.connect(threads=threads)
    )
    with (
        contextlib.closing(opened) as connection,
        sleeping() if sleeps else contextlib.nullcontext(),
    ):
        _create(connection, work)
        one = _program(connection, work, None)
        several = _program(connection, work, 0.0 if sleeps else Optimisations().slices)
        answers: list[Any] = []

        def check(side: str, result: Any) -> None:
            answers.append(result["Z"].to_numpy())
            expect_close(work.name, answers[-1], answers[0], 1e-12)

        sides = {"one": lambda: one.execute(connection), "all": lambda: several.execute(connection)}
        times = race(sides, rounds, check)
    return (
        work.name,
        str(threads),
        f"{times['one']:.4f}",
        f"{times['all']:.4f}",
        ratio(times["all"] / times["one"]),
        f"{work.reach:g}",
    )


def _rows(rounds: int) -> Iterator[Sequence[str]]:
    for work in SLEEPING:
        yield _measure(work, rounds, sleeps=True)
    for work in REAL:
        yield _measure(work, rounds, sleeps=False)


TABLE = Table(
    "slices",
    "Few tuples with large arrays, cut into parts for threads",
    f"The first rows use a kernel that sleeps for {1000 * SLEEP:g} ms at each of {TUPLES}\n"
    "tuples; the others use real kernels. Tables are read as they are (`whole`), or in\n"
    "parts (`cut`). Seconds from `execute` until the result is in DuckDB.",
    ("work", "threads", "whole", "cut", "cut / whole", "goal"),
    _rows,
)
