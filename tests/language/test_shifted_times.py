"""Tables that are read shifted along dates share the dates of the label they are shifted from."""

from __future__ import annotations

import re
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import ucle
from ucle.errors import BoundError, CoordinateError, LabelError, ValueTypeError
from ucle.testing.check_matrix import Routes, check_everywhere
from ucle.testing.generate import Case

DAYS = pd.date_range("2024-02-26", periods=7)
NAMES = ("ann", "bob", "cem")

BY_NUMBER = (
    "z[i] = y[i+1] - y[i]",
    "z[i,n] = m[i+1,n] - m[i,n]",
    "z[i] = y[i+1] - y[i]; v[j] = z[j+1] - z[j]",
    "z[t] = y[t] - y[0]",
)
"""Programs that count dates from the first on."""

PROGRAMS = (
    "z[t] = x[t] * y[~(t-1)]",
    "z[t] = x[~(t-1)] * y[t] + x[~(t+2)]",
    "z[t] = x[~(t-1)] + y[~(t-2)]",
    "a[t] = y[~(t-1)]; b[t] = a[~(t-1)]; z[t] = x[t] + b[t]",
    "b[s] = y[~(s+1)]; c[s] = x[~(s-1)]; z[s] = b[s] - c[s]",
    "z[t] = sum[w](x[~(t-w)]) * y[t]",
    "z[t] = sum[w](k[w] * y[~(t-w)]) - x[t]",
    "z[t] = sum[w](k[w] * y[~(t+w-1)]) - x[t]",
    "z[t] = sum[w](k[w] * y[~(w+t-1)])",
    "z[t,w] = y[~(t+w)]",
    "z[w,t] = y[~(w+t)] - x[t]",
    "q[w,t] = y[~(w+t)]; z[w,t] = q[w,t] * x[t]",
    "z[t,n] = m[t,n] - m[~(t-1),n] + y[~(t-1)]",
    "z[t,n] = m[~(t-1),n] * y[~(t-2)]",
    "z[n] = sum[t](m[~(t-1),n] * y[t])",
    "z[t] = max[w](y[~(t-w)] + x[~(t-w)])",
)


class Dated(Case):
    """A program over tables of dates, in which no size of a label of dates is stated."""

    def compile(self, connection: duckdb.DuckDBPyConnection, **options: Any) -> Any:
        bounds = {x: n for x, n in self.stated.items() if x in ("k", "w")}
        options |= {"bounds": bounds, "outputs": self.outputs, "database": connection}
        return ucle.einsum_program(self.text, inputs=self.inputs, **options)


def dated(text: str, window: int, seed: int) -> Dated:
    """A case whose tables have some of the same dates each."""
    rng = np.random.default_rng(seed)
    arrays: dict[str, Any] = {"k": rng.integers(1, 5, window).astype(float)}
    inputs: dict[str, Any] = dict(arrays)
    tables = {}
    there = {x: np.sort(rng.choice(len(DAYS), 4, replace=False)) for x in "xym"}
    used = set(re.findall(r"\b([xymk])\[", text))
    read = sorted(used - {"k"})
    every = np.unique(np.concatenate([there[x] for x in read]))
    for x in read:
        values = np.zeros((len(every), len(NAMES)))
        rows = np.searchsorted(every, there[x])
        values[rows] = rng.integers(1, 9, (len(rows), len(NAMES)))
        frame = pd.DataFrame(values[rows], DAYS[there[x]].date, NAMES)
        keys = ["d", "who"] if x == "m" else ["d"]
        long = frame.stack().rename_axis(["d", "who"]).rename("v").reset_index()
        long = long if x == "m" else long[long["who"] == "ann"].drop(columns="who")
        tables[f"table_{x}"] = pa.Table.from_pandas(long, preserve_index=False)
        inputs[x] = ucle.table(f"table_{x}", keys, "v")
        arrays[x] = values if x == "m" else values[:, 0]
    days = len(every)
    sizes = {"t": days, "s": days, "i": days - 1, "j": days - 2, "w": window, "n": len(NAMES)}
    return Dated(
        text,
        {x: arrays[x] for x in used},
        {x: inputs[x] for x in used},
        sizes,
        tables=tables,
        indexed=True,
    )


@pytest.mark.parametrize("text", PROGRAMS)
def test_against_numpy(text: str, routes: Routes) -> None:
    # One window is as long as there are dates; that must not matter.
    for seed, window in enumerate((2, 4, 5, 9)):
        assert check_everywhere(dated(text, window, seed), routes, seed, 4)


@pytest.mark.parametrize("text", BY_NUMBER)
def test_counted_dates(text: str, routes: Routes) -> None:
    for seed in range(3):
        assert check_everywhere(dated(text, 1, seed), routes, seed, 4)


