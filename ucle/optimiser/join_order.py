"""Join order: the order in which the factors of products are joined, with the decomposition.

N (H W) may be several times cheaper than (N H) W, or the other way round. Which one is cheaper
depends on how sparse N is and on which labels can stay inside arrays. So an order is judged by the
cost of the cheapest decomposition of the whole program in that order.

A `JoinOrder` says which statements are merged into the ones that use them
(`ucle.lowering.inline_statements`), and how the factors of each product are associated. There is
one logical program; each order applies its merges and contracts the result. The search starts from
the program as written, from the order with the fewest tuples, and from all statements merged. From
the best of these it changes one product at a time, as long as that helps and its budget lasts:
first the products whose statements cost most, and none that costs less than looking at it. The
budget is counted work, not time, so that a search that was cut gives the same plan on every
machine. Large programs are not searched: they get the order with the fewest tuples if it costs less
than the written one.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import field, replace
from itertools import chain

from ucle.errors import UcleError
from ucle.foundation.dataclasses import dataclass
from ucle.ir.contraction_trees import Tree, fold, in_order, rotations, tree_text
from ucle.ir.vertices import Program
from ucle.lowering.applied_rewrites import AppliedRewrite, DeclinedForm
from ucle.lowering.contract import Contracted, KnownContractions, contract
from ucle.lowering.contraction_orders import joined_tuples
from ucle.lowering.find_inlinable import find_merges, may_merge_all
from ucle.lowering.inline_statements import KnownMerges, Merges, aggregates_alone, merge
from ucle.lowering.logical import LogicalProgram
from ucle.lowering.products import ContractedProduct, ProductKey, equal_products
from ucle.options import Optimisations
from ucle.plan.decomposition import DecomposedProgram
from ucle.stats.estimate import ProgramStatistics

ON = Optimisations()
"""All optimisations on."""

CONTRACTED = 6
"""The effort charged for a vertex contracted in vain, in decompositions: about the time it
takes."""

CONTRACTING = 100_000.0
"""Nanoseconds of work to contract a vertex and to find the best plan among known prices."""

WORTH = 0.1
"""The work that changing orders may take beyond `Optimisations.association_work`, as a share of the
cost of the best known plan, which is in nanoseconds, too."""

TREES = 6
"""The number of trees of one product that are tried before the neighbours of the best one."""

HOPELESS = 1e6
"""The written order is not priced if it has this many times the tuples of another order: no kernel
is that much faster on arrays than joins are on tuples."""


@dataclass(frozen=True)
class Lowering:
    """The way from a logical program to vertices: rewrites, merged statements, products' trees.

    `rewrites` are in the order in which they are applied. `integers` is true where products of
    integers are reordered: what overflows depends on their order (`ucle.ir.overflow`). `declined`
    is the form that would be taken if it cost less to measure what it loses.
    """

    merges: Merges = field(default_factory=dict)
    trees: Mapping[ProductKey, Tree] = field(default_factory=dict)
    rewrites: tuple[AppliedRewrite, ...] = ()
    integers: bool = False
    declined: DeclinedForm | None = None

    def after(self, rewrite: AppliedRewrite) -> Lowering:
        """The same way for what a rewrite makes of the program."""
        return replace(self, rewrites=(rewrite, *self.rewrites))

    def rewrite(self, key: str) -> AppliedRewrite | None:
        """The rewrite of a name, if it was applied."""
        return next((x for x in self.rewrites if x.key == key), None)

    def contract(self, logical: LogicalProgram) -> Contracted:
        """Lower a program to vertices: this program, or one that differs from it in sizes.

        Where a rewrite or a merge is no longer allowed, it is another program, contracted as it
        stands.
        """
        for rewrite in self.rewrites:
            if (replayed := rewrite.replay(logical)) is None:
                return contract(logical)
            logical = replayed
        known = KnownMerges()
        if not may_merge_all(logical, self.merges, known):
            return contract(logical)
        return contract(merge(logical, self.merges, known), self.trees)


@dataclass(frozen=True)
class Decided:
    """A program with its statistics and the decomposition that was chosen for it."""

    program: Program
    statistics: ProgramStatistics
    decomposed: DecomposedProgram
    lowering: Lowering = field(default_factory=Lowering)


Decide = Callable[[Program], Decided]
"""Chooses a decomposition; raises if there is none."""

Work = Callable[[], float]
"""The nanoseconds of counted work that all decisions so far took."""


@dataclass(frozen=True)
class Association:
    """The chosen order, if it is not the written one.

    `products` are the products that are associated differently from the text. `cost` and `written`
    are the predicted costs of the program as chosen and as written. A cost is infinite if that
    program cannot be run or is too far off to be priced.
    """

    products: tuple[str, ...]
    cost: float
    written: float


@dataclass(frozen=True)
class JoinOrder:
    """The tensors whose statements take merged ones, and the trees of products.

    A product without a tree is associated as written.
    """

    merged: frozenset[str] = frozenset()
    trees: Mapping[ProductKey, Tree] = field(default_factory=dict)

    def __hash__(self) -> int:
        return hash((self.merged, frozenset(self.trees)))


WRITTEN = JoinOrder()


@dataclass(frozen=True)
class _Tried:
    """An order and its program; the cost is infinite if the program cannot be run."""

    order: JoinOrder
    cost: float = math.inf
    contracted: Contracted | None = None
    decided: Decided | None = None


def associate(
    logical: LogicalProgram,
    known: KnownContractions,
    decide: Decide,
    work: Work,
    association: str = "free",
    fixed: Collection[str] | None = (),
    optimisations: Optimisations = ON,
) -> tuple[Decided, Association | None]:
    """Choose the order of association together with the decomposition.

    Args:
        logical: the program.
        known: programs over the same inputs that have been contracted.
        decide: chooses the decomposition of a program in one order.
        work: what that has taken so far.
        association: ``"free"`` or ``"as-written"``.
        fixed: tensors whose statements are neither merged nor take others; None means all.
        optimisations: whether statements are merged, and how far the search goes.

    Returns:
        The decided program, and its order if that is not the written one.

    Raises:
        UcleError: the program cannot be run in any order.
    """
    if association == "as-written" or not optimisations.association:
        return decide(contract(logical).program), None
    effort = optimisations.association_effort
    search = _Search(logical, known, decide, work, effort, optimisations.association_work)
    base = search.contract_order(WRITTEN)
    small = _effort(base.program) <= effort / 3
    if small and optimisations.merge and fixed is not None:
        search.allow_merges(base, fixed)
    best = search.price(JoinOrder(trees=_trees(base)), base, bounded=False)
    written = search.price_written(base)
    best = min(written, best, key=_cost)
    if small:
        best = search.improve_order(best)
    if best.cost > written.cost * (1 - optimisations.association_gain):
        best = written
    if best.decided is None or best.contracted is None:
        raise search.errors[0]
    products = tuple(_texts(best.contracted))
    lowering = replace(search.lowering(best.order), integers=_of_integers(best.contracted))
    decomposed = search.describe(best.decided.decomposed)
    decided = replace(best.decided, lowering=lowering, decomposed=decomposed)
    return decided, Association(products, best.cost, written.cost) if products else None


class _Search:
    """The state of the search: the orders tried, the errors raised, and the remaining budget."""

    def __init__(
        self,
        logical: LogicalProgram,
        known: KnownContractions,
        decide: Decide,
        work: Work,
        effort: int,
        least_work: float,
    ) -> None:
        self.errors: list[UcleError] = []
        self._logical = logical
        self._known = known
        self._decide = decide
        self._work = work
        self._merges: Merges = {}
        self._takers: frozenset[str] = frozenset()
        self._aggregating: frozenset[str] = frozenset()
        """Those of them that differ from the text in every order: they aggregate what they take."""
        self._equal: Mapping[ProductKey, Sequence[ContractedProduct]] = {}
        """For each product of the program with all merges those that compute the same."""
        self._tried: dict[JoinOrder, _Tried] = {}
        self._left = effort
        self._least_work = least_work
        self._spent = 0.0
        """The work of orders that were priced within the budget."""
        self._is_cut = False
        # Work that orders have in common is done once.
        self._merged: dict[frozenset[str], LogicalProgram] = {}
        self._known_merges = KnownMerges()

    def allow_merges(self, base: Contracted, fixed: Collection[str]) -> None:
        """Find the statements that may be merged; without this call, none are."""
        self._merges = find_merges(self._logical, base.types, fixed, self._known_merges)
        self._takers = frozenset(self._taker(name) for name in self._merges)
        self._aggregating = frozenset(
            self._taker(name)
            for name, into in self._merges.items()
            if aggregates_alone(name, self._logical.by_name[into])
        )

    def contract_order(self, order: JoinOrder) -> Contracted:
        """Return the program with an order's merges, each product joined by the fewest tuples."""
        return self._known.contract(self._merge(order))

    def price(
        self, order: JoinOrder, contracted: Contracted | None = None, *, bounded: bool = True
    ) -> _Tried:
        """Price an order; the cost is infinite, too, if it is `bounded` and the budget is spent."""
        if order not in self._tried:
            self._tried[order] = self._price(order, contracted, bounded)
        return self._tried[order]

    def price_written(self, base: Contracted) -> _Tried:
        """Price the order of the text; its cost is infinite if it is hopeless."""
        if WRITTEN in self._tried:
            return self._tried[WRITTEN]
        try:
            written = contract(self._logical, known=self._known.pairs)
        except UcleError:
            return _Tried(WRITTEN)
        if self._is_hopeless(written, base):
            return _Tried(WRITTEN)
        return self.price(WRITTEN, written, bounded=False)

    def improve_order(self, best: _Tried) -> _Tried:
        """Change one product at a time, from the best order so far and from all merged."""
        merged = self.contract_order(JoinOrder(self._takers))
        self._equal = equal_products(merged.products)
        trees = _trees(merged)
        other_orders = {tensor for tensor, _ in trees} | self._aggregating
        all_merged = JoinOrder(self._takers & other_orders, trees)
        contracted = merged if all_merged.merged == self._takers else None
        best = min(best, self.price(all_merged, contracted), key=_cost)
        before = math.inf
        while best.cost < before and self._may_save(best):
            before = best.cost
            products = self._dearest_first(merged.products, best)
            self._is_cut |= len(products) < len(merged.products)
            for product in products:
                if not self._may_save(best):
                    break
                plain = self.price(self._plain(best.order, product.key[0]))
                best = min(plain, best, key=_cost)
                for order in self._vary_tree(best.order, product):
                    best = min(best, self.price(order), key=_cost)
                    if not self._may_save(best):
                        break
        self._is_cut |= not self._may_save(best)
        return best

    def describe(self, decomposed: DecomposedProgram) -> DecomposedProgram:
        """Add to a decomposition how many orders were priced, and whether others were left out."""
        if decomposed.search is None:
            return decomposed
        orders = sum(tried.decided is not None for tried in self._tried.values())
        search = replace(decomposed.search, orders=orders, is_cut=self._is_cut)
        return replace(decomposed, search=search)

    def _may_save(self, best: _Tried) -> bool:
        """Return whether pricing more orders may save more time than it takes."""
        return self._left > 0 and self._spent < self._least_work + best.cost * WORTH

    def _dearest_first(
        self, products: Sequence[ContractedProduct], best: _Tried
    ) -> Sequence[ContractedProduct]:
        """The products whose statements cost more than another order of them takes to price."""
        if best.contracted is None or best.decided is None or math.isinf(self._least_work):
            return products
        costs: defaultdict[str, float] = defaultdict(float)
        for name, tensor in self._computed(best.contracted.program).items():
            costs[tensor] += best.decided.decomposed.costs[name].total
        least = CONTRACTING * len(best.contracted.program.vertices)
        known = [product for product in products if costs[self._taker(product.key[0])] > least]
        return sorted(known, key=lambda product: -costs[self._taker(product.key[0])])

    def _computed(self, program: Program) -> Mapping[str, str]:
        """For each vertex the tensor whose statement it is a part of, after all merges.

        A statement's vertices end with its name's. Places in the text would not tell: statements
        that rewriting makes have that of the written one.
        """
        targets: dict[str, str] = {}
        own: list[str] = []
        for vertex in program.vertices:
            own.append(vertex.name)
            if vertex.name in self._logical.by_name:
                targets.update(dict.fromkeys(own, self._taker(vertex.name)))
                own = []
        return {**targets, **{name: name for name in own}}

    def _vary_tree(self, order: JoinOrder, product: ContractedProduct) -> Iterator[JoinOrder]:
        """Yield orders that merge a product's statements and differ from `order` in its tree.

        Equal products change with it, so that they are still computed once.
        """
        tensor = product.key[0]
        taking = order.merged | ({tensor} & self._takers)
        if taking != order.merged:
            order = self._plain(order, tensor)
        apart = self._takers - taking
        equal = [x for x in self._equal[product.key] if x.key[0] not in apart]
        now = order.trees.get(product.key, product.written)
        labels = [frozenset(factor.names) for factor in product.factors]
        near = (
            tree for tree in (*product.ranked[1:TREES], *rotations(now)) if _is_joined(tree, labels)
        )
        for tree in chain(product.ranked[:1], near):
            trees = {**order.trees, **{each.key: in_order(tree) for each in equal}}
            for each in equal:
                if in_order(tree) == each.written:
                    del trees[each.key]
            if any(key[0] == tensor for key in trees):  # otherwise nothing needs to be merged
                yield JoinOrder(taking, trees)

    def _plain(self, order: JoinOrder, taker: str) -> JoinOrder:
        """Return an order with a statement, and all that is merged into it, as written.

        Products of other statements that are equal to its own are as written, too.
        """
        own = [key for key in order.trees if self._taker(key[0]) == taker]
        left = {*own, *(x.key for key in own for x in self._equal.get(key, ()))}
        trees = {key: tree for key, tree in order.trees.items() if key not in left}
        return JoinOrder(order.merged - {taker}, trees)

    def _taker(self, name: str) -> str:
        """Return the statement into which another one is finally merged, or itself."""
        while name in self._merges:
            name = self._merges[name]
        return name

    def lowering(self, order: JoinOrder) -> Lowering:
        """Return the lowering of the program in an order."""
        merges = {x: into for x, into in self._merges.items() if self._taker(x) in order.merged}
        return Lowering(merges, order.trees)

    def _merge(self, order: JoinOrder) -> LogicalProgram:
        """Return the program with an order's merges, which all trees of its products share."""
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
                contracted = contract(merged, order.trees, known=self._known.pairs)
            effort = _effort(contracted.program)
            if bounded:
                self._spent += CONTRACTING * len(contracted.program.vertices)
            if bounded and effort > self._left:
                self._left -= CONTRACTED * len(contracted.program.vertices)
                return _Tried(order)
            self._left -= effort
            before = self._work()
            decided = self._decide(contracted.program)
            if bounded:
                self._spent += self._work() - before
        except UcleError as error:
            self.errors.append(error)
            return _Tried(order)
        return _Tried(order, decided.decomposed.total_cost, contracted, decided)

    def _is_hopeless(self, written: Contracted, base: Contracted) -> bool:
        programs = written.program, base.program
        tuples = [joined_tuples(x, self._known.measured.of(x)) for x in programs]
        return tuples[0] > HOPELESS * tuples[1]


