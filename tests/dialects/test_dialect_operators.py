"""Every operator that a dialect has, on special values, against NumPy."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from sql_engines import NAMES, SqlEngine

from ucle.foundation.dtypes import DType
from ucle.ir.maps import Cast, Map
from ucle.operators import COMBINES, MAPS, REDUCES
from ucle.sqlgen.dialects import DIALECTS
from ucle.sqlgen.other_dialects import first_statements, render_tree
from ucle.sqlgen.scalar_operators import combine_sql, map_sql, reduce_sql
from ucle.sqlgen.sql_trees import add_alias, column, group_by_keys, select_from, table

FLOATS = (
    *(math.nan, math.inf, -math.inf, 0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, 3.5, -2.5, 2.0),
    *(1e-10, -1e-10, 1e-200, 1e17, -1e17, 1e200, -1e200, 20.0, -41.0, 300.0, -800.0, 800.0),
    *(0.99, 1.0000001, 7.0, -3.0),
)
INTEGERS = (0, 1, -1, 2, 3, -3, 7, 10, -10, 62, 2**40, -(2**40), 2**62, 2**63 - 1, -(2**63))
BOOLEANS = (False, True)
VALUES: Mapping[str, tuple[Any, ...]] = {"f": FLOATS, "i": INTEGERS, "b": BOOLEANS}
TYPES = {"f": (DType.FLOAT64, DType.FLOAT32), "i": (DType.INT64,), "b": (DType.BOOL,)}

RAISING = frozenset(
    [
        *("mult", "add", "sub", "div", "pow", "sparse_mult", "sparse_div", "hypot", "square"),
        *("reciprocal", "leaky_relu", "gelu", "copysign", "silu", "cosh", "sinh", "tan"),
    ]
)
"""Operators that raise an error in PostgreSQL if the result overflows or vanishes."""


def operators(kind: str) -> list[tuple[str, str, DType]]:
    """The operators of all dialects but DuckDB's, with their types."""
    return [
        (dialect, row.name, dtype)
        for dialect in NAMES
        for row, texts in getattr(DIALECTS[dialect], kind).items()
        for letter in texts
        for dtype in TYPES[letter]
    ]


def of_type(values: list[Any], dtype: DType) -> pa.Array:
    with np.errstate(all="ignore"):
        return pa.array(np.array(values).astype(dtype.numpy))


def answers(
    engine: SqlEngine, expression: Any, dtype: DType, **columns: list[Any]
) -> np.ndarray[Any, Any]:
    """The values of an expression over the rows of a table."""
    numbers = range(len(next(iter(columns.values()))))
    data = {name: of_type(values, dtype) for name, values in columns.items()}
    engine.load("t", pa.table({"k": pa.array(numbers, pa.int64()), **data}))
    query = select_from(table("t"), column("k"), add_alias(expression, "val"))
    rows = sorted(engine.query(render_tree(query, DIALECTS[engine.name])))
    return np.array([value for _, value in rows])


def asked(engine: SqlEngine, sql: str) -> Any:
    """The rows of a query, behind what has to come before it."""
    for text in first_statements(DIALECTS[engine.name], sql):
        engine.query(text)
    return engine.query(sql)


def in_range(name: str, engine: str, dtype: DType, result: Any, *arguments: Any) -> bool:
    """True if an engine has the result, and neither raises nor leaves the integers' range."""
    if dtype is DType.INT64:
        most = 2**53 if name == "pow" and engine != "postgres" else 2**63
        return -most <= result < most
    if name == "pow" and arguments == (-math.inf, 0.5):
        return False  # NumPy takes the square root, which has no value; all others say infinity
    if dtype is DType.BOOL or engine != "postgres" or name not in RAISING:
        return True
    if all(map(math.isfinite, arguments)):
        small = 0 < abs(result) < np.finfo(dtype.numpy).tiny
        vanished = result == 0 and name != "sub" and all(arguments)
        return bool(math.isfinite(result) and not small and not vanished)
    return True


def close(found: Any, expected: list[Any], dtype: DType, context: str) -> None:
    if dtype.kind != "f":
        np.testing.assert_array_equal(found, np.array(expected), err_msg=context)
        return
    rtol = 1e-12 if dtype is DType.FLOAT64 else 2e-6
    wanted = np.array(expected, dtype.numpy).astype(np.float64)
    # NumPy computes the functions of a float32 in 32 bits.
    atol = 1e-300 if dtype is DType.FLOAT64 else 1e-7
    found = found.astype(np.float64)
    np.testing.assert_allclose(found, wanted, rtol=rtol, atol=atol, err_msg=context)


