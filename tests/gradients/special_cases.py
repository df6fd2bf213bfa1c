"""First and second derivatives where functions bend, break or grow without limit, with PyTorch's.

A case is a function of one tensor in ucle's lazy tensors and in PyTorch. What is kept of it are the
gradient of its weighed sum, and the gradient of that gradient's sum. `make_special_vectors.py`
writes PyTorch's answers to ``special_vectors.json``, or compares them with PyTorch.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

INF, NAN = math.inf, math.nan

WHOLE = (-2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0, 3.0)
ENDS = (-INF, INF)
WITH_ENDS = (*ENDS, *WHOLE)
NOT_NEGATIVE = (0.0, 0.5, 1.0, 2.0, INF)
ROWS = ((0.0, 2.0, 3.0), (0.0, 0.0, 3.0), (0.0, 0.0, 0.0), (2.0, 2.0, -1.0), (-3.0, 1.0, 2.0))


@dataclass(frozen=True)
class Special:
    """A function, where it is looked at, and how far it is PyTorch's."""

    ucle: str
    """Over ``u`` (ucle), ``x`` and ``y``, which is a constant."""
    torch: str
    """Over ``t`` (PyTorch), ``F`` (its functions), ``x`` and ``y``."""
    x: tuple[object, ...] = WITH_ENDS
    y: tuple[object, ...] = (0.0,)
    instead: float | None = None
    """The value of ucle where PyTorch has NaN.

    That happens where 0 is multiplied by an unbounded factor in a branch that is not taken, and
    where PyTorch has no second derivative."""


def same(text: str, x: tuple[object, ...] = WITH_ENDS, **rest: object) -> Special:
    """A function that is called the same in both."""
    return Special(f"u.{text}", f"t.{text}", x, **rest)  # type: ignore[arg-type]


PAIRS = {
    "x": (0.0, 0.0, 1.0, 2.0, 2.0, -1.0, 3.0, INF, -INF, 1.0),
    "y": (0.0, 1.0, 0.0, 2.0, -2.0, -1.0, 0.5, 1.0, 1.0, INF),
}

