"""Slices of coordinates, with both ends, against pandas."""

from __future__ import annotations

import datetime as dt
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import ucle
from ucle import errors

DAYS = [dt.date(1969, 12, 30), dt.date(1970, 1, 1), dt.date(2024, 2, 29), dt.date(2024, 3, 1)]
UTC = dt.UTC
KEYS: dict[str, tuple[str, list[Any]]] = {
    "dates": ("DATE", DAYS),
    "timestamps": ("TIMESTAMP", [dt.datetime.combine(day, dt.time(12, 30, 0, 7)) for day in DAYS]),
    "instants": (
        "TIMESTAMPTZ",
        [dt.datetime.combine(day, dt.time(23), tzinfo=UTC) for day in DAYS],
    ),
    "times": ("TIME", [dt.time(0), dt.time(1, 2, 3, 4), dt.time(12), dt.time(23, 59)]),
    "text": ("VARCHAR", ["", "Ann", "d'Or", "Ünal"]),
    "ids": ("BIGINT", [-(2**62), -1, 0, 2**62]),
    "unsigned": ("UBIGINT", [0, 5, 2**63, 2**64 - 1]),
    "positions": ("INTEGER", [0, 1, 2, 3]),
}
"""Types of keys, and four coordinates of each in their order."""


def make(kind: str, connection: duckdb.DuckDBPyConnection, columns: str = "k") -> ucle.Tensor:
    """Make a matrix of four coordinates and two names; its entry at (n, m) is n + 10 m + 1."""
    type_, keys = KEYS[kind]
    places = pa.table({"n": range(4), "k": pa.array([str(key) for key in keys])})
    connection.register("places", places)
    connection.execute(
        f"CREATE OR REPLACE TABLE ranged AS SELECT k::{type_} AS k, who, n + 10 * m + 1.0 AS v "
        "FROM places, (VALUES ('a', 0), ('b', 1)) t(who, m) ORDER BY hash(k || who)"
    )
    connection.unregister("places")
    options = {"coordinates": {"k": "ks"}} if kind in ("ids", "unsigned") else {}
    spec = ucle.table("ranged", ["k", "who"], "v", **options)
    return ucle.tensor(spec, axes=("k", "who"), database=connection)


def matrix(places: list[int]) -> list[list[float]]:
    """The rows of `make` at some places."""
    return [[n + 1.0, n + 11.0] for n in places]


@pytest.mark.parametrize("kind", KEYS)
def test_both_ends_belong_to_a_slice(kind: str, connection: duckdb.DuckDBPyConnection) -> None:
    x, keys = make(kind, connection), KEYS[kind][1]
    for low in (None, 0, 1, 3):
        for high in (None, 0, 2):
            wanted = slice(*(None if end is None else keys[end] for end in (low, high)))
            places = list(range(low or 0, 4 if high is None else high + 1))
            picked = x.sel(k=wanted)
            assert picked.axes == ("k", "who")
            with picked.program(connection).execute() as result:
                (name,) = result
                assert result[name].to_numpy().tolist() == matrix(places), (low, high)
                if wanted != slice(None):
                    found = result[name].coordinates("k").to_pylist()
                    assert found == [keys[n] for n in places], (low, high)


def test_ends_need_not_occur(connection: duckdb.DuckDBPyConnection) -> None:
    x = make("dates", connection)
    for low, high, places in (
        (dt.date(1970, 1, 2), dt.date(2024, 2, 29), [2]),
        (np.datetime64("1969-12-31"), pd.Timestamp("2024-02-28 23:59"), [1]),
        (dt.datetime(1969, 12, 30, 0, 0, 1), None, [1, 2, 3]),
        (dt.date(2025, 1, 1), None, []),
    ):
        found = x.sel(k=slice(low, high)).to_numpy(connection)
        assert found.reshape(-1, 2).tolist() == matrix(places)
        assert found.shape == (len(places), 2)


def test_slices_of_what_is_computed(connection: duckdb.DuckDBPyConnection) -> None:
    """Scans, windows, steps, selections and sums of tables."""
    days = pd.date_range("2024-01-28", periods=40)
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(rng.normal(size=(40, 2)), pd.Index(days, name="day"), ["a", "b"])
    x = ucle.tensor(ucle.table(frame, columns_as="who"))
    low, high = pd.Timestamp("2024-02-03"), pd.Timestamp("2024-02-20")
    part = slice(low, high)
    other = frame.iloc[::3] * 2
    y = ucle.tensor(ucle.table(other, columns_as="who"))
    month = slice(pd.Timestamp("2024-02-01"), pd.Timestamp("2024-02-29"))
    for found, expected in (
        (x.cumsum("day").sel(day=part), frame.cumsum()[low:high]),
        (x.sel(day=part).cumsum("day"), frame[low:high].cumsum()),
        (x.rolling(5, "day").mean().sel(day=part), frame.rolling(5, 1).mean()[low:high]),
        (x.sel(day=part).rolling("3d", "day").sum(), frame[low:high].rolling("3D").sum()),
        (x.rolling("3d", "day").sum().sel(day=part), frame.rolling("3D").sum()[low:high]),
        (x.sel(day=part).mean("day"), frame[low:high].mean()),
        (x.sel(day=part).mean("day", stored=True), frame[low:high].mean()),
        (x.sel(day=part).sel(day=slice(None, days[9])), frame[low : days[9]]),
        (x.sel(day=slice(None, days[9])).sel(day=part), frame[low : days[9]]),
        (x.sel(day=list(days[5:12])).sel(day=part), frame[low : days[11]]),
        (
            x.resample("1mo", "day").sum().sel(day=month),
            frame.resample("MS").sum()["2024-02-01":"2024-02-29"],
        ),
        (
            x.resample("1w", "day", empty=False).max().sel(day=part),
            frame.resample("W-MON", closed="left", label="left").max()[low:high],
        ),
        ((x + y).sel(day=part), frame.add(other, fill_value=0)[low:high]),
        (x.sel(day=part, who="b"), frame["b"][low:high]),
        (x.sel(day=part).std("day"), frame[low:high].std(ddof=0)),
    ):
        with found.program(connection).execute() as result:
            (name,) = result
            np.testing.assert_allclose(result[name].to_numpy(), expected, 1e-9)
            if "day" in found.axes:
                own = [pd.Timestamp(day) for day in result[name].coordinates("day").to_pylist()]
                assert own == list(expected.index)


