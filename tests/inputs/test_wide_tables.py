"""Wide tables: columns as an axis, missing values and their mask, against pandas."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import replace
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
from ucle.database.open_sessions import open_session
from ucle.errors import (
    ArgumentError,
    ArgumentTypeError,
    DuplicateCoordinatesError,
    InputError,
    LabelError,
    UcleError,
    ValueTypeError,
)
from ucle.foundation.dtypes import DType
from ucle.inputs.table_options import table
from ucle.plan.sources import Nulls, TableSource
from ucle.stats import measure
from ucle.stats.arrays import by_kernels, by_numpy

NAMES = ["b", "a", "two words", 'with "quotes"', "it's", "select", "Ünicode", "z.y", "10", "9"]
"""Names of value columns, in no order."""

PROGRAM = """
total[f] += X[i,f]
count[f] += M[i,f]
mean[f] = total[f] / count[f]
pairs[f,g] += W[i,f] * W[i,g]
left[f,g] += X[i,f] * W[i,g]
product[f,g] += X[i,f] * X[i,g]
cov[f,g] = (product[f,g] - left[f,g] * left[g,f] / pairs[f,g]) / (pairs[f,g] - 1)
score[i] += X[i,f] * w[f]
most[i] max= X[i,f]
"""
OUTPUTS = ["total", "count", "mean", "cov", "score", "most"]


def random_frame(rng: np.random.Generator, *, rows: int | None = None) -> pd.DataFrame:
    """A frame with keys in `id`, and columns of numbers and booleans, some of them missing."""
    rows = int(rng.integers(1, 12)) if rows is None else rows
    names = [str(x) for x in rng.permutation(NAMES)[: rng.integers(1, 7)]]
    columns: dict[str, Any] = {}
    for name in names:
        match rng.integers(0, 5):
            case 0:
                values: Any = pd.array(rng.integers(-5, 6, rows), dtype="Int64")
            case 1:
                values = pd.array(rng.integers(-5, 6, rows).astype(np.int16), dtype="Int16")
            case 2:
                values = pd.array(rng.random(rows) < 0.5, dtype="boolean")
            case 3:
                values = pd.array(rng.integers(-8, 9, rows) / 4, dtype="Float32")
            case _:
                values = pd.array(rng.integers(-8, 9, rows) / 4, dtype="Float64")
        columns[name] = values
    frame = pd.DataFrame(columns)
    if rng.random() < 0.7:
        frame = frame.mask(rng.random(frame.shape) < 0.25)
    frame.insert(int(rng.integers(0, len(names) + 1)), "id", random_keys(rng, rows))
    return frame


def random_keys(rng: np.random.Generator, rows: int) -> Any:
    """Keys of rows, in no order: positions, text, or dates."""
    order = rng.permutation(rows)
    match rng.integers(0, 3):
        case 0:
            return order
        case 1:
            return [f"key {n:02d}" for n in order]
    return [dt.date(2024, 1, 1) + dt.timedelta(days=int(n)) for n in order]


def numbers(frame: pd.DataFrame) -> pd.DataFrame:
    """The value columns as floats, with NaN where a value is missing, in the order of the keys."""
    return frame.set_index("id").sort_index().astype("Float64").astype(float)


def as_parquet(frame: pd.DataFrame, path: Path) -> Any:
    pq.write_table(pa.Table.from_pandas(frame, preserve_index=False), path / "wide.parquet")
    return str(path / "wide.parquet")


def as_csv(frame: pd.DataFrame, path: Path) -> Any:
    frame.to_csv(path / "wide.csv", index=False)
    return str(path / "wide.csv")


SOURCES: dict[str, Callable[[pd.DataFrame, Path], Any]] = {
    "pandas": lambda frame, _: frame,
    "arrow": lambda frame, _: pa.Table.from_pandas(frame, preserve_index=False),
    "polars": lambda frame, _: pl.from_arrow(pa.Table.from_pandas(frame, preserve_index=False)),
    "parquet": as_parquet,
    "csv": as_csv,
}


@pytest.mark.sample(9)
@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("seed", range(24))
def test_missing_values_as_in_pandas(
    seed: int, source: str, connection: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    rng = np.random.default_rng(seed)
    frame = random_frame(rng)
    values = numbers(frame)
    weights = np.arange(1.0, values.shape[1] + 1)
    relation = SOURCES[source](frame, tmp_path)
    X = table(relation, ["id"], columns_as="feature", nulls="missing", dtype=float)
    decomposition = ["auto", "relational"][seed % 2]
    program = ucle.einsum_program(
        "W[i,f] = float64(M[i,f])" + PROGRAM,
        X=X,
        M=ucle.observed(X),
        w=weights,
        outputs=OUTPUTS,
        database=connection,
        decomposition=decomposition,
    )
    with program.execute() as result:
        assert result["total"].coordinates("f").to_pylist() == list(values.columns)
        found = {name: result[name].to_numpy() for name in OUTPUTS}
    filled = values.fillna(0)
    np.testing.assert_allclose(found["total"], filled.sum())
    np.testing.assert_array_equal(found["count"], values.count())
    np.testing.assert_allclose(found["mean"], values.mean())
    np.testing.assert_allclose(found["score"], filled @ weights)
    np.testing.assert_allclose(found["most"], filled.max(axis=1))
    # A pair of columns without two common rows has no covariance.
    np.testing.assert_allclose(_finite(found["cov"]), _finite(values.cov().to_numpy()), atol=1e-9)


def _finite(matrix: Any) -> Any:
    return np.where(np.isfinite(matrix), matrix, 0.0)


@pytest.mark.parametrize("seed", range(8))
def test_lazy_tensors_as_in_pandas(seed: int, connection: duckdb.DuckDBPyConnection) -> None:
    rng = np.random.default_rng(seed)
    frame = random_frame(rng)
    values = numbers(frame)
    X = ucle.tensor(
        table(frame, ["id"], columns_as="feature", nulls="missing", dtype=float),
        database=connection,
    )
    assert X.axes == ("id", "feature")
    mean = X.sum("id") / ucle.observed(X).sum("id")
    np.testing.assert_allclose(mean.to_numpy(), values.mean())
    renamed = X.rename({"feature": "column"})
    assert ucle.observed(renamed).axes == ("id", "column")
    one = str(values.columns[-1])
    picked = X.sel({"feature": one}).to_numpy()
    np.testing.assert_allclose(picked, values[one].fillna(0))


@pytest.mark.parametrize("seed", range(10))
def test_another_table_shares_the_names(seed: int, connection: duckdb.DuckDBPyConnection) -> None:
    """Weights by name: the names are matched, whatever their order, and others are 0."""
    rng = np.random.default_rng(seed)
    frame = random_frame(rng)
    values = numbers(frame).fillna(0)
    names = [str(x) for x in rng.permutation([*values.columns[1:], "another", "zzz"])]
    weights = pd.Series(rng.integers(1, 5, len(names)).astype(float), names)
    X = table(frame, ["id"], columns_as="feature", nulls="missing", dtype=float)
    text = "y[i] += X[i,f] * w[f]\nZ[i,f] = X[i,f] + w[f]"
    program = ucle.einsum_program(text, X=X, w=weights, outputs=["y", "Z"], database=connection)
    every = sorted({*values.columns, *names})
    longer = values.reindex(columns=every, fill_value=0.0)
    with program.execute() as result:
        np.testing.assert_allclose(
            result["y"].to_numpy(), longer @ weights.reindex(every, fill_value=0.0)
        )
        assert result["Z"].coordinates("f").to_pylist() == every
        np.testing.assert_allclose(
            result["Z"].to_numpy(), longer + weights.reindex(every, fill_value=0.0)
        )


def test_two_wide_tables_share_the_names(connection: duckdb.DuckDBPyConnection) -> None:
    one = pa.table({"id": [0, 1], "b": [1.0, 2.0], "a": [3.0, 4.0]})
    other = pa.table({"id": [0, 1], "a": [10.0, 20.0], "c": [30.0, 40.0]})
    X, Y = (table(x, ["id"], columns_as="f") for x in (one, other))
    program = ucle.einsum_program("Z[i,f] = X[i,f] + Y[i,f]", X=X, Y=Y, database=connection)
    with program.execute() as result:
        assert result["Z"].coordinates("f").to_pylist() == ["a", "b", "c"]
        np.testing.assert_array_equal(result["Z"].to_numpy(), [[13, 1, 30], [24, 2, 40]])


def test_views_without_kernels_share_the_names(fresh: duckdb.DuckDBPyConnection) -> None:
    fresh.execute("CREATE TABLE one AS SELECT 0 AS id, 1.0 AS b, 3.0 AS a")
    fresh.execute("CREATE TABLE other AS SELECT 0 AS id, 10.0 AS a, 30.0 AS c")
    X, Y = (table(x, ["id"], columns_as="f") for x in ("one", "other"))
    program = ucle.einsum_program(
        "shared[i,f] = X[i,f] + Y[i,f]",
        X=X,
        Y=Y,
        decomposition="relational",
        database=fresh,
    )
    program.create_views(fresh, kernels=False)
    rows = fresh.execute("SELECT f, val FROM shared ORDER BY f").fetchall()
    assert rows == [("a", 13.0), ("b", 1.0), ("c", 30.0)]


@pytest.mark.parametrize(
    ("types", "dtype"),
    [
        (("bool_",), "bool"),
        (("bool_", "int16"), "int64"),
        (("int32", "int64"), "int64"),
        (("bool_", "float32"), "float32"),
        (("int16", "float32"), "float32"),
        (("int32", "float32"), "float64"),
        (("float32", "float64"), "float64"),
        (("int64", "float64"), "float64"),
    ],
)
def test_types_are_promoted(types: tuple[str, ...], dtype: str) -> None:
    columns = {f"c{n}": pa.array([1, 0], getattr(pa, x)()) if x != "bool_" else [True, False]
               for n, x in enumerate(types)}  # fmt: skip
    X = table(pa.table({"id": [0, 1], **columns}), ["id"], columns_as="f")
    with ucle.einsum_program("Z[i,f] = X[i,f]", X=X).execute() as result:
        found = result["Z"].to_numpy()
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, [[1] * len(types), [0] * len(types)])


def test_named_value_columns_in_their_order() -> None:
    data = pa.table({"a": [1.0], "id": ["x"], "b": [2.0], "c": [3.0], "note": ["text"]})
    X = table(data, {"i": "id"}, ["c", "a"], columns_as="f")
    with ucle.einsum_program("Z[i,f] = 2 * X[i,f]", X=X).execute() as result:
        assert result["Z"].coordinates("f").to_pylist() == ["c", "a"]
        np.testing.assert_array_equal(result["Z"].to_numpy(), [[6.0, 2.0]])


def test_rows_that_share_keys_are_added_up(connection: duckdb.DuckDBPyConnection) -> None:
    data = pa.table({"id": [1, 0, 1], "b": [1.0, 2.0, 4.0], "a": [None, 5.0, 6.0]})
    options: dict[str, Any] = {"columns_as": "f", "nulls": "missing", "duplicates": "sum"}
    X = table(data, ["id"], **options)
    program = ucle.einsum_program("Z[i,f] = X[i,f]", X=X, database=connection)
    with program.execute() as result:
        np.testing.assert_array_equal(result["Z"].to_numpy(), [[2.0, 5.0], [5.0, 6.0]])


def test_without_rows(connection: duckdb.DuckDBPyConnection) -> None:
    data = pa.table({"id": pa.array([], pa.int64()), "a": pa.array([], pa.float64())})
    X = table(data, ["id"], columns_as="f")
    program = ucle.einsum_program("t[f] += X[i,f]", X=X, database=connection)
    with program.execute() as result:
        np.testing.assert_array_equal(result["t"].to_numpy(), [0.0])


def test_large_tables_are_measured_by_their_columns(
    connection: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    rng = np.random.default_rng(0)
    values = rng.normal(size=(3_000, 40))
    values[rng.random(values.shape) < 0.1] = np.nan
    frame = pd.DataFrame(values, columns=[f"c{n}" for n in range(40)])
    frame.insert(0, "id", np.arange(3_000))
    path = as_parquet(frame, tmp_path)
    X = table(path, ["id"], columns_as="f", nulls="missing")
    program = ucle.einsum_program(
        "t[f] += X[i,f]\nn[f] += M[i,f]", X=X, M=ucle.observed(X), database=connection
    )
    bound = program.compiled.front.inputs
    assert bound["X"].statistics.entries == np.isfinite(values).sum()
    assert bound["M"].statistics.entries == np.isfinite(values).sum()
    assert bound["X"].values.low == np.nanmin(values)
    assert bound["X"].values.high == np.nanmax(values)
    with program.execute() as result:
        np.testing.assert_allclose(result["t"].to_numpy(), np.nansum(values, axis=0))
        np.testing.assert_array_equal(result["n"].to_numpy(), np.isfinite(values).sum(axis=0))
    with pytest.raises(ValueTypeError, match="a value is NULL"):
        ucle.einsum_program(
            "t[f] += X[i,f]", X=table(path, ["id"], columns_as="f"), database=connection
        )


@pytest.mark.sample(6)
@pytest.mark.parametrize("nulls", [Nulls.MISSING, Nulls.REFUSED, Nulls.OBSERVED])
@pytest.mark.parametrize("seed", range(20))
def test_many_columns_are_measured_as_few(
    seed: int, nulls: Nulls, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Arrays of rows show what an aggregate for each column shows, and which rows have entries."""
    rng = np.random.default_rng(seed)
    frame = random_frame(rng, rows=int(rng.integers(1, 12)))
    if seed % 2:
        frame = frame.dropna()
    if seed % 5 == 1:
        infinite = rng.choice([1.5, np.inf, -np.inf], len(frame))
        frame.insert(1, "infinite", pd.array(infinite, dtype="Float64"))
    X = table(as_parquet(frame, tmp_path), ["id"], columns_as="f", nulls="missing", dtype=float)
    program = ucle.einsum_program("t[f] += X[i,f]", X=X)
    source = program.compiled.front.inputs["X"].source
    assert isinstance(source, TableSource)
    masks = nulls is Nulls.OBSERVED
    source = replace(source, nulls=nulls, dtype=DType.BOOL if masks else source.dtype)
    session = open_session(ucle.connect())
    kernels = by_kernels(session.read, by_numpy(session.batches))
    found: list[Any] = []
    for columns, look in ((1, kernels), (1, by_numpy(session.batches)), (10**6, kernels)):
        monkeypatch.setattr(measure, "MANY_COLUMNS", columns)
        try:
            made = measure.measure(session.read, look, "X", source, 0, exact=False)
            rows = made.distinct[0]
            found.append(replace(made, distinct=made.distinct[1:], largest=()))
        except ValueTypeError as error:
            found.append(str(error))
    assert all(each == found[0] for each in found)
    values = frame.drop(columns="id")
    if nulls is Nulls.REFUSED and values.isna().to_numpy().any():
        assert "a value is NULL" in found[0]
    else:
        stored = (values.notna() if masks else numbers(frame).fillna(0) != 0).to_numpy()
        assert found[0].entries == stored.sum()
        assert found[0].distinct == (stored.any(axis=0).sum(),)
        assert stored.any(axis=1).sum() <= rows <= len(frame)


