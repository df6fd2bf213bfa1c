"""Windows and steps of time without pairs of times, against pandas."""

from __future__ import annotations

from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import ucle
from ucle.options import Optimisations
from ucle.plan.relation_nodes import WindowOfTimes
from ucle.plan.relation_tree import nodes
from ucle.testing import recompiled

METHODS = ["sum", "mean", "min", "max", "count"]
LENGTHS = {"1d": "1D", "3d": "3D", "30d": "30D", "36h": "36h", "1us": "1us"}
TYPES = ["DATE", "TIMESTAMP", "TIMESTAMP_NS", "TIMESTAMP_S"]


def make(connection: duckdb.DuckDBPyConnection, type_: str, seed: int, series: int) -> pd.DataFrame:
    """Make a table of times with gaps, shared by several series, of which some entries are missing.

    Its frame has NaN for these.
    """
    rng = np.random.default_rng([seed, series, TYPES.index(type_)])
    times = int(rng.integers(20, 50))
    steps = np.sort(rng.choice(5 * times, times, replace=False))
    unit = "D" if type_ == "DATE" else "h"
    index = pd.Timestamp("1999-12-20") + pd.to_timedelta(steps * (1 if unit == "D" else 7), unit)
    there = rng.random((times, series)) < 0.7
    there[:, 0] |= ~there.any(axis=1)
    there[0] = True
    values = rng.integers(-4, 5, (times, series)) / 4
    wide = pd.DataFrame(np.where(there, values, np.nan), index, [f"n{n}" for n in range(series)])
    rows = wide.rename_axis("t").reset_index().melt("t", var_name="who", value_name="v").dropna()
    connection.register("rows", rows)
    connection.execute(
        f"CREATE OR REPLACE TABLE moments AS SELECT t::{type_} AS t, who, v FROM rows "
        "ORDER BY random()"
    )
    connection.unregister("rows")
    return wide


def run(tensor: ucle.Tensor, connection: duckdb.DuckDBPyConnection, *, pairs: bool) -> Any:
    """The entries of a tensor, by relations without pairs."""
    program = tensor.program(database=connection).with_decomposition("relational")
    steps = program.compiled.physical.steps
    parts = (part for step in steps for part in (*step.views, step))
    found = any(isinstance(x, WindowOfTimes) for part in parts for x in nodes(part.relation))
    assert found is not pairs
    with program.execute(connection) as result:
        (name,) = result
        return result[name].to_numpy()


@pytest.mark.sample(14)
@pytest.mark.parametrize("type_", TYPES)
@pytest.mark.parametrize("series", [1, 3])
@pytest.mark.parametrize("stored", [False, True])
@pytest.mark.parametrize("name", METHODS)
def test_windows(
    name: str, stored: bool, series: int, type_: str, connection: duckdb.DuckDBPyConnection
) -> None:
    seed = METHODS.index(name)
    wide = make(connection, type_, seed, series)
    length = list(LENGTHS)[(seed + series) % len(LENGTHS)]
    frame = wide if stored else wide.fillna(0)
    x = ucle.tensor("moments", axes=("t", "who"), database=connection)
    windows = frame.rolling(LENGTHS[length], min_periods=0 if name in ("sum", "count") else 1)
    expected = getattr(windows, name)()
    if name == "sum":
        expected = expected.where(frame.rolling(LENGTHS[length], min_periods=0).count() > 0)
    made = getattr(ucle.rolling(x, length, "t", stored=stored), name)()
    found = run(made, connection, pairs=False)
    np.testing.assert_allclose(found, expected, 1e-9, 1e-9, err_msg=length)


