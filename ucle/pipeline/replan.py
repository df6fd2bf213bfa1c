"""Other plans for a program that is compiled: other decompositions, other places of its inputs.

The program of vertices stays, with its statistics; what follows from the decomposition is worked
out once more.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ucle.errors import UcleError
from ucle.inputs.states import PlacedInput
from ucle.ir.annihilation import annihilated, uncertain_vertices
from ucle.lowering.syntax_to_logical import syntax_to_logical
from ucle.optimiser.choose_decomposition import decompose, pinned, price_program, refusal
from ucle.optimiser.join_order import Decided
from ucle.optimiser.optimise import optimise, program_statistics
from ucle.optimiser.pricing import CostedProgram, price
from ucle.optimiser.sparse_einsum import cheapest_plans
from ucle.optimiser.tiled_and_compressed import offered
from ucle.options import Options
from ucle.pipeline.artifacts import Compiled
from ucle.pipeline.stages import plan_decided
from ucle.plan.decomposition import DecomposedProgram
from ucle.stats.estimate import ProgramStatistics


def plan_decomposition(compiled: Compiled, options: Options) -> Compiled:
    """The same program under the decomposition that other options ask for.

    Raises:
        UcleError: as `ucle.optimiser.choose_decomposition.decompose`.
    """
    program, statistics = compiled.program, compiled.statistics
    decomposed = decompose(program, compiled.inputs, statistics, options)
    return _planned(compiled, compiled.inputs, decomposed, options)


def read_from(compiled: Compiled, inputs: Mapping[str, PlacedInput], options: Options) -> Compiled:
    """The same decomposition, for inputs that are the same and lie elsewhere, too."""
    old = compiled.decomposed
    costed = price_program(compiled.program, inputs, compiled.statistics, options)
    decomposed = replace(price(costed, old.decompositions), search=old.search)
    return _planned(compiled, inputs, decomposed, options)


def plan_for_statistics(
    compiled: Compiled, inputs: Mapping[str, PlacedInput], options: Options
) -> Compiled:
    """The same vertices under the decomposition that is cheapest for other T and V of inputs.

    Raises:
        UcleError: as `ucle.optimiser.choose_decomposition.decompose`.
    """
    statistics = program_statistics(compiled.program, inputs, options)
    decomposed = decompose(compiled.program, inputs, statistics, options)
    return _planned(compiled, inputs, decomposed, options, statistics)


def plan_annihilated(compiled: Compiled, options: Options) -> Compiled:
    """The same decomposition, for data on which numbers outgrow their type.

    Products behind masks are of one ⊗, and may be of two then: such a program is decomposed anew.
    """
    program = annihilated(compiled.program, uncertain_vertices(compiled.program))
    decomposed = replace(compiled.decomposed, program=program)
    chosen = decomposed.decompositions
    if not all(offered(vertex, program, chosen[vertex.name]) for vertex in program.vertices):
        options = replace(options, decomposition="auto")
        decomposed = decompose(program, compiled.inputs, compiled.statistics, options)
    return _planned(compiled, compiled.inputs, decomposed, options)


def plan_as_written(compiled: Compiled, options: Options) -> Compiled:
    """The program in the order of its text, for data on which integers overflow in another.

    Decompositions that are given stay for the tensors of the text, unless they do not fit there.

    Raises:
        UcleError: as `ucle.optimiser.optimise.optimise`.
    """
    logical = syntax_to_logical(compiled.front.source)
    decomposition = options.decomposition
    if compiled.decomposed.relational:  # what it runs on may call no kernels
        decomposition = "relational"
    elif not isinstance(decomposition, str):
        decomposition = {
            name: decomposition[name] for name in decomposition if name in logical.by_name
        }
    options = replace(options, association="as-written", decomposition=decomposition)
    try:
        decided, _ = optimise(logical, compiled.inputs, options)
    except UcleError:
        if isinstance(decomposition, str):
            raise
        options = replace(options, decomposition="auto")
        decided, _ = optimise(logical, compiled.inputs, options)
    front = replace(compiled.front, lowering=decided.lowering)
    planned = plan_decided(compiled.inputs, decided, compiled.dictionaries, options)
    return Compiled.of(planned, front, None)


def cheapest_decompositions(
    compiled: Compiled, k: int, options: Options
) -> list[DecomposedProgram]:
    """The `k` cheapest decompositions of a compiled program; what was pinned stays."""
    decomposition = options.decomposition
    pins = {} if isinstance(decomposition, str) else pinned(compiled.program, decomposition)
    costed = costed_program(compiled, options)
    return list(cheapest_plans(costed, k, pins, lambda plan: refusal(costed, plan) is None))


def plan_decomposed(
    compiled: Compiled, decomposed: DecomposedProgram, options: Options
) -> Compiled:
    """The same program under a decomposition that was found for it."""
    return _planned(compiled, compiled.inputs, decomposed, options)


def costed_program(compiled: Compiled, options: Options) -> CostedProgram:
    """A compiled program with prices for all its decompositions."""
    return price_program(compiled.program, compiled.inputs, compiled.statistics, options)


def _planned(
    compiled: Compiled,
    inputs: Mapping[str, PlacedInput],
    decomposed: DecomposedProgram,
    options: Options,
    statistics: ProgramStatistics | None = None,
) -> Compiled:
    """A program under a decomposition; `statistics` are others than it was compiled with."""
    statistics = statistics or compiled.statistics
    decided = Decided(decomposed.program, statistics, decomposed, compiled.front.lowering)
    return compiled.replanned(plan_decided(inputs, decided, compiled.dictionaries, options))
