"""In which order the factors of products are joined: chosen together with the decomposition.

N (H W) may be several times cheaper than (N H) W, or the other way round; which of the two depends
on how sparse N is, and on which labels can stay inside arrays. So an order is judged by the cost of
the cheapest decomposition of the whole program in that order.

An `JoinOrder` says which statements are merged into the ones that use them
(`ucle.lowering.inline_statements`), and how the factors of each product are associated. The logical
program is there once; each order takes its merges and contracts it. The search begins with the
program as written, with the order of the fewest tuples, and with all merged; from the best of these
it changes one product at a time, as long as that helps and its budget lasts. Large programs are not
searched: of them the order of the fewest tuples is taken if it costs less than the written one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

from ucle.errors import UcleError
from ucle.ir.contraction_trees import Tree, fold, in_order, rotations, tree_text
from ucle.ir.vertices import Program
from ucle.lowering.applied_rewrites import AppliedRewrite
from ucle.lowering.contract import Contracted, contract
from ucle.lowering.contraction_orders import joined_tuples
from ucle.lowering.find_inlinable import find_merges
from ucle.lowering.inline_statements import KnownMerges, Merges, merge
from ucle.lowering.logical import LogicalProgram
from ucle.lowering.pairwise import KnownPairwise
from ucle.lowering.products import ContractedProduct, ProductKey
from ucle.options import Optimisations
from ucle.plan.decomposition import DecomposedProgram
from ucle.stats.estimate import MeasuredInputs, ProgramStatistics

ON = Optimisations()
"""All of them."""

CONTRACTED = 6
"""What a vertex that is made in vain counts of these: about the time that it takes."""

LEAST_EFFORT = 400
"""Decompositions of single vertices that are looked at, whatever a program costs: some 50 ms."""

EFFORT_COST = 4e5
"""The cost of a plan for each decomposition that is looked at beyond these: the search takes about
a fifth of the time of the best plan that is known."""

TREES = 6
"""Trees of one product that are tried before those next to the best."""

HOPELESS = 1e6
"""Times the tuples of another order from which on the written one is not priced: no kernel works so
much faster on arrays than joins do on tuples."""


@dataclass(frozen=True)
class Lowering:
    """The way from a logical program to vertices: rewrites, merged statements, products' trees.

    `rewrites` are in the order in which they are applied. `integers` is true where products of
    integers are reordered: what overflows depends on their order (`ucle.ir.overflow`).
    """

    merges: Merges = field(default_factory=dict)
    trees: Mapping[ProductKey, Tree] = field(default_factory=dict)
    rewrites: tuple[AppliedRewrite, ...] = ()
    integers: bool = False

    def after(self, rewrite: AppliedRewrite) -> Lowering:
        """The same way for what a rewrite makes of the program."""
        return replace(self, rewrites=(rewrite, *self.rewrites))

    def rewrite(self, key: str) -> AppliedRewrite | None:
        """The rewrite of a name, if it was applied."""
        return next((x for x in self.rewrites if x.key == key), None)

    def contract(self, logical: LogicalProgram) -> Contracted:
        """The vertices of this program, or of one that differs from it in sizes.

        Where a rewrite is no longer allowed, it is another program, contracted as it stands.
        """
        for rewrite in self.rewrites:
            if (replayed := rewrite.replay(logical)) is None:
                return contract(logical)
            logical = replayed
        return contract(merge(logical, self.merges), self.trees)


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
class JoinOrder:
    """What is merged, by the tensors that take the statements, and the trees of products.

    A product without a tree is associated as it is written.
    """

    merged: frozenset[str] = frozenset()
    trees: Mapping[ProductKey, Tree] = field(default_factory=dict)

    def __hash__(self) -> int:
        return hash((self.merged, frozenset(self.trees)))


WRITTEN = JoinOrder()


@dataclass(frozen=True)
class _Tried:
    """An order and the program that it makes; the cost is infinite where that cannot be run."""

    order: JoinOrder
    cost: float = math.inf
    contracted: Contracted | None = None
    decided: Decided | None = None


def associate(
    logical: LogicalProgram,
    measured: MeasuredInputs,
    decide: Decide,
    association: str = "free",
    fixed: Collection[str] | None = (),
    optimisations: Optimisations = ON,
    known: KnownPairwise | None = None,
) -> tuple[Decided, Association | None]:
    """Choose the order of association, and with it the decomposition.

    Args:
        logical: the program.
        measured: T and V of its inputs.
        decide: chooses the decomposition of a program in one order.
        association: ``"free"`` or ``"as-written"``.
        fixed: tensors whose statements are neither merged nor take others; None stands for all.
        optimisations: whether statements are merged, and how far the search goes.
        known: pairs of factors that were worked out for other programs over the same inputs.

    Returns:
        The program, and what is to be said of its order.

    Raises:
        UcleError: there is no program, in whatever order, that can be run.
    """
    if association == "as-written" or not optimisations.association:
        return decide(contract(logical).program), None
    effort = optimisations.association_effort
    search = _Search(logical, measured, decide, effort, known or KnownPairwise())
    base = search.ranked(WRITTEN)
    small = _effort(base.program) <= effort / 3
    if small and optimisations.merge and fixed is not None:
        search.allow_merges(base, fixed)
    best = search.price(JoinOrder(trees=_trees(base)), base, bounded=False)
    written = search.price_written(base)
    best = min(written, best, key=_cost)
    if small:
        best = search.improved(best)
    if best.cost > written.cost * (1 - optimisations.association_gain):
        best = written
    if best.decided is None or best.contracted is None:
        raise search.errors[0]
    products = tuple(_texts(best.contracted))
    lowering = replace(search.lowering(best.order), integers=_of_integers(best.contracted))
    decided = replace(best.decided, lowering=lowering)
    return decided, Association(products, best.cost, written.cost) if products else None


class _Search:
    """What was tried already, what went wrong, and what is left of the budget."""

    def __init__(
        self,
        logical: LogicalProgram,
        measured: MeasuredInputs,
        decide: Decide,
        effort: int,
        known: KnownPairwise,
    ) -> None:
        self.errors: list[UcleError] = []
        self._logical = logical
        self._measured = measured
        self._decide = decide
        self._merges: Merges = {}
        self._takers: frozenset[str] = frozenset()
        self._tried: dict[JoinOrder, _Tried] = {}
        self._effort = self._left = effort
        # What orders have in common is worked out once.
        self._merged: dict[frozenset[str], LogicalProgram] = {}
        self._known_merges = KnownMerges()
        self._known_pairs = known

    def allow_merges(self, base: Contracted, fixed: Collection[str]) -> None:
        """Find what may be merged; without this, nothing is."""
        self._merges = find_merges(self._logical, base.types, fixed, self._known_merges)
        self._takers = frozenset(self._taker(name) for name in self._merges)

    def ranked(self, order: JoinOrder) -> Contracted:
        """The program with what an order merges, each product joined by the fewest tuples."""
        merged = self._merge(order)
        return contract(merged, measured=self._measured, known=self._known_pairs)

    def price(
        self, order: JoinOrder, contracted: Contracted | None = None, *, bounded: bool = True
    ) -> _Tried:
        """The order with its cost; infinite, too, if it is `bounded` and the budget is spent."""
        if order not in self._tried:
            self._tried[order] = self._price(order, contracted, bounded)
        return self._tried[order]

    def price_written(self, base: Contracted) -> _Tried:
        """The order of the text with its cost; infinite if it is hopeless."""
        if WRITTEN not in self._tried and self._is_hopeless(base):
            return _Tried(WRITTEN)
        return self.price(WRITTEN, bounded=False)

    def improved(self, best: _Tried) -> _Tried:
        """Change one product after the other, from the best order so far and from all merged."""
        merged = self.ranked(JoinOrder(self._takers))
        trees = _trees(merged)
        all_merged = JoinOrder(self._takers & {tensor for tensor, _ in trees}, trees)
        best = min(best, self.price(all_merged), key=_cost)
        before = math.inf
        while best.cost < before and self._may_save(best):
            before = best.cost
            for product in merged.products:
                if not self._may_save(best):
                    break
                plain = self.price(self._plain(best.order, product.key[0]))
                best = min(plain, best, key=_cost)
                for order in self._changed(best.order, product):
                    best = min(best, self.price(order), key=_cost)
                    if not self._may_save(best):
                        break
        return best

    def _may_save(self, best: _Tried) -> bool:
        """Whether to look at more orders may save the time that it takes."""
        spent = self._effort - self._left
        return self._left > 0 and spent < LEAST_EFFORT + best.cost / EFFORT_COST

    def _changed(self, order: JoinOrder, product: ContractedProduct) -> Iterator[JoinOrder]:
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
        for tree in chain(product.ranked[:1], near):
            trees = {**order.trees, product.key: in_order(tree)}
            if in_order(tree) == product.written:
                del trees[product.key]
            if any(key[0] == tensor for key in trees):  # else it need not be merged
                yield JoinOrder(taking, trees)

    def _plain(self, order: JoinOrder, taker: str) -> JoinOrder:
        """An order with a statement, and those that are merged into it, as they are written."""
        trees = {key: tree for key, tree in order.trees.items() if self._taker(key[0]) != taker}
        return JoinOrder(order.merged - {taker}, trees)

    def _taker(self, name: str) -> str:
        """The statement into which another one is merged at last, or itself."""
        while name in self._merges:
            name = self._merges[name]
        return name

    def lowering(self, order: JoinOrder) -> Lowering:
        """How the program is contracted in an order."""
        merges = {x: into for x, into in self._merges.items() if self._taker(x) in order.merged}
        return Lowering(merges, order.trees)

    def _merge(self, order: JoinOrder) -> LogicalProgram:
        """The program with what an order merges; it is the same for all trees of its products."""
        if order.merged not in self._merged:
            self._merged[order.merged] = merge(
                self._logical, self.lowering(order).merges, self._known_merges
            )
        return self._merged[order.merged]

    def _price(self, order: JoinOrder, contracted: Contracted | None, bounded: bool) -> _Tried:
        if bounded and self._left <= 0:
            return _Tried(order)
        try:
            if contracted is None:
                merged = self._merge(order)
                contracted = contract(merged, order.trees, known=self._known_pairs)
            effort = _effort(contracted.program)
            if bounded and effort > self._left:
                self._left -= CONTRACTED * len(contracted.program.vertices)
                return _Tried(order)
            self._left -= effort
            decided = self._decide(contracted.program)
        except UcleError as error:
            self.errors.append(error)
            return _Tried(order)
        return _Tried(order, decided.decomposed.total_cost, contracted, decided)

    def _is_hopeless(self, base: Contracted) -> bool:
        try:
            written = contract(self._logical, known=self._known_pairs)
        except UcleError:
            return True
        tuples = [joined_tuples(x.program, self._measured.of(x.program)) for x in (written, base)]
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


def _trees(contracted: Contracted) -> dict[ProductKey, Tree]:
    """The trees that are not those of the text."""
    return {p.key: p.tree for p in contracted.products if in_order(p.tree) != p.written}


def _of_integers(contracted: Contracted) -> bool:
    """Whether products of integers are associated otherwise than in the text."""
    trees, types = _trees(contracted), contracted.types
    factors = [product.factors[0] for product in contracted.products if product.key in trees]
    return any(types[factor.tensor].dtype.kind == "i" for factor in factors)


def _texts(contracted: Contracted) -> Iterator[str]:
    """How the products are associated that are so otherwise than in the text."""
    trees = _trees(contracted)
    for product in contracted.products:
        if product.key in trees and product.key[0] in contracted.program.by_name:
            names = [factor.tensor for factor in product.factors]
            text = tree_text(product.tree, names, product.combine.text)
            yield f"{product.key[0]} = {text}"
