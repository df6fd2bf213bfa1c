"""Kernels are compiled several files at a time, starting with those that take longest."""

from __future__ import annotations

import runpy
import threading
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
setuptools = pytest.importorskip("setuptools")
SOURCES = ["a.c", "b.c", "c.c", "d.c"]


class Compiler:
    """A compiler like setuptools', with a loop over files of its own."""

    def __init__(self, one_file: Any) -> None:
        self._compile = one_file

    def compile(self, sources: list[str]) -> list[str]:
        for source in sources:
            self._compile(source)
        return [source.replace(".c", ".o") for source in sources]


@pytest.fixture
def in_parallel(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(setuptools, "setup", lambda **options: None)
    monkeypatch.chdir(ROOT)
    return runpy.run_path("setup.py")["in_parallel"]


def test_files_are_compiled_beside_each_other(in_parallel: Any) -> None:
    together = threading.Barrier(2)
    compiler = Compiler(lambda source: together.wait(timeout=30))
    assert in_parallel(compiler, 2)(SOURCES) == ["a.o", "b.o", "c.o", "d.o"]


def test_the_first_that_fails_ends_it(in_parallel: Any) -> None:
    begun = []

    def one_file(source: str) -> None:
        begun.append(source)
        if source == "b.c":
            raise ValueError(source)

    compiler = Compiler(one_file)
    with pytest.raises(ValueError, match=r"b\.c"):
        in_parallel(compiler, 1)(SOURCES)
    assert begun[:2] == ["a.c", "b.c"]
    assert compiler._compile is one_file


def described(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.chdir(ROOT)
    return runpy.run_path(str(Path("udf_kernels", "build_kernels.py")))


def test_files_of_the_element_types_begin(monkeypatch: pytest.MonkeyPatch) -> None:
    names = described(monkeypatch)
    sources = names["SOURCES"]
    ordered = names["in_order"](sources.glob("*.c"))
    assert sorted(ordered) == sorted(str(path) for path in sources.glob("*.c"))
    types = {"boolean.c", "c128.c", "c64.c", "f32.c", "f64.c", "i64.c"}
    assert {Path(source).name for source in ordered[:6]} == types


@pytest.mark.parametrize(("given", "added"), [("", ["-g0"]), ("-g -O1", [])])
def test_flags_of_ones_own_keep_debugging(
    monkeypatch: pytest.MonkeyPatch, given: str, added: list[str]
) -> None:
    monkeypatch.setenv("CFLAGS", given)
    assert described(monkeypatch)["WITHOUT_DEBUGGING"] == added
