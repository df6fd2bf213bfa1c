"""The quality of the cost model: predicted against measured time of plans.

For each program and graph these plans are run: the chosen one, the next best by predicted cost, and
plans spread over the rest; plans with the same script count once. It is a tournament: each plan
runs once, those near the best run in turn, the foremost of them again, and the winner meets the
chosen one in rounds that are counted separately. So the best plan is not the luckiest of many.
Before these last rounds plans are compared by the processor time of all threads, which other
processes hardly disturb.
"""

from __future__ import annotations

import math
import statistics
import textwrap
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.stats import spearmanr

import ucle
from benchmarks.measure import PAUSE, THREADS, Table, ratio
from benchmarks.stored import input_tables
from benchmarks.workloads import GRAPHS, SECOND, Workload, attention, chain, gcn
from ucle.command.calibrate import calibrate
from ucle.ir.layouts import Decomposition
from ucle.optimiser.pricing import decompositions
from ucle.optimiser.sparse_einsum import sparse_einsum
from ucle.pipeline.replan import costed_program
from ucle.plan.prices import ENGINE, Profile
from ucle.run.script import script_of

BEST, SPREAD = 20, 40
SAMPLED = 4000
"""Random decompositions from which plans over the rest are picked."""
DEAREST = 10.0
"""The largest predicted cost of picked plans, as a multiple of the least."""
SLOWEST = 20.0
"""A plan's largest processor time, as a multiple of the best; at least `PATIENCE` seconds."""
PATIENCE = 0.5
NEAR = 3.0
"""Plans within this multiple of the best time have a correlation of their own."""
FOREMOST = 6
"""Plans that are measured once more before the best one is determined."""


@dataclass(frozen=True)
class Took:
    """Measured seconds of a run, and processor seconds of all threads."""

    wall: float
    processor: float


@dataclass(frozen=True)
class Contest:
    """Predicted costs and processor seconds of the plans of a program, the chosen one first.

    `chosen` and `best` are the rounds in which only these two ran; `calibrated` and `against` those
    of the plan that the machine's own profile chooses, and the chosen one.
    """

    costs: np.ndarray[Any, Any]
    seconds: np.ndarray[Any, Any]
    chosen: Sequence[Took]
    best: Sequence[Took]
    calibrated: Sequence[Took]
    against: Sequence[Took]

    def regret(self, clock: str) -> float:
        """The chosen plan's time as a multiple of the best plan's, by a field of `Took`."""
        return _paired(self.chosen, self.best, clock)

    def gain(self) -> float:
        """The time of the machine profile's choice as a multiple of the chosen plan's."""
        return _paired(self.calibrated, self.against, "wall")

    def correlation(self, near: float | None = None) -> str:
        """Rank correlation of cost and time, of plans within `near` times the best, or of all."""
        some = self.seconds <= (near or np.inf) * self.seconds.min()
        costs, seconds = self.costs[some], self.seconds[some]
        return f"{spearmanr(costs, seconds).statistic:.2f}" if len(costs) > 3 else "few plans"


def _paired(some: Sequence[Took], others: Sequence[Took], clock: str) -> float:
    """Return the median ratio of two plans' times over the rounds."""
    pairs = zip(some, others, strict=True)
    return float(statistics.median(getattr(a, clock) / getattr(b, clock) for a, b in pairs))


