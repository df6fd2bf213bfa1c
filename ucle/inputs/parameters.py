"""Inputs whose data is replaced while a program stays compiled: parameters, and new numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from ucle.errors import (
    ArgumentTypeError,
    InputError,
    NameResolutionError,
    ValueTypeError,
    did_you_mean,
)
from ucle.foundation import arguments as args
from ucle.foundation.arguments import validated
from ucle.foundation.exact_numbers import typed_numbers
from ucle.inputs.inputs import describe_array
from ucle.inputs.labelled_arrays import coordinates_of
from ucle.inputs.operands import is_relation
from ucle.inputs.random_tensors import RandomTensor
from ucle.inputs.sparse_arrays import is_sparse
from ucle.inputs.states import BoundInput
from ucle.inputs.table_input import TableInput
from ucle.plan.sources import ArraySource
from ucle.stats.model import find_infinity


@validated(name=args.text)
def parameter(data: Any, name: str | None = None) -> TableInput:
    """Declare an array as a parameter: it is dense, and its numbers will be replaced later.

    A program relies only on its shape, on its element type, and, if all numbers are finite now, on
    all later numbers being finite. It is planned as a dense tensor even if it is all 0 at first,
    and none of its numbers are written into SQL.

    Args:
        data: a NumPy array, nested lists or a number; it is not copied.
        name: its name in lazy tensors, programs and messages.

    Returns:
        An input for `ucle.einsum_program` and for lazy tensors, which takes their operators.

    Raises:
        ArgumentTypeError: it is a table or a sparse array.
        ValueTypeError: it does not hold numbers.

    >>> import ucle
    >>> W = ucle.parameter([[0.0, 0.0], [0.0, 1.0]], name="W")
    >>> W @ [1.0, 2.0]
    <Tensor (2)>
    out[i] = sum[j](W[i,j] * X[j])
    >>> ucle.einsum_program("y[i] += W[i,j] * x[j]", W=W, x=[1, 2]).execute()["y"].to_numpy()
    array([0., 2.])
    """
    if isinstance(data, TableInput) and data.varies:
        return data if name is None else TableInput(data.relation, varies=True, name=name)
    if is_relation(data) or is_sparse(data) or coordinates_of("parameter", data) is not None:
        raise ArgumentTypeError(
            "a parameter is a dense array",
            where="parameter",
            expected="an array, nested lists or a number",
            found=f"{type(data).__module__.partition('.')[0]} {type(data).__qualname__}",
            hint="pass tables, sparse arrays and arrays with coordinates as ordinary inputs; "
            "the contents of a table may change between executions",
        )
    title = "parameter" if name is None else name
    described = describe_array(title, TableInput(data))
    # The caller may change the array in place; a random tensor is drawn once.
    relation = described.data if isinstance(data, RandomTensor) else data
    return TableInput(relation, varies=True, name=name)


__all__ = ["parameter"]


Bound = TypeVar("Bound", bound=BoundInput)


def takes_numbers(bound: BoundInput, value: Any, *, may_vary: bool = False) -> bool:
    """True if the value passed for an input is an array that can replace it, as the input may vary.

    Args:
        bound: the input.
        value: the value that is passed.
        may_vary: treat the input as one that may vary even if it is not declared so.
    """
    relation = value.relation if isinstance(value, TableInput) else value
    array = isinstance(bound.source, ArraySource)
    varies = array and (may_vary or bound.described.spec.varies)
    if not varies or is_relation(relation) or is_sparse(relation):
        return False
    return coordinates_of("input", relation) is None


def keeps_infinity(bound: BoundInput, value: Any) -> bool:
    """True if an array holds no NaN, and no infinity but the one that its program counts on.

    An array of which the program knows no infinity may hold anything, as far as this goes.
    """
    known = bound.described.spec.infinity
    if known is None or isinstance(value, RandomTensor):
        return True
    spec = value if isinstance(value, TableInput) else TableInput(value)
    return find_infinity(describe_array("input", spec).data) in (0, known)


def with_numbers(inputs: Mapping[str, Bound], new: Mapping[str, Any]) -> dict[str, Bound]:
    """Replace the arrays of inputs that may vary.

    Args:
        inputs: the inputs of the program.
        new: arrays by name, for which `takes_numbers` holds.

    Raises:
        InputError: an array has another shape.
        ValueTypeError: its numbers are not of the type of the input, or are not finite although the
            program was compiled for finite ones.
    """
    return {
        name: _with_numbers(name, bound, new[name]) if name in new else bound
        for name, bound in inputs.items()
    }


def check_names(inputs: Mapping[str, object], new: Mapping[str, Any], where: str) -> None:
    """Check that the program has the inputs that are to be replaced.

    Raises:
        NameResolutionError: the program has no such input.
    """
    for name in new:
        if name not in inputs:
            raise NameResolutionError(
                f"the program has no input {name}",
                where=where,
                expected="one of " + (", ".join(inputs) or "no inputs"),
                found=name,
                hint=did_you_mean(name, inputs),
            )


def _with_numbers(name: str, bound: Bound, value: Any) -> Bound:
    if isinstance(value, RandomTensor):
        value = value.array(bound.data.shape, bound.dtype.numpy)
    spec = value if isinstance(value, TableInput) else TableInput(value)
    described = describe_array(name, spec)
    if described.shape != bound.data.shape:
        raise InputError(
            "the array has another shape than the one that it replaces",
            where=f"input {name}",
            expected="shape " + _shape(bound.data.shape),
            found="shape " + _shape(described.shape),
            hint="program.recompile() and ucle.einsum_program take other sizes",
        )
    _, numbers = typed_numbers(name, described.data, bound.dtype)
    known = bound.described.spec.infinity
    allowed = (0,) if known is None else (0, known)
    if bound.values.finite and find_infinity(numbers) not in allowed:
        raise ValueTypeError(
            "a number is not finite, but all were when the program was compiled",
            where=f"input {name}",
            expected="finite numbers",
            found="NaN or infinity",
            hint="compile the program with an array that contains such numbers, or with "
            "nonfinite='sparse'",
        )
    data = np.ascontiguousarray(numbers).reshape(described.shape)
    return replace(bound, described=replace(bound.described, data=data))


def _shape(shape: tuple[int, ...]) -> str:
    return " x ".join(map(str, shape)) or "()"
