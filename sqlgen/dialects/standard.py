"""Texts that Spark, PostgreSQL and DataFusion have in common, all of them in standard SQL.

A text stands over ``x``, ``y``, ``zero`` and ``one``, as in `ucle.sqlgen.dialects.duckdb`. As in
DuckDB, a zero has no sign, and what is divided by zero is infinite. Of float32, what is computed
here may be a float64, which is made one of 32 bits again around the text. Where a dialect has a
better text, its own table comes after these.
"""

from __future__ import annotations

from collections.abc import Mapping

from ucle.foundation.dtypes import DType
from ucle.operators import Texts

TYPES: Mapping[DType, str] = {
    DType.FLOAT64: "DOUBLE",
    DType.FLOAT32: "FLOAT",
    DType.INT64: "BIGINT",
    DType.BOOL: "BOOLEAN",
}
"""Names of element types, where a dialect has no others; complex numbers have none."""

DOUBLE = "DOUBLE PRECISION"
NAN, INFINITE = f"CAST('NaN' AS {DOUBLE})", f"CAST('Infinity' AS {DOUBLE})"
WIDE = "DECIMAL(38, 0)"
"""Has the sums and products of two integers of 64 bits; a cast to 64 bits raises beyond them."""
EXACT = 2**53
"""Below, every integer is a float64, and no other rounds to one."""
LOG_2, LOG_10 = "0.6931471805599453e0", "2.302585092994046e0"
FINITE = f"abs(x) < {INFINITE}"
"""NaN is above infinity."""


def real(text: str, integer: str | None = None) -> dict[str, str]:
    """One text for floats and integers, or one for each."""
    return {"f": text, "i": integer or text}


def indicator(condition: str) -> str:
    """1 or 0 in the type at hand, for a condition that holds or does not."""
    return f"CASE WHEN {condition} THEN one ELSE zero END"


def wide(text: str) -> str:
    """A text of integers in which nothing overflows."""
    operands = {"x": f"CAST(x AS {WIDE})", "y": f"CAST(y AS {WIDE})"}
    return " ".join(operands.get(word, word) for word in text.split())


def log1p_of_small(argument: str) -> str:
    """``log(1 + x)`` of -0.5 to 1, without adding 1: twice the artanh of x / (2 + x)."""
    return f"2e0 * atanh({argument} / (2e0 + {argument}))"


QUOTIENT = f"CASE WHEN y = 0 THEN x * {INFINITE} ELSE x / y END"
RECIPROCAL = f"CASE WHEN x = 0 THEN {INFINITE} ELSE 1e0 / x END"
LOG1P = (
    f"CASE WHEN abs(x) < 1e-16 THEN x WHEN abs(x) < 5e-1 THEN {log1p_of_small('x')} "
    f"WHEN x > -1 THEN ln(1e0 + x) WHEN x = -1 THEN -{INFINITE} ELSE {NAN} END"
)
_LESS_BY_GREATER = "(least(abs(x), abs(y)) / greatest(abs(x), abs(y)))"
HYPOTENUSE = (
    f"CASE WHEN abs(x) = {INFINITE} OR abs(y) = {INFINITE} THEN {INFINITE} "
    "WHEN abs(x) = 0 AND abs(y) = 0 THEN 0e0 ELSE greatest(abs(x), abs(y)) * "
    f"sqrt(1e0 + {_LESS_BY_GREATER} * {_LESS_BY_GREATER}) END"
)
_OTHER_SIGN = "x % y <> 0 AND (x % y < 0) <> (y < 0)"
INTEGER_REMAINDER = (
    f"CASE WHEN y = 0 OR y = -1 THEN 0 WHEN {_OTHER_SIGN} THEN x % y + y ELSE x % y END"
)


def integer_floored(quotient: str, negated: str = "-x") -> str:
    """The quotient of integers rounded down, with the text of one that is cut off."""
    return (
        f"CASE WHEN y = 0 THEN 0 WHEN y = -1 THEN {negated} "
        f"ELSE {quotient} - CASE WHEN {_OTHER_SIGN} THEN 1 ELSE 0 END END"
    )


def integer_power(refused: str, beyond: str) -> str:
    """A power of integers as far as it is exact in a float64, and two errors."""
    return (
        f"CASE WHEN y < 0 THEN {refused} WHEN x = -1 THEN 1 - 2 * (y % 2) "
        f"WHEN abs(power(x, y)) < {EXACT} THEN CAST(power(x, y) AS BIGINT) ELSE {beyond} END"
    )


