"""The choice of the optimiser for a program, kept for the next program that is exactly the same.

Lowering and optimising are functions of the resolved statements, of facts about the inputs, and of
the options. Their key holds all of these, bit by bit (`ucle.foundation.exact_key`), so that the
cache needs no rule about when it is out of date: other data, types, sizes or registered operators
make another key. Data is bound, measured and checked each time before a key is made; arrays and
connections are in no key and in no value.
"""

from __future__ import annotations

from collections.abc import Mapping

from ucle.foundation.caches import BoundedCache
from ucle.foundation.exact_key import ExactKey
from ucle.inputs.states import PlacedInput
from ucle.lowering.syntax_to_logical import ResolvedProgram, syntax_to_logical
from ucle.optimiser.optimise import optimise
from ucle.optimiser.rewrite_passes import Choice
from ucle.options import Options

MOST_BYTES = 1 << 26
"""Bytes of all kept choices together. A choice for a program of five vertices takes 0.1 MB."""

_choices = BoundedCache[Choice](MOST_BYTES)


def choose_plan(
    source: ResolvedProgram, inputs: Mapping[str, PlacedInput], options: Options
) -> Choice:
    """Lower and optimise a program, or return what was chosen for the same program before.

    Arguments and errors are those of `ucle.lowering.syntax_to_logical.syntax_to_logical` and
    `ucle.optimiser.optimise.optimise`; errors are not kept, nor is anything whose options have no
    key, such as an iterator.
    """
    facts = {name: _facts(placed) for name, placed in inputs.items()}
    return _choices.get_or_make(
        ExactKey.find((source, facts, options)),
        lambda: optimise(syntax_to_logical(source), inputs, options),
    )


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
