"""The meanings of operators, functions and aggregations in NumPy: the oracle's own tables.

They share nothing with the compiler's tables, so that the two cannot make the same mistake.
`ucle.testing.oracle` evaluates programs with them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ucle.foundation.dataclasses import dataclass
from ucle.language.syntax import First

Array = NDArray[Any]


class UndefinedError(Exception):
    """The language does not have an operation for numbers of this kind."""


@dataclass(frozen=True)
class Meaning:
    """A function in NumPy, and the kinds of numbers for which it is defined."""

    function: Callable[..., Any]
    kinds: str = "bif"


def _sigmoid(x: Any) -> Any:
    return 1.0 / (1.0 + np.exp(-x))


def _gelu(x: Any) -> Any:
    return 0.5 * x * (1.0 + np.tanh(np.sqrt(2.0 / np.pi).astype(x.dtype) * (x + 0.044715 * x**3)))


def _softplus(x: Any) -> Any:
    return np.logaddexp(x, np.zeros(1, x.dtype))


def _drop_zero_signs(x: Any) -> Any:
    """Return x with unsigned zeros."""
    return x + 0 if np.asarray(x).dtype.kind == "f" else x


def _of_floats(function: Callable[..., Any]) -> Meaning:
    """Return a function of two floats; for booleans, NumPy would compute in half precision."""

    def of_two(x: Any, y: Any) -> Any:
        narrow = np.result_type(x, y).kind == "b"
        return function(*(np.asarray(z, np.float64) if narrow else z for z in (x, y)))

    return Meaning(of_two)


def _sparse_mult(x: Any, y: Any) -> Any:
    return np.where((x == 0) | (y == 0), np.multiply(0, 0, dtype=np.result_type(x, y)), x * y)


def _sparse_div(x: Any, y: Any) -> Any:
    quotient = np.divide(x, _drop_zero_signs(y))
    return np.where(x == 0, np.zeros_like(quotient), quotient)


def _end(x: Any, side: int) -> Any:
    """The lowest or the highest value of a type."""
    dtype = np.asarray(x).dtype
    if dtype.kind == "b":
        return side > 0
    if dtype.kind == "i":
        return np.iinfo(np.int64).max if side > 0 else np.iinfo(np.int64).min
    return side * np.inf


def _random_bits(seed: Any, position: Any) -> Any:
    """53 bits of Philox4x32-10, number by number, in Python's integers."""

    def bits(seed: int, position: int) -> int:
        low = (1 << 32) - 1
        k, m = seed & low, seed >> 32 & low
        a, b, c, d = position & low, position >> 32 & low, 0, 0
        for _ in range(10):
            p, q = 0xD2511F53 * a, 0xCD9E8D57 * c
            a, b, c, d = q >> 32 ^ b ^ k, q & low, p >> 32 ^ d ^ m, p & low
            k, m = (k + 0x9E3779B9) & low, (m + 0xBB67AE85) & low
        return (a << 32 | b) >> 11

    if any(np.asarray(x).dtype.kind not in "bi" for x in (seed, position)):
        raise UndefinedError("random numbers for seeds or positions that are not integers")
    seeds, positions = (np.asarray(x).astype(object) for x in (seed, position))
    return np.asarray(np.frompyfunc(bits, 2, 1)(seeds, positions)).astype(np.int64)


def _random_uniform(seed: Any, position: Any) -> Any:
    return _random_bits(seed, position) / 2.0**53


def _normal_quantile(x: Any) -> Any:
    standard = NormalDist()
    ends = {0.0: -np.inf, 1.0: np.inf}
    every = [standard.inv_cdf(p) if 0 < p < 1 else ends.get(p, np.nan) for p in np.ravel(x)]
    dtype = np.asarray(x).dtype
    return np.array(every).reshape(np.shape(x)).astype(dtype if dtype.kind == "f" else np.float64)


def _erf(x: Any) -> Any:
    dtype = np.asarray(x).dtype
    every = np.array([math.erf(value) for value in np.ravel(x)])
    return every.reshape(np.shape(x)).astype(dtype if dtype.kind == "f" else np.float64)


def _random_normal(seed: Any, position: Any) -> Any:
    return _normal_quantile((np.floor(_random_uniform(seed, position) * 2**52) + 0.5) / 2**52)


