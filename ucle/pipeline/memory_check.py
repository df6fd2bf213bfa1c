"""The memory that a finished plan needs, compared with what is free, and plans that need less.

Plans are chosen for the memory that options or DuckDB allow, so that the choice depends on program
and data alone. What is free in the machine, its containers and the limits of the process is read
before a program runs, and only where its plan is expected to hold more than any machine has free.
If a plan does not fit, others are searched for with less memory; if none fits, the program is
refused before its first statement.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from ucle.errors import MemoryLimitError, UcleError
from ucle.foundation.dataclasses import dataclass
from ucle.foundation.free_memory import FreeMemory
from ucle.inputs.states import PlacedInput
from ucle.optimiser.optimise import program_statistics
from ucle.options import Options
from ucle.pipeline.artifacts import Compiled, Planned
from ucle.plan.memory_model import FIXED, RETAINED
from ucle.plan.step_memory import plan_peak, statement_bytes
from ucle.plan.steps import Step

ASKED_FOR = "UCLE_CHECK_MEMORY"
"""The environment variable that asks for the check, as any text that is not empty. It is not made
unasked: the memory of tensors whose sparsity is not known, such as those of searches in graphs, is
predicted many times too high, so that programs would be refused that run well."""
ALWAYS_FREE = 64e6
"""Bytes that count as free everywhere: programs that need no more run without a look."""

TIGHTER = (1.0, 0.5, 0.25, 0.1)
"""Shares of the free memory for which other plans are searched, in this order."""

LIKELY = 0.65
"""The share of the predicted peak that programs hold: predictions are upper estimates.

Of random programs, half hold less than 0.65 of what is predicted, and few more than 1.0 (`make
memory`). A program that fits by this share only runs with limits on DuckDB and on the kernels, and
only where the system refuses memory instead of ending processes, so that the worst is an error.
"""

FACTORS = 2
"""The power of the growth of inputs with which memory is assumed to grow, for a look at more."""

LEAST_ENGINE = 64e6
"""The least bytes for each thread with which DuckDB can spill its joins and aggregations.

Below them it fails at tables of many partitions, each of which has a block in memory.
"""


@dataclass(frozen=True)
class Need:
    """The bytes that a plan holds: all of them, and those that the engine cannot spill."""

    peak: float
    outside: float

    @staticmethod
    def of(planned: Planned) -> Need:
        """Return the bytes of a plan."""
        return Need(planned.peak_memory, planned.outside_memory)

    def within(self, engine: float) -> float:
        """Return the bytes that are held where the engine's account has at most `engine` bytes."""
        return min(self.peak, self.outside + RETAINED * engine)

    def spilled(self, engine: float) -> float:
        """Return the bytes that the engine then writes to disk."""
        return self.peak - self.within(engine)


@dataclass(frozen=True)
class Fitted:
    """A plan that fits, and the bytes that DuckDB may take for it; None for as many as it may.

    `free` are the bytes that were free; kernels may hold no more.
    """

    compiled: Compiled
    free: float
    engine: float | None = None


@dataclass(frozen=True)
class Engine:
    """The bytes of memory and of disk that DuckDB may take."""

    memory: float
    disk: float


@dataclass(frozen=True)
class Budget:
    """What a plan may take: the bytes that are free, and what DuckDB may take."""

    free: FreeMemory
    engine: Engine

    def holds(self, need: Need, memory: float | None = None) -> bool:
        """Return whether a plan fits, where DuckDB spills what is more than it may take.

        Args:
            need: what the plan needs.
            memory: the bytes of memory that DuckDB may take, if not as many as it may by itself.
        """
        most = self.engine.memory if memory is None else memory
        return need.within(most) <= self.free.size and need.spilled(most) <= self.engine.disk

    def share_of_engine(self, planned: Planned) -> float | None:
        """Return the bytes that are left to DuckDB beside a plan; None if they are too few."""
        need = Need.of(planned)
        left = (self.free.size - need.outside) / RETAINED
        enough = left >= LEAST_ENGINE * planned.threads and need.spilled(left) <= self.engine.disk
        return left if enough else None

    def likely_share_of_engine(self, planned: Planned) -> float | None:
        """Return the bytes that DuckDB may take for a plan that is likely to fit; None otherwise.

        Rows in its operators are partly in its account: it may take all that is free.
        """
        fits = not self.free.kills and LIKELY * planned.peak_memory <= self.free.size
        return self.free.size if fits else None


def is_asked_for() -> bool:
    """True if plans are to be compared with the free memory."""
    return bool(os.environ.get(ASKED_FOR))


def find_excess(
    need: Need, look: Callable[[], FreeMemory], engine: Callable[[], Engine]
) -> Budget | None:
    """Return what a plan may take, if it needs more than that; None if it fits.

    Args:
        need: what the plan needs.
        look: finds what is free; it is called for large plans only.
        engine: finds what DuckDB may take; it is called for plans that need more than is free if
            nothing is spilled.

    >>> find_excess(Need(1e6, 1e6), look=None, engine=None)  # little is always free
    """
    if need.peak <= ALWAYS_FREE:
        return None
    free = look()
    if need.peak <= free.size:
        return None
    budget = Budget(free, engine())
    return None if budget.holds(need) else budget


