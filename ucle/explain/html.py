"""A compiled program as HTML, for notebooks: its picture, decomposition, statistics and SQL."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ucle.explain.drawing import can_draw, svg
from ucle.explain.model import Explanation
from ucle.explain.text import Section
from ucle.foundation import html

STYLE = """
.ucle figure { background: #fff; border-radius: 4px; overflow-x: auto; margin: .4em 0;
  width: fit-content; max-width: 100%; }
.ucle svg { display: block; height: auto; max-width: max(100%, 40em); }
"""
"""The picture has colours of its own, hence the white. It scrolls only where it would shrink so far
that it could not be read."""

OPEN = ("Decomposition",)
"""Sections that are unfolded from the start."""

DRAWN = 60
"""Inputs and vertices up to which there is a picture: with more nothing in it can be read."""

LINES = 400
"""Lines of SQL that are shown."""


def explain_html(
    explanation: Explanation, head: Sequence[str], sections: Iterable[Section], sql: str
) -> str:
    """The explanation of a program as one HTML element.

    Args:
        explanation: for the picture, which is there where python-igraph is.
        head: lines about the whole program.
        sections: tables, as in the text.
        sql: the script.
    """
    parts = [html.paragraph(head)]
    if can_draw() and len(explanation.nodes) <= DRAWN:
        parts.append(f"<figure>{svg(explanation)}</figure>")
    for section in sections:
        shown = html.table(section.header, section.rows)
        unfolded = section.title in OPEN
        parts.append(html.folded(section.title, shown, section.note, unfolded=unfolded))
    parts.append(html.folded("SQL", html.code(sql.splitlines(), LINES)))
    return html.element(parts, STYLE)
