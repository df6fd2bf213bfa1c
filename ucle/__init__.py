"""ucle compiles EinSum programs into tensor-relational SQL for DuckDB.

>>> import ucle
>>> ucle.einsum("ij,j->i", [[1, 2], [3, 4]], [1, 1])
array([3, 7])
"""

from ucle.errors import UcleError
from ucle.inputs import table
from ucle.numpy_einsum import einsum
from ucle.program import EinsumProgram, einsum_program
from ucle.registry import register_operator, unregister_operator
from ucle.results import Result, TensorRelation
from ucle.session import connect
from ucle.version import __version__

__all__ = [
    "EinsumProgram",
    "Result",
    "TensorRelation",
    "UcleError",
    "__version__",
    "connect",
    "einsum",
    "einsum_program",
    "register_operator",
    "table",
    "unregister_operator",
]
