"""Files that are read into memory as inputs: Arrow IPC, Matrix Market, FROSTT, NumPy.

Parquet and CSV are not among them: DuckDB reads these itself, and only the parts it needs. The
suffix determines the format; ``.gz`` may follow for text formats. This module also handles columns
that files and Arrow tables have besides their data (pandas' index, folders with values in their
names).
"""

from __future__ import annotations

import json
import os
import re
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from ucle.errors import InputError
from ucle.foundation.libraries import pa, pc, pq, scipy_module
from ucle.inputs.matrix_market import read_matrix_market
from ucle.inputs.text_words import TextError, Words, read_words, unpacked, words_table

BROKEN = (
    *(OSError, ValueError, KeyError, EOFError, TypeError, OverflowError),
    *(zipfile.BadZipFile, zlib.error),
)
"""Exceptions that readers raise for a malformed file; Arrow's errors are among them."""


def reader_of(path: str) -> Callable[[str], Any] | None:
    """The function that reads a file with this name; None if no reader is registered for it."""
    stem, suffix = os.path.splitext(path.casefold())
    if suffix in (".gz", ".zst"):
        suffix = os.path.splitext(stem)[1]
        return TEXT_READERS.get(suffix)
    return (READERS | TEXT_READERS).get(suffix)


def read_file(name: str, path: str) -> Any:
    """Read a file: an Arrow table, a sparse matrix or an array.

    Args:
        name: the tensor, for messages.
        path: a path for which there is a reader.

    Raises:
        InputError: there is no such file, or its content does not match its suffix.
    """
    reader = reader_of(path)
    assert reader is not None
    try:
        return reader(path)
    except BROKEN as error:
        raise unreadable(name, path, error) from error


def unreadable(name: str, path: str, error: Exception) -> InputError:
    """The error for a file that a reader rejects, or that does not exist."""
    missing = not Path(path).exists()
    format_ = f"a file in the format of {''.join(Path(path).suffixes[-2:])}"
    told = error if isinstance(error, TextError) and not missing else TextError("")
    said = str(error).strip().splitlines() or [type(error).__name__]
    if beyond := isinstance(error, OverflowError):
        said = [f"a number beyond them ({said[0]})"]
    return InputError(
        "this file does not exist" if missing else "this file cannot be read",
        where=f"input {name}, {path}",
        expected="integers within 64 bits" if beyond else told.expected or format_,
        found="no such file" if missing else said[0],
        hint=told.hint,
    )


def read_parquet(name: str, path: str) -> pa.Table:
    """Read a Parquet file as a table in memory.

    Raises:
        InputError: it cannot be read.
    """
    try:
        return pq.read_table(path)
    except (OSError, ValueError, pa.ArrowException) as error:
        raise InputError(
            "this file cannot be read",
            where=f"input {name}, {path}",
            expected="a Parquet file",
            found=str(error).strip().splitlines()[0],
        ) from error


def index_columns(schema: pa.Schema) -> dict[str, str]:
    """The columns of a schema that were the index of the original pandas frame."""
    try:
        noted = json.loads((schema.metadata or {}).get(b"pandas", b"{}"))
        names = [name for name in noted["index_columns"] if isinstance(name, str)]
    except (ValueError, KeyError, TypeError, RecursionError):  # anybody may write such metadata
        return {}
    return {name: "the index of the pandas frame" for name in names if name in schema.names}


def folder_columns(path: str) -> dict[str, str]:
    """The columns that DuckDB adds for folders in a file's path, as in ``year=2020/x.parquet``.

    >>> folder_columns("sales/year=2020/a.parquet")
    {'year': "part of the files' path"}
    """
    folders = re.split(r"[/\\]", path)[:-1]
    pairs = (folder.split("=") for folder in folders)
    return {pair[0]: "part of the files' path" for pair in pairs if len(pair) == 2 and pair[0]}


def without_half_floats(table: pa.Table) -> pa.Table | None:
    """Convert half floats of a table to float32, which DuckDB can read; None if it has none."""
    fields = [field.with_type(_widened(field.type)) for field in table.schema]
    if all(new.type == old.type for new, old in zip(fields, table.schema, strict=True)):
        return None
    return table.cast(pa.schema(fields, table.schema.metadata))


