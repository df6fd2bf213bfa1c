"""Random frames: small tables of every type, key and library, with what pandas says of them.

A frame is a matrix with the axes ``day`` and ``who``. `Frame.values` has its entries by
coordinates, in the order that ucle states for them, and NaN where nothing is stored.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

import ucle

TYPES = ("int8", "int16", "int32", "int64", "float32", "float64", "bool")
DAYS = ("date", "timestamp", "ids", "text", "positions")
NAMES = ("text", "category", "ids")
SOURCES = (
    "pandas", "polars", "arrow", "table", "series", "xarray",
    "wide pandas", "wide polars", "wide arrow", "wide index",
)  # fmt: skip
ARROW = {"float32": pa.float32(), "float64": pa.float64(), "bool": pa.bool_()}
NULLABLE = {"bool": "boolean", "float32": "Float32", "float64": "Float64"}
WORDS = ["ann", "bob", "Cid", "d'Or", "two words", "Ünal", "zoë"]


@dataclass(frozen=True)
class Frame:
    """A lazy tensor of a frame, and its entries."""

    tensor: ucle.Tensor
    values: pd.DataFrame
    """Floats; rows are days, columns are names; NaN where nothing is stored."""
    dtype: str
    days: str
    source: str
    sized: bool
    """True if the sizes of both axes are stated."""
    missing: bool
    """True if NULLs are missing values."""

    @property
    def filled(self) -> pd.DataFrame:
        """The entries, with 0 where nothing is stored."""
        return self.values.fillna(0.0)

    @property
    def timed(self) -> bool:
        """True if the days are times."""
        return self.days in ("date", "timestamp")

    @property
    def ordered(self) -> bool:
        """True if days have an order to run along: names and ids of a dictionary have none."""
        indexed = self.source in ("series", "xarray", "wide index")
        return self.timed or (self.days == "positions" and not indexed)


def make_frame(
    seed: int, connection: duckdb.DuckDBPyConnection, source: str, dtype: str, days: str
) -> Frame:
    """Make a frame of a source, an element type and a kind of days; the rest is random."""
    rng = np.random.default_rng(seed)
    wide = source.startswith("wide")
    count, width = int(rng.integers(1, 9)), int(rng.integers(1, 5))
    names = "text" if wide else str(rng.choice(NAMES))
    rows = _days(rng, days, count)
    columns = _names(rng, names, width)
    there = rng.random((count, width)) < rng.choice([0.5, 0.8, 1.0])
    nulls = wide or (source not in ("series", "xarray") and rng.random() < 0.3)
    if not nulls and source != "xarray":  # a coordinate exists by its rows
        there[np.arange(count), rng.integers(0, width, count)] = True
        there[rng.integers(0, count, width), np.arange(width)] = True
    if source == "xarray":
        there[:] = True
    numbers = _numbers(rng, dtype, (count, width))
    values = pd.DataFrame(np.where(there, numbers, np.nan), index=rows, columns=columns)
    values = values.rename_axis(index="day", columns="who")
    sized = source not in ("series", "xarray") and bool(rng.random() < 0.5)
    sized &= min(count, width) > 1  # a single position of a table is no size
    options: dict[str, Any] = {"nulls": "missing"} if nulls else {}
    if sized:
        options["bounds"] = [count, None if wide else width]
    tensor = _tensor(rng, values, connection, source, dtype, days, names, options)
    ordered = values.sort_index()
    shown = ordered if wide else ordered.sort_index(axis=1)
    return Frame(tensor, shown, dtype, days, source, sized, nulls)


def _days(rng: np.random.Generator, kind: str, count: int) -> Any:
    steps = rng.permutation(np.sort(rng.choice(60, count, replace=False)))
    start = pd.Timestamp("2024-01-20")
    match kind:
        case "date":
            return start + pd.to_timedelta(steps, unit="D")
        case "timestamp":
            return start + pd.to_timedelta(steps * 7, unit="h")
        case "ids":
            return [int(x) * 10**9 for x in steps]
        case "text":
            return [f"d{x:02d}" for x in steps]
    return rng.permutation(count)


def _names(rng: np.random.Generator, kind: str, count: int) -> Any:
    if kind == "ids":
        return [int(x) + 10**12 for x in rng.permutation(count)]
    return [str(x) for x in rng.permutation(WORDS)[:count]]


def _numbers(rng: np.random.Generator, dtype: str, shape: tuple[int, int]) -> NDArray[Any]:
    if dtype == "bool":
        return (rng.random(shape) < 0.6).astype(float)
    whole = rng.integers(-5, 6, shape).astype(float)
    return whole / 4 if dtype.startswith("float") else whole


def _tensor(
    rng: np.random.Generator,
    values: pd.DataFrame,
    connection: duckdb.DuckDBPyConnection,
    source: str,
    dtype: str,
    days: str,
    names: str,
    options: dict[str, Any],
) -> ucle.Tensor:
    if source == "xarray":
        xarray = importlib.import_module("xarray")
        array = xarray.DataArray(
            values.to_numpy().astype(dtype),
            {"day": values.index.to_numpy(), "who": values.columns.to_numpy()},
            ("day", "who"),
        )
        return ucle.tensor(array, axes=("day", "who"))
    nullable = NULLABLE.get(dtype, dtype.capitalize())
    if source.startswith("wide"):
        frame = values.astype("Float64").astype(nullable)
        if source == "wide index":
            return ucle.tensor(ucle.table(frame, columns_as="who", **options))
        flat = frame.rename_axis(columns=None).reset_index()
        if days == "date":
            flat["day"] = flat["day"].dt.date
        data = _as(source.removeprefix("wide "), flat)
        if days == "ids":
            options["coordinates"] = {"day": "days"}
        return ucle.tensor(ucle.table(data, ["day"], columns_as="who", **options))
    long = values.stack().rename("v").reset_index()
    if "nulls" not in options:
        long = long.dropna()
    long = long.sample(frac=1, random_state=int(rng.integers(2**31)))
    if "nulls" in options:
        long["v"] = long["v"].astype("Float64").astype(nullable)
    else:
        long["v"] = long["v"].astype(dtype)
    if source == "series":
        return ucle.tensor(long.set_index(["day", "who"])["v"], axes=("day", "who"))
    if names == "category":
        long["who"] = long["who"].astype("category")
    if days == "date":
        long["day"] = long["day"].dt.date
    if days == "ids" or names == "ids":
        kinds = (("day", days), ("who", names))
        options["coordinates"] = {key: f"{key}s" for key, kind in kinds if kind == "ids"}
    if source == "table":
        connection.register("rows", pa.Table.from_pandas(long, preserve_index=False))
        connection.execute("CREATE OR REPLACE TABLE frame_rows AS FROM rows")
        connection.unregister("rows")
        rows = ucle.table("frame_rows", ["day", "who"], "v", **options)
        return ucle.tensor(rows, axes=("day", "who"))
    return ucle.tensor(
        ucle.table(_as(source, long), ["day", "who"], "v", **options), axes=("day", "who")
    )


def _as(library: str, frame: pd.DataFrame) -> Any:
    if library == "pandas":
        return frame
    table = pa.Table.from_pandas(frame, preserve_index=False)
    return pl.from_arrow(table) if library == "polars" else table
