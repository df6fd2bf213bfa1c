"""A node of a model's graph, as the operators receive it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ucle.errors import UnsupportedError
from ucle.foundation.dataclasses import dataclass
from ucle.models.values import Outputs, Value
from ucle.models.views import View
from ucle.models.writer import Writer

Operator = Callable[["Call"], Outputs]
"""From a node to the value of its first output, or to those of all."""


@dataclass(frozen=True)
class Call:
    """A node with its operands.

    Args:
        operator: its name.
        inputs: the operands; None where an optional one is not given.
        attributes: by name, as plain values of Python and NumPy.
        names: the names of its outputs.
        version: of the set of operators.
        writer: the statements so far.
    """

    operator: str
    inputs: tuple[Value | None, ...]
    attributes: Mapping[str, Any]
    names: tuple[str, ...]
    version: int
    writer: Writer

    @property
    def name(self) -> str:
        """The name of the first output."""
        return self.names[0] or self.operator

    def get(self, attribute: str, default: Any = None) -> Any:
        """The value of an attribute."""
        return self.attributes.get(attribute, default)

    def given(self, place: int) -> Value | None:
        """An operand that may be missing."""
        return self.inputs[place] if place < len(self.inputs) else None

    def operand(self, place: int) -> Value:
        """An operand that may not.

        Raises:
            UnsupportedError: it is missing.
        """
        value = self.given(place)
        if value is None:
            raise UnsupportedError(f"operand {place} is missing", where=self.operator)
        return value

    def view(self, place: int) -> View:
        """An operand as a tensor of the program."""
        return self.writer.view(self.operand(place), f"{self.name}_{place}")

    def constant(self, place: int, default: Any = None) -> Any:
        """An operand whose value has to be known.

        Raises:
            UnsupportedError: the model computes it.
        """
        value = self.given(place)
        if value is None:
            return default
        if not isinstance(value, np.ndarray):
            raise UnsupportedError(
                f"operand {place} is computed by the model",
                where=f"{self.operator}, {self.name}",
                expected="a constant",
                hint="state the sizes of its inputs: from_onnx(..., sizes={'sequence': 64})",
            )
        return value

    def integers(self, place: int, attribute: str) -> tuple[int, ...] | None:
        """Integers that are an operand in some versions, and an attribute in others."""
        value = self.constant(place)
        if value is None:
            value = self.get(attribute)
        return None if value is None else tuple(int(x) for x in np.asarray(value).reshape(-1))

    def refuse(self, what: str, expected: str | None = None) -> UnsupportedError:
        """The error for a form of the operator that is not there."""
        return UnsupportedError(what, where=f"{self.operator}, {self.name}", expected=expected)
