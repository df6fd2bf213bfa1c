"""Report of the demo: sections, quotations and small tables in plain text."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from itertools import takewhile

import click

from ucle.explain.columns import align_rows
from ucle.program import EinsumProgram

Echo = Callable[[str], object]


def heading(echo: Echo, text: str) -> None:
    """Print the title of a section."""
    echo("\n" + click.style(text, bold=True))


def indented(text: str) -> str:
    """Text moved to the right, as quotations are."""
    return textwrap.indent(text.rstrip(), "  ")


def echo_rows(echo: Echo, header: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> None:
    """Print a small table."""
    echo("\n".join(align_rows([header, *rows])))


def statement_that_matters(program: EinsumProgram) -> str:
    """The SELECT of the most expensive vertex that has one; empty if none has one of its own.

    Vertices of a tape share a call, which says nothing of any of them.
    """
    lines = program.to_sql().splitlines()
    decompositions = program.compiled.decomposed.decompositions
    vertices = program.compiled.program.by_name
    for name in sorted(vertices, key=lambda name: -program.costs[name].total):
        comment = f"/* {vertices[name].text(decompositions[name])} */"
        if (found := _under(comment, lines)) is not None:
            return found
    return ""


def _under(comment: str, lines: Sequence[str]) -> str | None:
    """The text below a comment in a script, to the end of the enclosing parenthesis."""
    places = [number for number, line in enumerate(lines) if line.strip() == comment]
    if not places or lines[places[0] + 1].strip() != "SELECT":
        return None
    start = places[0]
    depth = len(lines[start]) - len(lines[start].lstrip())
    body = takewhile(lambda line: line.startswith(" " * depth) or not line, lines[start:])
    return textwrap.dedent("\n".join(body))
