"""Rounding to whole numbers, division with a remainder, and the bits and signs of numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from ucle.foundation.philox import random_bits
from ucle.operators.algebra import (
    is_integer,
    is_one_of,
    unsigned,
)
from ucle.operators.rows import (
    FLAT,
    NONE,
    Combine,
    PointwiseMap,
)


def _copysign(x: Any, y: Any) -> Any:
    return np.copysign(x, np.where(y < 0, -1, 1).astype(np.result_type(x, y))[()])


RANDOM_BITS = Combine(
    "random_bits",
    "random_bits",
    "i",
    random_bits,
    infix=False,
    derivatives=FLAT,
)

COMBINES: tuple[Combine, ...] = (
    Combine(
        "copysign",
        "copysign",
        "f",
        _copysign,
        absorbs_left=is_one_of(0),
        absorbs_all=True,
        infix=False,
        derivatives=("where(y < 0, -g, g) * sign(x)", NONE),
    ),
    Combine(
        "nextafter",
        "nextafter",
        "f",
        np.nextafter,
        infix=False,
        derivatives=("g", NONE),
    ),
    # Of integers 0 divided by anything is 0, also by 0.
    Combine(
        "remainder",
        "remainder",
        "if",
        lambda x, y: np.remainder(x, unsigned(y)),
        absorbs_left=is_integer(0),
        absorbs_right=is_integer(0),
        infix=False,
        derivatives=("g", "-g * floor_divide(x, y)"),
    ),
    Combine(
        "floor_divide",
        "floor_divide",
        "if",
        lambda x, y: np.floor_divide(x, unsigned(y)),
        absorbs_left=is_integer(0),
        absorbs_right=is_integer(0),
        infix=False,
        derivatives=FLAT,
    ),
    Combine(
        "bit_and",
        "bit_and",
        "bi",
        np.bitwise_and,
        absorbs_left=is_integer(0),
        absorbs_right=is_integer(0),
        commutative=True,
        associative=True,
        infix=False,
        derivatives=FLAT,
    ),
    Combine(
        "bit_or",
        "bit_or",
        "bi",
        np.bitwise_or,
        absorbs_left=is_integer(-1),
        absorbs_right=is_integer(-1),
        commutative=True,
        associative=True,
        infix=False,
        derivatives=FLAT,
    ),
    Combine(
        "bit_xor",
        "bit_xor",
        "bi",
        np.bitwise_xor,
        commutative=True,
        associative=True,
        infix=False,
        derivatives=FLAT,
    ),
    Combine(
        "bitwise_left_shift",
        "bitwise_left_shift",
        "i",
        np.left_shift,
        absorbs_left=is_integer(0),
        infix=False,
        derivatives=FLAT,
    ),
    Combine(
        "bitwise_right_shift",
        "bitwise_right_shift",
        "i",
        np.right_shift,
        absorbs_left=is_integer(0),
        infix=False,
        derivatives=FLAT,
    ),
    RANDOM_BITS,
)

MAPS: tuple[PointwiseMap, ...] = (
    PointwiseMap(
        "floor",
        "f",
        np.floor,
        nothing_on="bi",
        derivative=NONE,
    ),
    PointwiseMap(
        "ceil",
        "f",
        np.ceil,
        nothing_on="bi",
        derivative=NONE,
    ),
    PointwiseMap(
        "trunc",
        "f",
        np.trunc,
        nothing_on="bi",
        derivative=NONE,
    ),
    PointwiseMap(
        "round",
        "f",
        np.round,
        nothing_on="bi",
        derivative=NONE,
    ),
)
