"""The engines for Spark: partitions of a cluster, and one partition on the driver.

On a cluster, Spark shuffles, and `mapInArrow` runs fragments. Programs that are too small to be
distributed run on the driver.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ucle.database.session import Session
from ucle.foundation.dataclasses import dataclass
from ucle.foundation.libraries import LateModule, pa
from ucle.partitions import fragments
from ucle.partitions.fragments import Fragment, FragmentInput
from ucle.partitions.run_fragment import Task, open_partition, run_on_tables
from ucle.pipeline.artifacts import Compiled
from ucle.plan.placement_rules import Placement
from ucle.plan.relation_nodes import Load, Read
from ucle.plan.sources import Dictionary, InMemory
from ucle.run.array_tables import array_table
from ucle.spark.failures import errors_of_spark
from ucle.spark.kinds import KEY_KINDS, KINDS, arrow_type
from ucle.spark.tasks import (
    MADE,
    PART,
    PLACED,
    ROWS,
    SEED,
    SOURCE,
    FragmentTask,
    PlaceTask,
    TaskContext,
    TaskInput,
    unpack,
)
from ucle.sqlgen.input_tables import dictionary_query
from ucle.sqlgen.script import sql_text
from ucle.sqlgen.sql_trees import VALUE, key_columns

spark: Any = LateModule("pyspark.sql.functions")
types: Any = LateModule("pyspark.sql.pandas.types")


@dataclass(frozen=True)
class Frame:
    """A relation on Spark: a DataFrame of its rows, or one with the results of fragments."""

    data: Any
    schema: pa.Schema
    number: int | None = None
    """Its number among the results of fragments; None where rows are Spark's own."""

    def own(self) -> Any:
        """Return its rows, packed if a fragment has made them."""
        return self.data if self.number is None else self.data.where(f"{SOURCE} = {self.number}")


@dataclass(frozen=True)
class Placed:
    """A frame with its placement."""

    frame: Frame
    placement: Placement
    columns: tuple[str, ...]


