"""Gradients of lazy tensors: JAX's names, applied to tensors instead of functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, overload

from ucle.errors import ArgumentTypeError, LabelError, ValueTypeError
from ucle.inputs.table_input import TableInput
from ucle.lazy.compute import known_type
from ucle.lazy.nodes import Backward, Gradient, Lazy, apply, in_order
from ucle.lazy.tensor import Tensor, tensor_operand


@overload
def grad(loss: Tensor, by: Tensor) -> Tensor: ...
@overload
def grad(loss: Tensor, by: Sequence[Tensor]) -> tuple[Tensor, ...]: ...
def grad(loss: Tensor, by: Any) -> Any:
    """The gradient of a rank-0 tensor with respect to another tensor, or several.

    The gradient is a lazy tensor, which can be differentiated again. Several gradients are computed
    in one pass. If they are computed together with the loss (`ucle.compute`), they share its work.

    Args:
        loss: a tensor without axes.
        by: a tensor that the loss depends on, or several.

    Returns:
        A tensor with the axes of `by`; a tuple of tensors if `by` is several tensors.

    Raises:
        LabelError: the loss has axes.
        ArgumentTypeError: the loss does not depend on the tensor.
        ValueTypeError: the tensor does not hold real numbers.
        UnsupportedError: at computation, if an operator has no derivative.

    >>> from ucle.lazy.creation import array
    >>> x = array([1.0, 2.0])
    >>> grad((x * x).sum(), x).to_numpy()
    array([2., 4.])
    """
    return value_and_grad(loss, by)[1]


def value_and_grad(loss: Tensor, by: Any) -> tuple[Tensor, Any]:
    """The loss and its gradient, to compute together; arguments are as for `grad`.

    >>> from ucle.lazy.creation import array, compute
    >>> x = array([1.0, 2.0])
    >>> loss, gradient = value_and_grad((x * x).sum(), x)
    >>> [t.to_numpy().tolist() for t in compute(loss, gradient)]
    [5.0, [2.0, 4.0]]
    """
    whole = tensor_operand(loss)
    if whole.axes:
        raise LabelError(
            "only a single number has a gradient",
            where="grad",
            expected="a tensor without axes",
            found=str(whole),
            hint="use loss.sum()",
        )
    several = isinstance(by, list | tuple)
    tensors = [_differentiable(whole, x) for x in (by if several else [by])]
    # This makes a statement for the loss, even if it is an input.
    named = apply(None, [whole.operand(())], ())
    backward = Backward(named.node, tuple(x.node for x in tensors))
    gradients = tuple(
        Tensor(Lazy(Gradient(backward, n), tensor.axes)) for n, tensor in enumerate(tensors)
    )
    return Tensor(named), gradients if several else gradients[0]


def _differentiable(loss: Lazy, by: Any) -> Lazy:
    if isinstance(by, TableInput) and by.varies:
        by = Tensor(tensor_operand(by))
    if not isinstance(by, Tensor):
        raise ArgumentTypeError(
            "gradients are taken with respect to tensors",
            where="grad",
            expected="tensors or parameters on which the loss depends",
            found=repr(by)[:80],
        )
    tensor, dtype = by.lazy, known_type(by.lazy)
    if tensor.node not in in_order([loss.node]):
        raise ArgumentTypeError(
            "the loss does not depend on this tensor",
            where="grad",
            expected="a tensor that the loss was computed from, the very same object",
            found=str(tensor),
            hint="create W = ucle.array(...) once, and use W in the loss and in grad",
        )
    if dtype is not None and dtype.kind != "f":
        raise ValueTypeError(
            "gradients exist only for real numbers",
            where=f"grad, {tensor}",
            expected="float64 or float32",
            found=dtype.value,
            hint="ucle.array(..., dtype='float64')",
        )
    return tensor


__all__ = ["grad", "value_and_grad"]
