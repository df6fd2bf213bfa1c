"""Matrix Market files, which scipy writes, and reads after a check for content it would misread.

scipy's reader ends a number at the first character that it does not understand: ``1.5D+02`` is read
as 1.5, and 1.5 in a file of integers as 1. An entry that does not fit its field is refused here
with the line, and Fortran's exponents are rewritten. For some dense matrices, such as empty ones
and non-square symmetric ones, scipy writes out of bounds: these are not passed to it.
"""

from __future__ import annotations

import io
import re
from typing import Any, BinaryIO

import numpy as np

from ucle.foundation.libraries import scipy_module
from ucle.inputs.file_format import WritableTensor
from ucle.inputs.text_words import TextError, read_unpacked
from ucle.plan.forms import WrittenForm

FIELDS = {"pattern": 0, "integer": 1, "unsigned-integer": 1, "real": 1, "double": 1, "complex": 2}
"""The number of numbers per entry, by the field that the header names."""

FORTRAN = re.compile(rb"(?<=[0-9.])[dD](?=[+-]?[0-9])")
REAL = re.compile(rb"[+-]?((\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|inf(inity)?|nan)", re.IGNORECASE)
INTEGER = re.compile(rb"[+-]?\d+")
IN_NUMBERS = {True: b"0123456789+- \t\r\n", False: b"0123456789+-.eE \t\r\n"}


def read_matrix_market(path: str) -> Any:
    """Read the sparse or dense matrix of a file, which may be compressed.

    Raises:
        TextError: an entry has the wrong number of fields, or one that is not a number of its kind.
        ValueError: it is not a Matrix Market file.
    """
    read = scipy_module("scipy.io", path).mmread
    text = read_unpacked(path)
    header, _, rest = text.partition(b"\n")
    words = header.decode("ascii", "replace").casefold().split()
    if len(words) == 5 and words[2] in ("coordinate", "array") and words[3] in FIELDS:
        begin = _begin(rest)
        body = rest[begin:]
        if words[3] in ("real", "double", "complex") and FORTRAN.search(body):
            body = FORTRAN.sub(b"e", body)
        width = FIELDS[words[3]] + 2 * (words[2] == "coordinate")
        before = text.count(b"\n", 0, len(header) + 1 + begin)
        _check_entries(body, width, words, before)
        if words[2] == "array":
            sizes = [int(size) for size in _sizes(rest[:begin])]
            if (dense := _dense_without_scipy(body, sizes, words)) is not None:
                return dense
        text = header + b"\n" + rest[:begin] + body
    # It would read on after a blank at the end of the file.
    return read(io.BytesIO(text.rstrip() + b"\n"), spmatrix=False)


def write_matrix_market(tensor: WritableTensor, file: BinaryIO, form: WrittenForm) -> None:
    """Write the entries of a matrix other than 0."""
    writer = scipy_module("scipy.io", f"save {tensor.name}, Matrix Market")
    matrix = tensor.to_scipy()
    if matrix.dtype == bool:
        matrix = matrix.astype(np.int64)
    # Without a given symmetry, scipy would test for one, treating the matrix as dense.
    writer.mmwrite(file, matrix, symmetry="general")


def _begin(text: bytes) -> int:
    """The offset at which the entries begin: after comments and the line of sizes."""
    begin = 0
    while begin < len(text):
        stop = text.find(b"\n", begin)
        stop = len(text) if stop < 0 else stop
        line = text[begin:stop].strip()
        begin = stop + 1
        if line and not line.startswith(b"%"):
            break
    return min(begin, len(text))


def _sizes(text: bytes) -> list[bytes]:
    """The fields of the last line that is not a comment."""
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith(b"%")]
    return lines[-1].split() if lines else []


def _dense_without_scipy(body: bytes, sizes: list[int], words: list[str]) -> Any:
    """Read a dense matrix whose file crashes scipy's reader; None for all others.

    Raises:
        TextError: the file declares a symmetric matrix, but it is not square, or it has the wrong
            number of entries.
    """
    if words[4] != "general" and len(set(sizes)) > 1:
        raise TextError(f"sizes {' x '.join(map(str, sizes))}", f"a square, as it is {words[4]}")
    kind = np.int64 if "integer" in words[3] else np.float64
    if 0 in sizes and not body.split():
        return np.zeros(sizes, np.complex128 if words[3] == "complex" else kind)
    if words[4] != "skew-symmetric" or len(sizes) != 2:
        if 0 in sizes:
            raise TextError("an entry", "none in a matrix without positions")
        return None
    numbers = np.array(body.split(), dtype=kind)
    numbers = numbers.view(np.complex128) if words[3] == "complex" else numbers
    columns, rows = np.triu_indices(sizes[0], 1)
    if len(numbers) != len(rows):
        raise TextError(f"{len(numbers)} entries", f"{len(rows)}, those below the diagonal")
    matrix = np.zeros(sizes, numbers.dtype)
    matrix[rows, columns], matrix[columns, rows] = numbers, -numbers
    return matrix


def _check_entries(body: bytes, width: int, words: list[str], before: int) -> None:
    """Check that each line has the expected number of fields, each a number of the file's kind.

    Args:
        body: the lines after the sizes.
        width: the number of fields of a line.
        words: the words of the header.
        before: the number of lines before the body.

    Raises:
        TextError: with the first line that does not conform.
    """
    integers = words[3] in ("integer", "unsigned-integer", "pattern")
    if not body.translate(None, IN_NUMBERS[integers]):
        code = np.frombuffer(body + b"\n", np.uint8)
        blank = code <= ord(" ")
        begins = ~blank
        begins[1:] &= blank[:-1]
        ends = np.flatnonzero(code == ord("\n"))
        fields = np.diff(np.cumsum(begins)[ends], prepend=0)
        if not np.any((fields != 0) & (fields != width)):
            return
    for number, line in enumerate(body.split(b"\n"), before + 1):
        fields_ = line.split()
        values = fields_[2:] if words[2] == "coordinate" else fields_
        kind = INTEGER if integers else REAL
        if fields_ and (len(fields_) != width or not all(map(kind.fullmatch, values))):
            raise TextError(
                f"line {number}: {line.decode('utf-8', 'replace').strip()[:80]}",
                f"{width} fields on every line of a file that says {' '.join(words[2:4])}",
            )
