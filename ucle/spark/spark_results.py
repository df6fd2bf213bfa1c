"""Results on Spark: tensors whose rows stay on executors until the driver fetches them."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ucle.errors import ArgumentError, ResultClosedError, UnsupportedError
from ucle.foundation.array_protocol import as_array
from ucle.foundation.dtypes import Scalar
from ucle.foundation.libraries import pa
from ucle.partitions.steps import StepOutputs
from ucle.plan.forms import MAX_ROWS, form_of
from ucle.run.results import Outputs
from ucle.run.step_engine import LoopEnd
from ucle.spark.actions import action
from ucle.spark.engine import SparkEngine
from ucle.spark.frames import Frame
from ucle.spark.shown import show_rows, shown_schema, with_every_entry
from ucle.spark.tasks import RowsTask
from ucle.sqlgen.sql_trees import key_columns

MOST_ROWS = 10_000_000
"""Rows that results transfer to the driver unless more are allowed."""


class SparkTensor:
    """One output: a tensor on the executors."""

    def __init__(self, outputs: SparkOutputs, name: str) -> None:
        self._outputs = outputs
        self.frame = outputs.outputs.frames[name]
        self.name = name
        self.type = outputs.outputs.compiled.plan.shown[name].type
        self.layout = outputs.outputs.reads[name].layout

    @property
    def number(self) -> Any:
        """The value of an output of a loop's step that has no axes."""
        return self._outputs.outputs.numbers[self.name]

    @property
    def outputs(self) -> StepOutputs:
        """All outputs that were made with it."""
        return self._outputs.outputs

    @functools.cached_property
    def _frame(self) -> Frame:
        """The rows on Spark; those of a program that ran on the driver are uploaded now."""
        return self.frame if isinstance(self.frame, Frame) else self._outputs.upload(self.frame)

    @property
    def shape(self) -> tuple[int, ...]:
        """Bounds of the axes."""
        return self.type.shape

    @property
    def fill(self) -> Scalar:
        """The value of positions without a row."""
        return self.type.fill

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns: the labels of all axes, then ``val``."""
        return (*key_columns(self.type), "val")

    @functools.cached_property
    def relation(self) -> Any:
        """A DataFrame with the rows that a relation of DuckDB would have (`shown`).

        Raises:
            ArgumentError: every entry would be written, and these are too many.
        """
        return self.shown()

    def shown(self, rows: str | None = None, *, max_rows: int = MAX_ROWS) -> Any:
        """Return a DataFrame with a column for each label and one for the value.

        Args:
            rows: ``"nonfill"`` leaves out entries that hold the fill. It is the default if the fill
                is 0 or the identity of the ⊕ that computed the tensor. ``"all"`` is the default
                otherwise, because the next reader would take missing entries for 0.
            max_rows: the largest number of rows for ``"all"``.

        Raises:
            ArgumentError: there would be more rows than `max_rows`.
            UnsupportedError: `rows` is ``"stored"``, which exists only on one machine.
        """
        self._outputs.check()
        nonfill = self.name in self._outputs.outputs.compiled.nonfill
        form = form_of(self.type, nonfill, None, rows, max_rows, f"result {self.name}")
        if form.rows == "stored":
            raise UnsupportedError(
                "rows='stored' is not available on Spark",
                where=f"result {self.name}",
                expected="rows='nonfill' or rows='all'",
                found="rows='stored'",
            )
        return self._outputs.shown(self.name, self._frame, every=form.every_row)

    def to_table(self, name: str, *, mode: str = "error", rows: str | None = None) -> None:
        """Save the tensor as a table of Spark's catalogue.

        Args:
            name: the name of the table, such as ``"lake.z"``.
            mode: what to do with an existing table: ``"error"``, ``"overwrite"`` or ``"append"``.
            rows: as in `shown`.

        Raises:
            ExecutionError: Spark refused to write the table.
        """
        self._write(lambda: self.shown(rows).write.mode(mode).saveAsTable(name))

    def to_parquet(self, path: str, *, mode: str = "error", rows: str | None = None) -> None:
        """Save the tensor as Parquet files; arguments as for `to_table`."""
        self._write(lambda: self.shown(rows).write.mode(mode).parquet(path))

    def _write(self, write: Callable[[], object]) -> None:
        self._outputs.check()
        with self._outputs.action(f"write {self.name}"):
            write()

    def to_arrow(self, *, rows: str | None = None, max_rows: int = MOST_ROWS) -> pa.Table:
        """Return the tensor's rows, as in `shown`, on the driver.

        Raises:
            ArgumentError: there are more rows than `max_rows`.
        """
        return self._fetch_rows(self.shown(rows, max_rows=max(max_rows, MAX_ROWS)), max_rows)

    def _fetch_rows(self, frame: Any, max_rows: int) -> pa.Table:
        self._outputs.check()
        with self._outputs.action(f"fetch {self.name}"):
            rows = frame.limit(max_rows + 1).toArrow()
        if len(rows) > max_rows:
            raise ArgumentError(
                "the result has too many rows for the driver",
                where=f"result {self.name}",
                expected=f"at most {max_rows:,}",
                found="more",
                hint="max_rows= allows more; .to_table and .to_parquet keep them on the cluster",
            )
        return rows

    def to_numpy(self, *, max_rows: int = MOST_ROWS) -> NDArray[Any]:
        """Return the tensor as an array, on the driver; errors as in `to_arrow`.

        Coordinates that are not positions are in sorted order; `coordinates` returns them.
        """
        rows = self._fetch_rows(self._outputs.entries(self.name, self._frame), max_rows)
        array = np.full(self.shape, self.fill, self.type.dtype.numpy)
        keys = tuple(rows[name].to_numpy() for name in self.columns[:-1])
        values: Any = rows["val"].combine_chunks()
        if pa.types.is_struct(values.type):
            values = values.field(0).to_numpy() + 1j * values.field(1).to_numpy()
        else:
            values = values.to_numpy(zero_copy_only=False)
        if keys:
            array[keys] = values
        elif len(values):
            array[()] = values[0]
        return array

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        """Return the tensor for code that reads NumPy arrays, as `to_numpy` does."""
        return as_array(self.to_numpy, dtype, copy, f"result {self.name}")

    def coordinates(self, label: str) -> pa.Array:
        """Return the coordinates along an axis, in the order of their positions."""
        axis = self.type.axes[self.columns[:-1].index(label)]
        if axis.dictionary is None:
            return pa.array(np.arange(axis.bound))
        ids = self.outputs.dictionaries[axis.dictionary].sort_by("id")
        return ids["value"].combine_chunks()

    def __repr__(self) -> str:
        return f"<SparkTensor {self.name}, columns {', '.join(self.columns)}>"


class SparkOutputs:
    """The outputs of one execution on Spark, which keeps them until this is closed or collected."""

    def __init__(
        self, spark: Any, outputs: StepOutputs, engine: SparkEngine, owns: Callable[[], None] | None
    ) -> None:
        """Hold outputs of an engine; `owns` is called at the end."""
        self.outputs = outputs
        self._spark = spark
        self._engine = engine
        self._circumstances = engine.context
        self._finalizer = weakref.finalize(self, owns or _nothing)
        self._finalizer.atexit = False

    def action(self, purpose: str) -> AbstractContextManager[None]:
        """A context in which Spark runs jobs for this result."""
        return action(self._spark, purpose)

    def upload(self, rows: pa.Table) -> Frame:
        """Upload rows to Spark."""
        return self._engine.upload_rows(rows)

    def check(self) -> None:
        """Check that the outputs still exist.

        Raises:
            ResultClosedError: the outputs no longer exist.
        """
        if not self._finalizer.alive:
            raise ResultClosedError(
                "the result is closed",
                where="result",
                expected="one that is open",
                found="a closed one",
                hint="read outputs inside the with block, or store them with to_table",
            )

    def entries(self, name: str, frame: Frame) -> Any:
        """Return the entries of an output that are not the fill, at positions, not ids."""
        read = self.outputs.reads[name]
        task = RowsTask(
            functools.partial(show_rows, name=name, type_=read.type, layout=read.layout),
            "rows",
            made=frame.number is not None,
            context=replace(self._circumstances, kernels=not read.layout.scalar),
        )
        return frame.relation().mapInArrow(task.__call__, shown_schema(read.type))

    def shown(self, name: str, frame: Frame, *, every: bool) -> Any:
        """Return the entries with the coordinates of the data, and every entry if wanted."""
        type_ = self.outputs.compiled.plan.shown[name].type
        rows = self.entries(name, frame)
        if every:
            rows = with_every_entry(self._spark, type_, rows)
        for axis, label in zip(type_.axes, key_columns(type_), strict=True):
            if axis.dictionary is not None:
                ids = self.outputs.dictionaries[axis.dictionary]
                table = self._spark.createDataFrame(
                    pa.table({"ucle_id": ids["id"], "ucle_value": ids["value"]})
                )
                rows = rows.join(table, rows[f"`{label}`"] == table["ucle_id"]).drop("ucle_id")
                rows = rows.drop(label).withColumnRenamed("ucle_value", label)
        if type_.positions_in is not None:
            ids = self.outputs.dictionaries[type_.positions_in]
            table = self._spark.createDataFrame(
                pa.table({"ucle_id": ids["id"], "ucle_value": ids["value"]})
            )
            rows = rows.join(table, rows["`val`"] == table["ucle_id"], "left").drop("ucle_id")
            rows = rows.drop("val").withColumnRenamed("ucle_value", "val")
        return rows.select(*(f"`{x}`" for x in (*key_columns(type_), "val")))

    def close(self) -> None:
        """Unpersist the outputs."""
        self._finalizer()


class SparkResult(Outputs[SparkTensor]):
    """The outputs of one execution, by name; Spark keeps them until it is closed or collected."""

    def __init__(self, outputs: SparkOutputs) -> None:
        """Provide tensors by name."""
        self._outputs = outputs
        super().__init__({name: SparkTensor(outputs, name) for name in outputs.outputs.frames})

    def __enter__(self) -> SparkResult:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Unpersist the outputs."""
        self._outputs.close()


