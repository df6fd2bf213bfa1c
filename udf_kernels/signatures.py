"""The kernels as SQL sees them: names and types, as the table in ``csrc/type_template.h`` has them.

Tensors in flight are BLOBs of little-endian elements, row-major; a BLOB carries neither shape nor
type, so there is a kernel for each element type. NULL arguments make NULL, or are skipped by
aggregates. Wrong lengths, and integers that overflow, are SQL errors.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from ucle.errors import KernelsMissingError
from ucle.foundation.dataclasses import dataclass
from ucle.udf_kernels.element_types import ELEMENT_TYPES
from ucle.udf_kernels.native import load_module

ROW_FIELDS = ("a", "b", "c", "d")
"""Names of the arguments that the Arrow route gathers together: fields of a struct."""

_TAGS = {element.dtype.name: tag for tag, element in ELEMENT_TYPES.items()}
_LETTERS = {
    "b": "BLOB",
    "s": "VARCHAR",
    "i": "BIGINT",
    "I": "BIGINT[]",
    "o": "BOOLEAN",
    "B": "BLOB[]",
}
"""The SQL types by their letters in C (``csrc/call.h``); e and E depend on the element type."""


@dataclass(frozen=True)
class Kernel:
    """One SQL function.

    Attributes:
        index: its place in the table of the compiled module.
        name: on the extension route an aggregate's name has a capacity suffix behind it, unless
            its state grows.
        tag: the type of the elements that it takes; all but casts return the same.
        parameters: SQL types of the arguments of one row.
        returns: the SQL type of its result.
        gathered: for aggregates, which arguments the Arrow route gets as one ``list`` of them
            all (`arrow_parameters`); they stand side by side, and the others are constant within a
            group. It is empty for scalar functions.
        variadic: whether any number of tensors come behind the other arguments, NULL among them.
    """

    index: int
    name: str
    tag: str
    parameters: tuple[str, ...]
    returns: str
    gathered: tuple[bool, ...]
    variadic: bool

    @property
    def is_aggregate(self) -> bool:
        """True for an aggregate, False for a scalar function."""
        return bool(self.gathered)

    @property
    def arrow_parameters(self) -> tuple[str, ...]:
        """SQL types of the arguments on the Arrow route.

        Several arguments are gathered as structs: DuckDB does not say that two lists of one GROUP
        BY are in the same order, and 2.0 aggregates each below a join.
        """
        if not self.is_aggregate:
            return self.parameters
        rows = [kind for kind, mark in zip(self.parameters, self.gathered, strict=True) if mark]
        start = self.gathered.index(True)
        row = rows[0]
        if len(rows) > 1:
            fields = (f"{name} {kind}" for name, kind in zip(ROW_FIELDS, rows, strict=False))
            row = f"STRUCT({', '.join(fields)})"
        return (*self.parameters[:start], f"{row}[]", *self.parameters[start + len(rows) :])


@functools.cache
def kernels() -> Mapping[str, Kernel]:
    """Return every kernel by its name; without a compiled module there are none.

    >>> kernels()["sum_vec_mult"].arrow_parameters
    ('STRUCT(a BLOB, b BLOB)[]',)
    """
    try:
        module = load_module()
    except KernelsMissingError:
        return MappingProxyType({})
    listed = (_kernel(module, index) for index in range(module.lib.ucle_kernel_count()))
    return MappingProxyType({kernel.name: kernel for kernel in listed})


def _kernel(module: Any, index: int) -> Kernel:
    lib = module.lib
    name, dtype, signature, gathered = (
        module.ffi.string(read(index)).decode()
        for read in (
            lib.ucle_kernel_name,
            lib.ucle_kernel_type,
            lib.ucle_kernel_signature,
            lib.ucle_kernel_gathered,
        )
    )
    element = ELEMENT_TYPES[_TAGS[dtype]]
    sql = _LETTERS | {"e": element.sql, "E": element.sql_list}
    parameters, result = signature.split(">")
    return Kernel(
        index=index,
        name=name,
        tag=element.tag,
        parameters=tuple(sql[letter] for letter in parameters.removesuffix("v")),
        returns=sql[result],
        gathered=tuple(mark == "x" for mark in gathered),
        variadic=parameters.endswith("v"),
    )
