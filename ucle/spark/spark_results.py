"""Results on Spark: tensors whose rows stay on executors until the driver fetches them."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ucle.errors import ArgumentError, ResultClosedError, UnsupportedError
from ucle.foundation.array_protocol import as_array
from ucle.foundation.dtypes import Scalar
from ucle.foundation.libraries import pa
from ucle.pipeline.artifacts import Compiled
from ucle.plan.forms import MAX_ROWS, form_of
from ucle.run.results import Outputs
from ucle.spark.engine import Frame, SparkEngine
from ucle.spark.failures import errors_of_spark
from ucle.spark.shown import show_rows, shown_schema, with_every_entry
from ucle.spark.tasks import RowsTask
from ucle.sqlgen.sql_trees import key_columns

MOST_ROWS = 10_000_000
"""Rows that results transfer to the driver unless more are allowed."""


class SparkTensor:
    """One output: a tensor on the executors."""

    def __init__(self, result: SparkResult, name: str, frame: Frame) -> None:
        self._result = result
        self._frame = frame
        self.name = name
        read = result.compiled.plan.shown[name]
        self.type, self.layout = read.type, read.layout

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
        self._result.check()
        nonfill = self.name in self._result.compiled.nonfill
        form = form_of(self.type, nonfill, None, rows, max_rows, f"result {self.name}")
        if form.rows == "stored":
            raise UnsupportedError(
                "rows='stored' is not available on Spark",
                where=f"result {self.name}",
                expected="rows='nonfill' or rows='all'",
                found="rows='stored'",
            )
        return self._result.shown(self.name, self._frame, every=form.every_row)

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
        self._result.check()
        with errors_of_spark():
            write()

    def to_arrow(self, *, rows: str | None = None, max_rows: int = MOST_ROWS) -> pa.Table:
        """Return the tensor's rows, as in `shown`, on the driver.

        Raises:
            ArgumentError: there are more rows than `max_rows`.
        """
        return self._fetch_rows(self.shown(rows, max_rows=max(max_rows, MAX_ROWS)), max_rows)

    def _fetch_rows(self, frame: Any, max_rows: int) -> pa.Table:
        self._result.check()
        with errors_of_spark():
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

        Ids are in their order; `coordinates` returns them.
        """
        rows = self._fetch_rows(self._result.entries(self.name, self._frame), max_rows)
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
        """Return the ids along an axis, in the order of positions; without ids, the positions."""
        axis = self.type.axes[self.columns[:-1].index(label)]
        if axis.dictionary is None:
            return pa.array(np.arange(axis.bound))
        ids = self._result.dictionaries[axis.dictionary].sort_by("id")
        return ids["value"].combine_chunks()

    def __repr__(self) -> str:
        return f"<SparkTensor {self.name}, columns {', '.join(self.columns)}>"


class SparkResult(Outputs[SparkTensor]):
    """The outputs of one execution, by name; Spark keeps them until it is closed or collected."""

    def __init__(
        self,
        spark: Any,
        compiled: Compiled,
        engine: SparkEngine,
        frames: Mapping[str, Frame],
        dictionaries: Mapping[str, pa.Table],
    ) -> None:
        self.compiled = compiled
        self._spark = spark
        self._circumstances = engine.context
        self.dictionaries = dictionaries
        self._finalizer = weakref.finalize(self, engine.close)
        self._finalizer.atexit = False
        super().__init__({name: SparkTensor(self, name, frame) for name, frame in frames.items()})

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
        read = self.compiled.plan.outputs[name]
        task = RowsTask(
            functools.partial(show_rows, name=name, type_=read.type, layout=read.layout),
            "rows",
            made=frame.number is not None,
            context=replace(self._circumstances, kernels=not read.layout.scalar),
        )
        return frame.own().mapInArrow(task.__call__, shown_schema(read.type))

    def shown(self, name: str, frame: Frame, *, every: bool) -> Any:
        """Return the entries with the coordinates of the data, and every entry if wanted."""
        type_ = self.compiled.plan.shown[name].type
        rows = self.entries(name, frame)
        if every:
            rows = with_every_entry(self._spark, type_, rows)
        for axis, label in zip(type_.axes, key_columns(type_), strict=True):
            if axis.dictionary is not None:
                ids = self.dictionaries[axis.dictionary]
                table = self._spark.createDataFrame(
                    pa.table({"ucle_id": ids["id"], "ucle_value": ids["value"]})
                )
                rows = rows.join(table, rows[f"`{label}`"] == table["ucle_id"]).drop("ucle_id")
                rows = rows.drop(label).withColumnRenamed("ucle_value", label)
        if type_.positions_in is not None:
            ids = self.dictionaries[type_.positions_in]
            table = self._spark.createDataFrame(
                pa.table({"ucle_id": ids["id"], "ucle_value": ids["value"]})
            )
            rows = rows.join(table, rows["`val`"] == table["ucle_id"], "left").drop("ucle_id")
            rows = rows.drop("val").withColumnRenamed("ucle_value", "val")
        return rows.select(*(f"`{x}`" for x in (*key_columns(type_), "val")))

    def __enter__(self) -> SparkResult:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Unpersist the outputs."""
        self._finalizer()
