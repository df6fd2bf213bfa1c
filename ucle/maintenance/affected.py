"""Find the keys of a statement's tensor whose entries may differ after a change of what it reads.

A statement ``T[out] = ...`` reads a tensor R at some labels. Where R has changed at the coordinates
of a mask, T may have changed at every coordinate of `out` that agrees with one of them in the
labels that they share: ``M[i] = any[l](R_changed[i,l])``. In a product, an entry is 0 before and
after the change where another factor is, so that fewer keys are affected:
``M[i,k] = any[j](R_changed[i,j] * (B[j,k] != 0))``. Both are statements of the language.

The masks of a tensor, together, hold all of its coordinates that may differ.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from ucle.foundation.dataclasses import dataclass
from ucle.language.forest_calls import output_label
from ucle.language.resolve import resolve
from ucle.language.syntax import (
    Access,
    Binary,
    Call,
    Comparisons,
    Expression,
    First,
    Flat,
    ForestCall,
    Number,
    Reduction,
    ScanExpression,
    Size,
    Statement,
    SystemCall,
    children,
    walk,
)
from ucle.maintenance.finiteness import stays_finite
from ucle.operators import ANY, DIV, MULT, NOT_EQUAL, OR, SUM, WHEN, Combine


@dataclass(frozen=True)
class Mask:
    """Coordinates of a tensor that may differ: a truth value for coordinates of some of its axes.

    A mask without axes stands for all coordinates, and has no tensor.
    """

    tensor: str
    axes: tuple[int, ...]


SPREADING = Reduction | ScanExpression | First | Flat | ForestCall | SystemCall
"""Expressions in which an entry depends on others than that at its coordinates."""

POINTWISE = Access | Binary | Call | Comparisons | Number
"""Expressions that compute an entry from the entries at its coordinates."""

EVERYTHING = Mask("", ())
"""The mask of a tensor of which nothing is known to be as before."""

Changed = Mapping[str, tuple[Mask, ...]]
"""The masks of tensors that may differ; the others are as before."""


@dataclass(frozen=True)
class AffectedKeys:
    """The statements of the masks of a statement's tensor, and these masks."""

    statements: tuple[Statement, ...]
    masks: tuple[Mask, ...]

    @property
    def everything(self) -> bool:
        """True if every entry may differ."""
        return EVERYTHING in self.masks


WHOLE = AffectedKeys((), (EVERYTHING,))


def reads_of(statement: Statement) -> frozenset[str]:
    """Return the tensors that a statement reads."""
    return frozenset(x.tensor for x in walk(statement.expression) if isinstance(x, Access))


def statements_for(
    tensors: Iterable[str], statements: Mapping[str, Statement], given: Container[str] = ()
) -> list[Statement]:
    """Return the statements that compute tensors from those that are given, in order.

    >>> from ucle.language.parse import parse_program
    >>> program = parse_program("S[i] += A[i,j]; n[i] = S[i] + 1; Y[i] = S[i] / n[i]")
    >>> own = {x.target.tensor: x for x in program}
    >>> [x.target.tensor for x in statements_for(["Y"], own, {"S"})]
    ['n', 'Y']
    """
    wanted, found = list(tensors), set[str]()
    while wanted:
        name = wanted.pop()
        if name in statements and name not in given and name not in found:
            found.add(name)
            wanted += reads_of(statements[name])
    return [x for name, x in statements.items() if name in found]


def statement_like(
    like: Statement, name: str, labels: tuple[str, ...], expression: Expression
) -> Statement:
    """Return the statement that computes a tensor from an expression, at the place of another."""
    target = Access(name, labels, like.span)
    return replace(like, target=target, accumulate=None, expression=expression, aggregation=None)


def affected_keys(
    statement: Statement, changed: Changed, names: Callable[[str], str]
) -> AffectedKeys:
    """Return the masks of a statement's tensor, by the labels that it shares with what it reads.

    Args:
        statement: of any form.
        changed: the masks of tensors.
        names: returns a new name for a tensor.

    >>> from ucle.language.parse import parse_program
    >>> from ucle.language.syntax_to_text import statement_text
    >>> (statement,) = parse_program("T[i,m] += A[i,l] * H[l,m]")
    >>> changed = {"A": (Mask("A_changed", (0, 1)),)}
    >>> for each in affected_keys(statement, changed, lambda stem: f"{stem}_1").statements:
    ...     print(statement_text(each))
    T_mask_1[i] any= A_changed[i,l]
    """
    resolved = resolve(statement)
    found = [
        (access, blocked)
        for read, blocked in _accesses(resolved.expression, frozenset())
        for access in _changed_at(read, changed)
    ]
    return _masks(resolved, found, names)


