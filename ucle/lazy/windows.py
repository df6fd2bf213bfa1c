"""Windows along an axis: aggregates of the last k positions, or of those around.

An aggregate of a long window is one of two shorter ones: the aggregates of 1, 2, 4, 8 ... positions
give that of k positions in about 2 log2(k) additions, each of tensors with the axes of the input.
No sum is taken back, so that NaN and infinity stay in the windows that they lie in, and sums are as
exact as sums of pairs are.
"""

from __future__ import annotations

from collections.abc import Callable

from ucle.foundation.dataclasses import dataclass
from ucle.lazy.elementwise import elementwise
from ucle.lazy.nodes import Lazy
from ucle.lazy.positions_in_order import exists, moved_along
from ucle.operators import ADD, DIV, GREATEST, MULT, SQUARE, SUB, WHEN


@dataclass(frozen=True)
class Part:
    """Something that is known about each window, such as its sum or its count."""

    values: Lazy
    nothing: str
    """The ⊗ that gives a window without positions its value: 0 (``when``), or an end of numbers."""
    empty: bool
    """True if that is also the fill of the values, so that it comes in at the ends by itself."""


Parts = tuple[Part, ...]


@dataclass(frozen=True)
class Window:
    """The positions of a window: so many up to an entry, itself among them, and so many behind."""

    before: int
    behind: int = 0

    @staticmethod
    def of(size: int, center: bool) -> Window:
        """A window of a size that ends at an entry, or has it in the middle, as in pandas."""
        behind = (size - 1) // 2 if center else 0
        return Window(size - behind, behind)


Join = Callable[[Parts, Parts], Parts]
"""How the windows of two neighbouring blocks of positions become one."""


def along_windows(
    parts: Parts, place: int, window: Window, join: Join, order: Lazy, *, repeats: bool = False
) -> Parts:
    """Aggregate the windows at all positions of an axis.

    Args:
        parts: what is known about the single entries.
        place: the axis.
        window: the positions of a window.
        join: the aggregation.
        order: the `ordinals` of the axis.
        repeats: True if entries may count twice, as for the least of them.
    """
    if order.axes[place].unit:
        return parts

    def moved(these: Parts, by: int) -> Parts:
        return tuple(_moved(part, place, by, order) for part in these)

    def one_sided(size: int, direction: int) -> Parts:
        block, length, result, done = parts, 1, None, 0
        while True:
            if repeats and size < 2 * length:
                return join(block, moved(block, direction * (size - length)))
            if not repeats and size & length:
                far = moved(block, direction * done) if done else block
                result = far if result is None else join(result, far)
                done += length
            if done == size:
                assert result is not None
                return result
            block = join(block, moved(block, direction * length))
            length *= 2

    up_to = one_sided(window.before, 1)
    if not window.behind:
        return up_to
    return join(up_to, moved(one_sided(window.behind, -1), -1))


def _moved(part: Part, place: int, by: int, order: Lazy) -> Part:
    """A part at the position `by` places before, which is that of nothing beyond the ends."""
    values = moved_along(part.values, place, by)
    if not part.empty:
        values = elementwise(part.nothing, exists(order, place, by), values)
    return Part(values, part.nothing, part.empty)


def join_by(operator: str) -> Join:
    """The join of windows whose only part is an aggregate by a ⊗, such as a sum."""

    def join(one: Parts, other: Parts) -> Parts:
        (a,), (b,) = one, other
        return (Part(elementwise(operator, a.values, b.values), a.nothing, a.empty and b.empty),)

    return join


def join_moments(one: Parts, other: Parts) -> Parts:
    """Counts, means and sums of squared distances from the mean, of two windows together.

    A single entry has no such sum yet.

    Source: Chan, Golub and LeVeque, "Updating formulae and a pairwise algorithm for computing
    sample variances" (1979).
    """
    (n, mean, *squares), (more, other_mean, *other_squares) = one, other
    count = elementwise(ADD.name, n.values, more.values)
    share = elementwise(DIV.name, more.values, elementwise(GREATEST.name, count, 1))
    apart = elementwise(SUB.name, other_mean.values, mean.values)
    weight = elementwise(MULT.name, n.values, share)
    both = elementwise(MULT.name, elementwise(SQUARE.name, apart), weight)
    for each in (*squares, *other_squares):
        both = elementwise(ADD.name, both, each.values)
    joint = elementwise(ADD.name, mean.values, elementwise(MULT.name, apart, share))
    empty = mean.empty and other_mean.empty
    return (
        Part(count, WHEN.name, n.empty and more.empty),
        Part(joint, WHEN.name, empty),
        Part(both, WHEN.name, empty),
    )
