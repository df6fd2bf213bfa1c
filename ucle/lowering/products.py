"""Products: the chains of factors that can be joined in any order, and the orders to try.

A product is a step of the logical program whose factors have become operands.
`ucle.lowering.contraction_orders` proposes the trees worth trying and ranks them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cached_property

from ucle.errors import UcleError
from ucle.foundation.dataclasses import dataclass
from ucle.ir.contraction_trees import Tree, in_order
from ucle.ir.tensor_types import TensorType
from ucle.ir.vertices import Operand, Vertex
from ucle.lowering.contraction_orders import EVERY_TREE, propose_trees, ranked_trees
from ucle.lowering.joined_parts import Parts
from ucle.lowering.logical import Contraction
from ucle.lowering.pairwise import Pairwise, leaf
from ucle.lowering.product_orders import exact_order, greedy_orders
from ucle.operators import Combine, Reduce
from ucle.stats.estimate import Estimator, Statistics

ProductKey = tuple[str, int]
"""The key of a product: the tensor of its statement, and its number among the products there."""


@dataclass(frozen=True)
class ContractedProduct:
    """A product that was contracted: its factors, and the tree in which they were joined.

    Labels of `over` are aggregated by `reduce`.
    `written` is the tree of the text. `ranked` holds the trees that were compared, if any; the
    first one sends the fewest tuples through joins.
    """

    key: ProductKey
    combine: Combine
    factors: tuple[Operand, ...]
    over: frozenset[str]
    reduce: Reduce | None
    written: Tree
    tree: Tree
    ranked: tuple[Tree, ...] = ()

    @cached_property
    def work(self) -> tuple[object, ...]:
        """What is computed, whatever labels are called; equal for products that compute the same.

        The order of factors counts.
        """
        order: dict[str, int] = {}
        for factor in self.factors:
            for name in factor.names:
                order.setdefault(name, len(order))
        places = [(x.tensor, tuple(order[name] for name in x.names)) for x in self.factors]
        over = frozenset(order[name] for name in self.over if name in order)
        return self.combine, self.reduce, tuple(places), over


def equal_products(
    products: Sequence[ContractedProduct],
) -> dict[ProductKey, list[ContractedProduct]]:
    """Return for each product, by its key, those that compute the same, itself included."""
    groups: defaultdict[object, list[ContractedProduct]] = defaultdict(list)
    for product in products:
        groups[product.work].append(product)
    return {product.key: groups[product.work] for product in products}


def ranked_orders(
    step: Contraction,
    factors: Sequence[Operand],
    written: Tree,
    pairwise: Pairwise,
    types: Mapping[str, TensorType],
    known: Mapping[str, Statistics],
    estimator: Estimator,
) -> tuple[Tree, ...]:
    """Return the trees of a product that are worth trying, with the fewest tuples first.

    Args:
        step: the product.
        factors: its factors, which already exist.
        written: the tree of the text.
        pairwise: the vertices that join its factors.
        types: types of the tensors that exist.
        known: statistics of the tensors that exist.
        estimator: estimates the statistics of the other tensors.
    """
    over = set(step.over)
    kept = frozenset(x.name for operand in factors for x in operand.labels if x not in over)
    read = {leaf(number): operand.tensor for number, operand in enumerate(factors)}
    statistics = {name: known[tensor] for name, tensor in read.items()}
    first = {tensor: name for name, tensor in reversed(read.items())}
    asked = written, *statistics.values(), *(first[tensor] for tensor in read.values())
    if asked not in pairwise.ranked:
        trees = propose_trees(factors, kept, known, written)
        if len(factors) > EVERY_TREE:
            trees += _by_tuples(Parts(pairwise, statistics, estimator))
        pairwise.ranked[asked] = ranked_trees(
            list(dict.fromkeys(trees)),
            pairwise.vertices,
            {name: types[tensor] for name, tensor in read.items()},
            statistics,
            estimator,
            read,
        )
    return pairwise.ranked[asked]


def _by_tuples(parts: Parts) -> list[Tree]:
    """Return orders by the tuples that joins emit: greedy ones, and the best one if worthwhile."""
    with suppress(UcleError):  # some pair of factors has no type that holds its fill
        orders = greedy_orders(parts)
        if orders:
            best = exact_order(parts, min(x.emitted for x in orders))
            return [in_order(x.tree) for x in (*orders, *([best] if best else []))]
    return []


def outgrow(vertices: Sequence[Vertex]) -> bool:
    """Return whether the data shows that finite numbers may outgrow their type in some vertices.

    Numbers that are going to be replaced are unknown, and quotients and inverses may be of any
    size; they get the cheapest order.
    """
    types = [v.tensor.type for v in vertices if v.tensor.type.dtype.kind == "f"]
    return any(type_.entries.order_matters for type_ in types)
