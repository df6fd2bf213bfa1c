"""The dialect of PostgreSQL: what operators are in its SQL, from version 13 on.

It orders NaN above every number, as DuckDB does, and has no ``isnan``. Where a float64 overflows,
or becomes zero without being it, PostgreSQL raises; exponentials are kept from that. A product of
many is an aggregate that scripts create where they need it.
"""

from __future__ import annotations

from collections.abc import Mapping

from ucle.foundation.dtypes import DType
from ucle.operators import (
    ACOS,
    ACOSH,
    ASIN,
    ATANH,
    BIT_COUNT,
    BIT_XOR,
    COS,
    EXP,
    EXPM1,
    FLOOR_DIVIDE,
    GELU,
    HYPOT,
    LOGADDEXP,
    MIN,
    POW,
    PROD,
    ROUND,
    SIGMOID,
    SILU,
    SIN,
    SOFTPLUS,
    SUM,
    TAN,
    Combine,
    PointwiseMap,
    Reduce,
    Texts,
)
from ucle.sqlgen.dialects import standard
from ucle.sqlgen.dialects.standard import DOUBLE, INFINITE, IS_FINITE, NAN, log1p_of_small
from ucle.sqlgen.dialects.tables import Dialect, Statements

_NAN = f"{{0}} = {NAN}"


def _exponential(argument: str) -> str:
    """An exponential that does not raise."""
    return (
        f"(CASE WHEN {argument} > 709.782712893384e0 AND {argument} < {INFINITE} "
        f"THEN {INFINITE} WHEN {argument} < -745.13e0 THEN 0e0 ELSE exp({argument}) END)"
    )


def _build_error_sql(message: str) -> str:
    """An error for some rows: a message with a number in it is no integer."""
    return f"CAST(concat('{message}: ', x) AS BIGINT)"


def _inside(function: str, domain: str) -> dict[str, str]:
    """A function of x, NaN outside of its domain, where PostgreSQL raises."""
    return {"f": f"CASE WHEN {domain} THEN {function}(x) ELSE {NAN} END"}


_SIGMOID = (
    f"CASE WHEN x < -700 THEN {_exponential('x')} ELSE 1e0 / (1e0 + {_exponential('-x')}) END"
)
_WHOLE = "y = floor(y)"
_EXACT_POWER = "power(CAST(x AS NUMERIC), CAST(y AS NUMERIC))"

COMBINES: Mapping[Combine, Texts] = standard.combines(_NAN) | {
    POW: {
        "f": f"CASE WHEN y = 0 OR x = 1 THEN one WHEN x = {NAN} OR y = {NAN} THEN {NAN} "
        f"WHEN x = 0 AND y < 0 THEN one * {INFINITE} WHEN x >= 0 OR {_WHOLE} THEN power(x, y) "
        f"WHEN x = -{INFINITE} THEN CASE WHEN y > 0 THEN {INFINITE} ELSE 0e0 END ELSE {NAN} END",
        "i": f"CASE WHEN y < 0 THEN {_build_error_sql('integers have no negative integer powers')} "
        f"WHEN x = -1 THEN 1 - 2 * (y % 2) WHEN x IN (0, 1) OR y < 64 THEN {_EXACT_POWER} "
        f"ELSE {_build_error_sql('int64 overflow: a power is beyond 64 bits')} END",
    },
    LOGADDEXP: {
        "f": f"CASE WHEN x = {NAN} OR y = {NAN} THEN {NAN} "
        f"WHEN x = y THEN x + {standard.LOG_2} ELSE greatest(x, y) + "
        f"{log1p_of_small(_exponential('-abs(1e0 * x - y)'))} END"
    },
    # Squares of small ratios would vanish, which raises.
    HYPOT: {
        "f": f"CASE WHEN greatest(abs(x), abs(y)) < {INFINITE} "
        "AND least(abs(x), abs(y)) < 1e-20 * greatest(abs(x), abs(y)) "
        f"THEN greatest(abs(x), abs(y)) ELSE {standard.HYPOTENUSE} END"
    },
    FLOOR_DIVIDE: {"i": standard.integer_floored("x / y")},
    BIT_XOR: {"i": "x # y", "b": "x <> y"},
}

