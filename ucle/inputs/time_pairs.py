"""Pairs of times: a key column of dates or timestamps, read in place of the rows of a relation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ucle.errors import ValueTypeError
from ucle.foundation.dtypes import DType
from ucle.inputs.column_roles import assign_columns
from ucle.inputs.column_types import Column, key_kind
from ucle.inputs.inputs import DescribedTable
from ucle.plan.sources import TableSource, TimePairs

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
        ValueTypeError: the key column holds no times that can be counted from a fixed one.
    """
    times, where = described.spec.times, f"input {name}, {described.origin}"
    assert times is not None
    keys, _ = assign_columns(described.spec, columns, axes_of_relation(times), where, foreign)
    if times.axis >= len(keys):
        raise _no_times(where, "an axis of arrays")
    key = keys[times.axis]
    kind = key_kind(key.type)
    zoned = kind == "timestamps with a time zone" and times.kind == "window"
    if kind != "dates and timestamps" and not zoned:
        raise _no_times(f"{where}, column {key.name}", key.type)
    return TableSource(
        described.origin,
        (RESULT, ENTRY),
        None,
        dtype=DType.BOOL,
        constant=True,
        encoded=(True, True),
        key_types=(key.type, key.type),
        times=replace(times, column=key.name, type=key.type),
    )


def _no_times(where: str, found: str) -> ValueTypeError:
    return ValueTypeError(
        "steps of time need dates or timestamps",
        where=where,
        expected="a key column of DATE or TIMESTAMP",
        found=found,
        hint="rolling(7) counts positions; a view with time AT TIME ZONE 'UTC' has no time zone",
    )