FUNCTIONS: dict[str, Meaning] = {
    "relu": Meaning(lambda x: np.maximum(x, 0)),
    "leaky_relu": Meaning(lambda x: np.where(x < 0, 0.01 * x, x)),
    "sigmoid": Meaning(_sigmoid),
    "tanh": Meaning(np.tanh, "bifc"),
    "exp": Meaning(np.exp, "bifc"),
    "log": Meaning(np.log, "bifc"),
    "log1p": Meaning(np.log1p),
    "sin": Meaning(np.sin),
    "cos": Meaning(np.cos),
    "tan": Meaning(np.tan),
    "asin": Meaning(np.arcsin),
    "acos": Meaning(np.arccos),
    "atan": Meaning(np.arctan),
    "sinh": Meaning(np.sinh),
    "cosh": Meaning(np.cosh),
    "asinh": Meaning(np.arcsinh),
    "acosh": Meaning(np.arccosh),
    "atanh": Meaning(np.arctanh),
    "expm1": Meaning(np.expm1),
    "log2": Meaning(np.log2),
    "log10": Meaning(np.log10),
    "trunc": Meaning(lambda x: x if x.dtype.kind in "bi" else np.trunc(x)),
    "signbit": Meaning(lambda x: x < 0),
    "isinf": Meaning(np.isinf, "bifc"),
    "sqrt": Meaning(np.sqrt, "bifc"),
    "abs": Meaning(np.abs, "bifc"),
    "neg": Meaning(np.negative, "bifc"),
    "square": Meaning(np.square, "bifc"),
    "reciprocal": Meaning(lambda x: 1 / _drop_zero_signs(x), "bifc"),
    "sign": Meaning(np.sign),
    "gelu": Meaning(lambda x: _gelu(x.astype(np.float64) if x.dtype.kind == "i" else x)),
    "silu": Meaning(lambda x: x * _sigmoid(x)),
    "softplus": Meaning(lambda x: _softplus(x.astype(np.float64) if x.dtype.kind == "i" else x)),
    "floor": Meaning(lambda x: x if x.dtype.kind in "bi" else np.floor(x)),
    "ceil": Meaning(lambda x: x if x.dtype.kind in "bi" else np.ceil(x)),
    "round": Meaning(lambda x: x if x.dtype.kind == "b" else np.round(x)),
    "isnan": Meaning(np.isnan, "bifc"),
    "isfinite": Meaning(np.isfinite, "bifc"),
    "finite": Meaning(lambda x: np.where(np.isfinite(x), x, x.dtype.type(0))),
    "one_if_zero": Meaning(lambda x: np.where(x == 0, x.dtype.type(1), x), "bifc"),
    "bit_count": Meaning(np.vectorize(lambda x: (int(x) % 2**64).bit_count(), "l"), "bi"),
    "not": Meaning(np.logical_not, "bifc"),
    "logical_not": Meaning(np.logical_not, "bifc"),
    "conj": Meaning(np.conj, "ifc"),
    "real": Meaning(np.real, "ifc"),
    "imag": Meaning(np.imag, "c"),
    "erf": Meaning(_erf),
    "normal_quantile": Meaning(_normal_quantile),
    "random_uniform": Meaning(_random_uniform),
    "random_normal": Meaning(_random_normal),
    "where": Meaning(lambda c, x, y: np.where(c != 0, x, y), "bifc"),
    "clip": Meaning(lambda x, low, high: np.minimum(np.maximum(x, low), high)),
    "logical_and": Meaning(np.logical_and, "bifc"),
    "logical_or": Meaning(np.logical_or, "bifc"),
    "logical_xor": Meaning(np.logical_xor, "bifc"),
    **{
        name: Meaning(lambda x, name=name: x.astype(name), "bif")
        for name in ("bool", "int64", "float32", "float64")
    },
    **{
        name: Meaning(lambda x, name=name: x.astype(name), "bifc")
        for name in ("complex64", "complex128")
    },
}
YES_OR_NO = (
    "not",
    "isnan",
    "isinf",
    "isfinite",
    "finite",
    "one_if_zero",
    "abs",
    "trunc",
    "floor",
    "ceil",
    "round",
    "bool",
    "where",
    "clip",
)
"""Functions that take booleans as they are, and not as 1 and 0."""

