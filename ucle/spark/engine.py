"""The engine for Spark: Spark moves packed rows, and fragments run on its Python workers.

Inputs of a fragment that are the same in each step of a loop are brought to its partitions once,
and Spark keeps them there. The moving inputs of a step are placed alike, so that both meet in one
task without moving the fixed ones. What an executor has lost is computed again.
"""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Collection, Mapping
from typing import Any

from ucle.database.session import Session
from ucle.foundation.dataclasses import dataclass
from ucle.foundation.libraries import pa
from ucle.inputs.states import BoundInput
from ucle.partitions import fragments
from ucle.partitions.fragments import Fragment
from ucle.partitions.run_fragment import Task
from ucle.partitions.tables import dictionary_rows
from ucle.pipeline.artifacts import Compiled
from ucle.plan.relation_nodes import Load
from ucle.plan.sources import Dictionary, InMemory
from ucle.run.array_tables import array_table
from ucle.spark.by_frames import ByFrames
from ucle.spark.by_rdds import ByRdds, has_rdds
from ucle.spark.frames import Frame, Persisted, Placed, Route, most_bytes, stored_schema
from ucle.spark.kinds import arrow_type
from ucle.spark.result_limits import most_result_bytes
from ucle.spark.tasks import FragmentTask, TaskContext, TaskInput

LOCAL_BYTES = 1 << 24
"""The largest state of a loop, in bytes, that is copied to the driver from time to time."""

NEAR_BYTES = 1 << 22
"""The largest state, in bytes, that the driver hands on to each step where steps run on DataFrames.

Otherwise, Spark plans all steps again that were before, and looks for what it keeps of each: after
ten of them, this takes it seconds.
"""


