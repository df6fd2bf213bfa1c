"""How a compiled program runs on what its tables hold now.

A program is compiled for tables of one version. Where they have changed since, it is fitted to them
before it runs, after all checks; what it came to is remembered, so that it is done once for each
version.

Where it was reordered and its integers overflow, it runs once more as it is written, and that
answer or error counts. In a transaction of the user's, which an error would end, there is no second
time: only what cannot overflow runs there in another order, and so it is with views, which do not
know what data they will meet.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TypeVar

from ucle.database.change_detection import Quiet
from ucle.database.data_versions import in_transaction
from ucle.database.session import Session
from ucle.errors import NumberRangeError, StaleStatisticsWarning
from ucle.foundation.logs import EXECUTE, warn_caller
from ucle.inputs.staleness import Drift, drifts
from ucle.inputs.states import BoundInput
from ucle.inputs.unchanged_tables import Versions, table_versions, tables_of
from ucle.options import Options
from ucle.pipeline.artifacts import Compiled
from ucle.pipeline.replan import plan_annihilated, plan_as_written
from ucle.pipeline.resize import follow_data
from ucle.progress.execution import Watch
from ucle.run.execute import NaNError, StepRun, execute_script, measure_steps
from ucle.run.results import Result
from ucle.run.script import Script, script_of
from ucle.run.store_inputs import keep_inputs
from ucle.sqlgen import PLAIN, Capabilities

T = TypeVar("T")

VERSIONS = 16
"""Versions of its tables for which a program remembers how it runs."""


class Prepared:
    """A program as it runs on tables of one version, with its scripts by what routes can do."""

    def __init__(
        self,
        compiled: Compiled,
        options: Options,
        drifted: tuple[Drift, ...] = (),
        scripts: dict[Capabilities, Script] | None = None,
    ) -> None:
        self.compiled = compiled
        self.drifted = drifted
        self._options = options
        self._scripts = {} if scripts is None else scripts
        self._annihilated: Prepared | None = None
        self._as_written: Prepared | None = None
        self._overflowed = False
        """Whether integers of the data did, in the order that was chosen."""

    def on(self, compiled: Compiled, drifted: tuple[Drift, ...]) -> Prepared:
        """The same for another version; scripts serve as long as the plan is the same."""
        scripts = self._scripts if compiled is self.compiled else None
        return Prepared(compiled, self._options, drifted, scripts)

    def run(
        self, session: Session, watch: Watch | None, inputs: Mapping[str, BoundInput] | None = None
    ) -> Result:
        """Execute the program. The result holds the session from then on.

        Args:
            session: on which it runs.
            watch: is told where the execution is.
            inputs: other data for the same program, by default that which it was compiled for.

        Raises:
            ExecutionError: DuckDB refused a statement. No temporary object is left behind.
        """
        return self.attempt(session, lambda order: order._run(session, watch, inputs))

    def attempt(self, session: Session, run: Callable[[Prepared], T]) -> T:
        """What comes of a run of the plan that is right for the data, which only a run can tell."""
        return self._in_some_order(session, lambda order: order._or_annihilated(run))

    def measure(self, session: Session) -> tuple[Compiled, dict[str, StepRun]]:
        """Run each step by itself: the program that ran, and what its steps took.

        Raises:
            ExecutionError: DuckDB refused a statement. No temporary object is left behind.
        """
        return self._in_some_order(
            session, lambda order: (order.compiled, measure_steps(session, order.compiled))
        )

    def for_views(self) -> Compiled:
        """The program in an order in which it gives an answer on whatever data it has one."""
        lowering = self.compiled.front.lowering
        return self.as_written().compiled if lowering.integers else self.compiled

    def take_route(self, session: Session) -> None:
        """Have a session use what this program needs of all that its connection can do."""
        relational = self.compiled.decomposed.relational
        session.capabilities = PLAIN if relational else session.offered

    def as_written(self) -> Prepared:
        """The program in the order of its text, which is planned when it is first asked for."""
        if self._as_written is None:
            self._as_written = Prepared(
                plan_as_written(self.compiled, self._options), self._options
            )
        return self._as_written

    def _in_some_order(self, session: Session, run: Callable[[Prepared], T]) -> T:
        """What comes of a run in the order that was chosen, or as written if integers overflow."""
        if not self.compiled.front.lowering.integers:
            return run(self)
        inside = in_transaction(session)
        if self._overflowed or (inside and self.compiled.optimistic):
            return run(self.as_written())
        try:
            return run(self)
        except NumberRangeError as error:
            if inside:  # DuckDB has ended it
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
        executed = execute_script(session, inputs or self.compiled.inputs, script, watch=watch)
        session.release()
        return Result.of(self.compiled, session, executed.outputs, executed.dictionaries)

    def _script(self, capabilities: Capabilities) -> Script:
        """The statements of the program for a route."""
        if capabilities not in self._scripts:
            self._scripts[capabilities] = script_of(self.compiled.physical, capabilities)
        return self._scripts[capabilities]

    def _where_numbers_outgrow_their_type(self) -> Prepared:
        if self._annihilated is None:
            compiled = plan_annihilated(self.compiled, self._options)
            self._annihilated = Prepared(compiled, self._options)
        return self._annihilated


class Preparations:
    """What a program came to on each version of its tables that it has met.

    Several threads may ask at once: they change nothing but what is remembered.
    """

    def __init__(
        self,
        compiled: Compiled,
        options: Options,
        fitting: Mapping[Versions, tuple[Drift, ...]],
    ) -> None:
        """Begin with a program as it was compiled.

        Args:
            compiled: the program.
            options: those it was compiled with.
            fitting: versions of its tables, all checks passed, on which it runs as it is; and what
                has drifted there.
        """
        self._compiled = compiled
        self._options = options
        self._latest = Prepared(compiled, options)
        self._met = {
            versions: self._latest.on(compiled, drifted) for versions, drifted in fitting.items()
        }

    @cached_property
    def reads_tables(self) -> bool:
        """Whether anything in a database, or a file, can change what the program computes."""
        return bool(tables_of(self._compiled.all_inputs))

    @property
    def fitting(self) -> dict[Versions, tuple[Drift, ...]]:
        """Versions on which the program runs as it was compiled, and what has drifted there."""
        met = tuple(self._met.items())
        return {v: prepared.drifted for v, prepared in met if prepared.compiled is self._compiled}

    def fresh(self, session: Session, quiet: Quiet | None = None) -> Prepared:
        """The program on the tables of a session, on which it is about to run.

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
        """The program with the sizes of what its tables hold, after all checks if that is new."""
        versions = self._versions(session, quiet)
        prepared = self._met.get(versions)
        if prepared is not None and versions.known:
            return prepared
        before = prepared or self._latest
        compiled, entries = follow_data(session, before.compiled, self._options)
        compiled = keep_inputs(session, compiled, self._options)
        prepared = before.on(compiled, self._drifted(entries))
        if self._options.store:
            # What was stored changes the database, but none of the tables it was made of.
            versions = self._versions(session)
            if quiet is not None:
                quiet.known.clear()
        self._latest = prepared
        self._met = dict([*self._met.items(), (versions, prepared)][-VERSIONS:])
        return prepared

    def _versions(self, session: Session, quiet: Quiet | None = None) -> Versions:
        return table_versions(session, self._compiled.all_inputs, quiet)

    def _drifted(self, entries: Mapping[str, float]) -> tuple[Drift, ...]:
        """What has drifted since the program was compiled."""
        inputs = self._compiled.all_inputs
        return drifts(
            {name: inputs[name].statistics.entries for name in entries},
            entries,
            {name: inputs[name].origin for name in entries},
        )
