"""The types of the tensors that vertices make: fill and values, derived from their operands.

The fill goes through every operation as a value of its own; the possible values of the other
entries follow the rules of `ucle.ir.ranges`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from ucle.errors import BoundError, ValueTypeError
from ucle.foundation.dtypes import DType, Scalar, same_value
from ucle.ir.axis_functions import LONGEST_AXIS, Along, MatrixMap, Running, TopK
from ucle.ir.conditions import NOTHING as ALWAYS
from ucle.ir.conditions import Compare, Sign
from ucle.ir.coverage import (
    NOTHING,
    Coverage,
    aggregates_entries,
    coverage,
    decided_labels,
    joined_coverage,
    jointly_decided,
)
from ucle.ir.fills import combined_fill
from ucle.ir.forests import NAME as FOREST
from ucle.ir.forests import Forest
from ucle.ir.index_maps import IndexMap
from ucle.ir.layouts import Label
from ucle.ir.linear_systems import NAME as SOLVE
from ucle.ir.linear_systems import LinearSystem
from ucle.ir.maps import Cast, Map, Pointwise
from ucle.ir.ranges import (
    absorbs,
    cast_values,
    combine_values,
    join_values,
    map_values,
    reduce_values,
)
from ucle.ir.tensor_types import NamedTensor, TensorType
from ucle.ir.vertices import PairFunction, Program, Span, Vertex
from ucle.operators import Combine, Reduce
from ucle.operators.values import YES, Values, anything, hull, point

Labels = tuple[Label, ...]


def unary_type(
    source: TensorType,
    every: Labels,
    maps: Sequence[Pointwise],
    labels: Labels,
    reduce: Reduce | None,
    span: Span | None,
) -> TensorType:
    """Return the type of the tensor that maps and ⊕ make of one operand.

    Args:
        source: type of the operand.
        every: labels of the operand.
        maps: applied first to last.
        labels: labels of the result.
        reduce: ⊕; None if nothing is aggregated.
        span: place of the statement, for messages.

    Raises:
        ValueTypeError: the element type cannot hold the fill of the result.
        BoundError: an aggregation over no entries has no value.
    """
    fill, values, dtype = source.fill, source.entries, source.dtype
    for step in maps:
        try:
            fill = step(fill)
        except (OverflowError, ValueError) as error:
            raise _unrepresentable(fill, step.result, span) from error
        values, dtype = _map_range(step, values), step.result
    over = _find_reduced_labels(every, labels)
    covered, decided = coverage(source, every), decided_labels(source, every)
    return _after_reduction(fill, values, dtype, labels, over, reduce, span, covered, decided)


def binary_type(
    operator: Combine,
    types: tuple[TensorType, TensorType],
    every: Labels,
    labels: Labels,
    reduce: Reduce | None,
    span: Span | None,
) -> TensorType:
    """Return the type of the tensor that ⊗ and ⊕ make of two operands; as `unary_type`."""
    one, other = types
    try:
        fill = combined_fill(operator, one, other)
    except ValueError as error:  # NumPy does not raise integers to negative powers
        raise _unrepresentable(other.fill, one.dtype, span) from error
    operands = one.entries, other.entries, (one.fill, other.fill), one.dtype
    values, over = join_values(operator, *operands), _find_reduced_labels(every, labels)
    sides = every[: one.rank], every[one.rank :]
    absorbing = absorbs(operator, *operands)
    covered = joined_coverage(types, sides, absorbing)
    decided = jointly_decided(types, sides, absorbing)
    return _after_reduction(fill, values, one.dtype, labels, over, reduce, span, covered, decided)


def index_dtype(source: DType, index: IndexMap) -> DType:
    """Return the element type of the result of an index map on a tensor."""
    if index.hit is not None:
        return DType.BOOL
    return source if index.value is None else DType.INT64


def reindexed_type(source: TensorType, axes: Labels, index: IndexMap, labels: Labels) -> TensorType:
    """Return the type of the result of reading a tensor through an index map.

    Args:
        source: type of the tensor.
        axes: its labels.
        index: the coordinates at which it is read.
        labels: labels of the result.
    """
    dtype = index_dtype(source.dtype, index)
    sizes = {label.name: label.bound for label in labels}
    if 0 in sizes.values():
        return TensorType(labels, dtype, dtype.scalar(index.outside), anything(dtype))
    if index.hit is not None:
        places = {n for n, label in enumerate(labels) if label.name != index.hit and index.read}
        return TensorType(
            labels,
            dtype,
            False,
            YES,
            frozenset(places),
            bool(index.read),
            frozenset(n for n, label in enumerate(labels) if label.name == index.hit),
        )
    if index.value is not None:
        low, high = (end(sizes.__getitem__) for end in (index.value.least, index.value.most))
        values = Values(max(low, 1) if low >= 0 else low, max(high, 1))
    else:
        values = source.every if index.dense else source.entries
    inside = all(
        each.least(sizes.__getitem__) >= 0 and each.most(sizes.__getitem__) < axis.bound
        for each, axis in zip(index.indices, axes, strict=True)
    )
    always = inside and index.condition == ALWAYS and index.value is None
    full = always and (source.entries.full or index.dense)
    there = inside and source.entries.full and index.value is None
    covered = _diagonal_coverage(index, labels) if there else frozenset()
    outside, values = dtype.scalar(index.outside), replace(values, full=full)
    return TensorType(labels, dtype, outside, values, covered, bool(covered))


def _diagonal_coverage(index: IndexMap, labels: Labels) -> frozenset[int]:
    """Return the axes that a diagonal covers, if an index map reads one; else none.

    Along such an axis every coordinate has an entry on the diagonal. If one of the two axes is
    longer, the positions past the end of the shorter one have none, so that the longer axis is not
    covered.
    """
    condition = index.condition
    if not isinstance(condition, Compare) or condition.sign is not Sign.EQUAL:
        return frozenset()
    affine, sizes = condition.affine, {label.name: label.bound for label in labels}
    if not affine.linear or affine.constant or sorted(n for _, n in affine.terms) != [-1, 1]:
        return frozenset()
    least = min(sizes[label] for label in affine.labels)
    own = {label for label in affine.labels if sizes[label] > least}
    return frozenset(place for place, label in enumerate(labels) if label.name not in own)


def along_type(source: TensorType, along: Along, labels: Labels) -> TensorType:
    """Return the type of the result of a scan over fibres or of a function of matrices.

    Args:
        source: type of the tensor, with the element type of the computation.
        along: the scan or the function of matrices.
        labels: labels of the tensor and of the result.

    Raises:
        BoundError: a matrix has another shape than the function demands.
    """
    sizes = {x.name: x.bound for x in labels}
    if isinstance(along, MatrixMap):
        _check_shape(along, sizes)
        finite = anything(source.dtype, finite=source.every.finite)
        values = replace(finite, overflows=True, varies=source.every.varies, full=True, vague=True)
        return TensorType(labels, source.dtype, source.dtype.scalar(0), values)
    return _running_type(source, along, labels)


def _check_shape(along: MatrixMap, sizes: Mapping[str, int]) -> None:
    rows, columns, shape = sizes[along.row], sizes[along.column], along.function.shape
    if not shape.fits(rows, columns):
        raise BoundError(
            f"{along.name} needs {shape.name.lower()} matrices",
            where=f"{along.name}[{','.join(along.labels)}]",
            expected=shape.value.format(row=along.row, column=along.column),
            found=f"{along.row}: {rows}, {along.column}: {columns}",
        )


def _running_type(source: TensorType, running: Running, labels: Labels) -> TensorType:
    dtype, size = source.dtype, {x.name: x.bound for x in labels}[running.label]
    stable = running.is_stable(source.fill, dtype)
    every = source.entries if source.entries.full else source.every
    values = running.values(every, source.fill, size, dtype)
    full, vague = source.entries.full or not stable, every.vague
    values = replace(values, full=full, vague=vague)
    return TensorType(labels, dtype, source.fill if stable else dtype.scalar(0), values)


def top_type(source: TensorType, top: TopK, axes: Labels, labels: Labels) -> TensorType:
    """Return the type of the result of top-k along an axis, with the positions of the entries.

    Args:
        source: type of the tensor; its element type can hold positions.
        top: the top-k operation.
        axes: labels of the tensor.
        labels: labels of the result.

    Raises:
        BoundError: k is not between 1 and the size of the axis, or there are more positions than
            the element type can number.
    """
    sizes = {label.name: label.bound for label in (*axes, *labels)}
    size, count = sizes[top.label], sizes[top.rank]
    if not 1 <= count <= size:
        raise BoundError(
            f"there are not so many entries along the label {top.label!r}",
            where=f"{top.name}[{top.label},{top.rank}]",
            expected=f"{top.rank} from 1 to {size}, the size of {top.label}",
            found=f"{top.rank}: {count}",
        )
    if source.dtype is DType.FLOAT64 and size > LONGEST_AXIS:
        raise BoundError(
            f"there are more positions along the label {top.label!r} than numbers",
            where=f"{top.name}[{top.label},{top.rank}]",
            expected=f"at most {LONGEST_AXIS} positions",
            found=str(size),
        )
    if top.stored_first:  # arrays have positions, which nothing reads
        return TensorType(labels, source.dtype, source.fill, source.entries)
    every = source.entries if source.entries.full else source.every
    values = replace(hull(every, Values(0, size - 1)), full=True)
    return TensorType(labels, source.dtype, source.dtype.scalar(0), values)


def forest_type(
    sources: tuple[TensorType, TensorType], forest: Forest, labels: Labels
) -> TensorType:
    """Return the type of the sums of a forest.

    Args:
        sources: types of the features and of the packed forest, both of float64.
        forest: its labels.
        labels: labels of the result.

    Raises:
        BoundError: there are no features.
    """
    features, packed = sources
    if features.axes[-1].bound == 0:
        raise BoundError(
            "a forest has no features to look at",
            where=f"{FOREST}[{forest.feature},{forest.node}]",
            expected=f"a label {forest.feature} of size 1 or more",
            found="0",
        )
    varies = features.every.varies or packed.every.varies
    values = replace(anything(packed.dtype, finite=packed.every.finite), overflows=True)
    return TensorType(labels, packed.dtype, 0.0, replace(values, varies=varies, full=True))


def system_type(
    sources: tuple[TensorType, TensorType], system: LinearSystem, labels: Labels
) -> TensorType:
    """Return the type of the solutions of systems of linear equations.

    Args:
        sources: types of the matrices and of the right-hand sides, of one element type.
        system: its labels.
        labels: labels of the result.

    Raises:
        BoundError: the matrices are not square.
    """
    matrix, sides = sources
    *_, rows, columns = (axis.bound for axis in matrix.axes)
    if rows != columns:
        raise BoundError(
            f"{SOLVE} needs square matrices",
            where=f"{SOLVE}[{system.row},{system.column}]",
            expected=f"labels {system.row} and {system.column} of one size",
            found=f"{system.row}: {rows}, {system.column}: {columns}",
        )
    finite = matrix.every.finite and sides.every.finite
    varies = matrix.every.varies or sides.every.varies
    values = replace(anything(matrix.dtype, finite=finite), overflows=True, varies=varies)
    return TensorType(
        labels, matrix.dtype, matrix.dtype.scalar(0), replace(values, full=True, vague=True)
    )


def pair_type(
    sources: tuple[TensorType, TensorType], pair: PairFunction, labels: Labels
) -> TensorType:
    """Return the type of the result of a forest or of systems of equations; as theirs."""
    if isinstance(pair, Forest):
        return forest_type(sources, pair, labels)
    return system_type(sources, pair, labels)


def retype_program(program: Program, inputs: Mapping[str, TensorType]) -> Program:
    """Return the program with new types for its inputs and the types that follow from them.

    Raises:
        UcleError: as `unary_type`.
    """
    types = dict(inputs)
    vertices = []
    for vertex in program.vertices:
        types[vertex.name] = type_ = vertex_type(vertex, types)
        vertices.append(replace(vertex, tensor=NamedTensor(vertex.name, type_)))
    tensors = tuple(NamedTensor(tensor.name, inputs[tensor.name]) for tensor in program.inputs)
    return replace(program, inputs=tensors, vertices=tuple(vertices))


def vertex_type(vertex: Vertex, types: Mapping[str, TensorType]) -> TensorType:
    """Return the type of a vertex's tensor from the types of its operands; as `unary_type`."""
    first, *second = (types[operand.tensor] for operand in vertex.inputs)
    if vertex.index is not None:
        return reindexed_type(first, vertex.inputs[0].labels, vertex.index, vertex.labels)
    if vertex.along is not None:
        return along_type(first, vertex.along, vertex.labels)
    if vertex.top is not None:
        return top_type(first, vertex.top, vertex.inputs[0].labels, vertex.labels)
    if vertex.pair is not None:
        return pair_type((first, second[0]), vertex.pair, vertex.labels)
    every = tuple(label for operand in vertex.inputs for label in operand.labels)
    signature = every, vertex.labels, vertex.reduce, vertex.span
    if vertex.combine is not None:
        type_ = binary_type(vertex.combine, (first, second[0]), *signature)
    else:
        type_ = unary_type(first, every, vertex.maps, *signature[1:])
    return replace(type_, axes=vertex.tensor.type.axes)


