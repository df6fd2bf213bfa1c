"""In which order the factors of products are joined: chosen together with the decomposition.

N (H W) may be several times cheaper than (N H) W, or the other way round; which of the two depends
on how sparse N is, and on which labels can stay inside arrays. So an order is judged by the cost of
the cheapest decomposition of the whole program in that order.

An `Order` says which statements are merged into the ones that use them (`ucle.lowering.merging`),
and how the factors of each product are associated. The search begins with the program as written,
with the order of the fewest tuples, and with all merged; from the best of these it changes one
product at a time, as long as that helps and its budget lasts. Large programs are not searched: of
them the order of the fewest tuples is taken if it costs less than the written one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ucle.errors import UcleError
from ucle.ir.contraction_trees import Tree, fold, in_order, rotations, tree_text
from ucle.ir.vertices import Program
from ucle.lowering.contraction_orders import joined_tuples
from ucle.lowering.merging import Merges, find_merges, merge
from ucle.lowering.normalise import Lowered, Product, ProductKey, Source, normalise, wanted
from ucle.plan.decomposition import DecomposedProgram
from ucle.stats.estimate import ProgramStatistics

EFFORT = 1500
"""Decompositions of vertices that all programs of a search may have together."""

LOWERED = 6
"""What a vertex that is lowered in vain counts of these: about the time that it takes."""

TREES = 6
"""Trees of one product that are tried before those next to the best."""

WORTHWHILE = 0.01
"""The share of the cost that another order than the written one has to gain."""

HOPELESS = 1e6
"""Times the tuples of another order from which on the written one is not priced: no kernel works so
much faster on arrays than joins do on tuples."""


@dataclass(frozen=True)
class Lowering:
    """How a source becomes a program: what is merged into what, and the trees of products."""

    merges: Merges = field(default_factory=dict)
    trees: Mapping[ProductKey, Tree] = field(default_factory=dict)

    def lower(self, source: Source, *, rank: bool = False) -> Lowered:
        """The program, of this source or of one that differs from it in sizes."""
        return normalise(self.merged(source), self.trees, rank=rank)

    def merged(self, source: Source) -> Source:
        """The source with what is merged."""
        statements, bounds = merge(source.statements, source.bounds, self.merges)
        return replace(source, statements=statements, bounds=bounds)


@dataclass(frozen=True)
class Decided:
    """A program with statistics and the decomposition that was chosen for it."""

    program: Program
    statistics: ProgramStatistics
    decomposed: DecomposedProgram
    lowering: Lowering = field(default_factory=Lowering)


Decide = Callable[[Program], Decided]
"""Chooses a decomposition; raises where there is none."""


@dataclass(frozen=True)
class Association:
    """The order that was chosen, where it is not the written one.

    `products` are those that are associated otherwise than in the text; `cost` and `written` are
    the predicted costs of the program as chosen and as written (infinite where that cannot be run,
    or is too far off to be priced).
    """

    products: tuple[str, ...]
    cost: float
    written: float


@dataclass(frozen=True)
class Order:
    """What is merged, by the tensors that take the statements, and the trees of products.

    A product without a tree is associated as it is written.
    """

    merged: frozenset[str] = frozenset()
    trees: Mapping[ProductKey, Tree] = field(default_factory=dict)

    def __hash__(self) -> int:
        return hash((self.merged, frozenset(self.trees)))


WRITTEN = Order()


@dataclass(frozen=True)
class _Tried:
    """An order and the program that it makes; the cost is infinite where that cannot be run."""

    order: Order
    cost: float = math.inf
    lowered: Lowered | None = None
    decided: Decided | None = None


def associate(
    source: Source,
    decide: Decide,
    association: str = "free",
    fixed: Collection[str] | None = (),
) -> tuple[Decided, Association | None]:
    """Choose the order of association, and with it the decomposition.

    Args:
        source: the statements.
        decide: chooses the decomposition of a program in one order.
        association: ``"free"`` or ``"as-written"``.
        fixed: tensors whose statements are neither merged nor take others; None stands for all.

    Returns:
        The program, and what is to be said of its order.

    Raises:
        UcleError: there is no program, in whatever order, that can be run.
    """
    if association == "as-written":
        return decide(normalise(source).program), None
    base = normalise(source, rank=True)
    small = _effort(base.program) <= EFFORT / 3
    merges: Merges = {}
    if small and fixed is not None:
        outputs = wanted(source.statements, source.outputs)
        merges = find_merges(
            source.statements, base.types, source.bounds, outputs, fixed, source.exact
        )
    search = _Search(source, decide, merges)
    best = search.price(Order(trees=_trees(base)), base, bounded=False)
    written = search.price_written(base)
    best = min(written, best, key=_cost)
    if small:
        best = search.improved(best)
    if best.cost > written.cost * (1 - WORTHWHILE):
        best = written
    if best.decided is None or best.lowered is None:
        raise search.errors[0]
    products = tuple(_texts(best.lowered))
    decided = replace(best.decided, lowering=search.lowering(best.order))
    return decided, Association(products, best.cost, written.cost) if products else None


class _Search:
    """What was tried already, what went wrong, and what is left of the budget."""

    def __init__(self, source: Source, decide: Decide, merges: Merges) -> None:
        self.errors: list[UcleError] = []
        self._source = source
        self._decide = decide
        self._merges = merges
        self._takers = frozenset(self._taker(name) for name in merges)
        self._tried: dict[Order, _Tried] = {}
        self._left = EFFORT
        self._sources: dict[frozenset[str], Source] = {}

    def price(
        self, order: Order, lowered: Lowered | None = None, *, bounded: bool = True
    ) -> _Tried:
        """The order with its cost; infinite, too, if it is `bounded` and the budget is spent."""
        if order not in self._tried:
            self._tried[order] = self._price(order, lowered, bounded)
        return self._tried[order]

    def price_written(self, base: Lowered) -> _Tried:
        """The order of the text with its cost; infinite if it is hopeless."""
        if WRITTEN not in self._tried and self._is_hopeless(base):
            return _Tried(WRITTEN)
        return self.price(WRITTEN, bounded=False)

    def improved(self, best: _Tried) -> _Tried:
        """Change one product after the other, from the best order so far and from all merged."""
        merged = self._lower(Order(self._takers), rank=True)
        trees = _trees(merged)
        all_merged = Order(self._takers & {tensor for tensor, _ in trees}, trees)
        best = min(best, self.price(all_merged), key=_cost)
        before = math.inf
        while best.cost < before and self._left > 0:
            before = best.cost
            for product in merged.products:
                if self._left <= 0:
                    break
                plain = self.price(self._plain(best.order, product.key[0]))
                best = min(plain, best, key=_cost)
                for order in self._changed(best.order, product):
                    best = min(best, self.price(order), key=_cost)
                    if self._left <= 0:
                        break
        return best

    def _changed(self, order: Order, product: Product) -> Iterator[Order]:
        """Orders that differ from one in the tree of a product, and have it merged."""
        tensor = product.key[0]
        taking = order.merged | ({tensor} & self._takers)
        if taking != order.merged:
            order = self._plain(order, tensor)
        now = order.trees.get(product.key, product.written)
        labels = [frozenset(factor.names) for factor in product.factors]
        near = (
            tree for tree in (*product.ranked[1:TREES], *rotations(now)) if _is_joined(tree, labels)
        )
        for tree in (*product.ranked[:1], *near):
            trees = {**order.trees, product.key: in_order(tree)}
            if in_order(tree) == product.written:
                del trees[product.key]
            if any(key[0] == tensor for key in trees):  # else it need not be merged
                yield Order(taking, trees)

    def _plain(self, order: Order, taker: str) -> Order:
        """An order with a statement, and those that are merged into it, as they are written."""
        trees = {key: tree for key, tree in order.trees.items() if self._taker(key[0]) != taker}
        return Order(order.merged - {taker}, trees)

    def _taker(self, name: str) -> str:
        """The statement into which another one is merged at last, or itself."""
        while name in self._merges:
            name = self._merges[name]
        return name

    def lowering(self, order: Order) -> Lowering:
        """How the source is lowered in an order."""
        merges = {x: into for x, into in self._merges.items() if self._taker(x) in order.merged}
        return Lowering(merges, order.trees)

    def _lower(self, order: Order, *, rank: bool = False) -> Lowered:
        """The program in an order; statements are merged once for all trees of their products."""
        if order.merged not in self._sources:
            self._sources[order.merged] = self.lowering(order).merged(self._source)
        return normalise(self._sources[order.merged], order.trees, rank=rank)

    def _price(self, order: Order, lowered: Lowered | None, bounded: bool) -> _Tried:
        if bounded and self._left <= 0:
            return _Tried(order)
        try:
            lowered = lowered or self._lower(order)
            effort = _effort(lowered.program)
            if bounded and effort > self._left:
                self._left -= LOWERED * len(lowered.program.vertices)
                return _Tried(order)
            self._left -= effort
            decided = self._decide(lowered.program)
        except UcleError as error:
            self.errors.append(error)
            return _Tried(order)
        return _Tried(order, decided.decomposed.total_cost, lowered, decided)

    def _is_hopeless(self, base: Lowered) -> bool:
        try:
            written = normalise(self._source)
        except UcleError:
            return True
        tuples = [
            joined_tuples(
                x.program,
                ProgramStatistics(x.program, self._source.statistics, self._source.estimator),
            )
            for x in (written, base)
        ]
        return tuples[0] > HOPELESS * tuples[1]


def _cost(tried: _Tried) -> float:
    return tried.cost


def _effort(program: Program) -> int:
    """Decompositions of single vertices; of those with many labels some hundreds are looked at."""
    return sum(2 ** min(len(vertex.all_labels), 8) for vertex in program.vertices)


def _is_joined(tree: Tree, labels: Sequence[frozenset[str]]) -> bool:
    """Whether what is joined has a label in common: else it is all pairs, which seldom pays."""

    def joined(
        _: Tree, left: frozenset[str] | None, right: frozenset[str] | None
    ) -> frozenset[str] | None:
        return left | right if left and right and left & right else None

    return fold(tree, lambda leaf: labels[leaf], joined) is not None


def _trees(lowered: Lowered) -> dict[ProductKey, Tree]:
    """The trees that are not those of the text."""
    return {p.key: p.tree for p in lowered.products if in_order(p.tree) != p.written}


def _texts(lowered: Lowered) -> Iterator[str]:
    """How the products are associated that are so otherwise than in the text."""
    trees = _trees(lowered)
    for product in lowered.products:
        if product.key in trees and product.key[0] in lowered.program.by_name:
            names = [factor.tensor for factor in product.factors]
            text = tree_text(product.tree, names, product.combine.text)
            yield f"{product.key[0]} = {text}"
