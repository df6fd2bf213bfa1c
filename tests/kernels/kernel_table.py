"""All kernels, and what C does not say of their arguments and states."""

from __future__ import annotations

from ucle.udf_kernels import kernels, typed_name

KERNELS = kernels()
"""Every kernel by its name."""

_COMPRESSED = {
    **dict.fromkeys(("csr_nnz", "csr_rows", "csr_cols", "csr_values", "csr_with"), (0,)),
    **dict.fromkeys(("csr_prune", "csr_to_mat", "csr_transpose", "csr_row", "csr_stored"), (0,)),
    **dict.fromkeys(("csr_mat", "csr_t_mat", "csr_sddmm", "csr_at"), (1,)),
    **dict.fromkeys(("csr_scale_rows", "csr_scale_cols"), (1,)),
    **dict.fromkeys(("csr_reduce_rows", "csr_reduce_cols", "csr_reduce"), (1,)),
    **dict.fromkeys(("csr_csr", "csr_csr_at", "csr_csr_filled", "csr_csr_union"), (1, 2)),
    **dict.fromkeys(("csr_csr_masked", "csr_csr_t_masked"), (1, 2, 3)),
    **dict.fromkeys(("stack_csr_rows", "sum_csr_t_mat"), (0,)),
}


def base(name: str) -> str:
    """The name of a kernel without its element type, which casts have inside."""
    if name.startswith("vec_cast_"):
        return name
    return name.removesuffix(typed_name("", KERNELS[name].tag))


def compressed_arguments(name: str) -> tuple[int, ...]:
    """The places of the arguments of a kernel that are compressed tensors."""
    return _COMPRESSED.get(base(name), ())


def has_growing_state(name: str) -> bool:
    """True for an aggregate whose state grows with its rows."""
    return base(name) in ("stack_csr", "stack_runs", "stack_csr_rows")
