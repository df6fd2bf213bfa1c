"""The picture of the README: a program on its way to rows, with what ucle says at each station.

`picture` compiles and runs the program that it shows. There is a picture for light pages and one
for dark ones; ``tests/project/test_docs.py`` compares them with what is kept, as it does pages.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from xml.sax.saxutils import escape

import numpy as np

import ucle

PROGRAM = """\
T[i,m] += A[i,l] * H[l,m]
Z[i,n]  = relu(T[i,m] * W[m,n])"""

SQL = (
    "SELECT A.i, sum_vec_sca_mult_16(",
    "         Z_1.val, A.val) AS val",
    "FROM A JOIN Z_1 ON A.l = Z_1.l",
    "GROUP BY A.i",
)
"""The second step, without its quotation marks and the names that tables have anyway."""

ROWS, NUMBERS = 2, 4

LIGHT = {
    "ink": "#1f2328",
    "soft": "#59636e",
    "edge": "#8c959f",
    "box": "#f6f8fa",
    "mark": "#0550ae",
}
DARK = {"ink": "#e6edf3", "soft": "#9198a1", "edge": "#6e7681", "box": "#161b22", "mark": "#79c0ff"}

WIDTH, HIGH, GAP = 400, 150, 44
"""Of a box, and between boxes, in pixels."""

MARGIN, LINE, SIZE = 6, 20, 14


@dataclass(frozen=True)
class Station:
    """A box: its title, what is said below it, and lines of code."""

    title: str
    said: str
    lines: Sequence[str]


@cache
def stations() -> tuple[Station, ...]:
    """What happens to the program of the README."""
    with ucle.connect() as connection:
        connection.execute("""
            CREATE TABLE edges AS
            SELECT i AS src, (i * 7 + k * 13) % 1000 AS dst, 0.2 AS weight
            FROM range(1000) t(i), range(5) s(k)
        """)
        connection.execute("""
            CREATE TABLE features AS
            SELECT i AS node, list(sin(i * j) ORDER BY j) AS val
            FROM range(1000) t(i), range(64) s(j) GROUP BY i
        """)
        program = ucle.einsum_program(
            PROGRAM,
            A="edges",
            H="features",
            W=np.random.default_rng(0).normal(size=(64, 16)),
            database=connection,
        )
        script = re.sub(r' AS "\w+"(?= JOIN| ON)', "", " ".join(program.to_sql().split()))
        assert "".join(SQL).replace(" ", "") in script.replace('"', "").replace(" ", "")
        with program.execute() as result:
            rows = result["Z"].first_rows(ROWS, NUMBERS)
            count = result["Z"].count_stored()
    shown = [f"{i}  [{', '.join(f'{x:.2f}' for x in row)}, ...]" for i, row in rows]
    return (
        Station("EinSum program", "index notation, or lazy tensors", PROGRAM.splitlines()),
        Station(
            "Decomposition",
            "UPPER case: key columns, lower case: in arrays",
            str(program).splitlines(),
        ),
        Station("SQL", "joins and groups, arrays by C kernels", SQL),
        Station(
            "DuckDB",
            "rows with arrays: what is dense is inside",
            ["i  val DOUBLE[16]", *shown, f"...  {count:,} rows"],
        ),
    )


def picture(colours: Mapping[str, str]) -> str:
    """The stations as SVG, two in a row, with an arrow from each to the next.

    Args:
        colours: `LIGHT` or `DARK`.
    """
    wide = 2 * (WIDTH + MARGIN) + GAP
    high = 2 * (HIGH + MARGIN) + GAP
    left, right = MARGIN, MARGIN + WIDTH + GAP
    top, low = MARGIN, MARGIN + HIGH + GAP
    places = ((left, top), (right, top), (right, low), (left, low))
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {high}" width="{wide}" '
        f'height="{high}" font-family="ui-monospace, monospace" font-size="{SIZE}">',
        "<title>A program, its decomposition, its SQL, and rows with arrays in DuckDB</title>",
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" '
        f'markerHeight="8" orient="auto"><path d="M0 0 8 4 0 8z" fill="{colours["mark"]}"/>'
        "</marker></defs>",
    ]
    for number, (station, place) in enumerate(zip(stations(), places, strict=True), start=1):
        lines += _box(station, number, place, colours)
    middle, centre = HIGH / 2, WIDTH / 2
    for start, end in (
        ((left + WIDTH, top + middle), (right, top + middle)),
        ((right + centre, top + HIGH), (right + centre, low)),
        ((right, low + middle), (left + WIDTH, low + middle)),
    ):
        lines.append(
            f'<path d="M{start[0]:.0f} {start[1]:.0f}L{end[0]:.0f} {end[1]:.0f}" '
            f'stroke="{colours["mark"]}" stroke-width="2" marker-end="url(#tip)"/>'
        )
    return "\n".join([*lines, "</svg>", ""])


def _box(
    station: Station, number: int, place: tuple[int, int], colours: Mapping[str, str]
) -> Iterator[str]:
    x, y = place
    yield (
        f'<rect x="{x}" y="{y}" width="{WIDTH}" height="{HIGH}" rx="8" fill="{colours["box"]}" '
        f'stroke="{colours["edge"]}"/>'
    )
    x += 14
    yield (
        f'<text x="{x}" y="{y + 25}" font-family="system-ui, sans-serif" font-weight="600" '
        f'fill="{colours["ink"]}"><tspan fill="{colours["mark"]}">{number}</tspan> '
        f"{escape(station.title)}</text>"
    )
    yield (
        f'<text x="{x}" y="{y + 45}" font-family="system-ui, sans-serif" font-size="13" '
        f'fill="{colours["soft"]}">{escape(station.said)}</text>'
    )
    for count, line in enumerate(station.lines):
        yield (
            f'<text x="{x}" y="{y + 71 + LINE * count}" xml:space="preserve" '
            f'fill="{colours["ink"]}">{escape(line)}</text>'
        )


def light() -> str:
    """The picture for light pages."""
    return picture(LIGHT)


def dark() -> str:
    """The picture for dark pages."""
    return picture(DARK)