@pytest.mark.sample(10)
@pytest.mark.parametrize("type_", TYPES)
@pytest.mark.parametrize("series", [1, 3])
@pytest.mark.parametrize("stored", [False, True])
@pytest.mark.parametrize("name", METHODS)
def test_steps(
    name: str, stored: bool, series: int, type_: str, connection: duckdb.DuckDBPyConnection
) -> None:
    wide = make(connection, type_, METHODS.index(name), series)
    frame = wide if stored else wide.fillna(0)
    x = ucle.tensor("moments", axes=("t", "who"), database=connection)
    expected = getattr(frame.resample("MS"), name)()
    if name == "sum":
        expected = expected.fillna(0)
    made = getattr(ucle.resample(x, "1mo", "t", stored=stored), name)()
    program = made.program(database=connection).with_decomposition("relational")
    with program.execute(connection) as result:
        (output,) = result
        found = result[output].to_numpy()
    np.testing.assert_allclose(found, expected, 1e-9, 1e-9)


def test_one_series_without_a_table_of_others(connection: duckdb.DuckDBPyConnection) -> None:
    """Times that are keys by themselves, with zeros, which are not stored."""
    rng = np.random.default_rng(3)
    days = np.sort(rng.choice(300, 80, replace=False))
    values = rng.integers(-2, 3, 80) / 2
    index = pd.Timestamp("2020-01-01") + pd.to_timedelta(days, "D")
    series = pd.Series(values, index)
    connection.register("rows", pd.DataFrame({"day": index, "v": values}))
    connection.execute("CREATE OR REPLACE TABLE alone AS SELECT day::DATE AS day, v FROM rows")
    connection.unregister("rows")
    x = ucle.tensor("alone", axes=("day",), database=connection)
    for name in METHODS:
        found = run(getattr(x.rolling("20d", "day"), name)(), connection, pairs=False)
        expected = getattr(series.rolling("20D"), name)()
        np.testing.assert_allclose(found, expected, 1e-9, 1e-9, err_msg=name)
    spread = run(x.rolling("20d", "day").std(), connection, pairs=False)
    np.testing.assert_allclose(spread, series.rolling("20D").std(), 1e-6, 1e-6)


def test_pairs_are_made_where_that_is_switched_off(native: duckdb.DuckDBPyConnection) -> None:
    wide = make(native, "DATE", 1, 1)
    x = ucle.tensor("moments", axes=("t", "who"), database=native)
    program = x.rolling("3d", "t").sum().program(database=native)
    off = recompiled(program, Optimisations(windows=False)).with_decomposition("relational")
    assert "OVER" in program.with_decomposition("relational").to_sql()
    with off.execute(native) as result:
        (name,) = result
        np.testing.assert_allclose(
            result[name].to_numpy(), wide.fillna(0).rolling("3D").sum(), 1e-9
        )


