"""The optimiser as one stage: choose rewrites, masks, join orders and decompositions by cost.

Takes a logical program and its inputs. Gives the program of binary vertices whose best
decomposition is the cheapest, with that decomposition. If sums of products have other forms
(`ucle.optimiser.rewriting`), or masks can be pushed down (`ucle.lowering.push_down_masks`), these
programs are priced, too. On a tie the written one is taken.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial

from ucle.errors import UcleError
from ucle.inputs.states import PlacedInput
from ucle.ir.vertices import Program
from ucle.lowering.logical import LogicalProgram
from ucle.lowering.pairwise import KnownPairwise
from ucle.lowering.push_down_masks import Demand, demand
from ucle.lowering.quotients import divide_last
from ucle.optimiser.choose_decomposition import decompose
from ucle.optimiser.join_order import Association, Decide, Decided, associate
from ucle.optimiser.pricing import Prices
from ucle.optimiser.rewriting import RewrittenProgram, candidates, laws
from ucle.options import Optimisations, Options
from ucle.stats.estimate import MeasuredInputs, ProgramStatistics
from ucle.stats.remembered import Remembered


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
    with _given(inputs, options) as given:
        if options.rewrite == "none" or not _may_rewrite(logical, options):
            return _behind_masks(logical, given)
        divided = divide_last(logical, _with_paths(logical))
        decided, association = _rewritten(logical if divided is None else divided.program, given)
        lowering = replace(decided.lowering, divided=divided)
        return replace(decided, lowering=lowering), association


@dataclass(frozen=True)
class _Given:
    """The inputs and options, with shared work for all programs over them, done once.

    `measured` ranks orders of products; `priced` gives the sizes for prices.
    """

    inputs: Mapping[str, PlacedInput]
    options: Options
    measured: MeasuredInputs
    priced: MeasuredInputs
    known: KnownPairwise = field(default_factory=KnownPairwise)

    @property
    def switches(self) -> Optimisations:
        return self.options.optimisations


@contextmanager
def _given(inputs: Mapping[str, PlacedInput], options: Options) -> Iterator[_Given]:
    """Provide the optimiser's context for a program's inputs; estimators are cleared at the end."""
    counts = {name: bound.statistics for name, bound in inputs.items()}
    remembered = {x: Remembered(x) for x in (options.order_estimator, options.cost_estimator)}
    ranked, priced = remembered[options.order_estimator], remembered[options.cost_estimator]
    try:
        yield _Given(
            inputs, options, MeasuredInputs(counts, ranked), MeasuredInputs(counts, priced)
        )
    finally:
        for estimator in remembered.values():
            estimator.forget()


def _rewritten(logical: LogicalProgram, given: _Given) -> tuple[Decided, Association | None]:
    """Return the cheapest of the written program and its rewritten forms."""
    if isinstance(given.options.decomposition, str):
        return _cheapest(logical, given)
    # Only the rewritten program may have all pinned tensors.
    options = replace(given.options, decomposition="auto")
    free, _ = _cheapest(logical, replace(given, options=options))
    rewriting = free.lowering.rewriting
    program = None if rewriting is None else rewriting.again(logical)
    decided, association = _behind_masks(program or logical, given)
    return _with_rewriting(decided, rewriting), association


def _cheapest(logical: LogicalProgram, given: _Given) -> tuple[Decided, Association | None]:
    """Return the cheapest of the written program and its rewrites, with no decomposition pinned."""
    written = _priced(lambda: _behind_masks(logical, given))
    fixed, algebraic = _with_paths(logical), given.options.rewrite == "algebraic"
    forms = candidates(
        logical,
        given.measured,
        given.known,
        lambda program: _masked(program, given),
        fixed,
        algebraic=algebraic,
        cost=written.cost * given.switches.rewrite_effort,
    )
    priced = [_priced(partial(_behind_masks, x.program, given)) for x in forms]
    best = min(range(len(forms)), key=lambda n: priced[n].cost, default=None)
    if best is None or priced[best].decided is None:
        return written.get()
    if priced[best].cost > written.cost * (1 - given.switches.rewrite_gain):
        return written.get()
    decided, association = priced[best].get()
    rewriting = RewrittenProgram(
        forms[best].rewrites,
        fixed,
        algebraic,
        priced[best].cost,
        written.cost,
        tuple(x.cost for n, x in enumerate(priced) if n != best),
        laws(logical, forms[best]),
    )
    return _with_rewriting(decided, rewriting), association


def _with_rewriting(decided: Decided, rewriting: RewrittenProgram | None) -> Decided:
    return replace(decided, lowering=replace(decided.lowering, rewriting=rewriting))


def _behind_masks(logical: LogicalProgram, given: _Given) -> tuple[Decided, Association | None]:
    """Return the cheapest order and decomposition; masks are pushed down if that is cheaper."""
    if not _may_demand(logical, given.options):
        return _optimised(logical, given)
    asked = _asked(logical, given)
    demanded = demand(logical, *asked)
    if demanded is None:
        return _optimised(logical, given)
    behind = _priced(lambda: _optimised(demanded.program, given))
    written = _priced(lambda: _optimised(logical, given))
    gain = given.switches.demand_gain
    if behind.error is not None or behind.cost > written.cost * (1 - gain):
        return written.get()
    decided, association = behind.get()
    demands = Demand(*asked, demanded.lines, behind.cost, written.cost)
    lowering = replace(decided.lowering, demand=demands)
    return replace(decided, lowering=lowering), association


def _masked(logical: LogicalProgram, given: _Given) -> LogicalProgram:
    """Return a program with masks pushed down wherever possible."""
    if not _may_demand(logical, given.options):
        return logical
    demanded = demand(logical, *_asked(logical, given))
    return logical if demanded is None else demanded.program


def _asked(logical: LogicalProgram, given: _Given) -> tuple[frozenset[str], frozenset[str]]:
    """Return the inputs that are worth a mask, and the tensors whose statements must stay."""
    sparse = _sparse(logical, given.inputs, given.switches.mask_share)
    return sparse, _with_paths(logical)


def _optimised(logical: LogicalProgram, given: _Given) -> tuple[Decided, Association | None]:
    """Return the cheapest order and decomposition of a logical program."""
    inputs, options = given.inputs, given.options
    decided, association = associate(
        logical,
        given.measured,
        _decide(logical, given),
        options.association,
        _fixed(logical, options),
        options.optimisations,
        given.known,
    )
    if not _pins_what_the_order_makes(logical, options):
        return decided, association
    program, statistics = decided.program, decided.statistics
    decomposed = decompose(program, used(inputs, program), statistics, options)
    return replace(decided, decomposed=decomposed), association


@dataclass(frozen=True)
class _Priced:
    """The outcome of one way to compute a program; an error if it cannot be run."""

    decided: tuple[Decided, Association | None] | None
    error: UcleError | None

    @property
    def cost(self) -> float:
        return math.inf if self.decided is None else self.decided[0].decomposed.total_cost

    def get(self) -> tuple[Decided, Association | None]:
        """Return the decided program; raise the error if there is one."""
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
    return options.optimisations.demand and _may_rewrite(logical, options)


def _may_rewrite(logical: LogicalProgram, options: Options) -> bool:
    """Return whether the program may be rewritten: not if the caller fixes its vertices.

    A pin on a tensor that only rewriting makes shows that the rewritten program is meant.
    """
    if options.association != "free":
        return False
    if isinstance(options.decomposition, str):
        return options.decomposition != "as-written"
    return _pins_what_the_order_makes(logical, options)


def _sparse(
    logical: LogicalProgram, inputs: Mapping[str, PlacedInput], share: float
) -> frozenset[str]:
    """Return the inputs that hold so few entries that they are worth a mask."""
    return frozenset(
        name
        for name in logical.inputs
        if inputs[name].statistics.entries <= share * math.prod(inputs[name].shape)
    )


def used(inputs: Mapping[str, PlacedInput], program: Program) -> dict[str, PlacedInput]:
    """Return the inputs that a program reads."""
    return {name: bound for name, bound in inputs.items() if name in program.input_names}


def program_statistics(
    program: Program, inputs: Mapping[str, PlacedInput], options: Options
) -> ProgramStatistics:
    """Return the statistics of a program's tensors, by the estimator for costs."""
    measured = {name: bound.statistics for name, bound in inputs.items()}
    return MeasuredInputs(measured, options.cost_estimator).of(program)


