"""The computation of lazy tensors: methods that compile them, compute them and hand the data over.

Conversions of Python that would compute without being asked, such as `bool`, are refused here.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from numpy.typing import NDArray

from ucle.database.session import Database
from ucle.errors import LazyError
from ucle.foundation import arguments as args
from ucle.foundation.arguments import validated
from ucle.foundation.array_protocol import as_array
from ucle.foundation.dataclasses import dataclass
from ucle.foundation.dtypes import Scalar
from ucle.foundation.libraries import pa
from ucle.lazy.compute import compile_tensors, compute_tensors
from ucle.lazy.nodes import Lazy
from ucle.lazy.other_names import find_hint
from ucle.plan.forms import FORM, MAX_ROWS
from ucle.program import EinsumProgram
from ucle.run.results import TensorRelation
from ucle.run.stored_tensor import CPU
from ucle.run.write_table import MODES

if TYPE_CHECKING:
    import scipy.sparse


@dataclass(frozen=True, eq=False, repr=False)
class Computable:
    """A lazy tensor, as far as its computation is concerned."""

    lazy: Lazy

    if not TYPE_CHECKING:  # for a type checker, tensors would have every attribute

        def __getattr__(self, name: str) -> NoReturn:
            """Say what to write where users of other libraries look for an attribute."""
            message = f"{type(self).__name__!r} object has no attribute {name!r}"
            if not name.startswith("_") and (hint := find_hint(name)):
                message += f"; write {hint}"
            raise AttributeError(message, name=name, obj=self)

    # ---- Computing ----

    def program(self, database: Database = None, **options: Any) -> EinsumProgram:
        """Compile the tensor to a program, whose output is called ``out``.

        Args:
            database: where tables are; by default the one given to `ucle.tensor`.
            options: as for `ucle.einsum_program`: `decomposition`, `memory_limit`, `bounds` ...
        """
        return compile_tensors({"out": self.lazy}, database, **options)

    def compute(self, database: Database = None, **options: Any) -> TensorRelation:
        """Compute the tensor; the arguments are those of `program`.

        Returns:
            The tensor relation, in a temporary table that is dropped with it.

        >>> import ucle
        >>> ucle.array([[1, 2], [3, 4]], axes=("i", "j")).sum("j").compute().to_numpy()
        array([3, 7])
        """
        return self.program(database, **options).execute()["out"]

    def to_numpy(self, database: Database = None, **options: Any) -> NDArray[Any]:
        """Compute the tensor as a dense array; the arguments are those of `program`."""
        with compute_tensors({"out": self.lazy}, database, **options) as result:
            return result["out"].to_numpy()

    def to_scipy(self, database: Database = None, **options: Any) -> scipy.sparse.coo_array:
        """Compute the tensor as a scipy.sparse array; the arguments are those of `program`."""
        with compute_tensors({"out": self.lazy}, database, **options) as result:
            return result["out"].to_scipy()

    @validated(database=args.database_or_spark, **FORM, columns=args.optional(args.text))
    def to_arrow(
        self,
        database: Database = None,
        *,
        keys: Sequence[str] | None = None,
        rows: str | None = None,
        columns: str | None = None,
        max_rows: int = MAX_ROWS,
        **options: Any,
    ) -> pa.Table:
        """Compute the tensor as an Arrow table.

        Args:
            database: where tables are; by default the one given to `ucle.tensor`.
            keys: axes that get a column, as for `to_table`.
            rows: the rows to export, as for `to_table`.
            columns: an axis that becomes columns, as for `TensorRelation.to_arrow`.
            max_rows: the largest number of rows for ``rows="all"``.
            options: as for `program`.
        """
        pinned = self._pin_keys(keys, options, columns)
        with compute_tensors({"out": self.lazy}, database, **pinned) as result:
            return result["out"].to_arrow(keys, rows, columns=columns, max_rows=max_rows)

    @validated(database=args.database_or_spark, **FORM, columns=args.optional(args.text))
    def to_pandas(
        self,
        database: Database = None,
        *,
        keys: Sequence[str] | None = None,
        rows: str | None = None,
        columns: str | None = None,
        max_rows: int = MAX_ROWS,
        **options: Any,
    ) -> Any:
        """Compute the tensor as a pandas frame; arguments are as for `to_arrow`."""
        pinned = self._pin_keys(keys, options, columns)
        with compute_tensors({"out": self.lazy}, database, **pinned) as result:
            return result["out"].to_pandas(keys, rows, columns=columns, max_rows=max_rows)

    @validated(database=args.database_or_spark, **FORM, columns=args.optional(args.text))
    def to_polars(
        self,
        database: Database = None,
        *,
        keys: Sequence[str] | None = None,
        rows: str | None = None,
        columns: str | None = None,
        max_rows: int = MAX_ROWS,
        **options: Any,
    ) -> Any:
        """Compute the tensor as a polars frame; arguments are as for `to_arrow`."""
        pinned = self._pin_keys(keys, options, columns)
        with compute_tensors({"out": self.lazy}, database, **pinned) as result:
            return result["out"].to_polars(keys, rows, columns=columns, max_rows=max_rows)

    def to_xarray(self, database: Database = None, **options: Any) -> Any:
        """Compute the tensor as an `xarray.DataArray`; see `TensorRelation.to_xarray`.

        Its dimensions are the axes; the arguments are those of `program`.
        """
        with compute_tensors({"out": self.lazy}, database, **options) as result:
            return result["out"].to_xarray().rename(None)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Compute the tensor and export it as an Arrow stream, as `to_arrow` does."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    @validated(
        path=args.path,
        database=args.database_or_spark,
        **FORM,
        partition_by=args.names,
    )
    def save(
        self,
        path: str | os.PathLike[str],
        database: Database = None,
        *,
        keys: Sequence[str] | None = None,
        rows: str | None = None,
        max_rows: int = MAX_ROWS,
        partition_by: Sequence[str] | None = None,
        **options: Any,
    ) -> None:
        """Compute the tensor and write it to a file; see `TensorRelation.save` for the formats."""
        with compute_tensors(
            {"out": self.lazy}, database, **self._pin_keys(keys, options)
        ) as result:
            result["out"].save(
                path, keys=keys, rows=rows, max_rows=max_rows, partition_by=partition_by
            )

    @validated(
        name=args.text,
        database=args.database_or_spark,
        **FORM,
        mode=args.choice(*MODES),
        on=args.names,
        replace=args.flag,
    )
    def to_table(
        self,
        name: str,
        database: Database = None,
        *,
        keys: Sequence[str] | None = None,
        rows: str | None = None,
        mode: str = "error",
        on: Sequence[str] | None = None,
        max_rows: int = MAX_ROWS,
        replace: bool = False,
        **options: Any,
    ) -> None:
        """Compute the tensor and store it as a table of the database.

        Args:
            name: the name of the table.
            database: where the table is; by default the one given to `ucle.tensor`.
            keys: axes that get a column, by default all; the others are in arrays.
            rows: ``"nonfill"``, the default if the fill is 0 or the identity of the aggregation
                that computed the tensor; ``"all"``, the default otherwise; or ``"stored"``.
            mode: what to do with an existing table: ``"error"``, ``"replace"``, ``"append"`` or
                ``"upsert"``.
            on: columns by which ``"upsert"`` identifies a row; by default all keys.
            max_rows: the largest number of rows for ``rows="all"``.
            replace: another way to write ``mode="replace"``.
            options: as for `program`.

        >>> import duckdb, ucle
        >>> with duckdb.connect() as connection:
        ...     ucle.array([[1, 2], [0, 4]], axes=("i", "j")).to_table("t", connection, keys=["i"])
        ...     connection.sql("FROM t ORDER BY i").fetchall()
        [(0, [1, 2]), (1, [0, 4])]
        """
        with self.program(database, **self._pin_keys(keys, options)).execute() as result:
            result["out"].to_table(
                name, keys=keys, rows=rows, mode=mode, on=on, max_rows=max_rows, replace=replace
            )

    def _pin_keys(
        self, keys: Sequence[str] | None, options: dict[str, Any], columns: str | None = None
    ) -> dict[str, Any]:
        """Add a decomposition with these keys to the options, which is preferred to others.

        Keys that the tensor does not have are ignored here; the export reports them. All axes are
        keys but the one that becomes columns, if any.
        """
        axes = {axis.name for axis in self.lazy.axes}
        if keys is None and columns in axes and None not in axes:
            keys = [x.name for x in self.lazy.axes if x.name is not None and x.name != columns]
        by_axes = keys is not None and not isinstance(keys, str) and set(keys) <= axes
        pinned = {"preferred": {"out": list(keys or ())}} if by_axes else {}
        return {**pinned, **options}

    def to_sql(self, database: Database = None, **options: Any) -> str:
        """The SQL script that computes the tensor; the arguments are those of `program`."""
        return self.program(database, **options).to_sql()

    @validated(database=args.database_or_spark, analyze=args.flag)
    def explain(self, database: Database = None, *, analyze: bool = False, **options: Any) -> str:
        """Explain how the tensor is computed: decomposition, statistics, costs and steps."""
        return self.program(database, **options).explain(analyze=analyze)

    def item(self, database: Database = None, **options: Any) -> Scalar:
        """Compute the only entry of a tensor, as a Python number."""
        entry: Scalar = self.to_numpy(database, **options).item()
        return entry

    # ---- Protocols of arrays ----

    def __dlpack__(self, **options: Any) -> Any:
        """Compute the tensor and export it by DLPack, as `to_numpy` does."""
        return self.to_numpy().__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        """The memory of the process."""
        return CPU

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return as_array(self.to_numpy, dtype, copy, "lazy tensor")

    # ---- What a lazy tensor cannot tell ----

    def __bool__(self) -> NoReturn:
        raise _lazy(
            "a lazy tensor is neither true nor false",
            "if, and, or, not",
            "& | ~ and ucle.where for what is decided entry by entry; "
            "bool(t.any().to_numpy()) to compute first",
        )

    def __len__(self) -> NoReturn:
        raise _lazy("a lazy tensor has no length", "len", "t.shape[0], where it is known")

    def __iter__(self) -> NoReturn:
        raise _lazy(
            "a lazy tensor cannot be iterated over", "for", "for row in t.to_numpy() computes it"
        )

    def __contains__(self, value: object) -> NoReturn:
        raise _lazy(
            "whether a lazy tensor holds a value is not known", "in", "(t == value).any() is lazy"
        )

    def __float__(self) -> NoReturn:
        raise _lazy("a lazy tensor is not a number", "float", "t.item() computes it")

    def __int__(self) -> NoReturn:
        raise _lazy("a lazy tensor is not a number", "int", "t.item() computes it")

    def __complex__(self) -> NoReturn:
        raise _lazy("a lazy tensor is not a number", "complex", "t.item() computes it")


def _lazy(message: str, where: str, hint: str) -> LazyError:
    return LazyError(message, where=where, hint=hint)
