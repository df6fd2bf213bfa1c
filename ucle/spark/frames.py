"""Relations on Spark: DataFrames of rows, or of packs of rows that fragments have made."""

from __future__ import annotations

import weakref
from collections import deque
from typing import Any

from ucle.foundation.dataclasses import dataclass
from ucle.foundation.libraries import pa
from ucle.plan.placement_rules import Placement
from ucle.plan.relation_nodes import Read
from ucle.spark.kinds import KEY_KINDS, KINDS, arrow_type
from ucle.spark.tasks import ROWS, SOURCE, unpack
from ucle.sqlgen.sql_trees import VALUE, key_columns


class Persisted:
    """A DataFrame that Spark keeps as long as something refers to this."""

    def __init__(self, data: Any, ends: deque[Any]) -> None:
        """Have Spark keep a DataFrame; at the end it is added to `ends`."""
        self.data = data.persist()
        weakref.finalize(self, ends.append, self.data).atexit = False


@dataclass(frozen=True)
class Frame:
    """A relation on Spark: a DataFrame of its rows, or one with the results of fragments."""

    data: Any
    schema: pa.Schema
    number: int | None = None
    """Its number among the results of fragments; None where rows are Spark's own."""
    owner: Persisted | None = None

    def own(self) -> Any:
        """Return its rows, packed if a fragment has made them."""
        return self.data if self.number is None else self.data.where(f"{SOURCE} = {self.number}")


@dataclass(frozen=True)
class Placed:
    """A frame with its placement. It is `kept` if it stays there for later runs."""

    frame: Frame
    placement: Placement
    columns: tuple[str, ...]
    kept: bool


def stored_schema(read: Read) -> pa.Schema:
    """Return names and types of the columns of a relation as a fragment makes it."""
    names = key_columns(read.type)
    keys = []
    for axis in read.layout.promoted:
        keys.append((names[axis], arrow_type(KEY_KINDS[read.type.axes[axis].coordinates])))
    value = arrow_type(KINDS[read.type.dtype]) if read.layout.scalar else pa.binary()
    return pa.schema([*keys, (VALUE, value)])


def unpacked(rows: pa.Table, frame: Frame) -> pa.Table:
    """The rows in some packs."""
    parts = [unpack(value.as_buffer()) for value in rows[ROWS]]
    return pa.concat_tables([frame.schema.empty_table(), *parts])
