"""Checksums of memory: a loop of the compiled module, or zlib without it."""

from __future__ import annotations

import zlib
from typing import Any

from ucle.errors import KernelsMissingError
from ucle.udf_kernels.native import load_module


def checksum(data: Any, before: int = 0) -> int:
    """Return a checksum of bytes that follow others, whose checksum is `before`.

    One number of eight bytes that changed changes the checksum for certain; any other change, but
    by a chance of 2^-64 (2^-32 without the compiled module). Checksums are compared within a
    process: those of the two ways differ.

    Args:
        data: an object that has a contiguous buffer.
        before: the checksum of what comes before.

    >>> whole = checksum(b"some bytes")
    >>> whole == checksum(b"some bytes"), whole == checksum(b"same bytes")
    (True, False)
    """
    try:
        compiled = load_module()
    except KernelsMissingError:
        return zlib.crc32(data, before)
    view = compiled.ffi.from_buffer(data)
    return int(compiled.lib.ucle_checksum(view, len(view), before))
