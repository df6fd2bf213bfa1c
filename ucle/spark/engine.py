"""The engine for Spark: Spark shuffles, and `mapInArrow` runs fragments.

Inputs of a fragment that are the same in each step of a loop are brought to its partitions once,
and Spark keeps them there. The moving inputs of a step are placed alike, so that both meet in one
task without moving the fixed ones. What an executor has lost is computed again.
"""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from functools import cached_property, reduce
from typing import Any

from ucle.database.session import Session
from ucle.foundation.dataclasses import dataclass
from ucle.foundation.libraries import LateModule, pa
from ucle.inputs.states import BoundInput
from ucle.partitions import fragments
from ucle.partitions.fragments import Fragment
from ucle.partitions.run_fragment import Task
from ucle.partitions.tables import dictionary_rows
from ucle.pipeline.artifacts import Compiled
from ucle.plan.relation_nodes import Load
from ucle.plan.sources import Dictionary, InMemory
from ucle.run.array_tables import array_table
from ucle.spark.actions import action
from ucle.spark.frames import Frame, Persisted, Placed, stored_schema, unpacked
from ucle.spark.kinds import arrow_type
from ucle.spark.labels import partition_labels
from ucle.spark.planning import most_result_bytes, session_for_steps, without_plan
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
)

pc: Any = LateModule("pyarrow.compute")
spark: Any = LateModule("pyspark.sql.functions")
types: Any = LateModule("pyspark.sql.pandas.types")


LOCAL_BYTES = 1 << 24
"""The largest state of a loop, in bytes, that is copied to the driver from time to time."""


