"""What a program may not mean: entries that are not stored, where they decide what comes out.

Everything here is right as it is written, so that it is noticed and not refused.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field

from ucle.database.session import Session
from ucle.errors import MeaningWarning
from ucle.foundation.dataclasses import dataclass
from ucle.foundation.logs import warn_caller
from ucle.inputs.axis_sizes import SizedInputs
from ucle.inputs.states import SizedInput
from ucle.inputs.stored_coordinates import count_coordinates
from ucle.language.syntax import Access, Binary, Expression, Reduction, Size, Statement, walk
from ucle.operators import ADD, MAX, MIN
from ucle.plan.sources import TableSource

MARGIN = 1.25
"""The factor by which an estimated number may be too small."""


def give_notice(session: Session, statements: Sequence[Statement], sized: SizedInputs) -> None:
    """Warn where the entries that inputs do not store decide what a statement computes.

    Args:
        session: sees the inputs.
        statements: resolved.
        sized: the inputs of the program.

    Warns:
        MeaningWarning: once for each part of a statement, however often it occurs.
    """
    sparse = {name: bound for name, bound in sized.inputs.items() if _leaves_out(bound)}
    if not sparse:
        return
    count = _Count(session, sized)
    texts = dict.fromkeys(
        f"{statement.span}: {text}"
        for statement in statements
        for part in walk(statement.expression)
        for text in (*_of_least(part, sparse), *_of_mean(part, statement, sparse, count))
    )
    for text in texts:
        warn_caller(text, MeaningWarning)


def _leaves_out(bound: SizedInput) -> bool:
    """True for a table that does not store all entries, of which nobody has said what they are."""
    if not isinstance(bound.source, TableSource) or bound.fill != 0:
        return False
    known = bound.statistics
    return (1 if known.exact else MARGIN) * known.entries < math.prod(bound.shape)


@dataclass
class _Count:
    """The number of coordinates of an axis at which an input has a row, each counted once."""

    session: Session
    sized: SizedInputs
    found: dict[tuple[str, int], float] = field(default_factory=dict)

    def __call__(self, name: str, axis: int) -> float:
        """Return the number; few tables have a 0 in a row, and only suspicious ones are asked."""
        if (name, axis) not in self.found:
            bound, dictionaries = self.sized.inputs[name], self.sized.dictionaries
            counted = count_coordinates(self.session, name, bound, axis, dictionaries)
            self.found[name, axis] = counted
        return self.found[name, axis]


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


def _is_left_out(bound: SizedInput, axis: int, used: float, *, exact: bool) -> bool:
    """True if half of the positions of an axis, or one, are not among those that are used."""
    size = bound.shape[axis]
    if size <= 2:
        return False
    return (exact and used == size - 1) or (1 if exact else MARGIN) * used < size / 2


def _of_mean(
    part: Expression, statement: Statement, sparse: Mapping[str, SizedInput], count: _Count
) -> Iterator[str]:
    """A mean over positions that nobody has stated, half of which, or one, no entry has."""
    if not isinstance(part, Size):
        return
    for read in walk(statement.expression):
        if not isinstance(read, Access) or read.indices is not None or read.tensor not in sparse:
            continue
        bound = sparse[read.tensor]
        for axis, label in enumerate(read.labels):
            if label not in part.over or bound.bounds[axis].exact:
                continue
            known, used = bound.statistics, bound.statistics.distinct[axis]
            exact = known.exact or axis in known.counted
            if not _is_left_out(bound, axis, used, exact=exact):
                continue
            stored = count(read.tensor, axis)
            exact = exact or stored != used
            if _is_left_out(bound, axis, stored, exact=exact):
                yield (
                    f"this counts {bound.shape[axis]} positions of "
                    f"{statement.renamed.get(label, label)}, and {read.tensor} has entries at "
                    f"{'' if exact else 'about '}{stored:.0f} of them; "
                    'ucle.table(..., coordinates="dictionary") counts these alone, and '
                    "ucle.mean(x, stored=True) the entries of a lazy tensor"
                )
