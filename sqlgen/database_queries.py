"""Queries on DuckDB's catalogue, and the SQL of the tables that ucle keeps in a database.

`ucle.database.data_versions` and `ucle.database.own_schema` interpret the answers.
"""

from __future__ import annotations

import string
from collections.abc import Mapping, Sequence
from functools import cache

from sqlglot import exp, select

from ucle.foundation.dataclasses import dataclass
from ucle.foundation.names import fold_name
from ucle.plan.sources import TableName, TableSource
from ucle.sqlgen.cached_texts import cached_text
from ucle.sqlgen.input_tables import source_table
from ucle.sqlgen.script import sql_text, with_transaction
from ucle.sqlgen.sql_trees import (
    add_alias,
    ascending,
    cast,
    column,
    combined_digest,
    function,
    identifier,
    integer,
    table,
    table_function,
    text,
)

SCHEMA = "ucle"
"""The schema of everything that ucle keeps in a user's database."""


@dataclass(frozen=True)
class KeptTable:
    """A table in the schema: its name, and the names of its columns, all of them text.

    The first `keys` columns identify the subject of a row; there is one row for each subject.
    """

    name: str
    columns: tuple[str, ...]
    keys: int


FACTS = KeptTable("facts", ("relation", "reading", "version", "facts"), keys=2)
"""Statistics measured of relations (`ucle.database.statistics_cache`)."""

LAYOUTS = KeptTable("layouts", ("relation", "reading", "axes", "digest", "table", "keys"), keys=3)
"""Tables that hold inputs in other layouts (`ucle.inputs.stored_layouts`)."""

MODELS = KeptTable("models", ("name", "version", "document"), keys=2)
"""Models whose weights are tables (`ucle.models.stored_models`)."""

KEPT = (FACTS, LAYOUTS, MODELS)
"""Every table that ucle may keep. They are not inputs, and no hint names them."""


def first_file_query(pattern: str) -> str:
    """One of the files that a pattern matches."""
    files = table_function(function("glob", text(pattern)), "files")
    return sql_text(select(column("file")).from_(files).limit(1))


def create_schema(database: str) -> str:
    """Create the schema, where it does not exist yet."""
    place = exp.Table(this=None, db=identifier(SCHEMA), catalog=identifier(database))
    return sql_text(exp.Create(this=place, kind="SCHEMA", exists=True))


def attach(path: str, *, read_only: bool) -> str:
    """Attach a database file, under the name that DuckDB makes of its path."""
    options = [exp.AttachOption(this=exp.var("READ_ONLY"))] if read_only else None
    return sql_text(exp.Attach(this=text(path), expressions=options))


def detach(database: str) -> str:
    """Detach an attached database."""
    return sql_text(exp.Detach(this=identifier(database)))


def use(database: str) -> str:
    """Make a database the one in which names without a database are looked up."""
    return sql_text(exp.Use(this=exp.Table(this=identifier(database))))


def checkpoint(database: str) -> str:
    """Write the log of a database into its file."""
    return sql_text(exp.Command(this="CHECKPOINT", expression=sql_text(identifier(database))))


def drop_table(name: TableName) -> str:
    """Drop a table."""
    return sql_text(exp.Drop(tables=[table(*name.parts)], kind="TABLE"))


def create_kept(database: str, kept_table: KeptTable) -> tuple[str, ...]:
    """Create the schema and a table in it, where they do not exist yet."""
    columns = [
        exp.ColumnDef(this=identifier(name), kind=exp.DataType.build("VARCHAR"))
        for name in kept_table.columns
    ]
    schema = exp.Schema(this=_qualify_kept_table(database, kept_table), expressions=columns)
    return create_schema(database), sql_text(exp.Create(this=schema, kind="TABLE", exists=True))


def kept_columns_query(database: str, kept_table: KeptTable) -> str:
    """Names of the columns of a kept table, in order; none where it does not exist."""
    about = {"database_name": database, "schema_name": SCHEMA, "table_name": kept_table.name}
    columns = table_function(function("duckdb_columns"), "columns")
    query = select(column("column_name")).from_(columns).where(_equal(about))
    return sql_text(query.order_by(ascending(column("column_index"))))


def read_kept(database: str, kept_table: KeptTable, about: Mapping[str, str]) -> str:
    """The rows of a kept table that have the given values."""
    names = [column(name) for name in kept_table.columns]
    query = select(*names).from_(_qualify_kept_table(database, kept_table))
    return sql_text(query.where(_equal(about)) if about else query)


