"""Selecting coordinates of an axis by their values: one, a list, or a range of them.

As for positions, a selection is a join with a boolean tensor (`ucle.lazy.selection`). Which
coordinates are in a range, only the data tells: they are read from the key column itself, as a
second input over the same relation (`ucle.plan.sources.TimePairs`).
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from ucle.errors import LabelError, UnsupportedError
from ucle.foundation.dtypes import DType
from ucle.foundation.libraries import pa
from ucle.inputs.table_input import TableInput
from ucle.lazy.axes import AxisLike, find_axis
from ucle.lazy.key_columns import find_key_columns
from ucle.lazy.key_pairs import pairs_of_range
from ucle.lazy.nodes import Axis, Lazy, Leaf, NodeOperand, apply
from ucle.lazy.selection import (
    check_positions,
    integers,
    positions_of_slice,
    take_positions,
    where_picked,
)


def select_coordinates(tensor: Lazy, coordinates: Mapping[AxisLike, Any]) -> Lazy:
    """Select coordinates of named axes: a single one drops its axis, a list keeps it.

    Coordinates are the values in the key columns of tables: strings, dates, or integers. An axis of
    a table keeps the selected coordinates, in their order in the data; an axis of an array uses
    positions as coordinates. A slice of coordinates has both of its ends, as in pandas and xarray;
    one of positions ends before its stop.

    Raises:
        AxisError: there is no such axis.
        LabelError: coordinates are not integers for an axis that uses positions, a coordinate is
            given twice, or the ends of a slice are of two types.
        UnsupportedError: a slice along an axis whose coordinates are in no key column.
    """
    for axis, picked in coordinates.items():
        place = find_axis(tensor, axis, "sel")
        where = f"sel, axis {axis!r} of {tensor}"
        own = tensor.axes[place]
        if isinstance(picked, slice):
            tensor = _slice_axis(tensor, place, picked, where)
            continue
        single = isinstance(picked, str | bytes) or np.ndim(picked) == 0
        values = _coordinates([picked] if single else picked, where)
        numbered = pa.types.is_integer(values.type) or not len(values)
        if not numbered and own.unit:
            raise LabelError(
                "an axis of size 1 has no coordinates but 0",
                where=where,
                expected="position 0",
                found=repr(picked),
            )
        if own.size is not None and numbered and not own.encoded:
            tensor = take_positions(tensor, place, integers(values.to_pylist()))
        else:
            if numbered and not own.encoded:
                check_positions(tensor, place, values.to_pylist())
            tensor = _at_coordinates(tensor, place, values, single, where)
        if single:
            axes = (*tensor.axes[:place], *tensor.axes[place + 1 :])
            tensor = Lazy(tensor.node, axes)
    return tensor


def _slice_axis(tensor: Lazy, place: int, key: slice, where: str) -> Lazy:
    """Select a slice of an axis: of coordinates, with both ends, or of positions."""
    axis = tensor.axes[place]
    if key == slice(None):
        return tensor
    found = [] if axis.unit else find_key_columns(tensor.node, tensor.labelled.index(place))
    sized = axis.size is not None and not axis.encoded
    if sized and not any(_has_coordinates(leaf) for leaf, _ in found):
        return take_positions(tensor, place, positions_of_slice(key, tensor, place))
    low, high = _ends(key, where)
    if axis.size is not None and sized and isinstance(low or high or 0, int):
        last = axis.size - 1 if high is None else min(int(high), axis.size - 1)
        return take_positions(tensor, place, range(max(int(low or 0), 0), last + 1))
    return _in_range(tensor, place, dict.fromkeys(found), low, high, where)


def _has_coordinates(leaf: Leaf) -> bool:
    """True for a table of the caller; constants and selected positions are tables of ours."""
    data = leaf.value.relation
    constant = isinstance(data, pa.Table) and not data.num_rows
    return not (constant or leaf.value.positions)


def _ends(key: slice, where: str) -> tuple[Any, Any]:
    """The ends of a slice of coordinates, which are Python's values of one type."""
    if key.step is not None:
        raise LabelError(
            "a slice of coordinates has no step",
            where=where,
            expected="a start and a stop, both of which belong to the slice",
            found=str(key),
        )
    given = [end for end in (key.start, key.stop) if end is not None]
    values = [_end(end, where) for end in given]
    kinds = {_kind(value) for value in values}
    if len(kinds) > 1:
        raise LabelError(
            "the ends of a slice are not both of one type",
            where=where,
            expected="two dates, two strings or two integers",
            found=f"{key.start!r} and {key.stop!r}",
        )
    low = None if key.start is None else values[0]
    return low, None if key.stop is None else values[-1]


