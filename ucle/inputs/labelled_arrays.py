"""Labelled arrays: pandas series and xarray arrays, whose axes have coordinates.

An index gives the coordinate of each position of such an array. If it is 0, 1, 2, ..., the array is
treated as any other. Otherwise the array becomes a table: its coordinates go through a dictionary,
whatever their type, so that two arrays are joined on equal coordinates. `ucle.einsum` takes arrays
by position, as NumPy does, and checks that coordinates under one label are the same.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ucle.errors import ValueTypeError
from ucle.foundation.exact_numbers import typed_numbers
from ucle.foundation.libraries import pa
from ucle.foundation.names import fold_name
from ucle.inputs.objects import ask_object, dense_array, is_instance, is_table
from ucle.inputs.pandas_columns import complex_pairs, object_array
from ucle.inputs.table_input import TableInput

AxisCoordinates = tuple[NDArray[Any] | None, ...]
"""The coordinates along each axis; None for an axis where they are 0, 1, 2, ..."""


def is_labelled(value: Any) -> bool:
    """True if an object is an array with coordinates, as in pandas and xarray."""
    if isinstance(value, np.ndarray) or is_table(value):
        return False
    if is_instance(value, "pandas", "Series"):
        return True
    return all(hasattr(value, name) for name in ("__array__", "dims", "coords"))


def coordinates_of(where: str, value: Any) -> AxisCoordinates | None:
    """The coordinates of the axes of a labelled array; None if all of them are positions.

    A multi-level index gives one axis per level, none of which is an axis of the array of values.
    """
    if not is_labelled(value):
        return None
    every = ask_object(where, value, lambda: _coordinates(value))
    found = tuple(None if _is_default(each) else each for each in every)
    return found if any(each is not None for each in found) else None


def _coordinates(value: Any) -> list[NDArray[Any]]:
    if is_instance(value, "pandas", "Series"):
        index = value.index
        levels = range(index.nlevels)
        return [np.asarray(index.get_level_values(n)) for n in levels]
    there, shape = value.coords, value.shape
    return [
        np.asarray(there[name]) if name in there else np.arange(size)
        for name, size in zip(value.dims, shape, strict=True)
    ]


def _is_default(coordinates: NDArray[Any]) -> bool:
    if not len(coordinates):
        return True
    whole = coordinates.dtype.kind in "iu"
    return whole and bool(np.array_equal(coordinates, np.arange(len(coordinates))))


def labelled_table(name: str, spec: TableInput) -> TableInput | None:
    """Convert a labelled array to a table; None for arrays without coordinates and other objects.

    Args:
        name: the tensor, for messages.
        spec: the input. The columns that its caller names are those of the table. Keys are named
            after the levels of the index or the dimensions, and the values after the array.

    Raises:
        InputError: its coordinates cannot be read.
        ValueTypeError: coordinates are not whole numbers, or values are not numbers.
    """
    where, array = f"input {name}", spec.relation
    every = coordinates_of(where, array)
    if every is None:
        return None
    _, numbers = typed_numbers(name, dense_array(where, array), spec.dtype)
    names = _axis_names(array)
    series = is_instance(array, "pandas", "Series")
    entries = _of_series if series else _of_array
    keys, values = entries(where, names, numbers, every)
    value = _free(str(getattr(array, "name", None) or "value"), keys)
    table = pa.table({**keys, value: values})
    if spec.columns is not None or spec.value is not None:
        return replace(spec, relation=table)
    inner = () if series else numbers.shape[len(keys) :]
    sizes = (None,) * len(keys) if series else tuple(
        size if each is None else None for size, each in zip(numbers.shape, every, strict=True)
    )  # fmt: skip
    encoded = tuple(n for n in range(len(keys)) if series or every[n] is not None)
    ordered = () if series and len(keys) > 1 else encoded  # levels have repeated values
    return replace(
        spec,
        relation=table,
        columns=tuple(keys),
        value=value,
        shape=inner or None,
        bounds=spec.bounds or sizes,
        encoded_keys=encoded,
        unsorted=frozenset(n for n in ordered if not _in_order(every[n])),
    )


def _axis_names(array: Any) -> list[str]:
    """Names for key columns: those of the levels or dimensions."""
    if not is_instance(array, "pandas", "Series"):
        return [str(name) for name in array.dims]
    names = array.index.names
    unnamed = ["index"] if len(names) == 1 else [f"level_{n}" for n in range(len(names))]
    return [str(name or other) for name, other in zip(names, unnamed, strict=True)]


def _of_series(
    where: str, names: list[str], numbers: NDArray[Any], every: AxisCoordinates
) -> tuple[dict[str, Any], Any]:
    """The columns of a series: a row for each value, with its coordinate in each level."""
    keys: dict[str, Any] = {}
    for name, each in zip(names, every, strict=True):
        level = np.arange(len(numbers)) if each is None else each
        keys[_free(name, keys)] = _key_array(f"{where}, index {name}", level)
    return keys, _value_array(numbers)


def _of_array(
    where: str, names: list[str], numbers: NDArray[Any], every: AxisCoordinates
) -> tuple[dict[str, Any], Any]:
    """The columns of an array: keys up to its last axis with coordinates, then the inner arrays."""
    depth = 1 + max(n for n, each in enumerate(every) if each is not None)
    outer, inner = numbers.shape[:depth], numbers.shape[depth:]
    rows = math.prod(outer)
    places = np.unravel_index(np.arange(rows), outer) if rows else [np.arange(0)] * depth
    keys: dict[str, Any] = {}
    for name, each, place in zip(names, every, places, strict=False):
        key = pa.array(place)
        if each is not None:
            key = _key_array(f"{where}, dimension {name}", each).take(key)
        keys[_free(name, keys)] = key
    values = _value_array(numbers)
    if inner:
        offsets = np.arange(rows + 1, dtype=np.int64) * math.prod(inner)
        values = pa.LargeListArray.from_arrays(pa.array(offsets), values)
    return keys, values


def _value_array(numbers: NDArray[Any]) -> Any:
    flat = np.ascontiguousarray(numbers).reshape(-1)
    return complex_pairs(flat) if flat.dtype.kind == "c" else pa.array(flat)


def _free(name: str, taken: Any) -> str:
    """A name that differs from those of all other columns, ignoring case."""
    others = {fold_name(other) for other in taken}
    return next(
        x
        for n in range(len(taken) + 2)
        if fold_name(x := f"{name}_{n}" if n else name) not in others
    )


def _key_array(where: str, coordinates: NDArray[Any]) -> Any:
    """Convert coordinates to a key column.

    Raises:
        InputError: Arrow has no type for them.
        ValueTypeError: they cannot be coordinates: floats, complex numbers or truth values.
    """
    kind = coordinates.dtype.kind
    coordinates = coordinates.astype(coordinates.dtype.newbyteorder("="), copy=False)
    made = object_array(where, coordinates.tolist()) if kind == "O" else ask_object(
        where, coordinates, lambda: pa.array(coordinates)
    )  # fmt: skip
    if pa.types.is_floating(made.type) or pa.types.is_boolean(made.type) or kind == "c":
        raise ValueTypeError(
            "these coordinates cannot be compared",
            where=where,
            expected="whole numbers, text, dates or the like, as floats are seldom the same",
            found=f"{coordinates.dtype}",
            hint="reset_index(drop=True) (series) or drop_vars (array) replaces them by positions",
        )
    return made


def _in_order(coordinates: NDArray[Any] | None) -> bool:
    """True if coordinates are sorted, so that a dictionary does not reorder them."""
    if coordinates is None or len(coordinates) < 2:
        return True
    try:
        return bool(np.all(coordinates[:-1] <= coordinates[1:]))
    except TypeError:  # of several types, which are refused elsewhere
        return False


def check_same_coordinates(named: list[tuple[str, str, NDArray[Any] | None, bool]]) -> None:
    """Check that arrays that share a label by position have the same coordinates for it.

    Args:
        named: for each axis its label, the operand, its coordinates, and True if the operand is a
            table, which has coordinates of its own.

    Raises:
        ValueTypeError: the coordinates under a label differ, or a table has the label as well.
    """
    first: dict[str, tuple[str, NDArray[Any]]] = {}
    for label, where, coordinates, _ in named:
        if coordinates is None:
            continue
        other, others = first.setdefault(label, (where, coordinates))
        if not np.array_equal(coordinates, others):
            raise _differing(label, where, f"the coordinates of {other}", "others")
    for label, where, _, table in named:
        if table and label in first:
            raise _differing(label, first[label][0], "positions", f"those of {where}, a table")


def _differing(label: str, where: str, expected: str, found: str) -> ValueTypeError:
    return ValueTypeError(
        f"an array is read by position, and the label {label!r} has other coordinates elsewhere",
        where=where,
        expected=expected,
        found=found,
        hint="ucle.einsum_program matches labelled arrays by their coordinates; "
        "to_numpy() drops the coordinates",
    )
