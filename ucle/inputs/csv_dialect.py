"""The format of a text file of rows: its delimiter, its header, its comments.

Takes the first lines of a file and what the caller states; returns a `CsvFile` whose columns are
text. Nothing is guessed: where the rules below do not determine the format from the lines, the
error shows what to write. Later rows must have the same format, or reading them is an error.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import zip_longest

from ucle.database.session import Session
from ucle.errors import InputError
from ucle.foundation.dataclasses import dataclass
from ucle.foundation.names import fold_name, unique_names
from ucle.inputs.table_input import TableInput
from ucle.plan.sources import CsvFile
from ucle.sqlgen.file_queries import files_query, lines_query, rows_query

SAMPLED = 200
"""The number of lines from which the format of a file is inferred."""

DELIMITERS = (",", "\t", ";", "|")

INTEGER = re.compile(r"\s*[+-]?\d+(_\d+)*\s*")
NUMBER = re.compile(r"\s*[+-]?((\d[\d_]*\.?\d*|\.\d+)(e[+-]?\d+)?|inf(inity)?|nan)\s*", re.I)
TRUTH = re.compile(r"\s*(true|false)\s*", re.I)
TIME = re.compile(r"\d{4}-\d\d-\d\d([ T]\d\d:\d\d(:\d\d(\.\d+)?)?)?")

Rows = Sequence[Sequence[str]]


@dataclass(frozen=True)
class SampledCsv:
    """A file that is read as text, with its first rows."""

    file: CsvFile
    rows: Rows

    @property
    def sampled_types(self) -> tuple[str, ...]:
        """The type of each column as far as the first rows show it."""
        width = len(self.file.columns)
        return tuple(_sampled_type([row[n] for row in self.rows if n < len(row)])
                     for n in range(width))  # fmt: skip


def csv_form(
    session: Session, name: str, origin: CsvFile, spec: TableInput, labels: Sequence[str]
) -> SampledCsv:
    """Infer the format of a text file, or of all files that match a pattern.

    Args:
        session: where the file is read.
        name: the tensor, for messages.
        origin: the file.
        spec: the caller's options for it.
        labels: labels of the tensor's axes, for messages.

    Raises:
        InputError: the lines do not determine the format, or files of a pattern differ in it.
    """
    where = f"input {name}, {origin}"
    paths = [origin.path]
    if any(sign in origin.path for sign in "*?["):
        paths = [str(row[0]) for row in session.fetch(files_query(origin.path), where)] or paths
    first: tuple[str, SampledCsv] | None = None
    for path in paths:
        lines = [row[0] or "" for row in session.read(lines_query(path, SAMPLED), where)]
        if len(paths) > 1 and not any(line.strip() for line in lines):
            continue
        form = _form(f"input {name}, {path}", replace(origin, path=path), lines, spec, labels)
        _check_first_rows(session, f"input {name}, {path}", form)
        if first is None:
            first = path, form
        elif not _same(first[1].file, form.file):
            raise InputError(
                "the files of a pattern are not of one form",
                where=where,
                expected=f"the lines before the rows, and the columns, of {first[0]}: "
                + _describe_file(first[1].file),
                found=f"in {path} {_describe_file(form.file)}",
                hint="use one input for each form, or write the files again with the same first "
                "line",
            )
    if first is None:
        raise empty_file(where)
    return replace(first[1], file=replace(first[1].file, path=origin.path))


def _check_first_rows(session: Session, where: str, form: SampledCsv) -> None:
    """Check that DuckDB reads the first rows of a file as they were read here.

    DuckDB counts lines differently where comments and empty lines precede a header.

    Raises:
        InputError: it reads different rows.
    """
    told = [list(row) for row in form.rows[:CHECKED]]
    read = session.read(rows_query(form.file, CHECKED), where)
    for found, row in zip_longest([["" if x is None else x for x in row] for row in read], told):
        if found != row and not (row and len(row) != len(form.file.columns)):
            raise InputError(
                "the first lines of this file are not of a form that DuckDB reads",
                where=where,
                expected="rows without indented comments or quotation marks within fields",
                found=f"the row {found}, where the file has {row}",
            )


CHECKED = 20
"""The number of rows that are compared with DuckDB's reading."""