class SparkEngine:
    """Partitions of a Spark cluster."""

    def __init__(
        self,
        session_of_spark: Any,
        compiled: Compiled,
        session: Session,
        inputs: Mapping[str, Any],
        partitions: int,
        memory: str | None,
    ) -> None:
        """Start with a program.

        Args:
            session_of_spark: where frames are.
            compiled: what runs.
            session: has the tables that represent Spark's while a program is compiled.
            inputs: the DataFrames of inputs.
            partitions: the number of partitions.
            memory: what DuckDB may use in each task.
        """
        self.partitions = partitions
        self._spark = session_of_spark
        self._compiled = compiled
        self._session = session
        self._inputs = inputs
        self.context = TaskContext(kernels=not compiled.decomposed.relational, memory=memory)
        self._kept: list[Any] = []

    # ---- Inputs ----

    def scan(self, incoming: fragments.FragmentInput) -> Frame:
        """Return the rows of an input."""
        here = self._here(incoming)
        if here is not None:
            return self.upload_rows(here)
        source = incoming.table
        assert source is not None
        frame, columns = self._inputs[incoming.tensor], source.columns
        kinds = {f.name: f.dataType.simpleString() for f in frame.schema.fields}
        schema = pa.schema([(name, arrow_type(kinds[name])) for name in columns])
        return Frame(frame.select(*(frame[f"`{name}`"] for name in columns)), schema)

    def dictionary(self, dictionary: Dictionary) -> pa.Table:
        """Return the positions of ids, from the stand-ins of their tables."""
        return self._session.table(sql_text(dictionary_query(dictionary, "")))

    def upload_rows(self, rows: pa.Table) -> Frame:
        """Upload rows of this process to Spark."""
        columns = [_plain(rows[name]) for name in rows.column_names]
        plain = pa.table(columns, names=rows.column_names)
        if len(plain):
            return Frame(self._spark.createDataFrame(plain), plain.schema)
        # For an empty table Spark Connect 4.0 needs the schema.
        schema = types.from_arrow_schema(plain.schema)
        return Frame(self._spark.createDataFrame([], schema), plain.schema)

    # ---- Exchanges ----

    def place(self, frame: Frame, incoming: fragments.FragmentInput) -> Placed:
        """Record a placement; rows are packed for their partitions when a fragment reads them."""
        return Placed(frame, incoming.placement, incoming.columns)

    def map(self, fragment: Fragment, placed: Mapping[str, Placed]) -> dict[str, Frame]:
        """Run a fragment on every partition."""
        incoming, rows = [], self._seeds()
        tables = fragment.tables
        for number, (name, each) in enumerate(placed.items()):
            incoming.append(TaskInput(name, tables[name], each.frame.schema))
            task = PlaceTask(
                number,
                each.placement,
                each.columns,
                self.partitions,
                each.frame.number,
                self.context,
            )
            rows = rows.union(each.frame.own().mapInArrow(task.__call__, PLACED))
        task_of_all = FragmentTask(Task.of(self._compiled, fragment), tuple(incoming), self.context)
        made = self._repartition_rows(rows).mapInArrow(task_of_all.__call__, MADE).persist()
        self._kept.append(made)
        return {
            each.read.step: Frame(made, stored_schema(each.read), number)
            for number, each in enumerate(fragment.made)
        }

    def _seeds(self) -> Any:
        numbers = self._spark.range(self.partitions)
        return numbers.select(
            spark.lit(SEED).cast("int").alias(SOURCE),
            spark.col("id").cast("int").alias(PART),
            spark.lit(None).cast("binary").alias(ROWS),
        )

    def _repartition_rows(self, rows: Any) -> Any:
        """Put rows of one partition into one task; before Spark 4.1 one task may have several."""
        if hasattr(rows, "repartitionById"):
            return rows.repartitionById(self.partitions, PART)
        return rows.repartition(self.partitions, PART)

    # ---- Results ----

    def run(self, frames: Mapping[str, Frame]) -> None:
        """Compute frames that are not computed yet.

        Raises:
            UcleError: a task failed.
            NaNError: numbers have outgrown their type.
        """
        for data in {id(frame.data): frame.data for frame in frames.values()}.values():
            with errors_of_spark():
                data.count()

    def collect(self, frame: Frame) -> pa.Table:
        """Return all rows, in this process."""
        with errors_of_spark():
            rows = frame.own().toArrow()
        if frame.number is None:
            return rows
        parts = [unpack(value.as_buffer()) for value in rows[ROWS]]
        return pa.concat_tables([frame.schema.empty_table(), *parts])

    def fetch_rows(self, incoming: fragments.FragmentInput) -> pa.Table:
        """Return the rows of an input, in this process."""
        here = self._here(incoming)
        return self.collect(self.scan(incoming)) if here is None else here

    def _here(self, incoming: fragments.FragmentInput) -> pa.Table | None:
        """The rows of an input in this process; None for those on Spark."""
        origin = incoming.origin
        if isinstance(origin, Load):
            data = self._compiled.inputs[origin.source.tensor].data
            return array_table(data, origin.type, origin.layout)
        if isinstance(origin, Dictionary):
            return self.dictionary(origin)
        source = incoming.table
        if source is not None and isinstance(source.origin, InMemory):
            rows = self._compiled.inputs[incoming.tensor].data
            return pa.table({name: rows[name] for name in source.columns})
        return None

    def close(self) -> None:
        """Unpersist the frames that Spark keeps between fragments."""
        while self._kept:
            self._kept.pop().unpersist()


def stored_schema(read: Read) -> pa.Schema:
    """Return names and types of the columns of a relation as a fragment makes it."""
    names = key_columns(read.type)
    keys = []
    for axis in read.layout.promoted:
        keys.append((names[axis], arrow_type(KEY_KINDS[read.type.axes[axis].coordinates])))
    value = arrow_type(KINDS[read.type.dtype]) if read.layout.scalar else pa.binary()
    return pa.schema([*keys, (VALUE, value)])


def _plain(column: Any) -> Any:
    """Cast a column to a type that Spark has."""
    if pa.types.is_large_binary(column.type):
        return column.cast(pa.binary())
    if pa.types.is_large_string(column.type):
        return column.cast(pa.string())
    return column


class Driver:
    """An engine of one partition, which fetches its inputs."""

    partitions = 1

    def __init__(self, engine: SparkEngine, compiled: Compiled) -> None:
        self._engine = engine
        self._compiled = compiled

    def scan(self, incoming: FragmentInput) -> pa.Table:
        """Return the rows of an input."""
        return self._engine.fetch_rows(incoming)

    def place(self, frame: pa.Table, incoming: FragmentInput) -> pa.Table:
        """Return the rows as they are, as there is one place."""
        return frame

    def map(self, fragment: Fragment, placed: Mapping[str, pa.Table]) -> dict[str, pa.Table]:
        """Run a fragment."""
        task = Task.of(self._compiled, fragment)
        with open_partition() as session:
            return run_on_tables(session, task, 0, fragment.tables, placed)

    def collect(self, frame: pa.Table) -> pa.Table:
        """Return all rows."""
        return frame

    def close(self) -> None:
        """Do nothing, as nothing is kept."""
