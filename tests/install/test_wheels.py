"""Tests of the wheels of `make wheel` in clean environments: no sources, no compiler.

`make wheel-test` runs them, as they build, download and install. With `ROOT=` a folder that has a
whole system in it, such as one by debootstrap with a python3 of this version, the wheel is also
tried in there.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import os
import shutil
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest
from documents import ROOT

from ucle.udf_kernels.footer import append_footer, has_footer

LIBRARY = "ucle/udf_kernels/ucle_kernels.duckdb_extension"

RUN = """
import sys, shutil, ucle
assert not shutil.which("cc") and not shutil.which("gcc")
got = ucle.einsum("ij,jk->ik", [[1, 2], [3, 4]], [[0, 1], [1, 0]])
assert got.tolist() == [[2, 1], [4, 3]]
with ucle.connect() as connection:
    program = ucle.einsum_program(
        "z[i] += a[i,j] * b[j]", a=[[1, 2], [3, 4]], b=[1, 2], database=connection)
    with program.execute() as result:
        assert result["z"].to_numpy().tolist() == [5, 11]
print(ucle.__file__)
print(program.explain().splitlines()[1])
"""


@pytest.fixture(scope="module")
def built() -> Path:
    """The folder of the files that were built."""
    if "UCLE_WHEELS" not in os.environ:
        pytest.skip("`make wheel-test` runs it")
    return Path(os.environ["UCLE_WHEELS"])


@pytest.fixture(scope="module")
def wheel(built: Path) -> Path:
    """The wheel with kernels."""
    (found,) = built.glob("ucle-*-cp311-abi3-*.whl")
    return found


@pytest.fixture(scope="module")
def pure(built: Path) -> Path:
    """The wheel without."""
    (found,) = built.glob("ucle-*-py3-none-any.whl")
    return found


class Environment:
    """A virtual environment, used from a folder that is no source tree, with no tools on PATH."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        venv.create(folder, with_pip=True)
        (folder / "tools").mkdir()
        self.variables = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("UCLE_", "PYTHON")) and name not in ("CC", "VIRTUAL_ENV")
        } | {"PATH": str(folder / "tools")}

    def python(self, *arguments: str | Path, **variables: str) -> str:
        done = subprocess.run(
            [self.folder / "bin" / "python", *arguments],
            cwd=self.folder,
            env={**self.variables, **variables},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout + done.stderr

    def install(self, file: Path, *options: str) -> str:
        return self.python("-m", "pip", "install", "--force-reinstall", *options, file)

    def run(self) -> list[str]:
        lines = self.python("-I", "-c", RUN).splitlines()
        assert str(self.folder) in "\n".join(lines)
        return lines


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """An environment with ucle and all that it needs, from the wheel."""
    made = Environment(tmp_path_factory.mktemp("environment"))
    made.python("-m", "pip", "install", "--quiet", wheel)
    return made


def test_files_are_listed_as_they_are(wheel: Path, pure: Path) -> None:
    """RECORD was written after the footer."""
    for file in (wheel, pure):
        with zipfile.ZipFile(file) as archive:
            (listed,) = (x for x in archive.namelist() if x.endswith(".dist-info/RECORD"))
            rows = list(csv.reader(archive.read(listed).decode().splitlines()))
            assert {name for name, *_ in rows} == set(archive.namelist())
            for name, digest, size in rows:
                if name != listed:
                    data = archive.read(name)
                    coded = base64.urlsafe_b64encode(hashlib.sha256(data).digest())
                    expected = f"sha256={coded.decode().rstrip('=')}", str(len(data))
                    assert (digest, size) == expected, name


def test_one_has_kernels_and_a_footer(wheel: Path, pure: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        library = Path(archive.extract(LIBRARY, tmp_path))
    assert has_footer(library)
    before = library.read_bytes()
    append_footer(library)
    assert library.read_bytes() == before  # it names this machine
    with zipfile.ZipFile(pure) as archive:
        assert not [x for x in archive.namelist() if x.endswith((".so", ".duckdb_extension"))]


def test_installed_wheel_has_native_kernels(environment: Environment, wheel: Path) -> None:
    environment.install(wheel, "--no-deps")
    assert environment.run()[-1] == "route: native (the extension is loaded)"


@pytest.mark.parametrize("options", [[], ["--strip-unneeded"]])
def test_stripped_wheel_has_native_kernels(
    environment: Environment, wheel: Path, options: list[str], tmp_path: Path
) -> None:
    if (strip := shutil.which("strip")) is None:
        pytest.skip("there is no strip")
    environment.install(wheel, "--no-deps")
    (library,) = environment.folder.rglob(Path(LIBRARY).name)
    subprocess.run([strip, *options, library], check=True)
    assert not has_footer(library)
    assert environment.run()[-1] == "route: native (the extension is loaded)"


def test_kernels_of_the_wheel_pass_their_tests(environment: Environment, wheel: Path) -> None:
    """Kernels compute the same numbers: the tests compare each with its meaning in NumPy."""
    environment.python("-m", "pip", "install", "--quiet", f"ucle[test] @ {wheel.as_uri()}")
    environment.install(wheel, "--no-deps")
    options = ["--rootdir", str(ROOT), "-c", str(ROOT / "pyproject.toml"), "-p", "no:cacheprovider"]
    told = environment.python(
        "-m", "pytest", "-q", *options, ROOT / "tests" / "kernels", PATH=os.environ["PATH"]
    )
    print(told.splitlines()[-1])


def test_pure_wheel_is_plain_sql(environment: Environment, pure: Path) -> None:
    environment.install(pure, "--no-deps")
    lines = environment.run()
    assert "route: plain (the compiled kernels are missing)" in lines
    assert sum("KernelsMissingWarning" in line for line in lines) == 1


def test_sdist_without_a_compiler(environment: Environment, built: Path) -> None:
    (sdist,) = built.glob("ucle-*.tar.gz")
    told = environment.install(sdist, "--no-deps", "--verbose")
    assert "ucle is built WITHOUT its C kernels" in told
    assert "-py3-none-any.whl" in told  # which nobody takes for one with kernels
    assert "route: plain (the compiled kernels are missing)" in environment.run()


def test_in_a_fresh_system(wheel: Path, tmp_path: Path) -> None:
    """Nothing of this system is in there, except for the wheels."""
    if not (root := os.environ.get("UCLE_ROOT")):
        pytest.skip("ROOT is not set")
    wheels, installed = Path(root, "wheels"), Path(root, "installed")
    for folder in (wheels, installed):
        shutil.rmtree(folder, ignore_errors=True)
    download = [sys.executable, "-m", "pip", "download", "--quiet", "--only-binary", ":all:"]
    subprocess.run([*download, "--dest", wheels, wheel, "pip"], check=True)
    (pip,) = wheels.glob("pip-*.whl")

    chroot = shutil.which("chroot", path="/usr/sbin:/usr/bin:/sbin")
    assert chroot is not None

    def inside(*command: str) -> str:
        path = {"PATH": "/usr/bin:/bin"}
        done = subprocess.run(
            [chroot, root, *command], env=path, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout + done.stderr

    inside(
        *("python3", f"/wheels/{pip.name}/pip", "install", "--quiet", "--target", "/installed"),
        *("--no-index", "--find-links", "/wheels", f"/wheels/{wheel.name}"),
    )
    own = "import sys; sys.path.insert(0, '/installed')\n" + RUN
    assert "route: native (the extension is loaded)" in inside("python3", "-I", "-c", own)
    if (strip := shutil.which("strip")) is not None:
        subprocess.run([strip, installed / LIBRARY], check=True)
        assert "route: native (the extension is loaded)" in inside("python3", "-I", "-c", own)
    assert not list(Path(root, "tmp").glob("ucle-*"))
