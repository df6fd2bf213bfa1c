"""Matrix Market files, read by scipy after a look at what scipy takes for something else.

scipy's reader ends a number where it does not understand it: ``1.5D+02`` is 1.5 to it, and 1.5 in
a file of integers is 1. What does not fit its field is refused here with the line, and exponents as
Fortran writes them are rewritten. Of some dense matrices it writes beside its memory, such as
empty ones and symmetric ones that are not square: these do not reach it.
"""

from __future__ import annotations

import io
import re
from typing import Any

import numpy as np

from ucle.foundation.libraries import scipy_module
from ucle.inputs.text_words import TextError, unpacked

FIELDS = {"pattern": 0, "integer": 1, "unsigned-integer": 1, "real": 1, "double": 1, "complex": 2}
"""How many numbers an entry has, by the field that the header names."""

FORTRAN = re.compile(rb"(?<=[0-9.])[dD](?=[+-]?[0-9])")
REAL = re.compile(rb"[+-]?((\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|inf(inity)?|nan)", re.IGNORECASE)
INTEGER = re.compile(rb"[+-]?\d+")
IN_NUMBERS = {True: b"0123456789+- \t\r\n", False: b"0123456789+-.eE \t\r\n"}


def read_matrix_market(path: str) -> Any:
    """The sparse or dense matrix of a file, which may be packed.

    Raises:
        TextError: an entry has another number of fields, or one that is no number of its kind.
        ValueError: it is no such file.
    """
    read = scipy_module("scipy.io", path).mmread
    text = unpacked(path)
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
    # It reads on behind a blank with which a file ends.
    return read(io.BytesIO(text.rstrip() + b"\n"), spmatrix=False)


def _begin(text: bytes) -> int:
    """Where the entries begin: behind comments and the line of sizes."""
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
    """The fields of the last line that is no comment."""
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith(b"%")]
    return lines[-1].split() if lines else []


def _dense_without_scipy(body: bytes, sizes: list[int], words: list[str]) -> Any:
    """A dense matrix whose file scipy's reader dies of; None of others.

    Raises:
        TextError: the file says that its matrix is symmetric, and it is not square, or it has
            another number of entries.
    """
    if words[4] != "general" and len(set(sizes)) > 1:
        raise TextError(f"sizes {' x '.join(map(str, sizes))}", f"a square, as it is {words[4]}")
    kind = np.int64 if "integer" in words[3] else np.float64
    if 0 in sizes and not body.split():
        return np.zeros(sizes, np.complex128 if words[3] == "complex" else kind)
    if words[4] != "skew-symmetric" or len(sizes) != 2:
        if 0 in sizes:
            raise TextError("an entry", "none in a matrix without room")
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
    """Each line has as many fields as its kind of file asks for, and each is a number of its kind.

    Args:
        body: the lines behind the sizes.
        width: how many fields a line has.
        words: of the header.
        before: lines before the body.

    Raises:
        TextError: with the first line that is otherwise.
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
