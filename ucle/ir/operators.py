"""The operators of EinSum: ⊗ (combine), ⊕ (reduce) and pointwise maps, one table each.

An operator is declared once: what NumPy calls it, what it is in SQL for each kind of number, how it
types, and the algebraic facts that the compiler may use. The kernels of an operator bear its name
(`kernel`, where it is another's). What is not declared is taken not to hold: the compiler then does
what is slower and right. Users add rows with `register_operator`.

Operators are values: `ucle.language.parse` looks their names up, and all that comes after holds the
rows. So nothing that is registered later changes a program.

SQL stands as text over the arguments ``x`` and ``y``, with ``zero`` and ``one`` for those numbers
in the type at hand, and ``x.re``, ``x.im`` for the parts of a complex number; `ucle.sqlgen` parses
it and puts trees in the places of arguments. DuckDB differs from NumPy in places, hence the cases:
it orders NaN above every number and holds it equal to itself, and raises where a root or a
logarithm has no real value.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from typing import Any

import numpy as np

from ucle.foundation.dtypes import DType, Scalar
from ucle.ir import formulas
from ucle.ir.formulas import NAN, pair

Ufunc = Callable[..., Any]
Texts = Mapping[str, str]
"""SQL by kind of number (b, i, f, c); a kind that is absent has no such operator."""
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

    `absorbs_left` tells of a value z whether z ⊗ x is one and the same for every finite x, and
    `absorbs_right` likewise of x ⊗ z: a join may then drop a pair whose missing side is worth z.
    `absorbs_all` says that this holds for NaN and infinite x, too. `distributes_over` names the ⊕
    with a ⊗ (b ⊕ c) = (a ⊗ b) ⊕ (a ⊗ c). `interval` is what it makes of finite numbers, which is
    finite, as a user declares it; `compiled` says that there are kernels.
    """

    name: str
    symbol: str
    sql: Texts
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

    `identity` is what ⊕ of nothing is worth in a type. `repeat` is what n equal values reduce to,
    `repeat_by` the ⊗ of value and n that gives the same (None: the value itself), and `merge` the
    ⊗ that joins two partial results; where `repeat` is not declared, every entry has to be met.
    `needs_one` says that ⊕ of nothing is an error, as in NumPy. An aggregation without SQL is
    `derived`: `ucle.language.resolve` writes it with others. `interval` is as that of a ⊗.
    """

    name: str
    sql: Texts
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
        return not self.sql

    def repeated(self, value: Scalar, count: int, dtype: DType) -> Scalar:
        """What `count` equal values of a type reduce to; needs `repeat`."""
        assert self.repeat is not None
        with np.errstate(all="ignore"):
            return dtype.scalar(self.repeat(value, count))


@dataclass(frozen=True, eq=False)
class PointwiseMap:
    """A scalar function of one value.

    A kind of number that has no text in `sql` is promoted to the next one that has. `nothing_on`
    holds the kinds on which the function does nothing, `zero_on` those of which it makes 0, and
    `interval` is as that of a ⊗.
    """

    name: str
    sql: Texts
    numpy: Ufunc
    typing: Typing = Typing.ARITHMETIC
    nothing_on: str = ""
    zero_on: str = ""
    interval: Interval | None = None
    compiled: bool = True

    @property
    def indicates(self) -> bool:
        """Whether the kernels and the SQL give 1 or 0, which is still to be made a yes or no."""
        return self.typing is Typing.COMPARISON

    def scalar(self, x: Scalar, dtype: DType = DType.FLOAT64) -> Scalar:
        """Value at one point of a type, by NumPy's rules."""
        return _evaluate(self.numpy, dtype, x)


@lru_cache(maxsize=4096)  # the optimiser asks of the same few fills again and again
def _evaluate(function: Ufunc, dtype: DType, *arguments: Scalar) -> Scalar:
    with np.errstate(all="ignore"):
        return dtype.scalar(function(*(dtype.numpy.type(a) for a in arguments)))


# ---- SQL ----


def _real(text: str, integer: str | None = None) -> dict[str, str]:
    """One text for floats and integers, or one for each."""
    return {"f": text, "i": integer or text}


def _indicator(condition: str) -> str:
    return f"CASE WHEN {condition} THEN one ELSE zero END"


_CUBIC = "0.7978845608028654 * (x + 0.044715 * x * x * x)"


# ---- NumPy ----


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


def _sparse_mult(x: Any, y: Any) -> Any:
    made = np.multiply(x, y)
    return np.where((x == 0) | (y == 0), np.zeros_like(made), made)


def _sparse_div(x: Any, y: Any) -> Any:
    made = _div(x, y)
    return np.where(x == 0, np.zeros_like(made), made)