def exact(operator: Any, dtype: DType, *arguments: Any) -> Any:
    """The value of an operator: of integers as Python has them, which do not wrap."""
    python = {
        "mult": lambda x, y: x * y,
        "sparse_mult": lambda x, y: x * y,
        "add": lambda x, y: x + y,
        "sub": lambda x, y: x - y,
        "abs": abs,
        "neg": lambda x: -x,
        "square": lambda x: x * x,
        "floor_divide": lambda x, y: x // y if y else 0,
        "pow": lambda x, y: x**y if 0 <= y < 64 else 2**99,
    }
    if dtype is DType.INT64 and operator.name in python:
        return python[operator.name](*arguments)
    return operator.scalar(*arguments, dtype)


@pytest.mark.sample(None)
@pytest.mark.parametrize("case", operators("maps"), ids=lambda c: f"{c[0]}-{c[1]}-{c[2].tag}")
def test_maps(case: tuple[str, str, DType], engines: Any) -> None:
    dialect, name, dtype = case
    engine = engines(dialect)
    values, expected = [], []
    for each in VALUES[dtype.kind]:
        with np.errstate(all="ignore"):
            value = dtype.numpy.type(each).item()
        result = exact(MAPS[name], dtype, value)
        if in_range(name, dialect, dtype, result, value):
            values.append(value)
            expected.append(result)
    step = Map(MAPS[name], dtype)
    found = answers(engine, map_sql(step, column("x"), DIALECTS[dialect]), dtype, x=values)
    close(found, expected, dtype, f"{name} of {values}")


@pytest.mark.sample(None)
@pytest.mark.parametrize("case", operators("combines"), ids=lambda c: f"{c[0]}-{c[1]}-{c[2].tag}")
def test_combines(case: tuple[str, str, DType], engines: Any) -> None:
    dialect, name, dtype = case
    engine = engines(dialect)
    xs, ys, expected = [], [], []
    for pair in itertools.product(VALUES[dtype.kind], repeat=2):
        with np.errstate(all="ignore"):
            x, y = (dtype.numpy.type(each).item() for each in pair)
        result = exact(COMBINES[name], dtype, x, y)
        if in_range(name, dialect, dtype, result, x, y):
            xs.append(x)
            ys.append(y)
            expected.append(result)
    sql = combine_sql(COMBINES[name], column("x"), column("y"), dtype, DIALECTS[dialect])
    found = answers(engine, sql, dtype, x=xs, y=ys)
    context = f"{name} of {list(zip(xs, ys, strict=True))}"
    if name in ("div", "pow", "sparse_div", "reciprocal"):  # zeros have no sign
        zero = [0 in pair for pair in zip(xs, ys, strict=True)]
        found = np.where(zero & np.isinf(found), np.abs(found), found)
        expected = [abs(e) if z and np.isinf(e) else e for z, e in zip(zero, expected, strict=True)]
    close(found, expected, dtype, context)


GROUPS: Mapping[str, tuple[tuple[Any, ...], ...]] = {
    "f": (
        (1.0, 2.5, -3.0),
        (math.nan, 1.0),
        (1.0, math.nan, -1.0),
        (math.inf, 1.0),
        (math.inf, -math.inf),
        (-0.0, 0.0),
        (7.0,),
    ),
    "i": ((1, 2, 3), (2**62, 2**62, -(2**62)), (2**62, 2**62, 0), (-5,), (3, -(2**63))),
    "b": ((True, False), (True,), (False, False)),
}
FOLDS = {"sum": np.sum, "prod": np.prod, "min": np.min, "max": np.max, "any": np.any, "all": np.all}


