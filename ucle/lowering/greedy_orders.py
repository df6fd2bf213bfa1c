"""Orders of many factors by what their joins emit, found step by step.

opt_einsum goes by sizes of labels, for which a graph of 10,000 nodes is 10,000 x 10,000 numbers.
Here each step joins the two factors whose join emits the fewest tuples, by the statistics that it
is priced by afterwards; a label is aggregated as soon as no other factor has it, so that to join
what has a label eliminates it (galley.txt, 4.4 to 4.6, whose greedy search goes by labels).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from ucle.lowering.joined_parts import JoinedFactors, Parts

MOST_FACTORS = 48
"""Products of more are left to opt_einsum: circuits, whose tensors are small and full."""

SMALL_SPACE = 2**20
"""Values of all labels of a product together up to which its order matters little."""


def greedy_orders(parts: Parts) -> list[JoinedFactors]:
    """Two orders: that which joins the cheapest two first, and that which grows from these.

    Raises:
        UcleError: some pair of factors has no type that holds its fill.
    """
    labels = {label for factor in parts.factors for label in factor.labels}
    space = math.prod(float(label.bound) for label in labels)
    if len(parts.factors) > MOST_FACTORS or space <= SMALL_SPACE:
        return []
    return [_order(parts, pairs) for pairs in (_any_two, _with_the_last)]


Pairs = Callable[[Sequence[JoinedFactors]], list[tuple[JoinedFactors, JoinedFactors]]]
"""The pairs among which the next one is chosen."""


def _any_two(parts: Sequence[JoinedFactors]) -> list[tuple[JoinedFactors, JoinedFactors]]:
    return [(one, other) for at, one in enumerate(parts) for other in parts[at + 1 :]]


def _with_the_last(parts: Sequence[JoinedFactors]) -> list[tuple[JoinedFactors, JoinedFactors]]:
    """All pairs to begin with; from then on what was joined, which comes last, with each other."""
    *others, last = parts
    return [(one, last) for one in others]


def _order(parts: Parts, pairs: Pairs) -> JoinedFactors:
    """An order in which each step takes the cheapest of some pairs, if they share a label."""
    now, first = parts.absorbed, True
    while len(now) > 1:
        candidates = _any_two(now) if first else pairs(now)
        sharing = [(one, other) for one, other in candidates if one.shares_labels(other)]
        one, other = min(sharing or candidates, key=lambda pair: _emits(parts, *pair))
        rest = [part for part in now if part is not one and part is not other]
        now, first = [*rest, parts.joined(one, other)], False
    return now[0]


def _emits(parts: Parts, one: JoinedFactors, other: JoinedFactors) -> float:
    """What the join of two parts emits by itself."""
    return parts.joined(one, other).emitted - one.emitted - other.emitted
