"""Sums, products, quotients, and the functions that are one of them.

A product and a quotient each have a form in which 0 annihilates all that it meets, NaN and
infinities too, as sparse libraries have it (`SPARSE_MULT`, `SPARSE_DIV`).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ucle.operators.algebra import (
    is_end,
    is_one_of,
    unsigned,
)
from ucle.operators.rows import (
    NONE,
    Combine,
    PointwiseMap,
    Typing,
)


def _reciprocal(x: Any) -> Any:
    return np.reciprocal(x) if np.iscomplexobj(x) else 1 / unsigned(x)


def _div(x: Any, y: Any) -> Any:
    return np.divide(x, unsigned(y))


def _sparse_mult(x: Any, y: Any) -> Any:
    product = np.multiply(x, y)
    return np.where((x == 0) | (y == 0), np.zeros_like(product), product)


def _sparse_div(x: Any, y: Any) -> Any:
    quotient = _div(x, y)
    return np.where(x == 0, np.zeros_like(quotient), quotient)


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
    distributes_over=frozenset({"sum", "any"}),
    infix=False,
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
    distributes_over=frozenset({"sum", "any"}),
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
    distributes_over=frozenset({"min", "max"}),
    derivatives=("g", "g"),
)

SUB = Combine(
    "sub",
    "-",
    "ifc",
    np.subtract,
    absorbs_left=is_one_of(math.inf, -math.inf),
    absorbs_right=is_one_of(math.inf, -math.inf),
    derivatives=("g", "-g"),
)

DIV = Combine(
    "div",
    "/",
    "fc",
    _div,
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
    distributes_over=frozenset({"max", "min"}),
    infix=False,
    kernel="least",
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
    distributes_over=frozenset({"max", "min"}),
    infix=False,
    kernel="greatest",
    derivatives=(
        "when(x >= y, where(x == y, 0.5 * g, g))",
        "when(y >= x, where(x == y, 0.5 * g, g))",
    ),
)

NEG = PointwiseMap(
    "neg",
    "ifc",
    np.negative,
    derivative="-g",
)

ABS = PointwiseMap(
    "abs",
    "ifc",
    np.abs,
    Typing.REAL,
    nothing_on="b",
    derivative="g * sign(x)",
)

SQUARE = PointwiseMap(
    "square",
    "ifc",
    np.square,
    derivative="2 * g * x",
)

CONJ = PointwiseMap(
    "conj",
    "c",
    np.conj,
    nothing_on="bif",
    derivative="g",
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
    PointwiseMap(
        "reciprocal",
        "fc",
        _reciprocal,
        derivative="-g * square(z)",
    ),
    PointwiseMap(
        "sign",
        "if",
        np.sign,
        derivative=NONE,
    ),
    CONJ,
    PointwiseMap(
        "real",
        "c",
        np.real,
        Typing.REAL,
        nothing_on="bif",
        derivative="g",
    ),
    PointwiseMap(
        "imag",
        "c",
        np.imag,
        Typing.REAL,
        zero_on="bif",
        derivative=NONE,
    ),
)
