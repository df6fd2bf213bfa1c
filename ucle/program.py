"""The public interface of a compiled program."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, cast

from ucle.compile.build import Build, build, build_text, vary_inputs
from ucle.compile.prepared import Preparations
from ucle.cost.prices import Profile
from ucle.database.change_detection import Quiet
from ucle.database.engine import DUCKDB
from ucle.database.macro_check import open_checked
from ucle.database.session import Database, Session
from ucle.errors import ArgumentError, ArgumentTypeError, UnsupportedError
from ucle.explain.drawing import dot, svg
from ucle.explain.html import explain_html
from ucle.explain.json import explain_document, json_text
from ucle.explain.model import explain
from ucle.explain.text import explain_head, explain_sections, explain_text
from ucle.foundation import arguments as args
from ucle.foundation.arguments import door
from ucle.foundation.fork_safety import import_late
from ucle.foundation.logs import COMPILE
from ucle.gradients.build_gradient import build_gradient
from ucle.gradients.build_training import build_training
from ucle.inputs.fingerprints import fingerprints
from ucle.inputs.new_data import check_names, takes_numbers, with_numbers
from ucle.inputs.staleness import Drift
from ucle.language.syntax import Statement
from ucle.loops.iterate import Iteration, Loop, iterate
from ucle.loops.prepared_program import PreparedProgram
from ucle.optim.descent import Optimiser
from ucle.optimiser.profiles import find_profile
from ucle.options import ENGINES, ContractionPath, GivenDecomposition, Options, names_of
from ucle.pipeline.replan import cheapest_decompositions, plan_decomposition
from ucle.plan.decomposition import VertexCost
from ucle.plan.forms import MAX_ROWS, ROWS
from ucle.plan.relation_nodes import Load
from ucle.plan.resources import Resources
from ucle.plan.steps import Role
from ucle.progress.bar import progress_bar
from ucle.progress.execution import Watch
from ucle.run.array_tables import array_table
from ucle.run.execute import memory_tables
from ucle.run.results import Result
from ucle.run.views import Keys, build_output_queries, create_views, macro_statements, view_queries
from ucle.sqlgen import emit, render_script
from ucle.sqlgen.capabilities import Capabilities
from ucle.sqlgen.dialects import DIALECTS, DUCKDB_SQL, Dialect
from ucle.sqlgen.other_dialects import PASSES as OTHER_PASSES
from ucle.sqlgen.other_dialects import build_capabilities, check_plan, render_script_in

FORMATS = ("text", "json", "html", "dot", "svg")
"""Formats of `EinsumProgram.explain`."""

_KEYS = args.either(
    (Mapping, args.mapping(args.text, args.labels, "a dict from output to labels")),
    otherwise=args.labels,
)


def _statements(value: Any, where: str) -> None:
    """Check that a value is a tuple of parsed statements."""
    if not isinstance(value, tuple) or not all(isinstance(x, Statement) for x in value):
        raise ArgumentTypeError(
            "this is not a program",
            where=where,
            expected="its text, or what ucle.language.parse.parse_program makes of it",
            found=repr(value)[:80],
        )


def _optimiser(value: Any, where: str) -> None:
    if not isinstance(value, Optimiser):
        raise ArgumentTypeError(
            "this is no optimiser",
            where=where,
            expected="ucle.optim.sgd(...), adam(...) or adamw(...)",
            found=repr(value)[:80],
        )


class EinsumProgram:
    """A compiled program: inspect it with `to_sql` and `explain`, run it with `execute`.

    Returned by `ucle.einsum_program`. It is immutable and may run in several threads at once, each
    on a connection (or cursor) of its own.
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
        self._varied: dict[frozenset[str], EinsumProgram] = {}
        self._followed: EinsumProgram | None = None

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

        >>> program = einsum_program("y[i] += A[i,j] * x[j]", A=[[1, 2], [3, 4]], x=[1, 1])
        >>> program.with_decomposition({"y": {"i"}}).decomposition["y"]
        frozenset({'i'})
        """
        return MappingProxyType(dict(self.compiled.decomposed.promoted))

    @door()
    def with_decomposition(self, decomposition: GivenDecomposition) -> EinsumProgram:
        """Return the program under another decomposition; inputs are not read again.

        Args:
            decomposition: as in `einsum_program`.
        """
        options = replace(self.options, decomposition=decomposition)
        compiled = plan_decomposition(self.compiled, options)
        target = self._build.target.running(compiled)
        build = replace(self._build, options=options, compiled=compiled, target=target)
        # Stored inputs may be needed in other layouts.
        fitting = {} if options.store else self._preparations.fitting
        return EinsumProgram(build, Preparations(compiled, options, fitting))

    @door(database=args.database)
    def recompile(self, database: Database = None) -> EinsumProgram:
        """Compile the program again, with the same options, for the current contents of its inputs.

        Its operators are those that it was compiled with, even if others were registered since.

        Bounds and statistics are taken again, and the decomposition is chosen again unless it was
        given. The decomposition of a plan from `plans` counts as given.

        Args:
            database: where tables are; by default the database that it was compiled for.

        Raises:
            UcleError: as `einsum_program`.
        """
        where = self._build.target.database if database is None else database
        return _compile_program(lambda: build(self._build.request, where, self.options))

    @door(loss=args.text, wrt=args.names, stored=args.names, database=args.database)
    def gradient(
        self,
        loss: str,
        wrt: Sequence[str],
        *,
        stored: Sequence[str] = (),
        database: Database = None,
    ) -> EinsumProgram:
        """Return the program that also computes the gradient of one of its tensors.

        Its outputs are the loss and, for each tensor in `wrt`, a gradient of the same shape and
        type: that of ``W`` is called ``d_W``. It is compiled like any other program, with the
        options of this one, and may be differentiated again.

        Where several entries are the minimum or maximum, the gradient is divided evenly among them,
        as in JAX.

        Args:
            loss: a tensor without axes.
            wrt: the inputs or tensors with respect to which it is taken.
            stored: those of them whose gradient is wanted at stored entries only, and is 0
                elsewhere: for a sparse matrix it would be dense.
            database: where tables are; by default the database that it was compiled for.

        Raises:
            NameResolutionError: there is no such tensor.
            LabelError: the loss has axes.
            UnsupportedError: an operator has no derivative, or numbers are not real.

        >>> program = einsum_program("loss = sum[i](square(x[i]))", x=[1.0, 2.0])
        >>> program.gradient("loss", ["x"]).execute()["d_x"].to_numpy()
        array([2., 4.])
        """
        where = self._build.target.database if database is None else database
        return _compile_program(
            lambda: build_gradient(self._build, where, loss, tuple(wrt), tuple(stored))
        )

    @door(
        loss=args.text,
        wrt=args.names,
        optimiser=_optimiser,
        outputs=args.names,
        database=args.database,
    )
    def minimize(
        self,
        loss: str,
        wrt: str | Sequence[str],
        optimiser: Optimiser,
        *,
        outputs: str | Sequence[str] = (),
        database: Database = None,
    ) -> EinsumProgram:
        """Return the program of one training step, which changes inputs to reduce a loss.

        Its outputs are the loss before the step, the tensors requested by ``outputs=``, each of
        these inputs after the step (that of ``W`` is called ``W_next``, with the labels of ``W``),
        and the state that the optimiser keeps from step to step. States are new inputs that begin
        at 0: running means such as ``m_W`` and ``v_W``, and the number of the step, ``step``.
        `carry` says which output replaces which input.

        Arrays that change are treated like those of `ucle.parameter`.

        Args:
            loss: a tensor without axes.
            wrt: the inputs that change.
            optimiser: how: ``ucle.optim.sgd``, ``adam`` or ``adamw``.
            outputs: more tensors of the program that each step returns, as they are before it:
                predictions, or the loss on held-out data.
            database: where tables are; by default the database that it was compiled for.

        Raises:
            NameResolutionError: there is no such tensor or input.
            LabelError: the loss has axes.
            UnsupportedError: an operator has no derivative, or numbers are not real.

        >>> import ucle
        >>> program = einsum_program("loss = sum[i](square(x[i]))", x=[1.0, 2.0])
        >>> step = program.minimize("loss", "x", ucle.optim.sgd(0.25))
        >>> step.execute()["x_next"].to_numpy(), dict(step.carry)
        (array([0.5, 1. ]), {'x': 'x_next'})
        """
        where = self._build.target.database if database is None else database
        names = names_of(wrt, "minimize, wrt")
        shown = names_of(outputs, "minimize, outputs")
        return _compile_program(
            lambda: build_training(self._build, where, loss, names, optimiser, shown)
        )

    @property
    def carry(self) -> Mapping[str, str]:
        """The inputs that an output replaces in the next step; empty except after `minimize`."""
        return MappingProxyType(dict(self._build.request.carry))

    @door(database=args.database)
    def drift(self, database: Database = None) -> tuple[Drift, ...]:
        """Return the inputs with over ten times more or fewer entries than at compile time.

        Another plan may be faster by now, which `recompile` finds. `execute` warns of them.

        Args:
            database: where it is to run, as for `execute`.

        Raises:
            UcleError: tables do not pass the checks of `execute`.
        """
        with contextlib.closing(self._session(database)) as session:
            return self._preparations.on(session).drifted

    @door(k=args.count(1))
    def plans(self, k: int = 10) -> list[EinsumProgram]:
        """Return the `k` cheapest plans, from the cheapest on, as programs that can be executed.

        Decompositions that the program pins for some of its tensors stay. The plans are the
        cheapest of the whole DAG, whatever `search` the program was compiled with. `costs` has the
        estimated cost of each vertex of a plan.

        Args:
            k: their number; fewer where the program has fewer decompositions.

        >>> program = einsum_program("y[i] += A[i,j] * x[j]", A=[[1, 2], [3, 4]], x=[1, 1])
        >>> for plan in program.plans(2):
        ...     print(plan)
        y[i] += A[i,j] * x[j]
        y[I] += A[I,j] * x[j]
        """
        return [
            self.with_decomposition(plan.promoted)
            for plan in cheapest_decompositions(self.compiled, k, self.options)
        ]

    @door(
        keys=_KEYS,
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
        temporary table for each output, and for what several statements read. Repartitions and
        EinSums are common table expressions of these. Its header names the inputs from memory that
        are not written out; `register` makes them available to the script.

        Outputs are shown in their stored layout unless a form is requested by the arguments: then
        each has the columns and rows that `TensorRelation.to_table` writes.

        Programs in which every label is promoted (``decomposition="relational"``) are plain SQL,
        and have scripts for other engines, too: for Spark 4 and PostgreSQL 13. They
        read tables by the last part of their names, with the columns that they have in DuckDB, and
        show a row for each entry that is stored. Numbers are the same except for the order in which
        floats are added. PostgreSQL raises an error instead of returning a number where a float64
        overflows or underflows to 0. On Spark, powers of integers are limited to 2^53.

        Args:
            keys: labels that are to have a column, by default all; a dict by name of the output
                where there are several.
            rows: which rows outputs show, as in `TensorRelation.to_table`.
            max_rows: the most rows of ``rows="all"``.
            dialect: ``"duckdb"``, ``"spark"`` or ``"postgres"``.

        Raises:
            ArgumentError: an output would have too many rows, or there is no such label.
            UnsupportedError: the program calls kernels, or has a type or an operator that the
                dialect lacks.
        """
        if DIALECTS[dialect].statements is not None:
            return self._to_other_sql(DIALECTS[dialect], keys, rows)
        capabilities = self._build.target.capabilities
        steps, outputs = emit(self.compiled.physical, capabilities)
        if keys is not None or rows is not None:
            outputs = build_output_queries(self.compiled, capabilities, keys, rows, max_rows)
        return render_script(self._header(), steps, outputs)

    def _to_other_sql(self, dialect: Dialect, keys: Keys, rows: str | None) -> str:
        """The script in a dialect of another engine."""
        if not self.compiled.decomposed.relational:
            raise UnsupportedError(
                f"a script for {dialect.name} can call no kernels",
                where=f"to_sql(dialect={dialect.name!r})",
                expected="a program in which every label is promoted",
                found=f"the decomposition {self}".replace("\n", "; "),
                hint='compile it with decomposition="relational"; functions of matrices have '
                "kernels and nothing else",
            )
        if keys is not None or rows is not None:
            raise ArgumentError(
                "keys= and rows= are for DuckDB",
                where=f"to_sql(dialect={dialect.name!r})",
                expected="neither of the two",
                found="keys=" if keys is not None else "rows=",
            )
        plan = self.compiled.after(OTHER_PASSES)
        check_plan(plan, dialect)
        steps, outputs = emit(plan, build_capabilities(dialect))
        header = ["ucle program:"]
        header += [f"  {vertex}" for vertex in self.compiled.program.vertices]
        header.append(f"Dialect: {dialect.name}. Tables are read by the names that stand here.")
        loads = [s for s in plan.steps if s.role is Role.INPUT]
        described = [f"  {s.name}: {s.comment}" for s in loads]
        described += [f"  {name}: table in memory" for name in memory_tables(self.compiled.inputs)]
        if described:
            header += ["Inputs from memory, to be tables of these names:", *described]
        return render_script_in(dialect, header, steps, outputs)

    @door(format=args.choice(*FORMATS), analyze=args.flag, database=args.database)
    def explain(
        self,
        format: str = "text",  # noqa: A002  # as Polars and Graphviz call it
        *,
        analyze: bool = False,
        database: Database = None,
    ) -> str:
        """Explain the plan: decomposition, statistics, costs, the runner-up and the steps.

        Args:
            format: ``"text"``, ``"json"`` for other programs, ``"html"``, or the DAG alone as
                ``"dot"`` for Graphviz or ``"svg"`` (which needs python-igraph, as in
                ``pip install 'ucle[draw]'``).
            analyze: whether to run the program, each step by itself, and to add what steps took and
                how many tuples they made. Estimates that are off by more than 10 times are marked.
            database: where it runs, as for `execute`.

        Raises:
            InputError: there is no such format.
            MissingPackageError: python-igraph is needed and not installed.
        """
        compiled, measured = self.compiled, None
        if analyze:
            with contextlib.closing(self._session(database)) as session:
                current = self._current(database)
                compiled, measured = current._preparations.fresh(session).measure(session)
        explanation = explain(compiled, self.options)
        if format in ("dot", "svg"):
            return (dot if format == "dot" else svg)(explanation)
        capabilities = self._build.target.capabilities
        profile = self.options.profile.name
        if format == "json":
            route, reason = capabilities.name, self._build.target.reason
            document = explain_document(compiled, explanation, profile, route, reason, measured)
            return json_text(document)
        head = explain_head(compiled, profile, capabilities.name, self._build.target.reason)
        sections = explain_sections(compiled, explanation, measured)
        if format == "text":
            return explain_text(head, sections)
        return explain_html(explanation, head, sections, self.to_sql())

    def _repr_html_(self) -> str:
        """The HTML that a notebook shows."""
        return self.explain("html")

    @door(connection=args.connection)
    def register(self, connection: Any) -> None:
        """Register the inputs from memory on a connection, for a script that is run by hand."""
        for name, data in memory_tables(self.compiled.inputs).items():
            DUCKDB.register(connection, name, data)
        for step in self.compiled.physical.steps:
            if isinstance(load := step.relation, Load):
                array = self.compiled.inputs[load.source.tensor].data
                table = array_table(array, load.type, load.layout)
                DUCKDB.register(connection, step.name, table)

    @door(
        database=args.database,
        schema=args.word,
        replace=args.flag,
        room=args.sizes,
        keys=_KEYS,
        rows=args.choice(*ROWS),
        max_rows=args.count(),
    )
    def create_views(
        self,
        database: Database = None,
        *,
        schema: str | None = None,
        replace: bool = False,
        room: Mapping[str, int] | None = None,
        keys: Keys = None,
        rows: str | None = None,
        max_rows: int = MAX_ROWS,
    ) -> tuple[str, ...]:
        """Create a view for each output, for clients that query the database without this program.

        The views compute their answers from the contents of the tables at query time. They use the
        decomposition of the program, but products of integers in the written order: in another they
        might overflow. Where sizes are written into a view (lengths of arrays, the divisor of a
        mean), it raises as soon as they have changed, before it returns a row. Unless every label
        is promoted, views call kernels, which a connection from `ucle.connect` has.

        Args:
            database: where they are created, as for `execute`.
            schema: the name of a schema that exists; by default the current one.
            replace: whether views of the same names may be replaced.
            room: larger sizes for arrays by label, if more coordinates are expected. Results are
                the same; `bounds` of `einsum_program` would change means.
            keys: labels that are to have a column, by default all, as of
                `TensorRelation.to_table`; a dict by name of the output where there are several.
            rows: which rows the views show, as in `TensorRelation.to_table`.
            max_rows: the most rows of ``rows="all"``.

        Returns:
            The names of the views, as SQL writes them.

        Raises:
            UnsupportedError: an input lies in memory, or the connection loads no extension.
            ArgumentError: a view would have too many rows.
            DatabaseError: a view cannot be created. None is left of the others.
        """
        with contextlib.closing(self._session(database)) as session:
            prepared = self._preparations.fresh(session)
            return create_views(
                session,
                prepared.for_views(),
                self.options,
                session.capabilities,
                schema,
                replace_views=replace,
                room=room,
                keys=keys,
                rows=rows,
                max_rows=max_rows,
            )

    @door(database=args.database)
    def macro_sql(
        self,
        database: Database = None,
        *,
        room: Mapping[str, int] | None = None,
        keys: Keys = None,
        rows: str | None = None,
        max_rows: int = MAX_ROWS,
    ) -> str:
        """Return statements that create a table macro per output: a view with table parameters.

        A macro has a parameter ``NAME_table`` for each table that the program reads, with its name
        as the default, so that ``FROM total()`` reads this table, and ``FROM total(sales_table :=
        'archive.sales')`` reads another one with columns of the same names. The remarks on
        `create_views` also hold for macros, including sizes and kernels.

        Args:
            database: where the tables are, as for `execute`.
            room: sizes for arrays by label, where others may have more coordinates.
            keys: labels that are to have a column, as in `create_views`.
            rows: which rows the macros show, as in `TensorRelation.to_table`.
            max_rows: the most rows of ``rows="all"``.

        Raises:
            UnsupportedError: an input lies in memory, or the connection loads no extension.
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
        with contextlib.closing(self._session(database)) as session:
            prepared = self._preparations.fresh(session)
            queries = view_queries(
                session,
                prepared.for_views(),
                self.options,
                session.capabilities,
                room=room,
                keys=keys,
                rows=rows,
                max_rows=max_rows,
            )
        return "".join(f"{each};\n" for each in macro_statements(queries).values())

    @door(
        database=args.database, progress=args.function, inputs=args.inputs, tensors=args.tensor_data
    )
    def execute(
        self,
        database: Database = None,
        *,
        progress: Watch | None = None,
        inputs: Mapping[str, Any] | None = None,
        **tensors: Any,
    ) -> Result:
        """Run the program.

        Other data may replace inputs. An array that replaces an array of the same shape causes no
        new compilation, except the first time for an array that is not a `ucle.parameter`; for
        anything else the program is compiled again. Arrays, sparse arrays and frames that were
        changed in place since the program was compiled count as other data, too: each of them is
        read once to detect this, unless it is read-only (``array.setflags(write=False)``).

        Args:
            database: a path or an open connection; by default the database that the program was
                compiled for. The database itself is not changed.
            inputs: other data by the names of inputs.
            tensors: the same, for names that can be keywords.
            progress: a function that receives the progress, as a `ucle.progress.Progress`:
                at the start and the end of each step, and ten times a second in between. It is
                called in the thread that called `execute`; an exception that it raises ends the
                execution.

        Returns:
            The outputs by name.

        Warns:
            StaleStatisticsWarning: tables have changed so much that another plan may be faster.

        Raises:
            ExecutionError: DuckDB refused a statement. No temporary object is left behind.
            DatabaseError: the database cannot be opened.
            UcleError: its tables differ from those that the program was compiled for, and do not
                pass the checks.
        """
        given = _together(inputs, tensors)
        new = self._find_changed_inputs(given) | given
        if new:
            return self._with_data(new, database)._execute(database, progress, new)
        return self._execute(database, progress, new)

    def _find_changed_inputs(self, besides: Collection[str] = ()) -> dict[str, Any]:
        """The inputs that were changed in place since the program was compiled."""
        marks = {x: mark for x, mark in self._build.marks.items() if x not in besides}
        given = {name: self._build.request.inputs[name] for name in marks}
        now = fingerprints(given)
        return {name: value for name, value in given.items() if now.get(name) != marks[name]}

    def _current(self, database: Database) -> EinsumProgram:
        """The program for the current data of its inputs, for runs that cannot follow changes."""
        return self._with_inputs({}, database) if self._find_changed_inputs() else self

    def _with_data(self, new: Mapping[str, Any], database: Database) -> EinsumProgram:
        """The program with the replaced inputs made replaceable, or compiled for the new data."""
        known = self.compiled.all_inputs
        check_names(known, new, "execute")
        arrays = {x for x, value in new.items() if takes_numbers(known[x], value, may_vary=True)}
        if arrays != set(new):
            return self._with_inputs(new, database)
        where = self._build.target.database if database is None else database
        names = frozenset(new)
        if names not in self._varied:
            made = vary_inputs(self._build, where, names)
            self._varied[names] = self if made is self._build else EinsumProgram(made)
        return self._varied[names]

    def _with_inputs(self, new: Mapping[str, Any], database: Database) -> EinsumProgram:
        """Compile the program for other inputs; the last one is kept as long as it fits them."""
        where = self._build.target.database if database is None else database
        inputs = {**self._build.request.inputs, **new}
        kept = self._followed
        if kept is None or not kept._is_of(inputs, where):
            request = replace(self._build.request, inputs=inputs)
            kept = _compile_program(lambda: build(request, where, self.options))
            self._followed = kept
        return kept

    def _is_of(self, inputs: Mapping[str, Any], database: Database) -> bool:
        """True if these are its inputs, with the contents that it was compiled for."""
        mine = self._build.request.inputs
        same = all(mine[name] is value for name, value in inputs.items())
        return same and self._build.target.database is database and not self._find_changed_inputs()

    def _execute(
        self, database: Database, progress: Watch | None, new: Mapping[str, Any]
    ) -> Result:
        session = self._session(database)
        try:
            quiet = Quiet.begin(session) if self._preparations.reads_tables else None
            prepared = self._preparations.fresh(session, quiet)
            known = prepared.compiled.inputs
            numbers = {x: new[x] for x in new if x in known and takes_numbers(known[x], new[x])}
            data = with_numbers(known, numbers) if numbers else None
            result = prepared.run(session, progress, data)
            if quiet is not None:
                quiet.end()
            return result
        except BaseException:
            session.close()
            raise

    @door(
        database=args.database,
        carry=args.mapping(args.text, args.text, "a dict from input to output"),
        swap=args.names,
    )
    def prepare(
        self,
        database: Database = None,
        *,
        carry: Mapping[str, str] | None = None,
        swap: Sequence[str] = (),
    ) -> PreparedProgram:
        """Prepare the program for many runs on one connection, without repeated overhead.

        Data is checked once, and values that depend on no changing input are computed once. The
        data is expected to stay the same, except for the inputs that are named here or passed to a
        run.

        Args:
            database: where it runs, as for `execute`.
            carry: inputs, and the tensors that replace them in the next run, by default those
                of `minimize`; their tables stay in the database. Whatever their first data is, they
                are planned as inputs that vary.
            swap: inputs that are checked before each run: tables that may hold other rows, arrays
                that are changed in place.

        Returns:
            A function that runs the program and takes other arrays for inputs by keyword; use it
            as a context manager.

        Raises:
            NameResolutionError: there is no such input or output.
            LabelError: an output does not fit the input that it replaces.
            UcleError: as `execute`.

        >>> A = [[0.0, 2.0], [1.0, 0.0]]
        >>> program = einsum_program("y[i] += A[i,j] * x[j]", A=A, x=[1.0, 0.0])
        >>> with program.prepare(carry={"x": "y"}) as run:
        ...     for _ in range(3):
        ...         print(run()["y"].to_numpy())
        [0. 1.]
        [2. 0.]
        [0. 2.]
        """
        session = self._session(database)
        try:
            current = self._current(database)._build
            return PreparedProgram(current, session, self._choose_carry(carry), tuple(swap))
        except BaseException:
            session.close()
            raise

    @door(
        database=args.database,
        carry=args.mapping(args.text, args.text, "a dict from input to output"),
        until=args.text,
        max_steps=args.count(1),
        swap=args.names,
        progress=args.function,
        checkpoint=args.mapping(args.text, args.text, "a dict from tensor to table"),
        every=args.count(1),
    )
    def iterate(
        self,
        carry: Mapping[str, str] | None = None,
        until: str | None = None,
        *,
        max_steps: int | None = None,
        database: Database = None,
        swap: Sequence[str] = (),
        progress: Watch | None = None,
        checkpoint: Mapping[str, str] | None = None,
        every: int = 10,
    ) -> Iteration:
        """Run the program repeatedly, each time on the results of the previous run.

        The statements of a step are those of a prepared program: constant parts are computed once,
        and the text does not grow with the steps. At a terminal a progress bar appears after the
        loop has run for a second; Ctrl-C ends the loop after the last whole step.

        Args:
            carry: inputs, and the tensors that replace them in the next step; by default those
                of `minimize`.
            until: a condition in the language, without labels: after the first step for which it
                holds the loop ends. It may name any tensor of the program.
            max_steps: the most steps; with a condition, 1000 by default.
            database: where it runs, as for `execute`.
            swap: inputs that are checked before each step, as for `prepare`.
            progress: a function that receives the progress of the loop after each step, and the
                numbers of its history, instead of the bar. An exception that it raises ends the
                loop.
            checkpoint: tables for tensors that are carried, or for outputs, written at every
                checkpoint and after the last step, all of them or none.
            every: the number of steps between two checkpoints.

        Returns:
            The outputs of the last step, with ``steps``, ``converged`` and ``history``: the numbers
            of each step by name, outputs without axes and the compared value.

        Warns:
            NotConvergedWarning: the condition does not hold after `max_steps`.

        Raises:
            UcleError: as `prepare` and `execute`; `until` is not a condition. Tables are as the
                last checkpoint left them.

        >>> program = einsum_program(
        ...     "y[i] += A[i,j] * x[j]; delta[] = max[i](abs(y[i] - x[i]))",
        ...     A=[[0.5, 0.25], [0.5, 0.75]],
        ...     x=[1.0, 0.0],
        ... )
        >>> found = program.iterate({"x": "y"}, until="delta[] < 1e-9")
        >>> found["y"].to_numpy().round(6), found.steps, found.history["delta"][:2]
        (array([0.333333, 0.666667]), 16, array([0.5  , 0.125]))
        """
        session = self._session(database)
        carried = self._choose_carry(carry)
        loop = Loop(carried, until, max_steps, tuple(swap), progress, checkpoint or {}, every)
        try:
            with progress_bar() if progress is None else contextlib.nullcontext(progress) as watch:
                current = self._current(database)._build
                return iterate(current, session, replace(loop, progress=watch))
        except BaseException:
            session.close()
            raise

    def _choose_carry(self, carry: Mapping[str, str] | None) -> Mapping[str, str]:
        return self.carry if carry is None else carry

    def _session(self, database: Database) -> Session:
        return open_checked(self._build.target.database if database is None else database)

    def _header(self) -> list[str]:
        lines = ["ucle program:"]
        lines += [f"  {vertex}" for vertex in self.compiled.program.vertices]
        lines.append(
            f"Route: {self._build.target.capabilities.name} ({self._build.target.reason})."
        )
        lines += _how_to_load(self._build.target.capabilities)
        if self.compiled.optimistic:
            lines.append("If integers overflow, execute() takes the order of the text instead.")
        loads = [s for s in self.compiled.physical.steps if s.role is Role.INPUT]
        described = [f"  {s.name}: {s.comment}" for s in loads]
        described += [f"  {name}: table in memory" for name in memory_tables(self.compiled.inputs)]
        if described:
            lines += ["Inputs from memory, put in place by program.register(connection):"]
            lines += described
        return lines

    def __str__(self) -> str:
        """The program in upper-case-lower-case form: labels in upper case are promoted."""
        return str(self.compiled.decomposed)

    def __repr__(self) -> str:
        return f"<EinsumProgram of {', '.join(self.outputs)}, route {self.route}>"


def _together(inputs: Mapping[str, Any] | None, tensors: Mapping[str, Any]) -> dict[str, Any]:
    """Merge inputs that are passed by name and as keywords.

    Raises:
        ArgumentError: one is passed in both ways.
    """
    twice = [name for name in tensors if name in (inputs or {})]
    if twice:
        raise ArgumentError(
            "an input is passed twice",
            where=f"input {twice[0]}",
            expected="a keyword, or an entry of inputs",
            found="both",
        )
    return {**(inputs or {}), **tensors}


def _how_to_load(capabilities: Capabilities) -> list[str]:
    """Lines that say how to load the kernels that a script calls."""
    if not capabilities.kernels:
        return []
    here = "Run it on a connection from ucle.connect(), which loads the kernels"
    if not capabilities.native_aggregates:
        return [f"{here}."]
    return [
        f"{here}; or in any client of DuckDB",
        "after LOAD 'ucle.duckdb_extension', which `make extension` builds (docs/extension.md).",
    ]


@door(
    text=args.either((str, args.text), otherwise=_statements),
    operands=args.tensor_data,
    database=args.database_or_spark,
    inputs=args.inputs,
    outputs=args.names,
    profile=args.either((Profile, args.anything), otherwise=args.text),
    store=args.either((bool, args.anything), otherwise=args.names),
    engine=args.choice(*ENGINES),
    tensors=args.tensor_data,
)
def einsum_program(
    text: str | tuple[Statement, ...],
    /,
    *operands: Any,
    database: Database = None,
    inputs: Mapping[str, Any] | None = None,
    outputs: Sequence[str] | None = None,
    bounds: Mapping[str, int] | None = None,
    decomposition: GivenDecomposition = "auto",
    memory_limit: str | int | None = None,
    profile: str | Profile | None = None,
    path: ContractionPath | None = None,
    nonfinite: str = "exact",
    search: str = "dag",
    store: bool | str | Iterable[str] = False,
    statistics: str = "auto",
    association: str = "free",
    rewrite: str = "safe",
    engine: str = "auto",
    **tensors: Any,
) -> EinsumProgram:
    """Compile an EinSum program.

    Args:
        text: statements such as ``T[i,k] += X[i,j] * Y[j,k]``; or, with positional operands, a
            NumPy einsum string such as ``ij,jk->ik``, whose result is called ``out``; or statements
            that are parsed already.
        operands: inputs of a NumPy einsum string, in order.
        database: where tables are: a path, ``":memory:"``, an open DuckDB connection, or a session
            of Spark: then the program is a `ucle.spark.SparkProgram`.
        inputs: inputs by tensor name, for names that cannot be keywords.
        outputs: the tensors wanted; by default those that no statement uses.
        bounds: sizes by label, where the data does not determine them.
        decomposition: ``"auto"`` lets SparseEinSum choose; ``"relational"`` promotes every label,
            which gives plain SQL; ``"as-written"`` promotes the labels that the text writes in
            upper case; a dict gives promoted labels by tensor name.
        memory_limit: bytes, or a size such as ``"2GB"``; DuckDB's own limit by default.
        profile: the cost profile: ``"duckdb"``, ``"paper"``, ``"machine"`` for what
            `ucle calibrate` has measured, or a `ucle.cost.Profile`. By default the machine's, where
            there is one, and else ``"duckdb"``.
        path: the order in which a product of several factors is joined, as opt_einsum writes it:
            positions of factors in the order of the text, whose result goes to the end; a dict by
            tensor name where there are several statements. By default `association` decides.
        nonfinite: ``"exact"`` gives NumPy's answer where inputs hold NaN or infinities;
            ``"sparse"`` lets an entry that is not stored annihilate them, which is what sparse
            libraries do and needs no dense tensors.
        search: ``"dag"`` looks for the cheapest decomposition of the whole program; ``"trees"`` and
            ``"greedy"`` are the paper's ways with DAGs, for comparison.
        store: inputs (True for all, or their names) that are converted once to the layouts in
            which the program reads them, and kept as tables in the schema ``ucle`` of their
            database. This program and later ones, of other processes, too, read them for as long as
            the data is the same.
        statistics: ``"auto"`` counts what tables of up to 100,000 entries hold and estimates the
            distinct coordinates of larger ones. From half a million entries on, the results are
            stored in the schema ``ucle`` of the database, for other processes, if it is a file that
            is open for writing.
            ``"transient"`` stores nothing, ``"exact"`` counts everything.
        association: ``"free"`` joins the factors of a product in the order whose cheapest
            decomposition is cheapest, across statements, too: where T is used by one product
            alone, and no option names it, ``T[i,k] += A[i,j] * B[j,k]; Z[i,l] += T[i,k] *
            C[k,l]`` may become A (B C). ``"as-written"`` computes every statement as the text
            says, and products of several factors from left to right, apart from brackets.
        rewrite: which sums of products may be computed in the place of the written ones, where that
            costs less. ``"safe"`` takes factors out and multiplies brackets out where that loses no
            digits: ``(U V' - X) V`` becomes ``U (V' V) - X V``. ``"algebraic"`` multiplies all
            brackets out, also those whose terms cancel, such as ``(X - U V')^2``. ``"none"``
            computes sums of products as they are written; so does ``association="as-written"``.
        engine: where a program over tables of Spark runs: ``"auto"`` takes one DuckDB where
            that is faster by estimate, ``"spark"`` and ``"duckdb"`` insist.
        tensors: inputs by tensor name: the name of a table or view, the path of a file,
            ``ucle.table(...)``, a NumPy array, a scipy.sparse matrix, or a COO table of Arrow,
            pandas or polars.

    Returns:
        The compiled program.

    Raises:
        UcleError: see `ucle.errors`; errors in text, inputs or database are found here.

    >>> program = einsum_program("y[i] += A[i,j] * x[j]", A=[[1, 2], [3, 4]], x=[1, 1])
    >>> program.execute()["y"].to_numpy()
    array([3, 7])
    """
    options = Options(
        find_profile(profile, DUCKDB.profile),
        Resources(),
        decomposition,
        bounds,
        None if outputs is None else names_of(outputs, "outputs"),
        path,
        nonfinite,
        search,
        store if isinstance(store, bool) else frozenset(names_of(store, "store")),
        statistics,
        association,
        rewrite,
    )
    named = {**(inputs or {}), **tensors}
    if args.is_spark(database):
        make = import_late("ucle.spark").spark_program  # import for Spark users only
        spark = make(text, operands, named, database, options, memory_limit, engine)
        return cast(EinsumProgram, spark)
    return _compile_program(
        lambda: build_text(text, operands, named, database, options, memory_limit)
    )


def _compile_program(make: Callable[[], Build]) -> EinsumProgram:
    """Compile a program now, and log it."""
    started = time.perf_counter()
    program = EinsumProgram(make())
    if COMPILE.isEnabledFor(logging.INFO):
        seconds = time.perf_counter() - started
        head = f"compiled in {seconds:.3f} s, cost {program.cost:.3g}, route {program.route}"
        COMPILE.info("\n  ".join([head, *str(program).splitlines()]))
    return program


__all__ = ["EinsumProgram", "einsum_program"]