class SparkIteration(SparkResult):
    """The outputs of the last step of a loop, with its number of steps and its history."""

    def __init__(self, outputs: SparkOutputs, end: LoopEnd) -> None:
        """Wrap the results of a loop."""
        super().__init__(outputs)
        self._states = end.states
        self.steps = end.steps
        """The number of steps."""
        self.converged = end.converged
        """True if the condition held after the last step."""
        self.interrupted = end.interrupted
        """True if the keyboard interrupted it; the outputs are those of the last whole step."""
        self.history = end.history
        """Numbers of each step by name: outputs without axes, and the compared value."""


class SparkSteps:
    """Outputs of the steps of a loop as tensors on Spark."""

    def __init__(self, spark: Any, engine: SparkEngine, close: Callable[[], None]) -> None:
        """Make results of an engine's frames; `close` is called after the result of a loop."""
        self._spark = spark
        self._engine = engine
        self._close = close

    def wrap(self, outputs: StepOutputs) -> SparkResult:
        """Return the outputs of a step, which exist as long as something refers to them."""
        return SparkResult(SparkOutputs(self._spark, outputs, self._engine, None))

    def save(self, tensors: Mapping[str, SparkTensor]) -> None:
        """Write tensors to tables of Spark's catalogue, one after the other."""
        for table, tensor in tensors.items():
            tensor.to_table(table, mode="overwrite")

    def end(self, tensors: Mapping[str, SparkTensor], end: LoopEnd) -> SparkIteration:
        """Return the outcome of a loop."""
        (made,) = {id(x): x for x in (tensor.outputs for tensor in tensors.values())}.values()
        frames = {name: made.frames[name] for name in tensors}
        outputs = replace(made, frames=frames)
        return SparkIteration(SparkOutputs(self._spark, outputs, self._engine, self._close), end)


def _nothing() -> None:
    """Do nothing at the end of a result that owns nothing."""
