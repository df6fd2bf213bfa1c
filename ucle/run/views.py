"""Views and macros of a program's outputs, for users who query a database without ucle.

Each view is self-contained: the steps of the program are its common table expressions, and it needs
only the tables that the program reads. It shows their current content on each query. A macro is the
same over tables whose names its caller passes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from types import MappingProxyType

from ucle.database.data_versions import in_transaction
from ucle.database.engine_errors import EngineError, error_text
from ucle.database.session import Session
from ucle.database.statistics_cache import are_unique
from ucle.database.table_names import find_relation, is_taken
from ucle.errors import (
    ArgumentError,
    DatabaseError,
    NameResolutionError,
    ReadOnlyError,
    UnsupportedError,
    did_you_mean,
)
from ucle.foundation.dataclasses import dataclass
from ucle.inputs.inputs import parse_table_name
from ucle.options import Options
from ucle.pipeline.artifacts import Compiled
from ucle.pipeline.replan import read_from
from ucle.pipeline.resize import for_later_rows
from ucle.plan.forms import MAX_ROWS, WrittenForm, form_of
from ucle.plan.passes import LASTING, Pass
from ucle.plan.relation_nodes import Load, Read, TableScan
from ucle.plan.sources import InputSource, TableName, TableSource
from ucle.run.view_sizes import guarded_sizes
from ucle.sqlgen import Capabilities, SqlStep, emit
from ucle.sqlgen.guards import add_guards
from ucle.sqlgen.script import comment_on_view, create_macro, create_view, sql_text, whole_query
from ucle.sqlgen.sql_trees import VALUE, table
from ucle.sqlgen.write_statements import Query
from ucle.sqlgen.written_form import needs_kernels, written_query

KERNELS_NEEDED = (
    "This view calls kernels of ucle: query it on a connection from ucle.connect(), or LOAD ucle's "
    "extension first (docs/extension.md). create_views(kernels=False) makes a view of plain SQL."
)
"""The comment of views that not every client can query."""

Keys = Sequence[str] | Mapping[str, Sequence[str]] | None
"""Labels that have columns: for the only output, or by the names of outputs."""


def create_views(
    session: Session,
    compiled: Compiled,
    options: Options,
    capabilities: Capabilities,
    schema: str | None = None,
    *,
    replace_views: bool = False,
    capacity: Mapping[str, int] | None = None,
    keys: Keys = None,
    rows: str | None = None,
    max_rows: int = MAX_ROWS,
    plain: bool = False,
) -> tuple[str, ...]:
    """Create a view for each output of a program, named like it.

    Args:
        session: where the inputs are and the views will be.
        compiled: the program.
        options: those it was compiled with.
        capabilities: the capabilities of the database for the program.
        schema: the name of a schema that exists; by default the current one.
        replace_views: True to allow replacing existing views.
        capacity: sizes for arrays by label, if coordinates will be added later.
        keys: labels that get a column; by name of the output if there are several.
        rows: the rows that the views show (`ucle.plan.forms`).
        max_rows: the largest number of rows for ``rows="all"``.
        plain: True if the views must not call kernels.

    Returns:
        The names of the views, as SQL writes them.

    Raises:
        UnsupportedError: the program reads data from memory, or calls kernels that belong to one
            connection, or any where they must not.
        ArgumentError: a view would have too many rows.
        DatabaseError: a view cannot be created. Then none of them is created.
        UcleError: the requested capacity is impossible (`ucle.run.view_sizes`).
    """
    calls_kernels = _call_kernels(compiled, _forms(compiled, keys, rows, max_rows, "create_views"))
    if plain and calls_kernels:
        raise UnsupportedError(
            "a view cannot show arrays without kernels",
            where="create_views(kernels=False)",
            expected="a column for each label",
            found="labels that keys= leaves in arrays",
            hint="leave out keys=, or kernels=False",
        )
    queries = view_queries(
        session,
        compiled,
        options,
        capabilities,
        capacity=capacity,
        keys=keys,
        rows=rows,
        max_rows=max_rows,
    )
    parts = parse_table_name(schema, "create_views(schema=...)").parts if schema else ()
    names = {output: (*parts, output) for output in queries}
    for name in names.values() if not replace_views else ():
        if is_taken(session, TableName(name)):
            raise DatabaseError(
                "there is a table or view of that name",
                where=f"create_views, {'.'.join(name)}",
                expected="names that are free",
                found=name[-1],
                hint="pass replace=True to replace views",
            )
    with session.writing("create_views"), _together(session):
        for output, query in queries.items():
            view = create_view(names[output], query, replace=replace_views)
            session.run(sql_text(view), f"create_views, {output}")
            if calls_kernels:
                comment = comment_on_view(names[output], KERNELS_NEEDED)
                session.run(sql_text(comment), f"create_views, {output}")
    return tuple(sql_text(table(*name)) for name in names.values())


def view_queries(
    session: Session,
    compiled: Compiled,
    options: Options,
    capabilities: Capabilities,
    *,
    capacity: Mapping[str, int] | None = None,
    keys: Keys = None,
    rows: str | None = None,
    max_rows: int = MAX_ROWS,
    passes: Sequence[Pass] = LASTING,
    fixed: Collection[TableName] = (),
    qualified: bool = True,
) -> dict[str, Query]:
    """Build the queries of the views, by output.

    Other arguments and errors are as for `create_views`; `passes` lead to the plan of the views,
    and `fixed` has the full names of tables that will not change. Without `qualified`, tables go by
    the names by which the program reads them.
    """
    forms = _forms(compiled, keys, rows, max_rows, "create_views")
    if _call_kernels(compiled, forms):
        # A program whose labels are all promoted needs kernels only for arrays.
        capabilities = session.offered
    _check_lasting(compiled, capabilities, passes)
    written = Written(forms, capabilities, passes)
    compiled = _from_tables(session, compiled, options, qualified=qualified)
    sized = guarded_sizes(
        for_later_rows(compiled, _decided_for_good(session, compiled, fixed), options),
        options,
        capacity or {},
        written.texts,
        written.queries,
        fixed,
    )
    compiled = sized.compiled
    steps, outputs = written.queries(compiled)
    scans = {step.name for step in compiled.plan.steps if isinstance(step.relation, TableScan)}
    queries = {}
    for output, query in outputs.items():
        own = sized.followed.get(output, (steps, query))
        waiting, shown = add_guards(*own, sized.guards[output], scans)
        queries[output] = whole_query(shown, waiting)
    return queries


def macro_statements(
    queries: Mapping[str, Query],
    names: Mapping[str, str] = MappingProxyType({}),
    fixed: Collection[TableName] = (),
) -> dict[str, str]:
    """Build the statement that creates a macro for each output, from the queries of its views.

    Args:
        queries: of the views, by output.
        names: those of macros that are not called like their outputs.
        fixed: tables that are no parameters, by their full names.
    """
    parts = [name.parts for name in fixed]
    return {
        output: create_macro(names.get(output, output), query, parts)
        for output, query in queries.items()
    }


def tables_read(session: Session, compiled: Compiled, but: Collection[str]) -> set[TableName]:
    """Return the full names of the tables that inputs are read from, but for some inputs.

    Raises:
        NameResolutionError: there is no such input.
    """
    sources = {name: bound.source for name, bound in compiled.front.inputs.items()}
    if unknown := [name for name in but if name not in sources]:
        raise NameResolutionError(
            f"the program has no input {unknown[0]}",
            where="macro_sql(tables=...)",
            expected=", ".join(sources) or "no inputs",
            found=unknown[0],
            hint=did_you_mean(unknown[0], sources),
        )

    def find(names: Collection[str]) -> set[TableName]:
        origins = [x.origin for n in names if isinstance(x := sources[n], TableSource)]
        found = (find_relation(session, x) for x in origins if isinstance(x, TableName))
        return {each.full_name for each in found if each is not None}

    return find([name for name in sources if name not in but]) - find(but)


def build_output_queries(
    compiled: Compiled, capabilities: Capabilities, keys: Keys, rows: str | None, max_rows: int
) -> dict[str, Query]:
    """Build for each output the SELECT that shows it in a form, to follow the script.

    Arguments and errors are as for `create_views`.
    """
    forms = _forms(compiled, keys, rows, max_rows, "to_sql")
    return _build_queries(compiled, compiled.physical.shown, forms, capabilities)


def _build_queries(
    compiled: Compiled,
    outputs: Mapping[str, Read],
    forms: Mapping[str, WrittenForm],
    capabilities: Capabilities,
) -> dict[str, Query]:
    """Build for each output the SELECT that shows it in its form."""
    dictionaries = {x.name: x.name for x in compiled.plan.dictionaries}
    return {
        name: written_query(
            (read.step, read.column or VALUE),
            read.type,
            read.layout,
            forms[name],
            capabilities,
            dictionaries,
        )
        for name, read in outputs.items()
    }


def _forms(
    compiled: Compiled, keys: Keys, rows: str | None, max_rows: int, caller: str
) -> dict[str, WrittenForm]:
    """The form of each output."""
    outputs = compiled.plan.shown
    if keys is not None and not isinstance(keys, Mapping):
        if len(outputs) > 1:
            raise ArgumentError(
                "keys= does not state for which output it is",
                where=caller,
                expected="a dict from output to labels, as there are several outputs",
                found=f"keys={keys!r}",
                hint=f"keys={{{next(iter(outputs))!r}: {keys!r}}}",
            )
        keys = dict.fromkeys(outputs, keys)
    chosen = keys or {}
    for name in chosen:
        if name not in outputs:
            raise NameResolutionError(
                f"keys name an unknown output {name}",
                where=caller,
                expected=", ".join(outputs),
                found=str(name),
                hint=did_you_mean(str(name), outputs),
            )
    return {
        name: form_of(
            read.type,
            name in compiled.nonfill,
            chosen.get(name),
            rows,
            max_rows,
            f"{caller}, {name}",
            compiled.fixed_axes[name],
        )
        for name, read in outputs.items()
    }


def _call_kernels(compiled: Compiled, forms: Mapping[str, WrittenForm]) -> bool:
    """True if a program calls kernels, or its outputs do in their forms."""
    outputs = compiled.plan.outputs
    return not compiled.decomposed.relational or any(
        needs_kernels(outputs[name].layout, form) for name, form in forms.items()
    )


def _check_lasting(compiled: Compiled, capabilities: Capabilities, passes: Sequence[Pass]) -> None:
    """Check that everything that the views read and call outlives this connection."""
    read = set(compiled.inputs)
    if passes != LASTING:  # which may have written arrays into the views
        steps = compiled.after(passes).steps
        read = {x.relation.source.tensor for x in steps if isinstance(x.relation, Load)}
    for name, bound in compiled.inputs.items():
        source = bound.source
        if not source.lasts if isinstance(source, TableSource) else name in read:
            raise UnsupportedError(
                "a view cannot read data from memory",
                where=f"create_views, input {name}",
                expected="a table or view of the database, or a file",
                found="an array or a table of this process",
                hint="store it as a table first",
            )
    if capabilities.registered:
        raise UnsupportedError(
            "a view cannot call kernels that belong to one connection",
            where="create_views",
            expected="a connection from ucle.connect, or decomposition='relational'",
            found="a connection that loads no extension",
            hint="decomposition='relational' without keys= makes views for any connection",
        )


@dataclass(frozen=True)
class Written:
    """The way in which views are written: their forms, and the available capabilities."""

    forms: Mapping[str, WrittenForm]
    capabilities: Capabilities
    passes: Sequence[Pass] = LASTING

    def queries(self, compiled: Compiled) -> tuple[tuple[SqlStep, ...], dict[str, Query]]:
        """The steps of a program, and for each output the SELECT that shows it in its form."""
        steps, _ = emit(compiled.after(self.passes), self.capabilities)
        return steps, _build_queries(compiled, compiled.plan.shown, self.forms, self.capabilities)

    def texts(self, compiled: Compiled) -> dict[str, str]:
        """The SQL of the outputs."""
        steps, outputs = self.queries(compiled)
        return {name: sql_text(whole_query(query, steps)) for name, query in outputs.items()}


def _decided_for_good(
    session: Session, compiled: Compiled, fixed: Collection[TableName]
) -> set[str]:
    """Return the inputs of which a key decides the others whatever rows come.

    They are not tables, do not change, or have a constraint that says so.
    """
    lasting = set[str]()
    for name, bound in compiled.front.inputs.items():
        source, key = bound.source, bound.statistics.deciding_axis
        if not isinstance(source, TableSource) or source.origin in fixed:
            lasting.add(name)
        elif key is not None and source.has_entry_in_row:
            column = source.keys[key]
            lasting |= {name} if are_unique(session, source.origin, (column,)) else set()
    return lasting


def _from_tables(
    session: Session, compiled: Compiled, options: Options, *, qualified: bool
) -> Compiled:
    """Use the full names of a program's tables, if asked for, and drop its stored layouts.

    A view may be queried when another schema is the current one, and has to show the current
    content of tables after they have changed.
    """

    def qualify_table(table: TableSource) -> TableSource:
        table = replace(table, single_rows=False)  # a view does not look at them again
        if not qualified or not isinstance(table.origin, TableName):
            return table
        relation = find_relation(session, table.origin)
        return table if relation is None else replace(table, origin=relation.full_name)

    front = compiled.front
    tables = {
        name: (bound.source, qualify_table(bound.source))
        for name, bound in front.inputs.items()
        if isinstance(bound.source, TableSource)
    }
    new_sources: dict[str, InputSource] = {name: new for name, (_, new) in tables.items()}
    every = {x: replace(b, source=new_sources.get(x, b.source)) for x, b in front.inputs.items()}
    used = {
        x: replace(b, source=new_sources.get(x, b.source), kept=())
        for x, b in compiled.inputs.items()
    }
    columns = {(old, key): (new, key) for old, new in tables.values() for key in old.keys}
    dictionaries = replace(
        compiled.dictionaries,
        tables=tuple(
            replace(x, columns=tuple(columns.get(c, c) for c in x.columns))
            for x in compiled.dictionaries.tables
        ),
    )
    compiled = replace(compiled, front=replace(front, inputs=every), dictionaries=dictionaries)
    return read_from(compiled, used, options)


@contextmanager
def _together(session: Session) -> Iterator[None]:
    """Run a block in a transaction, a new one if none is open; translate DuckDB's errors.

    A transaction that was begun here ends with the block, whatever happens.
    """
    own = not in_transaction(session)
    try:
        if own:
            session.fetch("BEGIN")
        yield
        if own:
            session.fetch("COMMIT")
    except BaseException as error:
        if own:
            session.stop()
        if not isinstance(error.__cause__, EngineError):
            raise
        message = error_text(error.__cause__)
        kind = ReadOnlyError if "read-only" in message else DatabaseError
        raise kind(
            "a view cannot be created",
            where="create_views",
            expected="a schema that exists, in a database that is open for writing",
            found=message.splitlines()[0],
        ) from error.__cause__
