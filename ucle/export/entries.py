"""Values whose axes have labels, and values without labels: numbers and unknown sizes."""

from __future__ import annotations

from collections.abc import Sequence

from ucle.export.graph import Value
from ucle.export.open_axes import Extents
from ucle.foundation.dataclasses import dataclass
from ucle.foundation.dtypes import DType, Scalar
from ucle.language.syntax import Reindexed


@dataclass(frozen=True, eq=False)
class Entries:
    """A value with a label for each axis."""

    value: Value
    labels: tuple[str, ...]

    @property
    def dtype(self) -> DType:
        """The element type."""
        return self.value.dtype

    def cast(self, dtype: DType) -> Entries:
        """The same in another type."""
        return Entries(self.value.cast(dtype), self.labels)

    def relabel(self, labels: Sequence[str]) -> Entries:
        """The same axes under other labels."""
        return Entries(self.value, tuple(labels))

    def in_order(self, labels: Sequence[str]) -> Entries:
        """The same with its axes in another order."""
        return Entries(self.value.transpose([self.labels.index(x) for x in labels]), tuple(labels))

    def aligned(self, every: Sequence[str]) -> Value:
        """The value as an operand along these labels: those that it lacks have size 1, or none."""
        own = self.in_order([label for label in every if label in self.labels])
        first = every.index(own.labels[0]) if own.labels else len(every)
        missing = [n - first for n, x in enumerate(every) if n >= first and x not in own.labels]
        return own.value.axes("Unsqueeze", missing)


@dataclass(frozen=True, eq=False)
class Weak:
    """A number that only a run knows, such as a size; it takes the type of what it meets.

    Args:
        value: the node.
        sample: the number as it was when the program was compiled, whose kind counts.
    """

    value: Value
    sample: Scalar


@dataclass(frozen=True, eq=False)
class FirstEntries:
    """First entries and their positions, of which a reader takes one.

    Args:
        values: the entries.
        positions: where they are.
    """

    values: Entries
    positions: Entries


@dataclass(frozen=True, eq=False)
class Hits:
    """Where entries equal the coordinates of a label: it is made only if something reads it all.

    Args:
        entries: the positions.
        label: the label that is hit, the last one.
        read: the right side of the statement.
        extents: the sizes of its labels.
    """

    entries: Entries
    label: str
    read: Reindexed
    extents: Extents


Term = Entries | Weak | Scalar
"""What an expression becomes."""
Tensor = Entries | FirstEntries | Hits
"""What a statement becomes."""


def every_label(*parts: Entries) -> tuple[str, ...]:
    """The labels of several values, in order of first use."""
    return tuple(dict.fromkeys(label for part in parts for label in part.labels))
