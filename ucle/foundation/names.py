"""Names that DuckDB can distinguish: it ignores the case of identifiers, even of quoted ones.

That holds for ASCII letters only: `größe` and `GRÖßE` are different names, `Größe` and `größe` are
the same.
"""

from __future__ import annotations

import secrets
import string
from collections.abc import Collection, Iterable
from itertools import count

_ASCII = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)


def folded(name: str) -> str:
    """Return the form of an identifier in which DuckDB compares it with others.

    >>> folded("GRÖßE")
    'grÖße'
    """
    return name.translate(_ASCII)


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
        while folded(name) in used:
            name = f"{stem}_{next(numbers)}"
        used.add(folded(name))
        unique.append(name)
    return unique


def numbered(stem: str, taken: Collection[str]) -> str:
    """Return the first of ``stem``, ``stem_1``, ``stem_2`` that is not taken, in exact spelling.

    >>> numbered("at", {"at", "at_1"}), numbered("at", {"At"})
    ('at_2', 'at')
    """
    if stem not in taken:
        return stem
    return next(name for n in count(1) if (name := f"{stem}_{n}") not in taken)
