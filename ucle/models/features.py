"""The rows of a table as the inputs of a model."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ucle.errors import ArgumentError
from ucle.foundation.libraries import pa
from ucle.inputs.table_input import TableInput
from ucle.inputs.table_options import table
from ucle.models.graph import ModelInput


def bind_features(inputs: Sequence[ModelInput], features: Any, rows: str) -> dict[str, Any]:
    """Inputs by name, from the columns of a table.

    Args:
        inputs: of the model.
        features: a table of the database, a file, a table in memory, or an array.
        rows: the key column. A table in memory without it gets one that counts its rows.

    Raises:
        ArgumentError: an array, but the model has several inputs.
    """
    tabular = (
        isinstance(features, str) or hasattr(features, "columns") or hasattr(features, "schema")
    )
    if isinstance(features, TableInput) or not tabular:
        if len(inputs) != 1:
            raise ArgumentError(
                "the model has several inputs",
                expected="a table with the columns " + ", ".join(x.original for x in inputs),
                found=type(features).__name__,
            )
        return {inputs[0].name: features}
    if not isinstance(features, str):
        features = with_key(features, rows)
    return {each.name: _read(each, features, rows) for each in inputs}


def with_key(features: Any, rows: str) -> Any:
    """A table in memory as an Arrow table that has the key column."""
    if hasattr(features, "to_arrow"):
        features = features.to_arrow()
    elif not isinstance(features, pa.Table) and hasattr(features, "iloc"):
        features = pa.Table.from_pandas(features, preserve_index=rows in features.index.names)
    if rows in features.column_names:
        return features
    return features.append_column(rows, pa.array(np.arange(features.num_rows)))


def _read(own: ModelInput, features: Any, rows: str) -> TableInput:
    """How the columns of an input are read: NULL is NaN for numbers."""
    columns = own.columns or (own.original,)
    keys = {rows: rows}
    if own.dtype == "string":
        return table(features, [rows, columns[0]], value=1, coordinates=keys)
    missing: dict[str, Any] = {"nulls": "missing", "fill": math.nan}
    plain = own.features == 1 or len(columns) > 1  # not an array in each row
    options = missing if plain and own.dtype.startswith("float") else {}
    if len(columns) == 1:
        return table(
            features, [rows], value=columns[0], coordinates=keys, dtype=own.dtype, **options
        )
    return table(
        features,
        [rows],
        value=list(columns),
        columns_as="feature",
        coordinates=keys,
        dtype=own.dtype,
        **options,
    )