def _widened(type_: pa.DataType) -> pa.DataType:
    if pa.types.is_float16(type_):
        return pa.float32()
    if pa.types.is_list(type_):
        return pa.list_(_widened(type_.value_type))
    if pa.types.is_large_list(type_):
        return pa.large_list(_widened(type_.value_type))
    if pa.types.is_fixed_size_list(type_):
        return pa.list_(_widened(type_.value_type), type_.list_size)
    return type_


def _read_ipc(path: str) -> pa.Table:
    with pa.memory_map(path) as source:
        try:
            return pa.ipc.open_file(source).read_all()
        except pa.ArrowInvalid:
            source.seek(0)
            return pa.ipc.open_stream(source).read_all()


def _read_npy(path: str) -> Any:
    return np.load(path, mmap_mode="r", allow_pickle=False)


def _read_npz(path: str) -> Any:
    """Read a sparse array as scipy saves it, or the only array in the file."""
    with np.load(path, allow_pickle=False) as archive:
        if "format" in archive.files:
            return scipy_module("scipy.sparse", path).load_npz(path)
        if len(archive.files) != 1:
            raise ValueError(
                f"it holds {len(archive.files)} arrays ({', '.join(archive.files)}): "
                "np.load(path)[name] picks one"
            )
        return archive[archive.files[0]]


def _read_frostt(path: str) -> pa.Table:
    """Read coordinates that count from 1 and a real value per line, separated by blanks.

    ``#`` begins a comment. A file without entries states its rank in a comment: ``# rank 3``.
    Values are float64, or int64 if they are integers that float64 cannot all represent.

    Source: the FROSTT collection of sparse tensors, http://frostt.io.
    """
    words = read_words(path, "#")
    first = next(words.rows(1), None)
    if first is None:
        return _no_entries(path)
    *keys, values = words_table(words, [f"k{n}" for n in range(len(first[1]))]).columns
    if not all(pa.types.is_integer(key.type) for key in keys) or not keys:
        raise ValueError("coordinates are not integers, or there are none")
    if not (pa.types.is_integer(values.type) or pa.types.is_floating(values.type)):
        (row, text) = next((n, x) for n, x in enumerate(values.to_pylist()) if not _is_number(x))
        raise TextError(f"{text} in line {words.line_of(row)}", "a number behind coordinates")
    for key in keys:
        _check_from_one(words, key, path)
    columns = {f"k{n}": pc.subtract(key, 1) for n, key in enumerate(keys)}
    return pa.table({**columns, "val": _as_floats(values)})


def _no_entries(path: str) -> pa.Table:
    """Return the empty table of a FROSTT file without entries, whose rank is in a comment."""
    rank = re.search(rb"^\s*#\s*rank (\d{1,2})\b", unpacked(path), re.MULTILINE)
    if rank is None:
        raise ValueError("it holds no entry, and no comment '# rank 3' tells its rank")
    kinds = {f"k{n}": pa.int64() for n in range(int(rank[1]))} | {"val": pa.float64()}
    return pa.schema(kinds).empty_table()


def _check_from_one(words: Words, key: pa.ChunkedArray, path: str) -> None:
    """Check that the coordinates of a FROSTT file count from 1.

    Raises:
        TextError: a coordinate is less than 1.
    """
    row = pc.index(pc.less(key, 1), True).as_py()
    if row < 0:
        return
    number, fields = next(each for n, each in enumerate(words.rows()) if n == row)
    raise TextError(
        f"the coordinate {key[row].as_py()} in line {number}: {' '.join(fields)[:80]}",
        "coordinates from 1 on, as FROSTT files have them",
        f"ucle.table({path!r}, delimiter=' ', header=False, comment='#') reads coordinates from 0 "
        "as they are",
    )


def _as_floats(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Convert values to float64, unless that would change an integer."""
    try:
        return values.cast(pa.float64())
    except pa.ArrowInvalid:
        return values


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


READERS: dict[str, Callable[[str], Any]] = {
    ".arrow": _read_ipc,
    ".arrows": _read_ipc,
    ".feather": _read_ipc,
    ".ipc": _read_ipc,
    ".npy": _read_npy,
    ".npz": _read_npz,
}
TEXT_READERS: dict[str, Callable[[str], Any]] = {
    ".mtx": read_matrix_market,
    ".tns": _read_frostt,
}
