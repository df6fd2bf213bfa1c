"""Aggregations of what inputs store, and of what a mask selects, against pandas and NumPy."""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse

import ucle
from ucle.errors import (
    ArgumentError,
    LabelError,
    MeaningWarning,
    UnsupportedError,
    ValueTypeError,
)

AGGREGATIONS: dict[str, Any] = {
    "mean": (ucle.mean, {}),
    "count": (ucle.count, {}),
    "std": (ucle.std, {"ddof": 1}),
    "var": (ucle.var, {"ddof": 0}),
    "median": (ucle.median, {}),
}
FORMS = ["names", "positions", "dates", "strings and a fill"]
TYPES = ["DOUBLE", "FLOAT", "BIGINT"]


def make_frame(seed: int, form: str, type_: str) -> pd.DataFrame:
    """Rows with some explicit zeros, and keys of a kind."""
    rng = np.random.default_rng(seed)
    size = int(rng.integers(1, 25))
    places = rng.choice(40, size, replace=False)
    a, b = places // 8, places % 8
    values = rng.integers(-3, 4, size) * (rng.random(size) < 0.7)
    frame = pd.DataFrame({"a": a, "b": b, "v": values.astype(float)})
    if type_ != "BIGINT":
        frame["v"] *= 0.5
    if form in ("names", "strings and a fill"):
        frame["a"] = [f"n{x}" for x in a]
    if form == "dates":
        frame["b"] = pd.Timestamp("2024-02-27") + pd.to_timedelta(b, unit="D")
    return frame


def write(connection: duckdb.DuckDBPyConnection, frame: pd.DataFrame, type_: str) -> None:
    connection.execute("DROP TABLE IF EXISTS ratings")
    connection.execute(
        f"CREATE TABLE ratings AS SELECT a, b, v::{type_} AS v FROM frame ORDER BY random()"
    )


def by_key(found: Any, key: str, database: Any) -> pd.Series:
    """The entries of a vector that are not NaN, by their coordinates."""
    frame = found.to_pandas(database=database, rows="all")
    return frame.set_index(key)["val"].dropna().sort_index()


@pytest.mark.sample(2)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("type_", TYPES)
@pytest.mark.parametrize("seed", range(6))
def test_random_tables(
    seed: int, form: str, type_: str, connection: duckdb.DuckDBPyConnection
) -> None:
    frame = make_frame(seed, form, type_)
    write(connection, frame, type_)
    fill = 2 if "fill" in form else None
    x = ucle.tensor(ucle.table("ratings", ["a", "b"], "v", fill=fill), axes=("a", "b"))
    for key, over in (("a", "b"), ("b", "a")):
        groups = frame.groupby(key)["v"]
        for name, (function, options) in AGGREGATIONS.items():
            found = by_key(function(x, over, stored=True, **options), key, connection)
            expected = getattr(groups, name)(**options).dropna().sort_index()
            if name == "count":
                found = found[found > 0]
            assert list(found.index.astype(str)) == list(expected.index.astype(str)), name
            np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-7, err_msg=name)
    mean = ucle.mean(x, stored=True).compute(connection).to_numpy()
    np.testing.assert_allclose(mean, frame["v"].mean(), rtol=1e-6, atol=1e-7)
    assert mean.dtype == (np.float32 if type_ == "FLOAT" else np.float64)
    assert ucle.count(x, stored=True).item(connection) == len(frame)


