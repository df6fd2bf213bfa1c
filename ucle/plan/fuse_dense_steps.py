"""Fuse steps that compute whole tensors from whole tensors into one call.

A step without key columns is no more than a call of a kernel or two. But as a statement it takes
DuckDB a millisecond, and nested in other expressions it is computed again for each of them. A fused
step (a tape) is one call for all of them (``udf_kernels/csrc/tape.c``): a step of training, a small
network or a circuit is then one statement, which makes one row with a column for each tensor that
others read.

Steps share a tape unless one of them waits for a relation with keys that depends on another.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import field, replace

from ucle.foundation.dataclasses import dataclass
from ucle.foundation.names import fold_name, unique_names
from ucle.ir.conditions import condition_labels, conjuncts
from ucle.ir.fills import JoinKind
from ucle.ir.maps import Cast, Map, Partial
from ucle.ir.tensor_types import TensorType
from ucle.operators import COMBINES, MAPS
from ucle.plan.complete_keyless import is_there
from ucle.plan.pass_context import PassContext
from ucle.plan.relation_nodes import (
    Aggregate,
    Compute,
    ConstantRelation,
    Densify,
    FusedMaps,
    FusedStep,
    Join,
    MaskedJoin,
    PrefixScan,
    Read,
    Recode,
    Reindex,
    Relation,
    Renamed,
    Slot,
    TopKEntries,
)
from ucle.plan.relation_tree import inputs, nodes, reading, reads, with_inputs
from ucle.plan.steps import Plan, Role, Step
from ucle.udf_kernels import kernel_limits, kernels, typed_name

NESTED = 8
"""The most calls for which one tensor is made by nested calls instead: they are easier to read."""

WIDEST = 200
"""The most one-row relations joined side by side: DuckDB nests them as deep, a thousand at most."""

INDICATORS = frozenset(
    (
        *(name for name, function in MAPS.items() if function.indicates),
        *(combine.stem for combine in COMBINES.values() if combine.indicates),
    )
)
"""The words of a chain that are worth 1 or 0."""

LARGEST = 1 << 24
"""The most bytes of a line's result: results are copied, and for larger ones a statement more does
not matter."""


def fuse_dense_steps(plan: Plan, context: PassContext) -> Plan:
    """Put steps on whole tensors on as few tapes as possible."""
    if not context.tapes:
        return plan
    lines = {step.name: step for step in plan.steps if _is_line(step.relation)}
    apart = plan.results
    readers = _readers(plan.steps)
    taken = {fold_name(step.name) for step in plan.steps}
    steps, columns = list(plan.steps), dict[str, Read]()
    for every in _by_level(plan.steps, lines, readers):
        own = {step.name for step in every}
        kept = {x for x in own if x in apart or any(y not in own for y in readers.get(x, ()))}
        if not _is_worth_it(every, kept):
            continue
        (name,) = unique_names(["tape"], taken)
        recorder = _Recorder({step.name: step for step in steps}, columns)
        tape = recorder.tape(_in_less_memory(every, kept), kept)
        sources = {x.step for x in tape.operands if isinstance(x, Read)}
        if len(tape.operands) > kernel_limits().operands or len(sources) > WIDEST:
            continue
        taken.add(fold_name(name))
        for step in every:
            if step.name in kept:
                columns[step.name] = _column(name, step)
        said = [step.comment for step in every if not isinstance(step.relation, Densify)]
        comment = "\n".join(dict.fromkeys(said))
        cost = sum(step.cost for step in every)
        steps = [step for step in steps if step.name not in own]
        steps.append(Step(name, every[-1].tensor, Role.TABLE, tape, comment, cost))
    if not columns:
        return plan
    return replace(
        plan,
        steps=_in_order([replace(x, relation=reading(x.relation, columns)) for x in steps]),
        outputs={x: columns.get(read.step, read) for x, read in plan.outputs.items()},
        checked=tuple(replace(x, read=columns.get(x.step, x.read)) for x in plan.checked),
    )


def _readers(steps: Sequence[Step]) -> dict[str, list[str]]:
    """Return the steps that read each step, with repetition."""
    readers: dict[str, list[str]] = {}
    for step in steps:
        for name in reads(step.relation):
            readers.setdefault(name, []).append(step.name)
    return readers


# ---- Lines ----


def _is_line(relation: Relation) -> bool:
    """Return whether a relation is a whole tensor that kernels compute from whole tensors."""
    within = list(nodes(relation))
    if any(node.layout.promoted or node.layout.deferred for node in within):
        return False
    dense = relation.layout.compressed is None
    if dense and relation.type.tuple_bytes(relation.layout) > LARGEST:
        return False
    operands = [x.input if isinstance(x, Densify) else x for x in inputs(relation)]
    if not all(isinstance(x, Read) for x in operands):
        return False
    if any(x.type.dtype.kind in "fc" for x in operands) and _may_fail(relation):
        return False  # for a NaN, which an earlier statement looks for
    match relation:
        case FusedMaps() | Recode() | Renamed() | Densify():
            return True
        case PrefixScan(kernel=kernel) | TopKEntries(kernel=kernel):
            return kernel.name is not None
        case Reindex(index=index, kernel=kernel):
            computed = index.value is not None or (index.hit is not None and kernel.name != "hits")
            # A condition without labels leaves out the tuple, and a tape has all tuples.
            about_labels = all(condition_labels(x) for x in conjuncts(index.condition))
            return kernel.name is not None and not computed and about_labels
        case Aggregate(compute, None):
            return _has_kernels(relation, compute)
    return False


def _may_fail(relation: Relation) -> bool:
    """Return whether floats become integers: they may be NaN, unless they say what is true."""
    if relation.type.dtype.kind != "i":
        return False
    match relation:
        case FusedMaps(program=program):
            words = program.split()
            casts = (n for n, word in enumerate(words) if word == relation.type.dtype.tag)
            return not all(n and words[n - 1] in INDICATORS for n in casts)
        case Aggregate(Compute(combine=combine, maps=maps)):
            indicates = combine is not None and combine.indicates
            for step in maps:
                if isinstance(step, Cast):
                    if step.result.kind == "i" and step.source.kind in "fc" and not indicates:
                        return True
                else:
                    indicates = (step.function if isinstance(step, Map) else step.combine).indicates
            return False
    return True


def _has_kernels(relation: Aggregate, compute: Compute) -> bool:
    """Return whether all operations of a vertex on one or two tensors have kernels."""
    for step in compute.maps:
        if isinstance(step, Map):
            name = typed_name(f"vec_{step.function.name}", step.dtype.tag)
            if not step.function.compiled or name not in kernels():
                return False
        elif isinstance(step, Partial):
            name = typed_name(f"vec_sca_{step.combine.stem}", step.dtype.tag)
            if not step.combine.compiled or name not in kernels():
                return False
    if compute.kernel.name is not None:
        return not compute.kernel.ragged
    if isinstance(compute.input, MaskedJoin):
        return False
    if isinstance(compute.input, Join):
        assert compute.combine is not None
        name = typed_name(f"vec_{compute.combine.stem}", relation.type.dtype.tag)
        return compute.combine.compiled and name in kernels()
    return True


# ---- Grouping of lines ----


def _by_level(
    steps: Sequence[Step], lines: Mapping[str, Step], readers: Mapping[str, Sequence[str]]
) -> Iterator[Sequence[Step]]:
    """Yield the lines of each tape, each after those that it reads.

    The level of a step is the number of tapes that it waits for: a relation that reads a line waits
    for one more than that line does. Lines go onto the last tape on which they may be.
    """
    level: dict[str, int] = {}
    for step in steps:
        below = reads(step.relation)
        waits = (level[x] + (x in lines and step.name not in lines) for x in below)
        level[step.name] = max(waits, default=0)
    last = max((level[name] for name in lines), default=0)
    for step in reversed(steps):
        if step.name in lines:
            bounds = (level[x] - (x not in lines) for x in readers.get(step.name, ()))
            level[step.name] = min(bounds, default=last)
    for number in range(last + 1):
        every = [step for step in steps if step.name in lines and level[step.name] == number]
        if every:
            yield every


def _is_worth_it(steps: Sequence[Step], kept: Collection[str]) -> bool:
    """Return whether steps make several tensors, or one by more calls than are nested."""
    if all(x.relation.layout.scalar for x in steps):
        return False
    uses = Counter(name for step in steps for name in reads(step.relation))
    shared = any(uses[step.name] > 1 for step in steps)
    calls = sum(not isinstance(step.relation, Renamed) for step in steps)
    return calls > 1 and (len(kept) > 1 or shared or calls > NESTED)


LONGEST = 1 << 9
"""The most lines that are put in another order: that takes a moment for each pair of them."""


def _in_less_memory(steps: Sequence[Step], kept: Collection[str]) -> Sequence[Step]:
    """Return the lines of a tape, each after those that it reads, with few tensors at a time.

    Of the lines that may be next, the one comes first after which there is least, and of equals the
    last, which often reads what was made just before. Whole tensors take pages of memory that the
    system has to clear, unless what is not read any more makes room for them.

    Args:
        steps: each after those that it reads.
        kept: those whose tensors are results.
    """
    if len(steps) > LONGEST:
        return steps
    size = {step.name: _bytes(step.relation) for step in steps}
    below = {x.name: [y for y in dict.fromkeys(reads(x.relation)) if y in size] for x in steps}
    above: dict[str, list[str]] = {name: [] for name in size}
    for name, operands in below.items():
        for operand in operands:
            above[operand].append(name)
    left = {name: len(above[name]) + (name in kept) for name in size}
    waiting = {name: len(below[name]) for name in size}
    ready = [name for name in size if not waiting[name]]
    order: list[str] = []

    def growth(name: str) -> float:
        return size[name] - sum(size[x] for x in below[name] if left[x] == 1)

    places = {name: place for place, name in enumerate(size)}
    while ready:
        name = min(ready, key=lambda x: (growth(x), -places[x]))
        ready.remove(name)
        order.append(name)
        for operand in below[name]:
            left[operand] -= 1
        for reader in above[name]:
            waiting[reader] -= 1
            if not waiting[reader]:
                ready.append(reader)
    by_name = {step.name: step for step in steps}
    return [by_name[name] for name in order]


def _bytes(relation: Relation) -> float:
    """The bytes of a line's result; 0 for a compressed array, whose size only the data tells."""
    compressed = relation.layout.compressed is not None
    return 0 if compressed else relation.type.tuple_bytes(relation.layout)


