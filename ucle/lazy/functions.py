"""Functions of lazy tensors, with NumPy's names (the array API standard's) wherever one exists.

They take tensors, `ucle.table(...)`, arrays, scipy.sparse matrices and numbers, at least one of
which is a tensor or a table or an array, and give lazy tensors. NumPy's own functions of these
names call them when they are handed a lazy tensor. Axes are positions or names.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ucle.errors import ArgumentError
from ucle.foundation import arguments as args
from ucle.inputs.inputs import element_type
from ucle.inputs.table_input import TableInput
from ucle.language.bounds import checked_size
from ucle.lazy import products, rearranging
from ucle.lazy.axes import AxisLike
from ucle.lazy.creation import einsum
from ucle.lazy.elementwise import elementwise
from ucle.lazy.positions_in_order import shift_along
from ucle.lazy.random_tensors import keep_mask
from ucle.lazy.tensor import NUMPY_FUNCTIONS, Tensor, as_tensor, pointwise, tensor_operand
from ucle.operators import (
    ABS,
    ADD,
    AND,
    CEIL,
    CONJ,
    DIV,
    EQUAL,
    ERF,
    EXP,
    FINITE,
    FLOOR,
    GELU,
    GREATEST,
    IMAG,
    ISFINITE,
    ISNAN,
    LEAKY_RELU,
    LEAST,
    LESS,
    LESS_EQUAL,
    LOG,
    LOG1P,
    MULT,
    NEG,
    NOT,
    NOT_EQUAL,
    OR,
    POW,
    REAL,
    RELU,
    ROUND,
    SIGMOID,
    SIGN,
    SILU,
    SOFTPLUS,
    SQRT,
    SQUARE,
    SUB,
    TANH,
    WHEN,
    XOR,
)


def abs(x: Any) -> Tensor:
    """Absolute values."""
    return pointwise(ABS.name, x)


def exp(x: Any) -> Tensor:
    """Exponentials."""
    return pointwise(EXP.name, x)


def log(x: Any) -> Tensor:
    """Natural logarithms; as in NumPy, -inf for 0 and NaN for negative numbers."""
    return pointwise(LOG.name, x)


def log1p(x: Any) -> Tensor:
    """Logarithms of 1 + x."""
    return pointwise(LOG1P.name, x)


def sqrt(x: Any) -> Tensor:
    """Square roots; NaN for negative numbers."""
    return pointwise(SQRT.name, x)


def tanh(x: Any) -> Tensor:
    """Hyperbolic tangents."""
    return pointwise(TANH.name, x)


def square(x: Any) -> Tensor:
    """Squares."""
    return pointwise(SQUARE.name, x)


def sign(x: Any) -> Tensor:
    """The signs of entries: -1, 0 or 1."""
    return pointwise(SIGN.name, x)


def floor(x: Any) -> Tensor:
    """Entries rounded down to integers."""
    return pointwise(FLOOR.name, x)


def ceil(x: Any) -> Tensor:
    """Entries rounded up to integers."""
    return pointwise(CEIL.name, x)


def round(x: Any) -> Tensor:
    """The nearest integers; halves are rounded to the even integer."""
    return pointwise(ROUND.name, x)


def negative(x: Any) -> Tensor:
    """``-x``."""
    return pointwise(NEG.name, x)


def conj(x: Any) -> Tensor:
    """Complex conjugates."""
    return pointwise(CONJ.name, x)


def real(x: Any) -> Tensor:
    """Real parts."""
    return pointwise(REAL.name, x)


def imag(x: Any) -> Tensor:
    """Imaginary parts."""
    return pointwise(IMAG.name, x)


def isnan(x: Any) -> Tensor:
    """A mask that is true where entries are NaN."""
    return pointwise(ISNAN.name, x)


def isfinite(x: Any) -> Tensor:
    """A mask that is true where entries are neither NaN nor infinite."""
    return pointwise(ISFINITE.name, x)


def finite(x: Any) -> Tensor:
    """The tensor with 0 in place of entries that are NaN or infinite."""
    return pointwise(FINITE.name, x)


def logical_not(x: Any) -> Tensor:
    """A mask that is true where entries are 0."""
    return pointwise(NOT.name, x)


def bitwise_invert(x: Any) -> Tensor:
    """``~x`` of booleans or integers."""
    return pointwise("bitwise_invert", x)


def relu(x: Any) -> Tensor:
    """Entries greater than 0; all others become 0."""
    return pointwise(RELU.name, x)


def leaky_relu(x: Any) -> Tensor:
    """Entries greater than 0; all others are divided by 100."""
    return pointwise(LEAKY_RELU.name, x)


def sigmoid(x: Any) -> Tensor:
    """``1 / (1 + exp(-x))``."""
    return pointwise(SIGMOID.name, x)


def gelu(x: Any) -> Tensor:
    """The activation function GELU, in its tanh approximation."""
    return pointwise(GELU.name, x)


def erf(x: Any) -> Tensor:
    """Evaluate the error function.

    ``0.5 * x * (1 + erf(x / sqrt(2)))`` is the exact GELU; `gelu` is an approximation.
    """
    return pointwise(ERF.name, x)


def silu(x: Any) -> Tensor:
    """``x * sigmoid(x)``."""
    return pointwise(SILU.name, x)


def softplus(x: Any) -> Tensor:
    """``log(1 + exp(x))``."""
    return pointwise(SOFTPLUS.name, x)


def add(x: Any, y: Any) -> Tensor:
    """``x + y``."""
    return pointwise(ADD.name, x, y)


def subtract(x: Any, y: Any) -> Tensor:
    """``x - y``."""
    return pointwise(SUB.name, x, y)


def multiply(x: Any, y: Any) -> Tensor:
    """``x * y``."""
    return pointwise(MULT.name, x, y)


def divide(x: Any, y: Any) -> Tensor:
    """``x / y``."""
    return pointwise(DIV.name, x, y)


def pow(x: Any, y: Any) -> Tensor:
    """``x ** y``."""
    return pointwise(POW.name, x, y)


def maximum(x: Any, y: Any) -> Tensor:
    """The greater of x and y, entry by entry."""
    return pointwise(GREATEST.name, x, y)


def minimum(x: Any, y: Any) -> Tensor:
    """The smaller of x and y, entry by entry."""
    return pointwise(LEAST.name, x, y)


def less(x: Any, y: Any) -> Tensor:
    """``x < y``."""
    return pointwise(LESS.name, x, y)


def less_equal(x: Any, y: Any) -> Tensor:
    """``x <= y``."""
    return pointwise(LESS_EQUAL.name, x, y)


def greater(x: Any, y: Any) -> Tensor:
    """``x > y``."""
    return pointwise(LESS.name, y, x, backwards=True)


def greater_equal(x: Any, y: Any) -> Tensor:
    """``x >= y``."""
    return pointwise(LESS_EQUAL.name, y, x, backwards=True)


def equal(x: Any, y: Any) -> Tensor:
    """``x == y``."""
    return pointwise(EQUAL.name, x, y)


def not_equal(x: Any, y: Any) -> Tensor:
    """``x != y``."""
    return pointwise(NOT_EQUAL.name, x, y)


def logical_and(x: Any, y: Any) -> Tensor:
    """A mask that is true where both entries are not 0."""
    return pointwise(AND.name, x, y)


def logical_or(x: Any, y: Any) -> Tensor:
    """A mask that is true where at least one entry is not 0."""
    return pointwise(OR.name, x, y)


def logical_xor(x: Any, y: Any) -> Tensor:
    """A mask that is true where exactly one entry is not 0."""
    return pointwise(XOR.name, x, y)


def bitwise_and(x: Any, y: Any) -> Tensor:
    """``x & y`` of booleans or integers."""
    return pointwise("bitwise_and", x, y)


def bitwise_or(x: Any, y: Any) -> Tensor:
    """``x | y`` of booleans or integers."""
    return pointwise("bitwise_or", x, y)


def bitwise_xor(x: Any, y: Any) -> Tensor:
    """``x ^ y`` of booleans or integers."""
    return pointwise("bitwise_xor", x, y)


def where(condition: Any, x: Any, y: Any) -> Tensor:
    """Take x where the condition is not 0, y elsewhere; entries not taken may be NaN or infinite.

    >>> import ucle
    >>> x = ucle.array([1.0, 0.0, 4.0])
    >>> where(x > 0, 1 / x, 0).to_numpy()
    array([1.  , 0.  , 0.25])
    """
    return pointwise("where", condition, x, y)


def clip(x: Any, min: Any = None, max: Any = None) -> Tensor:
    """Limit every entry to the given bounds."""
    return as_tensor(x).clip(min, max)


def astype(x: Any, dtype: Any, /, *, copy: bool = True) -> Tensor:
    """The tensor in another element type; `copy` has no effect, as tensors are immutable."""
    return as_tensor(x).astype(dtype)


def matmul(x: Any, y: Any) -> Tensor:
    """``x @ y``, by NumPy's rules; with named axes, a sum over the axes in common."""
    return as_tensor(x).matmul(y)


