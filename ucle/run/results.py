"""Results: tensors by name, and the ways to show, save and keep them.

Tensors are read by `ucle.run.stored_tensor`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

from ucle.database.change_detection import changing_only
from ucle.database.session import Session
from ucle.database.temporary_tables import DeferredTable, Temporary, TemporaryTable
from ucle.errors import ArgumentError, LabelError, OutputNameError, did_you_mean
from ucle.foundation import arguments as args
from ucle.foundation.arguments import validated
from ucle.foundation.arrow_numbers import numpy_array
from ucle.foundation.libraries import optional, pa
from ucle.inputs.inputs import parse_table_name
from ucle.pipeline.artifacts import Compiled
from ucle.plan.forms import FORM, MAX_ROWS, WrittenForm
from ucle.run.arrow_rows import coordinates_at
from ucle.run.description import result_html, result_text, tensor_html, tensor_text
from ucle.run.stored_tensor import StoredTensor
from ucle.run.wide_frames import plain_words, wide_frame
from ucle.run.write_file import save, save_partitioned
from ucle.run.write_table import MODES, WriteTarget, checked_mode, write_rows
from ucle.sqlgen.script import sql_text
from ucle.sqlgen.sql_trees import key_columns

if TYPE_CHECKING:
    import duckdb


T = TypeVar("T")


class Outputs(Mapping[str, T]):
    """The outputs of one execution, by name."""

    _states: Mapping[str, str] = MappingProxyType({})
    """Of a loop: the outputs that replaced inputs, which are found by their names, too."""

    def __init__(self, tensors: Mapping[str, T]) -> None:
        self._tensors = tensors

    def __getitem__(self, name: str) -> T:
        if isinstance(name, str) and name not in self._tensors:
            name = self._states.get(name, name)
        if not isinstance(name, str) or name not in self._tensors:
            raise OutputNameError(
                f"the result has no tensor {name!r}",
                where="result",
                expected=", ".join(self._tensors) or "no outputs",
                found=repr(name),
                hint=did_you_mean(name, self._tensors) if isinstance(name, str) else None,
            )
        return self._tensors[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._tensors)

    def __len__(self) -> int:
        return len(self._tensors)


AS_ARROW = "to_arrow() gives the same as an Arrow table"
"""Hint for users without an optional library."""


class TensorRelation(StoredTensor):
    """One output: a tensor that is stored in a temporary table of the connection.

    The table exists as long as its `Result`, or as long as an object derived from it. Export it
    with `to_numpy`, `to_arrow`, `to_scipy`, `to_pandas`, `to_polars`, `to_xarray`, write it to a
    file with `save`, or keep it in the database with `to_table`.

    All of these write the same form, whatever the layout in which the plan stored the tensor: a
    column for each axis, and a column ``val`` for the value. With ``keys=``, the other axes are in
    arrays. ``rows=`` selects the rows: ``"nonfill"`` is the default if the fill is 0 or the
    identity of the aggregation that computed the tensor; otherwise the default is ``"all"``, with
    at most `max_rows` rows. ``"stored"`` selects the rows that the plan has stored, as `stored`
    shows them. Rows are in no particular order. ``columns=`` of `to_pandas`, `to_polars` and
    `to_arrow` makes a wide table.
    """

    if not TYPE_CHECKING:  # with it, types would have every attribute

        def __getattr__(self, name: str) -> Any:
            hint = "; ucle.tensor(...) of a result has the methods of lazy tensors"
            raise AttributeError(
                f"{type(self).__name__!r} object has no attribute {name!r}"
                + ("" if name.startswith("_") else hint),
                name=name,
                obj=self,
            )

    @validated(**FORM, columns=args.optional(args.text))
    def to_pandas(
        self,
        keys: Sequence[str] | None = None,
        rows: str | None = None,
        *,
        columns: str | None = None,
        max_rows: int = MAX_ROWS,
    ) -> Any:
        """Export the tensor as a pandas frame; arguments and errors are as for `to_arrow`.

        With ``columns=``, the coordinates of the other axes are the index, and the columns are the
        coordinates themselves (text, dates, positions ...).

        Raises:
            MissingPackageError: pandas is not installed.

        >>> import pandas, ucle
        >>> X = pandas.DataFrame({"b": [1, 2], "a": [3, 4]}, pandas.Index(["x", "y"], name="id"))
        >>> twice = ucle.einsum_program("Y[id,f] = 2 * X[id,f]", X=ucle.table(X, columns_as="f"))
        >>> twice.execute()["Y"].to_pandas(columns="f").to_dict("index")
        {'x': {'b': 2, 'a': 6}, 'y': {'b': 4, 'a': 8}}
        """
        optional("pandas", "to_pandas", AS_ARROW)
        if columns is not None:
            return wide_frame(self, columns, keys, rows, max_rows)
        return self.to_arrow(keys, rows, max_rows=max_rows).to_pandas()

    @validated(**FORM, columns=args.optional(args.text))
    def to_polars(
        self,
        keys: Sequence[str] | None = None,
        rows: str | None = None,
        *,
        columns: str | None = None,
        max_rows: int = MAX_ROWS,
    ) -> Any:
        """Export the tensor as a polars frame; arguments and errors are as for `to_arrow`.

        Raises:
            MissingPackageError: polars is not installed.
        """
        polars = optional("polars", "to_polars", AS_ARROW)
        return polars.from_arrow(self.to_arrow(keys, rows, columns=columns, max_rows=max_rows))

    def to_xarray(self) -> Any:
        """Export the dense tensor as an `xarray.DataArray`.

        Its dimensions are the labels. Those with a dictionary have coordinates, in the order of
        `coordinates`; times with a time zone are in UTC, as NumPy has none. Along the others,
        coordinates are positions, and are left out.

        Raises:
            MemoryLimitError: the dense tensor does not fit into memory.
            MissingPackageError: xarray is not installed.
        """
        hint = "pip install xarray; to_numpy() has the values, and coordinates(label) the rest"
        xarray = optional("xarray", "to_xarray", hint)
        labels = [axis.name for axis in self.type.axes]
        coordinates = {
            axis.name: (axis.name, numpy_array(plain_words(self.coordinates(axis.name))))
            for axis in self.type.axes
            if axis.dictionary is not None
        }
        values, named = self.to_numpy(), self.value_coordinates
        if named is not None:
            at = coordinates_at(named, values.reshape(-1))
            values = at.to_numpy(zero_copy_only=False).reshape(values.shape)
        return xarray.DataArray(values, coordinates, labels, self.name)

    @validated(
        path=args.path,
        **FORM,
        partition_by=args.names,
    )
    def save(
        self,
        path: str | os.PathLike[str],
        *,
        keys: Sequence[str] | None = None,
        rows: str | None = None,
        max_rows: int = MAX_ROWS,
        partition_by: Sequence[str] | None = None,
    ) -> None:
        """Write the tensor to a file; the suffix determines the format.

        The file appears when it is complete, and replaces an existing file with that name.

        Args:
            path: ``.parquet`` and ``.arrow`` (``.feather``, ``.ipc``) hold every tensor, with
                bounds, fill and type, and can be read back as the same tensor; ``.csv`` and
                ``.tns`` hold its entries, ``.mtx`` a matrix, ``.npy`` the dense array, ``.npz`` a
                sparse matrix or a dense array. Text may be compressed: ``.csv.gz``. With
                `partition_by` it is a folder.
            keys: labels that get a column, as for `to_table`; only for Parquet and Arrow files.
            rows: the rows to write, as for `to_table`; only for Parquet, Arrow and CSV files.
            max_rows: the largest number of rows for ``rows="all"``.
            partition_by: labels with a folder for each of their values, in Hive's format:
                ``folder/i=3/data_0.parquet``.

        Raises:
            UnsupportedError: there is no such format, or it cannot hold the tensor.
            ArgumentError: there are too many rows.
            OutputError: the file cannot be written.
        """
        if partition_by is None:
            save(self, path, keys, rows, max_rows)
        else:
            save_partitioned(self, path, keys, rows, max_rows, partition_by)

    @validated(
        name=args.text,
        **FORM,
        mode=args.choice(*MODES),
        on=args.names,
        replace=args.flag,
    )
    def to_table(
        self,
        name: str,
        *,
        keys: Sequence[str] | None = None,
        rows: str | None = None,
        mode: str = "error",
        on: Sequence[str] | None = None,
        max_rows: int = MAX_ROWS,
        replace: bool = False,
    ) -> None:
        """Store the tensor as a table of the database.

        After an error, the table is unchanged. If the connection has an open transaction, the table
        is written as a part of it.

        Args:
            name: the name of the table; ``schema.name`` and ``database.schema.name`` work too, also
                for attached databases. A name that is not a plain word is quoted: ``"my table"``.
            keys: labels that get a column, in the order of the tensor's axes. The others are in
                arrays, which are flat and row-major: lists, or arrays such as ``FLOAT[3]`` if the
                lengths come from such a column. By default every label gets a column.
            rows: ``"nonfill"``, ``"all"`` or ``"stored"``, see `TensorRelation`. A row with an
                array is written if any of its entries differs from the fill.
            mode: what to do with an existing table: ``"error"``, ``"replace"``, ``"append"``, or
                ``"upsert"``, which replaces rows that have the same keys. Rows that hold only the
                fill replace no rows, unless ``rows="all"`` writes them.
            on: columns by which ``"upsert"`` identifies a row; by default all keys.
            max_rows: the largest number of rows for ``rows="all"``.
            replace: another way to write ``mode="replace"``.

        Raises:
            ArgumentError: there are too many rows, or no such mode.
            ReadOnlyError: the database is open for reading only.
            ColumnsError: the existing table has other columns.
            DatabaseError: the table exists, or cannot be created.
            ResultClosedError: the result is gone.
        """
        where = f"to_table({name!r})"
        parts = parse_table_name(name, "to_table").parts
        mode = checked_mode(mode, replace, where)
        form = self.form(keys, rows, max_rows, where)
        columns = [key_columns(self.type)[axis] for axis in form.layout.promoted]
        length = None if form.layout.scalar else self.type.dense_size(form.layout)
        on_columns = _upsert_keys(on, columns, mode, where)
        target = WriteTarget(parts, mode, on_columns, where, length=length)
        count = self.write(form, target)
        self._tell_of_arrays(form, keys, count)

    def write(self, form: WrittenForm, target: WriteTarget) -> int:
        """Write the tensor in a form into a table, as for `to_table`; return the number of rows."""
        with (
            changing_only(self._session, target.parts[-1]),
            self._session.writing(target.where),
            self._reading(target.where),
            self.query(form) as query,
        ):
            return write_rows(self._session, query, target)

    @property
    def relation(self) -> duckdb.DuckDBPyRelation:
        """The tensor as a DuckDB relation, with a column for each axis.

        Raises:
            ArgumentError: every entry would be written, and there are too many.
            ResultClosedError: the result is gone.
        """
        self._session.hold()
        return self.shown()

    @validated(**FORM)
    def shown(
        self,
        keys: Sequence[str] | None = None,
        rows: str | None = None,
        *,
        max_rows: int = MAX_ROWS,
    ) -> duckdb.DuckDBPyRelation:
        """The tensor as a DuckDB relation in a form; arguments are as for `to_table`."""
        return self._relation(self.form(keys, rows, max_rows, f"result {self.name}, relation"))

    @property
    def stored(self) -> duckdb.DuckDBPyRelation:
        """The tuples that the plan has stored: promoted labels, then ``val`` as a number or a list.

        Another plan may store other columns and rows.
        """
        return self._relation(WrittenForm(self.layout.shown, "stored"))

    def _relation(self, form: WrittenForm) -> duckdb.DuckDBPyRelation:
        if self._by_arrow(form):
            with self.batches(form) as (schema, batches):
                return self._session.relation_of(pa.Table.from_batches(batches, schema))
        with self._reading(), self.query(form) as query:
            return self._session.relation(sql_text(query), self._table, self._dictionaries)

    def __repr__(self) -> str:
        return tensor_text(self)

    def _repr_html_(self) -> str:
        """The HTML for a notebook: axes, the stored tuples, and their first rows."""
        return tensor_html(self)


def _upsert_keys(
    on: Sequence[str] | None, columns: list[str], mode: str, where: str
) -> tuple[str, ...]:
    """The columns by which rows are identified; none unless the mode is ``upsert``."""
    if mode != "upsert":
        if on is not None:
            raise ArgumentError(
                "on= goes with mode='upsert' alone",
                where=where,
                expected="mode='upsert'",
                found=f"mode={mode!r}, on={on!r}",
            )
        return ()
    chosen = columns if on is None else [on] if isinstance(on, str) else list(on)
    for name in chosen:
        if name not in columns:
            raise LabelError(
                "on= names a column that is not a key",
                where=where,
                expected=", ".join(columns) or "keys",
                found=repr(name),
                hint=did_you_mean(str(name), columns),
            )
    if not chosen:
        raise ArgumentError(
            "no column identifies the rows",
            where=where,
            expected="key columns, or mode='replace'",
            found=f"on={on!r}, columns {', '.join(columns) or 'without keys'}",
        )
    return tuple(chosen)


class Result(Outputs[TensorRelation]):
    """The outputs of one execution, by name.

    Its temporary tables are dropped when it is closed or collected. Use it as a context manager to
    drop them at a certain point.
    """

    def __init__(
        self,
        session: Session,
        tensors: dict[str, TensorRelation],
        tables: list[Temporary],
        *,
        holds: bool = True,
    ) -> None:
        """Provide tensors by name.

        Args:
            session: where they are stored.
            tensors: the outputs.
            tables: tables that are dropped with the result.
            holds: True if the session is closed with the result.
        """
        super().__init__(tensors)
        self._session = session
        self._tables = tables
        self._holds = holds

    @classmethod
    def of(
        cls,
        compiled: Compiled,
        session: Session,
        places: Mapping[str, Temporary],
        dictionaries: Mapping[str, TemporaryTable | DeferredTable],
    ) -> Result:
        """Build the result of a program, which holds the session from then on.

        Args:
            compiled: the program.
            session: where its outputs are stored.
            places: the table of each output.
            dictionaries: the tables of the dictionaries, by name.
        """
        tensors = {}
        for output in compiled.program.outputs:
            read = compiled.physical.shown[output]
            tensors[output] = TensorRelation(
                output,
                read.type,
                read.layout,
                places[output],
                session,
                dictionaries,
                nonfill=output in compiled.nonfill,
                fixed=compiled.fixed_axes[output],
            )
        return cls(session, tensors, [*places.values(), *dictionaries.values()])

    def __enter__(self) -> Result:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Drop the temporary tables; the tensors cannot be read any more."""
        for temporary in self._tables:
            temporary.drop()
        if self._holds:
            self._session.close()

    def __repr__(self) -> str:
        return result_text(self)

    def _repr_html_(self) -> str:
        """The HTML for a notebook: the descriptions of all tensors."""
        return result_html(self)
