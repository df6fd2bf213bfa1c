"""The limits of kernels on arguments and results, from ``csrc/kernel_limits.h``."""

from __future__ import annotations

import functools

from ucle.errors import KernelsMissingError
from ucle.foundation.dataclasses import dataclass
from ucle.udf_kernels import native


@dataclass(frozen=True)
class KernelLimits:
    """The limits that callers of kernels must respect."""

    labels: int
    """Labels of a tensor in the specification of a general kernel."""
    operands: int
    """Operands of one tape."""
    stack: int
    """Tensors that wait at a time in a chain."""
    chain_operands: int
    """Operands of one chain."""
    chain_steps: int
    """Steps of one chain."""
    smallest_capacity: int
    """Elements of the smallest state of an aggregate."""
    state_bytes: int
    """Bytes of the largest state that lies in DuckDB's own memory."""
    blob_bytes: int
    """Bytes of a tensor in one tuple."""


@functools.cache
def kernel_limits() -> KernelLimits:
    """The limits of the compiled module, which is looked for when they are first asked for.

    Where there is none, nothing is small enough for it: all of them are 0.

    >>> kernel_limits().state_bytes
    131072
    """
    try:
        lib = native.load_module().lib
    except KernelsMissingError:
        return KernelLimits(0, 0, 0, 0, 0, 0, 0, 0)
    return KernelLimits(
        labels=lib.UCLE_MOST_LABELS,
        operands=lib.UCLE_MOST_OPERANDS,
        stack=lib.UCLE_DEEPEST_STACK,
        chain_operands=lib.UCLE_CHAIN_OPERANDS,
        chain_steps=lib.UCLE_LONGEST_CHAIN,
        smallest_capacity=lib.UCLE_SMALLEST_CAPACITY,
        state_bytes=lib.UCLE_LARGEST_STATE,
        blob_bytes=lib.UCLE_LARGEST_BLOB,
    )
