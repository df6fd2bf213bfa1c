"""Integers near 2^63 in products whose order was changed: the exact answer, or the written order's.

Whatever the order, a number is exact or there is an error. An order that overflows gives way to
that of the text; so a program may be refused only where it is as it is written, too.
"""

from __future__ import annotations

import itertools
import json
import logging
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import ucle
from ucle.errors import NumberRangeError
from ucle.ir.maps import Cast
from ucle.ir.overflow import may_overflow
from ucle.ir.vertices import Program
from ucle.options import Optimisations
from ucle.testing.check_matrix import Routes, recompiled, some_decompositions
from ucle.testing.oracle import assert_equal

ANY = Optimisations(association_gain=-np.inf, association_work=np.inf)
"""Whatever order comes first is taken, whether it gains anything or not."""

MOST = 2**63 - 1
LEAST = -(2**63)

Exact = Mapping[tuple[int, ...], int]
"""The entries of a tensor as Python's integers, by position."""


@dataclass(frozen=True)
class Statement:
    """⊕ over all labels but some of the ⊗ of factors."""

    target: str
    kept: tuple[str, ...]
    algebra: str
    factors: tuple[tuple[str, tuple[str, ...]], ...]

    def __str__(self) -> str:
        combine, assign = {"sum": ("*", "+="), "min": ("+", "min="), "max": ("+", "max=")}[
            self.algebra
        ]
        right = f" {combine} ".join(f"{name}[{','.join(labels)}]" for name, labels in self.factors)
        return f"{self.target}[{','.join(self.kept)}] {assign} {right}"


@dataclass(frozen=True)
class Drawn:
    """A program with its inputs."""

    statements: tuple[Statement, ...]
    arrays: Mapping[str, np.ndarray[Any, Any]]

    @property
    def text(self) -> str:
        return "\n".join(map(str, self.statements))


def drawn(seed: int) -> Drawn:
    """A program of a seed: chains of statements whose numbers are zeros, small or up to 2^62."""
    rng = np.random.default_rng(seed)
    algebra = str(rng.choice(["sum", "sum", "sum", "min", "max"]))
    size, signed, large = int(rng.integers(1, 4)), rng.random() < 0.5, int(rng.choice([16, 40, 62]))
    arrays: dict[str, np.ndarray[Any, Any]] = {}
    statements: list[Statement] = []
    for number in range(int(rng.integers(1, 4))):
        factors = []
        labels: list[str] = []
        if statements:
            last = statements[-1]
            factors.append((last.target, tuple(rng.permutation(list("ijkl"))[: len(last.kept)])))
        for _ in range(int(rng.integers(2, 5)) - len(factors)):
            name, rank = f"X{len(arrays)}", int(rng.integers(1, 3))
            arrays[name] = _numbers(rng, (size,) * rank, signed, large, algebra)
            factors.append((name, tuple(rng.permutation(list("ijkl"))[:rank])))
        labels = list(dict.fromkeys(x for _, names in factors for x in names))
        kept = tuple(x for x in labels if rng.random() < 0.4)[:2]
        statements.append(Statement(f"T{number}", kept, algebra, tuple(factors)))
    return Drawn(tuple(statements), arrays)


def _numbers(
    rng: np.random.Generator, shape: tuple[int, ...], signed: bool, large: int, algebra: str
) -> np.ndarray[Any, Any]:
    if algebra == "sum" and rng.random() < 0.1:
        return rng.random(shape) < 0.7
    powers = np.int64(1) << rng.integers(0, large + 1, size=shape)
    made = np.where(rng.random(shape) < 0.4, powers, rng.integers(0, 4, size=shape))
    if signed:
        made = made * rng.choice([-1, 1], size=shape)
    made[rng.random(shape) < 0.3] = 0
    return made.astype(np.int64)


def exact(program: Drawn) -> dict[str, Exact]:
    """All tensors of a program by Python's integers."""
    known = {name: _entries(array) for name, array in program.arrays.items()}
    for statement in program.statements:
        factors = [(known[name], labels) for name, labels in statement.factors]
        terms = _terms(factors, statement.kept, statement.algebra == "sum")
        fold = {"sum": sum, "min": min, "max": max}[statement.algebra]
        known[statement.target] = {at: fold(values) for at, values in terms.items()}
    return known


