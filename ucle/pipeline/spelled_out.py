"""Statements with all that they leave unsaid spelled out, before any input is looked at.

This depends on the statements and on the options that name parts of them alone. It is kept for the
next time that the same text is compiled: parsed texts are kept, too
(`ucle.language.parse.parse_program`), so that it is found by the identity of the statements.
"""

from __future__ import annotations

from collections.abc import Mapping

from ucle.foundation.caches import BoundedCache
from ucle.foundation.dataclasses import dataclass
from ucle.foundation.exact_key import ExactKey, Same
from ucle.inputs.stored_layouts import check_stored
from ucle.language.bounds import check_labels
from ucle.language.guard_operands import guard_operands
from ucle.language.lift_gathers import lift_gathers
from ucle.language.lift_indices import lift_indices
from ucle.language.lift_scans import lift_scans
from ucle.language.resolve import resolve
from ucle.language.statements import (
    asks_for_zeros,
    check_output_labels,
    check_ranks,
    choose_outputs,
    input_labels,
    order_statements,
    paths_by_tensor,
)
from ucle.language.syntax import Statement
from ucle.options import Options

MOST_BYTES = 1 << 24
"""Bytes of all programs that are kept. One of five statements takes 20 KB."""


@dataclass(frozen=True)
class SpelledOut:
    """The statements of a program in order, each with all of its sums and without scans."""

    statements: tuple[Statement, ...]
    one: str | None
    """The input of one row that stands for 1, if a statement needs it."""
    labels: Mapping[str, tuple[str, ...]]
    """The labels of the first use of each input."""
    coverage: bool
    """True if it matters that there is an entry at every coordinate."""


_known = BoundedCache[SpelledOut](MOST_BYTES)


def spell_out(statements: tuple[Statement, ...], options: Options) -> SpelledOut:
    """Check statements and spell them out.

    Raises:
        LabelError: labels or ranks do not agree.
        NameResolutionError: an option names a tensor or an input that is not there.
    """
    about = options.bounds, options.outputs, options.path, options.store
    key = ExactKey.find((Same(statements), *about))
    return _known.get_or_make(key, lambda: _spell_out(statements, options))


def _spell_out(statements: tuple[Statement, ...], options: Options) -> SpelledOut:
    statements = order_statements(statements)
    _check(statements, options)
    resolved = tuple(lift_gathers(guard_operands(resolve(each))) for each in statements)
    lifted = lift_indices(lift_scans(resolved), options.bounds or {})
    labels, coverage = input_labels(statements), asks_for_zeros(lifted.statements)
    return SpelledOut(lifted.statements, lifted.one, labels, coverage)


def _check(statements: tuple[Statement, ...], options: Options) -> None:
    """Check that the statements are consistent with each other and with the options."""
    check_ranks(statements)
    check_output_labels(statements, options.bounds or {})
    check_labels(options.bounds or {}, statements)
    choose_outputs(statements, options.outputs)
    paths_by_tensor(statements, options.path)
    check_stored(options.store, input_labels(statements))
