"""NumPy's protocol for objects that become arrays: `__array__` of results and lazy tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ucle.errors import ArgumentError


def as_array(
    make: Callable[[], NDArray[Any]], dtype: Any, copy: bool | None, where: str
) -> NDArray[Any]:
    """Return a new array, in the requested type if there is one.

    Args:
        make: makes the array, which has no other owner.
        dtype: the type, or None.
        copy: as NumPy passes it: False requires shared memory, which is impossible.
        where: the object, for messages.

    Raises:
        ArgumentError: no copy may be made.
    """
    if copy is False:
        raise ArgumentError(
            "there is no array that could be shared",
            where=where,
            expected="copy=None or copy=True, as the array is made when it is asked for",
            found="copy=False",
        )
    return np.asarray(make(), dtype=dtype)
