"""The compiled module, found on first use."""

from __future__ import annotations

import functools
import importlib
from typing import Any

from ucle.errors import KernelError


@functools.cache
def compiled() -> Any:
    """The cffi module ``_kernels`` (with ``ffi`` and ``lib``).

    Raises:
        KernelError: it was not built, or not for this machine.
    """
    try:
        kernels: Any = importlib.import_module("ucle.udf_kernels._kernels")
    except ImportError as error:
        raise KernelError(
            "the compiled kernels are missing",
            where="module ucle.udf_kernels._kernels",
            expected="a module that was compiled for this Python and this machine",
            found=str(error),
            hint="run `pip install -e .` in the source tree (needs a C compiler: on Debian "
            "`apt-get install gcc python3-dev`)",
        ) from error
    return kernels
