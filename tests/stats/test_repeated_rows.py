"""Statistics of large tables whose rows repeat coordinates."""

from __future__ import annotations

import json

import duckdb

import ucle
from ucle.stats.measure import EXACT_ENTRIES


def test_functions_of_summed_rows_have_as_many_entries() -> None:
    with duckdb.connect() as connection:
        connection.execute(f"""
            CREATE TABLE bought AS
            SELECT (i * 7919) % 20011 AS person, (i * i) % 997 AS item
            FROM range({2 * EXACT_ENTRIES}) t(i) WHERE i % 3 > 0
            UNION ALL SELECT i % 500, i % 10 FROM range(20000) t(i)
        """)
        query = "SELECT count(DISTINCT (person, item)) FROM bought"
        ((distinct,),) = connection.execute(query).fetchall()
        program = ucle.einsum_program(
            "B[p,i] = x[p,i] > 0",
            x=ucle.table("bought", ["person", "item"], value=1, duplicates="sum"),
            database=connection,
        )
        tensors = {each["name"]: each for each in json.loads(program.explain("json"))["tensors"]}
        for name in "xB":
            assert 0.9 * distinct < tensors[name]["entries"] < 1.1 * distinct
