"""Windows, lags and steps along ordered axes, against pandas."""

from __future__ import annotations

import datetime
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import ucle
from ucle.errors import ArgumentError, ArgumentTypeError, UnsupportedError, ValueTypeError
from ucle.testing.check_matrix import Routes, some_decompositions

METHODS = ["sum", "mean", "min", "max", "std", "var", "count"]
TYPES = ["DATE", "TIMESTAMP", "TIMESTAMPTZ", "INTEGER"]


def make(
    connection: duckdb.DuckDBPyConnection, type_: str, seed: int, value: str = "DOUBLE"
) -> pd.DataFrame:
    """Make a table ``events`` and return its frame, with NaN for what is not stored."""
    rng = np.random.default_rng(seed)
    times, names = int(rng.integers(1, 12)), int(rng.integers(1, 4))
    there = rng.random((times, names)) < 0.6
    there[:, 0] |= ~there.any(axis=1)
    there[0] |= ~there.any(axis=0)
    values = rng.integers(-4, 5, size=(times, names)) * (0.25 if value != "BIGINT" else 1)
    steps = np.sort(rng.choice(40, times, replace=False))
    if type_ == "INTEGER":
        steps = np.arange(times)
    index: Any = (
        steps
        if type_ == "INTEGER"
        else pd.Timestamp("2024-02-20")
        + pd.to_timedelta(steps, unit="D" if type_ == "DATE" else "h")
    )
    wide = pd.DataFrame(
        np.where(there, values, np.nan), index=index, columns=[f"n{n}" for n in range(names)]
    )
    rows = wide.rename_axis("t").reset_index().melt("t", var_name="who", value_name="v").dropna()
    connection.register("rows", rows)
    connection.execute("DROP TABLE IF EXISTS events")
    connection.execute(
        f"CREATE TABLE events AS SELECT t::{type_} AS t, who, v::{value} AS v FROM rows "
        "ORDER BY random()"
    )
    connection.unregister("rows")
    return wide


def tensor(connection: duckdb.DuckDBPyConnection) -> ucle.Tensor:
    return ucle.tensor("events", axes=("t", "who"), database=connection)


@pytest.mark.sample(1)
@pytest.mark.parametrize("type_", TYPES)
@pytest.mark.parametrize("seed", range(12))
def test_windows_of_positions(type_: str, seed: int, connection: duckdb.DuckDBPyConnection) -> None:
    wide = make(connection, type_, seed, ["DOUBLE", "FLOAT", "BIGINT"][seed % 3])
    x, rng = tensor(connection), np.random.default_rng(seed)
    window, center = int(rng.integers(1, 7)), bool(rng.random() < 0.4)
    least = int(rng.integers(1, min(window, 3) + 1))
    for stored, frame in ((False, wide.fillna(0)), (True, wide)):
        expected = frame.rolling(window, min_periods=least, center=center)
        made = x.rolling(window, "t", min_periods=least, center=center, stored=stored)
        for name in (METHODS[seed % 7], METHODS[(seed + 4) % 7]):
            value = frame.rolling(window, min_periods=0, center=center).count()
            if name != "count":
                value = getattr(expected, name)()
            found = getattr(made, name)().to_numpy()
            case = f"{name} {window} {center} {stored}"
            np.testing.assert_allclose(found, value, 1e-6, 1e-6, err_msg=case)


