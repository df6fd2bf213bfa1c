"""Comparisons, logic, and tests of numbers: the operators that say yes or no."""

from __future__ import annotations

import numpy as np

from ucle.operators.algebra import (
    is_one_of,
)
from ucle.operators.rows import (
    FLAT,
    NONE,
    Combine,
    PointwiseMap,
    Typing,
)

LESS = Combine(
    "less",
    "<",
    "bif",
    np.less,
    Typing.COMPARISON,
    derivatives=FLAT,
)

LESS_EQUAL = Combine(
    "less_equal",
    "<=",
    "bif",
    np.less_equal,
    Typing.COMPARISON,
    derivatives=FLAT,
)

EQUAL = Combine(
    "equal",
    "==",
    "bifc",
    np.equal,
    Typing.COMPARISON,
    commutative=True,
    derivatives=FLAT,
)

NOT_EQUAL = Combine(
    "not_equal",
    "!=",
    "bifc",
    np.not_equal,
    Typing.COMPARISON,
    commutative=True,
    derivatives=FLAT,
)

AND = Combine(
    "and",
    "and",
    "b",
    np.logical_and,
    Typing.LOGICAL,
    absorbs_left=is_one_of(False),
    absorbs_right=is_one_of(False),
    commutative=True,
    associative=True,
    distributes_over=frozenset({"any"}),
    kernel="mult",
    derivatives=FLAT,
)

OR = Combine(
    "or",
    "or",
    "b",
    np.logical_or,
    Typing.LOGICAL,
    absorbs_left=is_one_of(True),
    absorbs_right=is_one_of(True),
    commutative=True,
    associative=True,
    distributes_over=frozenset({"all"}),
    kernel="greatest",
    derivatives=FLAT,
)

XOR = Combine(
    "xor",
    "xor",
    "b",
    np.logical_xor,
    Typing.LOGICAL,
    commutative=True,
    associative=True,
    kernel="not_equal",
    derivatives=FLAT,
)

NOT = PointwiseMap(
    "not",
    "bifc",
    np.logical_not,
    Typing.COMPARISON,
    derivative=NONE,
)

COMBINES: tuple[Combine, ...] = (
    LESS,
    LESS_EQUAL,
    EQUAL,
    NOT_EQUAL,
    AND,
    OR,
    XOR,
)

MAPS: tuple[PointwiseMap, ...] = (
    NOT,
    PointwiseMap(
        "isnan",
        "fc",
        np.isnan,
        Typing.COMPARISON,
        derivative=NONE,
    ),
    PointwiseMap(
        "isinf",
        "fc",
        np.isinf,
        Typing.COMPARISON,
        derivative=NONE,
    ),
    PointwiseMap(
        "isfinite",
        "fc",
        np.isfinite,
        Typing.COMPARISON,
        derivative=NONE,
    ),
    PointwiseMap(
        "finite",
        "f",
        lambda x: np.where(np.isfinite(x), x, 0.0)[()],
        nothing_on="bi",
        always_finite=True,
        derivative="when(isfinite(x), g)",
    ),
)
