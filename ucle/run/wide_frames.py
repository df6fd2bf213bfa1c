"""Wide tables and frames of tensors: one axis becomes columns, which its coordinates name.

In: a stored tensor and the name of one of its axes. Out: an Arrow table or a pandas frame with a
column for each coordinate of that axis, and a row for each combination of coordinates of the
others, in their order. `ucle.inputs.wide_tables` reads such tables.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ucle.errors import ArgumentError, LabelError, did_you_mean
from ucle.foundation.dataclasses import dataclass
from ucle.foundation.libraries import optional, pa, pc
from ucle.foundation.names import unique_names
from ucle.inputs.inputs import value_array
from ucle.ir.tensor_types import TensorType
from ucle.run.read_tuples import number_values, plain_strings
from ucle.sqlgen.sql_trees import VALUE, key_columns

MAX_COLUMNS = 100_000
"""The most columns that an axis becomes: of more, the axis is rather one of rows."""


class Readable(Protocol):
    """A stored tensor, as far as wide tables need it; see `ucle.run.stored_tensor.StoredTensor`."""

    name: str
    type: TensorType

    def coordinates(self, label: str) -> pa.Array:
        """The coordinates of the positions along a label, in order."""

    def to_arrow(self, keys: Sequence[str] | None, rows: str | None, *, max_rows: int) -> pa.Table:
        """Export the tensor as an Arrow table, with arrays over the axes that are no keys."""


@dataclass(frozen=True)
class WideRows:
    """The rows of a wide table, in the order of their keys."""

    keys: dict[str, Any]
    """Arrow arrays with the coordinates of the other axes, by the names of these."""
    names: Any
    """An Arrow array with the coordinates of the axis that becomes columns."""
    positions: bool
    """True if these are 0, 1, 2 ..., because the axis has no dictionary."""
    values: NDArray[Any]
    """A row for each row, a column for each coordinate in `names`."""


def wide_table(
    tensor: Readable,
    columns: str,
    keys: Sequence[str] | None,
    rows: str | None,
    max_rows: int,
) -> pa.Table:
    """Export a tensor as an Arrow table with key columns, and a column for each coordinate.

    Arguments and errors are those of `read_wide`. Coordinates other than text are written as text.
    """
    read = read_wide(tensor, columns, keys, rows, max_rows)
    if tensor.type.positions_in is None:
        values = [value_array(each) for each in np.ascontiguousarray(read.values.T)]
    else:
        values = [pa.array(each, from_pandas=True) for each in read.values.T]
    names = [*read.keys, *column_names(read.names)]
    return pa.table([*read.keys.values(), *values], names=names)


def wide_frame(
    tensor: Readable,
    columns: str,
    keys: Sequence[str] | None,
    rows: str | None,
    max_rows: int,
) -> Any:
    """Export a tensor as a pandas frame whose columns are the coordinates of an axis.

    Arguments and errors are those of `read_wide`. The coordinates of the other axes are the index.
    """
    pandas = optional("pandas", "to_pandas", "to_arrow(columns=...) gives an Arrow table")
    read = read_wide(tensor, columns, keys, rows, max_rows)
    count = read.values.shape[1]
    names = pandas.RangeIndex(count) if read.positions else pandas.Index(read.names.to_pandas())
    levels = {name: pandas.Index(each.to_pandas()) for name, each in read.keys.items()}
    if not levels:
        return pandas.DataFrame(read.values, columns=names)
    if len(levels) == 1:
        ((name, level),) = levels.items()
        index = level.rename(name)
    else:
        index = pandas.MultiIndex.from_arrays(list(levels.values()), names=list(levels))
    return pandas.DataFrame(read.values, index, names)


def read_wide(
    tensor: Readable,
    columns: str,
    keys: Sequence[str] | None,
    rows: str | None,
    max_rows: int,
) -> WideRows:
    """Read the rows of a tensor, with arrays over one of its axes.

    Args:
        tensor: the tensor.
        columns: the axis that becomes columns.
        keys: None, as all other axes are keys.
        rows: the rows to read, as for `to_table`. By default ``"all"`` if there is at most one
            other axis: a row for each of its coordinates. Combinations of several coordinates are
            seldom all in the data: with several other axes, the default is that of `to_table`.
        max_rows: the largest number of rows for ``rows="all"``.

    Raises:
        LabelError: the tensor has no such axis, or two columns would have the same name.
        ArgumentError: there are too many columns or rows, or `keys` is stated as well.
        MemoryLimitError: the rows need more memory than DuckDB may use.
        ResultClosedError: the result is gone.
    """
    labels = [axis.name for axis in tensor.type.axes]
    where = f"result {tensor.name}, columns={columns!r}"
    if keys is not None:
        raise ArgumentError(
            "columns= and keys= contradict each other",
            where=where,
            expected="columns= alone: all other axes are keys",
            found=f"keys={list(keys)!r}",
        )
    if columns not in labels:
        raise LabelError(
            f"the tensor has no axis {columns!r} to make columns of",
            where=where,
            expected=", ".join(labels) or "a tensor with axes",
            found=repr(columns),
            hint=did_you_mean(columns, labels),
        )
    place = labels.index(columns)
    count = tensor.type.shape[place]
    if count > MAX_COLUMNS:
        raise ArgumentError(
            "too many columns",
            where=where,
            expected=f"at most {MAX_COLUMNS:,} coordinates",
            found=f"{count:,}",
            hint="without columns= each value has a row of its own; keys= writes arrays",
        )
    others = [n for n in range(len(labels)) if n != place]
    names = plain_words(tensor.coordinates(columns))
    key_names = unique_names([labels[n] for n in others])
    _check_names(key_names, column_names(names), where)
    table = tensor.to_arrow(
        [labels[n] for n in others], rows or ("all" if len(others) < 2 else None), max_rows=max_rows
    )
    written = key_columns(tensor.type)
    read = [plain_strings(table.column(written[n]).combine_chunks()) for n in others]
    places = [_key_positions(tensor, n, each) for n, each in zip(others, read, strict=True)]
    read = [
        each if tensor.type.axes[n].dictionary is not None else each.cast(pa.int64())
        for n, each in zip(others, read, strict=True)
    ]
    order = _row_order(places, len(table))
    found = {name: each.take(pa.array(order)) for name, each in zip(key_names, read, strict=True)}
    numbers = table.column(VALUE).combine_chunks().flatten()
    if tensor.type.positions_in is None:
        values = number_values(numbers, tensor.type.dtype)
    else:
        values = np.asarray(plain_words(numbers).to_pandas(), dtype=object)
    values = values.reshape(len(table), count)
    positions = tensor.type.axes[place].dictionary is None
    return WideRows(found, names, positions, values[order])


def column_names(coordinates: Any) -> list[str]:
    """The names of the columns that an Arrow array of coordinates makes.

    >>> import datetime
    >>> column_names(pa.array([0, 1])), column_names(pa.array([datetime.date(2024, 1, 31)]))
    (['0', '1'], ['2024-01-31'])
    """
    return [str(each) for each in coordinates.to_pylist()]


def plain_words(values: Any) -> Any:
    """Convert words of an enumeration to text; return other arrays unchanged."""
    return values.dictionary_decode() if pa.types.is_dictionary(values.type) else values


def _check_names(keys: Sequence[str], names: Sequence[str], where: str) -> None:
    """Check that no two columns of a wide table have the same name.

    Raises:
        LabelError: two have.
    """
    if len({*keys, *names}) == len(keys) + len(names):
        return
    every = [*keys, *names]
    twice = next(name for n, name in enumerate(every) if name in every[:n])
    raise LabelError(
        f"two columns would have the same name, {twice!r}",
        where=where,
        expected="coordinates that differ from each other and from the names of the other axes",
        found="axes " + (", ".join(keys) or "(none)") + f", and the coordinate {twice!r}",
        hint=f"give the axis {twice!r} another name" if twice in keys else None,
    )


def _key_positions(tensor: Readable, axis: int, column: Any) -> NDArray[Any]:
    """The positions along an axis of the coordinates in a column of keys."""
    label = tensor.type.axes[axis]
    if label.dictionary is None:
        return np.asarray(column)
    every = plain_words(tensor.coordinates(label.name))
    return np.asarray(pc.index_in(plain_words(column), value_set=every))


def _row_order(positions: Sequence[NDArray[Any]], rows: int) -> NDArray[Any]:
    """The order of rows by positions along axes, the first of which counts most."""
    return np.lexsort(positions[::-1]) if positions else np.arange(rows)
