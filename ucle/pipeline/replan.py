"""Other plans for a compiled program: another decomposition, or other places of its inputs.

The program of vertices stays, with its statistics; everything that follows from the decomposition
is computed again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from ucle.errors import UcleError
from ucle.inputs.states import PlacedInput
from ucle.ir.annihilation import annihilate_products, uncertain_vertices
from ucle.lowering.syntax_to_logical import syntax_to_logical
from ucle.optimiser.choose_decomposition import (
    decompose,
    join_at_once,
    pin_decompositions,
    price_program,
    refusal,
)
from ucle.optimiser.join_order import Decided
from ucle.optimiser.optimise import optimise, program_statistics
from ucle.optimiser.pricing import CostedProgram, price
from ucle.optimiser.sparse_einsum import cheapest_plans
from ucle.optimiser.tiled_and_compressed import is_offered
from ucle.options import Options
from ucle.pipeline.artifacts import Compiled
from ucle.pipeline.stages import plan_decided
from ucle.plan.decomposition import DecomposedProgram
from ucle.stats.estimate import ProgramStatistics


def plan_decomposition(compiled: Compiled, options: Options) -> Compiled:
    """Plan the program under the decomposition that other options select.

    Raises:
        UcleError: as `ucle.optimiser.choose_decomposition.decompose`.
    """
    program, statistics = compiled.program, compiled.statistics
    decomposed = decompose(program, compiled.inputs, statistics, options)
    return _plan_program(compiled, compiled.inputs, decomposed, options)


def read_from(compiled: Compiled, inputs: Mapping[str, PlacedInput], options: Options) -> Compiled:
    """Keep the decomposition for the same inputs, which may now be stored elsewhere, too."""
    old = compiled.decomposed
    costed = price_program(compiled.program, inputs, compiled.statistics, options)
    decomposed = join_at_once(costed, price(costed, old.decompositions))
    decomposed = replace(decomposed, search=old.search)
    return _plan_program(compiled, inputs, decomposed, options)


def plan_for_statistics(
    compiled: Compiled, inputs: Mapping[str, PlacedInput], options: Options
) -> Compiled:
    """Plan the same vertices with the cheapest decomposition for other T and V of inputs.

    Raises:
        UcleError: as `ucle.optimiser.choose_decomposition.decompose`.
    """
    statistics = program_statistics(compiled.program, inputs, options)
    decomposed = decompose(compiled.program, inputs, statistics, options)
    return _plan_program(compiled, inputs, decomposed, options, statistics)


def plan_annihilated(compiled: Compiled, options: Options) -> Compiled:
    """Keep the decomposition for data on which numbers leave the range of their type.

    Products under masks have one ⊗, and may then need two: such a program is decomposed again.
    """
    program = annihilate_products(compiled.program, uncertain_vertices(compiled.program))
    decomposed = replace(compiled.decomposed, program=program, multiway={}, lookups={})
    chosen = decomposed.decompositions
    if not all(is_offered(vertex, program, chosen[vertex.name]) for vertex in program.vertices):
        options = replace(options, decomposition="auto")
        decomposed = decompose(program, compiled.inputs, compiled.statistics, options)
    return _plan_program(compiled, compiled.inputs, decomposed, options)


def in_safe_form(compiled: Compiled, options: Options) -> Compiled:
    """Return the program without rewrites that may lose digits: itself if it has none."""
    return plan_safe(compiled, options) if compiled.program.condition_numbers else compiled


def plan_safe(compiled: Compiled, options: Options) -> Compiled:
    """Plan the program with no rewrite that may lose digits, for data on which one did.

    Given decompositions are those of the rewritten program, and are chosen anew.

    Raises:
        UcleError: as `ucle.optimiser.optimise.optimise`.
    """
    decomposition = options.decomposition if isinstance(options.decomposition, str) else "auto"
    return plan_from_source(compiled, replace(options, rewrite="safe", decomposition=decomposition))


def plan_as_written(compiled: Compiled, options: Options) -> Compiled:
    """Plan the program in its written order, for data on which integers overflow in another.

    Given decompositions stay for the tensors of the text, unless they do not fit there.

    Raises:
        UcleError: as `ucle.optimiser.optimise.optimise`.
    """
    options = replace(options, association="as-written")
    if isinstance(options.decomposition, str):
        return plan_from_source(compiled, options)
    written = syntax_to_logical(compiled.front.source).by_name
    given = {name: x for name, x in options.decomposition.items() if name in written}
    try:
        return plan_from_source(compiled, replace(options, decomposition=given))
    except UcleError:
        return plan_from_source(compiled, replace(options, decomposition="auto"))


def plan_from_source(compiled: Compiled, options: Options) -> Compiled:
    """Plan the statements of the program from the beginning, without kernels if it has none."""
    if compiled.decomposed.relational:  # its target may have no kernels
        options = replace(options, decomposition="relational")
    source = compiled.front.source
    decided, association = optimise(syntax_to_logical(source), compiled.inputs, options)
    front = replace(compiled.front, lowering=decided.lowering)
    planned = plan_decided(compiled.inputs, decided, compiled.dictionaries, options, source)
    return Compiled.of(planned, front, association)


def cheapest_decompositions(
    compiled: Compiled,
    k: int,
    options: Options,
    elsewhere: Callable[[CostedProgram], CostedProgram] | None = None,
) -> list[DecomposedProgram]:
    """Return the `k` cheapest decompositions of a compiled program; pinned ones stay.

    With `elsewhere`, which gives the program other prices, those that are the cheapest by these,
    with the costs of one machine.
    """
    decomposition = options.decomposition
    pins = (
        {}
        if isinstance(decomposition, str)
        else pin_decompositions(compiled.program, decomposition)
    )
    costed = costed_program(compiled, options)
    priced = costed if elsewhere is None else elsewhere(costed)
    found = cheapest_plans(priced, k, pins, lambda plan: refusal(costed, plan) is None)
    return [each if elsewhere is None else price(costed, each.decompositions) for each in found]


def plan_decomposed(
    compiled: Compiled, decomposed: DecomposedProgram, options: Options
) -> Compiled:
    """Plan the program under a decomposition that was found for it."""
    return _plan_program(compiled, compiled.inputs, decomposed, options)


def costed_program(compiled: Compiled, options: Options) -> CostedProgram:
    """Return a compiled program with costs for all its decompositions."""
    return price_program(compiled.program, compiled.inputs, compiled.statistics, options)


def _plan_program(
    compiled: Compiled,
    inputs: Mapping[str, PlacedInput],
    decomposed: DecomposedProgram,
    options: Options,
    statistics: ProgramStatistics | None = None,
) -> Compiled:
    """Plan a program under a decomposition; `statistics` replace those of the compilation."""
    statistics = statistics or compiled.statistics
    decided = Decided(decomposed.program, statistics, decomposed, compiled.front.lowering)
    source = compiled.front.source
    planned = plan_decided(inputs, decided, compiled.dictionaries, options, source)
    return compiled.with_plan(planned)
