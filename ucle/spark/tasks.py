"""What runs on executors: a DuckDB that takes the rows of a partition, and our SQL on it.

Functions here are sent to executors by name, so that ucle has to be there, in the same version.
"""

from __future__ import annotations

import contextlib
import pickle
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ucle.database.engine import DUCKDB
from ucle.database.session import Session
from ucle.errors import ExecutionError, UcleError
from ucle.partitions.run_fragment import Task, run_fragment
from ucle.run.execute import NaNError
from ucle.spark.failures import packed
from ucle.spark.rows import PART, SEED, SOURCE, Slots
from ucle.sqlgen.script import sql_text
from ucle.sqlgen.sql_trees import identifier
from ucle.version import __version__

FLUSH = 1 << 24
"""Bytes of rows that are collected before DuckDB takes them."""


@dataclass(frozen=True)
class Circumstances:
    """What an executor has to agree with, and what it may use."""

    version: str = __version__
    kernels: bool = True
    memory: str | None = None

    def check(self, session: Session) -> None:
        """Whether this process can run what the driver has planned.

        Raises:
            ExecutionError: another version of ucle, or no kernels.
        """
        if self.version != __version__:
            raise ExecutionError(
                "an executor has another version of ucle",
                where="spark",
                expected=f"ucle {self.version}, as the driver has",
                found=f"ucle {__version__}",
                hint="install the same one on all workers",
            )
        if self.kernels and not session.capabilities.kernels:
            raise ExecutionError(
                "an executor has no kernels",
                where="spark",
                expected="compiled kernels, as the driver has",
                found=session.reason,
                hint="install a wheel of ucle there, or a C compiler; or "
                'compile the program with decomposition="relational"',
            )


@dataclass(frozen=True)
class Incoming:
    """A relation that comes to a task, under its name there."""

    name: str
    table: str
    slots: Slots
    copied: bool
    """Whether each partition gets all of it."""


@dataclass(frozen=True)
class FragmentTask:
    """A fragment on the partitions that come to a task, which may be several."""

    task: Task
    incoming: tuple[Incoming, ...]
    outgoing: tuple[tuple[str, Slots], ...]
    circumstances: Circumstances = field(default_factory=Circumstances)

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Run it; rows come and go as `ucle.spark.rows` has them."""
        try:
            yield from self._run(batches)
        except (UcleError, NaNError) as error:
            raise packed(error) from None

    def _run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        slots = {each.slots.number: each.slots for each in self.incoming}
        tables = {each.slots.number: f"all {n}" for n, each in enumerate(self.incoming)}
        with open_worker(self.circumstances) as session:
            store = Store(session)
            parts: set[int] = set()
            for batch in batches:
                for number in pc.unique(batch.column(SOURCE)).to_pylist():
                    rows = batch.filter(pc.equal(batch.column(SOURCE), number))
                    if number == SEED:
                        parts.update(rows.column(PART).to_pylist())
                        continue
                    store.put(tables[number], _own(rows, slots[number], part=True))
            store.flush()
            for part in sorted(parts):
                held = {}
                for each in self.incoming:
                    table = tables[each.slots.number]
                    store.view(each.table, table, part, each.slots)
                    held[each.name] = each.table
                yield from self._made(session, part, held)

    def _made(
        self, session: Session, part: int, held: Mapping[str, str]
    ) -> Iterator[pa.RecordBatch]:
        made = run_fragment(session, self.task, part, held)
        for name, slots in self.outgoing:
            if name in made:
                yield from shared_batches(made[name], slots, [x for _, x in self.outgoing])


@dataclass(frozen=True)
class RowsTask:
    """A function of the rows of a partition, as a table of a DuckDB: it gives one table."""

    function: Any
    table: str
    circumstances: Circumstances = field(default_factory=Circumstances)

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Run it."""
        try:
            with open_worker(self.circumstances) as session:
                store = Store(session)
                for batch in batches:
                    store.put(self.table, batch)
                store.flush()
                if store.has(self.table):
                    yield from self.function(session, self.table).to_batches()
        except (UcleError, NaNError) as error:
            raise packed(error) from None


