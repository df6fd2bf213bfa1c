"""The plan of a step that runs repeatedly on partitions: what is made once, and what each time.

The parts are those of one machine (`ucle.plan.hoist_invariants`). Relations that depend on no
changing input are made once, and so is each carried input, in the layout of the output that
replaces it: all steps then have one plan. Fixed relations are brought to the partitions of their
readers once and stay there, so a search of placements counts only a small part of that.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from functools import cached_property

from ucle.foundation.dataclasses import dataclass
from ucle.partitions.choices import ONCE, Repeated
from ucle.partitions.fragments import DistributedPlan
from ucle.pipeline.artifacts import Compiled, Planned
from ucle.plan.hoist_invariants import HoistedPlan, first_state, held_name, hold, split
from ucle.plan.placement_rules import Placement
from ucle.plan.relation_nodes import Held, Read, TableScan
from ucle.plan.steps import Plan
from ucle.run.loop_stages import loop_plan

Cut = Callable[[Planned, Repeated], DistributedPlan]
"""Cuts a plan, given what many runs of it have in common."""


@dataclass(frozen=True)
class StepPlan:
    """A step on partitions."""

    again: DistributedPlan
    """Runs each time. It reads fixed relations and the state under their names as held tables."""
    outputs: Mapping[str, Read]
    """All outputs of the program, as they are stored."""
    done: Mapping[str, str]
    """Outputs that are computed once, and the names of their relations there."""


class StepPlans:
    """A compiled program, cut for repeated runs on partitions."""

    def __init__(
        self,
        compiled: Compiled,
        carry: Mapping[str, str],
        changing: Collection[str],
        cut: Cut,
    ) -> None:
        """Divide a program.

        Args:
            compiled: the program.
            carry: inputs, and the outputs that replace them.
            changing: inputs that are others each time, those that are carried among them.
            cut: cuts a plan into fragments.
        """
        self.compiled = compiled
        self._carry = dict(carry)
        self._changing = changing
        self._cut = cut
        self._plan, finite = loop_plan(compiled, carry)
        reads = self._plan.outputs
        self._finite = {reads[output].step: (output, x) for x, output in finite.items()}
        self._first_states: dict[str, DistributedPlan | None] = {}

    @cached_property
    def state(self) -> Mapping[str, Read]:
        """The tables of carried inputs, by input."""
        shown, made = self._plan.shown, self._plan.outputs
        return {
            x: Read(held_name(x), x, shown[output].type, made[output].layout)
            for x, output in self._carry.items()
        }

    @cached_property
    def before(self) -> DistributedPlan | None:
        """The part that is made once; None where there is none."""
        before = self._split.before
        return self._distribute(before) if before.outputs else None

    @cached_property
    def step(self) -> StepPlan:
        """The part that runs each time."""
        parts, state = self._split, {read.step for read in self.state.values()}
        again = parts.again
        scans = (x.relation.source for x in again.steps if isinstance(x.relation, TableScan))
        if any(any(source.encoded) for source in scans):
            again = replace(again, dictionaries=self._plan.dictionaries)
        held = {step.name for step in again.steps if isinstance(step.relation, Held)}
        made = {
            x: again.outputs[output].step
            for x, output in self._carry.items()
            if output in again.outputs
        }
        carried = {read.step: made[x] for x, read in self.state.items() if x in made}
        repeated = Repeated({name: self._fixed[name] for name in held - state}, carried)
        return StepPlan(
            self._distribute(again, repeated).as_step(self._finite, self._bytes_before),
            self._plan.outputs,
            {output: read.step for output, read in parts.outputs.items()},
        )

    def first_state(self, name: str) -> DistributedPlan | None:
        """Return the plan that makes the first state of an input; None where nothing reads it."""
        if name not in self._first_states:
            plan = first_state(self._plan, name, self.state[name])
            self._first_states[name] = None if plan is None else self._distribute(plan)
        return self._first_states[name]

    @cached_property
    def _fixed(self) -> Mapping[str, Placement]:
        """The placements in which fixed relations are made, by the names that steps read."""
        if self.before is None:
            return {}
        made = {x.read.step: x.placement for f in self.before.fragments for x in f.made}
        return {held_name(x): made[step].stored for x, step in self.before.outputs.items()}

    @property
    def _bytes_before(self) -> float:
        """Estimate what moves to make fixed relations and the first state."""
        plans = [self.before, *map(self.first_state, self._carry)]
        return sum(plan.bytes for plan in plans if plan is not None)

    @cached_property
    def _split(self) -> HoistedPlan:
        return split(hold(self._plan, self.state), self._changing, (), in_place=False)

    def _distribute(self, plan: Plan, repeated: Repeated = ONCE) -> DistributedPlan:
        return self._cut(replace(self.compiled, plan=plan), repeated)
