"""Statements of scripts that bring maintained tables up to date without ucle.

A script checks the rows that it is told, changes inputs and their states, replaces rows of kept
tables, and writes down what it has left, by which the next refresh knows these tables.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from sqlglot import ErrorLevel, exp, parse_one, select
from sqlglot.errors import SqlglotError

from ucle.sqlgen.cached_texts import Rows, cached_rows, cached_text, rows_of, subquery_of, text_of
from ucle.sqlgen.dialects import DUCKDB_SQL
from ucle.sqlgen.input_queries import digest_of
from ucle.sqlgen.maintained_tables import NOW, Name
from ucle.sqlgen.script import sql_text
from ucle.sqlgen.sql_trees import (
    column,
    function,
    identifier,
    integer,
    is_finite,
    table,
    text,
    when,
)

NOTES = ("program", "part", "made", "script", "last", "rows", "digest", "total")
"""The columns of the notes: what tells the rows of each table that a program keeps, and of inputs
to which rows are appended; and whether a script has written it."""

KINDS = ("VARCHAR", "VARCHAR", "VARCHAR", "BOOLEAN", "BIGINT", "BIGINT", "UBIGINT", "HUGEINT")

Note = tuple[str, str, str, bool, int | None, int | None, int | None, int | None]
"""A row of the notes."""


@cache
def create_notes(name: Name) -> str:
    """Return the statement that makes the table of notes, if there is none."""
    columns = [
        exp.ColumnDef(this=identifier(x), kind=exp.DataType.build(kind, dialect="duckdb"))
        for x, kind in zip(NOTES, KINDS, strict=True)
    ]
    made = exp.Schema(this=table(*name), expressions=columns)
    return sql_text(exp.Create(this=made, kind="TABLE", exists=True))


@cached_text
def insert_notes(name: Name, count: int) -> str:
    """Return INSERT of a number of notes, whose values are parameters, one note after another."""
    values = exp.Values(expressions=_values(count))
    return sql_text(exp.Insert(this=table(*name), expression=values))


@cached_text
def replace_notes(name: Name, count: int) -> str:
    """Return UPDATE of a number of notes that are there; parameters are those of INSERT."""
    *_, own = name
    same = [exp.EQ(this=column(x, own), expression=column(x, NOW)) for x in NOTES[:2]]
    names = exp.TableAlias(this=identifier(NOW), columns=[identifier(x) for x in NOTES])
    changed = exp.Update(
        this=table(*name),
        expressions=[exp.EQ(this=column(x), expression=column(x, NOW)) for x in NOTES[2:]],
        where=exp.Where(this=exp.and_(*same, copy=False)),
    )
    return sql_text(changed.from_(exp.Values(expressions=_values(count), alias=names)))


def _values(count: int) -> list[exp.Tuple]:
    return [exp.Tuple(expressions=[exp.Placeholder() for _ in NOTES]) for _ in range(count)]


@cached_text
def description_and_notes(registry: Name, columns: Sequence[str], name: Name, program: str) -> str:
    """Return a query for the description of a program, and the notes about it.

    The columns are the description, which is NULL in notes, and those of notes.

    Args:
        registry: the table of descriptions.
        columns: its columns of names and of descriptions.
        name: the table of notes.
        program: the name of the program.
    """
    key, described = columns
    one = select(column(described), *(exp.null() for _ in NOTES)).from_(table(*registry))
    others = select(exp.null(), *map(column, NOTES)).from_(table(*name))
    sides = one.where(_is(key, program)), others.where(_is("program", program))
    return sql_text(exp.union(*sides, distinct=False))


def _is(name: str, value: str) -> exp.Expr:
    return exp.EQ(this=column(name), expression=text(value))


def note_by_script(name: Name, program: str) -> str:
    """Return UPDATE that notes that a script has changed what a program keeps."""
    changed = exp.EQ(this=column("script"), expression=exp.true())
    where = exp.Where(this=_is("program", program))
    return sql_text(exp.Update(this=table(*name), expressions=[changed], where=where))


def note_rows(
    name: Name, program: str, part: str, made: str, rows: Rows, columns: Sequence[str]
) -> tuple[str, str]:
    """Return the statements that note the rows of a table as they are now."""
    before = [text(program), text(part), text(made), exp.true(), exp.null()]
    found = digest_of(subquery_of(rows, "rows"), columns, *before)
    return _forget(name, program, part), sql_text(exp.Insert(this=table(*name), expression=found))


def note_last_row(name: Name, program: str, part: str, made: str, source: Name) -> tuple[str, str]:
    """Return the statements that note the last row of a table to which rows are appended."""
    last = function("coalesce", exp.Max(this=column("rowid")), integer(-1))
    before = [text(program), text(part), text(made), exp.true()]
    found = [last, exp.Count(this=exp.Star()), exp.null(), exp.null()]
    rows = select(*before, *found).from_(table(*source))
    return _forget(name, program, part), sql_text(exp.Insert(this=table(*name), expression=rows))


def _forget(name: Name, program: str, part: str) -> str:
    own = exp.and_(_is("program", program), _is("part", part), copy=False)
    return sql_text(exp.Delete(this=table(*name), where=exp.Where(this=own)))


def last_noted(name: Name, program: str, part: str) -> Rows:
    """Return a query for the last row of a part of a program that the notes know."""
    return rows_of(_noted(name, program, part, "last"))


def _noted(name: Name, program: str, part: str, what: str) -> exp.Select:
    own = exp.and_(_is("program", program), _is("part", part), copy=False)
    return select(column(what)).from_(table(*name)).where(own)


# ---- Checks: queries that fail with a message where something is wrong ----


def check_program(name: Name, program: str, made: str, message: str) -> str:
    """Check that a program is the one that a script was written for."""
    own = exp.and_(_is("program", program), _is("made", made), copy=False)
    found = exp.Exists(this=select(integer(1)).from_(table(*name)).where(own))
    return _check(exp.not_(found, copy=False), message)


def check_no_rows(rows: Rows, message: str) -> str:
    """Check that a query has no row."""
    return _check(exp.Exists(this=text_of(rows)), message)


def check_none_pending(name: Name, program: str, part: str, message: str) -> str:
    """Check that all rows of a table to which rows are appended have rowids that last."""
    pending = _noted(name, program, part, "digest").subquery()
    found = function("coalesce", pending, integer(0))
    return _check(exp.GT(this=found, expression=integer(0)), message)


def check_count(one: Rows, others: Sequence[tuple[int, Rows]], message: str) -> str:
    """Check that a query has as many rows as others have together, each with a sign."""
    total: exp.Expr = integer(0)
    for sign, rows in others:
        kind = exp.Add if sign > 0 else exp.Sub
        total = kind(this=total, expression=_count(subquery_of(rows, "counted")))
    count = _count(subquery_of(one, "counted"))
    return _check(exp.NEQ(this=count, expression=exp.paren(total)), message)


def _count(rows: exp.Expr) -> exp.Subquery:
    return select(exp.Count(this=exp.Star())).from_(rows).subquery()


def check_none_removed(name: Name, program: str, part: str, source: Name, message: str) -> str:
    """Check that a table has as many rows up to the last one that was noted as were noted."""
    last, noted = (_noted(name, program, part, x).subquery() for x in ("last", "rows"))
    before = select(integer(1)).from_(table(*source))
    before = before.where(exp.LTE(this=column("rowid"), expression=last))
    count = _count(before.subquery("counted"))
    return _check(exp.NEQ(this=count, expression=noted), message)


def _check(condition: exp.Expr, message: str) -> str:
    found = when(condition, function("error", text(message)), text("as it should be"))
    return sql_text(select(found.as_("checked")))


# ---- Rows ----


@cached_rows
def wrong_rows(
    rows: Rows,
    keys: Sequence[str],
    value: str | None,
    *,
    positions: Sequence[str],
    finite: bool,
) -> exp.Select:
    """Return the rows of a state that no input may have.

    Args:
        rows: the query.
        keys: their keys.
        value: their value, if they have one.
        positions: those of the keys that are positions.
        finite: True if values have to be finite.
    """
    named = [*keys, *([value] if value is not None else [])]
    wrong: list[exp.Expr] = [exp.Is(this=column(x), expression=exp.null()) for x in named]
    wrong += [exp.LT(this=column(x), expression=integer(0)) for x in positions]
    if finite and value is not None:
        wrong.append(exp.not_(is_finite(column(value)), copy=False))
    found = select(integer(1)).from_(subquery_of(rows, "rows"))
    return found.where(exp.or_(*wrong, copy=False) if wrong else exp.false())


@cached_rows
def repeated_rows(rows: Rows, keys: Sequence[str]) -> exp.Select:
    """Return the keys that several rows of a query have."""
    names = [column(x) for x in keys]
    found = select(integer(1)).from_(subquery_of(rows, "rows"))
    several = exp.GT(this=exp.Count(this=exp.Star()), expression=integer(1))
    return (found.group_by(*names) if names else found).having(several)


@cached_rows
def columns_of(name: Name, columns: Sequence[tuple[str, str]]) -> exp.Select:
    """Return columns of a table, each given with the name that it gets."""
    found = [column(old).as_(identifier(new), quoted=True) for old, new in columns]
    return select(*found or [integer(1).as_("row")]).from_(table(*name))


def insert_from(target: Name, rows: Rows) -> str:
    """Return INSERT; columns are matched by their places."""
    return sql_text(exp.Insert(this=table(*target), expression=text_of(rows)))


def pretty(statement: str) -> str:
    """Return a statement in lines; as it is, if it has lines already or cannot be written so."""
    if "\n" in statement:
        return statement
    name = DUCKDB_SQL.sqlglot
    try:
        tree = parse_one(statement, dialect=name, error_level=ErrorLevel.RAISE)
        if sql_text(tree.copy()) == statement:
            return sql_text(tree, pretty=True)
    except SqlglotError:
        pass
    return statement
