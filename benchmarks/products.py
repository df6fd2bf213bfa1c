"""Products of sparse matrices: Galley's section 7.2, and chains of other shapes.

A and B have one entry in ten, the density of C varies. The natural form computes the product of the
first two matrices first, or the whole product, and applies further operations last.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp

import ucle
from benchmarks.by_hand import REACH, TOLERANCE
from benchmarks.measure import THREADS, Table, expect_close, race, ratio
from benchmarks.paper.algebra import matrix_chain, sddmm
from benchmarks.paper.relational import contract, one_statement
from benchmarks.paper.tasks import Task
from benchmarks.peers.duckdb_relational import Engine
from benchmarks.peers.tables import Entries
from benchmarks.stored import input_tables

SIDE = 600
"""Side of the matrices; Galley's 2,000 take SQL minutes."""
DENSITIES = ("0.0001", "0.001", "0.01", "0.1")
SHAPES = ((4000, 200, 4000, 200), (200, 4000, 200, 4000))

CAUSES = {"sum of a chain": "the statement that sums is not merged with the products"}
"""The reasons for missed targets."""

Form = tuple[Task, str]
"""A task whose program is the natural form, and the program of an expert."""


def forms() -> Iterator[Form]:
    """Yield the rows of the table."""
    for density in DENSITIES:
        yield _chain(density)
    for shape in SHAPES:
        yield _chain_of(shape)
    for density in DENSITIES:
        yield _sampled(density)
    for density in DENSITIES:
        yield _summed(density)


RIGHT_FIRST = "P[j,l] += B[j,k] * C[k,l]\nZ[i,l] += A[i,j] * P[j,l]"
LEFT_FIRST = "P[i,k] += A[i,j] * B[j,k]\nZ[i,l] += P[i,k] * C[k,l]"


def _chain(density: str) -> Form:
    return replace(matrix_chain(density, SIDE), program=LEFT_FIRST), RIGHT_FIRST


def _chain_of(shape: Sequence[int]) -> Form:
    """Three matrices of other shapes, with one entry in fifty."""
    rng = np.random.default_rng(0)
    a, b, c = (
        sp.random_array((n, m), density=0.02, rng=rng, format="csr") for n, m in pairwise(shape)
    )
    task = matrix_chain("0.1", 2)
    is_wide = shape[0] > shape[1]
    steps = [
        contract("P", "jl", ("B", "jk"), ("C", "kl")),
        contract("Z", "il", ("A", "ij"), ("P", "jl")),
    ]
    if not is_wide:
        steps = [
            contract("P", "ik", ("A", "ij"), ("B", "jk")),
            contract("Z", "il", ("P", "ik"), ("C", "kl")),
        ]
    made = replace(
        task,
        data=" x ".join(map(str, shape)),
        program="Z[i,l] += A[i,j] * B[j,k] * C[k,l]",
        inputs={"A": a, "B": b, "C": c},
        relational=one_statement(steps),
        in_memory=lambda: a @ (b @ c) if is_wide else (a @ b) @ c,
    )
    return made, RIGHT_FIRST if is_wide else LEFT_FIRST


def _sampled(density: str) -> Form:
    task = sddmm(density, SIDE)
    a, b, c = (task.inputs[name] for name in "ABC")
    where = c.tocoo()
    dense = a.toarray(), b.toarray().T.copy()

    def in_memory() -> Any:
        if where.nnz > 0.02 * SIDE**2:
            return c * (a @ b)
        i, k = where.coords
        values = where.data * np.einsum("ej,ej->e", dense[0][i], dense[1][k])
        return sp.csr_array((values, (i, k)), shape=c.shape)

    written = "P[i,k] += A[i,j] * B[j,k]\nZ[i,k] = C[i,k] * P[i,k]"
    return replace(task, program=written, in_memory=in_memory), task.program


