"""The order of a product whose joins emit the fewest tuples: a dynamic program with pruning.

A set of factors that hang together by labels is joined once, in its best way; two such sets are
joined where they share a label, and whole components last. To join all factors that have a label
eliminates it, so that an order of joins is one of eliminations (galley.txt, 4.4 to 4.6). What costs
more than the best order that is known is not looked at, nor what would take longer to find than it
can save.
"""

from __future__ import annotations

from collections.abc import Iterator

from ucle.ir.vertices import Operand
from ucle.lowering.joined_parts import JoinedFactors, Parts

MOST_PARTS = 12
"""Products of more factors, after those without labels of their own, are left to greedy orders."""

LEAST_JOINS, MOST_JOINS = 40, 200
"""Joins that may be looked at, of products that emit few and very many tuples."""

TUPLES_OF_A_JOIN = 20_000
"""The tuples that are joined in some five times the time that it takes to look at one join."""


def exact_order(parts: Parts, known: float) -> JoinedFactors | None:
    """The order of the fewest tuples.

    Args:
        parts: of the product.
        known: the tuples that the joins of the best other order emit.

    Returns:
        The order; None where none is better, or found within the effort that it is worth.

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
    """Parts of so many factors together that share a label, or are whole components."""
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
    """The factors that hang together by labels, as bits."""
    components: list[tuple[int, frozenset[str]]] = []
    for number, factor in enumerate(factors):
        names = frozenset(factor.names)
        near = [x for x in components if not names.isdisjoint(x[1])]
        far = [x for x in components if names.isdisjoint(x[1])]
        bits = (1 << number) + sum(bits for bits, _ in near)
        components = [*far, (bits, names.union(*(labels for _, labels in near)))]
    return [bits for bits, _ in components]
