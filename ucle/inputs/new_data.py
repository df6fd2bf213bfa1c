"""New numbers for inputs of a compiled program."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from ucle.errors import InputError, NameResolutionError, ValueTypeError, did_you_mean
from ucle.foundation.exact_numbers import typed_numbers
from ucle.inputs.inputs import describe_array
from ucle.inputs.labelled_arrays import coordinates_of
from ucle.inputs.operands import is_relation
from ucle.inputs.random_tensors import RandomTensor
from ucle.inputs.sparse_arrays import is_sparse
from ucle.inputs.states import BoundInput
from ucle.inputs.table_input import TableInput
from ucle.plan.sources import ArraySource

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
            "the array has another shape than the one in whose place it comes",
            where=f"input {name}",
            expected="shape " + _shape(bound.data.shape),
            found="shape " + _shape(described.shape),
            hint="program.recompile() and ucle.einsum_program take other sizes",
        )
    _, numbers = typed_numbers(name, described.data, bound.dtype)
    if bound.values.finite and not np.isfinite(numbers).all():
        raise ValueTypeError(
            "a number is not finite, and all were for which the program was compiled",
            where=f"input {name}",
            expected="finite numbers",
            found="NaN or infinity",
            hint="a program that is compiled for such an array takes them, or one with "
            "nonfinite='sparse'",
        )
    data = np.ascontiguousarray(numbers).reshape(described.shape)
    return replace(bound, described=replace(bound.described, data=data))


def _shape(shape: tuple[int, ...]) -> str:
    return " x ".join(map(str, shape)) or "()"