def _entries(array: np.ndarray[Any, Any]) -> Exact:
    return {at: int(array[at]) for at in np.ndindex(array.shape)}


def _terms(
    factors: list[tuple[Exact, tuple[str, ...]]], kept: tuple[str, ...], product: bool
) -> dict[tuple[int, ...], list[int]]:
    sizes: dict[str, int] = {}
    for entries, labels in factors:
        for axis, label in enumerate(labels):
            sizes[label] = 1 + max(at[axis] for at in entries)
    terms: dict[tuple[int, ...], list[int]] = {}
    for values in itertools.product(*(range(n) for n in sizes.values())):
        at = dict(zip(sizes, values, strict=True))
        numbers = [entries[tuple(at[x] for x in labels)] for entries, labels in factors]
        term = int(np.prod(np.array(numbers, object))) if product else sum(numbers)
        terms.setdefault(tuple(at[x] for x in kept), []).append(term)
    return terms


def safe(program: Program, known: Mapping[str, Exact]) -> bool:
    """True if no sum of absolute values within a vertex leaves 64 bits, nor does any part of it."""
    made = dict(known)
    for vertex in program.vertices:
        factors = [(made[operand.tensor], operand.names) for operand in vertex.inputs]
        assert all(isinstance(step, Cast) for step in vertex.maps)
        product = vertex.combine is None or vertex.combine.name == "mult"
        terms = _terms(factors, vertex.names, product)
        reduce = "sum" if vertex.reduce is None else vertex.reduce.name
        for values in terms.values():
            size = sum(map(abs, values)) if reduce == "sum" else max(map(abs, values))
            if size > MOST:
                return False
        fold = {"sum": sum, "min": min, "max": max}[reduce]
        made[vertex.name] = {at: fold(values) for at, values in terms.items()}
    return True


Answer = dict[str, Exact] | None
"""The outputs; None where integers overflowed."""


def answer(program: ucle.EinsumProgram, connection: duckdb.DuckDBPyConnection) -> Answer:
    try:
        with program.execute(connection) as result:
            return {name: _entries(result[name].to_numpy()) for name in result}
    except NumberRangeError:
        return None


def check(case: Drawn, seed: int, routes: Routes) -> tuple[int, int]:
    """Check a case in its order, and say how often it ran and how often it was refused."""
    known = exact(case)
    options: dict[str, Any] = {"inputs": dict(case.arrays), "database": routes["native"]}
    written = ucle.einsum_program(case.text, association="as-written", **options)
    free = recompiled(ucle.einsum_program(case.text, **options), ANY)
    expected = {name: known[name] for name in free.outputs}
    fits = all(LEAST <= x <= MOST for entries in expected.values() for x in entries.values())
    inputs = {name: known[name] for name in case.arrays}
    is_safe = safe(written.compiled.program, inputs)
    if not may_overflow(free.compiled.program):
        assert safe(free.compiled.program, inputs), case.text
    ran = refused = 0
    for way in ("auto", *some_decompositions(free, seed, 2)):
        program = free if way == "auto" else free.with_decomposition(way)
        for route, connection in routes.items():
            found = answer(program, connection)
            context = f"seed {seed}, {route}, {way}\n{case.text}\n{case.arrays}"
            ran += 1
            if found is not None:
                assert found == expected, context
                continue
            refused += 1
            assert not is_safe, context
            if fits:  # refused, though the answer would fit: so it is in the order of the text
                met = program._preparations._met.values()
                if program.compiled.front.lowering.integers:
                    assert any(prepared._overflowed for prepared in met), context
    return ran, refused


FEW = range(60)


@pytest.mark.sample(4)
@pytest.mark.usefixtures("any_order")
@pytest.mark.parametrize("seed", FEW)
def test_random_integers_in_any_order(seed: int, routes: Routes) -> None:
    check(drawn(seed), seed, routes)