@pytest.mark.sample(None)
@pytest.mark.parametrize("case", operators("reduces"), ids=lambda c: f"{c[0]}-{c[1]}-{c[2].tag}")
def test_reduces(case: tuple[str, str, DType], engines: Any) -> None:
    dialect, name, dtype = case
    engine = engines(dialect)
    groups, expected = [], []
    for group in GROUPS[dtype.kind]:
        whole = np.array(group, object) if dtype is DType.INT64 else np.array(group, dtype.numpy)
        with np.errstate(all="ignore"):
            result = FOLDS[name](whole)
        if dtype is not DType.INT64 or -(2**63) <= result < 2**63:
            groups.append(group)
            expected.append(result)
    keys = [n for n, group in enumerate(groups) for _ in group]
    values = of_type([value for group in groups for value in group], dtype)
    engine.load("t", pa.table({"k": pa.array(keys, pa.int64()), "x": values}))
    sql = reduce_sql(REDUCES[name], column("x"), dtype, DIALECTS[dialect])
    query = select_from(table("t"), column("k"), add_alias(sql, "val"))
    rows = asked(engine, render_tree(group_by_keys(query, [column("k")]), DIALECTS[dialect]))
    close(np.array([value for _, value in sorted(rows)]), expected, dtype, f"{name} of {groups}")


OVERFLOWS = [
    *(("maps", name, (-(2**63),)) for name in ("abs", "neg")),
    ("maps", "square", (2**32,)),
    *(("combines", name, (2**62, 4)) for name in ("mult", "sparse_mult")),
    ("combines", "add", (2**63 - 1, 1)),
    ("combines", "sub", (-(2**63), 1)),
    ("combines", "pow", (10, 40)),
    ("combines", "pow", (2, -1)),
    ("combines", "floor_divide", (-(2**63), -1)),
    *(("reduces", name, (2**62, 2**62)) for name in ("sum", "prod")),
]


@pytest.mark.sample(None)
@pytest.mark.parametrize(("kind", "name", "values"), OVERFLOWS)
@pytest.mark.parametrize("dialect", NAMES)
def test_integers_do_not_wrap(
    dialect: str, kind: str, name: str, values: tuple[int, ...], engines: Any
) -> None:
    tables = {"maps": MAPS, "combines": COMBINES, "reduces": REDUCES}
    if tables[kind][name] not in getattr(DIALECTS[dialect], kind):
        pytest.skip(f"{dialect} has no {name}, and refuses it")
    engine, operator, sql = engines(dialect), tables[kind][name], DIALECTS[dialect]
    columns = {"x": [values[0]], "y": [values[-1]]}
    match kind:
        case "maps":
            tree = map_sql(Map(operator, DType.INT64), column("x"), sql)
        case "combines":
            tree = combine_sql(operator, column("x"), column("y"), DType.INT64, sql)
        case _:
            tree, columns = reduce_sql(operator, column("x"), DType.INT64, sql), {"x": [*values]}
    data = {name: of_type(column_, DType.INT64) for name, column_ in columns.items()}
    engine.load("t", pa.table(data))
    with pytest.raises(Exception, match=r"(?i)overflow|out of range|int64|power|18014398509481984"):
        asked(engine, render_tree(select_from(table("t"), add_alias(tree, "val")), sql))


REAL = (DType.FLOAT64, DType.FLOAT32, DType.INT64, DType.BOOL)


@pytest.mark.sample(None)
@pytest.mark.parametrize("source", REAL)
@pytest.mark.parametrize("result", REAL)
@pytest.mark.parametrize("dialect", NAMES)
def test_casts(dialect: str, source: DType, result: DType, engines: Any) -> None:
    values = {
        "f": [0.0, -0.0, 1.0, 2.7, -2.7, 0.5, 1e10, *([] if result.kind == "i" else [math.nan])],
        "i": [0, 1, -3, 2**40],
        "b": [False, True],
    }[source.kind]
    if source is DType.FLOAT64 and result is DType.FLOAT32:
        values += [1e300, -1e300, 1e-300, math.inf, 3.4e38, 1e-40]
    sql = map_sql(Cast(source, result), column("x"), DIALECTS[dialect])
    found = answers(engines(dialect), sql, source, x=values)
    with np.errstate(all="ignore"):
        expected = np.array(values, source.numpy).astype(result.numpy)
    if result.kind == "f":
        np.testing.assert_allclose(found.astype(np.float64), expected, rtol=1e-7, atol=1e-44)
    else:
        np.testing.assert_array_equal(found, expected)


@pytest.mark.sample(None)
@pytest.mark.parametrize("dialect", NAMES)
@pytest.mark.parametrize("value", [math.nan, math.inf, 1e300])
def test_what_is_no_integer_is_refused(dialect: str, value: float, engines: Any) -> None:
    sql = map_sql(Cast(DType.FLOAT64, DType.INT64), column("x"), DIALECTS[dialect])
    with pytest.raises(Exception, match=r"(?i)overflow|out of range|cast"):
        answers(engines(dialect), sql, DType.FLOAT64, x=[value])
