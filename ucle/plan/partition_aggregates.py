"""Run aggregations whose groups exceed the memory in rounds, by ranges of the result's keys.

DuckDB spills the part of an aggregation that does not fit into memory. But if rows come in no order
of the groups, as out of a join that is spilled, too, each part of them meets all groups again, and
a state that carries an array is written and read as many times. In rounds, the states of one round
fit into the memory: relations with the key are read part by part, the other operands of its joins
once for each round.

The part of a table of numbers is a table of its own while its round runs. DuckDB assumes a fifth of
the rows for any range filter, and would mistake the large side of a join for the small one; for a
table it knows the number of rows. A file that each round would read becomes a table, too: of 100
million tuples in Parquet, reading takes 5.3 s of processor time, writing them 4.1, and reading them
from a table 1.3.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property

from ucle.foundation.dataclasses import dataclass
from ucle.foundation.names import unique_names
from ucle.ir.fills import JoinKind
from ucle.ir.layouts import Level
from ucle.plan.materialise import group_bytes
from ucle.plan.pass_context import Memory, PassContext
from ucle.plan.relation_nodes import (
    Aggregate,
    BlockRepartition,
    Compress,
    Compute,
    Decompose,
    Join,
    LookupJoin,
    MaskedJoin,
    Portion,
    Read,
    Recode,
    Relation,
    Stack,
    TableScan,
)
from ucle.plan.relation_tree import inputs, reads, with_inputs
from ucle.plan.sources import DataFile
from ucle.plan.steps import Plan, Role, Round, Step

ROUND = 0.3
"""The share of the memory that the groups of one round may take: each thread may have all of them,
and rows of the result and of a join's table need memory, too."""

LEAST_ROUNDS = 3
"""The fewest rounds, if there are any: a round that takes most of the memory gains nothing."""

FEWER = 0.7
"""The most rows of a part, as a share of those of another operand that does not fit into a round:
DuckDB builds a table of the side of a join that has fewer rows, and that should be the part."""

MOST_ROUNDS = 64
"""The most rounds of one statement; each reads the operands without the key again."""


def partition_aggregates(plan: Plan, context: PassContext) -> Plan:
    """Split the statements whose groups exceed the memory into rounds, if their keys allow it."""
    memory = context.memory
    if memory is None:
        return plan
    (part,) = unique_names(["part"], set(plan.used_names))
    steps: dict[str, Step] = {}
    for step in plan.steps:
        whole = step.role is not Role.TABLE
        made = step if whole else _AggregateStatement(step, memory, part).in_rounds()
        for each in _read_files_once(made, memory):  # a file of several statements once
            steps.setdefault(each.name, each)
    return replace(plan, steps=tuple(steps.values()))


def _read_files_once(step: Step, memory: Memory) -> Iterator[Step]:
    """Yield tables of the files that every round of a step would read, and the step."""
    names = {view.name for view in step.views if step.rounds and _is_file(view, memory)}
    yield from (replace(view, role=Role.TABLE) for view in step.views if view.name in names)
    yield _without_views(step, names) if names else step


def _is_file(view: Step, memory: Memory) -> bool:
    """Return whether a view is a file whose tuples DuckDB keeps in memory as a table."""
    scan = view.relation
    if not isinstance(scan, TableScan) or not isinstance(scan.source.origin, DataFile):
        return False
    return memory.holds(view.tensor, scan.layout)


def _without_views(step: Step, names: Collection[str]) -> Step:
    def kept(views: Iterable[Step]) -> tuple[Step, ...]:
        return tuple(view for view in views if view.name not in names)

    rounds = (
        Round(
            tuple(replace(table, views=kept(table.views)) for table in each.tables),
            each.relation,
            kept(each.views),
        )
        for each in step.rounds
    )
    return replace(step, rounds=tuple(rounds), views=kept(step.views))


