"""Read polynomials off a logical program: the sum of products that each use equals.

One bracket is opened at a time: the polynomial of ``(X[i,j] - P[i,j]) * V[j,k]`` has the difference
as a factor, whose own polynomial is read if multiplying out may pay. A use that is not a sum of
products (``log``, ``max``, a cast) is a factor that stays whole. A quotient is a product with 1 /
x, where x is never 0.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from copy import copy
from dataclasses import replace
from fractions import Fraction

from ucle import operators
from ucle.foundation.dtypes import Scalar, is_finite
from ucle.ir.maps import Map, Partial, Pointwise
from ucle.ir.tensor_types import TensorType
from ucle.lowering.logical import Contraction, LogicalProgram, LogicalStatement, Use
from ucle.lowering.polynomials import Monomial, Polynomial, fresh
from ucle.lowering.step_types import StepTypes
from ucle.operators import (
    ADD,
    DIV,
    MULT,
    NEG,
    SQUARE,
    SUB,
    SUM,
    Combine,
)

KINDS = "ifc"
"""Kinds of numbers that are added and multiplied; truth values are not."""

MOST_POWER = 4
"""The highest power that is written as a product."""

ONE = Fraction(1)


class Polynomials:
    """The polynomials of a program, by the uses that they define.

    `fixed` are tensors whose statements stay as they are. `sums` are polynomials with names of
    their own: the cofactors of factored-out factors.
    """

    def __init__(self, logical: LogicalProgram, fixed: Collection[str]) -> None:
        self.logical = logical
        self.fixed = frozenset(fixed)
        self.sums: Mapping[str, Polynomial] = {}
        self._steps = {x.name: x for s in logical.statements for x in s.steps}
        self._types = StepTypes(self._steps, logical.types, logical.exact)
        self._known: dict[Use, Polynomial | None] = {}
        self.exact: dict[Use, bool] = {}
        """Uses, each with True if nothing has rounded it, as found by `ucle.lowering.rounding`."""

    def with_sums(self, sums: Mapping[str, Polynomial]) -> Polynomials:
        """Return these polynomials with other named sums; the cache for the program is kept."""
        other = copy(self)
        other.sums = sums
        return other

    def of(self, use: Use) -> Polynomial | None:
        """Return the sum of products that a use equals, in its labels; None if it is not one."""
        if not use.maps and use.tensor in self.sums:
            return _under(self.sums[use.tensor], use)
        if use not in self._known:
            self._known[use] = self._of_map(use) if use.maps else self._of_tensor(use)
        return self._known[use]

    def get_polynomial(self, use: Use) -> Polynomial:
        """Return the sum of products of a use that is known to have one."""
        polynomial = self.of(use)
        assert polynomial is not None
        return polynomial

    def terms_summed(self, use: Use) -> Polynomial | None:
        """Return the sum of terms that a use sums over labels; None if it is anything else."""
        step = None if use.maps else self._steps.get(use.tensor)
        if step is None or step.combine not in SIGNS or not step.over:
            return None
        return _of_step(replace(step, reduce=None, over=()))

    def step(self, name: str) -> Contraction | None:
        """Return the step of a name; None if it is not a step."""
        return self._steps.get(name)

    def is_local(self, use: Use) -> bool:
        """Return whether a use reads a step, which only its own statement can."""
        return use.tensor in self._steps or use.tensor in self.sums

    def is_finite(self, use: Use) -> bool:
        """Return whether no entry of a use is NaN or infinite."""
        polynomial = None if use.maps else self.sums.get(use.tensor)
        if polynomial is not None:
            return all(map(self.is_finite, polynomial.uses))
        return self.type_of(use).every.finite

    def is_finite_inside(self, use: Use) -> bool:
        """Return whether nothing in the sum of products of a use is NaN or infinite.

        Otherwise equal terms may neither be combined nor cancel.
        """
        return self.is_finite(use) and all(map(self.is_finite, self.get_polynomial(use).uses))

    def type_of(self, use: Use) -> TensorType:
        """Return the type of a use from the program itself.

        Raises:
            UcleError: as `ucle.lowering.step_types.StepTypes.of_use`.
        """
        return self._types.of_use(use, None)

    def signs(self, use: Use) -> tuple[bool, bool]:
        """Return whether a use may be negative anywhere, and whether it may be positive."""
        if self.is_named_sum(use) or use.dtype.kind == "c":
            return True, True
        type_ = self.type_of(use)
        return type_.every.low < 0, type_.every.high > 0

    def is_named_sum(self, use: Use) -> bool:
        """Return whether a use reads a named sum, from which a factor was taken out."""
        return use.tensor in self.sums

    def fits(self, polynomial: Polynomial) -> bool:
        """Return whether steps are used only under their own labels, as required."""
        for use in polynomial.uses:
            if use.tensor in self._steps and use.labels != self._steps[use.tensor].labels:
                return False
            if use.tensor in self.sums and use.labels != self.sums[use.tensor].labels:
                return False
        return True

    # ---- Uses ----

    def _of_map(self, use: Use) -> Polynomial | None:
        last = use.maps[-1]
        inner = use.with_maps(len(use.maps) - 1)
        if inner.dtype is not use.dtype or use.dtype.kind not in KINDS:
            return None
        terms = _map_monomial(last, Monomial(ONE, (inner,)))
        return None if terms is None else Polynomial(use.distinct, use.dtype, terms)

    def _of_tensor(self, use: Use) -> Polynomial | None:
        if use.tensor in self._steps:
            step = self._steps[use.tensor]
            polynomial = _of_step(step)
            return None if polynomial is None else _under(polynomial, use)
        statement = self.logical.by_name.get(use.tensor)
        if statement is None or statement.path is not None or use.tensor in self.fixed:
            return None
        return self._of_statement(statement, use)

    def _of_statement(self, statement: LogicalStatement, use: Use) -> Polynomial | None:
        """Return the polynomial of another statement, in tensors alone."""
        own = Polynomial(statement.labels, use.dtype, (Monomial(ONE, (statement.result,)),))
        result: Polynomial | None = own
        while result is not None and any(map(self.is_local, result.uses)):
            if any(self.of(x) is None for x in result.uses if self.is_local(x)):
                return None
            result = result.expand_factors(self.is_local, self.get_polynomial)
        if result is None:
            return None
        return _under(replace(result, labels=statement.labels, dtype=use.dtype), use)


def _under(polynomial: Polynomial, use: Use) -> Polynomial:
    """Return a polynomial under the labels of a use instead of those of its definition."""
    if polynomial.labels == use.labels:
        return polynomial
    names = dict(zip(polynomial.labels, use.labels, strict=True))
    taken = {label.name: label for label in (*polynomial.labels, *use.labels)}
    terms = (m.rename_labels({**names, **fresh(m.over, taken)}) for m in polynomial.monomials)
    return Polynomial(use.distinct, polynomial.dtype, tuple(terms))


def _map_monomial(function: Pointwise, inner: Monomial) -> tuple[Monomial, ...] | None:
    """Return the monomials that a function makes of one factor; None if there are none."""
    match function:
        case Map(function=operator) if operator is NEG:
            return (replace(inner, coefficient=-ONE),)
        case Map(function=operator) if operator is SQUARE:
            return (_power(inner, 2),)
        case Partial(combine, constant, first):
            return _with_constant(combine, constant, inner, first=first)
    return None


def _with_constant(
    combine: Combine, constant: Scalar, inner: Monomial, *, first: bool
) -> tuple[Monomial, ...] | None:
    """Return the monomials that ⊗ makes of one factor and a constant."""
    number = _rational(constant)
    if number is None:
        return None
    match combine:
        case operators.ADD:
            terms = [inner, Monomial(number)]
        case operators.SUB if first:
            terms = [Monomial(number), replace(inner, coefficient=-ONE)]
        case operators.SUB:
            terms = [inner, Monomial(-number)]
        case operators.MULT if number:
            return (replace(inner, coefficient=number),)
        case operators.DIV if number and not first and inner.factors[0].dtype.kind != "i":
            return (replace(inner, coefficient=1 / number),)
        case operators.POW if not first and number in range(2, MOST_POWER + 1):
            return (_power(inner, int(number)),)
        case _:
            return None
    return tuple(term for term in terms if term.coefficient)


def _power(inner: Monomial, exponent: int) -> Monomial:
    return replace(inner, factors=inner.factors * exponent)


def _rational(constant: Scalar) -> Fraction | None:
    """Return a number as an exact fraction; None if it is not real or not finite."""
    if isinstance(constant, complex) or not is_finite(constant):
        return None
    return Fraction(constant)


# ---- Steps ----

SIGNS: Mapping[Combine, int] = {ADD: 1, SUB: -1}


def _of_step(step: Contraction) -> Polynomial | None:
    """Return the sum of products of a step."""
    if step.reduce not in (None, SUM) or step.dtype.kind not in KINDS:
        return None
    factors = tuple(factor.cast(step.dtype) for factor in step.factors)
    every = tuple(dict.fromkeys(label for factor in factors for label in factor.labels))
    if step.combine is None or step.combine is MULT:
        coefficient = _product(constant.value for constant in step.constants)
        if not coefficient:
            return None
        terms: tuple[Monomial, ...] = (Monomial(coefficient, factors),)
    elif step.combine is DIV:
        one, other = factors
        terms = (Monomial(ONE, (one, reciprocal(other))),)
    elif step.combine in SIGNS and not step.is_chain:
        one, other = factors
        terms = (Monomial(ONE, (one,)), Monomial(Fraction(SIGNS[step.combine]), (other,)))
    else:
        return None
    return Polynomial(every, step.dtype, terms).sum_over(step.over)


def reciprocal(use: Use) -> Use:
    """Return 1 / x for a use x."""
    return use.then(Partial(DIV, use.dtype.scalar(1), True, use.dtype))


def divisor(use: Use) -> Use | None:
    """Return the x of a use 1 / x; None if it is anything else."""
    match use.maps[-1:]:
        case (Partial(combine=combine, constant=1, constant_first=True),) if combine is DIV:
            return use.with_maps(len(use.maps) - 1)
    return None


def _product(constants: Iterable[Scalar]) -> Fraction | None:
    """Return the exact product of numbers; None if one is not real and finite."""
    result = ONE
    for constant in constants:
        number = _rational(constant)
        if number is None:
            return None
        result *= number
    return result