BOOLEANS: Mapping[str, str] = {
    "mult": "x AND y",
    "add": "x OR y",
    "min": "x AND y",
    "max": "x OR y",
    "less": "y AND NOT x",
    "less_equal": "y OR NOT x",
    "equal": "x = y",
    "not_equal": "x <> y",
    "and": "x AND y",
    "or": "x OR y",
    "xor": "x <> y",
    "sparse_mult": "x AND y",
    "when": "x AND y",
    "when_one": "y OR NOT x",
    "when_lowest": "x AND y",
    "when_highest": "y OR NOT x",
    "unless": "y AND NOT x",
    "bit_and": "x AND y",
    "bit_or": "x OR y",
    "bit_xor": "x <> y",
}


def combines(nan: str, zero: str = "{0} = 0") -> dict[str, dict[str, str]]:
    """The ⊗ of a dialect that orders NaN above every number.

    Args:
        nan: whether {0} is NaN.
        zero: whether {0} is zero.
    """
    no_nan = f"NOT ({nan.format('x')}) AND NOT ({nan.format('y')})"
    some_nan = f"{nan.format('x')} OR {nan.format('y')}"
    x_zero, y_zero = zero.format("x"), zero.format("y")
    both_zero = f"({x_zero} AND {y_zero})"
    lower = f"(x < y AND NOT {both_zero})"
    quotient = f"CASE WHEN {y_zero} THEN x * {INFINITE} ELSE x / y END"
    texts: dict[str, dict[str, str]] = {
        "mult": real("x * y"),
        "add": real("x + y"),
        "sub": real("x - y"),
        "div": {"f": quotient},
        "min": {"f": f"CASE WHEN {some_nan} THEN {NAN} ELSE least(x, y) END", "i": "least(x, y)"},
        "max": {
            "f": f"CASE WHEN {some_nan} THEN {NAN} ELSE greatest(x, y) END",
            "i": "greatest(x, y)",
        },
        "less": {"f": indicator(f"{lower} AND {no_nan}"), "i": indicator("x < y")},
        "less_equal": {
            "f": indicator(f"(x <= y OR {both_zero}) AND {no_nan}"),
            "i": indicator("x <= y"),
        },
        "equal": {
            "f": indicator(f"(x = y OR {both_zero}) AND {no_nan}"),
            "i": indicator("x = y"),
        },
        "not_equal": {
            "f": indicator(f"(x <> y AND NOT {both_zero}) OR {some_nan}"),
            "i": indicator("x <> y"),
        },
        "sparse_mult": {
            "f": f"CASE WHEN {x_zero} OR {y_zero} THEN zero ELSE x * y END",
            "i": "x * y",
        },
        "sparse_div": {
            "f": f"CASE WHEN {x_zero} THEN zero WHEN {y_zero} THEN x * {INFINITE} ELSE x / y END"
        },
        "when": {
            "f": f"CASE WHEN {x_zero} THEN zero ELSE y END",
            "i": "CASE WHEN x = 0 THEN zero ELSE y END",
        },
        "when_one": {
            "f": f"CASE WHEN {x_zero} THEN one ELSE y END",
            "i": "CASE WHEN x = 0 THEN one ELSE y END",
        },
        "when_lowest": {
            "f": f"CASE WHEN {x_zero} THEN -{INFINITE} ELSE y END",
            "i": "CASE WHEN x = 0 THEN CAST(-9223372036854775808 AS BIGINT) ELSE y END",
        },
        "when_highest": {
            "f": f"CASE WHEN {x_zero} THEN {INFINITE} ELSE y END",
            "i": "CASE WHEN x = 0 THEN CAST(9223372036854775807 AS BIGINT) ELSE y END",
        },
        "unless": {
            "f": f"CASE WHEN {x_zero} THEN y ELSE zero END",
            "i": "CASE WHEN x = 0 THEN y ELSE zero END",
        },
        "hypot": {"f": HYPOTENUSE},
        "copysign": {"f": f"CASE WHEN y < 0 AND NOT ({y_zero}) THEN -abs(x) ELSE abs(x) END"},
        "atan2": {
            "f": f"atan2(CASE WHEN {x_zero} THEN 0e0 ELSE x END, "
            f"CASE WHEN {y_zero} THEN 0e0 ELSE y END)"
        },
        "remainder": {"i": INTEGER_REMAINDER},
        "bit_and": {"i": "x & y"},
        "bit_or": {"i": "x | y"},
    }
    for name, text in BOOLEANS.items():
        texts.setdefault(name, {})["b"] = text
    return texts


