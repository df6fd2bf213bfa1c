"""Runs a script of `to_sql()` by hand in a process of its own, and prints the last SELECT as JSON.

Called as ``python replay.py DATABASE ROUTE SCRIPT``.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import duckdb

import ucle
from ucle.udf_kernels import register_arrow


def connect(database: str, route: str) -> Any:
    """A connection as a person would open it for a script of that route."""
    if route == "native":
        return ucle.connect(database)
    connection = duckdb.connect(database)
    if route == "arrow":
        register_arrow(connection)
    return connection


def main(database: str, route: str, script: str) -> None:
    """Run the script; the result is that of its last statement."""
    connection = connect(database, route)
    rows = connection.execute(Path(script).read_text(encoding="utf-8")).fetchall()
    print(json.dumps(rows))


if __name__ == "__main__":
    main(*sys.argv[1:])
