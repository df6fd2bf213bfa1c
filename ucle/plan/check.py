"""The invariants of what each stage hands to the next.

The structures refuse ill-formed values when they are made; what holds between several of them is
stated here. A violation is a defect of ucle, not of its input, and so an `AssertionError`.
"""

from __future__ import annotations

from collections.abc import Iterator

from ucle.ir.layouts import Layout
from ucle.plan import steps as plans
from ucle.plan.decomposition import DecomposedProgram


def check_decomposed(decomposed: DecomposedProgram) -> None:
    """Every vertex has one decomposition, over labels of its own, and every input a place."""
    program = decomposed.program
    for vertex in program.vertices:
        labels = {label.name for label in vertex.all_labels}
        promoted = decomposed.promoted[vertex.name]
        assert promoted <= labels, f"{vertex.name} promotes {sorted(promoted - labels)}"
    assert decomposed.promoted.keys() == {vertex.name for vertex in program.vertices}
    assert decomposed.stored.keys() == program.input_names
    assert decomposed.costs.keys() == decomposed.promoted.keys()


def check_plan(plan: plans.Plan) -> None:
    """Steps read only earlier steps, as what they are; names differ even when case is folded."""
    made: dict[str, plans.Step] = {}
    taken: set[str] = set()
    for step in plan.steps:
        assert step.name.casefold() not in taken, step.name
        for read in _reads(step.relation):
            assert read.step in made, f"{step.name} reads {read.step} before it is made"
            source = made[read.step].relation
            assert (source.type, source.layout) == (read.type, read.layout), read.step
        for node in _nodes(step.relation):
            _check_node(node)
        made[step.name] = step
        taken.add(step.name.casefold())
    for name, read in plan.outputs.items():
        assert read.step in made, f"output {name} is not made"


def _check_node(node: plans.Relation) -> None:
    match node:
        case plans.Decompose(source, layout):
            assert set(source.layout.promoted) < set(layout.promoted), "decomposes nothing"
        case plans.Stack(source, layout):
            assert set(layout.promoted) < set(source.layout.promoted), "stacks nothing"
        case plans.Exchange(source, layout, axis, block):
            assert axis in source.layout.promoted, "blocks of an axis that is not a key"
            assert axis in layout.dense, "blocks of an axis that stays a key"
            assert set(layout.promoted) - set(source.layout.promoted), "promotes nothing"
            assert block > 1, "blocks of single tuples"
        case plans.Reduce(compute, _, labels, type_, layout):
            assert len(labels) == type_.rank == len(layout.levels)
            promoted = {labels[axis] for axis in layout.promoted}
            dense = {labels[axis] for axis in layout.dense}
            keys = _promoted_labels(compute)
            assert promoted <= keys, f"groups by {sorted(promoted - keys)}, which are not keys"
            assert not dense & keys, f"{sorted(dense & keys)} are keys and inside the arrays"


def _promoted_labels(compute: plans.Compute) -> set[str]:
    """Labels that are keys of a kernel's input; a shared one must have one level on both sides."""
    source = compute.input
    if not isinstance(source, plans.Join):
        return _split(compute.labels, source.layout)[0]
    left, left_dense = _split(source.left_labels, source.left.layout)
    right, right_dense = _split(source.right_labels, source.right.layout)
    torn = (left & right_dense) | (right & left_dense)
    assert not torn, f"{sorted(torn)} are shared and have two levels"
    return left | right


def _split(labels: tuple[str, ...], layout: Layout) -> tuple[set[str], set[str]]:
    return {labels[axis] for axis in layout.promoted}, {labels[axis] for axis in layout.dense}


def _nodes(relation: plans.Relation) -> Iterator[plans.Relation]:
    """A relation and all relations below it."""
    yield relation
    match relation:
        case plans.Rearrange(source):
            yield from _nodes(source)
        case plans.Reduce(plans.Compute(plans.Join(_, left, right))):
            yield from _nodes(left)
            yield from _nodes(right)
        case plans.Reduce(plans.Compute(source)):
            assert not isinstance(source, plans.Join)
            yield from _nodes(source)


def _reads(relation: plans.Relation) -> Iterator[plans.Read]:
    return (node for node in _nodes(relation) if isinstance(node, plans.Read))