REDUCES: Mapping[str, Texts] = {
    "sum": {"f": "sum(x)", "i": f"sum(CAST(x AS {WIDE}))"},
    "min": {"i": "min(x)", "b": "bool_and(x)"},
    "max": {"f": "max(x)", "i": "max(x)", "b": "bool_or(x)"},
    "any": {"b": "bool_or(x)"},
    "all": {"b": "bool_and(x)"},
}


def least_of(nan: str) -> str:
    """The minimum of floats, NaN where there is one."""
    return f"CASE WHEN bool_or({nan.format('x')}) THEN {NAN} ELSE min(x) END"


def maps(nan: str, zero: str = "x = 0") -> dict[str, dict[str, str]]:
    """The maps of a dialect; arguments are as those of `combines`, of x alone."""
    is_nan = nan.format("x")
    cubic = "7.978845608028654e-1 * (x + 4.4715e-2 * x * x * x)"
    return {
        "relu": {
            "f": f"CASE WHEN {is_nan} THEN x ELSE greatest(x, zero) END",
            "i": "greatest(x, zero)",
        },
        "leaky_relu": {"f": "CASE WHEN x < 0 THEN 1e-2 * x ELSE x END"},
        "sigmoid": {"f": "1e0 / (1e0 + exp(-x))"},
        "tanh": {"f": "tanh(x)"},
        "exp": {"f": "exp(x)"},
        "log": {"f": f"CASE WHEN {zero} THEN -{INFINITE} WHEN x > 0 THEN ln(x) ELSE {NAN} END"},
        "log2": {
            "f": f"CASE WHEN {zero} THEN -{INFINITE} WHEN x > 0 THEN ln(x) / {LOG_2} ELSE {NAN} END"
        },
        "log10": {
            "f": f"CASE WHEN {zero} THEN -{INFINITE} WHEN x > 0 THEN ln(x) / {LOG_10} "
            f"ELSE {NAN} END"
        },
        "log1p": {"f": LOG1P},
        **{
            name: {"f": f"{name}(x)"}
            for name in (
                *("sin", "cos", "tan", "asin", "acos", "atan"),
                *("sinh", "cosh", "asinh", "acosh", "atanh"),
            )
        },
        "sqrt": {"f": f"CASE WHEN x < 0 AND NOT ({zero}) THEN {NAN} ELSE sqrt(abs(x)) END"},
        "abs": real("abs(x)"),
        "neg": real("-x"),
        "square": real("x * x"),
        "reciprocal": {"f": f"CASE WHEN {zero} THEN {INFINITE} ELSE 1e0 / x END"},
        "sign": real(
            f"CASE WHEN {is_nan} THEN x WHEN {zero} THEN zero WHEN x > 0 THEN one ELSE -one END",
            "CASE WHEN x > 0 THEN 1 WHEN x < 0 THEN -1 ELSE 0 END",
        ),
        "gelu": {"f": f"5e-1 * x * (1e0 + tanh({cubic}))"},
        "silu": {"f": "x / (1e0 + exp(-x))"},
        "softplus": {
            "f": f"CASE WHEN x < -40 THEN exp(x) "
            f"ELSE {log1p_of_small('exp(-abs(x))')} + greatest(x, zero) END"
        },
        "expm1": {
            "f": "CASE WHEN x < -40 THEN -1e0 WHEN x > 700 THEN exp(x) "
            "ELSE 2e0 * sinh(x / 2e0) * exp(x / 2e0) END"
        },
        "floor": {"f": "floor(x)"},
        "ceil": {"f": "ceil(x)"},
        "trunc": {"f": "trunc(x)"},
        "isnan": {"f": indicator(is_nan)},
        "isinf": {"f": indicator(f"abs(x) = {INFINITE}")},
        "finite": {"f": f"CASE WHEN {FINITE} THEN x ELSE 0e0 END"},
        "isfinite": {"f": indicator(FINITE)},
        "not": real(indicator(zero), indicator("x = 0")) | {"b": "NOT x"},
    }


CASTS: Mapping[str, str] = {
    "fb": "x <> 0",
    "ib": "x <> 0",
    "bi": "CASE WHEN x THEN 1 ELSE 0 END",
    "bf": "CASE WHEN x THEN 1e0 ELSE 0e0 END",
    "fi": "trunc(x)",
}
"""From one kind of numbers to another, before they are cast to the very type."""