# What happens when an order overflows

SIZE = 60
TEXT = "T[i,l] += A[i,j] * B[j,k] * C[k,l]"


def tables(connection: duckdb.DuckDBPyConnection, hidden: int) -> dict[str, Any]:
    """Three matrices as tables, and T as written; B times C overflows where A is `hidden`."""
    a = np.ones((SIZE, SIZE), np.int64)
    b, c = np.eye(SIZE, dtype=np.int64) + 1, np.ones((SIZE, 1), np.int64)
    a[:, 7], b[7, 3], c[3] = hidden, 2**40, 2**30
    for name, array in (("A", a), ("B", b), ("C", c)):
        at = np.nonzero(array)
        data = pa.table({"x": at[0], "y": at[1], "v": array[at]})
        connection.register("data", data)
        connection.execute(f"CREATE OR REPLACE TABLE {name} AS FROM data").fetchall()
        connection.unregister("data")
    return {name: ucle.table(name, bounds=(SIZE, 1 if name == "C" else SIZE)) for name in "ABC"}


def written_answer() -> np.ndarray[Any, Any]:
    a, b = np.ones((SIZE, SIZE), object), np.eye(SIZE, dtype=object) + 1
    a[:, 7] = 0
    c = np.ones((SIZE, 1), object)
    c[3] = 2**30
    return np.asarray((a @ b @ c).astype(np.int64))


@pytest.fixture
def hopeful(fresh: duckdb.DuckDBPyConnection) -> ucle.EinsumProgram:
    """A program whose order overflows."""
    inputs = tables(fresh, hidden=0)
    program = ucle.einsum_program(TEXT, inputs=inputs, database=fresh)
    assert program.compiled.association is not None
    assert program.compiled.association.products == ("T = A * (B * C)",)
    return program


def test_the_written_order_runs_where_another_overflows(
    hopeful: ucle.EinsumProgram, fresh: duckdb.DuckDBPyConnection, caplog: pytest.LogCaptureFixture
) -> None:
    """At every entry point that can run twice; it is tried once for each version of the data."""
    expected = written_answer()
    with caplog.at_level(logging.INFO, "ucle.execute"):
        for _ in range(2):
            with hopeful.execute() as result:
                assert_equal(result["T"].to_numpy(), expected, "execute")
                result["T"].to_table("kept", mode="replace")
    told = [x.getMessage() for x in caplog.records if "as it is written" in x.getMessage()]
    assert len(told) == 1
    assert fresh.sql("SELECT sum(val) FROM kept").fetchall() == [(int(expected.sum()),)]
    relational = hopeful.with_decomposition("relational")
    with relational.execute() as result:
        assert_equal(result["T"].to_numpy(), expected, "relational")
    pinned = hopeful.with_decomposition(dict.fromkeys(hopeful.decomposition, ()))
    with pinned.execute() as result:
        assert_equal(result["T"].to_numpy(), expected, "pinned")
    assert "T_1" in hopeful.explain(analyze=True)
    left = fresh.sql("SELECT count(*) FROM duckdb_tables() WHERE temporary").fetchall()
    assert left == [(0,)]


def test_it_says_so(hopeful: ucle.EinsumProgram) -> None:
    assert "integers: the order is optimistic" in hopeful.explain()
    assert json.loads(hopeful.explain("json"))["optimistic"] is True
    assert "If integers overflow" in hopeful.to_sql()
    proven = ucle.einsum_program("s += A[i,j] * B[j,k]", A=[[1, 2]], B=[[3], [4]])
    assert "optimistic" not in proven.explain()
    assert json.loads(proven.explain("json"))["optimistic"] is False


def test_in_a_transaction_nothing_is_tried(
    hopeful: ucle.EinsumProgram, fresh: duckdb.DuckDBPyConnection
) -> None:
    """An error would end the transaction, with all that was done in it."""
    fresh.execute("BEGIN").fetchall()
    fresh.execute("CREATE TABLE before AS SELECT 1 AS x").fetchall()
    with hopeful.execute() as result:
        assert_equal(result["T"].to_numpy(), written_answer(), "in a transaction")
    fresh.execute("COMMIT").fetchall()
    assert fresh.sql("FROM before").fetchall() == [(1,)]