@pytest.mark.sample(1)
@pytest.mark.parametrize("seed", range(5))
def test_random_arrays_and_masks(seed: int, routes: dict[str, Any]) -> None:
    rng = np.random.default_rng(seed)
    shape = tuple(rng.integers(1, 7, 2))
    values = rng.normal(size=shape).round(1)
    if seed % 3 == 0:
        values.flat[0] = np.nan
    there = rng.random(shape) < 0.5
    keys = np.nonzero(there)
    explicit = values[keys] * (rng.random(len(keys[0])) < 0.7)
    values[keys] = explicit
    form = ["coo", "csr", "csc"][seed % 3]
    sparse = scipy.sparse.coo_array((explicit, keys), shape=shape).asformat(form)
    stored = pd.DataFrame(np.where(there, values, np.nan))
    q = [0.5, 0.0, 0.3, 1.0][seed % 4]
    x, mask = ucle.array(values), ucle.array(there)
    for axis in (0, 1):
        for route in routes.values():
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                expected = {
                    ucle.mean: np.mean(values, axis, where=there),
                    ucle.var: np.var(values, axis, where=there),
                    ucle.count: there.sum(axis),
                }
                line = np.moveaxis(values, axis, -1), np.moveaxis(there, axis, -1)
                between = [
                    np.quantile(v[m], q) if m.any() else np.nan for v, m in zip(*line, strict=True)
                ]
            for function, value in expected.items():
                found = function(x, axis, where=mask).to_numpy(database=route)
                np.testing.assert_allclose(found, value, 1e-12, 1e-12)
            found = ucle.quantile(x, q, axis, where=mask).to_numpy(database=route)
            np.testing.assert_allclose(found, between, 1e-12, 1e-12)
        if not np.isnan(values).any():
            found = ucle.median(sparse, axis, stored=True).to_numpy()
            np.testing.assert_allclose(found, stored.median(axis=axis), 1e-12, 1e-12)
            found = ucle.mean(sparse, axis, stored=True).to_numpy()
            np.testing.assert_allclose(found, stored.mean(axis=axis), 1e-12, 1e-12)
    np.testing.assert_allclose(ucle.quantile(x, q, 1).to_numpy(), np.quantile(values, q, axis=1))
    np.testing.assert_allclose(np.quantile(x, q).to_numpy(), np.quantile(values, q))
    np.testing.assert_array_equal(ucle.is_stored(sparse).to_numpy(), there)
    np.testing.assert_array_equal(ucle.is_stored(x).to_numpy(), np.ones(shape, dtype=bool))
    np.testing.assert_array_equal(ucle.count(x, 0).to_numpy(), np.full(shape[1], shape[0]))


def test_tables_of_arrays(connection: duckdb.DuckDBPyConnection) -> None:
    """All elements of a row's array are stored, its zeros included."""
    connection.execute(
        "CREATE OR REPLACE TABLE items AS SELECT ['hat', 'shoe'][1 + i % 2] AS kind, i AS item, "
        "[i, 0, 1.5]::FLOAT[3] AS v FROM range(6) t(i)"
    )
    x = ucle.tensor(ucle.table("items", ["kind", "item"], "v"), axes=("kind", "item", "feature"))
    found = ucle.mean(x, "item", stored=True).to_numpy(database=connection)
    np.testing.assert_array_equal(found, [[2, 0, 1.5], [3, 0, 1.5]])
    assert found.dtype == np.float32
    shoes = ucle.mean(x.sel(kind=["shoe"]), "item", stored=True)
    np.testing.assert_array_equal(shoes.to_numpy(database=connection), [[3, 0, 1.5]])


@pytest.mark.parametrize(
    "data",
    [
        pd.DataFrame({"a": [0, 0, 2], "b": [0, 1, 0], "v": [0.0, 4.0, 7.0]}),
        pa.table({"a": [0, 0, 2], "b": [0, 1, 0], "v": [0.0, 4.0, 7.0]}),
        scipy.sparse.bsr_array(
            (np.array([[[0.0, 4.0]], [[7.0, 0.0]]]), [0, 1], [0, 1, 1, 2]), shape=(3, 4)
        ),
    ],
    ids=["pandas", "arrow", "blocks"],
)
def test_other_inputs(data: Any, connection: duckdb.DuckDBPyConnection) -> None:
    x = ucle.tensor(data, ndim=2)
    blocks = not isinstance(data, pd.DataFrame | pa.Table)
    found = ucle.mean(x, 1, stored=True).to_numpy(database=connection)
    np.testing.assert_array_equal(found, [2, np.nan, 3.5 if blocks else 7])


def test_files(tmp_path: Any, connection: duckdb.DuckDBPyConnection) -> None:
    frame = pd.DataFrame({"a": ["x", "x", "y"], "b": ["p", "q", "q"], "v": [0.0, 4.0, 7.25]})
    frame.to_parquet(tmp_path / "t.parquet")
    frame.to_csv(tmp_path / "t.csv", index=False)
    for name in ("t.parquet", "t.csv"):
        x = ucle.tensor(str(tmp_path / name), axes=("a", "b"))
        assert ucle.mean(x, "b", stored=True).to_numpy(database=connection).tolist() == [2, 7.25]


