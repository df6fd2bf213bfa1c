"""Pairs of times: a key column of dates or timestamps, read in place of the rows of a relation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ucle.errors import ValueTypeError
from ucle.foundation.dtypes import DType
from ucle.foundation.names import sql_name
from ucle.inputs.column_roles import assign_columns
from ucle.inputs.column_types import Column, key_kind
from ucle.inputs.inputs import DescribedTable
from ucle.plan.sources import TableSource, TimePairs

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
        ValueTypeError: the key column holds no times that can be counted from a fixed one.
    """
    spec, where = described.spec, f"input {name}, {described.origin}"
    times = spec.times
    assert times is not None
    keys, _ = assign_columns(spec, columns, axes_of_relation(times), where, foreign)
    if times.axis >= len(keys):
        raise _no_times(where, "an axis of arrays", COUNTED)
    key = keys[times.axis]
    kind = key_kind(key.type)
    zoned = kind == "timestamps with a time zone" and times.kind == "window"
    if kind != "dates and timestamps" and not zoned:
        raise _no_times(f"{where}, column {key.name}", key.type, _advice(key, kind))
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
