"""Philox4x32-10: random numbers that are a function of a key and a position.

Nothing is drawn and no state advances. The number at a position depends on key and position alone,
and so on no layout, order or plan: a kernel, SQL and NumPy compute the same bits.

Source: Salmon, Moraes, Dror and Shaw, Parallel random numbers: as easy as 1, 2, 3 (SC 2011). The
kernel is ``udf_kernels/csrc/philox.h``, the SQL `ucle.operators.duckdb_random`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

MULTIPLIERS = 0xD2511F53, 0xCD9E8D57
WEYL = 0x9E3779B9, 0xBB67AE85
"""Increments of the words of the key from round to round."""
ROUNDS = 10
BITS = 53
"""Bits of a random integer: as many as a float64 has."""
BLOCK = 1 << 13
"""Positions that are computed at a time, so that their words stay in the cache."""

Words = tuple[Any, Any, Any, Any]

_LOW, _HALF = np.uint64(0xFFFFFFFF), np.uint64(32)


def philox(counter: Words, key: tuple[Any, Any]) -> Words:
    """Compute the block of four 32-bit words of a counter; all words are arrays of uint64.

    >>> zeros = tuple(np.zeros(1, np.uint64) for _ in range(4))
    >>> " ".join(f"{int(word[0]):08x}" for word in philox(zeros, zeros[:2]))
    '6627e8d5 e169c58d bc57ac4c 9b00dbd8'
    """
    a, b, c, d = counter
    first, second = key
    for n in range(ROUNDS):
        if n:
            first, second = (
                (first + np.uint64(WEYL[0])) & _LOW,
                (second + np.uint64(WEYL[1])) & _LOW,
            )
        one, other = np.uint64(MULTIPLIERS[0]) * a, np.uint64(MULTIPLIERS[1]) * c
        a, b = (other >> _HALF) ^ b ^ first, other & _LOW
        c, d = (one >> _HALF) ^ d ^ second, one & _LOW
    return a, b, c, d


def random_bits(seed: Any, position: Any) -> NDArray[np.int64]:
    """Compute integers of 53 bits from int64 seeds and positions; positions are the counters.

    Raises:
        TypeError: a seed or a position is not an integer.

    >>> random_bits(0, np.arange(3))
    array([3594291074837816, 8757170225780288,  175184823335142])
    """
    if any(np.asarray(x).dtype.kind not in "bi" for x in (seed, position)):
        raise TypeError("seeds and positions of random numbers are integers of 64 bits")
    seeds, positions = np.broadcast_arrays(
        np.asarray(seed, np.int64), np.asarray(position, np.int64)
    )
    made = np.empty(seeds.shape, np.int64)
    keys, counters, out = (x.reshape(-1).view(np.uint64) for x in (seeds, positions, made))
    for start in range(0, len(out), BLOCK):
        part = slice(start, start + BLOCK)
        words = (counters[part] & _LOW, counters[part] >> _HALF)
        nothing = np.zeros_like(words[0])
        a, b, _, _ = philox((*words, nothing, nothing), (keys[part] & _LOW, keys[part] >> _HALF))
        out[part] = (a << np.uint64(BITS - 32)) | (b >> np.uint64(64 - BITS))
    return made