@dataclass(frozen=True)
class _Prepared:
    """A fragment for the tasks of all its runs, with the rows that stay on its partitions."""

    fragment: Fragment
    task: FragmentTask
    route: Route
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
        *,
        steps: bool = False,
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
            steps: whether it runs the steps of a loop.
        """
        self._runs_steps = steps
        self.partitions = partitions
        self._spark = session_of_spark
        self._session = session
        self._inputs = inputs
        self._memory = memory
        self._tasks = tasks
        most = min(LOCAL_BYTES, most_result_bytes(session_of_spark) / 4)
        self._near_bytes = min(NEAR_BYTES, most)
        self._frames = ByFrames(session_of_spark, partitions, most)
        self._rdds = None
        if has_rdds(session_of_spark):
            self._rdds = ByRdds(session_of_spark, partitions, most)
        self._prepared: dict[int, _Prepared] = {}
        self._live: weakref.WeakSet[Persisted] = weakref.WeakSet()
        self._ends: deque[Any] = deque()
        self.read(compiled, compiled.named_inputs)

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
        if incoming.files is not None:
            return Frame(incoming.files.names, schema, self._frames, files=True)
        rows = frame.select(*(frame[f"`{name}`"] for name in columns))
        rows = rows.coalesce(self._tasks)  # there may be many small partitions
        return Frame(rows, schema, self._frames)

    def dictionary(self, dictionary: Dictionary) -> pa.Table:
        """Return the positions of ids, from tables in memory and the stand-ins of others."""
        return dictionary_rows(self._session, dictionary, self._given)

    def upload_rows(self, rows: pa.Table) -> Frame:
        """Return rows of this process as a relation on Spark."""
        columns = [_plain(rows[name]) for name in rows.column_names]
        plain = pa.table(columns, names=rows.column_names)
        return Frame(plain, plain.schema, self._frames)

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
        route = prepared.route
        moving = self._place_rows(route, placed, kept=False)
        made = route.run(prepared.fixed, moving, prepared.task, fragment, self._ends)
        self._live.add(made)
        return {
            each.read.step: Frame(
                made.data,
                stored_schema(each.read),
                route,
                number,
                made,
                made.run,
                each.placement.stored,
                most_bytes=most_bytes(each.read),
            )
            for number, each in enumerate(fragment.made)
        }

    def _prepare(self, fragment: Fragment, placed: Mapping[str, Placed]) -> _Prepared:
        """Build the task of a fragment, and bring the rows to it that stay there."""
        route = self._route(placed)
        tables = fragment.tables
        incoming = (
            TaskInput(name, tables[name], each.frame.schema, each.kept, each.frame.files)
            for name, each in placed.items()
        )
        task = FragmentTask(
            Task.of(self.compiled, fragment), tuple(incoming), route.labels, self.context
        )
        fixed = None
        if (staying := self._place_rows(route, placed, kept=True)) is not None:
            fixed = route.fix(staying, self._ends)
            self._live.add(fixed)
        return _Prepared(fragment, task, route, fixed)

    def _route(self, placed: Mapping[str, Placed]) -> Route:
        """The route of a fragment: RDDs for loops, and for what reads no DataFrame of users.

        Rows of DataFrames are pickled on their way to RDDs, which pays where many steps follow.
        """
        if self._rdds is None:
            return self._frames
        frames = [each.frame for each in placed.values()]
        apart = all(frame.is_here or frame.route is self._rdds for frame in frames)
        return self._rdds if self._runs_steps or apart else self._frames

    def _place_rows(self, route: Route, placed: Mapping[str, Placed], *, kept: bool) -> Any:
        """The rows of inputs in transit, of those that are kept or of the others."""
        own = {number: each for number, each in enumerate(placed.values()) if each.kept is kept}
        return route.place(own, self.context)

    def _release(self) -> None:
        """Unpersist what nothing refers to any more."""
        while self._ends:
            self._ends.popleft().unpersist()
        if self._rdds is not None:
            self._rdds.forget({each.run for each in self._live if each.run is not None})

    # ---- Results ----

    def compute(self, frames: Mapping[str, Frame], wanted: Collection[str]) -> dict[str, pa.Table]:
        """Compute frames that are not computed yet; return the rows of those that are wanted.

        Raises:
            UcleError: a task failed.
            NaNError: numbers have outgrown their type.
        """
        groups = [x for x in _together(frames) if next(iter(x.values())).owner is not None]
        found: dict[str, pa.Table] = {}
        for group in sorted(groups, key=_run, reverse=True):  # a later run computes earlier ones
            found |= next(iter(group.values())).route.compute(group, wanted)
        return found

    def end_step(
        self,
        frames: Mapping[str, Frame],
        wanted: Collection[str],
        carried: Collection[str],
        *,
        due: bool,
    ) -> tuple[dict[str, pa.Table], dict[str, Frame]]:
        """Compute the frames of a step.

        If it is `due`, a small state is copied to the driver, and a larger one to a checkpoint, if
        the session has a folder for it. Otherwise, it stays as it is. Lost rows are then computed
        again from there, and not from the first step on.
        """
        near = [name for name in carried if self._is_near(frames[name])]
        rows = self.compute(frames, {*wanted, *near})
        found = {name: self.upload_rows(rows[name]) for name in near}
        if due:
            for group in _together({x: frames[x] for x in carried if x not in found}):
                found |= next(iter(group.values())).route.shorten(group)
        return {name: rows[name] for name in wanted}, found

    def _is_near(self, frame: Frame) -> bool:
        """True if the driver hands the rows of a frame on to the next step."""
        made = frame.route is self._frames and frame.owner is not None
        return made and frame.most_bytes <= self._near_bytes

    def collect(self, frame: Frame) -> pa.Table:
        """Return all rows, in this process."""
        return frame.route.collect(frame)

    def fetch_rows(self, incoming: fragments.FragmentInput) -> pa.Table:
        """Return the rows of an input, in this process."""
        here = self._here(incoming)
        return self.collect(self.scan(incoming)) if here is None else here

    def _here(self, incoming: fragments.FragmentInput) -> pa.Table | None:
        """The rows of an input in this process; None for those on Spark."""
        origin = incoming.origin
        if isinstance(origin, Load):
            data = self._given[origin.source.tensor].loaded
            return array_table(data, origin.table_type, origin.layout)
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


def _together(frames: Mapping[str, Frame]) -> list[dict[str, Frame]]:
    """Divide frames into those with the same data."""
    together: dict[int, dict[str, Frame]] = {}
    for name, frame in frames.items():
        together.setdefault(id(frame.data), {})[name] = frame
    return list(together.values())


def _run(frames: Mapping[str, Frame]) -> int:
    """The number of the run that makes frames of the same data, if it has one."""
    owner = next(iter(frames.values())).owner
    return -1 if owner is None or owner.run is None else owner.run


def _plain(column: Any) -> Any:
    """Cast a column to a type that Spark has."""
    if pa.types.is_large_binary(column.type):
        return column.cast(pa.binary())
    if pa.types.is_large_string(column.type):
        return column.cast(pa.string())
    return column
