"""Choose the steps that become tables: outputs, checked steps, large ones, and shared ones."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest

from ucle.plan.complete_keyless import is_whole
from ucle.plan.inline import inline_views
from ucle.plan.pass_context import Memory, PassContext
from ucle.plan.relation_nodes import (
    Aggregate,
    BlockRepartition,
    Compress,
    ConstantRelation,
    Held,
    Load,
    Reindex,
    Stack,
    TableScan,
)
from ucle.plan.relation_tree import inputs, reads
from ucle.plan.sources import CsvFile, TableSource
from ucle.plan.steps import Plan, Role, Step

VIEWS_PER_STATEMENT = 20
"""The number of views that DuckDB binds and optimises in the time of one statement that makes a
table."""

VIEWS_PER_TUPLE = 2
"""The number of views that it binds in the time in which a statement keeps one tuple for its other
parts."""

DEEPEST = 50
"""The deepest nesting of views in one statement. DuckDB binds each view inside the one that reads
it, at most a thousand deep, and takes longer the deeper it is: a chain of 800 sums runs in 2.8 s
with 200 of them in a statement, and in 1.0 s with 50."""


TABLE_TUPLE = 17
"""Nanoseconds in which a tuple is written into a table and read again."""

LOOKED_UP = 15
"""Nanoseconds in which a coordinate finds its number in a dictionary."""

TEXT_LOOKED_UP = 75
"""The same for a string: 75 for 20,000 different ones, and more for more of them."""

PARSED = 150
"""Nanoseconds in which a line of text becomes a tuple."""

NAMED = 80
"""Nanoseconds in which a column's value becomes a tuple of a wide table with categories."""


def materialise_checked(plan: Plan, context: PassContext) -> Plan:
    """Make tables of the steps that may raise errors or need a check; outputs become tables anyway.

    These are the steps that are checked for NaN, and those that raise if an index is outside of an
    axis: some rows of a view may never be read.
    """
    outputs = {read.step for read in plan.outputs.values()}
    checked = {read.step for read in plan.checked}
    for step in plan.steps:
        if isinstance(step.relation, Reindex) and step.relation.index.read:
            checked.add(step.name)
    return with_tables(plan, checked - outputs)


def materialise_outputs(plan: Plan, context: PassContext) -> Plan:
    """Make tables of outputs."""
    return with_tables(plan, {read.step for read in plan.outputs.values()})


def materialise_all(plan: Plan, context: PassContext) -> Plan:
    """Make a table of every step, and check none for NaN."""
    return replace(with_tables(plan, {step.name for step in plan.steps}), checked=())


def materialise_shared(plan: Plan, context: PassContext) -> Plan:
    """Turn views that several steps read into tables if that is cheaper than repeating them.

    A view is computed once for each of its readers, along with the views below it. A table costs a
    statement of its own, which takes as long as a join of a hundred thousand rows. Binding and
    optimising a view takes a part of that, too; without this term, chains of shared views would
    double again and again. A tensor in one tuple can be kept within a statement
    (`keep_in_statement`), for the time of a few views. A mere scan is always read again; one that
    parses text or looks coordinates up is read once, if writing its tuples takes less time.
    """
    price = context.statement_price
    kept_price = price * VIEWS_PER_TUPLE / VIEWS_PER_STATEMENT
    sources = {step.name: reads(step.relation) for step in plan.steps}
    readers = Counter(name for every in sources.values() for name in every)
    readers.update(read.step for read in plan.outputs.values())
    repeated: dict[str, float] = {}
    tables: set[str] = set()
    for step in plan.steps:
        if readers[step.name] > 1 and _is_read_once(step, readers[step.name], context):
            tables.add(step.name)
        below = sum(repeated[name] for name in sources[step.name])
        total = step.cost + price / VIEWS_PER_STATEMENT + below
        extra = total * (readers[step.name] - 1)
        cheap = isinstance(step.relation, TableScan | Load | Held | ConstantRelation)
        if isinstance(step.relation, TableScan) and step.relation.gathers:
            cheap = False
        limit = kept_price if is_whole(step.relation) else price
        shared = readers[step.name] > 1 and not cheap and extra >= limit
        if shared:
            tables.add(step.name)
        once = shared or cheap or step.role is Role.TABLE
        repeated[step.name] = 0.0 if once else total
    return with_tables(plan, tables)


def _is_read_once(step: Step, readers: int, context: PassContext) -> bool:
    """Return whether making a table of a scan takes less time than scanning for each reader."""
    scan, facts, memory = step.relation, context.meanings, context.memory
    if not isinstance(scan, TableScan) or not scan.layout.scalar or facts is None:
        return False
    if memory is not None and not memory.holds(step.tensor, scan.layout):
        return False
    rows = facts.rows(step.tensor, scan.layout)
    again = rows * _tuple_price(scan.source) * (readers - 1)
    return again > context.statement_price + rows * TABLE_TUPLE


