"""Steps of prepared programs and loops on partitions: a `ucle.run.step_engine.StepEngine`.

The state and the fixed relations of a loop are frames of a `PartitionEngine`. They stay where they
are from step to step; only what the plan of a step moves is moved.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Protocol

from ucle.foundation.dataclasses import dataclass
from ucle.foundation.libraries import pa
from ucle.inputs.states import BoundInput
from ucle.options import Options
from ucle.partitions.engine import PartitionEngine, dictionary_tables, run_distributed
from ucle.partitions.step_plans import Cut, StepPlans
from ucle.pipeline.artifacts import Compiled
from ucle.plan.hoist_invariants import held_name
from ucle.plan.relation_nodes import Read
from ucle.run.current_data import Preparations, Prepared
from ucle.run.step_engine import LoopEnd, Ran
from ucle.sqlgen.sql_trees import VALUE

SHORTENED = 10
"""The number of steps after which a state no longer depends on what was before it."""


@dataclass(frozen=True)
class StepOutputs:
    """What a step has made: the frame and the layout of each output, and small values."""

    compiled: Compiled
    frames: Mapping[str, Any]
    reads: Mapping[str, Read]
    numbers: Mapping[str, Any]
    """The values of outputs without axes."""
    dictionaries: Mapping[str, pa.Table]


class StepTensor(Protocol):
    """An output of a step, with what the next step needs of it."""

    frame: Any
    name: str


class Results(Protocol):
    """What an engine offers to those who read the outputs of steps."""

    def wrap(self, outputs: StepOutputs) -> Mapping[str, Any]:
        """Return the outputs of a step as tensors (`StepTensor`)."""
        ...

    def save(self, tensors: Mapping[str, Any]) -> None:
        """Write tensors to tables by name."""
        ...

    def end(self, tensors: Mapping[str, Any], end: LoopEnd) -> Any:
        """Return the outcome of a loop."""
        ...


class OnPartitions:
    """Steps on partitions."""

    elsewhere = True

    def __init__(
        self,
        engine: PartitionEngine,
        results: Results,
        carry: Mapping[str, str],
        cut: Cut,
        begin: Callable[[Preparations], Prepared] | None = None,
    ) -> None:
        """Run on an engine.

        Args:
            engine: where frames are.
            results: makes tensors of them.
            carry: inputs, and the outputs that replace them.
            cut: cuts a plan into fragments.
            begin: checks the data of a program; by default it is as it was compiled for.
        """
        self._engine = engine
        self._results = results
        self._carry = dict(carry)
        self._cut = cut
        self._begin = begin
        self._steps = 0
        self._plans: dict[int, StepPlans] = {}
        self._before: dict[int, Mapping[str, Any]] = {}
        self._dictionaries: dict[int, Mapping[str, pa.Table]] = {}

    def begin(self, preparations: Preparations) -> Prepared:
        """Return the program for the data that it was compiled for."""
        return preparations.latest if self._begin is None else self._begin(preparations)

    def run(
        self,
        compiled: Compiled,
        inputs: Mapping[str, BoundInput],
        changing: Collection[str],
        state: Mapping[str, StepTensor],
        most: int = 1,
    ) -> Ran:
        """Run a step, and never several; see `ucle.run.step_engine.StepEngine`."""
        key, engine = id(compiled), self._engine
        if key not in self._plans:
            self._plans[key] = StepPlans(compiled, self._carry, changing, self._cut)
        plans = self._plans[key]
        engine.read(compiled, inputs)
        if key not in self._before:
            before = plans.before
            made = {} if before is None else run_distributed(before, engine)
            self._dictionaries[key] = dictionary_tables(compiled.plan, engine)
            self._before[key] = made
        before_frames, step = self._before[key], plans.step
        held = {held_name(name): frame for name, frame in before_frames.items()}
        for name, read in plans.state.items():
            frame = state[name].frame if name in state else self._first(plans, name)
            if frame is not None:
                held[read.step] = frame
        frames = run_distributed(step.again, engine, held)
        small = [x for x, read in step.outputs.items() if not read.type.rank and read.layout.scalar]
        frames |= {output: before_frames[made] for output, made in step.done.items()}
        carried = [x for x in self._carry.values() if x not in step.done]
        self._steps += 1
        due = self._steps % SHORTENED == 0
        rows, next_frames = engine.end_step(frames, small, carried, due=due)
        frames |= next_frames
        self._release_first(key, step.done.values())
        numbers = {x: _number(rows[x], step.outputs[x].type.fill) for x in small}
        step_outputs = StepOutputs(compiled, frames, step.outputs, numbers, self._dictionaries[key])
        return Ran(self._results.wrap(step_outputs))

    def _release_first(self, key: int, needed: Collection[str]) -> None:
        """Forget what was made once, as far as only steps read it: it is where they read it now."""
        self._before[key] = {
            name: frame if name in needed else None for name, frame in self._before[key].items()
        }

    def _first(self, plans: StepPlans, name: str) -> Any:
        """The frame of an input in its first state; None where nothing reads it."""
        plan = plans.first_state(name)
        if plan is None:
            return None
        return run_distributed(plan, self._engine)[name]

    def replan(
        self, compiled: Compiled, state: Mapping[str, Any], options: Options
    ) -> Compiled | None:
        """Keep the plan: to count the state would take a job of its own."""
        return None

    def numbers(self, tensors: Sequence[Any]) -> tuple[Any, ...]:
        """Return the values of tensors without axes."""
        return tuple(tensor.number for tensor in tensors)

    def save(self, tensors: Mapping[str, Any]) -> None:
        """Write tensors to tables by name."""
        self._results.save(tensors)

    def end(self, tensors: Mapping[str, Any], end: LoopEnd) -> Any:
        """Return the outcome of a loop."""
        return self._results.end(tensors, end)

    def clear(self) -> None:
        """Forget plans, and what was computed once."""
        self._plans.clear()
        self._before.clear()
        self._dictionaries.clear()

    def close(self) -> None:
        """Release all frames."""
        self.clear()
        self._engine.close()


def _number(rows: pa.Table, fill: Any) -> Any:
    """The value of a tensor without axes, from the rows that store it."""
    values = [value for value in rows[VALUE].to_pylist() if value is not None]
    return values[0] if values else fill
