"""The memory that a finished plan needs, compared with what is free, and plans that need less.

Plans are chosen for the memory that options or DuckDB allow, so that the choice depends on program
and data alone. What is free in the machine, its containers and the limits of the process is read
before a program runs, and only where its plan is expected to hold more than any machine has free.

If a plan does not fit, others are searched for with less memory. A program is refused before its
first statement where it is certain that nothing fits, or likely by far. Predictions are upper
estimates, and far too high for tensors whose sparsity is not known: what may still fit runs, and
DuckDB and the kernels may take only so much together that the process is not ended. What they
refuse then is an error, after which the next plan is tried.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import islice

from ucle.errors import MemoryLimitError, UcleError
from ucle.foundation.dataclasses import dataclass
from ucle.foundation.free_memory import PER_THREAD, FreeMemory
from ucle.inputs.states import PlacedInput
from ucle.optimiser.made_dense import number_ids
from ucle.optimiser.optimise import program_statistics
from ucle.options import Options
from ucle.pipeline.artifacts import Compiled, Planned
from ucle.plan.memory_model import FIXED, RETAINED, Account
from ucle.plan.step_memory import plan_peak, statement_bytes
from ucle.plan.steps import Step

SWITCH = "UCLE_CHECK_MEMORY"
"""The environment variable that turns the check off, by the text ``0``."""
ALWAYS_FREE = 64e6
"""Bytes that count as free everywhere: programs that need no more run without a look."""

TIGHTER = (1.0, 0.5, 0.25, 0.1)
"""Shares of the free memory for which other plans are searched, in this order."""

CLOSE = 0.6
"""The share of what is free from which on a plan that is predicted to fit has limits, too.

They are for what predictions leave out, where the system ends processes that take too much.
"""

HOPELESS = 8.0
"""How many times of what is free a plan may be predicted to hold and still be tried.

Of random programs, half hold less than 0.65 of what is predicted, and few more than 1.0 (`make
memory`); where patterns of entries meet more seldom than by chance, it may be a tenth.
"""

FACTORS = 2
"""The power of the growth of inputs with which memory is assumed to grow, for a look at more."""

LEAST_ENGINE = 64e6
"""The least bytes for each thread with which DuckDB can spill its joins and aggregations.

Below them it fails at tables of many partitions, each of which has a block in memory.
"""

GROWN = 2.0
"""How many times of what is predicted kernels may hold: states double as they grow."""

LEAST_SHARES = 0.25, 0.75
"""The least shares that DuckDB has of what rows leave, tried in turn.

Which of the two sides is predicted too high is only known when the other one has had too little.
"""

LEAST_TRIED = 8e6
"""The least bytes of DuckDB and of kernels for which it is worth to try a plan."""


@dataclass(frozen=True)
class Need:
    """The bytes that a plan holds: all of them, and parts of them.

    `outside` are those that the engine cannot spill, `unbounded` those of them that kernels do not
    count either, and `certain` those that are outside of the engine's account whatever the sparsity
    of the tensors that the program computes.
    """

    peak: float
    outside: float
    unbounded: float = 0.0
    certain: float = 0.0

    @staticmethod
    def of(planned: Planned) -> Need:
        """Return the bytes of a plan."""
        return Need(
            planned.peak_memory,
            planned.outside_memory,
            planned.count_memory(Account.NOBODY),
            planned.count_memory(Account.OUTSIDE, certain=True),
        )

    def within(self, engine: float) -> float:
        """Return the bytes that are held where the engine's account has at most `engine` bytes."""
        return min(self.peak, self.outside + RETAINED * engine)

    def spilled(self, engine: float) -> float:
        """Return the bytes that the engine then writes to disk."""
        return self.peak - self.within(engine)


@dataclass(frozen=True)
class Limits:
    """The bytes that DuckDB may take, and that kernels may hold beside them."""

    engine: float
    kernels: float


