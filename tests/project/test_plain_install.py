"""Imports of the pages, as after a plain install: nothing but what the package asks for."""

from __future__ import annotations

import re
import subprocess
import sys

from documents import PAGES, code_blocks

OPTIONAL = ("hypothesis", "igraph", "matplotlib", "pandas", "polars", "pyspark", "pytest", "scipy")
"""Packages that only an extra, or somebody else, brings."""

BLOCKED = """
import importlib, sys
for name in {optional!r}:
    sys.modules[name] = None  # an import of it fails
for name in {modules!r}:
    importlib.import_module(name)
"""


def test_modules_of_the_pages_need_no_extra() -> None:
    """Whatever a page imports of ucle by the path of a module."""
    found: set[str] = set()
    for page in PAGES:
        for block in code_blocks(page):
            if block.language == "python":
                found |= set(re.findall(r"^\s*(?:from|import) (ucle(?:\.\w+)+)", block.text, re.M))
    assert "ucle.testing.partitions" in found
    script = BLOCKED.format(optional=OPTIONAL, modules=sorted(found))
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
