"""Arrays from memory that are so small that statements can hold them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ucle.foundation.dtypes import differs_from
from ucle.inputs.states import BoundInput
from ucle.plan.sources import ArraySource

SMALL_BYTES = 1 << 10
"""Bytes of an array up to which it is written into statements."""


def small_arrays(inputs: Mapping[str, BoundInput]) -> dict[str, bytes]:
    """The elements of small arrays by tensor; one that holds nothing but the fill is no tuple.

    Of parameters none are: other numbers are to take the place of theirs.
    """
    return {
        name: np.ascontiguousarray(bound.data).tobytes()
        for name, bound in inputs.items()
        if isinstance(bound.source, ArraySource)
        and not bound.described.spec.varies
        and 0 < bound.data.nbytes <= SMALL_BYTES
        and differs_from(bound.data, bound.fill).any()
    }