OPERATORS: dict[str, Meaning] = {
    "mult": Meaning(np.multiply, "bifc"),
    "add": Meaning(np.add, "bifc"),
    "sub": Meaning(np.subtract, "bifc"),
    "div": Meaning(lambda x, y: np.divide(x, _drop_zero_signs(y)), "bifc"),
    "pow": Meaning(lambda x, y: np.power(_drop_zero_signs(x), y), "bifc"),
    "sparse_mult": Meaning(_sparse_mult, "bifc"),
    "sparse_div": Meaning(_sparse_div, "bifc"),
    "min": Meaning(np.minimum),
    "max": Meaning(np.maximum),
    "less": Meaning(np.less),
    "less_equal": Meaning(np.less_equal),
    "equal": Meaning(np.equal, "bifc"),
    "not_equal": Meaning(np.not_equal, "bifc"),
    "and": Meaning(np.logical_and, "bifc"),
    "or": Meaning(np.logical_or, "bifc"),
    "xor": Meaning(np.logical_xor, "bifc"),
    "when": Meaning(lambda c, x: np.where(c != 0, x, np.zeros_like(x)), "bifc"),
    "random_bits": Meaning(_random_bits, "bi"),
    "atan2": _of_floats(lambda x, y: np.arctan2(_drop_zero_signs(x), _drop_zero_signs(y))),
    "hypot": _of_floats(np.hypot),
    "logaddexp": _of_floats(np.logaddexp),
    "copysign": _of_floats(lambda x, y: np.copysign(x, np.where(y < 0, -np.ones_like(y), 1))),
    "nextafter": _of_floats(np.nextafter),
    "remainder": Meaning(lambda x, y: np.remainder(x, _drop_zero_signs(y))),
    "floor_divide": Meaning(lambda x, y: np.floor_divide(x, _drop_zero_signs(y))),
    "bit_and": Meaning(np.bitwise_and, "bi"),
    "bit_or": Meaning(np.bitwise_or, "bi"),
    "bit_xor": Meaning(np.bitwise_xor, "bi"),
    "bitwise_left_shift": Meaning(np.left_shift, "bi"),
    "bitwise_right_shift": Meaning(np.right_shift, "bi"),
    "unless": Meaning(lambda c, x: np.where(c != 0, np.zeros_like(x), x), "bifc"),
    "when_one": Meaning(lambda c, x: np.where(c != 0, x, np.ones_like(x)), "bifc"),
    "when_lowest": Meaning(lambda c, x: np.where(c != 0, x, np.full_like(x, _end(x, -1)))),
    "when_highest": Meaning(lambda c, x: np.where(c != 0, x, np.full_like(x, _end(x, 1)))),
}
SIGNS: dict[str, Meaning] = {
    "<": Meaning(np.less),
    "<=": Meaning(np.less_equal),
    ">": Meaning(np.greater),
    ">=": Meaning(np.greater_equal),
    "==": Meaning(np.equal, "bifc"),
    "!=": Meaning(np.not_equal, "bifc"),
}
"""The comparisons of a chain."""
FOLDS: dict[str, Meaning] = {
    "sum": Meaning(np.sum, "bifc"),
    "prod": Meaning(np.prod, "bifc"),
    "max": Meaning(np.max),
    "min": Meaning(np.min),
    "any": Meaning(np.any, "bifc"),
    "all": Meaning(np.all, "bifc"),
    "mean": Meaning(np.mean, "bifc"),
    "count": Meaning(np.count_nonzero, "bifc"),
    "logsumexp": Meaning(np.logaddexp.reduce),
}


def _log_softmax(x: Array, axes: tuple[int, ...]) -> Array:
    numbers = x.astype(np.float64) if x.dtype.kind == "b" else x
    return numbers - np.logaddexp.reduce(numbers, axes, keepdims=True)


def _standardize(x: Array, axes: tuple[int, ...], least: float = 0.0) -> Array:
    deviation = np.sqrt(x.var(axes, keepdims=True) + least)
    return (x - x.mean(axes, keepdims=True)) / deviation  # type: ignore[no-any-return]


def _normalize(x: Array, axes: tuple[int, ...]) -> Array:
    length = np.sqrt((abs(x) ** 2).sum(axes, keepdims=True))
    return x / np.where(length == 0, 1, length)


ALONG: dict[str, Callable[[Array, tuple[int, ...]], Array]] = {
    "softmax": lambda x, axes: np.exp(_log_softmax(x, axes)),
    "log_softmax": _log_softmax,
    "normalize": _normalize,
    "standardize": _standardize,
    "layer_norm": lambda x, axes: _standardize(x, axes, 1e-5),
}
"""The functions along labels that stay (`ucle.language.functions.ALONG`), of several axes."""