@pytest.mark.sample(1)
@pytest.mark.parametrize("seed", range(4))
def test_windows_of_arrays(seed: int, routes: dict[str, Any]) -> None:
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(int(rng.integers(1, 20)), 3)) + 1e6
    mask = rng.random(values.shape) < 0.6
    if seed % 2:
        mask[:] = True
    chosen = None if seed % 2 else ucle.array(mask, axes=("t", "k"))
    window = int(rng.integers(1, 25))
    made = ucle.rolling(ucle.array(values, axes=("t", "k")), window, "t", where=chosen)
    for name in METHODS[:-1]:
        # pandas takes sums back, which loses digits: each window is aggregated by itself.
        expected = np.array(
            [
                [
                    getattr(
                        pd.Series(
                            values[max(t - window + 1, 0) : t + 1, k][
                                mask[max(t - window + 1, 0) : t + 1, k]
                            ]
                        ),
                        name,
                    )()
                    if mask[max(t - window + 1, 0) : t + 1, k].any()
                    else np.nan
                    for k in range(values.shape[1])
                ]
                for t in range(len(values))
            ]
        )
        route = list(routes.values())[(seed // 2 + len(name)) % 2]
        found = getattr(made, name)().to_numpy(database=route)
        np.testing.assert_allclose(found, expected, 1e-9, err_msg=name)


def test_nan_and_infinity_stay_in_their_windows() -> None:
    x = ucle.array([1.0, np.inf, 2.0, np.nan, 3.0, 4.0, 5.0])
    np.testing.assert_array_equal(
        x.rolling(2).sum().to_numpy(), [1, np.inf, np.inf, np.nan, np.nan, 7, 9]
    )
    np.testing.assert_array_equal(x.rolling(1).var(ddof=0).to_numpy()[[0, 3]], [0, np.nan])


@pytest.mark.sample(3)
@pytest.mark.parametrize("type_", TYPES)
def test_lags(type_: str, connection: duckdb.DuckDBPyConnection) -> None:
    for seed in range(2):
        frame, x = make(connection, type_, seed).fillna(0), tensor(connection)
        found = ucle.compute(
            ucle.lag(x, 1, "t"),
            ucle.lag(x, 2, "t", fill_value=np.nan),
            ucle.lead(x, 1, "t", fill_value=7),
            ucle.shift(2 * x + 1, 1, "t", fill_value=5),
            ucle.lag(ucle.exp(x), 1, "t"),
            ucle.lead(1 / (1 + x * x), 1, "t"),
            ucle.shift(x + 10, 2, "t", fill_value=0),
        )
        expected = (
            frame.shift(1, fill_value=0),
            frame.shift(2),
            frame.shift(-1, fill_value=7),
            (2 * frame + 1).shift(1, fill_value=5),
            np.exp(frame).shift(1, fill_value=0),
            (1 / (1 + frame * frame)).shift(-1, fill_value=0),
            (frame + 10).shift(2, fill_value=0),
        )
        for result, value in zip(found, expected, strict=True):
            np.testing.assert_allclose(result.to_numpy(), value)


def test_results_keep_times(connection: duckdb.DuckDBPyConnection) -> None:
    wide = make(connection, "DATE", 3)
    found = tensor(connection).rolling(3, "t").mean().to_pandas(rows="all")
    found = found.pivot_table(index="t", columns="who", values="val")
    found.index = pd.to_datetime(found.index)
    expected = wide.fillna(0).rolling(3, min_periods=1).mean()
    pd.testing.assert_frame_equal(found, expected, check_names=False, check_index_type=False)


STEPS = {"1mo": "MS", "1w": "W-MON", "1d": "D", "q": "QS", "y": "YS", "12h": "12h", "1h": "h"}
LENGTHS: list[Any] = ["7d", "36h", datetime.timedelta(days=3), np.timedelta64(5, "h"), "1w"]


def as_pandas(length: Any) -> Any:
    """pandas' own name of a length of time."""
    return length.upper() if isinstance(length, str) and length[-1] in "dw" else length


@pytest.mark.sample(1)
@pytest.mark.parametrize("type_", ["DATE", "TIMESTAMP", "TIMESTAMP_MS"])
@pytest.mark.parametrize("seed", range(8))
def test_lengths_of_time(type_: str, seed: int, connection: duckdb.DuckDBPyConnection) -> None:
    wide = make(connection, type_, seed, ["DOUBLE", "FLOAT", "BIGINT"][seed % 3])
    x = tensor(connection)
    step = list(STEPS)[seed % (5 if type_ == "DATE" else 7)]
    length = LENGTHS[seed % 5]
    stored, frame = (True, wide) if seed % 2 else (False, wide.fillna(0))
    closed = {"closed": "left", "label": "left"} if step == "1w" else {}
    windows = frame.rolling(pd.Timedelta(as_pandas(length)), min_periods=1)
    there = pd.Series(1, wide.index).resample(STEPS[step], **closed).sum() > 0
    empty = bool(seed % 3)
    if empty:
        there[:] = True
    names = [METHODS[seed % 7], METHODS[(seed + 3) % 7]]
    for name in [*names, "first", "last"]:
        steps = frame.resample(STEPS[step], **closed)
        expected = getattr(steps, name)()[there]
        found = getattr(ucle.resample(x, step, "t", stored=stored, empty=empty), name)()
        case = f"{name} {step} {stored} {empty}"
        np.testing.assert_allclose(found.to_numpy(), expected, 1e-6, 1e-6, err_msg=case)
    for name in names:
        expected = getattr(windows, name)()
        if name == "count":
            expected = frame.rolling(pd.Timedelta(as_pandas(length)), min_periods=0).count()
        made = ucle.rolling(x, length, "t", stored=stored)
        found = getattr(made, name)().to_numpy()
        np.testing.assert_allclose(found, expected, 1e-6, 1e-6, err_msg=f"{name} {length}")


ENDS = {"steps": ["first", "last"]}


@pytest.mark.sample(1)
@pytest.mark.parametrize("kind", ["positions", "length", "steps"])
def test_methods_take_what_is_stored(kind: str, connection: duckdb.DuckDBPyConnection) -> None:
    """`mean(stored=True)` skips what is missing, as pandas does with ``min_periods=1``."""
    wide = make(connection, "DATE", 5)
    x = tensor(connection)
    made: Any = ucle.resample(x, "1mo", "t")
    if kind != "steps":
        made = x.rolling(3 if kind == "positions" else "4d", "t")
    expected = wide.rolling(3 if kind == "positions" else pd.Timedelta("4D"), min_periods=1)
    for name in METHODS if kind == "positions" else ("mean", "std", "count", *ENDS.get(kind, [])):
        if kind == "steps":
            value = getattr(wide.resample("MS"), name)()
        else:
            value = getattr(expected, name)()
        if name == "count":
            value = value.fillna(0)
        found = getattr(made, name)(stored=True).to_numpy()
        np.testing.assert_allclose(found, value, 1e-6, 1e-6, err_msg=name)


@pytest.mark.sample(1)
@pytest.mark.parametrize("seed", range(4))
def test_ends_of_steps_that_a_mask_has(seed: int, routes: Routes) -> None:
    """The first and the last entry of each step, under several decompositions."""
    for number, connection in enumerate(routes.values()):
        wide = make(connection, ["DATE", "TIMESTAMP"][seed % 2], seed).fillna(0)
        x = tensor(connection)
        positive = wide.where(wide > 0)
        for name in ("first", "last"):
            expected = getattr(positive.resample("MS"), name)()
            made = getattr(ucle.resample(x, "1mo", "t", where=x > 0), name)()
            program = made.program(connection)
            ways = ["auto", "relational", *some_decompositions(program, seed + number, 3)]
            for way in ways:
                chosen = program if way == "auto" else program.with_decomposition(way)
                with chosen.execute(connection) as result:
                    found = next(iter(result.values())).to_numpy()
                np.testing.assert_allclose(found, expected, err_msg=f"{name} {way}")


def test_steps_have_dates(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute(
        "CREATE OR REPLACE TABLE sales AS "
        "SELECT DATE '2024-01-30' + (20 * i)::INTEGER AS day, i + 1.0 AS amount FROM range(4) t(i)"
    )
    x = ucle.tensor("sales", axes=("day",), database=connection)
    found = x.resample("1mo", "day").sum().to_arrow().sort_by("day").to_pylist()
    assert [(str(row["day"]), row["val"]) for row in found] == [
        ("2024-01-01", 1), ("2024-02-01", 2), ("2024-03-01", 7)
    ]  # fmt: skip
    assert x.resample("1mo", "day").last().to_numpy().tolist() == [1, 2, 4]
    smooth = x.rolling(2, "day").sum()
    assert smooth.resample("1mo", "day").last().to_numpy().tolist() == [1, 3, 7]


def test_wide_tables_have_steps(connection: duckdb.DuckDBPyConnection) -> None:
    """Their value columns are an axis, and their keys have the times."""
    days = pd.Index(pd.to_datetime(["2024-02-27", "2024-02-01", "2024-01-30"]), name="day")
    frame = pd.DataFrame({"p": [3.0, None, 1.0], "q": [6.0, 5.0, 4.0]}, index=days)
    columns = [pa.array(frame[x], from_pandas=True) for x in ("p", "q")]
    flat = pa.table([pa.array(days.date), *columns], names=["day", "p", "q"])
    for table in (
        ucle.table(frame, columns_as="what", nulls="missing"),
        ucle.table(flat, ["day"], columns_as="what", nulls="missing"),
    ):
        x, filled = ucle.tensor(table), frame.fillna(0).sort_index()
        for stored, expected in ((False, filled), (True, frame.sort_index())):
            found = x.resample("1mo", "day", stored=stored).mean().to_numpy(connection)
            np.testing.assert_allclose(found, expected.resample("MS").mean())
            found = x.rolling("5d", "day", stored=stored).mean().to_numpy(connection)
            np.testing.assert_allclose(found, expected.rolling("5D").mean())


def test_windows_of_days(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute(
        "CREATE OR REPLACE TABLE sales AS "
        "SELECT DATE '2024-01-30' + (7 * i)::INTEGER AS day, i + 1.0 AS amount FROM range(3) t(i)"
    )
    x = ucle.tensor("sales", axes=("day",), database=connection)
    assert x.rolling("7d", "day").sum().to_numpy().tolist() == [1, 2, 3]
    assert x.rolling("8d", "day").sum().to_numpy().tolist() == [1, 3, 5]


def test_steps_follow_the_data(connection: duckdb.DuckDBPyConnection) -> None:
    """And their statistics are those of the pairs, not of the rows of the table."""
    connection.execute(
        "CREATE OR REPLACE TABLE sales AS SELECT DATE '2024-01-30' AS day, 1.0 AS amount"
    )
    x = ucle.tensor("sales", axes=("day",), database=connection)
    program = x.resample("1mo", "day").sum().program(connection)
    with program.execute() as result:
        assert result["out"].to_numpy().tolist() == [1]
    connection.execute("INSERT INTO sales VALUES ('2024-01-31', 2), ('2024-05-02', 4)")
    with program.execute() as result:
        assert result["out"].to_numpy().tolist() == [3, 0, 0, 0, 4]
    again = x.resample("2mo", "day").count()
    assert again.to_numpy(database=connection).tolist() == [2, 0, 1]
    connection.execute("DELETE FROM sales")
    assert x.resample("2mo", "day").count().to_numpy(database=connection).tolist() == []


@pytest.mark.turns(3)
def test_windows_and_steps_of_one_another(connection: duckdb.DuckDBPyConnection) -> None:
    """Their coordinates are those of the results that they are made of, and not of the table."""
    days = pd.date_range("2024-01-28", periods=40, name="day")
    frame = pd.DataFrame(np.random.default_rng(3).normal(size=(40, 2)), days, ["a", "b"])
    frame = frame.drop(days[[3, *range(17, 27), 39]])
    x = ucle.tensor(ucle.table(frame, columns_as="who"))
    weeks, of_pandas = x.resample("1w", "day"), frame.resample("W-MON", closed="left", label="left")
    there = of_pandas.size() > 0
    some = x.resample("1w", "day", empty=False)
    sums = weeks.sum(), of_pandas.sum()
    for case, (found, expected) in {
        "windows of weeks": (sums[0].rolling("15d", "day").sum(), sums[1].rolling("15D").sum()),
        "counts": (sums[0].rolling("15d", "day").count(), sums[1]["a"].rolling("15D").count()),
        "months of weeks": (sums[0].resample("1mo", "day").mean(), sums[1].resample("MS").mean()),
        "last weeks": (sums[0].resample("1mo", "day").last(), sums[1].resample("MS").last()),
        "windows of some weeks": (
            some.max().rolling("8d", "day").min(),
            of_pandas.max()[there].rolling("8D").min(),
        ),
        "months of windows": (
            x.rolling("3d", "day").sum().resample("1mo", "day").sum(),
            frame.rolling("3D").sum().resample("MS").sum(),
        ),
        "windows of months of weeks": (
            sums[0].resample("1mo", "day").sum().rolling("40d", "day").sum(),
            sums[1].resample("MS").sum().rolling("40D").sum(),
        ),
        "months of distances": (
            (x - x.rolling("3d", "day").mean()).resample("1mo", "day").sum(),
            (frame - frame.rolling("3D").mean()).resample("MS").sum(),
        ),
    }.items():
        for decomposition in ("auto", "relational"):
            program = found.program(connection, decomposition=decomposition)
            with program.execute() as result:
                own = [pd.Timestamp(day) for day in result["out"].coordinates("day").to_pylist()]
                assert own == list(expected.index), case
                values = result["out"].to_numpy()
                if values.ndim > expected.ndim:
                    values = values[:, 0]
                np.testing.assert_allclose(values, expected, 1e-9, 1e-12, err_msg=case)
    with pytest.raises(UnsupportedError, match="several tables or steps"):
        (x + sums[0]).resample("1mo", "day")


@pytest.mark.turns(3)
@pytest.mark.sample(1)
@pytest.mark.parametrize("series", [(), ("who",)])
def test_empty_tables(series: tuple[str, ...], connection: duckdb.DuckDBPyConnection) -> None:
    columns = ["day DATE", *(f"{name} VARCHAR" for name in series), "v DOUBLE"]
    connection.execute(f"CREATE OR REPLACE TABLE nothing ({', '.join(columns)})")
    x = ucle.tensor("nothing", axes=("day", *series))
    methods = ["sum", "mean", "min", "max", "count", "std", "var"]
    for stored in (False, True):
        for groups, more in (
            (x.rolling(3, "day", stored=stored), []),
            (x.rolling("3d", "day", stored=stored), []),
            (x.resample("1mo", "day", stored=stored), ["first", "last"]),
            (x.resample("1mo", "day", stored=stored, empty=False), ["first", "last"]),
        ):
            for name in [*methods, *more]:
                found = getattr(groups, name)().to_numpy(connection)
                assert found.shape == (0,) * (1 + len(series)), (stored, name)


def test_tables_that_are_emptied_and_filled(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute("CREATE OR REPLACE TABLE later (day DATE, v DOUBLE)")
    greatest = ucle.tensor("later", axes=("day",)).rolling("2d", "day").max()
    program = greatest.program(connection)
    rows = "('2024-01-01', -3), ('2024-01-02', -5)"
    for statement, expected in (
        ("DELETE FROM later", []),
        (f"INSERT INTO later VALUES {rows}", [-3, -3]),
        ("DELETE FROM later", []),
    ):
        connection.execute(statement)
        with program.execute(connection) as result:
            assert result["out"].to_numpy().tolist() == expected


@pytest.mark.turns(3)
@pytest.mark.sample(1)
def test_empty_steps(connection: duckdb.DuckDBPyConnection) -> None:
    """As in pandas they have the sum and the count 0, and NaN otherwise."""
    days = pd.to_datetime(["2024-01-30", "2024-01-31", "2024-04-02"])
    frame = pd.DataFrame({"n": [3, -1, 4]}, index=pd.Index(days, name="day"))
    rows = frame.reset_index()
    connection.register("rows", rows)
    connection.execute("CREATE OR REPLACE TABLE sales AS SELECT day::DATE AS day, n FROM rows")
    connection.unregister("rows")
    x = ucle.tensor("sales", axes=("day",), database=connection)
    for stored in (False, True):
        for name in [*METHODS, "first", "last"]:
            expected = getattr(frame["n"].resample("MS"), name)()
            tensor = getattr(x.resample("1mo", "day", stored=stored), name)()
            np.testing.assert_array_equal(tensor.to_numpy(), expected, err_msg=name)
            left = getattr(x.resample("1mo", "day", stored=stored, empty=False), name)()
            np.testing.assert_array_equal(left.to_numpy(), expected.iloc[[0, 3]], err_msg=name)
    found = x.resample("1mo", "day").sum().to_pandas(rows="all")
    assert found["day"].astype(str).tolist() == [f"2024-0{n}-01" for n in range(1, 5)]


def test_infinite_times_have_steps(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute(
        "CREATE OR REPLACE TABLE sales AS FROM (VALUES (DATE '2024-01-30', 1.0), "
        "(DATE '2024-03-30', 2.0), ('infinity', 4.0), ('-infinity', 8.0)) t(day, amount)"
    )
    x = ucle.tensor("sales", axes=("day",), database=connection)
    assert x.resample("1mo", "day").sum().to_numpy().tolist() == [8, 1, 0, 2, 4]


def test_gradients_of_windows() -> None:
    x = ucle.array([1.0, 2.0, 4.0])
    weights = ucle.array([1.0, 10.0, 100.0])
    gradient = ucle.grad((x.rolling(3).sum() * weights).sum(), x)
    np.testing.assert_array_equal(gradient.to_numpy(), [111, 110, 100])


def test_errors() -> None:
    with pytest.raises(ArgumentError, match="no window has so many"):
        ucle.rolling([1.0, 2.0], 2, min_periods=3)
    with pytest.raises((ArgumentError, ArgumentTypeError)):
        ucle.rolling([1.0, 2.0], 0)
    with pytest.raises(UnsupportedError, match="is computed"):
        ucle.rolling(2 * ucle.array([1.0, 2.0]), 2, stored=True)
    sales = ucle.table("sales", ["day"], "v")
    for step in ("", "3", "7 parsecs", "0d", datetime.timedelta(days=-1), 7):
        with pytest.raises(ArgumentError, match="not a length of time"):
            ucle.resample(sales, step)
    with pytest.raises(UnsupportedError, match="not those of one table"):
        ucle.resample([1.0, 2.0], "1d")
    with pytest.raises(UnsupportedError, match="one length"):
        ucle.rolling(sales, "1mo")
    with pytest.raises(UnsupportedError, match="no first and no last"):
        ucle.rolling(sales, "3d").last()
    with pytest.raises(UnsupportedError, match="no first and no last"):
        ucle.rolling(sales, "3d", stored=True).first()
    with pytest.raises(UnsupportedError, match="is computed"):
        ucle.rolling(2 * ucle.array([1.0, 2.0]), 2).mean(stored=True)
    with pytest.raises(ArgumentError, match="two masks"):
        ucle.rolling([1.0, 2.0], 2, where=[True, False]).mean(stored=True)
    with pytest.raises(ArgumentTypeError):
        ucle.rolling([1.0, 2.0], 2).mean(stored="yes")


@pytest.mark.parametrize("type_", ["TIME", "TIMESTAMPTZ", "INTEGER", "VARCHAR"])
def test_what_has_no_steps(type_: str, connection: duckdb.DuckDBPyConnection) -> None:
    value = "3" if type_ == "INTEGER" else "TIMESTAMP '2024-01-30'"
    connection.execute(
        f"CREATE OR REPLACE TABLE sales AS SELECT ({value})::{type_} AS day, 1.0 AS v"
    )
    x = ucle.tensor("sales", axes=("day",), database=connection)
    with pytest.raises(ValueTypeError, match="need dates"):
        ucle.resample(x, "1d").sum().compute()
