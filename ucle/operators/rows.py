"""A row for each operator: ⊗ (`Combine`), ⊕ (`Reduce`) and functions of one value (`PointwiseMap`).

A row holds the facts of its operator: its meaning in NumPy, the kinds of numbers that have it, how
it types, its algebra, its derivative, its intervals, what it makes of NaN and of 0, what it rounds,
and its SQL. Passes ask the row, and know no operator by its name. The kernels of an operator bear
its name (`stem`, where it is another's). What is not declared is taken not to hold: the compiler
then does what is slower and right.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import field
from enum import Enum
from functools import lru_cache
from typing import Any

import numpy as np

from ucle.foundation.dataclasses import dataclass
from ucle.foundation.dtypes import DType, Scalar
from ucle.operators.values import Values

Ufunc = Callable[..., Any]
Texts = Mapping[str, str]
"""The SQL of DuckDB over x and y, by kind of number (b, i, f, c)."""
NONE = "0"
"""The derivative of what is flat wherever it has one."""
FLAT = NONE, NONE
"""The derivatives of a ⊗ that is flat in both operands."""
Interval = tuple[float, float]
"""The smallest and the largest value that an operator makes."""
CombineRule = Callable[[Values, Values, DType], Values]
"""The values of x ⊗ y by those of x and of y, computed in a type."""
MapRule = Callable[[Values, DType], Values]
"""The values of a function by those of its argument, computed in a type."""
ReduceRule = Callable[[Values, Scalar, int, DType], Values]
"""The values of an aggregate by those of its entries, their fill, their number and their type."""


class Typing(Enum):
    """The rules of NumPy by which the type of a result follows from those of the operands."""

    ARITHMETIC = "arithmetic"
    """Operands are promoted to the type of the result, which NumPy's own function tells."""
    COMPARISON = "comparison"
    """Operands are promoted to a common type; the result says yes or no."""
    LOGICAL = "logical"
    """Operands are taken as yes or no, and so is the result."""
    SELECTION = "selection"
    """The first operand is taken as yes or no; the result has the type of the second."""
    REAL = "real"
    """A map whose result is real also where its argument is complex."""


class Division(Enum):
    """The quotients: of 0 they make 0 wherever the divisor is not 0."""

    TRUE = "true"
    FLOORED = "floored"
    """Rounded down, or the remainder of that: a quotient that is no number makes NaN."""


class Extreme(Enum):
    """The operators that pick one of their operands by the order of numbers."""

    LEAST = "least"
    GREATEST = "greatest"


class Exactness(Enum):
    """Results that are as exact as the operands, as nothing has rounded them."""

    ROUNDED = "rounded"
    EXACT = "exact"
    """Entries as they are, or whole numbers of them."""
    TRUTH = "truth"
    """1 or 0."""


def _never(_: Scalar) -> bool:
    return False


