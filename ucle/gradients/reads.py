"""Adjoints of reads: entries are passed back to the places where they were read.

``A[i,j]`` passes back its adjoint unchanged. ``A[i+w]`` passes back to p the adjoints at i = p - w,
``W[idx[i],k]`` to each row the sum over all its reads, ``Z[i,idx[i]]`` to one entry of each row,
and ``A[i,i]`` to the diagonal.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import reduce

from ucle.foundation.dataclasses import dataclass
from ucle.foundation.names import find_free_name
from ucle.gradients.masked import sum_over_labels
from ucle.ir.affine import Affine, Digit, labels_of
from ucle.ir.conditions import Compare, Condition, Sign
from ucle.language.label_arithmetic import condition_expression
from ucle.language.syntax import (
    Access,
    Binary,
    Expression,
    Hit,
    Index,
    Outside,
    Site,
    with_indices,
)
from ucle.operators import AND, WHEN


@dataclass(frozen=True)
class Contribution:
    """A contribution to a tensor from one read, with a label for each of its axes."""

    labels: tuple[str, ...]
    expression: Expression
    like: dict[str, Site]
    """The axes of the tensor; the labels have their sizes."""


def contribution(
    access: Access,
    adjoint: Expression,
    taken: set[str],
    shortened: frozenset[str],
    named: Callable[[Expression, tuple[str, ...]], Access],
) -> Contribution:
    """Return the contribution of a read.

    Args:
        access: the read.
        adjoint: of it.
        taken: labels of the statement, to which new ones are added.
        shortened: those that stop before the end of some axis (`ucle.language.lift_indices`).
        named: gives an expression a statement of its own, with labels that it may lack.
    """
    span, indices = access.span, access.indices
    if indices is None:
        if shortened.isdisjoint(access.labels):
            return _build_contribution(access, access.labels, adjoint)
        indices = tuple(Index(Affine.of({label: 1})) for label in access.labels)
    labels = []
    for n, index in enumerate(indices):
        own = _own_label(n, indices)
        labels.append(_fresh(index, taken) if own is None or own in shortened else own)
    read_at = {n: index for n, index in enumerate(indices) if index.plain != labels[n]}
    if all(index.entries is None for index in read_at.values()):
        solved = _solve_functions({labels[n]: index.affine for n, index in read_at.items()}, labels)
        if solved is not None:
            return _read_back(access, labels, solved, adjoint, named)
    conditions: list[Expression] = []
    for n, index in read_at.items():
        if index.entries is not None:
            conditions.append(Hit(index.entries, labels[n], str(access), span, index.permissive))
        else:
            difference = index.affine.plus(Affine.of({labels[n]: 1}), -1)
            conditions.append(condition_expression(Compare(difference, Sign.EQUAL), span))
    whole = adjoint
    if conditions:
        every = reduce(lambda x, y: Binary(AND, x, y, span), conditions)
        whole = Binary(WHEN, every, whole, span)
    left = [label for label in access.labels if label not in labels]
    return _build_contribution(access, tuple(labels), sum_over_labels(whole, left, span))


def _build_contribution(
    access: Access, labels: tuple[str, ...], expression: Expression
) -> Contribution:
    like: dict[str, Site] = {label: (access.tensor, n) for n, label in enumerate(labels)}
    return Contribution(labels, expression, like)


def _own_label(place: int, indices: Sequence[Index]) -> str | None:
    """The label at which an axis is read, if no other axis is read at it.

    Entries at which another axis is read may have the label: ``Z[i,idx[i]]`` passes back to row i.
    """
    label = indices[place].plain
    others = (x for n, x in enumerate(indices) if n != place and x.entries is None)
    return None if label is None or any(label in index.labels for index in others) else label


def _fresh(index: Index, taken: set[str]) -> str:
    stem = (*index.labels, "at")[0]
    label = find_free_name(f"{stem}_at", taken)
    taken.add(label)
    return label


# ---- Functions of labels, solved for the labels ----


@dataclass(frozen=True)
class _Solved:
    """Labels as functions of places, under conditions on these."""

    values: dict[str, Affine]
    conditions: tuple[Condition, ...]


def _solve_functions(functions: dict[str, Affine], places: Sequence[str]) -> _Solved | None:
    """Solve each function for a label, given its value as a place.

    The result is None where a function has no label by itself: ``A[2*i]``.
    """
    values: dict[str, Affine] = {}
    conditions: list[Condition] = []
    digits: dict[str, dict[tuple[int, int], str]] = {}
    for place, function in functions.items():
        digit = _digit(function)
        if digit is not None:
            label, divisor, base = digit
            if (divisor, base) in digits.setdefault(label, {}):
                return None
            digits[label][divisor, base] = place
    for label, own in digits.items():
        whole = _join_digits(own)
        if whole is None:
            return None
        values[label] = whole
        conditions += (
            Compare(Affine.of({place: -1}, base - 1), Sign.AT_LEAST)
            for (_, base), place in own.items()
            if base
        )
    for place, function in functions.items():
        if _digit(function) is not None:
            continue
        others = [f for other, f in functions.items() if other != place]
        single = _single(function, others)
        if single is None or single in values:
            return None
        sign = dict(function.terms)[single]
        rest = function.plus(Affine.of({single: sign}), -1)
        values[single] = Affine.of({place: 1}).plus(rest, -1).times(sign)
    used = {x for value in values.values() for x in value.labels}
    if not used.isdisjoint(values):
        return None
    return _Solved(values, tuple(conditions))


def _single(function: Affine, others: Sequence[Affine]) -> str | None:
    """A label that occurs once in a function and in no other function."""
    elsewhere = {label for other in others for label in other.labels}
    every = [label for term, _ in function.terms for label in labels_of(term)]
    for term, factor in function.terms:
        single = isinstance(term, str) and abs(factor) == 1 and every.count(term) == 1
        if isinstance(term, str) and single and term not in elsewhere:
            return term
    return None


def _digit(function: Affine) -> tuple[str, int, int] | None:
    """Label, divisor and base of a function ``(label // divisor) % base``; base 0 means no %."""
    if len(function.terms) != 1 or function.constant:
        return None
    ((term, factor),) = function.terms
    if factor != 1 or not isinstance(term, Digit):
        return None
    label = term.of.label
    if label is not None:
        return (label, 1, term.by) if term.remainder else (label, term.by, 0)
    inner = _digit(term.of)
    if inner is None or not term.remainder or inner[2]:
        return None
    return inner[0], inner[1], term.by


def _join_digits(digits: dict[tuple[int, int], str]) -> Affine | None:
    """Return the number that has these digits, if they are all of its digits."""
    whole, place = Affine(), 1
    for (divisor, base), name in sorted(digits.items()):
        if divisor != place:
            return None
        whole, place = whole.plus(Affine.of({name: divisor})), divisor * base
    return None if place else whole


def _read_back(
    access: Access,
    labels: Sequence[str],
    solved: _Solved,
    adjoint: Expression,
    named: Callable[[Expression, tuple[str, ...]], Access],
) -> Contribution:
    """Read the adjoint at the solved labels; it is 0 where there is no solution."""
    span, own = access.span, access.labels
    source = named(adjoint, own)
    functions = [solved.values.get(label, Affine.of({label: 1})) for label in own]
    read = replace(
        with_indices(
            source,
            (Index(f, x in solved.values) for x, f in zip(own, functions, strict=True)),
        ),
        outside=Outside.ZERO,
    )
    whole: Expression = read
    if solved.conditions:
        every = reduce(
            lambda x, y: Binary(AND, x, y, span),
            (condition_expression(x, span) for x in solved.conditions),
        )
        whole = Binary(WHEN, every, whole, span)
    left = [x for x in read.labels if x not in labels]
    return _build_contribution(access, tuple(labels), sum_over_labels(whole, left, span))
