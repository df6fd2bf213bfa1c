"""A cache of programs of small sums, for the next arrays of the same shapes and types.

Compiling a sum takes longer than computing a small one. A cached program relies on no property of
its arrays except that they are finite (`ucle.parameter`). Larger sums are compiled for their arrays
each time: for them the positions of zeros matter.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ucle.foundation.caches import register_cache
from ucle.inputs.parameters import parameter
from ucle.ir.contraction_trees import Path
from ucle.language.subscripts import Subscripts
from ucle.program import EinsumProgram, einsum_program

KEPT = 256
"""The number of programs; the least recently used one is dropped first."""

ENTRIES = 1 << 16
"""The most numbers that all operands may have together."""

TERMS = 1 << 24
"""The most products that may be added up without knowledge of zeros: some milliseconds' work."""


def kept_program(
    subscripts: Subscripts, operands: Sequence[Any], options: Mapping[str, Any]
) -> EinsumProgram | None:
    """Return a cached program for operands called ``X0``, ``X1`` and so on; None if there is none.

    Args:
        subscripts: of the sum, whose result is called ``out``.
        operands: in types that ucle has.
        options: of `einsum_program`; with any but a path, which may be None, no program is kept.
    """
    path = options.get("path")
    if set(options) - {"path"} or not _is_small(subscripts, operands):
        return None
    shapes = tuple(x.shape for x in operands)
    return _program(subscripts, shapes, tuple(x.dtype for x in operands), path)


def _is_small(subscripts: Subscripts, operands: Sequence[Any]) -> bool:
    """True if operands are small arrays of finite numbers."""
    if not all(type(x) is np.ndarray for x in operands):
        return False
    sizes = {
        label: size
        for labels, operand in zip(subscripts.operands, operands, strict=True)
        for label, size in zip(labels, operand.shape, strict=True)
    }
    entries = sum(x.size for x in operands)
    if not 0 < entries <= ENTRIES or math.prod(sizes.values()) > TERMS:
        return False
    return all(x.dtype.kind not in "fc" or np.isfinite(x).all() for x in operands)


@lru_cache(KEPT)
def _program(
    subscripts: Subscripts,
    shapes: tuple[tuple[int, ...], ...],
    dtypes: tuple[np.dtype[Any], ...],
    path: Path | None,
) -> EinsumProgram:
    truths = all(dtype == np.bool_ for dtype in dtypes)
    named: dict[str, NDArray[Any]] = {
        f"X{n}": np.zeros(*each) for n, each in enumerate(zip(shapes, dtypes, strict=True))
    }
    return einsum_program(
        subscripts.statement("any=" if truths else "+="),
        inputs={name: parameter(array) for name, array in named.items()},
        path=path,
    )


register_cache(_program.cache_clear)
