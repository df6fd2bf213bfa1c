"""How to compile: the options of a program, as every stage gets them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ucle.cost import Profile
from ucle.costed import Resources

Decomposition = str | Mapping[str, Iterable[str]]
"""``"auto"``, ``"relational"``, ``"as-written"``, or promoted labels by tensor name."""


ContractionPath = Sequence[Sequence[int]] | Mapping[str, Sequence[Sequence[int]]]
"""Positions of factors, as opt_einsum writes a path; of one statement, or by tensor name."""


@dataclass(frozen=True)
class Options:
    """How to compile: see `ucle.einsum_program`."""

    profile: Profile
    resources: Resources
    decomposition: Decomposition = "auto"
    bounds: Mapping[str, int] | None = None
    outputs: tuple[str, ...] | None = None
    path: ContractionPath | None = None
    nonfinite: str = "exact"
    search: str = "dag"
    store: bool | frozenset[str] = False
    """Inputs that are kept in the layouts in which the program reads them; True for all."""
    statistics: str = "auto"
    association: str = "free"