@pytest.mark.parametrize("rows", [5, 4_000])
def test_nan_is_a_number_of_files(rows: int, tmp_path: Path) -> None:
    values = np.zeros((rows, 30))
    values[1, 2] = np.nan
    columns = {f"c{n}": values[:, n] for n in range(30)}
    pq.write_table(pa.table({"id": np.arange(rows), **columns}), tmp_path / "nan.parquet")
    X = table(str(tmp_path / "nan.parquet"), ["id"], columns_as="f", nulls="missing")
    program = ucle.einsum_program("t[f] += X[i,f]\nn[f] += M[i,f]", X=X, M=ucle.observed(X))
    assert not program.compiled.front.inputs["X"].values.finite
    with program.execute() as result:
        assert np.isnan(result["t"].to_numpy()).nonzero()[0].tolist() == [2]
        assert result["n"].to_numpy().tolist() == [rows] * 30


def test_missing_values_of_long_tables(connection: duckdb.DuckDBPyConnection) -> None:
    data = pa.table({"i": [0, 0, 1, 2], "j": [0, 1, 1, 0], "v": [1.0, None, 3.0, 0.0]})
    X = table(data, ["i", "j"], "v", nulls="missing")
    program = ucle.einsum_program(
        "t[j] += X[i,j]\nn[j] += M[i,j]", X=X, M=ucle.observed(X), database=connection
    )
    with program.execute() as result:
        assert result["t"].to_numpy().tolist() == [1.0, 3.0]
        assert result["n"].to_numpy().tolist() == [2, 1]


