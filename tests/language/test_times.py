"""Labels of dates and times have an order: the positions of the times that there are."""

from __future__ import annotations

from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest

import ucle
from ucle.errors import BoundError, LabelError

TYPES = ["DATE", "TIMESTAMP", "TIMESTAMPTZ", "TIMESTAMP_NS", "TIME"]


def make(connection: duckdb.DuckDBPyConnection, type_: str, seed: int) -> pd.DataFrame:
    """Make a table ``events`` of some times and names, and return its dense frame."""
    rng = np.random.default_rng(seed)
    times, names = 9, 3
    kept = rng.random((times, names)) < 0.6
    kept[:, 0] |= ~kept.any(axis=1)
    values = np.where(kept, rng.normal(size=(times, names)), 0)
    steps = np.sort(rng.choice(20, times, replace=False))
    first = "TIME '01:00:00'" if type_ == "TIME" else "TIMESTAMP '2024-02-27'"
    unit = "HOURS" if type_ == "TIME" else "DAYS"
    rows = [
        f"({first} + INTERVAL {steps[t]} {unit}, 'n{n}', {values[t, n]})"
        for t in rng.permutation(times)
        for n in range(names)
        if kept[t, n]
    ]
    connection.execute("DROP TABLE IF EXISTS events")
    connection.execute(
        f"CREATE TABLE events AS SELECT time::{type_} AS time, who, v::DOUBLE AS v "
        f"FROM (VALUES {', '.join(rows)}) t(time, who, v)"
    )
    return pd.DataFrame(values)


EVENTS = ucle.table("events", ["time", "who"], "v")


def answer(connection: duckdb.DuckDBPyConnection, text: str, **options: Any) -> Any:
    program = ucle.einsum_program(text, x=EVENTS, database=connection, **options)
    with program.execute() as result:
        return result["Z"].to_numpy()


@pytest.mark.parametrize("type_", TYPES)
@pytest.mark.parametrize("seed", range(3))
def test_what_runs_along_times(
    type_: str, seed: int, connection: duckdb.DuckDBPyConnection
) -> None:
    if type_ == "TIMESTAMP_NS" and tuple(map(int, duckdb.__version__.split(".")[:2])) < (1, 4):
        pytest.skip("this DuckDB adds no intervals to it")
    frame = make(connection, type_, seed)
    for text, expected in {
        "Z[t,k] = cumsum[t](x[t,k])": frame.cumsum(),
        "Z[t,k] = cummax[t](x[t,k])": frame.cummax(),
        "Z[t,k] = x[~(t-1),k]": frame.shift(1, fill_value=0.0),
        "Z[t,k] = x[~(t+2),k]": frame.shift(-2, fill_value=0.0),
        "Z[t,k] = x[t,k] - x[~(t-1),k]": frame - frame.shift(1, fill_value=0.0),
    }.items():
        np.testing.assert_allclose(answer(connection, text), expected, atol=1e-12, err_msg=text)
    window = {"bounds": {"w": 3}}
    np.testing.assert_allclose(
        answer(connection, "Z[t,k] = sum[w](x[~(t-w),k])", **window),
        frame.rolling(3, min_periods=1).sum(),
        atol=1e-12,
    )
    np.testing.assert_allclose(
        answer(connection, "Z[t,k] = sum[s]((s <= t) * (t - s < 3) * x[s,k]) + 0 * x[t,k]"),
        frame.rolling(3, min_periods=1).sum(),
        atol=1e-12,
    )


def test_results_keep_times(connection: duckdb.DuckDBPyConnection) -> None:
    frame = make(connection, "DATE", 0)
    tensor = ucle.tensor(EVENTS, axes=("time", "who"), database=connection)
    found = ucle.shift(tensor, 1, axis="time").to_pandas()
    times = connection.execute("SELECT DISTINCT time FROM events ORDER BY 1").df()["time"]
    wide = found.pivot_table(index="time", columns="who", values="val").reindex(times)
    np.testing.assert_allclose(wide.fillna(0), frame.shift(1, fill_value=0.0), atol=1e-12)
    running = ucle.cumulative_sum(tensor, axis="time").to_numpy()
    np.testing.assert_allclose(running, frame.cumsum(), atol=1e-12)


def test_two_tables_of_times(connection: duckdb.DuckDBPyConnection) -> None:
    """Positions are those of the times of both."""
    connection.execute("CREATE OR REPLACE TABLE a AS SELECT DATE '2024-01-01' AS d, 2.0 AS v")
    connection.execute("CREATE OR REPLACE TABLE b AS SELECT DATE '2024-01-03' AS d, 5.0 AS v")
    text = "Z[t] = a[t] + b[t] + 10 * a[~(t-1)]"
    program = ucle.einsum_program(text, a="a", b="b", database=connection)
    with program.execute() as result:
        np.testing.assert_array_equal(result["Z"].to_numpy(), [2, 25])


@pytest.mark.parametrize(
    "text",
    [
        "Z[t,k] = t * x[t,k]",
        "Z[t,k] = x[t,k] + x[~(2*t),k]",
        "Z[t,k] = (t < 3) * x[t,k]",
        "Z[t,k] = cumsum[k](x[t,k])",
        "Z[t,k] = x[t,~(k-1)]",
        "Z[t,k] = x[~(k-1),k]",
    ],
)
def test_what_has_no_meaning(text: str, connection: duckdb.DuckDBPyConnection) -> None:
    make(connection, "DATE", 0)
    with pytest.raises((LabelError, BoundError)):
        answer(connection, text)


def test_a_permissive_read_has_the_size_of_its_axis() -> None:
    x = np.arange(1.0, 6.0)
    for text, expected in {
        "Z[i] = x[~(i-1)]": [0, 1, 2, 3, 4],
        "Z[i] = sum[w](x[~(i+w-1)] * K[w])": np.convolve(x, [3, 2, 1], "same"),
    }.items():
        inputs = {"x": x} | ({"K": np.array([1.0, 2, 3])} if "K" in text else {})
        program = ucle.einsum_program(text, inputs=inputs)
        np.testing.assert_allclose(program.execute()["Z"].to_numpy(), expected)
    longer = ucle.einsum_program("Z[i] = y[i] + x[~(i-1)]", x=x, y=np.zeros(8))
    np.testing.assert_array_equal(longer.execute()["Z"].to_numpy(), [0, 1, 2, 3, 4, 5, 0, 0])
