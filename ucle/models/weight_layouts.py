"""The layout in which a weight is stored: what the statements that read it want.

DuckDB reads 2,048 rows of a table at a time. So arrays in the rows of a large weight are short:
otherwise a few of them would exceed the memory limit, whatever the plan is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ucle.foundation.dataclasses import dataclass
from ucle.language.parse import parse_program
from ucle.language.syntax import Access, Statement, accesses

LARGE = 1 << 22
"""Bytes from which a weight is divided among rows."""

TUPLE = 1 << 10
"""The most bytes of a tile: 2,048 of them take 2 MB, which a thread holds several times."""

LOOKED_UP = 1 << 13
"""The most bytes of the entries at one position of an axis that is looked up by entries."""

LARGEST_TILE = 32
"""The largest size of a tile of a matrix."""


@dataclass(frozen=True)
class WeightLayout:
    """How the rows of a table hold a weight.

    Args:
        blocks: for each of the first axes the size of its tiles, or 1 where the key is a position;
            arrays in the rows hold a block, over all axes. Empty: one row with the whole weight.
        order: these axes in the order by which rows are sorted.
    """

    blocks: tuple[int, ...] = ()
    order: tuple[int, ...] = ()


def choose_layouts(
    statements: Sequence[str], shapes: dict[str, tuple[tuple[int, ...], int]]
) -> dict[str, WeightLayout]:
    """Return the layout of each weight.

    Args:
        statements: of the model.
        shapes: by the names of weights their shapes, and the bytes of an entry.

    >>> statements = ["y[r,i] += x[r,j] * W[j,i]", "z[r,j] = E[ids[r],j]"]
    >>> shapes = {"W": ((4096, 1024), 4), "E": ((50000, 384), 4), "b": ((1024,), 4)}
    >>> for name, layout in choose_layouts(statements, shapes).items():
    ...     print(name, layout.blocks, layout.order)
    W (16, 16) (1, 0)
    E (1,) (0,)
    b () ()
    """
    large = {x for x, (shape, each) in shapes.items() if math.prod(shape) * each > LARGE}
    uses: dict[str, list[tuple[Statement, Access]]] = {name: [] for name in large}
    for statement in parse_program("\n".join(statements)) if large else ():
        for access in accesses(statement.expression):
            if access.tensor in large:
                uses[access.tensor].append((statement, access))
    return {
        name: _divide(*of, uses[name]) if name in large else WeightLayout()
        for name, of in shapes.items()
    }


def _divide(
    shape: tuple[int, ...], each: int, uses: Sequence[tuple[Statement, Access]]
) -> WeightLayout:
    """Return the layout of a large weight."""
    looked_up = {
        axis
        for _, access in uses
        for axis, index in enumerate(access.indices or ())
        if index.entries is not None
    }
    grouped = {
        axis
        for statement, access in uses
        for axis, label in enumerate(access.axis_names)
        if label in statement.target.labels
    }
    rest = math.prod(shape[1:]) * each
    if looked_up == {0} and rest <= LOOKED_UP:
        blocks: tuple[int, ...] = (1,)
    else:
        blocks = _tile(shape, each)
    order = sorted(range(len(blocks)), key=lambda axis: axis not in grouped)
    return WeightLayout(blocks, tuple(order))


def _tile(shape: tuple[int, ...], each: int) -> tuple[int, ...]:
    """Return the blocks of the leading axes that make the arrays of rows short enough.

    The two longest axes are tiled. Of the others, those before the last of these are positions, and
    so are those behind them that would make a tile of one position too long.
    """
    longest = sorted(sorted(range(len(shape)), key=lambda axis: -shape[axis])[:2])
    last = longest[-1]
    while last + 1 < len(shape) and math.prod(shape[last + 1 :]) * each > TUPLE:
        last += 1
    entries = TUPLE // (math.prod(shape[last + 1 :]) * each)
    most = entries if len(longest) == 1 else min(math.isqrt(entries), LARGEST_TILE)
    tile = 1 << (max(most, 1).bit_length() - 1)
    return tuple(tile if axis in longest else 1 for axis in range(last + 1))
