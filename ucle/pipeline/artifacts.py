"""What the pipeline hands on: planned and compiled programs, with all that the stages made.

A `Planned` program can run; a `Compiled` one also knows what it was made of, so that it can be
compiled again for other sizes (`ucle.pipeline.resize`) or another decomposition
(`ucle.pipeline.replan`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from functools import cached_property

from ucle.inputs.dictionaries import Dictionaries
from ucle.inputs.small_arrays import small_arrays
from ucle.inputs.states import BoundInput, PlacedInput
from ucle.ir.overflow import may_overflow
from ucle.ir.vertices import Program
from ucle.lowering.syntax_to_logical import ResolvedProgram
from ucle.optimiser.join_order import Association, Lowering
from ucle.optimiser.made_dense import made_dense
from ucle.options import Optimisations
from ucle.plan.decomposition import DecomposedProgram
from ucle.plan.forms import made_by, says_nothing
from ucle.plan.pass_context import Memory, PassContext, Spreading
from ucle.plan.passes import PASSES, Pass, rewritten
from ucle.plan.step_memory import Estimates, plan_peak
from ucle.plan.steps import Plan
from ucle.sqlgen.scalar_operators import number_expression
from ucle.stats.estimate import ProgramStatistics
from ucle.udf_kernels import kernel_limits


@dataclass(frozen=True)
class Planned:
    """A program with its plan."""

    inputs: Mapping[str, PlacedInput]
    program: Program
    statistics: ProgramStatistics
    decomposed: DecomposedProgram
    plan: Plan
    dictionaries: Dictionaries
    statement_price: float
    optimisations: Optimisations
    threads: int
    """Those of the engine."""
    memory: float
    """Bytes that it may use."""

    @cached_property
    def physical(self) -> Plan:
        """The plan that runs: `plan`, in which vertices are steps, after all passes.

        Small arrays from memory are in it as they are when it is asked for the first time.
        """
        return self.after(PASSES)

    @cached_property
    def peak_memory(self) -> float:
        """Bytes that an execution is expected to hold at most, beside what was there before."""
        statistics = self.statistics
        estimates = Estimates(
            lambda tensor, layout: statistics.rows(tensor, layout).estimate,
            statistics.payload_bytes,
            self.threads,
            kernel_limits().state_bytes,
        )
        return plan_peak(self.physical, estimates)

    def after(self, passes: Iterable[Pass]) -> Plan:
        """The plan after those of some passes that are not switched off."""
        switches = self.optimisations
        context = PassContext(
            self.statement_price,
            small_arrays(self.inputs),
            number_expression,
            switches.references or 0,
            not self.decomposed.relational,
            self._spreading(),
            self._memory(),
        )
        on = [rewrite for rewrite in passes if rewrite not in switches.off]
        return rewritten(self.plan, on, context)

    def _spreading(self) -> Spreading | None:
        least, statistics = self.optimisations.slices, self.statistics
        if least is None:
            return None
        return Spreading(
            self.threads,
            least,
            lambda tensor, layout: statistics.rows(tensor, layout).estimate,
            statistics.payload_bytes,
            lambda tensor: statistics.tensor(tensor).distinct,
        )

    def _memory(self) -> Memory | None:
        share, statistics = self.optimisations.rounds, self.statistics
        if share is None or self.memory == math.inf:
            return None
        return Memory(
            self.memory,
            share,
            lambda tensor, layout: statistics.rows(tensor, layout).estimate,
            statistics.payload_bytes,
        )


@dataclass(frozen=True)
class Front:
    """What a program was lowered from, and how: enough to lower it again when sizes change."""

    inputs: Mapping[str, BoundInput]
    """All of them, also those that no output needs: their sizes are those of labels, too."""
    source: ResolvedProgram
    lowering: Lowering


@dataclass(frozen=True)
class Compiled(Planned):
    """A planned program, and what it was made of."""

    front: Front
    association: Association | None
    """The order of products, where another than the written one was chosen."""

    @classmethod
    def of(cls, planned: Planned, front: Front, association: Association | None) -> Compiled:
        """A planned program with what it was made of."""
        planned_fields = {field.name: getattr(planned, field.name) for field in fields(Planned)}
        return cls(**planned_fields, front=front, association=association)

    def replanned(self, planned: Planned) -> Compiled:
        """Another plan for the same program."""
        return Compiled.of(planned, self.front, self.association)

    @property
    def optimistic(self) -> bool:
        """Whether integers may overflow that would not in the order that is written."""
        return self.front.lowering.integers and may_overflow(self.program)

    @property
    def all_inputs(self) -> Mapping[str, BoundInput]:
        """The inputs, also those that give the program nothing but sizes."""
        return {**self.front.inputs, **self.inputs}

    @cached_property
    def made_dense(self) -> tuple[str, ...]:
        """A line about each sparse tensor that is made dense, with the reason."""
        return made_dense(self.decomposed, self.statistics)

    @cached_property
    def nonfill(self) -> frozenset[str]:
        """Tensors of which an entry that holds the fill says nothing (`ucle.plan.forms`)."""
        reduces, types = made_by(self.front.source.statements), self.program.types
        return frozenset(
            x for x, by in reduces.items() if x in types and says_nothing(types[x], by)
        )
