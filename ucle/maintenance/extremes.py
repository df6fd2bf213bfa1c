"""Bring minima and maxima up to date from new terms alone: ``T' = max(T, new terms)``.

A term is new where an entry was added to what it is computed from. That is exact for every type,
as long as no term has moved away from the extreme: an entry of -1 takes the place of a 0 that may
have been the maximum. Terms that have changed are compared with what they were when their entries
had the fill; where one of them has moved away, the result of the program does not count. `any` is
the maximum of truth values, and `all` the minimum.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ucle.foundation.dataclasses import dataclass
from ucle.foundation.dtypes import DType, Scalar
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
    children,
    walk,
    with_children,
)
from ucle.maintenance.affected import EVERYTHING, SPREADING, Mask, statement_like
from ucle.maintenance.differences import Updated
from ucle.operators import (
    ALL,
    AND,
    ANY,
    GREATEST,
    LEAST,
    LESS,
    LESS_EQUAL,
    MAX,
    MIN,
    NOT,
    NOT_EQUAL,
    OR,
)

LARGEST: Mapping[DType, Scalar] = {
    DType.INT64: 2**63 - 1,
    DType.FLOAT32: float("inf"),
    DType.FLOAT64: float("inf"),
}
"""The number of a type that no other one exceeds."""

SMALLEST: Mapping[DType, Scalar] = {
    DType.INT64: -(2**63),
    DType.FLOAT32: float("-inf"),
    DType.FLOAT64: float("-inf"),
}


@dataclass(frozen=True)
class Before:
    """A tensor to which entries were added, and nothing else: where, and what was there before."""

    masks: tuple[Mask, ...]
    fill: Scalar
    dtype: DType


def _in_type(expression: Expression, dtype: DType, span: Span) -> Expression:
    """An expression with numbers in it, in the type that it has without them."""
    return Call(dtype, (expression,), span) if dtype is DType.FLOAT32 else expression


def extend(
    statement: Statement,
    before: str,
    added: Mapping[str, Before],
    changed: Mapping[str, object],
    names: Callable[[str], str],
    dtype: DType,
    fill: Scalar,
) -> Updated | None:
    """Return statements that compare an extreme with the new terms; None if it is none.

    Args:
        statement: of any form.
        before: the tensor as it was.
        added: the tensors to which entries were added.
        changed: all tensors that have changed.
        names: returns a new name for a tensor.
        dtype: the type of the tensor.
        fill: its fill.

    >>> from ucle.language.parse import parse_program
    >>> from ucle.language.syntax_to_text import statement_text
    >>> (statement,) = parse_program("T[i] max= A[i,j] * x[j]")
    >>> added = {"A": Before((Mask("A_changed", (0, 1)),), 0, DType.INT64)}
    >>> found = extend(statement, "T_old", added, added, str.lower, DType.INT64, 0)
    >>> for each in found.statements[:3]:
    ...     print(statement_text(each))
    t_terms[i] = max[j](where(A_changed[i,j], A[i,j] * x[j], -9223372036854775808))
    t_mask[i] = T_old[i] < t_terms[i]
    t_new[i] = where(t_mask[i], max(T_old[i], t_terms[i]), 0)
    """
    resolved = resolve(statement)
    if not isinstance(resolved.expression, Reduction):
        return None
    operator, term = resolved.expression.operator, resolved.expression.argument
    if operator not in (MIN, MAX, ANY, ALL) or not _is_pointwise(term):
        return None
    if operator in (MIN, MAX) and dtype not in LARGEST:
        return None
    reads = {x.tensor for x in accesses(term)} & changed.keys()
    if not reads or not reads <= added.keys():
        return None
    if any(EVERYTHING in added[x].masks for x in reads):
        return None
    terms = _Terms(resolved, added, reads, names)
    return terms.compare(operator, before, dtype, fill)


def _is_pointwise(expression: Expression) -> bool:
    """True if an expression computes each term from the entries at its own labels."""
    return not any(
        isinstance(x, SPREADING) or (isinstance(x, Access) and x.indices is not None)
        for x in walk(expression)
    )


class _Terms:
    """The new terms of a statement, and what they were before."""

    def __init__(
        self,
        resolved: Statement,
        added: Mapping[str, Before],
        reads: set[str],
        names: Callable[[str], str],
    ) -> None:
        assert isinstance(resolved.expression, Reduction)
        self._resolved, self._names = resolved, names
        self._over = resolved.expression.over
        self._term = resolved.expression.argument
        self._span: Span = resolved.span
        self._added = {x: added[x] for x in reads}
        self._where = self._new_terms()

    def compare(self, operator: object, before: str, dtype: DType, fill: Scalar) -> Updated:
        target, span = self._resolved.target, self._span
        stem, labels = target.tensor, target.labels
        found, new, mask, moved = (
            self._names(f"{stem}_{x}") for x in ("terms", "new", "mask", "moved")
        )
        old, terms = Access(before, labels, span), Access(found, labels, span)
        term, was = self._term, self._as_before(self._term)
        if operator in (ANY, ALL):
            now: Expression = Binary(NOT_EQUAL, term, Number(0, span), span)
            was = Binary(NOT_EQUAL, was, Number(0, span), span)
            first: Expression = old
            if operator is ALL:  # all are true where none is false
                now, was, first = self._not(now), self._not(was), self._not(old)
            best = Reduction(ANY, self._over, Binary(AND, self._where, now, span), span)
            better: Expression = Binary(AND, terms, self._not(first), span)
            gone: Expression = Binary(AND, was, self._not(now), span)
            value: Expression = Binary(OR, first, terms, span)
            if operator is ALL:
                value = self._not(value)
        else:
            largest = operator is MAX
            worst = (SMALLEST if largest else LARGEST)[dtype]
            limited = Call("where", (self._where, term, Number(worst, span)), span)
            hit = _in_type(limited, dtype, span)
            best = Reduction(MAX if largest else MIN, self._over, hit, span)
            first, second = (old, terms) if largest else (terms, old)
            better = Binary(LESS, first, second, span)
            least, most = (was, term) if largest else (term, was)
            gone = self._not(Binary(LESS_EQUAL, least, most, span))  # NaN, too
            value = Binary(GREATEST if largest else LEAST, old, terms, span)
        lost: Expression = Binary(AND, self._where, gone, span)
        if lost.labels:
            lost = Reduction(ANY, lost.labels, lost, span)
        checked = self._statement(moved, (), lost)
        computed = self._statement(found, labels, best)
        if not labels:
            return Updated((computed, self._statement(new, (), value), checked), new, (), moved)
        at = Access(mask, labels, span)
        entries = Call("where", (at, value, Number(fill, span)), span)
        parts = (
            computed,
            self._statement(mask, labels, better),
            self._statement(new, labels, _in_type(entries, dtype, span)),
            checked,
        )
        return Updated(parts, new, (Mask(mask, tuple(range(len(labels)))),), moved)

    def _new_terms(self) -> Expression:
        """Where a term is computed from an entry that was added."""
        where: Expression | None = None
        for read in dict.fromkeys(accesses(self._term)):
            for mask in self._masks(read):
                where = mask if where is None else Binary(OR, where, mask, self._span)
        assert where is not None
        return where

    def _masks(self, read: Access) -> list[Access]:
        if read.tensor not in self._added:
            return []
        return [
            Access(mask.tensor, tuple(read.labels[axis] for axis in mask.axes), self._span)
            for mask in self._added[read.tensor].masks
        ]

    def _as_before(self, expression: Expression) -> Expression:
        """An expression over the tensors as they were."""
        if isinstance(expression, Access):
            for mask in self._masks(expression):
                added = self._added[expression.tensor]
                parts = mask, Number(added.fill, self._span), expression
                return _in_type(Call("where", parts, self._span), added.dtype, self._span)
            return expression
        below = [self._as_before(x) for x in children(expression)]
        return with_children(expression, below) if below else expression

    def _not(self, expression: Expression) -> Expression:
        return Call(NOT, (expression,), self._span)

    def _statement(self, name: str, labels: tuple[str, ...], expression: Expression) -> Statement:
        return statement_like(self._resolved, name, labels, expression)
