"""Forests of decision trees in SQL: packed once, before rows of features are joined with them."""

from __future__ import annotations

from sqlglot import exp

from ucle.plan import relation_nodes as plan
from ucle.sqlgen.kernel_calls import KernelCalls
from ucle.sqlgen.sql_trees import VALUE, add_alias, column, integer, select_from


def pack_forest(
    node: plan.PackedForest, source: exp.Expr, alias: str, kernels: KernelCalls
) -> exp.Select:
    """Return the SELECT that checks and packs a forest.

    Args:
        node: the relation.
        source: the relation in FROM for its input, under `alias`.
        alias: of the input.
        kernels: how kernels are called.
    """
    _, outputs = node.type.shape
    sizes = integer(node.features), integer(outputs)
    packed = kernels.scalar("forest_pack", column(VALUE, alias), *sizes, dtype=node.type.dtype)
    return select_from(source, add_alias(packed, VALUE))
