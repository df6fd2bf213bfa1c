"""The columns of a table as DuckDB describes them: values that they can hold, and kinds of keys.

Only names and types are inspected. `ucle.inputs.column_roles` decides the role of each column.

Keys that share a label are comparable by kind: integers of any width, dates and timestamps without
a time zone, timestamps with one, text and the values of categories. Any other type is comparable
only with itself. Keys of one kind are read in the narrowest type of the kind that holds all of
them; keys of two kinds are refused before anything runs. So text is never read as a number or a
date, and no answer depends on a session's time zone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from ucle.foundation.dataclasses import dataclass
from ucle.foundation.dtypes import DType


@dataclass(frozen=True)
class Column:
    """A column of a table: its name and DuckDB's name of its type."""

    name: str
    type: str


WIDE_INTEGERS = frozenset({"HUGEINT", "UBIGINT", "UHUGEINT"})
"""Integer types with numbers outside the range of int64."""

INTEGER_TYPES = WIDE_INTEGERS | {
    *("TINYINT", "SMALLINT", "INTEGER", "BIGINT"),
    *("UTINYINT", "USMALLINT", "UINTEGER"),
}
EXACT_IN: dict[str, frozenset[str]] = {
    "DOUBLE": frozenset({"TINYINT", "SMALLINT", "INTEGER", "UTINYINT", "USMALLINT", "UINTEGER"}),
    "FLOAT": frozenset({"TINYINT", "SMALLINT", "UTINYINT", "USMALLINT"}),
}
"""Integer types whose numbers a type of floats represents exactly."""

UNFIT_KEYS = ("FLOAT", "DOUBLE", "DECIMAL", "STRUCT", "MAP", "UNION", "BLOB", "BOOLEAN")
MOST_TYPES = 1 << 10
"""Names of types about which answers are kept: the columns of wide tables share a few."""

_PAIR = re.compile(r"^STRUCT\(re (FLOAT|DOUBLE), im \1\)$", re.IGNORECASE)


@lru_cache(MOST_TYPES)
def nesting(type_: str) -> int:
    """The nesting depth of lists in a column type.

    >>> nesting("FLOAT[3][]")
    2
    """
    return len(re.findall(r"\[\d*\]", type_))


def array_sizes(type_: str) -> tuple[int, ...]:
    """The lengths of arrays that a type states, the outermost first; empty if one is not stated.

    >>> array_sizes("FLOAT[3][2]"), array_sizes("FLOAT[3][]"), array_sizes("FLOAT")
    ((2, 3), (), ())
    """
    sizes = tuple(reversed(re.findall(r"\[(\d*)\]", type_)))  # FLOAT[3][2] is two arrays of three
    return tuple(map(int, sizes)) if all(sizes) else ()


def element_of(type_: str) -> str:
    """The type of the elements of lists of any depth; of other types the type itself.

    >>> element_of("DECIMAL(9,2)[3][]")
    'DECIMAL(9,2)'
    """
    return re.sub(r"\[\d*\]", "", type_)


@lru_cache(MOST_TYPES)
def value_type(type_: str) -> DType | None:
    """The element type of a column of numbers or of lists of them; None for other columns.

    >>> value_type("FLOAT[3]"), value_type("DECIMAL(9,2)"), value_type("VARCHAR")
    (<DType.FLOAT32: 'float32'>, <DType.FLOAT64: 'float64'>, None)
    """
    element = element_of(type_)
    if element in INTEGER_TYPES:
        return DType.INT64
    if pair := _PAIR.match(element):
        return DType.COMPLEX64 if pair[1].upper() == "FLOAT" else DType.COMPLEX128
    if element.startswith("DECIMAL"):
        return DType.FLOAT64
    return {"BOOLEAN": DType.BOOL, "FLOAT": DType.FLOAT32, "DOUBLE": DType.FLOAT64}.get(element)


