"""The optimiser as one stage: rewrites, join orders and decompositions, by their cost.

Takes a logical program and its inputs; gives the program of binary vertices whose best
decomposition is the cheapest, with that decomposition. Rewrites are passes of a table
(`ucle.optimiser.rewrite_passes`); the written program is taken on a tie.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace

from ucle.inputs.states import PlacedInput
from ucle.ir.vertices import Program
from ucle.lowering.contract import KnownContractions
from ucle.lowering.logical import LogicalProgram
from ucle.optimiser.choose_decomposition import decompose
from ucle.optimiser.join_order import Association, Decide, Decided, associate
from ucle.optimiser.known_prices import Prices
from ucle.optimiser.rewrite_passes import (
    Choice,
    RewriteContext,
    choose_rewrites,
    pinned_by_paths,
    pins_new_tensors,
)
from ucle.options import Options
from ucle.stats.estimate import MeasuredInputs, ProgramStatistics, Remembered


def optimise(
    logical: LogicalProgram, inputs: Mapping[str, PlacedInput], options: Options
) -> tuple[Decided, Association | None]:
    """Choose the order of products together with the decomposition.

    Args:
        logical: the program.
        inputs: the places and the statistics of its inputs.
        options: the cost profile, the resources, and the caller's decisions.

    Returns:
        The decomposed program, and its join order if that is not the written one.

    Raises:
        MemoryLimitError: no decomposition was found that fits into the memory.
        LabelError: a given decomposition does not fit the program.
        NameResolutionError: a decomposition is given for an unknown tensor.
    """
    with _build_context(inputs, options) as context:
        return choose_rewrites(logical, context, _choose_order)


@contextmanager
def _build_context(inputs: Mapping[str, PlacedInput], options: Options) -> Iterator[RewriteContext]:
    """The context of rewrites for as long as a program is optimised."""
    counts = {name: bound.statistics for name, bound in inputs.items()}
    remembered = {x: Remembered(x) for x in (options.order_estimator, options.cost_estimator)}
    ranked, priced = remembered[options.order_estimator], remembered[options.cost_estimator]
    try:
        contractions = KnownContractions(MeasuredInputs(counts, ranked))
        yield RewriteContext(inputs, options, contractions, MeasuredInputs(counts, priced))
    finally:
        for estimator in remembered.values():
            estimator.forget()


def _choose_order(logical: LogicalProgram, context: RewriteContext) -> Choice:
    """The cheapest join order and decomposition of a logical program."""
    inputs, options = context.inputs, context.options
    prices = context.prices.for_search()
    decided, association = associate(
        logical,
        context.contractions,
        _decide(logical, context, prices),
        lambda: prices.work,
        options.association,
        _pinned_tensors(logical, options),
        options.optimisations,
    )
    if not pins_new_tensors(logical, options):
        return decided, association
    program, statistics = decided.program, decided.statistics
    decomposed = decompose(program, inputs_read(inputs, program), statistics, options)
    return replace(decided, decomposed=decomposed), association


def inputs_read(inputs: Mapping[str, PlacedInput], program: Program) -> dict[str, PlacedInput]:
    """The inputs that a program reads."""
    return {name: bound for name, bound in inputs.items() if name in program.input_names}


def program_statistics(
    program: Program, inputs: Mapping[str, PlacedInput], options: Options
) -> ProgramStatistics:
    """The statistics of a program's tensors by the estimator of its costs."""
    measured = {name: bound.statistics for name, bound in inputs.items()}
    return MeasuredInputs(measured, options.cost_estimator).of(program)


def _decide(logical: LogicalProgram, context: RewriteContext, prices: Prices) -> Decide:
    """Return a function that decomposes a program and keeps prices for the next one.

    Pins on tensors that the text does not name are left for later: only one order makes them.
    """
    inputs, options = context.inputs, context.options
    pins = options.decomposition
    if not isinstance(pins, str):
        named = {statement.target for statement in logical.statements}
        options = replace(options, decomposition={x: pins[x] for x in pins if x in named})

    def decide(program: Program) -> Decided:
        own, statistics = inputs_read(inputs, program), context.priced.of(program)
        return Decided(program, statistics, decompose(program, own, statistics, options, prices))

    return decide


def _pinned_tensors(logical: LogicalProgram, options: Options) -> frozenset[str] | None:
    """The tensors that the caller pins: their statements are never merged. None stands for all."""
    if options.decomposition == "as-written":
        return None
    pinned = () if isinstance(options.decomposition, str) else options.decomposition
    return pinned_by_paths(logical).union(pinned)
