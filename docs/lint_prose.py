"""Checks the prose of the pages: proselint with ``.proselintrc.json``, and words of our own.

``make lint`` runs it in an environment that has proselint. It exits with 1 if there are findings.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from prose import Finding, find_banned_words, prose
from proselint.checks import __register__
from proselint.config import Config, load_from
from proselint.registry import CheckRegistry
from proselint.tools import LintFile

ROOT = Path(__file__).parents[1]
PAGES = (
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "docs" / "gallery").glob("*.md")),
)


def find_problems(page: Path, config: Config) -> Iterator[Finding]:
    """Yield what proselint and the vocabulary find in a page."""
    text = prose(page.read_text(encoding="utf-8"))
    for found in LintFile(page.name, text).lint(config):
        check, (line, column) = found.check_result, found.pos
        # A heading and the paragraph below it may begin with the same word.
        if "\n\n" not in check.message:
            yield Finding(line, column, f"{check.check_path}: {' '.join(check.message.split())}")
    yield from find_banned_words(text)


def main() -> int:
    """Print the findings of all pages, and return the status to exit with."""
    CheckRegistry().register_many(__register__)
    config = load_from(ROOT / ".proselintrc.json")
    lines = [
        f"{page.relative_to(ROOT)}:{found.line}:{found.column}: {found.message}"
        for page in PAGES
        for found in sorted(find_problems(page, config))
    ]
    print("\n".join(lines) if lines else f"The prose of {len(PAGES)} pages passed.")
    return int(bool(lines))


if __name__ == "__main__":
    sys.exit(main())