def is_of_type(type_: str, dtype: DType) -> bool:
    """True if a column of numbers has the type that DuckDB has for an element type.

    >>> is_of_type("BIGINT", DType.INT64), is_of_type("INTEGER", DType.INT64)
    (True, False)
    """
    return type_ in ("BIGINT", "BOOLEAN", "FLOAT", "DOUBLE") and value_type(type_) is dtype


@lru_cache(MOST_TYPES)
def is_pair(type_: str) -> bool:
    """True if a column holds complex numbers, as pairs (re, im)."""
    return _PAIR.match(element_of(type_)) is not None


@lru_cache(MOST_TYPES)
def narrowed_type(type_: str, dtype: DType) -> str | None:
    """The element type of a column if an element type cannot hold all of its numbers; else None.

    For floats, rounding is acceptable; only numbers beyond their range do not fit.

    >>> narrowed_type("DOUBLE[3]", DType.INT64), narrowed_type("BIGINT", DType.FLOAT32)
    ('DOUBLE', None)
    """
    element, stored = element_of(type_), value_type(type_)
    if stored is None or stored is DType.BOOL:
        return None
    if dtype.real is DType.FLOAT64:
        narrower = False
    elif dtype.real is DType.FLOAT32:
        narrower = stored.real is DType.FLOAT64 and not element.startswith("DECIMAL")
        narrower |= element == "UHUGEINT"
    else:
        narrower = stored is not dtype or element in WIDE_INTEGERS
    return element if narrower else None


INTEGERS = (
    ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT"),
    ("UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "UHUGEINT"),
)
"""Signed and unsigned integers, in the order of their widths."""

TIMES = ("DATE", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP", "TIMESTAMP_NS")
"""Points in time without a zone; DuckDB's TIMESTAMP has microseconds."""

INSTANTS = ("TIMESTAMP WITH TIME ZONE", "TIMESTAMPTZ_NS")
"""Points in time with a zone, which count from the same moment in every zone."""

NOTHING = '"NULL"'
"""The type of a column with only NULLs, which is comparable with every other type."""


KINDS_OF_TIME = frozenset(
    {"dates and timestamps", "timestamps with a time zone", "TIME", "TIME_NS"}
)
"""The kinds of keys along which a program may run, move and look back."""


def key_kind(type_: str) -> str:
    """The kind of a key column, from DuckDB's name of its type.

    >>> key_kind("UBIGINT"), key_kind("ENUM('a', 'b')"), key_kind("DATE"), key_kind("UUID")
    ('integers', 'text', 'dates and timestamps', 'UUID')
    """
    if any(type_ in widths for widths in INTEGERS):
        return "integers"
    if type_ == "VARCHAR" or re.match(r"ENUM\b", type_):
        return "text"
    if type_ in INSTANTS:
        return "timestamps with a time zone"
    return "dates and timestamps" if type_ in TIMES else type_


def common_key_type(types: Iterable[str]) -> str | None:
    """The type in which keys of these types are compared; None if there is none.

    >>> common_key_type(["INTEGER", "UINTEGER"]), common_key_type(["DATE", "TIMESTAMP"])
    ('BIGINT', 'TIMESTAMP')
    >>> common_key_type(["INTEGER", "VARCHAR"])
    """
    different = [type_ for type_ in dict.fromkeys(types) if type_ != NOTHING]
    if len(different) < 2:
        return different[0] if different else NOTHING
    kinds = {key_kind(type_) for type_ in different}
    if len(kinds) > 1:
        return None
    match kinds.pop():
        case "integers":
            return _common_integers(different)
        case "text":
            return "VARCHAR"
        case "dates and timestamps":
            return "TIMESTAMP_NS" if "TIMESTAMP_NS" in different else "TIMESTAMP"
        case "timestamps with a time zone":
            return INSTANTS[-1]
    return None


def _common_integers(types: list[str]) -> str | None:
    signed, unsigned = INTEGERS
    below = [unsigned.index(type_) for type_ in types if type_ in unsigned]
    widths = [signed.index(type_) for type_ in types if type_ in signed]
    if not widths:
        return unsigned[max(below)]
    most = max([*widths, *(width + 1 for width in below)])
    return signed[most] if most < len(signed) else None
