"""HTML for notebooks: escaped, of bounded size, in the colours of the page.

In: texts from any source. Out: one element. The contents come from the packages that know them
(`ucle.lazy.description`, `ucle.run.description`, `ucle.explain.text`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

# Jupyter aligns the cells of tables to the right, in rules that are more specific than ours.
STYLE = """
.ucle { font: 13px/1.45 system-ui, sans-serif; color: inherit; }
.ucle p { margin: .2em 0 .4em; overflow-wrap: anywhere; }
.ucle summary { cursor: pointer; font-weight: 600; margin: .4em 0 .2em; }
.ucle summary small { font-weight: 400; }
.ucle details, .ucle .wide { overflow-x: auto; }
.ucle table { border-collapse: collapse; margin: .2em 0 .6em; }
.ucle th, .ucle td { text-align: left !important; padding: .1em .9em .1em 0; vertical-align: top;
  font: 12px/1.45 ui-monospace, monospace; white-space: nowrap; }
.ucle th { border-bottom: 1px solid #9995; font-weight: 600; }
.ucle pre { font: 12px/1.4 ui-monospace, monospace; overflow-x: auto; }
"""
"""Styles with no colour except a grey that suits both light and dark pages; wide parts scroll."""

LONGEST = 200
"""The most characters of a name or a cell that are shown."""

LONGEST_LINE = 2000
"""The most characters of a line that are shown: it may scroll."""

MOST = 100
"""The most rows of a table, or lines of a text, that are shown."""


def element(parts: Iterable[str], style: str = "") -> str:
    """Return parts that are HTML as one element, with their style rules."""
    return "\n".join([f'<div class="ucle"><style>{STYLE}{style}</style>', *parts, "</div>"])


def title(name: str, rest: str = "") -> str:
    """Return the top line: the name in bold, and a description."""
    return f"<p><b>{text(name)}</b> {text(rest)}</p>"


def paragraph(lines: Iterable[str]) -> str:
    """Return lines below each other."""
    return f"<p>{'<br>'.join(text(line, LONGEST_LINE) for line in lines)}</p>"


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table; without a header where that is empty.

    >>> print(table(("axis",), [("<i>",)]))
    <div class="wide"><table><tr><th>axis</th></tr><tr><td>&lt;i&gt;</td></tr></table></div>
    """
    shown = [_row(header, "th")] if header else []
    shown += [_row(row, "td") for row in rows[:MOST]]
    if len(rows) > MOST:
        shown.append(_row([f"... {len(rows) - MOST:,} more"], "td"))
    return f'<div class="wide"><table>{"".join(shown)}</table></div>'


def code(lines: Sequence[str], most: int = MOST) -> str:
    """Return lines of a program, only the first ones where there are many."""
    shown = [text(line, LONGEST_LINE) for line in lines[:most]]
    if len(lines) > most:
        shown.append(f"... {len(lines) - most:,} more lines")
    joined = "\n".join(shown)
    return f"<pre>{joined}</pre>"


def fold_section(name: str, inner: str, note: str = "", *, unfolded: bool = False) -> str:
    """Return a part that opens on a click; `inner` is HTML."""
    said = f" <small>({text(note)})</small>" if note else ""
    state = " open" if unfolded else ""
    return f"<details{state}><summary>{text(name)}{said}</summary>{inner}</details>"


def text(value: str, longest: int = LONGEST) -> str:
    """Escape a text for HTML, truncated where it is long.

    >>> text("<b>")
    '&lt;b&gt;'
    """
    return escape(value if len(value) <= longest else value[: longest - 3] + "...")


def _row(cells: Sequence[str], tag: str) -> str:
    return f"<tr>{''.join(f'<{tag}>{text(cell)}</{tag}>' for cell in cells)}</tr>"
