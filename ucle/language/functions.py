"""The functions of the language that are no operators: top-k functions, and derived ones.

What is one kernel stands in `ucle.operators`. What is an expression over those stands here, in the
language itself, and is put in place of a call by `ucle.language.resolve`. Aggregations that are
written with others (`count`, `mean`, `logsumexp`) stand there with NumPy's name, and here with
their expression. Names of element types are casts.

``top_k[j,r](...)`` returns the greatest entries along j, the r-th of them at r.
``arg_top_k[j,r](...)`` returns their positions, and ``among_top_k[j,r](...)`` is true along j where
they are. Without r, only the first entry counts. ``argmax[j](...)`` is the position of the greatest
entry; as in NumPy, that is the first NaN, if there is one. The same holds for ``argmin``, whereas
``bottom_k`` puts NaN at the end.

``softmax[j](...)`` and its like (`ALONG`) are expressions of an argument and its aggregations.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

import numpy as np

from ucle.foundation.dataclasses import dataclass
from ucle.foundation.dtypes import DType
from ucle.operators import (
    ABS,
    ATAN2,
    COMBINES,
    DIV,
    LOG,
    MAPS,
    POW,
    REMAINDER,
    ROUND,
    Combine,
    PointwiseMap,
)


class Direction(Enum):
    """The order that determines the first entries."""

    GREATEST = "the greatest, NaN before them"
    LEAST = "the least, NaN at the end"
    LEAST_OR_NAN = "the least, NaN before them"


class Gives(Enum):
    """The result of a top-k function."""

    VALUES = "what they are"
    POSITIONS = "where they are"
    MEMBERS = "yes where they are, no elsewhere"


@dataclass(frozen=True)
class FirstFunction:
    """A top-k function: its order, its result, and whether it may return several entries."""

    name: str
    order: Direction
    gives: Gives
    several: bool = True

    @property
    def form(self) -> str:
        """The syntax of a call."""
        return f"{self.name}[j,r](...)" if self.several else f"{self.name}[j](...)"


FIRST: Mapping[str, FirstFunction] = {
    each.name: each
    for each in (
        FirstFunction("top_k", Direction.GREATEST, Gives.VALUES),
        FirstFunction("bottom_k", Direction.LEAST, Gives.VALUES),
        FirstFunction("arg_top_k", Direction.GREATEST, Gives.POSITIONS),
        FirstFunction("arg_bottom_k", Direction.LEAST, Gives.POSITIONS),
        FirstFunction("among_top_k", Direction.GREATEST, Gives.MEMBERS),
        FirstFunction("among_bottom_k", Direction.LEAST, Gives.MEMBERS),
        FirstFunction("argmax", Direction.GREATEST, Gives.POSITIONS, several=False),
        FirstFunction("argmin", Direction.LEAST_OR_NAN, Gives.POSITIONS, several=False),
    )
}
"""The top-k functions, by their names in programs."""


@dataclass(frozen=True)
class DerivedFunction:
    """A function of expressions: the names of its arguments and what it stands for."""

    parameters: tuple[str, ...]
    text: str


CASTS = {dtype.value: dtype for dtype in DType}
"""Functions that change the element type."""

UNIFORM = "float64(random_bits(seed, position)) * 1.1102230246251565e-16"
"""A multiple of 2^-53 made of 53 random bits, from 0 to 1 with 1 excluded."""

FUNCTIONS: dict[str, DerivedFunction] = {
    "where": DerivedFunction(("c", "x", "y"), "when(c, x) + unless(c, y)"),
    "clip": DerivedFunction(("x", "low", "high"), "min(max(x, low), high)"),
    "logical_and": DerivedFunction(("x", "y"), "x and y"),
    "logical_or": DerivedFunction(("x", "y"), "x or y"),
    "logical_xor": DerivedFunction(("x", "y"), "x xor y"),
    "logical_not": DerivedFunction(("x",), "not x"),
    "signbit": DerivedFunction(("x",), "x < 0"),
    "random_uniform": DerivedFunction(("seed", "position"), UNIFORM),
    # Of the middle of one of 2^52 intervals, never 0 or 1; the ends say so to the compiler.
    "random_normal": DerivedFunction(
        ("seed", "position"),
        f"normal_quantile(min(max((floor({UNIFORM} * 4503599627370496) + 0.5)"
        " * 2.220446049250313e-16, 1.1102230246251565e-16), 0.9999999999999999))",
    ),
}
"""Functions of two arguments that are a ⊗ of `ucle.operators` need no row."""

_TRANSFORM = "ucle.fft.{name}(x) is a lazy tensor, and may be an input of the program"
_SEARCH = "sum[k](table[k] < x[i]) is the position of x in a table in ascending order"
_COLLECTED = "the number of entries depends on data: apply {name} to a result, in NumPy or SQL"
ELSEWHERE: dict[str, str] = {
    "searchsorted": _SEARCH,
    **{
        name: _TRANSFORM.format(name=name)
        for kind in ("fft", "ifft", "rfft", "irfft")
        for name in (kind, f"{kind}2", f"{kind}n")
    },
    **{name: _TRANSFORM.format(name=name) for name in ("hfft", "ihfft", "fftshift", "ifftshift")},
    **{name: _COLLECTED.format(name=name) for name in ("nonzero", "unique")},
}
"""What to write instead of functions that people look for and the language does not have."""

_DEVIATION = "(x - mean(x))"
_VARIANCE = "mean(square(x - mean(x)))"

ALONG: dict[str, str] = {
    "softmax": "exp(x - logsumexp(x))",
    "log_softmax": "x - logsumexp(x)",
    "normalize": "x * finite(1 / sqrt(sum(square(abs(x)))))",
    "standardize": f"{_DEVIATION} / sqrt({_VARIANCE})",
    "layer_norm": f"{_DEVIATION} / sqrt({_VARIANCE} + 1e-05)",
}
"""Functions along labels that stay, ``softmax[j](S[i,j])``, as templates of `x`.

