"""Uses with one map more: a function of a use, and ⊗ of a use and a constant.

Neither is a step of its own: the reader of the use applies its maps. Types follow NumPy.
"""

from __future__ import annotations

from ucle.errors import ValueTypeError
from ucle.foundation.dtypes import DType, Scalar
from ucle.ir.maps import Map, Partial, Pointwise
from ucle.ir.vertices import Span
from ucle.language.promotion import combine_signature, map_signature
from ucle.lowering.logical import Use
from ucle.operators import POW, SQUARE, WHEN, Combine, PointwiseMap, Typing


def with_function(function: PointwiseMap, use: Use, where: Span, statement: Span) -> Use:
    """Return a pointwise function of a use.

    Args:
        function: the function.
        use: the argument.
        where: the place of the call.
        statement: the place of the statement.

    Raises:
        ValueTypeError: NumPy does not have the operation for the types at hand.
    """
    signature = map_signature(function, use.dtype, str(where))
    if signature is None:
        return use
    if use.dtype.kind in function.zero_on:
        return with_constant(WHEN, use, False, True, statement)
    mapped = use.cast(signature.compute).then(Map(function, signature.compute))
    if function.indicates:
        return mapped.indicating(signature.result)
    return mapped.cast(signature.result)


def with_constant(
    operator: Combine, use: Use, constant: Scalar, first: bool, statement: Span
) -> Use:
    """Return ⊗ of a use and a constant.

    Args:
        operator: ⊗.
        use: one side.
        constant: the other side.
        first: True if the constant is the left side.
        statement: the place of the statement.

    Raises:
        ValueTypeError: NumPy does not have the operation for the types at hand.
    """
    left: DType | Scalar = constant if first else use.dtype
    right: DType | Scalar = use.dtype if first else constant
    signature = combine_signature(operator, left, right, str(statement))
    if operator.typing is Typing.SELECTION:
        if first:
            constant = bool(constant)
        else:
            use = use.cast(DType.BOOL)
    number = number_of(constant, signature.compute, statement)
    step: Pointwise
    if operator is POW and number == 2 and not first:  # as in NumPy; a power takes far longer
        step = Map(SQUARE, signature.compute)
    else:
        step = Partial(operator, number, first, signature.compute)
    mapped = use.cast(signature.compute).then(step)
    return mapped.indicating(signature.result) if operator.indicates else mapped


def number_of(constant: Scalar, dtype: DType, statement: Span) -> Scalar:
    """Return a constant in the type in which it is used.

    Raises:
        ValueTypeError: the type cannot hold it.
    """
    try:
        return dtype.scalar(constant)
    except (OverflowError, ValueError) as error:
        raise ValueTypeError(
            "a constant does not fit the type of its operand",
            where=str(statement),
            expected=dtype.value,
            found=str(constant),
        ) from error
