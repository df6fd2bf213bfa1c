"""Polynomials of a logical program: what each use of a tensor is the sum of products of.

One bracket is opened at a time: the polynomial of ``(X[i,j] - P[i,j]) * V[j,k]`` has the difference
as a factor, whose own polynomial is asked for where it pays to multiply out. What is no sum of
products (``log``, ``max``, a cast) is a factor that stays whole. A quotient is a product with 1 / x
where x is never 0.
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
"""Kinds of numbers that are added and multiplied; yes and no are something else."""

MOST_POWER = 4
"""The highest power that is a product."""

ONE = Fraction(1)


class Polynomials:
    """The polynomials of a program, by the uses that they define.

    `fixed` are tensors whose statements stay as they are; `sums` are polynomials that have got a
    name of their own, as what a factor was taken out of.
    """

    def __init__(self, logical: LogicalProgram, fixed: Collection[str]) -> None:
        self.logical = logical
        self.fixed = frozenset(fixed)
        self.sums: Mapping[str, Polynomial] = {}
        self._steps = {x.name: x for s in logical.statements for x in s.steps}
        self._types = StepTypes(self._steps, logical.types, logical.exact)
        self._known: dict[Use, Polynomial | None] = {}
        self.exact: dict[Use, bool] = {}
        """Uses that nothing has rounded, and others, as `ucle.lowering.rounding` has found."""

    def with_sums(self, sums: Mapping[str, Polynomial]) -> Polynomials:
        """The same with other named sums; what is known of the program is kept."""
        other = copy(self)
        other.sums = sums
        return other

    def of(self, use: Use) -> Polynomial | None:
        """What a use is the sum of products of, in its labels; None where it is no such thing."""
        if not use.maps and use.tensor in self.sums:
            return _under(self.sums[use.tensor], use)
        if use not in self._known:
            self._known[use] = self._of_map(use) if use.maps else self._of_tensor(use)
        return self._known[use]

    def normal_form(self, use: Use) -> Polynomial | None:
        """The polynomial of a use with all brackets multiplied out; None if it has none."""
        now = Polynomial(use.distinct, use.dtype, (Monomial(ONE, (use,)),)).simplified()
        while now is not None and any(self.of(x) is not None for x in now.uses):
            now = now.expanded(lambda x: self.of(x) is not None, self.known)
        return now

    def known(self, use: Use) -> Polynomial:
        """What a use is the sum of products of, which it has to be."""
        polynomial = self.of(use)
        assert polynomial is not None
        return polynomial

    def terms_summed(self, use: Use) -> Polynomial | None:
        """The sum whose sum over labels is used; None where it is something else."""
        step = None if use.maps else self._steps.get(use.tensor)
        if step is None or step.combine not in SIGNS or not step.over:
            return None
        return _of_step(replace(step, reduce=None, over=()))

    def step(self, name: str) -> Contraction | None:
        """The step of a name; None where it is no step."""
        return self._steps.get(name)

    def is_local(self, use: Use) -> bool:
        """Whether a use reads a step, which only its own statement can."""
        return use.tensor in self._steps or use.tensor in self.sums

    def is_finite(self, use: Use) -> bool:
        """Whether no entry of what is used is NaN or infinite."""
        polynomial = None if use.maps else self.sums.get(use.tensor)
        if polynomial is not None:
            return all(map(self.is_finite, polynomial.uses))
        return self.type_of(use).every.finite

    def is_finite_inside(self, use: Use) -> bool:
        """Whether nothing is NaN or infinite of what a use is the sum of products of.

        Else terms that are equal may neither meet nor cancel.
        """
        return self.is_finite(use) and all(map(self.is_finite, self.known(use).uses))

    def type_of(self, use: Use) -> TensorType:
        """The type of a use of what the program itself has.

        Raises:
            UcleError: as `ucle.lowering.step_types.StepTypes.of_use`.
        """
        return self._types.of_use(use, None)

    def signs(self, use: Use) -> tuple[bool, bool]:
        """Whether a use may be negative anywhere, and whether it may be positive."""
        if self.is_named_sum(use) or use.dtype.kind == "c":
            return True, True
        type_ = self.type_of(use)
        return type_.every.low < 0, type_.every.high > 0

    def is_named_sum(self, use: Use) -> bool:
        """Whether what is used is what a factor was taken out of."""
        return use.tensor in self.sums

    def fits(self, polynomial: Polynomial) -> bool:
        """Whether steps are used under their own labels alone, as they have to be."""
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
        terms = _mapped(last, Monomial(ONE, (inner,)))
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
        """What another statement computes, of tensors alone."""
        own = Polynomial(statement.labels, use.dtype, (Monomial(ONE, (statement.result,)),))
        result: Polynomial | None = own
        while result is not None and any(map(self.is_local, result.uses)):
            if any(self.of(x) is None for x in result.uses if self.is_local(x)):
                return None
            result = result.expanded(self.is_local, self.known)
        if result is None:
            return None
        return _under(replace(result, labels=statement.labels, dtype=use.dtype), use)


def _under(polynomial: Polynomial, use: Use) -> Polynomial:
    """What a use reads under its labels, which are not those under which it is defined."""
    if polynomial.labels == use.labels:
        return polynomial
    names = dict(zip(polynomial.labels, use.labels, strict=True))
    taken = {label.name: label for label in (*polynomial.labels, *use.labels)}
    terms = (m.renamed({**names, **fresh(m.over, taken)}) for m in polynomial.monomials)
    return Polynomial(use.distinct, polynomial.dtype, tuple(terms))


def _mapped(function: Pointwise, inner: Monomial) -> tuple[Monomial, ...] | None:
    """What a function makes of one factor, as monomials."""
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
    """What ⊗ makes of one factor and a constant."""
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
    """A number as it is, exactly; None where it is not real or not finite."""
    if isinstance(constant, complex) or not is_finite(constant):
        return None
    return Fraction(constant)


# ---- Steps ----

SIGNS: Mapping[Combine, int] = {ADD: 1, SUB: -1}


def _of_step(step: Contraction) -> Polynomial | None:
    """What a step is the sum of products of."""
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
    return Polynomial(every, step.dtype, terms).summed(step.over)


def reciprocal(use: Use) -> Use:
    """1 / x."""
    return use.then(Partial(DIV, use.dtype.scalar(1), True, use.dtype))


def divisor(use: Use) -> Use | None:
    """The x of what is 1 / x; None where it is something else."""
    match use.maps[-1:]:
        case (Partial(combine=combine, constant=1, constant_first=True),) if combine is DIV:
            return use.with_maps(len(use.maps) - 1)
    return None


def _product(constants: Iterable[Scalar]) -> Fraction | None:
    """The exact product of numbers; None where one of them is none that is real and finite."""
    result = ONE
    for constant in constants:
        number = _rational(constant)
        if number is None:
            return None
        result *= number
    return result