def _map_range(step: Pointwise, values: Values) -> Values:
    if isinstance(step, Cast):
        return cast_values(values, step.source, step.result)
    if isinstance(step, Map):
        return map_values(step.function, values, step.dtype)
    constant = point(step.constant, step.dtype)
    pair = (constant, values) if step.constant_first else (values, constant)
    varies = values.varies and not step.combine.indicates
    return replace(combine_values(step.combine, *pair, step.dtype), full=values.full, varies=varies)


def _after_reduction(
    fill: Scalar,
    values: Values,
    dtype: DType,
    labels: Labels,
    over: Labels,
    reduce: Reduce | None,
    span: Span | None,
    covered: Coverage,
    decided: frozenset[Label],
) -> TensorType:
    if reduce is not None and over and not _picks(fill, dtype, over, reduce, decided):
        decided = frozenset()
        if not aggregates_entries(reduce, values, fill):
            covered = NOTHING
        size = math.prod(label.bound for label in over)
        values = reduce_values(reduce, values, fill, size, dtype)
        needed = all(label.bound for label in labels)
        fill = _reduced_fill(fill, size, over, reduce, dtype, span, needed)
    if covered.is_everywhere(labels):
        values = replace(values, full=True)
    places, known = (
        frozenset(axis for axis, label in enumerate(labels) if label in own)
        for own in (covered.labels, decided)
    )
    return TensorType(labels, dtype, fill, values, places, covered.some, known)


