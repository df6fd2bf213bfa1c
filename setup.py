"""Compiles the C kernels; everything else about the package stands in pyproject.toml.

`UCLE_KERNELS` says whether it has to: ``required`` ends with an error where they cannot be
compiled, ``none`` leaves them out, and without it they are left out where there is no compiler for
them. A package without kernels is one of pure Python, with a wheel for ``py3-none-any``: plain SQL
does the work then.
"""

from __future__ import annotations

import functools
import hashlib
import os
import platform
import runpy
import shutil
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from setuptools import Distribution, Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.errors import CCompilerError, ExecError, PlatformError

STAMP = "udf_kernels/ucle_kernels.sha256"
"""Says of which build the library in the source tree is."""

MODES = ("", "required", "none")
"""What `UCLE_KERNELS` may be."""

NO_COMPILER = """
ucle could not compile its C kernels: {reason}
It needs a C compiler and the Python headers. To get them:
  Debian, Ubuntu:  apt-get install gcc python3-dev
  Fedora:          dnf install gcc python3-devel
  Alpine:          apk add gcc musl-dev python3-dev
  macOS:           xcode-select --install
"""

LEFT_OUT = """
ucle is built WITHOUT its C kernels: {reason}
It runs programs as plain SQL, with the same answers; those on arrays take many times as long.
UCLE_KERNELS=required makes this an error.
"""

PROBE = """
#include <Python.h>
__attribute__((visibility("default"))) PyObject *PyInit_probe(void) { return NULL; }
"""
"""A module that takes the compiler and the headers that the kernels take, and no time."""

COULD_NOT = (CCompilerError, ExecError, PlatformError)


def mode() -> str:
    """What the caller wants, by `UCLE_KERNELS`."""
    wanted = os.environ.get("UCLE_KERNELS", "")
    if wanted not in MODES:
        expected = " or ".join(filter(None, MODES))
        raise SystemExit(f"UCLE_KERNELS={wanted}: expected {expected}, or nothing")
    return wanted


def build_digest() -> str:
    """Tells builds apart: by sources, flags, compiler and interpreter."""
    files = sorted(Path("udf_kernels/csrc").iterdir())
    digest = hashlib.sha256()
    scripts = (Path("udf_kernels", name) for name in ("build_kernels.py", "footer.py"))
    for path in (*files, *scripts, Path("setup.py")):
        digest.update(path.read_bytes())
    names = ("CC", "CFLAGS", "CPPFLAGS", "LDFLAGS", "LDSHARED")
    about = [os.environ.get(name, "") for name in names]
    digest.update(repr([*about, sys.version, sys.platform, platform.machine()]).encode())
    return digest.hexdigest()


def obstacle(flags: list[str]) -> str | None:
    """Why kernels cannot be compiled here, found by compiling a module of one line."""
    if sys.platform == "win32":
        return "they are written for gcc and clang on Linux and macOS"
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "probe.c")
        source.write_text(PROBE, encoding="utf-8")
        probe = Extension("probe", [str(source)], extra_compile_args=flags)
        command = build_ext(Distribution({"name": "probe", "ext_modules": [probe]}))
        command.build_lib = command.build_temp = folder
        try:
            command.ensure_finalized()
            command.run()
        except COULD_NOT as error:
            return str(error)
    return None


def processors() -> int:
    """How many of them this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def in_parallel(compiler: Any, jobs: int) -> Callable[..., list[str]]:
    """Returns what does the work of `compiler.compile`, so many files at a time.

    It begins them in their order. The first file that does not compile ends it, with the error that
    the compiler's own loop gives, and those that have not begun are left out.
    """
    whole, one_file = compiler.compile, compiler._compile

    def compile_all(*sources: Any, **options: Any) -> list[str]:
        with ThreadPoolExecutor(jobs) as pool:
            begun = []
            compiler._compile = lambda *file: begun.append(pool.submit(one_file, *file))
            try:
                objects = whole(*sources, **options)
                for file in begun:
                    file.result()
            finally:
                compiler._compile = one_file
                pool.shutdown(cancel_futures=True)
        return objects

    return compile_all


class MaybeWithKernels(Distribution):
    """A package that has kernels if they are wanted and can be compiled.

    Commands ask it before they choose between a wheel of pure Python and one of a platform.
    """

    def has_ext_modules(self) -> bool:
        """Whether there are kernels to compile."""
        return bool(super().has_ext_modules()) and self._with_kernels

    @functools.cached_property
    def _with_kernels(self) -> bool:
        if mode() == "required":
            return True
        reason: str | None = "UCLE_KERNELS=none"
        if mode() != "none":
            (extension,) = self.ext_modules
            reason = obstacle(extension.extra_compile_args)
        if reason is not None:
            sys.stderr.write(LEFT_OUT.format(reason=reason))
        return reason is None


class BuildKernels(build_ext):
    """Compiles the kernels and makes the library a DuckDB extension as well.

    What lies in the source tree serves all editable installs of it, as long as it is of the same
    build: each of the Makefile's environments is one.
    """

    def get_ext_filename(self, fullname: str) -> str:
        """The name of the library, as DuckDB wants that of an extension to be."""
        return str(Path(*fullname.split(".")[:-1], "ucle_kernels.duckdb_extension"))

    def run(self) -> None:
        """Builds nothing for a package without kernels."""
        if self.distribution.has_ext_modules():
            super().run()

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
        # `--parallel` is a number, or True for as many as there are.
        jobs = processors() if self.parallel is None or self.parallel is True else self.parallel
        self.compiler.compile = in_parallel(self.compiler, jobs)
        try:
            super().build_extension(ext)
        except COULD_NOT as error:
            raise SystemExit(NO_COMPILER.format(reason=error)) from None
        # By its path: its package needs what is not built yet.
        runpy.run_path("udf_kernels/footer.py")["append_footer"](library)
        if in_tree:
            stamp.write_text(digest)


setup(
    distclass=MaybeWithKernels,
    cffi_modules=["udf_kernels/build_kernels.py:ffi"],
    cmdclass={"build_ext": BuildKernels},
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
)