def test_labelled_arrays_have_ranges() -> None:
    series = pd.Series([1.0, 2.0, 3.0], pd.Index(["c", "a", "b"], name="who"))
    assert ucle.tensor(series, axes=("who",)).sel(who=slice("a", "b")).to_numpy().tolist() == [2, 3]


def test_sized_tables_have_coordinates_and_arrays_positions() -> None:
    rows = pa.table({"k": [0, 1, 2, 3], "v": [1.0, 2.0, 3.0, 4.0]})
    x = ucle.tensor(ucle.table(rows, ["k"], "v", bounds=[5]), axes=("k",))
    for part, expected in (
        (slice(1, 2), [2, 3]),
        (slice(-3, 1), [1, 2]),
        (slice(3, 100), [4, 0]),
        (slice(4, 2), []),
    ):
        assert x.sel(k=part).to_numpy().tolist() == expected
    array = ucle.array([1.0, 2.0, 3.0, 4.0], axes=("k",))
    assert array.sel(k=slice(1, 3)).to_numpy().tolist() == [2, 3]


def test_slices_follow_the_data(connection: duckdb.DuckDBPyConnection) -> None:
    x, keys = make("dates", connection), KEYS["dates"][1]
    program = x.sel(k=slice(keys[1], keys[2])).sum("who").program(connection)
    program.create_views(connection, replace=True, kernels=False)
    for statement, expected in (
        ("SELECT 1", [14, 16]),
        ("INSERT INTO ranged VALUES ('1999-01-01', 'b', 5)", [14, 5, 16]),
        ("DELETE FROM ranged WHERE k = '1970-01-01'", [5, 16]),
        ("DELETE FROM ranged WHERE k > '1970-01-01'", []),
    ):
        connection.execute(statement)
        with program.execute(connection) as result:
            assert result["out"].to_numpy().tolist() == expected
        rows = connection.execute("SELECT val FROM out ORDER BY k").fetchall()
        assert [value for (value,) in rows] == expected


def test_errors(connection: duckdb.DuckDBPyConnection) -> None:
    x = make("dates", connection)
    with pytest.raises(errors.ValueTypeError, match=r"DATE(.|\n)*datetime\.date\(2024, 1, 3\)"):
        x.sel(k=slice("2024-01-03", None)).to_numpy()
    with pytest.raises(errors.ValueTypeError, match="another type"):
        x.sel(k=slice(1, 5)).to_numpy()
    zoned = dt.datetime(2024, 1, 3, tzinfo=UTC)
    with pytest.raises(errors.ValueTypeError, match="another type"):
        x.sel(k=slice(zoned, None)).to_numpy()
    with pytest.raises(errors.LabelError, match="step"):
        x.sel(k=slice(DAYS[0], None, 2))
    with pytest.raises(errors.LabelError, match="both"):
        x.sel(k=slice(DAYS[0], "2024-01-03"))
    for bad in (1.5, True, [1], dt.timedelta(1)):
        with pytest.raises(errors.LabelError, match="not coordinates"):
            x.sel(k=slice(bad, None))
    with pytest.raises(errors.LabelError, match="64 bits"):
        x.sel(k=slice(None, 2**64))
    wide = ucle.tensor(
        ucle.table(pa.table({"k": [0], "b": [1.0], "a": [2.0]}), ["k"], columns_as="f")
    )
    with pytest.raises(errors.UnsupportedError, match="list of names"):
        wide.sel(f=slice("a", "b"))
    connection.execute("CREATE OR REPLACE TABLE moods AS SELECT 'x'::ENUM('x', 'a') AS k, 1 AS v")
    moods = ucle.tensor("moods", axes=("k",), database=connection)
    with pytest.raises(errors.ValueTypeError, match="ENUM"):
        moods.sel(k=slice("a", "x")).to_numpy()
    nothing = ucle.ones((3,)).named("k")
    assert nothing.sel(k=slice(0, 2)).to_numpy().tolist() == [1, 1]
    with pytest.raises(errors.PositionError):
        nothing.sel(k=slice("a", "b"))
