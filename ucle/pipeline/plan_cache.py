"""The choice of the optimiser for a program, kept for the next program that is the same or alike.

Lowering and optimising are functions of the resolved statements, of facts about the inputs, and of
the options. Their key holds all of these, bit by bit (`ucle.foundation.exact_key`), so that the
cache needs no rule about when it is out of date: other data, types, sizes or registered operators
make another key. Data is bound, measured and checked each time before a key is made; arrays and
connections are in no key and in no value.

A program that differs from one before it only in sizes, and in those by a factor of two at most
(`ucle.pipeline.shapes`), gets the choice of that one, fitted to its sizes (`ucle.pipeline.refit`),
unless another choice may be cheaper by more than it takes to find. Costs grow with sizes, so that a
choice that was the cheapest is at most as many times dearer than another one as it has become
dearer itself. And where a search would go further than the one for the other sizes, it may find
what was not looked for there.
Fitted choices are never fitted again: whatever the sizes drift to step by step, they are compared
with those for which the optimiser made the choice.

Decompositions that cannot be computed are kept, too. An export pins the keys that it is to have and
takes another decomposition where that is refused, as of a scan: it would search both each time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from ucle.errors import UnsupportedError
from ucle.foundation.caches import BoundedCache
from ucle.foundation.dataclasses import dataclass
from ucle.foundation.exact_key import ExactKey
from ucle.inputs.states import PlacedInput
from ucle.lowering.syntax_to_logical import ResolvedProgram, syntax_to_logical
from ucle.optimiser.join_order import Decided
from ucle.optimiser.optimise import optimise
from ucle.optimiser.rewrite_passes import Choice
from ucle.optimiser.rewriting import RewrittenProgram, extent_of_search
from ucle.options import Options
from ucle.pipeline.refit import keeps_joins_and_checks, refit
from ucle.pipeline.shapes import Shape, find_shape

MOST_BYTES = 1 << 26
"""Bytes of all kept choices together. A choice for a program of five vertices takes 0.1 MB."""

MOST_REFUSALS_BYTES = 1 << 22
"""Bytes of all kept refusals. One takes some kilobytes, most of them for its key."""

MOST_GROWTH = 2.5
"""How many times dearer a choice may become by fitting, where its cost pays for a search. Sums of
twice as many entries become twice as dear, and products over two labels of twice the size four
times."""

MOST_MODELS = 4
"""The number of sizes for which choices are kept of programs that differ in nothing else."""


@dataclass(frozen=True)
class Model:
    """A choice that the optimiser made, with the shape of the program for which it did."""

    shape: Shape
    choice: Choice


_choices = BoundedCache[Choice](MOST_BYTES // 2)
"""Choices of the optimiser, by all that they depend on."""

fitted_choices = BoundedCache[Choice](MOST_BYTES // 4)
"""Choices that were fitted, by all that an unfitted one would depend on."""

models = BoundedCache[tuple[Model, ...]](MOST_BYTES // 4)
"""Choices to fit, by the facts of their shapes; those made last come first."""


_refusals = BoundedCache[UnsupportedError](MOST_REFUSALS_BYTES)
"""Why the optimiser refused programs, by all that this depends on. None of them was raised."""


def choose_plan(
    source: ResolvedProgram, inputs: Mapping[str, PlacedInput], options: Options
) -> Choice:
    """Lower and optimise a program, or return what was chosen for such a program before.

    Arguments and errors are those of `ucle.lowering.syntax_to_logical.syntax_to_logical` and
    `ucle.optimiser.optimise.optimise`. Of errors, only those of decompositions that cannot be
    computed are kept. Nothing is kept whose options have no key, such as an iterator.
    """
    facts = {name: _facts(placed) for name, placed in inputs.items()}
    key = ExactKey.find((source, facts, options))
    if key is None:
        return optimise(syntax_to_logical(source), inputs, options)
    if (known := _choices.get(key) or fitted_choices.get(key)) is not None:
        return known
    if (refused := _refusals.get(key)) is not None:
        raise _same(refused)
    shape = find_shape(source, inputs, options)
    kept = models.get(shape.facts) or ()
    like = _find_like(shape, kept, options.optimisations.like_shapes)
    fitted = None if like is None else _fit(like.choice, source, inputs, options)
    if fitted is not None:
        fitted_choices.put(key, fitted)
        return fitted
    logical = syntax_to_logical(source)
    try:
        choice = optimise(logical, inputs, options)
    except UnsupportedError as error:
        if type(error) is UnsupportedError:  # how deep a program may nest depends on the caller
            _refusals.put(key, _same(error))
        raise
    _choices.put(key, choice)
    models.put(shape.facts, (Model(shape, choice), *kept[: MOST_MODELS - 1]))
    return choice


def _same(error: UnsupportedError) -> UnsupportedError:
    """The same error once more, without where it was raised and what callers noted on it."""
    return UnsupportedError(
        error.message,
        where=error.where,
        expected=error.expected,
        found=error.found,
        hint=error.hint,
    )


def _find_like(shape: Shape, kept: Iterable[Model], factor: float | None) -> Model | None:
    """The choice for the sizes that come within a factor of others; None if there is none."""
    if factor is None:
        return None
    return next((model for model in kept if shape.is_like(model.shape, factor)), None)


def _fit(
    choice: Choice, source: ResolvedProgram, inputs: Mapping[str, PlacedInput], options: Options
) -> Choice | None:
    """Fit a choice to a program of like shape; None where that needs other joins or checks."""
    before, association = choice
    fitted = refit(before, source, inputs, options)
    if fitted is None or not keeps_joins_and_checks(before.program, fitted.program):
        return None
    if _may_be_dear(before, fitted):
        return None
    decomposed = fitted.decomposed
    if decomposed.search is not None:
        search = replace(decomposed.search, like=True)
        fitted = replace(fitted, decomposed=replace(decomposed, search=search))
    return fitted, association


def _may_be_dear(before: Decided, fitted: Decided) -> bool:
    """True if a search for the new sizes may find a choice that is much cheaper."""
    cost, old = fitted.decomposed.total_cost, before.decomposed.total_cost
    rewriting = before.lowering.rewrite(RewrittenProgram.key)
    searched = old if rewriting is None or rewriting.costs is None else rewriting.costs.written
    extent = extent_of_search(cost)
    return extent > extent_of_search(searched) or (extent > 0 and cost > MOST_GROWTH * old)


def _facts(placed: PlacedInput) -> tuple[object, ...]:
    """Everything known about an input but its data."""
    return (
        placed.source,
        placed.statistics,
        placed.bounds,
        placed.dtype,
        placed.fill,
        placed.values,
        placed.labels,
        placed.shape,
        placed.kept,
        placed.keep_in,
        placed.described.spec.varies,
    )