def tensordot(x: Any, y: Any, axes: Any = 2) -> Tensor:
    """Products summed over the last axes of x and the first axes of y, or over pairs of axes."""
    return Tensor(products.tensordot(tensor_operand(x), tensor_operand(y), axes))


def vecdot(x: Any, y: Any, axis: AxisLike = -1) -> Tensor:
    """Inner products of x and y along an axis; x is conjugated."""
    return Tensor(products.vecdot(tensor_operand(x), tensor_operand(y), axis))


def outer(x: Any, y: Any) -> Tensor:
    """Products of every entry of one vector with every entry of the other."""
    return Tensor(products.outer(tensor_operand(x), tensor_operand(y)))


def permute_dims(x: Any, axes: Sequence[AxisLike]) -> Tensor:
    """The tensor with its axes in the given order."""
    return as_tensor(x).permute_dims(axes)


def matrix_transpose(x: Any) -> Tensor:
    """The tensor with its last two axes exchanged."""
    return as_tensor(x).mT


def expand_dims(x: Any, axis: int = 0) -> Tensor:
    """The tensor with one more axis, of size 1."""
    return as_tensor(x).expand_dims(axis)


def squeeze(x: Any, axis: AxisLike | Sequence[AxisLike] | None = None) -> Tensor:
    """The tensor without axes of size 1."""
    return as_tensor(x).squeeze(axis)


