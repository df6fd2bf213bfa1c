"""Rounding to whole numbers, division with a remainder, and the bits and signs of numbers."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from ucle.foundation.dtypes import DType
from ucle.foundation.random_numbers import BITS, random_bits
from ucle.operators import duckdb_formulas as formulas
from ucle.operators import duckdb_random as random_texts
from ucle.operators.algebra import (
    drop_zero_signs,
    is_integer,
    is_one_of,
)
from ucle.operators.interval_rules import (
    absolute_values,
    inverse_values,
    product_values,
    rising,
)
from ucle.operators.rows import (
    FLAT,
    NONE,
    Combine,
    Division,
    Exactness,
    PointwiseMap,
)
from ucle.operators.values import (
    Values,
    anything,
    interval,
)


def _copysign(x: Any, y: Any) -> Any:
    return np.copysign(x, np.where(y < 0, -1, 1).astype(np.result_type(x, y))[()])


def _copysign_values(a: Values, b: Values, dtype: DType) -> Values:
    size = absolute_values(a, dtype)
    low = size.low if b.low >= 0 else -size.high
    return interval(low, size.high, dtype, rounding=0, nonzero=a.excludes_zero)


def _nextafter_values(a: Values, b: Values, dtype: DType) -> Values:
    return interval(min(a.low, b.low), max(a.high, b.high), dtype, rounding=0)


def _remainder_values(a: Values, b: Values, dtype: DType) -> Values:
    finite = dtype.kind == "i" or b.excludes_zero
    return interval(min(b.low, 0), max(b.high, 0), dtype, finite=finite)


def _floor_divide_values(a: Values, b: Values, dtype: DType) -> Values:
    if dtype.kind == "i":
        most = max(abs(a.low), abs(a.high))
        return interval(-most, most, dtype)
    if not b.excludes_zero:
        return interval(-math.inf, math.inf, dtype, finite=False)
    quotient = product_values(a, inverse_values(b), dtype)
    low, high = quotient.low - 1, quotient.high + 1
    return replace(interval(low, high, dtype), nonzero=False)


def _right_shift_values(a: Values, b: Values, dtype: DType) -> Values:
    return interval(min(a.low, 0), max(a.high, 0), dtype)


def _bit_count(x: Any) -> Any:
    words = np.asarray(x, np.int64)
    bits = np.unpackbits(words.reshape(-1).view(np.uint8)).reshape(*words.shape, 64)
    return bits.sum(axis=-1, dtype=np.int64)


def _any_bits(a: Values, b: Values, dtype: DType) -> Values:
    return anything(dtype)


COPYSIGN = Combine(
    "copysign",
    "copysign",
    "f",
    _copysign,
    absorbs_left=is_one_of(0),
    absorbs_all=True,
    infix=False,
    rule=_copysign_values,
    exactness=Exactness.EXACT,
    texts={"f": "CASE WHEN y < 0 THEN -abs(x) ELSE abs(x) END"},
    derivatives=("where(y < 0, -g, g) * sign(x)", NONE),
)

NEXTAFTER = Combine(
    "nextafter",
    "nextafter",
    "f",
    np.nextafter,
    infix=False,
    rule=_nextafter_values,
    keeps_nan=True,
    texts={"f": "nextafter(x, y)"},
    derivatives=("g", NONE),
)

# Of integers 0 divided by anything is 0, also by 0.
REMAINDER = Combine(
    "remainder",
    "remainder",
    "if",
    lambda x, y: np.remainder(x, drop_zero_signs(y)),
    absorbs_left=is_integer(0),
    absorbs_right=is_integer(0),
    infix=False,
    rule=_remainder_values,
    division=Division.FLOORED,
    keeps_nan=True,
    undefined_somewhere=True,
    texts={"f": formulas.REMAINDER, "i": formulas.INTEGER_REMAINDER},
    derivatives=("g", "-g * floor_divide(x, y)"),
)

FLOOR_DIVIDE = Combine(
    "floor_divide",
    "floor_divide",
    "if",
    lambda x, y: np.floor_divide(x, drop_zero_signs(y)),
    absorbs_left=is_integer(0),
    absorbs_right=is_integer(0),
    infix=False,
    rule=_floor_divide_values,
    division=Division.FLOORED,
    keeps_nan=True,
    undefined_somewhere=True,
    texts={"f": formulas.FLOORED, "i": formulas.INTEGER_FLOORED},
    derivatives=FLAT,
)

BIT_AND = Combine(
    "bit_and",
    "&",
    "bi",
    np.bitwise_and,
    absorbs_left=is_integer(0),
    absorbs_right=is_integer(0),
    commutative=True,
    associative=True,
    binding=6,
    rule=_any_bits,
    texts={"i": "x & y", "b": "x AND y"},
    derivatives=FLAT,
)

BIT_OR = Combine(
    "bit_or",
    "|",
    "bi",
    np.bitwise_or,
    absorbs_left=is_integer(-1),
    absorbs_right=is_integer(-1),
    commutative=True,
    associative=True,
    binding=5,
    rule=_any_bits,
    texts={"i": "x | y", "b": "x OR y"},
    derivatives=FLAT,
)

BIT_XOR = Combine(
    "bit_xor",
    "xor",
    "bi",
    np.bitwise_xor,
    commutative=True,
    associative=True,
    infix=False,
    rule=_any_bits,
    texts={"i": "xor(x, y)", "b": "x <> y"},
    derivatives=FLAT,
)

BITWISE_LEFT_SHIFT = Combine(
    "bitwise_left_shift",
    "<<",
    "i",
    np.left_shift,
    absorbs_left=is_integer(0),
    binding=7,
    rule=_any_bits,
    texts={"i": formulas.LEFT_SHIFT},
    derivatives=FLAT,
)

BITWISE_RIGHT_SHIFT = Combine(
    "bitwise_right_shift",
    ">>",
    "i",
    np.right_shift,
    absorbs_left=is_integer(0),
    binding=7,
    rule=_right_shift_values,
    texts={"i": formulas.RIGHT_SHIFT},
    derivatives=FLAT,
)

RANDOM_BITS = Combine(
    "random_bits",
    "random_bits",
    "i",
    random_bits,
    infix=False,
    rule=lambda left, right, dtype: Values(0, 2**BITS - 1),
    number_kernel=True,
    texts={"i": random_texts.RANDOM_BITS},
    derivatives=FLAT,
)

FLOOR = PointwiseMap(
    "floor",
    "f",
    np.floor,
    nothing_on="bi",
    rule=rising(np.floor, rounding=0),
    keeps_nan=True,
    exactness=Exactness.EXACT,
    texts={"f": "floor(x)"},
    derivative=NONE,
)

CEIL = PointwiseMap(
    "ceil",
    "f",
    np.ceil,
    nothing_on="bi",
    rule=rising(np.ceil, rounding=0),
    keeps_nan=True,
    exactness=Exactness.EXACT,
    texts={"f": "ceil(x)"},
    derivative=NONE,
)

TRUNC = PointwiseMap(
    "trunc",
    "f",
    np.trunc,
    nothing_on="bi",
    rule=rising(np.trunc, rounding=0),
    keeps_nan=True,
    exactness=Exactness.EXACT,
    texts={"f": "trunc(x)"},
    derivative=NONE,
)

ROUND = PointwiseMap(
    "round",
    "f",
    np.round,
    nothing_on="bi",
    rule=rising(np.round, rounding=0),
    keeps_nan=True,
    exactness=Exactness.EXACT,
    texts={"f": "round_even(x, 0)"},
    derivative=NONE,
)

# Of negative numbers the bits of two's complement, as in SQL: NumPy counts those of the absolute
# value.
BIT_COUNT = PointwiseMap(
    "bit_count",
    "i",
    _bit_count,
    rule=lambda a, dtype: Values(0, 64),
    texts={"i": "bit_count(x)"},
    derivative=NONE,
)

COMBINES: tuple[Combine, ...] = (
    COPYSIGN,
    NEXTAFTER,
    REMAINDER,
    FLOOR_DIVIDE,
    BIT_AND,
    BIT_OR,
    BIT_XOR,
    BITWISE_LEFT_SHIFT,
    BITWISE_RIGHT_SHIFT,
    RANDOM_BITS,
)

MAPS: tuple[PointwiseMap, ...] = (
    FLOOR,
    CEIL,
    TRUNC,
    ROUND,
    BIT_COUNT,
)
