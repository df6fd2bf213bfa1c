"""Element types of expressions, by NumPy's rules.

NumPy's own functions determine the types of results. A constant is a Python number, which is weakly
typed as in NumPy: it widens integers to floats but not float32 to float64. A function that NumPy
defines only for wider numbers (the exponential of an integer) promotes its operand first.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ucle.errors import ValueTypeError
from ucle.foundation.dataclasses import dataclass
from ucle.foundation.dtypes import DType, Scalar, nearest, promote
from ucle.ir.tensor_types import TensorType
from ucle.language.factors import constant_of_parts
from ucle.language.syntax import (
    Access,
    Binary,
    Bounded,
    Call,
    Expression,
    Hit,
    Reduction,
    Retyped,
    fold,
)
from ucle.operators import (
    ADD,
    SUB,
    Combine,
    PointwiseMap,
    Reduce,
    Typing,
)

OF_BITS = "int64(x) converts numbers, and comparisons need parentheses: (a > 0) & (b > 0)"
"""The hint where bitwise operators, which bind more tightly than comparisons, have no integers."""

OF_BOOLEANS = "x != y is true where booleans differ, and x * 1 makes numbers of them"
"""The hint where booleans are subtracted."""

WIDER = {"b": DType.INT64, "i": DType.FLOAT64}
"""The promoted type of an operand whose kind of number a function does not support."""


@dataclass(frozen=True)
class Signature:
    """The type that an operation works in, and the type of its result."""

    compute: DType
    result: DType


def combine_signature(
    operator: Combine, left: DType | Scalar, right: DType | Scalar, where: str | None = None
) -> Signature:
    """The types of a ⊗ of two tensors, or of a tensor and a constant.

    Raises:
        ValueTypeError: NumPy or ucle does not support the operation for these types.

    >>> from ucle.operators import COMBINES
    >>> combine_signature(COMBINES["div"], DType.INT64, 2)
    Signature(compute=<DType.FLOAT64: 'float64'>, result=<DType.FLOAT64: 'float64'>)
    """
    match operator.typing:
        case Typing.LOGICAL:
            return Signature(DType.BOOL, DType.BOOL)
        case Typing.SELECTION:
            compute = right if isinstance(right, DType) else _of_constant(right)
        case Typing.COMPARISON:
            compute = _common(left, right)
        case _:
            name = operator.symbol
            compute = _of_function(name, operator.numpy, (left, right), where, operator.kinds)
    while compute.kind not in operator.kinds:
        compute = _wider(operator.name, compute, where)
    return Signature(compute, DType.BOOL if operator.indicates else compute)


def map_signature(
    function: PointwiseMap, dtype: DType, where: str | None = None
) -> Signature | None:
    """The types of a pointwise map; None if it is the identity on this kind of number.

    Raises:
        ValueTypeError: the function is not defined for the type.
    """
    if dtype.kind in function.nothing_on:
        return None
    if dtype.kind in function.zero_on:
        return Signature(dtype, dtype)
    while dtype.kind not in function.kinds:
        dtype = _wider(function.name, dtype, where)
    if function.indicates:
        return Signature(dtype, DType.BOOL)
    return Signature(dtype, dtype.real if function.typing is Typing.REAL else dtype)


def reduce_type(operator: Reduce, dtype: DType, where: str | None = None) -> DType:
    """The type in which an aggregation computes, which is also that of its result.

    Raises:
        ValueTypeError: the aggregation is not defined for the type.
    """
    if operator.typing is Typing.LOGICAL:
        return DType.BOOL
    while dtype.kind not in operator.kinds:
        dtype = _wider(operator.name, dtype, where)
    return dtype


def expression_type(expression: Expression, types: Mapping[str, TensorType]) -> DType | Scalar:
    """The element type of a resolved expression; for a constant, its value.

    Raises:
        ValueTypeError: NumPy or ucle does not support an operation for these types.
    """

    def type_of(part: Expression, parts: list[DType | Scalar]) -> DType | Scalar:
        constant = constant_of_parts(part, parts) if part.constant else None
        return _part_type(part, parts, types) if constant is None else constant

    return fold(expression, type_of)


def _part_type(
    expression: Expression, parts: list[DType | Scalar], types: Mapping[str, TensorType]
) -> DType | Scalar:
    """The type of an expression that reads a tensor, from the types of its parts."""
    where = str(expression.span)
    match expression:
        case Retyped(_, like):
            return types[like].dtype
        case Access(tensor):
            return types[tensor].dtype
        case Bounded(pick=pick, bound=bound):
            (inner,) = parts
            if inner is DType.BOOL:
                return inner
            return combine_signature(pick, inner, bound, where).result
        case Call(DType() | PointwiseMap() as function):
            (inner,) = parts
            assert isinstance(inner, DType)
            if isinstance(function, DType):
                return function
            signature = map_signature(function, inner, where)
            return signature.result if signature else inner
        case Hit():
            return DType.BOOL
        case Binary(operator):
            left, right = parts
            return combine_signature(operator, left, right, where).result
        case Reduction(operator):
            (inner,) = parts
            assert isinstance(inner, DType)
            if operator.picks:
                return inner
            return reduce_type(operator, inner, where)
        case _:
            raise AssertionError(f"{expression} is not resolved")


def _wider(name: str, dtype: DType, where: str | None) -> DType:
    if dtype.kind not in WIDER:
        raise ValueTypeError(
            f"there is no {name} of {dtype.value} numbers",
            where=where,
            expected="a type that has it",
            found=dtype.value,
            hint="abs(...), real(...) and imag(...) of complex numbers are real"
            if dtype.kind == "c"
            else None,
        )
    return WIDER[dtype.kind]


def _of_constant(value: Scalar) -> DType:
    kinds = {bool: DType.BOOL, int: DType.INT64, float: DType.FLOAT64}
    return next((kinds[kind] for kind in kinds if isinstance(value, kind)), DType.COMPLEX128)


def _common(left: DType | Scalar, right: DType | Scalar) -> DType:
    """The type in which two operands are compared; a constant takes the type of the other side."""
    if isinstance(left, DType) and isinstance(right, DType):
        return promote(left, right)
    return _of_function(ADD.name, np.multiply, (left, right), None)


def _of_function(
    name: str,
    function: Any,
    operands: tuple[DType | Scalar, ...],
    where: str | None,
    kinds: str = "",
) -> DType:
    samples = [np.ones(1, op.numpy) if isinstance(op, DType) else op for op in operands]
    try:
        with np.errstate(all="ignore"):
            result_type = nearest(np.asarray(function(*samples)).dtype)
    except (TypeError, ValueError, OverflowError) as error:
        of_bits = bool(kinds) and set(kinds) <= {"b", "i"}
        reason = OF_BOOLEANS if function is SUB.numpy else str(error).splitlines()[0]
        raise ValueTypeError(
            f"NumPy has no {name} of these operands",
            where=where,
            expected="booleans or integers" if of_bits else "operands of other types",
            found=" and ".join(op.value if isinstance(op, DType) else repr(op) for op in operands),
            hint=OF_BITS if of_bits else reason,
        ) from error
    assert result_type is not None
    # For two booleans, or small constants, NumPy returns small integers and half floats.
    if result_type.kind == "f" and not any(map(_is_narrow, operands)):
        return DType.FLOAT64
    return result_type


def _is_narrow(operand: DType | Scalar) -> bool:
    """True for a floating-point type that is narrower than float64, and for pairs of such."""
    if not isinstance(operand, DType):
        return False
    return operand.kind in "fc" and operand.real is not DType.FLOAT64
