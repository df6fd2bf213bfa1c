"""Runs the SQL of a plan on a session and hands its outputs to results.

Temporary objects bear a prefix that no other execution has. When execution ends, well or badly or
interrupted, they are gone, but for one temporary table per output, which goes with its result.
"""

from __future__ import annotations

import contextlib
import logging
import secrets
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ucle.artifacts import Planned
from ucle.database.engine_errors import GONE
from ucle.database.session import Session
from ucle.database.temporary_tables import TemporaryTable, sweep
from ucle.errors import UcleError
from ucle.foundation.dtypes import differs_from
from ucle.foundation.libraries import pa
from ucle.foundation.logs import EXECUTE
from ucle.foundation.names import fresh_prefix
from ucle.inputs.inputs import value_array
from ucle.inputs.states import BoundInput
from ucle.ir.layouts import Coordinates, Layout
from ucle.ir.tensor_types import TensorType
from ucle.plan import steps as plans
from ucle.plan.passes import ONE_BY_ONE
from ucle.plan.sources import InMemory, TableSource
from ucle.plan.steps import Role
from ucle.progress import Progress, Watch
from ucle.sqlgen import Capabilities, emit, infinite_query
from ucle.sqlgen.script import (
    called_functions,
    count_query,
    create_statement,
    doubt_queries,
    drop_statement,
    fill_statements,
    sql_text,
)
from ucle.sqlgen.sql_trees import key_columns
from ucle.udf_kernels import Csr

PLACEHOLDER = f"ucle_{secrets.token_hex(8)}_"
"""Prefix of emitted scripts; each execution puts its own in its place."""


@dataclass(frozen=True)
class Statement:
    """One thing to make, as SQL text with the placeholder for the prefix.

    `create` is None for data from memory. `output` names the result that it is; what is no result
    is dropped when the script has run.
    """

    name: str
    create: str | None
    drop: str
    output: str | None = None
    keep: bool = False
    """Whether results need it: the dictionary of a label that an output has."""
    check: str | None = None
    """A query that has a row if what was made shows that the script is not the right one. It is
    asked when all is made and there is a doubt, or when a later statement fails."""
    at_once: bool = False
    """Whether it is asked before the next statement, which might fail: there are no integers that
    are NaN, and an error would end a transaction."""
    rounds: tuple[str, ...] = ()
    """If there are any, they run instead of `create`; the first ones make what the others fill."""
    own: tuple[str, ...] = ()
    """Drops the tables of rounds, where one has failed."""


@dataclass(frozen=True)
class Script:
    """The statements of a plan for one route."""

    statements: tuple[Statement, ...]
    functions: tuple[str, ...] = ()
    """Kernels to register before it runs; none where they are loaded as an extension."""
    loads: Mapping[str, plans.Load] = field(default_factory=dict)
    """Arrays from memory that are handed over, by the statements that they are."""
    finite: Mapping[str, str] = field(default_factory=dict)
    """Outputs whose numbers should be finite, and queries that have a row if one is not."""
    doubts: tuple[str, ...] = ()
    """Queries that have no row where nothing is wrong by any check, nor by those of `finite`."""

    def reads(self, name: str) -> bool:
        """Whether a statement names a table that is not made by the script."""
        return f"{PLACEHOLDER}{name}" in self._text

    @cached_property
    def _text(self) -> str:
        return "\n".join(
            text for x in self.statements for text in (x.create, *x.rounds) if text is not None
        )


class NaNError(Exception):
    """A NaN that is there because a 0 met a number that has outgrown its type."""


