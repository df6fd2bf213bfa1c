"""Categories beside numbers in wide tables, against pandas."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import ucle
from ucle.errors import DuplicateCoordinatesError, InputError, UcleError, ValueTypeError

VALUES = ["age", "income", "colour", "is_member", "size"]
CATEGORIES = ["colour", "is_member", "size"]


def customers(seed: int, rows: int = 30, *, nulls: bool = False) -> pd.DataFrame:
    """A frame of customers, of whom each value is missing for some if there are `nulls`."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({
        "customer": [f"c{n:03}" for n in rng.permutation(rows)],
        "age": rng.integers(18, 90, rows).astype("int64"),
        "income": rng.normal(size=rows),
        "colour": rng.choice(["red", "blue", "it's green"], rows).astype(object),
        "is_member": rng.random(rows) < 0.5,
        "size": rng.integers(-1, 3, rows).astype("int64"),
    })  # fmt: skip
    if nulls:
        frame = frame.astype({"age": "Int64", "is_member": "boolean", "size": "Int64"})
        for name in VALUES:
            frame.loc[rng.random(rows) < 0.3, name] = None
    return frame


def encoded(frame: pd.DataFrame, columns: list[str] = VALUES) -> pd.DataFrame:
    """The expected matrix, by pandas alone."""
    wide = frame.set_index("customer").sort_index()[columns]
    hot = [name for name in CATEGORIES if name in columns]
    made = pd.get_dummies(wide, columns=hot)
    return made[sorted(made.columns)].astype(float)


def described(relation: Any, columns: list[str] = VALUES, **options: Any) -> Any:
    values = [ucle.one_hot(name) if name in CATEGORIES else name for name in columns]
    return ucle.table(relation, ["customer"], values, columns_as="feature", **options)


def check(found: Any, expected: pd.DataFrame, database: Any = None) -> None:
    """Compare names and numbers."""
    wide = found.to_pandas(database=database, columns="feature", rows="all")
    wide = wide.set_index("customer") if "customer" in wide else wide
    wide = wide.sort_index()[sorted(wide.columns)]
    assert list(wide.columns) == list(expected.columns)
    assert list(wide.index) == list(expected.index)
    np.testing.assert_allclose(wide.to_numpy(dtype=float), expected.to_numpy())


