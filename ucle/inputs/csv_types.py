"""The types of the columns of text files: a type that fits all values of the column.

The first rows suggest the type of a column; one scan of the whole file verifies it, and where it
does not fit, a second scan counts the kinds of values. So a file of integers that ends with 0.25
has floats, and one that ends with a word is refused with the line. A column is text as soon as one
of the first rows has a word in it. A stated `dtype` decides how values are read. The types are
remembered for as long as the file stays the same.
"""

from __future__ import annotations

import csv
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ucle.database.data_versions import file_state
from ucle.database.session import Session
from ucle.errors import InputError, ValueTypeError
from ucle.foundation.caches import BoundedCache
from ucle.foundation.dataclasses import dataclass
from ucle.inputs.column_roles import stated_dictionaries
from ucle.inputs.column_types import Column
from ucle.inputs.csv_dialect import SAMPLED, SampledCsv, csv_form, is_comment
from ucle.inputs.table_input import TableInput
from ucle.inputs.text_words import read_unpacked
from ucle.inputs.unfit_columns import key_hint, value_hint
from ucle.inputs.wide_tables import read_columns
from ucle.plan.sources import CsvFile
from ucle.sqlgen import file_queries as sql

MOST_BYTES = 1 << 22
"""Bytes of the types of all files that a process keeps."""

_typed = BoundedCache[CsvFile](MOST_BYTES)


@dataclass(frozen=True)
class _Kinds:
    """What the columns of a file hold, whatever they are used for."""

    types: Mapping[str, str]
    """An empty string for a column without any value."""
    counts: Mapping[str, Mapping[str, int]]
    """The number of values of each of `file_queries.KINDS`, for columns that no guess fits."""


_kinds = BoundedCache[_Kinds](MOST_BYTES)


def typed_csv(
    session: Session,
    name: str,
    origin: CsvFile,
    spec: TableInput,
    labels: Sequence[str],
    foreign: Mapping[str, str],
) -> CsvFile:
    """Determine the format of a text file, its columns, and the types of the columns to read.

    Args:
        session: where the file is read.
        name: the tensor, for messages.
        origin: the file.
        spec: the caller's options for it.
        labels: labels of the tensor's axes.
        foreign: columns that the user did not put into the data, with a description of each.

    Raises:
        InputError: the file is not of one format, or the roles of its columns are ambiguous.
        ValueTypeError: a value is not a number, or a coordinate is a fraction.
    """
    state = file_state(origin.path)
    named = (spec.columns, spec.value, spec.columns_as, spec.values, spec.ends)
    stated = (spec.dtype, spec.delimiter, spec.header, spec.comment)
    treated = (spec.encode, spec.encoded_keys, spec.dictionaries, spec.shape, spec.tiles)
    key = (origin.path, state, stated, named, treated, tuple(labels), tuple(foreign))
    known = _typed.get(key) if state is not None else None
    if known is None:
        form = csv_form(session, name, origin, spec, labels)
        known = _read_with_types(session, name, form, spec, labels, foreign, state)
        if state is not None and state == file_state(origin.path):
            _typed.put(key, known)
    return known


def _read_with_types(
    session: Session,
    name: str,
    form: SampledCsv,
    spec: TableInput,
    labels: Sequence[str],
    foreign: Mapping[str, str],
    state: Hashable,
) -> CsvFile:
    where, file = f"input {name}, {form.file}", form.file
    sampled = dict(zip((column for column, _ in file.columns), form.sampled_types, strict=True))
    columns = [Column(column, type_) for column, type_ in sampled.items()]
    columns += [Column(folder, "VARCHAR") for folder in foreign if folder not in sampled]
    keys, values = read_columns(spec, columns, labels, where, foreign)
    values = [value for value in values if value.name in sampled]
    read = [key.name for key in keys if key.name in sampled]
    read += [value.name for value in values]
    if spec.dtype is not None and spec.dtype.kind in "fc":
        sampled |= {value.name: "DOUBLE" for value in values}
    counted = _Counted(session, where, form, sampled, spec)
    types = counted.types(tuple(dict.fromkeys(read)), state)
    numbered, _ = stated_dictionaries(spec.dictionaries, labels, [key.name for key in keys])
    for axis, key in enumerate(keys):
        encoded = spec.encode or axis in spec.encoded_keys or axis in numbered
        if types.get(key.name) == "":  # the column has no values
            types[key.name] = "VARCHAR" if encoded else "BIGINT"
        if types.get(key.name) == "DOUBLE":
            raise counted.no_position(key.name)
    for value in values:
        type_ = types[value.name] = types[value.name] or "DOUBLE"
        if spec.columns_as is None or type_ in VALUE_TYPES:  # others are refused with all columns
            counted.check_value(value.name, type_)
    return sql.with_types(file, types)