def script_of(
    plan: plans.Plan,
    capabilities: Capabilities,
    *,
    keep_dictionaries: bool = False,
    finite: Collection[str] = (),
) -> Script:
    """Emit a plan as it runs once for a route; executions differ only by their prefix.

    Args:
        plan: after passes that leave no views by themselves.
        capabilities: of the route.
        keep_dictionaries: whether all of them are kept, not only those that results need.
        finite: outputs of which it is asked whether all numbers are finite.
    """
    prefixed = capabilities
    if capabilities.registered:
        prefixed = replace(capabilities, prefix=PLACEHOLDER)
    steps, _ = emit(plan, prefixed, PLACEHOLDER)
    by_name = {PLACEHOLDER + step.name: step.relation for step in plan.steps}
    loads: dict[str, plans.Load] = {}
    results = {PLACEHOLDER + read.step: output for output, read in plan.outputs.items()}
    types = [read.type for read in plan.outputs.values()]
    dictionaries = {
        PLACEHOLDER + x.dictionary for type_ in types for x in type_.axes if x.dictionary
    }
    if keep_dictionaries:
        dictionaries = {PLACEHOLDER + dictionary.name for dictionary in plan.dictionaries}
    statements = []
    called: set[str] = set()
    looked_at = {name: plan.outputs[name] for name in finite if name in plan.outputs}
    infinite = {
        name: infinite_query(PLACEHOLDER + x.step, x.type, x.layout, prefixed)
        for name, x in looked_at.items()
    }
    doubts = [query.copy() for query in infinite.values()]
    failing = {PLACEHOLDER + step.name for step in plan.steps if _makes_integers(step)}
    later = len([step for step in steps if step.name in failing])
    for step in steps:
        later -= step.name in failing
        if step.query is None:
            if isinstance(load := by_name[step.name], plans.Load):
                loads[step.name.removeprefix(PLACEHOLDER)] = load
                statements.append(Statement(step.name, None, ""))
            continue
        queries = [step.query]
        for part in step.rounds:
            queries += [part.query, *(x.query for x in part.tables if x.query is not None)]
        assert step.role is not Role.VIEW, f"{step.name} is left by itself"
        called.update(*map(called_functions, queries))
        tables = dict.fromkeys(x.name for part in step.rounds for x in part.tables)
        own = tuple(sql_text(drop_statement(name, "TABLE")) for name in tables)
        rounds = tuple(map(sql_text, fill_statements(step)))
        create = sql_text(create_statement(step))
        drop = sql_text(drop_statement(step.name, "TABLE"))
        output, check = results.get(step.name), None
        if step.check is not None:
            called.update(called_functions(step.check))
            # What is not finite is a doubt already.
            if not later and output not in infinite:
                doubts.append(step.check.copy())
            check = sql_text(step.check)
        kept = step.name in dictionaries
        at_once = check is not None and later > 0
        statements.append(
            Statement(step.name, create, drop, output, kept, check, at_once, rounds, own)
        )
    called.update(*map(called_functions, doubts))
    asked = tuple(map(sql_text, doubt_queries(doubts)))
    questions = {name: sql_text(query) for name, query in infinite.items()}
    ours = sorted(name for name in called if name.startswith(PLACEHOLDER))
    functions = tuple(name.removeprefix(PLACEHOLDER) for name in ours)
    return Script(tuple(statements), functions, loads, questions, asked)


def _makes_integers(step: plans.Step) -> bool:
    """Whether a statement makes integers of other numbers, which may fail."""
    relations = (step.relation, *(view.relation for view in step.views))
    made = (x for each in relations for x in plans.nodes(each) if x.type.dtype.kind == "i")
    return any(y.type.dtype.kind in "fc" for x in made for y in plans.inputs(x))


@dataclass(frozen=True)
class Executed:
    """What a script leaves behind: the table of each output, and dictionaries by their names."""

    outputs: dict[str, TemporaryTable]
    dictionaries: dict[str, TemporaryTable]
    infinite: list[str] = field(default_factory=list)
    """Those of the outputs that were asked about in which a number is not finite."""

    @property
    def tables(self) -> list[TemporaryTable]:
        """All of them."""
        return [*self.outputs.values(), *self.dictionaries.values()]


@dataclass(frozen=True)
class StepRun:
    """What a step took, and the tuples that it made."""

    seconds: float
    rows: int


def execute_script(
    session: Session,
    inputs: Mapping[str, BoundInput],
    script: Script,
    runs: dict[str, StepRun] | None = None,
    watch: Watch | None = None,
    held: Mapping[str, str] | None = None,
) -> Executed:
    """Run a script.

    Args:
        session: where it runs.
        inputs: of the program; those that lie in memory are handed over.
        script: what runs.
        runs: where it is noted what its statements take, if anywhere.
        watch: is told how far the script is.
        held: names of the tables that it takes as they are, by its names for them.

    Raises:
        ExecutionError: DuckDB refused a statement. Nothing is left behind.
        NaNError: the program has to run as `ucle.replan.plan_annihilated` plans it.
    """
    sweep(session)
    prefix = fresh_prefix()
    started = time.perf_counter()
    with contextlib.ExitStack() as undo:
        if watch is not None:
            undo.enter_context(session.counted())
        execution = _Execution(session, prefix, undo, runs, watch, held or {})
        executed = execution.run(inputs, script)
    if EXECUTE.isEnabledFor(logging.INFO):
        _log_rows(session, executed, time.perf_counter() - started)
    return executed


