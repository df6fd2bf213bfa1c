"""Compute how much rewritten sums may have lost, together with them.

A rewrite that multiplies out or reorders sums of floats changes their rounding, and never their
value over the reals. A sum y of products, in whatever form, is off by at most γ_d * B, where B is
the same form over absolute values (`ucle.ir.rounding_bounds`). The largest B / abs(y) over all
entries of y, the condition number, tells whether this is little: it becomes a tensor without axes
beside y, which an execution compares with a limit. If it is above, the program runs in a safe form.

An entry also stands where the written form is hardly better: where B is mostly one of the terms M
of y, each computed by itself. The written form adds up |p - q| at least where this one adds up
|p| + |q|, so that its own bound is at least 2 M - B times γ_d. Entries of which M has five sixths
count as 0 here, and those below count for min(B, 6 (B - 6/5 M)).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

from ucle.foundation.dataclasses import dataclass
from ucle.foundation.dtypes import DType
from ucle.ir.maps import Map, Partial
from ucle.ir.tensor_types import TensorType
from ucle.lowering.logical import Contraction, Labels, LogicalStatement, Use, text_of
from ucle.lowering.polynomial_writer import PolynomialWriter
from ucle.lowering.polynomials import Monomial, Polynomial
from ucle.lowering.read_polynomials import Polynomials
from ucle.lowering.step_types import StepTypes
from ucle.operators import ABS, ADD, DIV, GREATEST, LEAST, MAX, MULT, SUB, Combine

TINY: Mapping[DType, float] = {DType.FLOAT64: 1e-290, DType.FLOAT32: 1e-30}
"""Sums that are smaller count as this large: below it, products lose digits by themselves."""

SHARE = Fraction(5, 6)
"""The share of B that one term has where the written form is hardly better."""


@dataclass(frozen=True)
class MeasuredSums:
    """The statements in place of one, and those of them that are condition numbers."""

    statements: tuple[LogicalStatement, ...]
    condition_numbers: tuple[str, ...]


def measure_sums(
    known: Polynomials, statement: LogicalStatement, roots: Mapping[Use, Polynomial]
) -> MeasuredSums:
    """Write a statement with polynomials in place of uses, and measure each of them.

    Args:
        known: the polynomials of the program.
        statement: the statement as it is.
        roots: polynomials, by the uses in the statement that they replace.

    Raises:
        OtherValueError: a polynomial cannot be written.
        UcleError: as `ucle.ir.vertex_types.unary_type`.
    """
    name = statement.target
    before, after, numbers = list[LogicalStatement](), list[LogicalStatement](), list[str]()
    given, types = dict[Use, Use](), dict[str, TensorType]()
    # What the sums inside of it came to, the sum of the statement itself reads.
    own_last = sorted(roots.items(), key=lambda pair: pair[0] == statement.result)
    for number, (use, polynomial) in enumerate(own_last, 1):
        if len(polynomial.monomials) == 1 or polynomial.dtype not in TINY:
            continue  # its terms are those of the written form, or integers, which lose no digits
        value, labels = name, statement.labels
        if use != statement.result:
            value, labels = f"{name}.sum{number}", use.distinct
            apart = replace(statement, target=value, labels=labels, result=use, lifted=True)
            apart = PolynomialWriter(known, apart, {use: polynomial}).statement()
            before.append(apart)
            steps = {step.name: step for step in apart.steps}
            types[value] = _type_of(known, apart, steps)
            given[use] = Use(value, labels, use.dtype)
        measured = _Measuring(known, statement, f"{name}.condition{number}", given, types)
        after += measured.statements(polynomial, Use(value, labels, polynomial.dtype))
        numbers.append(after[-1].target)
    own = PolynomialWriter(known, statement, roots, given, types).statement()
    return MeasuredSums((*before, own, *after), tuple(numbers))


def _type_of(
    known: Polynomials, statement: LogicalStatement, steps: Mapping[str, Contraction]
) -> TensorType:
    types = dict(known.logical.types)
    step_types = StepTypes(steps, types, known.logical.exact)
    for step in statement.steps:
        types[step.name] = step_types.of_step(step, statement.span)
    type_ = step_types.of_use(statement.result, statement.span)
    return type_.transpose_axes(statement.labels)


class _Measuring:
    """The statements that measure one sum."""

    def __init__(
        self,
        known: Polynomials,
        statement: LogicalStatement,
        name: str,
        given: Mapping[Use, Use],
        types: Mapping[str, TensorType],
    ) -> None:
        self._known = known
        self._given, self._types = given, types
        self._statement = replace(statement, path=None, lifted=True)
        self._name = name
        self._steps: list[Contraction] = []

    def statements(self, polynomial: Polynomial, value: Use) -> list[LogicalStatement]:
        """Return a statement for each term's absolute values, and one for the number."""
        absolute = _Absolute(self._known)
        terms = [absolute.monomial(m) for m in polynomial.monomials]
        known = self._known.with_sums({**self._known.sums, **absolute.sums})
        made, uses, constant = list[LogicalStatement](), list[Use](), Fraction(0)
        for number, term in enumerate(terms, 1):
            if not term.factors:
                constant += term.coefficient
                continue
            labels = tuple(x for x in polynomial.labels if x in term.labels)
            target = f"{self._name}.term{number}"
            alone = replace(self._statement, target=target, labels=labels)
            sum_ = Polynomial(labels, polynomial.dtype, (term,))
            writer = PolynomialWriter(known, alone, {}, self._given, self._types)
            made.append(writer.sum_of(sum_))
            uses.append(Use(target, labels, polynomial.dtype))
        return [*made, self._number(uses, float(constant), value)]

    def _number(self, terms: list[Use], constant: float, value: Use) -> LogicalStatement:
        """Return the statement of the condition number."""
        dtype = value.dtype
        total = _with_number(self._join(ADD, terms), ADD, constant)
        largest = _with_number(self._join(GREATEST, terms), GREATEST, constant)
        share = largest.then(Partial(MULT, float(1 / SHARE), False, dtype))
        beyond = self._add(SUB, (total, share)).then(Partial(GREATEST, 0.0, False, dtype))
        beyond = beyond.then(Partial(MULT, float(1 / (1 - SHARE)), False, dtype))
        lost = self._add(LEAST, (total, beyond))
        size = value.then(Map(ABS, dtype)).then(Partial(GREATEST, TINY[dtype], False, dtype))
        number = self._add(DIV, (lost, size), over=value.distinct)
        steps = tuple(self._steps)
        return replace(
            self._statement,
            target=self._name,
            labels=(),
            steps=steps,
            result=number,
            text=text_of(steps, number),
        )

    def _join(self, combine: Combine, uses: list[Use]) -> Use:
        joined, *others = uses
        for use in others:
            joined = self._add(combine, (joined, use))
        return joined

    def _add(self, combine: Combine, pair: tuple[Use, Use], over: Labels = ()) -> Use:
        name = f"{self._name}.{len(self._steps) + 1}"
        reduce = MAX if over else None
        step = Contraction(name, pair, combine, reduce, over, pair[0].dtype)
        self._steps.append(step)
        return Use(name, step.labels, step.dtype)


def _with_number(use: Use, combine: Combine, number: float) -> Use:
    return use.then(Partial(combine, number, False, use.dtype)) if number else use


class _Absolute:
    """Terms over absolute values; `sums` are those of named sums, by their new names."""

    def __init__(self, known: Polynomials) -> None:
        self._known = known
        self.sums: dict[str, Polynomial] = {}

    def monomial(self, term: Monomial) -> Monomial:
        """Return a term with the absolute values of its coefficient and its factors."""
        factors: list[Use] = []
        for use, power in Counter(term.factors).items():
            named = self._known.is_named_sum(use)
            factors += [use if power % 2 == 0 and not named else self._use(use)] * power
        return Monomial(abs(term.coefficient), tuple(factors), term.over)

    def _use(self, use: Use) -> Use:
        if self._known.is_named_sum(use):
            name = f"{use.tensor}.absolute"
            if name not in self.sums:
                inner = self._known.sums[use.tensor]
                terms = tuple(map(self.monomial, inner.monomials))
                self.sums[name] = replace(inner, monomials=terms)
            return replace(use, tensor=name)
        may_be_negative, _ = self._known.signs(use)
        return use.then(Map(ABS, use.dtype)) if may_be_negative else use