STEPS: dict[str, Callable[..., Any]] = {
    "cumsum": np.cumsum,
    "cumprod": np.cumprod,
    "cummax": np.maximum.accumulate,
    "cummin": np.minimum.accumulate,
}


def _eigenvectors(symmetric: Array) -> Array:
    """Return NumPy's eigenvectors, signed so that the greatest component of each is positive."""
    found = np.linalg.eigh(symmetric).eigenvectors
    greatest = np.take_along_axis(found, abs(found).argmax(-2)[..., None, :], axis=-2)
    return np.where(greatest < 0, -found, found)


def _frame(matrix: Array, part: Array) -> Array:
    """Return a result in the upper left corner of an array of the matrix's shape, with zeros."""
    framed = np.zeros_like(matrix)
    framed[..., : part.shape[-2], : part.shape[-1]] = part
    return framed


def _pivots(square: Array) -> Array:
    """Return diagonal matrices of pivots, which have the determinants of the given matrices."""
    framed = np.zeros_like(square)
    for place in np.ndindex(square.shape[:-2]):
        framed[place][np.diag_indices(square.shape[-1])] = _eliminate(square[place].copy())
    return framed


def _eliminate(a: Array) -> Array:
    """Return the pivots of Gaussian elimination; each swap of rows negates the first pivot."""
    sign = 1.0
    for k in range(len(a)):
        row = k + int(abs(a[k:, k]).argmax())
        if a[row, k] == 0:
            return np.zeros(len(a))
        if row != k:
            a[[k, row]], sign = a[[row, k]], -sign
        a[k + 1 :] -= np.outer(a[k + 1 :, k] / a[k, k], a[k])
    pivots: Array = np.diag(a) * np.where(np.arange(len(a)) == 0, sign, 1.0)
    return pivots


def solve_systems(matrices: Array, sides: Array) -> Array:
    """Return NumPy's solutions; axes of `sides` after the rows number right-hand sides."""
    shape = *matrices.shape[:-1], *sides.shape[matrices.ndim - 1 :]
    columns = np.broadcast_to(sides, shape).reshape(*matrices.shape[:-1], -1 if sides.size else 0)
    return np.linalg.solve(matrices, columns).reshape(shape)


def _singular_values(matrix: Array) -> Array:
    values = np.linalg.svd(matrix, compute_uv=False)
    return _frame(matrix, values[..., None] * np.eye(values.shape[-1]))


def _svd(matrix: Array) -> tuple[Array, Array]:
    """Return NumPy's singular vectors; the greatest component of each right one is positive."""
    u, _, vh = np.linalg.svd(matrix, full_matrices=False)
    greatest = np.take_along_axis(vh, abs(vh).argmax(-1)[..., None], axis=-1)
    signs = np.where(greatest < 0, -1, 1)
    return _frame(matrix, u * np.swapaxes(signs, -1, -2)), _frame(matrix, vh * signs)


MATRICES: dict[str, Callable[[Array], Array]] = {
    "cholesky": np.linalg.cholesky,
    "inv": np.linalg.inv,
    "eigenvalues": lambda x: np.linalg.eigvalsh(x)[..., None, :] * np.eye(x.shape[-1]),
    "eigenvectors": _eigenvectors,
    "pivots": _pivots,
    "singular_values": _singular_values,
    "qr_q": lambda x: _frame(x, np.linalg.qr(x).Q),
    "qr_r": lambda x: _frame(x, np.linalg.qr(x).R),
    "svd_u": lambda x: _svd(x)[0],
    "svd_s": _singular_values,
    "svd_vh": lambda x: _svd(x)[1],
}


def first_positions(first: First, array: Array, count: int) -> Array:
    """Return the positions of the first entries along the last axis."""
    places: Array
    match first.function.name:
        case "argmax":
            places = np.argmax(array, axis=-1)[..., None]
        case "argmin":
            places = np.argmin(array, axis=-1)[..., None]
        case "bottom_k" | "arg_bottom_k" | "among_bottom_k":
            places = np.argsort(array, axis=-1, kind="stable")[..., :count]
        case _:
            turned = np.argsort(array[..., ::-1], axis=-1, kind="stable")[..., ::-1]
            places = array.shape[-1] - 1 - turned[..., :count]
    return places
