"""Statements of scripts that bring maintained tables up to date without ucle.

A script checks the rows that it is told, changes inputs and their states, replaces rows of kept
tables, and writes down what it has left, by which the next refresh knows these tables.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from sqlglot import ErrorLevel, exp, parse_one, select
from sqlglot.errors import SqlglotError

from ucle.sqlgen.cached_texts import cached_text
from ucle.sqlgen.dialects import DUCKDB_SQL
from ucle.sqlgen.input_queries import digest_of
from ucle.sqlgen.maintained_tables import Name
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
    rows = [exp.Tuple(expressions=[exp.Placeholder() for _ in NOTES]) for _ in range(count)]
    return sql_text(exp.Insert(this=table(*name), expression=exp.Values(expressions=rows)))


@cached_text
def notes_of(name: Name, program: str) -> str:
    """Return a query for the notes about a program."""
    return sql_text(select(*map(column, NOTES)).from_(table(*name)).where(_is("program", program)))


def _is(name: str, value: str) -> exp.Expr:
    return exp.EQ(this=column(name), expression=text(value))


def note_by_script(name: Name, program: str) -> str:
    """Return UPDATE that notes that a script has changed what a program keeps."""
    changed = exp.EQ(this=column("script"), expression=exp.true())
    where = exp.Where(this=_is("program", program))
    return sql_text(exp.Update(this=table(*name), expressions=[changed], where=where))


def note_rows(
    name: Name, program: str, part: str, made: str, query: exp.Query, columns: Sequence[str]
) -> tuple[str, str]:
    """Return the statements that note the rows of a table as they are now."""
    before = [text(program), text(part), text(made), exp.true(), exp.null()]
    rows = digest_of(query.copy().subquery("rows"), columns, *before)
    return _forget(name, program, part), sql_text(exp.Insert(this=table(*name), expression=rows))


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


def last_noted(name: Name, program: str, part: str, what: str = "last") -> exp.Expr:
    """Return a number of the notes about a part of a program, as an expression."""
    own = exp.and_(_is("program", program), _is("part", part), copy=False)
    return select(column(what)).from_(table(*name)).where(own).subquery()


def not_as_made(name: Name, program: str, made: str) -> exp.Expr:
    """Return the condition that a program is not the one that a script was written for."""
    own = exp.and_(_is("program", program), _is("made", made), copy=False)
    return exp.not_(exp.Exists(this=select(integer(1)).from_(table(*name)).where(own)), copy=False)


def has_rows(query: exp.Query) -> exp.Expr:
    """Return the condition that a query has a row."""
    return exp.Exists(this=query.copy())


def is_positive(number: exp.Expr) -> exp.Expr:
    """Return the condition that a number is greater than 0; NULL is not."""
    found = function("coalesce", number.copy(), integer(0))
    return exp.GT(this=found, expression=integer(0))


def counts_differ(one: exp.Query, others: Sequence[tuple[int, exp.Query]]) -> exp.Expr:
    """Return the condition that a query has another number of rows than others have together."""
    total: exp.Expr = integer(0)
    for sign, query in others:
        kind = exp.Add if sign > 0 else exp.Sub
        total = kind(this=total, expression=_count(query))
    return exp.NEQ(this=_count(one), expression=exp.paren(total))


def _count(query: exp.Query) -> exp.Expr:
    counted = query.copy().subquery("counted")
    return select(exp.Count(this=exp.Star())).from_(counted).subquery()


def rows_were_removed(name: Name, noted: exp.Expr, last: exp.Expr) -> exp.Expr:
    """Return the condition that a table has fewer rows up to the last one than were noted."""
    before = select(integer(1)).from_(table(*name))
    before = before.where(exp.LTE(this=column("rowid"), expression=last.copy()))
    return exp.NEQ(this=_count(before), expression=noted.copy())


def wrong_rows(
    query: exp.Query,
    keys: Sequence[str],
    value: str | None,
    *,
    positions: Sequence[str],
    finite: bool,
) -> exp.Select:
    """Return the rows of a state that no input may have.

    Args:
        query: the rows.
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
    rows = select(integer(1)).from_(query.copy().subquery("rows"))
    return rows.where(exp.or_(*wrong, copy=False) if wrong else exp.false())


def repeated_rows(query: exp.Query, keys: Sequence[str]) -> exp.Select:
    """Return the keys that several rows of a query have."""
    names = [column(x) for x in keys]
    rows = select(integer(1)).from_(query.copy().subquery("rows"))
    several = exp.GT(this=exp.Count(this=exp.Star()), expression=integer(1))
    return (rows.group_by(*names) if names else rows).having(several)


def columns_of(name: Name, columns: Sequence[tuple[str, str]]) -> exp.Select:
    """Return columns of a table, each given with the name that it gets."""
    found = [column(old).as_(identifier(new), quoted=True) for old, new in columns]
    return select(*found or [integer(1).as_("row")]).from_(table(*name))


def insert_from(target: Name, query: exp.Query) -> str:
    """Return INSERT; columns are matched by their places."""
    return sql_text(exp.Insert(this=table(*target), expression=query.copy()))


def check(condition: exp.Expr, message: str) -> str:
    """Return a query that fails with a message if a condition holds."""
    found = when(condition, function("error", text(message)), text("as it should be"))
    return sql_text(select(found.as_("checked")))


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
