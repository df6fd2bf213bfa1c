"""Names that DuckDB can distinguish: it ignores the case of identifiers, even of quoted ones.

That holds for ASCII letters only: `größe` and `GRÖßE` are different names, `Größe` and `größe` are
the same.
"""

from __future__ import annotations

import re
import secrets
import string
from collections.abc import Collection, Iterable
from itertools import count

_WORDS = """
all analyse analyze and anti any array as asc asof asymmetric at authorization binary both
by case cast check collate collation column columns concurrently constraint create cross
default deferrable desc describe distinct do else end except false fetch for foreign freeze
from full generated glob group having ilike in initially inner intersect into is isnull join
lambda lateral leading left like limit map natural not notnull null offset on only or order
outer overlaps pivot pivot_longer pivot_wider placing positional primary qualify references
returning right select semi show similar some struct summarize symmetric table tablesample
then to trailing true try_cast tuple union unique unpack unpivot using variadic verbose when
where window with
"""
RESERVED = frozenset(_WORDS.split())
"""The words that DuckDB takes for the name of a column only in quotation marks."""

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ASCII = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)


def fold_name(name: str) -> str:
    """Return the form of an identifier in which DuckDB compares it with others.

    >>> fold_name("GRÖßE")
    'grÖße'
    """
    return name.translate(_ASCII)


def sql_name(name: str) -> str:
    """Write the name of a column as SQL reads it, in quotation marks where it needs them.

    >>> sql_name("weight"), sql_name("order"), sql_name("Parent Part")
    ('weight', '"order"', '"Parent Part"')
    """
    if _PLAIN.fullmatch(name) and fold_name(name) not in RESERVED:
        return name
    return '"' + name.replace('"', '""') + '"'


def fresh_prefix() -> str:
    """Return a unique prefix for the names of temporary objects."""
    return f"ucle_{secrets.token_hex(4)}_"


def unique_names(
    names: Iterable[str], taken: set[str] | None = None, *, first: int = 2
) -> list[str]:
    """Number names so that no two are equal when their case is folded.

    Args:
        names: the names wanted.
        taken: folded names that are in use; the new ones are added.
        first: the number of the first name that is already taken.

    >>> unique_names(["i", "I", "j"])
    ['i', 'I_2', 'j']
    """
    used = set() if taken is None else taken
    unique = []
    for stem in names:
        numbers = count(first)
        name = stem
        while fold_name(name) in used:
            name = f"{stem}_{next(numbers)}"
        used.add(fold_name(name))
        unique.append(name)
    return unique


def find_free_name(stem: str, taken: Collection[str]) -> str:
    """Return the first of ``stem``, ``stem_1``, ``stem_2`` that is not taken, in exact spelling.

    >>> find_free_name("at", {"at", "at_1"}), find_free_name("at", {"At"})
    ('at_2', 'at')
    """
    if stem not in taken:
        return stem
    return next(name for n in count(1) if (name := f"{stem}_{n}") not in taken)
