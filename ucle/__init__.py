"""ucle compiles EinSum programs into tensor-relational SQL for DuckDB.

>>> import ucle
>>> ucle.einsum("ij,j->i", [[1, 2], [3, 4]], [1, 1])
array([3, 7])
"""

from importlib import import_module

from ucle import errors as errors  # `except ucle.errors.UcleError` needs no import of its own
from ucle.foundation.address_limit import give_back_addresses as _give_back_addresses

_give_back_addresses()  # before DuckDB is imported

EXPORTS = {
    "ucle": "fft init linalg models optim random",
    "ucle.database.open_sessions": "connect",
    "ucle.lazy.einsum": "einsum",
    "ucle.errors": (
        "CancellationWarning KernelsMissingWarning MeaningWarning MetadataWarning "
        "NotConvergedWarning StaleStatisticsWarning UcleError"
    ),
    "ucle.foundation.caches": "clear_caches",
    "ucle.inputs.one_hot": "one_hot",
    "ucle.inputs.packed_bits": "bits",
    "ucle.inputs.table_options": "table",
    "ucle.inputs.parameters": "parameter",
    "ucle.lazy.aggregations": (
        "all any argmax argmin count_nonzero cummax cummin cumprod cumsum layer_norm log_softmax "
        "logsumexp max mean min normalize prod softmax standardize std sum var"
    ),
    "ucle.lazy.creation": "array compute tensor",
    "ucle.lazy.data_types": (
        "__array_namespace_info__ bool can_cast complex128 complex64 e finfo float32 float64 "
        "iinfo inf int64 isdtype nan newaxis pi result_type"
    ),
    "ucle.lazy.covariances": "corrcoef cov",
    "ucle.lazy.functions": (
        "abs add astype bitwise_and bitwise_invert bitwise_or bitwise_xor broadcast_to ceil "
        "clip concat concatenate conj diagonal diff divide dropout equal erf exp expand_dims eye "
        "finite floor gelu greater greater_equal imag isfinite isnan kron leaky_relu less "
        "less_equal log log1p logical_and logical_not logical_or logical_xor matmul "
        "matrix_transpose maximum minimum multiply negative not_equal outer pad permute_dims "
        "pow real relu reshape roll round shift sigmoid sign silu softplus sqrt square "
        "squeeze stack subtract take tanh tensordot tril triu vecdot where"
    ),
    "ucle.lazy.gradients": "grad value_and_grad",
    "ucle.lazy.linear_algebra": "dot matrix_norm norm trace vector_norm",
    "ucle.lazy.loops": "iterate",
    "ucle.lazy.manipulation": (
        "broadcast_arrays cumulative_prod cumulative_sum flip moveaxis repeat take_along_axis "
        "tile unstack"
    ),
    "ucle.lazy.new_tensors": (
        "arange asarray empty empty_like eye_like from_dlpack full full_like linspace meshgrid "
        "ones ones_like zeros zeros_like"
    ),
    "ucle.lazy.observed": "observed",
    "ucle.lazy.ordering": "among_bottom_k among_top_k argsort bottom_k sort top_k",
    "ucle.lazy.searching": (
        "nonzero searchsorted unique_all unique_counts unique_inverse unique_values"
    ),
    "ucle.lazy.standard_functions": (
        "acos acosh asin asinh atan atan2 atanh bitwise_left_shift bitwise_right_shift "
        "copysign cos cosh expm1 floor_divide hypot isinf log10 log2 logaddexp nextafter "
        "positive reciprocal remainder signbit sin sinh tan trunc"
    ),
    "ucle.lazy.statistics": "count is_stored median quantile",
    "ucle.lazy.tensor": "Tensor",
    "ucle.lazy.time_series": "lag lead resample rolling",
    "ucle.maintenance.maintained": "Maintained maintained",
    "ucle.program": "einsum_program EinsumProgram",
    "ucle.program.registry": "register_operator unregister_operator",
    "ucle.run.results": "Result TensorRelation",
    "ucle.foundation.version": "__version__",
}
"""The public names, by the modules that define them; public modules are names of ``ucle``.

All else follows from this table: ``__all__``, the late imports, and ``__init__.pyi``, in which type
checkers and editors look names up (``docs/public_names.py`` writes it).
"""

_MODULES = dict(sorted((name, module) for module in EXPORTS for name in EXPORTS[module].split()))

_WITHOUT_TENSORS = (
    "ucle.database.open_sessions",
    "ucle.errors",
    "ucle.foundation.caches",
    "ucle.foundation.version",
    "ucle.lazy.einsum",
    "ucle.program",
    "ucle.program.registry",
)
"""Modules whose names take no lazy tensors, or can tell them without importing their class."""

__all__ = list(_MODULES)


def __getattr__(name: str) -> object:
    """Import a public name when it is first used: the compiler takes long to import."""
    import_late = import_module("ucle.foundation.threads").import_late
    if name == "load_ipython_extension":  # a notebook looks for it here
        return import_late("ucle.command.cells").load_ipython_extension
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = _MODULES[name]
    if module == __name__:
        return import_late(f"{module}.{name}")
    if module not in _WITHOUT_TENSORS:
        import_late("ucle.lazy.tensor")  # defines the operators of tables, too
    globals()[name] = value = getattr(import_late(module), name)
    return value


def __dir__() -> list[str]:
    """Return the public names; modules are found by their paths, not listed beside functions."""
    return __all__
