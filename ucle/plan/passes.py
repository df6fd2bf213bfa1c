"""The physical rewrites of a plan, in order: from relations to the statements that run.

`plan_program` makes a plan in which each vertex, repartition and input is a step. Each pass turns a
plan into another one with the same outputs. `PASSES` leads to the plan that runs, in which every
step but the inputs is one statement that makes a table. Decisions are taken here; `ucle.sqlgen`
writes the result as SQL. A pass is a pure function; `PassContext` holds the facts that it needs
beyond the plan.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import reduce

from ucle.plan.complete_keyless import complete_keyless
from ucle.plan.compute_columns import compute_columns
from ucle.plan.every_tuple import expect_gaps
from ucle.plan.fuse_dense_steps import fuse_dense_steps
from ucle.plan.fuse_maps import fuse_maps
from ucle.plan.inline import inline_constants, inline_views, keep_in_statement
from ucle.plan.join_every_tuple import join_every_tuple
from ucle.plan.load_every_tuple import load_every_tuple
from ucle.plan.load_in_list import load_in_list
from ucle.plan.materialise import (
    materialise_all,
    materialise_checked,
    materialise_deep,
    materialise_large,
    materialise_outputs,
    materialise_shared,
)
from ucle.plan.nest_keyless import nest_keyless
from ucle.plan.pair_scans import pair_scans
from ucle.plan.partition_aggregates import partition_aggregates
from ucle.plan.pass_by_reference import pass_by_reference
from ucle.plan.pass_context import PassContext
from ucle.plan.read_views_once import read_views_once
from ucle.plan.split_small_scans import split_small_scans
from ucle.plan.steps import Plan
from ucle.plan.windows_of_time import windows_of_time

Pass = Callable[[Plan, PassContext], Plan]

PASSES: tuple[Pass, ...] = (
    compute_columns,
    windows_of_time,
    load_every_tuple,
    join_every_tuple,
    inline_constants,
    complete_keyless,
    fuse_maps,
    fuse_dense_steps,
    materialise_checked,
    materialise_shared,
    materialise_outputs,
    materialise_large,
    inline_views,
    keep_in_statement,
    read_views_once,
    pass_by_reference,
    load_in_list,
    nest_keyless,
    materialise_deep,
    partition_aggregates,
    split_small_scans,
    pair_scans,
)
"""The passes to the plan that runs."""

ONE_BY_ONE: tuple[Pass, ...] = (materialise_all, pass_by_reference)
"""The passes to a plan that makes a table of every step, so that each can be measured."""

LASTING: tuple[Pass, ...] = (
    expect_gaps,
    complete_keyless,
    fuse_maps,
    materialise_checked,
    materialise_shared,
    pass_by_reference,
    nest_keyless,
)
"""The passes to a plan for views in a database: tables elsewhere are computed once in each view."""

WITH_LITERALS: tuple[Pass, ...] = (inline_constants, *LASTING)
"""The same for views into which small arrays are written."""


def run_passes(plan: Plan, passes: Iterable[Pass], context: PassContext) -> Plan:
    """Return the plan after some passes, one after the other."""
    return reduce(lambda current, rewrite: rewrite(current, context), passes, plan)
