"""The functions of the extension against the usual plain SQL without it.

The scenarios come from threads: the mean of embeddings by group (duckdb-vss#67), the product of two
matrices in tables of entries (duckdb#11588), and the similarity of vectors to vectors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import duckdb
import numpy as np

import ucle
from benchmarks.measure import THREADS, Table, expect_close, race, ratio

EMBEDDINGS, WIDTH, GROUPS = 100_000, 384, 1_000
SIDE = 1_000
QUERIES, ITEMS = 20, 20_000

RANDOM = "(hash({}) % 1000) / 1000 - 0.5"

SETUP = f"""
    CREATE TABLE items AS
    SELECT (hash(i) % {GROUPS})::INTEGER AS category,
        list_transform(range({WIDTH}), lambda j: {RANDOM.format(f"i * {WIDTH} + j")})
            ::FLOAT[{WIDTH}] AS embedding
    FROM range({EMBEDDINGS}) t(i);
    CREATE TABLE listed AS SELECT category, embedding::FLOAT[] AS embedding FROM items;
    CREATE TABLE candidates AS SELECT rowid AS i, embedding AS e FROM items LIMIT {ITEMS};
    CREATE TABLE queries AS SELECT rowid AS i, embedding AS e FROM items LIMIT {QUERIES};
    CREATE TABLE a AS
    SELECT (n // {SIDE})::INTEGER AS i, (n % {SIDE})::INTEGER AS j, {RANDOM.format("n")} AS val
    FROM range({SIDE * SIDE}) t(n);
    CREATE TABLE b AS SELECT i, j, {RANDOM.format("-1 - i * 7 - j * 11")} AS val FROM a;
"""

UNNEST = """
    WITH entries AS (
        SELECT category, unnest(embedding) AS x, generate_subscripts(embedding, 1) AS j FROM {table}
    ), means AS (
        SELECT category, j, avg(x) AS x FROM entries GROUP BY category, j
    )
    SELECT category, list(x ORDER BY j) AS centroid FROM means GROUP BY category ORDER BY category
"""
MEANS = "SELECT category, vec_avg(embedding) FROM {table} GROUP BY category ORDER BY category"

JOIN = """
    SELECT a.i, b.j, sum(a.val * b.val) AS val FROM a JOIN b ON a.j = b.i
    GROUP BY a.i, b.j ORDER BY a.i, b.j
"""
PRODUCT = f"""
    SELECT mat_mult(pack({SIDE}, {SIDE}, (SELECT list(val ORDER BY i, j) FROM a)),
        pack({SIDE}, {SIDE}, (SELECT list(val ORDER BY i, j) FROM b))).val
"""
LIKENESS = "SELECT sum({call}) FROM candidates AS x, queries AS q"


def _lists(rows: Any) -> Any:
    return np.array([row[1] for row in rows], dtype=np.float64)


def _last_column(rows: Any) -> Any:
    return np.array(rows[0][0]) if len(rows) == 1 else np.array([row[-1] for row in rows])


SCENARIOS: tuple[tuple[str, str, str, Callable[[Any], Any]], ...] = (
    (
        f"mean of FLOAT[{WIDTH}] by group",
        UNNEST.format(table="items"),
        MEANS.format(table="items"),
        _lists,
    ),
    (
        "mean of FLOAT[] by group",
        UNNEST.format(table="listed"),
        MEANS.format(table="listed"),
        _lists,
    ),
    (f"product of {SIDE} x {SIDE} entries", JOIN, PRODUCT, _last_column),
    (
        "cosine, array_cosine_similarity",
        LIKENESS.format(call="array_cosine_similarity(q.e, x.e)"),
        LIKENESS.format(call="cosine(q.e, x.e)"),
        _last_column,
    ),
    (
        "inner_prod, array_inner_product",
        LIKENESS.format(call="array_inner_product(q.e, x.e)"),
        LIKENESS.format(call="inner_prod(q.e, x.e)"),
        _last_column,
    ),
)


def _rows(rounds: int) -> Iterator[Sequence[str]]:
    with ucle.connect(threads=THREADS) as connection:
        connection.execute(SETUP)
        for name, plain, extension, read in SCENARIOS:
            times = _measure(connection, name, {"plain": plain, "ucle": extension}, read, rounds)
            seconds = [f"{times[side]:.3f}" for side in ("plain", "ucle")]
            yield name, *seconds, ratio(times["plain"] / times["ucle"])


def _measure(
    connection: duckdb.DuckDBPyConnection,
    name: str,
    queries: dict[str, str],
    read: Callable[[Any], Any],
    rounds: int,
) -> dict[str, float]:
    answers = {side: read(connection.execute(query).fetchall()) for side, query in queries.items()}
    expect_close(name, answers["ucle"], answers["plain"], 1e-4)

    def run(query: str) -> None:  # into a table, to exclude the client's work on rows
        connection.execute(f"CREATE OR REPLACE TEMP TABLE answer AS {query}").fetchall()

    sides = {side: lambda query=query: run(query) for side, query in queries.items()}
    return race(sides, min(rounds, 5))


TABLE = Table(
    "extension",
    "Functions on lists against plain SQL",
    f"Means of {EMBEDDINGS:,} embeddings in {GROUPS:,} groups; a product of two matrices in\n"
    f"tables of entries; similarities of {QUERIES} vectors to {ITEMS:,} others. Goal: means\n"
    "50 times as fast as in plain SQL.",
    ("scenario", "plain SQL", "with the extension", "plain / extension"),
    _rows,
)
