"""Nest steps without key columns in the steps that read them.

A relation without key columns has at most one tuple, so a step that joins two of them and applies a
kernel is no more than an expression. A chain of such steps (the gates of a quantum circuit on a
state in one tuple, the layers of a small network) is one relation over a few others of one tuple,
in which each kernel call is an argument of the next. As separate joins, each would take DuckDB half
a millisecond to bind and plan.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace

from ucle.foundation.dataclasses import dataclass
from ucle.foundation.dtypes import DType
from ucle.ir.fills import JoinKind
from ucle.ir.maps import Map, Partial
from ucle.plan.pass_context import Expression, PassContext
from ucle.plan.relation_nodes import (
    Aggregate,
    Compute,
    ConstantRelation,
    FusedMaps,
    Join,
    MaskedJoin,
    Nested,
    Read,
    Recode,
    Relation,
    TableScan,
)
from ucle.plan.relation_tree import inputs, reads, with_inputs
from ucle.plan.sources import InMemory, TableName, TableSource
from ucle.plan.steps import Plan, Role, Step

DEEPEST = 24
"""The deepest nesting of steps; DuckDB takes more, but sqlglot is limited by Python's stack."""

TALLEST = 200
"""The greatest height of one expression: a step may apply many functions in sequence."""

WIDEST = 16
"""The most relations in one FROM clause: with a hundred, DuckDB takes 0.1 s to order the joins."""

CONSTANT_HEIGHT, SCAN_HEIGHT, CALL_HEIGHT = 2, 4, 4
"""The heights of a constant, of an array from a table, and of a call on a column."""


def nest_keyless(plan: Plan, context: PassContext) -> Plan:
    """Nest steps without key columns that are read once in a statement in their readers.

    Constants are nested in all of their readers.
    """
    outputs = {read.step for read in plan.outputs.values()}
    steps = _nest_views(plan.steps, outputs, context)
    return replace(plan, steps=tuple(_with_nested_views(x, context) for x in steps))


def _with_nested_views(step: Step, context: PassContext) -> Step:
    if not step.views:
        return step
    *views, step = _nest_views((*step.views, replace(step, views=())), {step.name}, context)
    return replace(step, views=tuple(views))


def _nest_views(
    steps: Sequence[Step], separate: Collection[str], context: PassContext
) -> list[Step]:
    """Return steps in which views with one reader are nested in that reader.

    Args:
        steps: each after those that it reads.
        separate: names of views that stay separate, whatever reads them.
        context: the context of the pass.
    """
    readers = Counter(name for step in steps for name in reads(step.relation))
    comments = {step.name: step.comment for step in steps}
    chains: dict[str, _Chain] = {}
    longer: dict[str, Step] = {}
    for step in steps:
        if (chain := _chain(step.relation, context)) is None:
            continue
        inside: list[str] = []
        for place, operand in enumerate(inputs(step.relation)):
            if not isinstance(operand, Read) or (inner := chains.get(operand.step)) is None:
                continue
            if not inner.sources:
                inner = replace(inner, depth=0)  # constants do not count as depth
            elif readers[operand.step] > 1:
                continue
            if (grown := chain.taking(place, inner, operand)) is not None:
                chain = grown
                inside.append(comments[operand.step])
        if step.role is not Role.TABLE and step.name not in separate:
            chains[step.name] = chain
        if inside:
            # The comment still mentions the nested steps.
            comment = comments[step.name] = "\n".join(dict.fromkeys((*inside, step.comment)))
            longer[step.name] = replace(step, relation=chain.relation, comment=comment)
    return _without_unread([longer.get(x.name, x) for x in steps], separate)


def _without_unread(steps: Sequence[Step], separate: Collection[str]) -> list[Step]:
    """Return the steps without the views that no other step reads any more."""
    read: set[str] = set()
    kept = []
    for step in reversed(steps):
        if step.role is not Role.VIEW or step.name in separate or step.name in read:
            read.update(reads(step.relation))
            kept.append(step)
    return kept[::-1]


@dataclass(frozen=True)
class _Source:
    """A relation of one tuple that an expression reads, or a column of such a relation."""

    name: str
    column: str | None = None


