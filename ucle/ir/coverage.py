"""Coverage: whether there is an entry, and along which labels each coordinate has one.

An edge list in which each node has an edge gives sums over the edges of a node that are never
empty: degrees are not 0 then, though most of the graph is. Operators pass coverage on as they
pass on entries. An entry is a value that `TensorType.entries` describes; it may equal the fill by
chance.
"""

from __future__ import annotations

from ucle.foundation.dataclasses import dataclass
from ucle.foundation.dtypes import Scalar, is_finite
from ucle.ir.layouts import Label
from ucle.ir.tensor_types import TensorType
from ucle.operators import SUM, Reduce
from ucle.operators.rows import Extreme
from ucle.operators.values import Values

Labels = tuple[Label, ...]


@dataclass(frozen=True)
class Coverage:
    """The labels along which there is an entry everywhere; whether there is `some` entry at all."""

    labels: frozenset[Label] = frozenset()
    some: bool = False

    def is_everywhere(self, kept: Labels) -> bool:
        """True only if every position under the labels that an aggregation keeps has an entry."""
        return kept[0] in self.labels if len(kept) == 1 else self.some and not kept


NOTHING = Coverage()


def coverage(type_: TensorType, labels: Labels) -> Coverage:
    """The coverage of a tensor that is read under `labels`.

    >>> i, j = Label("i", 2), Label("j", 3)
    >>> type_ = TensorType((i, j), covered=frozenset({1}), occupied=True)
    >>> [x.name for x in coverage(type_, (i, j)).labels], coverage(type_, (i, i)).some
    (['j'], False)
    """
    if any(label.bound == 0 for label in labels):
        return NOTHING
    if type_.entries.full:
        return Coverage(frozenset(labels), some=True)
    if len(set(labels)) < len(labels):  # nothing is known of a diagonal
        return NOTHING
    return Coverage(frozenset(labels[axis] for axis in type_.covered), type_.occupied)


def joined_coverage(
    types: tuple[TensorType, TensorType],
    labels: tuple[Labels, Labels],
    absorbing: tuple[bool, bool],
) -> Coverage:
    """The coverage of the pairs of two operands.

    Args:
        types: of the operands.
        labels: under which they are read.
        absorbing: whether the fill of the left, and of the right, leaves no entry of what it meets.
    """
    if any(label.bound == 0 for each in labels for label in each):
        return NOTHING
    covered, some = frozenset[Label](), False
    for own, other in ((0, 1), (1, 0)):
        mine = coverage(types[own], labels[own])
        if mine.some and (types[other].entries.full or not absorbing[other]):
            # Its entries meet each coordinate of the other one.
            covered |= mine.labels | frozenset(labels[other]).difference(labels[own])
            some = True
    return Coverage(covered, some)


def decided_labels(type_: TensorType, labels: Labels) -> frozenset[Label]:
    """The labels along which there is at most one entry for each position of the others."""
    once = len(set(labels)) == len(labels)
    return frozenset(labels[axis] for axis in type_.decided if once)


def jointly_decided(
    types: tuple[TensorType, TensorType],
    labels: tuple[Labels, Labels],
    absorbing: tuple[bool, bool],
) -> frozenset[Label]:
    """The labels that the pairs of two operands decide.

    The arguments are those of `joined_coverage`.
    An operand decides its labels for the pairs if a pair exists only where it has an entry. Both
    may do so, unless either decides a label by which the other does.
    """
    if not any(type_.decided for type_ in types):
        return frozenset()
    left, right = (
        decided_labels(type_, own) if absorbs else frozenset[Label]()
        for type_, own, absorbs in zip(types, labels, absorbing, strict=True)
    )
    if left.isdisjoint(labels[1]) or right.isdisjoint(labels[0]):
        return left | right
    return left


def aggregates_entries(operator: Reduce, values: Values, fill: Scalar) -> bool:
    """True if ⊕ of an entry, with others or with fills, is never taken for the fill.

    The minimum of 2 and a fill is the fill, for example, if the fill is less than 2.
    """
    if values.full:
        return True
    if operator is SUM:  # that of an infinite fill is as infinite
        return is_finite(fill)
    if isinstance(fill, complex) or not is_finite(fill):
        return False
    match operator.extreme:
        case Extreme.GREATEST:
            return fill <= values.low
        case Extreme.LEAST:
            return fill >= values.high
    return False
