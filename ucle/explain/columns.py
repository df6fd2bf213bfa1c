"""Rows as lines of plain text with aligned columns, for a terminal of `WIDTH` columns.

Only names and other text without a break point make a line longer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

WIDTH = 80
"""Columns of a terminal."""

INDENT, GAP = "  ", "  "
"""The space before each row, and between its cells."""

NARROWEST = 8
"""Letters of a column whose names are too long: the next cells are put below them."""

PIECE = re.compile(r"\S+?(?:,(?![\d\s])|(?=\s)|$)\s*")
"""An unbreakable piece: lines end at a space, or after a comma that is not inside a number."""


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return rows as indented lines, however wide they are."""
    return [_line(row, _widths(rows)) for row in rows]


def fitted(rows: Sequence[Sequence[str]], width: int = WIDTH) -> list[str]:
    r"""Rows as indented lines of this width: the widest cells are broken where they are too wide.

    >>> print(*fitted([("view", "Z[i,k] += A[i,j] * B[j,k]")], width=24), sep="\n")
      view  Z[i,k] += A[i,j]
              * B[j,k]
    """
    widths = _widths(rows)
    spare = width - len(INDENT) - len(GAP) * (len(widths) - 1)
    least = [max(_least(row[n]) for row in rows) for n in range(len(widths))]
    # Breaking the widest cells costs least. Cells that cannot be broken come next, and the last
    # column at the end.
    for floors, until in (
        (least, len(widths)),
        ([NARROWEST] * len(widths), len(widths) - 1),
        ([NARROWEST] * len(widths), len(widths)),
    ):
        while sum(widths) > spare:
            wide = [n for n in range(until) if widths[n] > floors[n]]
            if not wide:
                break
            widths[max(wide, key=widths.__getitem__)] -= 1
    return [line for row in rows for line in _row(row, widths)]


def stacked(rows: Sequence[Sequence[str]], width: int = WIDTH) -> list[str]:
    r"""Rows of two cells beside each other where they all fit, else below each other.

    >>> rows = [("y[I] += A[I,J] * x[J]", "A(i INTEGER, val DOUBLE)"), ("", "x(val DOUBLE)")]
    >>> print(*stacked(rows, width=40), sep="\n")
      y[I] += A[I,J] * x[J]
          A(i INTEGER, val DOUBLE)
          x(val DOUBLE)
    """
    beside = aligned(rows)
    if all(len(line) <= width for line in beside):
        return beside
    return [
        indent + line
        for first, second in rows
        for indent, cell in ((INDENT, first), (3 * INDENT, second))
        for line in wrapped(cell, width - len(indent))
        if line
    ]


def wrapped(text: str, width: int = WIDTH) -> list[str]:
    """Return a text as lines of this width, those after the first one indented.

    >>> wrapped("search: the optimum of 2^16", 20)
    ['search: the optimum', '  of 2^16']
    """
    lines, line = [], ""
    for piece in PIECE.findall(text):
        if line.strip() and len(line) + len(piece.rstrip()) > width:
            lines.append(line.rstrip())
            line = INDENT
        line += piece
    return [*lines, line.rstrip()]


def _widths(rows: Sequence[Sequence[str]]) -> list[int]:
    return [max(len(row[n]) for row in rows) for n in range(len(rows[0]))] if rows else []


def _least(cell: str) -> int:
    """The smallest width of a cell."""
    first, *rest = [len(piece.rstrip()) for piece in PIECE.findall(cell)] or [0]
    return max([first, *(len(INDENT) + size for size in rest)])


def _row(cells: Sequence[str], widths: Sequence[int]) -> Iterator[str]:
    """Yield the lines of a row; the cells after a name that is too long are below it."""
    begun = 0
    for place in range(len(cells)):
        if place + 1 < len(cells) and _least(cells[place]) <= widths[place]:
            continue
        shown = [cell if begun <= n <= place else "" for n, cell in enumerate(cells)]
        broken = [wrapped(cell, width) for cell, width in zip(shown, widths, strict=True)]
        for number in range(max(map(len, broken))):
            yield _line([x[number] if number < len(x) else "" for x in broken], widths)
        begun = place + 1


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = (cell.ljust(width) for cell, width in zip(cells, widths, strict=True))
    return INDENT + GAP.join(padded).rstrip()
