"""Exact join orders: a pruned dynamic program for the order whose joins emit the fewest tuples.

A set of factors connected by labels is joined once, in its best way. Two such sets are joined if
they share a label, and whole components last. Joining all factors that have a label eliminates it,
so that an order of joins is one of eliminations (galley.txt, 4.4 to 4.6). A set that costs more
than the best known order is pruned, and the search stops if it would take longer than it can save.
"""

from __future__ import annotations

from collections.abc import Iterator

from ucle.ir.vertices import Operand
from ucle.lowering.joined_parts import JoinedFactors, Parts

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
            part = parts.joined(one, other)
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
