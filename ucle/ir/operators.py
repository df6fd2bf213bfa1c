"""The operators of EinSum: ⊗ (combine), ⊕ (reduce) and pointwise maps, one table each.

An operator is declared once: what NumPy calls it, for which kinds of numbers there is one, how it
types, and the algebraic facts that the compiler may use. What it is in SQL stands in the dialect of
an engine (`ucle.sqlgen.dialects`). The kernels of an operator bear its name (`kernel`, where it is
another's). What is not declared is taken not to hold: the compiler then does what is slower and
right. Users add rows with `register_operator`, which hold the SQL that they write.

Operators are values: `ucle.language.parse` looks their names up, and all that comes after holds the
rows. So nothing that is registered later changes a program.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import lru_cache
from typing import Any

import numpy as np

from ucle.foundation.dtypes import DType, Scalar
from ucle.foundation.normal_quantile import normal_quantile
from ucle.foundation.philox import random_bits

Ufunc = Callable[..., Any]
Texts = Mapping[str, str]
"""What a user has written, by kind of number (b, i, f, c)."""
NONE = "0"
"""The derivative of what is flat wherever it has one."""
Interval = tuple[float, float]
"""The smallest and the largest value that an operator makes."""


class Typing(Enum):
    """How the types of operands and result follow from each other, by NumPy's rules."""

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


def _never(_: Scalar) -> bool:
    return False


@dataclass(frozen=True, eq=False)  # its functions are what it is
class Combine:
    """⊗, a scalar function of two values.

    `kinds` are the letters of the kinds of numbers (b, i, f, c) that have it, and `texts` the SQL
    of one that a user has registered.
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
    derivatives: tuple[str, str] | None = None
    """What is passed back to x and to y of g, by text over x, y, g and z, which is x ⊗ y."""

    @property
    def stem(self) -> str:
        """The name that its kernels bear."""
        return self.kernel or self.name

    @property
    def indicates(self) -> bool:
        """Whether the kernels and the SQL give 1 or 0, which is still to be made a yes or no."""
        return self.typing is Typing.COMPARISON

    def scalar(self, x: Scalar, y: Scalar, dtype: DType = DType.FLOAT64) -> Scalar:
        """Value at one pair of a type, by NumPy's rules."""
        return _evaluate(self.numpy, dtype, x, y)

    def text(self, left: str, right: str) -> str:
        """How a person would write it."""
        return f"{left} {self.symbol} {right}" if self.infix else f"{self.name}({left}, {right})"


@dataclass(frozen=True, eq=False)
class Reduce:
    """⊕, an aggregation over labels.

    `kinds` and `texts` are as those of a ⊗; an aggregation of no kind is `derived`:
    `ucle.language.resolve` writes it with others.
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
    derivative: str | None = None
    """What is passed back to each x of g, by text over x, g and z, which is what they reduce to;
    its aggregations are over the same labels."""

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
        """Whether it is written with other aggregations."""
        return not self.kinds

    def repeated(self, value: Scalar, count: int, dtype: DType) -> Scalar:
        """What `count` equal values of a type reduce to; needs `repeat`."""
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
    derivative: str | None = None
    """What is passed back to x of g, by text over x, g and z, which is the function's value."""
    always_finite: bool = False
    """Whether its values are finite on infinities and NaN, too."""

    @property
    def indicates(self) -> bool:
        """Whether the kernels and the SQL give 1 or 0, which is still to be made a yes or no."""
        return self.typing is Typing.COMPARISON

    def scalar(self, x: Scalar, dtype: DType = DType.FLOAT64) -> Scalar:
        """Value at one point of a type, by NumPy's rules."""
        return _evaluate(self.numpy, dtype, x)


COMMON = frozenset({0, 1, -1, math.inf, -math.inf})
"""Fills and constants of which the optimiser asks again and again."""


def _evaluate(function: Ufunc, dtype: DType, *arguments: Scalar) -> Scalar:
    if COMMON.issuperset(arguments):
        return _evaluated(function, dtype, *arguments)
    return _evaluated.__wrapped__(function, dtype, *arguments)  # others would stay for good


