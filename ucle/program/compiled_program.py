"""A compiled program as it is: its plan, its costs, its script, and views that compute it."""

from __future__ import annotations

import contextlib
import copy
import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace as with_fields
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from ucle.database.engine import DUCKDB
from ucle.database.macro_check import open_checked
from ucle.database.session import Database, Session
from ucle.foundation import arguments as args
from ucle.foundation.arguments import renamed, validated
from ucle.foundation.libraries import LateModule
from ucle.inputs.table_changes import Drift
from ucle.options import GivenDecomposition, names_of
from ucle.pipeline.replan import in_safe_form, plan_decomposition
from ucle.plan.decomposition import VertexCost
from ucle.plan.forms import MAX_ROWS, ROWS
from ucle.plan.passes import LASTING, WITH_LITERALS
from ucle.plan.relation_nodes import Load
from ucle.program.arguments import KEYS
from ucle.run.array_tables import array_table
from ucle.run.build import Build
from ucle.run.current_data import Preparations
from ucle.run.execute import memory_tables
from ucle.run.views import Keys, create_views, macro_statements, tables_read, view_queries
from ucle.sqlgen.dialects import DIALECTS, DUCKDB_SQL
from ucle.sqlgen.guards import Guard

if TYPE_CHECKING:
    from ucle.export import to_onnx as export
    from ucle.program import renderings
else:  # most programs are only executed
    export = LateModule("ucle.export.to_onnx")
    renderings = LateModule("ucle.program.renderings")

WIDTHS = ("float32",)
"""The types in which an exported program may compute in place of its own."""


