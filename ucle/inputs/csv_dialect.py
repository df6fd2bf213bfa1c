"""The form of a text file of rows: what separates its fields, its header, its comments.

Takes the first lines of a file and what the caller states; gives a `CsvFile` whose columns are
text. Nothing is guessed: where the lines do not tell the form by the rules below, the error shows
what to write. Rows further down have to be of the same form, or reading them is an error.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import TYPE_CHECKING

from ucle.database.session import Session
from ucle.errors import InputError
from ucle.foundation.names import folded, unique_names
from ucle.plan.sources import CsvFile
from ucle.sqlgen.csv_queries import files_query, lines_query, rows_query

if TYPE_CHECKING:
    from ucle.inputs.inputs import TableInput

SAMPLED = 200
"""Lines by which the form of a file is told."""

DELIMITERS = (",", "\t", ";", "|")

INTEGER = re.compile(r"\s*[+-]?\d+(_\d+)*\s*")
NUMBER = re.compile(r"\s*[+-]?((\d[\d_]*\.?\d*|\.\d+)(e[+-]?\d+)?|inf(inity)?|nan)\s*", re.I)
TRUTH = re.compile(r"\s*(true|false)\s*", re.I)
TIME = re.compile(r"\d{4}-\d\d-\d\d([ T]\d\d:\d\d(:\d\d(\.\d+)?)?)?")

Rows = Sequence[Sequence[str]]


@dataclass(frozen=True)
class SampledCsv:
    """A file that is read as text, with the first of its rows."""

    file: CsvFile
    rows: Rows

    @property
    def sampled_types(self) -> tuple[str, ...]:
        """The type of each column as far as the first rows tell it."""
        width = len(self.file.columns)
        return tuple(_sampled_type([row[n] for row in self.rows if n < len(row)])
                     for n in range(width))  # fmt: skip


def csv_form(
    session: Session, name: str, origin: CsvFile, spec: TableInput, labels: Sequence[str]
) -> SampledCsv:
    """The form of a text file, or of all that a pattern matches.

    Args:
        session: where the file is read.
        name: the tensor, for messages.
        origin: the file.
        spec: what the caller says of it.
        labels: labels of the tensor's axes, for messages.

    Raises:
        InputError: the lines do not tell the form, or files of a pattern have different ones.
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
                + _shown(first[1].file),
                found=f"in {path} {_shown(form.file)}",
                hint="one input for each form, or files written anew with the same first line",
            )
    if first is None:
        raise empty_file(where)
    return replace(first[1], file=replace(first[1].file, path=origin.path))


def _check_first_rows(session: Session, where: str, form: SampledCsv) -> None:
    """DuckDB reads the first rows of a file as they were read here.

    It counts lines in a way of its own where comments and empty lines come before a header.

    Raises:
        InputError: it reads others.
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
"""Rows of which it is looked at whether DuckDB reads them as they are."""


def _same(one: CsvFile, other: CsvFile) -> bool:
    return (one.skipped, one.delimiter, one.columns) == (
        other.skipped,
        other.delimiter,
        other.columns,
    )


def _shown(file: CsvFile) -> str:
    return f"{file.skipped} lines, then {', '.join(column for column, _ in file.columns)}"


def _form(
    where: str, origin: CsvFile, lines: list[str], spec: TableInput, labels: Sequence[str]
) -> SampledCsv:
    """The form of one file by its first lines."""
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
    """Whether the first row is a header, and the names of the columns.

    Args:
        where: the file, for messages.
        path: likewise.
        rows: the first ones.
        line: the first of them, as it stands.
        spec: what the caller says.

    Raises:
        InputError: it is not clear, or a name is there twice that the caller states, or he states
            more than there are.
    """
    keys = (column if isinstance(column, str) else column[1] for column in spec.columns or ())
    named = [*keys, *([spec.value] if isinstance(spec.value, str) else [])]
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
    names = _header_names(where, rows[0], named) if header else _unnamed(len(rows[0]))
    return header, _given_names(where, names, named) if spec.header is False else names


def _is_row(line: str, comment: str) -> bool:
    return bool(_without(line, comment).strip())


def is_comment(line: str, comment: str) -> bool:
    """Whether a line begins with a comment; where no sign is stated there are none."""
    return bool(comment) and line.startswith(comment)


def _without(line: str, comment: str) -> str:
    return line.partition(comment)[0] if comment else line


# ---- Comments ----


def comment_sign(
    where: str, path: str, lines: Sequence[str], spec: TableInput, labels: Sequence[str] = ()
) -> str:
    """What begins a comment: nothing unless it is stated.

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
"""Characters of a line that messages show."""


