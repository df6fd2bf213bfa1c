"""What nodes of a model hand to each other: tensors, constants, shapes and strings."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from ucle.foundation.dataclasses import dataclass
from ucle.models.views import Size, View

Array = NDArray[Any]
Dims = tuple[Size, ...]
"""A shape as a value, as `Shape` returns it, where it has the number of rows."""


@dataclass(frozen=True)
class TextColumns:
    """Columns of strings, of which each row has one of each.

    Args:
        names: of the inputs.
    """

    names: tuple[str, ...]


@dataclass(frozen=True)
class Names:
    """Strings by their positions in a list, such as the classes that a model predicts.

    Args:
        positions: a tensor of positions.
        names: the list.
    """

    positions: View
    names: Array


@dataclass(frozen=True)
class KnownNames:
    """A weight whose first axis has names as coordinates: 1 for each name and its position.

    >>> KnownNames(("red", "blue")).names
    ('red', 'blue')
    """

    names: tuple[str, ...]


Value = View | Array | Dims | TextColumns | Names
"""What an operator receives."""
Outputs = Value | tuple[Value | None, ...]
"""What it returns: its first output, or all of them."""
