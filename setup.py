"""Compiles the C kernels; everything else about the package stands in pyproject.toml."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import platform
import shutil
import sys
from pathlib import Path
from types import ModuleType

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.errors import CCompilerError, ExecError, PlatformError

STAMP = "udf_kernels/ucle_kernels.sha256"
"""Says of which build the library in the source tree is."""

NO_COMPILER = """
ucle could not compile its C kernels: {reason}
It needs a C compiler and the Python headers. To get them:
  Debian, Ubuntu:  apt-get install gcc python3-dev
  Fedora:          dnf install gcc python3-devel
  Alpine:          apk add gcc musl-dev python3-dev
  macOS:           xcode-select --install
"""


def footer_module() -> ModuleType:
    """`udf_kernels/footer.py` alone: its package needs what is not built yet."""
    spec = importlib.util.spec_from_file_location("footer", "udf_kernels/footer.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def build_digest() -> str:
    """Tells builds apart: by sources, flags, compiler and interpreter."""
    files = sorted(Path("udf_kernels/csrc").iterdir())
    digest = hashlib.sha256()
    scripts = (Path("udf_kernels", name) for name in ("build_kernels.py", "footer.py"))
    for path in (*files, *scripts, Path("setup.py")):
        digest.update(path.read_bytes())
    about = [os.environ.get(name, "") for name in ("CC", "CFLAGS", "CPPFLAGS", "LDFLAGS")]
    digest.update(repr([*about, sys.version, sys.platform, platform.machine()]).encode())
    return digest.hexdigest()


class BuildKernels(build_ext):
    """Compiles the kernels and makes the library a DuckDB extension as well.

    What lies in the source tree serves all editable installs of it, as long as it is of the same
    build: each of the Makefile's environments is one.
    """

    def get_ext_filename(self, fullname: str) -> str:
        """The name of the library, as DuckDB wants that of an extension to be."""
        return str(Path(*fullname.split(".")[:-1], "ucle_kernels.duckdb_extension"))

    def build_extension(self, ext: Extension) -> None:
        """Compiles and links, then appends DuckDB's footer."""
        library = Path(self.get_ext_fullpath(ext.name))
        kept, stamp, digest = Path("udf_kernels", library.name), Path(STAMP), build_digest()
        in_tree = self.inplace or self.editable_mode
        if in_tree and kept.exists() and stamp.exists() and stamp.read_text() == digest:
            if library.resolve() != kept.resolve():
                library.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(kept, library)
            return
        try:
            super().build_extension(ext)
        except (CCompilerError, ExecError, PlatformError) as error:
            raise SystemExit(NO_COMPILER.format(reason=error)) from None
        footer_module().append_footer(library)
        if in_tree:
            stamp.write_text(digest)


setup(
    cffi_modules=["udf_kernels/build_kernels.py:ffi"],
    cmdclass={"build_ext": BuildKernels},
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
)
