"""Resolution of table names: the only module that knows how DuckDB resolves them.

A complete name means exactly that table. Missing parts are looked up along the current search
path: temporary objects first, then the schemas of ``SET search_path`` or ``USE``, then the main
schema of the current database. ``a.t`` is a table of a database ``a`` or of a schema ``a``, and
resolves to nothing if both exist. Python variables, which DuckDB uses as tables if it finds no
table, are never resolved.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection, Iterable, Iterator, Sequence

from ucle.database.session import Session
from ucle.foundation.dataclasses import dataclass
from ucle.foundation.names import fold_name
from ucle.plan.sources import DataFile, InputSource, TableName, TableSource
from ucle.sqlgen.database_queries import (
    catalogue_query,
    current_place_query,
    schemas_query,
    search_query,
)

TEMPORARY = "temp"
"""DuckDB's database of temporary objects, which belong to a connection."""

SYSTEM = "system"
SYSTEM_SCHEMAS = ("information_schema", "pg_catalog")
MAIN = "main"

Place = tuple[str, str]
"""A database and a schema in it."""


@dataclass(frozen=True)
class Relation:
    """A table or view, as the catalogue knows it."""

    database: str
    schema: str
    name: str
    number: int
    """The catalogue's number, which changes whenever the relation is created again."""
    rows: int | None
    """The number of rows; None for a view."""
    path: str | None
    """The file of its database; None if the database is in memory."""
    kind: str
    """The type of its database: ``duckdb``, or another system's type."""
    attached: int
    """The number of its database, which changes whenever that is attached again."""

    @property
    def full_name(self) -> TableName:
        """The complete name."""
        return TableName((self.database, self.schema, self.name))


def find_relations(
    session: Session, names: Collection[TableName]
) -> dict[TableName, Relation | None]:
    """Resolve names to tables or views; None for a name that resolves to nothing.

    That is as of now, or as of the first look within `ucle.database.data_versions.observing`.
    """
    return session.look_once("relation", names, lambda unseen: _find_now(session, unseen))


def _find_now(session: Session, names: Collection[TableName]) -> dict[TableName, Relation | None]:
    qualified = any(len(name.parts) == 2 for name in names)
    last = tuple(sorted({name.parts[-1] for name in names}))
    rows = session.fetch(catalogue_query(last, schemas=qualified))
    databases = {row[0]: (row[2], row[3]) for row in rows if row[1] is None}
    found = [row for row in rows if row[3] is not None and row[1] is not None]
    if not found:
        return dict.fromkeys(names)
    setting, current = next(row[-2:] for row in rows if row[1] is None)
    relations = {
        _fold_parts((database, schema, name)): Relation(
            database, schema, name, number, size, *databases[attached], attached
        )
        for attached, database, schema, name, number, size, *_ in found
        if attached in databases
    }
    schemas = {_fold_parts(row[1:3]) for row in rows if row[1] is not None and row[3] is None}
    path = _read_path(setting, current)
    return {name: _first(name, relations, path, schemas) for name in names}


def note_temporary(
    session: Session, parts: Sequence[str], columns: Sequence[tuple[str, str]] | None = None
) -> None:
    """Note a temporary table that was just created, by its full name; it is not looked up then.

    Nor are its columns, if they are given with their types; what was known of those of an earlier
    table of this name is forgotten.
    """
    if session.observed is None:
        return
    database, schema, name = parts
    whole = TableName(tuple(parts))
    relation = Relation(database, schema, name, 0, 0, None, "duckdb", 0)
    session.observed.setdefault("relation", {})[whole] = relation
    session.observed.setdefault("columns", {}).pop(whole, None)
    if columns is not None:
        session.observed["columns"][whole] = list(columns)


def forget_relation(session: Session, parts: Sequence[str]) -> None:
    """Forget what was found of a name, whose table was just made anew."""
    if session.observed is not None:
        session.observed.get("relation", {}).pop(TableName(tuple(parts)), None)


def find_relation(session: Session, name: TableName) -> Relation | None:
    """Resolve a name to a table or view; None if it resolves to nothing."""
    return find_relations(session, [name])[name]


def search_places(session: Session) -> list[Place]:
    """The places where unqualified names are looked up, in order."""
    ((setting, current),) = session.fetch(search_query())
    return list(_read_path(setting, current).places)


def is_taken(session: Session, name: TableName) -> bool:
    """True if a table or view exists exactly where one with this name would be created."""
    *qualifiers, last = name.parts
    ((database, schema),) = session.fetch(current_place_query())
    if len(qualifiers) == 1:
        (only,) = qualifiers
        databases = {fold_name(row[0]) for row in session.fetch(schemas_query())}
        qualifiers = [only, MAIN] if fold_name(only) in databases else [database, only]
    place = qualifiers or [database, schema]
    return find_relation(session, TableName((*place, last))) is not None


def identity(session: Session, source: InputSource) -> str | None:
    """Identify the relation of a source within its database; None if there is none."""
    if not isinstance(source, TableSource):
        return None
    match source.origin:
        case TableName() as name:
            relation = find_relation(session, name)
            return None if relation is None else json.dumps(relation.full_name.parts[1:])
        case DataFile(path):
            return os.path.abspath(path)
    return None


def _first(
    name: TableName,
    relations: dict[tuple[str, ...], Relation],
    path: _SearchPath,
    schemas: Collection[tuple[str, ...]],
) -> Relation | None:
    *qualifiers, last = _fold_parts(name.parts)
    places = _places(qualifiers, path, schemas)
    return next((relations[*place, last] for place in places if (*place, last) in relations), None)


def _places(
    qualifiers: Sequence[str], path: _SearchPath, schemas: Collection[tuple[str, ...]]
) -> Iterable[Place]:
    """The places where a name is looked up, in order."""
    match qualifiers:
        case []:
            return path.places
        case [database, schema]:
            return [(database, schema)]
        case [schema] if schema in SYSTEM_SCHEMAS:
            return [(SYSTEM, schema)]
        case [part]:
            default = path.places[1][0]
            as_schema = [place for place in path.places if place[1] == part] or [(default, part)]
            if all(database != part for database, _ in schemas):
                return as_schema
            if any(place in schemas for place in as_schema):
                return []  # DuckDB calls it ambiguous
            return [place for place in path.of_databases if place[0] == part] or [(part, MAIN)]
    return []


@dataclass(frozen=True)
class _SearchPath:
    """The places where names are looked up, in order.

    Setting entries with only a schema are places in the current database for unqualified names;
    DuckDB does not look there for names qualified by that database.
    """

    places: tuple[Place, ...]
    of_databases: tuple[Place, ...]


def _read_path(setting: str, current: str) -> _SearchPath:
    places, of_databases = [(TEMPORARY, MAIN)], [(TEMPORARY, MAIN)]
    for parts in _entries(setting):
        database, schema = _fold_parts([current, *parts][-2:])
        places.append((database, schema))
        if len(parts) == 2:
            of_databases.append((database, schema))
    return _SearchPath((*places, (fold_name(current), MAIN)), tuple(of_databases))


def _entries(setting: str) -> Iterator[list[str]]:
    """Yield the parts of each entry of DuckDB's setting: database and schema, or a schema."""
    for entry in re.findall(r'(?:"(?:[^"]|"")*"|[^",])+', setting):
        yield [
            quoted.replace('""', '"') if quoted else plain
            for quoted, plain in re.findall(r'"((?:[^"]|"")*)"|([^".]+)', entry)
        ]


def _fold_parts(parts: Iterable[str]) -> tuple[str, ...]:
    return tuple(fold_name(part) for part in parts)
