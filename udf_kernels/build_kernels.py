r"""Describes the compiled module `ucle.udf_kernels._kernels` to cffi; run by setup.py.

To hunt memory errors, build and test with the sanitizers:

    CFLAGS="-fsanitize=address,undefined -DUCLE_PLAIN_LOOPS -g -O1" \
    LDFLAGS="-fsanitize=address,undefined" pip install --no-deps -e .
    LD_PRELOAD="$(gcc -print-file-name=libasan.so) $(gcc -print-file-name=libubsan.so)" \
    ASAN_OPTIONS=detect_leaks=0 python -m pytest tests/kernels
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path

from cffi import FFI

SOURCES = Path("udf_kernels/csrc")  # setuptools wants paths relative to setup.py

# Python's own flags ask for what debuggers read, which takes more than a third of the compiler's
# time. Whoever gives CFLAGS says there what they want.
WITHOUT_DEBUGGING = [] if os.environ.get("CFLAGS") else ["-g0"]


def takes_long(source: Path) -> bool:
    """True if a source file compiles every loop for an element type."""
    return "loops_template.h" in source.read_text(encoding="utf-8")


def in_order(sources: Iterable[Path]) -> list[str]:
    """The sources, with those first that take longest: files are compiled beside each other."""
    return [str(path) for path in sorted(sources, key=lambda path: (not takes_long(path), path))]


def declarations(header: str) -> str:
    """The declarations of a header, without its preprocessor lines."""
    return re.sub(r"^#.*$", "", header, flags=re.MULTILINE)


ffi = FFI()
HEADERS = "kernel_limits.h", "arrow_route.h", "positions.h", "checksum.h"
for header in HEADERS:
    ffi.cdef(declarations((SOURCES / header).read_text(encoding="utf-8")))
ffi.set_source(
    "ucle.udf_kernels._kernels",
    "\n".join(f'#include "{header}"' for header in HEADERS),
    sources=in_order(SOURCES.glob("*.c")),
    depends=sorted(str(path) for path in SOURCES.glob("*.h")),
    include_dirs=[str(SOURCES)],
    libraries=["m"],
    py_limited_api=True,
    extra_compile_args=[
        "-std=gnu11",
        "-O3",
        "-Wall",
        "-Wextra",
        "-fno-math-errno",  # nobody reads errno after sqrt
        "-fno-trapping-math",  # lets comparisons vectorise; NaN and infinity keep their meaning
        "-fopenmp-simd",
        "-fvisibility=hidden",
        "-fexceptions",  # DuckDB's pass through a callback of ours
        *WITHOUT_DEBUGGING,
    ],
)
