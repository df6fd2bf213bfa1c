"""Write polynomials into a logical program: monomials as chains, sums as steps of + and -.

The written program must have the same values, except for rounding. So rewriting is refused if NaN
or infinity may meet other factors than in the text, if numbers may outgrow their type, or if
entries that are not stored would have another value.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

import numpy as np

from ucle.errors import UcleError
from ucle.foundation.dtypes import DType, same_value
from ucle.ir.contraction_trees import Tree
from ucle.ir.maps import Map, Partial
from ucle.ir.tensor_types import TensorType
from ucle.lowering.logical import (
    Contraction,
    LogicalProgram,
    LogicalStatement,
    Use,
    find_needed_statements,
    text_of,
)
from ucle.lowering.masks import outgrows
from ucle.lowering.polynomials import Monomial, Polynomial
from ucle.lowering.read_polynomials import Polynomials, divisor
from ucle.lowering.rewrites import Rewriter, Rewritten
from ucle.lowering.step_types import StepTypes, types_of
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


def write_polynomials(rewriter: Rewriter, rewritten: Rewritten) -> LogicalProgram | None:
    """Return the program with polynomials in place of uses; None if its values may differ."""
    logical = rewriter.logical
    known = rewriter.build_polynomials(rewritten)
    own = {root.statement for root in rewritten.roots}
    if _may_outgrow(logical, own):
        return None
    try:
        statements = [
            _Writing(known, x, rewritten).statement() if x.target in own else x
            for x in logical.statements
        ]
        statements = find_needed_statements(logical, statements)
        program = replace(
            logical, statements=tuple(statements), types=types_of(logical, statements)
        )
    except (UcleError, _OtherValueError):  # errors are reported for the written program
        return None
    return program if _is_as_good(program, logical, own) else None


class _OtherValueError(Exception):
    """The written expression would have another value."""


def _may_outgrow(logical: LogicalProgram, changed: set[str]) -> bool:
    """Return whether numbers of statements may outgrow their type in the written form.

    Integers that overflow in the text do so in every form. An infinity in the text may become NaN
    where it meets another term or factor, and disappears where equal terms cancel. Results of an
    infinity that is read count as outgrown, too.
    """
    texts = (x for x in logical.statements if x.target in changed)
    return any(outgrows(type_) for text in texts for type_ in _list_types(text, logical.types))


def _is_as_good(program: LogicalProgram, logical: LogicalProgram, changed: set[str]) -> bool:
    """Return whether all values stay the same, and no number can outgrow its type."""
    for statement in program.statements:
        name = statement.target
        new, old = program.types[name], logical.types[name]
        if new.dtype is not old.dtype or not same_value(new.fill, old.fill):
            return False
        if old.entries.finite and not new.entries.finite:
            return False
        if name in changed and any(map(outgrows, _list_types(statement, program.types))):
            return False
    return True


def _list_types(statement: LogicalStatement, types: Mapping[str, TensorType]) -> list[TensorType]:
    """Return the types of a statement's steps and of its tensor."""
    return [types[x] for x in (*statement.by_name, statement.target)]


class _Writing:
    """Writes one statement whose uses become polynomials."""

    def __init__(
        self, known: Polynomials, statement: LogicalStatement, rewritten: Rewritten
    ) -> None:
        self._known = known
        self._statement = statement
        self._roots = {
            root.use: polynomial
            for root, polynomial in rewritten.roots.items()
            if root.statement == statement.target
        }
        self._steps: dict[str, Contraction] = {}
        self._types: dict[str, TensorType] = dict(known.logical.types)
        self._step_types = StepTypes(self._steps, self._types, known.logical.exact)
        self._done: dict[Use, Use] = {}

    def statement(self) -> LogicalStatement:
        """Return the statement, with the steps that it needs now."""
        result = self._value(self._statement.result)
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
            raise _OtherValueError
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
        _OtherValueError: the number is too large for the type, or so small that it loses digits.
    """
    if dtype.kind == "i":
        if value.denominator > 1 or not -(2**63) <= value < 2**63:
            raise _OtherValueError
        return value.numerator
    limits = np.finfo(dtype.numpy)
    if value and not Fraction(float(limits.tiny)) <= abs(value) <= Fraction(float(limits.max)):
        raise _OtherValueError
    return float(value)