class _Counted:
    """Counts of the kinds of values in columns, and errors that show values of the wrong kind."""

    def __init__(
        self,
        session: Session,
        where: str,
        form: SampledCsv,
        sampled: Mapping[str, str],
        spec: TableInput,
    ) -> None:
        self.session = session
        self.where = where
        self.file = form.file
        self.sampled = sampled
        self.spec = spec
        self.floats = spec.dtype is not None and spec.dtype.kind in "fc"
        self.counts: dict[str, Mapping[str, int]] = {}

    def types(self, names: Sequence[str], state: Hashable) -> dict[str, str]:
        """The types of columns; an empty string for a column without any value."""
        guessed = tuple(self.sampled[name] for name in names)
        key = (self.file, state, names, guessed, self.floats)
        known = _kinds.get(key) if state is not None else None
        if known is None:
            known = self._find(names)
            if state is not None and state == file_state(self.file.path):
                _kinds.put(key, known)
        self.counts |= known.counts
        return dict(known.types)

    def _find(self, names: Sequence[str]) -> _Kinds:
        guessed = {x: self.sampled[x] for x in names if self.sampled[x] != "VARCHAR"}
        fitting = self._fitting(guessed)
        fitting |= self._words([name for name in names if name not in guessed])
        counts = self._count([name for name in names if name not in fitting])
        return _Kinds(
            {name: fitting.get(name) or self._type(counts[name]) for name in names}, counts
        )

    def _count(self, names: Sequence[str]) -> dict[str, Mapping[str, int]]:
        """Count the kinds of all values of some columns."""
        if not names:
            return {}
        row = iter(self._read(sql.survey_query(self.file, names)))
        return {name: {kind: int(next(row) or 0) for kind in sql.KINDS} for name in names}

    def _words(self, names: Sequence[str]) -> dict[str, str]:
        """The type of those of some columns in which a value of the first rows is a word.

        Such a column is text, whatever follows: there is no need to count.
        """
        if not names:
            return {}
        found = self._read(sql.words_query(self.file, names, SAMPLED))
        return {name: "VARCHAR" for name, each in zip(names, found, strict=True) if each}

    def _fitting(self, guessed: Mapping[str, str]) -> dict[str, str]:
        """The guessed types that fit all values of their columns."""
        if not guessed:
            return {}
        try:
            fits = self._read(sql.fits_query(self.file, guessed))
        except InputError as error:
            if "onver" not in str(error.found):  # not from a text that is no number
                raise
            return {}
        return {name: guessed[name] for name, each in zip(guessed, fits, strict=True) if each}

    def _type(self, counts: Mapping[str, int]) -> str:
        present = counts["present"]
        if not present:
            return ""
        for kind, type_ in TYPES.items():
            if counts[kind] == present and not (type_ == "BIGINT" and self.floats):
                return type_
        return "TIMESTAMP" if counts["dates"] + counts["times"] == present else "VARCHAR"

    def check_value(self, name: str, type_: str) -> None:
        """Check that all values are numbers or truth values, and that none is silently rounded.

        Raises:
            ValueTypeError: a value is not, or would be rounded.
        """
        counts = self.counts.get(name, {})
        if type_ == "DOUBLE" and counts.get("rounded") and not self.floats:
            raise self._build_error(
                name,
                sql.condition("rounded", name),
                "a number has more digits than the type of its column",
                "integers within 64 bits, or numbers that float64 holds",
                "ucle.table(..., dtype=float) rounds such numbers",
            )
        if type_ in VALUE_TYPES:
            return
        counts = counts or self._count([name])[name]
        kinds = ["truths"] if 2 * counts["truths"] > counts["present"] else ["floats"]
        raise self._build_error(
            name,
            sql.not_of(kinds, name),
            "the value column does not hold numbers",
            "true or false in every row" if kinds == ["truths"] else "a number in every row",
            value_hint(Column(name, type_), self.spec),
        )

    def no_position(self, name: str) -> ValueTypeError:
        """The error for a key column with fractions."""
        return self._build_error(
            name,
            sql.not_of(["integers"], name),
            "a key column does not hold coordinates",
            "integers, or strings, dates or the like, which are numbered",
            key_hint(Column(name, "DOUBLE"), self.spec),
        )

    def _build_error(
        self, name: str, wanted: Any, message: str, expected: str, hint: str
    ) -> ValueTypeError:
        place, value = "", None
        for path in self._paths():
            file = replace(self.file, path=path)
            found = self.session.read(sql.first_query(file, name, wanted), self.where)
            if found:
                row, value = found[0]
                line = _line_of(file, int(row))
                place = f"line {line}" if line else f"row {row}"
                place += f" of {path}" if path != self.file.path else ""
                break
        if isinstance(value, str) and value.count(",") == 1 and not self.floats:
            hint += "; decimals are written with a point, and thousands without a comma"
        return ValueTypeError(
            message,
            where=f"{self.where}, column {name}",
            expected=expected,
            found=f"{value!r} in {place}",
            hint=hint,
        )

    def _paths(self) -> list[str]:
        path = self.file.path
        if not any(sign in path for sign in "*?["):
            return [path]
        return [str(row[0]) for row in self.session.fetch(sql.files_query(path))]

    def _read(self, query: str) -> Sequence[Any]:
        return self.session.read(query, self.where)[0]


VALUE_TYPES = frozenset({"BIGINT", "DOUBLE", "BOOLEAN", "HUGEINT"})
"""Types of columns that hold numbers."""

TYPES = {
    "int64": "BIGINT",
    "integers": "HUGEINT",
    "truths": "BOOLEAN",
    "floats": "DOUBLE",
    "dates": "DATE",
}
"""The type of a column whose values are all of a kind; the first match counts."""


def _line_of(file: CsvFile, row: int) -> int | None:
    """The line in which a row ends, from 1 on; None for remote files and files not in UTF-8."""
    try:
        text = read_unpacked(file.path).decode("utf-8-sig")
    except (OSError, ValueError):
        return None
    lines, begin, before = text.splitlines(keepends=True), 0, file.skipped
    while before and begin < len(lines):
        before -= not is_comment(lines[begin], file.comment)
        begin += 1
    lines = lines[begin:]
    if file.comment:  # a line that is only a comment is not a row
        lines = [line.partition(file.comment)[0] + "\n" for line in lines]
    try:
        reader = csv.reader(lines, delimiter=file.delimiter)
        for read in reader:
            row -= any(cell.strip() for cell in read) or len(read) > 1
            if not row:
                return begin + reader.line_num
    except (csv.Error, TypeError):
        return None
    return None
