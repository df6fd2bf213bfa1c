"""Operators on shapes that have the number of rows: what exported models compute sizes with."""

from __future__ import annotations

from typing import Any

import numpy as np

from ucle.models.calls import Call, Operator
from ucle.models.operators import shapes
from ucle.models.operators.elementwise import same
from ucle.models.operators.look_ups import gather
from ucle.models.values import Dims, Outputs, Value
from ucle.models.views import Size


def _as_sizes(value: Value | None) -> Dims:
    if isinstance(value, tuple):
        return value
    return tuple(Size(int(x)) for x in np.asarray(value).reshape(-1))


def arithmetic(name: str) -> Operator:
    """Products, quotients, sums and differences of sizes.

    Raises:
        UnsupportedError: the result is no multiple of the number of rows.
    """

    def operator(call: Call) -> Outputs:
        one, other = _as_sizes(call.inputs[0]), _as_sizes(call.inputs[1])
        length = max(len(one), len(other))
        pairs = zip(one * (length // len(one)), other * (length // len(other)), strict=True)
        return tuple(_combine(call, name, a, b) for a, b in pairs)

    return operator


def _combine(call: Call, name: str, a: Size, b: Size) -> Size:
    if name == "Mul" and not (a.rows and b.rows):
        return Size(a.number * b.number, a.rows or b.rows)
    if name == "Div" and b.number and a.number % b.number == 0 and (a.rows or not b.rows):
        return Size(a.number // b.number, a.rows and not b.rows)
    if name in ("Add", "Sub") and a.rows == b.rows:
        number = a.number + b.number if name == "Add" else a.number - b.number
        if number > 0 or not a.rows:
            return Size(number, a.rows)
    if name in ("Add", "Sub") and b == Size(0):
        return a
    raise call.refuse("the number of rows is used as a number", "shapes")


def product(call: Call) -> Outputs:
    """The product of sizes."""
    return (shapes.whole(_as_sizes(call.inputs[0])),)


def is_equal(call: Call) -> Outputs:
    """Comparisons of sizes: the number of rows equals no constant."""
    one, other = _as_sizes(call.inputs[0]), _as_sizes(call.inputs[1])
    pairs = zip(
        one * (len(other) // len(one) or 1), other * (len(one) // len(other) or 1), strict=True
    )
    return np.array([a == b for a, b in pairs])


def choose(call: Call) -> Outputs:
    """`Where` of sizes, by a constant condition."""
    condition = np.asarray(call.constant(0)).reshape(-1)
    one, other = _as_sizes(call.inputs[1]), _as_sizes(call.inputs[2])
    length = max(len(condition), len(one), len(other))

    def stretched(values: Any) -> Any:
        return list(values) * (length // len(values))

    return tuple(
        a if c else b
        for c, a, b in zip(stretched(condition), stretched(one), stretched(other), strict=True)
    )


SHAPE_OPERATORS: dict[str, Operator] = {
    "Concat": shapes.concat,
    "Gather": gather,
    "Slice": shapes.slice_axes,
    "Squeeze": same,
    "Unsqueeze": same,
    "Reshape": lambda call: (
        call.operand(0) if isinstance(call.operand(0), tuple) else shapes.reshape(call)
    ),
    "Cast": same,
    "Identity": same,
    "Shape": shapes.shape,
    "ReduceProd": product,
    "Equal": is_equal,
    "Where": choose,
    **{name: arithmetic(name) for name in ("Add", "Sub", "Mul", "Div")},
}
