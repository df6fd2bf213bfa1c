"""Parquet files in folders that are named by keys, as ``edges/i=3/part-0.parquet`` (Hive's format).

All rows of such a file have the same keys, so that the file lies where a placement by these keys
wants its rows, whichever partition that is: the names of files are divided among the partitions,
and each partition reads its own. No row moves.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import field
from typing import Any
from urllib.parse import unquote

import numpy as np

from ucle.errors import InputError
from ucle.foundation.dataclasses import dataclass
from ucle.foundation.libraries import pa, pq
from ucle.partitions.divide import partition_of

FILE = "ucle file"
"""The column of paths in a table of files."""

NO_KEY = "__HIVE_DEFAULT_PARTITION__"
"""Stands for NULL in the name of a folder."""

BATCH_BYTES = 1 << 24
"""About the most bytes of rows that are read together."""


@dataclass(frozen=True)
class PlacedFiles:
    """Files of rows that have the same keys.

    `keys` are columns that the names of folders state, and `values` their integers for each file,
    None for NULL. `sizes` are bytes, or the same number for each where they are unknown.
    """

    keys: tuple[str, ...]
    paths: tuple[str, ...]
    values: tuple[tuple[int | None, ...], ...]
    sizes: tuple[int, ...]
    _shares: dict[tuple[tuple[str, ...], int], float] = field(default_factory=dict, compare=False)

    def place(self, columns: Sequence[str]) -> bool:
        """Return whether the rows of each file agree on some columns.

        >>> [edges] = [files_in_folders("lake", ["lake/i=3/part-0.parquet"])]
        >>> edges.place(["i"]), edges.place(["i", "j"])
        (True, False)
        """
        return bool(columns) and set(columns) <= set(self.keys)

    @property
    def names(self) -> pa.Table:
        """A table of the files, with their keys, so that it can be divided as rows are."""
        columns: list[Any] = []
        for number, _ in enumerate(self.keys):
            columns.append(pa.array([each[number] for each in self.values], pa.int64()))
        columns.append(pa.array(self.paths, pa.string()))
        return pa.table(columns, names=[*self.keys, FILE])

    @property
    def names_bytes(self) -> float:
        """Bytes of the table of files."""
        return float(sum(map(len, self.paths)) + 8 * len(self.keys) * len(self.paths))

    def largest_share(self, columns: Sequence[str], partitions: int) -> float:
        """Return the share of the bytes that the fullest partition has, by some of the columns."""
        asked = tuple(columns), partitions
        if asked not in self._shares:
            parts = partition_of(self.names, columns, partitions)
            sizes = np.bincount(parts, np.array(self.sizes, float), partitions)
            self._shares[asked] = float(sizes.max() / max(sizes.sum(), 1.0))
        return self._shares[asked]


def files_in_folders(base: str, paths: Sequence[str]) -> PlacedFiles | None:
    """Return the files below a folder by the keys that are in the names of folders between.

    None if there are no files, or no key of which all values are integers.

    Args:
        base: the folder of the table.
        paths: of its files; each begins with the folder.

    >>> found = files_in_folders("lake", ["lake/i=3/j=x/0.parquet", "lake/i=4/j=y/0.parquet"])
    >>> found.keys, found.values
    (('i',), ((3,), (4,)))
    """
    head = base.rstrip("/") + "/"
    if not paths or not all(path.startswith(head) for path in paths):
        return None
    named = [_keys(path[len(head) :]) for path in paths]
    if any(each.keys() != named[0].keys() for each in named):
        return None
    keys = tuple(key for key in named[0] if all(_is_integer(each[key]) for each in named))
    if not keys:
        return None
    values = tuple(
        tuple(None if each[key] == NO_KEY else int(each[key]) for key in keys) for each in named
    )
    return PlacedFiles(keys, tuple(paths), values, _sizes(paths))


def _keys(path: str) -> dict[str, str]:
    """The keys in the names of the folders of a path; none if a folder is named otherwise."""
    pairs = [folder.partition("=") for folder in path.split("/")[:-1]]
    if not all(equals for _, equals, _ in pairs):
        return {}
    return {unquote(key): unquote(value) for key, _, value in pairs}


def _is_integer(text: str) -> bool:
    return text == NO_KEY or re.fullmatch(r"-?[0-9]{1,18}", text) is not None


def _sizes(paths: Sequence[str]) -> tuple[int, ...]:
    try:
        return tuple(os.path.getsize(path) for path in paths)
    except OSError:  # another machine sees them
        return (1,) * len(paths)


def rows_of_files(files: pa.Table, schema: pa.Schema) -> Iterator[pa.Table]:
    """Yield the rows of some files, in parts.

    Args:
        files: some rows of `PlacedFiles.names`.
        schema: the columns to read; those that are keys are taken from the names of folders.

    Raises:
        InputError: a file cannot be read here.
    """
    for row in files.to_pylist():
        path = row.pop(FILE)
        try:
            with pq.ParquetFile(path) as file:
                yield from _rows(file, row, schema)
        except (OSError, pa.ArrowException) as error:
            raise InputError(
                "a file of a table cannot be read where its partition is",
                where=f"file {path}",
                expected="a Parquet file that all workers see under this path",
                found=str(error).splitlines()[0][:300] if str(error) else type(error).__name__,
                hint="if files have changed, compile the program again; "
                "with spark.ucle.readFiles=false, Spark reads and shuffles the rows",
            ) from error


def _rows(file: Any, keys: dict[str, int | None], schema: pa.Schema) -> Iterator[pa.Table]:
    there = {name.casefold(): name for name in file.schema_arrow.names}
    stored = [
        there[name.casefold()]
        for name in schema.names
        if name not in keys and name.casefold() in there
    ]
    about = file.metadata
    if not stored:
        yield _with_keys(about.num_rows, {}, keys, schema)
        return
    size = sum(about.row_group(n).total_byte_size for n in range(about.num_row_groups))
    rows = max(1, int(BATCH_BYTES * about.num_rows / max(size, 1)))
    for batch in file.iter_batches(min(rows, 1 << 20), columns=stored):
        columns = {name.casefold(): batch.column(name) for name in stored}
        yield _with_keys(batch.num_rows, columns, keys, schema)


def _with_keys(
    rows: int, columns: dict[str, Any], keys: dict[str, int | None], schema: pa.Schema
) -> pa.Table:
    """Rows with the columns of a schema; those that a file does not have are NULL."""
    found = []
    for each in schema:
        key = keys.get(each.name)
        if each.name in keys and key is not None:
            filled = pa.py_buffer(np.full(rows, key, np.int64))
            column = pa.Array.from_buffers(pa.int64(), rows, [None, filled])
        elif each.name not in keys and each.name.casefold() in columns:
            column = columns[each.name.casefold()]
        else:
            column = pa.nulls(rows, each.type)
        found.append(column if column.type == each.type else column.cast(each.type))
    return pa.Table.from_arrays(found, schema=schema)
