"""The engine of partitions on Spark: exchanges are shuffles, fragments are `mapInArrow`."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ucle.artifacts import Compiled
from ucle.database.session import Session
from ucle.foundation.libraries import LateModule, pa
from ucle.ir.layouts import Coordinates
from ucle.ir.placements import Spread
from ucle.partitions import fragments
from ucle.partitions.fragments import Fragment
from ucle.partitions.run_fragment import Task
from ucle.plan.sources import Dictionary, InMemory
from ucle.plan.steps import Load, Read
from ucle.run.array_tables import array_table
from ucle.spark.failures import unpacked
from ucle.spark.kinds import KINDS
from ucle.spark.rows import PART, SEED, SOURCE, Slots, columns_of, schema_text
from ucle.spark.tasks import Circumstances, FragmentTask, Incoming
from ucle.sqlgen.input_tables import dictionary_query
from ucle.sqlgen.script import sql_text
from ucle.sqlgen.sql_trees import VALUE, key_columns

spark: Any = LateModule("pyspark.sql.functions")


@dataclass(frozen=True)
class Frame:
    """A relation on Spark: some rows of a DataFrame, in the columns of its slots."""

    data: Any
    slots: Slots | None = None
    """None where the columns have their own names."""

    def own(self) -> Any:
        """The rows in columns of their own names."""
        if self.slots is None:
            return self.data
        columns = [spark.col(place).alias(name) for name, (place, _) in self.slots.columns.items()]
        return self.data.where(spark.col(SOURCE) == self.slots.number).select(*columns)


@dataclass(frozen=True)
class Placed:
    """A frame with the number of its partition beside each row."""

    frame: Any
    columns: list[tuple[str, str]]
    copied: bool


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
        """Begin with a program.

        Args:
            session_of_spark: where frames are.
            compiled: what runs.
            session: sees the tables that stand for Spark's while a program is compiled.
            inputs: the DataFrames of inputs.
            partitions: how many.
            memory: what DuckDB may use in each task.
        """
        self.partitions = partitions
        self._spark = session_of_spark
        self._compiled = compiled
        self._session = session
        self._inputs = inputs
        self._circumstances = Circumstances(
            kernels=not compiled.decomposed.relational, memory=memory
        )
        self._kept: list[Any] = []

    # ---- What is there ----

    def scan(self, incoming: fragments.Incoming) -> Frame:
        """The rows of an input."""
        origin = incoming.origin
        if isinstance(origin, Load):
            data = self._compiled.inputs[origin.source.tensor].data
            return self.uploaded(array_table(data, origin.type, origin.layout))
        if isinstance(origin, Dictionary):
            return self.uploaded(self.dictionary(origin))
        assert not isinstance(origin, str)
        source = origin.source
        columns = [*source.keys, *([] if source.value is None else [source.value])]
        if isinstance(source.origin, InMemory):
            rows = self._compiled.inputs[incoming.tensor].data
            return self.uploaded(pa.table({name: rows[name] for name in columns}))
        frame = self._inputs[incoming.tensor]
        return Frame(frame.select(*(frame[f"`{name}`"] for name in columns)))

    def dictionary(self, dictionary: Dictionary) -> pa.Table:
        """The positions of ids, by what stands for their tables."""
        return self._session.table(sql_text(dictionary_query(dictionary, "")))

    def uploaded(self, rows: pa.Table) -> Frame:
        """Rows of this process, on Spark."""
        columns = [_plain(rows[name]) for name in rows.column_names]
        return Frame(self._spark.createDataFrame(pa.table(columns, names=rows.column_names)))

    # ---- Exchanges ----

    def place(self, frame: Frame, incoming: fragments.Incoming) -> Placed:
        """The rows with their partitions; they move when a fragment reads them."""
        rows = frame.own()
        columns = columns_of(rows)
        count = spark.lit(self.partitions)
        match incoming.placement.spread:
            case Spread.REPLICATED:
                part = spark.explode(spark.sequence(spark.lit(0), count - 1))
            case Spread.SINGLE:
                part = spark.lit(0)
            case Spread.BY_AXES:
                keys = [spark.col(f"`{name}`").cast("bigint") for name in incoming.columns]
                part = spark.pmod(spark.xxhash64(*keys), count).cast("int")
            case _:
                every = [spark.col(f"`{name}`") for name, kind in columns if "<" not in kind]
                part = spark.pmod(spark.xxhash64(*every), count).cast("int")
        copied = incoming.placement.spread is Spread.REPLICATED
        return Placed(rows.select("*", part.alias(PART)), columns, copied)

    def map(self, fragment: Fragment, placed: Mapping[str, Placed]) -> dict[str, Frame]:
        """Run a fragment on every partition."""
        incoming, unions = [], [self._seeds()]
        for number, (name, each) in enumerate(placed.items()):
            slots = Slots.of(number, each.columns)
            table = name if name.startswith("rows of ") else f"part {number}"
            incoming.append(Incoming(name, table, slots, each.copied))
            own = [
                spark.col(f"`{column}`").alias(place)
                for column, (place, _) in slots.columns.items()
            ]
            source = spark.lit(number).cast("int").alias(SOURCE)
            unions.append(each.frame.select(source, spark.col(PART), *own))
        rows = functools.reduce(
            lambda one, other: one.unionByName(other, allowMissingColumns=True), unions
        )
        outgoing = tuple(
            (made.read.step, Slots.of(number, stored_columns(made.read)))
            for number, made in enumerate(fragment.made)
        )
        task = FragmentTask(
            Task.of(self._compiled, fragment), tuple(incoming), outgoing, self._circumstances
        )
        made = self._repartitioned(rows).mapInArrow(
            task.__call__, schema_text([slots for _, slots in outgoing])
        )
        made = made.persist()
        self._kept.append(made)
        return {name: Frame(made, slots) for name, slots in outgoing}

    def _seeds(self) -> Any:
        numbers = self._spark.range(self.partitions)
        return numbers.select(
            spark.lit(SEED).cast("int").alias(SOURCE), spark.col("id").cast("int").alias(PART)
        )

    def _repartitioned(self, rows: Any) -> Any:
        """Rows of one partition in one task; before Spark 4.1 one task may have several."""
        if hasattr(rows, "repartitionById"):
            return rows.repartitionById(self.partitions, PART)
        return rows.repartition(self.partitions, PART)

    # ---- Results ----

    def run(self, frames: Mapping[str, Frame]) -> None:
        """Compute what is not computed yet.

        Raises:
            UcleError: a task failed.
            NaNError: numbers have outgrown their type.
        """
        for data in {id(frame.data): frame.data for frame in frames.values()}.values():
            try:
                data.count()
            except Exception as error:
                raise unpacked(error) from error

    def collect(self, frame: Frame) -> pa.Table:
        """All rows, in this process."""
        try:
            return frame.own().toArrow()
        except Exception as error:
            raise unpacked(error) from error

    def fetched(self, incoming: fragments.Incoming) -> pa.Table:
        """The rows of an input, in this process."""
        origin = incoming.origin
        if isinstance(origin, Load):
            data = self._compiled.inputs[origin.source.tensor].data
            return array_table(data, origin.type, origin.layout)
        if isinstance(origin, Dictionary):
            return self.dictionary(origin)
        return self.collect(self.scan(incoming))

    def close(self) -> None:
        """Let Spark forget what it keeps between fragments."""
        while self._kept:
            self._kept.pop().unpersist()


def stored_columns(read: Read) -> list[tuple[str, str]]:
    """Names and types of the columns of a relation as a fragment makes it."""
    names = key_columns(read.type)
    keys = []
    for axis in read.layout.promoted:
        wide = read.type.axes[axis].coordinates is Coordinates.INT64
        keys.append((names[axis], "bigint" if wide else "int"))
    return [*keys, (VALUE, KINDS[read.type.dtype] if read.layout.scalar else "binary")]


def _plain(column: Any) -> Any:
    """A column of a type that Spark has."""
    if pa.types.is_large_binary(column.type):
        return column.cast(pa.binary())
    if pa.types.is_large_string(column.type):
        return column.cast(pa.string())
    return column