def _same(one: CsvFile, other: CsvFile) -> bool:
    return (one.skipped, one.delimiter, one.columns) == (
        other.skipped,
        other.delimiter,
        other.columns,
    )


def _describe_file(file: CsvFile) -> str:
    return f"{file.skipped} lines, then {', '.join(column for column, _ in file.columns)}"


def _form(
    where: str, origin: CsvFile, lines: list[str], spec: TableInput, labels: Sequence[str]
) -> SampledCsv:
    """Infer the format of one file from its first lines."""
    lines = [line.removesuffix("\r") for line in lines]
    comment = comment_sign(where, origin.path, lines, spec, labels)
    begin = next((n for n, line in enumerate(lines) if _is_row(line, comment)), None)
    if begin is None:
        raise empty_file(where)
    blank = sum(not is_comment(line, comment) for line in lines[:begin])
    told = [_without(line, comment) for line in lines if _is_row(line, comment)]
    delimiter = spec.delimiter or _delimiter(where, origin.path, told, spec, comment, labels)
    rows = _split(told, delimiter, whole=len(lines) < SAMPLED)
    header, names = header_and_names(where, origin.path, rows, told[0], spec)
    file = replace(
        origin,
        delimiter=delimiter,
        skipped=blank + header,
        comment=comment,
        columns=tuple((column, "VARCHAR") for column in names),
    )
    return SampledCsv(file, rows[1:] if header else rows)


def header_and_names(
    where: str, path: str, rows: Rows, line: str, spec: TableInput
) -> tuple[bool, list[str]]:
    """Return True if the first row is a header, and the names of the columns.

    Args:
        where: the file, for messages.
        path: the path of the file, for messages.
        rows: the first rows.
        line: the first line, verbatim.
        spec: the caller's options.

    Raises:
        InputError: it is unclear whether there is a header, a name that the caller states occurs
            twice, or more names are stated than there are columns.
    """
    keys = (column if isinstance(column, str) else column[1] for column in spec.columns or ())
    named = [*keys, *([spec.value] if isinstance(spec.value, str) else spec.values or [])]
    named += [] if spec.ends is None else [spec.ends]
    header = has_header(rows, named) if spec.header is None else spec.header
    if header is None:
        stated = "" if spec.delimiter is None else f"delimiter={spec.delimiter!r}, "
        call = f"ucle.table({path!r}, {stated}header="
        raise InputError(
            "it is not clear whether the first line is a header",
            where=where,
            expected="header=True or header=False",
            found=line[:SHOWN],
            hint=f"write {call}False) if it is a row, or {call}True) if it has the names of "
            "columns",
        )
    names = _header_names(where, rows[0], named) if header else _generate_names(len(rows[0]))
    return header, _given_names(where, names, named) if spec.header is False else names


def _is_row(line: str, comment: str) -> bool:
    return bool(_without(line, comment).strip())


def is_comment(line: str, comment: str) -> bool:
    """True if a line begins with a comment; False if no comment sign is stated."""
    return bool(comment) and line.startswith(comment)


def _without(line: str, comment: str) -> str:
    return line.partition(comment)[0] if comment else line


# ---- Comments ----


def comment_sign(
    where: str, path: str, lines: Sequence[str], spec: TableInput, labels: Sequence[str] = ()
) -> str:
    """The string that begins a comment: empty unless it is stated.

    Raises:
        InputError: the first line may be a comment.
    """
    if spec.comment is not None or spec.header:
        return spec.comment or ""
    first = next((line.lstrip() for line in lines if line.strip()), "")
    sign = next((sign for sign in "#%" if first.startswith(sign)), None)
    if sign is None:
        return ""
    told = [_without(line, sign) for line in lines if _is_row(line, sign)]
    call = _call(path, told, replace(spec, comment=sign), labels)
    raise InputError(
        "the first line is a comment, or a header",
        where=where,
        expected=f"comment={sign!r} for lines that are left out, or header=True for names",
        found=first[:SHOWN],
        hint=f"{call} leaves comments out",
    )


