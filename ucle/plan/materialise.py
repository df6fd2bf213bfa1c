"""Choose the steps that become tables: outputs, checked steps, and steps with several readers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from ucle.plan.complete_keyless import is_whole
from ucle.plan.inline_views import inline_views
from ucle.plan.pass_context import PassContext
from ucle.plan.relation_nodes import ConstantRelation, Held, Load, Reindex, TableScan
from ucle.plan.relation_tree import reads
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
    (`keep_in_statement`), for the time of a few views. A mere scan is always read again.
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
