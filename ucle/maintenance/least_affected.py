"""Find how many coordinates a change affects at least, before anything is computed.

A mask is true wherever one of the masks is that it is put together from with ``or``. Of tables of
what has changed it is known how many coordinates they have, so that a large change is known to be
one: then it does not pay to look which coordinates it affects.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ucle.inputs.table_input import TableInput
from ucle.language.resolve import resolve
from ucle.language.syntax import Access, Binary, Expression, Reduction, Statement
from ucle.operators import ANY, OR
from ucle.stats.measure import MeasuredInput


def least_true(
    mask: str, axis: int, statements: Mapping[str, Statement], given: Mapping[str, TableInput]
) -> float:
    """Return at how many coordinates of an axis a mask is true at least.

    Args:
        mask: its name.
        axis: the axis.
        statements: those of masks, by their names.
        given: tables that statements read; where ``value=True``, with the number of coordinates
            that they have, along each axis.

    >>> from ucle.language.parse import parse_program
    >>> facts = MeasuredInput((9, 9), True, 5.0, (True, True), (3.0, 4.0), exact=False)
    >>> changed = TableInput("changed", columns=("i", "j"), value=True, measured=facts)
    >>> program = parse_program("M[i] = any[j](D[i,j]) or any[j,k](D[j,k] * (A[i,j] != 0))")
    >>> least_true("M", 0, {"M": program[0]}, {"D": changed})
    3.0
    """
    if mask in given:
        facts = given[mask].measured
        if given[mask].value is True and isinstance(facts, MeasuredInput):
            return facts.distinct[axis]
        return 0.0
    if mask not in statements:
        return 0.0
    statement = resolve(statements[mask])
    label = statement.target.labels[axis]
    found = [
        least_true(read.tensor, read.labels.index(label), statements, given)
        for read in _alternatives(statement.expression)
        if label in read.labels and read.indices is None and len(set(read.labels)) == read.rank
    ]
    return max(found, default=0.0)


def _alternatives(expression: Expression) -> Iterator[Access]:
    """Yield the reads where a mask is true if one of them is."""
    match expression:
        case Access():
            yield expression
        case Reduction(operator) if operator is ANY:
            yield from _alternatives(expression.argument)
        case Binary(operator) if operator is OR:
            yield from _alternatives(expression.left)
            yield from _alternatives(expression.right)
