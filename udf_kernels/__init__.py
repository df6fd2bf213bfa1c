"""The dense kernels of ucle and the two routes by which DuckDB reaches them.

- `load_extension` makes them native functions: fast, needs ``allow_unsigned_extensions``.
- `register_arrow` makes them Arrow functions: works on every connection.

`kernels` says what each is called and takes, `ELEMENT_TYPES` of what tensors consist,
`kernel_limits` what kernels take at most.
Importing this package needs no compiler; the compiled module is looked for when a route is first
taken.

In: arrays of tensor elements, as BLOBs and lists. Out: the same. Knows no labels and no plans.
May import: `ucle.foundation`, `ucle.errors`.
"""

from ucle.udf_kernels.arrow import register_arrow, remove_arrow
from ucle.udf_kernels.arrow_arrays import as_parameter
from ucle.udf_kernels.compressed import Csr
from ucle.udf_kernels.element_types import (
    ELEMENT_TYPES,
    ElementType,
    capacity_suffix,
    typed_name,
)
from ucle.udf_kernels.extension import limit_memory, load_extension
from ucle.udf_kernels.kernel_limits import KernelLimits, kernel_limits
from ucle.udf_kernels.native import interrupt_kernels
from ucle.udf_kernels.signatures import ROW_FIELDS, Kernel, kernels

__all__ = [
    "ELEMENT_TYPES",
    "ROW_FIELDS",
    "Csr",
    "ElementType",
    "Kernel",
    "KernelLimits",
    "as_parameter",
    "capacity_suffix",
    "interrupt_kernels",
    "kernel_limits",
    "kernels",
    "limit_memory",
    "load_extension",
    "register_arrow",
    "remove_arrow",
    "typed_name",
]
