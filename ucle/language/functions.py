"""The functions of the language that are written with others, by their text.

What is one kernel stands in `ucle.operators`; what is an expression over those stands here, in
the language itself, and is put in place of a call by `ucle.language.resolve`. Aggregations that are
written with others have their expression in their rows. Names of element types are casts.
"""

from __future__ import annotations

from dataclasses import dataclass

from ucle.foundation.dtypes import DType
from ucle.operators import MAPS, PointwiseMap


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


def function_named(name: str) -> PointwiseMap | DType | str:
    """The map or the cast of a name; the name where it is neither of them.

    >>> function_named("relu").name, function_named("int64"), function_named("where")
    ('relu', <DType.INT64: 'int64'>, 'where')
    """
    return MAPS.get(name) or CASTS.get(name) or name
