"""What to do about rows that no tensor has: with NULLs, or several of one position."""

from __future__ import annotations

from collections.abc import Sequence

from ucle.foundation.names import sql_name
from ucle.plan.sources import InMemory, Origin

READ_AS_MISSING = (
    "ucle.table(..., nulls='missing') reads them as missing values, which ucle.observed(...) "
    "tells apart"
)

_METHODS = {
    "pandas frame": "dropna(subset={names})",
    "Arrow table": "drop_null() of an Arrow table, or drop_nulls() of a polars frame,",
}
"""What leaves out rows with NULLs, by the kind of an object in memory."""


def leave_out(origin: Origin, column: str) -> str:
    """Say how the rows are left out in which a column is NULL.

    >>> from ucle.plan.sources import TableName
    >>> leave_out(TableName(("parts",)), "order")
    'a view with WHERE "order" IS NOT NULL leaves such rows out'
    >>> leave_out(InMemory("pandas frame", "parts"), "order")
    "dropna(subset=['order']) leaves such rows out"
    """
    method = _METHODS.get(origin.kind) if isinstance(origin, InMemory) else None
    if method is None:
        method = f"a view with WHERE {sql_name(column)} IS NOT NULL"
    return f"{method.format(names=[column])} leaves such rows out"


def keep_one(origin: Origin, keys: Sequence[str], value: str | None) -> str:
    """Say how rows at one position are added up, or one of them is kept.

    >>> from ucle.plan.sources import TableName
    >>> print(keep_one(TableName(("legs",)), ["from", "stop"], "minutes").partition(", or ")[2])
    read a view that keeps one: SELECT "from", stop, min(minutes) AS minutes ... GROUP BY ALL
    >>> print(keep_one(InMemory("pandas frame", "legs"), ["i", "j"], "v").partition(", or ")[2])
    keep one: groupby(['i', 'j'], as_index=False).min()
    """
    add = "pass ucle.table(..., duplicates='sum') to add them up"
    if not keys or value is None:
        return add
    if not isinstance(origin, InMemory):
        names, least = map(sql_name, keys), sql_name(value)
        query = f"SELECT {', '.join(names)}, min({least}) AS {least} ... GROUP BY ALL"
        return f"{add}, or read a view that keeps one: {query}"
    if origin.kind == "pandas frame":
        return f"{add}, or keep one: groupby({list(keys)}, as_index=False).min()"
    return add
