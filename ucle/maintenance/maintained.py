"""Programs whose results follow their data: kept as tables, and brought up to date on request."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import Any

from ucle.database.data_versions import Seen, in_transaction, look, observing
from ucle.database.macro_check import open_checked
from ucle.database.open_sessions import connect
from ucle.database.session import Database, Session
from ucle.database.statistics_cache import known_facts
from ucle.errors import ArgumentError, MaintenanceError, UnsupportedError
from ucle.foundation import arguments as args
from ucle.foundation.arguments import validated
from ucle.foundation.dataclasses import dataclass
from ucle.inputs.inputs import parse_table_name
from ucle.inputs.states import BoundInput
from ucle.inputs.table_input import TableInput
from ucle.ir.tensor_types import TensorType
from ucle.language.parse import parse_program
from ucle.language.syntax_to_text import statement_text
from ucle.maintenance.appended import keep_facts
from ucle.maintenance.bound_program import (
    BoundProgram,
    bind_document,
    bound_program,
    options_for,
)
from ucle.maintenance.changes import ChangedInput, find_change, keep_state
from ucle.maintenance.document import (
    Document,
    KeptTensor,
    Parts,
    WatchedInput,
    input_of,
    options_of,
    spec_of,
)
from ucle.maintenance.kept_documents import (
    forget_document,
    list_documents,
    own_table,
    read_document,
    write_document,
)
from ucle.maintenance.refresh import AUTO, WAYS, Refresh, TensorReport, entries_form
from ucle.pipeline.artifacts import Compiled
from ucle.plan.sources import TableName, TableSource
from ucle.run.build import Build, Request, build
from ucle.run.current_data import Preparations
from ucle.run.write_table import WriteTarget, transaction
from ucle.sqlgen.maintained_tables import digest_of_rows, drop_table
from ucle.sqlgen.sql_trees import key_columns
from ucle.sqlgen.write_statements import all_rows
from ucle.stats.measure import MeasuredInput

MOST_KEPT = 0.25
"""The most entries of an intermediate tensor that is kept, relative to those of all inputs."""


@dataclass(frozen=True)
class RefreshReport:
    """What a refresh found and did."""

    changed: Mapping[str, int]
    """The number of changed keys of each input that has changed."""
    tensors: tuple[TensorReport, ...]
    seconds: float

    @property
    def rows(self) -> int:
        """The number of keys of outputs and intermediate tensors whose rows differ now."""
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

    @validated(way=args.choice(*WAYS))
    def refresh(self, *, way: str = AUTO) -> RefreshReport:
        """Bring the outputs up to date, in one transaction.

        Inputs are compared with their states as of the last refresh; what has not changed is not
        computed again.

        Args:
            way: ``"differences"`` adds to sums what their terms differ by, where that is exact
                or rows were only added; ``"affected keys"`` computes the entries that may differ,
                and ``"from scratch"`` all of them. By default, each tensor is computed in the
                cheapest way.

        Returns:
            What was found, how each tensor was computed, and how many of its keys differ.

        Raises:
            MaintenanceError: the table of an output was changed by others, or is gone.
            UcleError: the inputs do not pass the checks of a program. All tables are as before.

        >>> import ucle
        >>> connection = ucle.connect()
        >>> _ = connection.execute("CREATE TABLE x AS SELECT 1 AS i, 5.0 AS val")
        >>> program = ucle.einsum_program("y[i] = 2 * x[i]", x="x", database=connection)
        >>> doubled = program.maintain("doubled", connection)
        >>> _ = connection.execute("INSERT INTO x VALUES (3, 1.5)")
        >>> doubled.refresh().changed, connection.sql("FROM doubled ORDER BY i").fetchall()
        ({'x': 1}, [(1, 10.0), (3, 3.0)])
        """
        started = time.perf_counter()
        with _session(self._database) as session, session.writing(f"refresh {self.name!r}"):
            document = read_document(session, self.name)
            looked = None if in_transaction(session) else _look(session, document)
            with transaction(session):
                if looked is not None and not looked.still(session):
                    looked = None
                return self._refresh(session, document, looked, started, way)

    def _refresh(
        self,
        session: Session,
        document: Document,
        looked: _Looked | None,
        started: float,
        way: str,
    ) -> RefreshReport:
        _check_kept(session, document)
        if looked is None:
            document = read_document(session, self.name)
        whole = bind_document(document, session) if looked is None else looked.whole
        facts = whole.facts if looked is None else looked.facts
        changes: dict[str, ChangedInput] = {}
        for watched in document.inputs:
            bound = whole.inputs[watched.name]
            table = f"ucle_changed_{len(changes)}"
            change = find_change(session, watched, bound, table)
            if change is not None:
                changes[watched.name] = change
        refresh = Refresh(session, document, whole, changes, facts, way)
        refresh.run()
        inputs = tuple(
            keep_facts(
                session, changes[x.name].watched, whole.inputs[x.name], whole.facts.get(x.name)
            )
            if x.name in changes
            else x
            for x in document.inputs
        )
        kept = tuple(_with_digest(session, x) for x in refresh.kept)
        document = replace(
            document,
            inputs=inputs,
            kept=kept,
            sizes=whole.sizes,
            finite=whole.finite,
            refreshes=document.refreshes + 1,
        )
        write_document(session, document)
        for change in changes.values():
            session.run(drop_table(change.table), "refresh")
        found = {name: change.keys for name, change in changes.items()}
        return RefreshReport(found, tuple(refresh.reports), time.perf_counter() - started)

    def drop(self) -> None:
        """Drop the tables of the program, those of its outputs among them, and its description."""
        with _session(self._database) as session:
            document = read_document(session, self.name)
            with session.writing(f"drop {self.name!r}"), transaction(session):
                for each in document.kept:
                    session.run(drop_table(each.table), "drop")
                for watched in document.inputs:
                    if watched.state is not None:
                        session.run(drop_table(watched.state), "drop")
                forget_document(session, self.name)

    def __repr__(self) -> str:
        return f"<Maintained {self.name!r}>"


def maintain(
    made: Build, name: str, database: Database, append_only: Collection[str] = ()
) -> Maintained:
    """Compute a program, keep its outputs as tables, and remember how to bring them up to date.

    Args:
        made: the program.
        name: of the maintained program, and of the table of its output; the tables of several
            outputs are called ``name_output``.
        database: where its tables are, and where everything is kept.
        append_only: inputs that are tables to which rows are only appended.

    Raises:
        ArgumentError: a table of that name exists.
        UnsupportedError: an input lies in memory, or holds pairs of times or categories.
    """
    with (
        _session(database) as session,
        session.writing(f"maintain {name!r}"),
        transaction(session),
    ):
        forget_document(session, name)  # which makes the schema, too
        request = made.request
        text = "; ".join(map(statement_text, request.statements))
        inputs = tuple(
            _watch(name, x, request.inputs[x], bound, append_only)
            for x, bound in made.compiled.all_inputs.items()
        )
        document = Document(name, text, options_of(made.options), inputs, (), {}, ())
        kept = _choose_kept(_build(document, session, None).compiled, name)
        document = replace(document, kept=kept)
        full = _build(document, session, document.tensors)
        preparations = Preparations(full.compiled, full.options, {full.target.versions: ()})
        own = open_checked(session.connection)
        result = preparations.fresh(own).run(own, None)
        for each in kept:
            tensor, where = result[each.tensor], f"maintain, {each.tensor}"
            tensor.write(entries_form(tensor, where), WriteTarget(each.table, "error", (), where))
        result.close()
        whole = bound_program(full)
        document = replace(
            document,
            inputs=tuple(_remember(session, x, whole.inputs[x.name]) for x in inputs),
            kept=tuple(_with_digest(session, x) for x in kept),
            sizes=whole.sizes,
            finite=whole.finite,
        )
        write_document(session, document)
    return Maintained(name, database)


@validated(name=args.word, database=args.database)
def maintained(name: str, database: Database) -> Maintained:
    """Return a program that is maintained in a database, by its name.

    Args:
        name: the name that `EinsumProgram.maintain` got.
        database: a path or an open connection.

    Raises:
        NameResolutionError: there is none of this name.
    """
    with _session(database) as session:
        read_document(session, name)
    return Maintained(name, database)


def list_maintained(database: Database) -> dict[str, dict[str, str]]:
    """Return the tables of the outputs of all maintained programs, by the names of these."""
    with _session(database) as session:
        names = list(list_documents(session))
    return {name: dict(Maintained(name, database).outputs) for name in names}


@dataclass(frozen=True)
class _Looked:
    """The program, bound before the transaction begins, and what was measured for it.

    A transaction sees one state of the data, of which it cannot tell whether it was measured.
    """

    whole: BoundProgram
    sources: tuple[TableSource, ...]
    states: tuple[Seen, ...]
    facts: Mapping[str, MeasuredInput]

    def still(self, session: Session) -> bool:
        """True if the data has not changed since."""
        now = look(session, self.sources)
        return [x.state for x in now] == [x.state for x in self.states]


def _look(session: Session, document: Document) -> _Looked | None:
    """Bind a program to the present data; None if nothing tells when that has changed."""
    with observing(session):
        whole = bind_document(document, session)
        inputs = whole.inputs
        sources = {x: y.source for x, y in inputs.items() if isinstance(y.source, TableSource)}
        states = tuple(look(session, tuple(sources.values())))
        if not all(x.known for x in states):
            return None
        facts = {
            name: whole.facts.get(name)
            or known_facts(session, name, source.apart, inputs[name].fill)
            for name, source in sources.items()
        }
    return _Looked(whole, tuple(sources.values()), states, facts)


@contextlib.contextmanager
def _session(database: Database) -> Iterator[Session]:
    """A session on a connection; a file is open for as long as the block runs."""
    if database is None or isinstance(database, str):
        with connect(database or ":memory:") as connection, open_checked(connection) as session:
            yield session
    else:
        with open_checked(database) as session:
            yield session


def _build(document: Document, session: Session, outputs: tuple[str, ...] | None) -> Build:
    """Compile the program of a description for the present data; None for its own outputs."""
    inputs = {x.name: input_of(x.spec) for x in document.inputs}
    options = options_for(document, session, outputs)
    return build(Request(parse_program(document.text), inputs), session.connection, options)


def _remember(session: Session, watched: WatchedInput, bound: BoundInput) -> WatchedInput:
    """Return an input with its present state and facts, which are kept."""
    return keep_facts(session, keep_state(session, watched, bound), bound, None)


def _watch(
    name: str, tensor: str, given: Any, bound: BoundInput, append_only: Collection[str]
) -> WatchedInput:
    source = bound.source
    if (
        not isinstance(source, TableSource)
        or not source.from_database
        or source.times
        or source.features
    ):
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


def _choose_kept(compiled: Compiled, name: str) -> tuple[KeptTensor, ...]:
    """The tensors to keep: outputs, and intermediates that are no larger than the inputs."""
    program, statistics = compiled.program, compiled.statistics
    entries = sum(x.statistics.entries for x in compiled.all_inputs.values())
    outputs, found = program.outputs, []
    for statement in compiled.front.source.statements:
        tensor = statement.target.tensor
        if tensor not in program.types or statement.lifted:
            continue
        output = tensor in outputs
        if not output and statistics.tensor(tensor).entries > MOST_KEPT * entries:
            continue
        table = own_table(name, tensor)
        if output:
            table = parse_table_name(name, "maintain").parts
            if len(outputs) > 1:
                table = (*table[:-1], f"{table[-1]}_{tensor}")
        found.append(_kept(tensor, table, program.types[tensor]))
    return tuple(found)


def _kept(tensor: str, table: Parts, type_: TensorType) -> KeptTensor:
    encoded = tuple(n for n, axis in enumerate(type_.axes) if axis.dictionary is not None)
    return KeptTensor(tensor, table, tuple(key_columns(type_)), type_.fill, encoded, ())


def _with_digest(session: Session, kept: KeptTensor) -> KeptTensor:
    (found,) = session.fetch(digest_of_rows(all_rows(kept.table), (*kept.keys, "val")))
    return replace(kept, digest=tuple(None if x is None else int(x) for x in found))


def _check_kept(session: Session, document: Document) -> None:
    """Check that nobody else has changed what is kept."""
    for kept in document.kept:
        if _with_digest(session, kept) != kept:
            raise MaintenanceError(
                "a kept table was changed by others",
                where=f"refresh {document.name!r}",
                expected="the rows of the last refresh",
                found=f"others in {'.'.join(kept.table)}",
                hint="drop() and maintain() again",
            )
