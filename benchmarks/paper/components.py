"""The parts of ucle's time (the paper's Table 10), and its next best plans (Tables 2 and 4).

Both run in a worker; sparse inputs are tables of entries and dense ones come from memory, as users
provide them.
"""

from __future__ import annotations

import contextlib
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import ucle
from benchmarks.paper.catalogue import make_task
from benchmarks.paper.tasks import Task
from benchmarks.peaks import MB, forget_peak, peak_since, predicted_seconds
from benchmarks.peers import MEMORY, THREADS
from benchmarks.stored import input_tables
from ucle.database.open_sessions import open_session
from ucle.pipeline import stages
from ucle.run.execute import measure_steps

STAGES = {
    "statistics": ("bind_inputs", "size_inputs"),
    "optimisation": ("choose_plan",),
    "SQL": ("plan_program",),
}
"""The functions of `ucle.pipeline.stages` in each component; the rest of compiling reads the
text."""
PLANS = 3
SLOWEST = 8
"""The number of steps that a profile shows."""
LONG = 30.0
"""Seconds from which on a plan is not run again."""


def components(key: str, rounds: int) -> dict[str, float]:
    """Measure median seconds of loading, statistics, optimisation, SQL and execution, and memory.

    Loading creates the tables; arrays from memory are passed in execution.
    """
    task = make_task(key)
    found: list[dict[str, float]] = []
    for _ in range(rounds):
        with _connection() as connection:
            start = time.perf_counter()
            inputs = input_tables(connection, task.inputs)
            loading = time.perf_counter() - start
            ucle.clear_caches()
            with stage_times() as times:
                start = time.perf_counter()
                program = _compile(task, connection, inputs)
                compiling = time.perf_counter() - start
            start = time.perf_counter()
            program.to_sql()
            times["SQL"] += time.perf_counter() - start
            times["other"] = compiling - sum(times.values()) + time.perf_counter() - start
            before = forget_peak()
            start = time.perf_counter()
            with program.execute(connection):
                times["execution"] = time.perf_counter() - start
            expected = {
                "execution, predicted": predicted_seconds(program),
                "peak, MB": peak_since(before),
                "peak, predicted": program.compiled.peak_memory / MB,
            }
            found.append({"loading": loading, **times, **expected})
    return {name: statistics.median(x[name] for x in found) for name in found[0]}


@contextlib.contextmanager
def stage_times() -> Iterator[dict[str, float]]:
    """Record the seconds spent in each component while the block runs."""
    times = dict.fromkeys(STAGES, 0.0)

    def timed(component: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            start = time.perf_counter()
            try:
                return function(*arguments, **named)
            finally:
                times[component] += time.perf_counter() - start

        return call

    with contextlib.ExitStack() as stack:
        for component, names in STAGES.items():
            for name in names:
                function = timed(component, getattr(stages, name))
                stack.enter_context(mock.patch.object(stages, name, function))
        yield times


def best_plans(key: str, rounds: int) -> list[dict[str, float]]:
    """Measure the best plans: predicted costs and median seconds, in the order of prediction."""
    task = make_task(key)
    with _connection() as connection:
        inputs = input_tables(connection, task.inputs)
        program = _compile(task, connection, inputs)
        plans = program.plans(PLANS)
        times: list[list[float]] = [[] for _ in plans]
        for number in range(rounds + 1):
            for plan, seconds in zip(plans, times, strict=True):
                if seconds and seconds[0] > LONG:
                    continue
                start = time.perf_counter()
                with plan.execute(connection):
                    taken = time.perf_counter() - start
                seconds[:] = [*(seconds if number > 1 else ()), taken]
    return [
        {"cost": plan.cost, "seconds": statistics.median(seconds)}
        for plan, seconds in zip(plans, times, strict=True)
    ]


def profile(key: str, shown: int = SLOWEST) -> str:
    """Return the slowest steps of a task, each run by itself, as `explain` measures them."""
    task = make_task(key)
    with _connection() as connection:
        inputs = input_tables(connection, task.inputs)
        program = _compile(task, connection, inputs)
        with contextlib.closing(open_session(connection)) as session:
            runs = measure_steps(session, program.compiled)
    total = sum(run.seconds for run in runs.values())
    comments = {step.name: step.comment for step in program.compiled.plan.steps}
    slowest = sorted(runs, key=lambda name: runs[name].seconds, reverse=True)[:shown]
    lines = [f"{len(runs)} steps, {total:.3f} s one by one; those that take longest:"]
    for name in slowest:
        run = runs[name]
        lines.append(
            f"{run.seconds:8.3f} s  {run.rows:>12,} rows  {comments.get(name, name)[:100]}"
        )
    return "\n".join(lines)


def _compile(task: Task, connection: Any, inputs: Any) -> ucle.EinsumProgram:
    return ucle.einsum_program(
        task.program, database=connection, inputs=inputs, association=task.association
    )


@contextlib.contextmanager
def _connection() -> Iterator[Any]:
    with contextlib.closing(ucle.connect(threads=THREADS, memory_limit=MEMORY)) as connection:
        connection.execute("SET enable_progress_bar = false")
        yield connection
