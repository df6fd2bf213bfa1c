"""Names that DuckDB can tell apart: it folds the case of identifiers, even of quoted ones."""

from __future__ import annotations

import secrets
from collections.abc import Iterable


def fresh_prefix() -> str:
    """A prefix for the names of temporary objects that nobody else has."""
    return f"ucle_{secrets.token_hex(4)}_"


def unique_names(names: Iterable[str], taken: set[str] | None = None) -> list[str]:
    """Number names so that no two are the same when their case is folded.

    Args:
        names: the names wanted.
        taken: folded names that are in use; the new ones are added.

    >>> unique_names(["i", "I", "j"])
    ['i', 'I_2', 'j']
    """
    used = set() if taken is None else taken
    unique = []
    for wanted in names:
        name, number = wanted, 1
        while name.casefold() in used:
            number += 1
            name = f"{wanted}_{number}"
        used.add(name.casefold())
        unique.append(name)
    return unique
