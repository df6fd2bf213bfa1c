"""Text whose fields are separated by any number of blanks and tabs, read into Arrow columns.

FROSTT files are such text, and so are the edge lists that `ucle.table(..., delimiter=" ")` reads. A
column has the first type that fits all of its fields: int64, then float64 if it represents every
written integer exactly, then text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from ucle.foundation.dataclasses import dataclass
from ucle.foundation.libraries import pa, pa_csv, pc

EXACT_FLOATS = 2**53
MARKS = {b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16"}


class TextError(ValueError):
    """Malformed text.

    Args:
        found: the text, and the line it is in.
        expected: the text that should be there.
        hint: advice for the user.
    """

    def __init__(self, found: str, expected: str | None = None, hint: str | None = None) -> None:
        super().__init__(found)
        self.expected = expected
        self.hint = hint


@dataclass(frozen=True)
class Words:
    """The lines of a text, split into fields on demand."""

    lines: bytes
    """The text with single blanks between fields; a line without any field is empty."""

    def rows(self, most: int | None = None) -> Iterator[tuple[int, list[str]]]:
        """The lines that are not empty as fields, with their numbers from 1 on."""
        end = len(self.lines)
        begin = number = 0
        while begin < end and (most is None or most > 0):
            stop = self.lines.find(b"\n", begin)
            stop = end if stop < 0 else stop
            number += 1
            if line := self.lines[begin:stop]:
                yield number, line.decode("utf-8", "replace").split(" ")
                most = None if most is None else most - 1
            begin = stop + 1

    def without_first(self) -> Words:
        """Blank out the first line that is not empty, so that line numbers stay the same."""
        begin = len(self.lines) - len(self.lines.lstrip(b"\n"))
        stop = self.lines.find(b"\n", begin)
        return Words(self.lines[:begin] + (self.lines[stop:] if stop >= 0 else b""))

    def line_of(self, row: int) -> int:
        """The line number of a row (counted from 0)."""
        return next(number for n, (number, _) in enumerate(self.rows()) if n == row)


def read_unpacked(path: str) -> bytes:
    """Read the bytes of a file, which may be compressed."""
    compression = {".gz": "gzip", ".zst": "zstd"}.get(Path(path).suffix.casefold())
    with pa.input_stream(path, compression=compression) as stream:
        content: bytes = stream.read()
    return content


def read_words(path: str, comment: str | None) -> Words:
    """Read the fields of a file, which may be compressed.

    Raises:
        TextError: it is not UTF-8.
        OSError: it cannot be read.
    """
    text = read_unpacked(path)
    if (encoding := MARKS.get(text[:2])) is not None:
        raise TextError(f"text in {encoding}", "UTF-8", "write the file again in UTF-8")
    text = text.removeprefix(b"\xef\xbb\xbf")
    try:
        text.decode()
    except UnicodeDecodeError as error:
        line = text.count(b"\n", 0, error.start) + 1
        raise TextError(
            f"line {line} holds the byte 0x{text[error.start]:02x}, which is no UTF-8",
            "UTF-8",
            "write the file again in UTF-8; it may be in Latin-1",
        ) from error
    if b"\r" in text:
        text = text.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    if comment and comment.encode() in text:
        text = re.sub(re.escape(comment.encode()) + rb"[^\n]*", b"", text)
    if re.search(rb"[\t\v\f]|  |(^|\n) | (\n|$)", text):
        text = re.sub(rb"[ \t\v\f]+", b" ", text)
        text = text.replace(b" \n", b"\n").replace(b"\n ", b"\n").strip(b" ")
    return Words(text)


def words_table(words: Words, names: Sequence[str]) -> pa.Table:
    """Convert the rows of a text to a table with columns of these names.

    Raises:
        TextError: a line has the wrong number of fields, or a column has integers that fit no type.
    """
    columns: list[pa.ChunkedArray]
    if not words.lines.strip(b"\n"):
        return pa.table({name: pa.array([], pa.int64()) for name in names})
    try:
        read = pa_csv.read_csv(
            pa.BufferReader(words.lines),
            pa_csv.ReadOptions(column_names=list(names)),
            pa_csv.ParseOptions(delimiter=" ", quote_char=False),
            pa_csv.ConvertOptions(
                column_types={name: pa.string() for name in names},
                strings_can_be_null=False,
            ),
        )
        columns = read.columns
    except pa.ArrowInvalid as error:
        raise _other_width(words, len(names)) or TextError(str(error)) from error
    return pa.table([_parse_numbers(words, x) for x in columns], names=list(names))


def _other_width(words: Words, width: int) -> TextError | None:
    """The error for the first line with the wrong number of fields."""
    for number, fields in words.rows():
        if len(fields) != width:
            line = " ".join(fields)[:80]
            return TextError(
                f"line {number} has {len(fields)}: {line}", f"{width} fields on every line"
            )
    return None


def _parse_numbers(words: Words, column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Convert a column of text to numbers, if all of its values are numbers."""
    if pc.any(pc.match_substring(column, "x", ignore_case=True)).as_py():  # 0x1F is not a number
        return column
    bare = column
    if pc.any(pc.starts_with(column, "+")).as_py():
        bare = pc.replace_substring_regex(column, r"^\+([0-9.])", r"\1")
    try:
        return bare.cast(pa.int64())
    except pa.ArrowInvalid:
        pass
    try:
        floats = bare.cast(pa.float64())
    except pa.ArrowInvalid:
        return column
    large = pc.and_(
        pc.greater_equal(pc.abs(floats), float(EXACT_FLOATS)),
        pc.match_substring_regex(bare, r"^-?[0-9]+$"),
    )
    for row in pc.indices_nonzero(large).to_pylist():
        text = bare[row].as_py()
        number = floats[row].as_py()
        if not abs(number) < float("inf") or int(number) != int(text):
            raise TextError(
                f"{text} in line {words.line_of(row)}",
                "integers within 64 bits, or numbers that float64 holds",
                "a decimal point, as in 1.0, says that a number may be rounded",
            )
    return floats