@pytest.mark.parametrize("wide", [False, True])
def test_missing_values_are_not_stored(wide: bool, connection: duckdb.DuckDBPyConnection) -> None:
    frame = pd.DataFrame({"p": [0.0, None, 3.0], "q": [None, 2.0, 5.0]}, index=["a", "b", "c"])
    if wide:
        rows = pa.table({"who": list(frame.index), **{x: frame[x].tolist() for x in frame}})
        rows = rows.set_column(1, "p", pa.array([0.0, None, 3.0]))
        rows = rows.set_column(2, "q", pa.array([None, 2.0, 5.0]))
        spec = ucle.table(rows, ["who"], columns_as="what", nulls="missing")
    else:
        values = pa.array([0.0, None, None, 2.0, 3.0, 5.0])
        rows = pa.table({"who": [*"aabbcc"], "what": [*"pqpqpq"], "v": values})
        spec = ucle.table(rows, ["who", "what"], "v", nulls="missing")
    x = ucle.tensor(spec, axes=("who", "what"))
    for axis, name in enumerate(("who", "what")):
        found = ucle.mean(x, name, stored=True).to_numpy(database=connection)
        np.testing.assert_array_equal(found, frame.mean(axis=axis))
        found = ucle.count(x, name, stored=True).to_numpy(database=connection)
        np.testing.assert_array_equal(found, frame.count(axis=axis))


def test_duplicates_are_one_entry(connection: duckdb.DuckDBPyConnection) -> None:
    rows = pa.table({"a": [0, 0, 0], "b": [1, 1, 2], "v": [1.0, -1.0, 6.0]})
    x = ucle.tensor(ucle.table(rows, ["a", "b"], "v", duplicates="sum"), axes=("a", "b"))
    assert ucle.count(x, stored=True).item(connection) == 2
    assert ucle.mean(x, stored=True).item(connection) == 3


def test_symmetric_tables(connection: duckdb.DuckDBPyConnection) -> None:
    rows = pa.table({"a": [0, 1], "b": [1, 2], "v": [0.0, 6.0]})
    x = ucle.tensor(ucle.table(rows, ["a", "b"], "v", symmetric=True), axes=("a", "b"))
    assert ucle.mean(x, "b", stored=True).to_numpy(database=connection).tolist() == [0, 3, 6]


def test_what_moves_entries_keeps_them(connection: duckdb.DuckDBPyConnection) -> None:
    sparse = scipy.sparse.coo_array(([0.0, 2.0, 4.0], ([0, 0, 1], [0, 1, 1])), shape=(2, 3))
    x = ucle.tensor(sparse, axes=("row", "column"))
    there = np.array([[1, 1, 0], [0, 1, 0]], dtype=bool)
    for moved, expected in (
        (x.rename({"row": "line"}), there),
        (x.T, there.T),
        (x.astype("float32"), there),
        (x[:, 1:], there[:, 1:]),
        (x.sel(column=[1, 0]), there[:, [1, 0]]),
        (ucle.shift(x, 1, "column"), np.roll(there, 1, 1)),
    ):
        found = ucle.is_stored(moved).to_numpy(database=connection)
        np.testing.assert_array_equal(found, expected)


def test_errors(connection: duckdb.DuckDBPyConnection) -> None:
    rows = pa.table({"a": [0, 1], "b": [1, 2], "v": [0.0, 6.0]})
    x = ucle.tensor(ucle.table(rows, ["a", "b"], "v"), axes=("a", "b"))
    with pytest.raises(UnsupportedError, match="is computed") as raised:
        ucle.mean(2 * x, "b", stored=True)
    assert "where=" in str(raised.value.hint)
    with pytest.raises(ArgumentError, match="two masks"):
        ucle.mean(x, "b", stored=True, where=x > 0)
    with pytest.raises(LabelError, match="lacks"):
        ucle.mean(x, "b", where=ucle.array([True], axes=("c",)))
    with pytest.raises(ArgumentError, match="part of a whole"):
        ucle.quantile([1.0, 2.0], 1.5)
    missing = pa.table({"a": [0, 1], "b": [1, 2], "v": [0.0, None]})
    y = ucle.tensor(ucle.table(missing, ["a", "b"], "v"), axes=("a", "b"))
    with pytest.raises(ValueTypeError, match="NULL"):
        ucle.count(y, stored=True).item(connection)


def test_quantiles_of_all_entries_of_named_axes(routes: Any) -> None:
    values = np.random.default_rng(4).normal(size=(4, 5))
    x = ucle.array(values, axes=("a", "b"))
    for route in routes.values():
        found = ucle.quantile(x, 0.3, keepdims=True).to_numpy(database=route)
        np.testing.assert_allclose(found, np.quantile(values, 0.3, keepdims=True))
        found = ucle.median(x, where=x > 0).item(route)
        np.testing.assert_allclose(found, np.median(values[values > 0]))