@dataclass(frozen=True)
class Fitted:
    """A plan that fits into so many bytes, by limits unless it does so by itself."""

    compiled: Compiled
    free: float
    limits: Limits | None = None


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

    def holds(self, need: Need) -> bool:
        """Return whether a plan fits, where DuckDB spills what is more than it may take."""
        most = self.engine.memory
        return need.within(most) <= self.free.size and need.spilled(most) <= self.engine.disk

    def holds_easily(self, need: Need) -> bool:
        """Return whether a plan fits even if it holds more than is predicted."""
        most = CLOSE if self.free.kills else 1.0
        within = need.within(self.engine.memory)
        return within <= most * self.free.size and self.holds(need)

    def bounding(self, planned: Planned) -> Limits | None:
        """Return limits for a plan that is predicted to fit, but not easily; None for others.

        Rows in DuckDB's operators are partly in its account: it may take all but what kernels hold.
        """
        if not self.holds(Need.of(planned)):
            return None
        return self._shared(planned, 0.0, LEAST_SHARES[0])

    def spilling(self, planned: Planned) -> Limits | None:
        """Return limits within which a plan is predicted to run, as DuckDB spills more of it."""
        need = Need.of(planned)
        left = (self.free.size - need.outside) / RETAINED
        enough = left >= LEAST_ENGINE * planned.threads and need.spilled(left) <= self.engine.disk
        return Limits(left, self._kernels(planned, left)) if enough else None

    def trying(self, planned: Planned) -> Iterator[Limits]:
        """Yield limits within which a plan may run although it is predicted to hold more.

        Where the system ends processes that take too much, DuckDB and the kernels share what rows
        leave. Elsewhere the system refuses memory, and each may have all, with what may be lost
        for threads.
        """
        if not self.free.kills:
            every = self.without_margin(planned.threads)
            yield Limits(every, every)
            return
        rows = Need.of(planned).unbounded
        for least in LEAST_SHARES:
            limits = self._shared(planned, rows, least)
            if limits is not None:
                yield limits

    def without_margin(self, threads: int) -> float:
        """Return the bytes that are free if threads lose none of their addresses."""
        return self.free.size + threads * PER_THREAD

    def _shared(self, planned: Planned, rows: float, least: float) -> Limits | None:
        left = (self.free.size - rows) / RETAINED
        engine = max(left - planned.state_memory, least * left)
        kernels = self._kernels(planned, engine + rows)
        return Limits(engine, kernels) if min(engine, kernels) >= LEAST_TRIED else None

    def _kernels(self, planned: Planned, others: float) -> float:
        """Return the bytes that kernels may hold beside those of others."""
        if not self.free.kills:
            return self.free.size
        return min(max(GROWN * planned.state_memory, LEAST_TRIED), self.free.size - others)


def is_on() -> bool:
    """True unless plans are not to be compared with the free memory."""
    return os.environ.get(SWITCH) != "0"


def find_excess(
    peak: float,
    need: Callable[[], Need],
    look: Callable[[], FreeMemory],
    engine: Callable[[], Engine],
) -> Budget | None:
    """Return what a plan may take, if it needs more or nearly as much; None if it fits easily.

    Args:
        peak: the bytes that the plan holds.
        need: finds what else it needs.
        look: finds what is free; it is called for large plans only.
        engine: finds what DuckDB may take; it and `need` are called for plans that do not fit
            easily if nothing is spilled.

    >>> find_excess(1e6, need=None, look=None, engine=None)  # little is always free
    """
    if peak <= ALWAYS_FREE:
        return None
    free = look()
    if peak <= (CLOSE if free.kills else 1.0) * free.size:
        return None
    budget = Budget(free, engine())
    return None if budget.holds_easily(need()) else budget


def plans_within_memory(
    compiled: Compiled,
    options: Options,
    budget: Budget,
    plan: Callable[[Compiled, Options], Compiled],
    *,
    grown: Compiled | None = None,
) -> Iterator[Fitted]:
    """Yield plans of the program that may fit into what is free, for when those before failed.

    No plan comes twice within the same limits.

    A plan that fits as a whole is preferred to one for which DuckDB has to spill more than it would
    by itself, and that to one that may fit although it is predicted not to. Of inputs that have
    grown since the program was compiled least is known: there the present plan is tried first.

    Args:
        compiled: the program, with a plan that does not fit.
        options: those it was compiled with.
        budget: what is free.
        plan: plans the program for other options.
        grown: the program with statistics of inputs that have grown, where they have.

    Raises:
        MemoryLimitError: no further plan was found that may fit.
    """
    tried = set[object]()
    for fitted in _likely_plans(compiled, options, budget, plan, grown):
        chosen = fitted.compiled.decomposed.decompositions
        way = str(fitted.compiled.program), tuple(chosen.items()), fitted.limits
        if way not in tried:
            tried.add(way)
            yield fitted


