"""Tensors read at functions of positions, and only where these meet a condition.

This is the index language as nodes: an operand with `Index`es in the place of labels, and one that
is a condition. Labels are the positions of the result's axes, as text. Axes of size 1 have no
label: on either side, their one position is 0.
"""

from __future__ import annotations

from collections.abc import Sequence

from ucle.ir.affine import Affine, Digit
from ucle.ir.conditions import NOTHING, All, Compare, Condition, Sign, Some, condition_labels
from ucle.language.syntax import Index
from ucle.lazy.nodes import Axes, Lazy, Operand, apply
from ucle.operators import (
    WHEN,
)


def position(axis: int) -> Affine:
    """The position along an axis of the result."""
    return Affine(((str(axis), 1),))


def number(value: int) -> Affine:
    """A position that does not depend on the result's."""
    return Affine((), value)


def read(tensor: Lazy, axes: Axes, indices: Sequence[Affine], *, inside: bool = True) -> Operand:
    """A tensor as it is read at functions of the positions along the axes of a result.

    Args:
        tensor: the tensor.
        axes: those of the result.
        indices: where each of its axes is read.
        inside: whether every one of these places is there; otherwise a condition has to say where.
    """
    units = frozenset(str(n) for n, axis in enumerate(axes) if axis.unit)
    own = [_at_zero(indices[n], units) for n in tensor.labelled]
    long = [tensor.axes[n] for n in tensor.labelled]
    same = [
        index.label is not None and (inside or axes[int(index.label)].size == axis.size)
        for index, axis in zip(own, long, strict=True)
    ]
    names = [index.label for index in own]
    if all(same) and len(set(names)) == len(names):
        return Operand(tensor.node, tuple(int(name) for name in names if name is not None))
    labels = tuple(dict.fromkeys(int(x) for index in own for x in index.labels))
    shown = (Index(x, not (inside or plain)) for x, plain in zip(own, same, strict=True))
    return Operand(tensor.node, labels, tuple(shown))


def function_of_places(affine: Affine, axes: Axes) -> Operand:
    """A function of the positions along the axes of a result, as integers."""
    units = frozenset(str(n) for n, axis in enumerate(axes) if axis.unit)
    own = _at_zero(affine, units)
    if not own.terms:
        return Operand(own.constant)
    return Operand(own, tuple(map(int, own.labels)))


def where(condition: Condition, axes: Axes) -> Operand:
    """Where positions along the axes of a result meet a condition."""
    units = frozenset(str(n) for n, axis in enumerate(axes) if axis.unit)
    simple = _simplified(condition, units)
    if simple in (NOTHING, Some(())):
        return Operand(simple == NOTHING)
    return Operand(simple, tuple(map(int, condition_labels(simple))))


def read_at(
    tensor: Lazy, axes: Axes, indices: Sequence[Affine], condition: Condition = NOTHING
) -> Lazy:
    """A tensor at functions of positions, and 0 where these do not meet a condition.

    >>> from ucle.lazy.elementwise import ones
    >>> from ucle.lazy.nodes import Axis
    >>> print(read_at(ones((Axis(size=5),)), (Axis(size=4),), [position(0).plus(number(1))]))
    (4)
    """
    met = where(condition, axes)
    operand = read(tensor, axes, indices, inside=condition == NOTHING)
    if met.source is True:
        return apply(None, [operand], axes)
    return apply(WHEN.name, [met, operand], axes)


def _at_zero(affine: Affine, units: frozenset[str]) -> Affine:
    """A function where some of its labels are 0."""
    result = number(affine.constant)
    for term, factor in affine.terms:
        if isinstance(term, Digit):
            result = result.plus(_at_zero(term.of, units).digit(term.by, term.remainder), factor)
        elif term not in units:
            result = result.plus(Affine(((term, factor),)))
    return result


def _simplified(condition: Condition, units: frozenset[str]) -> Condition:
    """A condition where some labels are 0, without parts that always or never hold."""
    match condition:
        case Compare(affine, sign):
            own = _at_zero(affine, units)
            if own.terms:
                return Compare(own, sign)
            value = own.constant
            holds = {Sign.AT_LEAST: value >= 0, Sign.EQUAL: value == 0, Sign.UNEQUAL: value != 0}
            return NOTHING if holds[sign] else Some(())
        case All(parts):
            each = [x for x in (_simplified(part, units) for part in parts) if x != NOTHING]
            return Some(()) if Some(()) in each else All(tuple(each))
        case Some(parts):
            each = [x for x in (_simplified(part, units) for part in parts) if x != Some(())]
            return NOTHING if NOTHING in each else Some(tuple(each))
