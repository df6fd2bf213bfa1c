"""Remember the texts of statements that depend on names alone: a refresh runs the same ones."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import ParamSpec

MOST_TEXTS = 256
"""The most texts of a function that are remembered."""

P = ParamSpec("P")


def cached_text(make: Callable[P, str]) -> Callable[P, str]:
    """Remember the texts that a function returns by its arguments: names, and lists of names.

    To write a statement takes longer than to run it where there are few rows.
    """
    remembered: Callable[..., str] = lru_cache(MOST_TEXTS, typed=True)(make)  # 1 is not 1.0

    @wraps(make)
    def text_of(*arguments: P.args, **named: P.kwargs) -> str:
        own = (tuple(x) if isinstance(x, list) else x for x in arguments)
        return remembered(*own, **named)

    return text_of