def _log_rows(session: Session, executed: Executed, seconds: float) -> None:
    row_counts = []
    for name, table in executed.outputs.items():
        ((rows,),) = session.fetch(sql_text(count_query(table.name)))
        row_counts.append(f"{name}: {rows:,} rows")
    EXECUTE.info("executed in %.3f s, %s", seconds, ", ".join(row_counts))


def measure_steps(session: Session, compiled: Planned) -> dict[str, StepRun]:
    """Run a program with a table for every step, and say of each what it took.

    Raises:
        ExecutionError: DuckDB refused a statement. Nothing is left behind.
    """
    script = script_of(compiled.after(ONE_BY_ONE), session.capabilities)
    runs: dict[str, StepRun] = {}
    for table in execute_script(session, compiled.inputs, script, runs).tables:
        table.drop()
    return runs


class _Execution:
    """One run of a script; puts onto `undo` how to take back each thing it does.

    What statements take is noted in `runs`, if there is such a dict.
    """

    def __init__(
        self,
        session: Session,
        prefix: str,
        undo: contextlib.ExitStack,
        runs: dict[str, StepRun] | None,
        watch: Watch | None,
        held: Mapping[str, str],
    ) -> None:
        self._session = session
        self._prefix = prefix
        self._held = {f'"{PLACEHOLDER}{name}"': f'"{table}"' for name, table in held.items()}
        self._undo = undo
        self._runs = runs
        self._watch = watch

    def run(self, inputs: Mapping[str, BoundInput], script: Script) -> Executed:
        session = self._session
        if script.functions:
            registered = session.register_kernels(self._prefix, script.functions)
            self._later(session.remove_kernels, registered)
        for name, data in memory_tables(inputs).items():
            if script.reads(name):
                self._register(name, data)
        executed = Executed({}, {})
        try:
            self._make_all(script, inputs, executed)
            if any(session.fetch(self._own(doubt)) for doubt in script.doubts):
                self._check(script.statements)
                for output, question in script.finite.items():
                    if session.fetch(self._own(question)):
                        executed.infinite.append(output)
        except BaseException:
            for table in executed.tables:
                table.drop()
            raise
        return executed

    def _make_all(
        self, script: Script, inputs: Mapping[str, BoundInput], executed: Executed
    ) -> None:
        """Run all statements."""
        for number, statement in enumerate(script.statements, 1):
            name = statement.name.removeprefix(PLACEHOLDER)
            here = Progress(name, number, len(script.statements))
            self._tell(here)
            load = script.loads.get(name)
            if load is not None:
                self._hand_over(inputs[load.source.tensor].data, load, here)
            else:
                try:
                    self._make(statement, executed, here)
                except UcleError:
                    # It may have met a NaN for which the script is not the right one.
                    with contextlib.suppress(UcleError, *GONE):
                        self._check(script.statements[: number - 1])
                    raise
                if statement.at_once:
                    self._check([statement])
            self._tell(replace(here, share=1.0))

    def _check(self, statements: Sequence[Statement]) -> None:
        """Ask of what was made whether the script is the right one.

        Raises:
            NaNError: it is not.
        """
        for statement in statements:
            if statement.check is not None and self._session.fetch(self._own(statement.check)):
                raise NaNError(statement.name.removeprefix(PLACEHOLDER))

    @cached_property
    def _threads(self) -> int:
        """Asked once, and only where there is a table from memory that threads may share."""
        return self._session.threads

    def _tell(self, progress: Progress) -> None:
        if self._watch is not None:
            self._watch(progress)

    def _hand_over(self, array: NDArray[Any], load: plans.Load, here: Progress) -> None:
        """Register an array from memory in a layout."""
        started = time.perf_counter()
        table = array_table(array, load.type, load.layout)
        if table.nbytes >= LEAST_SHARED:
            table = in_batches(table, self._threads)
        self._register(here.step, table)
        self._note(here.step, started)

    def _make(self, statement: Statement, executed: Executed, here: Progress) -> None:
        """Run one statement; what results need is handed out, the rest is undone at the end."""
        assert statement.create is not None
        name = here.step
        started = time.perf_counter()
        session, drop = self._session, self._own(statement.drop)
        watch = None if self._watch is None else lambda x: self._tell(replace(here, share=x))
        if statement.rounds:
            self._fill(statement, here)
        else:
            session.run(self._own(statement.create), f"step {name}", watch)
        self._note(name, started)
        if statement.output is None and not statement.keep:
            self._later(session.fetch, drop)
        else:
            temporary = TemporaryTable(session, self._prefix + name, drop)
            if statement.output is not None:
                executed.outputs[statement.output] = temporary
            else:
                executed.dictionaries[name] = temporary

    def _fill(self, statement: Statement, here: Progress) -> None:
        """Run the rounds of a statement; of one that fails nothing stays."""
        session, number = self._session, len(statement.rounds)
        try:
            for done, text in enumerate(statement.rounds):
                self._tell(replace(here, share=done / number))
                session.run(self._own(text), f"step {here.step}")
        except BaseException:
            for drop in (*statement.own, statement.drop):
                with contextlib.suppress(*GONE):
                    session.fetch(self._own(drop))
            raise

    def _note(self, name: str, started: float) -> None:
        if self._runs is None:
            return
        seconds = time.perf_counter() - started
        ((rows,),) = self._session.fetch(sql_text(count_query(self._prefix + name)))
        self._runs[name] = StepRun(seconds, rows)

    def _register(self, name: str, data: Any) -> None:
        session, full = self._session, self._prefix + name
        session.register(full, data)
        self._later(session.unregister, full)

    def _own(self, text: str) -> str:
        for name, table in self._held.items():
            text = text.replace(name, table)
        return text.replace(PLACEHOLDER, self._prefix)

    def _later(self, function: Callable[..., Any], *arguments: Any) -> None:
        def undo() -> None:
            with contextlib.suppress(*GONE):
                function(*arguments)

        self._undo.callback(undo)


