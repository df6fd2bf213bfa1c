"""The columns of a table as DuckDB describes them, and the values that their types can hold.

Only names and types are inspected. `ucle.inputs.column_roles` decides the role of each column.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

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
UNFIT_KEYS = ("FLOAT", "DOUBLE", "DECIMAL", "STRUCT", "MAP", "UNION", "BLOB", "BOOLEAN")
_PAIR = re.compile(r"^STRUCT\(re (FLOAT|DOUBLE), im \1\)$", re.IGNORECASE)


def nesting(type_: str) -> int:
    """The nesting depth of lists in a column type.

    >>> nesting("FLOAT[3][]")
    2
    """
    return len(re.findall(r"\[\d*\]", type_))


def element_of(type_: str) -> str:
    """The type of the elements of lists of any depth; of other types the type itself.

    >>> element_of("DECIMAL(9,2)[3][]")
    'DECIMAL(9,2)'
    """
    return re.sub(r"\[\d*\]", "", type_)


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


def is_pair(type_: str) -> bool:
    """True if a column holds complex numbers, as pairs (re, im)."""
    return _PAIR.match(element_of(type_)) is not None


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