@dataclass(frozen=True, eq=False)  # its functions are what it is
class Combine:
    """⊗, a scalar function of two values.

    `kinds` are the letters of the kinds of numbers (b, i, f, c) that have it, and `texts` the SQL
    of DuckDB for each.
    `absorbs_left` tells of a value z whether z ⊗ x is one and the same for every finite x, and
    `absorbs_right` likewise of x ⊗ z: a join may then drop a pair whose missing side is worth z.
    `absorbs_all` says that this holds for NaN and infinite x, too. `distributes_over` names the ⊕
    with a ⊗ (b ⊕ c) = (a ⊗ b) ⊕ (a ⊗ c). `interval` is what it makes of finite numbers, which is
    finite, as a user declares it; `compiled` says that there are kernels.
    """

    name: str
    symbol: str
    kinds: str
    numpy: Ufunc
    typing: Typing = Typing.ARITHMETIC
    absorbs_left: Callable[[Scalar], bool] = _never
    absorbs_right: Callable[[Scalar], bool] = _never
    absorbs_all: bool = False
    commutative: bool = False
    associative: bool = False
    distributes_over: frozenset[str] = frozenset()
    infix: bool = True
    kernel: str = ""
    interval: Interval | None = None
    compiled: bool = True
    texts: Texts = field(default_factory=dict)
    uncast_kinds: str = ""
    """The kinds of numbers of which its text has the type of its operands, without a cast."""
    rule: CombineRule | None = None
    """Its values by those of its operands; without one it may make anything, or `interval`."""
    division: Division | None = None
    """The kind of quotient that it is, if it is one."""
    extreme: Extreme | None = None
    """The end of the order of numbers that it picks, if it picks one of its operands."""
    keeps_nan: bool = False
    """True if ⊗ of NaN and what is stored is NaN. (What a 0 annihilates, it annihilates in either
    form.)"""
    keeps_infinity: bool = False
    """True if ⊗ of numbers that are finite or one and the same infinity is such a number, too."""
    sparse: Combine | None = None
    """The form in which 0 annihilates all that it meets, NaN and infinities too."""
    exactness: Exactness = Exactness.ROUNDED
    sparse_by_one: bool = False
    """True if the result may be sparse where one operand is; of others both have to be."""
    takes_masks: bool = False
    """True if 1 and 0, or true and false, are one more factor of a chain of it."""
    binding: int = 0
    """The precedence of an infix operator; 0 for one that is written as a function."""
    number_kernel: bool = False
    """True if a kernel computes it of two numbers, too, as its SQL takes much longer."""
    undefined_somewhere: bool = False
    """True if it makes NaN or infinities of some finite numbers."""
    keeps_where: bool | None = None
    """The truth of x at which x ⊗ y is y, where it is 0 otherwise; None if it is no such choice."""
    derivatives: tuple[str, str] | None = None
    """The gradients of x and of y, as texts over x, y, z = x ⊗ y and g, the gradient of z."""

    @property
    def stem(self) -> str:
        """The name that its kernels bear."""
        return self.kernel or self.name

    @property
    def indicates(self) -> bool:
        """True if kernels and SQL return 1 or 0, which is still to be cast to a boolean."""
        return self.typing is Typing.COMPARISON

    def scalar(self, x: Scalar, y: Scalar, dtype: DType = DType.FLOAT64) -> Scalar:
        """Return the value at one pair of a type, by NumPy's rules."""
        return _evaluate(self.numpy, dtype, x, y)

    def text(self, left: str, right: str) -> str:
        """Return the expression as it is written in a program."""
        return f"{left} {self.symbol} {right}" if self.infix else f"{self.symbol}({left}, {right})"


@dataclass(frozen=True, eq=False)
class Reduce:
    """⊕, an aggregation over labels.

    `kinds` and `texts` are as those of a ⊗; an aggregation of no kind is `derived`:
    `ucle.language.resolve` puts its `definition` in its place.
    `identity` is what ⊕ of nothing is worth in a type. `repeat` is what n equal values reduce to,
    `repeat_by` the ⊗ of value and n that gives the same (None: the value itself), and `merge` the
    ⊗ that joins two partial results; where `repeat` is not declared, every entry has to be met.
    `needs_one` says that ⊕ of nothing is an error, as in NumPy. `interval` is as that of a ⊗.
    """

    name: str
    kinds: str
    numpy: Ufunc
    typing: Typing = Typing.ARITHMETIC
    identity: Callable[[DType], Scalar] | None = None
    repeat: Callable[[Any, int], Scalar] | None = None
    repeat_by: Combine | None = None
    merge: Combine | None = None
    symbol: str = ""
    needs_one: bool = False
    kernel: str = ""
    interval: Interval | None = None
    compiled: bool = True
    texts: Texts = field(default_factory=dict)
    uncast_kinds: str = ""
    """The kinds of numbers of which its text has the type of its entries, without a cast."""
    rule: ReduceRule | None = None
    """Its values by those of its entries; without one it may make anything, or `interval`."""
    extreme: Extreme | None = None
    """The end of the order of numbers that it picks, if it picks one of its entries."""
    keeps_nan: bool = False
    """True if one NaN makes the aggregate NaN."""
    exactness: Exactness = Exactness.ROUNDED
    select: Combine | None = None
    """The selection that gives an entry where a condition holds, and elsewhere what changes no
    aggregate."""
    has_scan: bool = False
    """True if programs may write its prefix scan, under the name of `scan_name`."""
    may_alternate: bool = False
    """True if partial aggregates may change their sign from one entry to the next."""
    has_window: bool = True
    """True if its SQL is also that of a window function."""
    picks: bool = False
    """True if it picks the one entry that a condition selects; see `PICK`."""
    definition: str = ""
    """What a `derived` aggregation stands for, as a text over x; its aggregations are over the same
    labels, and ``size`` is the number of entries of the one before it."""
    undefined_somewhere: bool = False
    """True if it makes NaN or infinities of some finite numbers."""
    derivative: str | None = None
    """The gradient of each x, as a text over x, their aggregate z and g, the gradient of z; its
    aggregations are over the same labels."""

    @property
    def stem(self) -> str:
        """The name that its kernels bear."""
        return self.kernel or self.name

    @property
    def assignment(self) -> str:
        """The operator of a statement that aggregates so."""
        return self.symbol or f"{self.name}="

    @property
    def derived(self) -> bool:
        """True if it is written with other aggregations."""
        return not self.kinds

    @property
    def scan_name(self) -> str:
        """The name of its prefix scan in programs."""
        return f"cum{self.name}"

    def reduce_copies(self, value: Scalar, count: int, dtype: DType) -> Scalar:
        """Return the aggregate of `count` equal values of a type; needs `repeat`."""
        assert self.repeat is not None
        with np.errstate(all="ignore"):
            return dtype.scalar(self.repeat(value, count))


