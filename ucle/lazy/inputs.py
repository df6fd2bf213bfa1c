"""Conversion of inputs to lazy tensors: arrays, sparse matrices, tables and their names.

The shape of an array is known. For a table, only the number of axes is known, from its columns;
their sizes are known when a program is compiled.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ucle.errors import LabelError
from ucle.foundation.dtypes import Scalar, nearest
from ucle.inputs.formats import format_of, is_parquet
from ucle.inputs.inputs import describe_array, open_input
from ucle.inputs.objects import is_instance, is_on_spark
from ucle.inputs.operands import is_relation
from ucle.inputs.sparse_arrays import is_sparse, to_coordinates, without_axes
from ucle.inputs.table_input import TableInput
from ucle.lazy.axes import check_axis_names, is_axis_name
from ucle.lazy.nodes import Axis, Lazy, Leaf

Names = Sequence[str] | None


def lift_input(
    data: Any,
    axes: Names = None,
    *,
    ndim: int | None = None,
    name: str | None = None,
    database: Any = None,
) -> Lazy:
    """Make a lazy tensor from an input.

    Raises:
        InputError: it cannot be read as a tensor.
        LabelError: names cannot be labels, or the number of axes of a table is undetermined.
    """
    plain = axes is None and ndim is None and name is None
    if plain and isinstance(data, TableInput) and data.varies:
        return _parameter(data)
    if axes is not None:
        axes = (axes,) if isinstance(axes, str) else tuple(axes)
        check_axis_names(axes)
        ndim = len(axes) if ndim is None else ndim
        _check_rank(len(axes), ndim, "axes and ndim")
    spec = data if isinstance(data, TableInput) else TableInput(data)
    if name is None:
        name = spec.name or _title(spec.relation)
    if is_on_spark(spec.relation):  # its rows stay there
        return _lift_table(spec, axes, ndim, name, database)
    spec, description = open_input(name, spec)
    if description is not None and axes is None:
        axes = description.labels
    if is_relation(spec.relation):
        return _lift_table(spec, axes, ndim, name, database)
    return _lift_array(spec, axes, ndim, name)


def _parameter(spec: TableInput) -> Lazy:
    """Return the same tensor for every use of a parameter, so that a gradient covers all uses.

    It is cached in the parameter's attributes: inputs cannot be dict keys, as == returns tensors.
    """
    kept: dict[str, Any] = vars(spec)
    if "_tensor" not in kept:
        tensor = _lift_array(spec, None, None, spec.name or _title(spec.relation))
        kept.setdefault("_tensor", tensor)
    lazy: Lazy = kept["_tensor"]
    return lazy


def as_scalar(value: Any) -> Scalar | None:
    """Convert a number to Python's types; None for anything else.

    NumPy's numbers are rank-0 arrays, whose type matters. Integers of at most 16 bits, which no
    tensor has, are converted: they fit all floating types in NumPy, as Python's numbers do.
    """
    if isinstance(value, np.integer) and value.dtype.itemsize <= 2:
        return int(value)
    # Python also considers np.float64 and np.complex128 instances of float and complex.
    number = isinstance(value, bool | int | float | complex) and not isinstance(value, np.generic)
    return value if number else None


def _lift_array(spec: TableInput, axes: Names, ndim: int | None, title: str) -> Lazy:
    if is_sparse(spec.relation):
        values: Any = to_coordinates(spec.relation, f"input {title}")
        if spec.fill is None and values.fill:
            spec = replace(spec, fill=values.fill)
        dtype = spec.dtype or nearest(values.dtype)
    else:
        described = describe_array(title, spec)
        values, dtype = described.data, described.dtype
    shape = tuple(int(size) for size in values.shape)
    if ndim is not None:
        _check_rank(ndim, len(shape), f"input {title}")
    names: Sequence[str | None] = axes if axes is not None else _label_names(spec, len(shape))
    every = tuple(Axis(x, size) for x, size in zip(names, shape, strict=True))
    long = tuple(axis for axis in every if not axis.unit)
    # The caller's object is read at computation, because it may be changed in place.
    relation = spec.relation
    series = is_instance(relation, "pandas", "Series") or is_instance(relation, "polars", "Series")
    if is_instance(relation, "pyarrow", "Array", "ChunkedArray") or (series and len(shape) > 1):
        relation = values  # NumPy does not see lists as axes
    if len(long) < len(shape):
        relation = without_axes(values, [n for n, axis in enumerate(every) if axis.unit])
    array_spec = replace(
        spec, relation=relation, columns=None, value=None, bounds=None, shape=None, dtype=dtype
    )
    return Lazy(Leaf(array_spec, long, title, dtype), every)


def _lift_table(spec: TableInput, axes: Names, ndim: int | None, title: str, database: Any) -> Lazy:
    rank = _table_rank(spec) if ndim is None else ndim
    if rank is None:
        raise LabelError(
            "it is not known how many axes the tensor has",
            where=f"input {title}",
            expected="axes=('src', 'dst') with their names, or ndim=2 for axes without names",
            found=str(spec.relation)[:80] if isinstance(spec.relation, str) else "a table",
            hint="ucle.table(relation, columns, value) names the columns of the axes, and "
            "ucle.table(relation, columns_as='name') has columns as an axis",
        )
    names: Sequence[str | None] = axes if axes is not None else _label_names(spec, rank)
    sizes: Sequence[int | None] = spec.bounds or (None,) * rank
    _check_rank(len(sizes), rank, f"input {title}, bounds")
    shared = _dictionaries(spec, names, title)
    # A table's axis keeps its label even if its size is 1: it is a column.
    every = tuple(
        Axis(
            x, None if size == 1 else size, spec.encode or n in shared or _is_encoded(spec, n, rank)
        )
        for n, (x, size) in enumerate(zip(names, sizes, strict=True))
    )
    columns = spec.columns
    if columns and isinstance(columns[0], tuple):
        by_label = dict(columns)
        if unknown := [label for label in by_label if label not in names]:
            raise LabelError(
                f"columns names the label {unknown[0]!r}",
                where=f"input {title}",
                expected="names of axes: " + (", ".join(x for x in names if x) or "none"),
                found=unknown[0],
            )
        columns = tuple(by_label[x] for x in names if x in by_label)
    table_spec = replace(spec, columns=columns)
    return Lazy(Leaf(table_spec, every, title, spec.dtype, database), every)


def _dictionaries(spec: TableInput, names: Sequence[str | None], title: str) -> dict[int, str]:
    """The dictionary of each axis that has one, found by the name of the axis or its column.

    Raises:
        LabelError: there is no axis or column of that name.
    """
    places = axes_by_name(spec, names)
    for label, _ in spec.dictionaries:
        if label not in places:
            raise LabelError(
                f"coordinates names {label!r}, which is no axis and no column of one",
                where=f"input {title}",
                expected=", ".join(places) or "axes with names: axes=('src', 'dst')",
                found=label,
            )
    return {places[label]: dictionary for label, dictionary in spec.dictionaries}


def axes_by_name(spec: TableInput, names: Sequence[str | None]) -> dict[str, int]:
    """Index the axes of a table by their columns and by their names."""
    columns = spec.columns or ()
    plain = [column for column in columns if isinstance(column, str)]
    places = {column: n for n, column in enumerate(plain[: len(names)])}
    return places | {name: n for n, name in enumerate(names) if name is not None}


def _table_rank(spec: TableInput) -> int | None:
    """The number of axes that a table's options imply; values are assumed to be numbers."""
    if spec.bounds is not None and (spec.columns_as is None or spec.columns is None):
        return len(spec.bounds)
    if spec.columns is None:
        return None
    tiled = sum(map(bool, spec.tiles or ()))
    inside = tiled if spec.shape is None else len(spec.shape)
    more = spec.columns_as is not None or spec.ragged is not None
    return len(spec.columns) + inside - tiled + more


