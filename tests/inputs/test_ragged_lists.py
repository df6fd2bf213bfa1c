"""Columns of lists of different lengths: a row for each item, and the fill behind the ends."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import ucle
from ucle import errors

SQL = {"float64": "DOUBLE", "float32": "FLOAT", "int64": "BIGINT", "bool": "BOOLEAN"}
Routes = Mapping[str, duckdb.DuckDBPyConnection]


def _lists(seed: int, dtype: str, rows: int = 30) -> list[list[Any]]:
    """Lists of up to 6 items, of which the first is not empty."""
    rng = np.random.default_rng(seed)
    lengths = [3, *rng.integers(0, 7, size=rows - 1)]
    return [np.round(4 * rng.normal(size=n)).astype(dtype).tolist() for n in lengths]


def _padded(lists: list[list[Any]], dtype: str, fill: Any = 0) -> np.ndarray[Any, Any]:
    made = np.full((len(lists), max(map(len, lists))), fill, dtype)
    for row, items in zip(made, lists, strict=True):
        row[: len(items)] = items
    return made


def _store(connection: duckdb.DuckDBPyConnection, lists: list[list[Any]], dtype: str) -> None:
    table = pa.table({"row": pa.array(range(len(lists)), pa.int32()), "items": lists})
    connection.register("given", table)
    connection.execute(
        f"CREATE OR REPLACE TABLE ragged AS SELECT row, items::{SQL[dtype]}[] AS items FROM given"
    ).fetchall()
    connection.unregister("given")


PROGRAMS = {
    "y[r] += A[r,p]": lambda a, _: a.sum(axis=1),
    "y[p] += A[r,p]": lambda a, _: a.sum(axis=0),
    "y[r] = max[p](A[r,p])": lambda a, _: a.max(axis=1),
    "y[r,k] += A[r,p] * W[p,k]": lambda a, w: a @ w[: a.shape[1]],
    "y[r,s] += A[r,p] * A[s,p]": lambda a, _: a @ a.T,
    "y[r,p] = A[r,p] + 1": lambda a, _: a + 1,
}


@pytest.mark.sample(4)
@pytest.mark.parametrize("dtype", ["float64", "float32", "int64"])
@pytest.mark.parametrize("text", PROGRAMS)
@pytest.mark.parametrize("fill", [0, -3])
def test_every_plan(text: str, dtype: str, fill: int, routes: Routes) -> None:
    lists = _lists(len(text), dtype)
    padded = _padded(lists, dtype, fill)
    W = np.arange(12, dtype=dtype).reshape(6, 2)[: padded.shape[1]]
    given: dict[str, Any] = {"W": W} if "W" in text else {}
    expected = PROGRAMS[text](padded, W)
    for connection in routes.values():
        _store(connection, lists, dtype)
        A = ucle.table("ragged", ["row"], "items", ragged="p", fill=fill)
        program = ucle.einsum_program(text, A=A, inputs=given, database=connection)
        for plan in [program, *program.plans(12)]:
            with plan.execute(connection) as result:
                np.testing.assert_array_equal(result["y"].to_numpy(), expected)


@pytest.mark.parametrize("kind", ["table", "parquet", "arrow", "pandas", "view"])
@pytest.mark.parametrize("named", [False, True])
def test_every_kind_of_relation(
    kind: str, named: bool, tmp_path: Path, native: duckdb.DuckDBPyConnection
) -> None:
    lists = _lists(5, "int64")
    _store(native, lists, "int64")
    native.execute("CREATE OR REPLACE TEMP VIEW of_ragged AS FROM ragged").fetchall()
    data = pa.table({"row": list(range(len(lists))), "items": pa.array(lists)})
    pq.write_table(data, tmp_path / "ragged.parquet")
    relation: Any = {
        "table": "ragged",
        "view": "of_ragged",
        "parquet": str(tmp_path / "ragged.parquet"),
        "arrow": data,
        "pandas": pd.DataFrame({"row": range(len(lists)), "items": lists}),
    }[kind]
    columns = (["row"], "items") if named else ()
    A = ucle.table(relation, *columns, ragged="place")
    program = ucle.einsum_program("y[p] += A[r,p]", A=A, database=native)
    with program.execute() as result:
        np.testing.assert_array_equal(result["y"].to_numpy(), _padded(lists, "int64").sum(axis=0))


def test_items_that_are_arrays(routes: Routes) -> None:
    """Sentences of different lengths, of vectors of one length."""
    rng = np.random.default_rng(8)
    sentences = [rng.normal(size=(n, 3)).tolist() for n in (2, 0, 5, 1)]
    padded = np.zeros((4, 5, 3))
    for place, vectors in zip(padded, sentences, strict=True):
        place[: len(vectors)] = np.reshape(vectors, (-1, 3))
    for connection in routes.values():
        connection.register("given", pa.table({"s": range(4), "v": pa.array(sentences)}))
        connection.execute(
            "CREATE OR REPLACE TABLE vectors AS SELECT s, v::DOUBLE[3][] AS v FROM given"
        ).fetchall()
        connection.unregister("given")
        program = ucle.einsum_program(
            "y[s,k] += V[s,t,k]; g[t,u] += V[s,t,k] * V[s,u,k]",
            V=ucle.table("vectors", ["s"], "v", ragged="t"),
            database=connection,
        )
        for plan in [program, *program.plans(8)]:
            with plan.execute(connection) as result:
                np.testing.assert_allclose(result["y"].to_numpy(), padded.sum(axis=1))
                gram = np.einsum("stk,suk->tu", padded, padded)
                np.testing.assert_allclose(result["g"].to_numpy(), gram)


def test_lazy_tensors_have_names(native: duckdb.DuckDBPyConnection) -> None:
    native.execute(
        "CREATE OR REPLACE TABLE baskets AS FROM (VALUES ('Ann', [3.0, 1.0]), ('Bo', []), "
        "('Cy', [2.0])) t(who, prices)"
    ).fetchall()
    prices = ucle.tensor(ucle.table("baskets", ragged="place"), database=native, ndim=2)
    assert prices.sum(1).to_pandas()["val"].tolist() == [4.0, 2.0]
    named = ucle.tensor(ucle.table("baskets", ["who"], ragged="place"), database=native)
    assert named.axes == ("who", "place")
    means = named.mean("place", stored=True).to_pandas()
    assert means["who"].tolist() == ["Ann", "Bo", "Cy"]  # lists without items count, too
    np.testing.assert_array_equal(means["val"], [2.0, np.nan, 2.0])


@pytest.mark.parametrize("null", ["NULL", "[1.0, NULL]"])
def test_nulls(null: str, connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute(
        f"CREATE OR REPLACE TABLE holes AS FROM (VALUES (0, [1.0, 2.0]), (1, {null})) t(r, v)"
    ).fetchall()
    A = ucle.table("holes", ragged="p")
    with pytest.raises(errors.ValueTypeError, match="a value is NULL") as raised:
        ucle.einsum_program("y[r] += A[r,p]", A=A, database=connection)
    assert "nulls='missing'" in str(raised.value)
    A = ucle.table("holes", ["r"], "v", ragged="p", nulls="missing")
    lazy = ucle.tensor(A, database=connection)
    one = 1.0 if "," in null else 0.0
    assert lazy.sum().item() == 3 + one
    assert ucle.observed(lazy).sum().item() == 2 + one


def test_nulls_at_the_ends_of_lists_have_places(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute(
        "CREATE OR REPLACE TABLE holes AS FROM "
        "(VALUES ('a', [1.0, NULL, NULL]), ('b', NULL), ('c', [NULL, 2.0])) t(r, v)"
    ).fetchall()
    X = ucle.tensor(ucle.table("holes", ["r"], "v", ragged="p", nulls="missing"))
    assert X.to_numpy(connection).tolist() == [[1, 0, 0], [0, 0, 0], [0, 2, 0]]
    counts = ucle.count(X, "r", stored=True)
    assert counts.to_numpy(connection).tolist() == [1, 1, 0]
    assert ucle.observed(X).sum("p").to_numpy(connection).tolist() == [1, 0, 1]


@pytest.mark.parametrize("nulls", ["error", "missing"])
def test_positions_of_empty_lists_exist(nulls: str, connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute(
        "CREATE OR REPLACE TABLE baskets AS FROM (VALUES (0, []), (1, [2.0, 3.0]), (3, [])) t(r, v)"
    ).fetchall()
    X = ucle.tensor(ucle.table("baskets", ["r"], "v", ragged="p", nulls=nulls))
    assert X.to_numpy(connection).tolist() == [[0, 0], [2, 3], [0, 0], [0, 0]]
    assert X.sum("p").to_numpy(connection).tolist() == [0, 5, 0, 0]
    program = (X.mean("r") + 1).program(connection)
    program.create_views(connection, replace=True, kernels=False)
    for rows, expected in (
        ("SELECT 0 WHERE false", [1.5, 1.75]),
        ("SELECT 7, []", [1.25, 1.375]),
        ("SELECT 9, [NULL, 5.0]" if nulls == "missing" else "SELECT 9, [0.0, 5.0]", [1.2, 1.8]),
    ):
        connection.execute(f"INSERT INTO baskets {rows}" if "0 WHERE" not in rows else "SELECT 1")
        with program.execute(connection) as result:
            assert result["out"].to_numpy().tolist() == pytest.approx(expected)
        found = connection.execute("SELECT val FROM out ORDER BY ALL").fetchall()
        assert sorted(x for (x,) in found) == pytest.approx(expected)


def test_lists_change(native: duckdb.DuckDBPyConnection) -> None:
    native.execute("CREATE OR REPLACE TABLE grows AS SELECT 0 AS r, [1, 2] AS v").fetchall()
    A = ucle.table("grows", ["r"], "v", ragged="p")
    program = ucle.einsum_program("y[p] += A[r,p]", A=A, database=native)
    kept = program.maintain("sums_of_lists", native)
    try:
        native.execute("INSERT INTO grows VALUES (1, [5, 5, 5]), (2, [])").fetchall()
        assert program.execute(native)["y"].to_numpy().tolist() == [6, 7, 5]
        kept.refresh()
        assert native.execute("FROM sums_of_lists ORDER BY 1").fetchall() == [
            (0, 6),
            (1, 7),
            (2, 5),
        ]
        native.execute("UPDATE grows SET v = [1] WHERE r = 1").fetchall()
        kept.refresh()
        assert native.execute("FROM sums_of_lists ORDER BY 1").fetchall() == [(0, 2), (1, 2)]
        with pytest.raises(errors.UnsupportedError, match="no single entry"):
            kept.to_sql(inserted={"A": "grows"})
    finally:
        kept.drop()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"columns_as": "k"}, "ragged= and columns_as= contradict"),
        ({"shape": (3,)}, "ragged= and shape= contradict"),
        ({"tiles": (2,)}, "ragged= and tiles= contradict"),
        ({"value": 1}, "ragged= and value= contradict"),
    ],
)
def test_options_that_contradict(options: dict[str, Any], message: str) -> None:
    with pytest.raises(errors.ArgumentError, match=message):
        ucle.table("any", ragged="p", **options)


def test_errors_say_what_to_write(native: duckdb.DuckDBPyConnection) -> None:
    native.execute("CREATE OR REPLACE TABLE uneven AS FROM (VALUES (0, [1, 2]), (1, [3])) t(r, v)")
    with pytest.raises(errors.ValueTypeError) as raised:
        ucle.einsum_program("y[r] += A[r,p]", A="uneven", database=native)
    assert "ragged='position'" in str(raised.value)
    A = ucle.table("uneven", ["v"], "r", ragged="p")
    with pytest.raises(errors.ValueTypeError, match="holds no lists"):
        ucle.einsum_program("y[r] += A[r,p]", A=A, database=native)
    A = ucle.table("uneven", ["r"], "v", ragged="R")
    with pytest.raises(errors.InputError, match="'R' is a column already"):
        ucle.einsum_program("y[r] += A[r,p]", A=A, database=native)


@pytest.mark.parametrize("types", ["DOUBLE[]", "DOUBLE[2]"])
def test_a_null_in_a_list_is_told_from_another_length(types: str) -> None:
    with ucle.connect() as connection:
        connection.execute(
            "CREATE TABLE lists AS SELECT i, "
            f"(CASE WHEN i = 2 THEN [1, NULL] ELSE [1, 2] END)::{types} v FROM range(4) t(i)"
        )
        with pytest.raises(errors.ValueTypeError, match="a number in an array is NULL") as raised:
            ucle.einsum_program("s[k] += D[i,k]", D="lists", database=connection).execute()
        assert "ragged" not in str(raised.value)
        query = str(raised.value).split("hint: a view with ")[1].split(" has a number")[0]
        connection.execute(f"CREATE VIEW whole AS SELECT i, {query} AS v FROM lists")
        with ucle.einsum_program(
            "s[k] += D[i,k]", D="whole", database=connection
        ).execute() as made:
            assert made["s"].to_numpy().tolist() == [4, 6]