def _tuple_price(source: TableSource) -> float:
    """Return the nanoseconds that a tuple of a scan takes, beyond reading it from a table."""
    price = float(sum(map(_lookup_price, source.encoded, _read_types(source))))
    if isinstance(source.origin, CsvFile):
        price += PARSED
    if source.features is not None:
        price += NAMED
    return price


def _read_types(source: TableSource) -> Iterator[str]:
    """Yield the type in which each key is looked up; that of features is in their price."""
    for key, type_ in zip_longest(source.keys, source.key_types, fillvalue=""):
        yield "" if source.features is not None else source.key_as(key) or type_


def _lookup_price(encoded: bool, type_: str) -> int:
    if not encoded:
        return 0
    return TEXT_LOOKED_UP if type_ == "VARCHAR" else LOOKED_UP


def materialise_deep(plan: Plan, context: PassContext) -> Plan:
    """Make tables of a statement's views that have too many others below them.

    This pass comes last: steps that are already nested in their readers do not count.
    """
    steps: dict[str, Step] = {}
    for step in plan.steps:
        pieces = *step.views, replace(step, views=())
        if tables := _deep(pieces):
            split = inline_views(with_tables(replace(plan, steps=pieces), tables), context)
            pieces = split.steps
        else:
            pieces = (step,)
        for piece in pieces:  # views of several statements become tables once
            steps.setdefault(piece.name, piece)
    return replace(plan, steps=tuple(steps.values()))


def _deep(steps: Sequence[Step]) -> set[str]:
    """Return the views with `DEEPEST` nested views below them; the last step is not a view."""
    depths: dict[str, int] = {}
    tables: set[str] = set()
    for step in steps[:-1]:
        depth = 1 + max((depths.get(name, 0) for name in reads(step.relation)), default=0)
        if depth == DEEPEST:
            tables.add(step.name)
        depths[step.name] = depth % DEEPEST
    return tables


def with_tables(plan: Plan, names: set[str]) -> Plan:
    """Return the plan with the named views turned into tables."""

    def as_table(step: Step) -> Step:
        materialised = step.name in names and step.role is Role.VIEW
        return replace(step, role=Role.TABLE) if materialised else step

    return replace(plan, steps=tuple(map(as_table, plan.steps)))


GROUP_BYTES = 48
"""The bytes of a group in DuckDB's table, besides its keys and its state."""


def materialise_large(plan: Plan, context: PassContext) -> Plan:
    """Make tables of views whose groups exceed the memory, so that they can be made in rounds.

    Vertices that follow row by row are computed in the same table if that leaves less to write.
    """
    memory = context.memory
    if memory is None:
        return plan
    readers: dict[str, list[Step]] = {}
    for step in plan.steps:
        for name in reads(step.relation):
            readers.setdefault(name, []).append(step)
    tables: set[str] = set()
    for step in plan.steps:
        if step.role is Role.VIEW and memory.is_exceeded_by(group_bytes(step, memory)):
            chain = list(_row_by_row(step, readers))
            if all(each.role is Role.VIEW for each in chain):
                tables.add(min(chain, key=lambda each: _bytes(each, memory)).name)
    return with_tables(plan, tables)


def group_bytes(step: Step, memory: Memory) -> float:
    """Return the bytes of the groups in which a step gathers tuples; 0 if it gathers none."""
    match step.relation:
        case Aggregate(operation=None):
            return 0.0
        case Aggregate() | Stack() | BlockRepartition() | Compress():
            size = max(memory.payload(step.tensor, step.relation.layout), 1.0)
            state = float(1 << math.ceil(math.log2(size)))
            return memory.rows(step.tensor, step.relation.layout) * (state + GROUP_BYTES)
    return 0.0


def _row_by_row(step: Step, readers: Mapping[str, list[Step]]) -> Iterator[Step]:
    """Yield a step and the steps that make one row of each of its rows, in order."""
    while True:
        yield step
        following = readers.get(step.name, [])
        if len(following) != 1 or step.role is not Role.VIEW:
            return
        (step,) = following
        operands = inputs(step.relation)
        if not isinstance(step.relation, Aggregate) or step.relation.operation is not None:
            return
        if sum(bool(each.layout.promoted) for each in operands) != 1:
            return


def _bytes(step: Step, memory: Memory) -> float:
    layout = step.relation.layout
    return memory.rows(step.tensor, layout) * memory.payload(step.tensor, layout)