def write_kept(database: str, kept_table: KeptTable, row: Sequence[str]) -> tuple[str, ...]:
    """Put a row into a kept table; it replaces the row with the same keys."""
    about = dict(zip(kept_table.columns[: kept_table.keys], row, strict=False))
    values = exp.Values(expressions=[exp.Tuple(expressions=[text(value) for value in row])])
    new = exp.Insert(this=_qualify_kept_table(database, kept_table), expression=values)
    return delete_kept(database, kept_table, about), sql_text(new)


def delete_kept(database: str, kept_table: KeptTable, about: Mapping[str, str]) -> str:
    """Remove the rows of a kept table that have the given values."""
    rows = _qualify_kept_table(database, kept_table)
    return sql_text(exp.Delete(this=rows, where=exp.Where(this=_equal(about))))


def _qualify_kept_table(database: str, kept_table: KeptTable) -> exp.Table:
    return table(database, SCHEMA, kept_table.name)


def _equal(values: Mapping[str, str]) -> exp.Expr:
    return exp.and_(
        *(exp.EQ(this=column(name), expression=text(value)) for name, value in values.items())
    )


@cache  # run before every execution
def catalogue_query(names: tuple[str, ...], *, schemas: bool = False) -> str:
    """Catalogue rows of the tables and views with these names, in any schema, and of all databases.

    If `schemas` is true, there are rows of all schemas, too.

    The first column is the number of a database. In rows of tables and views, the next ones are
    database, schema, name, number and rows; a view has no rows (NULL). In those of databases, they
    are NULL, the file, which is NULL for one in memory, and the type; the last two columns are the
    search path and the current database, which saves a query for them. In rows of schemas, all but
    database and schema are NULL. DuckDB would take twice as long to plan a join of both.
    """
    listed = [exp.Literal.string(fold_name(name)) for name in names]
    parts = []
    for kind, rows in (("table", column("estimated_size")), ("view", exp.null())):
        columns: list[exp.Expr] = [
            column(x) for x in ("database_oid", "database_name", "schema_name")
        ]
        columns += [column(f"{kind}_name"), column(f"{kind}_oid"), rows, exp.null(), exp.null()]
        is_listed = exp.In(this=_fold_name(column(f"{kind}_name")), expressions=listed)
        relations = table_function(function(f"duckdb_{kind}s"), "relations")
        parts.append(select(*columns).from_(relations).where(is_listed.copy()))
    about: list[exp.Expr] = [column("database_oid"), exp.null(), column("path"), column("type")]
    about += [exp.null(), exp.null(), *_search()]
    databases = table_function(function("duckdb_databases"), "databases")
    parts.append(select(*about).from_(databases))
    if schemas:
        place: list[exp.Expr] = [exp.null(), column("database_name"), column("schema_name")]
        every = table_function(function("duckdb_schemas"), "schemas")
        parts.append(select(*place, *(exp.null() for _ in range(5))).from_(every))
    return sql_text(exp.union(*parts, distinct=False))


def _fold_name(name: exp.Expr) -> exp.Expr:
    """Fold a name like `ucle.foundation.names.fold_name`; DuckDB's ``lower`` folds all letters."""
    letters = string.ascii_uppercase, string.ascii_lowercase
    return function("translate", name, *(exp.Literal.string(x) for x in letters))


def _search() -> list[exp.Expr]:
    setting = function("current_setting", text("search_path"))
    return [add_alias(setting, "search_path"), add_alias(function("current_database"), "current")]


@cache
def search_query() -> str:
    """The search path, as it was set, and the current database."""
    return sql_text(select(*_search()))


@cache
def current_place_query() -> str:
    """The database and schema in which names without a qualifier are created."""
    return sql_text(select(function("current_database"), function("current_schema")))


@cache
def schemas_query() -> str:
    """Database and name of every schema."""
    names = [column("database_name"), column("schema_name")]
    return sql_text(select(*names).from_(table_function(function("duckdb_schemas"), "schemas")))


@cache
def relations_query() -> str:
    """Database, schema and name of every table and view that may be an input."""
    parts = [
        select(*(column(name) for name in ("database_name", "schema_name", f"{kind}_name"))).from_(
            table_function(function(f"duckdb_{kind}s"), "relations")
        )
        for kind in ("table", "view")
    ]
    ours = exp.In(this=column("table_name"), expressions=[text(x.name) for x in KEPT])
    in_schema = exp.EQ(this=column("schema_name"), expression=text(SCHEMA))
    parts[0] = parts[0].where(exp.not_(exp.paren(exp.and_(in_schema, ours))))
    return sql_text(exp.union(*parts, distinct=False))


