"""Move division after summation: divide a sum once instead of each term.

``Y[i,d] += E[i,j] * V[j,d] / D[i]`` divides for each edge although it could divide for each node.
If D may be 0, pairs without an edge are 0 / 0, so that all pairs of nodes have to be computed. A
divisor that lacks the summed labels can come after the sum, ``sum[j](E * V) / D``, if the result is
the same:

- nothing outgrows its type, so that the divisor is never 0; or
- where it is 0, all terms are: it is a sum of E itself, which is never negative (means, softmax),
  and both forms are 0 / 0.

The quotient may be a factor of the sum's product, also in a statement of its own: the weights of
``P = E / D; Y += P * V`` then need not be computed. Rounding differs as it does between two orders
of a product: one form divides each term of the sum, the other divides the sum.

A divisor with summed labels cannot come after the sum, but divides another factor instead if that
one has fewer labels than the quotient: ``Y[j] += E[i,j] / D[i] * r[i]`` divides for each node by
``E[i,j] * (r[i] / D[i])``. It stays where it is if D may be 0, if others read the quotient, too,
and if that is known before the other factor is, which changes from run to run.
"""

from __future__ import annotations

import math
from collections import ChainMap, Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from typing import ClassVar

import numpy as np

from ucle.foundation.dataclasses import dataclass
from ucle.foundation.dtypes import DType, is_finite, same_value
from ucle.ir.layouts import Label
from ucle.ir.maps import Cast, Partial, Pointwise
from ucle.ir.tensor_types import TensorType
from ucle.ir.vertices import Span
from ucle.lowering.inline_statements import labels_there, renamed_steps
from ucle.lowering.logical import (
    Contraction,
    Labels,
    LogicalProgram,
    LogicalStatement,
    Use,
    find_needed_statements,
    read_steps,
    text_of,
)
from ucle.lowering.masks import outgrows
from ucle.lowering.step_types import StepTypes, types_of
from ucle.operators import (
    DIV,
    MULT,
    NOT_EQUAL,
    SUM,
)

MOST_STEPS = 40
"""The most steps of a statement that is considered."""


@dataclass(frozen=True)
class Divided:
    """A program that divides after sums, and a line about each divisor.

    `fixed` are tensors whose statements stay as they are.
    """

    program: LogicalProgram
    fixed: frozenset[str]
    lines: tuple[str, ...]
    key: ClassVar[str] = "divided"
    costs: ClassVar[None] = None

    def replay(self, logical: LogicalProgram) -> LogicalProgram:
        """A program that differs in sizes, with its divisors moved likewise."""
        divided = divide_last(logical, self.fixed)
        return logical if divided is None else divided.program


def divide_last(logical: LogicalProgram, fixed: Collection[str] = ()) -> Divided | None:
    """Move divisors out of sums.

    Args:
        logical: the program.
        fixed: tensors whose statements stay as they are.

    Returns:
        The program, with outputs that are equal but for rounding; None if there is nothing to move.

    >>> from ucle.foundation.dtypes import DType
    >>> from ucle.ir.layouts import Label
    >>> from ucle.operators.values import Values
    >>> from ucle.ir.vertices import Span
    >>> i, j = Label("i", 9), Label("j", 9)
    >>> X, d = Use("X", (i, j), DType.FLOAT64), Use("d", (i,), DType.FLOAT64)
    >>> step = Contraction("T.1", (X, d), DIV, SUM, (j,), DType.FLOAT64)
    >>> result = Use("T.1", (i,), DType.FLOAT64)
    >>> statement = LogicalStatement("T", (i,), (step,), result, Span(1, 1), (j, "X", "d"))
    >>> few = Values(1.0, 2.0)
    >>> types = {"X": TensorType((i, j), values=few), "d": TensorType((i,), fill=1.0, values=few)}
    >>> types |= types_of(LogicalProgram(("X", "d"), (), (), types), [statement])
    >>> print(divide_last(LogicalProgram(("X", "d"), (statement,), ("T",), types)).program)
    T.q1 = sum[j](X[i,j])
    T.1 = T.q1[i] / d[i]
    T[i] = T.1[i]
    """
    if not any(step.combine is DIV for x in logical.statements for step in x.steps):
        return None
    now: dict[str, LogicalStatement] = {}
    reads = Counter(name for x in logical.statements for name in x.reads)
    single = frozenset(x for x, n in reads.items() if n == 1).difference(logical.results)
    types, lines = dict(logical.types), list[str]()
    for statement in logical.statements:
        now[statement.target] = statement
        if statement.target in fixed or statement.path is not None:
            continue
        sums = any(step.reduce is SUM for step in statement.steps)
        if sums and len(statement.steps) <= MOST_STEPS:
            scope = _Scope({}, ChainMap({}, types), now, statement.span, logical.exact)
            dividing = _Dividing(scope, statement, frozenset(fixed), single)
            now[statement.target] = dividing.statement()
            lines += dividing.lines
    if not lines:
        return None
    statements = find_needed_statements(logical, list(now.values()))
    program = replace(logical, statements=tuple(statements), types=types_of(logical, statements))
    return Divided(program, frozenset(fixed), tuple(lines))


