"""The backward pass of a program as statements, which are compiled like any others.

Each statement passes the adjoint of its tensor back to the tensors that it reads; contributions of
several reads are added up. Values that are needed again and contain aggregations get statements of
their own, so that they are computed once. Sums of products are the exception: the compiler finds an
order for them in either pass. It may find two, which round differently; numbers that the backward
pass looks for among others, such as a largest one, are therefore kept with the others.

Source: reverse-mode differentiation of relational computations, Tang et al., ICML 2023; the
derivatives of operators are those of `ucle.operators`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import field, replace
from functools import reduce

from ucle.errors import LabelError, NameResolutionError, did_you_mean
from ucle.foundation.dataclasses import dataclass
from ucle.foundation.dtypes import DType
from ucle.foundation.names import fold_name, unique_names
from ucle.gradients.adjoints import adjoint, compares, names_in, pass_to_operands
from ucle.gradients.masked import Adjoint, Holds, behind, either
from ucle.gradients.reads import Contribution, contribution
from ucle.gradients.real_squares import real_squares, sizes_by_tensor
from ucle.ir.vertices import Span
from ucle.language.lift_indices import find_shortened_labels
from ucle.language.resolve import resolve
from ucle.language.statements import names_of_axes, order_statements
from ucle.language.syntax import (
    Access,
    Binary,
    Call,
    Expression,
    Number,
    Reduction,
    ScanExpression,
    Site,
    Statement,
    accesses,
    children,
    fold,
    walk,
    with_children,
)
from ucle.operators import (
    ADD,
    LOGSUMEXP,
    MULT,
    SUM,
    WHEN,
)

KEPT = frozenset({LOGSUMEXP.name})
"""Aggregations that expand to others but have a derivative of their own."""

CHEAP = 3
"""Parts of an expression up to which computing it twice is better than storing it."""


@dataclass(frozen=True)
class Gradients:
    """A program with its backward pass."""

    statements: tuple[Statement, ...]
    names: Mapping[str, str]
    """The gradient of each requested tensor."""
    backward: frozenset[str]
    """The tensors of the backward pass."""


def differentiate(
    statements: Sequence[Statement],
    loss: str,
    wrt: Sequence[str],
    masks: Mapping[str, str] | None = None,
    dtypes: Mapping[str, DType] | None = None,
    stated: Collection[str] = (),
    reserved: Collection[str] = (),
) -> Gradients:
    """Add the statements that compute the gradient of a tensor without axes.

    Args:
        statements: the program.
        loss: the tensor that is differentiated.
        wrt: inputs or tensors of the program.
        masks: by tensor the input that is true where a gradient is wanted.
        dtypes: types that gradients are to have; by default those that the program gives.
        stated: labels whose bounds the caller states.
        reserved: names that no tensor is to have, folded.

    Raises:
        NameResolutionError: there is no such tensor.
        LabelError: the loss has axes.
        UnsupportedError: an operator has no derivative.

    >>> from ucle.language.parse import parse_program
    >>> from ucle.language.syntax_to_text import statement_text
    >>> program = parse_program("p[i] += A[i,j] * w[j]; loss = sum[i](square(p[i] - y[i]))")
    >>> for statement in differentiate(program, "loss", ["w"]).statements[2:]:
    ...     print(statement_text(statement))
    d_p[i] = 2.0 * (p[i] - y[i])
    d_w[j] = sum[i](d_p[i] * A[i,j])
    """
    ordered = tuple(resolve(x, KEPT) for x in order_statements(tuple(statements)))
    _check(ordered, loss, wrt)
    taken = {fold_name(x.tensor) for s in ordered for x in (s.target, *accesses(s.expression))}
    taken.update(reserved, (fold_name(x) for x in (masks or {}).values()))
    every = tuple(dict.fromkeys(wrt))
    backward = _Backward(ordered, every, masks or {}, dtypes or {}, stated, taken)
    return backward.gradients(loss)


def _check(statements: tuple[Statement, ...], loss: str, wrt: Sequence[str]) -> None:
    defined = {statement.target.tensor: statement for statement in statements}
    read = {access.tensor for s in statements for access in accesses(s.expression)}
    for name, known in ((loss, defined.keys()), *((x, {*defined, *read}) for x in wrt)):
        if name not in known:
            raise NameResolutionError(
                f"the program has no tensor {name}",
                where="gradient",
                expected="one of " + ", ".join(sorted(known)),
                found=name,
                hint=did_you_mean(name, known),
            )
    if defined[loss].target.rank:
        raise LabelError(
            "only a single number has a gradient",
            where="gradient",
            expected=f"{loss} without axes",
            found=str(defined[loss].target),
            hint="aggregate it in a separate statement, for example by sum",
        )


@dataclass
class _Backward:
    """The backward pass under construction."""

    forward: tuple[Statement, ...]
    wrt: Sequence[str]
    masks: Mapping[str, str]
    dtypes: Mapping[str, DType]
    stated: Collection[str]
    taken: set[str]
    received: dict[str, list[_Received]] = field(default_factory=dict)
    made: list[tuple[Statement, _Passing | None]] = field(default_factory=list)
    """Statements, each with the forward statement whose adjoint it passes back."""

    def gradients(self, loss: str) -> Gradients:
        """Return the program with its backward pass."""
        active, sizes = self._active(), sizes_by_tensor(self.forward)
        forward: list[list[Statement]] = []
        totals: dict[str, str] = {}
        for statement in reversed(self.forward):
            tensor, labels = statement.target.tensor, statement.target.labels
            own: Adjoint | None = None
            if tensor == loss:
                own = Adjoint(Number(1.0, statement.span))
            elif tensor in self.received:
                holds = self._where_received(tensor, labels)
                totals[tensor] = self._total(tensor)
                whole = Access(totals[tensor], labels, statement.span)
                own = Adjoint(whole, () if holds is None else (holds,), zero=True)
            if own is None or tensor not in active:
                forward.append([statement])
                continue
            is_active = _active_parts(statement.expression, active)
            squared = real_squares(statement.expression, is_active, sizes)
            passing = _Passing(self, replace(statement, expression=squared), active)
            passing.run(own)
            forward.append(passing.statements())
        for tensor in self.wrt:
            if tensor in self.received:
                totals[tensor] = self._total(tensor)
        names = {
            tensor: self._add_gradient(tensor, loss, totals.get(tensor)) for tensor in self.wrt
        }
        every = [statement for one in reversed(forward) for statement in one]
        made = [
            statement if passing is None else passing.set_sizes(statement)
            for statement, passing in self.made
        ]
        backward = frozenset(statement.target.tensor for statement in made)
        return Gradients((*every, *made), names, backward)

    def _active(self) -> frozenset[str]:
        """The tensors that depend on those with requested gradients."""
        active = set(self.wrt)
        for statement in self.forward:
            if any(x.tensor in active for x in accesses(statement.expression)):
                active.add(statement.target.tensor)
        return frozenset(active)

    def _total(self, tensor: str) -> str:
        """Add up all contributions to a tensor, and return the name of the sum."""
        every = self.received.pop(tensor)
        stem = f"d_{tensor}"
        if tensor in self.masks or tensor in self.dtypes:
            stem += "_whole"
        parts = [
            self._contribute(stem + "_part" * (len(every) > 1), each.passing, each.whole)
            for each in every
        ]
        if len(parts) == 1:
            return parts[0]
        span, labels = every[0].passing.statement.span, self._labels_of(tensor)
        reads: list[Expression] = [Access(part, labels, span) for part in parts]
        whole = reduce(lambda x, y: Binary(ADD, x, y, span), reads)
        return self.add(stem, labels, whole, span)

    def _where_received(self, tensor: str, labels: tuple[str, ...]) -> Holds | None:
        """The condition under which a tensor receives a contribution; None where it always does."""
        every = self.received[tensor]
        makers = [each.places for each in every if each.places is not None]
        if len(makers) < len(every):
            return None

        def make() -> Expression:
            names = [
                self._contribute(f"d_{tensor}_given", each.passing, places())
                for each, places in zip(every, makers, strict=True)
            ]
            return either([Access(name, labels, Span(1, 1)) for name in names])

        return Holds(frozenset(labels), make)

    def _contribute(self, stem: str, passing: _Passing, each: Contribution) -> str:
        span = passing.statement.span
        return self.add(stem, each.labels, each.expression, span, passing, each.like)

    def _add_gradient(self, tensor: str, loss: str, total: str | None) -> str:
        """Return the name of a requested gradient."""
        span = Span(1, 1)
        if total is None:  # of the loss itself, or of a tensor that it does not depend on
            own = float(tensor == loss)
            labels = self._labels_of(tensor)
            like: dict[str, Site] = {label: (tensor, n) for n, label in enumerate(labels)}
            return self.add(f"d_{tensor}", labels, Number(own, span), span, like=like)
        if tensor not in self.masks and tensor not in self.dtypes:
            return total
        labels = self._labels_of(tensor)
        whole: Expression = Access(total, labels, span)
        if tensor in self.masks:
            whole = Binary(WHEN, Access(self.masks[tensor], labels, span), whole, span)
        if tensor in self.dtypes:
            whole = Call(self.dtypes[tensor], (whole,), span)
        return self.add(f"d_{tensor}", labels, whole, span)

    def _labels_of(self, tensor: str) -> tuple[str, ...]:
        return names_of_axes(self.forward, tensor, self.stated)

    def fresh(self, stem: str) -> str:
        """Return a name that no tensor has."""
        (name,) = unique_names([stem], self.taken)
        return name

    def add(
        self,
        stem: str,
        labels: tuple[str, ...],
        expression: Expression,
        span: Span,
        passing: _Passing | None = None,
        like: Mapping[str, Site] | None = None,
    ) -> str:
        """Add a statement under a new name, and return the name."""
        target = Access(self.fresh(stem), labels, span)
        renamed = {} if passing is None else passing.statement.renamed
        statement = Statement(target, None, expression, span, renamed, like=like or {})
        self.made.append((statement, passing))
        return target.tensor


@dataclass(frozen=True)
class _Received:
    """A contribution to a tensor from one read."""

    passing: _Passing
    whole: Contribution
    places: Callable[[], Contribution] | None
    """Makes an expression that is nonzero where something was passed back; None for all."""


class _Passing:
    """The backward pass of one statement."""

    def __init__(self, backward: _Backward, statement: Statement, active: Collection[str]) -> None:
        self.statement = statement
        self._backward = backward
        self._is_active = _active_parts(statement.expression, active)
        self._named: dict[int, Access] = {}
        """Parts of the statement that have statements of their own, by their identities."""
        self._parts: list[tuple[Access, Expression]] = []
        self._shortened = find_shortened_labels(statement, backward.stated)
        self._labels = {*statement.target.labels}
        self._labels.update(x for part in walk(statement.expression) for x in part.labels)

    # ---- Forward ----

    def statements(self) -> list[Statement]:
        """Return the statement itself, with names for values that are needed again."""
        statement = self.statement
        made = [
            replace(statement, target=target, expression=self._insert_names(part), aggregation=None)
            for target, part in self._parts
        ]
        if not made:
            return [statement]
        whole = self._named.get(id(statement.expression))
        return [
            *made,
            replace(statement, expression=whole or self._insert_names(statement.expression)),
        ]

    def _insert_names(self, expression: Expression) -> Expression:
        def insert_name(part: Expression, parts: list[Expression]) -> Expression:
            named = self._named.get(id(part))
            return with_children(part, parts) if named is None or part is expression else named

        return fold(expression, insert_name)

    def set_sizes(self, adjoint: Statement) -> Statement:
        """Give a statement that passes something back the sizes that its labels have here."""
        like = {**self.sizes(), **adjoint.like}
        return replace(adjoint, like=like, shortened=self._shortened)

    def sizes(self) -> dict[str, Site]:
        """The axes that determine the sizes of the statement's labels."""
        known: dict[str, Site] = {}
        for statement in self.statements():
            for access in (*accesses(statement.expression), statement.target):
                if access.indices is None:
                    for n, label in enumerate(access.labels):
                        if label not in self._shortened:
                            known.setdefault(label, (access.tensor, n))
        for statement in self.statements():
            labels = (x for part in walk(statement.expression) for x in part.labels)
            for label in labels:
                known.setdefault(label, (statement.target.tensor, label))
        return known

    def _value(self, expression: Expression, *, same: bool = False) -> Expression:
        """The value of an expression, for another use; if asked for, the same in the last digit."""
        target = self.statement.target
        if id(expression) in self._named:
            return self._named[id(expression)]
        if expression is self.statement.expression and sorted(target.labels) == sorted(
            set(expression.labels)
        ):
            return target
        parts = list(walk(expression))
        ordered = same and not _has_one_order(parts)
        if all(_is_of_products(part) for part in parts) and not ordered:
            return expression  # the compiler decides in which order it is computed
        if not any(isinstance(part, Reduction | ScanExpression) for part in parts) and not ordered:
            labels = set(expression.labels)
            spread = not any(isinstance(x, Access) and labels <= set(x.labels) for x in parts)
            if spread or len(parts) <= CHEAP:
                return expression
        named = Access(
            self._backward.fresh(f"{target.tensor}_value"),
            tuple(dict.fromkeys(expression.labels)),
            expression.span,
        )
        self._named[id(expression)] = named
        self._parts.append((named, expression))
        return named

    # ---- Backward ----

    def run(self, own: Adjoint) -> None:
        """Pass an adjoint back to all tensors that the statement reads."""
        whole = self.statement.expression
        missing = [label for label in own.labels if label not in whole.labels]
        waiting = [(whole, own.sum_over_labels(missing, whole.span))]
        while waiting:
            part, received = waiting.pop()
            if not self._is_active(part):
                continue
            if isinstance(part, Access):
                self._receive(part, received)
                continue
            for operand, text in pass_to_operands(part):
                if self._is_active(operand):
                    names = names_in(text)
                    if names["g"] > 1:
                        received = self._short(received)
                    values = self._values(part, names, same=compares(text))
                    waiting.append((operand, adjoint(part, operand, text, values, received)))

    def _receive(self, access: Access, received: Adjoint) -> None:
        """Record a contribution to the tensor that is read."""

        def pass_back(expression: Expression) -> Contribution:
            own = self._labels, self._shortened, self._adjoint_named
            return contribution(access, expression, *own)

        def places() -> Contribution:
            return pass_back(behind(received.conditions, Number(1.0, access.span)))

        each = _Received(self, pass_back(received.whole), places if received.conditions else None)
        self._backward.received.setdefault(access.tensor, []).append(each)

    def _short(self, received: Adjoint) -> Adjoint:
        """Give an adjoint a name, so that it may be used several times."""
        if isinstance(received.bare, Access | Number):
            return received
        return replace(received, bare=self._adjoint_named(received.whole), zero=True)

    def _values(
        self, part: Expression, names: Counter[str], *, same: bool
    ) -> dict[str, Expression]:
        """The values of the names in the text of a derivative, except g.

        If they are to be the `same` as in the forward pass, an operand may equal the result there.
        """
        values: dict[str, Expression] = {}
        operands = dict(zip("xy", children(part), strict=False))
        for name in names.keys() & operands.keys():
            values[name] = self._value(operands[name], same=same)
        if "z" in names:
            values["z"] = self._value(part)
        return values

    def _adjoint_named(
        self, expression: Expression, labels: tuple[str, ...] | None = None
    ) -> Access:
        """Make an adjoint a tensor of its own, with labels that the expression may lack."""
        if labels is None:
            labels = tuple(dict.fromkeys(expression.labels))
        stem = f"d_{self.statement.target.tensor}_value"
        name = self._backward.add(stem, labels, expression, expression.span, self)
        return Access(name, labels, expression.span)


def _is_of_products(part: Expression) -> bool:
    """True if an expression is a factor, a product, or a sum over labels."""
    match part:
        case Access() | Number():
            return True
        case Binary(operator) | Reduction(operator):
            return operator is MULT or operator is SUM
    return False


def _has_one_order(parts: Sequence[Expression]) -> bool:
    """True if the parts of an expression are computed alike wherever it is: it has one product."""
    products = [part for part in parts if isinstance(part, Binary) and part.operator is MULT]
    return len(products) <= 1 and not any(isinstance(part, Reduction) for part in parts)


def _active_parts(expression: Expression, active: Collection[str]) -> Callable[[Expression], bool]:
    """Return a predicate: a part of an expression reads one of some tensors."""
    found: set[int] = set()

    def look(part: Expression, parts: list[bool]) -> bool:
        is_active = part.tensor in active if isinstance(part, Access) else any(parts)
        if is_active:
            found.add(id(part))
        return is_active

    fold(expression, look)
    return lambda part: id(part) in found
