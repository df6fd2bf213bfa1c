"""Where the steps of prepared programs and loops run: the interface, and DuckDB in this process.

A prepared program (`ucle.run.prepared_program`) and a loop (`ucle.run.iterate`) decide which
inputs a step has, and when the loop ends. A `StepEngine` runs the step and holds its tensors.
"""

from __future__ import annotations

import weakref
from collections.abc import Collection, Mapping, Sequence
from dataclasses import field
from types import MappingProxyType
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ucle.database.session import Session
from ucle.database.temporary_tables import Temporary
from ucle.foundation.dataclasses import dataclass
from ucle.inputs.states import BoundInput
from ucle.options import Options
from ucle.pipeline.artifacts import Compiled
from ucle.run.carried import check_state
from ucle.run.current_data import Preparations, Prepared
from ucle.run.execute import Executed, execute_script
from ucle.run.growth import replan_outgrown
from ucle.run.loop_stages import Stage, Stages
from ucle.run.results import Result, TensorRelation
from ucle.run.write_table import transaction
from ucle.sqlgen.script import scalars_query, sql_text

History = Mapping[str, NDArray[Any]]


@dataclass(frozen=True)
class LoopEnd:
    """How a loop has ended; the fields are those of `Iteration`."""

    steps: int
    converged: bool
    interrupted: bool
    history: History
    states: Mapping[str, str]
    """The outputs that hold the last states, by the names of the inputs that they replaced."""

    @classmethod
    def of(
        cls,
        titles: Sequence[str],
        rows: Sequence[Sequence[Any]],
        *,
        converged: bool,
        interrupted: bool,
        states: Mapping[str, str],
    ) -> LoopEnd:
        """Collect the numbers of all steps, by their titles."""
        columns = list(zip(*rows, strict=True))
        history = {x: np.array(y) for x, y in zip(titles, columns, strict=False)}
        return cls(len(rows), converged, interrupted, MappingProxyType(history), states)


@dataclass(frozen=True)
class Ran:
    """What one run of a step engine has made, which may be several steps."""

    outputs: Any
    """The outputs of the last step, by name."""
    passed: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    """The numbers of the steps before it, by the names of outputs without axes."""
    steps: int = 1
    """The number of steps."""


class StepEngine(Protocol):
    """Runs the steps of a program, and holds their results."""

    elsewhere: bool
    """Whether steps run in other processes, of whose memory nothing is known here."""

    def begin(self, preparations: Preparations) -> Prepared:
        """Return the program for the present data of its inputs, after all checks."""
        ...

    def run(
        self,
        compiled: Compiled,
        inputs: Mapping[str, BoundInput],
        changing: Collection[str],
        state: Mapping[str, Any],
        most: int = 1,
    ) -> Ran:
        """Run a step, or several.

        Args:
            compiled: the program.
            inputs: the data of its inputs.
            changing: inputs that may be others in each step, carried ones among them.
            state: tensors in place of carried inputs; empty in the first step.
            most: the number of steps that may run.

        Raises:
            UcleError: as for one execution.
        """
        ...

    def replan(
        self, compiled: Compiled, state: Mapping[str, Any], options: Options
    ) -> Compiled | None:
        """Plan the program for a state that has grown; None where the plan is still right."""
        ...

    def numbers(self, tensors: Sequence[Any]) -> tuple[Any, ...]:
        """Return the values of tensors without axes."""
        ...

    def save(self, tensors: Mapping[str, Any]) -> None:
        """Write tensors to tables by name, all or none of them."""
        ...

    def end(self, tensors: Mapping[str, Any], end: LoopEnd) -> Any:
        """Return the outcome of a loop, which holds these tensors from then on."""
        ...

    def clear(self) -> None:
        """Drop what was computed once."""
        ...

    def close(self) -> None:
        """Drop everything."""
        ...


class Iteration(Result):
    """The outputs of the last step of a loop, with its number of steps and its history.

    A state is found by the name of its output, or by its own.
    """

    def __init__(self, session: Session, tensors: dict[str, TensorRelation], end: LoopEnd) -> None:
        """Wrap the results of a loop."""
        super().__init__(session, tensors, [x.table for x in tensors.values()])
        self._states = end.states
        self.steps = end.steps
        """The number of steps."""
        self.converged = end.converged
        """True if the condition held after the last step."""
        self.interrupted = end.interrupted
        """True if the keyboard interrupted it; the outputs are those of the last whole step."""
        self.history = end.history
        """Numbers of each step by name: outputs without axes, and the compared value."""


