"""Statistics: the entries of a tensor, and the tuples in a decomposition of it.

`measure` reads T and V of inputs from their data (GetStats, sparse_einsum.txt, Algorithm 2);
`estimate` derives those of intermediate tensors and the sizes of decompositions, by one of several
`estimators`. The cost of a size is decided in `ucle.plan.prices`, not here.

In: a program, or an input and a function that runs SQL. Out: T and V, and numbers of tuples.
May import: `ucle.sqlgen`, `ucle.plan`, `ucle.ir`, `ucle.udf_kernels`.
"""

from ucle.stats.estimate import Estimator, ProgramStatistics, Rows, Statistics
from ucle.stats.estimators import ESTIMATORS
from ucle.stats.model import TensorStatistics
from ucle.stats.textbook import Occupancy, Textbook

__all__ = [
    "ESTIMATORS",
    "Estimator",
    "Occupancy",
    "ProgramStatistics",
    "Rows",
    "Statistics",
    "TensorStatistics",
    "Textbook",
]