def _when(c: Any, x: Any) -> Any:
    return np.where(c != 0, x, np.zeros_like(x))


def _unless(c: Any, x: Any) -> Any:
    return np.where(c != 0, np.zeros_like(x), x)


# ---- Algebra ----


def _is(*values: Scalar) -> Callable[[Scalar], bool]:
    """Whether a value is one of these."""
    return lambda value: value in values


def _is_not(zero: Scalar) -> Callable[[Scalar], bool]:
    return lambda value: value != zero


def _lowest(dtype: DType) -> Scalar:
    return {"b": False, "i": -(2**63)}.get(dtype.kind, -math.inf)


def _highest(dtype: DType) -> Scalar:
    return {"b": True, "i": 2**63 - 1}.get(dtype.kind, math.inf)


def _same(value: Any, count: int) -> Any:
    """What an idempotent ⊕ makes of equal values."""
    return value


def _power(value: Any, count: int) -> Any:
    if not isinstance(value, int):
        return np.power(value, count)
    if abs(value) > 1 and count > 64:
        raise OverflowError(f"{value} ^ {count} does not fit 64 bits")
    return value**count


COMBINES: dict[str, Combine] = {
    operator.name: operator
    for operator in (
        Combine(
            "mult",
            "*",
            _real("x * y") | {"b": "x AND y", "c": formulas.PRODUCT},
            np.multiply,
            absorbs_left=_is(0),
            absorbs_right=_is(0),
            commutative=True,
            associative=True,
            distributes_over=frozenset({"sum", "any"}),
        ),
        # x + inf = inf for finite x: this is what makes min-plus sparse with fill inf.
        Combine(
            "add",
            "+",
            _real("x + y") | {"b": "x OR y", "c": pair("x.re + y.re", "x.im + y.im")},
            np.add,
            absorbs_left=_is(math.inf, -math.inf),
            absorbs_right=_is(math.inf, -math.inf),
            commutative=True,
            associative=True,
            distributes_over=frozenset({"min", "max"}),
        ),
        Combine(
            "sub",
            "-",
            _real("x - y") | {"c": pair("x.re - y.re", "x.im - y.im")},
            np.subtract,
            absorbs_left=_is(math.inf, -math.inf),
            absorbs_right=_is(math.inf, -math.inf),
        ),
        Combine("div", "/", {"f": formulas.QUOTIENT, "c": formulas.COMPLEX_QUOTIENT}, _div),
        Combine(
            "pow",
            "^",
            _real(formulas.POWER, formulas.INTEGER_POWER) | {"c": formulas.COMPLEX_POWER},
            _pow,
            absorbs_left=_is(1),
            absorbs_right=_is(0),
            absorbs_all=True,
        ),
        Combine(
            "min",
            "min",
            {
                "f": f"CASE WHEN isnan(x) OR isnan(y) THEN {NAN} ELSE least(x, y) END",
                "i": "least(x, y)",
                "b": "x AND y",
            },
            np.minimum,
            absorbs_left=_is(-math.inf, -(2**63)),
            absorbs_right=_is(-math.inf, -(2**63)),
            commutative=True,
            associative=True,
            distributes_over=frozenset({"max", "min"}),
            infix=False,
        ),
        Combine(
            "max",
            "max",
            _real("greatest(x, y)") | {"b": "x OR y"},
            np.maximum,
            absorbs_left=_is(math.inf, 2**63 - 1),
            absorbs_right=_is(math.inf, 2**63 - 1),
            commutative=True,
            associative=True,
            distributes_over=frozenset({"max", "min"}),
            infix=False,
        ),
        Combine(
            "less",
            "<",
            {
                "f": _indicator("x < y AND NOT isnan(y)"),
                "i": _indicator("x < y"),
                "b": "y AND NOT x",
            },
            np.less,
            Typing.COMPARISON,
        ),
        Combine(
            "less_equal",
            "<=",
            {
                "f": _indicator("x <= y AND NOT isnan(y)"),
                "i": _indicator("x <= y"),
                "b": "y OR NOT x",
            },
            np.less_equal,
            Typing.COMPARISON,
        ),
        Combine(
            "equal",
            "==",
            {
                "f": _indicator("x = y AND NOT isnan(x)"),
                "i": _indicator("x = y"),
                "b": "x = y",
                "c": _indicator("x = y AND NOT isnan(x.re) AND NOT isnan(x.im)"),
            },
            np.equal,
            Typing.COMPARISON,
            commutative=True,
        ),
        Combine(
            "not_equal",
            "!=",
            {
                "f": _indicator("x <> y OR isnan(x)"),
                "i": _indicator("x <> y"),
                "b": "x <> y",
                "c": _indicator("x <> y OR isnan(x.re) OR isnan(x.im)"),
            },
            np.not_equal,
            Typing.COMPARISON,
            commutative=True,
        ),
        Combine(
            "and",
            "and",
            {"b": "x AND y"},
            np.logical_and,
            Typing.LOGICAL,
            absorbs_left=_is(False),
            absorbs_right=_is(False),
            commutative=True,
            associative=True,
            distributes_over=frozenset({"any"}),
            kernel="mult",
        ),
        Combine(
            "or",
            "or",
            {"b": "x OR y"},
            np.logical_or,
            Typing.LOGICAL,
            absorbs_left=_is(True),
            absorbs_right=_is(True),
            commutative=True,
            associative=True,
            distributes_over=frozenset({"all"}),
            kernel="max",
        ),
        Combine(
            "xor",
            "xor",
            {"b": "x <> y"},
            np.logical_xor,
            Typing.LOGICAL,
            commutative=True,
            associative=True,
            kernel="not_equal",
        ),
        # Products and quotients by the rule of sparse libraries: 0 times inf or NaN is 0.
        Combine(
            "sparse_mult",
            "sparse_mult",
            {
                "f": "CASE WHEN x = 0 OR y = 0 THEN zero ELSE x * y END",
                "i": "x * y",
                "b": "x AND y",
                "c": "CASE WHEN (x.re = 0 AND x.im = 0) OR (y.re = 0 AND y.im = 0) THEN zero "
                f"ELSE {formulas.PRODUCT} END",
            },
            _sparse_mult,
            absorbs_left=_is(0),
            absorbs_right=_is(0),
            absorbs_all=True,
            commutative=True,
            associative=True,
            distributes_over=frozenset({"sum", "any"}),
            infix=False,
        ),
        Combine(
            "sparse_div",
            "sparse_div",
            {
                "f": f"CASE WHEN x = 0 THEN zero ELSE {formulas.QUOTIENT} END",
                "c": "CASE WHEN x.re = 0 AND x.im = 0 THEN zero "
                f"ELSE {formulas.COMPLEX_QUOTIENT} END",
            },
            _sparse_div,
            absorbs_left=_is(0),
            absorbs_all=True,
            infix=False,
        ),
        # where(c, x, y) is when(c, x) + unless(c, y): one of the two is 0, whatever the other is.
        Combine(
            "when",
            "when",
            _real("CASE WHEN x <> 0 THEN y ELSE zero END")
            | {"b": "x AND y", "c": "CASE WHEN x.re <> 0 OR x.im <> 0 THEN y ELSE zero END"},
            _when,
            Typing.SELECTION,
            absorbs_left=_is(0),
            absorbs_right=_is(0),
            absorbs_all=True,
            infix=False,
        ),
        Combine(
            "unless",
            "unless",
            _real("CASE WHEN x <> 0 THEN zero ELSE y END")
            | {"b": "y AND NOT x", "c": "CASE WHEN x.re <> 0 OR x.im <> 0 THEN zero ELSE y END"},
            _unless,
            Typing.SELECTION,
            absorbs_left=_is_not(0),
            absorbs_right=_is(0),
            absorbs_all=True,
            infix=False,
        ),
    )
}

