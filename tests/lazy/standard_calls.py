"""A call of every public function of tensors, which NumPy understands, too.

A call takes a namespace, `ucle` or `numpy`, and the arguments: matrices x and y of floats, n and m
of small integers, b of truths, and v, a vector.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

import ucle

Call = Callable[[Any, Any], Any]

UNARY = [
    "abs",
    "acosh",
    "asinh",
    "atan",
    "ceil",
    "conj",
    "cos",
    "cosh",
    "exp",
    "expm1",
    "floor",
    "imag",
    "isfinite",
    "isinf",
    "isnan",
    "log1p",
    "logical_not",
    "negative",
    "positive",
    "real",
    "round",
    "sign",
    "signbit",
    "sin",
    "sinh",
    "sqrt",
    "square",
    "tan",
    "tanh",
    "trunc",
]
DOMAINS = {
    "acos": lambda np_, x: np_.acos(x / 10),
    "asin": lambda np_, x: np_.asin(x / 10),
    "atanh": lambda np_, x: np_.atanh(x / 10),
    "log": lambda np_, x: np_.log(x * x + 1),
    "log2": lambda np_, x: np_.log2(x * x + 1),
    "log10": lambda np_, x: np_.log10(x * x + 1),
    "reciprocal": lambda np_, x: np_.reciprocal(x * x + 1),
}
"""Functions of one value that are defined of some only."""

BINARY = [
    "add",
    "atan2",
    "copysign",
    "divide",
    "equal",
    "greater",
    "greater_equal",
    "hypot",
    "less",
    "less_equal",
    "logaddexp",
    "logical_and",
    "logical_or",
    "logical_xor",
    "maximum",
    "minimum",
    "multiply",
    "nextafter",
    "not_equal",
    "subtract",
]
FLOORED = ("floor_divide", "remainder")
BITS = ("bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_left_shift", "bitwise_right_shift")
ALONG = ["all", "any", "count_nonzero", "max", "mean", "min", "prod", "std", "sum", "var"]

CALLS: dict[str, Call] = {
    **{name: lambda np_, t, name=name: getattr(np_, name)(t.x) for name in UNARY},
    **{name: lambda np_, t, call=call: call(np_, t.x) for name, call in DOMAINS.items()},
    **{name: lambda np_, t, name=name: getattr(np_, name)(t.x, t.y) for name in BINARY},
    **{name: lambda np_, t, name=name: getattr(np_, name)(t.x, 3.0) for name in FLOORED},
    **{name: lambda np_, t, name=name: getattr(np_, name)(t.n, t.m) for name in BITS},
    **{name: lambda np_, t, name=name: getattr(np_, name)(t.x, axis=1) for name in ALONG},
    "bitwise_invert": lambda np_, t: np_.bitwise_invert(t.b),
    "pow": lambda np_, t: np_.pow(t.x, 2),
    "clip": lambda np_, t: np_.clip(t.x, -1.5, 2),
    "where": lambda np_, t: np_.where(t.b, t.x, t.y),
    "astype": lambda np_, t: np_.astype(t.x, "float32"),
    "argmax": lambda np_, t: np_.argmax(t.x, axis=1),
    "argmin": lambda np_, t: np_.argmin(t.x, axis=1),
    "cumsum": lambda np_, t: np_.cumsum(t.x, axis=1),
    "cumprod": lambda np_, t: np_.cumprod(t.x, axis=1),
    "cumulative_sum": lambda np_, t: np_.cumulative_sum(t.x, axis=1, include_initial=True),
    "cumulative_prod": lambda np_, t: np_.cumulative_prod(t.x, axis=0, include_initial=True),
    "matmul": lambda np_, t: np_.matmul(t.x, t.y.T),
    "tensordot": lambda np_, t: np_.tensordot(t.x, t.y, axes=([0, 1], [0, 1])),
    "vecdot": lambda np_, t: np_.vecdot(t.x, t.y),
    "outer": lambda np_, t: np_.outer(t.v, t.v),
    "dot": lambda np_, t: np_.dot(t.x, t.v),
    "kron": lambda np_, t: np_.kron(t.x, [[1, 2], [0, 1]]),
    "trace": lambda np_, t: np_.trace(t.x, 1),
    "matrix_transpose": lambda np_, t: np_.matrix_transpose(t.x),
    "permute_dims": lambda np_, t: np_.permute_dims(t.x, (1, 0)),
    "moveaxis": lambda np_, t: np_.moveaxis(t.x, 0, 1),
    "expand_dims": lambda np_, t: np_.expand_dims(t.x, axis=1),
    "squeeze": lambda np_, t: np_.squeeze(np_.expand_dims(t.x, axis=0), axis=0),
    "broadcast_to": lambda np_, t: np_.broadcast_to(t.v, t.x.shape),
    "broadcast_arrays": lambda np_, t: np_.broadcast_arrays(t.x, t.v)[1],
    "concat": lambda np_, t: np_.concat([t.x, t.y]),
    "concatenate": lambda np_, t: np_.concatenate([t.x, t.y], axis=1),
    "stack": lambda np_, t: np_.stack([t.x, t.y], axis=1),
    "unstack": lambda np_, t: np_.unstack(t.x[:3], axis=0)[2],
    "reshape": lambda np_, t: np_.reshape(t.x, (-1,)),
    "roll": lambda np_, t: np_.roll(t.x, 2, axis=1),
    "flip": lambda np_, t: np_.flip(t.x, axis=(0, 1)),
    "repeat": lambda np_, t: np_.repeat(t.x, 2, axis=1),
    "tile": lambda np_, t: np_.tile(t.x, (1, 2)),
    "diagonal": lambda np_, t: np_.diagonal(t.x, 1),
    "diff": lambda np_, t: np_.diff(t.x, axis=1),
    "pad": lambda np_, t: np_.pad(t.x, 1),
    "tril": lambda np_, t: np_.tril(t.x),
    "triu": lambda np_, t: np_.triu(t.x, 1),
    "take": lambda np_, t: np_.take(t.x, [2, 0, 2], axis=1),
    "take_along_axis": lambda np_, t: np_.take_along_axis(t.x, t.n[:, :1], axis=1),
    "full_like": lambda np_, t: np_.full_like(t.x, 2),
    "zeros_like": lambda np_, t: np_.zeros_like(t.x),
    "ones_like": lambda np_, t: np_.ones_like(t.x),
    "full": lambda np_, t: np_.full(t.x.shape, 2.5),
    "zeros": lambda np_, t: np_.zeros(t.x.shape),
    "ones": lambda np_, t: np_.ones(t.x.shape, dtype=bool),
    "eye": lambda np_, t: np_.eye(*t.x.shape, k=1),
    "arange": lambda np_, t: np_.arange(1, t.x.shape[1], 2),
    "linspace": lambda np_, t: np_.linspace(0, 1, t.x.shape[1]),
    "meshgrid": lambda np_, t: np_.meshgrid(t.v, t.v, indexing="ij")[0],
    "asarray": lambda np_, t: np_.asarray(t.x),
}


def _shifted(t: Any) -> Any:
    return np.pad(t.x, ((0, 0), (1, 0)))[:, :-1]


def _centred(x: Any) -> Any:
    return x - x.mean(1, keepdims=True)


def _softmax(x: Any) -> Any:
    powers = np.exp(x - x.max(1, keepdims=True))
    return powers / powers.sum(1, keepdims=True)


OURS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "relu": (lambda t: ucle.relu(t.x), lambda t: np.maximum(t.x, 0)),
    "leaky_relu": (lambda t: ucle.leaky_relu(t.x), lambda t: np.where(t.x < 0, t.x / 100, t.x)),
    "sigmoid": (lambda t: ucle.sigmoid(t.x), lambda t: 1 / (1 + np.exp(-t.x))),
    "silu": (lambda t: ucle.silu(t.x), lambda t: t.x / (1 + np.exp(-t.x))),
    "gelu": (
        lambda t: ucle.gelu(t.x),
        lambda t: t.x / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (t.x + 0.044715 * t.x**3))),
    ),
    "erf": (lambda t: ucle.erf(t.x), lambda t: np.vectorize(math.erf)(t.x)),
    "softplus": (lambda t: ucle.softplus(t.x), lambda t: np.logaddexp(t.x, 0)),
    "finite": (lambda t: ucle.finite(t.x), lambda t: t.x),
    "softmax": (lambda t: ucle.softmax(t.x, axis=1), lambda t: _softmax(t.x)),
    "log_softmax": (lambda t: ucle.log_softmax(t.x, axis=1), lambda t: np.log(_softmax(t.x))),
    "layer_norm": (
        lambda t: ucle.layer_norm(t.x, axis=1),
        lambda t: _centred(t.x) / np.sqrt(t.x.var(1, keepdims=True) + 1e-5),
    ),
    "standardize": (
        lambda t: ucle.standardize(t.x, axis=1),
        lambda t: _centred(t.x) / t.x.std(1, keepdims=True),
    ),
    "normalize": (
        lambda t: ucle.normalize(t.x, axis=1),
        lambda t: t.x / np.linalg.norm(t.x, axis=1, keepdims=True),
    ),
    "logsumexp": (
        lambda t: ucle.logsumexp(t.x, axis=1),
        lambda t: np.logaddexp.reduce(t.x, axis=1),
    ),
    "cummax": (lambda t: ucle.cummax(t.x, axis=1), lambda t: np.maximum.accumulate(t.x, axis=1)),
    "cummin": (lambda t: ucle.cummin(t.x, axis=1), lambda t: np.minimum.accumulate(t.x, axis=1)),
    "shift": (lambda t: ucle.shift(t.x, 1, axis=1), _shifted),
    "dropout": (lambda t: ucle.dropout(t.x, 0.0, seed=1), lambda t: t.x),
    "norm": (lambda t: np.linalg.norm(t.x, np.inf), lambda t: np.linalg.norm(t.x, np.inf)),
    "vector_norm": (
        lambda t: ucle.vector_norm(t.x, axis=1),
        lambda t: np.linalg.norm(t.x, axis=1),
    ),
    "matrix_norm": (lambda t: ucle.matrix_norm(t.x), lambda t: np.linalg.norm(t.x)),
}
"""Functions that NumPy does not have by these names, and what it has."""

WITHOUT_ENTRIES = frozenset(
    (
        "can_cast",
        "finfo",
        "iinfo",
        "isdtype",
        "result_type",
        "empty",
        "empty_like",
        "eye_like",
        "from_dlpack",
    )
)
"""Functions of types, and those whose entries nobody is promised; they have tests of their own."""
EVERY = (*CALLS, *OURS)


def called(name: str, tensors: Any, np_: Any) -> Any:
    """Call a function on lazy tensors (`np_` is `ucle`), or NumPy's on arrays."""
    if name in CALLS:
        return CALLS[name](np_, tensors)
    return OURS[name][0 if np_ is ucle else 1](tensors)
