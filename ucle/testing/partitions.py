"""Runs programs on partitions of this process, for comparison with the whole."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from functools import partial

import numpy as np

from ucle.database.engine import DUCKDB
from ucle.database.session import Session
from ucle.database.temporary_tables import TemporaryTable
from ucle.foundation.libraries import pa
from ucle.partitions.choices import NETWORK, Network, Problem
from ucle.partitions.cut import cut
from ucle.partitions.distribute import EstimatedSizes, distribute
from ucle.partitions.engine import run_distributed
from ucle.partitions.fragments import DistributedPlan
from ucle.partitions.in_process import InProcess
from ucle.pipeline.artifacts import Compiled
from ucle.program import EinsumProgram
from ucle.run.current_data import Prepared
from ucle.run.results import Result
from ucle.sqlgen.script import drop_statement, sql_text
from ucle.sqlgen.sql_trees import identifier


def result_of(
    compiled: Compiled,
    session: Session,
    tables: Mapping[str, pa.Table],
    dictionaries: Mapping[str, pa.Table],
) -> Result:
    """Return the results of a program, in a session that the result holds from then on.

    Args:
        compiled: the program.
        session: where the rows are put.
        tables: the rows of each output, as they are stored.
        dictionaries: those of the labels that have one.
    """
    kept: dict[str, TemporaryTable] = {}
    places: dict[str, TemporaryTable] = {}
    try:
        for name, rows in dictionaries.items():
            places[name] = _put(session, rows)
        for name, rows in tables.items():
            kept[name] = _put(session, rows)
    except BaseException:
        for table in (*kept.values(), *places.values()):
            table.drop()
        raise
    return Result.of(compiled, session, kept, places)


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
    compiled: Compiled, partitions: int, seed: int, network: Network = NETWORK
) -> DistributedPlan:
    """Draw a distributed plan of a compiled program: every choice of ways is legal."""
    random = np.random.default_rng(seed)
    problem = Problem(compiled.plan, EstimatedSizes(compiled), network, partitions)
    choice = {name: every[random.integers(len(every))] for name, every in problem.ways.items()}
    return cut(problem, choice)


def run_on_partitions(
    program: EinsumProgram,
    database: object,
    partitions: int,
    seed: int = 0,
    plan: Callable[[Compiled], DistributedPlan] | None = None,
) -> Result:
    """Run a program on partitions, even where that gains nothing.

    Args:
        program: what runs.
        database: where its tables are.
        partitions: the number of partitions.
        seed: of the initial placement of rows.
        plan: makes the plan; by default one that is drawn from the seed.
    """
    make = plan or partial(draw_plan, partitions=partitions, seed=seed)

    def run(prepared: Prepared) -> Result:
        compiled = prepared.compiled
        distributed = make(compiled)
        engine = InProcess(compiled, session, partitions, seed)
        frames = run_distributed(distributed, engine)
        tables = {name: engine.collect(frame) for name, frame in frames.items()}
        return result_of(compiled, session, tables, engine.dictionaries(compiled.plan))

    session = DUCKDB.open(database)  # type: ignore[arg-type]
    return Prepared(program.compiled, program.options).attempt(session, run)
