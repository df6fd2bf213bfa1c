"""Builds the sdist and this machine's wheels into a folder: `make wheel`.

    python wheels/build.py dist

- a wheel with kernels for cp311-abi3 and manylinux_2_28 or older: gcc compiles them, so that they
  are as fast as those of any installation, and zig links them, as it has the symbols of every
  glibc. It serves all Pythons from 3.11 on;
- a wheel for py3-none-any without kernels, which is what pip takes on all other platforms.

On macOS there is no glibc to choose: compiler and linker are the system's.
"""

from __future__ import annotations

import os
import platform
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from finish import OLDEST_GLIBC, finish, run

ROOT = Path(__file__).parents[1]


def main(target: Path) -> None:
    """Builds everything, from the sdist: what that lacks, users would lack."""
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder)
        build(made, ROOT, "--sdist")
        (sdist,) = made.glob("*.tar.gz")
        run("tarfile", "--extract", sdist, made / "sources")
        (sources,) = (made / "sources").iterdir()
        build(made / "pure", sources, "--wheel", UCLE_KERNELS="none")
        build(made / "built", sources, "--wheel", UCLE_KERNELS="required", **toolchain())
        (wheel,) = (made / "built").iterdir()
        repair(wheel, made / "repaired")
        (repaired,) = (made / "repaired").iterdir()
        finish(repaired)
        for file in (sdist, *(made / "pure").iterdir(), repaired):
            shutil.move(file, target / file.name)
    if sys.platform == "linux":
        run("auditwheel", "show", target / repaired.name)


def build(target: Path, sources: Path, what: str, **environment: str) -> None:
    """Builds one file, with the tools of this environment."""
    subprocess.run(
        [sys.executable, "-m", "build", "--no-isolation", what, "--outdir", target, sources],
        check=True,
        env={**os.environ, **environment},
    )


def toolchain() -> dict[str, str]:
    """The compiler without debugging information, and the linker for old systems.

    CFLAGS would take the place of the flags that Python was built with.
    """
    if sys.platform != "linux":
        return {"CPPFLAGS": "-g0"}
    version = ".".join(map(str, OLDEST_GLIBC))
    zig = [sys.executable, "-m", "ziglang", "cc", "-target"]
    zig += [f"{platform.machine()}-linux-gnu.{version}", "-shared"]
    # What target_clones calls to see which processor there is, and what cleans up where exceptions
    # of DuckDB's pass: zig has neither. The latter belongs to the library that unwinds the stack,
    # of which a process has one, and every system that has libstdc++ has it.
    asked = "-print-libgcc-file-name", "-print-file-name=libgcc_s.so.1"
    support = [answer_of_compiler(question) for question in asked]
    return {"CPPFLAGS": "-g0", "LDSHARED": shlex.join([*zig, *support])}


def answer_of_compiler(question: str) -> str:
    """What the compiler says to an option that asks for a path."""
    command = [*os.environ.get("CC", "gcc").split(), question]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def repair(wheel: Path, target: Path) -> None:
    """Gives a wheel the tag of the oldest systems that it runs on."""
    if sys.platform == "darwin":
        run("delocate.cmd.delocate_wheel", "--wheel-dir", target, wheel)
    else:
        run("auditwheel", "repair", "--wheel-dir", target, wheel)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
