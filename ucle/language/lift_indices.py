"""Lift arithmetic on labels into statements of its own: all others read tensors at plain labels.

``D[i] = A[i+1] - A[i]`` becomes ``A_at[i] = A[i+1]; A_at_2[i] = A[i]; D[i] = A_at[i] - A_at_2[i]``,
where the first two are `Reindexed`. The same is done for a condition on labels that is a factor (it
restricts another factor that has its labels, if there is one), a label as a value, a label that
occurs twice on the left, and one that occurs only there. Takes and returns resolved statements.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import field, replace

from ucle.foundation.dataclasses import dataclass
from ucle.foundation.dtypes import DType
from ucle.foundation.names import find_free_name, fold_name, unique_names
from ucle.foundation.tree_walk import Calls, run, walk
from ucle.ir.affine import Affine
from ucle.ir.conditions import NOTHING, Compare, Condition, Sign, condition_labels, together
from ucle.ir.vertices import Span
from ucle.language.label_arithmetic import affine_of, conditions_in
from ucle.language.syntax import (
    Access,
    Binary,
    Call,
    Coordinate,
    Expression,
    Hit,
    Index,
    LabelDivision,
    Outside,
    Reindexed,
    Statement,
    accesses,
    children,
    with_children,
)
from ucle.language.syntax import walk as parts_of
from ucle.operators import (
    AND,
    BIT_AND,
    MULT,
    OR,
    WHEN,
    Combine,
    PointwiseMap,
)

Labels = tuple[str, ...]


@dataclass(frozen=True)
class Lifted:
    """Statements in which only `Reindexed` expressions have arithmetic on labels."""

    statements: tuple[Statement, ...]
    one: str | None
    """The rank-0 tensor with value true, if a statement reads it."""


def lift_indices(statements: tuple[Statement, ...], stated: Collection[str] = ()) -> Lifted:
    """Lift each read at an index other than a label, and each condition, into its own statement.

    Args:
        statements: resolved, each after those that it uses.
        stated: labels whose bounds the caller states; these may end before the end of an axis that
            they are read along, if they are also read elsewhere.

    >>> from ucle.language.parse import parse_program
    >>> from ucle.language.resolve import resolve
    >>> lifted = lift_indices((resolve(parse_program("Z[i] += A[i+w] * K[w]")[0]),))
    >>> [str(statement.target) for statement in lifted.statements]
    ['A_at[i,w]', 'Z[i]']
    """
    if not any(map(_computes_with_labels, statements)):
        return Lifted(statements, None)
    uses = (x.tensor for s in statements for x in (s.target, *accesses(s.expression)))
    names = _IndexNames({fold_name(name) for name in uses})
    lifted: list[Statement] = []
    for statement in statements:
        if _computes_with_labels(statement):
            lifted += _IndexLift(statement, names, frozenset(stated)).statements()
        else:
            lifted.append(statement)
    return Lifted(tuple(lifted), names.one)


def find_shortened_labels(statement: Statement, stated: Collection[str]) -> frozenset[str]:
    """The labels that end before some axis, so that no axis is assumed to be read to its end.

    Args:
        statement: resolved.
        stated: labels whose bounds the caller states.
    """
    reads = (a for a in parts_of(statement.expression) if isinstance(a, Access))
    indices = (index for access in reads for index in access.indices or ())
    return statement.shortened | frozenset(
        label
        for index in indices
        if index.affine.label is None and not index.permissive
        for label in index.affine.growing
        if len(index.affine.terms) == 1
        or statement.renamed.get(label, label) in stated
        or label in statement.sizes
    )


def _computes_with_labels(statement: Statement) -> bool:
    labels, expression = statement.target.labels, statement.expression
    if len(set(labels)) < len(labels) or not set(labels) <= set(expression.labels):
        return True
    if expression.constant or statement.shortened:
        return True
    return any(
        isinstance(part, Coordinate | Hit)
        or (isinstance(part, Access) and part.indices is not None)
        for part in parts_of(statement.expression)
    )


@dataclass
class _IndexNames:
    """Used names of tensors, folded for comparison."""

    taken: set[str]
    one: str | None = None

    def fresh(self, stem: str) -> str:
        """An unused name for a tensor."""
        (name,) = unique_names([stem], self.taken)
        return name

    def one_row(self) -> str:
        """The name of the rank-0 tensor with value true."""
        if self.one is None:
            self.one = self.fresh("one")
        return self.one


_State = tuple[Expression | None, tuple[Condition, ...]]
"""A product without its conditions (None if there is no other factor), and these conditions."""


@dataclass
class _IndexLift:
    """Rewrites one statement to several."""

    statement: Statement
    names: _IndexNames
    stated: frozenset[str]
    made: list[Statement] = field(default_factory=list)

    def __post_init__(self) -> None:
        statement = self.statement
        self._conditions = conditions_in(statement.expression)
        self._renamed = dict(statement.renamed)
        self._taken = {*statement.target.labels}
        for part in parts_of(statement.expression):
            self._taken.update(part.labels)
        self._reduced = find_shortened_labels(statement, self.stated)
        self._known: dict[object, str] = {}
        """Tensors that were added, by keys of their content."""

    def statements(self) -> list[Statement]:
        """The statements that replace the statement, each after those that it uses."""
        statement = self.statement
        expression = self._whole(run(self._lift(statement.expression)))
        if expression.constant:
            one = Access(self.names.one_row(), (), expression.span)
            expression = Binary(MULT, expression, one, expression.span)
        labels = statement.target.labels
        if len(set(labels)) == len(labels) and set(labels) <= set(expression.labels):
            changed = replace(statement, expression=expression, renamed=self._renamed)
            if self.made and self._is_whole(expression, self.made[-1].target):
                *before, last = self.made
                return [*before, replace(changed, expression=last.expression)]
            return [*self.made, changed]
        spread = self._spread(expression)
        return [*self.made, spread]

    def _is_whole(self, expression: Expression, made: Access) -> bool:
        """True if the statement only copies the last tensor that was added."""
        if not isinstance(expression, Access):
            return False
        return expression.tensor == made.tensor and expression.labels == made.labels

    # ---- Expressions ----

    def _lift(self, expression: Expression) -> Calls[_State]:
        condition = self._conditions.get(id(expression))
        if condition is not None:
            return None, (condition,)
        match expression:
            case Access():
                return self._access(expression), ()
            case Coordinate() | LabelDivision():
                return self._value(expression), ()
            case Hit():
                entries = self._whole((yield self._lift(expression.entries)))
                return self._hit(expression, entries), ()
            case Binary(operator, left, right, span) if operator is MULT:
                one = yield self._lift(left)
                other = yield self._lift(right)
                return _product(one, other, span)
            case Binary(operator, left, right, span) if _is_conjunction(operator, left, right):
                one = yield self._lift(left)
                other = yield self._lift(right)
                if one[0] is None or other[0] is None:
                    return self._conjunction(*((other, one) if one[0] is None else (one, other)))
                return Binary(operator, self._whole(one), self._whole(other), span), ()
            case Binary(operator, left, right, span) if operator.keeps_where is not None:
                condition = self._conditions.get(id(left))
                if condition is not None:
                    if not operator.keeps_where:
                        condition = condition.negated
                    inner = self._whole((yield self._lift(right)))
                    return self._select_where(condition, inner, span), ()
        parts = []
        for child in children(expression):
            parts.append(self._whole((yield self._lift(child))))
        return with_children(expression, parts), ()

    def _whole(self, state: _State) -> Expression:
        """Apply the conditions of a product to the factors that they restrict."""
        expression, conditions = state
        if not conditions:
            assert expression is not None
            return expression
        span = self.statement.span if expression is None else expression.span
        if expression is None:
            return self._mask(together(*conditions), span)
        places: dict[int, list[Condition]] = {}
        alone: list[Condition] = []
        factors = _factors(expression)
        for condition in conditions:
            place = _find_restricted_factor(factors, condition)
            if place is None:
                alone.append(condition)
            else:
                places.setdefault(id(place), []).append(condition)
        put = {
            id(factor): self._restrict(factor, together(*places[id(factor)]), Outside.PRODUCT)
            for factor in factors
            if id(factor) in places
        }
        expression = _replace_factors(expression, put)
        for labels in dict.fromkeys(condition_labels(x) for x in alone):
            mask = together(*(x for x in alone if condition_labels(x) == labels))
            expression = Binary(MULT, self._mask(mask, span), expression, span)
        return expression

    def _conjunction(self, state: _State, other: _State) -> _State:
        """Return what holds where an expression does and other conditions do, as a product.

        A product of numbers is looked at first: 0 times NaN is no 0.
        """
        expression, conditions = state
        if not (isinstance(expression, Call) and expression.function is DType.BOOL):
            expression, conditions = self._whole(state), ()
            expression = Call(DType.BOOL, (expression,), expression.span)
        return expression, (*conditions, *other[1])

    def _select_where(self, condition: Condition, inner: Expression, span: Span) -> Expression:
        """Lift a ``when`` whose condition is on labels."""
        if set(condition_labels(condition)) <= set(inner.labels):
            return self._restrict(inner, condition, Outside.ZERO)
        return Binary(WHEN, self._mask(condition, span), inner, span)

    # ---- Added tensors ----

    def _add(self, stem: str, key: object, labels: Labels, expression: Expression) -> Access:
        """Add a tensor for an expression, or reuse an identical one, and return its access."""
        if key not in self._known:
            self._known[key] = name = self.names.fresh(stem)
            target = Access(name, labels, expression.span)
            renamed = dict(self._renamed)
            made = replace(self.statement, target=target, expression=expression, lifted=True)
            self.made.append(replace(made, span=expression.span, renamed=renamed, aggregation=None))
        return Access(self._known[key], labels, expression.span)

    def _fresh_label(self, label: str, meaning: str) -> str:
        name = find_free_name(label, {label, *self._taken})
        self._taken.add(name)
        self._renamed[name] = meaning
        return name

    def _access(self, access: Access) -> Access:
        """Rewrite a read to one at plain labels."""
        indices = access.indices
        if indices is None:
            if self._reduced.isdisjoint(access.labels):
                return access
            indices = tuple(Index(Affine(((x, 1),))) for x in access.labels)
        labels = tuple(dict.fromkeys(x for index in indices for x in index.affine.labels))
        own: list[str] = []
        for index, name in zip(indices, replace(access, indices=indices).axis_names, strict=True):
            label = index.affine.label
            plain = label is not None and not index.permissive and label not in self._reduced
            fits = plain and label not in own
            own.append(label if fits and label else self._fresh_label(name, str(access)))
        source = Access(access.tensor, tuple(own), access.span)
        made = Reindexed(source, indices, labels, NOTHING, access.span, outside=access.outside)
        key = access.tensor, indices, access.outside
        return self._add(f"{access.tensor}_at", key, labels, made)

    def _value(self, expression: Coordinate | LabelDivision) -> Access:
        """Lift a label, or a quotient or remainder of labels, into a tensor."""
        one = Access(self.names.one_row(), (), expression.span)
        value = affine_of(expression)
        assert value is not None, "checked by the parser"
        labels = value.labels
        made = Reindexed(one, (), labels, NOTHING, expression.span, value, Outside.ZERO)
        stem = "_".join((*(labels or expression.labels), "value"))
        return self._add(stem, ("value", value), labels, made)

    def _hit(self, hit: Hit, entries: Expression) -> Access:
        """A boolean tensor that is true where entries equal the coordinate of a label."""
        source = self._name_expression(entries)
        labels = *source.labels, hit.label
        indices = tuple(Index(Affine(((x, 1),))) for x in source.labels)
        made = Reindexed(source, indices, labels, NOTHING, hit.span, outside=Outside.ZERO, hit=hit)
        key = "hit", source.tensor, source.labels, hit.label
        return self._add(f"{source.tensor}_hits", key, labels, made)

    def _mask(self, condition: Condition, span: Span) -> Access:
        """A boolean tensor that is true where a condition holds."""
        labels = condition_labels(condition)
        one = Access(self.names.one_row(), (), span)
        made = Reindexed(one, (), labels, condition, span, outside=Outside.ZERO)
        return self._add(f"{self.statement.target.tensor}_mask", condition, labels, made)

    def _restrict(self, factor: Expression, condition: Condition, outside: Outside) -> Access:
        """Set an expression to 0 where a condition on its labels does not hold."""
        source = self._name_expression(factor)
        indices = tuple(Index(Affine(((x, 1),))) for x in source.labels)
        written: Expression | None = None
        if outside is Outside.PRODUCT:
            written = Binary(MULT, self._mask(condition, factor.span), source, factor.span)
        made = Reindexed(
            source, indices, source.labels, condition, factor.span, outside=outside, written=written
        )
        key = source.tensor, source.labels, condition, outside
        return self._add(f"{source.tensor}_where", key, source.labels, made)

    def _name_expression(self, expression: Expression) -> Access:
        """Convert an expression to a tensor with a distinct label for each axis."""
        if isinstance(expression, Access) and len(set(expression.labels)) == expression.rank:
            return expression
        labels = tuple(dict.fromkeys(expression.labels))
        stem = f"{self.statement.target.tensor}_part"
        return self._add(stem, ("part", id(expression)), labels, expression)

    # ---- The left side ----

    def _spread(self, expression: Expression) -> Statement:
        """Rewrite a statement whose left side repeats labels, or has labels the right lacks."""
        statement, target = self.statement, self.statement.target
        source = self._name_expression(expression)
        self.made = [
            replace(x, aggregation=statement.aggregation) if x.target.tensor == source.tensor else x
            for x in self.made
        ]
        labels: list[str] = []
        same: list[tuple[str, str]] = []
        for label in target.labels:
            name = label
            if label in labels:
                name = self._fresh_label(label, self._renamed.get(label, label))
                same.append((label, name))
            labels.append(name)
        parts = [Compare(Affine(((x, 1), (y, -1))), Sign.EQUAL) for x, y in same]
        spread = Reindexed(
            source,
            tuple(Index(Affine(((x, 1),))) for x in source.labels),
            tuple(labels),
            together(*parts),
            statement.span,
            outside=Outside.IDENTITY if same else Outside.FILL,
            aggregation=statement.aggregation,
            same=tuple(same),
        )
        target = replace(target, labels=tuple(labels))
        return replace(statement, target=target, expression=spread, renamed=self._renamed)


def _is_conjunction(operator: Combine, left: Expression, right: Expression) -> bool:
    """Return whether an operator is ``and``, or ``&`` of what is known to be truth values."""
    return operator is AND or (operator is BIT_AND and _is_truth(left) and _is_truth(right))


def _is_truth(expression: Expression) -> bool:
    match expression:
        case Binary(operator):
            return operator.indicates or operator in (AND, OR)
        case Call(PointwiseMap() as function):
            return function.indicates
        case Call(function):
            return function is DType.BOOL
    return False


def _product(one: _State, other: _State, span: Span) -> _State:
    left, right = one[0], other[0]
    conditions = *one[1], *other[1]
    if left is None or right is None:
        return left or right, conditions
    return Binary(MULT, left, right, span), conditions


def _sides(expression: Expression) -> Collection[Expression]:
    match expression:
        case Binary(operator, left, right) if operator is MULT:
            return left, right
    return ()


def _factors(expression: Expression) -> list[Expression]:
    """The factors of a product, left to right."""
    return [part for part in walk(expression, lambda x: tuple(_sides(x))) if not _sides(part)]


def _find_restricted_factor(factors: list[Expression], condition: Condition) -> Expression | None:
    """The factor that a condition restricts: one with its labels, preferably a tensor."""
    labels = set(condition_labels(condition))
    having = [x for x in factors if labels <= set(x.labels)]
    return next((x for x in having if isinstance(x, Access)), having[0] if having else None)


def _replace_factors(expression: Expression, put: Mapping[int, Expression]) -> Expression:
    """Replace some factors of a product, by their ids."""

    def replace_part(part: Expression) -> Calls[Expression]:
        if id(part) in put:
            return put[id(part)]
        sides = []
        for side in _sides(part):
            sides.append((yield replace_part(side)))
        return with_children(part, sides) if sides else part

    return run(replace_part(expression))
