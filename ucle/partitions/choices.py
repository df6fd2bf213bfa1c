"""Choices of a placement for every tensor of a plan, and the cost of each.

Each step can be computed on partitions in certain ways (`ucle.plan.placement_rules`). The cost of
choosing one way for each step depends on the whole plan: bytes that move, stages that start one
after the other, and work that workers share or do not. A dynamic program over the steps finds a
choice under the assumption that each reader has its own copy of its inputs, and another one under
the assumption that all readers share one. From there, and from a plan on one partition, steps
change their ways one at a time as long as the total cost falls.

Costs of steps are nanoseconds of one processor (`ucle.plan.prices`), and so are those of moving
tuples, which a `Network` states.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import field
from functools import cached_property
from typing import Protocol

from ucle.foundation.dataclasses import dataclass
from ucle.ir.layouts import Layout
from ucle.options import RUNS
from ucle.partitions.placed_files import PlacedFiles
from ucle.plan.placement_rules import (
    SINGLE,
    SOURCES,
    Placement,
    Spread,
    Way,
    leaves,
    raw_columns,
    source_placements,
    ways,
)
from ucle.plan.relation_nodes import TableScan
from ucle.plan.sources import OneRow
from ucle.plan.steps import Plan, Step


@dataclass(frozen=True)
class Network:
    """Constants of a cluster.

    `workers` is the number of those that compute at once. A byte that is moved costs `byte` for
    writing and reading it, and is sent over a link of `gigabits` a second. `job` is the time that
    one stage of fragments takes to start, however small it is.
    """

    workers: int = 2
    gigabits: float = 10.0
    byte: float = 4.0
    job: float = 1.0e9

    def price_move(self, size: float) -> float:
        """Nanoseconds for moving so many bytes, by all workers at once."""
        return self.price_fetch(size) / self.workers

    def price_fetch(self, size: float) -> float:
        """Nanoseconds for moving so many bytes through the link of one worker."""
        return size * (self.byte + 8.0 / self.gigabits)


NETWORK = Network()
"""A small cluster, with constants measured on Spark 4.3 with local workers."""


@dataclass(frozen=True)
class Repeated:
    """What the runs of a plan have in common, if there are many.

    `kept` are sources whose rows are the same each time, and stay where steps read them, with the
    placements in which they are made. `carried` are sources that the result of a step replaces the
    next time, by the name of that step. Where the placement of either is the one that is wanted,
    these rows stay where they were made; None is never wanted.
    """

    kept: Mapping[str, Placement | None] = field(default_factory=dict)
    carried: Mapping[str, str] = field(default_factory=dict)


ONCE = Repeated()


MOST_SWEEPS = 8


@dataclass(frozen=True)
class Tuples:
    """The number of tuples of a tensor in a layout, and their bytes with keys."""

    count: float
    bytes: float


class Sizes(Protocol):
    """Estimated sizes of relations."""

    def tuples(self, tensor: str, layout: Layout) -> Tuples:
        """The tuples of a tensor in a layout."""
        ...

    def count_joined(self, vertex: str) -> float:
        """Estimate how many tuples an aggregation of a vertex reads."""
        ...


@dataclass(frozen=True)
class Shuffled:
    """A relation that is shuffled for the steps of a stage: its step, and its destination."""

    step: str
    stage: int
    placement: Placement


Choice = Mapping[str, Way]
"""The way of every step that is not a source."""


class Problem:
    """A plan with the costs of its choices."""

    def __init__(
        self,
        plan: Plan,
        sizes: Sizes,
        network: Network,
        partitions: int,
        repeated: Repeated = ONCE,
        files: Mapping[str, PlacedFiles] | None = None,
    ) -> None:
        """State a problem, of one run or of the repeated ones.

        `files` are the files of inputs that lie where some placements want their rows.
        """
        self.plan = plan
        self.kept = repeated.kept
        self._carried = repeated.carried
        self.network = network
        self.partitions = partitions
        self._sizes = sizes
        self._tuples: dict[str, Tuples] = {}
        """Cached sizes of steps: choices are priced by the thousand."""
        self.steps = {step.name: step for step in plan.steps}
        self.sources = {s.name: s for s in plan.steps if isinstance(s.relation, SOURCES)}
        self.served = {
            name: source_placements(step.relation)  # type: ignore[arg-type]
            for name, step in self.sources.items()
        }
        self.inner = [step for step in plan.steps if step.name not in self.sources]
        self.reads = {step.name: leaves(step.relation) for step in self.inner}
        self.ways = {step.name: self._possible(step) for step in self.inner}
        self._files = files or {}
        self._at: dict[tuple[str, Placement], tuple[PlacedFiles, tuple[str, ...]] | None] = {}
        """What `files_at` has found, with the columns of the placement."""

    @cached_property
    def _readers(self) -> Counter[str]:
        """The number of times that each relation is read."""
        return Counter(read.step for reads in self.reads.values() for read in reads)

    def _possible(self, step: Step) -> tuple[Way, ...]:
        """The ways of a step for which its inputs can be placed."""
        found = []
        for way in ways(step.relation):
            pairs = zip(self.reads[step.name], way.reads, strict=True)
            if all(r.step not in self.served or p in self.served[r.step] for r, p in pairs):
                found.append(way)
        assert found, f"{step.name} cannot be computed on partitions"
        return tuple(found)

    def tuples(self, name: str) -> Tuples:
        """Estimate the tuples that a step makes."""
        if name not in self._tuples:
            step = self.steps[name]
            relation = step.relation
            one = isinstance(relation, TableScan) and isinstance(relation.source.origin, OneRow)
            made = Tuples(1.0, 0.0) if one else self._sizes.tuples(step.tensor, relation.layout)
            self._tuples[name] = made
        return self._tuples[name]

    def size(self, name: str) -> float:
        """Estimate the bytes that a step makes."""
        return self.tuples(name).bytes

    def partial(self, name: str) -> float:
        """Estimate the bytes of all partial results, for a step that combines them.

        Each partition has at most one tuple for each tuple of the result, and all together have at
        most one for each tuple that they aggregate.
        """
        made = self.tuples(name)
        aggregated = max(self._sizes.count_joined(self.steps[name].tensor), made.count)
        most = min(made.count * self.partitions, aggregated)
        return made.bytes / max(made.count, 1.0) * most

    def files_at(self, name: str, wanted: Placement) -> PlacedFiles | None:
        """Return the files of a source if they lie where a placement wants its rows."""
        found = self._find_files(name, wanted)
        return None if found is None else found[0]

    def _find_files(
        self, name: str, wanted: Placement
    ) -> tuple[PlacedFiles, tuple[str, ...]] | None:
        if not self._files or name not in self.sources:
            return None
        asked = name, wanted
        if asked not in self._at:
            step, self._at[asked] = self.steps[name], None
            files, scan = self._files.get(step.tensor), step.relation
            if files is not None and isinstance(scan, TableScan) and wanted.axes:
                columns = raw_columns(scan, wanted)
                if columns is not None and files.place(columns):
                    self._at[asked] = files, columns
        return self._at[asked]

    def alone(self) -> dict[str, Way]:
        """Return the choice of one partition for everything."""
        chosen = {}
        for name, possible in self.ways.items():
            single = [w for w in possible if w.makes == SINGLE and not w.combined]
            chosen[name] = next(w for w in single if all(p == SINGLE for p in w.reads))
        return chosen

    def price_move(self, size: float, placement: Placement) -> float:
        """Price the movement of tuples to a placement."""
        copies = self.partitions if placement.spread is Spread.REPLICATED else 1
        if placement.spread is Spread.SINGLE:
            return self.network.price_fetch(size)
        return self.network.price_move(size * copies)

    def _share(self, name: str) -> float:
        """The part that one run has in moving a relation."""
        return 1.0 / RUNS if name in self.kept else 1.0

    def price_step(self, step: Step, way: Way) -> float:
        """Price a step where it runs."""
        if way.makes.spread in (Spread.SINGLE, Spread.REPLICATED) and not way.combined:
            return step.cost
        return step.cost * max(
            1.0 / min(self.network.workers, self.partitions), self._fullest(step, way)
        )

    def _fullest(self, step: Step, way: Way) -> float:
        """The share that the fullest partition has of the rows of files, if a step reads any."""
        if not self._files:
            return 0.0
        pairs = zip(self.reads[step.name], way.reads, strict=True)
        there = (self._find_files(read.step, wanted) for read, wanted in pairs)
        shares = (x[0].largest_share(x[1], self.partitions) for x in there if x is not None)
        return max(shares, default=0.0)

    def stages(self, choice: Choice) -> dict[str, tuple[int, int]]:
        """Compute the first and the last stage of each step; tuples move between stages."""
        found: dict[str, tuple[int, int]] = {}
        for step in self.inner:
            way, begin = choice[step.name], 0
            for read, wanted in zip(self.reads[step.name], way.reads, strict=True):
                if read.step in self.sources:
                    continue
                _, ready = found[read.step]
                begin = max(begin, ready + (not choice[read.step].makes.serves(wanted)))
            found[step.name] = begin, begin + way.combined
        return found

    def exchanges(
        self, choice: Choice, stages: Mapping[str, tuple[int, int]]
    ) -> dict[Shuffled, float]:
        """Return the shuffles of a choice with its `stages`, and the bytes of each."""
        found: dict[Shuffled, float] = {}
        for step in self.inner:
            way = choice[step.name]
            begin, end = stages[step.name]
            for read, wanted in zip(self.reads[step.name], way.reads, strict=True):
                source = read.step in self.sources
                if source or stages[read.step][1] < begin:
                    stays = source and self._stays(read.step, wanted, choice)
                    size = 0.0 if stays else self._moved_bytes(read.step, wanted)
                    found[Shuffled(read.step, begin, wanted)] = size
            if way.combined:
                found[Shuffled(step.name, end, way.makes)] = self.partial(step.name)
        return found

    def _moved_bytes(self, name: str, wanted: Placement) -> float:
        """Estimate what moves where a placement wants a relation: rows, or names of their files."""
        made = self.kept.get(name)
        if made is not None and made.serves(wanted):
            return 0.0
        files = self.files_at(name, wanted)
        return self.size(name) if files is None else files.names_bytes

    def _stays(self, source: str, wanted: Placement, choice: Choice) -> bool:
        """True if the rows that take the place of a source are made where they are wanted."""
        maker = choice.get(self._carried.get(source, ""))
        return maker is not None and maker.makes.stored.serves(wanted)

    def cost(self, choice: Choice) -> float:
        """Price a choice, in nanoseconds."""
        stages = self.stages(choice)
        last = max((end for _, end in stages.values()), default=0)
        moved = sum(
            self._share(each.step) * self.price_move(size, each.placement)
            for each, size in self.exchanges(choice, stages).items()
        )
        work = sum(self.price_step(step, choice[step.name]) for step in self.inner)
        return (last + 1) * self.network.job + moved + work

    def by_dynamic_program(self, *, shared: bool = False) -> dict[str, Way]:
        """Return the cheapest ways, if each reader had its own copy of its inputs.

        With `shared`, if all readers of a relation shared one copy of it.
        """
        best: dict[str, dict[Placement, tuple[float, Way]]] = {}
        for step in self.inner:
            own: dict[Placement, tuple[float, Way]] = {}
            for way in self.ways[step.name]:
                cost = self.price_step(step, way)
                if way.combined:
                    cost += self.network.job + self.price_move(self.partial(step.name), way.makes)
                for read, wanted in zip(self.reads[step.name], way.reads, strict=True):
                    cost += self._price_reach(read.step, wanted, best, shared=shared)[0]
                if cost < own.get(way.makes, (math.inf, way))[0]:
                    own[way.makes] = cost, way
            best[step.name] = own
        chosen: dict[str, Way] = {}
        wanted_by: dict[str, Placement] = {}
        for step in reversed(self.inner):
            target = wanted_by.get(step.name)
            if target is None:
                _, way = min(best[step.name].values(), key=lambda pair: pair[0])
            else:
                _, reached = self._price_reach(step.name, target, best, shared=shared)
                assert reached is not None
                way = best[step.name][reached][1]
            chosen[step.name] = way
            for read, needed in zip(self.reads[step.name], way.reads, strict=True):
                if read.step not in self.sources:
                    wanted_by.setdefault(read.step, needed)
        return {step.name: chosen[step.name] for step in self.inner}

    def _price_reach(
        self,
        name: str,
        wanted: Placement,
        best: Mapping[str, Mapping[Placement, tuple[float, Way]]],
        *,
        shared: bool,
    ) -> tuple[float, Placement | None]:
        """Price having a tensor in a placement; return its cost and the place where it is made."""
        size = self._moved_bytes(name, wanted)
        exchange = self._share(name) * self.price_move(size, wanted)
        if shared:
            exchange /= self._readers[name]
        if name in self.sources:
            return exchange, None
        exchange += self.network.job
        return min(
            (
                (cost + (0.0 if place.serves(wanted) else exchange), place)
                for place, (cost, _) in best[name].items()
            ),
            key=lambda pair: pair[0],
        )

    def improve_choice(self, choice: Choice) -> dict[str, Way]:
        """Improve a choice until no single step has a better way."""
        current = dict(choice)
        cost = self.cost(current)
        for _ in range(MOST_SWEEPS):
            before = cost
            for step in self.inner:
                for way in self.ways[step.name]:
                    if way == current[step.name]:
                        continue
                    other = {**current, step.name: way}
                    if (tried := self.cost(other)) < cost:
                        current, cost = other, tried
            if cost == before:
                break
        return current
