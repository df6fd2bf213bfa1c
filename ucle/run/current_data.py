"""Compiled programs that run on the current contents of their tables.

A program is compiled for one version of its tables. Where they have changed since, it is adapted to
them before it runs, after all checks. The result is remembered, so that this happens once for each
version.

A program whose plan needs more memory than is free runs with another plan, within limits, or not
at all (`ucle.pipeline.memory_check`).

If a sum has lost too many digits in the form in which it was computed, the program runs again in a
safe form. If a reordered program overflows integers, it runs again in the written order, and that
answer or error counts. Inside a user's transaction, which an error would end, it cannot run a
second time: there only programs that cannot overflow run in another order. The same holds for
views, whose future data is unknown.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from functools import cached_property
from types import MappingProxyType
from typing import TypeVar

from ucle.database.change_detection import Quiet
from ucle.database.data_versions import in_transaction
from ucle.database.engine_errors import is_lost
from ucle.database.session import Session
from ucle.errors import (
    CancellationWarning,
    MemoryLimitError,
    NumberRangeError,
    StaleStatisticsWarning,
)
from ucle.foundation.free_memory import free_memory
from ucle.foundation.logs import EXECUTE, warn_caller
from ucle.foundation.progress import Watch
from ucle.inputs.states import BoundInput
from ucle.inputs.table_changes import Drift, Versions, drifts, table_versions, tables_of
from ucle.options import Options
from ucle.pipeline.artifacts import Compiled
from ucle.pipeline.memory_check import (
    Budget,
    Engine,
    Fitted,
    Need,
    find_excess,
    is_on,
    need_of_grown,
    plans_within_memory,
    with_entries,
)
from ucle.pipeline.replan import (
    plan_annihilated,
    plan_as_written,
    plan_decomposition,
    plan_from_source,
    plan_safe,
)
from ucle.pipeline.resize import follow_data
from ucle.run.execute import (
    IllConditionedError,
    NaNError,
    StepRun,
    execute_script,
    measure_steps,
)
from ucle.run.number_keys import number_later
from ucle.run.results import Result
from ucle.run.script import Script, kept_script
from ucle.run.store_inputs import keep_inputs
from ucle.sqlgen import Capabilities

T = TypeVar("T")

Replan = Callable[[Compiled, Options], Compiled]
"""Plans a program for other options."""

NO_ENTRIES: Mapping[str, float] = MappingProxyType({})
"""The numbers of entries where none were counted since the program was compiled."""

NEARLY = 0.98
"""The share of the memory that was free from which on a plan that was made to fit still does."""

VERSIONS = 16
"""The number of versions of its tables for which a program remembers how it runs."""


class Prepared:
    """A program for one version of its tables, with its scripts by capabilities."""

    def __init__(
        self,
        compiled: Compiled,
        options: Options,
        drifted: tuple[Drift, ...] = (),
        scripts: dict[Capabilities, Script] | None = None,
        plan: Replan = plan_from_source,
        entries: Mapping[str, float] = NO_ENTRIES,
    ) -> None:
        """Make a program for a version.

        Args:
            compiled: the program.
            options: those it was compiled with.
            drifted: the inputs whose number of entries has drifted.
            scripts: scripts of the same plan.
            plan: plans it for other options, in the same form.
            entries: the number of entries that inputs have now, where they were counted.
        """
        self.compiled = compiled
        self.drifted = drifted
        self._options = options
        self._plan = plan
        self._entries = entries
        self._scripts = {} if scripts is None else scripts
        self._annihilated: Prepared | None = None
        self._as_written: Prepared | None = None
        self._safe: Prepared | None = None
        self._lost_digits = False
        """True if a sum lost too many digits of the data in the chosen form."""
        self._overflowed = False
        """True if integers of the data overflowed in the chosen order."""
        self._smaller: Prepared | None = None
        """The program with a plan that needs less memory, where that was needed."""
        self._fitted: Fitted | None = None
        """The limits within which it runs, if its plan was made to fit into free memory."""

    def on(
        self,
        compiled: Compiled,
        drifted: tuple[Drift, ...],
        entries: Mapping[str, float] = NO_ENTRIES,
    ) -> Prepared:
        """Return the program for another version; scripts are reused if the plan is the same."""
        scripts = self._scripts if compiled is self.compiled else None
        return Prepared(compiled, self._options, drifted, scripts, entries=entries)

    def run(
        self, session: Session, watch: Watch | None, inputs: Mapping[str, BoundInput] | None = None
    ) -> Result:
        """Execute the program. The result holds the session from then on.

        Args:
            session: on which it runs.
            watch: receives the progress of the execution.
            inputs: other data for the same program, by default that which it was compiled for.

        Raises:
            ExecutionError: DuckDB refused a statement. No temporary object is left behind.
        """
        return self.attempt(session, lambda order: order._run(session, watch, inputs))

    def attempt(
        self, session: Session, run: Callable[[Prepared], T], *, elsewhere: bool = False
    ) -> T:
        """Run the plan that is right for the data, which may take two runs; return the result.

        Args:
            session: on which it runs.
            run: runs a plan.
            elsewhere: whether it runs in other processes, of whose memory nothing is known here.

        Raises:
            MemoryLimitError: no plan fits into the memory that is free.
        """

        def run_within_memory(order: Prepared) -> T:
            if elsewhere or not is_on():
                return run(order)
            return order._run_within_memory(session, run)

        return self._in_some_form(
            lambda form: form._in_some_order(
                session, lambda order: order._or_annihilated(run_within_memory)
            )
        )

    def _run_within_memory(self, session: Session, run: Callable[[Prepared], T]) -> T:
        """Run a plan that fits into the memory that is free now, or each that may until one does.

        Raises:
            MemoryLimitError: no plan was found that may fit, or all of them needed more.
        """
        budget = self._find_excess(session)
        if budget is None:
            return run(self)
        inside = in_transaction(session)
        for order in self._fitting(budget):
            try:
                with order._limited(session):
                    result = run(order)
            except MemoryLimitError as error:
                if inside or is_lost(error):  # DuckDB has ended the transaction, or the connection
                    raise
                EXECUTE.info("%s; the next plan runs", error.message)
            else:
                self._smaller = order
                return result
        raise AssertionError("the plans end with an error")

    def _fitting(self, budget: Budget) -> Iterator[Prepared]:
        """Yield the program with each plan that may fit: first the one that did so before."""
        if self._smaller is not None and self._smaller._still_fits(budget):
            yield self._smaller
        grown = None if self._sized is self.compiled else self._sized
        for fitted in plans_within_memory(
            self.compiled, self._options, budget, self._plan, grown=grown
        ):
            compiled = fitted.compiled
            scripts = self._scripts if compiled is self.compiled else None
            order = Prepared(compiled, self._options, self.drifted, scripts, self._plan)
            order._fitted = fitted
            EXECUTE.info(
                "%.3g bytes are free (%s): the program runs with a plan that may hold %.3g",
                budget.free.size,
                budget.free.limit,
                compiled.peak_memory,
            )
            yield order

    @cached_property
    def _sized(self) -> Compiled:
        """The program with statistics for the present data: other ones only where it has grown."""
        return with_entries(self.compiled, self._entries, self._options) or self.compiled

    @cached_property
    def _need(self) -> Need:
        """What the plan needs for the present data."""
        if self._sized is self.compiled:
            return Need.of(self.compiled)
        return need_of_grown(self.compiled, self._sized)

    def _still_fits(self, budget: Budget) -> bool:
        """Return whether a plan that was made to fit does so with what is free now."""
        return self._fitted is not None and budget.free.size >= NEARLY * self._fitted.free

    def _limited(self, session: Session) -> AbstractContextManager[None]:
        """Limit DuckDB and the kernels within a block, if the plan fits only then."""
        limits = None if self._fitted is None else self._fitted.limits
        if limits is None:
            return contextlib.nullcontext()
        return session.limited_memory(limits.engine, limits.kernels)

    def _find_excess(self, session: Session) -> Budget | None:
        threads = self.compiled.threads
        grown = self._sized is not self.compiled
        return find_excess(
            self._need.peak if grown else self.compiled.peak_memory,
            lambda: self._need,
            lambda: free_memory(threads),
            lambda: Engine(session.memory_limit, session.spill_limit),
        )

    def measure(self, session: Session) -> tuple[Compiled, dict[str, StepRun]]:
        """Run each step by itself; return the program that ran and its measurements.

        Raises:
            ExecutionError: DuckDB refused a statement. No temporary object is left behind.
        """

        def run(order: Prepared) -> tuple[Compiled, dict[str, StepRun]]:
            return order.compiled, measure_steps(session, order.compiled)

        return self.attempt(session, run)

    def for_views(self) -> Compiled:
        """The program in a form and an order that give the answer on all data that has one."""
        if self.compiled.program.condition_numbers:
            return self.safe().for_views()
        lowering = self.compiled.front.lowering
        return self.as_written().compiled if lowering.integers else self.compiled

    def take_route(self, session: Session) -> None:
        """Restrict a session to the capabilities that this program needs."""
        relational = self.compiled.decomposed.relational
        session.capabilities = session.offered.relational if relational else session.offered

    def as_written(self) -> Prepared:
        """The program in the order of its text, planned on first use."""
        if self._as_written is None:
            written = plan_as_written(self._sized, self._options)
            self._as_written = Prepared(written, self._options, plan=plan_as_written)
        return self._as_written

    def safe(self) -> Prepared:
        """The program without rewrites that may lose digits, planned on first use."""
        if self._safe is None:
            safe = plan_safe(self._sized, self._options)
            self._safe = Prepared(safe, self._options, plan=plan_safe)
        return self._safe

    def _in_some_form(self, run: Callable[[Prepared], T]) -> T:
        """Run in the chosen form, or in the safe one if digits are lost; return the result."""
        if not self.compiled.program.condition_numbers:
            return run(self)
        if self._lost_digits:
            return run(self.safe())
        try:
            return run(self)
        except IllConditionedError:
            names = (x.partition(".")[0] for x in self.compiled.program.condition_numbers)
            message = (
                f"sums in {', '.join(dict.fromkeys(names))} lose digits in their cheapest form; "
                'they are computed again, as with rewrite="safe"'
            )
            EXECUTE.info(message)
            warn_caller(message, CancellationWarning)
            self._lost_digits = True
            return run(self.safe())

    def _in_some_order(self, session: Session, run: Callable[[Prepared], T]) -> T:
        """Run in the chosen order, or as written if integers overflow; return the result."""
        if not self.compiled.front.lowering.integers:
            return run(self)
        inside = in_transaction(session)
        if self._overflowed or (inside and self.compiled.optimistic):
            return run(self.as_written())
        try:
            return run(self)
        except NumberRangeError as error:
            if inside:  # DuckDB has ended the transaction
                raise
            EXECUTE.info("%s; the program runs as it is written", error.message)
            self._overflowed = True
            return run(self.as_written())

    def _or_annihilated(self, run: Callable[[Prepared], T]) -> T:
        try:
            return run(self)
        except NaNError as step:
            EXECUTE.info("NaN in %s, where numbers outgrew their type: 0 annihilates them", step)
            return run(self._where_numbers_outgrow_their_type())

    def _run(
        self, session: Session, watch: Watch | None, inputs: Mapping[str, BoundInput] | None
    ) -> Result:
        for line in self.compiled.made_dense:
            EXECUTE.info("made dense: %s", line)
        self.take_route(session)
        script = self._script(session.capabilities)
        known = {**self.compiled.named_inputs, **(inputs or {})}
        executed = execute_script(session, known, script, watch=watch)
        session.release()
        tables = number_later(session, self.compiled.executed, executed)
        return Result.of(self.compiled, session, *tables)

    def _script(self, capabilities: Capabilities) -> Script:
        """The statements of the program for a route."""
        if capabilities not in self._scripts:
            self._scripts[capabilities] = kept_script(
                self.compiled.executed, capabilities, fetched=True
            )
        return self._scripts[capabilities]

    def _where_numbers_outgrow_their_type(self) -> Prepared:
        if self._annihilated is None:
            compiled = plan_annihilated(self._sized, self._options)
            self._annihilated = Prepared(compiled, self._options, plan=plan_decomposition)
        return self._annihilated


class Preparations:
    """A program prepared for each version of its tables so far.

    Several threads may use it at once: they change only the cache.
    """

    def __init__(
        self,
        compiled: Compiled,
        options: Options,
        fitting: Mapping[Versions, tuple[Drift, ...]],
    ) -> None:
        """Start with a program as it was compiled.

        Args:
            compiled: the program.
            options: those it was compiled with.
            fitting: versions of its tables on which it runs as it is, all checks passed, with the
                drift of each.
        """
        self._compiled = compiled
        self._options = options
        self._latest = Prepared(compiled, options)
        self._met = {
            versions: self._latest.on(compiled, drifted) for versions, drifted in fitting.items()
        }

    @cached_property
    def reads_tables(self) -> bool:
        """True if anything in a database or a file can change what the program computes."""
        return bool(tables_of(self._compiled.all_inputs))

    @property
    def latest(self) -> Prepared:
        """The program for the last version of its tables that it has met."""
        return self._latest

    @property
    def fitting(self) -> dict[Versions, tuple[Drift, ...]]:
        """Versions for which the program runs as compiled, with the drift of its inputs."""
        met = tuple(self._met.items())
        return {v: prepared.drifted for v, prepared in met if prepared.compiled is self._compiled}

    def fresh(self, session: Session, quiet: Quiet | None = None) -> Prepared:
        """Return the program on the tables of a session, on which it is about to run.

        Args:
            session: on the database.
            quiet: the execution that begins here, if it is one.

        Warns:
            StaleStatisticsWarning: tables have changed so much that another plan may be faster.

        Raises:
            UcleError: the tables do not pass the checks.
        """
        prepared = self.on(session, quiet)
        if prepared.drifted:
            changes = "\n  ".join(map(str, prepared.drifted))
            message = f"statistics are stale; program.recompile() takes them again\n  {changes}"
            EXECUTE.info(message)
            warn_caller(message, StaleStatisticsWarning)
        prepared.take_route(session)  # changed data may have another plan
        return prepared

    def on(self, session: Session, quiet: Quiet | None = None) -> Prepared:
        """Return the program with the sizes of its tables; a new version is checked first."""
        versions = self._versions(session, quiet)
        prepared = self._met.get(versions)
        if prepared is not None and versions.known:
            return prepared
        before = prepared or self._latest
        compiled, entries = follow_data(session, before.compiled, self._options)
        compiled = keep_inputs(session, compiled, self._options)
        prepared = before.on(compiled, self._find_drifts(entries), entries)
        if self._options.store:
            # Storing layouts changes the database, but none of the tables they were made from.
            versions = self._versions(session)
            if quiet is not None:
                quiet.seen.clear()
        self._latest = prepared
        self._met = dict([*self._met.items(), (versions, prepared)][-VERSIONS:])
        return prepared

    def _versions(self, session: Session, quiet: Quiet | None = None) -> Versions:
        return table_versions(session, self._compiled.all_inputs, quiet)

    def _find_drifts(self, entries: Mapping[str, float]) -> tuple[Drift, ...]:
        """The inputs whose number of entries has drifted since the program was compiled."""
        inputs = self._compiled.all_inputs
        return drifts(
            {name: inputs[name].statistics.entries for name in entries},
            entries,
            {name: inputs[name].origin for name in entries},
        )
