"""Join orders of many factors, by the tuples that their joins emit: greedy ones, and the best.

opt_einsum uses the sizes of labels, for which a graph of 10,000 nodes is 10,000 x 10,000 numbers.
Here each step of a greedy order joins the two factors whose join emits the fewest tuples, by the
same statistics that price it later. A label is aggregated as soon as no other factor has it, so
joining all factors with a label eliminates it (galley.txt, 4.4 to 4.6, whose greedy search chooses
labels).

The best order is found by a pruned dynamic program. A set of factors connected by labels is joined
once, in its best way. Two such sets are joined if they share a label, and whole components last, so
that an order of joins is one of eliminations. A set that costs more than the best known order is
pruned, and the search stops if it would take longer than it can save.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

from ucle.ir.vertices import Operand
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
        now, first = [*rest, parts.join_parts(one, other)], False
    return now[0]


def _emits(parts: Parts, one: JoinedFactors, other: JoinedFactors) -> float:
    """Return the tuples that the join of two parts emits by itself."""
    return parts.join_parts(one, other).emitted - one.emitted - other.emitted


MOST_PARTS = 12
"""The most factors, after absorbing those without labels of their own; larger products are left to
greedy orders."""

LEAST_JOINS, MOST_JOINS = 40, 200
"""The joins that may be computed for products that emit few and very many tuples."""

TUPLES_OF_A_JOIN = 20_000
"""The tuples that are joined in some five times the time that the search takes for one join."""


def exact_order(parts: Parts, known: float) -> JoinedFactors | None:
    """Return the order with the fewest tuples.

    Args:
        parts: parts of the product.
        known: tuples that the joins of the best other order emit.

    Returns:
        The order; None if no better order was found within the effort that it is worth.

    Raises:
        UcleError: some pair of factors has no type that holds its fill.
    """
    single = parts.absorbed
    if not 2 < len(single) <= MOST_PARTS:
        return None
    effort = min(MOST_JOINS, max(LEAST_JOINS, known / TUPLES_OF_A_JOIN))
    components, before = _components(parts.factors), parts.looked_at
    best: list[dict[int, JoinedFactors]] = [{}, {part.factors: part for part in single}]
    for size in range(2, len(single) + 1):
        joined: dict[int, JoinedFactors] = {}
        for one, other in _pairs(best, size, components):
            both = one.factors | other.factors
            most = joined[both].emitted if both in joined else known
            if one.emitted + other.emitted >= most:
                continue
            if parts.looked_at - before >= effort:
                return None
            part = parts.join_parts(one, other)
            if part.emitted < most:
                joined[both] = part
        best.append(joined)
    return best[-1].get((1 << len(parts.factors)) - 1)


def _pairs(
    best: list[dict[int, JoinedFactors]], size: int, components: list[int]
) -> Iterator[tuple[JoinedFactors, JoinedFactors]]:
    """Yield pairs of parts with `size` factors that share a label or are whole components."""
    for less in range(1, size // 2 + 1):
        for one in best[less].values():
            for other in best[size - less].values():
                twice = 2 * less == size and one.factors > other.factors
                if twice or one.factors & other.factors:
                    continue
                if one.shares_labels(other) or all(
                    x & y.factors in (0, x) for x in components for y in (one, other)
                ):
                    yield one, other


def _components(factors: tuple[Operand, ...]) -> list[int]:
    """Return the connected components of factors by shared labels, as bits."""
    components: list[tuple[int, frozenset[str]]] = []
    for number, factor in enumerate(factors):
        names = frozenset(factor.names)
        near = [x for x in components if not names.isdisjoint(x[1])]
        far = [x for x in components if names.isdisjoint(x[1])]
        bits = (1 << number) + sum(bits for bits, _ in near)
        components = [*far, (bits, names.union(*(labels for _, labels in near)))]
    return [bits for bits, _ in components]
