"""Rows of numbers and categories that are read as arrays, against NumPy and tuple by tuple."""

from __future__ import annotations

from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest

import ucle
from ucle.testing.partitions import run_on_partitions

ODD = ("id", "value", "0", "T", "places", "a 'b'", "größe", "x.y", "fixed 0", "list")
"""Names that queries may have for something else, or that need quotes."""

GRAM = "W[i,f] = X[i,f]; G[f,g] += W[i,f] * X[i,g]; s[f] += X[i,f]"


def people(seed: int, rows: int, *, missing: float = 0.0) -> pd.DataFrame:
    """A frame with odd names, and categories of which some begin like others."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"who": [f"p{n:03}" for n in rng.permutation(rows)]})
    for name in ODD:
        frame[name] = rng.integers(-6, 7, rows) / 2
    frame["a"] = rng.choice(["b", "b_d", "", "é"], rows)
    frame.loc[rows // 2, "a"] = "rare"
    frame["a_b"] = rng.choice(["c", "e"], rows)
    frame["yes"] = rng.random(rows) < 0.5
    frame["n"] = rng.integers(-2, 3, rows)
    frame = frame.astype({"yes": "boolean", "n": "Int64"})
    for name in frame.columns[1:]:
        frame.loc[(rng.random(rows) < missing) & (frame["a"] != "rare"), name] = None
    return frame


CATEGORIES = ("a", "a_b", "yes", "n")


def table_of(frame: Any, numbers: tuple[str, ...] = ODD, **options: Any) -> Any:
    values = [*numbers, *map(ucle.one_hot, CATEGORIES)]
    return ucle.table(frame, ["who"], values, columns_as="feature", **options)


def expected_rows(frame: pd.DataFrame, fill: float = 0.0) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The entries, and where there are values, in the order of names."""
    frame = frame.set_index("who").sort_index()
    entries, there = {}, {}
    for name in ODD:
        entries[name] = frame[name].astype(float).fillna(fill)
        there[name] = frame[name].notna()
    for name in CATEGORIES:
        for category in frame[name].dropna().unique():
            here = (frame[name] == category).fillna(False).astype(bool)
            entries[f"{name}_{category}"] = pd.Series(np.where(here, 1.0, fill), frame.index)
            there[f"{name}_{category}"] = frame[name].notna()
    names = sorted(entries)
    return pd.DataFrame(entries)[names], pd.DataFrame(there)[names]


@pytest.mark.sample(2)
@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize("decomposition", ["auto", "relational", "whole", "rows"])
def test_rows_as_arrays(routes: dict[str, Any], decomposition: str, missing: float) -> None:
    frame = people(3, 60, missing=missing)
    entries, there = expected_rows(frame)
    nulls = "missing" if missing else "error"
    chosen: Any = {
        "whole": {"W": [], "G": [], "s": []},
        "rows": {"W": ["i"], "G": ["i"], "s": ["i"]},
    }.get(decomposition, decomposition)
    for route in routes.values():
        program = ucle.einsum_program(
            GRAM,
            X=table_of(frame, nulls=nulls),
            decomposition=chosen,
            outputs=["W", "G", "s"],
            database=route,
        )
        with program.execute() as result:
            assert result["W"].coordinates("f").to_pylist() == list(entries.columns)
            np.testing.assert_array_equal(result["W"].to_numpy(), entries)
            np.testing.assert_allclose(result["G"].to_numpy(), entries.T @ entries)
            np.testing.assert_allclose(result["s"].to_numpy(), entries.sum())
        if missing:
            x = ucle.tensor(table_of(frame, nulls="missing"), database=route)
            np.testing.assert_array_equal(ucle.observed(x).to_numpy(), there)
            count = ucle.count(x, "who", stored=True).to_numpy()
            np.testing.assert_array_equal(count, there.sum())


@pytest.mark.parametrize("fill", [0.0, 2.5])
def test_same_rows_either_way(routes: dict[str, Any], fill: float) -> None:
    """Stored entries depend on the data, not on whether rows are arrays."""
    frame = people(5, 40, missing=0.2)
    for route in routes.values():
        found = []
        for decomposition in ({"Y": ["i"]}, "relational"):
            program = ucle.einsum_program(
                "Y[i,f] = 2 * X[i,f]",
                X=table_of(frame, nulls="missing", fill=fill),
                decomposition=decomposition,
                database=route,
            )
            with program.execute() as result:
                rows = result["Y"].to_pandas().sort_values(["i", "f"], ignore_index=True)
                found.append(rows)
                np.testing.assert_array_equal(
                    result["Y"].to_numpy(), 2 * expected_rows(frame, fill)[0]
                )
        pd.testing.assert_frame_equal(*found)


def test_names_of_other_tables(routes: dict[str, Any]) -> None:
    """A dictionary may have names that no column and no category of a table has."""
    frame = people(7, 30, missing=0.2)
    entries, there = expected_rows(frame)
    weights = pd.DataFrame({"feature": ["a_zzz", "a_b_c", "0", "yes_True"], "w": [5.0, 2, 3, 4]})
    by_name = weights.set_index("feature")["w"].reindex(entries.columns, fill_value=0)
    for route in routes.values():
        x = ucle.tensor(table_of(frame, nulls="missing"), database=route)
        w = ucle.tensor(ucle.table(weights, ["feature"], "w"), axes=("feature",), database=route)
        np.testing.assert_allclose(x.dot(w, axis="feature").to_numpy(), entries @ by_name)
        known = ucle.astype(ucle.observed(x), float).dot(w, axis="feature").to_numpy()
        np.testing.assert_allclose(known, there.to_numpy(float) @ by_name)