TALL = {
    "text": ["ann", "bob", "cid", "dan"],
    "date": [dt.date(2024, 1, day) for day in (1, 2, 5, 9)],
    "positions": [0, 1, 2, 3],
}
"""Coordinates of rows, of which the first and the last have no value at all."""


@pytest.mark.parametrize("kind", TALL)
@pytest.mark.parametrize(
    "type_", ["DOUBLE", "FLOAT", "BIGINT", "TINYINT", "DECIMAL(9,2)", "BOOLEAN"]
)
def test_rows_of_nulls_have_coordinates(
    kind: str, type_: str, connection: duckdb.DuckDBPyConnection
) -> None:
    """The coordinates of missing values exist, in wide tables and in long ones."""
    names, gone = TALL[kind], [None, None]
    entries = [gone, [1, None], [None, 1], gone]
    rows = pa.table({"id": names, "p": [x for x, _ in entries], "q": [x for _, x in entries]})
    connection.register("gaps", rows)
    connection.execute(
        f"CREATE OR REPLACE TABLE wide AS SELECT id, p::{type_} AS p, q::{type_} AS q, "
        f"NULL::{type_} AS r FROM gaps"
    )
    connection.unregister("gaps")
    connection.execute(
        "CREATE OR REPLACE TABLE long AS FROM wide UNPIVOT INCLUDE NULLS (v FOR f IN (p, q, r))"
    )
    for fill in (0, 1) if type_ == "BOOLEAN" else (0, 7):
        options = {"nulls": "missing", "fill": fill}
        specs = [
            table("wide", ["id"], columns_as="f", **options),
            table("long", ["id", "f"], "v", **options),
            table(connection.table("long").arrow(), ["id", "f"], "v", **options),
            table(connection.table("long").pl(), ["id", "f"], "v", **options),
            table("long", ["id", "f"], "v", duplicates="sum", **options),
        ]
        expected = [[1 if x == 1 else fill for x in (*own, None)] for own in entries]
        there = [[x == 1 for x in (*own, None)] for own in entries]
        for spec in specs:
            program = ucle.einsum_program(
                "Y[i,f] = X[i,f]; M[i,f] = O[i,f]", X=spec, O=ucle.observed(spec),
                database=connection,
            )  # fmt: skip
            with program.execute() as result:
                assert result["Y"].to_numpy().tolist() == expected
                assert result["M"].to_numpy().tolist() == there
                if kind != "positions":
                    assert result["Y"].coordinates("i").to_pylist() == names
                assert result["Y"].coordinates("f").to_pylist() == ["p", "q", "r"]
        counts = ucle.count(ucle.tensor(specs[1], axes=("id", "f")), "f", stored=True)
        assert counts.to_numpy(connection).tolist() == [0, 1, 1, 0]


