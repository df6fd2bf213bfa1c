"""Tables that the examples make for themselves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import duckdb
import pyarrow as pa


def store(connection: duckdb.DuckDBPyConnection, name: str, columns: Mapping[str, Any]) -> None:
    """Make a table of columns; one of the same name is replaced."""
    connection.register("columns of a table", pa.table(dict(columns)))
    connection.execute(f'CREATE OR REPLACE TABLE "{name}" AS FROM "columns of a table"')
    connection.unregister("columns of a table")