def _cost(tried: _Tried) -> float:
    return tried.cost


def _effort(program: Program) -> int:
    """Return the number of decompositions to price: 2^labels per vertex, with at most 2^8."""
    return sum(2 ** min(len(vertex.all_labels), 8) for vertex in program.vertices)


def _is_joined(tree: Tree, labels: Sequence[frozenset[str]]) -> bool:
    """Return whether all joined factors share a label; a join of all pairs seldom pays."""

    def join_labels(
        _: Tree, left: frozenset[str] | None, right: frozenset[str] | None
    ) -> frozenset[str] | None:
        return left | right if left and right and left & right else None

    return fold(tree, lambda leaf: labels[leaf], join_labels) is not None


def _trees(contracted: Contracted) -> dict[ProductKey, Tree]:
    """Return the trees that differ from those of the text."""
    return {p.key: p.tree for p in contracted.products if in_order(p.tree) != p.written}


def _of_integers(contracted: Contracted) -> bool:
    """Return whether products of integers are associated differently from the text."""
    trees, types = _trees(contracted), contracted.types
    factors = [product.factors[0] for product in contracted.products if product.key in trees]
    return any(types[factor.tensor].dtype.kind == "i" for factor in factors)


def _texts(contracted: Contracted) -> Iterator[str]:
    """Yield the texts of products that are associated differently from the text."""
    trees = _trees(contracted)
    for product in contracted.products:
        if product.key in trees and product.key[0] in contracted.program.by_name:
            names = [factor.tensor for factor in product.factors]
            text = tree_text(product.tree, names, product.combine.text)
            yield f"{product.key[0]} = {text}"