@pytest.mark.turns(3)
@pytest.mark.sample(1)
@pytest.mark.parametrize("names", [False, True])
def test_quantiles_of_all_entries_of_a_table(routes: Any, names: bool) -> None:
    """Only the data tells how many entries there are; names have no positions of their own."""
    values = np.random.default_rng(6).normal(size=(4, 5)).round(1)
    values[1, 2:] = 0
    rows = [(i, j, values[i, j]) for i in range(4) for j in range(5) if values[i, j] or j < 4]
    if names:
        rows = [(f"user {i}", f"item {j}", v) for i, j, v in rows]
    table = pa.table(dict(zip(("a", "b", "v"), map(list, zip(*rows, strict=True)), strict=True)))
    x = ucle.tensor(ucle.table(table, ["a", "b"], "v"), axes=("a", "b"))
    stored = [v for *_, v in rows]
    chosen = np.sort(np.where(values > 0, values, np.nan).ravel())[: (values > 0).sum()]
    for route in routes.values():
        for q in (0, 0.3, 0.5, 1):
            found = ucle.quantile(x, q, keepdims=True).to_numpy(database=route)
            np.testing.assert_allclose(found, np.quantile(values, q, keepdims=True))
            found = ucle.quantile(x, q, stored=True).item(route)
            np.testing.assert_allclose(found, np.quantile(stored, q))
        found = ucle.median(x, where=x > 0).item(route)
        np.testing.assert_allclose(found, np.median(chosen))
        assert np.isnan(ucle.median(x, where=x > 99).item(route))
        found = ucle.median(2 * x + 1).item(route)
        np.testing.assert_allclose(found, np.median(2 * values + 1))


def test_a_mask_of_fewer_axes(connection: duckdb.DuckDBPyConnection) -> None:
    x = ucle.array([[1.0, 2.0], [3.0, 5.0]], axes=("a", "b"))
    mask = ucle.array([False, True], axes=("a",))
    assert ucle.mean(x, where=mask).item(connection) == 4
    assert ucle.count(x, where=mask).item(connection) == 2
    assert ucle.median(x, "b", where=mask).to_numpy()[1] == 4
    computed = ucle.mean(2 * x, "b", where=ucle.is_stored(x))
    np.testing.assert_array_equal(computed.to_numpy(database=connection), [3, 8])


def test_a_selection_of_two_tables_is_checked_against_both(
    connection: duckdb.DuckDBPyConnection,
) -> None:
    one = pa.table({"a": ["p", "q"], "v": [1.0, 2.0]})
    other = pa.table({"a": ["q", "r"], "v": [1.0, 2.0]})
    both = ucle.tensor(one, axes=("a",)) + ucle.tensor(other, axes=("a",))
    assert both.sel(a=["q"]).to_numpy(database=connection).tolist() == [3]


def test_the_notice_names_what_is_stored(connection: duckdb.DuckDBPyConnection) -> None:
    rows = pa.table({"user": [5, 9], "v": [1.0, 2.0]})
    x = ucle.tensor(rows, axes=("user",))
    with pytest.warns(MeaningWarning, match="stored=True"):
        x.mean().item(connection)
    with warnings.catch_warnings():
        warnings.simplefilter("error", MeaningWarning)
        assert ucle.mean(x, stored=True).item(connection) == 1.5


def test_statistics_are_its_own(connection: duckdb.DuckDBPyConnection) -> None:
    """Not those of the values, which are known already, and of which zeros are left out."""
    connection.execute(
        "CREATE OR REPLACE TABLE votes AS SELECT i, i % 2 = 1 AS v FROM range(4) t(i)"
    )
    x = ucle.tensor("votes", axes=("i",))
    assert x.sum().item(connection) == 2
    shown = ucle.count(x, stored=True).program(connection).explain()
    assert re.search(r"votes_stored +4 +0 +4 +4 +100% full", shown), shown


