"""Shared code of the relational engines: inputs as tables of entries, results as entries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.paper.tasks import entries


@dataclass(frozen=True)
class Entries:
    """A tensor as coordinates, one array for each axis, and values."""

    coordinates: Sequence[Any]
    values: Any

    def dense(self, shape: Sequence[int]) -> Any:
        """Return the whole tensor; entries that are not listed are zero."""
        made = np.zeros(shape, dtype=self.values.dtype)
        made[tuple(np.asarray(c, dtype=np.int64) for c in self.coordinates)] = (
            self.values if shape else self.values.item()
        )
        return made

    @classmethod
    def of_columns(cls, columns: Sequence[Any], is_complex: bool) -> Entries:
        """Convert the columns of a table: coordinates, then ``v``, or ``re`` and ``im``."""
        count = 2 if is_complex else 1
        keys, values = columns[: len(columns) - count], columns[-count:]
        made = np.asarray(values[0], dtype=np.float64)
        return cls(
            keys, made + 1j * np.asarray(values[1], dtype=np.float64) if is_complex else made
        )


def is_complex(inputs: Any) -> bool:
    """True if a tensor has complex numbers."""
    return any(np.iscomplexobj(value) for value in inputs.values())


def entry_table(value: Any, as_complex: bool) -> pa.Table:
    """Return the entries of an input as columns ``c0``, ..., and ``v``, or ``re`` and ``im``."""
    keys, values = entries(value)
    columns = {f"c{axis}": pa.array(key.astype(np.int32)) for axis, key in enumerate(keys)}
    parts = {"re": np.real(values), "im": np.imag(values)} if as_complex else {"v": values}
    columns |= {name: pa.array(part.astype(np.float64)) for name, part in parts.items()}
    return pa.table(columns)


def column_types(table: pa.Table) -> list[tuple[str, bool]]:
    """Return names of columns, each with True if it holds coordinates."""
    return [(field.name, pa.types.is_integer(field.type)) for field in table.schema]
