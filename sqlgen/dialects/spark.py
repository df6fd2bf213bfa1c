"""The dialect of Spark: what operators are in its SQL under ANSI rules, which scripts switch on.

It orders NaN above every number, as DuckDB does. A division by zero raises there, the logarithm of
zero is NULL, floors are integers, and a product of many is a fold over a list.
"""

from __future__ import annotations

from collections.abc import Mapping

from ucle.operators import (
    ACOSH,
    ASINH,
    BIT_COUNT,
    BIT_XOR,
    CEIL,
    EXPM1,
    FLOOR,
    FLOOR_DIVIDE,
    HYPOT,
    LOG1P,
    LOGADDEXP,
    MIN,
    POW,
    PROD,
    ROUND,
    SOFTPLUS,
    TRUNC,
    Combine,
    PointwiseMap,
    Reduce,
    Texts,
)
from ucle.sqlgen.dialects import standard
from ucle.sqlgen.dialects.standard import INFINITE, NAN, WIDE
from ucle.sqlgen.dialects.tables import Dialect, Statements

_NAN = "isnan({0})"
_FRACTIONS = "abs(x) < 9e15"
"""Above, a float64 has no fraction; NaN is above."""
_TRUNCATED = f"CASE WHEN {_FRACTIONS} THEN CAST(CAST(x AS BIGINT) AS DOUBLE) ELSE x END"
_REFUSED = "raise_error('integers have no negative integer powers')"
_BEYOND = "raise_error('a power of integers is beyond 2^53, which is not exact in Spark')"

COMBINES: Mapping[Combine, Texts] = standard.combines(_NAN) | {
    POW: {
        "f": f"CASE WHEN x = 0 AND y < 0 THEN one * {INFINITE} WHEN x = 1 THEN one "
        f"WHEN x = -1 AND abs(y) = {INFINITE} THEN one ELSE power(x, y) END",
        "i": standard.integer_power(_REFUSED, _BEYOND),
    },
    HYPOT: {"f": "hypot(x, y)"},
    LOGADDEXP: {
        "f": f"CASE WHEN isnan(x) OR isnan(y) THEN {NAN} "
        f"WHEN x = y THEN x + {standard.LOG_2} "
        "ELSE greatest(x, y) + log1p(exp(-abs(1e0 * x - y))) END"
    },
    FLOOR_DIVIDE: {"i": standard.integer_floored("x DIV y")},
    BIT_XOR: {"i": "x ^ y", "b": "x <> y"},
}

_FOLDED = f"(p, q) -> CAST(p * q AS {WIDE})"
REDUCES: Mapping[Reduce, Texts] = {
    **standard.REDUCES,
    MIN: {**standard.REDUCES[MIN], "f": standard.least_of(_NAN)},
    PROD: {
        "f": "aggregate(collect_list(CAST(x AS DOUBLE)), 1e0, (p, q) -> p * q)",
        "i": "CASE WHEN bool_or(x = 0) THEN 0 ELSE CAST(aggregate(collect_list("
        f"CAST(x AS {WIDE})), CAST(1 AS {WIDE}), {_FOLDED}) AS BIGINT) END",
    },
}

MAPS: Mapping[PointwiseMap, Texts] = standard.maps(_NAN) | {
    LOG1P: {"f": f"CASE WHEN x > -1 THEN log1p(x) WHEN x = -1 THEN -{INFINITE} ELSE {NAN} END"},
    EXPM1: {"f": "expm1(x)"},
    BIT_COUNT: {"i": "bit_count(x)"},
    SOFTPLUS: {"f": "log1p(exp(-abs(x))) + greatest(x, zero)"},
    ASINH: {
        "f": f"CASE WHEN abs(x) > 1e100 THEN sign(x) * (ln(abs(x)) + {standard.LOG_2}) "
        "WHEN abs(x) > 1 THEN asinh(x) "
        "ELSE sign(x) * log1p(abs(x) + x * x / (1e0 + sqrt(1e0 + x * x))) END"
    },
    ACOSH: {
        "f": f"CASE WHEN x < 1 THEN {NAN} WHEN x > 1e100 THEN ln(x) + {standard.LOG_2} "
        "ELSE acosh(x) END"
    },
    FLOOR: {"f": f"CASE WHEN {_FRACTIONS} THEN CAST(floor(x) AS DOUBLE) ELSE x END"},
    CEIL: {"f": f"CASE WHEN {_FRACTIONS} THEN CAST(ceil(x) AS DOUBLE) ELSE x END"},
    TRUNC: {"f": _TRUNCATED},
    ROUND: {"f": "rint(x)"},
}

SPARK_SQL = Dialect(
    "spark",
    combines=COMBINES,
    reduces=REDUCES,
    maps=MAPS,
    types=standard.TYPES,
    sqlglot="spark",
    statements=Statements(
        create="CACHE TABLE {name} AS",
        first={"": "SET spark.sql.ansi.enabled = true"},
        numbers="range(x)",
        unnested="explode(slice(sequence(0, x), 1, CAST(x AS INT)))",
        quotient="x DIV y",
        single="CAST(x AS FLOAT)",
        double="x",
        casts={**standard.CASTS, "fi": "x"},
        functions={"error": "raise_error(x)", "isfinite": f"abs(x) < {INFINITE}"},
        files="parquet",
    ),
)
