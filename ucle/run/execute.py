"""Run the SQL of a plan on a session and pass its outputs to results.

Temporary objects have a prefix that is unique to the execution. When execution ends, whether
successfully, with an error or interrupted, they are gone, except for one temporary table per
output, which is dropped with its result. Results of few and small rows make none: one query returns
them, with small arrays as parameters.
"""

from __future__ import annotations

import contextlib
import logging
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property
from typing import Any

from numpy.typing import NDArray

from ucle.database.engine_errors import unless_gone
from ucle.database.session import Session
from ucle.database.temporary_tables import (
    FetchedRows,
    Row,
    Temporary,
    TemporaryColumn,
    TemporaryTable,
    sweep,
)
from ucle.errors import MemoryLimitError, UcleError
from ucle.foundation.dataclasses import dataclass
from ucle.foundation.dtypes import DType
from ucle.foundation.logs import EXECUTE
from ucle.foundation.names import fresh_prefix
from ucle.foundation.progress import Progress, Watch
from ucle.inputs.sparse_entries import SparseEntries
from ucle.inputs.states import BoundInput
from ucle.pipeline.artifacts import Compiled
from ucle.plan import relation_nodes as plans
from ucle.plan.parameters import MOST_PARAMETER_BYTES
from ucle.plan.passes import ONE_BY_ONE
from ucle.plan.sources import InMemory, TableSource
from ucle.run.array_tables import array_table, in_batches, is_shared
from ucle.run.row_values import is_finite, numbers_of, only_value
from ucle.run.script import (
    PLACEHOLDER,
    ROUNDS,
    RowQuery,
    Script,
    ScriptStatement,
    script_of,
)
from ucle.sqlgen.parameter_query import Place
from ucle.sqlgen.script import count_query, sql_text


class NaNError(Exception):
    """Signals a NaN that arose because a 0 was multiplied by a number that overflowed."""


class IllConditionedError(Exception):
    """Signals a sum that may have lost too many digits in the form in which it was computed."""


UNKNOWN = object()
"""Stands for the value of a parameter that only the table in DuckDB has."""


@dataclass
class Executed:
    """The tables that a script leaves: one for each output, and dictionaries by name."""

    outputs: dict[str, Temporary]
    dictionaries: dict[str, TemporaryTable]
    infinite: list[str] = field(default_factory=list)
    """The checked outputs in which a number is not finite."""
    passed: dict[str, list[Any]] = field(default_factory=dict)
    """If several steps of a loop ran: the numbers of all steps before the last one, by output."""
    steps: int = 1
    """The number of steps of a loop that ran."""

    @property
    def tables(self) -> list[Temporary]:
        """All tables."""
        return [*self.outputs.values(), *self.dictionaries.values()]


@dataclass(frozen=True)
class StepRun:
    """The run time of a step, and the number of tuples that it made."""

    seconds: float
    rows: int


def execute_script(
    session: Session,
    inputs: Mapping[str, BoundInput],
    script: Script,
    runs: dict[str, StepRun] | None = None,
    watch: Watch | None = None,
    held: Mapping[str, Row | str] | None = None,
    most: int = 1,
) -> Executed:
    """Run a script.

    Args:
        session: where it runs.
        inputs: the inputs of the program; those in memory are registered.
        script: the script.
        runs: receives the run time and row count of each statement, if given.
        watch: receives the progress of the script.
        held: existing tables, or their names, by the names that the script has for them.
        most: the number of steps of a loop that may run, if the script can make several.

    Raises:
        ExecutionError: DuckDB refused a statement. Nothing is left behind.
        MemoryLimitError: there is not enough memory for the input arrays.
        NaNError: the program has to run as `ucle.pipeline.replan.plan_annihilated` plans it.
        IllConditionedError: it has to run as `ucle.pipeline.replan.plan_safe` plans it.
    """
    sweep(session)
    prefix = fresh_prefix()
    started = time.perf_counter()
    with contextlib.ExitStack() as undo:
        undo.enter_context(session.strict_casts())
        if watch is not None:
            undo.enter_context(session.enable_counting())
        execution = _Execution(session, prefix, undo, runs, watch, held or {}, most)
        try:
            executed = execution.run(inputs, script)
        except MemoryError as error:  # of NumPy or Arrow, as an array is handed over
            raise MemoryLimitError(
                "the system has no memory for an array",
                where="execute",
                expected="a plan within the memory that is free",
                found=str(error) or "MemoryError",
                hint="fewer threads need less memory; tables are read piece by piece",
            ) from error
    if EXECUTE.isEnabledFor(logging.INFO):
        _log_rows(session, executed, time.perf_counter() - started)
    return executed


