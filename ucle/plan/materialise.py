"""Which steps are tables: outputs, what is looked at, and what several steps read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from ucle.plan.complete_keyless import is_whole
from ucle.plan.inline_views import inline_views
from ucle.plan.pass_context import PassContext
from ucle.plan.steps import (
    ConstantRelation,
    Held,
    Load,
    Plan,
    Reindex,
    Role,
    Step,
    TableScan,
    reads,
)

VIEWS_PER_STATEMENT = 20
"""How many views DuckDB binds and optimises in the time of one statement that makes a table."""

VIEWS_PER_TUPLE = 2
"""How many views it binds in the time in which a statement keeps one tuple for its other parts."""

DEEPEST = 50
"""Views upon views in one statement: DuckDB binds each inside of the one that reads it, a thousand
deep at most, and takes the longer for each the deeper it is: a chain of 800 sums runs in 2.8 s if
200 of them are in a statement, in 1.0 s if 50 are."""


def materialise_checked(plan: Plan, context: PassContext) -> Plan:
    """Make tables of the steps in which something may be wrong; outputs become so by themselves.

    These are those in which NaN is looked for, and those that raise where an index is outside of an
    axis: of a view some rows may never be asked for.
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
    """Make a table of every step, and look for NaN in none."""
    return replace(with_tables(plan, {step.name for step in plan.steps}), checked=())


def materialise_shared(plan: Plan, context: PassContext) -> Plan:
    """Turn views that several steps read into tables, where that is cheaper than repeating them.

    A view is computed once for each of its readers, along with the views below it; a table costs a
    statement of its own, which takes as long as a join of a hundred thousand rows. Binding and
    optimising a view takes a part of that, too, or chains of shared views would double and double
    again. A tensor in one tuple can be kept within a statement (`keep_in_statement`), which takes
    no longer than that. A mere scan is always read again.
    """
    price = context.statement_price
    kept_price = price * VIEWS_PER_TUPLE / VIEWS_PER_STATEMENT
    sources = {step.name: reads(step.relation) for step in plan.steps}
    readers = Counter(name for every in sources.values() for name in every)
    readers.update(read.step for read in plan.outputs.values())
    repeated: dict[str, float] = {}
    tables: set[str] = set()
    for step in plan.steps:
        below = sum(repeated[name] for name in sources[step.name])
        total = step.cost + price / VIEWS_PER_STATEMENT + below
        extra = total * (readers[step.name] - 1)
        cheap = isinstance(step.relation, TableScan | Load | Held | ConstantRelation)
        limit = kept_price if is_whole(step.relation) else price
        shared = readers[step.name] > 1 and not cheap and extra >= limit
        if shared:
            tables.add(step.name)
        once = shared or cheap or step.role is Role.TABLE
        repeated[step.name] = 0.0 if once else total
    return with_tables(plan, tables)


def materialise_deep(plan: Plan, context: PassContext) -> Plan:
    """Make tables of the views of a statement that have too many others below them.

    Comes last: what is written into what reads it is in nobody's way.
    """
    steps: dict[str, Step] = {}
    for step in plan.steps:
        pieces = *step.views, replace(step, views=())
        if tables := _deep(pieces):
            split = inline_views(with_tables(replace(plan, steps=pieces), tables), context)
            pieces = split.steps
        else:
            pieces = (step,)
        for piece in pieces:  # views of several statements are tables once
            steps.setdefault(piece.name, piece)
    return replace(plan, steps=tuple(steps.values()))


def _deep(steps: Sequence[Step]) -> set[str]:
    """The views that have `DEEPEST` others upon each other below them; the last step is no view."""
    depths: dict[str, int] = {}
    tables: set[str] = set()
    for step in steps[:-1]:
        depth = 1 + max((depths.get(name, 0) for name in reads(step.relation)), default=0)
        if depth == DEEPEST:
            tables.add(step.name)
        depths[step.name] = depth % DEEPEST
    return tables


def with_tables(plan: Plan, names: set[str]) -> Plan:
    """The plan with tables of the views of some names."""

    def as_table(step: Step) -> Step:
        materialised = step.name in names and step.role is Role.VIEW
        return replace(step, role=Role.TABLE) if materialised else step

    return replace(plan, steps=tuple(map(as_table, plan.steps)))
