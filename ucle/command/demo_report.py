"""How the demo says things: sections, quotations and small tables in plain text."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence

from ucle.explain.columns import aligned

Echo = Callable[[str], object]


def abridged(lines: Sequence[str], keep: int, note: str, last: int) -> list[str]:
    """The first lines, and a note in place of the rest, if there is one."""
    if len(lines) <= keep:
        return list(lines)
    return [*lines[:keep], f"  ... {note.format(last)}"]


def heading(echo: Echo, text: str) -> None:
    """Print the title of a section."""
    echo(f"\n{text}\n{'=' * len(text)}")


def indented(text: str) -> str:
    """Text moved to the right, as quotations are."""
    return textwrap.indent(text.rstrip(), "  ")


def echo_rows(echo: Echo, header: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> None:
    """Print a small table."""
    echo("\n".join(aligned([header, *rows])))
