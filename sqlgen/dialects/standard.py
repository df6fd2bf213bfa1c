"""Texts that Spark and PostgreSQL have in common, all of them in standard SQL.

A text stands over ``x``, ``y``, ``zero`` and ``one``, as in `ucle.sqlgen.dialects.duckdb`. As in
DuckDB, a zero has no sign, and what is divided by zero is infinite. Of float32, what is computed
here may be a float64, which is made one of 32 bits again around the text. Where a dialect has a
better text, its own table comes after these.
"""

from __future__ import annotations

from collections.abc import Mapping

from ucle.foundation.dtypes import DType
from ucle.operators import (
    ABS,
    ACOS,
    ACOSH,
    ADD,
    ALL,
    AND,
    ANY,
    ASIN,
    ASINH,
    ATAN,
    ATAN2,
    ATANH,
    BIT_AND,
    BIT_OR,
    BIT_XOR,
    CEIL,
    COPYSIGN,
    COS,
    COSH,
    DIV,
    EQUAL,
    EXP,
    EXPM1,
    FINITE,
    FLOOR,
    GELU,
    GREATEST,
    HYPOT,
    ISFINITE,
    ISINF,
    ISNAN,
    LEAKY_RELU,
    LEAST,
    LESS,
    LESS_EQUAL,
    LOG,
    LOG1P,
    LOG2,
    LOG10,
    MAX,
    MIN,
    MULT,
    NEG,
    NOT,
    NOT_EQUAL,
    OR,
    RECIPROCAL,
    RELU,
    REMAINDER,
    SIGMOID,
    SIGN,
    SILU,
    SIN,
    SINH,
    SOFTPLUS,
    SPARSE_DIV,
    SPARSE_MULT,
    SQRT,
    SQUARE,
    SUB,
    SUM,
    TAN,
    TANH,
    TRUNC,
    UNLESS,
    WHEN,
    WHEN_HIGHEST,
    WHEN_LOWEST,
    WHEN_ONE,
    XOR,
    Combine,
    PointwiseMap,
    Reduce,
    Texts,
)
from ucle.udf_kernels.element_types import ELEMENT_TYPES

TYPES: Mapping[DType, str] = {
    dtype: ELEMENT_TYPES[dtype.tag].sql for dtype in DType if dtype.kind != "c"
}
"""Names of element types, where a dialect has no others; complex numbers have none."""

DOUBLE = "DOUBLE PRECISION"
NAN, INFINITE = f"CAST('NaN' AS {DOUBLE})", f"CAST('Infinity' AS {DOUBLE})"
WIDE = "DECIMAL(38, 0)"
"""Has the sums and products of two integers of 64 bits; a cast to 64 bits raises beyond them."""
EXACT = 2**53
"""Below, every integer is a float64, and no other rounds to one."""
LOG_2, LOG_10 = "0.6931471805599453e0", "2.302585092994046e0"
IS_FINITE = f"abs(x) < {INFINITE}"
"""NaN is above infinity."""


def real(text: str, integer: str | None = None) -> dict[str, str]:
    """One text for floats and integers, or one for each."""
    return {"f": text, "i": integer or text}


def indicator(condition: str) -> str:
    """1 or 0 in the type at hand, for a condition that holds or does not."""
    return f"CASE WHEN {condition} THEN one ELSE zero END"


def log1p_of_small(argument: str) -> str:
    """``log(1 + x)`` of -0.5 to 1, without adding 1: twice the artanh of x / (2 + x)."""
    return f"2e0 * atanh({argument} / (2e0 + {argument}))"


