"""Find out whether every tuple that the bounds allow is stored, now or whatever rows are deleted.

That a tensor has an entry everywhere does not show it: an entry may equal the fill by chance, and a
repartition into keys leaves such entries out. So the answer depends on how a relation is made. For
views, the statistics of today's data say nothing about the data that they will read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ucle.ir.forests import Forest
from ucle.ir.layouts import Layout
from ucle.ir.linear_systems import LinearSystem
from ucle.ir.tensor_types import TensorType
from ucle.plan.pass_context import PassContext
from ucle.plan.relation_nodes import (
    Aggregate,
    ColumnExpressions,
    Compute,
    ConstantRelation,
    Densify,
    Gather,
    Load,
    MaskedJoin,
    PairedScan,
    PrefixScan,
    Read,
    Recode,
    Relation,
    Stack,
    TableScan,
    TopKEntries,
)
from ucle.plan.relation_tree import inputs, with_inputs
from ucle.plan.sources import Dictionary
from ucle.plan.steps import Plan


def has_every_tuple(
    relation: Relation, made: Mapping[str, Relation], dictionaries: Sequence[Dictionary] = ()
) -> bool:
    """Return whether no tuple of a relation can be missing.

    Args:
        relation: the relation.
        made: the relations of the steps that it reads, directly or not.
        dictionaries: those of the program; a table has all coordinates of its own one.
    """
    waiting, seen = [relation], set[str]()
    while waiting:
        needed = steps_to_have_every_tuple(waiting.pop(), dictionaries)
        if needed is None:
            return False
        waiting += [made[step] for step in needed if step not in seen]
        seen.update(needed)
    return True


def steps_to_have_every_tuple(
    relation: Relation, dictionaries: Sequence[Dictionary]
) -> list[str] | None:
    """Return the steps of which no tuple may be missing, so that none of the relation is.

    None if a tuple may be missing whatever they have.
    """
    waiting, needed = [relation], list[str]()
    while waiting:
        node = waiting.pop()
        match node:
            case Read(step):
                needed.append(step)
            case TopKEntries() if node.leaves_out:
                return None
            case Densify() | TopKEntries() | ConstantRelation():
                continue
            case TableScan():
                if not is_complete_scan(node, dictionaries):
                    return None
            case Load():
                if not node.complete and not _is_stored_everywhere(node.type, node.layout):
                    return None
            case Aggregate(Compute(MaskedJoin())):
                return None
            case Aggregate() | PrefixScan() | Stack() | Recode() | Gather() | ColumnExpressions():
                waiting += inputs(node)
            case PairedScan():  # with fewer tuples missing where the join is an outer one
                waiting += inputs(node)
            case _:
                return None
    return needed


def _is_stored_everywhere(type_: TensorType, layout: Layout) -> bool:
    """Return whether an input's statistics show it; entries equal to the fill were not counted.

    Of a tensor that varies, such as the state of a loop, only the first one was counted.
    """
    if type_.entries.varies:
        return False
    if type_.entries.full:
        return True
    keys = layout.promoted
    return type_.occupied if not keys else len(keys) == 1 and keys[0] in type_.covered


def is_complete_scan(scan: TableScan, dictionaries: Sequence[Dictionary]) -> bool:
    """Return whether a table with arrays has a tuple for every position along its keys.

    That is so whatever its rows are if the positions are numbers that a dictionary gives to them.
    """
    keys, source = scan.layout.promoted, scan.source
    if len(keys) == 1 and source.is_encoded(0) and not scan.layout.scalar:
        axis = scan.type.axes[keys[0]]
        numbered = next((x for x in dictionaries if x.name == axis.dictionary), None)
        if numbered is not None and numbered.size == axis.bound:
            own = {(x.origin, key, x.times) for x, key in numbered.columns}
            if own == {(source.origin, source.keys[0], None)}:
                return True
    return _is_stored_everywhere(scan.type, scan.layout)


def _completed(relation: Relation) -> Relation:
    return relation if isinstance(relation, Densify) else Densify(relation)


def expect_gaps(plan: Plan, _: PassContext) -> Plan:
    """Treat tuples as possibly missing even if all are there now: rows may be deleted."""
    steps = tuple(replace(step, relation=expecting_gaps(step.relation)) for step in plan.steps)
    return replace(plan, steps=steps)


def expecting_gaps(relation: Relation) -> Relation:
    """Return a relation that asks for no tuple that may be missing; itself if it asks for none.

    Rankings, forests and systems of equations ask for them when they are planned.
    """
    if isinstance(relation, Aggregate) and relation.input.kernel.name == Forest.kernel:
        features, packed = map(expecting_gaps, inputs(relation))
        return with_inputs(relation, [_completed(features), packed])
    if isinstance(relation, Aggregate) and relation.input.kernel.name == LinearSystem.kernel:
        return with_inputs(relation, [_completed(expecting_gaps(x)) for x in inputs(relation)])
    if isinstance(relation, TopKEntries) and relation.leaves_out:
        return with_inputs(relation, [expecting_gaps(relation.input)])
    if isinstance(relation, TopKEntries) and relation.axis in relation.input.layout.promoted:
        return replace(relation, whole=False) if relation.whole else relation
    if isinstance(relation, TopKEntries) and not isinstance(relation.input, Densify):
        return replace(relation, input=Densify(relation.input))
    return with_inputs(relation, [expecting_gaps(x) for x in inputs(relation)])
