"""Linear algebra of lazy tensors under the names of `numpy.linalg` and the array API standard.

``cholesky``, ``inv``, ``eigh``, ``eigvalsh`` and ``solve`` take dense matrices in the last
two axes, one for each position of the others; all other functions are those of `ucle` with the same
names.

>>> import ucle
>>> ucle.linalg.solve([[2.0, 1.0], [1.0, 3.0]], [3.0, 4.0]).to_numpy().round(12).tolist()
[1.0, 1.0]
"""

from ucle.lazy.functions import matmul, tensordot, vecdot
from ucle.lazy.linear_algebra import matrix_norm, norm, vector_norm
from ucle.lazy.matrices import cholesky, diagonal, eigh, eigvalsh, inv, solve, trace

__all__ = [
    "cholesky",
    "diagonal",
    "eigh",
    "eigvalsh",
    "inv",
    "matmul",
    "matrix_norm",
    "norm",
    "solve",
    "tensordot",
    "trace",
    "vecdot",
    "vector_norm",
]
