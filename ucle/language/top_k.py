"""The language's functions for the first entries along a label, and for their positions.

``top_k[j,r](...)`` returns the greatest entries along j, the r-th of them at r.
``arg_top_k[j,r](...)`` returns their positions, and ``among_top_k[j,r](...)`` is true along j where
they are. Without r, only the first entry counts. ``argmax[j](...)`` is the position of the greatest
entry; as in NumPy, that is the first NaN, if there is one. The same holds for ``argmin``, whereas
``bottom_k`` puts NaN at the end.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum


class Direction(Enum):
    """The order that determines the first entries."""

    GREATEST = "the greatest, NaN before them"
    LEAST = "the least, NaN at the end"
    LEAST_OR_NAN = "the least, NaN before them"


class Gives(Enum):
    """The result of a top-k function."""

    VALUES = "what they are"
    POSITIONS = "where they are"
    MEMBERS = "yes where they are, no elsewhere"


@dataclass(frozen=True)
class FirstFunction:
    """A top-k function: its order, its result, and whether it may return several entries."""

    name: str
    order: Direction
    gives: Gives
    several: bool = True

    @property
    def form(self) -> str:
        """The syntax of a call."""
        return f"{self.name}[j,r](...)" if self.several else f"{self.name}[j](...)"


FIRST: Mapping[str, FirstFunction] = {
    each.name: each
    for each in (
        FirstFunction("top_k", Direction.GREATEST, Gives.VALUES),
        FirstFunction("bottom_k", Direction.LEAST, Gives.VALUES),
        FirstFunction("arg_top_k", Direction.GREATEST, Gives.POSITIONS),
        FirstFunction("arg_bottom_k", Direction.LEAST, Gives.POSITIONS),
        FirstFunction("among_top_k", Direction.GREATEST, Gives.MEMBERS),
        FirstFunction("among_bottom_k", Direction.LEAST, Gives.MEMBERS),
        FirstFunction("argmax", Direction.GREATEST, Gives.POSITIONS, several=False),
        FirstFunction("argmin", Direction.LEAST_OR_NAN, Gives.POSITIONS, several=False),
    )
}
"""The top-k functions, by their names in programs."""