@lru_cache(maxsize=4096)
def _evaluated(function: Ufunc, dtype: DType, *arguments: Scalar) -> Scalar:
    with np.errstate(all="ignore"):
        return dtype.scalar(function(*(dtype.numpy.type(a) for a in arguments)))


# ---- NumPy ----

LOWEST: Mapping[str, Scalar] = {"b": False, "i": -(2**63)}
"""What the maximum of nothing is, by kind of number; of floats it is -inf."""
HIGHEST: Mapping[str, Scalar] = {"b": True, "i": 2**63 - 1}


def _sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def _gelu(x: Any) -> Any:
    return 0.5 * x * (1 + np.tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)))


def _softplus(x: Any) -> Any:
    return np.log1p(np.exp(-np.abs(x))) + np.maximum(x, 0)


def _reciprocal(x: Any) -> Any:
    return np.reciprocal(x) if np.iscomplexobj(x) else 1 / _unsigned(x)


def _unsigned(x: Any) -> Any:
    """The same with no sign before zeros; a number of Python's stays one, as its type is weak."""
    if np.iscomplexobj(x):
        return x
    return x + (np.zeros_like(x) if isinstance(x, np.ndarray | np.generic) else type(x)(0))


def _div(x: Any, y: Any) -> Any:
    return np.divide(x, _unsigned(y))


def _pow(x: Any, y: Any) -> Any:
    return np.power(_unsigned(x), y)


def _copysign(x: Any, y: Any) -> Any:
    return np.copysign(x, np.where(y < 0, -1, 1).astype(np.result_type(x, y))[()])


def _sparse_mult(x: Any, y: Any) -> Any:
    product = np.multiply(x, y)
    return np.where((x == 0) | (y == 0), np.zeros_like(product), product)


def _sparse_div(x: Any, y: Any) -> Any:
    quotient = _div(x, y)
    return np.where(x == 0, np.zeros_like(quotient), quotient)


def _when(c: Any, x: Any) -> Any:
    return np.where(c != 0, x, np.zeros_like(x))


def _unless(c: Any, x: Any) -> Any:
    return np.where(c != 0, np.zeros_like(x), x)


def _when_one(c: Any, x: Any) -> Any:
    return np.where(c != 0, x, np.ones_like(x))


def _when_lowest(c: Any, x: Any) -> Any:
    kind = np.asarray(x).dtype.kind
    return np.where(c != 0, x, np.full_like(x, LOWEST.get(kind, -math.inf)))


def _when_highest(c: Any, x: Any) -> Any:
    kind = np.asarray(x).dtype.kind
    return np.where(c != 0, x, np.full_like(x, HIGHEST.get(kind, math.inf)))


# ---- Algebra ----


def _is(*values: Scalar) -> Callable[[Scalar], bool]:
    """Whether a value is one of these."""
    return lambda value: value in values


def _is_end(of_floats: float, of_integers: int) -> Callable[[Scalar], bool]:
    """Whether a value is the end of its type; a float may equal that of the integers."""
    return lambda value: value == (of_floats if isinstance(value, float) else of_integers)


def _is_integer(number: int) -> Callable[[Scalar], bool]:
    """Whether a value is this integer; a float or a yes or no is none."""
    return lambda value: type(value) is int and value == number


def _is_not(zero: Scalar) -> Callable[[Scalar], bool]:
    return lambda value: value != zero


def _lowest(dtype: DType) -> Scalar:
    return LOWEST.get(dtype.kind, -math.inf)


def _highest(dtype: DType) -> Scalar:
    return HIGHEST.get(dtype.kind, math.inf)


def _same(value: Any, count: int) -> Any:
    """What an idempotent ⊕ makes of equal values."""
    return value


def _power(value: Any, count: int) -> Any:
    if not isinstance(value, int):
        return np.power(value, count)
    if abs(value) > 1 and count > 64:
        raise OverflowError(f"{value} ^ {count} does not fit 64 bits")
    return value**count


# ---- Derivatives that take a line of their own ----

FLAT = NONE, NONE

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

GELU = """
    0.5 * g * (1 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x))
               + x * (1 - square(tanh(0.7978845608028654 * (x + 0.044715 * x * x * x))))
               * (0.7978845608028654 + 0.1070322244089004 * x * x))
"""

