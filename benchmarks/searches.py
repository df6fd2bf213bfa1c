"""Searches that stop early: views of compiled programs over tables that change in a loop.

A program is compiled once into a view, which computes the next frontier from the current tables
whenever it is queried. The loop stores the frontier, and ends with the first empty one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

import ucle

STEP = "N[j] = any[i](A[i,j] and F[i]) and not V[j]"
SHORTER = "C[j] min= F[i] + A[i,j]; N[j] = when(C[j] < D[j], C[j])"
"""Vertices that are reached by a shorter path: lengths are above 0, so that 0 means none."""


def breadth_first(
    adjacency: Any, start: int
) -> Callable[[duckdb.DuckDBPyConnection], Callable[[], NDArray[Any]]]:
    """Return a function that prepares a search for the level of each vertex, -1 for none."""
    square = adjacency.shape

    def prepared(connection: duckdb.DuckDBPyConnection) -> Callable[[], NDArray[Any]]:
        run = connection.execute
        _edges(connection, adjacency)

        def restart() -> None:
            run(f"CREATE OR REPLACE TABLE frontier AS SELECT {start}::BIGINT AS j, true AS val")
            run("CREATE OR REPLACE TABLE visited (j BIGINT, level INTEGER)")

        restart()
        ucle.einsum_program(
            STEP,
            database=connection,
            A=ucle.table("edges", ["i", "j"], True, bounds=square),
            F=ucle.table("frontier", ["j"], "val", bounds=square[:1]),
            V=ucle.table("visited", ["j"], True, bounds=square[:1]),
        ).create_views(connection)

        def levels() -> NDArray[Any]:
            restart()
            level, found = 0, 1
            while found:
                run(f"INSERT INTO visited SELECT j, {level} FROM frontier")
                (found,) = run("CREATE OR REPLACE TABLE frontier AS FROM N").fetchone() or (0,)
                level += 1
            return _dense(run("FROM visited").fetchnumpy(), "level", square[0], -1)

        return levels

    return prepared


def bellman_ford(
    lengths: Any, start: int
) -> Callable[[duckdb.DuckDBPyConnection], Callable[[], NDArray[Any]]]:
    """Return a function that prepares a search for the shortest path to each vertex."""
    square = lengths.shape

    def prepared(connection: duckdb.DuckDBPyConnection) -> Callable[[], NDArray[Any]]:
        run = connection.execute
        _edges(connection, lengths)

        def restart() -> None:
            for name in ("changed", "known"):
                found = f"SELECT {start}::BIGINT AS j, 0::DOUBLE AS val"
                run(f"CREATE OR REPLACE TABLE {name} AS {found}")

        restart()
        ucle.einsum_program(
            SHORTER,
            database=connection,
            A=ucle.table("edges", ["i", "j"], "val", bounds=square, fill=np.inf),
            F=ucle.table("changed", ["j"], "val", bounds=square[:1], fill=np.inf),
            D=ucle.table("known", ["j"], "val", bounds=square[:1], fill=np.inf),
        ).create_views(connection)

        def shortest() -> NDArray[Any]:
            restart()
            found = 1
            while found:
                (found,) = run("CREATE OR REPLACE TABLE changed AS FROM N").fetchone() or (0,)
                run(
                    "CREATE OR REPLACE TABLE known AS SELECT j, min(val) AS val "
                    "FROM (FROM known UNION ALL FROM changed) GROUP BY j"
                )
            return _dense(run("FROM known").fetchnumpy(), "val", square[0], np.inf)

        return shortest

    return prepared


def _edges(connection: duckdb.DuckDBPyConnection, matrix: Any) -> None:
    i, j = (x.astype(np.int64) for x in matrix.tocoo().coords)
    connection.register("source", pa.table({"i": i, "j": j, "val": matrix.data}))
    connection.execute("CREATE TABLE edges AS FROM source").fetchall()
    connection.unregister("source")


def _dense(rows: Any, value: str, size: int, fill: float) -> NDArray[Any]:
    found = np.full(size, fill)
    found[rows["j"]] = rows[value]
    return found