def broadcast_to(x: Any, shape: Sequence[int]) -> Tensor:
    """The tensor broadcast to a shape."""
    return as_tensor(x).broadcast_to(shape)


def shift(x: Any, shift: int, axis: AxisLike = -1, fill_value: Any = 0) -> Tensor:
    """The tensor shifted along an axis; `fill_value` fills the positions that become free.

    Source: `scipy.ndimage.shift` and pandas have it; NumPy has only `roll`.

    >>> import ucle
    >>> ucle.shift(ucle.array([1, 2, 3]), 1).to_numpy()
    array([0, 1, 2])
    """
    return Tensor(shift_along(tensor_operand(x), shift, axis, fill_value))


def roll(x: Any, shift: Any, axis: Any = None) -> Tensor:
    """The tensor shifted along axes; entries that leave at one end come in at the other."""
    return Tensor(rearranging.roll_tensor(tensor_operand(x), shift, axis))


def diff(
    x: Any, n: int = 1, axis: AxisLike = -1, prepend: Any = None, append: Any = None
) -> Tensor:
    """Differences of consecutive entries along an axis, n times; of booleans, where they differ.

    Along dates, the result has positions: it is shorter than the dates. ``x - ucle.lag(x)`` has
    the dates, and begins with the first entry.

    >>> import ucle
    >>> ucle.diff(ucle.array([1, 4, 9, 16]), prepend=0).to_numpy()
    array([1, 3, 5, 7])
    """
    ends = (None if end is None else tensor_operand(end) for end in (prepend, append))
    return Tensor(rearranging.differences(tensor_operand(x), n, axis, *ends))


def pad(x: Any, pad_width: Any, mode: str = "constant", constant_values: Any = 0) -> Tensor:
    """The tensor with constants around it; the only mode is ``constant``.

    >>> import ucle
    >>> ucle.pad(ucle.array([1, 2]), (1, 2), constant_values=7).to_numpy()
    array([7, 1, 2, 7, 7])
    """
    return Tensor(rearranging.pad_tensor(tensor_operand(x), pad_width, mode, constant_values))


def concat(arrays: Sequence[Any], axis: AxisLike | None = 0) -> Tensor:
    """Tensors joined along an axis; with ``axis=None``, all of their entries in one vector.

    >>> import ucle
    >>> ucle.concat([ucle.array([1, 2]), [3.5]]).to_numpy()
    array([1. , 2. , 3.5])
    """
    return Tensor(rearranging.concatenate_tensors([tensor_operand(x) for x in arrays], axis))


def concatenate(arrays: Sequence[Any], axis: AxisLike | None = 0) -> Tensor:
    """The same as `concat`."""
    return concat(arrays, axis)


def stack(arrays: Sequence[Any], axis: int = 0, name: str | None = None) -> Tensor:
    """Tensors of one shape joined along a new axis, which has a name if the other axes have.

    >>> import ucle
    >>> x = ucle.array([1, 2], axes=("item",))
    >>> ucle.stack([x, 2 * x], name="times").to_numpy()
    array([[1, 2],
           [2, 4]])
    """
    return Tensor(rearranging.stack_tensors([tensor_operand(x) for x in arrays], axis, name))


def reshape(x: Any, /, shape: Any, *, copy: bool | None = None) -> Tensor:
    """The same entries in another shape; one size may be -1. `copy` has no effect."""
    return as_tensor(x).reshape(shape)


