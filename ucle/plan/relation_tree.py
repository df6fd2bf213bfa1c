"""Trees of relations: their nodes and inputs, copies with others, and their text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from ucle.foundation.tree_walk import fold, walk
from ucle.plan.relation_nodes import (
    Aggregate,
    ByReference,
    ColumnExpressions,
    ColumnOfTimes,
    Compute,
    ConstantRelation,
    FusedMaps,
    FusedStep,
    Held,
    HeldRow,
    Join,
    Load,
    LookupJoin,
    MaskedJoin,
    MultiwayJoin,
    Nested,
    PackedForest,
    PairedScan,
    Portion,
    PrefixScan,
    Read,
    Rearrange,
    Reindex,
    Relation,
    Slices,
    Slot,
    Sorted,
    TableScan,
    TopKEntries,
    WindowOfTimes,
)


def inputs(relation: Relation) -> tuple[Relation, ...]:
    """Return the relations that a relation reads directly, from left to right."""
    match relation:
        case Rearrange(source) | Reindex(source) | PrefixScan(source) | TopKEntries(source):
            return (source,)
        case ColumnExpressions(source) | ColumnOfTimes(source):
            return (source,)
        case PairedScan(first, second):
            return (first, second)
        case WindowOfTimes(times, source):
            return (times,) if source is None else (times, source)
        case (
            FusedMaps(operands)
            | FusedStep(operands)
            | MultiwayJoin(operands)
            | LookupJoin(operands)
        ):
            return operands
        case Aggregate(Compute(Join(_, left, right))):
            return (left, right)
        case Aggregate(Compute(MaskedJoin(mask, left, right))):
            return (mask, left, right)
        case Aggregate(Compute(source)):
            assert not isinstance(source, Join | MaskedJoin)
            return (source,)
    return ()


def with_inputs(relation: Relation, new: Sequence[Relation]) -> Relation:
    """Return a relation with other inputs."""
    if all(one is other for one, other in zip(inputs(relation), new, strict=True)):
        return relation
    match relation:
        case FusedMaps() | FusedStep() | MultiwayJoin() | LookupJoin():
            return replace(relation, operands=tuple(new))
        case Aggregate(Compute(Join() as joined) as compute):
            left, right = new
            joined = replace(joined, left=left, right=right)
            return replace(relation, input=replace(compute, input=joined))
        case Aggregate(Compute(MaskedJoin() as masked) as compute):
            mask, left, right = new
            masked = replace(masked, mask=mask, left=left, right=right)
            return replace(relation, input=replace(compute, input=masked))
        case Aggregate(compute):
            return replace(relation, input=replace(compute, input=new[0]))
        case Rearrange() | Reindex() | PrefixScan() | TopKEntries():
            return replace(relation, input=new[0])
        case WindowOfTimes():
            times, *others = new
            assert isinstance(times, TableScan)
            return replace(relation, times=times, input=others[0] if others else None)
        case ColumnOfTimes():
            (read,) = new
            assert isinstance(read, Read)
            return replace(relation, input=read)
        case ColumnExpressions():
            (scan,) = new
            assert isinstance(scan, TableScan)
            return replace(relation, input=scan)
        case PairedScan():
            first, second = new
            return replace(relation, first=first, second=second)
    raise AssertionError("a relation that is made of nothing")


def rename_steps(relation: Relation, names: Mapping[str, str]) -> Relation:
    """Return a relation that reads some steps under their new names."""
    if isinstance(relation, Read):
        return replace(relation, step=names.get(relation.step, relation.step))
    return with_inputs(relation, [rename_steps(x, names) for x in inputs(relation)])


def reading(relation: Relation, others: Mapping[str, Read]) -> Relation:
    """Return a relation in which reads of some steps are replaced by other reads."""
    if isinstance(relation, Read):
        other = others.get(relation.step, relation)
        return replace(relation, step=other.step, column=other.column)
    return with_inputs(relation, [reading(x, others) for x in inputs(relation)])


def nodes(relation: Relation) -> Iterator[Relation]:
    """Yield a relation and all relations below it."""
    return walk(relation, inputs)


def reads(relation: Relation) -> tuple[str, ...]:
    """Return the names of the steps that a relation reads, with repetition."""
    return tuple(node.step for node in nodes(relation) if isinstance(node, Read))


def describe(relation: Relation) -> str:
    """Return a relation as a nested expression, for a person."""
    return fold(relation, inputs, _describe)


def _describe(relation: Relation, children: list[str]) -> str:
    match relation:
        case Read(step, column=column):
            return step if column is None else f"{step}.{column}"
        case TableScan(source):
            return f"scan({source.origin})"
        case PairedScan():
            return f"rows of {children[0]} and {children[1]}"
        case Load(source):
            return f"load({source.tensor})"
        case Held():
            return "held"
        case HeldRow(members):
            return f"held {', '.join(members)}"
        case Slot(number):
            return f"${number}"
        case FusedStep(_, lines, results):
            made = "; ".join(map(describe, lines))
            kept = ", ".join(f"{name} = ${slot.number}" for name, slot in results.items())
            return f"tape of {', '.join(children)}: {made}; {kept}"
        case ConstantRelation(data):
            return f"constant({len(data)} bytes)"
        case ByReference():
            return f"reference({children[0]})"
        case PackedForest():
            return f"packed forest({children[0]})"
        case Nested():
            return f"({children[0]})"
        case Slices(_, axis, starts):
            name = relation.type.axes[axis].name
            return f"{len(starts) + 1} slices({children[0]} by {name})"
        case Sorted():
            return f"sorted({children[0]})"
        case Portion(_, axis, start, end):
            name = relation.type.axes[axis].name
            ends = "" if start is None else f"{start}", "" if end is None else f"{end}"
            return f"portion({children[0]} of {name} {ends[0]}:{ends[1]})"
        case FusedMaps(_, program):
            return f"{program} of {', '.join(children)}"
        case WindowOfTimes(operation=operation, counted=counted):
            also = " and count" if counted else ""
            return f"{operation.name}{also} over windows({', '.join(children)})"
        case ColumnOfTimes(column=column):
            return f"{column or 'values'} of {children[0]}"
        case ColumnExpressions(_, stages):
            made = ", ".join(stage.tensor for stage in stages)
            return f"{made} of the columns of {children[0]}"
        case MultiwayJoin():
            return f"multiway join({', '.join(children)})"
        case LookupJoin():
            return f"look-ups({', '.join(children)})"
        case Rearrange():
            axes = ",".join(relation.type.axes[axis].name for axis in relation.layout.promoted)
            return f"{type(relation).__name__.lower()}({children[0]} by [{axes}])"
        case Reindex(index=index):
            return index.text(children[0])
        case PrefixScan(along=along):
            return f"{along.name}[{','.join(along.labels)}]({children[0]})"
        case TopKEntries(top=top):
            return top.text(children[0], top.label)
        case Aggregate(compute, operation, labels, _, layout):
            keys = ",".join(labels[axis] for axis in layout.promoted)
            inner = _describe_compute(compute, children)
            return f"{operation.name}({inner}) group by [{keys}]" if operation else inner


def _describe_compute(compute: Compute, children: list[str]) -> str:
    names = [*(str(step) for step in compute.maps), compute.kernel.name]
    if compute.kernel.name is None and compute.combine is not None:
        names.append(compute.combine.name)
    (inner,) = children[:1]
    if isinstance(compute.input, Join):
        inner = f"{compute.input.kind.name.lower()} join({', '.join(children)})"
    elif isinstance(compute.input, MaskedJoin):
        inner = f"join({', '.join(children)})"
    chain = " then ".join(name for name in names if name)
    return f"{chain} of {inner}" if chain else inner
