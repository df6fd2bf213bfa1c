"""Products of a tensor with itself that read one entry twice.

A line of a fact table refers to one row of each dimension table, so that it decides the row:
`L[i,s]` has at most one entry for each i (`TensorType.decided`). Where both factors of
`L[i,s] * L[i,t]` have an entry, it is the same one, and t is s:

    sum[i,s,t](L[i,s] * S[s,j] * L[i,t] * P[t,k]) = sum[i,s](square(L[i,s]) * S[s,j] * P[s,k])

The sum over t has one term that is not 0, so that nothing is rounded that was not. What is 1
wherever it is not 0 is its own square. The joins by i are gone, and with them what kept the sum
over lines from being the first: it is that of the pairs of rows to which lines refer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import combinations

from ucle.ir.layouts import Label
from ucle.ir.tensor_types import TensorType
from ucle.lowering.logical import Use
from ucle.lowering.polynomials import Monomial, Polynomial
from ucle.lowering.read_polynomials import Polynomials


def join_once(known: Polynomials, polynomial: Polynomial) -> Polynomial | None:
    """Return a polynomial in which no entry is joined with itself; None if nothing is left of it.

    Args:
        known: the polynomials of the program.
        polynomial: the polynomial; it is returned itself if it joins no entry with itself.
    """
    monomials = tuple(_joined(known, monomial) for monomial in polynomial.monomials)
    if monomials == polynomial.monomials:
        return polynomial
    once = replace(polynomial, monomials=monomials)
    return once.simplify_terms() if known.fits(once) else polynomial


def _joined(known: Polynomials, monomial: Monomial) -> Monomial:
    while (names := _find_equal_labels(known, monomial)) is not None:
        over = tuple(label for label in monomial.over if label not in names)
        monomial = replace(monomial.rename_labels(names), over=over)
    twice = [x for x in dict.fromkeys(monomial.factors) if monomial.factors.count(x) > 1]
    ones = [x for x in twice if _is_one(known, x)]
    places = [n for n, x in enumerate(monomial.factors) if x in ones and x in monomial.factors[:n]]
    return replace(monomial, factors=monomial.without(places)) if places else monomial


def _find_equal_labels(known: Polynomials, monomial: Monomial) -> Mapping[Label, Label] | None:
    """Return summed labels that equal others wherever a product is not 0; None if there are none.

    What is 0 there may hide neither NaN nor an infinity among the other factors.
    """
    for one, other in _pairs(monomial):
        if known.is_named_sum(one):
            continue
        type_ = known.type_of(one)
        if not type_.decided or type_.fill != 0 or known.type_of(other).fill != 0:
            continue
        names = _equal_labels(one, other, type_, monomial)
        if names is not None and all(map(known.is_finite, monomial.factors)):
            return names
    return None


def _pairs(monomial: Monomial) -> Iterator[tuple[Use, Use]]:
    """Yield the pairs of factors that read one tensor under different labels."""
    for one, other in combinations(dict.fromkeys(monomial.factors), 2):
        if one.tensor == other.tensor and one.labels != other.labels:
            yield one, other


def _equal_labels(
    one: Use, other: Use, type_: TensorType, monomial: Monomial
) -> Mapping[Label, Label] | None:
    """Return the labels of two factors that are equal where both have an entry, as names.

    None if the factors may have different entries, or if a label that is kept equals another one.
    """
    names: dict[Label, Label] = {}
    for axis, (left, right) in enumerate(zip(one.labels, other.labels, strict=True)):
        if left == right:
            continue
        if axis not in type_.decided or left in other.labels or right in one.labels:
            return None
        if right in monomial.over:
            names[right] = left
        elif left in monomial.over:
            names[left] = right
        else:
            return None
    return names


def _is_one(known: Polynomials, use: Use) -> bool:
    """Return whether a use is 1 wherever it is not 0, so that it equals its square."""
    if known.is_named_sum(use):
        return False
    type_ = known.type_of(use)
    return type_.fill in (0, 1) and type_.entries.low == 1 == type_.entries.high