def contest(workload: Workload, rounds: int, machine: Profile | None = None) -> Contest:
    """Run the plans of a program, and the one that a machine's profile chooses."""
    with ucle.connect(threads=THREADS) as connection:
        tables = input_tables(connection, workload.inputs)
        ucle.clear_caches()  # a plan for data of like shape is no choice
        program = ucle.einsum_program(
            workload.program,
            database=connection,
            profile=ENGINE,
            association=workload.association,
            **tables,
        )
        plans = candidates(program)
        count, other = len(plans), 0
        if machine is not None:
            options = replace(program.options, profile=machine)
            promoted = sparse_einsum(costed_program(program.compiled, options)).promoted
            scripts = [_script(plan) for plan in plans]
            plan = program.with_decomposition(promoted)
            if (script := _script(plan)) not in scripts:
                plans.append(plan)
                scripts.append(script)
            other = scripts.index(script)
        race = _Race(connection, plans)
        race.screen()
        race.run(race.within(NEAR), -(-rounds // 2))
        race.run(race.foremost(FOREMOST), rounds)
        (winner,) = race.foremost(1)
        chosen, best = race.duel(0, winner, rounds)
        return Contest(
            np.array([plan.cost for plan in plans[:count]]),
            np.array(race.medians[:count]),
            chosen,
            best,
            *(race.duel(other, 0, rounds) if other else (chosen, chosen)),
        )


def candidates(program: ucle.EinsumProgram) -> list[ucle.EinsumProgram]:
    """Return the cheapest plans and those spread over the rest, one for each script."""
    plans: dict[str, ucle.EinsumProgram] = {}
    for plan in program.plans(2 * BEST):
        if len(plans) <= BEST:
            plans.setdefault(_script(plan), plan)
    for plan in _spread(program, np.random.default_rng(0)):
        plans.setdefault(_script(plan), plan)
    return list(plans.values())


def _script(plan: ucle.EinsumProgram) -> str:
    """Return the statements that a plan runs, which identify it."""
    script = script_of(plan.compiled.physical, plan._build.target.capabilities)
    return repr(script.statements)


def _spread(program: ucle.EinsumProgram, rng: np.random.Generator) -> Iterator[ucle.EinsumProgram]:
    """Yield plans at even steps of the logarithm of predicted cost, up to `DEAREST`.

    They are the chosen plan with other decompositions of some vertices: if all are drawn, every
    plan is bad.
    """
    compiled = program.compiled
    costed = costed_program(compiled, program.options)
    choices = {
        v.name: [p for p in decompositions(v) if costed.fits(v, p)]
        for v in compiled.program.vertices
    }
    drawn: dict[float, Mapping[str, Decomposition]] = {}
    for _ in range(SAMPLED):
        pinned = dict(compiled.decomposed.decompositions)
        for name in rng.permutation(list(choices))[: rng.integers(1, len(choices) + 1)]:
            pinned[name] = choices[name][rng.integers(len(choices[name]))]
        if (cost := costed.total(pinned)) < DEAREST * program.cost:
            drawn.setdefault(cost, pinned)
    costs = np.array(sorted(drawn))
    for wanted in np.geomspace(costs[0], costs[-1], SPREAD):
        try:
            chosen = drawn[costs[np.abs(costs - wanted).argmin()]]
            yield program.with_decomposition({x: each.promoted for x, each in chosen.items()})
        except ucle.UcleError:  # it needs more memory than is available
            continue


class _Race:
    """Processor times of plans on one connection; the limit for interrupted ones."""

    def __init__(self, connection: Any, plans: Sequence[ucle.EinsumProgram]) -> None:
        self._connection = connection
        self._plans = plans
        self._times: list[list[float]] = [[] for _ in plans]

    @property
    def medians(self) -> list[float]:
        """The median time of each plan."""
        return [statistics.median(times) for times in self._times]

    def within(self, times: float) -> list[int]:
        """Return the plans within a multiple of the best time, and the chosen one."""
        medians = self.medians
        return [n for n, x in enumerate(medians) if n == 0 or x <= times * min(medians)]

    def foremost(self, count: int) -> list[int]:
        """Return the fastest plans."""
        medians = self.medians
        return sorted(range(len(medians)), key=lambda n: medians[n])[:count]

    def screen(self) -> None:
        """Run each plan once; slow ones are interrupted."""
        self._run(0, 60.0)  # the first run finds cold caches
        best = 10.0
        for number in range(len(self._plans)):
            took = self._run(number, max(PATIENCE, SLOWEST * best)).processor
            best = min(best, took)
            self._times[number].append(took)

    def run(self, numbers: Iterable[int], rounds: int) -> None:
        """Run plans in turn, and replace their earlier times."""
        found: dict[int, list[float]] = {number: [] for number in numbers}
        for turn in range(rounds):
            for number in list(found)[:: -1 if turn % 2 else 1]:
                found[number].append(self._run(number).processor)
        for number, times in found.items():
            self._times[number] = times

    def duel(self, one: int, other: int, rounds: int) -> tuple[list[Took], list[Took]]:
        """Time two plans in turn; a plan against itself gets its times twice."""
        times: dict[int, list[Took]] = {one: [], other: []}
        for turn in range(max(rounds, 7)):
            for number in list(times)[:: -1 if turn % 2 else 1]:
                time.sleep(PAUSE)
                times[number].append(self._run(number))
        return times[one], times[other]

    def _run(self, number: int, limit: float = math.inf) -> Took:
        """Run a plan up to a limit of processor time; return the times."""
        wall, processor = time.perf_counter(), time.process_time()
        done = threading.Event()

        def watch() -> None:
            while not done.wait(0.01):
                if time.process_time() - processor > limit:
                    self._connection.interrupt()
                    return

        threading.Thread(target=watch).start()
        try:
            result = self._plans[number].execute(self._connection)
            took = Took(time.perf_counter() - wall, time.process_time() - processor)
            result.close()
        except ucle.UcleError:
            if limit == math.inf:
                raise
            took = Took(time.perf_counter() - wall, limit)
        finally:
            done.set()
        return took


def _rows(rounds: int) -> Iterator[Sequence[str]]:
    if not GRAPHS.is_dir():
        raise SystemExit(f"the graphs are not there: {GRAPHS}")
    regrets = []
    machine = calibrate(THREADS).profile
    for graph in (*sorted(path.name for path in GRAPHS.iterdir()), SECOND):
        for workload in (gcn(graph), attention(graph), chain(graph)):
            found = contest(workload, rounds, machine)
            ratios = found.regret("wall"), found.regret("processor"), found.gain()
            regrets.append(ratios)
            yield (
                workload.name,
                graph,
                *(
                    f"{statistics.median(x.wall for x in some):.3f}"
                    for some in (found.chosen, found.best)
                ),
                *(ratio(x) for x in ratios),
                found.correlation(NEAR),
                found.correlation(),
                str(len(found.seconds)),
            )
    medians = (ratio(float(x)) for x in np.median(regrets, axis=0))
    yield ("median", "", "", "", *medians, "", "", "")


NOTES = f"""
For each program, these plans run: the chosen one, the {BEST} next best by predicted cost, and
{SPREAD} that are spread over the rest, up to {DEAREST:g} times the predicted cost. Plans with the
same script count once. Each plan runs once; those within {NEAR:g} times of the best then run in
turn, and the {FOREMOST} fastest again. Until then, plans are compared by processor time. In the
last rounds, only the winner and the chosen plan take turns: `chosen`, `best` and their ratio are
from these rounds, and so is `processor`, the ratio of their processor times. `calibrated` is the
time of the plan that the calibrated profile of this machine chooses, divided by that of the
chosen plan. `near` and `all` are rank correlations of predicted cost and processor time: among
plans within {NEAR:g} times of the best, and among all `plans`. Plans that were interrupted after
{SLOWEST:g} times the best time count as equal. Sparse inputs are tables of entries, dense inputs
are arrays from memory.
"""

TABLE = Table(
    "regret",
    "Chosen plans compared with the best ones measured",
    textwrap.fill(NOTES.strip(), 99),
    (
        "program",
        "graph",
        "chosen",
        "best",
        "chosen / best",
        "processor",
        "calibrated",
        "near",
        "all",
        "plans",
    ),
    _rows,
)
