"""Programs whose results follow their data: kept as tables, and brought up to date on request."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ucle.database.data_versions import observing
from ucle.database.macro_check import open_checked
from ucle.database.open_sessions import connect
from ucle.database.session import Database, Session
from ucle.errors import ArgumentError, MaintenanceError, UcleError, UnsupportedError
from ucle.foundation import arguments as args
from ucle.foundation.arguments import validated
from ucle.foundation.dataclasses import dataclass
from ucle.foundation.libraries import LateModule
from ucle.inputs.states import BoundInput
from ucle.inputs.table_input import TableInput
from ucle.language.syntax_to_text import statement_text
from ucle.maintenance.appended import settle
from ucle.maintenance.bound_program import (
    bind_document,
    bound_program,
    find_tables,
    options_for,
    statements_of,
)
from ucle.maintenance.candidates import AUTO, WAYS, entries_form
from ucle.maintenance.changes import (
    ChangedInput,
    find_change,
    find_told,
    keep_change,
    keep_state,
)
from ucle.maintenance.chosen_tensors import choose_kept
from ucle.maintenance.document import (
    Document,
    KeptTensor,
    Parts,
    WatchedInput,
    input_of,
    options_of,
    spec_of,
)
from ucle.maintenance.facts import keep_facts, measure_with
from ucle.maintenance.kept_documents import (
    forget_document,
    list_documents,
    own_table,
    read_document,
    write_document,
)
from ucle.maintenance.own_inputs import is_selection, keep_selection
from ucle.maintenance.refresh import Refresh, TensorReport
from ucle.maintenance.told import read_told, told_tables
from ucle.maintenance.told_rows import apply_told
from ucle.maintenance.unstated_sizes import warn_of_unstated_sizes
from ucle.plan.sources import TableName, TableSource
from ucle.run.build import NOTHING, Build, Request, build
from ucle.run.current_data import Preparations
from ucle.run.results import Result
from ucle.run.write_table import WriteTarget
from ucle.run.write_table import transaction as in_transaction
from ucle.sqlgen.maintained_tables import (
    digests_of_tables,
    drop_table,
    failing_query,
    short_digests,
)
from ucle.stats.measure import MeasuredInput

if TYPE_CHECKING:
    from ucle.maintenance import kept_loops, script_inputs
    from ucle.maintenance import script as scripts
else:  # most programs have no loop, and are refreshed in Python
    kept_loops = LateModule("ucle.maintenance.kept_loops")
    script_inputs = LateModule("ucle.maintenance.script_inputs")
    scripts = LateModule("ucle.maintenance.script")


@dataclass(frozen=True)
class RefreshReport:
    """What a refresh found and did."""

    changed: Mapping[str, int]
    """The number of changed keys of each input that has changed."""
    tensors: tuple[TensorReport, ...]
    seconds: float

    @property
    def rows(self) -> int:
        """The number of keys of outputs and intermediate tensors whose rows have changed."""
        return sum(each.rows for each in self.tensors)

    def __str__(self) -> str:
        found = ", ".join(f"{name} ({count:,} keys)" for name, count in self.changed.items())
        lines = [f"changed: {found or 'nothing'}; {self.seconds:.3f} s"]
        for each in self.tensors:
            lines.append(f"{each.tensor}: {each.way} ({each.reason}), {each.rows:,} keys differ")
        return "\n".join(lines)


class Maintained:
    """A program whose outputs are kept as tables; returned by `maintain` and `maintained`."""

    def __init__(self, name: str, database: Database) -> None:
        """Refer to a program by its name; its description is in the database."""
        self.name = name
        self._database = database

    @property
    def outputs(self) -> Mapping[str, str]:
        """The tables of the outputs, by the names of the tensors."""
        with _session(self._database) as session:
            kept = read_document(session, self.name).kept
        own = own_table(self.name, "")[0]
        return {x.tensor: ".".join(x.table) for x in kept if x.table[0] != own}

    @validated(way=args.choice(*WAYS), inserted=args.inputs, deleted=args.inputs, applied=args.flag)
    def refresh(
        self,
        *,
        way: str = AUTO,
        inserted: Mapping[str, Any] = NOTHING,
        deleted: Mapping[str, Any] = NOTHING,
        applied: bool = False,
    ) -> RefreshReport:
        """Bring the outputs up to date, in one transaction.

        Inputs are compared with their states at the last refresh, and only what depends on changes
        is computed again. For inputs that are named in `inserted` or `deleted`, you pass the
        changed rows instead: ucle does not search these inputs for changes, and changes them in the
        same transaction.

        Args:
            way: ``"differences"`` adds the changes of their terms to sums, if that is exact or rows
                were only added; ``"affected keys"`` computes the entries that may differ, and
                ``"from scratch"`` computes all of them. By default, each tensor is computed in the
                cheapest way.
            inserted: the inserted rows, by the names of inputs: the name of a table, a relation of
                DuckDB, or a table of Arrow, pandas or polars, with the columns of the input.
            deleted: the deleted rows, in the same form; their keys are enough. If you pass values,
                they have to be those of the rows. To update a row, pass it as deleted, and pass the
                new row, with the same coordinates, as inserted.
            applied: True if the inputs already have these changes.

        Returns:
            The changes that were found, how each tensor was computed, and how many of its keys
            differ.

        Raises:
            MaintenanceError: the table of an output was changed by others, or is gone; or an input
                has other changes than those that you pass.
            DuplicateCoordinatesError: a row is inserted at coordinates that already have one.
            UcleError: the inputs do not pass the checks of a program. All tables are as before.

        Warns:
            MeaningWarning: an earlier version kept the program, without the sizes that statements
                of lazy tensors state.

        >>> import ucle
        >>> connection = ucle.connect()
        >>> _ = connection.execute("CREATE TABLE x AS SELECT 1 AS i, 5.0::DOUBLE AS val")
        >>> program = ucle.einsum_program("y[i] = 2 * x[i]", x="x", database=connection)
        >>> doubled = program.maintain("doubled", connection)
        >>> _ = connection.execute("INSERT INTO x VALUES (3, 1.5)")
        >>> doubled.refresh().changed, connection.sql("FROM doubled ORDER BY i").fetchall()
        ({'x': 1}, [(1, 10.0), (3, 3.0)])
        >>> one = connection.sql("SELECT 3 AS i")
        >>> doubled.refresh(deleted={"x": one}).changed, connection.sql("FROM x").fetchall()
        ({'x': 1}, [(1, 5.0)])
        """
        started = time.perf_counter()
        told = {"inserted": inserted, "deleted": deleted}
        with (
            _session(self._database) as session,
            session.writing(f"refresh {self.name!r}"),
            in_transaction(session),
            observing(session),  # nobody else changes what the transaction sees
        ):
            document = read_document(session, self.name)
            warn_of_unstated_sizes(document)
            _check_kept(session, document)
            with contextlib.ExitStack() as stack:
                changed = _find_changes(session, document, told, applied, stack)
                return self._refresh(session, changed, started, way, stack)

    def _refresh(
        self,
        session: Session,
        changed: _Changed,
        started: float,
        way: str,
        stack: contextlib.ExitStack,
    ) -> RefreshReport:
        document, changes = changed.document, changed.changes
        whole = bind_document(document, session, changes)
        stack.enter_context(_all_or_nothing(session))
        for x in document.inputs:
            now, name = changed.watched[x.name], x.name
            if now.digest != x.digest:
                keep_change(session, now, changes.get(name), changed.sources[name])
        kind = Refresh if document.loop is None else kept_loops.LoopRefresh
        refresh = kind(session, document, whole, changes, way)
        refresh.run()
        inputs = tuple(
            keep_facts(changed.watched[x.name], x, whole.facts[x.name]) for x in document.inputs
        )
        kept = _with_digests(session, refresh.kept)
        document = replace(
            document,
            inputs=inputs,
            kept=kept,
            sizes=whole.sizes,
            finite=whole.finite,
            refreshes=document.refreshes + 1,
            loop=refresh.loop_now,
        )
        write_document(session, document)
        for table in changed.tables:
            session.run(drop_table(table), "refresh")
        found = {name: change.keys for name, change in changes.items()}
        return RefreshReport(found, tuple(refresh.reports), time.perf_counter() - started)

    @validated(
        inserted=args.mapping(args.text, args.text, "a dict from inputs to tables"),
        deleted=args.mapping(args.text, args.text, "a dict from inputs to tables"),
        applied=args.flag,
        kernels=args.flag,
        transaction=args.flag,
    )
    def to_sql(
        self,
        *,
        inserted: Mapping[str, str] = NOTHING,
        deleted: Mapping[str, str] = NOTHING,
        applied: bool = False,
        kernels: bool = True,
        transaction: bool = True,
    ) -> str:
        """Return a script that brings the outputs up to date, for clients without Python.

        It is one transaction, which checks the changed rows, changes the inputs, and replaces rows
        of the outputs that may differ. It can run any number of times, and `refresh` continues from
        its results. Inputs that are `append_only` need not be named: the script finds their new
        rows. All other inputs that are not named must not have changed.

        Args:
            inserted: names of the tables with inserted rows, by the names of inputs. They have the
                columns of the inputs, and are read when the script runs.
            deleted: the same for deleted rows; only their keys are read.
            applied: True if the inputs are changed before the script runs.
            kernels: False for plain SQL. Otherwise a script may call kernels: it then needs a
                connection from `ucle.connect`, or ucle's extension in any client.
            transaction: False for a script that neither begins nor ends a transaction, for tools
                that run scripts in transactions of their own.

        Raises:
            NameResolutionError: there is no such input.
            ArgumentError: nothing can change.
            UnsupportedError: an input is not a table with a row for each entry, its connection does
                not load extensions, or the program is a loop.

        >>> import duckdb, ucle
        >>> connection = duckdb.connect()
        >>> _ = connection.execute("CREATE TABLE paid AS SELECT 1 AS shop, 2 AS day, 5.0 AS val")
        >>> program = ucle.einsum_program(
        ...     "S[shop] += paid[shop,day]", paid="paid", database=connection
        ... )
        >>> script = program.maintain("sums", connection).to_sql(inserted={"paid": "today"})
        >>> _ = connection.execute("CREATE TABLE today AS SELECT 1 AS shop, 3 AS day, 2.0 AS val")
        >>> _ = connection.execute(script)
        >>> connection.sql("FROM sums").fetchall()
        [(1, 7.0)]
        """
        told = script_inputs.Told(inserted, deleted, applied)
        with _session(self._database) as session, in_transaction(session), observing(session):
            document = read_document(session, self.name)
            warn_of_unstated_sizes(document)
            if document.loop is not None:
                raise UnsupportedError(
                    "a script has no loops",
                    where=f"to_sql, {self.name!r}",
                    expected="a program whose statements run once",
                    found=f"a loop until {document.loop['until']}",
                    hint="refresh() runs it",
                )
            whole = bind_document(document, session, {})
            return scripts.write_script(
                session, document, whole, told, kernels=kernels, transaction=transaction
            )

    def drop(self) -> None:
        """Drop the tables of the program, including those of its outputs, and its description."""
        with _session(self._database) as session:
            document = read_document(session, self.name)
            with session.writing(f"drop {self.name!r}"), in_transaction(session):
                for each in document.kept:
                    session.run(drop_table(each.table), "drop")
                for watched in document.inputs:
                    for table in (watched.state, watched.own):
                        if table is not None:
                            session.run(drop_table(table), "drop")
                forget_document(session, self.name)

    def __repr__(self) -> str:
        return f"<Maintained {self.name!r}>"


def maintain(
    made: Build,
    name: str,
    database: Database,
    append_only: Collection[str] = (),
    carry: Mapping[str, str] = NOTHING,
    until: str | None = None,
    max_steps: int | None = None,
) -> Maintained:
    """Compute a program, keep its outputs as tables, and remember how to bring them up to date.

    Args:
        made: the program.
        name: of the maintained program, and of the table of its output; the tables of several
            outputs are called ``name_output``.
        database: where its tables are, and where everything is kept.
        append_only: inputs that are tables to which rows are only appended.
        carry: inputs of a loop, and the tensors that replace them in the next step.
        until: its condition.
        max_steps: its most steps.

    Raises:
        ArgumentError: a table of that name exists, or nothing ends the loop.
        UnsupportedError: an input lies in memory, or holds pairs of times or categories.
    """
    with (
        _session(database) as session,
        session.writing(f"maintain {name!r}"),
        in_transaction(session),
    ):
        forget_document(session, name)  # which makes the schema, too
        request = made.request
        text = "; ".join(map(statement_text, request.statements))
        inputs = tuple(
            _watch(session, name, x, request.inputs[x], bound, append_only)
            for x, bound in made.compiled.all_inputs.items()
            if x in request.inputs  # others are made by what compiles it
        )
        stated = {x.target.tensor: x.sizes for x in request.statements if x.sizes}
        options = options_of(made.options)
        document = Document(name, text, options, inputs, (), {}, (), stated=stated)
        if (until is not None or max_steps is not None) and not carry:
            raise ArgumentError(
                "a program without carry= is no loop",
                where=f"maintain {name!r}",
                expected="carry=, from inputs to the tensors that replace them",
                found="until=" if until is not None else "max_steps=",
            )
        facts: dict[str, MeasuredInput] = {}
        if carry:
            loop = kept_loops.KeptLoop(carry, until, max_steps)
            states = dict.fromkeys(carry.values())
            options = {**document.options, "outputs": list(states)}
            document = replace(document, options=options, loop=loop.to_json())
        first = _build(document, session, None, facts).compiled
        written = statements_of(request.statements)
        document = replace(document, kept=choose_kept(first, name, written, alone=bool(carry)))
        full = _build(document, session, document.tensors, facts)
        own = session.beside()
        if carry:
            whole_loop = replace(full.request, carry={})
            found = kept_loops.run_loop(own.connection, whole_loop, full.options, loop)
            loop = replace(loop, converged=found.converged)
            document = replace(document, loop=loop.to_json())
            result: Result = found
        else:
            preparations = Preparations(full.compiled, full.options, {full.target.versions: ()})
            result = preparations.fresh(own).run(own, None)
        kept = []
        for each in document.kept:
            tensor, where = result[each.tensor], f"maintain, {each.tensor}"
            tensor.write(entries_form(tensor, where), WriteTarget(each.table, "error", (), where))
            kept.append(replace(each, fill=tensor.type.fill))
        result.close()
        whole = bound_program(full, facts)
        document = replace(
            document,
            inputs=tuple(
                keep_facts(keep_state(session, x, whole.inputs[x.name]), x, facts[x.name])
                for x in inputs
            ),
            kept=tuple(
                replace(x, kinds=whole.kinds_of(x.tensor)) for x in _with_digests(session, kept)
            ),
            sizes=whole.sizes,
            finite=whole.finite,
        )
        write_document(session, document)
    return Maintained(name, database)


@validated(name=args.word, database=args.database)
def maintained(name: str, database: Database) -> Maintained:
    """Return a program that is maintained in a database, by its name.

    Args:
        name: the name that was passed to `EinsumProgram.maintain`.
        database: a path or an open connection.

    Raises:
        NameResolutionError: no program has this name.

    Warns:
        MeaningWarning: as for `Maintained.refresh`.
    """
    with _session(database) as session:
        warn_of_unstated_sizes(read_document(session, name))
    return Maintained(name, database)


def list_maintained(database: Database) -> dict[str, dict[str, str]]:
    """Return the tables of the outputs of all maintained programs, by the names of these."""
    with _session(database) as session:
        names = list(list_documents(session))
    return {name: dict(Maintained(name, database).outputs) for name in names}


@dataclass(frozen=True)
class _Changed:
    """What has changed in the inputs of a program."""

    document: Document
    """The program as of the last refresh."""
    sources: Mapping[str, TableSource]
    watched: Mapping[str, WatchedInput]
    """The inputs, with what tells their present states."""
    changes: Mapping[str, ChangedInput]
    tables: tuple[Parts, ...]
    """Temporary tables."""


def _find_changes(
    session: Session,
    document: Document,
    told: Mapping[str, Mapping[str, Any]],
    applied: bool,
    stack: contextlib.ExitStack,
) -> _Changed:
    """Find what has changed; make the changes that are told, and not applied yet."""
    found = find_tables(document, session, told_tables(told))
    inputs = [settle(session, x, found[x.name][0]) for x in document.inputs]
    document = replace(document, inputs=tuple(inputs))
    sources = {name: source for name, (source, _) in found.items()}
    rows = read_told(session, document, sources, told, applied=applied)
    if rows and not applied:
        stack.enter_context(_all_or_nothing(session))
        for each in rows.values():
            apply_told(session, each)
    watched, changes, tables = dict[str, WatchedInput](), dict[str, ChangedInput](), list[Parts]()
    for number, x in enumerate(document.inputs):
        name, table = x.name, f"ucle_changed_{number}"
        source, fill = found[name]
        if name in rows:
            watched[name], change = find_told(session, rows[name], fill, table)
            tables += rows[name].tables
        else:
            watched[name], change = find_change(session, x, source, fill, table)
        if change is not None:
            changes[name] = change
            tables.append(change.table)
    return _Changed(document, sources, watched, changes, tuple(tables))


@contextlib.contextmanager
def _all_or_nothing(session: Session) -> Iterator[None]:
    """Let an error end the transaction, also one of the user, who can then only roll it back."""
    try:
        yield
    except BaseException:
        with contextlib.suppress(UcleError):
            session.fetch(failing_query("a refresh has failed"))
        raise


@contextlib.contextmanager
def _session(database: Database) -> Iterator[Session]:
    """A session on a connection; a file is open for as long as the block runs."""
    if database is None or isinstance(database, str):
        with connect(database or ":memory:") as connection, open_checked(connection) as session:
            yield session
    else:
        with open_checked(database) as session:
            yield session


def _build(
    document: Document,
    session: Session,
    outputs: tuple[str, ...] | None,
    facts: dict[str, MeasuredInput],
) -> Build:
    """Compile the program of a description for the present data; None for its own outputs.

    Inputs are measured if there are no facts about them, which are added.
    """
    inputs = {
        x.name: replace(
            input_of(x.spec), measured=facts.get(x.name) or measure_with(x, None, facts)
        )
        for x in document.inputs
    }
    options = options_for(document, session, outputs)
    return build(Request(document.statements, inputs), session.connection, options)


def _watch(
    session: Session,
    name: str,
    tensor: str,
    given: Any,
    bound: BoundInput,
    append_only: Collection[str],
) -> WatchedInput:
    source = bound.source
    if is_selection(given):
        return keep_selection(session, tensor, given, bound, own_table(name, f"input {tensor}"))
    if isinstance(source, TableSource) and source.features is not None:
        raise UnsupportedError(
            "categories that become coordinates are not maintained",
            where=f"maintain, input {tensor}, {source.origin}",
            expected="numbers alone among the value columns",
            found=f"ucle.one_hot of {', '.join(source.features.categories)}",
            hint="read a view with a column of numbers for each category, such as "
            "(colour = 'red')::DOUBLE AS colour_red",
        )
    if not isinstance(source, TableSource) or not source.from_database or source.times:
        raise UnsupportedError(
            "nothing says how this input changes",
            where=f"maintain, input {tensor}",
            expected="a table, a view or a file, by its name",
            found=type(getattr(given, "relation", given)).__name__,
            hint="result.to_table and ucle.table put arrays into the database",
        )
    spec = given if isinstance(given, TableInput) else TableInput(given)
    axes = source.key_axes if source.key_axes is not None else tuple(range(len(source.keys)))
    appended = None
    if tensor in append_only:
        if not isinstance(source.origin, TableName) or not source.table:
            raise ArgumentError(
                "rows are appended to tables alone",
                where=f"maintain, append_only, input {tensor}",
                expected="a table of the database",
                found=str(source.origin),
            )
        appended = (0, -1)
    state = None if appended is not None else own_table(name, f"state of {tensor}")
    return WatchedInput(
        tensor, spec_of(tensor, spec), source.keys, tuple(axes), state, appended=appended
    )


def _with_digests(session: Session, kept: Sequence[KeptTensor]) -> tuple[KeptTensor, ...]:
    """Return kept tensors with digests of their tables, where these are not known."""
    tables = {x.tensor: (x.table, (*x.keys, "val")) for x in kept if not x.digest}
    rows = session.fetch(digests_of_tables(list(tables.values()))) if tables else []
    found = {
        tensor: tuple(None if x is None else int(x) for x in row)
        for tensor, row in zip(tables, rows, strict=True)
    }
    return tuple(replace(x, digest=found.get(x.tensor, x.digest)) for x in kept)


def _check_kept(session: Session, document: Document) -> None:
    """Check that nobody else has changed what is kept."""
    # No two rows of a table are equal.
    parts = [(x.table, (*x.keys, "val"), x.digest) for x in document.kept]
    parts += [(x.own, x.keys, x.digest) for x in document.inputs if x.own is not None]
    query = short_digests([(table, columns) for table, columns, _ in parts])
    for (table, _, digest), found in zip(parts, session.fetch(query), strict=True):
        if found != digest[:2]:
            raise MaintenanceError(
                "a kept table was changed by others",
                where=f"refresh {document.name!r}",
                expected="the rows of the last refresh",
                found=f"others in {'.'.join(table)}",
                hint="call drop(), and maintain the program again",
            )