def test_rows_of_nulls_claim_their_coordinates() -> None:
    data = pa.table({"i": ["a", "a"], "v": [1.0, None]})
    with pytest.raises(DuplicateCoordinatesError):
        ucle.einsum_program("t += X[i]", X=table(data, ["i"], "v", nulls="missing"))
    summed = table(data, ["i"], "v", nulls="missing", duplicates="sum")
    assert ucle.tensor(summed).to_numpy().tolist() == [1.0]


def test_integers_beside_missing_ones_are_not_rounded() -> None:
    data = pa.table({"i": [0, 1], "v": [2**53 + 1, None]})
    for fill in (0, 0.5, np.inf):
        spec = table(data, ["i"], "v", nulls="missing", dtype="float32", fill=fill)
        assert ucle.tensor(spec).to_numpy().tolist() == [float(np.float32(2**53 + 1)), fill]
    with pytest.raises(UcleError, match="int64"):
        ucle.tensor(table(data, ["i"], "v", nulls="missing", fill=0.5)).to_numpy()
    data = pa.table({"i": [0, 1], "v": [2.5, None]})
    with pytest.raises(UcleError, match=r"2\.5"):
        ucle.tensor(table(data, ["i"], "v", nulls="missing", dtype=int)).to_numpy()


def test_data_is_read_again(fresh: duckdb.DuckDBPyConnection) -> None:
    fresh.execute("CREATE TABLE wide AS SELECT 0 AS id, 1.5 AS b, NULL::DOUBLE AS a")
    X = table("wide", ["id"], columns_as="f", nulls="missing")
    program = ucle.einsum_program(
        "t[f] += X[i,f]\nn[f] += M[i,f]", X=X, M=ucle.observed(X), database=fresh
    )
    with program.execute() as result:
        assert result["t"].to_numpy().tolist() == [1.5, 0.0]
    fresh.execute("INSERT INTO wide VALUES (7, 1.0, 2.0)")
    with program.execute() as result:
        assert result["t"].to_numpy().tolist() == [2.5, 2.0]
        assert result["n"].to_numpy().tolist() == [2, 1]
    fresh.execute("ALTER TABLE wide DROP COLUMN a")
    with pytest.raises(InputError, match="there is no column 'a'"):
        program.execute()
    fresh.execute("ALTER TABLE wide ADD COLUMN a VARCHAR")
    with pytest.raises(ValueTypeError, match="held numbers"):
        program.execute()


