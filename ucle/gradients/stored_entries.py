"""The stored entries of an input as a mask for its gradient, which is an input of its own."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ucle.errors import UnsupportedError
from ucle.inputs.sparse_arrays import SparseArray, is_sparse, to_coordinates
from ucle.inputs.states import BoundInput
from ucle.inputs.table_input import TableInput
from ucle.plan.sources import TableSource


def stored_entries(name: str, value: Any, bound: BoundInput) -> TableInput | None:
    """Return an input that differs from 0 where another has entries; None where it is full.

    Args:
        name: the other one, for messages.
        value: as it was passed.
        bound: the same input, bound.

    Raises:
        UnsupportedError: its rows hold arrays.
    """
    source = bound.source
    if not isinstance(source, TableSource):
        return None
    spec = value if isinstance(value, TableInput) else TableInput(value)
    if is_sparse(spec.relation):
        entries = to_coordinates(spec.relation)
        ones = np.ones(entries.nnz, np.int64)
        return replace(spec, relation=SparseArray(entries.shape, entries.coords, ones), fill=None)
    if source.dense or source.tiles:
        raise UnsupportedError(
            "rows with arrays do not say which of their entries are stored",
            where=f"gradient, stored, input {name}",
            expected="a row for each entry, a sparse matrix, or a dense array",
            found="arrays of shape " + " x ".join(map(str, source.dense)),
        )
    columns = spec.columns if source.key_axes is not None else source.keys
    return replace(spec, columns=columns, value=1, fill=None, dtype=None)
