"""Writing rows into tables of a database, new or existing.

All checks are made before the first statement that writes, so that a refusal leaves a user's
transaction unchanged. Each write is atomic: one statement, or two in one transaction.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

from ucle.database.data_versions import opened_in_transaction
from ucle.database.engine_errors import CONFLICTS, EngineError, execution_error, lacks_memory
from ucle.database.session import Session
from ucle.database.table_names import find_relation
from ucle.errors import (
    ArgumentError,
    ColumnsError,
    DatabaseError,
    ReadOnlyError,
    did_you_mean,
)
from ucle.foundation.dataclasses import dataclass
from ucle.foundation.names import fold_name
from ucle.inputs.column_types import array_sizes, element_of, nesting
from ucle.plan.sources import TableName
from ucle.sqlgen import write_statements as tables
from ucle.sqlgen.cached_texts import Rows, rows_of
from ucle.sqlgen.database_queries import current_place_query, databases_query, schemas_query
from ucle.sqlgen.write_statements import Query

MODES = ("error", "replace", "append", "upsert")
"""The treatments of an existing table."""

WIDER = {
    "TINYINT": 1, "SMALLINT": 2, "INTEGER": 3, "BIGINT": 4, "HUGEINT": 5,
    "FLOAT": 11, "DOUBLE": 12,
}  # fmt: skip
"""Ranks of number types: a number fits into a column of a higher rank in the same decade."""


@dataclass(frozen=True)
class WriteTarget:
    """The table that rows are written to.

    `mode` is one of `MODES`; `on` names the columns by which ``upsert`` identifies a row; `where`
    is the place, for messages. `length` is that of the arrays in the rows, if they hold arrays.
    """

    parts: tuple[str, ...]
    mode: str
    on: tuple[str, ...]
    where: str
    order: tuple[str, ...] = ()
    length: int | None = None


def checked_mode(mode: str, replace: bool, where: str) -> str:
    """The mode that a caller selects, one of `MODES`; ``replace=True`` means ``replace``, too."""
    if replace and mode not in ("error", "replace"):
        raise ArgumentError(
            "replace=True and another mode contradict each other",
            where=where,
            expected="one of them",
            found=f"replace=True, mode={mode!r}",
        )
    return "replace" if replace else mode


def write_rows(session: Session, query: Query, target: WriteTarget) -> int:
    """Write the rows of a query into a table, and return their number.

    Raises:
        ReadOnlyError: the database is open for reading only.
        ColumnsError: an existing table has other columns.
        DatabaseError: the table exists, or cannot be created or written.
        ExecutionError: the rows cannot be computed, or do not fit. The table is unchanged.
    """
    full, kind = _resolve_target(session, target)
    if kind is not None and target.mode == "error":
        raise _build_error(
            target,
            f"{kind} {target.parts[-1]} already exists",
            "mode='replace' replaces a table, 'append' and 'upsert' add to it",
        )
    if kind == "view":
        raise _build_error(target, f"{target.parts[-1]} is a view", "DROP VIEW makes the name free")
    if kind is not None and target.mode in ("append", "upsert"):
        rows = rows_of(query)
        _check_columns(session, rows, full, target)
        if target.mode == "upsert":
            return _upsert(session, rows, full, target)
        return _run(session, tables.insert_rows(full, rows), target)
    rows = rows_of(tables.order_rows(query, target.order))
    replace = target.mode == "replace"
    return _run(session, tables.create_table(full, rows, replace=replace), target)


def _upsert(session: Session, rows: Rows, full: tuple[str, ...], target: WriteTarget) -> int:
    delete = tables.delete_rows(full, rows, target.on)
    with transaction(session):
        _run(session, delete, target)
        return _run(session, tables.insert_rows(full, rows), target)


@contextlib.contextmanager
def transaction(session: Session) -> Iterator[None]:
    """Run a block in a transaction; if one is open, the block becomes a part of it."""
    if opened_in_transaction(session):
        with _known(session):
            yield
        return
    session.fetch("BEGIN")
    try:
        with _known(session):
            yield
        session.fetch("COMMIT")
    except BaseException:
        with contextlib.suppress(EngineError):  # a failed COMMIT has already ended it
            session.fetch("ROLLBACK")
        raise


@contextlib.contextmanager
def _known(session: Session) -> Iterator[None]:
    """Run a block of which the session knows that it is in a transaction."""
    before, session.transaction = session.transaction, True
    try:
        yield
    finally:
        session.transaction = before


def _run(session: Session, sql: str, target: WriteTarget) -> int:
    """Run a statement that writes, and return the number of rows written."""
    try:
        rows = session.run(sql, target.where)
    except Exception as error:
        cause = error.__cause__
        if isinstance(cause, EngineError) and not lacks_memory(cause):
            message = str(cause).strip()
            if "read-only" in message or "read only" in message:
                raise _read_only(target, message) from cause
            if isinstance(cause, CONFLICTS):
                raise _build_error(target, message.splitlines()[0], None) from cause
        raise
    return int(rows[0][0]) if rows and rows[0] else 0


def _resolve_target(session: Session, target: WriteTarget) -> tuple[tuple[str, ...], str | None]:
    """Resolve the full name of the target, and find whether it is a table, a view or nothing."""
    parts = target.parts
    databases = {row[0]: row[3] for row in session.fetch(databases_query())}
    if len(parts) == 1:
        ((database, schema),) = session.fetch(current_place_query())
        full = (database, schema, *parts)
    elif len(parts) == 3:
        full = parts
    else:
        full = (*_place(session, parts[0], databases, target), parts[1])
    database = _same(full[0], databases)
    if database is None:
        raise _build_error(
            target, f"no database {full[0]}", did_you_mean(full[0], databases), "a database"
        )
    if databases[database]:
        raise _read_only(target, f"database {database} is attached in read-only mode")
    schemas = [row[1] for row in session.fetch(schemas_query()) if row[0] == database]
    schema = _same(full[1], schemas)
    if schema is None:
        hint = did_you_mean(full[1], schemas) or f"CREATE SCHEMA {full[1]} makes it"
        raise _build_error(target, f"no schema {full[1]} in database {database}", hint, "a schema")
    whole = (database, schema, full[2])
    relation = find_relation(session, TableName(whole))
    return whole, None if relation is None else "view" if relation.rows is None else "table"


def _place(
    session: Session, name: str, databases: dict[str, bool], target: WriteTarget
) -> tuple[str, str]:
    """The database and schema that the first of two parts of a name means."""
    ((current, _),) = session.fetch(current_place_query())
    every = session.fetch(schemas_query())
    schema = _same(name, [row[1] for row in every if row[0] == current])
    database = _same(name, databases)
    if schema is not None and database is not None:
        raise _build_error(
            target,
            f"{name} is a database and a schema",
            f"{database}.SCHEMA.{target.parts[1]} or {current}.{schema}.{target.parts[1]}",
        )
    if database is not None:
        inside = [row[1] for row in every if row[0] == database]
        return database, "main" if "main" in inside else "public"
    return current, schema or name


def _same(name: str, names: Sequence[str] | dict[str, bool]) -> str | None:
    """The name as the catalogue writes it, ignoring case; None if it is not among them."""
    return next((x for x in names if fold_name(x) == fold_name(name)), None)


def _check_columns(
    session: Session, rows: Rows, full: tuple[str, ...], target: WriteTarget
) -> None:
    """Check that the columns of a table match those of the rows."""
    new = _columns(session, tables.describe(rows), target)
    old = _columns(session, tables.describe(tables.all_rows(full)), target)
    old_kinds = {fold_name(name): kind for name, kind in old.items()}
    fits = new.keys() == old_kinds.keys() or {fold_name(n) for n in new} == old_kinds.keys()
    if not fits or not all(
        _fits(new[name], old_kinds[fold_name(name)], target.length) for name in new
    ):
        raise ColumnsError(
            "the columns of the table are not those of the result",
            where=target.where,
            expected=_list_columns(new),
            found=_list_columns(old),
            hint="keys= states which labels become columns; mode='replace' creates the table again",
        )
    for name in target.on:
        if fold_name(name) not in old_kinds:
            raise ColumnsError(
                f"on= names {name}, which is not a column",
                where=target.where,
                expected=", ".join(new),
                found=name,
                hint=did_you_mean(name, new),
            )


def _columns(session: Session, sql: str, target: WriteTarget) -> dict[str, str]:
    try:
        return {str(row[0]): str(row[1]) for row in session.fetch(sql)}
    except EngineError as error:
        raise execution_error(error, target.where) from error


def _fits(new: str, old: str, length: int | None) -> bool:
    """True if a column of a table takes values of a type; `length` is that of arrays."""
    if new == old:
        return True
    if length is not None and nesting(new) == nesting(old) == 1:
        return element_of(new) == element_of(old) and array_sizes(old) in ((), (length,))
    new_width, old_width = WIDER.get(new, 0), WIDER.get(old, 0)
    return 0 < new_width < old_width and new_width // 10 == old_width // 10


def _list_columns(columns: dict[str, str]) -> str:
    return ", ".join(f"{name} {kind}" for name, kind in columns.items())


def _build_error(
    target: WriteTarget, found: str, hint: str | None, expected: str = "a name that is free"
) -> DatabaseError:
    return DatabaseError(
        "the result cannot be stored as a table",
        where=target.where,
        expected=f"{expected}, in a database that is open for writing",
        found=found,
        hint=hint,
    )


def _read_only(target: WriteTarget, found: str) -> ReadOnlyError:
    return ReadOnlyError(
        "the result cannot be stored as a table",
        where=target.where,
        expected="a database that is open for writing",
        found=found,
    )
