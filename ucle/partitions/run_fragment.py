"""Runs a fragment on one partition: a script of SQL on a DuckDB of its own."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping
from dataclasses import field, replace

from ucle.database.engine import DUCKDB
from ucle.database.session import Session
from ucle.errors import CoordinateError
from ucle.foundation.caches import BoundedCache
from ucle.foundation.dataclasses import dataclass
from ucle.foundation.libraries import pa
from ucle.partitions.fragments import Fragment
from ucle.pipeline.artifacts import Planned
from ucle.plan.placement_rules import Spread
from ucle.plan.relation_nodes import TableScan
from ucle.plan.steps import Plan
from ucle.run.execute import execute_script
from ucle.run.loop_stages import infinite_error
from ucle.run.script import Script, script_of
from ucle.sqlgen import Capabilities
from ucle.sqlgen.script import sql_text
from ucle.sqlgen.sql_trees import (
    VALUE,
    add_alias,
    column,
    identifier,
    key_columns,
    select_from,
    table,
)


@dataclass(frozen=True)
class KeyExpectation:
    """An assumption of a program about a key column of an input: a bound, or known ids."""

    tensor: str
    table: str
    column: str
    bound: int
    dictionary: str | None
    read_as: str | None
    """The type of the ids, where it is not the column's own."""

    def query(self, tables: Mapping[str, str]) -> str:
        """Return SQL that finds a coordinate for which the assumption fails, if there is one."""
        key = sql_text(identifier(self.column))
        rows = f"SELECT {key} FROM {sql_text(identifier(self.table))} WHERE"
        if self.dictionary is None:
            return f"{rows} {key} IS NULL OR {key} < 0 OR {key} >= {self.bound} LIMIT 1"
        ids = sql_text(identifier(tables[self.dictionary]))
        value = key if self.read_as is None else f"CAST({key} AS {self.read_as})"
        return f"{rows} {key} IS NULL OR {value} NOT IN (SELECT value FROM {ids}) LIMIT 1"


@dataclass(frozen=True)
class Task:
    """The work of a partition: the plans of the first one and of all others, after all passes.

    `made` are the names of its results, `copied` those of which each partition has a copy, so that
    the first one's is enough.
    """

    first: Plan
    others: Plan
    made: tuple[str, ...]
    copied: frozenset[str]
    coordinates: tuple[KeyExpectation, ...] = ()
    finite: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    key: str | None = None
    """Names the fragment of a loop, of which a process keeps what the next run needs again."""

    @classmethod
    def of(cls, planned: Planned, fragment: Fragment) -> Task:
        """Build the task of a fragment of a program, for all runs of it."""
        # Other fragments read results in the layouts that were planned, and may have other times.
        optimisations = replace(planned.optimisations, columns=None, windows=False)
        alone = replace(planned, threads=1, memory=float("inf"), optimisations=optimisations)
        first, others = (replace(alone, plan=fragment.on(part)).physical for part in (0, 1))
        return cls(
            first,
            others,
            tuple(each.read.step for each in fragment.made),
            frozenset(
                each.read.step
                for each in fragment.made
                if each.placement.spread is Spread.REPLICATED
            ),
            tuple(_coordinates(fragment)),
            fragment.finite,
            f"kept_{secrets.token_hex(8)}" if fragment.repeated else None,
        )

    def plan(self, part: int) -> Plan:
        """Return the plan of a partition."""
        return self.others if part else self.first


def run_fragment(
    session: Session, task: Task, part: int, tables: Mapping[str, str]
) -> dict[str, pa.Table]:
    """Run a task on one partition.

    Args:
        session: a DuckDB that has the tables of the partition.
        task: what runs.
        part: the number of the partition.
        tables: names of the tables that are brought to it, by its names for them.

    Returns:
        The rows of what it makes, keys and values as they are stored.

    Raises:
        ExecutionError: DuckDB refused a statement. Nothing is left behind.
        NaNError: numbers have outgrown their type.
    """
    for each in task.coordinates:
        if found := session.read(each.query(tables), f"input {each.tensor}"):
            raise CoordinateError(
                "the program was not compiled for this coordinate",
                where=f"input {each.tensor}, column {each.column}",
                expected=f"integers from 0 to {each.bound - 1}"
                if each.dictionary is None
                else "an id that was there then",
                found=str(found[0][0]),
                hint="the table has changed: compile the program again",
            )
    plan = task.plan(part)
    script = _script(task, part, session.capabilities)
    executed = execute_script(session, {}, script, held=tables)
    made = {}
    try:
        for name in executed.infinite:
            raise infinite_error(*task.finite[name])
        for name, temporary in executed.outputs.items():
            if part and name in task.copied:
                continue
            place, value = temporary.place
            read = plan.outputs[name]
            names = key_columns(read.type)
            keys = [column(names[axis]) for axis in read.layout.promoted]
            query = select_from(table(place), *keys, add_alias(column(value), VALUE))
            made[name] = session.table(sql_text(query))
    finally:
        for temporary in executed.tables:
            temporary.drop()
    return made


_scripts = BoundedCache[Script](1 << 24)
"""Scripts of loops that this process has run."""


def _script(task: Task, part: int, capabilities: Capabilities) -> Script:
    """Return the script of a partition; that of a loop is written once."""
    key = None if task.key is None else (task.key, part == 0, capabilities)
    return _scripts.get_or_make(
        key, lambda: script_of(task.plan(part), capabilities, finite=task.finite)
    )


def _coordinates(fragment: Fragment) -> Iterator[KeyExpectation]:
    for incoming in fragment.incoming:
        scan = incoming.origin
        if not isinstance(scan, TableScan):
            continue
        source, axes = scan.source, scan.type.axes
        for number, key in enumerate(source.without_features.keys):
            axis = number if source.key_axes is None else source.key_axes[number]
            tile = source.tiles[number] if source.tiles else 0
            bound = -(-axes[axis].bound // tile) if tile else axes[axis].bound
            ids = axes[axis].dictionary if source.is_encoded(number) else None
            yield KeyExpectation(
                incoming.tensor, incoming.name, key, bound, ids, source.key_as(key)
            )


def run_on_tables(
    session: Session,
    task: Task,
    part: int,
    names: Mapping[str, str],
    tables: Mapping[str, pa.Table],
) -> dict[str, pa.Table]:
    """Run a task on tables of this process, which are registered for the duration of the run.

    Args:
        session: a DuckDB.
        task: what runs.
        part: the number of the partition.
        names: names of the tables there, by the task's names for them.
        tables: the tables, by the task's names for them.
    """
    try:
        for name, rows in tables.items():
            session.register(names[name], rows)
        return run_fragment(session, task, part, names)
    finally:
        for name in tables:
            session.unregister(names[name])


def open_partition() -> Session:
    """Open a DuckDB in memory with all available kernels."""
    return DUCKDB.scratch()