def memory_tables(inputs: Mapping[str, BoundInput]) -> dict[str, Any]:
    """The COO tables from memory, by the names under which scans read them."""
    return {
        bound.source.origin.name: bound.data
        for bound in inputs.values()
        if isinstance(bound.source, TableSource) and isinstance(bound.source.origin, InMemory)
    }


def array_table(array: NDArray[Any], type_: TensorType, layout: Layout) -> pa.Table:
    """A dense array as a tensor relation: keys, and `val` as a number or a BLOB.

    Tuples that hold only the fill are left out, unless the type says that there is an entry
    everywhere, which may be the fill by chance. The payload is not copied where the array already
    lies in the order of the layout.
    """
    names = key_columns(type_)
    if layout.compressed is not None:
        return _compressed_table(array, type_, layout)
    if layout.tiled:
        return _tile_table(array, type_, layout)
    blocks = array.transpose(layout.promoted + layout.dense)
    shape = tuple(array.shape[axis] for axis in layout.promoted)
    rows = blocks.reshape(*shape, type_.dense_size(layout))
    if type_.entries.full:
        differs = np.ones(rows.shape[:-1], np.bool_)
    else:
        differs = _differing_rows(rows, type_.fill)
    stored = np.nonzero(differs) if shape else ()
    whole = rows.size > 0 and differs.all()  # then nothing is copied
    stored_rows = rows.reshape(-1, rows.shape[-1]) if whole else rows[differs]
    stored_rows = np.ascontiguousarray(stored_rows)
    keys = [
        pa.array(index.astype(Coordinates.of(type_.shape[axis]).numpy))
        for axis, index in zip(layout.promoted, stored, strict=True)
    ]
    value = value_array(stored_rows[:, 0]) if layout.scalar else blob_array(stored_rows)
    columns = [names[axis] for axis in layout.promoted]
    return pa.table([*keys, value], names=[*columns, "val"])