def _label_names(spec: TableInput, rank: int) -> tuple[str | None, ...]:
    """The labels of a dict of columns as names of axes, if it names them all."""
    columns = spec.columns or ()
    last = spec.columns_as or spec.ragged
    if last is not None:
        return _names_with(last, spec, rank)
    if len(columns) == rank and all(isinstance(column, tuple) for column in columns):
        labels = tuple(column[0] for column in columns)
        check_axis_names(labels)
        return labels
    return (None,) * rank


def _names_with(last: str, spec: TableInput, rank: int) -> tuple[str | None, ...]:
    """The names of the axes of keys or their columns, and of the last axis, which has no column.

    Raises:
        LabelError: the name of a column cannot be that of an axis, or two are the same.
    """
    if spec.columns is None or len(spec.columns) + 1 != rank:
        return (None,) * rank
    keys = [key if isinstance(key, str) else key[0] for key in spec.columns]
    if wrong := [name for name in keys if not is_axis_name(name)]:
        raise LabelError(
            f"the key column {wrong[0]!r} cannot name an axis",
            where="names of axes",
            expected="letters, digits and '_', not beginning with a digit",
            found=repr(wrong[0]),
            hint="columns={label: column} names the axes of keys, and axes=(...) all axes",
        )
    check_axis_names([*keys, last])
    return (*keys, last)


def _is_encoded(spec: TableInput, axis: int, rank: int) -> bool:
    """True if the input itself numbers the coordinates of an axis by a dictionary."""
    return axis in spec.encoded_keys or (spec.columns_as is not None and axis == rank - 1)


def _title(relation: Any) -> str:
    """A name for a tensor, after its table."""
    if isinstance(relation, str | os.PathLike):
        text = os.fspath(relation)
        is_file = format_of(text) is not None or is_parquet(text)
        stem = Path(text).name.split(".")[0] if is_file else text.split(".")[-1]
        return stem.strip('"*')
    return "X"


def _check_rank(rank: int, expected: int, where: str) -> None:
    if rank != expected:
        raise LabelError(
            "the number of names is not the number of axes",
            where=where,
            expected=f"{expected} axes",
            found=f"{rank}",
        )
