"""Tasks of executors: a DuckDB receives the rows of a partition, and runs our SQL on them.

Functions here are sent to executors by name, so ucle has to be installed there in the same version.

Spark moves rows one by one, and most of the cost is per row. Here a row that it moves holds some
thousands of ours, as an Arrow stream, with the numbers of their relation and their destination
partition.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import field
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ucle.database.session import Session
from ucle.errors import ExecutionError, UcleError
from ucle.foundation.dataclasses import dataclass
from ucle.foundation.version import __version__
from ucle.partitions.divide import divide_rows, partition_of
from ucle.partitions.placed_files import rows_of_files
from ucle.partitions.run_fragment import Task, run_fragment
from ucle.plan.placement_rules import Placement, Spread
from ucle.run.execute import NaNError
from ucle.spark.failures import pack_error
from ucle.spark.workers import Worker, open_worker
from ucle.sqlgen.script import sql_text
from ucle.sqlgen.sql_trees import identifier

SOURCE, PART, ROWS = "ucle_source", "ucle_part", "ucle_rows"

PLACED = f"{SOURCE} int, {PART} int, {ROWS} binary"
"""The columns of rows in transit, in Spark's notation of a schema."""

MADE = f"{SOURCE} int, {ROWS} binary"
"""The columns of results of fragments."""

SEED = -1
"""The source number of a row that exists for each partition, so that each of them runs."""


class Piece(NamedTuple):
    """A piece of a value that `pack` has made of rows; those of a value come in their order."""

    value: Any
    ends: bool = True
    """True if the value ends with it."""


Pack = tuple[int, int, Piece]
"""The number of a relation, a partition, and rows for it; pieces of others may come between."""

TASK = "task"
"""The owner of tables that are dropped at the end of a task."""

MOST_BYTES = 1 << 26
"""The most bytes of rows that are packed into one value."""

_MADE = pa.schema([(SOURCE, pa.int32()), (ROWS, pa.binary())])
_PLACED = pa.schema([(SOURCE, pa.int32()), (PART, pa.int32()), (ROWS, pa.binary())])


