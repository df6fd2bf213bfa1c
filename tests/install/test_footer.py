"""The footer by which DuckDB knows an extension."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import duckdb
import pytest
from documents import ROOT

from ucle.udf_kernels.footer import SIZE, append_footer, footer, has_footer, platform_name


def test_platform_is_duckdbs() -> None:
    assert duckdb.connect().execute("PRAGMA platform").fetchall() == [(platform_name(),)]


def test_a_footer_is_appended_once_and_replaced(tmp_path: Path) -> None:
    path = tmp_path / "some.so"
    path.write_bytes(b"a library")
    assert not has_footer(path)
    append_footer(path)
    assert path.read_bytes() == b"a library" + footer(platform_name())
    append_footer(path, "osx_arm64", "v7")
    assert has_footer(path)
    tail = path.read_bytes()[len(b"a library") :]
    assert len(tail) == SIZE
    assert tail.startswith(bytes(96) + b"C_STRUCT".ljust(32, b"\0") + b"v7".ljust(32, b"\0"))
    assert b"osx_arm64" in tail


@pytest.mark.parametrize("size", [0, 100, 512, 5000])
def test_what_is_no_footer(tmp_path: Path, size: int) -> None:
    path = tmp_path / "some.so"
    path.write_bytes(bytes(size))
    assert not has_footer(path)


def test_a_field_that_is_too_long(tmp_path: Path) -> None:
    path = tmp_path / "some.so"
    path.write_bytes(b"a library")
    with pytest.raises(ValueError, match="32 bytes"):
        append_footer(path, "p" * 33)
    assert path.read_bytes() == b"a library"


def test_the_module_needs_nothing_of_ucle() -> None:
    """setup.py and other builds load it by its path, where ucle is not installed."""
    path = ROOT / "udf_kernels" / "footer.py"
    if not path.is_file():
        pytest.skip("these tests do not run in the source tree")
    script = f"import runpy, sys; runpy.run_path({str(path)!r}); assert 'ucle' not in sys.modules"
    subprocess.run([sys.executable, "-I", "-S", "-c", script], check=True)
