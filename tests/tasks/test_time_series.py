"""Time series: stamps and dates as coordinates, windows as banded matrices, shifts as tables."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import ucle


@pytest.fixture(scope="module")
def prices() -> pd.DataFrame:
    """Forty days of closing prices of two shares, long."""
    random = np.random.default_rng(31)
    days = pd.date_range("2024-01-01", periods=40, freq="D")
    walks = 100 + random.normal(size=(40, 2)).cumsum(axis=0)
    wide = pd.DataFrame(walks, index=days, columns=["ACME", "BOLT"]).rename_axis("day")
    return wide.reset_index().melt(id_vars="day", var_name="share", value_name="close")


@pytest.fixture(scope="module")
def wide(prices: pd.DataFrame) -> pd.DataFrame:
    return prices.pivot(index="day", columns="share", values="close")


def shifted(days: pd.Index, lag: int) -> pd.DataFrame:
    """A table of days with the day `lag` days before."""
    return pd.DataFrame({"day": days[lag:], "before": days[: len(days) - lag]})


def test_moving_average_by_a_table_of_windows(prices: pd.DataFrame, wide: pd.DataFrame) -> None:
    days = wide.index
    window = pd.concat([shifted(days, lag) for lag in range(5)])
    dates = {"t": "day", "s": "day"}
    program = ucle.einsum_program(
        "M[t,a] = sum[s](B[t,s] * P[s,a]) / sum[s](B[t,s])",
        B=ucle.table(window, ["day", "before"], coordinates=dates),
        P=ucle.table(prices, ["day", "share"], "close", coordinates={"s": "day"}),
    )
    with program.execute() as result:
        found = result["M"].to_pandas().pivot(index="t", columns="a", values="val")
    expected = wide.rolling(5, min_periods=1).mean()
    pd.testing.assert_frame_equal(
        found, expected, check_names=False, check_freq=False, check_index_type=False
    )


def test_autocorrelation_at_lags(prices: pd.DataFrame, wide: pd.DataFrame) -> None:
    one = prices[prices["share"] == "ACME"]
    series = ucle.tensor(
        ucle.table(one, ["day"], "close", coordinates={"day": "day"}), axes=("day",)
    )
    centred = series - series.mean("day")
    found = []
    for lag in (1, 2, 5):
        pairs = ucle.table(shifted(wide.index, lag), coordinates={"day": "day", "before": "day"})
        back = ucle.tensor(pairs, axes=("day", "before")).dot(
            centred.rename({"day": "before"}), axis="before"
        )
        found.append((centred * back).sum() / (centred * centred).sum())
    values = wide["ACME"].to_numpy() - wide["ACME"].mean()
    expected = [(values[lag:] * values[:-lag]).sum() / (values**2).sum() for lag in (1, 2, 5)]
    np.testing.assert_allclose([r.to_numpy() for r in ucle.compute(*found)], expected)


def test_sums_by_day_of_stamps(tmp_path: Path) -> None:
    """SQL names the day; readings of one day are several rows with the same keys."""
    random = np.random.default_rng(32)
    stamps = pd.Timestamp("2024-02-27") + pd.to_timedelta(random.integers(0, 86400 * 6, 300), "s")
    readings = pd.DataFrame({"taken": stamps, "meter": random.integers(1, 5, 300) * 1000001})
    readings["kwh"] = random.integers(0, 500, 300) / 100
    readings.to_parquet(tmp_path / "readings.parquet")
    with ucle.connect(tmp_path / "meters.duckdb") as connection:
        connection.execute(f"""
            CREATE VIEW daily AS SELECT taken::DATE AS day, meter, kwh
            FROM '{tmp_path / "readings.parquet"}'
        """)
        table = ucle.table("daily", duplicates="sum", coordinates="dictionary")
        program = ucle.einsum_program(
            "D[day,m] += R[day,m]; total[day] += R[day,m]",
            R=table,
            database=connection,
            outputs=["D", "total"],
        )
        with program.execute() as result:
            result["D"].to_table("by_meter")
            found = connection.sql("SELECT day, m, val FROM by_meter ORDER BY day, m").fetchall()
            total = result["total"].to_pandas().set_index("day")["val"].sort_index()
    day = readings["taken"].dt.date
    expected = readings.groupby([day, "meter"])["kwh"].sum()
    expected = expected[expected > 0]
    assert [(d, m) for d, m, _ in found] == list(expected.index)
    np.testing.assert_allclose([value for *_, value in found], expected)
    np.testing.assert_allclose(total, readings.groupby(day)["kwh"].sum())


def test_z_scores_of_columns(wide: pd.DataFrame) -> None:
    """A wide frame goes in as an array, as its columns are not coordinates and a value."""
    x = ucle.array(wide.to_numpy(), axes=("day", "share"))
    z = (x - x.mean("day")) / x.std("day")
    expected = (wide - wide.mean()) / wide.std(ddof=0)
    np.testing.assert_allclose(z.to_numpy(), expected)


def test_exponential_weights_of_the_past(wide: pd.DataFrame) -> None:
    days = np.arange(len(wide))
    ago = days[:, None] - days
    program = ucle.einsum_program(
        """
        W[t,s] = where(ago[t,s] >= 0, 0.8 ^ max(ago[t,s], 0), 0)
        E[t,a] = sum[s](W[t,s] * X[s,a]) / sum[s](W[t,s])
        """,
        ago=ago,
        X=wide.to_numpy(),
        outputs=["E"],
    )
    with program.execute() as result:
        found = result["E"].to_numpy()
    np.testing.assert_allclose(found, wide.ewm(alpha=0.2).mean())


def test_folders_by_year(tmp_path: Path) -> None:
    """A hive-partitioned dataset: the folder is a column, and only if it is named."""
    random = np.random.default_rng(33)
    rain = pd.DataFrame(
        [
            (year, month, station)
            for year in (2022, 2023, 2024)
            for month in range(12)
            for station in "AB"
        ],
        columns=["year", "month", "station"],
    )
    rain["mm"] = random.integers(0, 90, len(rain))
    rain.to_parquet(tmp_path / "rain", partition_cols=["year"])
    files = f"{tmp_path / 'rain'}/*/*.parquet"
    table = ucle.table(files, ["year", "month", "station"], "mm", coordinates={"year": "years"})
    monthly = ucle.tensor(table, axes=("year", "month", "station"))
    yearly = monthly.sum("month").to_pandas().set_index(["year", "station"])["val"]
    expected = rain.groupby(["year", "station"])["mm"].sum()
    assert {(int(y), s): v for (y, s), v in yearly.items()} == expected.to_dict()
    with pytest.raises(ucle.UcleError, match="several rows"):
        ucle.tensor(ucle.table(files, ["month", "station"], "mm"), axes=("m", "s")).to_numpy()


def test_stored_by_day_and_queried_as_a_view(prices: pd.DataFrame, tmp_path: Path) -> None:
    """Returns against the day before, left behind as a view that follows new rows."""
    with ucle.connect(tmp_path / "prices.duckdb") as connection:
        connection.execute(
            "CREATE TABLE prices AS SELECT day::DATE AS day, share, close FROM prices"
        )
        connection.execute("""
            CREATE TABLE previous AS
            SELECT d.day, max(e.day) AS before
            FROM prices d JOIN prices e ON e.day < d.day GROUP BY 1
        """)
        program = ucle.einsum_program(
            "gain[t,a] = when(P[t,a] > 0, P[t,a]) - sum[s](L[t,s] * P[s,a])",
            P=ucle.table("prices", coordinates={"t": "day", "a": "share"}),
            L=ucle.table("previous", coordinates={"t": "day", "s": "day"}),
            database=connection,
            decomposition="relational",
        )
        program.create_views(connection)
        connection.execute(
            "UPDATE prices SET close = close + 1 WHERE share = 'BOLT' AND day = '2024-02-09'"
        )
        ((last,),) = connection.sql(
            "SELECT val FROM gain WHERE a = 'BOLT' AND t = '2024-02-09'"
        ).fetchall()
    bolt = prices[prices["share"] == "BOLT"].set_index("day")["close"]
    assert last == pytest.approx(bolt["2024-02-09"] + 1 - bolt["2024-02-08"])