@dataclass(frozen=True)
class _Scope:
    """The existing steps, each after those that it reads, with their types.

    `types` are the types of all tensors, `now` the earlier statements.
    """

    steps: Mapping[str, Contraction]
    types: ChainMap[str, TensorType]
    now: Mapping[str, LogicalStatement]
    span: Span
    exact: bool

    @cached_property
    def _step_types(self) -> StepTypes:
        return StepTypes(self.steps, self.types, self.exact)

    def type_of(self, use: Use) -> TensorType:
        """Return the type of a use."""
        return self._step_types.of_use(use, self.span)

    def plus(self, steps: Iterable[Contraction]) -> _Scope:
        """Return this scope with more steps."""
        scope = self
        for step in steps:
            type_ = scope._step_types.of_step(step, self.span)
            more = {**scope.steps, step.name: step}
            scope = replace(scope, steps=more, types=scope.types.new_child({step.name: type_}))
        return scope

    def product(self, use: Use) -> Contraction | None:
        """Return the product that a use reads; None if it is not one, or a sum of one."""
        step = None if use.maps else self.steps.get(use.tensor)
        if step is None or step.combine is not MULT or not step.is_chain:
            return None
        return step if step.reduce is None else None

    def factors(self, product: Contraction) -> Iterator[Use]:
        """Yield the factors of a product, with nested products replaced by their factors."""
        for factor in product.factors:
            inner = self.product(factor)
            if inner is None or inner.constants:
                yield factor
            else:
                yield from self.factors(inner)

    def definition(self, use: Use) -> Contraction | None:
        """Return the step that a use reads, which may be the whole of another statement."""
        if not all(map(_keeps_zero_apart, use.maps)):
            return None
        if use.tensor in self.steps:
            return self.steps[use.tensor]
        inner = self.now.get(use.tensor)
        step = None if inner is None else inner.by_name.get(inner.result.tensor)
        if inner is None or step is None or inner.result.maps or step.labels != inner.labels:
            return None
        return step


@dataclass(frozen=True)
class _Fraction:
    """A sum of products over divisors; `inlined` are steps of other statements that it reads.

    `scaled` are factors over divisors that have summed labels.
    """

    sum: Contraction
    divisors: tuple[Use, ...]
    inlined: tuple[Contraction, ...] = ()
    scaled: tuple[Contraction, ...] = ()


