"""Aggregations, and the combinations that join their partial results."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ucle.operators.algebra import (
    highest,
    lowest,
)
from ucle.operators.arithmetic import ADD, GREATEST, LEAST, MULT
from ucle.operators.comparisons import AND, OR
from ucle.operators.powers import POW
from ucle.operators.rows import (
    NONE,
    Reduce,
    Typing,
)

OTHERS = """
    g * where(x == 0,
              when(sum(x == 0) == 1, prod(where(x == 0, 1, x)))
              + when(sum(x == 0) == 2,
                     sparse_mult(sum(when(x == 0, x)) - x, prod(where(x == 0, 1, x)))),
              when(sum(x == 0) == 0, prod(where(x == 0, 1, x)) / x)
              + when(sum(x == 0) == 1,
                     sparse_mult(sum(when(x == 0, x)), prod(where(x == 0, 1, x)) / x)))
"""
"""What a product passes back: it times the product of all others, also where some are 0.

The sums of zeros are 0, but grow with them: so the derivative of this is that of the product of all
others, too."""


def _same(value: Any, count: int) -> Any:
    """What an idempotent ⊕ makes of equal values."""
    return value


def _power(value: Any, count: int) -> Any:
    if not isinstance(value, int):
        return np.power(value, count)
    if abs(value) > 1 and count > 64:
        raise OverflowError(f"{value} ^ {count} does not fit 64 bits")
    return value**count


SUM = Reduce(
    "sum",
    "ifc",
    np.sum,
    identity=lambda dtype: dtype.scalar(0),
    repeat=lambda value, n: value * n if n else 0,
    repeat_by=MULT,
    merge=ADD,
    symbol="+=",
    derivative="g",
)

PROD = Reduce(
    "prod",
    "ifc",
    np.prod,
    identity=lambda dtype: dtype.scalar(1),
    repeat=_power,
    repeat_by=POW,
    merge=MULT,
    symbol="*=",
    derivative=OTHERS,
)

MIN = Reduce(
    "min",
    "bif",
    np.min,
    identity=highest,
    repeat=_same,
    merge=LEAST,
    needs_one=True,
    derivative="when(x == z, g / sum(x == z))",
)

MAX = Reduce(
    "max",
    "bif",
    np.max,
    identity=lowest,
    repeat=_same,
    merge=GREATEST,
    needs_one=True,
    derivative="when(x == z, g / sum(x == z))",
)

ANY = Reduce(
    "any",
    "b",
    np.any,
    Typing.LOGICAL,
    identity=lambda _: False,
    repeat=_same,
    merge=OR,
    kernel="max",
    derivative=NONE,
)

ALL = Reduce(
    "all",
    "b",
    np.all,
    Typing.LOGICAL,
    identity=lambda _: True,
    repeat=_same,
    merge=AND,
    kernel="min",
    derivative=NONE,
)

COUNT = Reduce(
    "count",
    "",
    np.count_nonzero,
    derivative=NONE,
)

MEAN = Reduce(
    "mean",
    "",
    np.mean,
    derivative="g / size",
)

LOGSUMEXP = Reduce(
    "logsumexp",
    "",
    np.logaddexp.reduce,
    identity=lambda _: -math.inf,
    derivative="g * exp(min(x - finite(z), 0))",
)

REDUCES: tuple[Reduce, ...] = (
    SUM,
    PROD,
    MIN,
    MAX,
    ANY,
    ALL,
    COUNT,
    MEAN,
    LOGSUMEXP,
)

PICK, PICK_OR_FILL = Reduce("pick", "bifc", np.sum), Reduce("pick_or_fill", "bifc", np.sum)
"""The one entry that a condition selects, as it is; the fill where there may be none. Which ⊕ and
which ⊗ that is, is up to the type of the tensor (`ucle.lowering.syntax_to_logical`)."""