def affected_in_product(
    statement: Statement,
    changed: Changed,
    names: Callable[[str], str],
    is_zero: Callable[[str], bool],
    leaves_out: Callable[[str], bool],
    label: str | None = None,
    fresh: Container[str] = (),
) -> AffectedKeys | None:
    """Return the masks of a tensor, where products may be other than 0; None if it has none.

    Factors that would have to be computed for this are left out of it, and so are those that are
    not 0 at most coordinates, behind which there are hardly fewer keys.

    Args:
        statement: of any form.
        changed: the masks of tensors.
        names: returns a new name for a tensor.
        is_zero: True for a tensor whose entries are finite, and 0 where they are not stored.
        leaves_out: True for a tensor that is stored, and not at most coordinates.
        label: the only one that masks have, if it is given. Then factors are looked at for reads
            without this label alone.
        fresh: tensors whose changed entries were not there before: where they are not 0 now holds
            all places where they were not 0.

    >>> from ucle.language.parse import parse_program
    >>> from ucle.language.syntax_to_text import statement_text
    >>> (statement,) = parse_program("U[i,k] += A[i,j] * Z[j,k]")
    >>> changed = {"A": (Mask("dA", (0, 1)),), "Z": (Mask("dZ", (0, 1)),)}
    >>> found = affected_in_product(
    ...     statement, changed, str.lower, lambda x: True, lambda x: True, "i"
    ... )
    >>> statement_text(found.statements[0])
    'u_mask[i] = any[j](dA[i,j]) or any[j,k](dZ[j,k] * (A[i,j] != 0 or dA[i,j]))'
    >>> found = affected_in_product(
    ...     statement, changed, str.lower, lambda x: True, lambda x: True, "i", fresh=["A"]
    ... )
    >>> statement_text(found.statements[0])
    'u_mask[i] = any[j](dA[i,j]) or any[j,k](dZ[j,k] * (A[i,j] != 0))'
    """
    resolved = resolve(statement)
    reads = _Supported(changed, is_zero, leaves_out, label, fresh)
    found = list(reads.of(resolved.expression, ()))
    return None if label is None and not reads.any else _masks(resolved, found, names, label)


def depends_on_sizes(statement: Statement, is_zero: Callable[[str], bool]) -> bool:
    """Return whether entries may differ when coordinates are added that no changed entry has.

    That is so unless the statement is a sum of products whose factors are 0 where they are not
    stored and have all labels of the statement; or a function of entries that each have all of
    them, which is the fill where these are not stored.
    """
    resolved = resolve(statement)
    expression = resolved.expression
    if any(isinstance(x, Size) for x in walk(expression)):
        return True
    labels = set(resolved.target.labels)
    if all(isinstance(x, POINTWISE) for x in walk(expression)):
        reads = [x for x in walk(expression) if isinstance(x, Access)]
        if reads and all(x.indices is None and labels <= set(x.labels) for x in reads):
            return False
    while isinstance(expression, Reduction):
        if expression.operator not in (SUM, ANY):
            return True
        labels |= set(expression.over)
        expression = expression.argument
    covered: set[str] = set()
    for factor in _factors(expression):
        if isinstance(factor, Access) and factor.indices is None and is_zero(factor.tensor):
            covered |= set(factor.labels)
        elif any(isinstance(x, SPREADING) for x in walk(factor)):
            return True
    return not labels <= covered


def _accesses(
    expression: Expression, blocked: frozenset[str]
) -> Iterator[tuple[Access, frozenset[str]]]:
    """Yield the reads of an expression, with the labels along which what is read spreads."""
    if isinstance(expression, Access):
        yield expression, blocked
    elif isinstance(expression, ScanExpression):
        blocked |= set(expression.along.labels)
    elif isinstance(expression, First):
        blocked |= {expression.label}
    elif isinstance(expression, Flat):
        blocked |= {*expression.over, expression.label}
    elif isinstance(expression, ForestCall):
        blocked |= {expression.feature, expression.node, output_label(expression)}
    elif isinstance(expression, SystemCall):
        blocked |= {expression.row, expression.column, *expression.own}
    for part in children(expression):
        yield from _accesses(part, blocked)


def _factors(expression: Expression) -> Iterator[Expression]:
    if isinstance(expression, Binary) and expression.operator in (MULT, WHEN):
        yield from _factors(expression.left)
        yield from _factors(expression.right)
    else:
        yield expression


def _changed_at(read: Access, changed: Changed) -> Iterator[Access | None]:
    """Yield a read of each mask of a tensor in place of the tensor's; None where all may differ."""
    for mask in changed.get(read.tensor, ()):
        if mask == EVERYTHING:
            yield None
        elif read.indices is None:
            labels = tuple(read.labels[axis] for axis in mask.axes)
            yield Access(mask.tensor, labels, read.span)
        else:
            indices = tuple(read.indices[axis] for axis in mask.axes)
            labels = tuple(dict.fromkeys(x for index in indices for x in index.labels))
            yield Access(mask.tensor, labels, read.span, indices)


Read = tuple[Expression | None, frozenset[str]]
"""Where what is read has changed, None where that may be anywhere; and the labels along which it
spreads."""


