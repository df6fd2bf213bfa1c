"""Orders of many factors by what their joins emit, found step by step.

opt_einsum goes by sizes of labels, for which a graph of 10,000 nodes is 10,000 x 10,000 numbers.
Here each step joins the two factors whose join emits the fewest tuples, by the statistics that it
is priced by afterwards; a label is aggregated as soon as no other factor has it, so that to join
what has a label eliminates it (galley.txt, 4.4 to 4.6, whose greedy search goes by labels).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from ucle.errors import UcleError
from ucle.ir.contraction_trees import Tree, in_order
from ucle.ir.vertices import Operand
from ucle.lowering.pairwise import Pairwise
from ucle.stats.estimate import Estimator, Statistics, as_measured

MOST_FACTORS = 48
"""Products of more are left to opt_einsum: circuits, whose tensors are small and full."""

SMALL_SPACE = 2**20
"""Values of all labels of a product together up to which its order matters little."""


def greedy_orders(
    pairwise: Pairwise, statistics: Mapping[str, Statistics], estimator: Estimator
) -> list[Tree]:
    """Two orders: that which joins the cheapest two first, and that which grows from these.

    Args:
        pairwise: the factors, and the vertices that join them.
        statistics: of the factors, by their names there.
        estimator: estimates what joins emit.
    """
    factors = pairwise.factors
    labels = {label for factor in factors for label in factor.labels}
    space = math.prod(float(label.bound) for label in labels)
    if len(factors) > MOST_FACTORS or space <= SMALL_SPACE:
        return []
    search = _Search(pairwise, dict(statistics), estimator)
    with suppress(UcleError):  # some pair of factors has no type that holds its fill
        return list(dict.fromkeys(map(search.tree, (_any_two, _with_the_last))))
    return []


@dataclass(frozen=True)
class _Part:
    """Factors that are joined already, or one of them."""

    first: int
    """The first of them."""
    tree: Tree
    operand: Operand


Pairs = Callable[[Sequence[_Part]], list[tuple[_Part, _Part]]]
"""The pairs among which the next one is chosen."""


def _any_two(parts: Sequence[_Part]) -> list[tuple[_Part, _Part]]:
    return [(one, other) for at, one in enumerate(parts) for other in parts[at + 1 :]]


def _with_the_last(parts: Sequence[_Part]) -> list[tuple[_Part, _Part]]:
    """All pairs to begin with; from then on what was joined, which comes last, with each factor."""
    *others, last = parts
    return _any_two(parts) if isinstance(last.tree, int) else [(one, last) for one in others]


def _in_order(pair: tuple[_Part, _Part]) -> tuple[_Part, _Part]:
    one, other = pair
    return pair if one.first < other.first else (other, one)


class _Search:
    """What is known of parts and of pairs, which both orders ask for."""

    def __init__(
        self, pairwise: Pairwise, statistics: dict[str, Statistics], estimator: Estimator
    ) -> None:
        self._pairwise = pairwise
        self._statistics = statistics
        self._estimator = estimator
        self._joined: dict[tuple[str, str], tuple[float, Operand]] = {}

    def tree(self, pairs: Pairs) -> Tree:
        """An order in which each step takes the cheapest of some pairs, if they share a label."""
        parts = [_Part(n, n, factor) for n, factor in enumerate(self._pairwise.factors)]
        while len(parts) > 1:
            candidates = pairs(parts)
            joined = [(x, y) for x, y in candidates if {*x.operand.names} & {*y.operand.names}]
            ordered = [_in_order(pair) for pair in joined or candidates]
            one, other = min(ordered, key=lambda pair: self._join(pair, parts)[0])
            _, operand = self._join((one, other), parts)
            rest = [part for part in parts if part is not one and part is not other]
            parts = [*rest, _Part(one.first, (one.tree, other.tree), operand)]
        return in_order(parts[0].tree)

    def _join(self, pair: tuple[_Part, _Part], parts: Sequence[_Part]) -> tuple[float, Operand]:
        """What the join of two parts emits, and what they are together."""
        one, other = pair
        names = one.operand.tensor, other.operand.tensor
        if names not in self._joined:
            others = [part.operand for part in parts if part is not one and part is not other]
            vertex = self._pairwise.joined(one.operand, other.operand, others)
            made = self._estimator.derive(vertex, tuple(self._statistics[name] for name in names))
            assert made.derived is not None
            emitted = self._estimator.joined(made.derived, vertex.all_promoted).estimate
            self._statistics[vertex.name] = as_measured(self._estimator, made)
            self._joined[names] = emitted, Operand(vertex.name, vertex.labels)
        return self._joined[names]
