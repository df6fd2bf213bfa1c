"""The compiled module, found on first use.

It lies in the package as one file with two readers. Python loads it as the module `_kernels`, and
DuckDB as an extension, for which it has a footer and the name that DuckDB wants. As both load the
same file there is one image with one set of globals; and as nothing has to be made for DuckDB when
a process starts, nothing can be missing, be left behind or be put there by somebody else.
"""

from __future__ import annotations

import functools
import importlib.util
import sys
from importlib.machinery import ExtensionFileLoader
from pathlib import Path
from typing import Any

from ucle.errors import KernelError

NAME = "ucle.udf_kernels._kernels"
LIBRARY = Path(__file__).with_name("ucle_kernels.duckdb_extension")
"""Written by setup.py. DuckDB looks for the function ``ucle_kernels_init_c_api`` in it."""


@functools.cache
def compiled() -> Any:
    """The cffi module ``_kernels`` (with ``ffi`` and ``lib``).

    Raises:
        KernelError: it was not built, or not for this machine.
    """
    spec = importlib.util.spec_from_loader(NAME, ExtensionFileLoader(NAME, str(LIBRARY)))
    assert spec is not None
    assert spec.loader is not None
    try:
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    except ImportError as error:
        raise KernelError(
            "the compiled kernels are missing",
            where=f"module {NAME}",
            expected="a module that was compiled for this Python and this machine",
            found=str(error),
            hint="run `pip install -e .` in the source tree (needs a C compiler: on Debian "
            "`apt-get install gcc python3-dev`)",
        ) from error
    sys.modules[NAME] = module
    return module