def _decide(logical: LogicalProgram, given: _Given) -> Decide:
    """Return a function that chooses decompositions and shares prices between programs.

    Pins on tensors that the text does not name are left for later: only one order makes them.
    """
    inputs, options = given.inputs, given.options
    pins = options.decomposition
    if not isinstance(pins, str):
        named = {statement.target for statement in logical.statements}
        options = replace(options, decomposition={x: pins[x] for x in pins if x in named})
    prices = Prices()

    def decide(program: Program) -> Decided:
        own, statistics = used(inputs, program), given.priced.of(program)
        return Decided(program, statistics, decompose(program, own, statistics, options, prices))

    return decide


def _pins_what_the_order_makes(logical: LogicalProgram, options: Options) -> bool:
    """Return whether tensors are pinned that only the order of products makes."""
    pins = () if isinstance(options.decomposition, str) else options.decomposition
    return not {statement.target for statement in logical.statements}.issuperset(pins)


def _fixed(logical: LogicalProgram, options: Options) -> frozenset[str] | None:
    """Return the tensors pinned by the caller, which are never rewritten; None means all."""
    if options.decomposition == "as-written":
        return None
    pinned = () if isinstance(options.decomposition, str) else options.decomposition
    return _with_paths(logical).union(pinned)


def _with_paths(logical: LogicalProgram) -> frozenset[str]:
    """Return the tensors whose products have given contraction paths, and those of index maps."""
    paths = frozenset(x.target for x in logical.statements if x.path is not None)
    return paths | logical.reindexed
