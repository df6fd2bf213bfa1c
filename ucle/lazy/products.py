"""Products that sum over axes by NumPy's rules: matmul, tensordot, einsum and others.

The factors of nested products are contracted in the cheapest order, whatever the order in which
they were multiplied: the compiler sees them in one statement.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import SupportsIndex

import numpy as np

from ucle.errors import ArgumentTypeError, AxisError, BoundError, LabelError, MeaningWarning
from ucle.foundation.logs import warn_caller
from ucle.language.subscripts import parse_string, resolve
from ucle.lazy.axes import AxisLike, check_axis_names, find_axes, find_axis, permute_axes
from ucle.lazy.elementwise import check_names, elementwise, merge_axes
from ucle.lazy.nodes import Axis, Lazy, apply
from ucle.operators import (
    CONJ,
    MULT,
)

Labels = Sequence[int]


def contract_tensors(
    tensors: Sequence[Lazy],
    labels: Sequence[Labels],
    output: Labels,
    where: str,
    *,
    reduce: str = "dot",
) -> Lazy:
    """Multiply tensors and sum over the labels that are missing in the output.

    An axis of size 1 is broadcast. Products of booleans are combined by `or` instead of a sum.
    """
    check_names(tensors, where)
    axes_of: dict[int, list[Axis]] = {}
    for tensor, own in zip(tensors, labels, strict=True):
        for axis, label in zip(tensor.axes, own, strict=True):
            axes_of.setdefault(label, []).append(axis)
    axes = {label: merge_axes(same, where) for label, same in axes_of.items()}
    operands = [tensor.operand(own) for tensor, own in zip(tensors, labels, strict=True)]
    summed = any(label not in output for label in axes)
    check_axis_names([name for x in output if (name := axes[x].name) is not None])
    return apply(
        MULT.name if len(operands) > 1 else None,
        operands,
        [axes[label] for label in output],
        output,
        reduce=reduce if summed else None,
    )


def _notice_scalar(tensor: Lazy) -> None:
    """Warn that a product of matrices with the same names of axes is one number."""
    first, last = (str(tensor.axes[place].name) for place in (0, -1))
    warn_caller(
        f"@ sums over all axes that both sides have, {tensor}, so that this is one number; "
        f"for the product of matrices, the last axis of one has the name of the first of the "
        f"other: A.rename({{{last!r}: 'between'}}) @ B.rename({{{first!r}: 'between'}})",
        MeaningWarning,
    )


def matmul(left: Lazy, right: Lazy) -> Lazy:
    """``left @ right``: sum over the last axis of left and the second last of right, as in NumPy.

    For named axes, sum over those that both have: the order of axes has no meaning.

    Raises:
        LabelError: a scalar, or named axes of which none is shared.
        BoundError: sizes that do not match.
    """
    for tensor in (left, right):
        if not tensor.axes:
            raise LabelError(
                "a scalar has no axis to sum over",
                where="@",
                expected="tensors with at least one axis",
                found=f"{left} @ {right}",
                hint="* multiplies by a number",
            )
    check_names([left, right], "@")
    if left.named:
        shared = [a.name for a in left.axes if a.name in {b.name for b in right.axes}]
        if not shared:
            raise LabelError(
                "the tensors have no axis in common",
                where="@",
                expected="an axis of the same name in both, which is summed over",
                found=f"{left} @ {right}",
                hint="t.rename({'old': 'new'}) gives an axis the name of another",
            )
        if len(shared) > 1 and len(shared) == len(left.axes) == len(right.axes):
            _notice_scalar(left)
        return dot(left, right, [name for name in shared if name is not None])
    inner = find_axis(right, -2 if len(right.axes) > 1 else 0, "@")
    _check_same(left, len(left.axes) - 1, right, inner, "@")
    rank = max(len(left.axes), len(right.axes), 2)
    batch = list(range(rank - 2))
    row, column, summed = rank - 2, rank - 1, rank
    left_batch = batch[len(batch) - max(len(left.axes) - 2, 0) :]
    right_batch = batch[len(batch) - max(len(right.axes) - 2, 0) :]
    left_labels = [*left_batch, row, summed] if len(left.axes) > 1 else [summed]
    right_labels = [*right_batch, summed, column] if len(right.axes) > 1 else [summed]
    output = [
        *batch,
        *([row] if len(left_labels) > 1 else []),
        *([column] if len(right_labels) > 1 else []),
    ]
    return contract_tensors([left, right], [left_labels, right_labels], output, f"{left} @ {right}")


def dot(left: Lazy, right: Lazy, axis: AxisLike | Sequence[AxisLike]) -> Lazy:
    """Multiply and sum over axes that both have by name; other axes of the same name are aligned.

    Raises:
        AxisError: one of them does not have the axis.
        LabelError: axes without names.
    """
    check_names([left, right], "dot")
    for tensor in (left, right):
        if not tensor.named:
            raise LabelError(
                "dot over an axis goes by names",
                where="dot",
                expected="tensors with named axes",
                found=f"{left} and {right}",
                hint="name them with t.named(...), or use @, tensordot or einsum",
            )
    over = {left.axes[place].name for place in find_axes(left, axis, "dot")}
    find_axes(right, [name for name in over if name is not None], "dot")
    names = list(dict.fromkeys(a.name for tensor in (left, right) for a in tensor.axes))
    labels = [[names.index(axis.name) for axis in tensor.axes] for tensor in (left, right)]
    output = [n for n, name in enumerate(names) if name not in over]
    return contract_tensors([left, right], labels, output, f"{left} dot {right}")


def tensordot(
    left: Lazy, right: Lazy, axes: int | tuple[Sequence[AxisLike], Sequence[AxisLike]]
) -> Lazy:
    """Multiply and sum over the last axes of left and the first of right, or over pairs of axes.

    Raises:
        AxisError: too many axes, or different numbers of them for the two tensors.
        BoundError: sizes that do not match.
    """
    rank = len(left.axes)
    if isinstance(axes, SupportsIndex) and not np.ndim(axes):
        axes = operator.index(axes)
        if not 0 <= axes <= min(rank, len(right.axes)):
            raise AxisError(
                "the tensors do not have so many axes",
                where="tensordot",
                expected=f"0 to {min(rank, len(right.axes))}",
                found=str(axes),
            )
        pairs = (range(rank - axes, rank), range(axes))
    else:
        if isinstance(axes, str) or not isinstance(axes, Sequence) or len(axes) != 2:
            raise ArgumentTypeError(
                "these are not axes to sum over",
                where="tensordot",
                expected="a number of axes, or a pair of lists of axes",
                found=repr(axes)[:80],
            )
        left_axes, right_axes = (
            find_axes(t, a, "tensordot") for t, a in zip((left, right), axes, strict=True)
        )
        if len(left_axes) != len(right_axes):
            raise AxisError(
                "the axes do not come in pairs",
                where="tensordot",
                expected=f"{len(left_axes)} axes of the second tensor",
                found=str(len(right_axes)),
            )
        pairs = (left_axes, right_axes)  # type: ignore[assignment]
    summed = dict(zip(pairs[1], pairs[0], strict=True))
    for theirs, ours in summed.items():
        _check_same(left, ours, right, theirs, "tensordot")
    labels = [summed.get(n, rank + n) for n in range(len(right.axes))]
    output = [n for n in range(rank) if n not in pairs[0]]
    output += [rank + n for n in range(len(right.axes)) if n not in summed]
    return contract_tensors([left, right], [range(rank), labels], output, "tensordot")


def vecdot(left: Lazy, right: Lazy, axis: AxisLike) -> Lazy:
    """Inner products along an axis of both, the first conjugated; other axes are broadcast."""
    _check_same(
        left, find_axis(left, axis, "vecdot"), right, find_axis(right, axis, "vecdot"), "vecdot"
    )
    if isinstance(axis, str):
        return dot(elementwise(CONJ.name, left), right, axis)
    last = [
        permute_axes(t, [*(n for n in range(len(t.axes)) if n != place), place])
        for t in (left, right)
        for place in (find_axis(t, axis, "vecdot"),)
    ]
    ranks = [len(tensor.axes) for tensor in last]
    labels = [range(max(ranks) - rank, max(ranks)) for rank in ranks]
    conjugated = elementwise(CONJ.name, last[0])
    return contract_tensors([conjugated, last[1]], labels, range(max(ranks) - 1), "vecdot")


def outer(left: Lazy, right: Lazy) -> Lazy:
    """Multiply every entry of one vector by every entry of the other.

    Raises:
        LabelError: a tensor's rank is not 1.
    """
    if len(left.axes) != 1 or len(right.axes) != 1:
        raise LabelError(
            "outer takes two vectors",
            where="outer",
            expected="one axis each",
            found=f"{left} and {right}",
            hint="tensordot(a, b, 0) gives the outer product of any two tensors",
        )
    return tensordot(left, right, 0)


def einsum(subscripts: str, tensors: Sequence[Lazy]) -> Lazy:
    """NumPy's einsum: labels are single letters, an ellipsis is broadcast.

    Raises:
        ProgramError: the subscripts do not follow NumPy's rules, or do not fit the tensors.
        BoundError: sizes that do not match.
    """
    resolved = resolve(parse_string(subscripts), [len(tensor.axes) for tensor in tensors])
    numbers = {label: n for n, label in enumerate(resolved.labels)}
    labels = [[numbers[x] for x in own] for own in resolved.operands]
    bare = [_diagonal(*pair) for pair in zip(tensors, labels, strict=True)]
    output = [numbers[x] for x in resolved.output]
    return contract_tensors(
        [t for t, _ in bare], [own for _, own in bare], output, f"einsum {subscripts!r}"
    )


def _diagonal(tensor: Lazy, labels: Labels) -> tuple[Lazy, Labels]:
    """Make all labels of a tensor different by taking the diagonal along repeated labels."""
    own = tuple(dict.fromkeys(labels))
    if len(own) == len(labels):
        return tensor, labels
    axes = [
        merge_axes([a for a, x in zip(tensor.axes, labels, strict=True) if x == label], "diagonal")
        for label in own
    ]
    return apply(None, [tensor.operand(labels)], axes, own), own


def _check_same(left: Lazy, left_axis: int, right: Lazy, right_axis: int, where: str) -> None:
    """Check that axes to be summed over have equal sizes; they are not broadcast."""
    sizes = left.axes[left_axis].size, right.axes[right_axis].size
    if None not in sizes and sizes[0] != sizes[1]:
        raise BoundError(
            "the sizes of the axes to sum over differ",
            where=f"{where}, {left} and {right}",
            expected=f"size {sizes[0]}, as axis {left_axis} of the first",
            found=f"size {sizes[1]}, axis {right_axis} of the second",
            hint="t.T and t.permute_dims(...) change the order of axes",
        )
