"""Tensors read at functions of positions, optionally restricted by a condition.

This is the index language in terms of nodes: an operand with `Index`es instead of labels, or one
that is a condition. Labels are the positions of the result's axes, as text. Axes of size 1 have no
label: their only position is 0, in operands and results.
"""

from __future__ import annotations

from collections.abc import Sequence

from ucle.ir.affine import Affine, Digit
from ucle.ir.conditions import NOTHING, All, Compare, Condition, Sign, Some, condition_labels
from ucle.language.syntax import Index
from ucle.lazy.nodes import Axes, Lazy, NodeOperand, apply
from ucle.operators import (
    WHEN,
)


def position(axis: int) -> Affine:
    """The position along an axis of the result."""
    return Affine(((str(axis), 1),))


def number(value: int) -> Affine:
    """A position that is the same for all entries of the result."""
    return Affine((), value)


def read(
    tensor: Lazy, axes: Axes, indices: Sequence[Affine], *, inside: bool = True
) -> NodeOperand:
    """An operand that reads a tensor at functions of the positions in a result.

    Args:
        tensor: the tensor.
        axes: the axes of the result.
        indices: for each axis of the tensor, the function at which it is read.
        inside: True if all these positions exist; otherwise a condition has to select them.
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
        return NodeOperand(tensor.node, tuple(int(name) for name in names if name is not None))
    labels = tuple(dict.fromkeys(int(x) for index in own for x in index.labels))
    shown = (Index(x, not (inside or plain)) for x, plain in zip(own, same, strict=True))
    return NodeOperand(tensor.node, labels, tuple(shown))


def function_of_places(affine: Affine, axes: Axes) -> NodeOperand:
    """A function of the positions in a result, as an integer operand."""
    units = frozenset(str(n) for n, axis in enumerate(axes) if axis.unit)
    own = _at_zero(affine, units)
    if not own.terms:
        return NodeOperand(own.constant)
    return NodeOperand(own, tuple(map(int, own.labels)))


def where(condition: Condition, axes: Axes) -> NodeOperand:
    """A boolean operand that is true where positions in a result meet a condition."""
    units = frozenset(str(n) for n, axis in enumerate(axes) if axis.unit)
    simple = _simplify_condition(condition, units)
    if simple in (NOTHING, Some(())):
        return NodeOperand(simple == NOTHING)
    return NodeOperand(simple, tuple(map(int, condition_labels(simple))))


def read_at(
    tensor: Lazy, axes: Axes, indices: Sequence[Affine], condition: Condition = NOTHING
) -> Lazy:
    """Read a tensor at functions of positions; the result is 0 where a condition does not hold.

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
    """Substitute 0 for some labels of a function."""
    result = number(affine.constant)
    for term, factor in affine.terms:
        if isinstance(term, Digit):
            result = result.plus(_at_zero(term.of, units).digit(term.by, term.remainder), factor)
        elif term not in units:
            result = result.plus(Affine(((term, factor),)))
    return result


def _simplify_condition(condition: Condition, units: frozenset[str]) -> Condition:
    """Substitute 0 for some labels of a condition, and drop parts that are always true or false."""
    match condition:
        case Compare(affine, sign):
            own = _at_zero(affine, units)
            if own.terms:
                return Compare(own, sign)
            value = own.constant
            holds = {Sign.AT_LEAST: value >= 0, Sign.EQUAL: value == 0, Sign.UNEQUAL: value != 0}
            return NOTHING if holds[sign] else Some(())
        case All(parts):
            each = [x for x in (_simplify_condition(part, units) for part in parts) if x != NOTHING]
            return Some(()) if Some(()) in each else All(tuple(each))
        case Some(parts):
            each = [
                x for x in (_simplify_condition(part, units) for part in parts) if x != Some(())
            ]
            return NOTHING if NOTHING in each else Some(tuple(each))
