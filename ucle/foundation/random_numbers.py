"""Random numbers as functions of a key and a position: Philox4x32-10, and the normal quantile.

Nothing is drawn and no state advances. The number at a position depends on key and position alone,
and so on no layout, order or plan: a kernel, SQL and NumPy compute the same bits. The quantile of
the normal distribution takes the four operations and roots alone. These are rounded the same way
everywhere, while logarithms differ in their last digits between libraries. The relative error is
below 5e-15 from the smallest float64 on.

Sources: Salmon, Moraes, Dror and Shaw, Parallel random numbers: as easy as 1, 2, 3 (SC 2011).
Wichura, Algorithm AS 241: the percentage points of the normal distribution (Applied Statistics 37,
1988), with a logarithm of its own: log r is 64 times that of the 64th root of r, of which the
series of artanh is short. The kernels are ``udf_kernels/csrc/philox.h`` and
``udf_kernels/csrc/normal_quantile.c``, the SQL `ucle.operators.duckdb_random`.
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


Ratio = tuple[tuple[float, ...], tuple[float, ...]]
"""The coefficients of two polynomials, from the highest power on."""

CENTRE: Ratio = (
    (2509.0809287301226727, 33430.575583588128105, 67265.770927008700853, 45921.953931549871457,
     13731.693765509461125, 1971.5909503065514427, 133.14166789178437745, 3.387132872796366608),
    (5226.495278852854561, 28729.085735721942674, 39307.89580009271061, 21213.794301586595867,
     5394.1960214247511077, 687.1870074920579083, 42.313330701600911252, 1.0),
)  # fmt: skip
MIDDLE: Ratio = (
    (7.7454501427834140764e-4, 0.0227238449892691845833, 0.24178072517745061177,
     1.27045825245236838258, 3.64784832476320460504, 5.7694972214606914055,
     4.6303378461565452959, 1.42343711074968357734),
    (1.05075007164441684324e-9, 5.475938084995344946e-4, 0.0151986665636164571966,
     0.14810397642748007459, 0.68976733498510000455, 1.6763848301838038494,
     2.05319162663775882187, 1.0),
)  # fmt: skip
FAR: Ratio = (
    (2.01033439929228813265e-7, 2.71155556874348757815e-5, 0.0012426609473880784386,
     0.026532189526576123093, 0.29656057182850489123, 1.7848265399172913358,
     5.4637849111641143699, 6.6579046435011037772),
    (2.04426310338993978564e-15, 1.4215117583164458887e-7, 1.8463183175100546818e-5,
     7.868691311456132591e-4, 0.0148753612908506148525, 0.13692988092273580531,
     0.59983220655588793769, 1.0),
)  # fmt: skip
NEAR_HALF, CENTRED_AT = 0.425, 0.180625
FAR_FROM, MIDDLE_AT, FAR_AT = 5.0, 1.6, 5.0
SERIES = tuple(2.0 / (2 * n + 1) for n in reversed(range(18)))
"""Coefficients of the logarithm's series, over the square of t = (y - 1) / (y + 1)."""
ROOTS = 6
TINY, MORE_ROOTS = 2.0**-64, 4
"""The bound below which more roots are taken, and their number."""


def horner(coefficients: tuple[float, ...], x: Any) -> Any:
    """Evaluate a polynomial in Horner's order, which fixes the rounding of each step."""
    value: Any = coefficients[0]
    for each in coefficients[1:]:
        value = value * x + each
    return value


def normal_quantile(x: Any) -> NDArray[Any]:
    """Return the z below which a standard normal number lies with probability x.

    >>> normal_quantile(np.array([0.0, 0.025, 0.5, 1.0])).round(6)
    array([     -inf, -1.959964,  0.      ,       inf])
    """
    given = np.asarray(x)
    p = given.astype(np.float64)
    with np.errstate(all="ignore"):
        z = np.where((p == 0) | (p == 1), (p - 0.5) * np.inf, np.nan)
        q = p - 0.5
        centre = np.abs(q) <= NEAR_HALF
        z[centre] = _near_half(q[centre])
        tail = ~centre & (p > 0) & (p < 1)
        below = q[tail] < 0
        size = _in_tail(np.where(below, p[tail], 1.0 - p[tail]))
        z[tail] = np.where(below, -size, size)
    return z.astype(given.dtype if given.dtype.kind == "f" else np.float64)


def _near_half(q: Any) -> Any:
    r = CENTRED_AT - q * q
    return q * (horner(CENTRE[0], r) / horner(CENTRE[1], r))


def _in_tail(r: Any) -> Any:
    r = np.sqrt(-_log(r))
    middle, far = (
        horner(above, r - at) / horner(below, r - at)
        for (above, below), at in ((MIDDLE, MIDDLE_AT), (FAR, FAR_AT))
    )
    return np.where(r <= FAR_FROM, middle, far)


def _log(r: Any) -> Any:
    y, tiny = r, r < TINY
    for _ in range(MORE_ROOTS):
        y = np.where(tiny, np.sqrt(y), y)
    for _ in range(ROOTS):
        y = np.sqrt(y)
    t = (y - 1.0) / (y + 1.0)
    whole = horner(SERIES, t * t) * t * float(2**ROOTS)
    return np.where(tiny, whole * float(2**MORE_ROOTS), whole)