def _picks(
    fill: Scalar, dtype: DType, over: Labels, reduce: Reduce, decided: frozenset[Label]
) -> bool:
    """Return whether an aggregation picks one entry because all others are the identity."""
    if not decided.issuperset(over) or reduce.identity is None:
        return False
    if any(label.bound == 0 for label in over):
        return False
    return same_value(fill, reduce.identity(dtype))


def _find_reduced_labels(every: Labels, output: Labels) -> Labels:
    return tuple(label for label in dict.fromkeys(every) if label not in output)


def _reduced_fill(
    fill: Scalar,
    size: int,
    over: Labels,
    operator: Reduce,
    dtype: DType,
    span: Span | None,
    needed: bool,
) -> Scalar:
    """Return the value of a cell whose whole fibre is fill; `needed` is False if there is none."""
    if not size and not needed:
        return dtype.scalar(0)
    if not size and (operator.needs_one or operator.identity is None):
        raise BoundError(
            f"the {operator.name} of nothing is not defined",
            where=str(span),
            expected="labels with a bound of at least 1",
            found=", ".join(str(label) for label in over),
            hint="leave empty inputs out, or state a bound",
        )
    if not size:
        assert operator.identity is not None
        return operator.identity(dtype)
    if operator.repeat is None:
        return dtype.scalar(0)  # every cell is stored, so the fill has no meaning
    try:
        return operator.reduce_copies(fill, size, dtype)
    except OverflowError as error:
        raise _unrepresentable(fill, dtype, span) from error


def _unrepresentable(fill: Scalar, dtype: DType, span: Span | None) -> ValueTypeError:
    return ValueTypeError(
        f"what entries that are not stored are worth does not fit {dtype.value}",
        where=str(span) if span else None,
        expected=f"a fill whose value {dtype.value} can hold",
        found=f"fill {fill}",
        hint="float64(...) around the operand computes with floats",
    )