def diagonal(x: Any, offset: int = 0, axis1: AxisLike = 0, axis2: AxisLike = 1) -> Tensor:
    """Entries whose positions along two axes differ by `offset`, along a new last axis."""
    return as_tensor(x).diagonal(offset, axis1, axis2)


def tril(x: Any, k: int = 0) -> Tensor:
    """The lower triangle of matrices: entries above the k-th diagonal become 0."""
    return Tensor(rearranging.triangle(tensor_operand(x), k, lower=True))


def triu(x: Any, k: int = 0) -> Tensor:
    """The upper triangle of matrices: entries below the k-th diagonal become 0."""
    return Tensor(rearranging.triangle(tensor_operand(x), k, lower=False))


def eye(N: int, M: int | None = None, k: int = 0, dtype: Any = float) -> Tensor:  # noqa: N803
    """A matrix with ones on a diagonal: no tensor is stored for it.

    >>> import ucle
    >>> ucle.eye(2, 3, k=1).to_numpy()
    array([[0., 1., 0.],
           [0., 0., 1.]])
    """
    rows, columns = checked_size(N, "eye, N"), checked_size(N if M is None else M, "eye, M")
    return Tensor(rearranging.identity(rows, columns, k, element_type(dtype, "eye")))


def kron(x: Any, y: Any) -> Tensor:
    """The Kronecker product: each entry of x, multiplied by all of y, becomes a block."""
    return Tensor(rearranging.kronecker(tensor_operand(x), tensor_operand(y)))


def take(x: Any, indices: Sequence[int] | Tensor, axis: AxisLike = 0) -> Tensor:
    """The tensor at the given positions of an axis: a list, or the entries of a tensor."""
    return as_tensor(x).take(indices, axis)


def _transpose(x: Any, axes: Sequence[AxisLike] | None = None) -> Tensor:
    return as_tensor(x).transpose(*(axes or ()))


def dropout(x: Any, rate: float, *, seed: int | Tensor) -> Tensor:
    """The tensor with random entries set to 0, and the others divided by 1 - rate.

    The entry at a position, counted in row-major order, stays if its number in
    ``ucle.random.uniform(seed=seed)`` is at least the rate.

    Args:
        x: a tensor whose sizes are known.
        rate: the probability that an entry is set to 0.
        seed: any integer, or a tensor without axes that holds one, such as a `ucle.parameter`.

    Raises:
        ArgumentError: the rate is not a probability.
        LabelError: the sizes of the tensor are not known.

    >>> import ucle
    >>> ucle.dropout(ucle.array([1.0, 1.0, 1.0, 1.0]), 0.5, seed=0).to_numpy()
    array([0., 2., 0., 2.])
    """
    args.real(rate, "dropout(rate=...)")
    if not 0 <= rate <= 1:
        raise ArgumentError(
            "this is not a probability",
            where="dropout(rate=...)",
            expected="a number from 0 to 1",
            found=repr(rate),
        )
    tensor = tensor_operand(x)
    if isinstance(seed, Tensor | TableInput):
        mask = keep_mask(tensor, float(rate), tensor_operand(seed))
    else:
        args.integer(seed, "dropout(seed=...)")
        mask = keep_mask(tensor, float(rate), int(seed))
    kept = elementwise(WHEN.name, mask, tensor)
    return Tensor(kept if rate in (0, 1) else elementwise(MULT.name, kept, 1 / (1 - float(rate))))


NUMPY_FUNCTIONS.update(
    {
        function.__name__: function
        for function in (
            abs,
            exp,
            log,
            log1p,
            sqrt,
            tanh,
            square,
            sign,
            floor,
            ceil,
            round,
            negative,
            conj,
            real,
            imag,
            isnan,
            isfinite,
            finite,
            logical_not,
            bitwise_invert,
            add,
            subtract,
            multiply,
            divide,
            pow,
            maximum,
            minimum,
            less,
            less_equal,
            greater,
            greater_equal,
            equal,
            not_equal,
            logical_and,
            logical_or,
            logical_xor,
            bitwise_and,
            bitwise_or,
            bitwise_xor,
            where,
            clip,
            matmul,
            tensordot,
            vecdot,
            outer,
            einsum,
            permute_dims,
            matrix_transpose,
            expand_dims,
            squeeze,
            broadcast_to,
            roll,
            diff,
            pad,
            concat,
            concatenate,
            stack,
            reshape,
            diagonal,
            tril,
            triu,
            kron,
            take,
            astype,
        )
    }
)
NUMPY_FUNCTIONS.update(
    absolute=abs,
    power=pow,
    true_divide=divide,
    conjugate=conj,
    invert=bitwise_invert,
    rint=round,
    transpose=_transpose,
)
