"""The facts known about an input, stage by stage; each stage includes those of the stage before.

    Described -> BoundInput -> SizedInput -> PlacedInput

A `ucle.inputs.inputs.Described` is the caller's object after inspection on its own. When it is
bound, its columns have been found and its data has been measured (`ucle.inputs.binding`). When it
is sized, the lengths of its axes have been inferred from all inputs and the statements
(`ucle.inputs.axis_sizes`). When it is placed, the other layouts are known in which ucle has stored
it (`ucle.inputs.stored_layouts`).

Arrays in memory may be small enough to be written into statements (`small_arrays`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any

import numpy as np

from ucle.foundation.dataclasses import dataclass
from ucle.foundation.dtypes import DType, Scalar, differs_from
from ucle.inputs.column_roles import stated_dictionaries
from ucle.inputs.inputs import Described, DescribedTable
from ucle.inputs.one_hot import as_arrays
from ucle.inputs.sparse_entries import SparseEntries
from ucle.language.bounds import AxisBound
from ucle.operators.values import Values
from ucle.plan.sources import ArraySource, InputSource, ListsSource, TableSource
from ucle.stats.model import TensorStatistics


@dataclass(frozen=True)
class BoundInput:
    """An input by itself: its location, the way it is read, and the facts about its data."""

    described: Described
    source: InputSource
    statistics: TensorStatistics
    bounds: tuple[AxisBound, ...]
    """Its own information about the sizes of its axes; the program may have longer ones."""
    dtype: DType
    fill: Scalar
    values: Values
    """The possible values of stored entries."""
    labels: tuple[str, ...]
    """Names of the axes in its first use."""
    entries: SparseEntries | None
    """The entries that the source reads, if they are in memory and are rows of their own."""

    @property
    def data(self) -> Any:
        """The array or table, if it is in memory."""
        return self.described.data

    @property
    def loaded(self) -> Any:
        """The array, or the entries, that a `ucle.plan.relation_nodes.Load` hands over."""
        return self.data if self.entries is None else self.entries

    @property
    def dictionaries(self) -> Mapping[str, str]:
        """Names that the caller gave to the dictionaries of labels."""
        if not isinstance(self.described, DescribedTable):
            return {}
        keys = self.source.keys if isinstance(self.source, TableSource) else ()
        if (columns_as := self.described.spec.columns_as) is not None:
            keys = (*keys, columns_as)
        stated, _ = stated_dictionaries(self.described.spec.dictionaries, self.labels, keys)
        return {self.labels[axis]: name for axis, name in stated.items()}

    @property
    def origin(self) -> str:
        """Its location, for messages."""
        return str(self.source.origin) if isinstance(self.source, TableSource) else "an array"

    @property
    def sources(self) -> tuple[InputSource, ...]:
        """All sources from which the tensor can be read."""
        return (self.source,)


@dataclass(frozen=True)
class SizedInput(BoundInput):
    """An input of a program whose labels all have known sizes."""

    shape: tuple[int, ...]

    @classmethod
    def of(cls, bound: BoundInput, shape: tuple[int, ...]) -> SizedInput:
        """Give an input a shape, and limit its distinct coordinates to the lengths of its axes."""
        bound_fields = dict(_iterate_fields(bound, BoundInput))
        return cls(**bound_fields | {"statistics": bound.statistics.within(shape)}, shape=shape)


@dataclass(frozen=True)
class PlacedInput(SizedInput):
    """An input with all sources from which it can be read."""

    kept: tuple[TableSource, ...]
    """Tables that hold the same tensor in other layouts."""
    keep_in: str | None
    """The database that is to store it in the layouts that are read; None to not store it."""

    @classmethod
    def at(
        cls, sized: SizedInput, kept: tuple[TableSource, ...] = (), keep_in: str | None = None
    ) -> PlacedInput:
        """Add the stored tables of an input."""
        return cls(**dict(_iterate_fields(sized, SizedInput)), kept=kept, keep_in=keep_in)

    @property
    def sources(self) -> tuple[InputSource, ...]:
        """All sources from which the tensor can be read."""
        return (self.source, *self.kept, *self._arrays, *self._lists)

    @property
    def _arrays(self) -> tuple[TableSource, ...]:
        """The rows of a wide table with categories as arrays, if it is one and they are short."""
        if not isinstance(self.source, TableSource):
            return ()
        arrays = as_arrays(self.source, self.shape[-1], self.fill) if self.shape else None
        return () if arrays is None else (arrays,)

    @property
    def _lists(self) -> tuple[ListsSource, ...]:
        """The compressed arrays of a sparse matrix in memory, if they hold what its table holds."""
        entries = self.entries
        if entries is None or not entries.is_matrix or self.described.spec.varies:
            return ()
        return (ListsSource(entries.tensor, self.shape, self.origin),)


def _iterate_fields(bound: BoundInput, state: type[BoundInput]) -> Iterator[tuple[str, Any]]:
    """The fields of an input in a state."""
    return ((field.name, getattr(bound, field.name)) for field in fields(state))


SMALL_BYTES = 1 << 10
"""The largest size in bytes of an array that is written into statements."""


COLUMN_BYTES = 1 << 14
"""The largest size in bytes of an array of which expressions over columns have the elements."""


def small_arrays(
    inputs: Mapping[str, BoundInput], most: int = SMALL_BYTES, *, fills: bool = False
) -> dict[str, bytes]:
    """The elements of small arrays, by tensor; arrays that hold only the fill are left out.

    `most` is the size in bytes up to which an array is small; with `fills`, none is left out.

    Parameters are left out, too, because their numbers will be replaced.
    """
    return {
        name: np.ascontiguousarray(bound.data).tobytes()
        for name, bound in inputs.items()
        if isinstance(bound.source, ArraySource)
        and not bound.described.spec.varies
        and 0 < bound.data.nbytes <= most
        and (fills or differs_from(bound.data, bound.fill).any())
    }
