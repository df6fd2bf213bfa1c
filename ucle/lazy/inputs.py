"""What becomes an input of a lazy tensor: arrays, sparse matrices, tables and their names.

An array tells its shape; a table tells how many axes it has only by its columns, and their sizes
when a program is compiled.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ucle.errors import LabelError
from ucle.foundation.dtypes import Scalar, nearest
from ucle.inputs.files import reader_of
from ucle.inputs.inputs import TEXT_FILE, TableInput, describe_array, opened
from ucle.inputs.objects import is_instance
from ucle.inputs.operands import is_relation
from ucle.inputs.sparse_arrays import is_sparse, to_coordinates, without_axes
from ucle.lazy.axes import check_axis_names
from ucle.lazy.nodes import Axis, Lazy, Leaf

Names = Sequence[str] | None


def lifted(
    data: Any,
    axes: Names = None,
    *,
    ndim: int | None = None,
    name: str | None = None,
    database: Any = None,
) -> Lazy:
    """A lazy tensor of an input.

    Raises:
        InputError: it cannot be read as a tensor.
        LabelError: names that cannot be labels, or nothing says how many axes a table has.
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
    spec, description = opened(name, spec)
    if description is not None and axes is None:
        axes = description.labels
    if is_relation(spec.relation):
        return _lifted_table(spec, axes, ndim, name, database)
    return _lifted_array(spec, axes, ndim, name)


def _parameter(spec: TableInput) -> Lazy:
    """One tensor for each parameter, so that a gradient by it is by all of its uses.

    It is kept beside the fields of the parameter: inputs are no keys, as == makes tensors of them.
    """
    kept: dict[str, Any] = vars(spec)
    if "_tensor" not in kept:
        tensor = _lifted_array(spec, None, None, spec.name or _title(spec.relation))
        kept.setdefault("_tensor", tensor)
    lazy: Lazy = kept["_tensor"]
    return lazy


def as_scalar(value: Any) -> Scalar | None:
    """A value that is a number, as Python's; None where it is something else.

    Numbers of NumPy are arrays without axes: they have a type that counts. Integers of few bits,
    which no tensor has, fit every type of floats as NumPy sees it, and so do numbers of Python.
    """
    if isinstance(value, np.integer) and value.dtype.itemsize <= 2:
        return int(value)
    # np.float64 and np.complex128 are floats and complex numbers to Python, too.
    number = isinstance(value, bool | int | float | complex) and not isinstance(value, np.generic)
    return value if number else None


def _lifted_array(spec: TableInput, axes: Names, ndim: int | None, title: str) -> Lazy:
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
    # What was handed over is read when it is computed with, as it may be changed in place.
    relation = spec.relation
    series = is_instance(relation, "pandas", "Series") or is_instance(relation, "polars", "Series")
    if is_instance(relation, "pyarrow", "Array", "ChunkedArray") or (series and len(shape) > 1):
        relation = values  # their lists are no axes to NumPy
    if len(long) < len(shape):
        relation = without_axes(values, [n for n, axis in enumerate(every) if axis.unit])
    array_spec = replace(
        spec, relation=relation, columns=None, value=None, bounds=None, shape=None, dtype=dtype
    )
    return Lazy(Leaf(array_spec, long, title, dtype), every)


def _lifted_table(
    spec: TableInput, axes: Names, ndim: int | None, title: str, database: Any
) -> Lazy:
    rank = _table_rank(spec) if ndim is None else ndim
    if rank is None:
        raise LabelError(
            "nothing says how many axes the tensor has",
            where=f"input {title}",
            expected="axes=('src', 'dst') with their names, or ndim=2 for axes without names",
            found=str(spec.relation)[:80] if isinstance(spec.relation, str) else "a table",
            hint="ucle.table(relation, columns, value) names the columns of the axes",
        )
    names: Sequence[str | None] = axes if axes is not None else _label_names(spec, rank)
    sizes: Sequence[int | None] = spec.bounds or (None,) * rank
    _check_rank(len(sizes), rank, f"input {title}, bounds")
    shared = _dictionaries(spec, names, title)
    # A table's axis keeps its label, whatever its size: it is a column.
    every = tuple(
        Axis(x, None if size == 1 else size, spec.encode or n in shared or n in spec.encoded_keys)
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
    """The dictionary of each axis that has one, which goes by the name of the axis or its column.

    Raises:
        LabelError: nothing is called so.
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
    """The axes of a table by what they may be called: their columns, and their names."""
    columns = spec.columns or ()
    plain = [column for column in columns if isinstance(column, str)]
    places = {column: n for n, column in enumerate(plain[: len(names)])}
    return places | {name: n for n, name in enumerate(names) if name is not None}


def _table_rank(spec: TableInput) -> int | None:
    """How many axes a table says that it has; a column of values is taken to hold numbers."""
    if spec.bounds is not None:
        return len(spec.bounds)
    if spec.columns is None:
        return None
    tiled = sum(map(bool, spec.tiles or ()))
    inside = tiled if spec.shape is None else len(spec.shape)
    return len(spec.columns) + inside - tiled


def _label_names(spec: TableInput, rank: int) -> tuple[str | None, ...]:
    """The labels of a dict of columns as names of axes, where it names them all."""
    columns = spec.columns or ()
    if len(columns) == rank and all(isinstance(column, tuple) for column in columns):
        labels = tuple(column[0] for column in columns)
        check_axis_names(labels)
        return labels
    return (None,) * rank


def _title(relation: Any) -> str:
    """A name for a tensor after its table."""
    if isinstance(relation, str | os.PathLike):
        text = os.fspath(relation)
        is_file = reader_of(text) is not None or re.search(r"\.parquet\b", text)
        is_file = is_file or TEXT_FILE.search(text)
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
