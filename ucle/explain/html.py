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
"""The picture has its own colours, hence the white. It scrolls rather than become illegible."""

OPEN = ("Decomposition",)
"""Sections that are open from the start."""

DRAWN = 60
"""Inputs and vertices up to which a picture is drawn: larger ones are unreadable."""

LINES = 400
"""Lines of SQL that are shown."""


def explain_html(
    explanation: Explanation, head: Sequence[str], sections: Iterable[Section], sql: str
) -> str:
    """Return the explanation of a program as one HTML element.

    Args:
        explanation: for the picture, which needs python-igraph.
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
