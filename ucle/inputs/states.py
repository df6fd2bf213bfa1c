"""What is known of an input, stage by stage; each stage knows all that the one before it did.

    Described -> BoundInput -> SizedInput -> PlacedInput

A `ucle.inputs.inputs.Described` is what the caller handed over, looked at by itself. Bound, its
columns are found and its data is measured (`ucle.inputs.binding`). Sized, the inputs together and
the statements have told how long its axes are (`ucle.inputs.axis_sizes`). Placed, it is known in
which other layouts ucle has stored it (`ucle.inputs.stored_layouts`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any

from ucle.foundation.dtypes import DType, Scalar
from ucle.inputs.inputs import Described, DescribedTable
from ucle.language.bounds import AxisBound
from ucle.operators.values import Values
from ucle.plan.sources import Source, TableSource
from ucle.stats.model import TensorStatistics


@dataclass(frozen=True)
class BoundInput:
    """An input by itself: where it lies, how it is read, and what its data holds."""

    described: Described
    source: Source
    statistics: TensorStatistics
    bounds: tuple[AxisBound, ...]
    """What it says of the sizes of its axes; the program may have longer ones."""
    dtype: DType
    fill: Scalar
    values: Values
    """What the entries can be that are stored."""
    labels: tuple[str, ...]
    """Names of the axes in their first use."""

    @property
    def data(self) -> Any:
        """The array or the table, if it is in memory."""
        return self.described.data

    @property
    def dictionaries(self) -> Mapping[str, str]:
        """Names that the caller gave to the dictionaries of labels."""
        table = isinstance(self.described, DescribedTable)
        return dict(self.described.spec.dictionaries) if table else {}

    @property
    def origin(self) -> str:
        """Where it lies, for messages."""
        return str(self.source.origin) if isinstance(self.source, TableSource) else "an array"

    @property
    def sources(self) -> tuple[Source, ...]:
        """All places from where the tensor can be read."""
        return (self.source,)


@dataclass(frozen=True)
class SizedInput(BoundInput):
    """An input of a program in which the sizes of all labels are known."""

    shape: tuple[int, ...]

    @classmethod
    def of(cls, bound: BoundInput, shape: tuple[int, ...]) -> SizedInput:
        """The input in a shape; an axis has no more different coordinates than it is long."""
        bound_fields = dict(_known(bound, BoundInput))
        return cls(**bound_fields | {"statistics": bound.statistics.within(shape)}, shape=shape)


@dataclass(frozen=True)
class PlacedInput(SizedInput):
    """An input with all places from where it can be read."""

    kept: tuple[TableSource, ...]
    """Tables that hold the same tensor in other layouts."""
    keep_in: str | None
    """The database in which it is to be stored in the layouts that are read, if it is to be."""

    @classmethod
    def at(
        cls, sized: SizedInput, kept: tuple[TableSource, ...] = (), keep_in: str | None = None
    ) -> PlacedInput:
        """An input that is stored in some tables, too."""
        return cls(**dict(_known(sized, SizedInput)), kept=kept, keep_in=keep_in)

    @property
    def sources(self) -> tuple[Source, ...]:
        """All places from where the tensor can be read."""
        return (self.source, *self.kept)


def _known(bound: BoundInput, state: type[BoundInput]) -> Iterator[tuple[str, Any]]:
    """What is known of an input in a state."""
    return ((field.name, getattr(bound, field.name)) for field in fields(state))
