"""Times and names of tables whose sizes are stated: they run in order, and are counted."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import ucle
from ucle import errors

DAYS = pd.to_datetime(["2024-01-03", "2024-01-01", "2024-02-01", "2024-01-02"])
VALUES = pd.Series([3.0, 1.0, 7.0, 2.0], DAYS).sort_index()


@pytest.fixture(params=["table", "frame", "positions"])
def series(request: pytest.FixtureRequest, connection: Any) -> ucle.Tensor:
    """The values along a table of times, or of positions, whose number is stated."""
    places = np.argsort(np.argsort(DAYS)) if request.param == "positions" else DAYS
    frame = pd.DataFrame({"day": places, "v": [3.0, 1.0, 7.0, 2.0]})
    if request.param == "frame":
        return ucle.tensor(ucle.table(frame, ["day"], "v", bounds=[4]), axes=("day",))
    connection.register("rows", pa.Table.from_pandas(frame))
    connection.execute("CREATE OR REPLACE TABLE stated_sizes AS FROM rows")
    connection.unregister("rows")
    return ucle.tensor(ucle.table("stated_sizes", ["day"], "v", bounds=[4]), axes=("day",))


@pytest.mark.sample(3)
def test_along_the_axis(series: ucle.Tensor, connection: Any) -> None:
    floats = {"fill_value": np.nan}
    for tensor, expected in (
        (ucle.lag(series), VALUES.shift(fill_value=0)),
        (ucle.lead(series, 2), VALUES.shift(-2, fill_value=0)),
        (ucle.lag(series, 9), VALUES.shift(9, fill_value=0)),
        (ucle.lag(series, **floats), VALUES.shift()),
        (ucle.shift(series, -1, 0, 5), VALUES.shift(-1, fill_value=5)),
        (series.rolling(2, "day").mean(), VALUES.rolling(2, min_periods=1).mean()),
        (series.rolling(3, "day").max(), VALUES.rolling(3, min_periods=1).max()),
        (series.cumsum("day"), VALUES.cumsum()),
        (ucle.sort(series, axis="day", descending=True), VALUES.sort_values(ascending=False)),
        (ucle.median(series, "day"), VALUES.median()),
    ):
        found = tensor.to_numpy(database=connection)
        np.testing.assert_allclose(found, expected, err_msg=str(tensor))


def test_fills_move_with_stated_sizes(connection: Any) -> None:
    """What moves in is 0, also where entries that are not stored are something else."""
    frame = pd.DataFrame({"day": [0, 2], "v": [1.0, 2.0]})
    table = ucle.table(frame, ["day"], "v", bounds=[4], fill=9.0)
    lagged = ucle.lag(ucle.tensor(table, axes=("day",)))
    np.testing.assert_array_equal(lagged.to_numpy(database=connection), [0, 1, 9, 2])


def test_programs(connection: Any) -> None:
    frame = pd.DataFrame({"t": DAYS, "v": [3.0, 1.0, 7.0, 2.0]})
    text = "y[t] = x[~(t-1)]"
    program = ucle.einsum_program(text, x=frame, bounds={"t": 4}, database=connection)
    with program.execute() as result:
        np.testing.assert_array_equal(result["y"].to_numpy(), [0, 1, 2, 3])
    with pytest.raises(errors.UcleError):
        ucle.einsum_program(text, x=frame.assign(t=list("abcd")), bounds={"t": 4})


def test_covariances_of_names(connection: Any) -> None:
    """The axes of observations and of variables may have any coordinates."""
    frame = pd.DataFrame({"a": [1.0, 2.0, 4.0], "b": [0.0, 5.0, 1.0]}, index=[10**9, 5, 7])
    long = frame.rename_axis(index="id", columns="who").stack().rename("v").reset_index()
    ids = {"id": "ids", "who": "names"}
    table = ucle.table(long, ["id", "who"], "v", bounds=[3, 2], coordinates=ids)
    x = ucle.tensor(table, axes=("id", "who"))
    for found, expected in (
        (ucle.cov(x, rowvar=False), frame.cov()),
        (ucle.corrcoef(x.T), frame.corr()),
    ):
        np.testing.assert_allclose(found.to_numpy(database=connection), expected)
