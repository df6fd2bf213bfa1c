"""What to do about a column whose type can be no key, or no value.

A caller who has not named the columns may mean others; one who has needs another form of these.
"""

from __future__ import annotations

from ucle.foundation.names import sql_name
from ucle.inputs.column_types import Column, nesting
from ucle.inputs.table_input import TableInput

NAME_KEYS = "name the key columns: ucle.table(relation, columns, value)"
NAME_VALUE = "name the value column: ucle.table(relation, columns, value); value=1 takes none"

_ROUNDED = ("FLOAT", "DOUBLE", "DECIMAL")


def key_hint(column: Column, spec: TableInput | None = None) -> str:
    """Say how a column becomes a key; without a spec, it is known that this column is meant.

    >>> key_hint(Column("paid", "BOOLEAN"))
    'a view with CAST(paid AS INTEGER) has 0 and 1, with CAST(paid AS VARCHAR) false and true'
    """
    name, type_ = sql_name(column.name), column.type
    if type_ == "BOOLEAN":
        made = f"CAST({name} AS INTEGER) has 0 and 1, with CAST({name} AS VARCHAR) false and true"
    elif type_.startswith(_ROUNDED) and not nesting(type_):
        made = f"CAST({name} AS INTEGER) has whole numbers, with CAST({name} AS VARCHAR) names"
    else:
        made = f"CAST({name} AS VARCHAR) has names"
    made = f"a view with {made}"
    return made if spec is None or spec.columns is not None else f"{NAME_KEYS}; {made}"


def value_hint(column: Column, spec: TableInput | None = None) -> str:
    """Say how a column becomes a value; without a spec, it is known that this column is meant.

    >>> value_hint(Column("day", "DATE")).split(";")[0]
    "a view with date_diff('day', DATE '2000-01-01', day) has numbers"
    """
    name, type_ = sql_name(column.name), column.type
    if type_.startswith(("DATE", "TIMESTAMP")):
        unit = "day" if type_ == "DATE" else "second"
        made = f"date_diff('{unit}', {type_.split('_')[0]} '2000-01-01', {name})"
    elif type_.startswith(("INTERVAL", "TIME")):
        made = f"epoch({name})"
    else:
        made = f"TRY_CAST({name} AS DOUBLE)"
    made = f"a view with {made} has numbers"
    if spec is None or isinstance(spec.value, str):
        return f"{made}; value=1 takes no column"
    return f"{NAME_VALUE}; {made}"