def plan_within_memory(
    compiled: Compiled,
    options: Options,
    budget: Budget,
    plan: Callable[[Compiled, Options], Compiled],
) -> Fitted:
    """Return a plan of the program that fits into what is free.

    A plan that fits as a whole is preferred to one for which DuckDB has to spill more than it would
    by itself, and that to one that is only likely to fit.

    Args:
        compiled: the program, with a plan that does not fit.
        options: those it was compiled with.
        budget: what is free.
        plan: plans the program for other options.

    Raises:
        MemoryLimitError: no plan was found that fits.
    """
    plans = []
    for each in (compiled, *_plan_smaller(compiled, options, budget.free.size, plan)):
        if budget.holds(Need.of(each)):
            return Fitted(each, budget.free.size)
        plans.append(each)
    for share in (budget.share_of_engine, budget.likely_share_of_engine):
        for each in sorted(plans, key=lambda each: each.peak_memory):
            if (engine := share(each)) is not None:
                return Fitted(each, budget.free.size, engine)
    raise _refuse(min(plans, key=lambda each: each.outside_memory), budget)


def _plan_smaller(
    compiled: Compiled,
    options: Options,
    free: float,
    plan: Callable[[Compiled, Options], Compiled],
) -> Iterator[Compiled]:
    """Yield plans that the optimiser chooses where it has less memory."""
    if free <= FIXED:
        return
    for share in TIGHTER:
        memory = min(share * free, options.resources.memory)
        tight = replace(options, resources=replace(options.resources, memory=memory))
        with contextlib.suppress(UcleError):
            yield plan(compiled, tight)


def with_entries(
    compiled: Compiled, entries: Mapping[str, float], options: Options
) -> Compiled | None:
    """Return the program with the statistics of inputs that have grown.

    Args:
        compiled: the program; its decomposition stays.
        entries: the number of entries that inputs have now, by name.
        options: those it was compiled with.

    Returns:
        The program; None where no input has grown, or none by so much that it matters.
    """
    before = {
        name: compiled.inputs[name].statistics.entries
        for name in entries
        if name in compiled.inputs
    }
    growth = max((entries[x] / max(y, 1.0) for x, y in before.items()), default=1.0)
    if growth <= 1.0:
        return None
    if FIXED + (compiled.peak_memory - FIXED) * growth**FACTORS <= ALWAYS_FREE:
        return None
    inputs = {name: _grown(x, entries.get(name, 0.0)) for name, x in compiled.inputs.items()}
    statistics = program_statistics(compiled.program, inputs, options)
    return replace(compiled, inputs=inputs, statistics=statistics)


def need_of_grown(compiled: Compiled, grown: Compiled) -> Need:
    """Return what the present plan of a program needs for inputs that have grown."""
    plan, estimates = compiled.physical, grown.memory_estimates
    return Need(plan_peak(plan, estimates), plan_peak(plan, estimates, outside=True))


def _grown(placed: PlacedInput, entries: float) -> PlacedInput:
    """Return an input with the statistics of more entries, at new coordinates where there are any.

    Both the distinct coordinates and the entries at each of them grow by the same factor, so that
    neither the groups nor the tuples of joins are too few.
    """
    before = placed.statistics
    if entries <= before.entries:
        return placed
    factor = entries / max(before.entries, 1.0)
    distinct = tuple(
        min(factor * v, float(n), entries)
        for v, n in zip(before.distinct, placed.shape, strict=True)
    )
    largest = tuple(min(factor * x, entries) for x in before.largest)
    return replace(
        placed,
        statistics=replace(
            before,
            entries=entries,
            distinct=distinct,
            exact=False,
            largest=largest,
            counted=frozenset(),
            tiles=None,
        ),
    )


def _refuse(planned: Planned, budget: Budget) -> MemoryLimitError:
    step = _find_largest_statement(planned, outside=planned.outside_memory > budget.free.size)
    vertex = planned.program.by_name.get(step.tensor)
    text = step.tensor
    if vertex is not None and step.tensor in planned.decomposed.decompositions:
        text = vertex.text(planned.decomposed.decompositions[step.tensor])
    span = None if vertex is None else vertex.span
    free, need = budget.free, Need.of(planned)
    found = f"about {need.peak:.3g} bytes, {need.outside:.3g} of which cannot be spilled"
    if need.outside <= free.size and need.spilled(budget.engine.memory) > budget.engine.disk:
        found += f" (there is disk for {budget.engine.disk:.3g})"
    return MemoryLimitError(
        "the program needs more memory than is free",
        where=str(span) if span else f"statement of {step.tensor}",
        expected=f"at most {free.size:.3g} bytes, which {free.limit} leaves",
        found=f"{found}; most of them for {text}",
        hint=_advise(planned, free),
    )


def _find_largest_statement(planned: Planned, *, outside: bool) -> Step:
    estimates = planned.memory_estimates
    return max(
        planned.physical.steps, key=lambda x: statement_bytes(x, estimates, outside=outside)[0]
    )


def _advise(planned: Planned, free: FreeMemory) -> str:
    advice = [f"raise {free.limit}" if free.limit.startswith("ulimit") else "free memory"]
    if planned.threads > 1:
        advice.append("use fewer threads, each of which has states and rows of its own")
    if any(type_.dtype.bytes > 4 for type_ in planned.program.types.values()):
        advice.append("use element types of fewer bytes")
    if planned.decomposed.search is None:
        advice.append("let decomposition='auto' choose shorter arrays")
    return ", or ".join(advice)
