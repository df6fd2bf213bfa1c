"""Rewrites of the logical program, as a table: each proposes, is priced, and leaves a record.

`REWRITES` are tried in this order. A pass gets the program and the way in which the rest of the
optimiser would compute it; it may hand on another program instead where that is allowed and
cheaper, and the written one on a tie. What it did is an `AppliedRewrite`: replayed when sizes
change, and shown by `explain`, without either knowing which passes there are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import field, replace
from functools import partial

from ucle.errors import UcleError
from ucle.foundation.dataclasses import dataclass
from ucle.inputs.states import PlacedInput
from ucle.lowering.applied_rewrites import AppliedRewrite, DeclinedForm, RewriteCosts
from ucle.lowering.contract import KnownContractions
from ucle.lowering.copies import ReadOriginals, read_originals
from ucle.lowering.logical import LogicalProgram
from ucle.lowering.push_down_masks import MaskPushDown, push_down_masks
from ucle.lowering.quotients import Divided, divide_last
from ucle.optimiser.join_order import Association, Decided
from ucle.optimiser.known_prices import Prices
from ucle.optimiser.rewriting import RewrittenProgram, candidates, laws
from ucle.options import Optimisations, Options
from ucle.stats.estimate import MeasuredInputs

Choice = tuple[Decided, Association | None]
"""A program with its decomposition; and its join order, where it is not the written one."""


@dataclass(frozen=True)
class RewriteContext:
    """Inputs and options, with what programs over them have in common, worked out once.

    `contractions` rank join orders, `priced` gives the sizes for costs, `prices` are those of
    vertices.
    """

    inputs: Mapping[str, PlacedInput]
    options: Options
    contractions: KnownContractions
    priced: MeasuredInputs
    prices: Prices = field(default_factory=Prices)

    @property
    def switches(self) -> Optimisations:
        """The switches of optimisations."""
        return self.options.optimisations


Rest = Callable[[LogicalProgram, RewriteContext], Choice]
"""The cheapest way to compute a program with the passes that are left."""

RewritePass = Callable[[LogicalProgram, RewriteContext, Rest], Choice]


def read_through_copies(logical: LogicalProgram, context: RewriteContext, rest: Rest) -> Choice:
    """Read what copies are copies of (`ucle.lowering.copies`)."""
    return _without_price(read_originals, logical, context, rest)


def divide_after_sums(logical: LogicalProgram, context: RewriteContext, rest: Rest) -> Choice:
    """Move divisors out of sums (`ucle.lowering.quotients`), wherever that may be done."""
    return _without_price(divide_last, logical, context, rest)


def _without_price(
    rewrite: Callable[[LogicalProgram, Collection[str]], ReadOriginals | Divided | None],
    logical: LogicalProgram,
    context: RewriteContext,
    rest: Rest,
) -> Choice:
    """Take a rewrite, which leaves statements with given paths alone, wherever there is one."""
    rewritten = None
    if _may_rewrite_sums(logical, context.options):
        rewritten = rewrite(logical, pinned_by_paths(logical))
    if rewritten is None:
        return rest(logical, context)
    return _record(rest(rewritten.program, context), rewritten)


def choose_sums_of_products(logical: LogicalProgram, context: RewriteContext, rest: Rest) -> Choice:
    """Take the cheapest of the written program and those with other sums of products.

    Sources: `ucle.optimiser.rewriting`.
    """
    if not _may_rewrite_sums(logical, context.options):
        return rest(logical, context)
    if isinstance(context.options.decomposition, str):
        return _cheapest_sums(logical, context, rest)
    # Of what is pinned, only the rewritten program may have all.
    options = replace(context.options, decomposition="auto")
    free, _ = _cheapest_sums(logical, replace(context, options=options), rest)
    rewriting = free.lowering.rewrite(RewrittenProgram.key)
    if rewriting is None:
        return rest(logical, context)
    return _record(rest(rewriting.replay(logical) or logical, context), rewriting)


def _cheapest_sums(logical: LogicalProgram, context: RewriteContext, rest: Rest) -> Choice:
    """The cheapest choice where no decomposition is pinned.

    A form that may lose digits has to be cheaper by far, with its condition numbers: where they are
    too large, the program runs again.
    """
    written = _price(partial(rest, logical, context))
    rewrite, switches = context.options.rewrite, context.switches
    forms = _Forms(logical, context, rest, written.cost, pinned_by_paths(logical))
    best = forms.cheapest(written, switches.rewrite_gain, algebraic=rewrite == "algebraic")
    if rewrite == "auto":
        best = forms.cheapest(best, 1 - 1 / switches.rewrite_saving, algebraic=True, measured=True)
    return best.get()


@dataclass(frozen=True)
class _Forms:
    """The forms of the sums of products of a program, and its cost in the written one."""

    logical: LogicalProgram
    context: RewriteContext
    rest: Rest
    written: float
    fixed: frozenset[str]

    def cheapest(
        self, known: _Priced, gain: float, *, algebraic: bool, measured: bool = False
    ) -> _Priced:
        """The cheapest form; the known one unless another one gains some share of its cost.

        `algebraic` and `measured` are those of `ucle.lowering.rewrites.Rewriter`.
        """
        context = self.context
        forms = candidates(
            self.logical,
            context.contractions,
            lambda program: _with_all_masks(program, context),
            self.fixed,
            algebraic=algebraic,
            measured=measured,
            cost=known.cost * context.switches.rewrite_effort,
        )
        priced = [_price(partial(self.rest, form.program, context)) for form in forms]
        best = min(range(len(forms)), key=lambda n: priced[n].cost, default=None)
        if best is None or priced[best].choice is None:
            return known
        most = known.cost * (1 - gain)
        if priced[best].cost > most:
            if not measured or known.choice is None:
                return known
            lines = laws(self.logical, forms[best])
            return _Priced(_note(known.choice, DeclinedForm(lines, priced[best].cost, most)), None)
        others = tuple(x.cost for n, x in enumerate(priced) if n != best)
        costs = RewriteCosts(priced[best].cost, self.written, others)
        rewriting = RewrittenProgram(
            forms[best].rewrites,
            costs,
            self.fixed,
            algebraic,
            measured,
            laws(self.logical, forms[best]),
        )
        return _Priced(_record(priced[best].get(), rewriting), None)


def choose_mask_push_down(logical: LogicalProgram, context: RewriteContext, rest: Rest) -> Choice:
    """Compute factors only behind sparse masks (`ucle.lowering.push_down_masks`) if cheaper."""
    if not _may_push_masks(logical, context.options):
        return rest(logical, context)
    request = _mask_request(logical, context)
    pushed = push_down_masks(logical, *request)
    if pushed is None:
        return rest(logical, context)
    behind = _price(partial(rest, pushed.program, context))
    written = _price(partial(rest, logical, context))
    gain = context.switches.mask_gain
    if behind.error is not None or behind.cost > written.cost * (1 - gain):
        return written.get()
    costs = RewriteCosts(behind.cost, written.cost)
    return _record(behind.get(), MaskPushDown(*request, pushed.lines, costs))


REWRITES: tuple[RewritePass, ...] = (
    read_through_copies,
    divide_after_sums,
    choose_sums_of_products,
    choose_mask_push_down,
)
"""The passes, in their order: a new one is a function here, its record a class in lowering."""


def choose_rewrites(logical: LogicalProgram, context: RewriteContext, rest: Rest) -> Choice:
    """The cheapest choice with all passes; `rest` chooses join order and decomposition."""
    for rewrite in reversed(REWRITES):
        rest = partial(_apply_pass, rewrite, rest)
    return rest(logical, context)


def _apply_pass(
    rewrite: RewritePass, rest: Rest, logical: LogicalProgram, context: RewriteContext
) -> Choice:
    return rewrite(logical, context, rest)


def may_rewrite(logical: LogicalProgram, options: Options) -> bool:
    """True if the program may become another one: the caller does not say what it consists of.

    Pins of tensors that only rewriting makes say that it is the rewritten program that is meant.
    """
    if options.association != "free":
        return False
    if isinstance(options.decomposition, str):
        return options.decomposition != "as-written"
    return pins_new_tensors(logical, options)


def pins_new_tensors(logical: LogicalProgram, options: Options) -> bool:
    """True if tensors are pinned that only rewrites and join orders make."""
    pins = () if isinstance(options.decomposition, str) else options.decomposition
    return not {statement.target for statement in logical.statements}.issuperset(pins)


def pinned_by_paths(logical: LogicalProgram) -> frozenset[str]:
    """The tensors for whose products contraction paths are given, and those of index maps."""
    paths = frozenset(x.target for x in logical.statements if x.path is not None)
    return paths | logical.reindexed


def _may_rewrite_sums(logical: LogicalProgram, options: Options) -> bool:
    return options.rewrite != "none" and may_rewrite(logical, options)


def _may_push_masks(logical: LogicalProgram, options: Options) -> bool:
    return options.optimisations.push_down_masks and may_rewrite(logical, options)


def _with_all_masks(logical: LogicalProgram, context: RewriteContext) -> LogicalProgram:
    """A program with masks pushed down wherever they can be."""
    if not _may_push_masks(logical, context.options):
        return logical
    pushed = push_down_masks(logical, *_mask_request(logical, context))
    return logical if pushed is None else pushed.program


def _mask_request(
    logical: LogicalProgram, context: RewriteContext
) -> tuple[frozenset[str], frozenset[str]]:
    """The inputs so sparse that they are worth a mask, and the tensors whose statements stay."""
    share = context.switches.mask_share
    sparse = frozenset(
        name
        for name in logical.inputs
        if context.inputs[name].statistics.entries <= share * math.prod(context.inputs[name].shape)
    )
    return sparse, pinned_by_paths(logical)


@dataclass(frozen=True)
class _Priced:
    """The outcome of one way to compute a program; an error where it cannot be run."""

    choice: Choice | None
    error: UcleError | None

    @property
    def cost(self) -> float:
        return math.inf if self.choice is None else self.choice[0].decomposed.total_cost

    def get(self) -> Choice:
        """Return the choice, or raise the error."""
        if self.choice is None:
            assert self.error is not None
            raise self.error
        return self.choice


def _price(choose: Callable[[], Choice]) -> _Priced:
    try:
        return _Priced(choose(), None)
    except UcleError as error:
        return _Priced(None, error)


def _note(choice: Choice, declined: DeclinedForm) -> Choice:
    """A choice beside which another form was declined."""
    decided, association = choice
    return replace(decided, lowering=replace(decided.lowering, declined=declined)), association


def _record(choice: Choice, rewrite: AppliedRewrite) -> Choice:
    """A choice for a rewritten program, as one for the program before."""
    decided, association = choice
    return replace(decided, lowering=decided.lowering.after(rewrite)), association
