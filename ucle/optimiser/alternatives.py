"""The alternatives of a vertex as arrays: what the dynamic program reads of each decomposition."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from ucle.foundation.dataclasses import dataclass
from ucle.ir.layouts import Decomposition, Layout
from ucle.ir.vertices import Vertex

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Alternatives:
    """The decompositions of a vertex, with their costs and the layouts that they make and need."""

    decompositions: tuple[Decomposition, ...]
    costs: Floats
    """The cost of the vertex itself, by decomposition."""
    layouts: tuple[Layout, ...]
    layout_of: NDArray[np.intp]
    """The position among `layouts`, by decomposition."""
    needed: tuple[tuple[Layout, ...], ...]
    needed_of: tuple[NDArray[np.intp], ...]
    """The positions among `needed`, by decomposition, for each operand."""

    @classmethod
    def of(
        cls, vertex: Vertex, choices: tuple[Decomposition, ...], costs: Iterable[float]
    ) -> Alternatives:
        """Compute the layouts of a vertex under each of its decompositions."""
        layouts, layout_of = _number_layouts(vertex.makes(p) for p in choices)
        read = [vertex.reads(p) for p in choices]
        pairs = [_number_layouts(layouts[n] for layouts in read) for n in range(len(vertex.inputs))]
        needed, needed_of = tuple(n for n, _ in pairs), tuple(of for _, of in pairs)
        return cls(choices, np.array([*costs]), layouts, layout_of, needed, needed_of)

    def making(self, at: int) -> Alternatives:
        """Return the decompositions that make the layout at a position."""
        matching = np.flatnonzero(self.layout_of == at)
        return Alternatives(
            tuple(self.decompositions[n] for n in matching),
            self.costs[matching],
            (self.layouts[at],),
            np.zeros(len(matching), np.intp),
            self.needed,
            tuple(of[matching] for of in self.needed_of),
        )


def _number_layouts(layouts: Iterable[Layout]) -> tuple[tuple[Layout, ...], NDArray[np.intp]]:
    """Return the distinct layouts, and the position of each given one among them."""
    positions: dict[Layout, int] = {}
    of = np.array([positions.setdefault(layout, len(positions)) for layout in layouts], np.intp)
    return tuple(positions), of