def _call(path: str, told: Sequence[str], spec: TableInput, labels: Sequence[str]) -> str:
    """The call of `ucle.table` that reads a file of these rows."""
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
    """What separates the fields.

    It is what all of the first lines have equally often, or what the first line has.

    Raises:
        InputError: several characters may be meant, or there are only blanks.
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
            hint=f"{call} reads fields between blanks",
        )
    return ","


def _candidate(path: str, told: Sequence[str]) -> str | None:
    """The one character that separates the fields by the rule; None where there is not one."""
    if re.search(r"\.tsv\b", path, re.IGNORECASE):
        return "\t"
    counts = {one: [len(row) for row in _split(told, one, whole=False)] for one in DELIMITERS}
    equal = [x for x, each in counts.items() if each and min(each) == max(each) > 1]
    if not equal:
        equal = [one for one, each in counts.items() if each and each[0] > 1]
    if not equal:  # a title, or something else than rows
        equal = [one for one, each in counts.items() if 2 * sum(n > 1 for n in each) > len(each)]
    return equal[0] if len(equal) == 1 else None


def _split(told: Sequence[str], delimiter: str, *, whole: bool) -> list[list[str]]:
    """Lines as rows of fields; the last is left out where a field may not be `whole`."""
    if len(delimiter) > 1:
        return [line.split(delimiter) for line in told]
    try:
        rows = list(csv.reader((line + "\n" for line in told), delimiter=delimiter))
    except csv.Error:  # a field that is longer than Python reads
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
"""Names that columns of entries and edges have, folded: as words of data they would be odd."""


def has_header(rows: Rows, named: Sequence[str]) -> bool | None:
    """Whether the first row has names; None where that is not clear.

    It has if the names that the caller states are in it; or if all of its words are names that
    columns of entries customarily have (`CUSTOMARY`); or if there are words in it above numbers
    and no numbers; or if it is the only row, and without numbers. It has not if there are numbers
    in it, and no words above numbers. (Dates and truth values count as numbers.)

    >>> has_header([["src", "dst"], ["0", "1"]], []), has_header([["0", "1"], ["2", "3"]], [])
    (True, False)
    >>> has_header([["Source", "target"], ["ann", "bob"]], [])
    True
    >>> has_header([["ann", "bob"], ["bob", "cid"]], []) is None
    True
    """
    first, rest = rows[0], rows[1:]
    cells = {folded(cell.strip()) for cell in first}
    if named and all(folded(name) in cells for name in named):
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
    return {frozenset({"truth"}): "BOOLEAN", frozenset({"time"}): "TIMESTAMP"}.get(
        frozenset(kinds), "VARCHAR"
    )


def _unnamed(width: int) -> list[str]:
    """The names of columns without a header, as DuckDB gives them."""
    digits = len(str(width - 1))
    return [f"column{n:0{digits}}" for n in range(width)]


def _header_names(where: str, cells: Sequence[str], named: Sequence[str]) -> list[str]:
    """The names in a header, each once as in DuckDB.

    Raises:
        InputError: a name that the caller states is there twice.
    """
    names = [cell.strip() or x for cell, x in zip(cells, _unnamed(len(cells)), strict=True)]
    stated, times = {folded(name) for name in named}, Counter(map(folded, names))
    for name in names:
        if folded(name) in stated and times[folded(name)] > 1:
            raise InputError(
                f"two columns have the name {name!r}",
                where=where,
                expected="different names",
                found=", ".join(cells),
                hint="ucle.table(path) without names takes columns from the left; or write the "
                "file with other names",
            )
    return unique_names(names, first=1)


def _given_names(where: str, names: Sequence[str], named: Sequence[str]) -> list[str]:
    """The columns of a file without a header: the names that the caller states, from the left.

    Names such as ``column2`` stay those of their columns.
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
    """The error for a file that holds nothing."""
    return InputError(
        "there is no row in this file, and no header",
        where=where,
        expected="a header, or rows",
        found="an empty file",
    )
