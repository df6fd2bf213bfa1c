"""Decide which brackets may be multiplied out without losing digits.

Every plan rounds, and the error of a plan is bounded by the unit roundoff times the sum of the
absolute values of the terms that it adds up. Multiplying out (a + b) * c adds up |a * c| + |b * c|.
That is no more than the written form has, up to a small factor, where

- a + b does not cancel: all terms have one sign; or
- the sum is rounded before it is multiplied: all of its terms but one are computed themselves, so
  that its error is that of its terms already (the one that is exact is at most the sum and the
  others together); and what it is multiplied by is accurate by itself: inputs, functions of
  inputs, and products of such.

(U V' - X) V may be multiplied out: U V' has rounded. (X - U V')^2 may not: the written form has the
square of a small difference, where the other one has the difference of large squares; nor may
(x - y) z of three inputs, where x - y is exact for close x and y; what is picked from inputs (|x|,
max(x, y), 2 x, x where there is a y) is as exact as they are. A sum over labels goes into the
terms of a sum by the same rule, with nothing to multiply by.
"""

from __future__ import annotations

from fractions import Fraction

from ucle.foundation.dtypes import DType
from ucle.ir.maps import Cast, Map, Partial
from ucle.lowering.logical import Use
from ucle.lowering.polynomials import Monomial, Polynomial
from ucle.lowering.read_polynomials import Polynomials, divisor
from ucle.operators import Combine, PointwiseMap
from ucle.operators.rows import Exactness


def may_multiply_out(known: Polynomials, monomial: Monomial, place: int) -> bool:
    """True if a factor of a monomial may be multiplied out without losing digits.

    Args:
        known: the polynomials of the program.
        monomial: the product.
        place: of the factor, which is a sum.
    """
    use = monomial.factors[place]
    inner = known.of(use)
    assert inner is not None
    if not may_sum_terms(known, use):
        return False
    if not _cancels(known, inner):
        return True
    others = monomial.without({place})
    exact = sum(_is_exact(known, term) for term in inner.monomials)
    return exact <= 1 and all(_is_accurate(known, each) for each in others)


def may_sum_terms(known: Polynomials, use: Use) -> bool:
    """True if the terms of a use that sums a sum may be summed separately."""
    terms = known.terms_summed(use)
    if terms is None or not _cancels(known, terms):
        return True
    return sum(_is_exact(known, term) for term in terms.monomials) <= 1


def _cancels(known: Polynomials, polynomial: Polynomial) -> bool:
    """True if positive and negative terms may meet."""
    if len(polynomial.monomials) == 1:
        return False
    signs = [_signs(known, term) for term in polynomial.monomials]
    return any(negative for negative, _ in signs) and any(positive for _, positive in signs)


def _signs(known: Polynomials, monomial: Monomial) -> tuple[bool, bool]:
    """Return whether terms of a monomial may be negative, and whether they may be positive."""
    negative, positive = monomial.coefficient < 0, monomial.coefficient > 0
    for use in monomial.factors:
        below, above = known.signs(use)
        negative, positive = (
            (negative and above) or (positive and below),
            (negative and below) or (positive and above),
        )
    return negative, positive


def _is_exact(known: Polynomials, monomial: Monomial) -> bool:
    """True if a term is a number or unchanged input entries, so that nothing has rounded it."""
    if not monomial.factors:
        return True
    if monomial.over or not _is_power_of_two(monomial.coefficient):
        return False
    numbers = [x for x in monomial.factors if not _is_yes_or_no(known, x)]
    return len(numbers) <= 1 and all(_is_exact_use(known, x) for x in numbers)


def _is_power_of_two(number: Fraction) -> bool:
    both = abs(number.numerator), number.denominator
    return all(x & (x - 1) == 0 for x in both)


def _is_yes_or_no(known: Polynomials, use: Use) -> bool:
    """True if a use is always 1 or 0, so that multiplying by it is exact."""
    if not use.maps:
        step = known.step(use.tensor)
        if step is None or step.combine is None or step.reduce is not None:
            return False
        return step.combine.exactness is Exactness.TRUTH
    last = use.maps[-1]
    if isinstance(last, Cast):
        return last.source is DType.BOOL
    return _operator(last).exactness is Exactness.TRUTH


def _is_exact_use(known: Polynomials, use: Use) -> bool:
    if use not in known.exact:
        known.exact[use] = _determine_exactness(known, use)
    return known.exact[use]


def _determine_exactness(known: Polynomials, use: Use) -> bool:
    if _is_yes_or_no(known, use) or use.dtype is DType.BOOL:
        return True
    inner = known.of(use)
    if inner is not None:
        return len(inner.monomials) == 1 and _is_exact(known, inner.monomials[0])
    if use.maps:
        last, before = use.maps[-1], use.with_maps(len(use.maps) - 1)
        exact = isinstance(last, Cast) or _operator(last).exactness is Exactness.EXACT
        return exact and _is_exact_use(known, before)
    if _is_input(known, use):
        return True
    step = known.step(use.tensor)
    if step is None:
        return _is_exact_use(known, known.logical.by_name[use.tensor].result)
    if step.reduce is not None and step.reduce.exactness is not Exactness.EXACT:
        return False
    if step.combine is not None and step.combine.exactness is not Exactness.EXACT:
        return False
    return all(_is_exact_use(known, x) for x in step.factors)


def _operator(function: Map | Partial) -> PointwiseMap | Combine:
    """Return the operator of a function of one value."""
    return function.function if isinstance(function, Map) else function.combine


def _is_accurate(known: Polynomials, use: Use) -> bool:
    """True if a use is accurate up to its last few bits, however small it is."""
    if len(use.maps) <= 1 and _is_input(known, use):
        return True
    inverse = divisor(use)
    if inverse is not None:
        return _is_accurate(known, inverse)
    inner = known.of(use)
    if inner is None or not all(_is_accurate(known, x) for x in inner.uses):
        return False
    if any(term.over for term in inner.monomials):  # terms of both signs may be summed
        return not any(all(_signs(known, term)) for term in inner.monomials) and not _cancels(
            known, inner
        )
    return not _cancels(known, inner)


def _is_input(known: Polynomials, use: Use) -> bool:
    return use.tensor in known.logical.inputs