@pytest.mark.sample(3)
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kind", ["table", "pandas", "polars", "arrow", "parquet", "csv", "view"])
def test_kinds_of_tables(
    kind: str, seed: int, connection: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    frame = customers(seed, nulls=seed % 2 == 1)
    if seed == 2:
        frame["colour"] = frame["colour"].astype("category")
    arrow = pa.Table.from_pandas(frame, preserve_index=False)
    relation: Any = {"pandas": frame, "arrow": arrow}.get(kind, str(tmp_path / f"c.{kind}"))
    if kind in ("table", "view"):
        connection.register("given", arrow)
        connection.execute("CREATE OR REPLACE TABLE customers AS FROM given")
        connection.execute("CREATE OR REPLACE VIEW those AS FROM customers")
        connection.unregister("given")
        relation = "customers" if kind == "table" else "those"
    elif kind == "polars":
        relation = pl.from_arrow(arrow)
    elif kind == "parquet":
        pq.write_table(arrow, relation)
    elif kind == "csv":
        frame.to_csv(relation, index=False)
    nulls = "missing" if seed % 2 else "error"
    x = ucle.tensor(described(relation, nulls=nulls), database=connection)
    expected = encoded(frame)
    check(2 * x, 2 * expected.fillna(0), connection)
    product = x.rename({"feature": "other"}).dot(x, axis="customer").to_numpy(connection)
    values = expected.fillna(0).to_numpy()
    np.testing.assert_allclose(product, values.T @ values)


def test_index_of_a_frame_and_only_categories(connection: duckdb.DuckDBPyConnection) -> None:
    frame = customers(1).set_index("customer")
    x = ucle.tensor(
        ucle.table(frame, value=[ucle.one_hot("colour")], columns_as="feature"),
        database=connection,
    )
    found = x.to_numpy()
    assert found.dtype == bool
    expected = encoded(frame.reset_index(), ["colour"])
    np.testing.assert_array_equal(found, expected)
    alone = ucle.table(frame, value=ucle.one_hot("colour"), columns_as="feature")
    np.testing.assert_array_equal(ucle.tensor(alone).to_numpy(connection), expected)


def test_missing_values(connection: duckdb.DuckDBPyConnection) -> None:
    """A category that is missing is missing at all categories of its column."""
    frame = customers(3, nulls=True)
    x = ucle.tensor(described(frame, nulls="missing"), database=connection)
    wide, made = frame.set_index("customer").sort_index(), encoded(frame)
    column = [name if name in VALUES else name[: name.rindex("_")] for name in made.columns]
    there = wide[column].notna().to_numpy()
    np.testing.assert_array_equal(ucle.observed(x).to_numpy(), there)
    expected = made.fillna(0).to_numpy(dtype=float)
    means = np.where(there, expected, 0).sum(0) / there.sum(0)
    np.testing.assert_allclose(x.mean(axis="customer", stored=True).to_numpy(), means)


def test_programs_take_categories(routes: dict[str, Any]) -> None:
    frame = customers(5)
    expected = encoded(frame).to_numpy()
    for route in routes.values():
        for decomposition in ("auto", "relational"):
            program = ucle.einsum_program(
                "G[f,g] = X[c,f] * X[c,g]", X=described(frame), decomposition=decomposition
            )
            with program.execute(route) as result:
                np.testing.assert_allclose(result["G"].to_numpy(), expected.T @ expected)


def test_other_data_has_other_categories(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute(
        "CREATE OR REPLACE TABLE customers AS "
        "FROM (VALUES ('a', 1.5, 'red'), ('b', 2.5, 'blue')) t(customer, age, colour)"
    )
    x = ucle.tensor(described("customers", ["age", "colour"]), database=connection)
    program = x.sum(axis="customer").program(connection)
    for row, expected in (
        (None, {"age": 4, "colour_blue": 1, "colour_red": 1}),
        ("('c', 4.0, 'green')", {"age": 8, "colour_blue": 1, "colour_green": 1, "colour_red": 1}),
        ("('d', 1.0, 'red')", {"age": 9, "colour_blue": 1, "colour_green": 1, "colour_red": 2}),
    ):
        if row:
            connection.execute(f"INSERT INTO customers VALUES {row}")
        with program.execute() as result:
            found = result["out"].to_pandas()
            assert dict(zip(found["feature"], found["val"], strict=True)) == expected


def test_times_of_tables_with_categories(connection: duckdb.DuckDBPyConnection) -> None:
    days = pd.to_datetime(["2024-01-30", "2024-01-31", "2024-03-02"])
    frame = pd.DataFrame({"day": days, "n": [1, 2, 3], "colour": ["red", "blue", "red"]})
    table = ucle.table(frame, ["day"], ["n", ucle.one_hot("colour")], columns_as="what")
    found = ucle.tensor(table, database=connection).resample("1mo", "day").sum().to_numpy()
    wide = pd.get_dummies(frame.set_index("day"), columns=["colour"]).resample("MS").sum()
    np.testing.assert_array_equal(found, wide[sorted(wide.columns)])


def test_ridge_by_names(routes: dict[str, Any]) -> None:
    frame = customers(7)
    spent = np.random.default_rng(7).normal(size=len(frame))
    y = ucle.tensor(
        ucle.table(frame.assign(spent=spent)[["customer", "spent"]], ["customer"], "spent"),
        axes=("customer",),
    )
    x = ucle.tensor(described(frame)).rename({"feature": "other"})
    gram = x.rename({"other": "feature"}).dot(x, axis="customer").T
    found = ucle.linalg.solve(gram + 0.5 * ucle.eye_like(gram), x.dot(y, axis="customer"))
    wide = encoded(frame)
    target = pd.Series(spent, frame["customer"]).sort_index()
    expected = np.linalg.solve(wide.T @ wide + 0.5 * np.eye(wide.shape[1]), wide.T @ target)
    for route in routes.values():
        rows = found.to_pandas(route, rows="all").set_index("feature")["val"].sort_index()
        assert list(rows.index) == list(wide.columns)
        np.testing.assert_allclose(rows, expected)


def test_errors(connection: duckdb.DuckDBPyConnection) -> None:
    frame = customers(3, nulls=True)
    with pytest.raises(ValueTypeError, match="a value is NULL") as error:
        ucle.tensor(described(frame, ["colour"])).to_numpy(connection)
    for word in ("nulls='missing'", "'colour'"):
        assert word in str(error.value)
    with pytest.raises(ValueTypeError, match="does not hold categories"):
        ucle.tensor(
            ucle.table(customers(1), ["customer"], [ucle.one_hot("income")], columns_as="f")
        ).to_numpy(connection)
    with pytest.raises(InputError, match="no column 'color'"):
        ucle.tensor(
            ucle.table(customers(1), ["customer"], [ucle.one_hot("color")], columns_as="f")
        ).to_numpy(connection)
    with pytest.raises(ValueTypeError, match=r"ucle.one_hot\('colour'\)"):
        ucle.tensor(ucle.table(customers(1), ["customer"], columns_as="f")).to_numpy(connection)
    taken = customers(1).rename(columns={"age": "colour_red"})
    with pytest.raises(UcleError, match="coordinates"):
        ucle.tensor(described(taken, ["colour_red", "colour"])).to_numpy(connection)
    large = customers(1).assign(age=2**53 + 1)
    with pytest.raises(ValueTypeError, match="a number is none of float64"):
        ucle.tensor(described(large)).to_numpy(connection)


@pytest.mark.parametrize("nulls", ["error", "missing"])
def test_rows_are_looked_up_once(
    nulls: str, tmp_path: Path, connection: duckdb.DuckDBPyConnection
) -> None:
    """Their keys are numbered before there is a row for each of their features."""
    frame = pd.DataFrame({
        "who": ["ann", "bob", "eve", "joe"], "age": [30.0, 41.0, 22.0, 0.0],
        "height": [1.5, 1.8, 1.7, 1.6], "town": ["Ulm", "Rom", "Ulm", "Ulm"],
        "late": [True, False, False, True],
    })  # fmt: skip
    if nulls == "missing":
        frame.loc[1, "age"] = frame.loc[2, "town"] = None
    path = str(tmp_path / "people.parquet")
    frame.to_parquet(path)
    values = ["age", "height", ucle.one_hot("town"), ucle.one_hot("late")]
    table = ucle.table(path, ["who"], values, columns_as="feature", nulls=nulls)
    x = ucle.tensor(table, axes=("who", "feature"))
    sql = x.program(connection, decomposition="relational").to_sql()
    assert sql.count('"value" = "T"."who"') == 1
    scan = sql[sql.rindex("CREATE TEMPORARY TABLE") :]
    assert scan.count("read_parquet") == 1
    hot = pd.get_dummies(frame.set_index("who"), columns=["town", "late"], dtype=float)
    found = x.to_pandas(columns="feature", database=connection)
    pd.testing.assert_frame_equal(
        found[hot.columns].sort_index().fillna(0), hot.fillna(0), check_names=False
    )
    if nulls == "missing":
        count = ucle.count(x, "who", stored=True).to_pandas(database=connection)
        counts = dict(zip(count["feature"], count["val"], strict=True))
        assert counts == {
            "age": 3, "height": 4, "town_Rom": 3, "town_Ulm": 3, "late_True": 4, "late_False": 4,
        }  # fmt: skip


LARGE = 40_000
"""Rows with more entries than are counted one by one."""


@pytest.mark.parametrize("rows", [30, LARGE])
@pytest.mark.parametrize("case", ["a primary key", "plain rows", "a row twice", "missing"])
@pytest.mark.parametrize("alike", [True, False])
def test_two_columns_may_not_name_a_feature_alike(rows: int, case: str, alike: bool) -> None:
    """Rows that differ in their keys have the same coordinates where a name is in them twice."""
    connection = duckdb.connect()
    key = "PRIMARY KEY" if case == "a primary key" else ""
    connection.execute(f"CREATE TABLE t (id BIGINT {key}, size_1 DOUBLE, b DOUBLE, size BIGINT)")
    least = 1 if alike else 2
    connection.execute(f"INSERT INTO t SELECT i, i, i, {least} + i % 3 FROM range({rows}) AS r(i)")
    if case == "a row twice":
        connection.execute("INSERT INTO t VALUES (7, 1, 1, 3)")
    nulls = "missing" if case == "missing" else "error"
    X = ucle.table("t", ["id"], ["size_1", "b", ucle.one_hot("size")], columns_as="f", nulls=nulls)
    text = "y[f] += X[i,f]"
    if alike or case == "a row twice":
        with pytest.raises(DuplicateCoordinatesError) as info:
            ucle.einsum_program(text, X=X, database=connection)
        assert "size_1" in str(info.value.found) or case == "a row twice"
        return
    with ucle.einsum_program(text, X=X, database=connection).execute() as result:
        sums = result["y"].to_pandas().set_index("f")["val"]
    assert sums["b"] == rows * (rows - 1) / 2
    assert sums["size_4"] == len(range(2, rows, 3))
