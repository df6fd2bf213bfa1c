"""An installation without kernels, as `py3-none-any` wheels are: the same answers by plain SQL."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import astuple
from pathlib import Path

import pytest

# What Windows does not have is not there either, and nothing may be imported from the library.
BLOCKED = """
import os, pathlib, sys, warnings
for name in ("fcntl", "grp", "pwd", "resource", "termios"):
    sys.modules[name] = None
for name in ("fork", "register_at_fork", "getuid", "statvfs"):
    delattr(os, name)
warnings.simplefilter("always")
import ucle.udf_kernels.native
ucle.udf_kernels.native.LIBRARY = pathlib.Path("gone.duckdb_extension")
import duckdb
import numpy as np
import ucle
from ucle import errors

def raised(kind, call):
    try:
        call()
    except kind as error:
        return error
    raise AssertionError(f"no {kind}")
"""


def without_kernels(script: str, folder: Path) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, "-c", BLOCKED + script],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done


@pytest.mark.slow
def test_answers_and_one_notice(tmp_path: Path) -> None:
    done = without_kernels(
        """
rng = np.random.default_rng(0)
for dtype in (float, np.float32, np.int64, bool, complex, np.complex64):
    a, b = ((3 * rng.random(shape)).astype(dtype) for shape in ((4, 5), (5, 3)))
    expected = np.einsum("ij,jk->ik", a, b)
    got = ucle.einsum("ij,jk->ik", a, b)
    assert got.dtype == expected.dtype
    assert np.allclose(got, expected), dtype

with ucle.connect("some.db") as connection, duckdb.connect() as other:
    for each in (connection, other):
        each.execute("CREATE TABLE h AS SELECT i, [i, 2 * i, 0]::DOUBLE[] v FROM range(4) t(i)")
        program = ucle.einsum_program("z[i] += h[i,j] * w[j]", h="h", w=[1, 2, 3], database=each)
        with program.execute() as result:
            assert result["z"].to_numpy().tolist() == [0, 5, 10, 15]
        assert program.route == "plain"
        assert "route: plain (the compiled kernels are missing)" in program.explain()
        assert len(program.plans(4)) == 1
program = ucle.einsum_program("z[i] += h[i,j] * w[j]", h="h", w=[1, 2, 3], database="some.db")
assert program.execute()["z"].to_numpy().tolist() == [0, 5, 10, 15]
""",
        tmp_path,
    )
    notices = [line for line in done.stderr.splitlines() if "KernelsMissingWarning" in line]
    assert len(notices) == 1, done.stderr
    assert notices[0].startswith("<string>:")  # the caller's line, not one of ours
    assert "programs run as plain SQL" in notices[0]
    assert "gone.duckdb_extension" in done.stderr
    assert "hint: with a C compiler" in done.stderr


@pytest.mark.slow
def test_what_asks_for_kernels_is_refused(tmp_path: Path) -> None:
    without_kernels(
        """
import ucle.udf_kernels as kernels
from ucle.command.cli import main

connection = ucle.connect()
connection.execute("CREATE TABLE e AS SELECT i, j, 1.5 v FROM range(4) t(i), range(3) s(j)")
for load in (kernels.load_extension, kernels.register_arrow):
    error = raised(errors.KernelsMissingError, lambda: load(connection))
    assert "C compiler" in error.hint
text = "z[i] += e[i,j]"
asked = "as-written", {"z": ["i"]}
for decomposition in asked:
    error = raised(errors.KernelsMissingError, lambda: ucle.einsum_program(
        text, e="e", database=connection, decomposition=decomposition))
    assert error.where == "decomposition of z"
    assert "'relational'" in error.hint
promoted = {"z": ["i", "j"]}
program = ucle.einsum_program(text, e="e", database=connection, decomposition=promoted)
for decomposition in asked:
    raised(errors.KernelsMissingError, lambda: program.with_decomposition(decomposition))
before = connection.sql("SHOW TABLES").fetchall()
with program.execute() as result:
    for call in (
        lambda: result["z"].to_table("written", keys=[]),
        lambda: result["z"].save("written.parquet", keys=[]),
        lambda: program.create_views(keys=[]),
    ):
        error = raised(errors.KernelsMissingError, call)
        assert "keys=" in error.hint
    result["z"].to_table("entries")
assert connection.sql("FROM entries ORDER BY ALL").fetchall() == [(i, 4.5) for i in range(4)]
left = {name for (name,) in connection.sql("SHOW TABLES").fetchall() if name.startswith("written")}
assert not left
assert not pathlib.Path("written.parquet").exists()
try:
    main(["calibrate"])
except SystemExit as end:
    assert end.code == 1, end.code
""",
        tmp_path,
    )


def test_the_limits_of_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from ucle.udf_kernels import kernel_limits, native

    caches = native.load_module, native._load_library, kernel_limits
    try:
        with monkeypatch.context() as patched:
            patched.setattr(native, "LIBRARY", tmp_path / "gone")
            for cached in caches:
                cached.cache_clear()
            assert set(astuple(kernel_limits())) == {0}
    finally:  # the tests after this one have kernels
        for cached in caches:
            cached.cache_clear()
    assert kernel_limits().labels > 0
