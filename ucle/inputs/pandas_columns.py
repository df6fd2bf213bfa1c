"""pandas columns as Arrow arrays: the type of each fits all of its values.

DuckDB reads frames itself, but infers the type of a column of objects from a sample of its rows,
and does not support some types. Takes frames and series; nothing here imports pandas.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ucle.errors import InputError, UcleError, ValueTypeError
from ucle.foundation.libraries import pa
from ucle.foundation.names import fold_name

MISSING = frozenset({"NoneType", "NAType", "NaTType"})
"""Names of the types of missing values; NaN is a float."""

TRUTHS = (bool, np.bool_)
WHOLE = (int, np.integer)
REAL = (float, np.floating, Decimal)
COMPLEX = (complex, np.complexfloating)
LISTS = (list, tuple, np.ndarray)


def frame_table(where: str, frame: Any, needed: frozenset[str] | None) -> pa.Table:
    """Convert a pandas frame to an Arrow table.

    Args:
        where: the frame, for messages.
        frame: the frame; its index is ignored.
        needed: the columns that are read, folded, if known: other columns may be of any type.

    Raises:
        InputError: a column has a type that is neither numeric nor usable for coordinates.
        ValueTypeError: the values of a column have several types.
    """
    names = _distinct([str(name) for name in frame.columns])
    columns = {}
    for name, (_, column) in zip(names, frame.items(), strict=True):
        try:
            columns[name] = column_array(f"{where}, column {name}", column)
        except UcleError:
            if needed is None or fold_name(name) in needed:
                raise
    return pa.table(columns)


def _distinct(names: list[str]) -> list[str]:
    """Make names of columns unique as DuckDB does: the second `a` becomes `a_1`."""
    taken: set[str] = set()
    for n, name in enumerate(names):
        number = 1
        while names[n] in taken:
            names[n] = f"{name}_{number}"
            number += 1
        taken.add(names[n])
    return names


def column_array(where: str, column: Any) -> Any:
    """Convert a column to an Arrow array; NaN is a missing value, as in pandas."""
    dtype = column.dtype
    try:
        if hasattr(dtype, "categories") and not hasattr(dtype, "closed"):
            if str(dtype.categories.dtype) not in ("str", "string"):
                return column_array(where, column.astype(dtype.categories.dtype))
        elif type(dtype).__name__ == "SparseDtype":
            return column_array(where, column.sparse.to_dense())
        elif isinstance(dtype, np.dtype):
            return _numpy_array(where, column.to_numpy())
        made = pa.array(column, from_pandas=True)
    except UcleError:
        raise
    except Exception as error:  # any pandas type may raise an error of its own
        raise _unreadable(where, dtype, error) from error
    if str(getattr(made.type, "extension_name", "")).startswith("pandas."):
        raise _unreadable(where, dtype, None)
    return made


def _unreadable(where: str, dtype: object, error: Exception | None) -> InputError:
    reason = f": {type(error).__name__}: {error}".splitlines()[0] if error is not None else ""
    return InputError(
        "this column cannot be read",
        where=where,
        expected="numbers, text, dates, categories, or lists of numbers",
        found=f"dtype {dtype}{reason}",
        hint="convert it with astype(float), or with astype(str) if it holds coordinates; "
        "ucle.table(frame, columns, value) reads only the columns that it names",
    )


def _numpy_array(where: str, values: NDArray[Any]) -> Any:
    kind = values.dtype.kind
    values = values.astype(values.dtype.newbyteorder("="), copy=False)
    if kind == "O":
        return object_array(where, values.tolist())
    if kind == "c":
        return complex_pairs(_narrow_numbers(where, values, np.complex128))
    if kind == "f":
        values = values.astype(np.float32) if values.itemsize < 4 else values
        values = _narrow_numbers(where, values, np.float64)
    return pa.array(values, from_pandas=True)


def _narrow_numbers(where: str, values: NDArray[Any], widest: Any) -> NDArray[Any]:
    """Convert numbers that are wider than the widest type to it, if it represents them exactly."""
    if values.itemsize <= np.dtype(widest).itemsize:
        return values
    narrow = values.astype(widest)
    wrong = (narrow.astype(values.dtype) != values) & ~np.isnan(values)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise _no_number(where, row, values[row], f"numbers that {np.dtype(widest)} has")
    return narrow


def complex_pairs(values: NDArray[Any]) -> Any:
    """Complex numbers as pairs (re, im)."""
    parts = [np.ascontiguousarray(part) for part in (values.real, values.imag)]
    return pa.StructArray.from_arrays([pa.array(part) for part in parts], ["re", "im"])


def object_array(where: str, values: Sequence[Any]) -> Any:
    """Convert Python objects to an Arrow array, in a type that fits all of them.

    Whole numbers among floats become floats if that is exact; truth values among numbers become 0
    and 1.

    Raises:
        ValueTypeError: there is no such type.

    >>> object_array("here", [1, None, 0.5]).type, object_array("here", [[1], [2, 0.5]]).type
    (DataType(double), LargeListType(large_list<item: double>))
    """
    kinds = {kind for kind in set(map(type, values)) if kind.__name__ not in MISSING}
    if any(issubclass(kind, LISTS) for kind in kinds):
        return _list_array(where, values)
    numbers = (*TRUTHS, *WHOLE, *REAL, *COMPLEX)
    if kinds and all(issubclass(kind, numbers) for kind in kinds):
        return _number_array(where, values, kinds)
    type_ = None
    if kinds and all(issubclass(kind, dt.date) for kind in kinds):
        values = _dates(where, values)
        if any(getattr(x, "nanosecond", 0) for x in values):  # which Arrow would drop
            type_ = pa.timestamp(
                "ns", "UTC" if any(getattr(x, "tzinfo", 0) for x in values) else None
            )
    elif len(kinds - {float}) > 1:  # NaN is a missing value in a column of any type
        raise _several_types(where, values)
    try:
        return pa.array(values, type_, from_pandas=True)
    except Exception as error:
        raise InputError(
            "these values cannot be read",
            where=where,
            expected="numbers, text, dates, or lists of numbers",
            found=", ".join(sorted(kind.__name__ for kind in kinds))
            + f": {str(error).splitlines()[0]}",
            hint="convert them with astype(float), or with astype(str) if they are coordinates",
        ) from error


def _several_types(where: str, values: Sequence[Any]) -> ValueTypeError:
    there = [(n, x) for n, x in enumerate(values) if type(x).__name__ not in MISSING]
    first = there[0][1]
    row, other = next((n, x) for n, x in there if type(x) is not type(first))
    return ValueTypeError(
        "the values of a column are of several types",
        where=f"{where}, row {row}",
        expected=f"{type(first).__name__}, as in row {there[0][0]}",
        found=f"{other!r}, which is {type(other).__name__}",
        hint="convert all of them to text with astype(str), or to numbers with astype(float)",
    )


def _no_number(where: str, row: int, value: Any, expected: str) -> ValueTypeError:
    return ValueTypeError(
        "a number does not fit the type of all other values",
        where=f"{where}, row {row}",
        expected=expected,
        found=f"{value!r}",
        hint="astype(float) rounds it",
    )


def _number_array(where: str, values: Sequence[Any], kinds: set[type]) -> Any:
    """Convert numbers to bool, int64, uint64, float64 or pairs, whichever type holds them all."""
    if all(issubclass(kind, TRUTHS) for kind in kinds):
        return pa.array(values, pa.bool_(), from_pandas=True)
    if any(issubclass(kind, COMPLEX) for kind in kinds):
        return _complex_array(where, values)
    floats = any(issubclass(kind, REAL) and kind is not Decimal for kind in kinds)
    if floats or any(isinstance(x, Decimal) and _is_fraction(x) for x in values):
        return pa.array(
            [_float(where, row, x) for row, x in enumerate(values)], pa.float64(), from_pandas=True
        )
    # A column of whole decimals becomes one of integers.
    whole = [None if _is_missing(x) else int(x) for x in values]
    there = [x for x in whole if x is not None]
    low, high = min(there, default=0), max(there, default=0)
    if low >= -(2**63) and high < 2**63:
        return pa.array(whole, pa.int64())
    if low >= 0 and high < 2**64:
        return pa.array(whole, pa.uint64())
    row = next(n for n, x in enumerate(whole) if x is not None and not -(2**63) <= x < 2**63)
    raise _no_number(where, row, whole[row], "whole numbers within 64 bits")


def _is_fraction(value: Decimal) -> bool:
    return value.is_infinite() or (value.is_finite() and value != value.to_integral_value())


def _is_missing(value: Any) -> bool:
    return type(value).__name__ in MISSING or _is_nan(value)


def _is_nan(value: Any) -> bool:
    """True if a value is NaN, of any type of numbers."""
    if isinstance(value, Decimal):
        return value.is_nan()
    number = isinstance(value, (*REAL, *COMPLEX))
    return number and bool(np.isnan(value))


def _float(where: str, row: int, value: Any) -> float | None:
    """Convert a number to a float; decimals are rounded, other numbers must be exact."""
    if type(value).__name__ in MISSING:
        return None
    number = math.nan if _is_nan(value) else float(value)
    if not isinstance(value, Decimal) and number != value and not _is_nan(value):
        raise _no_number(where, row, value, "numbers that float64 has, as others are no integers")
    return number


def _complex_array(where: str, values: Sequence[Any]) -> Any:
    pairs = np.zeros(len(values), np.complex128)
    for row, value in enumerate(values):
        if type(value).__name__ in MISSING:
            raise _no_number(where, row, value, "complex numbers, none of them missing")
        pairs[row] = number = complex(value)
        if number != value and not _is_nan(value):
            raise _no_number(where, row, value, "numbers that complex128 has")
    return complex_pairs(pairs)


def _dates(where: str, values: Sequence[Any]) -> list[Any]:
    """Check that values are all with or all without a time zone; convert dates among times."""
    times = [x for x in values if isinstance(x, dt.datetime) and type(x).__name__ not in MISSING]
    if not times:
        return list(values)
    zones = {x.tzinfo is None for x in times}
    days = any(isinstance(x, dt.date) and not isinstance(x, dt.datetime) for x in values)
    if len(zones) > 1 or (days and False in zones):
        row = next(
            n for n, x in enumerate(values)
            if isinstance(x, dt.date) and type(x).__name__ not in MISSING
            and getattr(x, "tzinfo", None) is None
        )  # fmt: skip
        raise ValueTypeError(
            "some times have a time zone, and some have none",
            where=f"{where}, row {row}",
            expected="a time zone, as others have one",
            found=repr(values[row]),
            hint="pandas.to_datetime(column, utc=True) gives all of them the same time zone",
        )
    midnight = dt.time()
    return [
        dt.datetime.combine(x, midnight)
        if isinstance(x, dt.date) and not isinstance(x, dt.datetime)
        else x
        for x in values
    ]


def _list_array(where: str, values: Sequence[Any]) -> Any:
    """Convert lists, whose elements must all fit one type."""
    lengths, leaves = [], []
    for value in values:
        if _is_missing(value):
            lengths.append(0)
            continue
        if not isinstance(value, LISTS) or (isinstance(value, np.ndarray) and not value.ndim):
            raise _several_types(where, values)
        lengths.append(len(value))
        leaves.append(value)
    missing = np.array([not isinstance(x, LISTS) for x in values], np.bool_)
    offsets = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
    vectors = [x for x in leaves if isinstance(x, np.ndarray) and x.ndim == 1]
    if leaves and len(vectors) == len(leaves) and len({x.dtype for x in vectors}) == 1:
        elements = _numpy_array(where, np.concatenate(vectors))
    else:
        elements = object_array(f"{where}, elements", [x for leaf in leaves for x in leaf])
    mask = pa.array(missing) if missing.any() else None
    return pa.LargeListArray.from_arrays(pa.array(offsets), elements, mask=mask)