def test_nulls_that_come_later_are_refused(fresh: duckdb.DuckDBPyConnection) -> None:
    fresh.execute("CREATE TABLE wide AS SELECT 0 AS id, 1.5 AS b, 2.5 AS a")
    program = ucle.einsum_program(
        "t[f] += X[i,f]", X=table("wide", ["id"], columns_as="f"), database=fresh
    )
    fresh.execute("INSERT INTO wide VALUES (1, 1.0, NULL)")
    with pytest.raises(ValueTypeError, match="column a: a value is NULL"):
        program.execute()


@pytest.mark.parametrize("how", ["views", "script"])
def test_views_and_scripts(how: str, fresh: duckdb.DuckDBPyConnection) -> None:
    fresh.execute("CREATE TABLE wide AS SELECT 'x' AS id, 1.5 AS b, NULL::DOUBLE AS a")
    fresh.execute("INSERT INTO wide VALUES ('y', 1.0, 2.0)")
    X = table("wide", ["id"], columns_as="f", nulls="missing")
    program = ucle.einsum_program("t[f] += X[i,f]", X=X, database=fresh, decomposition="relational")
    if how == "views":
        program.create_views(fresh)
        rows = fresh.sql("FROM t").fetchall()
    else:
        rows = fresh.execute(program.to_sql()).fetchall()
    assert sorted(rows) == [("a", 2.0), ("b", 2.5)]