class Store:
    """Tables of a DuckDB that take rows in batches."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._waiting: dict[str, list[pa.RecordBatch]] = {}
        self._there: set[str] = set()

    def has(self, name: str) -> bool:
        """Whether any rows came."""
        return name in self._there

    def put(self, name: str, rows: pa.RecordBatch) -> None:
        """Take some rows, soon."""
        waiting = self._waiting.setdefault(name, [])
        waiting.append(rows)
        if sum(each.nbytes for each in waiting) > FLUSH:
            self._take(name)

    def flush(self) -> None:
        """Take all that wait."""
        for name in list(self._waiting):
            self._take(name)

    def _take(self, name: str) -> None:
        rows = pa.Table.from_batches(self._waiting.pop(name))
        quoted = sql_text(identifier(name))
        self._session.register("ucle rows", rows)
        try:
            new = name not in self._there
            head = f"CREATE TEMP TABLE {quoted} AS" if new else f"INSERT INTO {quoted}"
            self._session.run(f'{head} SELECT * FROM "ucle rows"', "rows of a partition")
        finally:
            self._session.unregister("ucle rows")
        self._there.add(name)

    def view(self, view: str, name: str, part: int, slots: Slots) -> None:
        """The rows of one partition under a name; none where none came."""
        quoted = sql_text(identifier(view))
        if name in self._there:
            columns = ", ".join(sql_text(identifier(column)) for column in slots.columns)
            source = f'FROM {sql_text(identifier(name))} WHERE "{PART}" = {part}'
            text = f"SELECT {columns} {source}"
        else:
            empty = pa.schema([(n, arrow_type(kind)) for n, (_, kind) in slots.columns.items()])
            self._session.register(f"none of {view}", empty.empty_table())
            text = f"SELECT * FROM {sql_text(identifier(f'none of {view}'))}"
        self._session.run(f"CREATE OR REPLACE TEMP VIEW {quoted} AS {text}", "rows of a partition")


@contextlib.contextmanager
def open_worker(circumstances: Circumstances) -> Iterator[Session]:
    """A DuckDB for a task: what exceeds its memory goes to a folder that is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="ucle_") as folder, DUCKDB.open(":memory:") as session:
        circumstances.check(session)
        session.run(f"SET temp_directory = '{folder}'", "worker")
        session.run("SET threads = 1", "worker")
        if circumstances.memory:
            session.run(f"SET memory_limit = '{circumstances.memory}'", "worker")
        yield session


def _own(rows: pa.RecordBatch, slots: Slots, *, part: bool) -> pa.RecordBatch:
    """The columns of one relation under their own names."""
    names = list(slots.columns)
    arrays = [rows.column(slots.columns[name][0]) for name in names]
    if part:
        names, arrays = [*names, PART], [*arrays, rows.column(PART)]
    return pa.RecordBatch.from_arrays(arrays, names)


def shared_batches(
    rows: pa.Table, slots: Slots, every: Sequence[Slots]
) -> Iterator[pa.RecordBatch]:
    """The rows of a relation in columns that several share."""
    kinds = dict(place for each in every for place in each.columns.values())
    own = {place: name for name, (place, _) in slots.columns.items()}
    names = [SOURCE, *sorted(kinds)]
    fields = [(SOURCE, pa.int32()), *((x, arrow_type(kinds[x])) for x in sorted(kinds))]
    schema = pa.schema(fields)
    columns = [pa.array([slots.number] * len(rows), pa.int32())]
    for place in sorted(kinds):
        kind = arrow_type(kinds[place])
        if place in own:
            columns.append(rows[own[place]].cast(kind))
        else:
            columns.append(pa.nulls(len(rows), kind))
    assert len(names) == len(columns)
    yield from pa.Table.from_arrays(columns, schema=schema).to_batches(max_chunksize=1 << 16)


_ARROW = {
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "binary": pa.binary(),
    "string": pa.string(),
    "smallint": pa.int16(),
    "tinyint": pa.int8(),
    "date": pa.date32(),
}


def arrow_type(kind: str) -> pa.DataType:
    """What Spark's type is in Arrow.

    >>> arrow_type("array<double>")
    ListType(list<element: double>)
    """
    if kind in _ARROW:
        return _ARROW[kind]
    if kind.startswith("array<"):
        return pa.list_(pa.field("element", arrow_type(kind[6:-1])))
    if kind.startswith("struct<"):
        parts = [part.split(":") for part in kind[7:-1].split(",")]
        return pa.struct([(name, arrow_type(inner)) for name, inner in parts])
    raise ExecutionError(
        "ucle does not read columns of this type",
        where="spark",
        expected=", ".join(_ARROW) + ", or arrays of these",
        found=kind,
        hint="cast it in a view",
    )


def copy_of(value: Any) -> bytes:
    """A value as bytes, for a row that a task returns."""
    return pickle.dumps(value)
