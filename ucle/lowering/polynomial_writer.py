"""Write one statement whose uses are polynomials: monomials as chains, sums as steps of + and -."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

import numpy as np

from ucle.foundation.dtypes import DType, same_value
from ucle.ir.contraction_trees import Tree
from ucle.ir.maps import Map, Partial
from ucle.ir.tensor_types import TensorType
from ucle.lowering.logical import Contraction, LogicalStatement, Use, text_of
from ucle.lowering.polynomials import Monomial, Polynomial
from ucle.lowering.read_polynomials import Polynomials, divisor
from ucle.lowering.step_types import StepTypes
from ucle.operators import (
    ADD,
    DIV,
    GREATEST,
    MULT,
    NEG,
    POW,
    SQUARE,
    SUB,
    SUM,
)


class OtherValueError(Exception):
    """The written expression would have another value."""


class PolynomialWriter:
    """Writes one statement.

    Args:
        known: the polynomials of the program.
        statement: the statement as it is.
        roots: the polynomials of those of its uses that change.
        given: other tensors in place of some of its uses.
        types: the types of these tensors.
    """

    def __init__(
        self,
        known: Polynomials,
        statement: LogicalStatement,
        roots: Mapping[Use, Polynomial],
        given: Mapping[Use, Use] | None = None,
        types: Mapping[str, TensorType] | None = None,
    ) -> None:
        self._known = known
        self._statement = statement
        self._roots = roots
        self._given = given or {}
        self._steps: dict[str, Contraction] = {}
        self._types: dict[str, TensorType] = {**known.logical.types, **(types or {})}
        self._step_types = StepTypes(self._steps, self._types, known.logical.exact)
        self._done: dict[Use, Use] = {}

    def statement(self) -> LogicalStatement:
        """Return the statement, with the steps that it needs now."""
        return self._close(self._value(self._statement.result))

    def sum_of(self, polynomial: Polynomial) -> LogicalStatement:
        """Return the statement with a polynomial as its result."""
        return self._close(self._sum(polynomial))

    def _close(self, result: Use) -> LogicalStatement:
        steps = tuple(self._steps.values())
        return replace(self._statement, steps=steps, result=result, text=text_of(steps, result))

    def _add(self, step: Contraction) -> Use:
        """Add a step under a name of its own."""
        step = replace(step, name=f"{self._statement.target}.r{len(self._steps) + 1}")
        self._types[step.name] = self._step_types.of_step(step, self._statement.span)
        self._steps[step.name] = step
        return Use(step.name, step.labels, step.dtype)

    # ---- Uses ----

    def _value(self, use: Use) -> Use:
        """Return a use in its new form."""
        if use not in self._done:
            self._done[use] = self._compute_value(use)
        return self._done[use]

    def _compute_value(self, use: Use) -> Use:
        for count in range(len(use.maps), -1, -1):
            core = use.with_maps(count)
            if core in self._given:
                return self._given[core].apply_maps(use.maps[count:])
            if core in self._roots:
                return self._root(core).apply_maps(use.maps[count:])
        if not use.maps and use.tensor in self._known.sums:
            return self._sum(self._known.sums[use.tensor])
        step = self._statement.by_name.get(use.tensor)
        if step is not None and step.name not in self._steps:
            factors = tuple(map(self._value, step.factors))
            self._steps[step.name] = replace(step, factors=factors)
        return use

    def _root(self, core: Use) -> Use:
        """Return a use that is now a polynomial; if it cannot be negative, it is clamped at 0."""
        new = self._sum(self._roots[core])
        old_type, type_ = self._known.type_of(core), self._type_of(new)
        if not same_value(old_type.fill, type_.fill):
            raise OtherValueError
        if core.dtype.kind == "f" and old_type.every.low >= 0 > type_.every.low:
            new = new.then(Partial(GREATEST, core.dtype.scalar(0), False, core.dtype))
        return new

    def _type_of(self, use: Use) -> TensorType:
        return self._step_types.of_use(use, self._statement.span)

    # ---- Sums and products ----

    def _sum(self, polynomial: Polynomial) -> Use:
        """Write a polynomial; a term that is not subtracted comes first, if there is one."""
        dtype = polynomial.dtype
        terms = sorted(
            (m for m in polynomial.monomials if m.factors), key=lambda m: m.coefficient < 0
        )
        constant = sum((m.coefficient for m in polynomial.monomials if not m.factors), Fraction(0))
        first, *more = terms
        negative = first.coefficient < 0
        total = self._term(first, dtype)
        for term in more:
            combine = ADD if (term.coefficient < 0) == negative else SUB
            pair = total, self._term(term, dtype)
            total = self._add(Contraction("", pair, combine, None, (), dtype))
        if constant:
            number = dtype.scalar(_number(constant, dtype))
            return total.then(Partial(SUB if negative else ADD, number, negative, dtype))
        return total.then(Map(NEG, dtype)) if negative else total

    def _term(self, term: Monomial, dtype: DType) -> Use:
        """Write a monomial without its sign; it is divided after its sum if possible."""
        last = [x for x in term.factors if divisor(x) and set(term.over).isdisjoint(x.labels)]
        rest = [x for x in term.factors if x not in last]
        if not last or not rest:
            return self._product(term, dtype)
        use = self._product(replace(term, factors=tuple(rest)), dtype)
        for inverse in last:
            below = divisor(inverse)
            assert below is not None
            pair = use, self._distinct(self._value(below))
            use = self._add(Contraction("", pair, DIV, None, (), dtype))
        return use

    def _product(self, term: Monomial, dtype: DType) -> Use:
        powers = Counter(term.factors)
        factors = [_power(self._value(use), n) for use, n in powers.items()]
        factors = [self._distinct(use) for use in factors]
        if len(factors) > 1:
            tree = _build_left_deep(len(factors))
            reduce = SUM if term.over else None
            use = self._add(Contraction("", tuple(factors), MULT, reduce, term.over, dtype, tree))
        elif term.over:
            use = self._add(Contraction("", tuple(factors), None, SUM, term.over, dtype))
        else:
            (use,) = factors
        return _times(use, abs(term.coefficient))

    def _distinct(self, use: Use) -> Use:
        """Return a use with distinct labels; a step picks the diagonal if necessary."""
        if len(use.distinct) == len(use.labels):
            return use
        read = Use(use.tensor, use.labels, use.read_dtype)
        step = self._add(Contraction("", (read,), None, None, (), read.dtype))
        return step.apply_maps(use.maps)


def _build_left_deep(count: int) -> Tree:
    tree: Tree = 0
    for number in range(1, count):
        tree = (tree, number)
    return tree


def _power(use: Use, exponent: int) -> Use:
    if exponent == 1:
        return use
    if exponent == 2:
        return use.then(Map(SQUARE, use.dtype))
    return use.then(Partial(POW, use.dtype.scalar(exponent), False, use.dtype))


def _times(use: Use, coefficient: Fraction) -> Use:
    """Return a use times a positive number; for a ratio of small integers it is also divided."""
    dtype = use.dtype
    if coefficient == 1:
        return use
    exact = Fraction(_number(coefficient, dtype)) == coefficient
    if exact or max(coefficient.numerator, coefficient.denominator) > 2**24:
        number = dtype.scalar(_number(coefficient, dtype))
        return use.then(Partial(MULT, number, False, dtype))
    use = _times(use, Fraction(coefficient.numerator))
    return use.then(Partial(DIV, dtype.scalar(coefficient.denominator), False, dtype))


def _number(value: Fraction, dtype: DType) -> int | float:
    """Return a number in an element type.

    Raises:
        OtherValueError: the number is too large for the type, or so small that it loses digits.
    """
    if dtype.kind == "i":
        if value.denominator > 1 or not -(2**63) <= value < 2**63:
            raise OtherValueError
        return value.numerator
    limits = np.finfo(dtype.numpy)
    if value and not Fraction(float(limits.tiny)) <= abs(value) <= Fraction(float(limits.max)):
        raise OtherValueError
    return float(value)