@pytest.mark.slow
def test_thousands_of_columns(connection: duckdb.DuckDBPyConnection) -> None:
    rng = np.random.default_rng(9)
    numbers = tuple(f"c{n}" for n in range(2_000))
    frame = pd.DataFrame(rng.normal(size=(5, len(numbers))), columns=list(numbers))
    frame = frame.assign(who=list("abcde"), a=list("uvuvw"), a_b="c", yes=True, n=3)
    x = ucle.tensor(table_of(frame, numbers), database=connection)
    wide = pd.get_dummies(frame.set_index("who"), columns=list(CATEGORIES), dtype=float)
    wide = wide[sorted(wide.columns)]
    np.testing.assert_array_equal(x.to_numpy(), wide)
    product = x.rename({"who": "other"}).dot(x, axis="feature").to_numpy()
    np.testing.assert_allclose(product, wide @ wide.T)


@pytest.mark.parametrize("decomposition", ["auto", "relational"])
def test_several_rows_of_one_key(routes: dict[str, Any], decomposition: str) -> None:
    """They are one row of the tensor if no two have the same feature, also if they came later."""
    for route in routes.values():
        route.execute(
            "CREATE OR REPLACE TABLE tags AS FROM (VALUES ('ann', 'x', 1), ('bob', 'y', 2)) "
            "t(who, tag, n)"
        )
        table = ucle.table(
            "tags", ["who"], ["n", ucle.one_hot("tag")], columns_as="feature", nulls="missing"
        )
        program = ucle.einsum_program(
            "G[f,g] += X[i,f] * X[i,g]", X=table, decomposition=decomposition, database=route
        )
        rows = np.array([[1, 1, 0], [2, 0, 1]])
        for more in ("", "('ann', 'y', NULL)", "('ann', NULL, NULL)"):
            if more:
                route.execute(f"INSERT INTO tags VALUES {more}")
                rows[0, 2] = 1
            with program.execute() as result:
                np.testing.assert_array_equal(result["G"].to_numpy(), rows.T @ rows)
            with ucle.einsum_program(
                "G[f,g] += X[i,f] * X[i,g]", X=table, decomposition=decomposition, database=route
            ).execute() as result:
                np.testing.assert_array_equal(result["G"].to_numpy(), rows.T @ rows)


def test_views_follow_rows_of_one_key() -> None:
    with ucle.connect(threads=2) as fresh:
        fresh.execute("CREATE TABLE tags AS FROM (VALUES ('ann', 'x'), ('bob', 'y')) t(who, tag)")
        table = ucle.table("tags", ["who"], [ucle.one_hot("tag")], columns_as="feature")
        program = ucle.einsum_program(
            "G[f,g] += float64(X[i,f]) * float64(X[i,g])", X=table, database=fresh
        )
        program.create_views()
        fresh.execute("INSERT INTO tags VALUES ('ann', 'y')")
        rows = fresh.execute('SELECT f, g, val FROM "G" ORDER BY ALL').fetchall()
        assert rows == [
            *(("tag_x", "tag_x", 1), ("tag_x", "tag_y", 1)),
            *(("tag_y", "tag_x", 1), ("tag_y", "tag_y", 2)),
        ]


@pytest.mark.parametrize("nulls", ["error", "missing"])
def test_rows_are_read_once(nulls: str, connection: duckdb.DuckDBPyConnection) -> None:
    """Nothing is unnested or stacked, and rows that meet themselves are not joined."""
    frame = people(11, 300)
    connection.register("frame", frame)
    connection.execute("CREATE OR REPLACE TABLE people AS FROM frame")
    connection.unregister("frame")
    x = ucle.tensor(table_of("people", nulls=nulls), database=connection)
    gram = x.rename({"feature": "other"}).dot(x, axis="who")
    sql = gram.program(connection).to_sql()
    last = sql[sql.rindex("scatter(") - 200 :]
    assert "stack" not in last
    assert last.count('"people"') == 1
    entries, _ = expected_rows(frame)
    np.testing.assert_allclose(gram.to_numpy(), entries.T @ entries)


@pytest.mark.sample(1)
@pytest.mark.parametrize("decomposition", ["auto", "relational", "rows"])
def test_on_partitions(decomposition: str, connection: duckdb.DuckDBPyConnection) -> None:
    """Each partition has some of the rows; what is missing there depends on all of them."""
    frame = people(13, 40, missing=0.3)
    connection.register("frame", frame)
    connection.execute("CREATE OR REPLACE TABLE people AS FROM frame")
    connection.unregister("frame")
    wide = table_of("people", nulls="missing")
    chosen: Any = {"n": ["i"], "s": ["i"]} if decomposition == "rows" else decomposition
    program = ucle.einsum_program(
        "n[f] += int64(M[i,f]); s[f] += X[i,f]",
        X=wide,
        M=ucle.observed(wide),
        decomposition=chosen,
        database=connection,
    )
    entries, there = expected_rows(frame)
    for seed in range(6):
        with run_on_partitions(program, connection, 3, seed) as result:
            np.testing.assert_allclose(result["s"].to_numpy(), entries.sum())
            np.testing.assert_array_equal(result["n"].to_numpy(), there.sum())