REDUCES: Mapping[Reduce, Texts] = {
    **standard.REDUCES,
    SUM: {"f": f"sum(CAST(x AS {DOUBLE}))", "i": "sum(x)"},
    MIN: {**standard.REDUCES[MIN], "f": standard.least_of(_NAN)},
    PROD: {
        "f": f"pg_temp.product(CAST(x AS {DOUBLE}))",
        "i": "pg_temp.product(CAST(x AS NUMERIC))",
    },
}

_MAPS = standard.maps(_NAN)
MAPS: Mapping[PointwiseMap, Texts] = _MAPS | {
    EXP: {"f": _exponential("x")},
    SIGMOID: {"f": _SIGMOID},
    SILU: {"f": f"x * ({_SIGMOID})"},
    GELU: {
        "f": f"CASE WHEN abs(x) > 100 AND {IS_FINITE} THEN greatest(x, zero) "
        f"WHEN abs(x) < 1e-100 THEN 5e-1 * x ELSE {_MAPS[GELU]['f']} END"
    },
    SOFTPLUS: {
        "f": f"CASE WHEN x < -40 THEN {_exponential('x')} "
        f"ELSE {log1p_of_small(_exponential('-abs(x)'))} + greatest(x, zero) END"
    },
    EXPM1: {
        "f": f"CASE WHEN x < -40 THEN -1e0 WHEN x > 700 THEN {_exponential('x')} "
        "WHEN abs(x) < 1e-100 THEN x ELSE 2e0 * sinh(x / 2e0) * exp(x / 2e0) END"
    },
    **{row: _inside(row.name, IS_FINITE) for row in (SIN, COS, TAN)},
    **{row: _inside(row.name, "abs(x) <= 1") for row in (ASIN, ACOS)},
    ACOSH: _inside("acosh", "x >= 1"),
    ATANH: {
        "f": f"CASE WHEN abs(x) < 1 THEN atanh(x) WHEN abs(x) = 1 THEN x * {INFINITE} "
        f"ELSE {NAN} END"
    },
    ROUND: {"f": f"round(CAST(x AS {DOUBLE}))"},
    BIT_COUNT: {"i": "bit_count(CAST(x AS BIT(64)))"},
}

POSTGRES_SQL = Dialect(
    "postgres",
    combines=COMBINES,
    reduces=REDUCES,
    maps=MAPS,
    types={**standard.TYPES, DType.FLOAT64: DOUBLE, DType.FLOAT32: "REAL"},
    sqlglot="postgres",
    statements=Statements(
        create="CREATE TEMPORARY TABLE {name} AS",
        first={
            "pg_temp.product(": "CREATE AGGREGATE pg_temp.product(DOUBLE PRECISION) "
            "(SFUNC = float8mul, STYPE = DOUBLE PRECISION, INITCOND = '1');\n"
            "CREATE AGGREGATE pg_temp.product(NUMERIC) "
            "(SFUNC = numeric_mul, STYPE = NUMERIC, INITCOND = '1')",
        },
        numbers="generate_series(0, x - 1)",
        unnested="generate_series(0, x - 1)",
        quotient="x / y",
        single="CASE WHEN abs(x) > 3.4028235677973366e38 THEN "
        f"CAST(sign(x) * {INFINITE} AS REAL) "
        "WHEN abs(x) < 7.1e-46 THEN CAST(0 AS REAL) ELSE CAST(x AS REAL) END",
        double=f"CAST(x AS {DOUBLE})",
        casts=standard.CASTS,
        functions={
            "isnan": f"x = {NAN}",
            "isfinite": IS_FINITE,
            "error": "CAST(x AS BIGINT)",
        },
        once=True,
    ),
)