def test_differences_along_dates(connection: duckdb.DuckDBPyConnection) -> None:
    """They are those of NumPy: one fewer than there are dates, numbered from 0."""
    rng = np.random.default_rng(4)
    values = rng.normal(size=6)
    table = pa.table({"d": DAYS[[6, 1, 0, 3, 2, 5]].date, "v": values})
    ordered = values[np.argsort(table["d"].to_numpy())]
    connection.register("rows", table)
    connection.execute("CREATE OR REPLACE TABLE differing AS FROM rows")
    connection.unregister("rows")
    X = ucle.tensor("differing", axes=("d",), database=connection)
    for n in (1, 2):
        found = ucle.diff(X, n, axis="d")
        np.testing.assert_allclose(found.to_numpy(), np.diff(ordered, n), atol=1e-12)
    assert sorted(found.to_pandas()["d"]) == [0, 1, 2, 3]
    series = pd.Series(ordered, np.sort(table["d"].to_pandas().astype("datetime64[ns]")))
    np.testing.assert_allclose(ucle.diff(series).to_numpy(), np.diff(ordered), atol=1e-12)
    with pytest.raises(BoundError):
        (ucle.diff(X) * X).to_numpy()
    program = ucle.einsum_program("z[i] = x[i+1] - x[i]", x="differing", database=connection)
    kept = program.maintain("differences", connection)
    connection.execute("INSERT INTO differing VALUES ('2024-01-01', 7), ('2024-03-01', 8)")
    kept.refresh()
    expected = connection.execute("SELECT v FROM differing ORDER BY d").fetchnumpy()["v"]
    found = connection.execute(f"SELECT val FROM {kept.outputs['z']} ORDER BY i").fetchnumpy()
    np.testing.assert_allclose(found["val"], np.diff(expected), atol=1e-12)


def test_the_same_as_where_sizes_are_stated(connection: duckdb.DuckDBPyConnection) -> None:
    """A stated number of dates may be larger than there are, and not smaller."""
    frame = pd.DataFrame({"d": DAYS[:3], "v": [1.0, 2.0, 3.0]})

    def run(text: str, **bounds: int) -> Any:
        program = ucle.einsum_program(text, x=frame, bounds=bounds, database=connection)
        with program.execute() as result:
            return result["z"].to_numpy().tolist()

    assert run("z[t] = x[~(t-1)]") == run("z[t] = x[~(t-1)]", t=3) == [0, 1, 2]
    assert run("z[t] = x[~(t-1)]", t=4) == [0, 1, 2, 3]
    assert run("z[t,k] = x[~(t+k)]", t=3, k=3) == [[1, 2, 3], [2, 3, 0], [3, 0, 0]]
    with pytest.raises((BoundError, CoordinateError)):
        run("z[t] = x[~(t-1)]", t=2)


def test_what_shares_nothing(connection: duckdb.DuckDBPyConnection) -> None:
    dates = pd.DataFrame({"d": DAYS[:3], "v": [1.0, 2.0, 3.0]})
    zoned = dates.assign(d=dates.d.dt.tz_localize("UTC"))
    for text, error in (
        ("z[t] = x[t] * y[~(t-1)]", ValueTypeError),  # times of two kinds
        ("z[s,t] = x[s] * x[t] * x[~(s+t)]", LabelError),  # two labels of dates
        ("z[t] = x[t] * x[~(2*t)]", LabelError),
    ):
        inputs = {"x": dates} | ({"y": zoned} if "y[" in text else {})
        with pytest.raises(error):
            ucle.einsum_program(text, inputs=inputs, database=connection)


def test_shifts_of_tensors(connection: duckdb.DuckDBPyConnection) -> None:
    rng = np.random.default_rng(3)
    x = pd.Series(rng.normal(size=5), DAYS[:5])
    w = pd.Series(rng.normal(size=4), DAYS[[0, 2, 3, 6]])
    for name, series in {"shifted_x": x, "shifted_w": w}.items():
        connection.register("rows", pa.table({"d": series.index.date, "v": series.to_numpy()}))
        connection.execute(f"CREATE OR REPLACE TABLE {name} AS FROM rows")
        connection.unregister("rows")
    X, W = (ucle.tensor(n, axes=("d",), database=connection) for n in ("shifted_x", "shifted_w"))
    every = x.index.union(w.index)
    x, w = (series.reindex(every, fill_value=0.0) for series in (x, w))
    for tensor, expected in (
        (ucle.lag(X, 1, axis="d") * W, x.shift(1, fill_value=0) * w),
        (X - ucle.lag(W, 1, axis="d"), x - w.shift(1, fill_value=0)),
        (ucle.lag(X) + ucle.lead(W, 2), x.shift(1, fill_value=0) + w.shift(-2, fill_value=0)),
        ((ucle.lag(X) * ucle.lag(W)).sum("d"), (x * w)[:-1].sum()),
    ):
        np.testing.assert_allclose(tensor.to_numpy(), expected, atol=1e-12)
