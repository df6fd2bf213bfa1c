"""How a coordinate is selected along a key column, by the type of the column."""

from __future__ import annotations

import datetime
from contextlib import suppress
from typing import Any

from ucle.inputs.column_types import key_kind

MOMENT = datetime.datetime(2024, 1, 3, 12, 30)
"""Stands for times that nobody has given."""


def as_coordinate(axis: str, given: Any, type_: str) -> str:
    """Say how `sel` is called with a coordinate of another type than its axis has.

    Args:
        axis: the name of the axis.
        given: the coordinate.
        type_: the type of the key column.

    >>> as_coordinate("day", "2024-01-03", "DATE"), as_coordinate("customer", 7, "VARCHAR")
    ('write sel(day=datetime.date(2024, 1, 3))', "write sel(customer='7')")
    """
    kind = key_kind(type_)
    if kind == "text":
        wanted: Any = str(given)
    elif kind == "integers":
        wanted = 7
        with suppress(ValueError):
            wanted = int(str(given))
    elif type_ == "DATE" or kind in ("dates and timestamps", "timestamps with a time zone"):
        wanted = MOMENT
        with suppress(ValueError):
            wanted = datetime.datetime.fromisoformat(str(given))
        wanted = wanted.replace(tzinfo=None)
        if kind == "timestamps with a time zone":
            wanted = wanted.replace(tzinfo=datetime.UTC)
        elif type_ == "DATE":
            wanted = wanted.date()
    else:
        return "a view with the column as VARCHAR has names to select"
    return f"write sel({axis}={wanted!r})"
