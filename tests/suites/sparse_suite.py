"""Tests of einsum in pydata/sparse, with ucle's einsum in the place of `sparse.einsum`.

A sparse array goes to ucle as one of scipy, or as a table where its fill is not 0; it comes back in
the format of the operands, or as COO where these differ.
"""

from __future__ import annotations

from typing import Any

import checked
import numpy as np
import pyarrow as pa
import pytest
import recorder
import scipy.sparse
import sparse

import ucle

FORMATS = {sparse.COO: "coo", sparse.DOK: "dok", sparse.GCXS: "gcxs"}
MISFIT = "names one axis of a matrix; NumPy raises ValueError, and so does ucle"
SKIPPED = {"test_einsum_dtype": MISFIT}


def einsum(*operands: Any, **keywords: Any) -> Any:
    """`sparse.einsum`, computed by ucle and checked against NumPy on the dense arrays."""
    formats = {FORMATS[type(x)] for x in operands if isinstance(x, sparse.SparseArray)}
    dense = [x.todense() if isinstance(x, sparse.SparseArray) else x for x in operands]
    result = checked.checked(dense, keywords, [_input(operand) for operand in operands])
    if not formats:
        return result
    array = sparse.COO.from_numpy(np.asarray(result))
    return array.asformat(formats.pop() if len(formats) == 1 else "coo")


def _input(operand: Any) -> Any:
    if not isinstance(operand, sparse.SparseArray):
        return operand
    array = operand.asformat("coo")
    if array.fill_value != 0:
        keys = {f"k{axis}": key for axis, key in enumerate(array.coords)}
        entries = pa.table({**keys, "value": array.data})
        return ucle.table(entries, bounds=array.shape, fill=float(array.fill_value))
    if not array.ndim:
        return array.todense()
    return scipy.sparse.coo_array((array.data, tuple(array.coords)), shape=array.shape)


sparse.einsum = einsum


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    recorder.skip(items, SKIPPED)