def _compressed_table(array: NDArray[Any], type_: TensorType, layout: Layout) -> pa.Table:
    """The same with lists of what differs from the fill, row by row, in tiles or as a whole."""
    axis = layout.compressed
    assert axis is not None
    matrix = array.transpose(layout.row, axis)
    tile = layout.tile if layout.tiled else max(len(matrix), 1)
    starts = range(0, len(matrix), tile)
    lists = [Csr.of(matrix[start : start + tile], type_.fill) for start in starts]
    stored = [n for n, each in enumerate(lists) if len(each.values)]
    values = pa.array([lists[n].to_bytes() for n in stored], pa.large_binary())
    if not layout.tiled:
        return pa.table([values], names=["val"])
    keys = pa.array(np.array(stored, Coordinates.of(type_.shape[layout.row]).numpy))
    return pa.table([keys, values], names=[key_columns(type_)[layout.row], "val"])


def _tile_table(array: NDArray[Any], type_: TensorType, layout: Layout) -> pa.Table:
    """The same with a tuple for each tile; tiles along the first axis are not copied."""
    tiled, tile, shape = layout.tiled, layout.tile, array.shape
    assert layout.promoted == tiled
    counts = [type_.key_range(layout, axis) for axis in tiled]
    tiles = []
    for numbers in np.ndindex(*counts):
        place = [slice(None)] * len(shape)
        for axis, number in zip(tiled, numbers, strict=True):
            place[axis] = slice(number * tile, number * tile + tile)
        tiles.append(array[tuple(place)])
    whole = type_.entries.full
    stored = [n for n, x in enumerate(tiles) if whole or differs_from(x, type_.fill).any()]
    if tiled == (0,) and len(stored) == len(tiles):
        flat = np.ascontiguousarray(array).reshape(-1)
    else:
        parts = [tiles[n].reshape(-1) for n in stored]
        flat = np.concatenate(parts) if parts else np.empty(0, array.dtype)
    ends = np.cumsum([0, *(tiles[n].size for n in stored)], dtype=np.int64) * array.itemsize
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(flat)]
    blobs = pa.Array.from_buffers(pa.large_binary(), len(stored), buffers)
    places = np.unravel_index(np.array(stored, np.int64), counts)
    keys = [
        pa.array(numbers.astype(Coordinates.of(shape[axis]).numpy))
        for axis, numbers in zip(tiled, places, strict=True)
    ]
    return pa.table([*keys, blobs], names=[*(key_columns(type_)[axis] for axis in tiled), "val"])


LEAST_SHARED = 1 << 20
"""Bytes below which a table from memory is not worth more than one thread."""

ROWS_A_BATCH = 16384
"""DuckDB hands on 2,048 rows at a time; more batches than that many rows ask for, none needs."""


def in_batches(table: pa.Table, threads: int) -> pa.Table:
    """A table in as many batches as keep all threads busy: DuckDB gives each to one thread.

    Where rows are few and arrays long, that is one batch a thread: whatever one large array is
    joined with, DuckDB copies it for each batch.

    >>> table = pa.table({"val": np.zeros(2**18)})
    >>> [len(batch) for batch in in_batches(table, 2).to_batches()][:3]
    [16384, 16384, 16384]
    """
    rows = len(table)
    if threads == 1 or rows < threads or table.nbytes < LEAST_SHARED:
        return table
    each = min(-(-rows // threads), ROWS_A_BATCH)
    slices = [table.slice(start, each) for start in range(0, rows, each)]
    return pa.concat_tables(slices)


def _differing_rows(rows: NDArray[Any], fill: complex) -> NDArray[np.bool_]:
    """Which rows hold an entry that differs from the fill."""
    if not rows.shape[-1]:
        return np.zeros(rows.shape[:-1], np.bool_)
    differs = np.asarray(differs_from(rows[..., 0], fill))  # most rows show it at once
    alike = ~differs
    differs[alike] = differs_from(rows[alike], fill).any(axis=-1)
    return differs


def blob_array(rows: NDArray[Any]) -> pa.Array:
    """The rows of a matrix as one BLOB each, without a copy."""
    count, width = rows.shape
    offsets = np.arange(count + 1, dtype=np.int64) * (width * rows.itemsize)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(rows)]
    return pa.Array.from_buffers(pa.large_binary(), count, buffers)
