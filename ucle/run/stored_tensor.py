"""Tensors that are stored in tables of a session, and the ways to read them.

In: a table that a plan has written, with the type and the layout of its tensor. Out: Arrow tables
and batches, arrays, entries, and queries of the tensor. Files, descriptions and results
(`ucle.run.write_file`, `ucle.run.description`, `ucle.run.results`) are made from these.
"""

from __future__ import annotations

import contextlib
import logging
import math
import secrets
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace as changed
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ucle.database.change_detection import reading_only
from ucle.database.engine import DUCKDB
from ucle.database.engine_errors import (
    EngineError,
    errors_of_reader,
    execution_error,
    why_gone,
)
from ucle.database.session import Session
from ucle.database.temporary_tables import DeferredTable, Temporary, TemporaryTable
from ucle.errors import (
    ArgumentError,
    LabelError,
    MemoryLimitError,
    ResultClosedError,
    UcleError,
    UnsupportedError,
    did_you_mean,
)
from ucle.foundation import arguments as args
from ucle.foundation.arguments import validated
from ucle.foundation.array_protocol import as_array
from ucle.foundation.arrow_numbers import numpy_array
from ucle.foundation.dtypes import Scalar, differs_from
from ucle.foundation.libraries import pa, scipy_module
from ucle.foundation.logs import RESULT
from ucle.inputs.sparse_arrays import SparseArray
from ucle.ir.layouts import Coordinates, Layout
from ucle.ir.tensor_types import TensorType
from ucle.plan.forms import FORM, MAX_ROWS, WrittenForm, form_of
from ucle.plan.steps import without_dictionaries
from ucle.run.arrow_rows import coordinates_at, list_batch, list_schema, value_blocks
from ucle.run.read_tuples import (
    batch_rows,
    copy_tiles,
    filled_array,
    payloads,
    plain_strings,
    stored_batches,
    tile_starts,
    tiles,
)
from ucle.run.row_values import dense_array, rows_batch
from ucle.run.wide_frames import wide_table
from ucle.sqlgen.cached_texts import Rows, rows_of
from ucle.sqlgen.script import called_functions, count_query, sql_text, values_query
from ucle.sqlgen.sql_trees import VALUE, key_columns
from ucle.sqlgen.write_statements import Query, copy_to_folder, count_rows_up_to, order_rows
from ucle.sqlgen.written_form import needs_kernels, written_query, written_rows
from ucle.udf_kernels import Csr

if TYPE_CHECKING:
    import scipy.sparse

CPU = 1, 0
"""DLPack's device for the memory of the process."""

WORTH_A_WORD = 2**20
"""Bytes of entries above which a message says that arrays would be smaller."""


