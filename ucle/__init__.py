"""ucle compiles EinSum programs into tensor-relational SQL for DuckDB.

>>> import ucle
>>> ucle.einsum("ij,j->i", [[1, 2], [3, 4]], [1, 1])
array([3, 7])
"""

from importlib import import_module
from typing import TYPE_CHECKING

from ucle.errors import (
    KernelsMissingWarning,
    MetadataWarning,
    NotConvergedWarning,
    StaleStatisticsWarning,
    UcleError,
)
from ucle.version import __version__

if TYPE_CHECKING:
    from ucle import init, optim, random
    from ucle.database.open_sessions import connect
    from ucle.inputs.inputs import table
    from ucle.inputs.parameters import parameter
    from ucle.lazy.creation import array, compute, tensor
    from ucle.lazy.functions import (
        abs,
        add,
        all,
        any,
        argmax,
        argmin,
        astype,
        bitwise_and,
        bitwise_invert,
        bitwise_or,
        bitwise_xor,
        broadcast_to,
        ceil,
        clip,
        concat,
        concatenate,
        conj,
        count_nonzero,
        cummax,
        cummin,
        cumprod,
        cumsum,
        diagonal,
        diff,
        divide,
        dropout,
        equal,
        exp,
        expand_dims,
        eye,
        finite,
        floor,
        gelu,
        greater,
        greater_equal,
        imag,
        isfinite,
        isnan,
        kron,
        leaky_relu,
        less,
        less_equal,
        log,
        log1p,
        logical_and,
        logical_not,
        logical_or,
        logical_xor,
        logsumexp,
        matmul,
        matrix_transpose,
        max,
        maximum,
        mean,
        min,
        minimum,
        multiply,
        negative,
        not_equal,
        outer,
        pad,
        permute_dims,
        pow,
        prod,
        real,
        relu,
        reshape,
        roll,
        round,
        shift,
        sigmoid,
        sign,
        silu,
        softmax,
        softplus,
        sqrt,
        square,
        squeeze,
        stack,
        std,
        subtract,
        sum,
        take,
        tanh,
        tensordot,
        tril,
        triu,
        var,
        vecdot,
        where,
    )
    from ucle.lazy.gradients import grad, value_and_grad
    from ucle.lazy.loops import iterate
    from ucle.lazy.tensor import Tensor
    from ucle.numpy_door.einsum import einsum
    from ucle.program import EinsumProgram, einsum_program
    from ucle.registry import register_operator, unregister_operator
    from ucle.run.results import Result, TensorRelation

__all__ = [
    "EinsumProgram",
    "KernelsMissingWarning",
    "MetadataWarning",
    "NotConvergedWarning",
    "Result",
    "StaleStatisticsWarning",
    "Tensor",
    "TensorRelation",
    "UcleError",
    "__version__",
    "abs",
    "add",
    "all",
    "any",
    "argmax",
    "argmin",
    "array",
    "astype",
    "bitwise_and",
    "bitwise_invert",
    "bitwise_or",
    "bitwise_xor",
    "broadcast_to",
    "ceil",
    "clip",
    "compute",
    "concat",
    "concatenate",
    "conj",
    "connect",
    "count_nonzero",
    "cummax",
    "cummin",
    "cumprod",
    "cumsum",
    "diagonal",
    "diff",
    "divide",
    "dropout",
    "einsum",
    "einsum_program",
    "equal",
    "exp",
    "expand_dims",
    "eye",
    "finite",
    "floor",
    "gelu",
    "grad",
    "greater",
    "greater_equal",
    "imag",
    "init",
    "isfinite",
    "isnan",
    "iterate",
    "kron",
    "leaky_relu",
    "less",
    "less_equal",
    "log",
    "log1p",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "logsumexp",
    "matmul",
    "matrix_transpose",
    "max",
    "maximum",
    "mean",
    "min",
    "minimum",
    "multiply",
    "negative",
    "not_equal",
    "optim",
    "outer",
    "pad",
    "parameter",
    "permute_dims",
    "pow",
    "prod",
    "random",
    "real",
    "register_operator",
    "relu",
    "reshape",
    "roll",
    "round",
    "shift",
    "sigmoid",
    "sign",
    "silu",
    "softmax",
    "softplus",
    "sqrt",
    "square",
    "squeeze",
    "stack",
    "std",
    "subtract",
    "sum",
    "table",
    "take",
    "tanh",
    "tensor",
    "tensordot",
    "tril",
    "triu",
    "unregister_operator",
    "value_and_grad",
    "var",
    "vecdot",
    "where",
]

_MODULES = {
    "EinsumProgram": "ucle.program",
    "Result": "ucle.run.results",
    "Tensor": "ucle.lazy.tensor",
    "TensorRelation": "ucle.run.results",
    "array": "ucle.lazy.creation",
    "compute": "ucle.lazy.creation",
    "connect": "ucle.database.open_sessions",
    "einsum": "ucle.numpy_door.einsum",
    "einsum_program": "ucle.program",
    "grad": "ucle.lazy.gradients",
    "iterate": "ucle.lazy.loops",
    "parameter": "ucle.inputs.parameters",
    "register_operator": "ucle.registry",
    "table": "ucle.inputs.inputs",
    "tensor": "ucle.lazy.creation",
    "unregister_operator": "ucle.registry",
    "value_and_grad": "ucle.lazy.gradients",
}
"""Where public names are that are no functions of tensors (`ucle.lazy.functions`)."""

_NAMESPACES = ("init", "optim", "random")
"""Public modules."""

if not TYPE_CHECKING:  # which would take any name for one that is here

    def __getattr__(name: str) -> object:
        """A public name when it is first asked for: the compiler takes long to import."""
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        if name in _NAMESPACES:
            return import_module(f"ucle.{name}")
        import_module("ucle.lazy.tensor")  # tables have operators, too, which are its
        globals()[name] = value = getattr(
            import_module(_MODULES.get(name, "ucle.lazy.functions")), name
        )
        return value


def __dir__() -> list[str]:
    """The public names: modules are found by their paths, and not beside functions."""
    return __all__
