"""Sums, products, quotients, and the functions that are one of them.

A product and a quotient each have a form in which 0 annihilates all that it meets, NaN and
infinities too, as sparse libraries have it (`SPARSE_MULT`, `SPARSE_DIV`).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ucle.foundation.dtypes import DType
from ucle.operators import duckdb_formulas as formulas
from ucle.operators.algebra import (
    SUMS,
    drop_zero_signs,
    is_end,
    is_one_of,
)
from ucle.operators.duckdb_formulas import NAN, of_reals, pair
from ucle.operators.interval_rules import (
    absolute_values,
    difference_values,
    product_values,
    quotient_values,
    sum_values,
)
from ucle.operators.rows import (
    NONE,
    Combine,
    Division,
    Exactness,
    Extreme,
    PointwiseMap,
    Typing,
)
from ucle.operators.values import (
    Values,
    interval,
)


def _reciprocal(x: Any) -> Any:
    return np.reciprocal(x) if np.iscomplexobj(x) else 1 / drop_zero_signs(x)


def _div(x: Any, y: Any) -> Any:
    return np.divide(x, drop_zero_signs(y))


def _sparse_mult(x: Any, y: Any) -> Any:
    product = np.multiply(x, y)
    return np.where((x == 0) | (y == 0), np.zeros_like(product), product)


def _sparse_div(x: Any, y: Any) -> Any:
    quotient = _div(x, y)
    return np.where(x == 0, np.zeros_like(quotient), quotient)


def _least_values(a: Values, b: Values, dtype: DType) -> Values:
    nonzero = a.excludes_zero and b.excludes_zero
    return interval(min(a.low, b.low), min(a.high, b.high), dtype, rounding=0, nonzero=nonzero)


def _greatest_values(a: Values, b: Values, dtype: DType) -> Values:
    nonzero = a.excludes_zero and b.excludes_zero
    return interval(max(a.low, b.low), max(a.high, b.high), dtype, rounding=0, nonzero=nonzero)


def _square_values(a: Values, dtype: DType) -> Values:
    size = absolute_values(a, DType.FLOAT64) if dtype.kind == "f" else absolute_values(a, dtype)
    return product_values(size, size, dtype)


def _reciprocal_values(a: Values, dtype: DType) -> Values:
    return quotient_values(Values(1, 1), a, dtype)


def _part_values(a: Values, dtype: DType) -> Values:
    """The rule of parts of complex numbers."""
    return Values(finite=a.finite) if dtype.kind == "c" else interval(a.low, a.high, dtype)


EXTREMES = frozenset({"min", "max"})
"""The aggregations over which sums and choices by order distribute."""

# Products and quotients by the rule of sparse libraries: 0 times inf or NaN is 0.
SPARSE_MULT = Combine(
    "sparse_mult",
    "sparse_mult",
    "bifc",
    _sparse_mult,
    absorbs_left=is_one_of(0),
    absorbs_right=is_one_of(0),
    absorbs_all=True,
    commutative=True,
    associative=True,
    distributes_over=SUMS,
    infix=False,
    rule=product_values,
    keeps_nan=True,
    sparse_by_one=True,
    takes_masks=True,
    texts={
        "f": "CASE WHEN x = 0 OR y = 0 THEN zero ELSE x * y END",
        "i": "x * y",
        "b": "x AND y",
        "c": "CASE WHEN (x.re = 0 AND x.im = 0) OR (y.re = 0 AND y.im = 0) THEN zero "
        f"ELSE {formulas.PRODUCT} END",
    },
    uncast_kinds="i",
    derivatives=("sparse_mult(g, y)", "sparse_mult(g, x)"),
)

SPARSE_DIV = Combine(
    "sparse_div",
    "sparse_div",
    "fc",
    _sparse_div,
    absorbs_left=is_one_of(0),
    absorbs_all=True,
    infix=False,
    rule=quotient_values,
    keeps_nan=True,
    sparse_by_one=True,
    undefined_somewhere=True,
    texts={
        "f": f"CASE WHEN x = 0 THEN zero ELSE {formulas.QUOTIENT} END",
        "c": f"CASE WHEN x.re = 0 AND x.im = 0 THEN zero ELSE {formulas.COMPLEX_QUOTIENT} END",
    },
    derivatives=("sparse_div(g, y)", "when(x, -sparse_div(sparse_mult(g, z), y))"),
)

MULT = Combine(
    "mult",
    "*",
    "bifc",
    np.multiply,
    absorbs_left=is_one_of(0),
    absorbs_right=is_one_of(0),
    commutative=True,
    associative=True,
    distributes_over=SUMS,
    binding=9,
    rule=product_values,
    keeps_nan=True,
    sparse=SPARSE_MULT,
    sparse_by_one=True,
    takes_masks=True,
    texts=of_reals("x * y") | {"b": "x AND y", "c": formulas.PRODUCT},
    uncast_kinds="fi",
    derivatives=("g * y", "g * x"),
)

# x + inf = inf for finite x: this is what makes min-plus sparse with fill inf.
ADD = Combine(
    "add",
    "+",
    "bifc",
    np.add,
    absorbs_left=is_one_of(math.inf, -math.inf),
    absorbs_right=is_one_of(math.inf, -math.inf),
    commutative=True,
    associative=True,
    distributes_over=EXTREMES,
    binding=8,
    rule=sum_values,
    keeps_nan=True,
    keeps_infinity=True,
    texts=of_reals("x + y") | {"b": "x OR y", "c": pair("x.re + y.re", "x.im + y.im")},
    uncast_kinds="fi",
    derivatives=("g", "g"),
)

SUB = Combine(
    "sub",
    "-",
    "ifc",
    np.subtract,
    absorbs_left=is_one_of(math.inf, -math.inf),
    absorbs_right=is_one_of(math.inf, -math.inf),
    binding=8,
    rule=difference_values,
    keeps_nan=True,
    texts=of_reals("x - y") | {"c": pair("x.re - y.re", "x.im - y.im")},
    uncast_kinds="fi",
    derivatives=("g", "-g"),
)

DIV = Combine(
    "div",
    "/",
    "fc",
    _div,
    binding=9,
    rule=quotient_values,
    division=Division.TRUE,
    keeps_nan=True,
    sparse=SPARSE_DIV,
    sparse_by_one=True,
    undefined_somewhere=True,
    texts={"f": formulas.QUOTIENT, "c": formulas.COMPLEX_QUOTIENT},
    uncast_kinds="f",
    derivatives=("g / y", "-g * z / y"),
)

LEAST = Combine(
    "min",
    "min",
    "bif",
    np.minimum,
    absorbs_left=is_end(-math.inf, -(2**63)),
    absorbs_right=is_end(-math.inf, -(2**63)),
    commutative=True,
    associative=True,
    distributes_over=EXTREMES,
    infix=False,
    kernel="least",
    rule=_least_values,
    extreme=Extreme.LEAST,
    keeps_nan=True,
    keeps_infinity=True,
    exactness=Exactness.EXACT,
    sparse_by_one=True,
    texts={
        "f": f"CASE WHEN isnan(x) OR isnan(y) THEN {NAN} ELSE least(x, y) END",
        "i": "least(x, y)",
        "b": "x AND y",
    },
    uncast_kinds="i",
    derivatives=(
        "when(x <= y, where(x == y, 0.5 * g, g))",
        "when(y <= x, where(x == y, 0.5 * g, g))",
    ),
)

GREATEST = Combine(
    "max",
    "max",
    "bif",
    np.maximum,
    absorbs_left=is_end(math.inf, 2**63 - 1),
    absorbs_right=is_end(math.inf, 2**63 - 1),
    commutative=True,
    associative=True,
    distributes_over=EXTREMES,
    infix=False,
    kernel="greatest",
    rule=_greatest_values,
    extreme=Extreme.GREATEST,
    keeps_nan=True,
    keeps_infinity=True,
    exactness=Exactness.EXACT,
    sparse_by_one=True,
    texts=of_reals("greatest(x, y)") | {"b": "x OR y"},
    uncast_kinds="fi",
    derivatives=(
        "when(x >= y, where(x == y, 0.5 * g, g))",
        "when(y >= x, where(x == y, 0.5 * g, g))",
    ),
)

NEG = PointwiseMap(
    "neg",
    "ifc",
    np.negative,
    rule=lambda a, dtype: interval(-a.high, -a.low, dtype, rounding=0, nonzero=a.excludes_zero),
    keeps_nan=True,
    exactness=Exactness.EXACT,
    texts=of_reals("-x") | {"c": pair("-x.re", "-x.im")},
    uncast_kinds="fi",
    derivative="-g",
)

ABS = PointwiseMap(
    "abs",
    "ifc",
    np.abs,
    Typing.REAL,
    nothing_on="b",
    rule=absolute_values,
    keeps_nan=True,
    exactness=Exactness.EXACT,
    texts=of_reals("abs(x)") | {"c": pair(formulas.ABSOLUTE, "0e0")},
    derivative="g * sign(x)",
)

SQUARE = PointwiseMap(
    "square",
    "ifc",
    np.square,
    rule=_square_values,
    keeps_nan=True,
    texts=of_reals("x * x") | {"c": formulas.SQUARE},
    derivative="2 * g * x",
)

RECIPROCAL = PointwiseMap(
    "reciprocal",
    "fc",
    _reciprocal,
    rule=_reciprocal_values,
    keeps_nan=True,
    undefined_somewhere=True,
    texts={"f": formulas.RECIPROCAL, "c": formulas.COMPLEX_RECIPROCAL},
    uncast_kinds="f",
    derivative="-g * square(z)",
)

SIGN = PointwiseMap(
    "sign",
    "if",
    np.sign,
    rule=lambda a, dtype: interval(
        np.sign(a.low), np.sign(a.high), dtype, rounding=0, nonzero=a.excludes_zero
    ),
    keeps_nan=True,
    exactness=Exactness.EXACT,
    texts=of_reals("CASE WHEN isnan(x) THEN x ELSE sign(x) END", "sign(x)"),
    derivative=NONE,
)

CONJ = PointwiseMap(
    "conj",
    "c",
    np.conj,
    nothing_on="bif",
    rule=lambda a, dtype: a,
    keeps_nan=True,
    exactness=Exactness.EXACT,
    texts={"c": pair("x.re", "-x.im")},
    derivative="g",
)

REAL = PointwiseMap(
    "real",
    "c",
    np.real,
    Typing.REAL,
    nothing_on="bif",
    rule=_part_values,
    exactness=Exactness.EXACT,
    texts={"c": pair("x.re", "0e0")},
    derivative="g",
)

IMAG = PointwiseMap(
    "imag",
    "c",
    np.imag,
    Typing.REAL,
    zero_on="bif",
    rule=_part_values,
    exactness=Exactness.EXACT,
    texts={"c": pair("x.im", "0e0")},
    derivative=NONE,
)

COMBINES: tuple[Combine, ...] = (
    SPARSE_MULT,
    SPARSE_DIV,
    MULT,
    ADD,
    SUB,
    DIV,
    LEAST,
    GREATEST,
)

MAPS: tuple[PointwiseMap, ...] = (
    NEG,
    ABS,
    SQUARE,
    RECIPROCAL,
    SIGN,
    CONJ,
    REAL,
    IMAG,
)