REDUCES: dict[str, Reduce] = {
    operator.name: operator
    for operator in (
        Reduce(
            "sum",
            _real("sum(x)") | {"c": pair("sum(x.re)", "sum(x.im)")},
            np.sum,
            identity=lambda dtype: dtype.scalar(0),
            repeat=lambda value, n: value * n if n else 0,
            repeat_by=COMBINES["mult"],
            merge=COMBINES["add"],
            symbol="+=",
        ),
        Reduce(
            "prod",
            {"f": "product(x)", "i": formulas.INTEGER_PRODUCT, "c": formulas.REPEATED_PRODUCT},
            np.prod,
            identity=lambda dtype: dtype.scalar(1),
            repeat=_power,
            repeat_by=COMBINES["pow"],
            merge=COMBINES["mult"],
            symbol="*=",
        ),
        Reduce(
            "min",
            {
                "f": f"CASE WHEN bool_or(isnan(x)) THEN {NAN} ELSE min(x) END",
                "i": "min(x)",
                "b": "bool_and(x)",
            },
            np.min,
            identity=_highest,
            repeat=_same,
            merge=COMBINES["min"],
            needs_one=True,
        ),
        Reduce(
            "max",
            _real("max(x)") | {"b": "bool_or(x)"},
            np.max,
            identity=_lowest,
            repeat=_same,
            merge=COMBINES["max"],
            needs_one=True,
        ),
        Reduce(
            "any",
            {"b": "bool_or(x)"},
            np.any,
            Typing.LOGICAL,
            identity=lambda _: False,
            repeat=_same,
            merge=COMBINES["or"],
            kernel="max",
        ),
        Reduce(
            "all",
            {"b": "bool_and(x)"},
            np.all,
            Typing.LOGICAL,
            identity=lambda _: True,
            repeat=_same,
            merge=COMBINES["and"],
            kernel="min",
        ),
        Reduce("count", {}, np.count_nonzero),
        Reduce("mean", {}, np.mean),
        Reduce("logsumexp", {}, np.logaddexp.reduce, identity=lambda _: -math.inf),
    )
}