@dataclass(frozen=True, eq=False)
class PointwiseMap:
    """A scalar function of one value.

    A kind of number that is none of its `kinds` is promoted to the next one that is. `nothing_on`
    holds the kinds on which the function does nothing, `zero_on` those of which it makes 0;
    `interval` and `texts` are as those of a ⊗.
    """

    name: str
    kinds: str
    numpy: Ufunc
    typing: Typing = Typing.ARITHMETIC
    nothing_on: str = ""
    zero_on: str = ""
    interval: Interval | None = None
    compiled: bool = True
    texts: Texts = field(default_factory=dict)
    uncast_kinds: str = ""
    """The kinds of numbers of which its text has the type of its argument, without a cast."""
    rule: MapRule | None = None
    """Its values by those of its argument; without one it may make anything, or `interval`."""
    keeps_nan: bool = False
    """True if NaN is mapped to NaN."""
    exactness: Exactness = Exactness.ROUNDED
    kernel_kinds: str = ""
    """The kinds of numbers that have a kernel; `kinds`, where none are named."""
    bounded: bool = False
    """True if its value is in the range of float32 where the argument is."""
    undefined_somewhere: bool = False
    """True if it makes NaN or infinities of some finite numbers."""
    derivative: str | None = None
    """The gradient of x, as a text over x, the value z and g, the gradient of z."""
    always_finite: bool = False
    """True if its values are finite for infinities and NaN, too."""

    @property
    def indicates(self) -> bool:
        """True if kernels and SQL return 1 or 0, which is still to be cast to a boolean."""
        return self.typing is Typing.COMPARISON

    def scalar(self, x: Scalar, dtype: DType = DType.FLOAT64) -> Scalar:
        """Return the value at one point of a type, by NumPy's rules."""
        return _evaluate(self.numpy, dtype, x)


COMMON = frozenset({0, 1, -1, math.inf, -math.inf})
"""Fills and constants of which the optimiser asks again and again."""


def _evaluate(function: Ufunc, dtype: DType, *arguments: Scalar) -> Scalar:
    if COMMON.issuperset(arguments):
        return _evaluate_common(function, dtype, *arguments)
    return _evaluate_common.__wrapped__(function, dtype, *arguments)  # others would stay for good


@lru_cache(maxsize=4096)
def _evaluate_common(function: Ufunc, dtype: DType, *arguments: Scalar) -> Scalar:
    with np.errstate(all="ignore"):
        return dtype.scalar(function(*(dtype.numpy.type(a) for a in arguments)))