# ---- A tape ----


@dataclass
class _Recorder:
    """Records steps as lines, over steps that are made before."""

    steps: Mapping[str, Step]
    columns: Mapping[str, Read]
    """The columns of earlier tapes."""
    _operands: dict[Read | ConstantRelation, Slot] = field(default_factory=dict)
    _lines: list[Relation] = field(default_factory=list)
    _slots: dict[tuple[str, str | None], Slot] = field(default_factory=dict)
    """The slots of steps' tensors, by step name and column."""

    def tape(self, steps: Sequence[Step], kept: Collection[str]) -> FusedStep:
        """Return the tape of some steps, each after those that it reads."""
        own = {step.name for step in steps}
        for step in steps:
            for node in nodes(step.relation):
                if isinstance(node, Read) and node.step not in own:
                    self._take(node)
        for operand, slot in list(self._operands.items()):
            if isinstance(operand, ConstantRelation) or operand.column is not None:
                continue
            if not is_there(self.steps[operand.step].relation):
                self._slots[operand.step, None] = self._line(Densify(slot))
        for step in steps:
            self._slots[step.name, None] = self._record_relation(step.relation)
        results = {x.name: self._slots[x.name, None] for x in steps if x.name in kept}
        tensors = {self._slots[x.name, None].number: x.tensor for x in steps}
        return FusedStep(tuple(self._operands), tuple(self._lines), results, tensors)

    def _take(self, read: Read) -> None:
        key = read.step, read.column
        if key in self._slots:
            return
        operand: Read | ConstantRelation = self.columns.get(read.step, read)
        if read.step in self.steps and isinstance(
            made := self.steps[read.step].relation, ConstantRelation
        ):
            operand = made
        slot = Slot(len(self._operands), operand.type, operand.layout)
        self._slots[key] = self._operands.setdefault(operand, slot)

    def _line(self, relation: Relation) -> Slot:
        self._lines.append(relation)
        number = len(self._operands) + len(self._lines) - 1
        return Slot(number, relation.type, relation.layout)

    def _record_relation(self, relation: Relation) -> Slot:
        """Return the slot of a step's result; that of its input if it changes nothing."""
        if isinstance(relation, Read):
            return self._slots[relation.step, relation.column]
        sources = [self._record_relation(x) for x in inputs(relation)]
        if isinstance(relation, Densify | Renamed) or _is_copy(relation):
            return replace(sources[0], type=relation.type)
        made = with_inputs(relation, sources)
        if isinstance(made, Aggregate) and isinstance(made.input.input, Join):
            # All operands exist.
            joined = replace(made.input.input, kind=JoinKind.INNER)
            made = replace(made, input=replace(made.input, input=joined))
        return self._line(made)


def _is_copy(relation: Relation) -> bool:
    match relation:
        case Aggregate(Compute(Join() | MaskedJoin())):
            return False
        case Aggregate(Compute(_, _, kernel, _, maps), None):
            return kernel.name is None and not maps
    return False


# ---- The plan around it ----


def _column(tape: str, step: Step) -> Read:
    type_: TensorType = step.relation.type
    return Read(tape, step.tensor, type_, step.relation.layout, step.name)


def _in_order(steps: Sequence[Step]) -> tuple[Step, ...]:
    """Return the steps, each after those that it reads, else in the given order."""
    by_name = {step.name: step for step in steps}
    ordered: dict[str, Step] = {}
    opened = set[str]()
    for first in steps:
        waiting = [first]
        while waiting:
            step = waiting[-1]
            missing = [x for x in reads(step.relation) if x not in ordered]
            if missing:
                assert step.name not in opened, f"{step.name} reads what is made of it"
                opened.add(step.name)
                waiting.extend(by_name[x] for x in reversed(missing))
                continue
            ordered.setdefault(step.name, step)
            waiting.pop()
    return tuple(ordered.values())
