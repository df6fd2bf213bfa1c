"""Random tensors, and the ways to pass one to the compiler.

Values are small multiples of 1/4 (or whole), so that sums and products of them are exact.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import scipy.sparse
from numpy.typing import NDArray

from ucle.foundation.libraries import pa
from ucle.inputs.inputs import table, value_array

Array = NDArray[Any]

KINDS = (
    "numpy", "numpy", "scipy", "arrow", "pandas", "polars",
    "table", "table", "unsummed", "arrays", "arrays", "lists", "flat",
)  # fmt: skip
FILLS: dict[str, tuple[Any, ...]] = {
    "f": (0.0, 0.0, 0.0, 0.25, -1.0),
    "i": (0, 0, 0, 1, -2),
    "b": (False, False, True),
    "c": (0, 0, 0, 1 + 0.5j),
}


def random_array(
    rng: np.random.Generator, shape: tuple[int, ...], density: float, dtype: str = "float64"
) -> Array:
    """Small values at random places: multiples of 1/4 between -2 and 2, or whole numbers."""
    stored = rng.random(shape) < density
    values: Any = rng.integers(1, 9, size=shape) * rng.choice([-1, 1], size=shape)
    match np.dtype(dtype).kind:
        case "b":
            return np.asarray(stored)
        case "i":
            values = values // 2
        case "f":
            values = values / 4
        case _:
            values = values / 4 + 0.25j * rng.integers(-4, 5, size=shape)
    return np.asarray(np.where(stored, values, 0)).astype(dtype)


def coo_columns(array: Array, rng: np.random.Generator, fill: Any) -> dict[str, Any]:
    """Key columns and values of a dense array, in random order, some of the fill written out."""
    if not array.ndim:
        return {"value": value_array(array.reshape(1))}
    places = np.nonzero((array != fill) | (rng.random(array.shape) < 0.1))
    order = rng.permutation(len(places[0]))
    keys = {f"k{n}": place[order].astype(np.int32) for n, place in enumerate(places)}
    return {**keys, "value": value_array(np.ascontiguousarray(array[places][order]))}


def make_input(rng: np.random.Generator, name: str, array: Array) -> tuple[Any, pa.Table | None]:
    """The object to pass for an array, and the table that it names, if it names one."""
    kind = str(rng.choice(KINDS))
    number = array.dtype.kind
    if kind in ("pandas", "polars") and (number == "c" or np.isnan(array).any()):
        kind = "arrow"  # to pandas a NaN is a missing value, and neither has complex numbers
    fill = FILLS[number][int(rng.integers(len(FILLS[number])))]
    shape = tuple(int(n) for n in array.shape)
    if kind == "scipy" and array.ndim and fill == 0:
        return scipy.sparse.coo_array(array), None
    if kind in ("arrays", "lists", "flat") and array.ndim:
        return _array_table(rng, name, array, kind, fill)
    if kind in ("arrow", "pandas", "polars", "table", "unsummed"):
        return _coo_table(rng, name, array, kind, fill, shape)
    return table(array, fill=fill), None


def _coo_table(
    rng: np.random.Generator,
    name: str,
    array: Array,
    kind: str,
    fill: Any,
    shape: tuple[int, ...],
) -> tuple[Any, pa.Table | None]:
    columns = coo_columns(array, rng, fill)
    duplicates = "error"
    if kind == "unsummed" and fill == 0 and array.dtype.kind == "f":
        # Every entry in two halves, which multiples of 1/4 take exactly.
        columns = {n: np.concatenate([c, c]) for n, c in columns.items()}
        columns["value"] = columns["value"] / 2
        duplicates = "sum"
    data = pa.table(columns)
    relation: Any = {"pandas": data.to_pandas, "polars": lambda: pl.from_arrow(data)}.get(
        kind, lambda: data
    )()
    options: dict[str, Any] = {"bounds": shape, "fill": fill, "duplicates": duplicates}
    if kind in ("table", "unsummed"):
        return table(name, **options), data
    assert isinstance(relation, pa.Table | pd.DataFrame | pl.DataFrame)
    return table(relation, **options), None


def _array_table(
    rng: np.random.Generator, name: str, array: Array, kind: str, fill: Any
) -> tuple[Any, pa.Table | None]:
    """Leading axes as keys, trailing ones in an array column."""
    keys = int(rng.integers(0, array.ndim))
    lead, dense = array.shape[:keys], tuple(int(n) for n in array.shape[keys:])
    size = math.prod(dense)
    blocks = array.reshape(*lead, size)
    stored = (blocks != fill).any(axis=-1) | (rng.random(lead) < 0.2)
    places = np.nonzero(stored) if keys else ()
    rows = blocks[stored] if keys else blocks.reshape(1, size)
    element = value_array(np.empty(0, array.dtype)).type
    column: Any
    if kind == "arrays" and len(dense) == 1 and size:
        column = pa.array(map(_listed, rows), type=pa.list_(element, size))
    elif kind == "flat":
        column = pa.array(map(_listed, rows), type=pa.list_(element))
    else:
        type_ = element
        for _ in dense:
            type_ = pa.list_(type_)
        column = pa.array([_listed(row.reshape(dense)) for row in rows], type=type_)
    names = {f"k{n}": place.astype(np.int64) for n, place in enumerate(places)}
    data = pa.table({**names, "payload": column})
    bounds = tuple(int(n) for n in array.shape)
    options: dict[str, Any] = {"bounds": bounds, "fill": fill}
    unknown = not len(rows) or not size
    if kind == "flat" or (unknown and kind == "lists") or (kind == "arrays" and unknown):
        options["shape"] = dense
    if rng.random() < 0.5:
        return table(name, **options), data
    return table(data, **options), None


def _listed(array: Array) -> Any:
    """An array as nested lists, its complex numbers as pairs."""
    if array.ndim:
        return [_listed(part) for part in array]
    number = array.item()
    return {"re": number.real, "im": number.imag} if isinstance(number, complex) else number
