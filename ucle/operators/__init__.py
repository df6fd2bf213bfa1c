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
from ucle.operators.activations import (
    ERF,
    GELU,
    LEAKY_RELU,
    RELU,
    SIGMOID,
    SILU,
    SOFTPLUS,
)
from ucle.operators.arithmetic import (
    ABS,
    ADD,
    CONJ,
    DIV,
    GREATEST,
    IMAG,
    LEAST,
    MULT,
    NEG,
    REAL,
    RECIPROCAL,
    SIGN,
    SPARSE_DIV,
    SPARSE_MULT,
    SQUARE,
    SUB,
)
from ucle.operators.comparisons import (
    AND,
    EQUAL,
    FINITE,
    ISFINITE,
    ISINF,
    ISNAN,
    LESS,
    LESS_EQUAL,
    NOT,
    NOT_EQUAL,
    ONE_IF_ZERO,
    OR,
    XOR,
)
from ucle.operators.conditionals import (
    UNLESS,
    WHEN,
    WHEN_HIGHEST,
    WHEN_LOWEST,
    WHEN_ONE,
)
from ucle.operators.powers import (
    EXP,
    EXPM1,
    LOG,
    LOG1P,
    LOG2,
    LOG10,
    LOGADDEXP,
    POW,
    SQRT,
)
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
from ucle.operators.trigonometry import (
    ACOS,
    ACOSH,
    ASIN,
    ASINH,
    ATAN,
    ATAN2,
    ATANH,
    COS,
    COSH,
    HYPOT,
    SIN,
    SINH,
    TAN,
    TANH,
)
from ucle.operators.whole_numbers import (
    BIT_AND,
    BIT_COUNT,
    BIT_OR,
    BIT_XOR,
    BITWISE_LEFT_SHIFT,
    BITWISE_RIGHT_SHIFT,
    CEIL,
    COPYSIGN,
    FLOOR,
    FLOOR_DIVIDE,
    NEXTAFTER,
    RANDOM_BITS,
    REMAINDER,
    ROUND,
    TRUNC,
)

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

TRUTHS = {"True": True, "False": False}
"""The constants that are words."""

WORDS = (
    frozenset(row.symbol for row in COMBINES.values() if row.infix and row.symbol.isidentifier())
    | {NOT.name}
    | TRUTHS.keys()
)
"""The operators and constants that are words, which nothing else may be called."""

__all__ = [
    "ABS",
    "ACOS",
    "ACOSH",
    "ADD",
    "ALL",
    "AND",
    "ANY",
    "ASIN",
    "ASINH",
    "ATAN",
    "ATAN2",
    "ATANH",
    "BITWISE_LEFT_SHIFT",
    "BITWISE_RIGHT_SHIFT",
    "BIT_AND",
    "BIT_COUNT",
    "BIT_OR",
    "BIT_XOR",
    "CEIL",
    "COMBINES",
    "CONJ",
    "COPYSIGN",
    "COS",
    "COSH",
    "COUNT",
    "DIV",
    "EQUAL",
    "ERF",
    "EXP",
    "EXPM1",
    "FINITE",
    "FLOOR",
    "FLOOR_DIVIDE",
    "GELU",
    "GREATEST",
    "HYPOT",
    "IMAG",
    "ISFINITE",
    "ISINF",
    "ISNAN",
    "LEAKY_RELU",
    "LEAST",
    "LESS",
    "LESS_EQUAL",
    "LOG",
    "LOG1P",
    "LOG2",
    "LOG10",
    "LOGADDEXP",
    "LOGSUMEXP",
    "MAPS",
    "MAX",
    "MEAN",
    "MIN",
    "MULT",
    "NEG",
    "NEXTAFTER",
    "NOT",
    "NOT_EQUAL",
    "ONE_IF_ZERO",
    "OR",
    "PICK",
    "PICK_OR_FILL",
    "POW",
    "PROD",
    "RANDOM_BITS",
    "REAL",
    "RECIPROCAL",
    "REDUCES",
    "RELU",
    "REMAINDER",
    "ROUND",
    "SIGMOID",
    "SIGN",
    "SILU",
    "SIN",
    "SINH",
    "SOFTPLUS",
    "SPARSE_DIV",
    "SPARSE_MULT",
    "SQRT",
    "SQUARE",
    "SUB",
    "SUM",
    "TAN",
    "TANH",
    "TRUNC",
    "TRUTHS",
    "UNLESS",
    "WHEN",
    "WHEN_HIGHEST",
    "WHEN_LOWEST",
    "WHEN_ONE",
    "WORDS",
    "XOR",
    "Combine",
    "Interval",
    "PointwiseMap",
    "Reduce",
    "Texts",
    "Typing",
]
