"""The estimator of ucle's own profiles: the textbook's, with Equation 7 for aggregations."""

from __future__ import annotations

from dataclasses import dataclass

from ucle.stats.index_maps import occupied
from ucle.stats.textbook import Textbook


@dataclass(frozen=True)
class Occupancy(Textbook):
    """Counts the groups that T tuples occupy of n possible ones.

    T_agg as printed halves its input wherever all of it would fit: after a join with a diagonal
    matrix, where the aggregation in fact merges nothing, every estimate is half of the last.
    Equation 7, which the paper uses for decompositions, answers the same question. After the two
    diagonal joins of graph convolution it is right, where halving is off by a factor of 4.
    """

    def occupied_groups(self, joined: float, possible: float) -> float:
        """Groups that an aggregation of `joined` tuples leaves of `possible` ones."""
        return min(occupied(joined, possible), joined)
