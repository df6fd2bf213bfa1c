"""Plans that run repeatedly: invariants are computed once, and changing tensors are held.

Relations that depend on no changing input become tables that are made once (`split`). The rest
reads these tables, and the tables that the previous run has left (`hold`), by `Held` steps, whose
names stand for tables that already exist.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from ucle.foundation.dataclasses import dataclass
from ucle.foundation.names import fold_name, unique_names
from ucle.ir.layouts import Layout, Level
from ucle.ir.tensor_types import TensorType
from ucle.plan.complete_keyless import is_there
from ucle.plan.inline import may_be_written
from ucle.plan.plan_program import RELATIONS
from ucle.plan.relation_nodes import (
    Densify,
    FusedStep,
    Held,
    HeldRow,
    Load,
    Read,
    Relation,
    Renamed,
    Repartition,
    Slot,
    TableScan,
)
from ucle.plan.relation_tree import reading, reads
from ucle.plan.repartition_paths import changes
from ucle.plan.sources import TableName
from ucle.plan.steps import Plan, Role, Step


def held_name(name: str) -> str:
    """Return the name of the step for a table that already exists; no tensor has such a name.

    >>> held_name("W")
    'W held'
    """
    return f"{name} held"


def hold(plan: Plan, tables: Mapping[str, Read]) -> Plan:
    """Return the plan that reads some inputs from tables that already exist.

    Args:
        plan: plan before any passes.
        tables: the place of each input: a column of a row shared with others, or a table of its
            own.
    """
    steps: list[Step] = list(held_steps(tables, "as the run before left it"))
    as_held: dict[str, Read] = {}
    for step in plan.steps:
        # Repartitions of the input read the table itself, which may already have their layout.
        if step.tensor not in tables or not isinstance(
            step.relation, TableScan | Load | Repartition
        ):
            steps.append(replace(step, relation=reading(step.relation, as_held)))
            continue
        held = tables[step.tensor]
        read = _as_input(held, step.relation.type)
        if held.layout == step.relation.layout and isinstance(read, Read):
            as_held[step.name] = held
        else:
            relation = in_layout(read, step.relation.layout)
            steps.append(replace(step, role=Role.VIEW, relation=relation))
    return replace(plan, steps=_find_needed_steps(steps, plan.results))


def first_state(plan: Plan, name: str, held: Read) -> Plan | None:
    """Return the plan that makes the first state of an input; None where nothing reads the input.

    Args:
        plan: plan before any passes.
        name: the input.
        held: the table of a later state, whose layout and columns the first one gets.
    """
    scans = (x for x in plan.steps if x.tensor == name and isinstance(x.relation, TableScan | Load))
    source = next(scans, None)
    if source is None:
        return None
    given = replace(source, name=f"{name} given")
    relation = in_layout(_read(given), held.layout)
    if relation.type.fill != held.type.fill:  # a missing tuple would hold that of later states
        relation = Densify(relation)
    columns = [[x.axes[n].name for n in held.layout.promoted] for x in (relation.type, held.type)]
    if columns[0] != columns[1]:
        relation = Renamed(relation, replace(relation.type, axes=held.type.axes))
    made = Step(name, name, Role.VIEW, relation, f"{name}: as it is given")
    return Plan((given, made), {name: _read(made)}, plan.dictionaries)


def held_steps(tables: Mapping[str, Read], why: str) -> Iterator[Step]:
    """Yield the steps for existing tables: one for each table, or for a row of several tensors."""
    rows: dict[str, dict[str, Held]] = {}
    for read in tables.values():
        held = Held(read.type, read.layout)
        if read.column is None:
            yield Step(read.step, read.tensor, Role.INPUT, held, f"{read.tensor}: {why}")
        else:
            rows.setdefault(read.step, {})[read.column] = held
    for name, members in rows.items():
        yield Step(name, name, Role.INPUT, HeldRow(members), f"{', '.join(members)}: {why}")


def _find_needed_steps(steps: Sequence[Step], results: Iterable[str]) -> tuple[Step, ...]:
    """Return the steps that results depend on."""
    read = set(results)
    kept: list[Step] = []
    for step in reversed(steps):
        if step.name in read:
            kept.append(step)
            read.update(reads(step.relation))
    return tuple(reversed(kept))


def complete(plan: Plan, outputs: Collection[str]) -> Plan:
    """Return the plan that stores every tuple of some outputs, also those that hold the fill."""
    taken = {fold_name(step.name) for step in plan.steps}
    reads = {plan.outputs[output].step: plan.outputs[output] for output in outputs}
    steps: list[Step] = []
    made = dict(plan.outputs)
    for step in plan.steps:
        if step.name not in reads:
            steps.append(step)
            continue
        read = reads[step.name]
        comment = f"{step.tensor}: its fill where it is not stored"
        (name,) = unique_names([f"{step.name}_stored"], taken)
        if read.layout.compressed is None:
            # Readers of the step read the complete one, so that it is made once.
            steps.append(replace(step, name=name))
            whole = Densify(replace(read, step=name))
            steps.append(Step(step.name, step.tensor, step.role, whole, comment))
            continue
        levels = [Level.DENSE if x is Level.COMPRESSED else x for x in read.layout.levels]
        whole = Densify(in_layout(read, replace(read.layout, levels=tuple(levels))))
        steps += [step, Step(name, step.tensor, Role.VIEW, whole, comment)]
        kept = Read(name, step.tensor, whole.type, whole.layout)
        made |= {x: kept for x in outputs if plan.outputs[x].step == step.name}
    return replace(plan, steps=tuple(steps), outputs=made)


@dataclass(frozen=True)
class HoistedPlan:
    """A plan split in two."""

    before: Plan
    """The part that depends on no changing input. Its outputs have the names of its steps."""
    again: Plan
    """The rest, which reads the outputs of `before` as held tables."""
    outputs: Mapping[str, Read]
    """The outputs of the whole plan that are made before, with the steps that make them."""


FIXED = "fixed"
"""The name of the row of whole tensors that are made once."""


def split(
    plan: Plan,
    changing: Collection[str],
    constants: Collection[str],
    *,
    rows: bool = False,
    in_place: bool = True,
) -> HoistedPlan:
    """Split a plan into a part that is made once and a part that is made each time.

    Args:
        plan: plan before any passes; some of its inputs may already be held.
        changing: inputs that differ each time.
        constants: arrays that may be written out as constants.
        rows: True if whole tensors may share one row.
        in_place: True if database tables whose entries are read unchanged are read each time.
    """
    fixed: dict[str, Step] = {}
    for step in plan.steps:
        if isinstance(step.relation, TableScan | Load | Held):
            same = step.tensor not in changing
        elif isinstance(step.relation, HeldRow):
            same = False
        else:
            same = all(name in fixed for name in reads(step.relation))
        if same:
            fixed[step.name] = step
    again = [step for step in plan.steps if step.name not in fixed]
    read = dict.fromkeys(x for step in again for x in reads(step.relation) if x in fixed)
    again_read = [fixed[x] for x in read if in_place and _read_in_place(fixed[x], constants)]
    done = {name: x for name, x in plan.outputs.items() if x.step in fixed}
    made = dict.fromkeys((*(x for x in read if fixed[x] not in again_read), *_steps(done)))
    before = [x for step in fixed.values() for x in _as_tables(step, made, scans=not in_place)]
    outputs = {name: _read(fixed[name]) for name in made}
    whole = [x for x in outputs.values() if not x.layout.promoted]
    if rows and whole:  # also of one, which otherwise may be a column of a fused step
        (row,) = unique_names([FIXED], {fold_name(step.name) for step in before})
        before.append(_as_row(row, whole, fixed))
        outputs |= {x.step: replace(x, step=row, column=x.step) for x in whole}
    as_held = {name: replace(x, step=held_name(x.step)) for name, x in outputs.items()}
    held = held_steps({x: as_held[x] for x in made if x in read}, "made once")
    rest = [replace(x, relation=reading(x.relation, as_held)) for x in again]
    return HoistedPlan(
        Plan(
            tuple(before),
            outputs,
            plan.dictionaries,
            tuple(x for x in plan.checked if x.step in fixed),
        ),
        Plan(
            (*held, *again_read, *rest),
            {name: x for name, x in plan.outputs.items() if name not in done},
            (),
            tuple(x for x in plan.checked if x.step not in fixed),
            plan.positions_in,
        ),
        done,
    )


def _as_row(name: str, tensors: Sequence[Read], steps: Mapping[str, Step]) -> Step:
    """Return whole tensors as columns of one row; tensors that are not stored become their fill."""
    slots = [Slot(number, x.type, x.layout) for number, x in enumerate(tensors)]
    lines: list[Relation] = []
    results: dict[str, Slot] = {}
    for read, slot in zip(tensors, slots, strict=True):
        results[read.step] = slot
        if not is_there(steps[read.step].relation):
            results[read.step] = replace(slot, number=len(tensors) + len(lines))
            lines.append(Densify(slot))
    tape = FusedStep(tuple(tensors), tuple(lines), results)
    return Step(name, name, Role.TABLE, tape, f"{', '.join(results)}: made once")


def _steps(outputs: Mapping[str, Read]) -> list[str]:
    return [read.step for read in outputs.values()]


def _read_in_place(step: Step, constants: Collection[str]) -> bool:
    """Return whether reading a step each time costs no more than reading a table of its result."""
    match step.relation:
        case TableScan(source, _, layout):
            plain = isinstance(source.origin, TableName) and not source.sum_duplicates
            return plain and layout.scalar and not any(source.encoded) and not source.pairs
        case Load() as load:
            return load.source.tensor in constants and may_be_written(load)
    return False


def _as_tables(step: Step, made: Collection[str], *, scans: bool) -> Iterator[Step]:
    """Yield a step that can become a table: an array from memory gets a step that reads it.

    So does a table that is scanned, if `scans`.
    """
    given = isinstance(step.relation, Load) or (scans and isinstance(step.relation, TableScan))
    if step.name not in made or not given:
        yield step
        return
    source = replace(step, name=f"{step.name} given")
    yield source
    yield replace(step, role=Role.VIEW, relation=_read(source))


def _read(step: Step) -> Read:
    return Read(step.name, step.tensor, step.relation.type, step.relation.layout)


def _as_input(read: Read, given: TensorType) -> Relation:
    """Return an existing table with the type of the input and its names for key columns."""
    names = [
        [type_.axes[axis].name for axis in read.layout.promoted] for type_ in (read.type, given)
    ]
    return replace(read, type=given) if names[0] == names[1] else Renamed(read, given)


def in_layout(relation: Relation, layout: Layout) -> Relation:
    """Return a relation brought into another layout."""
    for change in changes(relation.layout, layout, relation.type.shape):
        relation = RELATIONS[change.kind](relation, change.layout)
    return relation