Source: ``log_softmax`` and ``layer_norm``, without weights, are PyTorch's, with its epsilon;
``normalize`` divides by the Euclidean length where that is not 0, as scikit-learn's, so that what
is sparse stays so, and ``standardize`` by the standard deviation.
"""


@dataclass(frozen=True)
class DerivedAlong:
    """A function of `ALONG`, along labels that stay. A resolved expression contains none."""

    name: str
    labels: tuple[str, ...]

    def rename_labels(self, names: Mapping[str, str]) -> DerivedAlong:
        """Rename its labels.

        >>> DerivedAlong("softmax", ("j",)).rename_labels({"j": "k"}).labels
        ('k',)
        """
        return DerivedAlong(self.name, tuple(names.get(x, x) for x in self.labels))


_ROWS: tuple[Combine | PointwiseMap, ...] = (*MAPS.values(), *COMBINES.values())

OTHER_NAMES: Mapping[str, str] = {
    **{
        row.numpy.__name__: row.name
        for row in _ROWS
        if isinstance(row.numpy, np.ufunc) and row.numpy.__name__ not in (row.name, *FUNCTIONS)
    },
    # Those of rows that have a function of their own in place of NumPy's.
    **dict.fromkeys(("divide", "true_divide"), DIV.name),
    **dict.fromkeys(("power", "float_power"), POW.name),
    "arctan2": ATAN2.name,
    "mod": REMAINDER.name,
    "rint": ROUND.name,
    "fabs": ABS.name,
    "ln": LOG.name,
}
"""Names of operators in NumPy, and one in SQL, that are others here."""


def own_name(name: str) -> str:
    """The name of an operator that NumPy calls otherwise; a name that has a row stays.

    >>> own_name("arcsin"), own_name("maximum"), own_name("exp"), own_name("f")
    ('asin', 'max', 'exp', 'f')
    """
    return name if name in MAPS or name in COMBINES else OTHER_NAMES.get(name, name)


def function_named(name: str) -> PointwiseMap | DType | str:
    """The map or the cast of a name; the name where it is neither of them.

    >>> function_named("relu").name, function_named("int64"), function_named("where")
    ('relu', <DType.INT64: 'int64'>, 'where')
    """
    return MAPS.get(name) or CASTS.get(name) or name