SPECIAL: dict[str, Special] = {
    **{name: same(f"{name}(x)") for name in ("abs", "sign", "exp", "expm1", "sigmoid", "tanh")},
    **{name: same(f"{name}(x)") for name in ("floor", "ceil", "trunc", "square", "sinh", "cosh")},
    **{name: same(f"{name}(x)") for name in ("atan", "asinh", "round")},
    **{name: same(f"{name}(x)", WHOLE) for name in ("sin", "cos", "tan", "reciprocal")},
    **{
        name: same(f"{name}(x)", NOT_NEGATIVE) for name in ("log", "log2", "log10", "log1p", "sqrt")
    },
    "asin": same("asin(x)", (-1.0, -0.5, 0.0, 1.0)),
    "acos": same("acos(x)", (-1.0, -0.5, 0.0, 1.0)),
    "acosh": same("acosh(x)", (1.0, 2.0, INF)),
    "atanh": same("atanh(x)", (-1.0, -0.5, 0.0, 1.0)),
    "relu": Special("u.relu(x)", "F.relu(x)"),
    "leaky_relu": Special("u.leaky_relu(x)", "F.leaky_relu(x, 0.01)"),
    "silu": Special("u.silu(x)", "F.silu(x)", WHOLE),
    "softplus": Special("u.softplus(x)", "F.softplus(x)", WHOLE),
    "gelu": Special("u.gelu(x)", "F.gelu(x, approximate='tanh')", WHOLE),
    "a square": Special("x ** 2", "x ** 2"),
    "a cube": Special("x ** 3", "x ** 3"),
    "a square by hand": Special("x * x", "x * x"),
    "a power of 1": Special("x ** 1", "x ** 1"),
    "a power of 0": Special("x ** 0", "x ** 0"),
    "a root": Special("x ** 0.5", "x ** 0.5", NOT_NEGATIVE),
    "an inverse": Special("1 / x", "1 / x", WHOLE),
    "a size squared": Special("abs(x) ** 2", "x ** 2"),
    "a size times itself": Special("abs(x) * abs(x)", "x * x"),
    "a clip": Special("u.clip(x, -0.6, 1.1)", "t.clamp(x, -0.6, 1.1)"),
    "a log that is left out": Special(
        "u.where(x > 0, u.log(x), 0)", "x.clamp(1e-9).log() * (x > 0)", (-1.0, 0.0, 0.5, 2.0)
    ),
    "a root times a root": Special(
        "u.where(x >= 0.1, u.sqrt(x), x)",
        "t.where(x >= 0.1, x.clamp(0.1).sqrt(), x)",
        (-1.0, 0.0, 0.5, 2.0),
    ),
    "a quotient that is left out": Special(
        "u.where(x != 0, u.sin(x) / x, 1)",
        "t.where(x != 0, t.sin(x) / t.where(x != 0, x, 1), 1)",
        (-1.0, 0.0, 0.5, 2.0),
    ),
    "a size by name": Special("(lambda s: s * s)(abs(x))", "x * x"),
    "an entropy": Special(
        "u.where(x > 0, x * u.log(x), 0)",
        "t.where(x > 0, x * t.where(x > 0, x, 1).log(), 0)",
        (0.0, 0.5, 2.0),
    ),
    "a great one that is left out": Special(
        "u.where(x < 700, u.exp(x * x), 1)",
        "t.where(x < 700, t.where(x < 700, x * x, 0).exp(), 1)",
        (0.0, 1.0, 1e3, 1e200),
    ),
    "powers": Special(
        "x ** y",
        "t.pow(x, y)",
        (0.0,) * 5 + (2.0,) * 4,
        (0.0, 1, 2, 3, 0.5, 0, 1, 2, -1),
        instead=0.0,
    ),
    "exponents": Special(
        "y ** x", "t.pow(y, x)", (0.0, 1, 2, 0, 2, -1), (0.0, 0, 0, 2, 3, 2), instead=0.0
    ),
    "maximum": same("maximum(x, y)", **PAIRS),
    "minimum": same("minimum(x, y)", **PAIRS),
    "hypot": same("hypot(x, y)", PAIRS["x"][:7], y=PAIRS["y"][:7]),
    "atan2": same("atan2(x, y)", PAIRS["x"][:7], y=PAIRS["y"][:7], instead=0.0),
    "logaddexp": same("logaddexp(x, y)", PAIRS["x"][:7], y=PAIRS["y"][:7]),
    "copysign": same("copysign(x, y)", PAIRS["x"][1:7], y=PAIRS["y"][1:7], instead=0.0),
    "remainder": same("remainder(x, y)", PAIRS["x"][3:7], y=PAIRS["y"][3:7]),
    "sum": Special("x.sum(1)", "x.sum(1)", ROWS),
    "prod": Special("x.prod(1)", "x.prod(1)", ROWS),
    "max": Special("x.max(1)", "x.amax(1)", ROWS),
    "min": Special("x.min(1)", "x.amin(1)", ROWS),
    "mean": Special("x.mean(1)", "x.mean(1)", ROWS),
    "logsumexp": Special("x.logsumexp(1)", "x.logsumexp(1)", ROWS),
    "softmax": Special("x.softmax(1)[:, 0]", "x.softmax(1)[:, 0]", ROWS),
    "cumsum": Special("u.square(x.cumsum(1)).sum(1)", "(x.cumsum(1) ** 2).sum(1)", ROWS),
    "var": Special("x.var(1)", "x.var(1, correction=0)", ROWS),
    "var corrected": Special("x.var(1, correction=1)", "x.var(1)", ROWS),
    "std": Special("x.std(1)", "x.std(1, correction=0)", ROWS),
    "vector_norm": Special(
        "u.vector_norm(x, axis=1)", "t.linalg.vector_norm(x, dim=1)", ROWS, instead=0.0
    ),
    "matrix_norm": Special("u.matrix_norm(x)[None]", "t.linalg.matrix_norm(x)[None]", ROWS),
    "vector_norm 1": Special(
        "u.vector_norm(x, axis=1, ord=1)", "t.linalg.vector_norm(x, 1, dim=1)", ROWS
    ),
    "vector_norm 3": Special(
        "u.vector_norm(x, axis=1, ord=3)", "t.linalg.vector_norm(x, 3, dim=1)", ROWS
    ),
    "vector_norm 1.5": Special(
        "u.vector_norm(x, axis=1, ord=1.5)",
        "t.linalg.vector_norm(x, 1.5, dim=1)",
        ROWS,
        instead=0.0,
    ),
    "vector_norm 0.5": Special(
        "u.vector_norm(x, axis=1, ord=0.5)",
        "t.linalg.vector_norm(x, 0.5, dim=1)",
        ROWS,
        instead=0.0,
    ),
    "vector_norm inf": Special(
        "u.vector_norm(x, axis=1, ord=float('inf'))",
        "t.linalg.vector_norm(x, float('inf'), dim=1)",
        ROWS,
    ),
    "where": Special("u.where(x > 0, x * x, 3 * x)", "t.where(x > 0, x * x, 3 * x)", instead=3.0),
}


def weights(count: int) -> list[float]:
    """Weights for the entries of a function, of which no two are equal."""
    return [1.0 + 0.25 * n for n in range(count)]
