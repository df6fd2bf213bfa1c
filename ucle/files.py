"""Files that are read into memory as inputs: Arrow IPC, Matrix Market, FROSTT, NumPy.

Parquet and CSV are not among them: DuckDB reads these itself, and only what it needs. The suffix
tells the format; ``.gz`` may follow where the format is text.
"""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pyarrow.csv
import scipy.io
import scipy.sparse

from ucle.errors import InputError


def reader_of(path: str) -> Callable[[str], Any] | None:
    """The function that reads a file of this name; None where it is no name of such a file."""
    stem, suffix = os.path.splitext(path.casefold())
    if suffix == ".gz":
        suffix = os.path.splitext(stem)[1]
        return TEXT_READERS.get(suffix)
    return (READERS | TEXT_READERS).get(suffix)


def read_file(name: str, path: str) -> Any:
    """What a file holds: an Arrow table, a sparse matrix or an array.

    Args:
        name: the tensor, for messages.
        path: a name for which there is a reader.

    Raises:
        InputError: there is no such file, or it is not what its suffix says.
    """
    reader = reader_of(path)
    assert reader is not None
    try:
        return reader(path)
    except (OSError, ValueError, KeyError, EOFError) as error:  # Arrow's errors are among them
        missing = not Path(path).exists()
        raise InputError(
            "there is no such file" if missing else "this file cannot be read",
            where=f"input {name}, {path}",
            expected=f"a file in the format of {''.join(Path(path).suffixes[-2:])}",
            found="no such file" if missing else str(error).strip().splitlines()[0],
        ) from error


def _read_ipc(path: str) -> pa.Table:
    with pa.memory_map(path) as source:
        try:
            return pa.ipc.open_file(source).read_all()
        except pa.ArrowInvalid:
            source.seek(0)
            return pa.ipc.open_stream(source).read_all()


def _read_matrix_market(path: str) -> Any:
    return scipy.io.mmread(path, spmatrix=False)


def _read_npy(path: str) -> Any:
    return np.load(path, mmap_mode="r", allow_pickle=False)


def _read_npz(path: str) -> Any:
    """A sparse array as scipy saves it, or the one array that is in the file."""
    with np.load(path, allow_pickle=False) as held:
        if "format" in held.files:
            return scipy.sparse.load_npz(path)
        if len(held.files) != 1:
            raise ValueError(
                f"it holds {len(held.files)} arrays ({', '.join(held.files)}): "
                "np.load(path)[name] picks one"
            )
        return held[held.files[0]]


def _read_frostt(path: str) -> pa.Table:
    """Coordinates from 1 on, then a real value, separated by blanks; ``#`` begins a comment.

    Source: the FROSTT collection of sparse tensors, http://frostt.io.
    """
    opened = gzip.open if path.casefold().endswith(".gz") else open
    skipped, delimiter = 0, " "
    with opened(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            if line.strip() and not line.startswith("#"):
                delimiter = "\t" if "\t" in line else " "
                break
            skipped += 1
        else:
            raise ValueError("it holds no entry")
    read = pa.csv.read_csv(
        path,
        pa.csv.ReadOptions(skip_rows=skipped, autogenerate_column_names=True),
        pa.csv.ParseOptions(delimiter=delimiter, invalid_row_handler=_skip_comment),
    )
    *keys, values = read.columns
    if not all(pa.types.is_integer(key.type) for key in keys) or not keys:
        raise ValueError("coordinates are not integers, or there are none")
    columns = {f"k{n}": pa.compute.subtract(key, 1) for n, key in enumerate(keys)}
    return pa.table({**columns, "val": values.cast(pa.float64())})


def _skip_comment(row: Any) -> str:
    return "skip" if row.text.lstrip().startswith("#") else "error"


READERS: dict[str, Callable[[str], Any]] = {
    ".arrow": _read_ipc,
    ".arrows": _read_ipc,
    ".feather": _read_ipc,
    ".ipc": _read_ipc,
    ".npy": _read_npy,
    ".npz": _read_npz,
}
TEXT_READERS: dict[str, Callable[[str], Any]] = {
    ".mtx": _read_matrix_market,
    ".tns": _read_frostt,
}
