"""The pipeline: from the text of a program to its plan. Read this file first.

    text -> parse -> resolve -> lift gathers -> lift indices -> bind inputs -> size -> place
         -> logical program -> SparseEinSum -> plan -> passes

`compile_statements` runs the stages in order; each is a function from one frozen structure to the
next, and only the stages of inputs read tables. `ucle.run.build` parses the text before a
database is opened. Passes (`ucle.plan.passes`) turn the plan into the physical plan on demand
(`ucle.pipeline.artifacts.Planned.physical`); `ucle.sqlgen` turns it into SQL and `ucle.run.execute`
runs it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from ucle.database.session import Session
from ucle.foundation.caches import BoundedCache
from ucle.foundation.exact_key import ExactKey, Same
from ucle.foundation.names import fresh_prefix
from ucle.inputs.axis_sizes import SizedInputs, size_inputs
from ucle.inputs.binding import bind_inputs, one_row
from ucle.inputs.dictionaries import Dictionaries
from ucle.inputs.states import PlacedInput
from ucle.inputs.stored_layouts import place_inputs
from ucle.ir.rounding_bounds import Entries, largest_condition_numbers
from ucle.language.statements import paths_by_tensor
from ucle.language.syntax import Statement
from ucle.lowering.syntax_to_logical import ResolvedProgram
from ucle.lowering.tensors_of_positions import tensors_of_positions
from ucle.optimiser.join_order import Decided
from ucle.optimiser.optimise import inputs_read
from ucle.options import Options
from ucle.pipeline.artifacts import Compiled, Front, Planned
from ucle.pipeline.notices import give_notice
from ucle.pipeline.plan_cache import choose_plan
from ucle.pipeline.spelled_out import spell_out
from ucle.plan.check import check_decomposed, check_plan
from ucle.plan.decomposition import DecomposedProgram
from ucle.plan.plan_program import plan_program
from ucle.plan.steps import Plan

MOST_BYTES = 1 << 25
"""Bytes of all plans that are kept. One of five vertices takes 20 KB."""

_plans = BoundedCache[Plan](MOST_BYTES)


def compile_statements(
    statements: tuple[Statement, ...],
    inputs: Mapping[str, Any],
    session: Session,
    options: Options,
    labels: Mapping[str, tuple[str, ...]] | None = None,
    *,
    notice: bool = False,
) -> Compiled:
    """Compile parsed statements over inputs that `session` can see.

    Args:
        statements: the program.
        inputs: by tensor name, as the caller passed them.
        session: on the database.
        options: of the compilation.
        labels: by input the caller's names for its axes, if not those of its first use.
        notice: True for a text that the caller has written, and not what is made of a program.

    Warns:
        MeaningWarning: entries that are not stored decide what comes out.

    Raises:
        UcleError: the statements, their options or the inputs are wrong.
    """
    resolved, sized = bind_statements(statements, inputs, session, options, labels)
    if notice:
        give_notice(session, resolved, sized)
    return compile_sized(session, resolved, sized, options)


def bind_statements(
    statements: tuple[Statement, ...],
    inputs: Mapping[str, Any],
    session: Session,
    options: Options,
    labels: Mapping[str, tuple[str, ...]] | None = None,
) -> tuple[tuple[Statement, ...], SizedInputs]:
    """Return the resolved statements of a program, and the sizes of its inputs.

    Arguments and errors are those of `compile_statements`.
    """
    spelled = spell_out(statements, options)
    labels = {**spelled.labels, **(labels or {})}
    bound = bind_inputs(
        session, labels, inputs, fresh_prefix(), options.statistics, coverage=spelled.coverage
    )
    if spelled.one is not None:
        bound[spelled.one] = one_row()
    sized = size_inputs(session, spelled.statements, bound, options.bounds or {})
    return spelled.statements, sized


def compile_sized(
    session: Session,
    resolved: tuple[Statement, ...],
    sized: SizedInputs,
    options: Options,
) -> Compiled:
    """Run the stages from the sizes of inputs on; they run again when sizes have changed."""
    placed = place_inputs(session, sized.inputs, options.store)
    source = source_of(resolved, sized, options)
    decided, association = choose_plan(source, placed, options)
    planned = plan_decided(placed, decided, sized.dictionaries, options, source)
    return Compiled.of(planned, Front(sized.bound, source, decided.lowering), association)


def source_of(
    resolved: tuple[Statement, ...], sized: SizedInputs, options: Options
) -> ResolvedProgram:
    """The input of lowering: the statements, with the known properties of their inputs."""
    return ResolvedProgram(
        resolved,
        sized.types,
        sized.bounds,
        options.outputs,
        paths_by_tensor(resolved, options.path),
        options.nonfinite == "exact",
        sized.dictionaries.ordered,
    )


def plan_decided(
    inputs: Mapping[str, PlacedInput],
    decided: Decided,
    dictionaries: Dictionaries,
    options: Options,
    source: ResolvedProgram | None = None,
) -> Planned:
    """Run the last stage: plan a program whose decomposition is known.

    Args:
        inputs: the inputs.
        decided: the program with its decomposition.
        dictionaries: those of its axes.
        options: of the compilation.
        source: the statements; None for a program of no text, such as a copy of an input.
    """
    inputs, decomposed = inputs_read(inputs, decided.program), decided.decomposed
    numbers = largest_condition_numbers(
        decided.program, partial(_entries_of, inputs), options.rewrite_tolerance
    )
    plan = _plan(decomposed, inputs, dictionaries, numbers)
    found = {} if source is None else tensors_of_positions(source)
    if named := {name: dictionary for name, dictionary in found.items() if dictionary is not None}:
        plan = replace(plan, positions_in=named)
    return Planned(
        inputs,
        decided.program,
        decided.statistics,
        decomposed,
        plan,
        dictionaries,
        options.profile.statement,
        options.optimisations,
        options.resources.threads,
        options.resources.memory,
    )


def _entries_of(inputs: Mapping[str, PlacedInput], name: str) -> Entries:
    """Upper bounds of the entries of an input."""
    statistics, shape = inputs[name].statistics, inputs[name].shape
    if statistics.exact or statistics.largest:
        return Entries(statistics.entries, statistics.largest)
    return Entries(float(math.prod(shape)))


def _plan(
    decomposed: DecomposedProgram,
    inputs: Mapping[str, PlacedInput],
    dictionaries: Dictionaries,
    condition_numbers: Mapping[str, float],
) -> Plan:
    """The plan of a decomposed program, which is kept as long as its choice is."""
    sources = {name: placed.sources for name, placed in inputs.items()}

    def make() -> Plan:
        check_decomposed(decomposed)
        plan = plan_program(decomposed, sources, dictionaries.tables, condition_numbers)
        check_plan(plan)
        return plan

    key = ExactKey.find((Same(decomposed), sources, dictionaries.tables, condition_numbers))
    return _plans.get_or_make(key, make)