MAPS: dict[str, PointwiseMap] = {
    operator.name: operator
    for operator in (
        PointwiseMap("relu", _real("greatest(x, zero)"), lambda x: np.maximum(x, 0)),
        PointwiseMap(
            "leaky_relu",
            {"f": "CASE WHEN x < 0 THEN 0.01 * x ELSE x END"},
            lambda x: np.where(x < 0, 0.01 * x, x),
        ),
        PointwiseMap("sigmoid", {"f": "1.0 / (1.0 + exp(-x))"}, _sigmoid),
        PointwiseMap(
            "tanh",
            {
                "f": "tanh(x)",
                "c": formulas.COMPLEX_TANH,
            },
            np.tanh,
        ),
        PointwiseMap(
            "exp",
            {"f": "exp(x)", "c": formulas.COMPLEX_EXPONENTIAL},
            np.exp,
        ),
        PointwiseMap(
            "log", {"f": formulas.logarithm("x"), "c": formulas.COMPLEX_LOGARITHM}, np.log
        ),
        PointwiseMap("log1p", {"f": formulas.LOG1P}, np.log1p),
        PointwiseMap(
            "sqrt",
            {"f": formulas.ROOT, "c": formulas.COMPLEX_ROOT},
            np.sqrt,
        ),
        PointwiseMap(
            "abs",
            _real("abs(x)") | {"c": pair(formulas.ABSOLUTE, "0e0")},
            np.abs,
            Typing.REAL,
            nothing_on="b",
        ),
        PointwiseMap("neg", _real("-x") | {"c": pair("-x.re", "-x.im")}, np.negative),
        PointwiseMap(
            "square",
            _real("x * x") | {"c": formulas.SQUARE},
            np.square,
        ),
        PointwiseMap(
            "reciprocal",
            {"f": formulas.RECIPROCAL, "c": formulas.COMPLEX_RECIPROCAL},
            _reciprocal,
        ),
        PointwiseMap(
            "sign", _real("CASE WHEN isnan(x) THEN x ELSE sign(x) END", "sign(x)"), np.sign
        ),
        PointwiseMap("gelu", {"f": f"0.5 * x * (1.0 + tanh({_CUBIC}))"}, _gelu),
        PointwiseMap("silu", {"f": "x / (1.0 + exp(-x))"}, lambda x: x * _sigmoid(x)),
        PointwiseMap("softplus", {"f": formulas.SOFTPLUS}, _softplus),
        PointwiseMap("floor", {"f": "floor(x)"}, np.floor, nothing_on="bi"),
        PointwiseMap("ceil", {"f": "ceil(x)"}, np.ceil, nothing_on="bi"),
        PointwiseMap("round", {"f": "round_even(x, 0)"}, np.round, nothing_on="bi"),
        PointwiseMap(
            "isnan",
            {"f": _indicator("isnan(x)"), "c": _indicator("isnan(x.re) OR isnan(x.im)")},
            np.isnan,
            Typing.COMPARISON,
        ),
        PointwiseMap(
            "isfinite",
            {
                "f": _indicator("isfinite(x)"),
                "c": _indicator("isfinite(x.re) AND isfinite(x.im)"),
            },
            np.isfinite,
            Typing.COMPARISON,
        ),
        PointwiseMap(
            "not",
            _real(_indicator("x = 0")) | {"b": "NOT x", "c": _indicator("x.re = 0 AND x.im = 0")},
            np.logical_not,
            Typing.COMPARISON,
        ),
        PointwiseMap("conj", {"c": pair("x.re", "-x.im")}, np.conj, nothing_on="bif"),
        PointwiseMap("real", {"c": pair("x.re", "0e0")}, np.real, Typing.REAL, nothing_on="bif"),
        PointwiseMap("imag", {"c": pair("x.im", "0e0")}, np.imag, Typing.REAL, zero_on="bif"),
    )
}

# ---- Those that the compiler writes of its own accord ----

MULT, ADD = COMBINES["mult"], COMBINES["add"]
SPARSE_MULT, SPARSE_DIV = COMBINES["sparse_mult"], COMBINES["sparse_div"]
WHEN, UNLESS = COMBINES["when"], COMBINES["unless"]
SUM, ANY, MIN, MAX = (REDUCES[name] for name in ("sum", "any", "min", "max"))
