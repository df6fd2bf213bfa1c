"""Find objects that a test or a program has left on a connection."""

from __future__ import annotations

import duckdb


def temporary_objects(connection: duckdb.DuckDBPyConnection) -> list[str]:
    """Names of all that a test or a program could have left on a connection."""
    query = """
        SELECT 'view ' || view_name FROM duckdb_views() WHERE NOT internal
        UNION ALL SELECT 'table ' || table_name FROM duckdb_tables() WHERE temporary
        UNION ALL SELECT 'function ' || function_name FROM duckdb_functions()
        WHERE function_name LIKE 'ucle%'
    """
    return [name for (name,) in connection.execute(query).fetchall()]
