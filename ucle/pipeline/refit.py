"""A choice of the optimiser, fitted to a program that differs in sizes, values and statistics.

Rewrites, join orders and decompositions stay as they were chosen; types, statistics, costs and
limits are worked out again. So nothing that an answer depends on is taken over unchecked: a rewrite
or a merge that is no longer allowed, another list of vertices, or a limit that is exceeded mean
that the choice does not fit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ucle.errors import UcleError
from ucle.inputs.states import PlacedInput
from ucle.ir.annihilation import checked_tensors
from ucle.ir.fills import same_joins
from ucle.ir.layouts import Decomposition
from ucle.ir.overflow import may_overflow
from ucle.ir.vertices import Program
from ucle.lowering.syntax_to_logical import ResolvedProgram, syntax_to_logical
from ucle.optimiser.choose_decomposition import check_memory, join_at_once, price_program
from ucle.optimiser.join_order import Decided
from ucle.optimiser.optimise import inputs_read, program_statistics
from ucle.optimiser.pricing import price
from ucle.optimiser.tiled_and_compressed import is_offered
from ucle.options import Options


def refit(
    decided: Decided, source: ResolvedProgram, inputs: Mapping[str, PlacedInput], options: Options
) -> Decided | None:
    """Return a choice, fitted to the same statements over other inputs.

    Args:
        decided: the choice.
        source: the statements, with the facts about the inputs that they now have.
        inputs: the inputs, with the statistics that they now have.
        options: those the choice was made under.

    Returns:
        The fitted choice; None where the program would not consist of the same vertices, or would
        not fit into the limits.
    """
    chosen = decided.decomposed.decompositions
    try:
        program = decided.lowering.contract(syntax_to_logical(source)).program
        if not has_vertices_of(program, decided.program):
            return None
        inputs = inputs_read(inputs, program)
        statistics = program_statistics(program, inputs, options)
        costed = price_program(program, inputs, statistics, options)
        if not may_decompose(program, chosen):
            return None
        if not all(costed.fits(vertex, chosen[vertex.name]) for vertex in program.vertices):
            return None
        decomposed = join_at_once(costed, price(costed, chosen))
        decomposed = replace(decomposed, search=decided.decomposed.search)
        check_memory(costed, decomposed)
    except UcleError:
        return None
    return Decided(program, statistics, decomposed, decided.lowering)


def may_decompose(program: Program, chosen: Mapping[str, Decomposition]) -> bool:
    """True if each vertex of a program may have the decomposition that was chosen for it."""
    return all(is_offered(vertex, program, chosen[vertex.name]) for vertex in program.vertices)


def has_vertices_of(program: Program, other: Program) -> bool:
    """True if a program differs from another one only in sizes and what follows from them."""

    def work(each: Program) -> list[object]:
        return [
            (v.name, v.names, v.combine, v.reduce, [(x.tensor, x.names) for x in v.inputs])
            for v in each.vertices
        ]

    return work(program) == work(other)


def keeps_joins_and_checks(program: Program, new: Program) -> bool:
    """True if the new types of a program need the same joins and checks as the old ones.

    Then costs have changed by sizes alone: no tensor has to be made dense that was not before.
    """
    if may_overflow(new) > may_overflow(program):
        return False
    return same_joins(program, new) and checked_tensors(program) == checked_tensors(new)