def test_a_null_names_its_column_and_row() -> None:
    data = pa.table({"id": ["x", "y"], "b": [1.0, 2.0], "a": [3.0, None]})
    with pytest.raises(ValueTypeError) as raised:
        ucle.tensor(table(data, ["id"], columns_as="f")).sum("id").to_numpy()
    message = str(raised.value)
    assert "column a" in message
    assert "('y', None)" in message
    assert "nulls='missing'" in message


def test_text_among_the_values_is_refused() -> None:
    data = pa.table({"id": [0, 1], "b": [1.0, 2.0], "colour": ["red", "blue"]})
    with pytest.raises(ValueTypeError) as raised:
        ucle.tensor(table(data, ["id"], columns_as="f")).sum("id").to_numpy()
    message = str(raised.value)
    assert "column colour" in message
    assert "ucle.table(data, ['id'], ['b'], columns_as='f') leaves it out" in message
    assert "ucle.one_hot('colour') in the list" in message
    ones = table(data, ["id", "colour"], value=1)
    with ucle.einsum_program("Z[i,c] = O[i,c]", O=ones).execute() as result:
        expected = pd.get_dummies(data["colour"].to_pandas())
        assert result["Z"].coordinates("c").to_pylist() == list(expected.columns)
        np.testing.assert_array_equal(result["Z"].to_numpy(), expected)


@pytest.mark.parametrize("source", SOURCES)
def test_text_is_refused_in_every_source(source: str, tmp_path: Path) -> None:
    frame = pd.DataFrame({"id": [0, 1], "b": [1.0, 2.0], "colour": ["red", "blue"]})
    relation = SOURCES[source](frame, tmp_path)
    with pytest.raises(ValueTypeError, match="column colour"):
        ucle.einsum_program("t[f] += X[i,f]", X=table(relation, ["id"], columns_as="f"))
    X = table(relation, ["id"], ["b"], columns_as="f")
    with ucle.einsum_program("t[f] += X[i,f]", X=X).execute() as result:
        assert result["t"].to_numpy().tolist() == [3.0]


@pytest.mark.parametrize("rows", [2, 200_000])
def test_integers_beside_floats_are_exact(rows: int) -> None:
    whole = np.arange(rows)
    whole[1] = 2**53 + 1
    data = pa.table({"id": np.arange(rows), "n": whole, "x": np.ones(rows)})
    with pytest.raises(ValueTypeError, match=r"column n BIGINT.*none of float64"):
        ucle.einsum_program("t[f] += X[i,f]", X=table(data, ["id"], columns_as="f"))
    rounded = table(data, ["id"], columns_as="f", dtype=float)
    with ucle.einsum_program("t[f] max= X[i,f]", X=rounded).execute() as result:
        assert result["t"].to_numpy().tolist() == [2.0**53, 1.0]


