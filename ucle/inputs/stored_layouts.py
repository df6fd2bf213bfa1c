"""Tables in which ucle has stored inputs in other layouts, and the search for them.

A note in the schema ``ucle`` records the relation that a table was made from, how it was read, and
its data. A digest of all rows identifies the data (`ucle.database.data_versions`), so that a note
is valid in other processes and after changes to other tables. The stored table has a digest, too:
otherwise a change to it would change answers.
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Mapping, Sequence

from ucle.database.data_versions import digest
from ucle.database.engine_errors import EngineError
from ucle.database.own_schema import read_notes, storage, write_note
from ucle.database.session import Session
from ucle.database.statistics_store import kept_text, layout_text, read_digests, read_layout
from ucle.database.table_names import identity
from ucle.errors import InputError, NameResolutionError, UcleError, did_you_mean
from ucle.foundation.dataclasses import dataclass
from ucle.foundation.logs import STORE
from ucle.foundation.names import fold_name, unique_names
from ucle.inputs.states import PlacedInput, SizedInput
from ucle.ir.layouts import Layout
from ucle.plan.sources import TableName, TableSource
from ucle.sqlgen.database_queries import LAYOUTS, SCHEMA, databases_query, kept_tables_query
from ucle.sqlgen.sql_trees import VALUE


def place_inputs(
    session: Session, inputs: Mapping[str, SizedInput], store: bool | Collection[str]
) -> dict[str, PlacedInput]:
    """Find the tables that hold inputs in other layouts and are up to date.

    Args:
        session: where the inputs are.
        inputs: the inputs with their shapes.
        store: names of inputs that are to be stored in the layouts that are read; True for all that
            can be.

    Raises:
        InputError: a named input cannot be stored.
    """
    places = _places(session, inputs, store)
    tables: Collection[tuple[str, str]] = ()
    # In a transaction, `storage` finds no place that may have any.
    if not session.transaction and any(_is_in_database(bound) for bound in inputs.values()):
        tables = _tables(session)
    noted = any(name == LAYOUTS.name for _, name in tables)
    return {
        name: PlacedInput.at(
            bound, _find(session, bound, tables) if noted else (), places.get(name)
        )
        for name, bound in inputs.items()
    }


def _is_in_database(bound: SizedInput) -> bool:
    return isinstance(bound.source, TableSource) and bound.source.from_database


def _find(
    session: Session, bound: SizedInput, tables: Collection[tuple[str, str]]
) -> tuple[TableSource, ...]:
    source, database = bound.source, _keep_where(session, bound)
    if database is None or not isinstance(source, TableSource):
        return ()
    notes = _notes(session, database, bound, source)
    if not notes:
        return ()
    current = digest(session, source)
    usable, unlike = [], []
    for *_, axes, digests, table, columns in notes:
        name = TableName((database, SCHEMA, table))
        noted = read_digests(digests)
        if noted is not None and (noted[0] != current or (database, table) not in tables):
            continue  # the data has changed since, or the user has dropped the table
        copy = _find_noted_table(bound, name, axes, columns)
        if noted is not None and copy is not None and _digest_of(session, copy) == noted[1]:
            usable.append(copy)
        else:
            unlike.append(str(name))
    if unlike and _is_first(session, database, unlike):
        message = "%s is not read from %s: no digest shows that it is what was stored; "
        STORE.warning(f"{message}store= makes it again", source.origin, ", ".join(unlike))
    return tuple(usable)


def _notes(
    session: Session, database: str, bound: SizedInput, source: TableSource, **about: str
) -> list[tuple[str, ...]]:
    """Read notes about stored tables; those of versions up to 0.1 only if there are no newer."""
    about = _about(session, bound, source) | about
    earlier = about | {"relation": str(bound.origin)}
    return read_notes(session, database, LAYOUTS, about) or read_notes(
        session, database, LAYOUTS, earlier
    )


_told: set[tuple[str | int, ...]] = set()


def _is_first(session: Session, database: str, tables: Sequence[str]) -> bool:
    """True if these tables were not reported yet; a process reports them once."""
    paths = [row[1] for row in session.fetch(databases_query()) if row[0] == database]
    place = paths[0] if paths and paths[0] is not None else id(session.connection)
    key = (place, *tables)
    first = key not in _told
    _told.add(key)
    return first


def _find_noted_table(
    bound: SizedInput, name: TableName, axes: str, columns: str
) -> TableSource | None:
    """The stored table that a note describes; None if the note cannot be true."""
    noted = read_layout(axes, columns, len(bound.shape))
    if noted is None:
        return None
    layout, keys, blobs = noted
    return kept_source(bound, name, keys, layout, layout if blobs else None)


def _digest_of(session: Session, table: TableSource) -> str | None:
    """The digest of a stored table; None if it lacks the expected columns."""
    try:
        return digest(session, table)
    except (EngineError, UcleError):
        return None


def check_stored(store: bool | Collection[str], inputs: Collection[str]) -> None:
    """Check that the inputs that ``store=`` names exist.

    Raises:
        NameResolutionError: there is no such input.
    """
    names = () if isinstance(store, bool) else store
    if unknown := [name for name in names if name not in inputs]:
        raise NameResolutionError(
            f"there is no input {unknown[0]} to store",
            where="store",
            expected="one of " + (", ".join(inputs) or "no inputs"),
            found=unknown[0],
            hint=did_you_mean(unknown[0], inputs),
        )


def _places(
    session: Session, inputs: Mapping[str, SizedInput], store: bool | Collection[str]
) -> dict[str, str | None]:
    """The databases that are to store the inputs that ``store=`` names."""
    if isinstance(store, bool):
        names: Collection[str] = inputs if store else ()
    else:
        names = [name for name in store if name in inputs]
    places = {name: _keep_where(session, inputs[name]) for name in names}
    for name, place in places.items():
        if store is not True and place is None:
            raise _cannot_be_kept(name, inputs[name])
    return places


def _keep_where(session: Session, bound: SizedInput) -> str | None:
    """The database that may store an input in other layouts; None if it cannot be stored.

    Positions from a dictionary are valid only in the program that has the dictionary.
    """
    source = bound.source
    if not isinstance(source, TableSource) or any(source.encoded):
        return None
    return storage(session, source)


def _cannot_be_kept(name: str, bound: SizedInput) -> InputError:
    source = bound.source
    if not isinstance(source, TableSource) or not source.from_database:
        obstacle = "data in memory, which no later program could name"
    elif any(source.encoded):
        obstacle = "coordinates that are numbered by a dictionary"
    else:
        obstacle = "a database that is read-only, temporary or of another system, or a transaction"
    return InputError(
        "an input cannot be stored",
        where=f"store, input {name}",
        expected="a table with integer keys, or a file, with a database that may be written to",
        found=obstacle,
    )


@dataclass(frozen=True)
class Storable:
    """An input that is to be stored: its current source, and the database that is to store it."""

    bound: PlacedInput
    source: TableSource
    database: str

    @staticmethod
    def of(bound: PlacedInput) -> Storable | None:
        """The input as a `Storable`; None if it is not to be stored."""
        source, database = bound.source, bound.keep_in
        if database is None or not isinstance(source, TableSource):
            return None
        return Storable(bound, source, database)


def note_kept(
    session: Session, stored: Storable, table: TableName, source: TableSource, of: str
) -> bool:
    """Record that a table holds an input with the digest `of`; False if that was not possible."""
    axes = layout_text(source.layout, blobs=source.kept_as is not None)
    columns = json.dumps(source.keys)
    digests = kept_text(of, digest(session, source))
    about = _about(session, stored.bound, stored.source)
    row = (*about.values(), axes, digests, table.parts[-1], columns)
    return write_note(session, stored.database, LAYOUTS, row)


def free_name(session: Session, stored: Storable, layout: Layout) -> str:
    """A name for the stored table of an input in a layout: its previous name, or an unused one."""
    database, bound, origin = stored.database, stored.bound, stored.source.origin
    axes = layout_text(layout, blobs=choose_kept_layout(bound, layout) is not None)
    start = origin.parts[-1] if isinstance(origin, TableName) else "file"
    stem = layout.name_tensor(start, bound.labels)
    for note in _notes(session, database, bound, stored.source, axes=axes):
        if note[-2].startswith(stem):  # so that a note cannot cause another table to be overwritten
            return note[-2]
    used = {fold_name(name) for place, name in _tables(session) if place == database}
    (name,) = unique_names([stem], used)
    return name


LONG_ARRAY = 1 << 20
"""Bytes from which an array is stored as a BLOB for kernels, and not as a list of numbers."""


def choose_kept_layout(bound: SizedInput, layout: Layout) -> Layout | None:
    """The layout of a stored table that has arrays as BLOBs; None for lists or numbers.

    A list would be converted to an array on every read, which takes longer the longer it is.
    """
    if not layout.plain:
        return layout
    size = math.prod(bound.shape[axis] for axis in layout.dense) * bound.dtype.bytes
    return None if layout.scalar or size < LONG_ARRAY else layout


def kept_source(
    bound: SizedInput,
    name: TableName,
    keys: Sequence[str],
    layout: Layout,
    blobs: Layout | None,
) -> TableSource:
    """The source for a table of ours; `blobs` is a layout from `choose_kept_layout`."""
    dense = () if blobs is not None else tuple(bound.shape[axis] for axis in layout.dense)
    return TableSource(
        name,
        tuple(keys),
        VALUE,
        dense,
        nesting=1 if dense else 0,
        dtype=bound.dtype,
        pairs=bound.dtype.kind == "c",
        encoded=(False,) * len(keys),
        key_axes=layout.promoted,
        kept_as=blobs,
        table=True,
    )


def _about(session: Session, bound: SizedInput, source: TableSource) -> dict[str, str]:
    """Identify a tensor by its relation and by the way in which that is read."""
    reading = {
        "keys": source.keys,
        "value": source.value,
        "dense": source.dense,
        "sum_duplicates": source.sum_duplicates,
        "dtype": source.dtype.value,
        "fill": repr(bound.fill),
        "shape": bound.shape,
    }
    if source.constant != 1:
        reading["constant"] = repr(source.constant)
    if source.presence:
        reading["presence"] = True
    if source.times is not None:
        reading["times"] = repr(source.times)
    if source.tiles:
        reading["tiles"] = source.tiles
    if source.symmetric:
        reading["symmetric"] = True
    if source.ends is not None:
        reading["ends"] = source.ends
    relation = identity(session, source) or str(source.origin)
    return {"relation": relation, "reading": json.dumps(reading)}


def _tables(session: Session) -> set[tuple[str, str]]:
    """The database and name of each table in ucle's schema."""
    return {(database, name) for database, name in session.fetch(kept_tables_query())}
