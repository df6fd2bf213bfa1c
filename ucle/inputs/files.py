"""Files as inputs: reading one into memory, with errors that say what is wrong with it.

`ucle.inputs.formats` has the readers. This module also handles columns that files and Arrow tables
have besides their data (pandas' index, folders with values in their names), and edge lists whose
fields are separated by blanks, by the rules of other text files (`ucle.inputs.csv_dialect`).
"""

from __future__ import annotations

import json
import re
import zipfile
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ucle.errors import InputError
from ucle.foundation.libraries import pa, pq
from ucle.inputs.csv_dialect import SAMPLED, comment_sign, empty_file, header_and_names
from ucle.inputs.formats import reader_of
from ucle.inputs.table_input import TableInput
from ucle.inputs.text_words import TextError, read_words, words_table

if TYPE_CHECKING:
    import pyarrow as pa


BROKEN = (
    *(OSError, ValueError, KeyError, EOFError, TypeError, OverflowError),
    *(zipfile.BadZipFile, zlib.error),
)
"""Exceptions that readers raise for a malformed file; Arrow's errors are among them."""


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
    fields = [field.with_type(_widen_type(field.type)) for field in table.schema]
    if all(new.type == old.type for new, old in zip(fields, table.schema, strict=True)):
        return None
    return table.cast(pa.schema(fields, table.schema.metadata))


def _widen_type(type_: pa.DataType) -> pa.DataType:
    if pa.types.is_float16(type_):
        return pa.float32()
    if pa.types.is_list(type_):
        return pa.list_(_widen_type(type_.value_type))
    if pa.types.is_large_list(type_):
        return pa.large_list(_widen_type(type_.value_type))
    if pa.types.is_fixed_size_list(type_):
        return pa.list_(_widen_type(type_.value_type), type_.list_size)
    return type_


def read_word_table(name: str, path: str, spec: TableInput) -> pa.Table:
    """Read the rows of a text file whose fields are separated by blanks.

    Args:
        name: the tensor, for messages.
        path: the path of one file, which may be compressed.
        spec: the caller's options for it.

    Raises:
        InputError: there is no such file, it has no consistent format, or its header is unclear.
    """
    where = f"input {name}, {path}"
    try:
        words = read_words(path, spec.comment)
        rows = [fields for _, fields in words.rows(SAMPLED)]
        if not rows:
            raise empty_file(where)
        lines = [" ".join(fields) for fields in rows]
        comment_sign(where, path, lines, spec)
        header, names = header_and_names(where, path, rows, lines[0], spec)
        return words_table(words.without_first() if header else words, names)
    except BROKEN as error:
        raise unreadable(name, path, error) from error
