"""A compiled program as HTML, for notebooks: its picture, decomposition, statistics and SQL."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from ucle.explain.drawing import can_draw, svg
from ucle.explain.model import Explanation
from ucle.explain.text import Section

# Jupyter aligns the cells of tables to the right, in rules that are more specific than ours.
STYLE = """
.ucle { font: 13px/1.45 system-ui, sans-serif; color: inherit; }
.ucle summary { cursor: pointer; font-weight: 600; margin: .4em 0 .2em; }
.ucle summary small { font-weight: 400; }
.ucle details { overflow-x: auto; }
.ucle table { border-collapse: collapse; margin: .2em 0 .6em; }
.ucle th, .ucle td { text-align: left !important; padding: .1em .9em .1em 0; vertical-align: top;
  font: 12px/1.45 ui-monospace, monospace; white-space: nowrap; }
.ucle th { border-bottom: 1px solid #9995; font-weight: 600; }
.ucle figure { background: #fff; border-radius: 4px; overflow-x: auto; margin: .4em 0;
  width: fit-content; max-width: 100%; }
.ucle svg { display: block; height: auto; max-width: max(100%, 40em); }
.ucle pre { font: 12px/1.4 ui-monospace, monospace; overflow-x: auto; }
"""
"""The picture has colours of its own, hence the white. What is too wide for a screen scrolls, the
picture only where it would shrink so far that it could not be read."""

OPEN = ("Decomposition",)
"""Sections that are unfolded from the start."""


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
    parts = [f'<div class="ucle"><style>{STYLE}</style>']
    parts.append(f"<p>{'<br>'.join(map(escape, head))}</p>")
    if can_draw():
        parts.append(f"<figure>{svg(explanation)}</figure>")
    for section in sections:
        unfolded = " open" if section.title in OPEN else ""
        note = f" <small>({escape(section.note)})</small>" if section.note else ""
        parts.append(f"<details{unfolded}><summary>{escape(section.title)}{note}</summary>")
        parts.append(_table(section) + "</details>")
    parts.append(f"<details><summary>SQL</summary><pre>{escape(sql)}</pre></details></div>")
    return "\n".join(parts)


def _table(section: Section) -> str:
    rows = [_row(section.header, "th")] if section.header else []
    rows += [_row(row, "td") for row in section.rows]
    return f"<table>{''.join(rows)}</table>"


def _row(cells: Sequence[str], tag: str) -> str:
    return f"<tr>{''.join(f'<{tag}>{escape(cell)}</{tag}>' for cell in cells)}</tr>"
