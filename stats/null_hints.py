"""What to do about NULLs in a table, by the kind of the table."""

from __future__ import annotations

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
