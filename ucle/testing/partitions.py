"""Runs programs on partitions in this process, for comparison with unpartitioned runs."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np

from ucle.database.engine import DUCKDB
from ucle.database.session import Session
from ucle.database.temporary_tables import TemporaryTable
from ucle.foundation.dataclasses import dataclass
from ucle.foundation.libraries import pa
from ucle.partitions.choices import NETWORK, ONCE, Network, Problem, Repeated
from ucle.partitions.cut import cut
from ucle.partitions.distribute import EstimatedSizes, distribute
from ucle.partitions.engine import dictionary_tables, run_distributed
from ucle.partitions.fragments import DistributedPlan
from ucle.partitions.in_process import InProcess
from ucle.partitions.steps import OnPartitions, StepOutputs
from ucle.pipeline.artifacts import Compiled, Planned
from ucle.program import EinsumProgram
from ucle.run.current_data import Prepared
from ucle.run.iterate import Loop, iterate
from ucle.run.prepared_program import PreparedProgram
from ucle.run.results import Result, TensorRelation
from ucle.run.step_engine import LoopEnd
from ucle.sqlgen.script import drop_statement, sql_text
from ucle.sqlgen.sql_trees import identifier


def result_of(outputs: StepOutputs, session: Session, tables: Mapping[str, pa.Table]) -> Result:
    """Return the results of a program, in a session.

    Args:
        outputs: the outputs of the program.
        session: the session that gets the rows.
        tables: the rows of each output, as they are stored.
    """
    kept: dict[str, TemporaryTable] = {}
    places: dict[str, TemporaryTable] = {}
    try:
        for name, rows in outputs.dictionaries.items():
            places[name] = _put(session, rows)
        for name, rows in tables.items():
            kept[name] = _put(session, rows)
    except BaseException:
        for table in (*kept.values(), *places.values()):
            table.drop()
        raise
    compiled = outputs.compiled
    tensors = {
        name: TensorRelation(
            name,
            compiled.plan.shown[name].type,
            outputs.reads[name].layout,
            kept[name],
            session,
            places,
            nonfill=name in compiled.nonfill,
            fixed=compiled.fixed_axes[name],
        )
        for name in tables
    }
    return Result(session, tensors, [*kept.values(), *places.values()], holds=False)


def _put(session: Session, rows: pa.Table) -> TemporaryTable:
    name = f"ucle_{secrets.token_hex(8)}_made"
    session.register(f"{name}_rows", rows)
    try:
        quoted, source = identifier(name), identifier(f"{name}_rows")
        text = f"CREATE TEMPORARY TABLE {sql_text(quoted)} AS SELECT * FROM {sql_text(source)}"
        session.run(text, "result")
    finally:
        session.unregister(f"{name}_rows")
    return TemporaryTable(session, name, sql_text(drop_statement(name, "TABLE")))


def cheapest(compiled: Compiled, partitions: int, network: Network) -> DistributedPlan:
    """Return the distributed plan that is chosen for a compiled program."""
    return distribute(compiled, network, partitions)


def draw_plan(
    compiled: Planned,
    partitions: int,
    seed: int,
    network: Network = NETWORK,
    repeated: Repeated = ONCE,
) -> DistributedPlan:
    """Draw a random distributed plan of a compiled program: every choice of ways is legal."""
    random = np.random.default_rng(seed)
    problem = Problem(compiled.plan, EstimatedSizes(compiled), network, partitions, repeated)
    choice = {name: every[random.integers(len(every))] for name, every in problem.ways.items()}
    return cut(problem, choice)


class StoredResults:
    """Outputs of steps as results in a session, for comparison with those of one machine."""

    def __init__(self, engine: InProcess, session: Session) -> None:
        self._engine = engine
        self._session = session

    def wrap(self, outputs: StepOutputs) -> Mapping[str, StepResult]:
        """Return the outputs of a step as tensors."""
        tables = {x: self._engine.collect(frame) for x, frame in outputs.frames.items()}
        made = result_of(outputs, self._session, tables)
        return {
            x: StepResult(x, outputs.frames[x], made[x], outputs.numbers.get(x))
            for x in outputs.frames
        }

    def save(self, tensors: Mapping[str, StepResult]) -> None:
        """Write tensors to tables of the session."""
        for table, tensor in tensors.items():
            tensor.stored.to_table(table, mode="replace")

    def end(self, tensors: Mapping[str, StepResult], end: LoopEnd) -> Any:
        """Return the outcome of a loop."""
        return SimpleNamespace(tensors=tensors, **vars(end))


@dataclass(frozen=True)
class StepResult:
    """An output of a step on partitions in this process."""

    name: str
    frame: Any
    stored: TensorRelation
    number: Any

    def to_numpy(self) -> Any:
        """Return the tensor as an array."""
        return self.stored.to_numpy()


def prepare_on_partitions(
    program: EinsumProgram,
    database: object,
    carry: Mapping[str, str],
    partitions: int,
    seed: int = 0,
) -> PreparedProgram:
    """Prepare a program for repeated runs on partitions in this process.

    Args:
        program: the program.
        database: the database with its tables.
        carry: the names of inputs, with the outputs that replace them.
        partitions: the number of partitions.
        seed: the seed of the initial placement of rows, and of the plans; with 0, plans are the
            cheapest ones.
    """
    session, steps = _steps(program, database, carry, partitions, seed)
    return PreparedProgram(program._build, session, carry, (), steps)


def iterate_on_partitions(
    program: EinsumProgram, database: object, loop: Loop, partitions: int, seed: int = 0
) -> Any:
    """Run a loop on partitions in this process; arguments as for `prepare_on_partitions`."""
    session, steps = _steps(program, database, loop.carry, partitions, seed)
    return iterate(program._build, session, loop, steps)


def _steps(
    program: EinsumProgram,
    database: object,
    carry: Mapping[str, str],
    partitions: int,
    seed: int,
) -> tuple[Session, OnPartitions]:
    def cut_plan(planned: Planned, repeated: Repeated) -> DistributedPlan:
        if seed == 0:
            return distribute(planned, NETWORK, partitions, repeated)
        return draw_plan(planned, partitions, seed, repeated=repeated)

    session = DUCKDB.open(database)  # type: ignore[arg-type]
    engine = InProcess(program.compiled, session, partitions, seed)
    return session, OnPartitions(engine, StoredResults(engine, session), carry, cut_plan)


def run_on_partitions(
    program: EinsumProgram,
    database: object,
    partitions: int,
    seed: int = 0,
    plan: Callable[[Compiled], DistributedPlan] | None = None,
) -> Result:
    """Run a program on partitions, even if that saves nothing.

    Args:
        program: the program.
        database: the database with its tables.
        partitions: the number of partitions.
        seed: the seed of the initial placement of rows.
        plan: a function that returns the plan; by default, a random one is drawn from the seed.
    """
    make = plan or partial(draw_plan, partitions=partitions, seed=seed)

    def run(prepared: Prepared) -> Result:
        compiled = prepared.compiled
        distributed = make(compiled)
        engine = InProcess(compiled, session, partitions, seed)
        frames = run_distributed(distributed, engine)
        tables = {name: engine.collect(frame) for name, frame in frames.items()}
        ids = dictionary_tables(compiled.plan, engine)
        engine.close()
        return result_of(
            StepOutputs(compiled, frames, compiled.plan.outputs, {}, ids), session, tables
        )

    session = DUCKDB.open(database)  # type: ignore[arg-type]
    return Prepared(program.compiled, program.options).attempt(session, run)