class _Dividing:
    """Moves divisors out of sums in one statement, step by step.

    Args:
        scope: the scope before its steps.
        statement: the statement.
        fixed: tensors whose statements are never inlined.
        single: tensors that are read once, and that no caller asks for.
    """

    def __init__(
        self,
        scope: _Scope,
        statement: LogicalStatement,
        fixed: frozenset[str],
        single: frozenset[str],
    ) -> None:
        self.lines: list[str] = []
        self._statement = statement
        self._fixed = fixed
        self._single = single
        self._scope = scope
        for step in statement.steps:
            self._scope = self._with_step(step)

    def statement(self) -> LogicalStatement:
        """Return the statement in its current form."""
        if not self.lines:
            return self._statement
        result = self._statement.result
        steps = read_steps(tuple(self._scope.steps.values()), result)
        return replace(self._statement, steps=steps, text=text_of(steps, result))

    def _with_step(self, step: Contraction) -> _Scope:
        """Return the scope with one more step, whose division may be moved last."""
        fraction = None
        if step.reduce is SUM and step.dtype.kind in "fc":
            fraction = self._fraction(step)
        divided = None if fraction is None else self._divide_sum(step, fraction)
        if fraction is None or divided is None:
            return self._scope.plus([step])
        expression = replace(self._statement, steps=tuple(divided.steps.values())).expression
        target = self._statement.target
        if fraction.divisors:
            divisors = " and ".join(map(expression, fraction.divisors))
            self.lines.append(f"{target} by {divisors}, after its sum")
        for each in fraction.scaled:
            one, divisor = map(expression, each.factors)
            self.lines.append(f"{one} by {divisor}, before the sum of {target}")
        return divided

    # ---- Quotients ----

    def _fraction(self, step: Contraction) -> _Fraction | None:
        """Return a sum as products over divisors without its labels; None if it is not one."""
        over, factors = set(step.over), [factor.cast(step.dtype) for factor in step.factors]
        if step.combine is DIV:
            numerator, divisor = factors
            if not over.isdisjoint(divisor.labels):
                return None
            inner = self._scope.product(numerator)
            total = replace(inner or step, reduce=SUM, over=step.over, outermost=step.outermost)
            if inner is None:
                total = replace(total, factors=(numerator,), combine=None)
            return _Fraction(total, (divisor,))
        if step.combine not in (None, MULT):
            return None
        divisors, inlined, scaled = list[Use](), list[Contraction](), list[Contraction]()
        for place, factor in enumerate(factors):
            steps = self._quotient(factor)
            if not steps or not {x.name for x in inlined}.isdisjoint(x.name for x in steps):
                continue
            numerator, divisor = (x.cast(step.dtype) for x in steps[-1].factors)
            if over.isdisjoint(divisor.labels):
                divisors.append(divisor)
            else:
                other = self._find_smaller(factors, factor, divisor)
                if other is None:
                    continue
                pair = factors[other], divisor
                scaled.append(
                    Contraction(self._scaled_name(scaled), pair, DIV, None, (), step.dtype)
                )
                factors[other] = _use_of(scaled[-1])
            factors[place] = numerator
            inlined += steps[:-1]
        if not (divisors or scaled):
            return None
        # A quotient that may be NaN where nothing is stored is not a factor of a chain; this one
        # is.
        written = (0, 1) if step.combine and not step.is_chain else step.written
        total = replace(step, factors=tuple(factors), written=written)
        return _Fraction(total, tuple(divisors), tuple(inlined), tuple(scaled))

    def _scaled_name(self, scaled: Collection[Contraction]) -> str:
        start = f"{self._statement.target}.d"
        return f"{start}{sum(x.startswith(start) for x in self._scope.steps) + len(scaled) + 1}"

    def _find_smaller(self, factors: list[Use], quotient: Use, divisor: Use) -> int | None:
        """Return the place of a factor to divide in place of a quotient; None if there is none."""
        if quotient.tensor not in self._scope.steps and quotient.tensor not in self._single:
            return None
        varies = self._scope.type_of(quotient).every.varies
        places = [
            place
            for place, x in enumerate(factors)
            if set(divisor.labels) <= set(x.labels) < set(quotient.labels)
            and len(x.distinct) == len(x.labels)
            and x.tensor in self._scope.types
            and (varies or not self._scope.type_of(x).every.varies)
        ]
        return min(places, key=lambda place: len(factors[place].labels), default=None)

    def _quotient(self, factor: Use) -> list[Contraction]:
        """Return the steps of a factor that is a quotient, which is the last; else none.

        They are the steps of another statement if the quotient is not in this one.
        """
        if factor.maps:
            return []
        if factor.tensor in self._scope.steps:
            steps = [self._scope.steps[factor.tensor]]
        else:
            steps = self._inline_steps(factor)
        if not steps or steps[-1].combine is not DIV or steps[-1].reduce is not None:
            return []
        return steps

    def _inline_steps(self, factor: Use) -> list[Contraction]:
        """Return the steps of the statement whose tensor is used, under the labels of the use."""
        inner = self._scope.now.get(factor.tensor)
        if inner is None or inner.target in self._fixed or inner.path is not None:
            return []
        whole = inner.steps and inner.result == _use_of(inner.steps[-1])
        if not whole or len(factor.distinct) < len(factor.labels):
            return []
        names = labels_there(inner, self._statement, factor.labels)
        steps = list(renamed_steps(inner, names))
        return steps if self._scope.steps.keys().isdisjoint(x.name for x in steps) else []

    # ---- Conditions for dividing last ----

    def _divide_sum(self, step: Contraction, fraction: _Fraction) -> _Scope | None:
        """Return the scope with a sum and its divisions; None if the values may differ."""
        target = self._statement.target
        number = sum(name.startswith(f"{target}.q") for name in self._scope.steps)
        total = replace(fraction.sum, name=f"{target}.q{number + 1}")
        new, use = [total], _use_of(total)
        for count, divisor in enumerate(fraction.divisors, number + 2):
            new.append(Contraction(f"{target}.q{count}", (use, divisor), DIV, None, (), step.dtype))
            use = _use_of(new[-1])
        new[-1] = replace(new[-1], name=step.name)
        before = self._scope.plus((*fraction.inlined, *fraction.scaled))
        if new[-1].labels != step.labels or not _is_finite_product(before, total):
            return None
        after, old = before.plus(new), before.plus([step])
        if any(outgrows(after.types[x.name]) for x in (new[0], *fraction.scaled)):
            return None
        if not same_value(after.types[step.name].fill, old.types[step.name].fill):
            return None
        # A quotient by something that may be 0 is unbounded, and counts as outgrown.
        fits = not outgrows(old.types[step.name])
        sums = (_is_sum_of_a_factor(before, divisor, total) for divisor in fraction.divisors)
        return after if fits or (not fraction.scaled and all(sums)) else None