class StoredTensor:
    """A tensor that is stored in a temporary table of a session, and the ways to read it.

    Arrow tables and queries have the columns and rows of a form (`ucle.plan.forms.WrittenForm`);
    `to_numpy`, `to_scipy` and `nonzero` read the tensor as it is stored.

    Attributes:
        name: the name of the tensor in the program.
        type: axes, element type and fill.
        layout: the layout in which the plan has stored it.
    """

    def __init__(
        self,
        name: str,
        type_: TensorType,
        layout: Layout,
        source: Temporary,
        session: Session,
        dictionaries: Mapping[str, TemporaryTable | DeferredTable],
        *,
        nonfill: bool = True,
        fixed: Collection[int] = (),
    ) -> None:
        self.name = name
        self.type = type_
        self.layout = layout
        self._table = source
        self._session = session
        self._dictionaries = dictionaries
        self._nonfill = nonfill
        self._fixed = fixed

    @property
    def table(self) -> Temporary:
        """The table that stores the tensor; it exists as long as this object."""
        return self._table

    @property
    def dictionaries(self) -> Mapping[str, TemporaryTable | DeferredTable]:
        """The dictionaries of the result by name, including those of its axes."""
        return self._dictionaries

    @property
    def shape(self) -> tuple[int, ...]:
        """Bounds of the axes."""
        return self.type.shape

    @property
    def fill(self) -> Scalar:
        """The value of an entry that is not stored."""
        return self.type.fill

    @property
    def dtype(self) -> np.dtype[Any]:
        """Element type."""
        return self.type.dtype.numpy

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns: the labels of all axes in their order, then ``val``."""
        return (*key_columns(self.type), VALUE)

    @validated(**FORM, where=args.text)
    def form(
        self,
        keys: Sequence[str] | None = None,
        rows: str | None = None,
        max_rows: int = MAX_ROWS,
        where: str | None = None,
    ) -> WrittenForm:
        """The columns and rows that would be written; arguments are as for `to_table`.

        Raises:
            LabelError: the tensor has no such label.
            ArgumentError: `rows` is invalid, or there are too many rows.
        """
        place = where or f"result {self.name}"
        return form_of(self.type, self._nonfill, keys, rows, max_rows, place, self._fixed)

    @validated(**FORM, columns=args.optional(args.text))
    def to_arrow(
        self,
        keys: Sequence[str] | None = None,
        rows: str | None = None,
        *,
        columns: str | None = None,
        max_rows: int = MAX_ROWS,
    ) -> pa.Table:
        """Export the tensor as an Arrow table: labels, then ``val`` as a number or list of numbers.

        Lists are flat, row-major over the axes that are not keys. Coordinates are those of the
        data, also for labels with a dictionary. Bounds and fill are in the metadata.

        Args:
            keys: labels that get a column, as for `to_table`.
            rows: the rows to export, as for `to_table`.
            columns: an axis whose coordinates become columns, in their order. The coordinates are
                the names of these columns; there is no column ``val``, and the rows are in the
                order of the other coordinates. If there is at most one other axis, every row is
                exported by default.
            max_rows: the largest number of rows for ``rows="all"``.

        Raises:
            LabelError: the tensor has no such axis, or two columns would have the same name.
            ArgumentError: there are too many rows or columns.
            MemoryLimitError: the rows need more memory than DuckDB may use.
            ResultClosedError: the result is gone.
        """
        if columns is not None:
            return wide_table(self, columns, keys, rows, max_rows)
        form = self.form(keys, rows, max_rows)
        self.check_memory(form)
        with self.batches(form) as (schema, batches):
            table = pa.Table.from_batches(batches, schema)
        self._tell_of_arrays(form, keys, len(table))
        return table

    @validated(rows=FORM["rows"], max_rows=FORM["max_rows"])
    def entries(self, rows: str | None = None, *, max_rows: int = MAX_ROWS) -> pa.Table:
        """Export the tensor as `to_arrow` does, with a column for each axis."""
        return self.to_arrow(rows=rows, max_rows=max_rows)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Export the tensor as an Arrow stream, as `to_arrow` does."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        """Export the tensor as a NumPy array, as `to_numpy` does.

        >>> import ucle
        >>> np.asarray(ucle.einsum_program("y[i] = 2 * x[i]", x=[1.0, 2.0]).execute()["y"])
        array([2., 4.])
        """
        return as_array(self.to_numpy, dtype, copy, f"result {self.name}")

    def __dlpack__(self, **options: Any) -> Any:
        """Export the tensor by DLPack, as `to_numpy` does.

        >>> import numpy, ucle
        >>> x = ucle.array([1.0, 2.0]) * 2
        >>> numpy.from_dlpack(x.compute())
        array([2., 4.])
        """
        return self.to_numpy().__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        """The memory of the process."""
        return CPU

    @validated(label=args.text)
    def coordinates(self, label: str) -> pa.Array:
        """The coordinates of the positions along a label, in order.

        Args:
            label: the label of an axis. The coordinates are values of a dictionary, or plain
                integers.

        Raises:
            LabelError: the tensor has no such label.
        """
        axis = next((axis for axis in self.type.axes if axis.name == label), None)
        if axis is None:
            raise LabelError(
                f"the tensor has no label {label!r}",
                where=f"result {self.name}",
                expected=", ".join(x.name for x in self.type.axes) or "none",
                found=label,
                hint=did_you_mean(label, [x.name for x in self.type.axes]),
            )
        if axis.dictionary is None:
            return pa.array(np.arange(axis.bound))
        return self._values_of(axis.dictionary)

    @property
    def value_coordinates(self) -> pa.Array | None:
        """The coordinates, in order, to which the values refer by position; None for other values.

        `argmax`, `arg_top_k` and similar functions compute positions. If the axis has a dictionary,
        all methods that write rows write the coordinates at these positions; `to_numpy` exports the
        positions.
        """
        name = self.type.positions_in
        return None if name is None else self._values_of(name)

    def _values_of(self, dictionary: str) -> pa.Array:
        """The values of a dictionary, in order."""
        query = values_query(self._dictionaries[dictionary].name)
        with self._reading():
            table = self._session.table(sql_text(query))
        return plain_strings(table.column(0).combine_chunks())

    def to_numpy(self) -> NDArray[Any]:
        """Export the dense tensor; entries that are not stored hold the fill.

        Along a label with a dictionary, the order is that of `coordinates`.

        Raises:
            MemoryLimitError: the dense tensor does not fit into memory.
        """
        promoted, dense = self.layout.promoted, self.layout.dense
        with self._reading():
            rows = self._table.fetched
            if rows is not None and not promoted:
                self._session.check_open()
                return dense_array(rows[0][0], self.type, self.layout).copy()
        try:
            result = filled_array(self.shape, self.fill, self.dtype)
        except (MemoryError, ValueError) as error:  # a ValueError above 2^63 elements
            raise MemoryLimitError(
                "the dense tensor does not fit into memory",
                where=f"result {self.name}",
                expected="an array that fits into memory",
                found="shape " + " x ".join(f"{size:,}" for size in self.shape),
                hint="to_pandas, to_scipy and to_table return only stored entries; "
                "ucle.table(..., coordinates='dictionary') numbers large, sparse ids",
            ) from error
        if self.layout.compressed is not None:
            coordinates, entries = self._entries()
            result[tuple(coordinates)] = entries
            return result
        if self.layout.tiled:
            for batch in self._batches():
                copy_tiles(batch, self.type, self.layout, result)
            return result
        target = result.transpose(promoted + dense)
        for batch in self._batches():
            *keys, values = batch.columns
            shape = (len(values), *self.type.dense_shape(self.layout))
            blocks = value_blocks(values, self.type, self.layout).reshape(shape)
            if keys:
                target[tuple(numpy_array(key) for key in keys)] = blocks
            elif len(blocks):
                target[...] = blocks[0]
        return result

    def item(self) -> Any:
        """The only entry of a tensor, as a Python number.

        Raises:
            ArgumentError: the tensor has several entries, or none.

        >>> import ucle
        >>> ucle.einsum_program("n += x[i]", x=[1.5, 2.0]).execute()["n"].item()
        3.5
        """
        if math.prod(self.shape) != 1:
            raise ArgumentError(
                "this is not one number",
                where=f"result {self.name}, item",
                expected="a tensor of one entry",
                found="shape " + " x ".join(map(str, self.shape)),
                hint="to_numpy() returns all of its entries",
            )
        return self.to_numpy().item()

    def to_scipy(self) -> scipy.sparse.coo_array:
        """Export the entries other than 0 as a sparse array.

        Raises:
            UnsupportedError: the fill is not 0, or the tensor is a scalar.
            MissingPackageError: scipy is not installed.
        """
        sparse = scipy_module("scipy.sparse", f"to_scipy of {self.name}")
        entries = self.nonzero()
        made: scipy.sparse.coo_array = sparse.coo_array(
            (entries.data, entries.coords), shape=self.shape
        )
        return made

    def nonzero(self) -> SparseArray:
        """The entries other than 0 with their coordinates; errors are as for `to_scipy`."""
        if self.fill != 0 or not self.shape:
            raise UnsupportedError(
                "this tensor has no scipy.sparse form",
                where=f"result {self.name}",
                expected="fill 0 and at least one axis",
                found=f"fill {self.fill}, rank {len(self.shape)}",
                hint="to_numpy() gives the dense tensor",
            )
        coordinates, values = self._entries()
        return SparseArray(self.shape, tuple(coordinates), values)

    def _entries(self) -> tuple[list[NDArray[Any]], NDArray[Any]]:
        """The positions along each axis, and the values, of entries other than the fill."""
        dense_shape = self.type.dense_shape(self.layout)
        kinds = [Coordinates.of(size).numpy for size in self.shape]
        coordinates: list[list[NDArray[Any]]] = [[np.empty(0, kind)] for kind in kinds]
        data: list[NDArray[Any]] = [np.empty(0, self.dtype)]
        if not self.layout.plain:
            for positions, entries in self._listed_entries():
                different = differs_from(entries, self.fill)
                data.append(entries[different])
                for axis, position in enumerate(positions):
                    coordinates[axis].append(position[different].astype(kinds[axis]))
            return [np.concatenate(parts) for parts in coordinates], np.concatenate(data)
        for batch in self._batches():
            *keys, values = batch.columns
            blocks = value_blocks(values, self.type, self.layout)
            rows, places = np.nonzero(differs_from(blocks, self.fill))
            data.append(blocks[rows, places])
            for axis, key in zip(self.layout.promoted, keys, strict=True):
                coordinates[axis].append(numpy_array(key)[rows])
            within = np.unravel_index(places, dense_shape) if dense_shape else ()
            for axis, index in zip(self.layout.dense, within, strict=True):
                coordinates[axis].append(index.astype(kinds[axis]))
        return [np.concatenate(parts) for parts in coordinates], np.concatenate(data)

    def copy_to(
        self, form: WrittenForm, folder: str, partition_by: Sequence[str], note: tuple[str, str]
    ) -> None:
        """Write the tensor in a form as Parquet files in folders, for `save`."""
        with self._reading(f"save {folder}"), self.query(form) as query:
            sql = copy_to_folder(query, folder, partition_by, note)
            self._session.run(sql, f"save {folder}")

    def count_stored(self) -> int:
        """The number of rows that the plan has stored."""
        with self._reading():
            (count,) = self._session.one_row(sql_text(count_query(self._table.place[0]))).values()
        return int(count)

    def first_rows(self, rows: int, numbers: int) -> list[tuple[Any, ...]]:
        """The first rows of `stored` in the order of their keys, with arrays as lists of numbers.

        Args:
            rows: the largest number of rows.
            numbers: the number of elements of an array, from its beginning.
        """
        form = WrittenForm(self.layout.shown, "stored")
        names = key_columns(self.type)
        keys = [names[axis] for axis in form.layout.promoted]
        named = None if form.layout.scalar else self.value_coordinates
        with self._reading(), self._wide(form.layout), self.query(form, lists=False) as query:
            table = self._session.table(sql_text(order_rows(query, keys).limit(rows)))
        found: list[tuple[Any, ...]] = []
        for batch in table.to_batches():
            *coordinates, values = batch.columns
            if form.layout.scalar and self.type.positions_in is not None:
                shown = values.to_pylist()
            else:
                blocks = value_blocks(values, self.type, form.layout)[:, :numbers]
                shown = blocks[:, 0].tolist() if form.layout.scalar else blocks.tolist()
                if named is not None:
                    shown = [coordinates_at(named, block).to_pylist() for block in blocks]
            found += zip(*(x.to_pylist() for x in coordinates), shown, strict=True)
        return found

    def _by_arrow(self, form: WrittenForm) -> bool:
        """True if kernels are needed that DuckDB has only for the duration of a call."""
        return needs_kernels(self.layout, form) and self._session.offered.registered

    @contextmanager
    def query(self, form: WrittenForm, *, lists: bool = True) -> Iterator[Query]:
        """Build a SELECT of the tensor in a form, valid within the block.

        Args:
            form: the columns and rows.
            lists: True for arrays as lists; False for BLOBs.
        """
        session, capabilities = self._session, self._session.offered
        place, type_, form = self._find_place(form)
        names = {key: self._dictionaries[key].name for key in type_.dictionaries}
        prefix = ""
        if self._by_arrow(form):
            prefix = f"ucle_{secrets.token_hex(4)}_"
            capabilities = changed(capabilities, prefix=prefix)
        query = written_query(place, type_, self.layout, form, capabilities, names, lists=lists)
        ours = sorted(x for x in called_functions(query) if prefix and x.startswith(prefix))
        registered: tuple[str, ...] = ()
        if ours:
            names_ = tuple(name.removeprefix(prefix) for name in ours)
            registered = session.register_kernels(prefix, names_)
        try:
            yield query
        finally:
            session.remove_kernels(registered)

    @contextmanager
    def text_of(self, form: WrittenForm, *, lists: bool = True) -> Iterator[Rows]:
        """Return the SELECT of `query` as text, which is remembered where it is the same again."""
        (name, value), type_, own = self._find_place(form)
        if self._by_arrow(own):
            with self.query(form, lists=lists) as query:
                yield rows_of(query)
        else:
            names = {key: self._dictionaries[key].name for key in type_.dictionaries}
            offered = self._session.offered
            yield written_rows(name, value, type_, self.layout, own, offered, names, lists)

    def _find_place(self, form: WrittenForm) -> tuple[tuple[str, str], TensorType, WrittenForm]:
        """Return the table to read for a form, with its type, and the form to bring it into.

        A table with coordinates as keys has every tuple (`ucle.plan.keep_coordinates`). It is read
        as it is if its keys stay; otherwise they are numbered first.
        """
        table, layout = self._table, self.layout
        same = form.layout == layout or form.layout.scalar
        if not isinstance(table, DeferredTable) or not same:
            return table.place, self.type, form
        axes = [self.type.axes[axis].dictionary for axis in layout.promoted]
        type_ = without_dictionaries(self.type, [x for x in axes if x is not None])
        rows = "stored" if form.every_row else form.rows
        return table.stored.place, type_, changed(form, rows=rows)

    @contextmanager
    def batches(self, form: WrittenForm) -> Iterator[tuple[pa.Schema, Iterator[pa.RecordBatch]]]:
        """Read the tensor in a form as Arrow batches with a described schema, within the block.

        Args:
            form: the columns and rows.
        """
        layout = form.layout
        named = None if layout.scalar else self.value_coordinates
        with self._reading(), self._wide(layout), self.text_of(form, lists=False) as rows:
            reader = self._reader(rows.text, layout)
            schema = list_schema(reader.schema, self.type, form, named)
            yield schema, (list_batch(each, schema, self.type, layout, named) for each in reader)

    def check_memory(self, form: WrittenForm) -> None:
        """Check that the rows of a form fit into the memory that DuckDB may use.

        Raises:
            MemoryLimitError: they do not.
        """
        entry = self.type.tuple_bytes(form.layout) + 4 * len(form.layout.promoted)
        with self._reading():
            limit = self._session.memory_limit
        allowed = math.floor(limit / max(entry, 1))
        most = math.prod(self.shape[axis] for axis in form.layout.promoted)
        if most <= allowed:
            return
        count = most
        if not form.every_row:
            with self._reading(), self.query(form, lists=False) as query:
                ((count,),) = self._session.fetch(sql_text(count_rows_up_to(query, allowed + 1)))
        if count > allowed:
            raise MemoryLimitError(
                "the rows of the tensor do not fit into memory",
                where=f"result {self.name}",
                expected=f"at most {allowed:,} rows of {entry} bytes",
                found=f"{count:,} rows" if form.every_row else "more rows",
                hint="keys= writes arrays, to_table and save write to disk"
                + (", rows='nonfill' leaves out entries that equal the fill" * (form.every_row)),
            )

    def _tell_of_arrays(self, form: WrittenForm, keys: Sequence[str] | None, count: int) -> None:
        """Log a message if entries were written by default and arrays would be much smaller."""
        if keys is not None or len(self.shape) < 2 or not RESULT.isEnabledFor(logging.INFO):
            return
        # In the layout of the plan nothing is converted; otherwise the last axis is in arrays.
        inner = self.layout.dense if 0 < len(self.layout.dense) < len(self.shape) else (-1,)
        axes = [axis for axis in range(len(self.shape)) if axis - len(self.shape) not in inner]
        axes = [axis for axis in axes if axis not in inner]
        width, item = math.prod(self.shape[axis] for axis in inner), self.type.dtype.bytes
        arrays = math.prod(self.shape[axis] for axis in axes) * (4 * len(axes) + item * width)
        entries = count * (4 * len(self.shape) + item)
        if entries > WORTH_A_WORD and entries > 1.5 * arrays:
            names = [self.type.axes[axis].name for axis in axes]
            RESULT.info(
                "%s was written as %s entries; keys=%r writes arrays, in %.0f%% of the bytes",
                self.name,
                f"{count:,}",
                names,
                100 * arrays / entries,
            )

    @contextmanager
    def _reading(self, where: str | None = None) -> Iterator[None]:
        """Translate DuckDB's errors into errors of ucle in a block that reads the result."""
        place = where or f"result {self.name}"
        if not self._table.exists:
            raise _build_closed_error(place, "it was closed")
        try:
            with errors_of_reader(), reading_only(self._session):
                yield
        except (EngineError, UcleError) as error:
            cause = error if isinstance(error, EngineError) else error.__cause__
            if gone := why_gone(cause, self._table.title):
                raise _build_closed_error(place, gone) from cause
            if isinstance(error, EngineError):
                raise execution_error(error, place) from error
            raise

    def _listed_entries(self) -> Iterator[tuple[list[NDArray[Any]], NDArray[Any]]]:
        """Yield the positions along each axis, and the values, in tiles and compressed arrays."""
        if self.layout.compressed is None:
            for batch in self._batches():
                for place, block in tiles(batch, self.type, self.layout):
                    within = np.indices(block.shape).reshape(block.ndim, -1)
                    positions = [w + p.start for w, p in zip(within, place, strict=True)]
                    yield positions, block.reshape(-1)
            return
        for batch in self._batches():
            *keys, values = batch.columns
            starts_ = tile_starts(keys[0], self.layout) if keys else [0] * len(values)
            for start, blob in zip(starts_, payloads(values), strict=True):
                csr = Csr.from_bytes(bytes(blob), self.dtype)
                rows = csr.row + start
                by_axis = {self.layout.compressed: csr.idx}
                yield [by_axis.get(a, rows) for a in range(len(self.shape))], csr.values

    def _reader(self, text: str, layout: Layout) -> pa.RecordBatchReader:
        """Return a reader of the rows of a query whose arrays are BLOBs."""
        rows = batch_rows(max(1, self.type.tuple_bytes(layout)))
        return self._session.reader(text, rows)

    def _wide(self, layout: Layout) -> contextlib.AbstractContextManager[None]:
        """Allow large Arrow columns if the arrays of one DuckDB vector need them."""
        at_once = DUCKDB.limits.vector_rows * max(1, self.type.tuple_bytes(layout))
        if at_once > DUCKDB.limits.column_bytes:
            return self._session.wide_columns()
        return contextlib.nullcontext()

    def _batches(self) -> Iterator[pa.RecordBatch]:
        """Yield batches of the stored tuples, with ``val`` as numbers or BLOBs."""
        with self._reading():
            rows = self._table.fetched
            if rows is not None:
                self._session.check_open()
                yield rows_batch(rows, self.type, self.layout)
                return
            yield from stored_batches(self._session, self._table.place, self.type, self.layout)


def _build_closed_error(where: str, found: str) -> ResultClosedError:
    return ResultClosedError(
        "the result is gone",
        where=where,
        expected="a result that was not closed, on a connection that is open",
        found=found,
        hint="execute() the program again, or read the entries before the result is closed",
    )
