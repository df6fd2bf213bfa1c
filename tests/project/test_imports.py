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


def libraries_after(script: str) -> set[str]:
    """The top-level modules of other projects that a fresh process imports in a script."""
    code = f"import sys\nbefore = set(sys.modules)\n{script}\nprint(*set(sys.modules) - before)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=300
    )
    tops = {name.partition(".")[0] for name in done.stdout.splitlines()[-1].split()}
    return tops - set(sys.stdlib_module_names) - {"ucle"}


EINSUM = "import ucle\nucle.einsum('ij,jk->ik', [[1.0, 2.0]], [[3.0], [4.0]])"
"""A first sum."""

NEEDED = {"_cffi_backend", "_duckdb", "duckdb", "numpy", "sqlglot"}
"""What compiling imports; `_cffi_backend` and `_duckdb` are parts of cffi and DuckDB."""


def test_import_brings_no_other_library() -> None:
    assert libraries_after("import ucle") == set()


def test_a_program_is_compiled_without_arrow() -> None:
    text = "import ucle\nucle.einsum_program('y[i] += A[i,j]', A=[[1.0, 2.0]]).to_sql()"
    assert libraries_after(text) <= NEEDED


def test_a_first_sum_brings_what_it_needs() -> None:
    found = {x for x in libraries_after(EINSUM) if not x.startswith(("cython", "_cython"))}
    assert found <= NEEDED | {"pyarrow", "cloudpickle"}  # which pyarrow takes where it is there


@pytest.mark.turns(3)
def test_a_first_sum_brings_no_package_of_other_uses() -> None:
    others = ("command", "explain", "gradients", "lazy.tensor", "optim", "partitions", "spark")
    assert loaded_after(EINSUM, *(f"ucle.{name}" for name in others), "numpy.ma") == []


ATTENTION = """
import numpy as np
import ucle
with ucle.connect() as connection:
    connection.execute(
        "CREATE TABLE edges AS SELECT i % 800 AS i, i // 5 AS j, 1.0::DOUBLE AS v "
        "FROM range(4000) AS t(i)"
    )
    ucle.einsum_program(
        "S[i,j] += A[i,j] * X[i,k] * X[j,k]; O[i,k] += S[i,j] * X[j,k]",
        A=ucle.table("edges", ["i", "j"], "v"), X=np.ones((800, 64)), database=connection,
    ).execute()["O"].to_numpy()
"""
"""An array in memory meets each tuple of a table, for which it lies in a list."""


BLOBS = "from ucle.foundation.arrow_numbers import blobs_array\nblobs_array([b'one', b'two'])"
"""The arrays of tuples that were read one by one."""


@pytest.mark.parametrize("script", [ATTENTION, BLOBS], ids=["attention", "blobs"])
def test_what_goes_to_arrow_brings_no_pandas(script: str) -> None:
    """Arrow asks pandas about arrays of NumPy's and lists, unless it gets their buffers."""
    assert loaded_after(script, "pandas", "polars", "scipy") == []


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