def _log_rows(session: Session, executed: Executed, seconds: float) -> None:
    row_counts = []
    for name, table in executed.outputs.items():
        ((rows,),) = session.fetch(sql_text(count_query(table.place[0])))
        row_counts.append(f"{name}: {rows:,} rows")
    EXECUTE.info("executed in %.3f s, %s", seconds, ", ".join(row_counts))


def measure_steps(session: Session, compiled: Compiled) -> dict[str, StepRun]:
    """Run a program with a table for every step, and measure each step.

    Raises:
        ExecutionError: DuckDB refused a statement. Nothing is left behind.
    """
    script = script_of(compiled.after(ONE_BY_ONE), session.capabilities)
    runs: dict[str, StepRun] = {}
    for table in execute_script(session, compiled.named_inputs, script, runs).tables:
        table.drop()
    return runs


class _Execution:
    """One run of a script; pushes onto `undo` how to revert each of its effects.

    The run times of statements are recorded in `runs`, if it is a dict.
    """

    def __init__(
        self,
        session: Session,
        prefix: str,
        undo: contextlib.ExitStack,
        runs: dict[str, StepRun] | None,
        watch: Watch | None,
        held: Mapping[str, Row | str],
        most: int,
    ) -> None:
        self._session = session
        self._prefix = prefix
        self._held = held
        self._most = most
        self._undo = undo
        self._runs = runs
        self._watch = watch
        self._handed_over: set[str] = set()

    def run(self, inputs: Mapping[str, BoundInput], script: Script) -> Executed:
        session = self._session
        if script.functions:
            registered = session.register_kernels(self._prefix, script.functions)
            self._later(session.remove_kernels, registered)
        executed = Executed({}, {})
        for name, data in memory_tables(inputs).items():
            if script.reads(name):
                self._register(name, data)
        # In a transaction, rows become a table anyway.
        alone = self._runs is None and not session.transaction
        rows = script.rows if alone else ()
        if any(self._make_row(query, inputs, script, executed) for query in rows):
            return executed
        with _dropping(executed):
            self._make_all(script, inputs, executed)
            self._clear_doubts(script, executed)
        return executed

    def _make_row(
        self, query: RowQuery, inputs: Mapping[str, BoundInput], script: Script, executed: Executed
    ) -> bool:
        """Run a query in place of the statements; return False if they have to run."""
        values = [self._value(place, script.loads, inputs) for place in query.query.parameters]
        if UNKNOWN in values or not query.query.accepts(values):
            return False
        (statement,) = (x for x in script.statements if x.create is not None)
        name = statement.name.removeprefix(PLACEHOLDER)
        here = Progress(name, len(script.statements), len(script.statements))
        for load_name, load in script.loads.items():
            if query.reads(load_name):
                array = inputs[load.source.tensor].loaded
                self._hand_over(array, load, replace(here, step=load_name))
        self._tell(here)
        where, watch = f"step {name}", self._watching(here)
        rows, passed = self._run_rounds(query, script, inputs, where, watch)
        if rows:
            executed.steps = 1 + len(passed[ROUNDS])
        else:
            rows = self._session.run(self._own(query.query.text), where, watch, values)
        if any(value is None for row in rows for value in row):
            return False
        number = rows[0][-1] if rows else None
        made = sorted((row[:-1] for row in rows), key=lambda row: row[: query.keys])
        table = self._session, self._prefix + name, self._own(statement.drop)
        fetched = FetchedRows(*table, made, query.types)
        row: Row = fetched
        if number is None or self._session.is_in_transaction(number):  # with which they go
            row = fetched.table()
        for output, column in statement.columns.items():
            executed.outputs[output] = TemporaryColumn(row, column)
            if column in passed:
                executed.passed[output] = passed[column]
        if statement.output is not None:
            executed.outputs[statement.output] = row
        if script.doubts and not _are_finite(made, query):
            with _dropping(executed):
                fetched.table()
                self._clear_doubts(script, executed)
        self._tell(replace(here, share=1.0))
        return True

    def _run_rounds(
        self,
        query: RowQuery,
        script: Script,
        inputs: Mapping[str, BoundInput],
        where: str,
        watch: Callable[[float], None] | None,
    ) -> tuple[list[tuple[Any, ...]], dict[str, list[Any]]]:
        """Run several steps of a loop; return the row of the last, and the numbers before it.

        There is no row if several cannot run, or the first has a number that is not finite.
        """
        rounds = query.rounds
        if rounds is None or self._most == 1:
            return [], {}
        values = [self._value(place, script.loads, inputs) for place in rounds.parameters]
        if any(value is None or value is UNKNOWN for value in values):
            return [], {}
        ((*made, number),) = self._session.run(self._own(rounds.text), where, watch, values)
        row = dict(zip(rounds.columns, made, strict=True))
        if not row[ROUNDS]:
            return [], {}
        passed = {}
        numbers = {x: y for x, (y, _) in query.columns.items() if query.types[x] != "BLOB"}
        for name, dtype in {**numbers, ROUNDS: DType.INT64}.items():
            *passed[name], row[name] = numbers_of(row[name], dtype)
        return [(*(row[name] for name in query.query.columns), number)], passed

    def _value(
        self, place: Place, loads: Mapping[str, plans.Load], inputs: Mapping[str, BoundInput]
    ) -> Any:
        """The value of a parameter; None where there is no row, or `UNKNOWN`."""
        table, column = place
        name = table.removeprefix(PLACEHOLDER)
        if name == ROUNDS:
            return self._most.to_bytes(8, sys.byteorder)
        if name in loads:
            load = loads[name]
            loaded = inputs[load.source.tensor].loaded
            if isinstance(loaded, SparseEntries):
                lists = loaded.only_list(load.type, load.layout, MOST_PARAMETER_BYTES)
                return UNKNOWN if lists is None else lists
            return only_value(loaded, load.type, load.layout)
        row = self._held[name]
        value = None if isinstance(row, str) else row.value(column)
        return UNKNOWN if value is None else value

    def _clear_doubts(self, script: Script, executed: Executed) -> None:
        """Check what the script has made, if there is a number that may be wrong.

        Raises:
            NaNError: the script is not the right one for the data.
            IllConditionedError: the script is not the right one for the data.
        """
        if not any(self._session.fetch(self._own(doubt)) for doubt in script.doubts):
            return
        self._check(script.statements)
        for output, question in script.finite.items():
            if self._session.fetch(self._own(question)):
                executed.infinite.append(output)

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
                self._hand_over(inputs[load.source.tensor].loaded, load, here)
            else:
                try:
                    self._make(statement, executed, here)
                except UcleError:
                    # It may have met a NaN that requires the plan of `plan_annihilated`.
                    with contextlib.suppress(UcleError):
                        self._check(script.statements[: number - 1])
                    raise
                if statement.at_once:
                    self._check([statement])
            self._tell(replace(here, share=1.0))

    def _check(self, statements: Sequence[ScriptStatement]) -> None:
        """Check from the results of statements that the script is valid.

        Raises:
            NaNError: it is not.
            IllConditionedError: it is not.
        """
        for statement in statements:
            name = statement.name.removeprefix(PLACEHOLDER)
            if statement.check is not None and self._session.fetch(self._own(statement.check)):
                raise NaNError(name)
            if statement.limit is not None and self._session.fetch(self._own(statement.limit)):
                raise IllConditionedError(name)

    @cached_property
    def _threads(self) -> int:
        """The number of threads, queried once, and only if threads may share a table in memory."""
        return self._session.threads

    def _tell(self, progress: Progress) -> None:
        if self._watch is not None:
            self._watch(progress)

    def _watching(self, here: Progress) -> Callable[[float], None] | None:
        """What a statement tells the completed share of itself, if anything is told."""
        return None if self._watch is None else lambda x: self._tell(replace(here, share=x))

    def _hand_over(
        self, array: NDArray[Any] | SparseEntries, load: plans.Load, here: Progress
    ) -> None:
        """Register an array in memory in a layout, unless it is."""
        if here.step in self._handed_over:
            return
        started = time.perf_counter()
        table = array_table(array, load.table_type, load.layout, listed=load.listed)
        if is_shared(table):
            table = in_batches(table, self._threads)
        self._register(here.step, table)
        self._handed_over.add(here.step)
        self._note(here.step, started)

    def _make(self, statement: ScriptStatement, executed: Executed, here: Progress) -> None:
        """Run one statement; keep tables that results need, and have others dropped at the end."""
        assert statement.create is not None
        name = here.step
        started = time.perf_counter()
        session, drop = self._session, self._own(statement.drop)
        if statement.rounds:
            self._fill(statement, here)
        else:
            session.run(self._own(statement.create), f"step {name}", self._watching(here))
        self._note(name, started)
        if statement.output is None and not statement.columns and not statement.keep:
            self._later(session.fetch, drop)
        else:
            temporary = TemporaryTable(session, self._prefix + name, drop)
            for output, column in statement.columns.items():
                executed.outputs[output] = TemporaryColumn(temporary, column)
            if statement.output is not None:
                executed.outputs[statement.output] = temporary
            elif statement.keep:
                executed.dictionaries[name] = temporary

    def _fill(self, statement: ScriptStatement, here: Progress) -> None:
        """Run the rounds of a statement; if one fails, drop everything that they created."""
        session, number = self._session, len(statement.rounds)
        try:
            for done, text in enumerate(statement.rounds):
                self._tell(replace(here, share=done / number))
                session.run(self._own(text), f"step {here.step}")
        except BaseException:
            for drop in (*statement.own, statement.drop):
                with unless_gone():
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
        """The text of a statement with the names of this execution."""
        for name, row in self._held.items():
            placeholder = f'"{PLACEHOLDER}{name}"'
            if placeholder in text:
                text = text.replace(placeholder, f'"{row if isinstance(row, str) else row.name}"')
        return text.replace(PLACEHOLDER, self._prefix)

    def _later(self, function: Callable[..., Any], *arguments: Any) -> None:
        def undo() -> None:
            with unless_gone():
                function(*arguments)

        self._undo.callback(undo)


def _are_finite(rows: Sequence[tuple[Any, ...]], query: RowQuery) -> bool:
    columns = list(enumerate(query.columns.values(), query.keys))
    return all(is_finite(row[n], dtype, fill) for row in rows for n, (dtype, fill) in columns)


@contextlib.contextmanager
def _dropping(executed: Executed) -> Iterator[None]:
    """Drop the tables that a block has made if it fails."""
    try:
        yield
    except BaseException:
        for table in executed.tables:
            table.drop()
        raise


def memory_tables(inputs: Mapping[str, BoundInput]) -> dict[str, Any]:
    """The COO tables in memory, by the names under which scans read them."""
    return {
        bound.source.origin.name: bound.data
        for bound in inputs.values()
        if isinstance(bound.source, TableSource) and isinstance(bound.source.origin, InMemory)
    }
