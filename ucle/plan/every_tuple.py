"""Find out whether every tuple that the bounds allow is stored, as far as the plan can tell.

That a tensor has an entry everywhere does not show it: an entry may equal the fill by chance, and a
repartition into keys leaves such entries out. So the answer depends on how a relation is made.
"""

from __future__ import annotations

from collections.abc import Mapping

from ucle.ir.layouts import Layout
from ucle.ir.tensor_types import TensorType
from ucle.plan.relation_nodes import (
    Aggregate,
    Compute,
    Densify,
    Gather,
    Load,
    MaskedJoin,
    PrefixScan,
    Read,
    Recode,
    Relation,
    Stack,
    TableScan,
    TopKEntries,
)
from ucle.plan.relation_tree import inputs


def has_every_tuple(relation: Relation, made: Mapping[str, Relation]) -> bool:
    """Return whether no tuple of a relation can be missing.

    Args:
        relation: the relation.
        made: the relations of the steps that it reads, directly or not.
    """
    waiting, seen = [relation], set[str]()
    while waiting:
        node = waiting.pop()
        if _is_nowhere_fill(node.type):
            continue
        match node:
            case Read(step):
                if step not in seen:
                    seen.add(step)
                    waiting.append(made[step])
            case Densify() | TopKEntries():
                continue
            case TableScan() | Load():
                if not _is_stored_everywhere(node.type, node.layout):
                    return False
            case Aggregate(Compute(MaskedJoin())):
                return False
            case Aggregate() | PrefixScan() | Stack() | Recode() | Gather():
                waiting += inputs(node)
            case _:
                return False
    return True


def _is_nowhere_fill(type_: TensorType) -> bool:
    """Return whether no entry equals the fill, so that none is pruned."""
    return type_.entries.full and type_.fill == 0 and type_.entries.excludes_zero


def _is_stored_everywhere(type_: TensorType, layout: Layout) -> bool:
    """Return whether an input's statistics show it; entries equal to the fill were not counted."""
    if type_.entries.full:
        return True
    keys = layout.promoted
    return type_.occupied if not keys else len(keys) == 1 and keys[0] in type_.covered
