"""The optimiser as one stage: the order of products and the decomposition, by what they cost.

Takes a logical program and its inputs; gives the program of binary vertices whose best
decomposition is the cheapest, with that decomposition.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ucle.inputs.states import PlacedInput
from ucle.ir.vertices import Program
from ucle.lowering.logical import LogicalProgram
from ucle.optimiser.association import Association, Decide, Decided, associate
from ucle.optimiser.choose_decomposition import decompose
from ucle.optimiser.pricing import Prices
from ucle.options import Options
from ucle.stats.estimate import Measured, ProgramStatistics


def optimise(
    logical: LogicalProgram, inputs: Mapping[str, PlacedInput], options: Options
) -> tuple[Decided, Association | None]:
    """Choose the order of products together with the decomposition.

    Args:
        logical: the program.
        inputs: where its inputs lie, and what they hold.
        options: the cost profile, the resources, and what the caller has decided.

    Returns:
        The program, decomposed; and the order, where it is not the written one.

    Raises:
        MemoryLimitError: nothing was found that fits into the memory.
        LabelError: a decomposition that is given does not fit the program.
        NameResolutionError: a decomposition is given for a tensor that there is not.
    """
    measured = {name: bound.statistics for name, bound in inputs.items()}
    decided, association = associate(
        logical,
        Measured(measured, options.order_estimator),
        _decide(logical, inputs, options),
        options.association,
        _fixed(logical, options),
        options.optimisations,
    )
    if not _pins_what_the_order_makes(logical, options):
        return decided, association
    program, statistics = decided.program, decided.statistics
    decomposed = decompose(program, used(inputs, program), statistics, options)
    return replace(decided, decomposed=decomposed), association


def used(inputs: Mapping[str, PlacedInput], program: Program) -> dict[str, PlacedInput]:
    """The inputs that a program reads."""
    return {name: bound for name, bound in inputs.items() if name in program.input_names}


def program_statistics(
    program: Program, inputs: Mapping[str, PlacedInput], options: Options
) -> ProgramStatistics:
    """What the estimator of a program's costs knows of its tensors."""
    measured = {name: bound.statistics for name, bound in inputs.items()}
    return Measured(measured, options.cost_estimator).of(program)


def _decide(logical: LogicalProgram, inputs: Mapping[str, PlacedInput], options: Options) -> Decide:
    """What chooses the decomposition of a program, and remembers prices for the next one.

    What is pinned of tensors that the text does not name is left for later: only in one order they
    are there.
    """
    pins = options.decomposition
    if not isinstance(pins, str):
        named = {statement.target for statement in logical.statements}
        options = replace(options, decomposition={x: pins[x] for x in pins if x in named})
    prices = Prices()

    def decide(program: Program) -> Decided:
        own = used(inputs, program)
        statistics = program_statistics(program, own, options)
        return Decided(program, statistics, decompose(program, own, statistics, options, prices))

    return decide


def _pins_what_the_order_makes(logical: LogicalProgram, options: Options) -> bool:
    """Whether tensors are pinned that only the order of products makes."""
    pins = () if isinstance(options.decomposition, str) else options.decomposition
    return not {statement.target for statement in logical.statements}.issuperset(pins)


def _fixed(logical: LogicalProgram, options: Options) -> frozenset[str] | None:
    """The tensors of which something is said: their statements stay. None stands for all."""
    if options.decomposition == "as-written":
        return None
    pinned = () if isinstance(options.decomposition, str) else options.decomposition
    paths = (x.target for x in logical.statements if x.path is not None)
    return frozenset((*pinned, *paths))
