"""Linear algebra of lazy tensors under the names of `numpy.linalg` and the array API standard.

``cholesky``, ``cond``, ``det``, ``eigh``, ``eigvalsh``, ``inv``, ``lstsq``, ``matrix_rank``,
``pinv``, ``qr``, ``slogdet``, ``solve``, ``svd`` and ``svdvals`` take dense matrices along the last
two axes, one for each position of the other axes; all other functions are those of `ucle` with the
same names. The functions of dense matrices have no gradients.

>>> import ucle
>>> ucle.linalg.solve([[2.0, 1.0], [1.0, 3.0]], [3.0, 4.0]).to_numpy().round(12).tolist()
[1.0, 1.0]
"""

from ucle.lazy.factorisations import qr, svd, svdvals
from ucle.lazy.functions import matmul, tensordot, vecdot
from ucle.lazy.least_squares import cond, lstsq, matrix_rank, pinv
from ucle.lazy.linear_algebra import matrix_norm, norm, vector_norm
from ucle.lazy.matrices import (
    cholesky,
    det,
    diagonal,
    eigh,
    eigvalsh,
    inv,
    slogdet,
    solve,
    trace,
)

__all__ = [
    "cholesky",
    "cond",
    "det",
    "diagonal",
    "eigh",
    "eigvalsh",
    "inv",
    "lstsq",
    "matmul",
    "matrix_norm",
    "matrix_rank",
    "norm",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "svd",
    "svdvals",
    "tensordot",
    "trace",
    "vecdot",
    "vector_norm",
]