@dataclass(frozen=True)
class _Prepared:
    """A fragment for the tasks of all its runs, with the rows that stay on its partitions."""

    fragment: Fragment
    task: FragmentTask
    fixed: Persisted | None


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
        tasks: int,
    ) -> None:
        """Start with a program.

        Args:
            session_of_spark: where frames are.
            compiled: what runs.
            session: has the tables that represent Spark's while a program is compiled.
            inputs: the DataFrames of inputs.
            partitions: the number of partitions.
            memory: what DuckDB may use in each task.
            tasks: the most tasks that read an input.
        """
        self.partitions = partitions
        self._spark = session_of_spark
        self._session = session
        self._inputs = inputs
        self._memory = memory
        self._tasks = tasks
        self._labels = partition_labels(partitions)
        self._prepared: dict[int, _Prepared] = {}
        self._live: weakref.WeakSet[Persisted] = weakref.WeakSet()
        self._ends: deque[Any] = deque()
        self.read(compiled, compiled.named_inputs)

    @cached_property
    def _steps(self) -> Any:
        """The session that plans steps."""
        return session_for_steps(self._spark)

    def read(self, compiled: Compiled, inputs: Mapping[str, BoundInput]) -> None:
        """Run a program on these inputs from now on."""
        self.compiled = compiled
        self._given = inputs
        self.context = TaskContext(kernels=not compiled.decomposed.relational, memory=self._memory)

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
        rows = frame.select(*(frame[f"`{name}`"] for name in columns))
        return Frame(rows.coalesce(self._tasks), schema)  # there may be many small partitions

    def dictionary(self, dictionary: Dictionary) -> pa.Table:
        """Return the positions of ids, from tables in memory and the stand-ins of others."""
        return dictionary_rows(self._session, dictionary, self._given)

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
        return Placed(frame, incoming.placement, incoming.columns, incoming.kept)

    def map(self, fragment: Fragment, placed: Mapping[str, Placed]) -> dict[str, Frame]:
        """Run a fragment on every partition."""
        self._release()
        if id(fragment) not in self._prepared:
            self._prepared[id(fragment)] = self._prepare(fragment, placed)
        prepared = self._prepared[id(fragment)]
        moving = self._place_rows(placed, kept=False)
        if prepared.fixed is None:
            seeds = self._seeds(repeated=fragment.repeated)
            rows = self._repartition_rows(reduce(_both, moving, seeds))
        elif moving:
            # Rows that are repartitioned alike meet where they are. An older Spark moves them all.
            moved = self._repartition_rows(reduce(_both, moving))
            rows = self._repartition_rows(prepared.fixed.data.union(moved))
        else:
            rows = prepared.fixed.data
        made = self._persist(rows.mapInArrow(prepared.task.__call__, MADE))
        return {
            each.read.step: Frame(made.data, stored_schema(each.read), number, made)
            for number, each in enumerate(fragment.made)
        }

    def _prepare(self, fragment: Fragment, placed: Mapping[str, Placed]) -> _Prepared:
        """Build the task of a fragment, and bring the rows to it that stay there."""
        tables = fragment.tables
        incoming = (
            TaskInput(name, tables[name], each.frame.schema, each.kept)
            for name, each in placed.items()
        )
        task = FragmentTask(
            Task.of(self.compiled, fragment), tuple(incoming), self._labels, self.context
        )
        fixed = None
        if staying := self._place_rows(placed, kept=True):
            rows = reduce(_both, staying, self._seeds(repeated=True))
            fixed = self._persist(self._repartition_rows(rows))
        return _Prepared(fragment, task, fixed)

    def _place_rows(self, placed: Mapping[str, Placed], *, kept: bool) -> list[Any]:
        """The rows of inputs in transit, of those that are kept or of the others."""
        found = []
        for number, each in enumerate(placed.values()):
            if each.kept is kept:
                task = PlaceTask(
                    number,
                    each.placement,
                    each.columns,
                    self._labels,
                    each.frame.number,
                    self.context,
                )
                found.append(each.frame.own().mapInArrow(task.__call__, PLACED))
        return found

    def _seeds(self, *, repeated: bool) -> Any:
        """A row for each partition, to which others are added, in the session that plans them."""
        labels = spark.array(*(spark.lit(label) for label in self._labels))
        session = self._steps if repeated else self._spark
        return session.range(self.partitions).select(
            spark.lit(SEED).cast("int").alias(SOURCE),
            spark.element_at(labels, spark.col("id").cast("int") + 1).cast("int").alias(PART),
            spark.lit(None).cast("binary").alias(ROWS),
        )

    def _repartition_rows(self, rows: Any) -> Any:
        """Put the rows of each partition of ours on one of Spark's (`ucle.spark.labels`)."""
        return rows.repartition(self.partitions, PART)

    def _persist(self, data: Any) -> Persisted:
        made = Persisted(data, self._ends)
        self._live.add(made)
        return made

    def _release(self) -> None:
        """Unpersist what nothing refers to any more."""
        while self._ends:
            self._ends.popleft().unpersist()

    # ---- Results ----

    def compute(self, frames: Mapping[str, Frame], wanted: Collection[str]) -> dict[str, pa.Table]:
        """Compute frames that are not computed yet; return the rows of those that are wanted.

        Raises:
            UcleError: a task failed.
            NaNError: numbers have outgrown their type.
        """
        together: dict[int, dict[str, Frame]] = {}
        for name, frame in frames.items():
            together.setdefault(id(frame.data), {})[name] = frame
        found: dict[str, pa.Table] = {}
        for group in together.values():
            data = next(iter(group.values())).data
            small = {name: frame for name, frame in group.items() if name in wanted}
            with action(self._spark, "compute " + ", ".join(group)):
                if not small:
                    data.count()
                    continue
                numbers = ", ".join(str(frame.number) for frame in small.values())
                rows = data.where(f"{SOURCE} IN ({numbers})").toArrow()
            for name, frame in small.items():
                own = rows.filter(pc.equal(rows[SOURCE], frame.number))
                found[name] = unpacked(own, frame)
        return found

    def settle(self, frames: Mapping[str, Frame]) -> dict[str, Frame]:
        """Return computed frames without the plans that made them: those grow from step to step.

        Spark still knows how to compute lost rows again. With Spark Connect, plans stay.
        """
        return self._replace(frames, self._settle)

    def shorten(self, frames: Mapping[str, Frame]) -> dict[str, Frame]:
        """Return frames from which lost rows are computed again, and not from the first step on.

        A small state is copied to the driver, and a larger one to a checkpoint, if the session has
        a folder for it. Otherwise, it stays as it is.
        """
        return self._replace(frames, self._shorten)

    def _replace(
        self, frames: Mapping[str, Frame], change: Callable[[Frame], Frame]
    ) -> dict[str, Frame]:
        """Change each DataFrame, of which several frames may be parts."""
        changed = {id(frame.data): change(frame) for frame in frames.values()}
        return {
            name: replace(changed[id(frame.data)], schema=frame.schema, number=frame.number)
            for name, frame in frames.items()
        }

    def _settle(self, frame: Frame) -> Frame:
        if not hasattr(frame.data, "_jdf"):
            return frame
        with action(self._spark, "plan the next step"):
            return replace(frame, data=without_plan(frame.data, self._steps))

    def _shorten(self, frame: Frame) -> Frame:
        data = frame.data
        with action(self._spark, "keep the state of a loop"):
            size = data.selectExpr(f"sum(length({ROWS}))").collect()[0][0] or 0
            if size <= min(LOCAL_BYTES, most_result_bytes(self._spark) / 4):
                return replace(frame, data=self._steps.createDataFrame(data.toArrow()), owner=None)
            context = getattr(self._spark, "sparkContext", None)
            if context is not None and context.getCheckpointDir() is not None:
                return replace(frame, data=data.checkpoint(), owner=None)
        return frame

    def collect(self, frame: Frame) -> pa.Table:
        """Return all rows, in this process."""
        with action(self._spark, "fetch rows"):
            rows = frame.own().toArrow()
        return rows if frame.number is None else unpacked(rows, frame)

    def fetch_rows(self, incoming: fragments.FragmentInput) -> pa.Table:
        """Return the rows of an input, in this process."""
        here = self._here(incoming)
        return self.collect(self.scan(incoming)) if here is None else here

    def _here(self, incoming: fragments.FragmentInput) -> pa.Table | None:
        """The rows of an input in this process; None for those on Spark."""
        origin = incoming.origin
        if isinstance(origin, Load):
            data = self._given[origin.source.tensor].loaded
            return array_table(data, origin.type, origin.layout)
        if isinstance(origin, Dictionary):
            return self.dictionary(origin)
        source = incoming.table
        if source is not None and isinstance(source.origin, InMemory):
            rows = self._given[incoming.tensor].data
            return pa.table({name: rows[name] for name in source.columns})
        return None

    def close(self) -> None:
        """Unpersist all frames."""
        for each in list(self._live):
            each.data.unpersist()
        self._prepared.clear()
        self._release()


def _both(one: Any, other: Any) -> Any:
    return one.union(other)


def _plain(column: Any) -> Any:
    """Cast a column to a type that Spark has."""
    if pa.types.is_large_binary(column.type):
        return column.cast(pa.binary())
    if pa.types.is_large_string(column.type):
        return column.cast(pa.string())
    return column
