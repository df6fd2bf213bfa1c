"""FROSTT files: a line of coordinates and a value for each entry of a sparse tensor.

Source: the FROSTT collection of sparse tensors, http://frostt.io.
"""

from __future__ import annotations

import re
from typing import BinaryIO

import numpy as np

from ucle.foundation.libraries import pa, pa_csv, pc
from ucle.inputs.file_format import WritableTensor
from ucle.inputs.text_words import TextError, Words, read_unpacked, read_words, words_table
from ucle.plan.forms import WrittenForm


def read_frostt(path: str) -> pa.Table:
    """Read coordinates that count from 1 and a real value per line, separated by blanks.

    ``#`` begins a comment. A file without entries states its rank in a comment: ``# rank 3``.
    Values are float64, or int64 if they are integers that float64 cannot all represent.

    Raises:
        TextError: a line does not have the form of the others, or a coordinate is less than 1.
        ValueError: there is no entry and no rank, or coordinates are not integers.
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


def write_frostt(tensor: WritableTensor, file: BinaryIO, form: WrittenForm) -> None:
    """Write the entries other than 0; without any, a comment with the rank."""
    matrix = tensor.nonzero()
    values = matrix.data.astype(np.int64) if matrix.dtype == bool else matrix.data
    if not len(values):
        file.write(f"# rank {len(tensor.shape)}: no entries\n".encode())
        return
    columns = [pa.array(keys + 1) for keys in matrix.coords]
    names = [str(n) for n in range(len(columns) + 1)]
    pa_csv.write_csv(
        pa.table([*columns, pa.array(values)], names),
        file,
        pa_csv.WriteOptions(include_header=False, delimiter=" "),
    )


def _no_entries(path: str) -> pa.Table:
    """Return the empty table of a FROSTT file without entries, whose rank is in a comment."""
    rank = re.search(rb"^\s*#\s*rank (\d{1,2})\b", read_unpacked(path), re.MULTILINE)
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
