"""The input table with named columns, which `ucle.inputs.table_options.table` makes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ucle.foundation.dataclasses import dataclass
from ucle.foundation.dtypes import DType, Scalar
from ucle.inputs.arithmetic import Arithmetic
from ucle.plan.sources import Nulls, TableSource, TimePairs
from ucle.stats.measure import MeasuredInput

if TYPE_CHECKING:
    from ucle.database.session import Session

Measure = Callable[["Session", str, TableSource, Scalar, bool], MeasuredInput]
"""Measures and checks a source, as `ucle.database.statistics_cache.known_facts` does: the session,
the name of the tensor, the source, its fill, and whether it asks for coverage."""


@dataclass(frozen=True)
class PickedPositions:
    """A key whose values are positions by which a lazy tensor is indexed; the rest is shown."""

    key: int
    axis: str | int
    """The name of the axis, or its place if it has none."""
    tensor: str
    """The axes of the tensor."""


@dataclass(frozen=True, eq=False)
class TableInput(Arithmetic[Any]):
    """An input table with named columns; made by `table`. Its operators return lazy tensors."""

    relation: Any
    columns: tuple[str, ...] | tuple[tuple[str, str], ...] | None = None
    value: str | Scalar | None = None
    """The value column, or the number that every row holds."""
    columns_as: str | None = None
    """The name of the axis whose coordinates are the names of the value columns, if it has one."""
    values: tuple[str, ...] | None = None
    """The value columns of a wide table; None for all columns but the keys."""
    one_hot: tuple[str, ...] = ()
    """The value columns that hold categories."""
    ragged: str | None = None
    """The name of the axis along which lists in the value column have different lengths."""
    ends: str | None = None
    """The column of the positions before which runs of one value end."""
    nulls: Nulls = Nulls.REFUSED
    shape: tuple[int, ...] | None = None
    bounds: tuple[int | None, ...] | None = None
    fill: Scalar | None = None
    """None for 0, or for the fill in a stored description."""
    sum_duplicates: bool = False
    dtype: DType | None = None
    encode: bool = False
    """True if integers in key columns go through a dictionary as well."""
    dictionaries: tuple[tuple[str, str], ...] = ()
    """Pairs of a label and the name of the dictionary that its key columns go through."""
    encoded_keys: tuple[int, ...] = ()
    """Positions of key columns that go through a dictionary, whatever their type."""
    unsorted: frozenset[int] = frozenset()
    """Positions of keys whose coordinates were positions in an array, but unsorted."""
    picks: bool = False
    """True if its first key picks coordinates, which have to occur in other inputs."""
    positions: tuple[PickedPositions, ...] = ()
    """The keys that pick positions, which axes of names or dates do not have."""
    tiles: tuple[int | None, ...] | None = None
    """Size of the tiles in the arrays along each of the first axes; None along the others."""
    presence: bool = False
    """True if it holds True for each stored entry, whatever its value."""
    times: TimePairs | None = None
    """The pairs of times that it holds in place of the rows of its relation."""
    symmetric: bool = False
    """True if each row stands for its first two coordinates in either order."""
    varies: bool = False
    """True if other data may replace its data, so that no plan relies on the current values."""
    infinity: float | None = None
    """The one infinity that data which replaces an array may hold; None if it may hold NaN, too."""
    name: str | None = None
    """Its name in lazy tensors; by default that of its relation."""
    measured: MeasuredInput | Measure | None = None
    """Known measurements, if the relation is only a placeholder for data elsewhere; or what
    measures it."""
    delimiter: str | None = None
    """The delimiter of a text file; None (also for the fields below) infers it from the file."""
    header: bool | None = None
    comment: str | None = None
