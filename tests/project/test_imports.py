"""`import ucle` loads nothing large, and users do not notice that it is lazy."""

from __future__ import annotations

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import ucle

LARGE = ("pyarrow", "scipy", "pandas", "polars")
"""Packages that take long to import, and that many programs do without."""


def loaded_after(script: str, *names: str) -> list[str]:
    """The packages among `names` that a fresh process has imported after a script."""
    shown = f"{script}\nimport sys\nprint(*[x for x in {names!r} if x in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", shown], capture_output=True, text=True, check=True, timeout=300
    )
    return done.stdout.splitlines()[-1].split()


def test_import_brings_nothing_large() -> None:
    assert loaded_after("import ucle", *LARGE, "numpy", "duckdb", "sqlglot", "lark") == []


@pytest.mark.slow
def test_public_names_bring_neither_arrow_nor_scipy() -> None:
    assert loaded_after("from ucle import *\nimport ucle.command.cli", *LARGE) == []


@pytest.mark.slow
def test_scipy_comes_with_what_asks_for_it() -> None:
    computed = "import ucle\nresult = ucle.array([[1.0, 0.0]]) * 2\nresult.to_numpy()"
    assert loaded_after(computed, *LARGE) == ["pyarrow"]
    assert loaded_after(f"{computed}\nresult.to_scipy()", "scipy") == ["scipy"]


def test_every_public_name_is_where_type_checkers_see_it() -> None:
    tree = ast.parse(Path(ucle.__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
    places = {
        alias.name: node.module or ""
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "ucle"
        for alias in node.names
    }
    assert sorted(places) == sorted({"errors", *ucle.__all__})
    for name, module in places.items():
        assert getattr(ucle, name) is getattr(import_module(module), name), name


def test_names_that_are_not_there() -> None:
    with pytest.raises(AttributeError, match="module 'ucle' has no attribute 'tensr'"):
        ucle.tensr  # type: ignore[attr-defined]  # noqa: B018
    with pytest.raises(ImportError):
        from ucle import tensr  # type: ignore[attr-defined]  # noqa: F401


@pytest.mark.slow
@pytest.mark.parametrize(
    "first",
    [
        "print((ucle.table('edges', ['i', 'j'], 'v') * 2).axes)",
        "print(isinstance(ucle.sqrt(ucle.array([4.0])), ucle.Tensor))",
        "ucle.connect().close()",
        "from ucle import lazy, plan",
        "import ucle.testing",
    ],
)
def test_whatever_is_used_first(first: str) -> None:
    assert loaded_after(f"import ucle\n{first}\nucle.einsum('i,i', [1, 2], [3, 4])", "ucle")
