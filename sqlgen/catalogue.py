"""Questions to DuckDB's catalogue, and the SQL of what ucle keeps in a database.

What the answers mean is decided in `ucle.source_versions` and `ucle.catalogue`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from sqlglot import exp, select

from ucle.sources import TableName
from ucle.sqlgen.script import sql_text
from ucle.sqlgen.tree import (
    cast,
    column,
    function,
    identifier,
    integer,
    named,
    table,
    table_function,
    text,
)

SCHEMA = "ucle"
"""The schema of everything that ucle keeps in a user's database."""


@dataclass(frozen=True)
class KeptTable:
    """A table in the schema: its name, and the names of its columns, all of them text.

    The first `keys` columns say what a row is about; there is one row for each.
    """

    name: str
    columns: tuple[str, ...]
    keys: int


FACTS = KeptTable("facts", ("relation", "reading", "version", "facts"), keys=2)
"""What was measured of relations (`ucle.facts`)."""

KEPT = (FACTS,)
"""Every table that ucle may keep. They are no inputs, and no hint names them."""


def create_kept(database: str, kept: KeptTable) -> tuple[str, ...]:
    """Make the schema and a table in it, where they are not there yet."""
    columns = [
        exp.ColumnDef(this=identifier(name), kind=exp.DataType.build("VARCHAR"))
        for name in kept.columns
    ]
    place = exp.Table(this=None, db=identifier(SCHEMA), catalog=identifier(database))
    schema = exp.Create(this=place, kind="SCHEMA", exists=True)
    made = exp.Schema(this=_kept(database, kept), expressions=columns)
    return sql_text(schema), sql_text(exp.Create(this=made, kind="TABLE", exists=True))


def kept_columns_query(database: str, kept: KeptTable) -> str:
    """Names of the columns of a kept table, in order; none where it does not exist."""
    about = {"database_name": database, "schema_name": SCHEMA, "table_name": kept.name}
    columns = table_function(function("duckdb_columns"), "columns")
    query = select(column("column_name")).from_(columns).where(_equal(about))
    return sql_text(query.order_by(column("column_index")))


def read_kept(database: str, kept: KeptTable, about: Mapping[str, str]) -> str:
    """The rows of a kept table that have the given values."""
    names = [column(name) for name in kept.columns]
    return sql_text(select(*names).from_(_kept(database, kept)).where(_equal(about)))


def write_kept(database: str, kept: KeptTable, row: Sequence[str]) -> tuple[str, ...]:
    """Put a row into a kept table, in the place of the one with its keys."""
    about = dict(zip(kept.columns[: kept.keys], row, strict=False))
    old = exp.Delete(this=_kept(database, kept), where=exp.Where(this=_equal(about)))
    values = exp.Values(expressions=[exp.Tuple(expressions=[text(value) for value in row])])
    new = exp.Insert(this=_kept(database, kept), expression=values)
    return sql_text(old), sql_text(new)


def _kept(database: str, kept: KeptTable) -> exp.Table:
    return table(database, SCHEMA, kept.name)


def _equal(values: Mapping[str, str]) -> exp.Expr:
    return exp.and_(
        *(exp.EQ(this=column(name), expression=text(value)) for name, value in values.items())
    )


@cache  # asked before every execution
def catalogue_query(names: tuple[str, ...]) -> str:
    """What the catalogue knows of tables and views of these names, in any schema.

    The columns are database, schema, name, number, rows; a view has no rows (NULL).
    """
    listed = [exp.Literal.string(name.casefold()) for name in names]
    parts = []
    for kind, rows in (("table", column("estimated_size")), ("view", exp.null())):
        columns = [column(x) for x in ("database_name", "schema_name", f"{kind}_name")]
        known = exp.In(this=function("lower", column(f"{kind}_name")), expressions=listed)
        query = select(*columns, column(f"{kind}_oid"), named(rows, "rows"))
        relations = table_function(function(f"duckdb_{kind}s"), "relations")
        parts.append(query.from_(relations).where(known.copy()))
    return sql_text(exp.union(*parts, distinct=False))


@cache
def relations_query() -> str:
    """Database, schema and name of every table and view that may be an input."""
    parts = [
        select(*(column(name) for name in ("database_name", "schema_name", f"{kind}_name"))).from_(
            table_function(function(f"duckdb_{kind}s"), "relations")
        )
        for kind in ("table", "view")
    ]
    ours = exp.In(this=column("table_name"), expressions=[text(kept.name) for kept in KEPT])
    in_schema = exp.EQ(this=column("schema_name"), expression=text(SCHEMA))
    parts[0] = parts[0].where(exp.not_(exp.paren(exp.and_(in_schema, ours))))
    return sql_text(exp.union(*parts, distinct=False))


@cache
def databases_query() -> str:
    """Name, file, type of every database of a connection, and whether it can only be read.

    The file is NULL for a database in memory.
    """
    names = [column(name) for name in ("database_name", "path", "type", "readonly")]
    return sql_text(select(*names).from_(table_function(function("duckdb_databases"), "databases")))


@cache
def current_database_query() -> str:
    """The name of the database in which names without one are looked up."""
    return sql_text(select(function("current_database")))


def unique_query(relation: Sequence[str]) -> str:
    """The columns of each PRIMARY KEY and UNIQUE constraint of a table.

    Args:
        relation: database, schema and name, as the catalogue writes them.
    """
    names = ("database_name", "schema_name", "table_name")
    constraints = table_function(function("duckdb_constraints"), "constraints")
    kinds = [text("PRIMARY KEY"), text("UNIQUE")]
    query = select(column("constraint_column_names")).from_(constraints)
    query = query.where(exp.In(this=column("constraint_type"), expressions=kinds))
    return sql_text(query.where(_equal(dict(zip(names, relation, strict=True)))))


@cache
def transaction_query() -> str:
    """The number of the transaction; a new one for each statement where none was begun."""
    return sql_text(select(function("txid_current")))


@cache
def storage_query(name: TableName) -> str:
    """How a table is stored: a digest, whether segments have updates, are (not) persistent, rows.

    The digest knows where each segment lies, and of those that are in no block the extreme values.
    DuckDB calls a segment persistent when it lies in a block that a checkpoint has written.
    """
    in_no_block = exp.LT(this=column("block_id"), expression=integer(0))
    values = exp.Case(
        ifs=[exp.If(this=in_no_block, true=cast(column("stats"), "VARCHAR"))], default=exp.null()
    )
    about: tuple[str, ...] = (
        "row_group_id",
        "column_name",
        "column_path",
        "segment_id",
        "segment_type",
        "start",
    )
    about += ("count", "compression", "block_id", "block_offset", "additional_block_ids")
    digest = function("hash", *(column(name) for name in about), values)
    temporary = exp.not_(column("persistent"))
    columns: list[exp.Expr] = [
        cast(function("bit_xor", digest), "VARCHAR"),
        function("bool_or", column("has_updates")),
        function("bool_or", column("persistent")),
        function("bool_or", temporary),
        select(exp.Count(this=exp.Star())).from_(table(*name.parts)).subquery(),
    ]
    segments = function("pragma_storage_info", text(sql_text(table(*name.parts))))
    return sql_text(select(*columns).from_(table_function(segments, "segments")))
