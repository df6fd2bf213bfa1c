"""Compute a tensor at some coordinates of an axis alone: the same program, over a shorter axis.

The coordinates are numbered, and tables are read at these numbers: a row of a table counts if its
coordinate is one of them. Statements stay as they are, but for the label, which ends where the
numbers do. ``T[i,m] += A[i,l] * H[l,m]`` at some i reads the rows of A with these i, and all of
H. ``H[i,k] * H[j,k]`` reads two tensors, one of them shorter; where statements compute H, they
compute both.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from ucle.foundation.dataclasses import dataclass
from ucle.language.forest_calls import output_label
from ucle.language.resolve import resolve
from ucle.language.syntax import (
    Access,
    Binary,
    Call,
    Coordinate,
    Expression,
    First,
    Flat,
    ForestCall,
    Hit,
    LabelDivision,
    Number,
    Reduction,
    ScanExpression,
    Size,
    Statement,
    SystemCall,
    fold,
    walk,
    with_children,
)


@dataclass(frozen=True)
class Part:
    """A table that is read at the numbers of the coordinates of an axis alone."""

    tensor: str
    axis: int
    name: str
    """That under which statements read it."""


@dataclass(frozen=True)
class Renumbered:
    """Statements over a shorter axis, and what they read."""

    statements: tuple[Statement, ...]
    new: str
    """The tensor with the shorter axis."""
    parts: tuple[Part, ...]
    axes: Mapping[str, int]
    """The shorter axes of the tensors that statements compute for shorter ones alone."""


class _OtherUseError(Exception):
    """The coordinates of a label count, and not only which of them are equal."""


def renumber(
    statements: Sequence[Statement], axis: int, names: Callable[[str], str]
) -> Renumbered | None:
    """Return statements that compute the last tensor over a shorter axis; None if there are none.

    Args:
        statements: in order; the last one reads the others.
        axis: that of the last tensor.
        names: returns a new name for a tensor.

    >>> from ucle.language.parse import parse_program
    >>> from ucle.language.syntax_to_text import statement_text
    >>> program = parse_program("S[i,j] = A[i,j] * sum[k](H[i,k] * H[j,k]); n[i] += S[i,j]")
    >>> found = renumber(program, 0, str)
    >>> for each in found.statements:
    ...     print(statement_text(each))
    S_at[affected,j] = A_at[affected,j] * sum[k](H_at[affected,k] * H[j,k])
    n_at[affected] = sum[j](S_at[affected,j])
    >>> [(x.tensor, x.axis) for x in found.parts]
    [('A', 0), ('H', 0)]
    """
    own = {x.target.tensor for x in statements}
    made = _Copies(own, names)
    new = made.name(statements[-1].target.tensor, axis)
    found: list[Statement] = []
    try:
        for statement in reversed(statements):
            resolved = resolve(statement)
            for at in made.wanted.get(statement.target.tensor, ()):
                found.append(made.copy(resolved, at))
    except _OtherUseError:
        return None
    parts = tuple(Part(tensor, at, name) for (tensor, at), name in sorted(made.parts.items()))
    axes = {x: y[0] for x, y in made.wanted.items() if len(y) == 1 and y[0] is not None}
    return Renumbered(tuple(found[::-1]), new, parts, axes)


LABEL = "affected"
"""The label of the shorter axis; where a statement has it already, a number is put behind it."""


class _Copies:
    """The tensors that statements read: as they are, and over shorter axes."""

    def __init__(self, own: set[str], names: Callable[[str], str]) -> None:
        self._own, self._names = own, names
        self.wanted: dict[str, list[int | None]] = {}
        """The shorter axes of the tensors of statements; None for a tensor as it is."""
        self.parts: dict[tuple[str, int], str] = {}
        self._known: dict[tuple[str, int], str] = {}

    def name(self, tensor: str, axis: int | None) -> str:
        """Return the name under which a tensor is read, and remember that it is."""
        if tensor in self._own:
            wanted = self.wanted.setdefault(tensor, [])
            if axis not in wanted:
                wanted.append(axis)
        if axis is None:
            return tensor
        if (tensor, axis) not in self._known:
            self._known[tensor, axis] = self._names(f"{tensor}_at")
        name = self._known[tensor, axis]
        if tensor not in self._own:
            self.parts[tensor, axis] = name
        return name

    def copy(self, resolved: Statement, axis: int | None) -> Statement:
        """Return a statement that reads shorter tensors along an axis of its own."""
        target = resolved.target
        if axis is None:
            for read in walk(resolved.expression):
                if isinstance(read, Access):
                    self.name(read.tensor, None)
            return resolved
        label = target.labels[axis]
        taken = {*target.labels, *(y for x in walk(resolved.expression) for y in _labels(x))}
        if label in {*resolved.sizes, *resolved.like, *resolved.shortened}:
            raise _OtherUseError
        new = LABEL
        while new in taken:
            new += "_"

        def rewritten(part: Expression, parts: list[Expression]) -> Expression:
            _check(part, label)
            part = with_children(part, parts)
            if not isinstance(part, Access):
                return part
            if label not in part.labels:
                return replace(part, tensor=self.name(part.tensor, None))
            if part.indices is not None or part.labels.count(label) > 1:
                raise _OtherUseError
            at = part.labels.index(label)
            labels = tuple(new if x == label else x for x in part.labels)
            return replace(part, tensor=self.name(part.tensor, at), labels=labels)

        expression = fold(resolved.expression, rewritten)
        labels = tuple(new if x == label else x for x in target.labels)
        made = replace(target, tensor=self.name(target.tensor, axis), labels=labels)
        return replace(resolved, target=made, expression=expression)


POINTWISE = (Access, Binary, Call, Number, Reduction)
"""Expressions that ask only which coordinates are equal."""


def _check(part: Expression, label: str) -> None:
    """Check that an expression asks only which coordinates of a label are equal."""
    match part:
        case Coordinate() | Hit():
            uses = label in part.labels
        case Size(over):
            uses = label in over
        case ScanExpression(along):
            uses = label in along.labels
        case First(label=own, rank=rank):
            uses = label in (own, rank)
        case Flat(over, own):
            uses = label in (*over, own)
        case ForestCall(feature, node):
            uses = label in (feature, node, output_label(part))
        case SystemCall(row, column):
            uses = label in (row, column)
        case LabelDivision():
            uses = label in part.labels
        case _:
            uses = not isinstance(part, POINTWISE)
    if uses:
        raise _OtherUseError


def _labels(part: Expression) -> tuple[str, ...]:
    match part:
        case Reduction(over=over) | Size(over=over):
            return over
        case ScanExpression(along):
            return tuple(along.labels)
        case First(label=label, rank=rank):
            return (label,) if rank is None else (label, rank)
        case Flat(over, label):
            return (*over, label)
        case ForestCall(feature, node):
            return (feature, node)
        case SystemCall(row, column):
            return (row, column)
    return part.labels
