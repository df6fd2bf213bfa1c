"""All operators, by domain and name."""

from __future__ import annotations

from collections.abc import Mapping

from ucle.models.calls import Operator
from ucle.models.operators import (
    convolutions,
    elementwise,
    interpolation,
    learned,
    look_ups,
    ordinal,
    preprocessing,
    products,
    recurrent,
    reductions,
    shapes,
    trees,
)

_STANDARD = (
    elementwise,
    products,
    reductions,
    shapes,
    look_ups,
    convolutions,
    recurrent,
    interpolation,
)
_LEARNING = (preprocessing, trees)

TABLE: Mapping[tuple[str, str], Operator] = {
    **{("", name): row for module in _STANDARD for name, row in module.OPERATORS.items()},
    **{("ai.onnx.ml", name): row for module in _LEARNING for name, row in module.OPERATORS.items()},
    **{
        ("ucle", name): row
        for module in (learned, ordinal)
        for name, row in module.OPERATORS.items()
    },
}
"""The domain of the standard operators is the empty string."""