COMBINES: dict[str, Combine] = {
    operator.name: operator
    for operator in (
        Combine(
            "mult",
            "*",
            "bifc",
            np.multiply,
            absorbs_left=_is(0),
            absorbs_right=_is(0),
            commutative=True,
            associative=True,
            distributes_over=frozenset({"sum", "any"}),
            derivatives=("g * y", "g * x"),
        ),
        # x + inf = inf for finite x: this is what makes min-plus sparse with fill inf.
        Combine(
            "add",
            "+",
            "bifc",
            np.add,
            absorbs_left=_is(math.inf, -math.inf),
            absorbs_right=_is(math.inf, -math.inf),
            commutative=True,
            associative=True,
            distributes_over=frozenset({"min", "max"}),
            derivatives=("g", "g"),
        ),
        Combine(
            "sub",
            "-",
            "ifc",
            np.subtract,
            absorbs_left=_is(math.inf, -math.inf),
            absorbs_right=_is(math.inf, -math.inf),
            derivatives=("g", "-g"),
        ),
        Combine(
            "div",
            "/",
            "fc",
            _div,
            derivatives=("g / y", "-g * z / y"),
        ),
        Combine(
            "pow",
            "^",
            "ifc",
            _pow,
            absorbs_left=_is(1),
            absorbs_right=_is(0),
            absorbs_all=True,
            derivatives=(
                "when(y != 0, g * y * x ^ (y - 1))",
                "unless(x == 0 and y >= 0, g * z * log(x))",
            ),
        ),
        Combine(
            "min",
            "min",
            "bif",
            np.minimum,
            absorbs_left=_is_end(-math.inf, -(2**63)),
            absorbs_right=_is_end(-math.inf, -(2**63)),
            commutative=True,
            associative=True,
            distributes_over=frozenset({"max", "min"}),
            infix=False,
            kernel="least",
            derivatives=(
                "when(x <= y, where(x == y, 0.5 * g, g))",
                "when(y <= x, where(x == y, 0.5 * g, g))",
            ),
        ),
        Combine(
            "max",
            "max",
            "bif",
            np.maximum,
            absorbs_left=_is_end(math.inf, 2**63 - 1),
            absorbs_right=_is_end(math.inf, 2**63 - 1),
            commutative=True,
            associative=True,
            distributes_over=frozenset({"max", "min"}),
            infix=False,
            kernel="greatest",
            derivatives=(
                "when(x >= y, where(x == y, 0.5 * g, g))",
                "when(y >= x, where(x == y, 0.5 * g, g))",
            ),
        ),
        Combine(
            "less",
            "<",
            "bif",
            np.less,
            Typing.COMPARISON,
            derivatives=FLAT,
        ),
        Combine(
            "less_equal",
            "<=",
            "bif",
            np.less_equal,
            Typing.COMPARISON,
            derivatives=FLAT,
        ),
        Combine(
            "equal",
            "==",
            "bifc",
            np.equal,
            Typing.COMPARISON,
            commutative=True,
            derivatives=FLAT,
        ),
        Combine(
            "not_equal",
            "!=",
            "bifc",
            np.not_equal,
            Typing.COMPARISON,
            commutative=True,
            derivatives=FLAT,
        ),
        Combine(
            "and",
            "and",
            "b",
            np.logical_and,
            Typing.LOGICAL,
            absorbs_left=_is(False),
            absorbs_right=_is(False),
            commutative=True,
            associative=True,
            distributes_over=frozenset({"any"}),
            kernel="mult",
            derivatives=FLAT,
        ),
        Combine(
            "or",
            "or",
            "b",
            np.logical_or,
            Typing.LOGICAL,
            absorbs_left=_is(True),
            absorbs_right=_is(True),
            commutative=True,
            associative=True,
            distributes_over=frozenset({"all"}),
            kernel="greatest",
            derivatives=FLAT,
        ),
        Combine(
            "xor",
            "xor",
            "b",
            np.logical_xor,
            Typing.LOGICAL,
            commutative=True,
            associative=True,
            kernel="not_equal",
            derivatives=FLAT,
        ),
        # Products and quotients by the rule of sparse libraries: 0 times inf or NaN is 0.
        Combine(
            "sparse_mult",
            "sparse_mult",
            "bifc",
            _sparse_mult,
            absorbs_left=_is(0),
            absorbs_right=_is(0),
            absorbs_all=True,
            commutative=True,
            associative=True,
            distributes_over=frozenset({"sum", "any"}),
            infix=False,
            derivatives=("sparse_mult(g, y)", "sparse_mult(g, x)"),
        ),
        Combine(
            "sparse_div",
            "sparse_div",
            "fc",
            _sparse_div,
            absorbs_left=_is(0),
            absorbs_all=True,
            infix=False,
            derivatives=("sparse_div(g, y)", "when(x, -sparse_div(sparse_mult(g, z), y))"),
        ),
        # where(c, x, y) is when(c, x) + unless(c, y): one of the two is 0, whatever the other is.
        Combine(
            "when",
            "when",
            "bifc",
            _when,
            Typing.SELECTION,
            absorbs_left=_is(0),
            absorbs_right=_is(0),
            absorbs_all=True,
            infix=False,
            derivatives=(NONE, "when(x, g)"),
        ),
        # As `when`, for an aggregation that leaves out what does not meet the condition.
        Combine(
            "when_one",
            "when_one",
            "bifc",
            _when_one,
            Typing.SELECTION,
            absorbs_left=_is(0),
            absorbs_right=_is(1),
            absorbs_all=True,
            infix=False,
            derivatives=(NONE, "when(x, g)"),
        ),
        Combine(
            "when_lowest",
            "when_lowest",
            "bif",
            _when_lowest,
            Typing.SELECTION,
            absorbs_left=_is(0),
            absorbs_right=_is_end(-math.inf, -(2**63)),
            absorbs_all=True,
            infix=False,
            derivatives=(NONE, "when(x, g)"),
        ),
        Combine(
            "when_highest",
            "when_highest",
            "bif",
            _when_highest,
            Typing.SELECTION,
            absorbs_left=_is(0),
            absorbs_right=_is_end(math.inf, 2**63 - 1),
            absorbs_all=True,
            infix=False,
            derivatives=(NONE, "when(x, g)"),
        ),
        Combine(
            "unless",
            "unless",
            "bifc",
            _unless,
            Typing.SELECTION,
            absorbs_left=_is_not(0),
            absorbs_right=_is(0),
            absorbs_all=True,
            infix=False,
            derivatives=(NONE, "unless(x, g)"),
        ),
        # A zero has no sign, nor has NaN.
        Combine(
            "atan2",
            "atan2",
            "f",
            lambda x, y: np.arctan2(_unsigned(x), _unsigned(y)),
            infix=False,
            derivatives=(
                "when(x != 0 or y != 0, g * y / (x * x + y * y))",
                "when(x != 0 or y != 0, -g * x / (x * x + y * y))",
            ),
        ),
        Combine(
            "hypot",
            "hypot",
            "f",
            np.hypot,
            absorbs_left=_is(math.inf, -math.inf),
            absorbs_right=_is(math.inf, -math.inf),
            absorbs_all=True,
            commutative=True,
            infix=False,
            derivatives=("g * x / z", "g * y / z"),
        ),
        Combine(
            "logaddexp",
            "logaddexp",
            "f",
            np.logaddexp,
            absorbs_left=_is(math.inf),
            absorbs_right=_is(math.inf),
            commutative=True,
            infix=False,
            derivatives=("g * sigmoid(x - y)", "g * sigmoid(y - x)"),
        ),
        Combine(
            "copysign",
            "copysign",
            "f",
            _copysign,
            absorbs_left=_is(0),
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
            lambda x, y: np.remainder(x, _unsigned(y)),
            absorbs_left=_is_integer(0),
            absorbs_right=_is_integer(0),
            infix=False,
            derivatives=("g", "-g * floor_divide(x, y)"),
        ),
        Combine(
            "floor_divide",
            "floor_divide",
            "if",
            lambda x, y: np.floor_divide(x, _unsigned(y)),
            absorbs_left=_is_integer(0),
            absorbs_right=_is_integer(0),
            infix=False,
            derivatives=FLAT,
        ),
        Combine(
            "bit_and",
            "bit_and",
            "bi",
            np.bitwise_and,
            absorbs_left=_is_integer(0),
            absorbs_right=_is_integer(0),
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
            absorbs_left=_is_integer(-1),
            absorbs_right=_is_integer(-1),
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
            absorbs_left=_is_integer(0),
            infix=False,
            derivatives=FLAT,
        ),
        Combine(
            "bitwise_right_shift",
            "bitwise_right_shift",
            "i",
            np.right_shift,
            absorbs_left=_is_integer(0),
            infix=False,
            derivatives=FLAT,
        ),
        Combine(
            "random_bits",
            "random_bits",
            "i",
            random_bits,
            infix=False,
            derivatives=FLAT,
        ),
    )
}

