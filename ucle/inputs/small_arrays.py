"""Arrays in memory that are small enough to be written into statements."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ucle.foundation.dtypes import differs_from
from ucle.inputs.states import BoundInput
from ucle.plan.sources import ArraySource

SMALL_BYTES = 1 << 10
"""The largest size in bytes of an array that is written into statements."""


def small_arrays(inputs: Mapping[str, BoundInput]) -> dict[str, bytes]:
    """The elements of small arrays, by tensor; arrays that hold only the fill are left out.

    Parameters are left out, too, because their numbers will be replaced.
    """
    return {
        name: np.ascontiguousarray(bound.data).tobytes()
        for name, bound in inputs.items()
        if isinstance(bound.source, ArraySource)
        and not bound.described.spec.varies
        and 0 < bound.data.nbytes <= SMALL_BYTES
        and differs_from(bound.data, bound.fill).any()
    }