SHOWN = 80
"""The number of characters of a line that messages show."""


def _call(path: str, told: Sequence[str], spec: TableInput, labels: Sequence[str]) -> str:
    """A call of `ucle.table` that reads a file of these rows, for hints."""
    one = spec.delimiter or _candidate(path, told) or " "
    rows = [line.split() if one == " " else line.split(one) for line in told] or [[]]
    header = has_header(rows, [])
    stated = {
        "delimiter": None if one == "," else one,
        "header": bool(header),
        "comment": spec.comment,
        "columns": list(labels) if labels and not header else None,
        "value": 1 if 0 < len(labels) < len(rows[0]) - 1 else None,
    }
    said = [f"{name}={value!r}" for name, value in stated.items() if value is not None]
    return f"ucle.table({', '.join([repr(path), *said])})"


# ---- Delimiters ----


def _delimiter(
    where: str,
    path: str,
    told: Sequence[str],
    spec: TableInput,
    comment: str,
    labels: Sequence[str],
) -> str:
    """Infer the delimiter of the fields.

    It is the tab in a ``.tsv`` file. Otherwise it is the character that occurs equally often in all
    of the first lines; or else the one that occurs in the first line; or else the one that occurs
    in more than half of the first lines. If none occurs, and no blanks either, the file has one
    column, and the delimiter is a comma.

    Raises:
        InputError: several characters are possible, or there are only blanks.
    """
    found = _candidate(path, told)
    if found is not None:
        return found
    if any(each in told[0] for each in DELIMITERS):
        raise InputError(
            "it is not clear what separates the fields",
            where=where,
            expected="one of comma, tab, semicolon and | on every line, equally often",
            found=told[0][:SHOWN],
            hint=f"ucle.table({path!r}, delimiter=...) states it",
        )
    if len(told[0].split()) > 1:
        call = _call(path, told, replace(spec, delimiter=" ", comment=comment or None), labels)
        raise InputError(
            "blanks separate the fields, or the file has one column",
            where=where,
            expected="one of comma, tab, semicolon and | on every line, or delimiter= stated",
            found=told[0][:SHOWN],
            hint=f"{call} reads fields that are separated by blanks",
        )
    return ","


def _candidate(path: str, told: Sequence[str]) -> str | None:
    """The only character that fits the rule for delimiters; None if there is not exactly one."""
    if re.search(r"\.tsv\b", path, re.IGNORECASE):
        return "\t"
    counts = {one: [len(row) for row in _split(told, one, whole=False)] for one in DELIMITERS}
    equal = [x for x, each in counts.items() if each and min(each) == max(each) > 1]
    if not equal:
        equal = [one for one, each in counts.items() if each and each[0] > 1]
    if not equal:  # a title, or something other than rows
        equal = [one for one, each in counts.items() if 2 * sum(n > 1 for n in each) > len(each)]
    return equal[0] if len(equal) == 1 else None


def _split(told: Sequence[str], delimiter: str, *, whole: bool) -> list[list[str]]:
    """Split lines into rows of fields; drop the last row if it may be cut off (not `whole`)."""
    if len(delimiter) > 1:
        return [line.split(delimiter) for line in told]
    try:
        rows = list(csv.reader((line + "\n" for line in told), delimiter=delimiter))
    except csv.Error:  # a field longer than Python's limit
        return [line.split(delimiter) for line in told]
    rows = [row for row in rows if row]
    return rows if whole or len(rows) < 2 else rows[:-1]


# ---- Headers ----


CUSTOMARY = frozenset(
    {"src", "dst", "source", "target", "from", "to", "head", "tail", "subject", "predicate"}
    | {"object", "relation", "id", "node", "vertex", "label", "name", "user", "item", "page"}
    | {"row", "col", "column", "i", "j", "k", "l", "key", "value", "val", "v", "w", "weight"}
    | {"rating", "count"}
)
"""Usual names of columns of entries and edges, folded; as data they would be unusual."""