REDUCES: dict[str, Reduce] = {
    operator.name: operator
    for operator in (
        Reduce(
            "sum",
            "ifc",
            np.sum,
            identity=lambda dtype: dtype.scalar(0),
            repeat=lambda value, n: value * n if n else 0,
            repeat_by=COMBINES["mult"],
            merge=COMBINES["add"],
            symbol="+=",
            derivative="g",
        ),
        Reduce(
            "prod",
            "ifc",
            np.prod,
            identity=lambda dtype: dtype.scalar(1),
            repeat=_power,
            repeat_by=COMBINES["pow"],
            merge=COMBINES["mult"],
            symbol="*=",
            derivative=OTHERS,
        ),
        Reduce(
            "min",
            "bif",
            np.min,
            identity=_highest,
            repeat=_same,
            merge=COMBINES["min"],
            needs_one=True,
            derivative="when(x == z, g / sum(x == z))",
        ),
        Reduce(
            "max",
            "bif",
            np.max,
            identity=_lowest,
            repeat=_same,
            merge=COMBINES["max"],
            needs_one=True,
            derivative="when(x == z, g / sum(x == z))",
        ),
        Reduce(
            "any",
            "b",
            np.any,
            Typing.LOGICAL,
            identity=lambda _: False,
            repeat=_same,
            merge=COMBINES["or"],
            kernel="max",
            derivative=NONE,
        ),
        Reduce(
            "all",
            "b",
            np.all,
            Typing.LOGICAL,
            identity=lambda _: True,
            repeat=_same,
            merge=COMBINES["and"],
            kernel="min",
            derivative=NONE,
        ),
        Reduce(
            "count",
            "",
            np.count_nonzero,
            derivative=NONE,
        ),
        Reduce(
            "mean",
            "",
            np.mean,
            derivative="g / size",
        ),
        Reduce(
            "logsumexp",
            "",
            np.logaddexp.reduce,
            identity=lambda _: -math.inf,
            # No x is above z: where that is said, what the exponential is multiplied with may be
            # sparse, as it is finite.
            derivative="g * exp(min(x - finite(z), 0))",
        ),
    )
}

