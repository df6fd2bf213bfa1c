"""Which columns of a table hold a tensor: keys, then numbers or arrays.

Takes an input as `ucle.inputs` describes it and the columns that DuckDB reports, and gives a
`TableSource`. Only names and types are looked at.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ucle.dtypes import DType
from ucle.errors import InputError, ValueTypeError, did_you_mean
from ucle.inputs import Described, TableInput
from ucle.sources import TableSource

ANEW = "program.recompile() compiles the program again on this data"
"""What to do about data that a program was not compiled for."""


@dataclass(frozen=True)
class Column:
    """A column of a table: its name and DuckDB's name of its type."""

    name: str
    type: str


INTEGER_TYPES = frozenset(
    {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT"}
    | {"UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "UHUGEINT"}
)
UNFIT_KEYS = ("FLOAT", "DOUBLE", "DECIMAL", "STRUCT", "MAP", "UNION", "BLOB", "BOOLEAN")
_PAIR = re.compile(r"^STRUCT\(re (FLOAT|DOUBLE), im \1\)$", re.IGNORECASE)


def _nesting(type_: str) -> int:
    """How many lists deep a column type is."""
    return len(re.findall(r"\[\d*\]", type_))


def value_type(type_: str) -> DType | None:
    """The element type of a column of numbers or of lists of them; None for other columns.

    >>> value_type("FLOAT[3]"), value_type("DECIMAL(9,2)"), value_type("VARCHAR")
    (<DType.FLOAT32: 'float32'>, <DType.FLOAT64: 'float64'>, None)
    """
    element = re.sub(r"\[\d*\]", "", type_)
    if element in INTEGER_TYPES:
        return DType.INT64
    if pair := _PAIR.match(element):
        return DType.COMPLEX64 if pair[1].upper() == "FLOAT" else DType.COMPLEX128
    if element.startswith("DECIMAL"):
        return DType.FLOAT64
    return {"BOOLEAN": DType.BOOL, "FLOAT": DType.FLOAT32, "DOUBLE": DType.FLOAT64}.get(element)


def _is_number(type_: str) -> bool:
    return value_type(type_) is not None and not _nesting(type_)


def table_source(
    name: str,
    described: Described,
    columns: Sequence[Column],
    labels: Sequence[str],
) -> TableSource:
    """Find keys and values among the columns of a table.

    Args:
        name: the tensor, for messages.
        described: the input.
        columns: what the relation has.
        labels: labels of the tensor's axes; their number is the rank.

    Returns:
        The source; `dense` is empty where the shape of an array column must come from the data.

    Raises:
        InputError: an unknown column, or columns that do not fit the rank.
        ValueTypeError: key columns that are not integers, values that are not numbers.
    """
    assert described.origin is not None
    spec, where = described.spec, f"input {name}, {described.origin}"
    for label, _ in spec.dictionaries:
        _check_label(label, labels, "coordinates", where)
    find = functools.partial(_find, columns, where)
    keys, value = _assign_columns(spec, columns, labels, where, find)
    _check_types(keys, value, where)
    nesting = _nesting(value.type) if value else 0
    dense = declared_shape(spec, value, nesting)
    rank = len(keys) + (len(dense) if spec.shape is not None else nesting)
    if rank != len(labels):
        raise InputError(
            f"the columns make a tensor of rank {rank}",
            where=where,
            expected=f"rank {len(labels)}: {name}[{','.join(labels)}]",
            found="keys "
            + (", ".join(key.name for key in keys) or "none")
            + (f", values {value.name} {value.type}" if value else ", no values"),
            hint="name the columns with ucle.table(relation, columns, value)",
        )
    stored = value_type(value.type) if value else DType.FLOAT64
    assert stored is not None
    return TableSource(
        described.origin,
        tuple(key.name for key in keys),
        value.name if value else None,
        dense,
        nesting,
        spec.sum_duplicates,
        spec.dtype or stored,
        pairs=stored.kind == "c",
        encoded=tuple(
            spec.encode
            or axis in spec.encoded_keys
            or label in dict(spec.dictionaries)
            or key.type not in INTEGER_TYPES
            for axis, (label, key) in enumerate(zip(labels, keys, strict=False))
        ),
    )


def check_columns(name: str, source: TableSource, columns: Sequence[Column]) -> Column | None:
    """Check that a relation still has the columns that a source was made from.

    Returns:
        The column of values, if there is one.

    Raises:
        InputError: a column is gone.
        ValueTypeError: a column has a type now that does not serve.
    """
    where = f"input {name}, {source.origin}"
    keys = [_find(columns, where, key) for key in source.keys]
    value = _find(columns, where, source.value) if source.value is not None else None
    _check_types(keys, value, where)
    for key, encoded in zip(keys, source.encoded, strict=True):
        if not encoded and key.type not in INTEGER_TYPES:
            raise ValueTypeError(
                "a key column held integers when the program was compiled",
                where=f"{where}, column {key.name}",
                expected="an integer type",
                found=key.type,
                hint=ANEW,
            )
    if value and _nesting(value.type) != source.nesting:
        raise ValueTypeError(
            "the value column holds arrays of another rank than when the program was compiled",
            where=f"{where}, column {value.name}",
            expected=f"lists {source.nesting} deep" if source.nesting else "numbers",
            found=value.type,
            hint=ANEW,
        )
    return value


def _find(columns: Sequence[Column], where: str, name: str) -> Column:
    for column in columns:
        if column.name.casefold() == name.casefold():
            return column
    raise InputError(
        f"there is no column {name!r}",
        where=where,
        expected="one of " + ", ".join(column.name for column in columns),
        found=name,
        hint=did_you_mean(name, [column.name for column in columns]),
    )


def _check_label(label: str, labels: Sequence[str], argument: str, where: str) -> None:
    if label not in labels:
        raise InputError(
            f"{argument} names the label {label!r}",
            where=where,
            expected="labels of the tensor: " + ", ".join(labels),
            found=label,
            hint=did_you_mean(label, labels),
        )


def _check_types(keys: Sequence[Column], value: Column | None, where: str) -> None:
    for key in keys:
        if _nesting(key.type) or key.type.startswith(UNFIT_KEYS):
            raise ValueTypeError(
                "a key column does not hold coordinates",
                where=f"{where}, column {key.name}",
                expected="integers, or strings, dates or the like, which are numbered",
                found=key.type,
                hint="name the key columns: ucle.table(relation, columns, value)",
            )
    if value and value_type(value.type) is None:
        raise ValueTypeError(
            "the value column does not hold numbers",
            where=f"{where}, column {value.name}",
            expected="a numeric type, pairs STRUCT(re DOUBLE, im DOUBLE), or lists of either",
            found=value.type,
            hint="name the value column: ucle.table(relation, columns, value)",
        )


def declared_shape(spec: TableInput, value: Column | None, nesting: int) -> tuple[int, ...]:
    """The shape of the arrays, as far as the caller or the column type tells it."""
    if spec.shape is not None or not nesting or value is None:
        return spec.shape or ()
    # DOUBLE[3][2] is two arrays of three: the outermost comes last.
    sizes = tuple(reversed(re.findall(r"\[(\d*)\]", value.type)))
    return tuple(map(int, sizes)) if all(sizes) else ()


def _assign_columns(
    spec: TableInput,
    columns: Sequence[Column],
    labels: Sequence[str],
    where: str,
    find: Any,
) -> tuple[list[Column], Column | None]:
    rank = len(labels)
    value = find(spec.value) if spec.value is not None else None
    if spec.columns is not None:
        names = list(spec.columns)
        if names and isinstance(names[0], tuple):
            by_label: dict[str, str] = dict(names)  # type: ignore[arg-type]
            for label in by_label:
                _check_label(label, labels, "columns", where)
            names = [by_label[label] for label in labels if label in by_label]
        keys = [find(name) for name in names]
        if value is None and len(keys) < rank:
            value = next((c for c in columns if _nesting(c.type)), None)
        if value is None:
            rest = [c for c in columns if c not in keys]
            value = rest[0] if rest and _is_number(rest[0].type) and len(rest) == 1 else None
        return keys, value
    others = [column for column in columns if value is None or column.name != value.name]
    if value is None:
        # The first array column holds the trailing axes; without one the columns are i, j, ..., v.
        arrays = [p for p, c in enumerate(others[: rank + 1]) if _nesting(c.type)]
        position = arrays[0] if arrays else rank
        if position > len(others):
            raise InputError(
                "the table has too few columns",
                where=where,
                expected=f"{rank} key columns, and a value column unless every value is 1",
                found=", ".join(c.name for c in others) or "no column",
                hint="name the columns: ucle.table(relation, columns, value)",
            )
        value = others[position] if position < len(others) else None
        return others[:position], value
    nested = len(spec.shape) if spec.shape is not None else _nesting(value.type)
    return others[: rank - nested], value
