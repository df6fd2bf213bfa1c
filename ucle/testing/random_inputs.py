"""Random tensors, and the forms in which one can be passed to the compiler.

Values are small multiples of 1/4 (or whole), so that sums and products of them are exact.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ucle.foundation.libraries import LateModule, pa
from ucle.inputs.inputs import value_array
from ucle.inputs.table_options import table

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    from scipy import sparse
else:  # for code that draws inputs: other parts of `ucle.testing` do not need it
    pd, pl, sparse = map(LateModule, ("pandas", "polars", "scipy.sparse"))

Array = NDArray[Any]

KINDS = (
    "numpy", "numpy", "scipy", "compressed", "blocks", "arrow", "pandas", "polars", "table",
    "table", "unsummed", "arrays", "arrays", "lists", "flat", "tiles", "tiles", "symmetric",
    "symmetric",
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
    """Return an array with small values at random positions, and zeros elsewhere.

    Floats and parts of complex numbers are multiples of 1/4 between -2 and 2; integers are whole
    numbers.
    """
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
    """Return key columns and values of a dense array in random order, with some of its fills."""
    if not array.ndim:
        return {"value": value_array(array.reshape(1))}
    places = np.nonzero((array != fill) | (rng.random(array.shape) < 0.1))
    order = rng.permutation(len(places[0]))
    keys = {f"k{n}": place[order].astype(np.int32) for n, place in enumerate(places)}
    return {**keys, "value": value_array(np.ascontiguousarray(array[places][order]))}


def make_input(
    rng: np.random.Generator, name: str, array: Array, fill: Any = None
) -> tuple[Any, pa.Table | None]:
    """Return a random kind of input that represents an array, and the table that it names, if any.

    Args:
        rng: the generator that draws the kind of input.
        name: the name of the tensor.
        array: the values of the tensor.
        fill: the fill of the tensor; if it is None, one of a few fills is drawn.
    """
    kind = str(rng.choice(KINDS))
    number = array.dtype.kind
    if kind in ("pandas", "polars") and (number == "c" or np.isnan(array).any()):
        kind = "arrow"  # in pandas a NaN is a missing value, and neither has complex numbers
    if fill is None:
        fill = FILLS[number][int(rng.integers(len(FILLS[number])))]
    shape = tuple(int(n) for n in array.shape)
    if kind in ("scipy", "compressed", "blocks") and array.ndim and fill == 0:
        return _sparse_array(rng, array, kind), None
    if kind == "tiles" and array.size and array.ndim:
        return _tile_table(rng, name, array, fill)
    if kind == "symmetric" and is_symmetric(array):
        return _pair_table(rng, name, array, fill, shape)
    if kind in ("arrays", "lists", "flat") and array.ndim:
        return _array_table(rng, name, array, kind, fill)
    if kind in ("arrow", "pandas", "polars", "table", "unsummed"):
        return _coo_table(rng, name, array, kind, fill, shape)
    return table(array, fill=fill), None


def is_symmetric(array: Array) -> bool:
    """True if the first two axes are interchangeable.

    >>> is_symmetric(np.array([[1, 2], [2, 0]])), is_symmetric(np.arange(4))
    (True, False)
    """
    if array.ndim < 2 or array.shape[0] != array.shape[1]:
        return False
    return np.array_equal(array, array.swapaxes(0, 1), equal_nan=array.dtype.kind in "fc")


def _sparse_array(rng: np.random.Generator, array: Array, kind: str) -> Any:
    """A scipy array: entries, compressed rows or columns of a matrix, or its blocks."""
    entries = sparse.coo_array(array)
    if array.ndim != 2 or kind == "scipy":
        return entries
    if kind == "compressed" or 0 in array.shape:
        return entries.tocsr() if rng.random() < 0.5 else entries.tocsc()
    rows, cols = ([n for n in range(1, size + 1) if size % n == 0] for size in array.shape)
    return sparse.bsr_array(array, blocksize=(int(rng.choice(rows)), int(rng.choice(cols))))


def _tile_table(
    rng: np.random.Generator, name: str, array: Array, fill: Any
) -> tuple[Any, pa.Table | None]:
    """Keys for the leading axes, some of which number tiles, and blocks in an array column."""
    keys = int(rng.integers(1, array.ndim + 1))
    sizes = [int(n) if rng.random() < 0.7 else None for n in rng.integers(1, 4, keys)]
    sizes[int(rng.integers(keys))] = int(rng.integers(1, 4))
    whole = [-(-n // (t or 1)) for n, t in zip(array.shape, sizes, strict=False)]
    inside = tuple(t for t in sizes if t is not None) + tuple(map(int, array.shape[keys:]))
    rows: list[tuple[int, ...]] = []
    blocks: list[Array] = []
    for place in np.ndindex(*whole):
        block = np.full(inside, fill, array.dtype)
        ends = zip(place, sizes, strict=True)
        part = array[tuple(k if t is None else slice(k * t, k * t + t) for k, t in ends)]
        block[tuple(map(slice, part.shape))] = part
        if (block != fill).any() or rng.random() < 0.2:
            rows.append(place)
            blocks.append(block)
    order = rng.permutation(len(rows))
    element = value_array(np.empty(0, array.dtype)).type
    column = pa.array([_list_values(blocks[n].ravel()) for n in order], type=pa.list_(element))
    places = np.array(rows, np.int64).reshape(-1, keys)[order]
    data = pa.table({**{f"k{n}": places[:, n] for n in range(keys)}, "payload": column})
    options: dict[str, Any] = {
        "bounds": tuple(map(int, array.shape)),
        "shape": inside,
        "tiles": sizes,
        "fill": fill,
    }
    if rng.random() < 0.5:
        return table(name, **options), data
    return table(data, **options), None


def _pair_table(
    rng: np.random.Generator, name: str, array: Array, fill: Any, shape: tuple[int, ...]
) -> tuple[Any, pa.Table | None]:
    """Each entry of a symmetric tensor in one of its two orders."""
    columns = coo_columns(array, rng, fill)
    one, other = columns["k0"], columns["k1"]
    kept = one <= other
    turned = rng.random(len(one)) < 0.5
    columns["k0"], columns["k1"] = np.where(turned, other, one), np.where(turned, one, other)
    data = pa.table(columns).filter(pa.array(kept))
    options: dict[str, Any] = {"bounds": shape, "fill": fill, "symmetric": True}
    if rng.random() < 0.5:
        return table(name, **options), data
    return table(data, **options), None


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
        # Every entry in two halves, which multiples of 1/4 divide into exactly.
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
        column = pa.array(map(_list_values, rows), type=pa.list_(element, size))
    elif kind == "flat":
        column = pa.array(map(_list_values, rows), type=pa.list_(element))
    else:
        type_ = element
        for _ in dense:
            type_ = pa.list_(type_)
        column = pa.array([_list_values(row.reshape(dense)) for row in rows], type=type_)
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


def _list_values(array: Array) -> Any:
    """An array as nested lists, its complex numbers as pairs."""
    if array.ndim:
        return [_list_values(part) for part in array]
    number = array.item()
    return {"re": number.real, "im": number.imag} if isinstance(number, complex) else number
