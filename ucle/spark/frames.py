"""Relations on Spark: DataFrames of rows, or packs of rows that fragments have made."""

from __future__ import annotations

import math
import weakref
from collections import deque
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Protocol

from ucle.foundation.dataclasses import dataclass
from ucle.foundation.libraries import pa
from ucle.partitions.fragments import Fragment
from ucle.plan.placement_rules import Placement
from ucle.plan.relation_nodes import Read
from ucle.spark.kinds import KEY_KINDS, KINDS, arrow_type
from ucle.spark.tasks import ROWS, FragmentTask, TaskContext, unpack
from ucle.sqlgen.sql_trees import VALUE, key_columns


class Persisted:
    """Data that Spark keeps as long as something refers to this."""

    def __init__(self, data: Any, ends: deque[Any], *level: Any, run: int | None = None) -> None:
        """Have Spark keep a DataFrame or an RDD; at the end it is added to `ends`.

        `run` is the number under which the tasks of an RDD report.
        """
        self.data = data.persist(*level)
        self.run = run
        self.computed = False
        self.reports: list[Any] = []
        """What the tasks of an RDD have reported, if it is computed."""
        weakref.finalize(self, ends.append, self.data).atexit = False


@dataclass(frozen=True)
class Frame:
    """A relation: rows in a DataFrame or a table of this process, or packs that fragments made.

    Packs are in a DataFrame, or in an RDD of pairs: the number of a relation, and some of its rows.
    `schema` is that of the rows, also where the data are the names of `files` that have them.
    """

    data: Any
    schema: pa.Schema
    route: Route
    """What it is read by."""
    number: int | None = None
    """Its number among the results of a fragment; None where rows are not packed."""
    owner: Persisted | None = None
    run: int | None = None
    """The number of the run that made packs in an RDD."""
    placement: Placement | None = None
    """Where its packs are, if that is known."""
    files: bool = False
    most_bytes: float = math.inf
    """The most that its rows can have."""

    @property
    def key(self) -> Any:
        """The key of its packs (`ucle.spark.packs`)."""
        return self.number if self.run is None else (self.run, self.number)

    @property
    def is_here(self) -> bool:
        """True if its rows are a table of this process."""
        return isinstance(self.data, pa.Table)

    def relation(self) -> Any:
        """Return a DataFrame of its rows, packed if a fragment has made them."""
        return self.route.relation(self)


@dataclass(frozen=True)
class Placed:
    """A frame with its placement. It is `kept` if it stays there for later runs."""

    frame: Frame
    placement: Placement
    columns: tuple[str, ...]
    kept: bool


class Route(Protocol):
    """A way of running fragments on Spark: on DataFrames, or on RDDs."""

    labels: tuple[int, ...]
    """The numbers that stand for the partitions in transit."""

    def place(self, placed: Mapping[int, Placed], context: TaskContext) -> Any:
        """Pack rows for their partitions; return these rows in transit, None if there are none.

        Args:
            placed: the relations, by their numbers among the inputs of a fragment.
            context: what tasks require.
        """
        ...

    def fix(self, rows: Any, ends: deque[Any]) -> Persisted:
        """Bring rows in transit to their partitions, to be kept there."""
        ...

    def run(
        self,
        fixed: Persisted | None,
        rows: Any,
        task: FragmentTask,
        fragment: Fragment,
        ends: deque[Any],
    ) -> Persisted:
        """Run a fragment.

        Args:
            fixed: what `fix` has returned.
            rows: other rows, in transit.
            task: of the fragment.
            fragment: what runs.
            ends: gets the data when nothing refers to it any more.
        """
        ...

    def compute(self, frames: Mapping[str, Frame], wanted: Collection[str]) -> dict[str, pa.Table]:
        """Compute frames with the same data; return the rows of those that are wanted."""
        ...

    def shorten(self, frames: Mapping[str, Frame]) -> Mapping[str, Frame]:
        """Return frames with the same data so that lost rows are computed from these."""
        ...

    def collect(self, frame: Frame) -> pa.Table:
        """Return all rows of a frame, in this process."""
        ...

    def relation(self, frame: Frame) -> Any:
        """Return a DataFrame of the rows of a frame, packed if a fragment has made them."""
        ...


def describe(purpose: str, frames: Iterable[str]) -> str:
    """Return what a job does, for Spark's interface.

    >>> describe("compute", ["r", "delta"])
    'compute r, delta'
    """
    return f"{purpose} {', '.join(frames)}"


def stored_schema(read: Read) -> pa.Schema:
    """Return names and types of the columns of a relation as a fragment makes it."""
    names = key_columns(read.type)
    keys = []
    for axis in read.layout.promoted:
        keys.append((names[axis], arrow_type(KEY_KINDS[read.type.axes[axis].coordinates])))
    value = arrow_type(KINDS[read.type.dtype]) if read.layout.scalar else pa.binary()
    return pa.schema([*keys, (VALUE, value)])


def most_bytes(read: Read) -> float:
    """Return the bytes of a relation that has all tuples, each with its keys.

    >>> from ucle.foundation.dtypes import DType
    >>> from ucle.ir.layouts import Label, Layout
    >>> from ucle.ir.tensor_types import TensorType
    >>> axes = Label("i", 300), Label("f", 8)
    >>> most_bytes(Read("r", "r", TensorType(axes, DType.FLOAT64), Layout.of([True, False])))
    21600.0
    """
    type_, keys = read.type, read.layout.promoted
    tuples = math.prod(type_.axes[axis].bound for axis in keys)
    numbers = math.prod(axis.bound for axis in type_.axes)
    return float(tuples * 8 * len(keys) + numbers * type_.dtype.numpy.itemsize)


def unpacked(rows: pa.Table, frame: Frame) -> pa.Table:
    """The rows in some packs."""
    return unpacked_values((value.as_buffer() for value in rows[ROWS]), frame)


def unpacked_values(values: Iterable[Any], frame: Frame) -> pa.Table:
    """The rows in some packs, each of them bytes or a buffer."""
    return pa.concat_tables([frame.schema.empty_table(), *map(unpack, values)])
