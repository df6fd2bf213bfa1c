"""Whether a program still fits its data: how many entries there were, and how many there are.

What a program computes is right whatever the statistics say; which plan is the cheapest is not. The
numbers are by-products of checks that changed data has to pass anyway
(`ucle.inputs.unchanged_tables`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

FACTOR = 10.0
"""Times more or fewer entries that make statistics stale; `explain` points out such misses."""

LEAST_ENTRIES = 10_000
"""Entries below which no plan takes long enough for another to be worth the while."""


@dataclass(frozen=True)
class Drift:
    """An input whose entries have become many more or many fewer.

    >>> print(Drift("A", "edges", 1000, 250000))
    A (edges) held 1,000 entries when the program was compiled and holds 250,000 now
    """

    tensor: str
    source: str
    """Its table or file, as messages name it."""
    compiled: float
    """Entries that the program was compiled for."""
    found: float
    """Entries that there are now."""

    def __str__(self) -> str:
        return (
            f"{self.tensor} ({self.source}) held {self.compiled:,.0f} entries when the program was "
            f"compiled and holds {self.found:,.0f} now"
        )


def is_stale(compiled: float, current: float) -> bool:
    """Whether statistics of a number of entries serve for another number no more.

    >>> is_stale(1000, 250000), is_stale(1000, 9000), is_stale(5, 500)
    (True, False, False)
    """
    fewer, more = sorted((compiled, current))
    return more >= LEAST_ENTRIES and more > FACTOR * max(fewer, 1.0)


def drifts(
    compiled: Mapping[str, float], current: Mapping[str, float], sources: Mapping[str, str]
) -> tuple[Drift, ...]:
    """The inputs whose statistics are stale.

    Args:
        compiled: entries by input that a program was compiled for.
        current: entries now, of those inputs that were looked at.
        sources: how messages name the table or file of an input.
    """
    return tuple(
        Drift(name, sources[name], compiled[name], entries)
        for name, entries in current.items()
        if is_stale(compiled[name], entries)
    )
