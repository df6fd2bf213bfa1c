"""Reads a Markdown page as its reader would: its code blocks, what they print, and its links.

Python blocks of a page run in order in one namespace, and shell blocks that call `ucle` run in
bash, after the Python session has ended. What a block prints is the ``text`` or ``sql`` block that
follows it; ``...`` in there stands for anything. A ``py`` block is Python that is part of something
else, and does not run.
"""

from __future__ import annotations

import contextlib
import doctest
import gc
import io
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGES = [
    *sorted(ROOT.glob("[!_]*.md")),
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "docs" / "gallery").glob("*.md")),
]

FENCE = re.compile(r"^```([^\s`]+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
OUTPUT = ("text", "sql")
LANGUAGES = ("python", "sh", *OUTPUT, "py", "yaml", "console", "jinja")
"""Languages of code blocks; the last four are shown and not run."""


@dataclass(frozen=True)
class Block:
    """A code block; `printed` is what has to come of it."""

    language: str
    text: str
    line: int
    printed: str = ""

    @property
    def calls_ucle(self) -> bool:
        """True if the block is for a shell and has a `ucle` command in it."""
        return self.language == "sh" and bool(re.search(r"^ucle ", self.text, re.MULTILINE))


def code_blocks(page: Path) -> list[Block]:
    """The code blocks of a page; directives of Sphinx are none."""
    text = page.read_text(encoding="utf-8")
    found = [
        Block(match[1], match[2], text.count("\n", 0, match.start()) + 2)
        for match in FENCE.finditer(text)
        if not match[1].startswith("{")
    ]
    end = Block("", "", 0)
    return [
        Block(block.language, block.text, block.line, after.text)
        if block.language not in OUTPUT and after.language in OUTPUT
        else block
        for block, after in pairwise([*found, end])
    ]


def run_page(page: Path) -> int:
    """Run the code blocks of a page in the current folder, and compare what they print.

    Returns:
        How many were run.
    """
    names: dict[str, object] = {}
    ran = 0
    for block in code_blocks(page):
        place = f"{page.name}, line {block.line}"
        if block.language == "python":
            compare(_run_python(block, place, names), block.printed, place)
        elif block.calls_ucle:
            names.clear()
            gc.collect()  # results keep their database open
            compare(_run_shell(block, place), block.printed, place)
        else:
            continue
        ran += 1
    return ran


def compare(printed: str, expected: str, place: str) -> None:
    """Hold what a block printed against what its page says."""
    if not doctest.OutputChecker().check_output(expected, printed, doctest.ELLIPSIS):
        raise AssertionError(f"{place} prints\n{printed}\nand not\n{expected}")


def _run_python(block: Block, place: str, names: dict[str, object]) -> str:
    # Blank lines before it, so that a traceback shows the line of the page.
    code = compile("\n" * (block.line - 1) + block.text, place, "exec")
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(code, names)
    return printed.getvalue()


def _run_shell(block: Block, place: str) -> str:
    folders = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", block.text],
        env=os.environ | {"PATH": folders},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{place}\n{done.stdout}"
    return done.stdout if block.printed else ""


def links(page: Path) -> list[str]:
    """Targets of the links of a page that lead to other files, or to headings."""
    text = re.sub(r"`[^`\n]*`", "", FENCE.sub("", page.read_text(encoding="utf-8")))
    found = re.findall(r"\]\(([^)\s]+)\)", text)
    return [target for target in found if not re.match(r"[a-z]+:", target)]


def anchors(page: Path) -> Iterator[str]:
    """The names of a page's headings in links, by GitHub's rule."""
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    for heading in re.findall(r"^#+ (.+)$", text, re.MULTILINE):
        yield re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