class CompiledProgram:
    """A compiled program, on the inputs and under the options that it was compiled for.

    Attributes:
        compiled: what each stage of the compilation has made.
        options: the options that it was compiled with.
    """

    def __init__(self, build: Build, preparations: Preparations | None = None) -> None:
        """Wrap a compiled program.

        Args:
            build: the program.
            preparations: those it begins with; by default it runs as it is on the tables that it
                was compiled for.
        """
        self.compiled = build.compiled
        self.options = build.options
        self._build = build
        self._preparations = preparations or Preparations(
            build.compiled, build.options, {build.target.versions: ()}
        )
        self._guards: tuple[renderings.ScriptForm, Sequence[Guard]] | None = None
        """Those of the script that was written last, and its form: they take long to find."""

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names of the output tensors."""
        return self.compiled.program.outputs

    @property
    def route(self) -> str:
        """The route of kernel calls: ``native``, ``arrow``, or ``plain`` without kernels."""
        return self._build.target.capabilities.name

    @property
    def cost(self) -> float:
        """Estimated cost under the program's cost profile."""
        return self.compiled.decomposed.total_cost

    @property
    def costs(self) -> Mapping[str, VertexCost]:
        """Estimated cost of each vertex, split into join, kernel, aggregate and repartition."""
        return self.compiled.decomposed.costs

    @property
    def decomposition(self) -> Mapping[str, frozenset[str]]:
        """The promoted labels of each vertex, in the form that `decomposition=` takes.

        >>> import ucle
        >>> program = ucle.einsum_program("y[i] += A[i,j] * x[j]", A=[[1, 2], [3, 4]], x=[1, 1])
        >>> program.with_decomposition({"y": {"i"}}).decomposition["y"]
        frozenset({'i'})
        """
        return MappingProxyType(dict(self.compiled.decomposed.promoted))

    @property
    def carry(self) -> Mapping[str, str]:
        """The inputs that an output replaces in the next step; empty except after `minimize`."""
        return MappingProxyType(dict(self._build.request.carry))

    @validated(database=args.database)
    def drift(self, database: Database = None) -> tuple[Drift, ...]:
        """Return the inputs whose number of entries has changed by a factor of more than ten.

        Another plan may be faster now; `recompile` finds it. `execute` warns of such inputs.

        Args:
            database: where the program runs, as for `execute`.

        Raises:
            UcleError: tables do not pass the checks of `execute`.
        """
        with contextlib.closing(self._session(database)) as session:
            return self._preparations.on(session).drifted

    @validated(
        keys=KEYS,
        rows=args.choice(*ROWS),
        max_rows=args.count(),
        dialect=args.choice(*DIALECTS),
    )
    def to_sql(
        self,
        *,
        keys: Keys = None,
        rows: str | None = None,
        max_rows: int = MAX_ROWS,
        dialect: str = DUCKDB_SQL.name,
    ) -> str:
        """Return the SQL script of the program: the statements of `execute`, with other names.

        Run by hand on a connection from `ucle.connect`, it gives the results of `execute`: a
        temporary table for each output, and for each tensor that several statements read. Other
        repartitions and EinSums are common table expressions. The header names the inputs from
        memory that are not written out; `register` makes them available to the script.

        Outputs are shown in their stored layout unless the arguments request a form. Then each has
        the columns and rows that `TensorRelation.to_table` writes.

        Programs in which every label is promoted (``decomposition="relational"``) are plain SQL.
        For these, there are scripts for other engines, too: Spark 4 and PostgreSQL 13. Such scripts
        read tables by the last part of their names, with the columns that they have in DuckDB, and
        show a row for each stored entry. Numbers are the same except for the order in which floats
        are added. PostgreSQL raises an error if a float64 overflows, or underflows to 0. On Spark,
        powers of integers are limited to 2^53.

        Args:
            keys: labels that get a column, by default all; a dict by output name if there are
                several outputs.
            rows: the rows that outputs show, as in `TensorRelation.to_table`.
            max_rows: the largest number of rows for ``rows="all"``.
            dialect: ``"duckdb"``, ``"spark"`` or ``"postgres"``.

        Raises:
            ArgumentError: an output would have too many rows, or there is no such label.
            UnsupportedError: the program calls kernels, or has a type or an operator that the
                dialect lacks.
        """
        if DIALECTS[dialect].statements is not None:
            compiled = in_safe_form(self.compiled, self.options)
            return renderings.write_script_in(DIALECTS[dialect], compiled, keys, rows)
        form = renderings.ScriptForm(copy.deepcopy(keys), rows, max_rows)
        if self._guards is None or self._guards[0] != form:
            self._guards = form, renderings.find_guards(self._build, form)
        return renderings.write_script(self._build, form, self._guards[1])

    @validated(connection=args.connection)
    def register(self, connection: Any) -> None:
        """Register the inputs from memory on a connection, for a script that is run by hand."""
        for name, data in memory_tables(self.compiled.named_inputs).items():
            DUCKDB.register(connection, name, data)
        for step in self.compiled.physical.steps:
            if isinstance(load := step.relation, Load):
                array = self.compiled.inputs[load.source.tensor].loaded
                table = array_table(array, load.table_type, load.layout, listed=load.listed)
                DUCKDB.register(connection, step.name, table)

    @renamed(room="capacity")
    @validated(
        database=args.database,
        schema=args.word,
        replace=args.flag,
        capacity=args.sizes,
        keys=KEYS,
        rows=args.choice(*ROWS),
        max_rows=args.count(),
        kernels=args.flag,
    )
    def create_views(
        self,
        database: Database = None,
        *,
        schema: str | None = None,
        replace: bool = False,
        capacity: Mapping[str, int] | None = None,
        keys: Keys = None,
        rows: str | None = None,
        max_rows: int = MAX_ROWS,
        kernels: bool = True,
    ) -> tuple[str, ...]:
        """Create a view for each output, for clients that query the database without this program.

        The views compute their answers from the contents of the tables at query time. They use the
        decomposition of the program, but multiply integers in the written order, because another
        order might overflow. If a size that is written into a view (the length of an array, the
        divisor of a mean) has changed, the view raises an error before it returns a row. Unless
        every label is promoted, views call kernels: they need a connection from `ucle.connect`, or
        ucle's extension in any client, and have a comment that says so. With ``kernels=False``,
        they are plain SQL, which is slower if the program would use arrays.

        Args:
            database: where the views are created, as for `execute`.
            schema: the name of an existing schema; by default the current one.
            replace: True to replace existing views of the same names.
            capacity: larger sizes for arrays by label, if more coordinates are expected. Results
                are the same; `bounds` of `einsum_program` would change means.
            keys: labels that get a column, by default all, as in `TensorRelation.to_table`; a dict
                by output name if there are several outputs.
            rows: the rows that the views show, as in `TensorRelation.to_table`.
            max_rows: the largest number of rows for ``rows="all"``.
            kernels: False for views that any client of DuckDB can query.

        Returns:
            The names of the views, as SQL writes them.

        Raises:
            UnsupportedError: an input is in memory, the connection does not load extensions, or the
                program needs kernels in spite of ``kernels=False``.
            ArgumentError: a view would have too many rows.
            DatabaseError: a view cannot be created. Then none of the views is created.
        """
        build, preparations = self._with_kernels(kernels)
        with contextlib.closing(self._session(database)) as session:
            return create_views(
                session,
                preparations.fresh(session).for_views(),
                build.options,
                session.capabilities,
                schema,
                replace_views=replace,
                capacity=capacity,
                keys=keys,
                rows=rows,
                max_rows=max_rows,
                plain=not kernels,
            )

    @renamed(room="capacity")
    @validated(
        database=args.database,
        kernels=args.flag,
        tables=args.several(args.text, "names of inputs"),
        names=args.mapping(args.text, args.word, "a dict from output to name"),
        literals=args.flag,
    )
    def macro_sql(
        self,
        database: Database = None,
        *,
        capacity: Mapping[str, int] | None = None,
        keys: Keys = None,
        rows: str | None = None,
        max_rows: int = MAX_ROWS,
        kernels: bool = True,
        tables: Collection[str] | None = None,
        names: Mapping[str, str] | None = None,
        literals: bool = False,
    ) -> str:
        """Return statements that create a table macro per output: a view with table parameters.

        A macro has a parameter ``NAME_table`` for each table that the program reads, with its name
        as the default, so that ``FROM total()`` reads this table, and ``FROM total(sales_table :=
        'archive.sales')`` reads another one with columns of the same names. The remarks on
        `create_views` also hold for macros, including sizes and kernels.

        Args:
            database: where the tables are, as for `execute`.
            capacity: larger sizes for arrays by label, for other tables with more coordinates.
            keys: labels that get a column, as in `create_views`.
            rows: the rows that the macros show, as in `TensorRelation.to_table`.
            max_rows: the largest number of rows for ``rows="all"``.
            kernels: False for macros that any client of DuckDB can call.
            tables: the inputs whose tables are parameters, by default all; the others are always
                read from the same tables, whose sizes must not change.
            names: names of macros by output; by default those of the outputs.
            literals: True to write arrays from memory into the macros, if they take at most 1 KB.

        Raises:
            UnsupportedError: an input is in memory, or the connection does not load extensions.
            NameResolutionError: there is no such input.
            ArgumentError: a macro would have too many rows.

        >>> import duckdb, ucle
        >>> connection = duckdb.connect()
        >>> _ = connection.execute("CREATE TABLE sales AS SELECT 1 AS shop, 2 AS day, 5.0 AS paid")
        >>> program = ucle.einsum_program(
        ...     "total[shop] += sales[shop,day]",
        ...     sales=ucle.table("sales", bounds=[9, 9]),
        ...     database=connection,
        ...     decomposition="relational",
        ... )
        >>> _ = connection.execute(program.macro_sql())
        >>> _ = connection.execute("CREATE TABLE later AS SELECT 3 AS shop, 4 AS day, 7.0 AS paid")
        >>> connection.sql("FROM total() UNION ALL FROM total(sales_table := 'later')").fetchall()
        [(1, 5.0), (3, 7.0)]
        """
        build, preparations = self._with_kernels(kernels)
        with contextlib.closing(self._session(database)) as session:
            compiled = preparations.fresh(session).for_views()
            fixed = () if tables is None else tables_read(session, compiled, tables)
            queries = view_queries(
                session,
                compiled,
                build.options,
                session.capabilities,
                capacity=capacity,
                keys=keys,
                rows=rows,
                max_rows=max_rows,
                passes=WITH_LITERALS if literals else LASTING,
                fixed=fixed,
            )
        return "".join(f"{x};\n" for x in macro_statements(queries, names or {}, fixed).values())

    def _with_kernels(self, kernels: bool) -> tuple[Build, Preparations]:
        """The program and its preparations, or those of the same in plain SQL."""
        build, preparations = self._build, self._preparations
        if not kernels:
            build, preparations = self._decomposed_as("relational")
        return build, preparations

    @validated(
        outputs=args.names,
        rows=args.names,
        dtype=args.choice(*WIDTHS),
        database=args.database,
    )
    def to_onnx(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        outputs: str | Sequence[str] | None = None,
        rows: str | Sequence[str] = (),
        weights: Any = None,
        dtype: str | None = None,
        database: Database = None,
    ) -> Any:
        """Return the program as an ONNX model for other runtimes; with a path, also write it.

        Some inputs become weights, which are constants of the model: inputs that are a
        `ucle.parameter`, inputs that `minimize` trains, inputs named by ``weights=``, and, with
        ``rows=``, all inputs that do not have the label of the rows. The other inputs are inputs of
        the model. An axis of theirs can have any size in the model (it is *open*, and its label is
        its name) unless a weight has this axis, too, ``bounds=`` states its size, or a tensor is
        read along it at an index such as ``i+1``. All other axes have the sizes of the program.
        Sparse inputs and tables become dense. The model uses opset 18 and the element types of the
        program.

        Runtimes do not check the positions at which tensors are read, and they count negative
        positions from the end. ONNX keeps the sign of a zero, so 1 / -0.0 is minus infinity there.

        Args:
            path: the file to write, if any.
            outputs: names of tensors of the program; by default, its outputs.
            rows: the labels of the rows to which the model is applied.
            weights: the names of inputs; or a mapping from names to values, such as ``run.state``
                or the result of `iterate`. Its names are those of inputs, or of the outputs that
                replace them.
            dtype: ``"float32"`` to compute in float32 instead of float64, as many runtimes prefer.
            database: the database with the tables; by default, the one for which the program was
                compiled.

        Returns:
            An `onnx.ModelProto` that passes the checker of the package ``onnx``.

        Raises:
            UnsupportedError: ONNX has no operators for some statements (the error lists all of
                them, with reasons), or a weight would be too large.
            ArgumentError: the program has no such rows or weights.
            NameResolutionError: there is no such output or input.
            MissingPackageError: ``onnx`` is not installed.

        >>> import ucle
        >>> program = ucle.einsum_program(
        ...     "p[i] = sigmoid(x[i,j] * w[j])", x=[[1.0, 2.0]], w=[0.5, -0.5]
        ... )
        >>> model = program.to_onnx(rows="i")
        >>> [node.op_type for node in model.graph.node]
        ['MatMul', 'Sigmoid']
        """
        where = self._build.target.database if database is None else database
        names = None if outputs is None else names_of(outputs, "to_onnx, outputs")
        labels = names_of(rows, "to_onnx, rows")
        return export.to_onnx(self._build, where, path, names, labels, weights, dtype)

    def _decomposed_as(self, decomposition: GivenDecomposition) -> tuple[Build, Preparations]:
        """The program with another decomposition, and the preparations that it begins with."""
        options = with_fields(self.options, decomposition=decomposition)
        compiled = plan_decomposition(self.compiled, options)
        target = self._build.target.running(compiled)
        build = with_fields(self._build, options=options, compiled=compiled, target=target)
        # Stored inputs may be needed in other layouts.
        fitting = {} if options.store else self._preparations.fitting
        return build, Preparations(compiled, options, fitting)

    def _session(self, database: Database) -> Session:
        return open_checked(self._build.target.database if database is None else database)

    def __str__(self) -> str:
        """The program in upper-case-lower-case form: labels in upper case are promoted."""
        return str(self.compiled.decomposed)
