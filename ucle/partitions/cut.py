"""Cuts a plan into fragments, given the placement of every tensor."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace

from ucle.foundation.names import unique_names
from ucle.partitions.choices import Choice, Problem, Shuffled
from ucle.partitions.fragments import DistributedPlan, Fragment, FragmentInput, FragmentOutput
from ucle.plan.kernel_choice import ChosenKernel
from ucle.plan.placement_rules import REPLICATED, SCATTERED, Placement, Spread, raw_columns
from ucle.plan.relation_nodes import Aggregate, Compute, Held, Load, Read, Relation, TableScan
from ucle.plan.relation_tree import inputs, with_inputs
from ucle.plan.sources import OneRow, TableName
from ucle.plan.steps import Plan, Role, Step
from ucle.sqlgen.sql_trees import key_columns


def cut(problem: Problem, choice: Choice) -> DistributedPlan:
    """Cut a plan into the fragments of a choice."""
    stages = problem.stages(choice)
    last = max((end for _, end in stages.values()), default=0)
    exchanges: dict[int, dict[Shuffled, float]] = defaultdict(dict)
    for each, size in problem.exchanges(choice, stages).items():
        exchanges[each.stage][each] = size
    taken = {step.name.casefold() for step in problem.plan.steps}
    partials = {
        name: unique_names([f"{name}_partial"], taken)[0]
        for name in problem.ways
        if choice[name].combined
    }
    fragments = [
        _Cutter(problem, choice, stages, partials, stage).fragment(exchanges[stage])
        for stage in range(last + 1)
    ]
    outputs = {name: read.step for name, read in problem.plan.outputs.items()}
    seconds = problem.cost(choice) / 1e9
    return DistributedPlan(tuple(fragments), outputs, problem.partitions, seconds)


class _Cutter:
    """Makes the fragment of one stage."""

    def __init__(
        self,
        problem: Problem,
        choice: Choice,
        stages: Mapping[str, tuple[int, int]],
        partials: Mapping[str, str],
        stage: int,
    ) -> None:
        self._problem = problem
        self._choice = choice
        self._stages = stages
        self._partials = partials
        self._stage = stage
        self._incoming: list[FragmentInput] = []
        self._steps: list[Step] = []
        self._places: dict[str, Placement] = {}
        self._brought: dict[tuple[str, Placement], str] = {}
        self._taken = {step.name.casefold() for step in problem.plan.steps}
        self._taken |= {name.casefold() for name in partials.values()}
        self._used: set[str] = set()

    def fragment(self, exchanges: Mapping[Shuffled, float]) -> Fragment:
        problem, stage = self._problem, self._stage
        for dictionary in problem.plan.dictionaries:
            self._incoming.append(
                FragmentInput(
                    dictionary.name,
                    REPLICATED,
                    (),
                    dictionary,
                    dictionary.name,
                    kept=bool(problem.kept),
                )
            )
        combined = {
            each
            for each in exchanges
            if each.step in self._partials and self._stages[each.step][1] == stage
        }
        for each, size in exchanges.items():
            if each not in combined:
                self._bring(each, size)
        made: list[FragmentOutput] = []
        for step in problem.inner:
            begin, end = self._stages[step.name]
            way = self._choice[step.name]
            if begin == stage:
                relation = _with_leaves(step.relation, self._leaves(step))
                if not way.combined:
                    self._add(replace(step, relation=relation), way.makes)
                else:
                    name = self._partials[step.name]
                    comment = f"{step.comment}, of what lies here"
                    self._add(
                        replace(step, name=name, relation=relation, comment=comment), SCATTERED
                    )
                    made.append(FragmentOutput(_read(name, step), SCATTERED))
            if end == stage and way.combined:
                (size,) = [exchanges[x] for x in combined if x.step == step.name]
                self._add(self._final(step, way.makes, size), way.makes)
            if end == stage and self._is_made(step.name):
                made.append(FragmentOutput(_read(step.name, step), way.makes))
        outputs = {each.read.step: each.read for each in made}
        there = {step.name for step in self._steps}
        checked = tuple(read for read in problem.plan.checked if read.step in there)
        plan = Plan(tuple(self._steps), outputs, (), checked)
        return Fragment(tuple(self._incoming), plan, self._places, tuple(made))

    def _is_made(self, name: str) -> bool:
        """True if the result of a step leaves the fragment."""
        if name in {read.step for read in self._problem.plan.outputs.values()}:
            return True
        return any(
            self._stages[reader.name][0] > self._stages[name][1]
            for reader in self._problem.inner
            for read in self._problem.reads[reader.name]
            if read.step == name
        )

    def _add(self, step: Step, placement: Placement) -> None:
        self._steps.append(step)
        self._places[step.name] = placement

    def _bring(self, each: Shuffled, size: float) -> None:
        """Add a step for a relation that comes from elsewhere."""
        step = self._problem.steps[each.step]
        name = each.step
        if name in self._used:
            (name,) = unique_names([f"{each.step}_again"], self._taken)
        self._used.add(name)
        self._brought[each.step, each.placement] = name
        relation = step.relation
        if isinstance(relation, TableScan):
            relation = self._scan(step, relation, each.placement, size)
        else:
            columns = _columns(relation, each.placement)
            origin = relation if isinstance(relation, Load) else each.step
            self._incoming.append(
                FragmentInput(
                    name,
                    each.placement,
                    columns,
                    origin,
                    step.tensor,
                    size,
                    each.step in self._problem.kept,
                )
            )
            relation = _held(relation)
        role = Role.INPUT if isinstance(relation, Held) else Role.VIEW
        self._add(Step(name, step.tensor, role, relation, step.comment), each.placement)

    def _scan(self, step: Step, scan: TableScan, placement: Placement, size: float) -> TableScan:
        if isinstance(scan.source.origin, OneRow):
            return scan
        (rows,) = unique_names([f"rows of {step.name}"], self._taken)
        columns = raw_columns(scan, placement) if placement.axes else ()
        assert columns is not None
        files = self._problem.files_at(step.name, placement)
        self._incoming.append(
            FragmentInput(rows, placement, columns, scan, step.tensor, size, files=files)
        )
        source = replace(scan.source, origin=TableName((rows,)), table=True)
        return replace(scan, source=source)

    def _leaves(self, step: Step) -> Iterator[Read]:
        way = self._choice[step.name]
        begin, _ = self._stages[step.name]
        for read, wanted in zip(self._problem.reads[step.name], way.reads, strict=True):
            here = read.step not in self._problem.sources and self._stages[read.step][1] == begin
            yield read if here else replace(read, step=self._brought[read.step, wanted])

    def _final(self, step: Step, placement: Placement, size: float) -> Step:
        """The second phase of an aggregation, over the partial results of all partitions."""
        relation = step.relation
        assert isinstance(relation, Aggregate)
        name = self._partials[step.name]
        columns = _columns(relation, placement)
        self._incoming.append(FragmentInput(name, placement, columns, name, step.tensor, size))
        held = _held(relation)
        self._add(Step(name, step.tensor, Role.INPUT, held, step.comment), placement)
        whole = Compute(
            _read(name, step), relation.labels, ChosenKernel(None, relation.layout.scalar), None, ()
        )
        comment = f"{step.comment}, of what all partitions have made"
        return replace(step, relation=replace(relation, input=whole), comment=comment)


def _held(relation: Relation) -> Held:
    """A relation that an earlier fragment or run has made, maybe of tuples along keys."""
    return Held(relation.type, relation.layout, complete=isinstance(relation, Load))


def _columns(relation: Relation, placement: Placement) -> tuple[str, ...]:
    if placement.spread is not Spread.BY_AXES:
        return ()
    names = key_columns(relation.type)
    return tuple(names[axis] for axis in placement.axes)


def _read(name: str, step: Step) -> Read:
    return Read(name, step.tensor, step.relation.type, step.relation.layout)


def _with_leaves(relation: Relation, new: Iterator[Read]) -> Relation:
    """Replace the steps that a relation reads by others, from left to right."""
    if isinstance(relation, Read):
        return next(new)
    return with_inputs(relation, [_with_leaves(each, new) for each in inputs(relation)])
