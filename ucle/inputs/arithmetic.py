"""Python's operators, for lazy tensors and for what can become one.

Each operator asks `to_lazy_tensor` for the tensor that its operand stands for; `ucle.lazy.tensor`
registers what that is. So this module knows of no tensors, and inputs (`ucle.inputs.inputs`) can
have operators without knowing of any either.
"""

from __future__ import annotations

from functools import singledispatch
from typing import TYPE_CHECKING, Any

from ucle.operators import (
    ABS,
    ADD,
    BITWISE_LEFT_SHIFT,
    BITWISE_RIGHT_SHIFT,
    DIV,
    EQUAL,
    FLOOR_DIVIDE,
    LESS,
    LESS_EQUAL,
    MULT,
    NEG,
    NOT_EQUAL,
    POW,
    REMAINDER,
    SUB,
)

if TYPE_CHECKING:
    from ucle.lazy.tensor import Tensor


@singledispatch
def to_lazy_tensor(value: Any) -> Tensor:
    """The lazy tensor that a value stands for."""
    raise TypeError(f"{type(value).__name__} is not a tensor")


class Arithmetic:
    """Operators between tensors, arrays and numbers, in either order; all of them lazy.

    >>> import ucle
    >>> degrees = ucle.table("edges", {"src": "a", "dst": "b"}) @ ucle.array([1, 1], axes=("dst",))
    >>> degrees
    <Tensor (src: ?)>
    out[src] = sum[dst](edges[src,dst] * X[dst])
    """

    __array_ufunc__: Any = None
    """NumPy's arrays leave operators to the other operand, which is this."""
    __hash__ = object.__hash__

    def __add__(self, other: Any) -> Tensor:
        return to_lazy_tensor(self).combine(ADD.name, other)

    def __radd__(self, other: Any) -> Tensor:
        return to_lazy_tensor(self).combine(ADD.name, other, swapped=True)

    def __sub__(self, other: Any) -> Tensor:
        return to_lazy_tensor(self).combine(SUB.name, other)

    def __rsub__(self, other: Any) -> Tensor:
        return to_lazy_tensor(self).combine(SUB.name, other, swapped=True)

    def __mul__(self, other: Any) -> Tensor:
        return to_lazy_tensor(self).combine(MULT.name, other)

    def __rmul__(self, other: Any) -> Tensor:
        return to_lazy_tensor(self).combine(MULT.name, other, swapped=True)

    def __truediv__(self, other: Any) -> Tensor:
        return to_lazy_tensor(self).combine(DIV.name, other)

    def __rtruediv__(self, other: Any) -> Tensor:
        return to_lazy_tensor(self).combine(DIV.name, other, swapped=True)

    def __floordiv__(self, other: Any) -> Tensor:
        return to_lazy_tensor(self).combine(FLOOR_DIVIDE.name, other)

    def __rfloordiv__(self, other: Any) -> Tensor:
        return to_lazy_tensor(self).combine(FLOOR_DIVIDE.name, other, swapped=True)

    def __mod__(self, other: Any) -> Tensor:
        return to_lazy_tensor(self).combine(REMAINDER.name, other)

    def __rmod__(self, other: Any) -> Tensor:
        return to_lazy_tensor(self).combine(REMAINDER.name, other, swapped=True)

    def __lshift__(self, other: Any) -> Tensor:
        return to_lazy_tensor(self).combine(BITWISE_LEFT_SHIFT.name, other)

    def __rlshift__(self, other: Any) -> Tensor:
        return to_lazy_tensor(self).combine(BITWISE_LEFT_SHIFT.name, other, swapped=True)

    def __rshift__(self, other: Any) -> Tensor:
        return to_lazy_tensor(self).combine(BITWISE_RIGHT_SHIFT.name, other)

    def __rrshift__(self, other: Any) -> Tensor:
        return to_lazy_tensor(self).combine(BITWISE_RIGHT_SHIFT.name, other, swapped=True)

    def __pow__(self, other: Any) -> Tensor:
        return to_lazy_tensor(self).combine(POW.name, other)

    def __rpow__(self, other: Any) -> Tensor:
        return to_lazy_tensor(self).combine(POW.name, other, swapped=True)

    def __matmul__(self, other: Any) -> Tensor:
        return to_lazy_tensor(self).matmul(other)

    def __rmatmul__(self, other: Any) -> Tensor:
        return to_lazy_tensor(self).matmul(other, swapped=True)

    def __lt__(self, other: Any) -> Tensor:
        return to_lazy_tensor(self).combine(LESS.name, other)

    def __le__(self, other: Any) -> Tensor:
        return to_lazy_tensor(self).combine(LESS_EQUAL.name, other)

    def __gt__(self, other: Any) -> Tensor:
        return to_lazy_tensor(self).combine(LESS.name, other, swapped=True)

    def __ge__(self, other: Any) -> Tensor:
        return to_lazy_tensor(self).combine(LESS_EQUAL.name, other, swapped=True)

    def __eq__(self, other: object) -> Tensor:  # type: ignore[override]
        return to_lazy_tensor(self).combine(EQUAL.name, other)

    def __ne__(self, other: object) -> Tensor:  # type: ignore[override]
        return to_lazy_tensor(self).combine(NOT_EQUAL.name, other)

    def __and__(self, other: Any) -> Tensor:
        return to_lazy_tensor(self).combine("bitwise_and", other)

    def __rand__(self, other: Any) -> Tensor:
        return to_lazy_tensor(self).combine("bitwise_and", other, swapped=True)

    def __or__(self, other: Any) -> Tensor:
        return to_lazy_tensor(self).combine("bitwise_or", other)

    def __ror__(self, other: Any) -> Tensor:
        return to_lazy_tensor(self).combine("bitwise_or", other, swapped=True)

    def __xor__(self, other: Any) -> Tensor:
        return to_lazy_tensor(self).combine("bitwise_xor", other)

    def __rxor__(self, other: Any) -> Tensor:
        return to_lazy_tensor(self).combine("bitwise_xor", other, swapped=True)

    def __invert__(self) -> Tensor:
        return to_lazy_tensor(self).map("bitwise_invert")

    def __neg__(self) -> Tensor:
        return to_lazy_tensor(self).map(NEG.name)

    def __pos__(self) -> Tensor:
        return to_lazy_tensor(self)

    def __abs__(self) -> Tensor:
        return to_lazy_tensor(self).map(ABS.name)
