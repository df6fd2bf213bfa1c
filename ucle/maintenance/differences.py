"""Derive the difference of a sum of products from those of its factors, by the product rule.

A sum of products is linear in each factor. Where factors F have become F' = F + dF, a product of
them has grown by ``F1' F2' - F1 F2 = dF1 F2' + F1' dF2 - dF1 dF2``: one term for each choice of
changed factors. All terms are statements over what is there now, so that the cost is that of the
changed rows and of the rows that they meet, not that of the tensor.

A factor may also be a function of entries that is 0 at 0, such as ``A[i,j] > 2``. Where entries
were added to A and none was there before, it has grown by the same function of dA.

For integers the difference is exact. For floats the result is a sum of the same terms in another
order as long as rows are only added, so that it has the error of a sum; where rows were removed or
have other values, digits that they took would stay lost, and the entries are computed again.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ucle.foundation.dataclasses import dataclass
from ucle.foundation.dtypes import DType, same_value
from ucle.ir.vertices import Span
from ucle.language.resolve import resolve
from ucle.language.syntax import (
    Access,
    Binary,
    Call,
    Expression,
    Number,
    Reduction,
    Statement,
    accesses,
    fold,
    walk,
    with_children,
)
from ucle.maintenance.affected import Mask, statement_like
from ucle.maintenance.finiteness import stays_finite
from ucle.operators import ADD, MULT, NOT_EQUAL, SUB, SUM, WHEN

MOST_CHANGED = 3
"""The most changed factors of a product: the difference has up to seven terms then."""


@dataclass(frozen=True)
class Difference:
    """By how much the entries of a tensor differ from those before, as a tensor."""

    tensor: str
    added: bool
    """True if no entry of it had a row before."""


@dataclass(frozen=True)
class Updated:
    """Statements for the entries of a tensor that differ."""

    statements: tuple[Statement, ...]
    new: str
    """The tensor of these entries, with their new values."""
    masks: tuple[Mask, ...]
    """Where they are; none for a tensor without axes."""
    moved: str = ""
    """A truth value: true if the entries do not count, as what they rely on does not hold."""
    grown: str = ""
    """The tensor by which the entries grow, which the first statement defines; empty where they do
    not grow by numbers."""


def update(
    statement: Statement,
    before: str,
    differences: Mapping[str, Difference],
    changed: Mapping[str, object],
    names: Callable[[str], str],
    is_zero: Callable[[str], bool],
    *,
    exact: bool,
    fresh: Container[str] = (),
) -> Updated | None:
    """Return statements that add to a tensor what its factors differ by; None if there are none.

    Args:
        statement: of any form.
        before: the tensor as it was.
        differences: those of tensors that have changed.
        changed: all tensors that have changed.
        names: returns a new name for a tensor.
        is_zero: True for a tensor whose entries are finite, and 0 where they are not stored.
        exact: True if sums have no rounding errors.
        fresh: the tensors to which entries were added where there was none, and nothing else.

    >>> from ucle.language.parse import parse_program
    >>> from ucle.language.syntax_to_text import statement_text
    >>> (statement,) = parse_program("T[i,m] += A[i,l] * H[l,m]")
    >>> differences = {"A": Difference("dA", True)}
    >>> found = update(
    ...     statement, "T_old", differences, differences, str.lower, lambda x: True, exact=False
    ... )
    >>> for each in found.statements:
    ...     print(statement_text(each))
    t_difference[i,m] = sum[l](dA[i,l] * H[l,m])
    t_new[i,m] = when(t_difference[i,m] != 0, T_old[i,m]) + t_difference[i,m]
    t_mask[i,m] = t_difference[i,m] != 0
    """
    resolved = resolve(statement)
    product: Expression = resolved.expression
    over: tuple[str, ...] = ()
    if isinstance(product, Reduction):
        if product.operator is not SUM:
            return None
        over, product = product.over, product.argument
    factors = list(_factors(product))
    if not all(stays_finite(x) for part in factors for x in walk(part)):
        return None
    if not all(is_zero(x.tensor) for x in accesses(product)):
        return None
    moved = [n for n, x in enumerate(factors) if any(y.tensor in changed for y in accesses(x))]
    found = {n: _difference_of(factors[n], differences, fresh) for n in moved}
    if not 0 < len(moved) <= MOST_CHANGED or None in found.values():
        return None
    if not exact and not all(x is not None and x.added for x in found.values()):
        return None
    difference: Expression | None = None
    for count in range(1, len(moved) + 1):
        for chosen in itertools.combinations(moved, count):
            term = _term(factors, {n: found[n] for n in chosen}, over, resolved.span)
            sign = ADD if count % 2 else SUB
            difference = (
                term if difference is None else Binary(sign, difference, term, resolved.span)
            )
    assert difference is not None
    return _statements(resolved, difference, before, names)


def _term(
    factors: Sequence[Expression],
    chosen: Mapping[int, Difference | None],
    over: tuple[str, ...],
    span: Span,
) -> Expression:
    """Return the sum of products in which some factors are replaced by their differences."""
    own = list(factors)
    for n, each in chosen.items():
        assert each is not None
        own[n] = _in_place_of(own[n], each.tensor)
    product = own[0]
    for factor in own[1:]:
        product = Binary(MULT, product, factor, span)
    return Reduction(SUM, over, product, span) if over else product


def _difference_of(
    factor: Expression, differences: Mapping[str, Difference], fresh: Container[str]
) -> Difference | None:
    """Return by what a factor differs that reads a changed tensor; None if that is not known."""
    reads = set(accesses(factor))
    (read,) = reads if len(reads) == 1 else (None,)
    if read is None or read.tensor not in differences:
        return None
    if isinstance(factor, Access):
        return differences[read.tensor]
    is_known = read.tensor in fresh and same_value(float(_at_zero(factor)), 0.0)
    return differences[read.tensor] if is_known else None


def _at_zero(expression: Expression) -> Any:
    """Return the value of an expression, as `stays_finite` knows it, where all entries are 0."""

    def value(part: Expression, parts: list[Any]) -> Any:
        match part:
            case Number(number):
                return np.float64(np.nan if isinstance(number, complex) else number)
            case Call(function):
                assert not isinstance(function, str)
                if isinstance(function, DType):
                    return np.float64(function.numpy.type(parts[0]))
                return np.float64(function.numpy(*parts))
            case Binary(operator):
                return np.float64(operator.numpy(*parts))
        return np.float64(0)

    return fold(expression, value)


def _in_place_of(factor: Expression, tensor: str) -> Expression:
    """Return a factor that reads another tensor."""

    def read(part: Expression, parts: list[Expression]) -> Expression:
        part = with_children(part, parts)
        return replace(part, tensor=tensor) if isinstance(part, Access) else part

    return fold(factor, read)


def _statements(
    resolved: Statement, difference: Expression, before: str, names: Callable[[str], str]
) -> Updated:
    span, target = resolved.span, resolved.target
    grown, new, mask = (names(f"{target.tensor}_{x}") for x in ("difference", "new", "mask"))
    own, old = Access(grown, target.labels, span), Access(before, target.labels, span)
    differs = Binary(NOT_EQUAL, own, Number(0, span), span)
    total: Expression = Binary(ADD, old, own, span)

    def statement(name: str, expression: Expression) -> Statement:
        return statement_like(resolved, name, target.labels, expression)

    if not target.labels:
        return Updated((statement(grown, difference), statement(new, total)), new, (), grown=grown)
    parts = (
        statement(grown, difference),
        # What was there is looked up where something differs: a sum of all entries meets them all.
        statement(new, Binary(ADD, Binary(WHEN, differs, old, span), own, span)),
        statement(mask, differs),
    )
    masks = (Mask(mask, tuple(range(len(target.labels)))),)
    return Updated(parts, new, masks, grown=grown)


def _factors(expression: Expression) -> list[Expression]:
    if isinstance(expression, Binary) and expression.operator is MULT:
        return [*_factors(expression.left), *_factors(expression.right)]
    return [expression]
