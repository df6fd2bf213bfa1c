"""A library that lost its footer, as by `strip`: a copy in a private directory takes its place."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ucle.udf_kernels import native
from ucle.udf_kernels.footer import SIZE, has_footer

OPENED = """
import logging, os, pathlib, shutil, stat, sys, tempfile, threading
logging.basicConfig(format="%(message)s")
import ucle.udf_kernels.native as native
native.LIBRARY = pathlib.Path(sys.argv[1])
import duckdb
import ucle

def route(connection):
    program = ucle.einsum_program("z[i] += a[i,j] * b[j]", a=[[1, 2], [3, 4]], b=[1, 2],
                                  database=connection)
    with program.execute() as result:
        assert result["z"].to_numpy().tolist() == [5, 11]
    return program.explain().splitlines()[1]
"""


@pytest.fixture
def library(tmp_path: Path) -> Path:
    """The kernels without a footer."""
    path = tmp_path / "package" / native.LIBRARY.name
    path.parent.mkdir()
    shutil.copyfile(native.LIBRARY, path)
    os.truncate(path, path.stat().st_size - SIZE)
    return path


def opened(script: str, library: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    """Runs a script on such a library, with a folder of temporary files."""
    done = subprocess.run(
        [sys.executable, "-c", OPENED + script, str(library), str(folder)],
        env={**os.environ, "TMPDIR": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "temporary"
    place.mkdir()
    return place


THREADS_AND_FORKS = """
threads = [threading.Thread(target=lambda: ucle.connect().close()) for _ in range(6)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert route(ucle.connect()) == "route: native (the extension is loaded)"
copy = native.library()
assert os.listdir(sys.argv[2]) == [copy.parent.name]
assert stat.S_IMODE(copy.parent.stat().st_mode) == 0o700
if pathlib.Path("/proc/self/maps").exists():
    images = {x.split()[-1] for x in open("/proc/self/maps") if "ucle_kernels" in x}
    assert images == {str(copy)}
if (child := os.fork()) == 0:
    assert "native" in route(ucle.connect())
    sys.exit(0)
assert os.waitpid(child, 0)[1] == 0
assert copy.exists()  # a fork leaves it alone
shutil.rmtree(copy.parent)  # as when a fork outlives the process that made it
loads = native.load_module().lib.ucle_load_count()
assert "native" in route(ucle.connect())
assert native.load_module().lib.ucle_load_count() == loads + 1  # the same image
shutil.rmtree(copy.parent)
copy.parent.mkdir(mode=0o755)  # somebody else's
assert route(ucle.connect()).startswith("route: arrow (the copy of the kernels")
"""


@pytest.mark.slow
def test_one_copy_for_threads_and_forks(library: Path, folder: Path) -> None:
    opened(THREADS_AND_FORKS, library, folder)
    assert not any(folder.iterdir())


@pytest.mark.slow
@pytest.mark.parametrize("tool", [["strip"], ["strip", "--strip-unneeded"], ["llvm-strip"]])
def test_what_strip_leaves(tool: list[str], library: Path, folder: Path) -> None:
    if shutil.which(tool[0]) is None:
        pytest.skip(f"there is no {tool[0]}")
    shutil.copyfile(native.LIBRARY, library)
    subprocess.run([*tool, str(library)], check=True)
    assert not has_footer(library)
    opened("assert 'native' in route(ucle.connect())", library, folder)
    assert not any(folder.iterdir())


NO_PLACE = """
for connection in (ucle.connect(), duckdb.connect(), None):
    assert route(connection) == ("route: arrow (the kernels have no footer that DuckDB could know "
                                 "them by)"), route(connection)
"""


@pytest.mark.slow
def test_no_directory_for_a_copy(library: Path, folder: Path) -> None:
    missing = "tempfile.tempdir = sys.argv[2] + '/missing'"
    done = opened(missing + NO_PLACE, library, folder)
    assert "kernels take the slower Arrow route: the kernels have no footer" in done.stderr
    assert "No such file or directory" in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("option", ["noexec", "ro"])
def test_disks_that_are_no_place_for_a_copy(option: str, library: Path, folder: Path) -> None:
    mount = ["mount", "-t", "tmpfs", "-o", option, "none", str(folder)]
    if shutil.which("mount") is None or subprocess.run(mount, check=False).returncode:
        pytest.skip("a disk cannot be mounted")
    try:
        done = opened("tempfile.tempdir = sys.argv[2]" + NO_PLACE, library, folder)
        left = list(folder.iterdir())
    finally:
        subprocess.run(["umount", str(folder)], check=True)
    why = {"noexec": "failed to map segment", "ro": "Read-only file system"}[option]
    assert why in done.stderr
    assert not left
