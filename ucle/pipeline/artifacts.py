"""The results of the pipeline: planned and compiled programs, with the products of all stages.

A `Planned` program can run; a `Compiled` one also keeps its sources, so that it can be compiled
again for other sizes (`ucle.pipeline.resize`) or another decomposition (`ucle.pipeline.replan`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field, fields
from functools import cached_property

from ucle.foundation.caches import BoundedCache
from ucle.foundation.dataclasses import dataclass
from ucle.foundation.exact_key import ExactKey, Same
from ucle.inputs.dictionaries import Dictionaries
from ucle.inputs.fixed_axes import find_fixed_axes
from ucle.inputs.states import COLUMN_BYTES, BoundInput, PlacedInput, small_arrays
from ucle.ir.overflow import may_overflow
from ucle.ir.vertices import Program
from ucle.lowering.syntax_to_logical import ResolvedProgram
from ucle.lowering.tensors_of_positions import tensors_of_positions
from ucle.optimiser.join_order import Association, Lowering
from ucle.optimiser.made_dense import describe_dense_tensors
from ucle.options import Optimisations
from ucle.plan.decomposition import DecomposedProgram
from ucle.plan.forms import find_aggregations, says_nothing
from ucle.plan.join_every_tuple import relies_on_tuples
from ucle.plan.keep_coordinates import keep_coordinates
from ucle.plan.memory_model import Account
from ucle.plan.pass_context import Meanings, Memory, PassContext, Spreading
from ucle.plan.passes import PASSES, Pass, run_passes
from ucle.plan.sources import TableSource
from ucle.plan.step_memory import Estimates, most_states, plan_peak
from ucle.plan.steps import Plan
from ucle.sqlgen.scalar_operators import number_expression
from ucle.stats.estimate import ProgramStatistics, Rows
from ucle.udf_kernels.kernel_limits import kernel_limits

MOST_BYTES = 1 << 26
"""Bytes of all physical plans that are kept."""


@dataclass(frozen=True)
class PhysicalPlan:
    """A plan after all passes, with its predicted memory as far as it was asked for."""

    plan: Plan
    peaks: dict[tuple[Account, bool], float] = field(default_factory=dict)
    """The peak, by what is counted, and by whether only what is certain counts."""

    @cached_property
    def executed(self) -> Plan:
        """The plan without dictionaries that its steps do not look up."""
        return keep_coordinates(self.plan)


_physical = BoundedCache[PhysicalPlan](MOST_BYTES)


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
    """Number of threads of the engine."""
    memory: float
    """Bytes of memory that it may use."""

    @property
    def physical(self) -> Plan:
        """The physical plan: `plan`, whose steps are vertices, after all passes.

        Small arrays from memory are written into it with the contents that they have on first
        access. The plan is kept for later programs of which all that it depends on is the same.
        """
        return self._kept_plan.plan

    @cached_property
    def _kept_plan(self) -> PhysicalPlan:
        key = ExactKey.find(
            (
                # A loop has parts of the plan that was made for the decomposition.
                self.plan.exact_key or Same(self.plan),
                Same(self.decomposed),
                Same(self.statistics),
                small_arrays(self.inputs),
                self._written_columns,
                self.statement_price,
                self.optimisations,
                self.threads,
                self.memory,
            )
        )
        return _physical.get_or_make(key, lambda: PhysicalPlan(self.after(PASSES)))

    @property
    def executed(self) -> Plan:
        """The physical plan for results that number their keys when a reader asks for positions."""
        return self._kept_plan.executed

    @property
    def peak_memory(self) -> float:
        """Upper estimate of the bytes that an execution holds, beyond those held before it."""
        return self.count_memory(Account.ALL)

    @property
    def outside_memory(self) -> float:
        """The part of `peak_memory` outside of the engine's account, which it cannot spill."""
        return self.count_memory(Account.OUTSIDE)

    def count_memory(self, account: Account, *, certain: bool = False) -> float:
        """Return the bytes of an account that an execution holds at most.

        Args:
            account: what is counted.
            certain: whether tuples count only as far as there have to be as many.
        """
        peaks, asked = self._kept_plan.peaks, (account, certain)
        if asked not in peaks:
            estimates = self.certain_estimates if certain else self.memory_estimates
            peaks[asked] = plan_peak(self.physical, estimates, account)
        return peaks[asked]

    @property
    def state_memory(self) -> float:
        """The most bytes of states that kernels hold in a statement."""
        return most_states(self.physical, self.memory_estimates)

    @property
    def memory_estimates(self) -> Estimates:
        """The sizes from which the memory of statements is predicted."""
        return self._estimates(lambda rows: rows.estimate)

    @property
    def certain_estimates(self) -> Estimates:
        """The least sizes that tensors may have."""
        return self._estimates(lambda rows: rows.low)

    def _estimates(self, of: Callable[[Rows], float]) -> Estimates:
        statistics = self.statistics
        return Estimates(
            lambda tensor, layout: of(statistics.rows(tensor, layout)),
            statistics.payload_bytes,
            statistics.expanded_bytes,
            self.threads,
            kernel_limits().state_bytes,
        )

    def after(self, passes: Iterable[Pass]) -> Plan:
        """Return the plan after those of the given passes that are not switched off."""
        switches = self.optimisations
        context = PassContext(
            self.statement_price,
            small_arrays(self.inputs),
            number_expression,
            switches.references or 0,
            not self.decomposed.relational,
            self._spreading(),
            self._memory(),
            self._meanings(),
        )
        on = [rewrite for rewrite in passes if rewrite not in switches.off]
        return run_passes(self.plan, on, context)

    @property
    def _written_columns(self) -> Mapping[str, bytes]:
        """The arrays whose elements may be in expressions over columns; none without such rows."""
        wide = any(
            isinstance(source, TableSource) and source.wide
            for each in self.inputs.values()
            for source in each.sources
        )
        return small_arrays(self.inputs, COLUMN_BYTES, fills=True) if wide else {}

    def _meanings(self) -> Meanings:
        """The layouts of results are free unless a caller has said which labels are in arrays."""
        statistics, least = self.statistics, self.optimisations.columns
        chosen = self.decomposed.search is not None and not self.decomposed.relational
        return Meanings(
            self.program.by_name,
            self._written_columns,
            lambda tensor, layout: statistics.rows(tensor, layout).estimate,
            math.inf if least is None or not chosen else least,
        )

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
    """The sources of a program: enough to lower it again when sizes change."""

    inputs: Mapping[str, BoundInput]
    """All inputs, including those that no output needs: their sizes determine labels, too."""
    source: ResolvedProgram
    lowering: Lowering