MAPS: dict[str, PointwiseMap] = {
    operator.name: operator
    for operator in (
        PointwiseMap(
            "relu",
            "if",
            lambda x: np.maximum(x, 0),
            derivative="when(x > 0, g)",
        ),
        PointwiseMap(
            "leaky_relu",
            "f",
            lambda x: np.where(x < 0, 0.01 * x, x),
            derivative="where(x > 0, g, 0.01 * g)",
        ),
        PointwiseMap(
            "sigmoid",
            "f",
            _sigmoid,
            derivative="g * z * (1 - z)",
        ),
        PointwiseMap(
            "tanh",
            "fc",
            np.tanh,
            derivative="g * (1 - square(z))",
        ),
        PointwiseMap(
            "exp",
            "fc",
            np.exp,
            derivative="g * z",
        ),
        PointwiseMap(
            "log",
            "fc",
            np.log,
            derivative="g / x",
        ),
        PointwiseMap(
            "log1p",
            "f",
            np.log1p,
            derivative="g / (1 + x)",
        ),
        PointwiseMap(
            "sin",
            "f",
            np.sin,
            derivative="g * cos(x)",
        ),
        PointwiseMap(
            "cos",
            "f",
            np.cos,
            derivative="-g * sin(x)",
        ),
        PointwiseMap(
            "tan",
            "f",
            np.tan,
            derivative="g * (1 + square(z))",
        ),
        PointwiseMap(
            "asin",
            "f",
            np.arcsin,
            derivative="g / sqrt(1 - square(x))",
        ),
        PointwiseMap(
            "acos",
            "f",
            np.arccos,
            derivative="-g / sqrt(1 - square(x))",
        ),
        PointwiseMap(
            "atan",
            "f",
            np.arctan,
            derivative="g / (1 + square(x))",
        ),
        PointwiseMap(
            "sinh",
            "f",
            np.sinh,
            derivative="g * cosh(x)",
        ),
        PointwiseMap(
            "cosh",
            "f",
            np.cosh,
            derivative="g * sinh(x)",
        ),
        PointwiseMap(
            "asinh",
            "f",
            np.arcsinh,
            derivative="g / hypot(x, 1)",
        ),
        PointwiseMap(
            "acosh",
            "f",
            np.arccosh,
            derivative="g / sqrt(square(x) - 1)",
        ),
        PointwiseMap(
            "atanh",
            "f",
            np.arctanh,
            derivative="g / (1 - square(x))",
        ),
        PointwiseMap(
            "expm1",
            "f",
            np.expm1,
            derivative="g * (1 + z)",
        ),
        PointwiseMap(
            "log2",
            "f",
            np.log2,
            derivative="g / (0.6931471805599453 * x)",
        ),
        PointwiseMap(
            "log10",
            "f",
            np.log10,
            derivative="g / (2.302585092994046 * x)",
        ),
        PointwiseMap(
            "sqrt",
            "fc",
            np.sqrt,
            derivative="0.5 * g / z",
        ),
        PointwiseMap(
            "abs",
            "ifc",
            np.abs,
            Typing.REAL,
            nothing_on="b",
            derivative="g * sign(x)",
        ),
        PointwiseMap(
            "neg",
            "ifc",
            np.negative,
            derivative="-g",
        ),
        PointwiseMap(
            "square",
            "ifc",
            np.square,
            derivative="2 * g * x",
        ),
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
        PointwiseMap(
            "gelu",
            "f",
            _gelu,
            derivative=GELU,
        ),
        PointwiseMap(
            "silu",
            "f",
            lambda x: x * _sigmoid(x),
            derivative="g * sigmoid(x) * (1 + x * (1 - sigmoid(x)))",
        ),
        PointwiseMap(
            "softplus",
            "f",
            _softplus,
            derivative="g * sigmoid(x)",
        ),
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
        PointwiseMap(
            "normal_quantile",
            "f",
            normal_quantile,
            derivative="2.5066282746310002 * g * exp(0.5 * z * z)",
        ),
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
            derivative="when(isfinite(x), g)",
            always_finite=True,
        ),
        PointwiseMap(
            "not",
            "bifc",
            np.logical_not,
            Typing.COMPARISON,
            derivative=NONE,
        ),
        PointwiseMap(
            "conj",
            "c",
            np.conj,
            nothing_on="bif",
            derivative="g",
        ),
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
}

# ---- Those that the compiler writes of its own accord ----

MULT, DIV, ADD, SUB = (COMBINES[name] for name in ("mult", "div", "add", "sub"))
SPARSE_MULT, SPARSE_DIV = COMBINES["sparse_mult"], COMBINES["sparse_div"]
AND, OR = COMBINES["and"], COMBINES["or"]
WHEN, UNLESS = COMBINES["when"], COMBINES["unless"]
WHEN_ONE, WHEN_LOWEST = COMBINES["when_one"], COMBINES["when_lowest"]
WHEN_HIGHEST = COMBINES["when_highest"]
SUM, ANY, MIN, MAX = (REDUCES[name] for name in ("sum", "any", "min", "max"))
PICK, PICK_OR_FILL = Reduce("pick", "bifc", np.sum), Reduce("pick_or_fill", "bifc", np.sum)
"""The one entry that a condition selects, as it is; the fill where there may be none. Which ⊕ and
which ⊗ that is, is up to the type of the tensor (`ucle.lowering.syntax_to_logical`)."""
