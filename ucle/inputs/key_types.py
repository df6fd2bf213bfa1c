"""Types of key columns that share a label, and the type in which they are compared.

Keys are comparable by kind: integers of any width, dates and timestamps without a time zone,
timestamps with one, text and the values of categories. Any other type is comparable only with
itself. Keys of one kind are read in the narrowest type of the kind that holds all of them; keys of
two kinds are refused before anything runs. So text is never read as a number or a date, and no
answer depends on a session's time zone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

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
