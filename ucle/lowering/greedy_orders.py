"""Greedy join orders of many factors, by the tuples that their joins emit.

opt_einsum uses the sizes of labels, for which a graph of 10,000 nodes is 10,000 x 10,000 numbers.
Here each step joins the two factors whose join emits the fewest tuples, by the same statistics that
price it later. A label is aggregated as soon as no other factor has it, so joining all factors with
a label eliminates it (galley.txt, 4.4 to 4.6, whose greedy search chooses labels).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from ucle.lowering.joined_parts import JoinedFactors, Parts

MOST_FACTORS = 48
"""The most factors for greedy orders; larger products are left to opt_einsum: circuits, whose
tensors are small and full."""

SMALL_SPACE = 2**20
"""The number of joint values of all labels of a product up to which its order matters little."""


def greedy_orders(parts: Parts) -> list[JoinedFactors]:
    """Return two orders: one joins the cheapest pair at each step, the other grows from the first.

    Raises:
        UcleError: some pair of factors has no type that holds its fill.
    """
    labels = {label for factor in parts.factors for label in factor.labels}
    space = math.prod(float(label.bound) for label in labels)
    if len(parts.factors) > MOST_FACTORS or space <= SMALL_SPACE:
        return []
    return [_order(parts, pairs) for pairs in (_any_two, _with_the_last)]


Pairs = Callable[[Sequence[JoinedFactors]], list[tuple[JoinedFactors, JoinedFactors]]]
"""Gives the pairs among which the next join is chosen."""


def _any_two(parts: Sequence[JoinedFactors]) -> list[tuple[JoinedFactors, JoinedFactors]]:
    return [(one, other) for at, one in enumerate(parts) for other in parts[at + 1 :]]


def _with_the_last(parts: Sequence[JoinedFactors]) -> list[tuple[JoinedFactors, JoinedFactors]]:
    """Return the pairs of the last part, which is the latest join, with each other part."""
    *others, last = parts
    return [(one, last) for one in others]


def _order(parts: Parts, pairs: Pairs) -> JoinedFactors:
    """Return an order of the cheapest pair at each step, preferring a shared label."""
    now, first = parts.absorbed, True
    while len(now) > 1:
        candidates = _any_two(now) if first else pairs(now)
        sharing = [(one, other) for one, other in candidates if one.shares_labels(other)]
        one, other = min(sharing or candidates, key=lambda pair: _emits(parts, *pair))
        rest = [part for part in now if part is not one and part is not other]
        now, first = [*rest, parts.joined(one, other)], False
    return now[0]


def _emits(parts: Parts, one: JoinedFactors, other: JoinedFactors) -> float:
    """Return the tuples that the join of two parts emits by itself."""
    return parts.joined(one, other).emitted - one.emitted - other.emitted