def has_header(rows: Rows, named: Sequence[str]) -> bool | None:
    """True if the first row has names, False if it does not; None if that is unclear.

    It has names if it contains the names that the caller states; or if all of its words are usual
    names of columns of entries (`CUSTOMARY`); or if it has words above numbers and no numbers; or
    if it is the only row and has no numbers. It has none if it has numbers and no words above
    numbers. (Dates and truth values count as numbers.)

    >>> has_header([["src", "dst"], ["0", "1"]], []), has_header([["0", "1"], ["2", "3"]], [])
    (True, False)
    >>> has_header([["Source", "target"], ["ann", "bob"]], [])
    True
    >>> has_header([["ann", "bob"], ["bob", "cid"]], []) is None
    True
    """
    first, rest = rows[0], rows[1:]
    cells = {fold_name(cell.strip()) for cell in first}
    if named and all(fold_name(name) in cells for name in named):
        return True
    if cells <= CUSTOMARY and len(cells) == len(first):
        return True
    numbers = any(_kind(cell) not in ("text", "empty") for cell in first)
    if not rest:
        return not numbers
    above = False
    for n, cell in enumerate(first):
        kinds = [_kind(row[n]) for row in rest if n < len(row)]
        words, others = kinds.count("text"), len(kinds) - kinds.count("empty")
        above |= _kind(cell) == "text" and 2 * words < others
    return above if above != numbers else None


def _kind(cell: str) -> str:
    if not cell:
        return "empty"
    if INTEGER.fullmatch(cell):
        return "integer"
    if NUMBER.fullmatch(cell):
        return "number"
    if TRUTH.fullmatch(cell):
        return "truth"
    return "time" if TIME.fullmatch(cell) else "text"


def _sampled_type(cells: Sequence[str]) -> str:
    kinds = {_kind(cell) for cell in cells} - {"empty"}
    if kinds and kinds <= {"integer", "number"}:
        return "BIGINT" if kinds == {"integer"} else "DOUBLE"
    if kinds == {"truth"}:
        return "BOOLEAN"
    if kinds == {"time"}:
        return "TIMESTAMP" if any(":" in cell for cell in cells) else "DATE"
    return "VARCHAR"


def _generate_names(width: int) -> list[str]:
    """The names that DuckDB gives to columns without a header."""
    digits = len(str(width - 1))
    return [f"column{n:0{digits}}" for n in range(width)]


def _header_names(where: str, cells: Sequence[str], named: Sequence[str]) -> list[str]:
    """The names in a header, made unique as in DuckDB.

    Raises:
        InputError: a name that the caller states occurs twice.
    """
    names = [cell.strip() or x for cell, x in zip(cells, _generate_names(len(cells)), strict=True)]
    stated, times = {fold_name(name) for name in named}, Counter(map(fold_name, names))
    for name in names:
        if fold_name(name) in stated and times[fold_name(name)] > 1:
            raise InputError(
                f"two columns have the name {name!r}",
                where=where,
                expected="different names",
                found=", ".join(cells),
                hint="leave out the names, so that ucle.table(path) takes columns from the left; "
                "or rename the columns in the file",
            )
    return unique_names(names, first=1)


def _given_names(where: str, names: Sequence[str], named: Sequence[str]) -> list[str]:
    """Name the columns of a file without a header after the stated names, from the left.

    Names such as ``column2`` keep denoting their own columns.
    """
    new = [name for name in dict.fromkeys(named) if name not in names]
    unnamed = [name for name in names if name not in named]
    if len(new) > len(unnamed):
        raise InputError(
            "more columns are named than there are",
            where=where,
            expected=f"names of at most {len(names)} columns",
            found=", ".join(named),
        )
    given = dict(zip(unnamed, new, strict=False))
    return [given.get(name, name) for name in names]


def empty_file(where: str) -> InputError:
    """The error for an empty file."""
    return InputError(
        "there is no row in this file, and no header",
        where=where,
        expected="a header, or rows",
        found="an empty file",
    )