LOGARITHM_OF_NEXT = (
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


def integer_floored(quotient: str) -> str:
    """The quotient of integers rounded down, with the text of one that is cut off."""
    return (
        f"CASE WHEN y = 0 THEN 0 WHEN y = -1 THEN -x "
        f"ELSE {quotient} - CASE WHEN {_OTHER_SIGN} THEN 1 ELSE 0 END END"
    )


def integer_power(refused: str, beyond: str) -> str:
    """A power of integers as far as it is exact in a float64, and two errors."""
    return (
        f"CASE WHEN y < 0 THEN {refused} WHEN x = -1 THEN 1 - 2 * (y % 2) "
        f"WHEN abs(power(x, y)) < {EXACT} THEN CAST(power(x, y) AS BIGINT) ELSE {beyond} END"
    )


BOOLEANS: Mapping[Combine, str] = {
    MULT: "x AND y",
    ADD: "x OR y",
    LEAST: "x AND y",
    GREATEST: "x OR y",
    LESS: "y AND NOT x",
    LESS_EQUAL: "y OR NOT x",
    EQUAL: "x = y",
    NOT_EQUAL: "x <> y",
    AND: "x AND y",
    OR: "x OR y",
    XOR: "x <> y",
    SPARSE_MULT: "x AND y",
    WHEN: "x AND y",
    WHEN_ONE: "y OR NOT x",
    WHEN_LOWEST: "x AND y",
    WHEN_HIGHEST: "y OR NOT x",
    UNLESS: "y AND NOT x",
    BIT_AND: "x AND y",
    BIT_OR: "x OR y",
    BIT_XOR: "x <> y",
}


def combines(nan: str) -> dict[Combine, dict[str, str]]:
    """The ⊗ of a dialect that orders NaN above every number.

    Args:
        nan: the condition that {0} is NaN.
    """
    no_nan = f"NOT ({nan.format('x')}) AND NOT ({nan.format('y')})"
    some_nan = f"{nan.format('x')} OR {nan.format('y')}"
    x_zero, y_zero = "x = 0", "y = 0"
    both_zero = f"({x_zero} AND {y_zero})"
    lower = f"(x < y AND NOT {both_zero})"
    quotient = f"CASE WHEN {y_zero} THEN x * {INFINITE} ELSE x / y END"
    texts: dict[Combine, dict[str, str]] = {
        MULT: real("x * y"),
        ADD: real("x + y"),
        SUB: real("x - y"),
        DIV: {"f": quotient},
        LEAST: {"f": f"CASE WHEN {some_nan} THEN {NAN} ELSE least(x, y) END", "i": "least(x, y)"},
        GREATEST: {
            "f": f"CASE WHEN {some_nan} THEN {NAN} ELSE greatest(x, y) END",
            "i": "greatest(x, y)",
        },
        LESS: {"f": indicator(f"{lower} AND {no_nan}"), "i": indicator("x < y")},
        LESS_EQUAL: {
            "f": indicator(f"(x <= y OR {both_zero}) AND {no_nan}"),
            "i": indicator("x <= y"),
        },
        EQUAL: {
            "f": indicator(f"(x = y OR {both_zero}) AND {no_nan}"),
            "i": indicator("x = y"),
        },
        NOT_EQUAL: {
            "f": indicator(f"(x <> y AND NOT {both_zero}) OR {some_nan}"),
            "i": indicator("x <> y"),
        },
        SPARSE_MULT: {
            "f": f"CASE WHEN {x_zero} OR {y_zero} THEN zero ELSE x * y END",
            "i": "x * y",
        },
        SPARSE_DIV: {
            "f": f"CASE WHEN {x_zero} THEN zero WHEN {y_zero} THEN x * {INFINITE} ELSE x / y END"
        },
        WHEN: {
            "f": f"CASE WHEN {x_zero} THEN zero ELSE y END",
            "i": "CASE WHEN x = 0 THEN zero ELSE y END",
        },
        WHEN_ONE: {
            "f": f"CASE WHEN {x_zero} THEN one ELSE y END",
            "i": "CASE WHEN x = 0 THEN one ELSE y END",
        },
        WHEN_LOWEST: {
            "f": f"CASE WHEN {x_zero} THEN -{INFINITE} ELSE y END",
            "i": "CASE WHEN x = 0 THEN CAST(-9223372036854775808 AS BIGINT) ELSE y END",
        },
        WHEN_HIGHEST: {
            "f": f"CASE WHEN {x_zero} THEN {INFINITE} ELSE y END",
            "i": "CASE WHEN x = 0 THEN CAST(9223372036854775807 AS BIGINT) ELSE y END",
        },
        UNLESS: {
            "f": f"CASE WHEN {x_zero} THEN y ELSE zero END",
            "i": "CASE WHEN x = 0 THEN y ELSE zero END",
        },
        HYPOT: {"f": HYPOTENUSE},
        COPYSIGN: {"f": f"CASE WHEN y < 0 AND NOT ({y_zero}) THEN -abs(x) ELSE abs(x) END"},
        ATAN2: {
            "f": f"atan2(CASE WHEN {x_zero} THEN 0e0 ELSE x END, "
            f"CASE WHEN {y_zero} THEN 0e0 ELSE y END)"
        },
        REMAINDER: {"i": INTEGER_REMAINDER},
        BIT_AND: {"i": "x & y"},
        BIT_OR: {"i": "x | y"},
    }
    for row, text in BOOLEANS.items():
        texts.setdefault(row, {})["b"] = text
    return texts


REDUCES: Mapping[Reduce, Texts] = {
    SUM: {"f": "sum(x)", "i": f"sum(CAST(x AS {WIDE}))"},
    MIN: {"i": "min(x)", "b": "bool_and(x)"},
    MAX: {"f": "max(x)", "i": "max(x)", "b": "bool_or(x)"},
    ANY: {"b": "bool_or(x)"},
    ALL: {"b": "bool_and(x)"},
}


def least_of(nan: str) -> str:
    """The minimum of floats, NaN where there is one."""
    return f"CASE WHEN bool_or({nan.format('x')}) THEN {NAN} ELSE min(x) END"


def maps(nan: str) -> dict[PointwiseMap, dict[str, str]]:
    """The maps of a dialect; `nan` is that of `combines`."""
    is_nan, zero = nan.format("x"), "x = 0"
    cubic = "7.978845608028654e-1 * (x + 4.4715e-2 * x * x * x)"
    return {
        RELU: {
            "f": f"CASE WHEN {is_nan} THEN x ELSE greatest(x, zero) END",
            "i": "greatest(x, zero)",
        },
        LEAKY_RELU: {"f": "CASE WHEN x < 0 THEN 1e-2 * x ELSE x END"},
        SIGMOID: {"f": "1e0 / (1e0 + exp(-x))"},
        TANH: {"f": "tanh(x)"},
        EXP: {"f": "exp(x)"},
        LOG: {"f": f"CASE WHEN {zero} THEN -{INFINITE} WHEN x > 0 THEN ln(x) ELSE {NAN} END"},
        LOG2: {
            "f": f"CASE WHEN {zero} THEN -{INFINITE} WHEN x > 0 THEN ln(x) / {LOG_2} ELSE {NAN} END"
        },
        LOG10: {
            "f": f"CASE WHEN {zero} THEN -{INFINITE} WHEN x > 0 THEN ln(x) / {LOG_10} "
            f"ELSE {NAN} END"
        },
        LOG1P: {"f": LOGARITHM_OF_NEXT},
        **{
            row: {"f": f"{row.name}(x)"}
            for row in (
                *(SIN, COS, TAN, ASIN, ACOS, ATAN),
                *(SINH, COSH, ASINH, ACOSH, ATANH),
            )
        },
        SQRT: {"f": f"CASE WHEN x < 0 AND NOT ({zero}) THEN {NAN} ELSE sqrt(abs(x)) END"},
        ABS: real("abs(x)"),
        NEG: real("-x"),
        SQUARE: real("x * x"),
        RECIPROCAL: {"f": f"CASE WHEN {zero} THEN {INFINITE} ELSE 1e0 / x END"},
        SIGN: real(
            f"CASE WHEN {is_nan} THEN x WHEN {zero} THEN zero WHEN x > 0 THEN one ELSE -one END",
            "CASE WHEN x > 0 THEN 1 WHEN x < 0 THEN -1 ELSE 0 END",
        ),
        GELU: {"f": f"5e-1 * x * (1e0 + tanh({cubic}))"},
        SILU: {"f": "x / (1e0 + exp(-x))"},
        SOFTPLUS: {
            "f": f"CASE WHEN x < -40 THEN exp(x) "
            f"ELSE {log1p_of_small('exp(-abs(x))')} + greatest(x, zero) END"
        },
        EXPM1: {
            "f": "CASE WHEN x < -40 THEN -1e0 WHEN x > 700 THEN exp(x) "
            "ELSE 2e0 * sinh(x / 2e0) * exp(x / 2e0) END"
        },
        FLOOR: {"f": "floor(x)"},
        CEIL: {"f": "ceil(x)"},
        TRUNC: {"f": "trunc(x)"},
        ISNAN: {"f": indicator(is_nan)},
        ISINF: {"f": indicator(f"abs(x) = {INFINITE}")},
        FINITE: {"f": f"CASE WHEN {IS_FINITE} THEN x ELSE 0e0 END"},
        ISFINITE: {"f": indicator(IS_FINITE)},
        NOT: real(indicator(zero), indicator("x = 0")) | {"b": "NOT x"},
    }


CASTS: Mapping[str, str] = {
    "fb": "x <> 0",
    "ib": "x <> 0",
    "bi": "CASE WHEN x THEN 1 ELSE 0 END",
    "bf": "CASE WHEN x THEN 1e0 ELSE 0e0 END",
    "fi": "trunc(x)",
}
"""From one kind of numbers to another, before they are cast to the very type."""
