"""Python's operators for lazy tensors and for objects that can become lazy tensors.

Each operator calls `to_lazy_tensor` to convert its operand; `ucle.lazy.tensor` registers the
conversions. So this module does not depend on tensors, and inputs (`ucle.inputs.inputs`) can have
operators without depending on them either.
"""

from __future__ import annotations

from functools import singledispatch
from typing import Any, Generic, Protocol, TypeVar

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

Lazy_co = TypeVar("Lazy_co", covariant=True)
"""The type of lazy tensors, which modules above name."""


@singledispatch
def to_lazy_tensor(value: Any) -> Any:
    """The lazy tensor that a value stands for."""
    raise TypeError(f"{type(value).__name__} is not a tensor")


class LazyOperations(Protocol[Lazy_co]):
    """The methods of a lazy tensor that operators call."""

    def combine(
        self, name: str, other: Any, *, swapped: bool = False, backwards: bool = False
    ) -> Lazy_co:
        """Apply a function of two operands, entry by entry."""
        ...

    def matmul(self, other: Any, *, swapped: bool = False) -> Lazy_co:
        """Multiply as matrices."""
        ...

    def map(self, name: str) -> Lazy_co:
        """Apply a function of one operand, entry by entry."""
        ...


def _operations(value: Arithmetic[Lazy_co]) -> LazyOperations[Lazy_co]:
    """The lazy tensor that a value stands for, by the methods that are called here."""
    operations: LazyOperations[Lazy_co] = to_lazy_tensor(value)
    return operations


class Arithmetic(Generic[Lazy_co]):
    """Operators between tensors, arrays and numbers, in either order; all of them lazy.

    >>> import ucle
    >>> degrees = ucle.table("edges", {"src": "a", "dst": "b"}) @ ucle.array([1, 1], axes=("dst",))
    >>> degrees
    <Tensor (src: ?)>
    out[src] = sum[dst](edges[src,dst] * X[dst])
    """

    __array_ufunc__: Any = None
    """None, so that NumPy's arrays leave operators to this operand."""
    __hash__ = object.__hash__

    def __add__(self, other: Any) -> Lazy_co:
        return _operations(self).combine(ADD.name, other)

    def __radd__(self, other: Any) -> Lazy_co:
        return _operations(self).combine(ADD.name, other, swapped=True)

    def __sub__(self, other: Any) -> Lazy_co:
        return _operations(self).combine(SUB.name, other)

    def __rsub__(self, other: Any) -> Lazy_co:
        return _operations(self).combine(SUB.name, other, swapped=True)

    def __mul__(self, other: Any) -> Lazy_co:
        return _operations(self).combine(MULT.name, other)

    def __rmul__(self, other: Any) -> Lazy_co:
        return _operations(self).combine(MULT.name, other, swapped=True)

    def __truediv__(self, other: Any) -> Lazy_co:
        return _operations(self).combine(DIV.name, other)

    def __rtruediv__(self, other: Any) -> Lazy_co:
        return _operations(self).combine(DIV.name, other, swapped=True)

    def __floordiv__(self, other: Any) -> Lazy_co:
        return _operations(self).combine(FLOOR_DIVIDE.name, other)

    def __rfloordiv__(self, other: Any) -> Lazy_co:
        return _operations(self).combine(FLOOR_DIVIDE.name, other, swapped=True)

    def __mod__(self, other: Any) -> Lazy_co:
        return _operations(self).combine(REMAINDER.name, other)

    def __rmod__(self, other: Any) -> Lazy_co:
        return _operations(self).combine(REMAINDER.name, other, swapped=True)

    def __lshift__(self, other: Any) -> Lazy_co:
        return _operations(self).combine(BITWISE_LEFT_SHIFT.name, other)

    def __rlshift__(self, other: Any) -> Lazy_co:
        return _operations(self).combine(BITWISE_LEFT_SHIFT.name, other, swapped=True)

    def __rshift__(self, other: Any) -> Lazy_co:
        return _operations(self).combine(BITWISE_RIGHT_SHIFT.name, other)

    def __rrshift__(self, other: Any) -> Lazy_co:
        return _operations(self).combine(BITWISE_RIGHT_SHIFT.name, other, swapped=True)

    def __pow__(self, other: Any) -> Lazy_co:
        return _operations(self).combine(POW.name, other)

    def __rpow__(self, other: Any) -> Lazy_co:
        return _operations(self).combine(POW.name, other, swapped=True)

    def __matmul__(self, other: Any) -> Lazy_co:
        return _operations(self).matmul(other)

    def __rmatmul__(self, other: Any) -> Lazy_co:
        return _operations(self).matmul(other, swapped=True)

    def __lt__(self, other: Any) -> Lazy_co:
        return _operations(self).combine(LESS.name, other)

    def __le__(self, other: Any) -> Lazy_co:
        return _operations(self).combine(LESS_EQUAL.name, other)

    def __gt__(self, other: Any) -> Lazy_co:
        return _operations(self).combine(LESS.name, other, swapped=True, backwards=True)

    def __ge__(self, other: Any) -> Lazy_co:
        return _operations(self).combine(LESS_EQUAL.name, other, swapped=True, backwards=True)

    def __eq__(self, other: object) -> Lazy_co:  # type: ignore[override]
        return _operations(self).combine(EQUAL.name, other)

    def __ne__(self, other: object) -> Lazy_co:  # type: ignore[override]
        return _operations(self).combine(NOT_EQUAL.name, other)

    def __and__(self, other: Any) -> Lazy_co:
        return _operations(self).combine("bitwise_and", other)

    def __rand__(self, other: Any) -> Lazy_co:
        return _operations(self).combine("bitwise_and", other, swapped=True)

    def __or__(self, other: Any) -> Lazy_co:
        return _operations(self).combine("bitwise_or", other)

    def __ror__(self, other: Any) -> Lazy_co:
        return _operations(self).combine("bitwise_or", other, swapped=True)

    def __xor__(self, other: Any) -> Lazy_co:
        return _operations(self).combine("bitwise_xor", other)

    def __rxor__(self, other: Any) -> Lazy_co:
        return _operations(self).combine("bitwise_xor", other, swapped=True)

    def __invert__(self) -> Lazy_co:
        return _operations(self).map("bitwise_invert")

    def __neg__(self) -> Lazy_co:
        return _operations(self).map(NEG.name)

    def __pos__(self) -> Lazy_co:
        tensor: Lazy_co = to_lazy_tensor(self)
        return tensor

    def __abs__(self) -> Lazy_co:
        return _operations(self).map(ABS.name)
