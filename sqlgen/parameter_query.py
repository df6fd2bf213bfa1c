"""Queries over tables of one row, with the values of the rows as parameters instead.

DuckDB takes longer to register an array, to make a table of one row, to read and to drop it than a
kernel takes for a small tensor. A query whose values are parameters takes an eighth of that time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlglot import exp

from ucle.foundation.dataclasses import dataclass
from ucle.sqlgen.dialects import DUCKDB_SQL
from ucle.sqlgen.script import sql_text, with_transaction
from ucle.sqlgen.sql_trees import identifier, one_row, parameter

Place = tuple[str, str]
"""A table and one of its columns."""


@dataclass(frozen=True)
class ParameterQuery:
    """A SELECT, and the places whose values its parameters take.

    Its rows, in any order, are those of the query that it was made from, if each of these tables
    has one row, and the number of the transaction. The value of a table without a row is NULL.
    """

    text: str
    parameters: tuple[Place, ...]
    columns: tuple[str, ...]
    """The names of the columns before the number of the transaction."""
    alone: frozenset[frozenset[str]]
    """Tables that a SELECT reads and no others: one of them has to have its row."""

    def accepts(self, values: Sequence[object]) -> bool:
        """Return whether values of the parameters, NULL as None, leave its rows as they are.

        >>> places = ("X", "val"), ("Y", "val")
        >>> query = ParameterQuery("", places, (), frozenset({frozenset("X")}))
        >>> query.accepts([b"x", None]), query.accepts([None, b"y"])
        (True, False)
        """
        there = {
            table for (table, _), x in zip(self.parameters, values, strict=True) if x is not None
        }
        return not any(tables.isdisjoint(there) for tables in self.alone)


def parameter_query(query: exp.Expr, types: Mapping[Place, str]) -> ParameterQuery | None:
    """Return a query with parameters for the columns of tables of one row.

    None if it would have other rows without these tables.

    Args:
        query: the query, which is not changed.
        types: the SQL type of each column of these tables; the query reads others as it did.
    """
    query = query.copy()
    if not isinstance(query, exp.Select) or _has_star(query):
        return None
    if {x.alias for x in query.find_all(exp.CTE)} & {table for table, _ in types}:
        return None
    if query.args.get("limit") is None:
        query.set("order", None)
    columns = tuple(query.named_selects)
    numbers: dict[Place, int] = {}
    alone: set[frozenset[str]] = set()
    selects = list(query.find_all(exp.Select))
    if not all(_without_tables(select, types, numbers, alone) for select in selects):
        return None
    text = sql_text(with_transaction(query))
    return ParameterQuery(text, tuple(numbers), columns, frozenset(alone))


_PARTS = {"expressions", "from_", "joins", "where", "with_"}
"""The parts of a SELECT that mean the same without tables that have one row."""


def _without_tables(
    select: exp.Select,
    types: Mapping[Place, str],
    numbers: dict[Place, int],
    alone: set[frozenset[str]],
) -> bool:
    """Replace the tables of one row of a SELECT by parameters; return False if they have to stay.

    Args:
        select: is changed.
        types: as for `parameter_query`.
        numbers: receives the number of each parameter.
        alone: receives the tables if the SELECT reads no others.
    """
    source, joins = select.args.get("from_"), select.args.get("joins") or []
    sources = [each.this for each in ([] if source is None else [source, *joins])]
    rows = {table for table, _ in types}
    tables = {x.alias_or_name: x.name for x in sources if _is_table(x) and x.name in rows}
    if not tables:
        return True
    if {name for name, part in select.args.items() if part} - _PARTS or _has_star(select):
        return False
    # Beside one row, a POSITIONAL JOIN has the rows of the other relations: none or one.
    if any("POSITIONAL" not in (each.kind, each.method) for each in joins):
        return False
    for read in list(select.find_all(exp.Column)):
        if read.find_ancestor(exp.Select) is not select:
            continue
        if not read.table:  # it may be one of theirs
            return False
        if read.table not in tables:
            continue
        place = tables[read.table], read.name
        if place not in types:
            return False
        value = parameter(numbers.setdefault(place, len(numbers) + 1))
        cast = exp.cast(value, types[place], dialect=DUCKDB_SQL.sqlglot)
        names_itself = read.parent is select and read.arg_key == "expressions"
        read.replace(cast.as_(identifier(read.name)) if names_itself else cast)
    others = [x for x in sources if x.alias_or_name not in tables]
    if not all(_is_table(x) or isinstance(x, exp.Subquery) or x == one_row() for x in others):
        return False
    if not others:
        alone.add(frozenset(tables.values()))
    first, *others = others or [None]
    select.set("from_", None if first is None else exp.From(this=first))
    select.set("joins", [each for each in joins if any(each.this is x for x in others)] or None)
    return True


def _has_star(select: exp.Select) -> bool:
    return any(isinstance(x, exp.Star) for x in select.selects)


def _is_table(source: exp.Expr) -> bool:
    """True for a table, which a function such as ``range(1)`` is not."""
    return isinstance(source, exp.Table) and isinstance(source.this, exp.Identifier)
