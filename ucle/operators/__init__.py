"""The operators of EinSum: one row for each ⊗ (combine), ⊕ (reduce) and function of one value.

In: element types and numbers. Out: `COMBINES`, `REDUCES` and `MAPS`, the rows by their names; each
module holds those of one kind. Operators are values: `ucle.language.parse` looks their names up,
and all that comes after holds the rows, so that nothing that is registered later changes a program.
`ucle.register_operator` adds rows. Knows no tensors and no programs, and builds no SQL.
May import: `ucle.foundation`.
"""

from itertools import chain

from ucle.operators import (
    activations,
    arithmetic,
    comparisons,
    conditionals,
    powers,
    reductions,
    trigonometry,
    whole_numbers,
)
from ucle.operators.arithmetic import (
    ABS,
    ADD,
    CONJ,
    DIV,
    GREATEST,
    LEAST,
    MULT,
    NEG,
    SPARSE_DIV,
    SPARSE_MULT,
    SQUARE,
    SUB,
)
from ucle.operators.comparisons import AND, EQUAL, LESS, LESS_EQUAL, NOT, NOT_EQUAL, OR, XOR
from ucle.operators.conditionals import UNLESS, WHEN, WHEN_HIGHEST, WHEN_LOWEST, WHEN_ONE
from ucle.operators.powers import POW
from ucle.operators.reductions import (
    ALL,
    ANY,
    COUNT,
    LOGSUMEXP,
    MAX,
    MEAN,
    MIN,
    PICK,
    PICK_OR_FILL,
    PROD,
    SUM,
)
from ucle.operators.rows import Combine, Interval, PointwiseMap, Reduce, Texts, Typing
from ucle.operators.whole_numbers import RANDOM_BITS

COMBINES: dict[str, Combine] = {
    row.name: row
    for row in chain(
        arithmetic.COMBINES,
        comparisons.COMBINES,
        conditionals.COMBINES,
        powers.COMBINES,
        trigonometry.COMBINES,
        whole_numbers.COMBINES,
    )
}
REDUCES: dict[str, Reduce] = {row.name: row for row in reductions.REDUCES}
MAPS: dict[str, PointwiseMap] = {
    row.name: row
    for row in chain(
        arithmetic.MAPS,
        comparisons.MAPS,
        powers.MAPS,
        trigonometry.MAPS,
        whole_numbers.MAPS,
        activations.MAPS,
    )
}

__all__ = [
    "ABS",
    "ADD",
    "ALL",
    "AND",
    "ANY",
    "COMBINES",
    "CONJ",
    "COUNT",
    "DIV",
    "EQUAL",
    "GREATEST",
    "LEAST",
    "LESS",
    "LESS_EQUAL",
    "LOGSUMEXP",
    "MAPS",
    "MAX",
    "MEAN",
    "MIN",
    "MULT",
    "NEG",
    "NOT",
    "NOT_EQUAL",
    "OR",
    "PICK",
    "PICK_OR_FILL",
    "POW",
    "PROD",
    "RANDOM_BITS",
    "REDUCES",
    "SPARSE_DIV",
    "SPARSE_MULT",
    "SQUARE",
    "SUB",
    "SUM",
    "UNLESS",
    "WHEN",
    "WHEN_HIGHEST",
    "WHEN_LOWEST",
    "WHEN_ONE",
    "XOR",
    "Combine",
    "Interval",
    "PointwiseMap",
    "Reduce",
    "Texts",
    "Typing",
]