class OnSession:
    """DuckDB in this process: tables of a session, made by scripts."""

    elsewhere = False

    def __init__(
        self,
        session: Session,
        carry: Mapping[str, str],
        until: str | None = None,
        *,
        repeats: bool = False,
    ) -> None:
        """Run on a session, which is closed with this.

        Args:
            session: where it runs.
            carry: inputs, and the outputs that replace them.
            until: the output that is true in the last step of a loop, if it has a condition.
            repeats: True for a loop, of which several steps may run at once.
        """
        self._session = session
        self._carry = carry
        self._until, self._repeats = until, repeats
        self._tables: weakref.WeakSet[Temporary] = weakref.WeakSet()
        self._stages: dict[int, Stages] = {}

    def begin(self, preparations: Preparations) -> Prepared:
        """Return the program for the present data of its inputs, after all checks."""
        return preparations.fresh(self._session)

    def run(
        self,
        compiled: Compiled,
        inputs: Mapping[str, BoundInput],
        changing: Collection[str],
        state: Mapping[str, TensorRelation],
        most: int = 1,
    ) -> Ran:
        """Run a step, or several; see `StepEngine`."""
        session = self._session
        if id(compiled) not in self._stages:
            self._stages[id(compiled)] = Stages(
                compiled, self._carry, changing, self._until, repeats=self._repeats
            )
        stages = self._stages[id(compiled)]
        first = stages.first(session, inputs)
        self._tables.update(first.tables)
        check_state(session, compiled, state, first.dictionaries)
        stage = stages.stage(state, session.capabilities)
        held = stages.list_held_tables(state)
        executed = execute_script(session, inputs, stage.script, held=held, most=most)
        self._tables.update(executed.tables)
        stages.check(executed)
        return Ran(self._result(compiled, stage, executed, first), executed.passed, executed.steps)

    def _result(
        self, compiled: Compiled, stage: Stage, executed: Executed, first: Executed
    ) -> Result:
        tensors = {}
        for output, read in stage.outputs.items():
            made = first.outputs[stage.done[output]] if output in stage.done else None
            tensors[output] = TensorRelation(
                output,
                compiled.plan.shown[output].type,
                read.layout,
                executed.outputs[output] if made is None else made,
                self._session,
                first.dictionaries,
                nonfill=output in compiled.nonfill,
                fixed=compiled.fixed_axes[output],
            )
        carried = self._carry.values()
        own = [table for output, table in executed.outputs.items() if output not in carried]
        return Result(self._session, tensors, own, holds=False)

    def replan(
        self, compiled: Compiled, state: Mapping[str, TensorRelation], options: Options
    ) -> Compiled | None:
        """Plan the program for a state that has grown; None where the plan is still right."""
        return replan_outgrown(self._session, compiled, state, options)

    def numbers(self, tensors: Sequence[TensorRelation]) -> tuple[Any, ...]:
        """Return the values of tensors without axes."""
        if not tensors:
            return ()
        fetched = [x.table.fetched for x in tensors]
        if all(rows for rows in fetched):
            return tuple(rows[0][0] for rows in fetched if rows)
        rows = self._session.fetch(sql_text(scalars_query([x.table.place for x in tensors])))
        return tuple(
            next((value for value in stored if value is not None), tensor.fill)
            for tensor, *stored in zip(tensors, *rows, strict=True)
        )

    def save(self, tensors: Mapping[str, TensorRelation]) -> None:
        """Write tensors to their tables, all or none."""
        session = self._session
        # By then the file of a path is writable.
        with session.writing("iterate, checkpoint"), transaction(session):
            for table, tensor in tensors.items():
                tensor.to_table(table, mode="replace")

    def end(self, tensors: Mapping[str, TensorRelation], end: LoopEnd) -> Iteration:
        """Return the outcome of a loop."""
        self._session.release()
        return Iteration(self._session, dict(tensors), end)

    def clear(self) -> None:
        """Drop what was computed once."""
        self._stages.clear()

    def close(self) -> None:
        """Drop all tables, and close the session."""
        self._stages.clear()
        for table in list(self._tables):
            table.drop()
        self._session.close()