@dataclass(frozen=True)
class _Carrier:
    """A relation that is read in parts: its place, its key, and the positions of one step.

    `place` is the path to it from the owner's relation: the number of an input, then of an input of
    that, and so on. (An operand may occur twice, and be read in parts once.)
    """

    owner: str
    place: tuple[int, ...]
    relation: Read
    axis: int
    positions: int


@dataclass(frozen=True)
class _Path:
    """The relations that carry a key of the result, and the sizes on the way to them.

    `group_bytes` are the most bytes of groups on the way. `excess` is the most rows for each row of
    a large operand that does not have the key.
    """

    carriers: tuple[_Carrier, ...] = ()
    group_bytes: float = 0.0
    excess: float = 0.0


@dataclass(frozen=True)
class _AggregateStatement:
    """A step with its views, the available memory, and the name of tables for its parts."""

    step: Step
    memory: Memory
    part: str

    @cached_property
    def parts(self) -> Mapping[str, Step]:
        """The views of the step, and the step itself, by name."""
        return {part.name: part for part in (*self.step.views, self.step)}

    @cached_property
    def uses(self) -> Counter[str]:
        """The number of reads of each step."""
        return Counter(name for part in self.parts.values() for name in reads(part.relation))

    def in_rounds(self) -> Step:
        """Return the step with its rounds, if it needs any and can have them."""
        layout = self.step.relation.layout
        most, best = 1, (0, _Path())
        # Materialised parts of a statement would be computed again in each round.
        if any(
            x.role is Role.TABLE and not isinstance(x.relation, TableScan) for x in self.step.views
        ):
            return self.step
        for axis in layout.promoted:
            path = self._path(axis)
            count = min(self._count(path), self.step.relation.type.key_range(layout, axis))
            if count > most:
                most, best = count, (axis, path)
        if most == 1:
            return self.step
        axis, path = best
        bound = self.step.relation.type.key_range(layout, axis)
        ends = [None, *(n * bound // most for n in range(1, most)), None]
        rounds = tuple(self._round(path, *ends[n : n + 2]) for n in range(most))
        name = self.step.relation.type.axes[axis].name
        comment = f"{self.step.comment}; in {most} rounds by {name}"
        return replace(self.step, rounds=rounds, comment=comment)

    def _count(self, path: _Path) -> int:
        """Return the number of rounds by a key; 1 if they are not needed or not possible."""
        if not path.carriers or not self.memory.is_exceeded_by(path.group_bytes):
            return 1
        rounds = max(path.group_bytes / (ROUND * self.memory.bytes), path.excess / FEWER)
        return min(max(math.ceil(rounds), LEAST_ROUNDS), MOST_ROUNDS)

    def _path(self, axis: int) -> _Path:
        """Return what to read in parts so that the result is made in parts along an axis."""
        carriers, most, excess = list[_Carrier](), 0.0, 0.0
        waiting: list[tuple[Step, tuple[int, ...], Relation, int, int]]
        waiting = [(self.step, (), self.step.relation, axis, 1)]
        while waiting:
            owner, place, relation, key, positions = waiting.pop()
            if not place:
                most = max(most, group_bytes(owner, self.memory))
            match relation:
                case Read(name) if self._is_only_here(name):
                    view = self.parts[name]
                    waiting.append((view, (), view.relation, key, positions))
                case Read():
                    carriers.append(_Carrier(owner.name, place, relation, key, positions))
                case Decompose() | Stack() | Compress() | Recode() | BlockRepartition():
                    before, after = relation.input.layout, relation.layout
                    levels = before.levels[key], after.levels[key]
                    if levels == (Level.PROMOTED, Level.TILED):
                        positions *= after.tile
                    elif levels[0] is not levels[1] or (
                        levels[0] is Level.TILED and before.tile != after.tile
                    ):
                        continue
                    waiting.append((owner, (*place, 0), relation.input, key, positions))
                case LookupJoin(operands):  # its axes begin with those of the first operand
                    waiting.append((owner, (*place, 0), operands[0], key, positions))
                case Aggregate():
                    excess = max(excess, self._excess(relation, relation.labels[key]))
                    for number, own in _operands(relation, relation.labels[key]):
                        operand = inputs(relation)[number]
                        waiting.append((owner, (*place, number), operand, own, positions))
        return _Path(tuple(carriers), most, excess)

    def _excess(self, node: Aggregate, label: str) -> float:
        """Return the number of rows with a label for each row of a large operand without it."""
        carrying = [number for number, _ in _operands(node, label)]
        rows, large = 0.0, math.inf
        for number, operand in enumerate(inputs(node)):
            if not isinstance(operand, Read) or not operand.layout.promoted:
                continue
            of = operand.tensor, operand.layout
            count = self.memory.rows(*of)
            if number in carrying:
                rows = max(rows, count)
            elif count * self.memory.payload(*of) > ROUND * self.memory.bytes:
                large = min(large, count)
        return rows / max(large, 1.0)

    def _is_only_here(self, name: str) -> bool:
        """Return whether a step is a view that is read once, and not a mere scan."""
        view = self.parts.get(name)
        if view is None or view.role is not Role.VIEW or self.uses[name] > 1:
            return False
        return not isinstance(view.relation, TableScan)

    def _round(self, path: _Path, start: int | None, end: int | None) -> Round:
        """Return the statement over the tuples of a range of positions."""
        tables, parts = list[Step](), dict(self.parts)
        for carrier in path.carriers:
            first, last = (None if x is None else x * carrier.positions for x in (start, end))
            cut: Relation = Portion(carrier.relation, carrier.axis, first, last)
            if cut.layout.scalar:
                name = f"{self.part}_{len(tables) + 1}" if tables else self.part
                tensor = carrier.relation.tensor
                note, below = f"a part of {tensor}", self._below(cut)
                tables.append(Step(name, tensor, Role.TABLE, cut, note, 0.0, below))
                cut = Read(name, tensor, cut.type, cut.layout)
            owner = parts[carrier.owner]
            relation = _replace_relation(owner.relation, carrier.place, cut)
            parts[owner.name] = replace(owner, relation=relation)
        whole = parts.pop(self.step.name).relation
        return Round(tuple(tables), whole, _find_reached_views(whole, parts))

    def _below(self, relation: Relation) -> tuple[Step, ...]:
        return _find_reached_views(relation, {view.name: view for view in self.step.views})


def _find_reached_views(relation: Relation, views: Mapping[str, Step]) -> tuple[Step, ...]:
    """Return the views that a relation reads, directly or not, in their order."""
    needed, waiting = set[str](), list(reads(relation))
    while waiting:
        name = waiting.pop()
        if name in views and name not in needed:
            needed.add(name)
            waiting += reads(views[name].relation)
    return tuple(view for name, view in views.items() if name in needed)


def _replace_relation(relation: Relation, place: tuple[int, ...], new: Relation) -> Relation:
    """Return a relation with another one at a place below it."""
    if not place:
        return new
    below = list(inputs(relation))
    below[place[0]] = _replace_relation(below[place[0]], place[1:], new)
    return with_inputs(relation, below)


def _operands(node: Aggregate, label: str) -> Iterator[tuple[int, int]]:
    """Yield the inputs that have a label as a key, with its axis, if their parts make parts.

    A tuple that an outer join makes of a missing partner belongs to no part.
    """
    match node.input:
        case Compute(Join(kind=kind)) if kind is not JoinKind.INNER:
            return
        case Compute(Join() as joined):
            labels = [joined.left_labels, joined.right_labels]
        case Compute(MaskedJoin() as masked):
            labels = [masked.labels, masked.left_labels, masked.right_labels]
        case _:
            labels = [node.input.labels]
    for number, (relation, own) in enumerate(zip(inputs(node), labels, strict=True)):
        axes = [axis for axis in relation.layout.promoted if own[axis] == label]
        if axes:
            yield number, axes[0]