def _summed(density: str) -> Form:
    """The sum of all entries of a chain."""
    task = matrix_chain(density, SIDE)
    a, b, c = (task.inputs[name] for name in "ABC")
    steps = (
        contract("a", "j", ("A", "ij")),
        contract("c", "k", ("C", "kl")),
        contract("b", "j", ("B", "jk"), ("c", "k")),
        contract("Z", "", ("a", "j"), ("b", "j")),
    )
    made = replace(
        task,
        name="sum of a chain",
        program=f"{LEFT_FIRST.replace('Z', 'Q')}\nZ += Q[i,l]",
        relational=one_statement(steps),
        in_memory=lambda: np.asarray(a.sum(0)) @ (b @ np.asarray(c.sum(1))),
    )
    by_hand = "a[j] += A[i,j]\nc[k] += C[k,l]\nb[j] += B[j,k] * c[k]\nZ += a[j] * b[j]"
    return made, by_hand


def _measure(form: Form, rounds: int) -> Sequence[str]:
    task, by_hand = form
    assert task.in_memory is not None
    with ucle.connect(threads=THREADS) as connection, closing(Engine()) as peer:
        inputs = input_tables(connection, task.inputs)
        peer.load(task)

        def compiled(text: str, law: str, association: str = "free") -> ucle.EinsumProgram:
            return ucle.einsum_program(
                text, database=connection, inputs=inputs, rewrite=law, association=association
            )

        compiling = race({"": lambda: compiled(task.program, "safe")}, min(rounds, 3))[""]
        programs = {
            "written": compiled(task.program, "none", "as-written"),
            "free": compiled(task.program, "safe"),
            "by hand": compiled(by_hand, "none", "as-written"),
        }
        sides: dict[str, Callable[[], Any]] = {
            name: lambda p=program: p.execute(connection) for name, program in programs.items()
        }
        expected = _dense(task.in_memory())

        def check(side: str, result: Any) -> None:
            if side in programs:
                found = result[task.output].to_numpy()
            else:
                found = _dense(result if side == "SciPy" else peer.result(), expected.shape)
            expect_close(f"{task.key}, {side}", found, expected, TOLERANCE)

        times = race({**sides, "SQL": peer.run, "SciPy": task.in_memory}, rounds, check)
    best = min(times["by hand"], times["SQL"])
    return (
        task.name,
        task.data,
        *(f"{times[x]:.3f}" for x in ("written", "free", "by hand", "SQL", "SciPy")),
        ratio(times["written"] / times["free"]),
        ratio(times["free"] / best),
        ratio(times["free"] / times["SciPy"]),
        f"{1000 * compiling:.0f}",
        _reach(task.name, times["free"] / best),
    )


def _reach(name: str, to_hand: float) -> str:
    if to_hand <= REACH:
        return "reached"
    return f"missed: {CAUSES[name]}" if name in CAUSES else "missed"


def _dense(value: Any, shape: Sequence[int] = ()) -> Any:
    if isinstance(value, Entries):
        return value.dense(shape)
    return value.toarray() if sp.issparse(value) else np.asarray(value)


def _rows(rounds: int) -> Iterator[Sequence[str]]:
    for form in forms():
        yield _measure(form, rounds)


TABLE = Table(
    "products",
    "Products of sparse matrices",
    "Chains of three matrices, the sum of all entries of a chain, and the entries of a\n"
    f"product at the positions of a third matrix (SDDMM). A and B are {SIDE} x {SIDE} with\n"
    "one entry in ten, and `data` is the density of C; chains of other shapes have one\n"
    "entry in fifty. Seconds of one execution: of the program as written, as ucle runs it\n"
    "(`free`), and as an expert would write it for ucle (`by hand`); of SQL by hand on the\n"
    "same DuckDB; and of SciPy in memory. `compile` is in milliseconds. Goal: at most\n"
    f"{REACH:g} times the faster of the two versions by hand.",
    (
        "program",
        "data",
        "as written",
        "free",
        "by hand",
        "SQL by hand",
        "SciPy",
        "as written / free",
        "free / by hand",
        "to SciPy",
        "compile",
        "goal",
    ),
    _rows,
)
