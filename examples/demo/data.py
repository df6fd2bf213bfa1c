"""The demo's data: the import graph of the Python installation that runs it, in a DuckDB file.

In: what `ucle.demo.readers` has read. Out: the tables

- ``modules(id, name)``: every module, those without source (built-in, compiled) too,
- ``imports(src, dst, weight)``: how often the source of one module imports another,
- ``identifiers(id, name)`` and ``features(module, identifier, count)``: the bag of words.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import duckdb

from ucle.database.open_sessions import connect
from ucle.demo.read_source import Imports, Words
from ucle.errors import DatabaseError
from ucle.foundation.dataclasses import dataclass
from ucle.foundation.libraries import pa

MARK = "ucle_demo"
"""A table of this name marks a file as one that the demo may replace."""


@dataclass(frozen=True)
class Graph:
    """The number of imports from one module to another; modules are numbered by their place."""

    modules: tuple[str, ...]
    imports: Counter[tuple[int, int]]


@dataclass(frozen=True)
class Bag:
    """The count of each identifier in each module; both are numbered by their place."""

    identifiers: tuple[str, ...]
    features: Counter[tuple[int, int]]


def number_modules(imports: Mapping[str, Imports]) -> Graph:
    """The graph of modules by what they import.

    Modules that stand in no file but that the interpreter knows (``sys``) become vertices where
    something imports them. What cannot be resolved, such as a package that is not installed, is
    left out.
    """
    modules = {name: number for number, name in enumerate(imports)}
    known = modules.keys() | sys.stdlib_module_names
    edges: Counter[tuple[int, int]] = Counter()
    for number, (module, imported) in enumerate(imports.items()):
        for candidates in imported:
            target = next((name for name in candidates if name in known), None)
            if target is not None and target != module:
                edges[number, modules.setdefault(target, len(modules))] += 1
    return Graph(tuple(modules), edges)


def number_identifiers(words: Sequence[Words]) -> Bag:
    """The bag of words of the first modules of a graph."""
    identifiers: dict[str, int] = {}
    features: Counter[tuple[int, int]] = Counter()
    for module, counts in enumerate(words):
        for word, count in counts:
            features[module, identifiers.setdefault(word, len(identifiers))] += count
    return Bag(tuple(identifiers), features)


@contextmanager
def replaced_database(path: Path, *, force: bool = False) -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection to a new file, which stands at `path` when it is complete.

    An interruption or an error leaves what was there before.

    Raises:
        DatabaseError: there is a file that the demo did not make, and `force` is not set, or it
            cannot be written.
    """
    check_replaceable(path, force=force)
    fresh = path.with_name(path.name + ".new")
    fresh.unlink(missing_ok=True)
    try:
        with connect(fresh) as connection:
            yield connection
            connection.execute(
                f"CREATE TABLE {MARK} AS SELECT ? AS python", [sys.version.split()[0]]
            ).fetchall()
        fresh.replace(path)
    except duckdb.Error as error:
        raise DatabaseError(
            "the demo database cannot be written", where=str(path), found=str(error).strip()
        ) from error
    finally:
        fresh.unlink(missing_ok=True)
        fresh.with_name(fresh.name + ".wal").unlink(missing_ok=True)


def store_graph(connection: duckdb.DuckDBPyConnection, graph: Graph) -> None:
    """Make the tables ``modules`` and ``imports``."""
    _store(connection, "modules", _named(graph.modules))
    _store(connection, "imports", _entries(("src", "dst", "weight"), graph.imports))


def store_bag(connection: duckdb.DuckDBPyConnection, bag: Bag) -> None:
    """Make the tables ``identifiers`` and ``features``."""
    _store(connection, "identifiers", _named(bag.identifiers))
    _store(connection, "features", _entries(("module", "identifier", "count"), bag.features))


def _store(connection: duckdb.DuckDBPyConnection, name: str, data: pa.Table) -> None:
    connection.register("data", data)
    connection.execute(f"CREATE TABLE {name} AS SELECT * FROM data").fetchall()
    connection.unregister("data")


def _named(names: tuple[str, ...]) -> pa.Table:
    return pa.table({"id": pa.array(range(len(names)), pa.int32()), "name": list(names)})


def _entries(columns: tuple[str, str, str], values: Counter[tuple[int, int]]) -> pa.Table:
    # In order of the first key, as a table is clustered by the label it is read along.
    rows = sorted((*key, value) for key, value in values.items())
    parts = zip(*rows, strict=True) if rows else ((), (), ())
    types = (pa.int32(), pa.int32(), pa.float64())
    arrays = [pa.array(part, type_) for part, type_ in zip(parts, types, strict=True)]
    return pa.table(arrays, names=list(columns))


def check_replaceable(path: Path, *, force: bool) -> None:
    """Refuse to replace a file that is not a demo database.

    Raises:
        DatabaseError: `path` is such a file, or a folder, and `force` is not set.
    """
    if not path.exists() or (force and path.is_file()):
        return
    if path.is_file():
        with suppress(duckdb.Error), duckdb.connect(str(path), read_only=True) as connection:
            if connection.execute(
                "SELECT count(*) FROM duckdb_tables() WHERE table_name = ?", [MARK]
            ).fetchall() == [(1,)]:
                return
    raise DatabaseError(
        "this is not a demo database, so it is not overwritten",
        where=str(path),
        expected="a path where nothing is yet, or a file that ucle demo made",
        found="a folder" if path.is_dir() else "another file",
        hint=None if path.is_dir() else "--database chooses another path, --force overwrites",
    )
