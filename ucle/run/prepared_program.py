"""A program that was checked once and runs repeatedly on one connection."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from ucle.database.session import Session
from ucle.errors import ArgumentError, ResultClosedError
from ucle.foundation.logs import EXECUTE
from ucle.inputs.fingerprints import fingerprints
from ucle.inputs.parameters import check_names, keeps_infinity, takes_numbers, with_numbers
from ucle.inputs.table_changes import Drift, Versions
from ucle.options import RUNS
from ucle.plan.sources import InputSource, TableSource
from ucle.run.build import Build, allow_any_numbers, vary_inputs, with_outputs
from ucle.run.carried import check_carry
from ucle.run.current_data import Preparations, Prepared
from ucle.run.growth import is_looked_at, steps_to_look
from ucle.run.results import Result, TensorRelation
from ucle.run.step_engine import OnSession, Ran, StepEngine


class PreparedProgram:
    """A program for repeated runs; returned by `EinsumProgram.prepare`.

    Call it to run the program once, with other data for inputs as keywords. Use it as a context
    manager, or call `close`: this drops all tables that it has created, including those of its
    results.

    Data is checked when the prepared program is created. After that, only inputs that are named in
    ``swap`` or passed to a run are checked again. Later changes of other tables may or may not be
    seen.
    """

    def __init__(
        self,
        build: Build,
        session: Session,
        carry: Mapping[str, str],
        swap: tuple[str, ...],
        engine: StepEngine | None = None,
    ) -> None:
        """Check a program and its data.

        Args:
            build: the program.
            session: where it is compiled and, by default, runs; it is closed with this.
            carry: inputs, and the outputs that replace them in the next run.
            swap: inputs that are checked before each run.
            engine: where it runs, if not on the session.

        Raises:
            UcleError: the data does not pass the checks, or an output does not fit an input.
        """
        check_names(build.compiled.all_inputs, dict.fromkeys(swap), "prepare, swap")
        self._build = with_outputs(build, session.connection, tuple(carry.values()))
        check_carry(self._build.compiled, carry)
        self._session = session
        self._carry = dict(carry)
        self._swap = tuple(x for x in swap if x not in carry)
        given = self._build.request.inputs
        # Arrays in which changes in place are tracked.
        self._watched = {x: given[x] for x in self._swap if x in self._build.marks}
        self._marks = dict(self._build.marks)
        self._given: dict[str, Any] = {}
        self._state: dict[str, TensorRelation] = {}
        self._engine = engine or OnSession(session, self._carry)
        self._closed = False
        self.steps = 0
        """The number of runs so far."""
        self._compile()

    def __call__(self, **inputs: Any) -> Result:
        """Run the program once.

        Args:
            inputs: other arrays for some of its inputs, for this run and those after it.

        Returns:
            The outputs by name, for as long as the program is prepared.
        """
        return self.run(inputs)

    def run(self, inputs: Mapping[str, Any] | None = None) -> Result:
        """Run the program once.

        Args:
            inputs: other arrays for some of the inputs, for this run and later ones. A carried
                input starts again from its array.

        Raises:
            ExecutionError: DuckDB refused a statement. The carried state is unchanged.
            NameResolutionError: there is no such input.
            InputError: an array has another shape than the input.
            ResultClosedError: the prepared program is closed.
        """
        result: Result = self.run_steps(1, inputs).outputs
        return result

    def run_steps(self, most: int, inputs: Mapping[str, Any] | None = None) -> Ran:
        """Run the program as a loop for at most some number of steps.

        The other argument and the errors are those of `run`.
        """
        if self._closed:
            raise ResultClosedError(
                "the prepared program is closed",
                where="prepare",
                expected="a program that was not closed",
                found="it was closed",
                hint="call program.prepare() again",
            )
        given = inputs or {}
        marks = fingerprints({x: y for x, y in self._watched.items() if x not in given})
        changed = {x: self._watched[x] for x, mark in marks.items() if mark != self._marks[x]}
        if changed or given:
            self._take({**changed, **given})
            self._marks |= marks
            for name in given:
                self._watched.pop(name, None)
        if self._followed:
            self._follow()
        elsewhere = self._engine.elsewhere
        if self._swap:
            most = 1
        most = min(most, steps_to_look(self.steps))
        run = partial(self._run, most)
        ran = self._prepared.attempt(self._session, run, elsewhere=elsewhere)
        self._state |= {name: ran.outputs[output] for name, output in self._carry.items()}
        self.steps += ran.steps
        if is_looked_at(self.steps) and not self._followed:
            self._grow()
        return ran

    @property
    def state(self) -> Mapping[str, TensorRelation]:
        """The tensors that the next run reads in place of the carried inputs."""
        return dict(self._state)

    def restore(self, state: Mapping[str, TensorRelation]) -> None:
        """Continue from an earlier `state`."""
        self._state = dict(state)

    def __enter__(self) -> PreparedProgram:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Drop all tables; results of runs cannot be read any more."""
        if self._closed:
            return
        self._closed = True
        self._engine.close()

    @property
    def _changing(self) -> tuple[str, ...]:
        return (*self._carry, *self._swap)

    @property
    def _followed(self) -> frozenset[InputSource]:
        """The tables that may hold other rows in each run."""
        inputs = self._build.compiled.all_inputs
        sources = (inputs[name].source for name in self._swap)
        return frozenset(x for x in sources if isinstance(x, TableSource) and x.from_database)

    def _compile(self) -> None:
        """Compile the program for inputs that change."""
        database = self._session.connection
        self._build = vary_inputs(
            self._build, database, self._changing, carried=self._carry, runs=RUNS
        )
        compiled = self._build.compiled
        check_carry(compiled, self._carry)
        fitting: dict[Versions, tuple[Drift, ...]] = {self._build.target.versions: ()}
        self._preparations = Preparations(compiled, self._build.options, fitting)
        self._adopt(self._engine.begin(self._preparations))

    def _adopt(self, prepared: Prepared) -> None:
        """Switch to another program; results that are computed once are computed again."""
        self._prepared = prepared
        compiled = prepared.compiled
        self._inputs = {
            **compiled.named_inputs,
            **with_numbers(compiled.inputs, self._given),
        }
        self._engine.clear()

    def _take(self, new: Mapping[str, Any]) -> None:
        """Take other arrays for inputs; inputs that were constant so far vary from now on."""
        known = self._build.compiled.all_inputs
        check_names(known, new, "prepared program")
        for name, value in new.items():
            if not takes_numbers(known[name], value, may_vary=True):
                raise ArgumentError(
                    "the input of a prepared program is no array",
                    where=f"prepared program, input {name}",
                    expected="an array in the place of an array",
                    found=type(value).__name__,
                    hint="execute(inputs=...) takes other kinds of inputs; the rows of a table "
                    "that swap= names may change",
                )
        fixed = tuple(name for name in new if name not in self._changing)
        if fixed:
            self._swap += fixed
            self._compile()
        if not all(keeps_infinity(known[name], value) for name, value in new.items()):
            self._build = allow_any_numbers(self._build, self._session.connection)
            self._compile()
        read = {name: value for name, value in new.items() if name in self._inputs}
        self._inputs = with_numbers(self._inputs, read)
        self._given |= read
        for name in new:
            self._state.pop(name, None)

    def _follow(self) -> None:
        """Check the tables that may hold other rows by now."""
        prepared = self._preparations.fresh(self._session)
        if prepared is self._prepared:
            return
        ids = (source for x in prepared.compiled.dictionaries.tables for source, _ in x.columns)
        if prepared.compiled is self._prepared.compiled and self._followed.isdisjoint(ids):
            self._prepared = prepared
        else:
            self._adopt(prepared)

    def _grow(self) -> None:
        """Plan again for a state that is many times larger than planned."""
        compiled, options = self._prepared.compiled, self._build.options
        planned = self._engine.replan(compiled, self._state, options)
        if planned is not None:
            EXECUTE.info(
                "the state has outgrown its plan after %d steps: planned again", self.steps
            )
            self._adopt(Prepared(planned, options))

    def _run(self, most: int, order: Prepared) -> Ran:
        if not self._engine.elsewhere:
            order.take_route(self._session)
        return self._engine.run(order.compiled, self._inputs, self._changing, self._state, most)
