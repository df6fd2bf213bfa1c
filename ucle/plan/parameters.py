"""Small arrays in memory that the one statement of a plan takes as parameters, not as tables.

In: a plan, or the bytes of what may be a parameter. Out: what will be one. `ucle.run.script` writes
the queries; here is what the prediction of memory has to know of them before there is any SQL.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import TypeVar

from ucle.plan.relation_nodes import Load, Read, Relation, TableScan
from ucle.plan.relation_tree import inputs
from ucle.plan.sources import ListsSource
from ucle.plan.steps import Plan, Role, Step

MOST_PARAMETER_BYTES = 1 << 20
"""Bytes of the parameters of a statement. Above it copies take longer than tables."""

MOST_ROW_BYTES = 1 << 24
"""Bytes of the rows of a statement that is run as one query, whose rows are fetched."""

T = TypeVar("T")


def small_enough(sizes: Mapping[T, int]) -> list[T]:
    """Return what is small enough to be parameters together, the smallest first.

    >>> small_enough({"x": 1 << 20, "y": 8, "z": 80})
    ['y', 'z']
    """
    chosen, total = [], 0
    for each in sorted(sizes, key=lambda x: sizes[x]):
        total += sizes[each]
        if total > MOST_PARAMETER_BYTES:
            break
        chosen.append(each)
    return chosen


def find_parameters(plan: Plan) -> frozenset[str]:
    """Return the names of the steps whose arrays are parameters of the plan's only statement.

    Only results of one row count: beside keys no row is put together of several arrays.
    """
    made = [step for step in plan.steps if step.role is not Role.INPUT]
    if len(made) != 1 or made[0].rounds or made[0].views or plan.dictionaries:
        return frozenset()
    results = {read.column: read for read in plan.outputs.values()}.values()
    if any(x.step != made[0].name or x.layout.promoted for x in results):
        return frozenset()
    if sum(x.type.tuple_bytes(x.layout) for x in results) > MOST_ROW_BYTES:
        return frozenset()
    loads = {x.name: x.relation for x in plan.steps if isinstance(x.relation, Load)}
    dense = {
        name: load.type.tuple_bytes(load.layout)
        for name, load in loads.items()
        if not load.layout.promoted
        and load.layout.compressed is None
        and not isinstance(load.source, ListsSource)
    }
    return frozenset(small_enough(dense))


def joins_rows(step: Step, parameters: Collection[str]) -> bool:
    """Return whether a step without keys puts several tables of one row together.

    Operands of nested relations are read once, those of the step itself once each.
    """
    direct, nested = list[str](), set[str]()
    for operand in inputs(step.relation):
        for name in _tables(operand):
            if isinstance(operand, Read):
                direct.append(name)
            else:
                nested.add(name)
    return len([x for x in (*direct, *nested) if x not in parameters]) > 1


def _tables(relation: Relation) -> Iterator[str]:
    """Yield the names of the tables that a relation reads, also through nested relations."""
    match relation:
        case Read(step):
            yield step
        case TableScan():
            yield str(relation.source)
    for each in inputs(relation):
        yield from _tables(each)
