"""The compiled module, found on first use.

It lies in the package as one file with two readers. Python loads it as the module `_kernels`, and
DuckDB as an extension, for which it has a footer and the name that DuckDB wants. As both load the
same file there is one image with one set of globals; and as nothing has to be made for DuckDB when
a process starts, nothing can be missing, be left behind or be put there by somebody else.

Where the footer was stripped off, as builders of distributions do, both load a copy that has one
(`ucle.udf_kernels.footer`).
"""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import sys
from importlib.machinery import ExtensionFileLoader
from pathlib import Path
from typing import Any

from ucle.errors import ExtensionStrippedError, KernelsMissingError
from ucle.foundation.dataclasses import dataclass
from ucle.foundation.threads import opening
from ucle.udf_kernels.footer import footered_copy, has_footer, remove_copy, restore_copy

NAME = "ucle.udf_kernels._kernels"
LIBRARY = Path(__file__).with_name("ucle_kernels.duckdb_extension")
"""Written by setup.py. DuckDB looks for the function ``ucle_kernels_init_c_api`` in it."""


@dataclass(frozen=True)
class _Loaded:
    """The module, and what DuckDB gets to read: a copy, the library itself, or nothing."""

    module: Any
    copy: Path | None = None
    refused: str = ""
    """The reason why a needed copy does not exist."""


@functools.cache
def load_module() -> Any:
    """The cffi module ``_kernels`` (with ``ffi`` and ``lib``).

    Raises:
        KernelsMissingError: it was not built, or not for this machine.
    """
    with opening:  # two threads would make two copies, and have two images
        return _load_library().module


def interrupt_kernels() -> None:
    """End calls of kernels in this process that have run for a while, as Ctrl-C does.

    DuckDB hands its own interruption to no kernel.

    >>> interrupt_kernels()
    """
    with contextlib.suppress(KernelsMissingError):
        load_module().lib.ucle_interrupt()


def library() -> Path:
    """The file that `load_module` was loaded from, with the footer that DuckDB looks for.

    Raises:
        KernelsMissingError: as for `load_module`.
        ExtensionStrippedError: the library has no footer, and there is no place for a copy.
    """
    load_module()
    loaded = _load_library()
    if loaded.refused:
        raise ExtensionStrippedError(
            "the kernels have no footer that DuckDB could know them by",
            where=str(LIBRARY),
            expected="the library as it was built, or a directory for a copy with a footer",
            found=f"a library that was stripped, and no copy: {loaded.refused}",
            hint="set TMPDIR to a directory of this user from which programs can run, or use "
            "the Arrow route",
        )
    if loaded.copy is None:
        return LIBRARY
    try:
        with opening:
            restore_copy(loaded.copy, LIBRARY)
    except OSError as error:
        raise ExtensionStrippedError(
            "the copy of the kernels that DuckDB could load is gone",
            where=str(loaded.copy),
            expected="a file that stays until the process ends",
            found=str(error),
            hint="keep the file while this process runs, or use the Arrow route",
        ) from error
    return loaded.copy


@functools.cache
def _load_library() -> _Loaded:
    try:
        if has_footer(LIBRARY):
            return _Loaded(_module(LIBRARY))
        try:
            copy = footered_copy(LIBRARY)
        except OSError as error:
            return _Loaded(_module(LIBRARY), refused=str(error))
        try:
            return _Loaded(_module(copy), copy)
        except ImportError as error:  # of a disk that nothing may be run from
            remove_copy(copy)
            return _Loaded(_module(LIBRARY), refused=str(error))
    except (ImportError, OSError) as error:
        raise KernelsMissingError(
            "the compiled kernels are missing",
            where=f"module {NAME}",
            expected="a module that was compiled for this Python and this machine",
            found=str(error),
            hint="with a C compiler (on Debian `apt-get install gcc python3-dev`) run `pip install "
            "--force-reinstall --no-cache-dir --no-deps --no-binary ucle ucle`, or `pip install "
            "-e .` in the source tree",
        ) from error


def _module(path: Path) -> Any:
    """The module in a library.

    Raises:
        ImportError: the file is not there, or is no module for this Python and this machine.
    """
    spec = importlib.util.spec_from_loader(NAME, ExtensionFileLoader(NAME, str(path)))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    sys.modules[NAME] = module
    return module
