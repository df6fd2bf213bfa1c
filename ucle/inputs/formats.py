"""The file formats that ucle reads and writes: one row each, found by the suffix of a path.

DuckDB reads Parquet and text in columns itself, and only the parts it needs; files of the other
formats are read into memory. ``.gz`` may follow the suffix of a text format, and for reading
``.zst``. Parquet and Arrow keep a tensor with its description (`ucle.inputs.metadata`), so that the
file can be read back as the same tensor; the other formats keep the parts that they can represent.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import Any

from ucle.inputs.array_files import (
    read_ipc,
    read_npy,
    read_npz,
    write_csv,
    write_ipc,
    write_npy,
    write_npz,
    write_parquet,
)
from ucle.inputs.file_format import MATRICES, REAL, FileFormat
from ucle.inputs.frostt import read_frostt, write_frostt
from ucle.inputs.matrix_market import read_matrix_market, write_matrix_market
from ucle.plan.sources import CsvFile, ParquetFile

FORMATS = (
    FileFormat(
        "Parquet",
        (".parquet",),
        scan=ParquetFile,
        write=write_parquet,
        options=("keys", "rows"),
    ),
    FileFormat(
        "Arrow",
        (".arrow", ".feather", ".ipc"),
        read=read_ipc,
        write=write_ipc,
        options=("keys", "rows"),
    ),
    FileFormat("Arrow streams", (".arrows",), read=read_ipc),
    FileFormat(
        "CSV",
        (".csv",),
        scan=CsvFile,
        write=write_csv,
        holds=REAL,
        options=("rows",),
        text=True,
    ),
    FileFormat("text in columns", (".tsv", ".txt", ".edges"), scan=CsvFile, text=True),
    FileFormat(
        "Matrix Market",
        (".mtx",),
        read=read_matrix_market,
        write=write_matrix_market,
        holds=MATRICES,
        text=True,
    ),
    FileFormat("FROSTT", (".tns",), read=read_frostt, write=write_frostt, holds=REAL, text=True),
    FileFormat("NumPy", (".npy",), read=read_npy, write=write_npy),
    FileFormat("NumPy archives", (".npz",), read=read_npz, write=write_npz),
)

WRITTEN = tuple(format_ for format_ in FORMATS if format_.write is not None)
"""The formats in which tensors are saved."""

SUFFIXES = (
    *(suffix for format_ in WRITTEN for suffix in format_.suffixes),
    *(f"{suffix}.gz" for format_ in WRITTEN if format_.text for suffix in format_.suffixes),
)
"""The suffixes of files that can be written."""

_SUFFIX = re.compile(r"(\.\w+)(\.gz|\.zst)?$")
_BY_SUFFIX = {suffix: format_ for format_ in FORMATS for suffix in format_.suffixes}


def format_of(path: str, packings: tuple[str, ...] = (".gz", ".zst")) -> FileFormat | None:
    """The format of a file by the suffix of its path, or None.

    Args:
        path: the path of the file.
        packings: the suffixes that may follow that of a text format.
    """
    match = _SUFFIX.search(path.casefold())
    if match is None:
        return None
    format_, packing = _BY_SUFFIX.get(match[1]), match[2]
    if packing is None:
        return format_
    return format_ if format_ is not None and format_.text and packing in packings else None


def reader_of(path: str) -> Callable[[str], Any] | None:
    """The function that reads a file with this name into memory, or None."""
    format_ = format_of(path)
    return None if format_ is None else format_.read


def read_otherwise(path: str) -> str | None:
    """Say how a file is read whose name has a suffix that no format has; None without a file."""
    if format_of(path) is not None or not os.path.isfile(path):
        return None
    suffixes = ", ".join(suffix for format_ in FORMATS for suffix in format_.suffixes)
    hint = f"this file has none of the suffixes of files that ucle reads: {suffixes}"
    if re.search(r"\.(json|jsonl|ndjson)(\.gz|\.zst)?$", path.casefold()):
        return f"{hint}; DuckDB reads it in a view: FROM read_json('{path}')"
    if path.casefold().endswith(".xlsx"):
        return f"{hint}; DuckDB reads it in a view: FROM read_xlsx('{path}')"
    return hint


def suffixes_taking(option: str) -> tuple[str, ...]:
    """The suffixes of the formats to which an option of `save` applies.

    >>> suffixes_taking("rows")
    ('.parquet', '.arrow', '.feather', '.ipc', '.csv')
    """
    return tuple(x for format_ in FORMATS if option in format_.options for x in format_.suffixes)


def is_parquet(path: str) -> bool:
    """True if a path or a pattern of paths names Parquet files."""
    return re.search(r"\.parquet\b", path, re.IGNORECASE) is not None


def is_text_table(path: str) -> bool:
    """True if a path or a pattern of paths names text in columns, which DuckDB reads."""
    format_ = format_of(path)
    return format_ is not None and format_.scan is CsvFile
