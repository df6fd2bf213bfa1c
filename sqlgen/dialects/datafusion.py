"""The dialect of DataFusion: what operators are in its SQL.

It compares floats in their total order: -0.0 lies below 0.0, and a NaN with a sign below every
number, so that zeros and NaN are asked for by themselves. Its integers wrap, hence decimal numbers
in between, whose casts raise. There is no product of many.
"""

from __future__ import annotations

from collections.abc import Mapping

from ucle.operators import (
    ABS,
    ADD,
    BIT_XOR,
    FLOOR_DIVIDE,
    LOGADDEXP,
    MAX,
    MIN,
    MULT,
    NEG,
    POW,
    ROUND,
    SPARSE_MULT,
    SQUARE,
    SUB,
    Combine,
    PointwiseMap,
    Reduce,
    Texts,
)
from ucle.sqlgen.dialects import standard
from ucle.sqlgen.dialects.standard import INFINITE, NAN, log1p_of_small, wide
from ucle.sqlgen.dialects.tables import Dialect, Statements

_NAN, _ZERO = "isnan({0})", "abs({0}) = 0"


def _build_error_sql(message: str) -> str:
    """An error for some rows: a message with a number in it is no integer."""
    return f"CAST(concat('{message}: ', x) AS BIGINT)"


_COMBINES = standard.combines(_NAN, _ZERO)
COMBINES: Mapping[Combine, Texts] = _COMBINES | {
    MULT: _COMBINES[MULT] | {"i": wide("x * y")},
    ADD: _COMBINES[ADD] | {"i": wide("x + y")},
    SUB: _COMBINES[SUB] | {"i": wide("x - y")},
    SPARSE_MULT: _COMBINES[SPARSE_MULT] | {"i": wide("x * y")},
    POW: {
        "f": f"CASE WHEN abs(x) = 0 AND y < 0 AND NOT isnan(y) AND NOT abs(y) = 0 "
        f"THEN one * {INFINITE} ELSE power(x, y) END",
        "i": standard.integer_power(
            _build_error_sql("integers have no negative integer powers"),
            _build_error_sql(
                "a power of integers is beyond 2^53, which is not exact in DataFusion"
            ),
        ),
    },
    LOGADDEXP: {
        "f": f"CASE WHEN isnan(x) OR isnan(y) THEN {NAN} "
        f"WHEN x = y THEN x + {standard.LOG_2} ELSE greatest(x, y) + "
        f"{log1p_of_small('exp(-abs(1e0 * x - y))')} END"
    },
    FLOOR_DIVIDE: {"i": standard.integer_floored("x / y", wide("0 - x"))},
    BIT_XOR: {"i": "x ^ y", "b": "x <> y"},
}

REDUCES: Mapping[Reduce, Texts] = {
    **standard.REDUCES,
    MIN: {**standard.REDUCES[MIN], "f": standard.least_of(_NAN)},
    MAX: {
        **standard.REDUCES[MAX],
        "f": f"CASE WHEN bool_or(isnan(x)) THEN {NAN} ELSE max(x) END",
    },
}

_MAPS = standard.maps(_NAN, "abs(x) = 0")
MAPS: Mapping[PointwiseMap, Texts] = _MAPS | {
    ABS: {"f": "abs(x)", "i": f"CASE WHEN x < 0 THEN {wide('0 - x')} ELSE x END"},
    NEG: {"f": "-x", "i": wide("0 - x")},
    SQUARE: {"f": "x * x", "i": wide("x * x")},
    ROUND: {"f": "CASE WHEN abs(x - trunc(x)) = 5e-1 THEN 2e0 * round(x / 2e0) ELSE round(x) END"},
}

DATAFUSION_SQL = Dialect(
    "datafusion",
    combines=COMBINES,
    reduces=REDUCES,
    maps=MAPS,
    types=standard.TYPES,
    sqlglot="",
    statements=Statements(
        create="CREATE TABLE {name} AS",
        first={},
        numbers="range(x)",
        unnested="unnest(range(x))",
        quotient="x / y",
        single="CAST(x AS FLOAT)",
        double="x",
        casts={**standard.CASTS, "fb": "abs(x) <> 0"},
        functions={"isfinite": f"abs(x) < {INFINITE}", "error": "CAST(x AS BIGINT)"},
        names={
            "IsNan": "isnan",
            "Sign": "signum",
            "LogicalOr": "bool_or",
            "LogicalAnd": "bool_and",
            "IsInf": "isinf",
        },
    ),
)
