"""Views over tiled and compressed tensors, which follow data that changes and that grows."""

from __future__ import annotations

import duckdb
import numpy as np
import pytest

import ucle
from ucle.testing.check_matrix import some_decompositions

TEXTS = (
    "Z[i,k] += A[i,j] * H[j,k]",
    "Z[i,k] += A[i,j] * A[j,k]",
    "Z[i] += A[i,j] * x[j]",
    "Z[i,j] = 2 * A[i,j]",
    "S[i,j] += H[i,k] * H[j,k]; Z[i,j] = A[i,j] * S[i,j]",
)
TABLES = {
    "A": "SELECT i::INT i, j::INT j, 1.0 + (3 * i + j) % 4 v "
    "FROM range(7) a(i), range(7) b(j) WHERE (5 * i + 3 * j) % 4 = 0",
    "H": "SELECT i::INT i, k::INT k, 1.0 + (3 * i + k) % 5 v FROM range(7) a(i), range(3) b(k)",
    "x": "SELECT i::INT i, 1.0 + i % 5 v FROM range(7) a(i)",
}
CHANGE = "INSERT INTO A VALUES (6, 6, 5.5); DELETE FROM A WHERE i = 6 AND v <> 5.5"
GROWTH = "INSERT INTO A VALUES (9, 8, 2.5)"


def _entries(connection: duckdb.DuckDBPyConnection, view: str) -> dict[tuple[int, ...], float]:
    """The entries that a view shows, without zeros, by coordinates."""
    found = {}
    for *keys, value in connection.sql(f"FROM {view}").fetchall():
        for place, entry in np.ndenumerate(np.asarray(value)):
            if entry:
                found[*keys, *place] = entry
    return found


@pytest.mark.slow
@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("capacity", [{}, {"i": 12, "j": 12}], ids=["as they are", "with capacity"])
def test_views_of_tiles_and_lists(text: str, capacity: dict[str, int]) -> None:
    with ucle.connect() as connection:
        for name, query in TABLES.items():
            connection.execute(f"CREATE TABLE {name} AS {query}").fetchall()
        options = {name: name for name in TABLES if f"{name}[" in text}
        options |= {"database": connection, "association": "as-written"}
        program = ucle.einsum_program(text, **options)  # type: ignore[arg-type]
        ways = [
            way
            for way in some_decompositions(program, 0, 200)
            if any("/" in label or "{" in label for label in way["Z"])
        ]
        assert ways
        for way in ways[:: max(1, len(ways) // 6)]:
            connection.execute("CREATE SCHEMA shown; BEGIN").fetchall()
            program.with_decomposition(way).create_views(
                connection, schema="shown", capacity=capacity
            )
            program.with_decomposition("relational").create_views(connection, capacity=capacity)
            for change in ("SELECT 1", CHANGE, *([GROWTH] if capacity else ())):
                connection.execute(change).fetchall()
                keys = str(way), change
                layout = program.with_decomposition(way).compiled.plan.outputs["Z"].layout
                shown, expected = _entries(connection, "shown.Z"), _entries(connection, "main.Z")
                assert sorted(shown.values()) == pytest.approx(sorted(expected.values())), keys
                if layout.shown.promoted == tuple(range(len(layout.levels))):
                    assert shown == pytest.approx(expected), keys
            connection.execute("ROLLBACK; DROP SCHEMA shown CASCADE").fetchall()
