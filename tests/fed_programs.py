"""Programs whose result another program reads, with what both come to.

The first step makes `N` of `P`, of which some entries hold a fill that is not 0, or 0, or that no
path leads to; the second one reads `N` as an input that says nothing of a fill.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

P = np.array([[0.0, 0.5, 0.0, 0.0], [0.0, 0.0, 0.0, 1.0], [0.0, 0.5, 0.0, 0.0], [0.0, 0, 0, 0]])


@dataclass(frozen=True)
class Fed:
    """A program of one input, P, and what N then is."""

    text: str
    expected: NDArray[Any]
    labels: str
    dtype: str = "float64"
    """The element type of P."""

    @property
    def p(self) -> NDArray[Any]:
        """P in the type that it has here; complex numbers have both parts."""
        return P.astype(self.dtype) * (1 + 1j if self.dtype == "complex128" else 1)

    @property
    def next(self) -> str:
        """A statement that reads N."""
        at = f"[{self.labels}]"
        return f"M{at} = N{at}"


PAGE_RANK = Fed("N[j] = 0.15/4 + 0.85*sum[i](P[i,j])", 0.15 / 4 + 0.85 * P.sum(axis=0), "j")
FED = (
    PAGE_RANK,
    Fed("N[i,j] = exp(P[i,j])", np.exp(P), "i,j"),
    Fed("N[i,j] = P[i,j] - 1", P - 1, "i,j"),
    Fed("N[i,j] += P[i,j]", P, "i,j"),
    Fed("N[] = 1 + sum[i,j](P[i,j])", np.array(1 + P.sum()), ""),
    Fed("N[] += P[i,j] - P[i,j]", np.array(0.0), ""),
    Fed("N[j] = P[0,j] == 0", P[0] == 0, "j"),
    Fed("N[j] = 2 - P[0,j]", 2 - P[0] * (1 + 1j), "j", "complex128"),
    Fed("N[j] = P[0,j] + 3", (P[0] + 3).astype(np.float32), "j", "float32"),
    Fed("N[j] = P[1,j] + 3", (P[1] + 3).astype(np.int64), "j", "int64"),
)
