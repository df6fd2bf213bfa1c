"""Operators of the user's own, and the declarations of ucle's."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import duckdb
import numpy as np
import pytest

import ucle
from ucle import errors
from ucle.foundation.dtypes import DType, same_value
from ucle.language.parse import parse_program
from ucle.operators import COMBINES, MAPS, REDUCES
from ucle.plan.relation_nodes import Aggregate, Densify
from ucle.program.registry import KINDS
from ucle.sqlgen.dialects import DUCKDB_SQL
from ucle.testing import Routes, some_decompositions
from ucle.testing.random_inputs import random_array

RNG = np.random.default_rng(23)
X, Y = random_array(RNG, (4, 3), 0.4), random_array(RNG, (4, 3), 0.4)


def everywhere(text: str, expected: Any, routes: Routes, **inputs: Any) -> None:
    """A program of one output gives the expected array in every way to run it."""
    chosen = ucle.einsum_program(text, **inputs)
    ways: list[Any] = ["auto", "relational", *some_decompositions(chosen, 0, 12)]
    for way, connection in itertools.product(ways, routes.values()):
        with chosen.with_decomposition(way).execute(connection) as result:
            (name,) = result
            np.testing.assert_allclose(result[name].to_numpy(), expected, err_msg=f"{way} {text}")


def test_a_map(routes: Routes) -> None:
    """Works on numbers and inside arrays; f(0) is not 0 here."""
    ucle.register_operator("bump", "map", sql="1 / (1 + x * x)", numpy=lambda x: 1 / (1 + x**2))
    everywhere("T[i] += bump(X[i,j])", (1 / (1 + X**2)).sum(1), routes, X=X)
    ucle.register_operator("tall", "map", sql="x > 0.5", numpy=lambda x: x > 0.5, result="bool")
    everywhere("T[i] = count[j](tall(X[i,j]))", (X > 0.5).sum(1), routes, X=X)


def test_a_combine_without_properties(routes: Routes) -> None:
    """Nothing is known of it, so every pair is made: slower, never wrong."""
    ucle.register_operator("far", "combine", sql="sqrt(x*x + y*y) + 1",
                           numpy=lambda x, y: np.hypot(x, y) + 1)  # fmt: skip
    everywhere("T[i,j] = far(X[i,j], Y[i,j])", np.hypot(X, Y) + 1, routes, X=X, Y=Y)
    outer = (np.hypot(X[:, None], Y[None]) + 1).sum((0, 2))
    everywhere("T[k] += far(X[i,j], Y[k,j])", outer, routes, X=X, Y=Y)
    everywhere("T[i,j] = far(X[i,j], 2)", np.hypot(X, 2) + 1, routes, X=X)
    everywhere("T[i,j] = far(2, X[i,j])", np.hypot(2, X) + 1, routes, X=X)


def test_declared_annihilators_are_used(routes: Routes) -> None:
    declared = {"sql": "x * y * 2", "numpy": lambda x, y: x * y * 2}
    ucle.register_operator("twice", "combine", **declared)
    ucle.register_operator("sparse_twice", "combine", annihilators=[0], commutative=True,
                           **declared)  # fmt: skip
    for name, kind in (("twice", "FULL"), ("sparse_twice", "INNER")):
        program = ucle.einsum_program(f"T[i,j] = {name}(X[i,j], Y[i,j])", X=X, Y=Y)
        (join,) = (
            s.relation.input.input
            for s in program.compiled.plan.steps
            if isinstance(s.relation, Aggregate)
        )
        assert join.kind.name == kind
        everywhere(f"T[i,j] = {name}(X[i,j], Y[i,j])", 2 * X * Y, routes, X=X, Y=Y)


def test_a_reduce_without_properties_meets_every_entry(routes: Routes) -> None:
    ucle.register_operator("median", "reduce", sql="median(x)", numpy=np.median)
    everywhere("T[i] median= X[i,j]", np.median(X, axis=1), routes, X=X)
    everywhere("T[j] = median[i](X[i,j] * Y[i,j])", np.median(X * Y, axis=0), routes, X=X, Y=Y)
    program = ucle.einsum_program("T[i] median= X[i,j]", X=X)
    relation = program.compiled.plan.steps[-1].relation
    assert isinstance(relation, Aggregate)
    assert isinstance(relation.input.input, Densify)
    with pytest.raises(errors.BoundError, match="median of nothing"):
        ucle.einsum_program("T[i] median= X[i,j]", X=np.ones((2, 0)))


def test_a_reduce_with_properties_counts(routes: Routes) -> None:
    ucle.register_operator(
        "total",
        "reduce",
        sql="sum(x)",
        numpy=np.sum,
        identity=0,
        repeat=lambda value, n: value * n,
        repeat_by="mult",
        merge="add",
    )
    everywhere("T[i] = total[j](X[i,j] + 1)", (X + 1).sum(1), routes, X=X)
    program = ucle.einsum_program("T[i] = total[j](X[i,j] + 1)", X=X)
    assert not any(isinstance(s.relation, Densify) for s in program.compiled.plan.steps)


def test_kinds_of_numbers(routes: Routes) -> None:
    ucle.register_operator("half", "map", sql={"f": "x / 2", "i": "x // 2", "c": "x"},
                           numpy=lambda x: x // 2)  # fmt: skip
    whole = np.abs(4 * X).astype(int)
    everywhere("T[i,j] = half(X[i,j])", whole // 2, routes, X=whole)
    bools = X > 0
    everywhere("T[i,j] = half(X[i,j])", bools.astype(int) // 2, routes, X=bools)


def test_a_pinned_decomposition_needs_a_kernel() -> None:
    ucle.register_operator("median", "reduce", sql="median(x)", numpy=np.median)
    with pytest.raises(errors.UnsupportedError, match="no kernel"):
        ucle.einsum_program("T[i] median= X[i,j]", X=X, decomposition={"T": ["i"]})
    with pytest.raises(errors.UnsupportedError, match="no kernel"):
        ucle.einsum_program("T[I] median= X[I,j]", X=X, decomposition="as-written")


GOOD = {"name": "f", "kind": "map", "sql": "x", "numpy": np.abs}
BAD = [
    ({"kind": "functor"}, "unknown kind"),
    ({"name": "relu"}, "the name is taken"),
    ({"name": "where"}, "the name is taken"),
    ({"name": "int64"}, "the name is taken"),
    ({"name": "sum"}, "the name is taken"),
    ({"name": "not"}, "not a valid name"),
    ({"name": "a b"}, "not a valid name"),
    ({"sql": "x + z"}, "not an expression"),
    ({"sql": "SELECT 1"}, "not an expression"),
    ({"sql": "x +"}, "not an expression"),
    ({"sql": {"q": "x"}}, "unknown kind of number"),
    ({"numpy": np.sum}, "entry by entry"),
    ({"numpy": lambda: 1}, "cannot be called"),
    ({"result": "int"}, "unknown result"),
    ({"kind": "reduce", "repeat": lambda v, n: v}, "without merge"),
    ({"kind": "reduce", "merge": "glue"}, "does not exist"),
]


@pytest.mark.sample(None)
@pytest.mark.parametrize(("change", "message"), BAD, ids=[str(n) for n in range(len(BAD))])
def test_what_cannot_be_registered(change: dict[str, Any], message: str) -> None:
    with pytest.raises(errors.OperatorError, match=message):
        ucle.register_operator(**{**GOOD, **change})
    assert "f" not in KINDS["map"]


def test_a_name_is_registered_once() -> None:
    ucle.register_operator(**GOOD)
    with pytest.raises(errors.OperatorError, match="replace=True"):
        ucle.register_operator(**GOOD)
    ucle.register_operator(**GOOD, replace=True)
    ucle.unregister_operator("f")
    with pytest.raises(errors.OperatorError, match="no operator of that name"):
        ucle.unregister_operator("f")
    with pytest.raises(errors.OperatorError):
        ucle.unregister_operator("relu")


# What a program was compiled with it keeps.

FIRST: dict[str, dict[str, Any]] = {
    "bend": {"kind": "map", "sql": "x * x * x", "numpy": lambda x: x**3, "range": (-1e6, 1e6)},
    "pair": {
        "kind": "combine",
        "sql": "x * y * 2",
        "numpy": lambda x, y: x * y * 2,
        "annihilators": [0],
    },
    "pile": {
        "kind": "reduce",
        "sql": "sum(x)",
        "numpy": np.sum,
        "identity": 0,
        "repeat": lambda value, n: value * n,
        "repeat_by": "mult",
        "merge": "add",
    },
}
OTHERS: dict[str, dict[str, Any]] = {
    "bend": {"kind": "map", "sql": "x + 1", "numpy": lambda x: x + 1, "range": (0.0, 1.0)},
    "pair": {"kind": "combine", "sql": "x - y", "numpy": lambda x, y: x - y},
    "pile": {"kind": "reduce", "sql": "max(x)", "numpy": np.max},
}


def register(operators: dict[str, dict[str, Any]]) -> None:
    for name, said in operators.items():
        ucle.register_operator(name, replace=True, **said)


def register_others() -> None:
    register(OTHERS)


def remove_all() -> None:
    for name in FIRST:
        ucle.unregister_operator(name)


@pytest.fixture(params=[register_others, remove_all])
def change(request: Any) -> Callable[[], None]:
    """The operators of `FIRST` are there; the call replaces or removes them."""
    register(FIRST)
    changed: Callable[[], None] = request.param
    return changed


BENT = "B[i,j] = pair(bend(A[i,j]), 0.5) + 0 * mean[k](bend(w[k]))\nT[i] pile= pair(B[i,j], w[j])"
W = np.array([1.0, 2.0, 4.0, 0.0, 0.5, 3.0])
ROWS = [(0, 1, 2.0), (0, 5, 1.0), (2, 3, 3.0), (4, 0, -1.0), (4, 2, 0.5)]
WAYS: list[Any] = ["auto", "relational", {"B": ["i"]}]


def bent(rows: list[tuple[int, int, float]]) -> Any:
    """Evaluate `BENT` on a table with the operators of `FIRST`."""
    made = np.zeros(1 + max(i for i, *_ in rows))
    for i, j, value in rows:
        made[i] += 2 * value**3 * W[j]
    return made


@pytest.mark.sample(1)
def test_programs_keep_their_operators(
    fresh: duckdb.DuckDBPyConnection, change: Callable[[], None]
) -> None:
    """Their scripts, plans and answers, also when data has changed or they are compiled again."""
    fresh.execute("CREATE TABLE bends (i INT, j INT, v DOUBLE)").fetchall()
    fresh.executemany("INSERT INTO bends VALUES (?, ?, ?)", ROWS)
    given = ucle.table("bends", ["i", "j"], bounds=[None, len(W)])
    program = ucle.einsum_program(BENT, A=given, w=W, database=fresh)
    before = [program.with_decomposition(way) for way in WAYS]
    scripts, explained = [made.to_sql() for made in before], str(program.explain())
    change()
    after = [program.with_decomposition(way) for way in WAYS]
    assert [made.to_sql() for made in after] == scripts == [made.to_sql() for made in before]
    assert str(program.explain()) == explained
    rows = list(ROWS)
    for more in ((0, 2, 1.0), (9, 5, 3.0)):  # the second one needs longer arrays
        for made in (*before, *after, program.recompile()):
            with made.execute() as result:
                np.testing.assert_allclose(result["T"].to_numpy(), bent(rows))
        rows.append(more)
        fresh.execute(f"INSERT INTO bends VALUES {more}").fetchall()
    for made in (*before, *after, program.recompile()):
        with made.execute() as result:
            np.testing.assert_allclose(result["T"].to_numpy(), bent(rows))


def test_views_keep_their_operators(
    fresh: duckdb.DuckDBPyConnection, change: Callable[[], None]
) -> None:
    """Existing views keep their operators, and so do views that the program makes later."""
    fresh.execute("CREATE TABLE bends AS SELECT 1 AS i, 2 AS j, 3.0::DOUBLE AS v").fetchall()
    text = "T[i] pile= pair(bend(A[i,j]), 0.5)"
    program = ucle.einsum_program(
        text, A="bends", database=fresh, bounds={"i": 4, "j": 4}, decomposition="relational"
    )
    program.create_views()
    change()
    assert fresh.sql("FROM T").fetchall() == [(1, 27.0)]
    program.create_views(replace=True)
    fresh.execute("INSERT INTO bends VALUES (1, 3, 1.0)").fetchall()
    assert fresh.sql("FROM T").fetchall() == [(1, 28.0)]


def test_lazy_tensors_keep_their_operators(change: Callable[[], None]) -> None:
    """Expressions keep the operators they were made with, whenever they are computed."""
    given = ucle.array([1.0, 2.0, 3.0])
    made = given.map("bend").combine("pair", 0.5)
    change()
    np.testing.assert_allclose(made.to_numpy(), [1, 8, 27])
    np.testing.assert_allclose((made - given).sum().to_numpy(), 30)
    register(OTHERS)
    np.testing.assert_allclose(given.map("bend").to_numpy(), [2, 3, 4])
    np.testing.assert_allclose((made + given.map("bend")).to_numpy(), [3, 11, 31])


def test_lazy_tensors_keep_names_of_their_own() -> None:
    """A matrix product, and what depends on types, mean what they mean under whatever names."""
    ucle.register_operator("dot", "reduce", sql="max(x)", numpy=np.max)
    ucle.register_operator("bitwise_and", "combine", sql="x - y", numpy=lambda x, y: x - y)
    left, right = ucle.array([[1.0, 2.0], [3.0, 4.0]]), ucle.array([1.0, 2.0])
    np.testing.assert_allclose((left @ right).to_numpy(), [5, 11])
    np.testing.assert_array_equal(((right > 1) & (right < 3)).to_numpy(), [False, True])


def test_parsed_statements_keep_their_operators(change: Callable[[], None]) -> None:
    statements = parse_program("T pile= pair(bend(x[i]), y[i])")
    change()
    with ucle.einsum_program(statements, x=[1.0, 2.0], y=[1.0, 3.0]).execute() as result:
        assert result["T"].to_numpy() == 50


def test_new_programs_have_new_operators(routes: Routes) -> None:
    """Nothing that is remembered of a name is taken for another operator of that name."""
    text, x = "T[i] pile= pair(bend(X[i,j]), bend(X[i,j]))", np.arange(6.0).reshape(2, 3)
    for operators, expected in (
        (FIRST, (2 * x**6).sum(axis=1)),
        (OTHERS, np.zeros(2)),
        (FIRST, (2 * x**6).sum(axis=1)),
    ):
        register(operators)
        everywhere(text, expected, routes, X=x)


def test_a_replaced_aggregation_is_not_distributed_over(routes: Routes) -> None:
    """A ⊗ was declared to distribute over the old ⊕, not over its replacement."""
    register(FIRST)
    ucle.register_operator(
        "twice",
        "combine",
        sql="x * y * 2",
        numpy=lambda x, y: x * y * 2,
        commutative=True,
        associative=True,
        annihilators=[0],
        distributes_over=["pile"],
    )
    text, minus = "T[i] pile= twice(twice(X[i,j], Y[k,j]), z[k])", np.array([-1.0, 1, -2, 1])
    every = 4 * X[:, :, None] * Y.T * minus
    everywhere(text, every.sum((1, 2)), routes, X=X, Y=Y, z=minus)
    register(OTHERS)
    everywhere(text, every.max((1, 2)), routes, X=X, Y=Y, z=minus)


def test_what_is_refused_changes_nothing() -> None:
    register(FIRST)
    with pytest.raises(errors.OperatorError, match="cannot be called"):
        ucle.register_operator("bend", "map", sql="x", numpy=lambda: 1, replace=True)
    program = ucle.einsum_program("T[i] = bend(x[i])", x=[2.0])
    assert program.compiled.program.types["T"].entries.finite


# What the table declares holds.

SAMPLES: dict[DType, list[Any]] = {
    DType.FLOAT64: [0.0, 1.0, -1.0, 0.5, -2.0, 3.0],
    DType.INT64: [0, 1, -1, 2, 5],
    DType.BOOL: [False, True],
    DType.COMPLEX128: [0j, 1 + 0j, 1j, -0.5 + 2j],
}
SPECIAL = [0.0, 1.0, -1.0, 2.5, math.inf, -math.inf, math.nan, 2.0**63, -(2.0**63)]


def test_a_dialect_has_the_text_of_every_operator() -> None:
    for table, texts in (
        (COMBINES, DUCKDB_SQL.combines),
        (REDUCES, DUCKDB_SQL.reduces),
        (MAPS, DUCKDB_SQL.maps),
    ):
        declared = {row: set(row.kinds) for row in table.values() if row.compiled and row.kinds}
        assert declared == {row: set(by_kind) for row, by_kind in texts.items()}
    assert set(DUCKDB_SQL.types) == set(DType)


@pytest.mark.sample(None)
@pytest.mark.parametrize("name", COMBINES)
def test_declared_properties_hold(name: str) -> None:
    operator = COMBINES[name]
    for dtype, values in SAMPLES.items():
        if dtype.kind not in operator.kinds:
            continue
        whole_power = name == "pow" and dtype is DType.INT64
        kept = [value for value in values if not (whole_power and value < 0)]

        def f(x: Any, y: Any, dtype: DType = dtype) -> Any:
            return operator.scalar(x, y, dtype)

        for x, y in itertools.product(kept, kept):
            if operator.commutative:
                assert same_value(f(x, y), f(y, x))
            for z in kept:
                if operator.associative:
                    assert np.isclose(f(f(x, y), z), f(x, f(y, z)))
                for reduce in operator.distributes_over & {"sum", "min", "max"}:
                    if dtype.kind in "fi" and (reduce != "sum" or name == "mult"):
                        plus = {"sum": np.add, "min": np.minimum, "max": np.maximum}[reduce]
                        assert np.isclose(f(x, plus(y, z)), plus(f(x, y), f(x, z)))


@pytest.mark.sample(None)
@pytest.mark.parametrize("name", COMBINES)
def test_what_absorbs_absorbs(name: str) -> None:
    operator = COMBINES[name]
    for fill in SPECIAL:
        partners = SPECIAL if operator.absorbs_all else SAMPLES[DType.FLOAT64]
        for absorbs, pairs in (
            (operator.absorbs_left, [(fill, x) for x in partners]),
            (operator.absorbs_right, [(x, fill) for x in partners]),
        ):
            if absorbs(fill):
                made = [operator.scalar(x, y) for x, y in pairs]
                assert all(same_value(value, made[0]) for value in made), (name, fill, made)


@pytest.mark.parametrize("name", [name for name, row in REDUCES.items() if row.repeat])
def test_repeated_values(name: str) -> None:
    operator = REDUCES[name]
    for dtype, values in SAMPLES.items():
        if dtype.kind not in operator.kinds:
            continue
        for value, count in itertools.product(values, (1, 2, 5)):
            expected = operator.numpy(np.full(count, value, dtype.numpy))
            assert np.isclose(operator.reduce_copies(value, count, dtype), expected)
