"""The sizes in which every aggregate is registered.

The state of a DuckDB aggregate has a fixed size. Each aggregate exists once per capacity, named
``sum_vec_64``, and once as ``sum_vec_wide``, whose state lies in memory that DuckDB's
``memory_limit`` does not see.
"""

from __future__ import annotations

CAPACITIES: tuple[int, ...] = tuple(2**n for n in range(3, 15))
"""Doubles that fit into a state, ascending.

DuckDB (1.4 and 2.0) dies of a division by zero when the states of one GROUP BY together, 8 bytes
per double and 16 for each state, outgrow its blocks of 256 KiB: two of 16,384 do.
"""


def capacity_suffix(length: int) -> str:
    """The suffix of the smallest aggregate whose state holds ``length`` doubles.

    >>> capacity_suffix(0), capacity_suffix(65), capacity_suffix(16_385)
    ('8', '128', 'wide')
    """
    return next((str(capacity) for capacity in CAPACITIES if length <= capacity), "wide")
