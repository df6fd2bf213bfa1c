"""The distance of each customer to the nearest shop, on the sphere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import ucle

JOB = "nearest of 500 shops for each of 20,000 customers, in km"
OTHER = "NumPy, pandas"

DIAMETER = 2 * 6371


def ucle_side(folder: Path) -> Any:
    lat, lon = _radians(folder, "customer")
    other_lat, other_lon = _radians(folder, "shop")
    across = ucle.cos(lat) * ucle.cos(other_lat) * ucle.sin((lon - other_lon) / 2) ** 2
    part = ucle.sin((lat - other_lat) / 2) ** 2 + across
    return (DIAMETER * ucle.asin(ucle.sqrt(part))).min("shop").to_pandas()


def _radians(folder: Path, kind: str) -> Any:
    places = ucle.table(str(folder / f"{kind}s.parquet"), [kind], columns_as="side")
    angles = ucle.tensor(places) * (np.pi / 180)
    return angles.sel(side="lat"), angles.sel(side="lon")


def other_side(folder: Path) -> Any:
    customers = pd.read_parquet(folder / "customers.parquet")
    shops = pd.read_parquet(folder / "shops.parquet")
    lat, lon = np.radians(customers.lat.to_numpy())[:, None], np.radians(customers.lon.to_numpy())
    other_lat, other_lon = np.radians(shops.lat.to_numpy()), np.radians(shops.lon.to_numpy())
    across = np.cos(lat) * np.cos(other_lat) * np.sin((lon[:, None] - other_lon) / 2) ** 2
    part = np.sin((lat - other_lat) / 2) ** 2 + across
    km = DIAMETER * np.arcsin(np.sqrt(part)).min(axis=1)
    return pd.DataFrame({"customer": customers.customer, "val": km})