def test_floats_are_whole_numbers_where_that_is_stated() -> None:
    data = pa.table({"id": [0, 1], "n": [1, 2], "x": [0.5, 1.0]})
    with pytest.raises(ValueTypeError, match="column x DOUBLE: a number is none of int64"):
        ucle.einsum_program("t[f] += X[i,f]", X=table(data, ["id"], columns_as="f", dtype=int))


@pytest.mark.parametrize(
    "data",
    [
        pd.DataFrame([[0, 1.0, 2.0]], columns=["id", "a", "a"]),
        pd.DataFrame([[0, 1.0, 2.0]], columns=["id", "a", "A"]),
        pa.table([[0], [1.0], [2.0]], ["id", "a", "a"]),
    ],
)
def test_names_that_are_not_different_are_refused(data: Any) -> None:
    with pytest.raises(InputError, match="two columns have the same name"):
        ucle.einsum_program("t[f] += X[i,f]", X=table(data, ["id"], columns_as="f"))


def test_columns_that_do_not_fit_are_refused() -> None:
    data = pa.table({"id": [0], "a": [1.0]})
    with pytest.raises(InputError, match="two roles"):
        ucle.einsum_program("t[f] += X[i,f]", X=table(data, ["id"], ["a", "id"], columns_as="f"))
    with pytest.raises(InputError, match="there is no column 'c'"):
        ucle.einsum_program("t[f] += X[i,f]", X=table(data, ["id"], ["c"], columns_as="f"))
    with pytest.raises(InputError, match="no column is left"):
        ucle.einsum_program("t[i] += X[i,j,f]", X=table(data, ["id", "a"], columns_as="f"))
    with pytest.raises(InputError, match="do not make a tensor of this rank"):
        ucle.einsum_program("t[i] += X[i,j,f]", X=table(data, ["id"], columns_as="f"))
    X, w = table(data, ["id"], columns_as="f"), pa.table({"k": [0], "v": [1.0]})
    with pytest.raises(ValueTypeError, match="by a dictionary in one table"):
        ucle.einsum_program("t[i] += X[i,f] * w[f]", X=X, w=w)


def test_options_that_contradict_each_other() -> None:
    with pytest.raises(ArgumentTypeError, match="columns_as= names the axis"):
        table("t", ["id"], ["a", "b"])
    with pytest.raises(ArgumentError, match="contradict"):
        table("t", ["id"], "a", columns_as="f")
    with pytest.raises(ArgumentError, match="contradict"):
        table("t", ["id"], columns_as="f", tiles=[2])
    with pytest.raises(ArgumentError, match="unknown value"):
        table("t", ["id"], columns_as="f", nulls="drop")
    with pytest.raises(ArgumentError, match="which values"):
        ucle.observed(table("t", ["id"], columns_as="f"))
    with pytest.raises(ArgumentError, match="which values"):
        ucle.observed(2 * ucle.tensor(table("t", ["id"], columns_as="f", nulls="missing")))
    with pytest.raises(LabelError, match="cannot name an axis"):
        ucle.tensor(table("t", ["patient id"], columns_as="f"))


def test_missing_values_inside_arrays_are_refused() -> None:
    data = pa.table({"id": [0], "v": [[1.0, None]]})
    with pytest.raises(ValueTypeError, match="inside arrays"):
        ucle.einsum_program("t[f] += X[i,f]", X=table(data, ["id"], "v", nulls="missing"))


def test_positions_meet_the_order_of_the_columns() -> None:
    data = pa.table({"id": [0, 1], "b": [1.0, 2.0], "a": [3.0, 4.0]})
    X = table(data, ["id"], columns_as="f")
    with ucle.einsum_program("y[i] += X[i,f] * w[f]", X=X, w=[1.0, 10.0]).execute() as result:
        assert result["y"].to_numpy().tolist() == [31.0, 42.0]
    names = pd.Series([1.0, 1.0], ["a", "b"])
    text = "y[i] += X[i,f] * w[f] * v[f]"
    with pytest.raises(ValueTypeError, match="in no order") as caught:
        ucle.einsum_program(text, X=X, w=[1.0, 10.0], v=names)
    assert "input w, axis f" in str(caught.value)
    assert "pd.Series({'b': 1.0, 'a': 2.0, ...})" in str(caught.value)
    by_name = pd.Series({"b": 1.0, "a": 10.0})
    with ucle.einsum_program(text, X=X, w=by_name, v=names).execute() as result:
        assert result["y"].to_numpy().tolist() == [31.0, 42.0]


