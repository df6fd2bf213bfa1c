"""Turn outer joins of relations without key columns into inner joins.

A tensor in one tuple may be missing; then it holds its fill alone. Unless ⊗ makes one fill of it
and the other side, an outer join keeps what is there (`ucle.ir.fills`). The same result comes from
completing the few tensors that all others are computed from. Then nothing is missing, and the
joined relations are whole tensors, which can be nested in each other.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace

from ucle.foundation.names import fold_name, unique_names
from ucle.ir.fills import JoinKind
from ucle.plan.pass_context import PassContext
from ucle.plan.relation_nodes import (
    Aggregate,
    Compute,
    ConstantRelation,
    Densify,
    FusedMaps,
    FusedStep,
    Held,
    HeldRow,
    Join,
    Load,
    Read,
    Relation,
    TableScan,
    TopKEntries,
)
from ucle.plan.relation_tree import inputs, rename_steps
from ucle.plan.steps import Plan, Role, Step


def complete_keyless(plan: Plan, context: PassContext) -> Plan:
    """Join tensors of one tuple by inner joins, completing those that may be missing."""
    steps = {step.name: step for step in plan.steps}
    joins = {step.name for step in plan.steps if _is_outer(step.relation)}
    incomplete = set(_leaves(joins, steps))
    large = any(
        steps[name].relation.type.tuple_bytes(steps[name].relation.layout)
        >= context.reference_bytes
        for name in joins
    )
    if len(incomplete) > len(joins) and not large:
        return plan  # completing them costs as many joins
    taken = {fold_name(name) for name in steps}
    names = {leaf: unique_names([f"{leaf}_complete"], taken)[0] for leaf in sorted(incomplete)}
    made = []
    for step in plan.steps:
        relation = rename_steps(step.relation, names)
        made.append(replace(step, relation=_inner(relation) if step.name in joins else relation))
        if step.name in names:
            made.append(_complete(step, names[step.name]))
    return replace(plan, steps=tuple(made))


def is_whole(relation: Relation) -> bool:
    """Return whether a relation is a tensor in one tuple, computed from tensors of one tuple each.

    Scalars do not count.
    """
    match relation:
        case FusedMaps(layout=layout):
            return not layout.scalar
        case Aggregate(_, None, _, _, layout):
            whole = not any(operand.layout.promoted for operand in inputs(relation))
            return whole and not layout.promoted and not layout.scalar
    return False


def _is_outer(relation: Relation) -> bool:
    match relation:
        case Aggregate(Compute(Join(kind))) if is_whole(relation):
            tensors = not any(operand.layout.scalar for operand in inputs(relation))
            return kind is not JoinKind.INNER and tensors
    return False


def _leaves(names: Collection[str], steps: Mapping[str, Step]) -> Iterator[str]:
    """Yield the steps that some tensors are computed from and that may be missing."""
    waiting, seen = [*names], set[str]()
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        relation = steps[name].relation
        if is_whole(relation):
            waiting += [x.step for x in map(_read, inputs(relation)) if x is not None]
        elif not is_there(relation):
            yield name


def is_there(relation: Relation) -> bool:
    """Return whether a relation without keys has its tuple: one with an entry everywhere does.

    In a compressed array, an entry may be the fill, which is not listed.
    """
    if isinstance(relation, Held) and not relation.complete:
        return False
    if isinstance(relation, TableScan | Load | Held):
        return relation.type.entries.full and relation.layout.compressed is None
    return isinstance(relation, ConstantRelation | Densify | TopKEntries | HeldRow | FusedStep)


def _read(operand: Relation) -> Read | None:
    """Return the step that an operand reads; None if the operand is already complete."""
    return operand if isinstance(operand, Read) else None


def _inner(relation: Relation) -> Relation:
    assert isinstance(relation, Aggregate)
    assert isinstance(relation.input.input, Join)
    joined = replace(relation.input.input, kind=JoinKind.INNER)
    return replace(relation, input=replace(relation.input, input=joined))


def _complete(step: Step, name: str) -> Step:
    relation = step.relation
    read = Read(step.name, step.tensor, relation.type, relation.layout)
    comment = f"{step.tensor}: its fill if it is not stored"
    return Step(name, step.tensor, Role.VIEW, Densify(read), comment)