def _likely_plans(
    compiled: Compiled,
    options: Options,
    budget: Budget,
    plan: Callable[[Compiled, Options], Compiled],
    grown: Compiled | None,
) -> Iterator[Fitted]:
    size = budget.free.size
    if grown is not None:
        yield from (Fitted(compiled, size, limits) for limits in budget.trying(compiled))
    known = grown or compiled
    if budget.holds(Need.of(known)):
        yield Fitted(known, size, budget.bounding(known))
    plans = [known]
    for each in _plan_smaller(known, options, budget, plan):
        if budget.holds_easily(Need.of(each)):
            yield Fitted(each, size)
            break
        plans.append(each)
    hopeful = [each for each in plans if not _is_hopeless(each, budget)]
    by_peak = sorted(hopeful, key=lambda each: each.peak_memory)
    for find in (budget.bounding, budget.spilling):
        within = ((each, find(each)) for each in by_peak)
        yield from islice((Fitted(x, size, limits) for x, limits in within if limits), 1)
    # The plan that would run is the likeliest to need less than is predicted, and the one with the
    # fewest bytes outside of the engine leaves most to it. Where memory is refused, all may try.
    by_outside = sorted(hopeful, key=lambda each: each.outside_memory)
    others = () if budget.free.kills else by_peak
    for each in (*hopeful[:1], *by_peak[:1], *by_outside[:1], *others):
        yield from (Fitted(each, size, limits) for limits in budget.trying(each))
    raise _refuse(min(plans, key=lambda each: each.outside_memory), budget)


def _is_hopeless(planned: Planned, budget: Budget) -> bool:
    """Return whether a plan needs more than is free certainly, or by far.

    Where the system refuses memory, an attempt ends in an error at worst: there only what is
    certain without any margin counts.
    """
    need, free = Need.of(planned), budget.free
    if need.peak / HOPELESS > free.size:
        return True
    if free.kills:
        return max(need.certain, need.unbounded) > free.size
    return (need.certain - FIXED) / RETAINED > budget.without_margin(planned.threads)


def _plan_smaller(
    compiled: Compiled,
    options: Options,
    budget: Budget,
    plan: Callable[[Compiled, Options], Compiled],
) -> Iterator[Compiled]:
    """Yield plans that the optimiser chooses where it has less memory.

    Where memory is refused, the first one may take what may be lost for threads, as attempts may.
    """
    free = budget.free.size
    if free <= FIXED:
        return
    sizes = [share * free for share in TIGHTER]
    if not budget.free.kills:
        sizes.insert(0, budget.without_margin(compiled.threads))
    for size in sizes:
        memory = min(size, options.resources.memory)
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
    return Need(
        plan_peak(plan, estimates),
        plan_peak(plan, estimates, Account.OUTSIDE),
        plan_peak(plan, estimates, Account.NOBODY),
    )


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
    account = Account.OUTSIDE if outside else Account.ALL
    return max(planned.physical.steps, key=lambda x: statement_bytes(x, estimates, account)[0])


def _advise(planned: Planned, free: FreeMemory) -> str:
    advice = [f"raise {free.limit}" if free.limit.startswith("ulimit") else "free memory"]
    if planned.threads > 1:
        advice.append("use fewer threads, each of which has states and rows of its own")
    if any(type_.dtype.bytes > 4 for type_ in planned.program.types.values()):
        advice.append("use element types of fewer bytes")
    if planned.decomposed.search is None:
        advice.append("let decomposition='auto' choose shorter arrays")
    ids = number_ids(planned.program, planned.statistics)
    return ", or ".join(advice if ids is None else [ids, *advice])
