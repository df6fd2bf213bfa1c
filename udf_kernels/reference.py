"""What the kernels mean, in NumPy: the definitions that the tests hold the C code to.

A BLOB is a one-dimensional float64 array here. Aggregates take sequences of rows, in the order of
their arguments. Nothing here is fast, and nothing at run time calls it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

MAPS: dict[str, Callable[[Array], Array]] = {
    "relu": lambda x: np.maximum(x, 0.0),
    "leaky_relu": lambda x: np.where(x > 0, x, 0.01 * x),
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "tanh": np.tanh,
    "exp": np.exp,
    "log": np.log,
    "log1p": np.log1p,
    "sqrt": np.sqrt,
    "abs": np.abs,
    "neg": np.negative,
    "square": np.square,
    "reciprocal": np.reciprocal,
    "sign": np.sign,
}
COMBINES: dict[str, np.ufunc] = {
    "mult": np.multiply,
    "add": np.add,
    "sub": np.subtract,
    "div": np.divide,
    "pow": np.power,
    "min": np.minimum,
    "max": np.maximum,
}
REDUCES: dict[str, np.ufunc] = {
    "sum": np.add,
    "prod": np.multiply,
    "min": np.minimum,
    "max": np.maximum,
}


def elementwise(operation: np.ufunc) -> Callable[..., Array]:
    """One of `COMBINES` for two tensors of one length, or a tensor and a number."""

    def reference(a: Array | float, b: Array | float) -> Array:
        return np.asarray(operation(a, b), dtype=np.float64)

    return reference


def inner_prod(a: Array, b: Array) -> float:
    """The sum of products of two vectors."""
    return float(np.sum(a * b))


def outer_prod(a: Array, b: Array) -> Array:
    """Every entry of a times every entry of b."""
    return np.multiply.outer(a, b).ravel()


def mat_vec_mult(a: Array, x: Array) -> Array:
    """Matrix times vector; the vector's length gives the shape."""
    return a.reshape(len(a) // len(x), len(x)) @ x if len(x) else np.empty(0)


def vec_mat_mult(x: Array, a: Array) -> Array:
    """Vector times matrix; the vector's length gives the shape."""
    return x @ a.reshape(len(x), len(a) // len(x)) if len(x) else np.empty(0)


def mat_mat_mult(a: Array, b: Array, k: int) -> Array:
    """Matrix times matrix, of inner size k; without one, nothing tells the shape: empty."""
    return (a.reshape(-1, k) @ b.reshape(k, -1)).ravel() if k else np.empty(0)


def slice_(v: Array, offset: int, sizes: Sequence[int], strides: Sequence[int]) -> Array:
    """The strided sub-tensor, made dense."""
    return v[positions(offset, sizes, strides)]


def positions(offset: int, sizes: Sequence[int], strides: Sequence[int]) -> NDArray[np.int64]:
    """The positions of a strided sub-tensor, row-major over its sizes."""
    grid = np.indices(tuple(sizes), dtype=np.int64)
    return (offset + np.tensordot(np.asarray(strides, dtype=np.int64), grid, axes=1)).ravel()


def count_not(v: Array, fill: float) -> int:
    """How many entries differ from fill; NaN differs from everything but NaN."""
    return int(np.sum(~np.isnan(v) if np.isnan(fill) else v != fill))


def ein(spec: str, sizes: Sequence[int], *operands: Array) -> Array:
    """`reduce.combine ab,bc->ac`: broadcast over all labels, combine, reduce the others."""
    prefix, _, labels = spec.rpartition(" ")
    reduce, _, combine = prefix.partition(".")
    inputs, output = labels.split("->")
    names = "".join(dict.fromkeys(inputs.replace(",", "")))
    size = dict(zip(names, sizes, strict=True))
    spread = [
        _spread(operand, term, names, size)
        for operand, term in zip(operands, inputs.split(","), strict=True)
    ]
    joint = functools.reduce(COMBINES[combine or "mult"], spread)
    joint = np.broadcast_to(joint, [size[name] for name in names])
    summed = tuple(i for i, name in enumerate(names) if name not in output)
    result = REDUCES[reduce or "sum"].reduce(joint, axis=summed)
    kept = [name for name in names if name in output]
    return np.asarray(np.transpose(result, [kept.index(name) for name in output])).ravel()


def _spread(operand: Array, term: str, names: str, size: dict[str, int]) -> Array:
    """An operand with one axis per label of the whole spec, of size 1 where it lacks the label."""
    own = "".join(name for name in names if name in term)
    diagonal = np.einsum(f"{term}->{own}", operand.reshape([size[name] for name in term]))
    return np.asarray(diagonal).reshape([size[name] if name in term else 1 for name in names])


def ein_sca(spec: str, sizes: Sequence[int], *operands: Array) -> float:
    """A contraction without output labels."""
    return float(ein(spec, sizes, *operands)[0])


def reduced(reduce: str, function: Callable[..., Array]) -> Callable[..., Array]:
    """The aggregate of a function: its results over the rows, reduced entry by entry."""

    def reference(*columns: Sequence[object]) -> Array:
        rows = [function(*row) for row in zip(*columns, strict=True)]
        return np.asarray(REDUCES[reduce].reduce(np.array(rows), axis=0))

    return reference


def reduced_mat_mat(a: Sequence[Array], b: Sequence[Array], k: int) -> Array:
    """The sum of products of matrices that share their inner size."""
    return reduced("sum", mat_mat_mult)(a, b, [k] * len(a))


def reduced_ein(reduce: str) -> Callable[..., Array]:
    """The aggregate of contractions that share their spec and sizes."""

    def reference(spec: str, sizes: Sequence[int], *operands: Sequence[Array]) -> Array:
        return reduced(reduce, functools.partial(ein, spec, sizes))(*operands)

    return reference


def stack_sca(xs: Sequence[float], offsets: Sequence[int], total: int, fill: float) -> Array:
    """Numbers at their offsets, fill elsewhere."""
    return stack([np.array([x]) for x in xs], offsets, total, fill)


def stack(vs: Sequence[Array], offsets: Sequence[int], total: int, fill: float) -> Array:
    """Tensors at their offsets, fill elsewhere."""
    out = np.full(total, fill)
    for v, offset in zip(vs, offsets, strict=True):
        out[offset : offset + len(v)] = v
    return out


def stack_strided(
    vs: Sequence[Array],
    offsets: Sequence[int],
    sizes: Sequence[int],
    strides: Sequence[int],
    total: int,
    fill: float,
) -> Array:
    """Tensors scattered over strided places, fill elsewhere."""
    out = np.full(total, fill)
    for v, offset in zip(vs, offsets, strict=True):
        out[positions(offset, sizes, strides)] = v
    return out
