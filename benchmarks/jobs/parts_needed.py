"""How many of each part a product needs, directly and in its components (bill of materials)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb

import ucle

JOB = "parts in each part over three levels, from a CSV file of 25,200 rows"
OTHER = "recursive SQL"


def ucle_side(folder: Path) -> Any:
    axes = ("part", "component")
    table = ucle.table(
        str(folder / "parts.csv"),
        [*axes],
        "quantity",
        dtype=float,
        coordinates=dict.fromkeys(axes, "part"),
    )
    need = level = parts = ucle.tensor(table, axes=axes)
    for _ in range(2):
        level = level.rename({"component": "via"}).dot(parts.rename({"part": "via"}), axis="via")
        need = need + level
    return need.to_pandas()


def other_side(folder: Path) -> Any:
    parts = f"'{folder / 'parts.csv'}'"
    with duckdb.connect() as connection:
        return connection.sql(
            f"""
            WITH RECURSIVE need AS (
                SELECT part, component, quantity FROM {parts}
                UNION ALL
                SELECT n.part, b.component, n.quantity * b.quantity
                FROM need n JOIN {parts} b ON n.component = b.part
            )
            SELECT part, component, sum(quantity)::DOUBLE AS val FROM need GROUP BY ALL
            """
        ).df()