def test_views_keep_the_written_order(
    hopeful: ucle.EinsumProgram, fresh: duckdb.DuckDBPyConnection
) -> None:
    hopeful.with_decomposition("relational").create_views()
    expected = written_answer()
    shown = fresh.sql("SELECT i, l, val FROM T").fetchall()
    assert {tuple(at): x for *at, x in shown} == _entries(expected)


def test_data_that_overflows_in_any_order(
    hopeful: ucle.EinsumProgram, fresh: duckdb.DuckDBPyConnection
) -> None:
    """The error of the written order counts; data that does not overflow runs as chosen again."""
    tables(fresh, hidden=1)
    with pytest.raises(NumberRangeError):
        hopeful.execute()
    fresh.execute("UPDATE B SET v = 1").fetchall()
    with hopeful.execute() as result:
        assert result["T"].to_numpy()[0, 0] == SIZE * (SIZE - 1 + 2**30)
    assert hopeful._preparations._latest._as_written is None


def test_data_that_no_longer_fits_is_not_taken_for_proven(
    fresh: duckdb.DuckDBPyConnection,
) -> None:
    inputs = tables(fresh, hidden=0)
    fresh.execute("UPDATE B SET v = 1").fetchall()
    program = ucle.einsum_program(TEXT, inputs=inputs, database=fresh)
    assert program.compiled.front.lowering.integers
    assert not program.compiled.optimistic
    tables(fresh, hidden=0)
    fresh.execute("BEGIN").fetchall()
    with program.execute() as result:
        assert_equal(result["T"].to_numpy(), written_answer(), "larger numbers")
    fresh.execute("ROLLBACK").fetchall()


# Counts of subgraphs


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("n += E[a,b] * E[b,c] * E[c,a]", lambda e: np.trace(e @ e @ e)),
        ("n += E[a,b] * E[b,c] * E[c,d] * E[d,a]", lambda e: np.trace(e @ e @ e @ e)),
        ("n += E[a,b] * E[b,c] * E[c,d] * E[d,f] * x[f]", lambda e: (e @ e @ e @ e).sum()),
        ("n += E[a,b] * E[a,c] * E[a,d] * x[a]", lambda e: (e.sum(1) ** 3).sum()),
    ],
)
def test_subgraphs_are_counted_alike(
    text: str, count: Callable[[Any], int], routes: Routes
) -> None:
    """In floats, integers and booleans, which cannot overflow."""
    rng = np.random.default_rng(5)
    edges = rng.random((40, 40)) < 0.1
    expected = int(count(edges.astype(np.int64)))
    for dtype in (np.float64, np.int64, np.bool_):
        at = np.nonzero(edges)
        data = pa.table({"x": at[0], "y": at[1], "v": np.ones(len(at[0]), dtype)})
        inputs: dict[str, Any] = {"E": ucle.table(data, bounds=(40, 40))}
        if "x[" in text:
            inputs["x"] = np.ones(40, dtype)
        for connection in routes.values():
            program = ucle.einsum_program(text, inputs=inputs, database=connection)
            with program.execute() as result:
                assert int(result["n"].to_numpy()) == expected
                assert result["n"].dtype == (np.float64 if dtype is np.float64 else np.int64)
            assert not program.compiled.optimistic


# Long runs


@pytest.mark.fuzz
@pytest.mark.skipif("UCLE_FUZZ_PROGRAMS" not in os.environ, reason="`make fuzz` runs it")
@pytest.mark.usefixtures("any_order")
def test_many_random_integers(routes: Routes) -> None:
    ran = refused = 0
    for seed in range(1000, 1000 + int(os.environ["UCLE_FUZZ_PROGRAMS"])):
        counts = check(drawn(seed), seed, routes)
        ran, refused = ran + counts[0], refused + counts[1]
    assert 0 < refused < ran