def pack(rows: pa.Table) -> list[bytes]:
    """Pack a table into some values.

    >>> [table] = map(unpack, pack(pa.table({"i": [1, 2]})))
    >>> table["i"].to_pylist()
    [1, 2]
    """
    length = len(rows)
    pieces = max(1, -(-rows.nbytes // MOST_BYTES))
    each = max(1, -(-length // pieces))
    packed = []
    for start in range(0, max(length, 1), each):
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, rows.schema) as stream:
            stream.write_table(rows.slice(start, each))
        packed.append(sink.getvalue().to_pybytes())
    return packed


def unpack(value: Any) -> pa.Table:
    """Return the rows that `pack` has put into a value."""
    with pa.ipc.open_stream(value) as stream:
        return stream.read_all()


def pieces(value: Any, most: int) -> Iterator[Piece]:
    """Yield the pieces of a value, of at most so many bytes.

    >>> [(piece.value, piece.ends) for piece in pieces(b"abcde", 2)]
    [(b'ab', False), (b'cd', False), (b'e', True)]
    """
    for start in range(0, len(value), most):
        yield Piece(value[start : start + most], start + most >= len(value))


def joined(parts: list[Any]) -> Any:
    """Return the value with these pieces.

    >>> joined([b"ab", b"c"])
    b'abc'
    """
    return parts[0] if len(parts) == 1 else b"".join(parts)


def binary_value(value: bytes) -> pa.Array:
    """Return a column of one value.

    `pyarrow.array` imports pandas to see whether it is given a thing of pandas, which takes a
    worker longer than a small task.

    >>> binary_value(b"rows").to_pylist()
    [b'rows']
    """
    ends = np.array([0, len(value)], np.int32)
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(value)]
    return pa.Array.from_buffers(pa.binary(), 1, buffers)


def _integer(number: int) -> pa.Array:
    buffers = [None, pa.py_buffer(np.array([number], np.int32))]
    return pa.Array.from_buffers(pa.int32(), 1, buffers)


def made_batch(number: int, rows: pa.Table) -> Iterator[pa.RecordBatch]:
    """Yield the results of a fragment, as batches of one value each."""
    for value in pack(rows):
        yield pa.record_batch([_integer(number), binary_value(value)], schema=_MADE)


def placed_batch(number: int, part: int, rows: pa.Table) -> Iterator[pa.RecordBatch]:
    """Yield the rows for a partition, as batches of one value each."""
    for value in pack(rows):
        columns = [_integer(number), _integer(part), binary_value(value)]
        yield pa.record_batch(columns, schema=_PLACED)


FLUSH = 1 << 25
"""Bytes of rows that are collected before they are written."""


@dataclass(frozen=True)
class TaskContext:
    """Requirements on an executor, and its limits."""

    version: str = __version__
    kernels: bool = True
    memory: str | None = None

    def check_version(self) -> None:
        """Check that this process has the version of ucle that planned the task.

        Raises:
            ExecutionError: it has another version of ucle.
        """
        if self.version != __version__:
            raise ExecutionError(
                "an executor has another version of ucle",
                where="spark",
                expected=f"ucle {self.version}, as the driver has",
                found=f"ucle {__version__}",
                hint="install the same one on all workers",
            )

    def check(self, session: Session) -> None:
        """Check that this process has kernels, if they are called.

        Raises:
            ExecutionError: there are no kernels, and they are called.
        """
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
class PlaceTask:
    """Packs rows for the partitions that they belong to.

    `number` is that of the relation, `made` the number that the rows had as results of a fragment;
    None where they are Spark's own rows.
    """

    number: int
    placement: Placement
    columns: tuple[str, ...]
    labels: tuple[int, ...]
    """The numbers that stand for the partitions in transit."""
    made: int | None
    context: TaskContext = field(default_factory=TaskContext)

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Run the task."""
        try:
            yield from self._pack_batches(batches)
        except UcleError as error:
            raise pack_error(error) from None

    def _pack_batches(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        self.context.check_version()
        for label, rows in self.divide(self._tables(batches)):
            yield from placed_batch(self.number, label, rows)

    def _tables(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
        for batch in batches:
            if self.made is None:
                yield pa.Table.from_batches([batch])
            else:
                yield from (unpack(value.as_buffer()) for value in batch.column(ROWS))

    def divide(self, tables: Iterator[pa.Table]) -> Iterator[tuple[int, pa.Table]]:
        """Yield the rows for each partition, with its label; small tables are put together."""
        waiting: list[pa.Table] = []
        for table in tables:
            waiting.append(table)
            if sum(each.nbytes for each in waiting) > FLUSH:
                yield from self._place_rows(pa.concat_tables(waiting))
                waiting = []
        if waiting:
            yield from self._place_rows(pa.concat_tables(waiting))

    def _place_rows(self, rows: pa.Table) -> Iterator[tuple[int, pa.Table]]:
        match self.placement.spread:
            case Spread.SINGLE:
                yield self.labels[0], rows
                return
            case Spread.REPLICATED:
                for label in self.labels:
                    yield label, rows
                return
            case Spread.BY_AXES:
                parts = partition_of(rows, self.columns, len(self.labels))
            case _:
                parts = scattered(rows, len(self.labels))
        for label, own in zip(self.labels, divide_rows(rows, parts, len(self.labels)), strict=True):
            if len(own):
                yield label, own


def scattered(rows: pa.Table, partitions: int) -> NDArray[np.int64]:
    """Draw a partition for each row, from its integers: the same if its task runs again.

    Spark may then bring the rows in another order, so that their numbers say nothing.
    """
    integers = [
        field.name
        for field in rows.schema
        if pa.types.is_signed_integer(field.type) and not rows[field.name].null_count
    ]
    if not integers:
        return np.arange(len(rows)) % partitions
    return partition_of(rows, integers, partitions)


@dataclass(frozen=True)
class TaskInput:
    """An input of a task: a relation, its name there, and the columns of its table.

    `kept` is True if its rows are the same each time, and `files` if names of files are brought in
    which the task finds them.
    """

    name: str
    table: str
    schema: pa.Schema
    kept: bool = False
    files: bool = False

    def rows(self, brought: pa.Table) -> Iterator[pa.Table]:
        """Yield the rows of what is brought, in parts."""
        if self.files:
            yield from rows_of_files(brought, self.schema)
        else:
            yield brought


@dataclass(frozen=True)
class FragmentTask:
    """A fragment on the partitions of a task, which may be several."""

    task: Task
    incoming: tuple[TaskInput, ...]
    """The inputs, by their numbers."""
    labels: tuple[int, ...]
    """The numbers that stand for the partitions in transit."""
    context: TaskContext = field(default_factory=TaskContext)

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Run the task."""
        try:
            for number, rows in self.run(self._packs(batches)):
                yield from made_batch(number, rows)
        except (UcleError, NaNError) as error:
            raise pack_error(error) from None

    def _packs(self, batches: Iterator[pa.RecordBatch]) -> Iterator[Pack]:
        parts = {label: part for part, label in enumerate(self.labels)}
        for batch in batches:
            columns = (batch.column(name) for name in (SOURCE, PART, ROWS))
            for source, label, value in zip(*columns, strict=True):
                yield source.as_py(), parts[label.as_py()], Piece(value.as_buffer())

    def run(
        self, packs: Iterator[Pack], parts: Collection[int] = ()
    ) -> Iterator[tuple[int, pa.Table]]:
        """Yield the number and the rows of each result.

        Args:
            packs: the rows of all inputs; `SEED` is the number of a partition alone.
            parts: the partitions, besides those that `packs` name.
        """
        self.context.check_version()
        with open_worker(self.context.memory) as worker:
            session = worker.session
            self.context.check(session)
            store, there = Store(session), set(parts)
            begun = defaultdict[tuple[int, int], list[Any]](list)
            for number, part, piece in packs:
                if number == SEED:
                    there.add(part)
                elif not (self.incoming[number].kept and worker.holds(self.task.key, part)):
                    begun[number, part].append(piece.value)
                    if piece.ends:
                        value = joined(begun.pop((number, part)))
                        for rows in self.incoming[number].rows(unpack(value)):
                            store.put(self._table(number, part), rows)
            store.flush()
            for part in sorted(there):
                self._complete(store, worker, part)
                held, tables = {}, {}
                for number, each in enumerate(self.incoming):
                    tables[each.table] = self._table(number, part)
                    held[each.name] = each.table
                store.view(tables)
                made = run_fragment(session, self.task, part, held)
                for number, name in enumerate(self.task.made):
                    if name in made:
                        yield number, made[name]

    def _table(self, number: int, part: int) -> str:
        """The table of an input's rows; those of kept ones are there for later tasks, too."""
        owner = self.task.key if self.incoming[number].kept else TASK
        return f"{owner} {number} {part}"

    def _complete(self, store: Store, worker: Worker, part: int) -> None:
        """Create the tables of inputs that have no rows on a partition."""
        key = self.task.key
        known = worker.holds(key, part)
        for number, each in enumerate(self.incoming):
            name = self._table(number, part)
            if not (each.kept and known) and not store.has(name):
                store.put(name, each.schema.empty_table())
        store.flush()
        if key is not None:
            worker.keep(key, part)


@dataclass(frozen=True)
class RowsTask:
    """A function of the rows of a partition, given as a table of a DuckDB; it returns one table.

    `made` is True if the rows are packed, as fragments make them. If `most` is given, the function
    is called for the rows met so far whenever they exceed so many bytes.
    """

    function: Callable[[Session, str], pa.Table]
    table: str
    made: bool
    context: TaskContext = field(default_factory=TaskContext)
    most: float = math.inf

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Run the task."""
        try:
            self.context.check_version()
            with open_worker(self.context.memory) as worker:
                self.context.check(worker.session)
                yield from self._run(worker.session, batches)
        except (UcleError, NaNError) as error:
            raise pack_error(error) from None

    def _run(self, session: Session, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        store, size = Store(session), 0
        for rows in self._rows(batches):
            store.put(self.table, rows)
            size += rows.nbytes
            if size > self.most:
                yield from self._apply(session, store)
                size = 0
        yield from self._apply(session, store)

    def _rows(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
        for batch in batches:
            if self.made:
                yield from (unpack(value.as_buffer()) for value in batch.column(ROWS))
            else:
                yield pa.Table.from_batches([batch])

    def _apply(self, session: Session, store: Store) -> Iterator[pa.RecordBatch]:
        store.flush()
        if store.has(self.table):
            yield from self.function(session, self.table).to_batches()
            store.drop(self.table)


class Store:
    """Tables of a DuckDB that take rows in parts."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._waiting: defaultdict[str, list[pa.Table]] = defaultdict(list)
        self._there: set[str] = set()

    def has(self, name: str) -> bool:
        """True if any rows were added."""
        return name in self._there

    def put(self, name: str, rows: pa.Table) -> None:
        """Add some rows, possibly with a delay."""
        waiting = self._waiting[name]
        waiting.append(rows)
        if sum(each.nbytes for each in waiting) > FLUSH:
            self._take(name)

    def flush(self) -> None:
        """Write all delayed rows."""
        for name in list(self._waiting):
            self._take(name)

    def drop(self, name: str) -> None:
        """Drop a table."""
        self._there.discard(name)
        quoted = sql_text(identifier(name))
        self._session.run(f"DROP TABLE IF EXISTS {quoted}", "rows of a partition")

    def _take(self, name: str) -> None:
        rows = pa.concat_tables(self._waiting.pop(name))
        quoted = sql_text(identifier(name))
        self._session.register("ucle rows", rows)
        try:
            new = name not in self._there
            head = f"CREATE OR REPLACE TEMP TABLE {quoted} AS" if new else f"INSERT INTO {quoted}"
            self._session.run(f'{head} SELECT * FROM "ucle rows"', "rows of a partition")
        finally:
            self._session.unregister("ucle rows")
        self._there.add(name)

    def view(self, names: Mapping[str, str]) -> None:
        """Give tables other names: `names` has each by its new one."""
        quoted = [[sql_text(identifier(x)) for x in pair] for pair in names.items()]
        texts = [f"CREATE OR REPLACE TEMP VIEW {x} AS SELECT * FROM {y}" for x, y in quoted]
        if texts:
            self._session.run("; ".join(texts), "rows of a partition")
