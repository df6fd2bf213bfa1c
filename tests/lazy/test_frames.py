"""Random frames of every library, type and kind of coordinates x operations, against pandas."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest
from random_frames import DAYS, SOURCES, TYPES, Frame, make_frame

import ucle

Pairs = Iterator[tuple[ucle.Tensor, Any]]
"""Tensors, and what pandas says of them: a frame, a series, or values without coordinates."""


@dataclass(frozen=True)
class Rows:
    """Expected values of which only the first axis has coordinates."""

    coordinates: Any
    values: Any


OPERATIONS: dict[str, Callable[[Frame], Pairs]] = {}


def operation(function: Callable[[Frame], Pairs]) -> Callable[[Frame], Pairs]:
    """Add an operation."""
    OPERATIONS[function.__name__] = function
    return function


@operation
def sums_and_extremes(f: Frame) -> Pairs:
    for name in ("sum", "min", "max"):
        along, of_pandas = getattr(f.tensor, name), getattr(f.filled, name)
        yield along("day"), of_pandas()
        yield along("who"), of_pandas(axis=1)
        yield along(), getattr(f.filled.to_numpy(), name)()


@operation
def means(f: Frame) -> Pairs:
    yield f.tensor.mean("day"), f.filled.mean()
    yield f.tensor.mean("who", stored=True), f.values.mean(axis=1)
    yield f.tensor.mean("day", stored=True), f.values.mean()


@operation
def spreads(f: Frame) -> Pairs:
    yield f.tensor.std("day"), f.filled.std(ddof=0)
    yield f.tensor.var("day", ddof=1, stored=True), f.values.var()
    yield f.tensor.std("who", ddof=1, stored=True), f.values.std(axis=1)


@operation
def medians(f: Frame) -> Pairs:
    yield ucle.median(f.tensor.astype("float64"), "day"), f.filled.median()
    yield ucle.quantile(f.tensor, 0.25, "day"), f.filled.quantile(0.25)
    yield ucle.median(f.tensor, "day", stored=True), f.values.median()
    yield ucle.median(f.tensor, "who"), f.filled.median(axis=1)
    yield ucle.median(f.tensor, "who", stored=True), f.values.median(axis=1)


@operation
def covariances(f: Frame) -> Pairs:
    if f.sized and not f.missing and f.filled.shape[1] > 1:
        yield ucle.cov(f.tensor, rowvar=False), f.filled.cov()
        yield ucle.corrcoef(f.tensor, rowvar=False), f.filled.corr()
        yield ucle.cov(f.tensor.T), f.filled.cov()
        yield ucle.corrcoef(f.tensor.T), f.filled.corr()


@operation
def covariances_of_what_is_stored(f: Frame) -> Pairs:
    yield ucle.cov(f.tensor, rowvar=False, stored=True), f.values.cov()
    yield ucle.corrcoef(f.tensor, rowvar=False, stored=True), f.values.corr()
    yield ucle.cov(f.tensor.T, stored=True), f.values.cov()


@operation
def sorts(f: Frame) -> Pairs:
    values = f.filled.to_numpy()
    yield ucle.sort(f.tensor, axis="day"), np.sort(values, axis=0)
    yield ucle.argsort(f.tensor, axis="day"), np.argsort(values, axis=0, kind="stable")
    falling = -np.sort(-values, axis=0)
    yield ucle.sort(f.tensor, axis="day", descending=True), falling
    backwards = np.argsort(-values, axis=0, kind="stable")
    yield ucle.argsort(f.tensor, axis="day", descending=True), backwards
    yield ucle.sort(f.tensor, axis="day").T, Rows(f.filled.columns, np.sort(values, axis=0).T)
    floats = f.tensor.astype("float64")
    gone = f.filled.where(f.filled > 0)
    last = np.column_stack([gone[name].sort_values() for name in gone])
    yield ucle.sort(ucle.where(floats > 0, floats, np.nan), axis="day"), last
    yield ucle.sort(f.tensor, axis="who"), np.sort(values, axis=1)
    falling = -np.sort(-values, axis=1)
    found = ucle.sort(f.tensor, axis="who", descending=True)
    yield found, Rows(f.filled.index, falling)
    yield ucle.argsort(f.tensor, axis="who"), np.argsort(values, axis=1, kind="stable")
    yield f.tensor.top_k(1, "day").values, values.max(axis=0)[None]
    yield ucle.bottom_k(f.tensor, 1, "who").values, values.min(axis=1)[:, None]


@operation
def counts(f: Frame) -> Pairs:
    yield ucle.count(f.tensor, "day", stored=True), f.values.count()
    yield ucle.count(f.tensor, "who"), f.filled.count(axis=1)
    yield f.tensor.count_nonzero("day"), (f.filled != 0).sum()


@operation
def scans(f: Frame) -> Pairs:
    if f.ordered:
        yield f.tensor.cumsum("day"), f.filled.cumsum()
        yield f.tensor.cummax("day"), f.filled.cummax()


@operation
def shifts(f: Frame) -> Pairs:
    if f.ordered:
        yield ucle.lag(f.tensor, 1, "day"), f.filled.shift(1, fill_value=0)
        yield ucle.lead(f.tensor, 2, "day"), f.filled.shift(-2, fill_value=0)
        floats = f.tensor.astype("float64")
        yield ucle.lag(floats, 1, "day", fill_value=np.nan), f.filled.shift(1)


@operation
def windows(f: Frame) -> Pairs:
    if f.ordered:
        yield f.tensor.rolling(2, "day").mean(), f.filled.rolling(2, min_periods=1).mean()
        longest = f.values.rolling(3, min_periods=1).max()
        yield f.tensor.rolling(3, "day", stored=True).max(), longest
    if f.timed:
        yield f.tensor.rolling("5d", "day").sum(), f.filled.rolling("5D").sum()


@operation
def steps(f: Frame) -> Pairs:
    if f.timed:
        there = pd.Series(1, f.filled.index).resample("MS").sum() > 0
        yield f.tensor.resample("1mo", "day").sum(), f.filled.resample("MS").sum()
        yield f.tensor.resample("1mo", "day").last(), f.filled.resample("MS").last()
        left = f.tensor.resample("1mo", "day", empty=False)
        yield left.max(), f.filled.resample("MS").max()[there]
        stored = f.tensor.resample("1w", "day", stored=True)
        weeks = f.values.resample("W-MON", closed="left", label="left")
        yield stored.mean(), weeks.mean()
        yield stored.count(), weeks.count()


@operation
def arithmetic(f: Frame) -> Pairs:
    x, values = f.tensor.astype("float64"), f.filled
    yield f.tensor * 2 + 1, values * 2 + 1
    yield f.tensor / 2, values / 2
    yield abs(f.tensor), abs(values)
    yield x - x.mean("day"), values - values.mean()
    yield ucle.where(f.tensor > 0, f.tensor, 5), values.where(values > 0, 5)
    powers = np.exp(values.sub(values.max(axis=1), axis=0))
    yield x.softmax("who"), powers.div(powers.sum(axis=1), axis=0)


@operation
def masks(f: Frame) -> Pairs:
    x, values = f.tensor, f.filled
    yield x > 0, values > 0
    yield (x >= 0) & (x < 1), (values >= 0) & (values < 1)
    yield x == 0, values == 0
    yield x[x > 0], values.where(values > 0, 0)
    yield (x > 0).any("who"), (values > 0).any(axis=1)


@operation
def row_masks(f: Frame) -> Pairs:
    kept = (f.filled.sum(axis=1) > 0).astype(float)
    yield f.tensor[f.tensor.sum("who") > 0], f.filled.mul(kept, axis=0)


@operation
def renames(f: Frame) -> Pairs:
    yield f.tensor.rename({"who": "name"}), f.filled
    yield f.tensor.T, f.filled.T
    yield f.tensor.rename({"day": "who", "who": "day"}).T, f.filled.T


@operation
def products(f: Frame) -> Pairs:
    x, values = f.tensor.astype("float64"), f.filled
    yield x @ x.rename({"day": "other"}), values @ values.T
    yield x.dot(x, "day"), (values * values).sum()


@operation
def alignment(f: Frame) -> Pairs:
    """The coordinates of both operands, in sorted order; 0 where one of them has no entry."""
    if not isinstance(f.filled.columns[0], str) or f.sized:
        return
    names = [*f.filled.columns[1:], "new"]
    weights = pd.Series(np.arange(1.0, len(names) + 1), index=names)
    every = sorted({*f.filled.columns, *names})
    values, own = f.filled.reindex(columns=every, fill_value=0), weights.reindex(every).fillna(0)
    x, w = f.tensor.astype("float64"), ucle.tensor(weights, axes=("who",))
    yield x + w, values + own
    yield x * w, values * own
    yield x @ w, values @ own
    yield ucle.maximum(x, w), values.clip(lower=own, axis=1)


@operation
def selections(f: Frame) -> Pairs:
    day, who = f.filled.index[0], f.filled.columns[-1]
    yield f.tensor.sel(who=who), f.filled[who]
    yield f.tensor.sel(day=day), f.filled.loc[day]
    yield f.tensor.sel(who=[who]), f.filled[[who]]
    if f.days != "positions":
        last = f.filled.index[(len(f.filled) + 1) // 2 - 1]
        yield f.tensor.sel(day=slice(day, last)), f.filled.loc[day:last]
        yield f.tensor.sel(day=slice(last, None)).sum("day"), f.filled.loc[last:].sum()


@operation
def first_positions(f: Frame) -> Pairs:
    values = f.filled.to_numpy()
    count = min(2, values.shape[1])
    order = np.argsort(-values, axis=1, kind="stable")[:, :count]
    yield f.tensor.argmax("who"), values.argmax(axis=1)
    yield f.tensor.argmin("day"), values.argmin(axis=0)
    yield f.tensor.top_k(count, "who").positions, order
    yield f.tensor.top_k(count, "who").values, np.take_along_axis(values, order, axis=1)
    among = np.zeros(values.shape)
    np.put_along_axis(among, order, 1, axis=1)
    yield f.tensor.among_top_k(count, "who"), f.filled * 0 + among


@pytest.mark.sample(1)
@pytest.mark.parametrize("seed", range(200))
def test_operations(seed: int, routes: dict[str, Any], request: pytest.FixtureRequest) -> None:
    count = 20 if request.config.getoption("--all") else 6
    rng = np.random.default_rng(seed)
    connection = routes[["native", "arrow"][seed % 2]]
    if (source := SOURCES[seed % len(SOURCES)]) == "xarray":
        pytest.importorskip("xarray")
    dtype, days = str(rng.choice(TYPES)), str(rng.choice(DAYS))
    frame = make_frame(seed, connection, source, dtype, days)
    for name in rng.permutation(list(OPERATIONS))[:count]:
        for number, (tensor, expected) in enumerate(OPERATIONS[name](frame)):
            where = f"{source}, {dtype}, {days}: {name} {number}"
            with tensor.program(connection).execute() as result:
                check(result["out"], expected, where)


def check(found: Any, expected: Any, where: str) -> None:
    """Check values, and coordinates if pandas has some."""
    axes = [axis.name for axis in found.type.axes]
    if isinstance(expected, Rows):
        own = [plain(x) for x in found.coordinates(axes[0]).to_pylist()]
        assert own == [plain(x) for x in expected.coordinates], where
        expected = expected.values
    labels = {pd.DataFrame: ("index", "columns"), pd.Series: ("index",)}.get(type(expected), ())
    for axis, label in zip(axes, labels, strict=False):
        own = [plain(x) for x in found.coordinates(axis).to_pylist()]
        assert own == [plain(x) for x in getattr(expected, label)], where
    values = np.asarray(expected, float)
    np.testing.assert_allclose(found.to_numpy().astype(float), values, 1e-5, 1e-5, err_msg=where)


def plain(coordinate: Any) -> Any:
    """A coordinate as pandas compares it: dates are their midnights."""
    return pd.Timestamp(coordinate) if isinstance(coordinate, dt.date) else coordinate


@pytest.mark.sample(4)
@pytest.mark.parametrize("source", [x for x in SOURCES if x not in ("xarray", "series")])
@pytest.mark.parametrize("seed", range(200, 206))
def test_frames_come_back(seed: int, source: str, connection: duckdb.DuckDBPyConnection) -> None:
    """By columns as they were, and by names the coordinates of the greatest entries."""
    frame = make_frame(seed, connection, source, TYPES[seed % 7], DAYS[seed % 5])
    found = frame.tensor.to_pandas(connection, columns="who")
    assert [plain(x) for x in found.index] == [plain(x) for x in frame.filled.index]
    assert list(map(str, found.columns)) == list(map(str, frame.filled.columns))
    np.testing.assert_allclose(found.to_numpy().astype(float), frame.filled.to_numpy())
    best = frame.tensor.argmax("who").to_pandas(connection).set_index("day")["val"]
    best.index = pd.Index([plain(x) for x in best.index])
    assert best.sort_index().tolist() == frame.filled.idxmax(axis=1).tolist()


@pytest.mark.parametrize("route", ["native", "arrow"])
def test_columns_and_keys_of_functions_along_axes(route: str) -> None:
    rng = np.random.default_rng(8)
    x = rng.normal(size=(3, 4))
    connect = ucle.connect if route == "native" else duckdb.connect
    with connect() as connection:
        X = ucle.array(x, axes=("arm", "day"))
        found = X.cumprod("day").to_pandas(connection, columns="arm")
        np.testing.assert_allclose(found, x.cumprod(1).T)
        rows = X.cumsum("day").to_arrow(connection, keys=["day"]).sort_by("day")
        np.testing.assert_allclose(np.stack(rows["val"].to_pylist()), x.cumsum(1).T)
        inverse = ucle.linalg.inv(X[:, :3].rename({"day": "other"}))
        found = inverse.to_pandas(connection, columns="arm")
        np.testing.assert_allclose(found, np.linalg.inv(x[:, :3]))
        best = X.argmax("day").to_pandas(connection, columns="arm")
        np.testing.assert_array_equal(best.to_numpy().ravel(), x.argmax(1))