@pytest.mark.parametrize("values", [[1.5, np.nan, 0.0], [1, 2, 0]], ids=["floats", "integers"])
def test_a_file_is_read_in_one_way(
    values: Any, tmp_path: Path, connection: duckdb.DuckDBPyConnection
) -> None:
    """For its values and for what it stores, so that names are numbered from one read of it."""
    path = str(tmp_path / "rows.parquet")
    rows = pa.table({"a": ["p", "q", "r"], "v": values})
    pq.write_table(rows, path)
    x = ucle.tensor(ucle.table(path, ["a"], "v"), axes=("a",))
    mean = ucle.mean(x, stored=True)
    sql = mean.program(connection).to_sql()
    assert len(set(re.findall(r"read_parquet\([^)]*\)", sql))) == 1
    assert "UNION" not in sql
    np.testing.assert_equal(mean.item(connection), np.mean(values))


def grouped(seed: int, kind: str) -> tuple[pd.DataFrame, Any]:
    """Rows of groups of very different sizes, and the tensor of them."""
    rng = np.random.default_rng(seed)
    # One group has most of the rows, and some have one.
    sizes = [*rng.integers(1, 6, 30), 400]
    group = np.repeat(np.arange(len(sizes)), sizes)
    value = rng.normal(size=len(group)).round(1)
    value[rng.random(len(group)) < 0.1] = 0.0
    who, number = group * 3, 7 * np.arange(len(group))
    frame = pd.DataFrame({"who": who, "number": number, "v": value}).sample(frac=1, random_state=3)
    if kind in ("names", "table"):
        frame["who"] = frame.who.map("group {:03}".format)
    if kind == "dates":
        frame["number"] = pd.Timestamp("2024-01-31") + pd.to_timedelta(frame.number, unit="D")
    return frame, ucle.table("grouped" if kind == "table" else frame, ["who", "number"], "v")


@pytest.mark.parametrize("q", [0.3, 1])
@pytest.mark.parametrize("kind", ["names", "positions", "dates", "table"])
def test_quantiles_by_group(kind: str, q: float, routes: Any) -> None:
    frame, data = grouped(5, kind)
    x = ucle.tensor(data, axes=("who", "number"))
    for route in routes.values():
        route.execute("CREATE OR REPLACE TEMP TABLE grouped AS FROM frame")
        for key, over in (("who", "number"), ("number", "who")):
            for chosen, options in (
                (frame, {"stored": True}),
                (frame[frame.v > 0.4], {"where": x > 0.4}),
            ):
                found = by_key(ucle.quantile(x, q, over, **options), key, route)
                expected = chosen.groupby(key)["v"].quantile(q)
                np.testing.assert_array_equal(found.index, expected.index)
                np.testing.assert_allclose(found, expected, 1e-12, 1e-12)
        found = ucle.quantile(x, q, stored=True).item(route)
        np.testing.assert_allclose(found, frame.v.quantile(q))


@pytest.mark.parametrize("stored", [False, True])
def test_quantiles_make_nothing_that_is_not_there(
    stored: bool, connection: duckdb.DuckDBPyConnection
) -> None:
    """Keys of what is stored are ranked, and not all positions of each group."""
    connection.execute(
        "CREATE OR REPLACE TABLE many AS SELECT 'who ' || (range % 4000) AS who, range AS number, "
        "1.0 + range % 7 AS v FROM range(100000)"
    )
    x = ucle.tensor("many", axes=("who", "number"), database=connection)
    chosen = {"stored": True} if stored else {"where": x > 2}
    text = ucle.median(x, "number", **chosen).explain()
    assert re.search(r"_first\[[A-Z,]+\] = bottom_k", text)


def test_gradients_of_quantiles_of_groups() -> None:
    values = np.array([[1.0, 5.0, 2.0, 0.0], [0.0, 0.0, 0.0, 0.0], [3.0, 0.0, 0.0, 8.0]])
    x = ucle.array(values, axes=("a", "b"))
    total = ucle.where(ucle.count(x, "b", where=x > 0) > 0, ucle.median(x, "b", where=x > 0), 0)
    found = ucle.grad(total.sum(), x).to_numpy()
    np.testing.assert_array_equal(found, [[0, 0, 1, 0], [0, 0, 0, 0], [0.5, 0, 0, 0.5]])


def test_gradients_go_to_where_entries_are_picked() -> None:
    x = ucle.array([[1.0, 5.0, 2.0], [0.0, 3.0, 4.0]], axes=("a", "b"))
    at = ucle.array([[2, 2], [1, 0]], axes=("a", "b"))
    picked = ucle.take_along_axis(x, at, axis="b")
    found = ucle.grad((picked * picked).sum(), x).to_numpy()
    np.testing.assert_array_equal(found, [[0, 0, 8], [0, 6, 0]])