@dataclass(frozen=True)
class _Chain:
    """An expression over relations of one tuple.

    `places` are the sources that are operands of the last step, each with the number of times it is
    named there; None if another step was put in its place. `inner` are the sources of those nested
    steps. `own` is the height of the last step alone, `height` that of the whole expression.
    """

    relation: Relation
    places: tuple[tuple[_Source, int] | None, ...]
    own: int
    height: int
    inner: tuple[_Source, ...] = ()
    depth: int = 1

    @property
    def sources(self) -> frozenset[_Source]:
        """All sources that the expression reads."""
        return frozenset((*self.inner, *(place[0] for place in self.places if place)))

    def taking(self, place: int, other: _Chain, read: Read) -> _Chain | None:
        """Return the expression with another in an operand's place, if it is named there once."""
        source = self.places[place]
        assert source is not None
        if source[1] != 1:
            return None
        depth, height = self.depth + other.depth, max(self.height, self.own + other.height)
        left = tuple(None if n == place else x for n, x in enumerate(self.places))
        inner = tuple(dict.fromkeys((*self.inner, *other.sources)))
        operands = list(inputs(self.relation))
        operands[place] = Nested(other.relation, read.step, read.tensor)
        relation = with_inputs(self.relation, operands)
        chain = _Chain(relation, left, self.own, height, inner, depth)
        if depth > DEEPEST or height > TALLEST or len(chain.sources) > WIDEST:
            return None
        return chain


def _chain(relation: Relation, context: PassContext) -> _Chain | None:
    """Return a relation as a chain, if it is an expression over relations of one tuple."""
    match relation:
        case ConstantRelation():
            return _Chain(relation, (), CONSTANT_HEIGHT, CONSTANT_HEIGHT)
        case TableScan(source) if _is_array(relation):
            read = _Source(f"table {source.origin}")
            return _Chain(relation, ((read, 1),), SCAN_HEIGHT, SCAN_HEIGHT)
        case FusedMaps(operands):
            sources = [_source(operand) for operand in operands]
            if None in sources:
                return None
            named = tuple((source, 1) for source in sources if source is not None)
            return _Chain(relation, named, CALL_HEIGHT, CALL_HEIGHT)
        case Recode(operand, layout) if not layout.promoted:
            array = _source(operand)
            if array is None:
                return None
            return _Chain(relation, ((array, 1),), CALL_HEIGHT, CALL_HEIGHT)
        case Aggregate(compute, None, _, type_, layout) if not layout.promoted:
            places = [_source(operand) for operand in inputs(relation)]
            placed = [place for place in places if place is not None]
            expression = _expression(compute, type_.dtype, context)
            if len(placed) < len(places) or expression is None:
                return None
            pairs = zip(placed, expression.uses, strict=True)
            return _Chain(relation, tuple(pairs), expression.height, expression.height)
    return None


def _source(operand: Relation) -> _Source | None:
    return _Source(operand.step, operand.column) if isinstance(operand, Read) else None


def _is_array(scan: TableScan) -> bool:
    """Return whether a table holds one array, which is read unchanged.

    The table must have a simple name, as the tables of this program's data do, because a FROM
    clause repeats it.
    """
    source = scan.source
    named = isinstance(source.origin, InMemory) or (
        isinstance(source.origin, TableName) and len(source.origin.parts) == 1
    )
    as_it_is = not source.sum_duplicates and not source.ends and not _is_converted(source)
    return named and as_it_is and not scan.layout.promoted and not scan.layout.scalar


def _is_converted(source: TableSource) -> bool:
    """Return whether numbers are converted to pairs one by one."""
    return source.dtype.kind == "c" and not source.pairs


def _expression(compute: Compute, dtype: DType, context: PassContext) -> Expression | None:
    """Return the last step of a chain as an expression of its operands."""
    if isinstance(compute.input, MaskedJoin):
        return None
    if isinstance(compute.input, Join):
        if compute.input.kind is not JoinKind.INNER:
            return None
        if compute.kernel.name is None:
            return context.expression(compute, dtype)
        return Expression((1, 1), CALL_HEIGHT)
    if compute.input.layout.scalar:
        return context.expression(compute, dtype)
    compiled = all(
        step.function.compiled if isinstance(step, Map) else step.combine.compiled
        for step in compute.maps
        if isinstance(step, Map | Partial)
    )
    calls = len(compute.maps) + (compute.kernel.name is not None)
    # Maps over the values of a compressed array name the array twice.
    uses = 2 if compute.input.layout.compressed is not None and compute.maps else 1
    return Expression((uses,), calls + CALL_HEIGHT - 1) if compiled else None