def _end(end: Any, where: str) -> Any:
    if np.ndim(end):
        raise _no_coordinates(end, where)
    (value,) = _coordinates([end], where).to_pylist()
    if _kind(value) is None:
        raise _no_coordinates(end, where)
    return value


def _kind(value: Any) -> type | None:
    """The kind of an end of a range; a date is a time as well."""
    if isinstance(value, bool):
        return None
    kinds = (int, str, datetime.date, datetime.time)
    return next((kind for kind in kinds if isinstance(value, kind)), None)


def _no_coordinates(end: Any, where: str) -> LabelError:
    return LabelError(
        "these are not coordinates",
        where=where,
        expected="ends of a slice: strings, dates, times or integers",
        found=repr(end)[:80],
    )


def _in_range(
    tensor: Lazy, place: int, found: Iterable[tuple[Leaf, int]], low: Any, high: Any, where: str
) -> Lazy:
    """Select the coordinates of an axis between two ends, which are those of key columns."""
    own, new = tensor.axes[place], len(tensor.axes)
    picked: NodeOperand | None = None
    for leaf, axis in found:
        pairs = NodeOperand(pairs_of_range(leaf, axis, own, low, high, where), (new, place))
        if picked is not None:  # the axis has the coordinates of several tables
            axes = (Axis(own.name, None, encoded=True), own)
            pairs = apply("logical_or", [picked, pairs], axes, (new, place)).operand((new, place))
        picked = pairs
    if picked is None:
        raise UnsupportedError(
            "only the data determines which coordinates are in a slice",
            where=where,
            expected="an axis whose coordinates are in a key column of a table, or a list of them",
            found=f"{low!r} to {high!r}",
        )
    return where_picked(tensor, place, Axis(own.name, None, encoded=True), picked)


def _coordinates(picked: Any, where: str) -> pa.Array:
    """Convert coordinates to a column."""
    values = [_python_value(value) for value in picked]
    whole = all(type(value) is int for value in values)
    unsigned = whole and max(values, default=0) >= 2**63
    try:
        column = pa.array(values, pa.uint64() if unsigned else None)
    except (
        pa.ArrowInvalid,
        pa.ArrowTypeError,
        pa.ArrowNotImplementedError,
        OverflowError,
    ) as error:
        raise LabelError(
            "these are not coordinates",
            where=where,
            expected="strings, dates or integers of at most 64 bits, all of one type",
            found=repr(values)[:80],
            hint="a view with the column as VARCHAR has names to select"
            if whole
            else str(error).splitlines()[0],
        ) from error
    if column.null_count or pa.types.is_nested(column.type):
        raise LabelError(
            "these are not coordinates",
            where=where,
            expected="strings, dates or integers",
            found=repr(values)[:80],
        )
    return column


def _python_value(value: Any) -> Any:
    """Convert a coordinate to a Python value; NumPy's dates are converted to microseconds."""
    if isinstance(value, np.ndarray) and not value.ndim:
        value = value[()]
    if isinstance(value, np.datetime64):
        return value.astype("datetime64[us]").item()
    return value.item() if isinstance(value, np.generic) else value


def _at_coordinates(tensor: Lazy, place: int, values: pa.Array, single: bool, where: str) -> Lazy:
    """Join with the selected coordinates of a table's axis, which the axis keeps."""
    axis, new = tensor.axes[place], len(tensor.axes)
    if len(set(values.to_pylist())) < len(values):  # Arrow has no `unique` of UUIDs
        raise LabelError(
            "a coordinate is given twice",
            where=where,
            expected="each coordinate once, because the axis keeps its coordinates",
            found=repr(values.to_pylist())[:80],
        )
    new_axis = Axis(axis.name, 1) if single else Axis(axis.name, None, encoded=True)
    columns = {"picked": values}
    axes: tuple[Axis, ...] = (axis,)
    labels: tuple[int, ...] = (place,)
    encoded: tuple[int, ...] = (0,) if axis.encoded else ()
    if not single:
        columns = {"picked": values, "kept": values}
        axes, labels, encoded = (axis, new_axis), (place, new), (*encoded, 1)
    spec = TableInput(
        pa.table(columns),
        tuple(columns),
        bounds=(None,) * len(columns),
        dtype=DType.BOOL,
        encoded_keys=encoded,
        picks=True,
    )
    picked = Leaf(spec, axes, "picked", DType.BOOL)
    return where_picked(tensor, place, new_axis, NodeOperand(picked, labels))
