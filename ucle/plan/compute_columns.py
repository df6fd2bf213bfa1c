"""Compute rows of wide tables by expressions over their columns, without arrays in between.

A row of a wide table is one array of few entries. To pack a million of them, call a kernel for each
vertex and read the arrays again takes longer than the arithmetic does: an expression of SQL over
columns takes 0.5 ns for each operation and row, while an entry that is packed and read by a kernel
takes 5 ns. So chains of vertices whose other operands are small constants become one step: scalers,
linear models, normalised probabilities. A product with many outputs stays with its kernel, which
takes 0.05 ns for each of its products; its operand is then packed once, after what is before it.

What goes in: the vertices and constants of `ucle.plan.pass_context.Meanings`, and a plan with a
step for each vertex. What comes out: the same outputs, and `ColumnExpressions` in some steps. Only
outputs change their layout, from tiles of rows to rows.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Set
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ucle.ir.vertices import Vertex
from ucle.plan.column_stages import WIDEST, RowTensor, write_vertex
from ucle.plan.every_tuple import is_complete_scan
from ucle.plan.pass_context import Meanings, PassContext
from ucle.plan.relation_nodes import (
    Aggregate,
    BlockRepartition,
    Cell,
    ColumnExpressions,
    Decompose,
    Densify,
    Load,
    MaskedJoin,
    Read,
    Recode,
    Relation,
    Stack,
    TableScan,
)
from ucle.plan.relation_tree import inputs, reads
from ucle.plan.steps import Plan, Step

KINDS = "bif"
"""The kinds of numbers that SQL computes as kernels do."""


def compute_columns(plan: Plan, context: PassContext) -> Plan:
    """Replace vertices over the rows of wide tables by expressions over their columns."""
    facts = context.meanings
    if facts is None or not any(_is_wide(step.relation) for step in plan.steps):
        return plan
    rows = _find_rows(plan, facts)
    made = _choose_made(plan, rows)
    if not made:
        return plan
    steps = tuple(_replace_step(step, made, rows) for step in plan.steps)
    by_name = {step.name: step.relation for step in steps}
    outputs = {
        name: replace(read, layout=by_name[read.step].layout) if read.step in made else read
        for name, read in plan.outputs.items()
    }
    return _drop_unread(replace(plan, steps=steps, outputs=outputs))


def _is_wide(relation: Relation) -> bool:
    """Return whether a relation is a wide table with an array for each row of its own."""
    if not isinstance(relation, TableScan):
        return False
    source = relation.source
    plain = not (source.sum_duplicates or source.placed or source.symmetric or source.times)
    return plain and bool(source.wide) and source.features is None


def _find_rows(plan: Plan, facts: Meanings) -> dict[str, RowTensor]:
    """Return the steps that can be computed from the columns of a wide table, by name."""
    found: dict[str, RowTensor] = {}
    constants: dict[str, NDArray[Any]] = {}
    checked = {check.step for check in plan.checked}
    for step in plan.steps:
        made: RowTensor | None = None
        match step.relation:
            case Load() as load:
                if (array := _constant(load, facts)) is not None:
                    constants[step.name] = array
            case TableScan() as scan:
                if _is_wide(scan) and facts.rows(step.tensor, scan.layout) >= facts.least:
                    made = _scan_rows(scan, plan)
            case Aggregate() as relation:
                vertex = facts.vertices.get(step.tensor)
                if vertex is not None and step.name not in checked and _fits(vertex, relation):
                    names = [_find_read(x) for x in inputs(relation)]
                    operands = [found.get(x, constants.get(x)) if x else None for x in names]
                    made = write_vertex(vertex, operands)
            case Stack() | Decompose() | BlockRepartition() | Recode() as relation:
                source = found.get(_find_read(relation) or "")
                made = None if source is None else replace(source, computed=False)
        if made is not None:
            found[step.name] = made
    return found


def _constant(load: Load, facts: Meanings) -> NDArray[Any] | None:
    """Return the elements of an array from memory that may be written out."""
    data, type_ = facts.constants.get(load.source.tensor), load.type
    if data is None or len(data) != math.prod(type_.shape) * type_.dtype.bytes:
        return None
    return np.frombuffer(data, type_.dtype.numpy).reshape(type_.shape)


def _find_read(relation: Relation) -> str | None:
    """Return the step of which a relation has the tensor, in whatever layout."""
    while isinstance(relation, Densify | Stack | Decompose | BlockRepartition | Recode):
        relation = relation.input
    return relation.step if isinstance(relation, Read) and relation.column is None else None


def _fits(vertex: Vertex, relation: Aggregate) -> bool:
    """Return whether expressions compute a vertex as its step does."""
    plain = vertex.is_product and not isinstance(relation.input.input, MaskedJoin)
    reduces = vertex.reduce is None or vertex.reduce.merge is not None
    return plain and reduces and vertex.tensor.type.dtype.kind in KINDS


def _scan_rows(scan: TableScan, plan: Plan) -> RowTensor | None:
    """Return a wide table with its columns as cells; None if they do not fill the axis."""
    type_, layout = scan.type, scan.layout
    width = len(scan.source.wide)
    if layout.promoted != tuple(range(type_.rank - 1)) or not layout.plain:
        return None
    if type_.shape[-1] != width or width > WIDEST or type_.dtype.kind not in KINDS:
        return None
    cells = np.empty(width, object)
    cells[:] = [Cell(0, number) for number in range(width)]
    complete = is_complete_scan(scan, plan.dictionaries)
    missing = None if complete else np.full(width, type_.fill, object)
    return RowTensor(scan, layout.promoted, type_, cells, missing)


# ---- What is made ----


def _choose_made(plan: Plan, rows: Mapping[str, RowTensor]) -> frozenset[str]:
    """Return the steps that become expressions; those that only such steps read are left out.

    Results may change their layout to a tuple for each row. What another step reads may not: it
    stays as it is, and so do the steps before it, as far as it needs them.
    """
    chosen = {name for name, each in rows.items() if each.computed}
    by_name = {step.name: step.relation for step in plan.steps}
    while True:
        needed, read = _find_needed(plan, chosen)
        kept = {x for x in chosen & read if by_name[x].layout != rows[x].layout}
        if not kept:
            return frozenset(chosen & needed)
        chosen -= kept


def _find_needed(plan: Plan, leaves: Set[str] = frozenset()) -> tuple[set[str], set[str]]:
    """Return the steps that results need if some steps read no others, and those that steps read.

    The second are among the first.
    """
    by_name = {step.name: step for step in plan.steps}
    waiting, needed, read = list(plan.results), set[str](), set[str]()
    while waiting:
        name = waiting.pop()
        if name in needed:
            continue
        needed.add(name)
        if name not in leaves:
            sources = reads(by_name[name].relation)
            read.update(sources)
            waiting += sources
    return needed, read


def _replace_step(step: Step, made: Set[str], rows: Mapping[str, RowTensor]) -> Step:
    if step.name not in made:
        return step
    each = rows[step.name]
    cells = tuple(each.cells.reshape(-1))
    relation = ColumnExpressions(each.scan, each.stages, cells, each.keys, each.type, each.layout)
    others = len(each.stages) - 1
    before = f", with {others} steps before it" if others else ""
    comment = f"{step.comment}\nby columns of {each.scan.source.origin}{before}"
    return replace(step, relation=relation, comment=comment)


def _drop_unread(plan: Plan) -> Plan:
    """Return a plan without steps that nothing reads any more."""
    needed, _ = _find_needed(plan)
    return replace(plan, steps=tuple(step for step in plan.steps if step.name in needed))