@dataclass(frozen=True)
class Compiled(Planned):
    """A planned program with its sources."""

    front: Front
    association: Association | None
    """The join order of products, where it differs from the written one."""

    @classmethod
    def of(cls, planned: Planned, front: Front, association: Association | None) -> Compiled:
        """Combine a planned program with its sources."""
        planned_fields = {field.name: getattr(planned, field.name) for field in fields(Planned)}
        return cls(**planned_fields, front=front, association=association)

    def with_plan(self, planned: Planned) -> Compiled:
        """Return the same program with another plan."""
        return Compiled.of(planned, self.front, self.association)

    @property
    def optimistic(self) -> bool:
        """True if integers may overflow that would not overflow in the written order."""
        return self.front.lowering.integers and may_overflow(self.program)

    @property
    def all_inputs(self) -> Mapping[str, BoundInput]:
        """The inputs, including those that contribute only sizes to the program."""
        return {**self.front.inputs, **self.inputs}

    @cached_property
    def named_inputs(self) -> Mapping[str, BoundInput]:
        """The inputs of which a run reads entries, or names for a dictionary and nothing else."""
        columns = (column for table in self.dictionaries.tables for column, _ in table.columns)
        read = {source.origin for source in columns}
        others = {
            name: bound
            for name, bound in self.front.inputs.items()
            if isinstance(bound.source, TableSource) and bound.source.origin in read
        }
        return {**others, **self.inputs}

    @cached_property
    def relies_on_tuples(self) -> bool:
        """True if an input from which rows are gone may need another plan."""
        return relies_on_tuples(self.plan)

    @cached_property
    def made_dense(self) -> tuple[str, ...]:
        """One line for each sparse tensor that is made dense, with the reason."""
        return describe_dense_tensors(self.decomposed, self.statistics)

    @cached_property
    def nonfill(self) -> frozenset[str]:
        """Tensors in which an entry equal to the fill says nothing (`ucle.plan.forms`).

        Position 0 says as much as the others.
        """
        source, types = self.front.source, self.program.types
        reduces, positions = find_aggregations(source.statements), tensors_of_positions(source)
        return frozenset(
            x
            for x, by in reduces.items()
            if x in types and x not in positions and says_nothing(types[x], by)
        )

    @cached_property
    def fixed_axes(self) -> Mapping[str, frozenset[int]]:
        """The axes of each output whose sizes the type of a column fixes, as ``FLOAT[3]`` does."""
        ranks = {name: read.type.rank for name, read in self.plan.shown.items()}
        return find_fixed_axes(self.front.source.statements, self.front.inputs, ranks)
