"""The estimators by name: a new one is a module of its own, and a row here."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from ucle.stats.chain_bound import ChainBound
from ucle.stats.estimate import Estimator
from ucle.stats.textbook import Occupancy, Textbook

ESTIMATORS: Mapping[str, Estimator] = MappingProxyType(
    {"degrees": ChainBound(), "occupancy": Occupancy(), "textbook": Textbook()}
)

DEFAULT, PAPER = "degrees", "textbook"
"""The defaults: of ucle's own profiles, and of the paper's profile."""
