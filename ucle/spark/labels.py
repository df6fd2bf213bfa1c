"""Numbers that stand for partitions in transit, one on each of Spark's own partitions.

Spark places rows by a hash of their columns. Numbers `0`, `1`, ... would leave some of its
partitions empty, and put several of ours on others. `partition_labels` finds numbers whose hashes
differ. RDDs need none: they are partitioned by the numbers of partitions themselves
(`ucle.spark.by_rdds`).
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

SEED = 42
"""The seed of Spark's hash."""


def spark_hash(numbers: NDArray[np.int32]) -> NDArray[np.int32]:
    """Hash integers as Spark's ``hash`` of an ``int``: Murmur3 with 32 bits.

    >>> import numpy
    >>> spark_hash(numpy.arange(2, dtype="i4")).tolist()
    [933211791, -559580957]
    """
    with np.errstate(over="ignore"):
        mixed = numbers.astype(np.uint32) * np.uint32(0xCC9E2D51)
        mixed = _rotate(mixed, 15) * np.uint32(0x1B873593)
        found = _rotate(mixed ^ np.uint32(SEED), 13) * np.uint32(5) + np.uint32(0xE6546B64)
        found ^= np.uint32(4)  # the length in bytes
        for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35), (16, 1)):
            found = (found ^ (found >> np.uint32(shift))) * np.uint32(factor)
    return found.astype(np.int32)


def _rotate(numbers: NDArray[np.uint32], bits: int) -> NDArray[np.uint32]:
    return (numbers << np.uint32(bits)) | (numbers >> np.uint32(32 - bits))


@lru_cache(16)
def partition_labels(partitions: int) -> tuple[int, ...]:
    """Return a number for each partition that Spark's hash places there.

    >>> partition_labels(4)
    (12, 6, 2, 0)
    """
    found: dict[int, int] = {}
    start, step = 0, 8 * partitions
    while len(found) < partitions:
        numbers = np.arange(start, start + step, dtype=np.int32)
        places = spark_hash(numbers).astype(np.int64) % partitions
        for number, place in zip(numbers.tolist(), places.tolist(), strict=True):
            found.setdefault(place, number)
        start += step
    return tuple(found[part] for part in range(partitions))
