"""Emitted steps as a script that a person can read and run by hand."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce

import sqlglot.dialects.duckdb  # noqa: F401 - or the first statement would wait for it
from sqlglot import exp, select

from ucle.foundation.names import fold_name, unique_names
from ucle.plan.steps import Role
from ucle.sqlgen.dialects import DUCKDB_SQL
from ucle.sqlgen.plan_to_sql import SqlStep
from ucle.sqlgen.sql_trees import (
    VALUE,
    ascending,
    column,
    function,
    identifier,
    integer,
    table,
    text,
)


def sql_text(tree: exp.Expr, pretty: bool = False) -> str:
    """Return DuckDB's text of a tree, with function names unchanged. The tree is used up.

    Comments are for people, and appear in the pretty text only.
    """
    return tree.sql(
        dialect=DUCKDB_SQL.sqlglot,
        pretty=pretty,
        comments=pretty,
        normalize_functions=False,
        copy=False,
    )


def called_functions(tree: exp.Expr) -> set[str]:
    """Names of the functions that a tree calls and sqlglot does not know: ours among them."""
    return {call.name for call in tree.find_all(exp.Anonymous)}


def step_functions(step: SqlStep) -> set[str]:
    """Names of the functions that the statements of a step call."""
    queries = [query for query in (step.query, step.check) if query is not None]
    for part in step.rounds:
        queries += [part.query, *(x.query for x in part.tables if x.query is not None)]
    return set().union(*map(called_functions, queries))


def whole_query(query: exp.Select, steps: Sequence[SqlStep]) -> exp.Select:
    """Return the query with all steps that it reads as common table expressions.

    The steps include those read indirectly; those with tables in the script are marked to be
    computed once.
    """
    queries = {step.name: step.query for step in steps if isinstance(step.query, exp.Select)}
    tables = {step.name for step in steps if step.role is Role.TABLE}
    whole = query.copy()
    for name, step in _find_needed_queries(queries, whole).items():
        whole.with_(identifier(name), step, materialized=name in tables, copy=False)
    return whole


def _find_needed_queries(
    queries: Mapping[str, exp.Select], query: exp.Select
) -> dict[str, exp.Select]:
    """Return those of the queries that one reads, directly or not, in their order."""
    names_read = _read(query)
    needed = []
    for name in reversed(list(queries)):
        if name in names_read:
            names_read |= _read(queries[name])
            needed.append(name)
    return {name: queries[name] for name in reversed(needed)}


def _read(query: exp.Select) -> set[str]:
    return {read.name for read in query.find_all(exp.Table) if not read.db}


def create_view(name: Sequence[str], query: exp.Select, *, replace: bool) -> exp.Create:
    """Return CREATE VIEW, under the parts of a name."""
    return exp.Create(this=table(*name), kind="VIEW", expression=query, replace=replace)


def comment_on_view(name: Sequence[str], comment: str) -> exp.Comment:
    """Return COMMENT ON VIEW, under the parts of a name."""
    return exp.Comment(this=table(*name), kind="VIEW", expression=text(comment))


def create_macro(
    name: str, query: exp.Select, fixed: Collection[Sequence[str]] = frozenset()
) -> str:
    """Return CREATE MACRO; its parameters are the names of the tables that a query reads.

    `fixed` has the full names of tables that are always the same.
    """
    parameters: dict[str, str] = {}
    whole = query.copy()
    taken = {fold_name(part.name) for part in whole.find_all(exp.Identifier)}
    always = {sql_text(table(*parts)) for parts in fixed}
    for read in [each for each in whole.find_all(exp.Table) if each.db]:
        parts = {part: read.args.get(part) for part in ("this", "db", "catalog")}
        origin = sql_text(exp.Table(**parts))
        if origin in always:
            continue
        if origin not in parameters:
            (parameters[origin],) = unique_names([f"{read.name}_table"], taken)
        called = function("query_table", column(parameters[origin]))
        alias = exp.TableAlias(this=identifier(read.alias or read.name))
        read.replace(exp.Table(this=called, alias=alias))
    arguments = ", ".join(
        f"{sql_text(identifier(parameter))} := {sql_text(text(origin))}"
        for origin, parameter in parameters.items()
    )
    return (
        f"CREATE OR REPLACE MACRO {sql_text(identifier(name))}({arguments}) "
        f"AS TABLE {sql_text(whole)}"
    )


def table_query(name: str) -> exp.Select:
    """SELECT * FROM a table."""
    return select(exp.Star()).from_(table(name))


def tuples_query(place: tuple[str, str]) -> exp.Select:
    """The tuples of a tensor relation: those of a table, or a column of one with a tuple."""
    name, value = place
    if value == VALUE:
        return table_query(name)
    return select(column(value).as_(identifier(VALUE))).from_(table(name))


def with_transaction(query: exp.Select, *more: exp.Expr) -> exp.Select:
    """Return a query with the number of its transaction as another column, before more of them.

    The query is used up.
    """
    return query.select(function("txid_current"), *more, copy=False)


def longest_query(place: tuple[str, str]) -> exp.Select:
    """The length in bytes of the longest BLOB of a tensor relation; NULL where it has no rows."""
    name, value = place
    return select(exp.Max(this=function("octet_length", column(value)))).from_(table(name))


def count_query(name: str) -> exp.Select:
    """The number of rows of a table."""
    return select(exp.Count(this=exp.Star())).from_(table(name))


def rows_query(name: str, start: int, count: int) -> exp.Select:
    """Rows of a stored table from a given number on, in stored order."""
    number = column("rowid")
    first = exp.GTE(this=number, expression=integer(start))
    last = exp.LT(this=number.copy(), expression=integer(start + count))
    return table_query(name).where(first, last)


def values_query(dictionary: str) -> exp.Select:
    """The values of a dictionary in the order of their positions."""
    return select(column("value")).from_(table(dictionary)).order_by(ascending(column("id")))


def scalars_query(places: Sequence[tuple[str, str]]) -> exp.Expr:
    """The values of tensors without axes, as a column for each and a row for each table.

    One row with a subquery for each column would be equivalent; DuckDB takes three times as long to
    plan it.

    Args:
        places: for each its table and the column there.
    """
    tables: dict[str, exp.Select] = {}
    for n, (name, value) in enumerate(places):
        query = tables.setdefault(name, select().from_(table(name)))
        query.select(column(value).as_(identifier(f"value {n}")), copy=False)
    queries: list[exp.Expr] = list(tables.values())
    return reduce(_union_by_name, queries)


def _union_by_name(one: exp.Expr, other: exp.Expr) -> exp.Expr:
    return exp.Union(this=one, expression=other, distinct=False, by_name=True)


UNITED = 32
"""The number of queries that one union combines: a union of many is a deep tree."""


def doubt_queries(queries: Sequence[exp.Expr]) -> list[exp.Expr]:
    """Combine queries into fewer, one of which has a row if any of them has. They are used up."""
    for query in queries:
        query.set("limit", None)  # a part of a union without parentheses takes no limit
    parts = [queries[start : start + UNITED] for start in range(0, len(queries), UNITED)]
    united = [reduce(_union, part) for part in parts]
    return [query.limit(1, copy=False) for query in united if isinstance(query, exp.Query)]


def _union(one: exp.Expr, other: exp.Expr) -> exp.Expr:
    return exp.Union(this=one, expression=other, distinct=False)


def differ_query(one: str, other: str) -> exp.Select:
    """A row of a dictionary that another one of the same size does not have, if there is any."""
    sides = [select(column("id"), column("value")).from_(table(name)) for name in (one, other)]
    missing = exp.except_(*sides, distinct=True)
    return select(exp.Star()).from_(missing.subquery("missing")).limit(1)


def count_tuples_query(name: str, keys: Sequence[str]) -> exp.Select:
    """The number of rows of a table, and of distinct values in each of some columns."""
    counts = (exp.Count(this=exp.Distinct(expressions=[column(key)])) for key in keys)
    return select(exp.Count(this=exp.Star()), *counts).from_(table(name))


def array_bytes_query(name: str, values: str) -> exp.Select:
    """The number of rows of a table, and the bytes of the arrays in a column of it."""
    size = exp.Sum(this=function("octet_length", column(values)))
    return select(exp.Count(this=exp.Star()), size).from_(table(name))


def create_statement(step: SqlStep) -> exp.Create:
    """Return CREATE TEMP VIEW or TABLE for a step."""
    kind = "TABLE" if step.role is Role.TABLE else "VIEW"
    properties = exp.Properties(expressions=[exp.TemporaryProperty()])
    return exp.Create(
        this=table(step.name), kind=kind, expression=step.query, properties=properties
    )


def create_rows(name: str, types: Mapping[str, str], source: str) -> str:
    """Return the text that creates a temporary table of given rows, unless it exists.

    Args:
        name: the name of the table.
        types: the SQL types of its columns.
        source: the table of the rows, whose columns may have wider types.
    """
    values = (
        exp.cast(column(name_), type_, dialect=DUCKDB_SQL.sqlglot).as_(identifier(name_))
        for name_, type_ in types.items()
    )
    query = select(*values).from_(table(source))
    created = create_statement(SqlStep(name, Role.TABLE, query, ""))
    created.set("exists", True)
    return sql_text(created)


def fill_statements(step: SqlStep) -> Iterator[exp.Expr]:
    """Yield the statements that fill a table in rounds: CREATE, INSERT, and for its own tables."""
    for number, part in enumerate(step.rounds):
        yield from map(create_statement, part.tables)
        if number:
            yield exp.Insert(this=table(step.name), expression=part.query)
        else:
            yield create_statement(replace(step, query=part.query))
        for each in part.tables:
            yield drop_statement(each.name, "TABLE")


def drop_statement(name: str, kind: str) -> exp.Drop:
    """Return DROP VIEW or TABLE IF EXISTS."""
    return exp.Drop(tables=[table(name)], kind=kind, exists=True)


def render_script(
    header: Sequence[str],
    steps: Sequence[SqlStep],
    outputs: Mapping[str, exp.Expr],
    checks: Sequence[exp.Expr] = (),
) -> str:
    """Return the whole script: a header, one statement per step, and one SELECT per output.

    `checks` are statements that fail if the data no longer is as the steps need it.
    """
    parts = ["\n".join(f"-- {line}".rstrip() for line in header)]
    if checks:
        note = "-- errors if sizes that the statements below rely on have changed"
        parts.append(f"{note}\n" + ";\n\n".join(sql_text(x, pretty=True) for x in checks) + ";")
    for step in steps:
        if step.query is not None:
            note = "\n".join(f"-- {line}" for line in step.comment.splitlines())
            statements = list(fill_statements(step)) or [create_statement(step)]
            script = ";\n\n".join(sql_text(each, pretty=True) for each in statements)
            parts.append(f"{note}\n{script};")
        if step.check is not None:
            note = f"-- {step.name}: a row here says that 0 times infinity became NaN, see execute"
            parts.append(f"{note}\n{sql_text(step.check, pretty=True)};")
    for name, query in outputs.items():
        parts.append(f"-- result {name}\n{sql_text(query, pretty=True)};")
    return "\n\n".join(parts) + "\n"