@pytest.mark.parametrize("text", ["y[i] = X[i,0]", "y[i] = X[i,0] + X[i,1]", "y[i] = X[i,~(0)]"])
def test_columns_have_no_positions(text: str) -> None:
    data = pa.table({"id": ["u", "v"], "b": [1.0, 2.0], "a": [3.0, 4.0]})
    X = table(data, ["id"], columns_as="f")
    with pytest.raises(LabelError, match="no position") as caught:
        ucle.einsum_program(text, X=X)
    message = str(caught.value)
    assert text[7 : text.index("]", 7) + 1] in message
    assert "at_" not in message
    assert "sum[c](X[i,c] * chosen[c])" in message
    assert "pd.Series({name: 1.0})" in message
    chosen = pd.Series({"b": 1.0})
    text = "y[i] = sum[c](X[i,c] * chosen[c])"
    with ucle.einsum_program(text, X=X, chosen=chosen).execute() as result:
        assert result["y"].to_numpy().tolist() == [1.0, 2.0]


def test_bounds_of_a_wide_table_are_for_all_of_its_axes() -> None:
    rows = pa.table({"who": [0, 1, 2], "p": [1.0, 2.0, 4.0], "q": [2.0, 1.0, 3.0]})
    with pytest.raises(LabelError, match="bounds"):
        ucle.tensor(ucle.table(rows, ["who"], columns_as="f", bounds=[3]))
    whole = ucle.tensor(ucle.table(rows, ["who"], columns_as="f", bounds=[3, None]))
    assert whole.to_numpy().tolist() == [[1.0, 2.0], [2.0, 1.0], [4.0, 3.0]]


@pytest.mark.parametrize("order", [(False, True), (True, False)])
def test_columns_of_files_are_those_of_the_session(
    order: tuple[bool, bool], tmp_path: Path
) -> None:
    """Binary keys are text in one session, and refused in another, whichever comes first."""
    path = tmp_path / "binary.parquet"
    pq.write_table(pa.table({"k": pa.array([b"a", b"b"], pa.binary()), "v": [1.0, 2.0]}), path)
    table = ucle.table(str(path), ["k"], "v")
    for as_text in order:
        with ucle.connect() as connection:
            connection.execute(f"SET binary_as_string = {as_text}").fetchall()
            if not as_text:
                with pytest.raises(ValueTypeError, match="coordinates"):
                    ucle.einsum_program("y[k] = 2 * x[k]", x=table, database=connection)
                continue
            program = ucle.einsum_program("y[k] = 2 * x[k]", x=table, database=connection)
            with program.execute() as result:
                assert sorted(result["y"].relation.fetchall()) == [("a", 2.0), ("b", 4.0)]


@pytest.mark.parametrize("nulls", ["error", "missing"])
def test_columns_of_the_type_of_elements_are_not_cast(
    nulls: str, fresh: duckdb.DuckDBPyConnection
) -> None:
    """Also where they have another type when the program runs once more."""
    fresh.execute("CREATE TABLE w AS FROM (VALUES (0, 1.5::DOUBLE, 2.0::DOUBLE)) AS t(i, a, b)")
    spec = ucle.table("w", ["i"], columns_as="name", nulls=nulls)
    program = ucle.einsum_program("y[j] += X[i,j]", X=spec, database=fresh)
    assert 'CAST("a"' not in program.to_sql()
    for type_ in ("DOUBLE", "DECIMAL(9,2)", "FLOAT", "INTEGER"):
        fresh.execute(f"ALTER TABLE w ALTER a TYPE {type_}").fetchall()
        ((a,),) = fresh.execute("SELECT a::DOUBLE FROM w").fetchall()
        with program.execute() as result:
            np.testing.assert_array_equal(result["y"].to_numpy(), [a, 2])
    other = ucle.einsum_program("y[j] += X[i,j]", X=spec, database=fresh)
    assert 'CAST("a"' in other.to_sql()