@cache
def databases_query() -> str:
    """Name, file and type of each database of a connection, and a flag for read-only ones.

    The file is NULL for a database in memory.
    """
    names = [column(name) for name in ("database_name", "path", "type", "readonly")]
    return sql_text(select(*names).from_(_of_engine("duckdb_databases", "databases")))


@cache
def current_database_query() -> str:
    """The name of the database in which names without one are looked up."""
    return sql_text(select(function("current_database")))


def _functions() -> exp.Table:
    return _of_engine("duckdb_functions", "functions")


def _of_engine(name: str, alias: str) -> exp.Table:
    """A table function of DuckDB itself, even where a macro has the same name."""
    called = table_function(function(name), alias)
    called.set("db", identifier("main"))
    called.set("catalog", identifier("system"))
    return called


@cache
def macros_query() -> str:
    """Database, schema and name of every macro that is not built into DuckDB."""
    kinds = [text("macro"), text("table_macro")]
    names = [column(name) for name in ("database_name", "schema_name", "function_name")]
    query = select(*names).distinct().from_(_functions()).where(exp.not_(column("internal")))
    return sql_text(query.where(exp.In(this=column("function_type"), expressions=kinds)))


def engine_functions_query(names: tuple[str, ...]) -> str:
    """Those of some names that functions of DuckDB or of the kernels have."""
    listed = [text(name) for name in names]
    query = select(column("function_name")).distinct().from_(_functions()).where(column("internal"))
    return sql_text(query.where(exp.In(this=column("function_name"), expressions=listed)))


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


@cached_text
def indexes_of(name: Sequence[str]) -> str:
    """A query that has a row if a table of a name, in any schema, has an index or a constraint."""
    found = []
    for kind in ("duckdb_indexes", "duckdb_constraints"):
        query = select(integer(1)).from_(table_function(function(kind), kind))
        found.append(query.where(_equal({"table_name": name[-1]})))
    return sql_text(exp.union(*found, distinct=False).limit(1))


@cache
def kept_tables_query() -> str:
    """Database and name of every table in ucle's schema."""
    tables = table_function(function("duckdb_tables"), "tables")
    query = select(column("database_name"), column("table_name")).from_(tables)
    return sql_text(query.where(_equal({"schema_name": SCHEMA})))


@cache
def transaction_query(*, tells_memory_limit: bool = False) -> str:
    """The number of the transaction; each statement has a new one where none was begun.

    The same statement may tell the kernels the current memory limit of their database.
    """
    limit = function("current_setting", text("memory_limit"))
    told = [function("kernel_memory_limit", limit)] if tells_memory_limit else []
    return sql_text(with_transaction(select(), *told))


@cache
def connections_query() -> str:
    """The number of connections to the databases of the process."""
    counted = function("duckdb_connection_count")
    return sql_text(select(column("count")).from_(table_function(counted, "connections")))


@cache  # run before every execution
def storage_query(names: tuple[TableName, ...]) -> str:
    """The storage of tables, one row each: the position among the names, then the number of rows.

    Next come a digest, and three flags: some segments have updates, are persistent, are not
    persistent. The digest covers the place of each segment, and the extreme values of segments that
    are in no block. DuckDB calls a segment persistent when it lies in a block that a checkpoint has
    written.
    """
    parts = [_storage(place, name) for place, name in enumerate(names)]
    return sql_text(exp.union(*parts, distinct=False) if len(parts) > 1 else parts[0])


SEGMENT = """
    row_group_id column_name column_path segment_id segment_type start count compression block_id
    block_offset additional_block_ids
"""
"""The columns that identify a segment of a table, and those that locate it."""


def _storage(place: int, name: TableName) -> exp.Select:
    in_no_block = exp.LT(this=column("block_id"), expression=integer(0))
    values = exp.Case(
        ifs=[exp.If(this=in_no_block, true=cast(column("stats"), "VARCHAR"))], default=exp.null()
    )
    digest = function("hash", *(column(name) for name in SEGMENT.split()), values)
    rows = select(exp.Count(this=exp.Star())).from_(source_table(TableSource(name, (), None)))
    columns: list[exp.Expr] = [
        integer(place),
        rows.subquery(),
        cast(combined_digest(digest), "VARCHAR"),
        function("bool_or", column("has_updates")),
        function("bool_or", column("persistent")),
        function("bool_or", exp.not_(column("persistent"))),
    ]
    segments = function("pragma_storage_info", text(sql_text(table(*name.parts))))
    return select(*columns).from_(table_function(segments, "segments"))
