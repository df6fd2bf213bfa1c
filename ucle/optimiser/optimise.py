"""The optimiser as one stage: masks, the order of products and the decomposition, by their cost.

Takes a logical program and its inputs; gives the program of binary vertices whose best
decomposition is the cheapest, with that decomposition. Where masks can be passed down
(`ucle.lowering.demand`), both programs are priced, and the written one is taken in doubt.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from ucle.errors import UcleError
from ucle.inputs.states import PlacedInput
from ucle.ir.vertices import Program
from ucle.lowering.demand import Demand, demand
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
    switches = options.optimisations
    if not _may_demand(logical, options):
        return _optimised(logical, inputs, options)
    asked = _sparse(logical, inputs, switches.mask_share), _with_paths(logical)
    demanded = demand(logical, *asked)
    if demanded is None:
        return _optimised(logical, inputs, options)
    program, pushed = demanded.program, demanded.pushed
    behind = _priced(lambda: _optimised(program, inputs, options))
    written = _priced(lambda: _optimised(logical, inputs, options))
    if behind.error is not None or behind.cost > written.cost * (1 - switches.demand_gain):
        return written.get()
    decided, association = behind.get()
    demands = Demand(*asked, pushed, behind.cost, written.cost)
    lowering = replace(decided.lowering, demand=demands)
    return replace(decided, lowering=lowering), association


def _optimised(
    logical: LogicalProgram, inputs: Mapping[str, PlacedInput], options: Options
) -> tuple[Decided, Association | None]:
    """The cheapest order and decomposition of a logical program."""
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


@dataclass(frozen=True)
class _Priced:
    """What became of one way to compute a program; an error where it cannot be run."""

    decided: tuple[Decided, Association | None] | None
    error: UcleError | None

    @property
    def cost(self) -> float:
        return math.inf if self.decided is None else self.decided[0].decomposed.total_cost

    def get(self) -> tuple[Decided, Association | None]:
        """What was decided; raises the error if there is one."""
        if self.decided is None:
            assert self.error is not None
            raise self.error
        return self.decided


def _priced(optimised: Callable[[], tuple[Decided, Association | None]]) -> _Priced:
    try:
        return _Priced(optimised(), None)
    except UcleError as error:
        return _Priced(None, error)


def _may_demand(logical: LogicalProgram, options: Options) -> bool:
    """Whether the program may be rewritten: not where the caller says what it consists of.

    Pins of tensors that only masks make say that it is the rewritten program that is meant.
    """
    if options.association != "free" or not options.optimisations.demand:
        return False
    if isinstance(options.decomposition, str):
        return options.decomposition != "as-written"
    return _pins_what_the_order_makes(logical, options)


def _sparse(
    logical: LogicalProgram, inputs: Mapping[str, PlacedInput], share: float
) -> frozenset[str]:
    """The inputs that hold so few entries that they are worth a mask."""
    return frozenset(
        name
        for name in logical.inputs
        if inputs[name].statistics.entries <= share * math.prod(inputs[name].shape)
    )


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
    return _with_paths(logical).union(pinned)


def _with_paths(logical: LogicalProgram) -> frozenset[str]:
    """The tensors for whose products contraction paths are given."""
    return frozenset(x.target for x in logical.statements if x.path is not None)