def test_times_that_are_missing_are_refused(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute("CREATE OR REPLACE TABLE gaps AS FROM (VALUES (NULL::DATE, 1.0)) t(day, v)")
    x = ucle.tensor("gaps", axes=("day",), database=connection)
    with pytest.raises(ucle.errors.CoordinateError):
        x.rolling("3d", "day").sum().to_numpy()


@pytest.mark.parametrize("type_", ["DOUBLE", "INTEGER", "FLOAT"])
@pytest.mark.parametrize("case", ["some", "zeros", "one", "none"])
def test_times_are_counted_beside_their_entries(
    case: str, type_: str, connection: duckdb.DuckDBPyConnection
) -> None:
    """One grouping and one sort make means, also of times whose entries are all 0, or NaN."""
    rng = np.random.default_rng(len(case))
    count = {"some": 70, "zeros": 20, "one": 1, "none": 0}[case]
    index = pd.Timestamp("2020-01-30") + pd.to_timedelta(
        np.sort(rng.choice(300, count, replace=False)), "D"
    )
    values = rng.integers(-2, 3, count) / (1 if type_ == "INTEGER" else 2)
    values[: 0 if case == "one" else 15] = 0
    if case == "some" and type_ != "INTEGER":
        values[[20, 30, 31]] = np.nan, np.inf, -np.inf
    connection.register("rows", pa.table({"day": pa.array(index), "v": pa.array(values)}))
    connection.execute(
        f"CREATE OR REPLACE TABLE apart AS SELECT day::DATE AS day, v::{type_} AS v FROM rows"
    )
    connection.unregister("rows")
    x = ucle.tensor("apart", axes=("day",), database=connection)
    for made in (ucle.resample(x, "1mo", "day").mean(), ucle.rolling(x, "20d", "day").mean()):
        program = made.program(database=connection)
        forms = [program, program.with_decomposition("relational")]
        forms += [recompiled(each, Optimisations(windows=False)) for each in forms]
        found = []
        for each in forms:
            parts = (part for step in each.compiled.physical.steps for part in (*step.views, step))
            counted = [
                node.counted
                for part in parts
                for node in nodes(part.relation)
                if isinstance(node, WindowOfTimes)
            ]
            if each is forms[1]:  # integers become numbers that are divided, of another step
                assert counted == ([False, False] if type_ == "INTEGER" else [True])
            with each.execute(connection) as result:
                found.append(result["out"].to_numpy())
        for other in found[1:]:
            np.testing.assert_array_equal(other, found[0])
    # NaN is a number in tables, which pandas leaves out.
    months = [group.to_numpy() for _, group in pd.Series(values, index).resample("MS")]
    with np.errstate(invalid="ignore"):
        expected = [month.mean() if len(month) else np.nan for month in months]
    monthly = ucle.resample(x, "1mo", "day").mean().to_numpy()
    np.testing.assert_allclose(monthly, expected, 1e-6 if type_ == "FLOAT" else 1e-12)


@pytest.mark.parametrize("method", ["count", "mean"])
def test_rows_that_share_a_time(method: str, fresh: duckdb.DuckDBPyConnection) -> None:
    """Each has some of the categories of its time, which is counted once."""
    fresh.execute(
        "CREATE TABLE hot AS FROM (VALUES (DATE '2020-01-01', 'a', NULL), "
        "(DATE '2020-01-01', NULL, 'b'), (DATE '2020-01-03', 'a', NULL)) AS t(day, x, y)"
    )
    hot = [ucle.one_hot("x"), ucle.one_hot("y")]
    table = ucle.table("hot", ["day"], hot, columns_as="feature", nulls="missing")
    x = ucle.tensor(table, axes=("day", "feature"), database=fresh)
    windows, steps = ucle.rolling(x, "3d", "day"), ucle.resample(x, "2d", "day")
    expected = {
        "count": ([[1, 1], [2, 2]], [[1, 1], [1, 1]]),
        "mean": ([[1, 1], [1, 0.5]], [[1, 1], [1, 0]]),
    }
    for made, numbers in zip((windows, steps), expected[method], strict=True):
        np.testing.assert_array_equal(getattr(made, method)().to_numpy(), numbers)


@pytest.mark.parametrize("method", ["count", "mean"])
def test_times_in_two_rows_are_refused(method: str, fresh: duckdb.DuckDBPyConnection) -> None:
    """Nothing looks for them where the dictionary of times is made, or their windows are."""
    fresh.execute(
        "CREATE TABLE twice AS FROM (VALUES (DATE '2020-01-01', 1.0), (DATE '2020-01-01', 2.0)) "
        "AS t(day, v)"
    )
    x = ucle.tensor("twice", axes=("day",), database=fresh)
    for groups in (ucle.rolling(x, "3d", "day"), ucle.resample(x, "1d", "day")):
        with pytest.raises(ucle.errors.DuplicateCoordinatesError):
            getattr(groups, method)().to_numpy()


def test_no_time_at_all(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute("CREATE OR REPLACE TABLE nothing (day DATE, v DOUBLE)")
    x = ucle.tensor("nothing", axes=("day",), database=connection)
    assert x.rolling("3d", "day").sum().to_numpy().shape == (0,)
    assert x.rolling("3d", "day").count().to_numpy().shape == (0,)


@pytest.mark.parametrize("rows", ["series", "matrix"])
@pytest.mark.parametrize("decomposition", ["auto", "relational"])
def test_rows_that_are_missing_have_times(
    rows: str, decomposition: str, connection: duckdb.DuckDBPyConnection
) -> None:
    """They are coordinates of the tensor, too, and of a mask of what is observed."""
    connection.execute("""
        CREATE OR REPLACE TABLE gone AS FROM (VALUES
            (DATE '2024-02-02', 'a', 1.0), (DATE '2024-02-04', 'b', NULL),
            (DATE '2024-02-05', 'b', 3.0), (DATE '2024-03-04', 'a', NULL)) t(day, who, v)
    """)
    keys = ["day"] if rows == "series" else ["day", "who"]
    x = ucle.tensor(ucle.table("gone", keys, "v", nulls="missing"), axes=tuple(keys))
    expected = {
        "windows": [1.0, 1.0, 4.0, 0.0],
        "steps": [4.0, 0.0],
        "observed": [1, 1, 2, 0],
        "counts": [1, 2, 3, 1],
    }
    seen = 1 * ucle.observed(x)
    found = {
        "windows": x.rolling("6d", "day").sum(),
        "steps": x.resample("1mo", "day").sum(),
        "observed": seen.rolling("6d", "day").sum(),
    }
    if rows == "series":
        found["counts"] = x.rolling("6d", "day").count()
    for name, tensor in found.items():
        whole = tensor if rows == "series" else tensor.sum("who")
        values = whole.to_numpy(connection, decomposition=decomposition)
        np.testing.assert_array_equal(values, expected[name], err_msg=name)


@pytest.mark.parametrize("stored", [False, True])
def test_deviations_need_no_pairs(stored: bool, fresh: duckdb.DuckDBPyConnection) -> None:
    """Windows that do not vary, NaN and infinity in some, numbers far from 0."""
    rng = np.random.default_rng(9)
    values = rng.normal(size=(200, 2)) + 1e4
    values[40:90, 0], values[120, 0], values[150, 1] = 7.1, np.nan, np.inf
    times = np.repeat(np.arange("2021-01-01", 200, dtype="datetime64[D]"), 2)
    rows = pa.table({"t": times, "who": ["a", "b"] * 200, "v": values.ravel()})
    fresh.register("far_rows", rows)
    fresh.execute("CREATE OR REPLACE TABLE far AS SELECT * FROM far_rows")
    x = ucle.tensor("far", axes=("t", "who"), database=fresh)
    made = x.rolling("5d", "t").std(stored=stored)
    program = made.program(database=fresh)
    assert all(len(vertex.all_labels) <= 3 for vertex in program.compiled.program.vertices)
    with program.execute(fresh) as result:
        found = result["out"].to_numpy()
    for column in range(2):
        for last in range(1, 200):
            window = values[max(last - 4, 0) : last + 1, column]
            expected = np.std(window, ddof=1) if np.isfinite(window).all() else np.nan
            np.testing.assert_allclose(found[last, column], expected, 1e-6, 1e-9)


@pytest.mark.sample(1)
@pytest.mark.parametrize("days", [9, 30])
def test_long_series_have_windows_of_sql(days: int, fresh: duckdb.DuckDBPyConnection) -> None:
    """Pairs of times, of which there are many more than times, are not made by default either."""
    count = 310_000  # of as many, degrees are not counted one by one
    fresh.execute(
        "CREATE TABLE long AS SELECT DATE '1800-01-01' + (2 * i)::INTEGER AS day, "
        f"0.5::DOUBLE + i % 5 AS v FROM range({count}) AS t(i)"
    )
    x = ucle.tensor("long", axes=("day",), database=fresh)
    program = x.rolling(f"{days}d", "day").mean().program(database=fresh)
    within = (days + 1) // 2
    steps = program.compiled.physical.steps
    parts = [part for step in steps for part in (*step.views, step)]
    found = [x for part in parts for x in nodes(part.relation) if isinstance(x, WindowOfTimes)]
    assert [x.counted for x in found] == [True]
    with program.execute(fresh) as result:
        means = result["out"].to_numpy()
    values = np.arange(count) % 5 + 0.5
    sums = np.concatenate([[0], np.cumsum(values)])
    last = np.arange(1, count + 1)
    first = np.maximum(last - within, 0)
    np.testing.assert_allclose(means, (sums[last] - sums[first]) / (last - first))
