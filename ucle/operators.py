"""The operators of EinSum: ⊗ (combine), ⊕ (reduce) and pointwise maps, one table each.

An operator is declared once: what NumPy calls it, what it is in SQL, the stem of the kernels that
compute it, and the algebraic facts that the compiler may use. SQL stands as text over the
arguments ``x`` and ``y``; `ucle.sqlgen` parses it and puts trees in their place.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Ufunc = Callable[..., Any]


def _quiet(function: Ufunc, *arguments: float) -> float:
    with np.errstate(all="ignore"):
        return float(function(*(np.float64(a) for a in arguments)))


@dataclass(frozen=True)
class Combine:
    """⊗, a scalar function of two values.

    `annihilators` are the values z with z ⊗ x = x ⊗ z = z for every finite x: a join may drop a
    pair whose missing side is worth such a z.
    """

    name: str
    symbol: str
    sql: str
    numpy: Ufunc
    annihilators: tuple[float, ...] = ()
    commutative: bool = False
    distributes_over_sum: bool = False
    infix: bool = True

    def scalar(self, x: float, y: float) -> float:
        """Value at one pair, by NumPy's rules."""
        return _quiet(self.numpy, x, y)

    def text(self, left: str, right: str) -> str:
        """How a person would write it."""
        return f"{left} {self.symbol} {right}" if self.infix else f"{self.name}({left}, {right})"


@dataclass(frozen=True)
class Reduce:
    """⊕, an aggregation over labels.

    `repeat` is what n equal values reduce to, `repeat_sql` the same in SQL of a value x and a
    number n; `merge` names the ⊗ that joins two partial results.
    """

    name: str
    assignment: str
    sql: str
    numpy: Ufunc
    identity: float
    repeat: Callable[[float, int], float]
    repeat_sql: str
    merge: str


@dataclass(frozen=True)
class PointwiseMap:
    """A scalar function of one value."""

    name: str
    sql: str
    numpy: Ufunc

    def scalar(self, x: float) -> float:
        """Value at one point, by NumPy's rules."""
        return _quiet(self.numpy, x)


def _sigmoid(x: Any) -> Any:
    return 1.0 / (1.0 + np.exp(-x))


def _unless_nan(sql: str) -> str:
    """DuckDB orders NaN above every number: what takes the smaller must look for it."""
    return f"CASE WHEN isnan(x) OR isnan(y) THEN 'nan'::DOUBLE ELSE {sql} END"


def _leaky_relu(x: Any) -> Any:
    return np.where(x < 0, 0.01 * x, x)


def _logarithm(argument: str) -> str:
    """Ln with NumPy's answers where the real logarithm has none."""
    return (
        f"CASE WHEN {argument} > 0 THEN ln({argument}) "
        f"WHEN {argument} = 0 THEN '-inf'::DOUBLE ELSE 'nan'::DOUBLE END"
    )


COMBINES: dict[str, Combine] = {
    operator.name: operator
    for operator in (
        Combine(
            "mult",
            "*",
            "x * y",
            np.multiply,
            annihilators=(0.0,),
            commutative=True,
            distributes_over_sum=True,
        ),
        # x + inf = inf for finite x: this is what makes min-plus sparse with fill inf.
        Combine("add", "+", "x + y", np.add, annihilators=(math.inf, -math.inf), commutative=True),
        Combine("sub", "-", "x - y", np.subtract),
        Combine("div", "/", "x / y", np.divide),
        Combine("pow", "^", "power(x, y)", np.power),
        Combine("min", "min", _unless_nan("least(x, y)"), np.minimum, (), True, infix=False),
        Combine("max", "max", "greatest(x, y)", np.maximum, (), True, infix=False),
    )
}

REDUCES: dict[str, Reduce] = {
    operator.name: operator
    for operator in (
        Reduce(
            "sum",
            "+=",
            "sum(x)",
            np.sum,
            identity=0.0,
            repeat=lambda value, n: value * n if n else 0.0,
            repeat_sql="x * n",
            merge="add",
        ),
        Reduce(
            "prod",
            "*=",
            "product(x)",
            np.prod,
            identity=1.0,
            repeat=lambda value, n: _quiet(np.power, value, n),
            repeat_sql="power(x, n)",
            merge="mult",
        ),
        Reduce(
            "min",
            "min=",
            "CASE WHEN bool_or(isnan(x)) THEN 'nan'::DOUBLE ELSE min(x) END",
            np.min,
            identity=math.inf,
            repeat=lambda value, n: value if n else math.inf,
            repeat_sql="x",
            merge="min",
        ),
        Reduce(
            "max",
            "max=",
            "max(x)",
            np.max,
            identity=-math.inf,
            repeat=lambda value, n: value if n else -math.inf,
            repeat_sql="x",
            merge="max",
        ),
    )
}

# DuckDB orders NaN above every number, so greatest() keeps it as np.maximum does; sqrt and ln of
# what has no real value are NaN in NumPy and errors in SQL, hence the cases.
MAPS: dict[str, PointwiseMap] = {
    operator.name: operator
    for operator in (
        PointwiseMap("relu", "greatest(x, 0.0)", lambda x: np.maximum(x, 0.0)),
        PointwiseMap("leaky_relu", "CASE WHEN x < 0 THEN 0.01 * x ELSE x END", _leaky_relu),
        PointwiseMap("sigmoid", "1.0 / (1.0 + exp(-x))", _sigmoid),
        PointwiseMap("tanh", "tanh(x)", np.tanh),
        PointwiseMap("exp", "exp(x)", np.exp),
        PointwiseMap("log", _logarithm("x"), np.log),
        PointwiseMap("log1p", _logarithm("(1.0 + x)"), np.log1p),
        PointwiseMap("sqrt", "CASE WHEN x < 0 THEN 'nan'::DOUBLE ELSE sqrt(x) END", np.sqrt),
        PointwiseMap("abs", "abs(x)", np.abs),
        PointwiseMap("neg", "-x", np.negative),
        PointwiseMap("square", "x * x", np.square),
        PointwiseMap("reciprocal", "1.0 / x", np.reciprocal),
        PointwiseMap("sign", "CASE WHEN isnan(x) THEN x ELSE sign(x)::DOUBLE END", np.sign),
    )
}
