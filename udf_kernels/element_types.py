"""The types of tensor elements: their names in SQL, and the sizes of their aggregates.

The state of a DuckDB aggregate has a fixed size. Each aggregate exists once per capacity, named
``sum_vec_64`` or ``sum_vec_f32_64``, and once as ``sum_vec_wide``, whose state lies in memory that
DuckDB's ``memory_limit`` does not see.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from types import MappingProxyType

import numpy as np

from ucle.foundation.dataclasses import dataclass
from ucle.udf_kernels.kernel_limits import kernel_limits


@dataclass(frozen=True)
class ElementType:
    """One type of elements.

    Attributes:
        tag: its part of a kernel's name.
        dtype: its NumPy type; a BLOB holds elements as such an array does.
        sql: the type of one element in SQL.
    """

    tag: str
    dtype: np.dtype[np.generic]
    sql: str

    @property
    def sql_list(self) -> str:
        """The type of a list of elements in SQL."""
        return self.sql + "[]"

    @cached_property
    def capacities(self) -> tuple[int, ...]:
        """The numbers of elements that states hold, ascending: powers of two up to 128 KiB."""
        limits = kernel_limits()
        largest = limits.state_bytes // self.dtype.itemsize
        powers = (2**n for n in range(largest.bit_length()))
        return tuple(power for power in powers if power >= limits.smallest_capacity)


ELEMENT_TYPES: Mapping[str, ElementType] = MappingProxyType(
    {
        tag: ElementType(tag, np.dtype(dtype), sql)
        for tag, dtype, sql in (
            ("f64", "<f8", "DOUBLE"),
            ("f32", "<f4", "FLOAT"),
            ("i64", "<i8", "BIGINT"),
            ("bool", "?", "BOOLEAN"),
            ("c128", "<c16", "STRUCT(re DOUBLE, im DOUBLE)"),
            ("c64", "<c8", "STRUCT(re FLOAT, im FLOAT)"),
        )
    }
)
"""Every element type by its tag."""


def typed_name(base: str, tag: str) -> str:
    """The kernel for elements of a type. Those of float64 bear the plain names.

    >>> typed_name("vec_mult", "f64"), typed_name("vec_mult", "c128")
    ('vec_mult', 'vec_mult_c128')
    """
    return base if tag == "f64" else f"{base}_{tag}"


def capacity_suffix(length: int, tag: str = "f64") -> str:
    """The suffix of the smallest aggregate whose state holds ``length`` elements.

    >>> capacity_suffix(0), capacity_suffix(65), capacity_suffix(16_385)
    ('8', '128', 'wide')
    >>> capacity_suffix(16_385, "f32")
    '32768'
    """
    capacities = ELEMENT_TYPES[tag].capacities
    return next((str(capacity) for capacity in capacities if length <= capacity), "wide")