def _use_of(step: Contraction) -> Use:
    return Use(step.name, step.labels, step.dtype)


def _is_finite_product(scope: _Scope, product: Contraction) -> bool:
    constants = all(is_finite(constant.value) for constant in product.constants)
    return constants and all(scope.type_of(factor).every.finite for factor in product.factors)


def _is_sum_of_a_factor(scope: _Scope, divisor: Use, product: Contraction) -> bool:
    """Return whether a divisor is a sum of entries >= 0, and a factor is 0 where all of them are.

    With nothing to sum, 0 would be divided by 0.
    """
    definition = scope.definition(divisor)
    if definition is None or definition.combine is not None or definition.reduce is not SUM:
        return False
    (term,) = definition.factors
    type_ = scope.type_of(term)
    if type_.dtype.kind == "c" or not type_.every.finite or type_.every.low < 0:
        return False
    names = dict(zip(definition.labels, divisor.labels, strict=True))
    return any(
        factor.tensor == term.tensor
        and _vanish_together(term.maps, factor.maps)
        and _is_one_of(factor.labels, term.labels, names)
        and _fits_as_weight(scope, factor, product)
        for factor in scope.factors(product)
    )


def _is_one_of(entry: Labels, terms: Labels, names: Mapping[Label, Label]) -> bool:
    """Return whether an entry is among those that are summed for labels given by `names`.

    A sum over a diagonal has no other entries: a summed label has one coordinate there.
    """
    every = {**dict(zip(terms, entry, strict=True)), **names}
    return all(every[x] == y for x, y in zip(terms, entry, strict=True))


def _fits_as_weight(scope: _Scope, weight: Use, product: Contraction) -> bool:
    """Return whether a sum of products fits its type if one factor lies between 0 and 1.

    Nor may it be an empty sum, which is 0 and would give 0 / 0.
    """
    values = [scope.type_of(x).every for x in scope.factors(product) if x is not weight]
    numbers = [constant.value for constant in product.constants]
    terms = math.prod(label.bound for label in product.over)
    most = math.prod([*(max(abs(x.low), abs(x.high)) for x in values), *map(abs, numbers)])
    return terms > 0 and terms * most < float(np.finfo(product.dtype.numpy).max)


def _vanish_together(term: tuple[Pointwise, ...], factor: tuple[Pointwise, ...]) -> bool:
    """Return whether a factor is 0 wherever a term of the same tensor is, by the maps of both."""
    while term and term != factor[: len(term)] and _keeps_zero_apart(term[-1]):
        term = term[:-1]
    return term == factor[: len(term)] and all(isinstance(x, Cast) for x in factor[len(term) :])


def _keeps_zero_apart(function: Pointwise) -> bool:
    """Return whether a function's result is 0 only where its operand is."""
    match function:
        case Cast(source, result):
            wider = (source, result) == (DType.FLOAT32, DType.FLOAT64)
            return result is DType.BOOL or source.kind in "bi" or wider
        case Partial(combine, constant):
            return combine is NOT_EQUAL and constant == 0
    return False
