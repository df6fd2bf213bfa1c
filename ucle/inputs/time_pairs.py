"""Pairs of coordinates: a key column, often of times, read in place of the rows of a relation."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from ucle.errors import ValueTypeError
from ucle.foundation.dtypes import DType
from ucle.foundation.names import sql_name
from ucle.inputs.column_roles import assign_columns
from ucle.inputs.column_types import Column, key_kind
from ucle.inputs.inputs import DescribedTable
from ucle.inputs.selected_coordinates import as_coordinate
from ucle.plan.sources import RangeEnd, TableSource, TimePairs

COUNTED = "rolling(7) counts positions"
"""Advice for axes that have no times."""

RESULT, ENTRY = "period", "time"
"""The columns of the pairs."""


def axes_of_relation(times: TimePairs) -> tuple[str, ...]:
    """Labels for the axes of the relation that the times are read from."""
    return tuple(f"axis {n}" for n in range(times.rank))


def times_source(
    name: str, described: DescribedTable, columns: Sequence[Column], foreign: Mapping[str, str]
) -> TableSource:
    """The source of the pairs of times that the spec of an input describes.

    Raises:
        InputError: the columns of the relation do not fit its rank.
        ValueTypeError: the key column holds no times that can be counted from a fixed one, or no
            coordinates of the type of the ends of a range.
    """
    spec, where = described.spec, f"input {name}, {described.origin}"
    times = spec.times
    assert times is not None
    keys, _ = assign_columns(spec, columns, axes_of_relation(times), where, foreign)
    if times.axis >= len(keys):
        raise _no_times(where, "an axis of arrays", COUNTED)
    key = keys[times.axis]
    kind = key_kind(key.type)
    encoded = (True, True)
    if times.kind == "range":
        _check_ends(times, key, f"{where}, column {key.name}")
        encoded = (True, kind != "integers" or 1 in spec.encoded_keys)
    else:
        _check_times(times, key, f"{where}, column {key.name}")
    return TableSource(
        described.origin,
        (RESULT, ENTRY),
        None,
        dtype=DType.BOOL,
        constant=True,
        encoded=encoded,
        key_types=(key.type, key.type),
        times=_of_column(times, key),
    )


def _of_column(times: TimePairs, key: Column) -> TimePairs:
    """The pairs, and those that their coordinates are of, with the key column."""
    of = None if times.of is None else _of_column(times.of, key)
    return replace(times, column=key.name, type=key.type, of=of)


def _check_times(times: TimePairs, key: Column, where: str) -> None:
    kind = key_kind(key.type)
    zoned = kind == "timestamps with a time zone" and times.kind == "window"
    if kind != "dates and timestamps" and not zoned:
        raise _no_times(where, key.type, _advice(key, kind))


ENDS: dict[str, Callable[[RangeEnd], bool]] = {
    "integers": lambda end: isinstance(end, int),
    "text": lambda end: isinstance(end, str),
    "dates and timestamps": lambda end: (
        isinstance(end, datetime.date) and getattr(end, "tzinfo", None) is None
    ),
    "timestamps with a time zone": lambda end: (
        isinstance(end, datetime.datetime) and end.tzinfo is not None
    ),
    "TIME": lambda end: isinstance(end, datetime.time),
}
"""Which values are ends of a range, by the kind of a key column."""


def _check_ends(times: TimePairs, key: Column, where: str) -> None:
    """Check that the ends of a range are of the type of its key column, which has an order."""
    fits = ENDS.get(key_kind(key.type))
    given = next(end for end in (times.low, times.high) if end is not None)
    if fits is None or key.type.startswith("ENUM"):
        raise ValueTypeError(
            "a slice needs coordinates whose order is known",
            where=where,
            expected="integers, text, dates, timestamps or times of day",
            found=key.type,
            hint="sel with a list of coordinates selects these",
        )
    if not fits(given):
        written = as_coordinate("axis", given, key.type).removeprefix("write sel(axis=")
        raise ValueTypeError(
            "sel selects a slice of coordinates of another type than the axis has",
            where=where,
            expected=f"ends of {key.type}",
            found=repr(given),
            hint=f"write slice({written.removesuffix(')')}, ...)",
        )


def _advice(key: Column, kind: str) -> str:
    """Say how a key column becomes one of times."""
    name = sql_name(key.name)
    if kind == "timestamps with a time zone":
        return f"a view with {name} AT TIME ZONE 'UTC' has no time zone"
    if kind != "text":
        return COUNTED
    return (
        f"a view with CAST({name} AS DATE) has dates, and one with strptime({name}, '%d.%m.%Y') "
        "if they are written as in 31.12.2023"
    )


def _no_times(where: str, found: str, hint: str) -> ValueTypeError:
    return ValueTypeError(
        "steps of time need dates or timestamps",
        where=where,
        expected="a key column of DATE or TIMESTAMP",
        found=found,
        hint=hint,
    )