class _Supported:
    """The changed reads of expressions, where other factors of their products are not 0."""

    def __init__(
        self,
        changed: Changed,
        is_zero: Callable[[str], bool],
        leaves_out: Callable[[str], bool],
        label: str | None,
        fresh: Container[str],
    ) -> None:
        self._changed, self._is_zero, self._leaves_out = changed, is_zero, leaves_out
        self._label, self._fresh = label, fresh
        self.any = False
        """True if there was such a factor."""

    def of(self, expression: Expression, supports: tuple[Expression, ...]) -> Iterator[Read]:
        """Yield the changed reads of an expression, where factors around it are not 0."""
        match expression:
            case Access(indices=None):
                for access in _changed_at(expression, self._changed):
                    whole: Expression | None = access
                    if access is None or self._label in access.labels:
                        supports = ()
                    for support in supports:
                        assert whole is not None
                        whole = Binary(MULT, whole, support, expression.span)
                    yield whole, frozenset()
            case Binary(operator) if operator in (MULT, WHEN, DIV):
                yield from self._of_product(expression, supports)
            case Reduction(operator) if operator is SUM:
                yield from self.of(expression.argument, supports)
            case Binary() | Call():  # finite, if it is in a product with supports
                for part in children(expression):
                    yield from self.of(part, supports)
            case _:
                for read, blocked in _accesses(expression, frozenset()):
                    for access in _changed_at(read, self._changed):
                        yield access, blocked

    def _of_product(
        self, expression: Expression, supports: tuple[Expression, ...]
    ) -> Iterator[Read]:
        factors = list(_factors_and_divisors(expression))
        if not self._is_finite(expression):
            for factor in factors:
                yield from self.of(factor, ())
            return
        own = [self._support(x) for x in factors]
        for place, factor in enumerate(factors):
            others = [x for n, x in enumerate(own) if n != place and x is not None]
            if others and any(x.tensor in self._changed for x in _reads(factor)):
                self.any = True
            yield from self.of(factor, (*supports, *others))

    def _is_finite(self, expression: Expression) -> bool:
        """True if an expression was and is finite at all coordinates."""
        parts = list(walk(expression))
        known = all(self._is_zero(x.tensor) for x in parts if isinstance(x, Access))
        return known and all(stays_finite(x) for x in parts if not _selects(x))

    def _support(self, factor: Expression) -> Expression | None:
        """Return where a factor differs from 0 before or after; None if that is not known."""
        if not isinstance(factor, Access) or factor.indices is not None:
            return None
        if not self._is_zero(factor.tensor) or not self._leaves_out(factor.tensor):
            return None
        zero = Number(0, factor.span)
        support: Expression = Binary(NOT_EQUAL, factor, zero, factor.span)
        if factor.tensor in self._fresh:
            return support
        for access in _changed_at(factor, self._changed):
            if access is None or set(access.labels) != set(factor.labels):
                return None
            support = Binary(OR, support, access, factor.span)
        return support


def _selects(expression: Expression) -> bool:
    return isinstance(expression, Binary) and expression.operator is WHEN


def _reads(expression: Expression) -> Iterator[Access]:
    return (x for x in walk(expression) if isinstance(x, Access))


def _factors_and_divisors(expression: Expression) -> Iterator[Expression]:
    """Yield the factors of a product, which is 0 where one of them is, and what it is divided by.

    A divisor is no tensor, but a maximum or a number (`stays_finite`).
    """
    if isinstance(expression, Binary) and expression.operator in (MULT, WHEN, DIV):
        yield from _factors_and_divisors(expression.left)
        if expression.operator is DIV:
            yield expression.right
        else:
            yield from _factors_and_divisors(expression.right)
    else:
        yield expression


def _masks(
    resolved: Statement,
    found: Sequence[Read],
    names: Callable[[str], str],
    label: str | None = None,
) -> AffectedKeys:
    """Return the masks of a statement's tensor, one for each choice of its labels.

    If one of them is given, it is the only one.
    """
    target, by_labels = resolved.target.labels, dict[tuple[str, ...], list[Expression]]()
    for expression, blocked in found:
        own = () if expression is None else expression.labels
        shared = tuple(x for x in target if x in own and x not in blocked and label in (None, x))
        if expression is None or not shared:
            return WHOLE
        by_labels.setdefault(shared, []).append(expression)
    statements, masks = list[Statement](), list[Mask]()
    for labels, expressions in by_labels.items():
        parts = [_any_of(x, labels) for x in dict.fromkeys(expressions)]
        name = names(f"{resolved.target.tensor}_mask")
        accumulate = None
        if len(parts) == 1 and isinstance(parts[0], Reduction):
            accumulate, parts = ANY, [parts[0].argument]
        made = statement_like(resolved, name, labels, _join(OR, parts))
        statements.append(replace(made, accumulate=accumulate))
        masks.append(Mask(name, tuple(target.index(x) for x in labels)))
    return AffectedKeys(tuple(statements), tuple(masks))


def _any_of(expression: Expression, kept: Sequence[str]) -> Expression:
    over = tuple(x for x in dict.fromkeys(expression.labels) if x not in kept)
    return Reduction(ANY, over, expression, expression.span) if over else expression


def _join(combine: Combine, parts: Sequence[Expression]) -> Expression:
    joined, *others = parts
    for part in others:
        joined = Binary(combine, joined, part, part.span)
    return joined
