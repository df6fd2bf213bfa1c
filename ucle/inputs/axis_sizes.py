"""Sizes of inputs: the length of their axes in a program, inferred from all inputs together.

Takes resolved statements and their bound inputs; joins the dictionaries of labels, infers the size
of every label, and returns the inputs with their shapes and types.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from ucle.database.session import Session
from ucle.foundation.dataclasses import dataclass
from ucle.foundation.dtypes import DType
from ucle.foundation.names import fresh_prefix
from ucle.inputs.dictionaries import (
    Dictionaries,
    bind_dictionaries,
    find_key_axes,
    with_common_keys,
)
from ucle.inputs.states import BoundInput, SizedInput
from ucle.ir.tensor_types import TensorType
from ucle.language.bounds import Bounds, SizeClasses, infer_bounds, known_bounds, size_classes
from ucle.language.shared_times import join_shifted_times
from ucle.language.syntax import Statement
from ucle.plan.sources import TableSource

LARGEST_BOUND = 2**62
"""No axis is this long: a larger maximum is a limit of the type, and says nothing of the data."""


@dataclass(frozen=True)
class SizedInputs:
    """The inputs of a program with their types, and the sizes of all its labels."""

    bound: Mapping[str, BoundInput]
    """All inputs, with the types in which their keys are read."""
    inputs: Mapping[str, SizedInput]
    types: Mapping[str, TensorType]
    bounds: Bounds
    dictionaries: Dictionaries


def size_inputs(
    session: Session,
    statements: tuple[Statement, ...],
    inputs: Mapping[str, BoundInput],
    stated: Mapping[str, int],
) -> SizedInputs:
    """Compute the sizes of all labels of resolved statements from inputs and stated sizes.

    Args:
        session: where the tables are.
        statements: the statements, resolved.
        inputs: their inputs, bound.
        stated: sizes of labels that the caller states.

    Raises:
        BoundError: sizes contradict each other.
        CoordinateError: a coordinate is outside a bound that is stated.
        ValueTypeError: a label is addressed by a dictionary in one table, by position in another,
            or by values of two kinds.
    """
    classes = size_classes(statements)
    join_symmetric(classes, inputs)
    keys, times = find_key_axes(inputs)
    if times:
        own_bounds = {name: bound.bounds for name, bound in inputs.items()}
        known = [site for site, _ in known_bounds(statements, own_bounds, stated)]
        join_shifted_times(statements, classes, times, keys, known)
    inputs = with_common_keys(inputs, classes)
    dictionaries, axis_bounds = bind_dictionaries(session, inputs, classes, fresh_prefix())
    largest = {name: most for name, x in inputs.items() if (most := _largest(x)) is not None}
    bounds = infer_bounds(statements, axis_bounds, stated, classes, dictionaries.axes, largest)
    types = {
        name: TensorType(
            tuple(bounds.axis_label(name, axis, x) for axis, x in enumerate(bound.labels)),
            dtype=bound.dtype,
            fill=bound.fill,
            values=bound.values,
        )
        for name, bound in inputs.items()
    }
    sized = {name: SizedInput.of(bound, types[name].shape) for name, bound in inputs.items()}
    types = {name: _with_coverage(type_, sized[name]) for name, type_ in types.items()}
    return SizedInputs(inputs, sized, types, bounds, dictionaries)


def _largest(bound: BoundInput) -> int | None:
    """The largest entry of an input of integers; -1 for an empty input, None if unknown."""
    if bound.dtype is not DType.INT64 or bound.values.high >= LARGEST_BOUND:
        return None
    if any(axis.size == 0 for axis in bound.bounds):
        return -1
    if 0 < math.prod(axis.size for axis in bound.bounds) <= bound.statistics.entries:
        return int(bound.values.high)
    return max(int(bound.values.high), int(bound.fill.real))


def join_symmetric(classes: SizeClasses, inputs: Mapping[str, BoundInput]) -> None:
    """Give the first two axes of a symmetric input the same size class."""
    for name, bound in inputs.items():
        if isinstance(bound.source, TableSource) and bound.source.symmetric:
            classes.join((name, 0), (name, 1))


def _with_coverage(type_: TensorType, bound: SizedInput) -> TensorType:
    """Add to the type of an input what is known of the places of entries other than the fill."""
    known, source = bound.statistics, bound.source
    if isinstance(source, TableSource) and source.sum_duplicates:  # sums may equal the fill
        return type_
    spec = bound.described.spec
    if spec.varies and (isinstance(source, TableSource) or spec.infinity == type_.fill):
        return type_
    full = 0 < math.prod(type_.shape) <= known.entries
    type_ = replace(type_, values=replace(type_.entries, full=full))
    covered = known.find_covered_axes(type_.shape)
    in_tiles = isinstance(source, TableSource) and bool(source.tiles)
    decided = frozenset[int]() if in_tiles else known.find_decided_axes()
    return replace(type_, covered=covered, occupied=known.entries > 0, decided=decided)
