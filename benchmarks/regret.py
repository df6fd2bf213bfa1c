"""Whether the cost model tells fast plans from slow ones: predicted against measured time.

For each program and graph the chosen plan, the next best by predicted cost, and plans spread over
the rest are run. A plan that takes many times as long as the best one so far is interrupted and
counts with the time until then, which leaves its rank as it is.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from scipy.stats import spearmanr

import ucle
from benchmarks.measure import THREADS, Table, ratio
from benchmarks.stored import input_tables
from benchmarks.workloads import GRAPHS, attention, chain, gcn
from ucle.costed import decompositions

BEST, SPREAD = 20, 40
SAMPLED = 2000
"""Random decompositions that plans over the rest are picked from."""
SLOWEST = 10.0
"""Times the best measured time after which a plan is interrupted; at least `PATIENCE` seconds."""
PATIENCE = 1.0
NEAR = 3.0
"""Plans within this many times of the best time are told apart by a correlation of their own."""


def _spread(program: ucle.EinsumProgram, rng: np.random.Generator) -> list[ucle.EinsumProgram]:
    """Plans at even steps of the logarithm of predicted cost, up to a hundred times the least."""
    vertices = program.compiled.program.vertices
    choices = {v.name: list(decompositions(v)) for v in vertices}
    found: dict[tuple[Any, ...], ucle.EinsumProgram] = {}
    for _ in range(SAMPLED):
        pinned = {name: some[rng.integers(len(some))] for name, some in choices.items()}
        key = tuple(pinned.values())
        if key in found:
            continue
        try:
            plan = program.with_decomposition(pinned)
        except ucle.UcleError:
            continue  # it needs more memory than there is
        if plan.cost < 100 * program.cost:
            found[key] = plan
    plans = sorted(found.values(), key=lambda plan: plan.cost)
    costs = np.log([plan.cost for plan in plans])
    wanted = np.linspace(costs[0], costs[-1], SPREAD) if plans else []
    picked = dict.fromkeys(int(np.abs(costs - cost).argmin()) for cost in wanted)
    return [plans[at] for at in picked]


def _seconds(plan: ucle.EinsumProgram, connection: Any, limit: float, rounds: int) -> float:
    """The median time of a plan, or the limit where it takes longer."""
    times = []
    for number in range(rounds + 1):
        timer = threading.Timer(limit, connection.interrupt)
        start = time.perf_counter()
        timer.start()
        try:
            plan.execute(connection).close()
        except ucle.UcleError:
            return max(limit, time.perf_counter() - start)
        finally:
            timer.cancel()
        times.append(time.perf_counter() - start)
        if number == 0 and times[0] > limit / 4:
            break  # slow enough for its rank to be known
    return float(np.median(times[1:] or times))


def predicted_and_measured(
    text: str, inputs: Mapping[str, Any], rounds: int, association: str = "free"
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Costs and seconds of plans, those of the chosen one first."""
    rng = np.random.default_rng(0)
    with ucle.connect(threads=THREADS) as connection:
        program = ucle.einsum_program(
            text,
            database=connection,
            inputs=input_tables(connection, inputs),
            association=association,
        )
        plans = program.plans(BEST + 1) + _spread(program, rng)
        costs, seconds = [], []
        for plan in plans:
            limit = max(PATIENCE, SLOWEST * min(seconds, default=10.0))
            costs.append(plan.cost)
            seconds.append(_seconds(plan, connection, limit, rounds))
    return np.array(costs), np.array(seconds)


def _correlation(costs: Any, seconds: Any) -> str:
    return f"{spearmanr(costs, seconds).statistic:.2f}" if len(costs) > 3 else "few plans"


def _rows(rounds: int) -> Iterator[Sequence[str]]:
    if not GRAPHS.is_dir():
        raise SystemExit(f"the graphs are not there: {GRAPHS}")
    regrets = []
    for graph in sorted(path.name for path in GRAPHS.iterdir()):
        for workload in (gcn(graph), attention(graph), chain(graph)):
            costs, seconds = predicted_and_measured(
                workload.program, workload.inputs, rounds, workload.association
            )
            best = seconds.min()
            near = seconds <= NEAR * best
            regrets.append(seconds[0] / best)
            yield (
                workload.name,
                graph,
                f"{seconds[0]:.3f}",
                f"{best:.3f}",
                ratio(seconds[0] / best),
                _correlation(costs[near], seconds[near]),
                _correlation(costs, seconds),
                str(len(seconds)),
            )
    yield ("median", "", "", "", ratio(float(np.median(regrets))), "", "", "")


TABLE = Table(
    "regret",
    "Chosen plans against the best ones measured",
    f"Of each program the {BEST} plans after the chosen one and {SPREAD} spread over the rest;\n"
    f"rank correlation of predicted cost and time among plans within {NEAR:g} times of the best,\n"
    "and of all. Sparse inputs are tables of entries, dense ones arrays from memory.",
    ("program", "graph", "chosen", "best", "chosen / best", "near", "all", "plans"),
    _rows,
)
