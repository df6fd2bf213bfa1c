"""Tiles are copied into the whole tensor, in any order and with any of them missing."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from ucle.foundation.dtypes import DType
from ucle.ir.layouts import Coordinates, Label, Layout, Level
from ucle.ir.tensor_types import TensorType
from ucle.run.array_tables import array_table
from ucle.run.read_tuples import copy_tiles

TILED = {
    "first": (Level.TILED, Level.DENSE),
    "last": (Level.DENSE, Level.TILED),
    "both": (Level.TILED, Level.TILED),
}


@pytest.mark.parametrize("levels", TILED)
@pytest.mark.parametrize("rows", [1, 4, 8, 9, 11])
@pytest.mark.parametrize("seed", range(4))
def test_any_order(levels: str, rows: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    array = rng.normal(size=(rows, 5))
    array[rng.random(rows) < 0.4] = 0
    layout = Layout.from_levels(*TILED[levels], tile=4)
    axes = tuple(
        Label(x, size, Coordinates.of(size)) for x, size in zip("ij", array.shape, strict=True)
    )
    type_ = TensorType(axes, DType.FLOAT64, 0.0)
    table = array_table(array, type_, layout)
    order = np.arange(len(table)) if seed < 2 else rng.permutation(len(table))
    result = np.zeros_like(array)
    for batch in table.take(pa.array(order)).combine_chunks().to_batches(max_chunksize=3):
        copy_tiles(batch, type_, layout, result)
    np.testing.assert_array_equal(result, array)
