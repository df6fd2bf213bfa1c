"""What a program may not mean: entries that are not stored, where they decide what comes out.

Everything here is right as it is written, so that it is noticed and not refused.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from ucle.errors import MeaningWarning
from ucle.foundation.logs import warn_caller
from ucle.inputs.states import SizedInput
from ucle.language.syntax import Access, Binary, Expression, Reduction, Size, Statement, walk
from ucle.operators import ADD, MAX, MIN
from ucle.plan.sources import TableSource


def give_notice(statements: Sequence[Statement], inputs: Mapping[str, SizedInput]) -> None:
    """Warn where the entries that inputs do not store decide what a statement computes.

    Args:
        statements: resolved.
        inputs: the inputs of the program.

    Warns:
        MeaningWarning: each time.
    """
    sparse = {name: bound for name, bound in inputs.items() if _leaves_out(bound)}
    if not sparse:
        return
    for statement in statements:
        for part in walk(statement.expression):
            found = (*_of_least(part, sparse), *_of_mean(part, statement, sparse))
            for text in found:
                warn_caller(f"{statement.span}: {text}", MeaningWarning)


def _leaves_out(bound: SizedInput) -> bool:
    """True for a table that does not store all entries, of which nobody has said what they are."""
    if not isinstance(bound.source, TableSource) or bound.fill != 0:
        return False
    return bound.statistics.exact and bound.statistics.entries < math.prod(bound.shape)


def _of_least(part: Expression, sparse: Mapping[str, SizedInput]) -> Iterator[str]:
    """The least or greatest of sums with entries that are not stored, as of paths."""
    if not isinstance(part, Reduction) or part.operator not in (MIN, MAX):
        return
    least = part.operator is MIN
    identity, kind = ("ucle.inf", "least") if least else ("-ucle.inf", "greatest")
    for read in _terms(part.argument):
        # A sum with a vector in which all is stored would have no least entry otherwise.
        if read.rank > 1 and read.tensor in sparse and set(part.over) & set(read.labels):
            yield (
                f"entries that {read.tensor} does not store are 0, and may be the {kind} of these "
                f"sums; ucle.table(..., fill={identity}) leaves them out"
            )


def _terms(expression: Expression) -> Iterator[Access]:
    """The tensors that a sum adds; nothing if it is no sum of several terms."""
    if isinstance(expression, Binary) and expression.operator is ADD:
        for side in (expression.left, expression.right):
            if isinstance(side, Access):
                yield side
            else:
                yield from _terms(side)


def _of_mean(
    part: Expression, statement: Statement, sparse: Mapping[str, SizedInput]
) -> Iterator[str]:
    """A mean over positions that nobody has stated, half of which, or one, no entry has."""
    if not isinstance(part, Size):
        return
    for read in walk(statement.expression):
        if not isinstance(read, Access) or read.indices is not None or read.tensor not in sparse:
            continue
        bound = sparse[read.tensor]
        for axis, label in enumerate(read.labels):
            size, used = bound.shape[axis], bound.statistics.distinct[axis]
            if label not in part.over or bound.bounds[axis].exact:
                continue
            if size > 2 and (used == size - 1 or used < size / 2):
                yield (
                    f"this counts {size} positions of {statement.renamed.get(label, label)}, and "
                    f"{read.tensor} has entries at {used:.0f} of them; "
                    'ucle.table(..., coordinates="dictionary") counts these alone, and '
                    "ucle.mean(x, stored=True) the entries of a lazy tensor"
                )
