"""Plans: what a decomposed program does, relation by relation.

`plan_program` lowers a decomposed program to named steps, each a small tree of relational nodes
that ends in a tensor relation. A vertex becomes Reduce over Compute over Join (sparse_einsum.txt,
Equation 6); a mismatch of layouts becomes Decompose and Stack (section 6); a fill that a join or an
aggregation may not drop becomes Densify or an outer join. The nodes know tensors, labels and
layouts, and nothing of SQL.

Passes (`ucle.plan.passes`) rewrite such a plan into the one that is run: then a step is a statement
with views of its own, and there are more nodes: Constant, ByReference, Nested, Chain, and Tape,
which is several steps in one call; Slices and Sorted, which spread a statement over threads, and
Portion, for statements that run in rounds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum

from ucle import operators
from ucle.foundation.tree_walk import fold, walk
from ucle.ir.fills import JoinKind, Missing
from ucle.ir.index_maps import IndexMap
from ucle.ir.layouts import Layout
from ucle.ir.maps import Pointwise
from ucle.ir.scans import Along
from ucle.ir.tensor_types import TensorType
from ucle.ir.top_k import TopK
from ucle.plan.kernel_choice import Kernel
from ucle.plan.sources import ArraySource, Dictionary, TableSource


class Role(Enum):
    """What a step is in the script."""

    INPUT = "input"
    """Data from memory, registered under the step's name, or a table that is there already."""
    VIEW = "view"
    TABLE = "table"
    """Materialised: an output, or something that more than one step reads."""


@dataclass(frozen=True)
class Scan:
    """An input table, read in the layout in which it is stored."""

    source: TableSource
    type: TensorType
    layout: Layout


@dataclass(frozen=True)
class Load:
    """An array from memory, handed over in a layout of our choice."""

    source: ArraySource
    type: TensorType
    layout: Layout


@dataclass(frozen=True)
class Held:
    """A tensor in a table that was made before the script runs, and is told to it then."""

    type: TensorType
    layout: Layout


@dataclass(frozen=True)
class HeldRow:
    """Tensors without keys in the columns of a table of one row, which was made before."""

    members: Mapping[str, Held] = field(hash=False)

    @property
    def type(self) -> TensorType:
        """That of the first one."""
        return next(iter(self.members.values())).type

    @property
    def layout(self) -> Layout:
        """That of the first one; none has keys."""
        return next(iter(self.members.values())).layout


@dataclass(frozen=True)
class Constant:
    """An array from memory as one tuple, which is written out."""

    data: bytes
    """Its elements in the order of the tensor's axes."""
    type: TensorType
    layout: Layout


@dataclass(frozen=True)
class Read:
    """The relation that an earlier step made, or one column of its only row (`Tape`, `HeldRow`)."""

    step: str
    tensor: str
    type: TensorType
    layout: Layout
    column: str | None = None


@dataclass(frozen=True)
class Rearrange:
    """The same tensor as its input, in other tuples."""

    input: Relation

    @property
    def type(self) -> TensorType:
        """Type of the tensor."""
        return self.input.type


@dataclass(frozen=True)
class Decompose(Rearrange):
    """Promotes further axes: each tuple becomes one for every position that holds something."""

    layout: Layout


@dataclass(frozen=True)
class Stack(Rearrange):
    """Demotes axes: tuples that agree on the remaining keys become one (the paper's STACK)."""

    layout: Layout


@dataclass(frozen=True)
class Compress(Rearrange):
    """Lists, for each row of an axis, which positions of another hold what: from entries."""

    layout: Layout


@dataclass(frozen=True)
class Expand(Rearrange):
    """A tuple for each position that compressed arrays list."""

    layout: Layout


@dataclass(frozen=True)
class Recode(Rearrange):
    """Compresses a dense axis of each array, or makes a compressed one dense."""

    layout: Layout


@dataclass(frozen=True)
class Gather(Rearrange):
    """Compressed arrays of tiles become one for all rows."""

    layout: Layout


@dataclass(frozen=True)
class Exchange(Rearrange):
    """Makes promoted axes dense and dense ones promoted, without a tuple for each entry between.

    Tuples are stacked into blocks of `block` positions along the promoted `axis`, blocks are cut at
    every position of the axes that become keys, and the cuts are put into their places.
    """

    layout: Layout
    axis: int
    block: int


@dataclass(frozen=True)
class Densify(Rearrange):
    """Stores every tuple that the bounds allow; those that were missing hold the fill."""

    @property
    def layout(self) -> Layout:
        """Layout of the tensor."""
        return self.input.layout


@dataclass(frozen=True)
class ByReference(Rearrange):
    """One tuple with its array in a list, of which a cross join copies no more than a pointer."""

    @property
    def layout(self) -> Layout:
        """Layout of the tensor."""
        return self.input.layout


@dataclass(frozen=True)
class Nested(Rearrange):
    """The relation of a step without keys, as an expression in the place where it is read."""

    step: str = field(compare=False)
    tensor: str = field(compare=False)

    @property
    def layout(self) -> Layout:
        """Layout of the tensor."""
        return self.input.layout


@dataclass(frozen=True)
class Slices(Rearrange):
    """The same tuples, read in parts: each is a range of positions of one promoted axis.

    `starts` are the positions at which the parts after the first begin. They may stand anywhere:
    each tuple is in one part, whatever positions there are.
    """

    axis: int
    starts: tuple[int, ...]

    @property
    def layout(self) -> Layout:
        """Layout of the tensor."""
        return self.input.layout


@dataclass(frozen=True)
class Sorted(Rearrange):
    """The same tuples in the order of their keys, whatever the order in which they are made."""

    @property
    def layout(self) -> Layout:
        """Layout of the tensor."""
        return self.input.layout


@dataclass(frozen=True)
class Portion(Rearrange):
    """Of the tuples those whose positions on one promoted axis are in a range.

    `start` is the first position, `end` the one behind the last; None is none.
    """

    axis: int
    start: int | None
    end: int | None

    @property
    def layout(self) -> Layout:
        """Layout of the tensor."""
        return self.input.layout


@dataclass(frozen=True)
class Chain:
    """Pointwise functions of whole tensors, of which each is an operand of the next, as one call.

    `program` is what the kernel ``chain`` is told. Its result is a number where it ends in a
    reduction of all entries.
    """

    operands: tuple[Relation, ...]
    program: str
    type: TensorType
    layout: Layout


@dataclass(frozen=True)
class Slot:
    """What a line of a tape reads: an operand, or what a line before has made.

    They have their numbers in common: first come the operands, in their order.
    """

    number: int
    type: TensorType
    layout: Layout


@dataclass(frozen=True)
class Tape:
    """Whole tensors that are computed one after the other in one call, as columns of one row.

    `lines` are relations without keys over `Slot`s. `results` are the columns with what is in them.
    An operand that is not stored is NULL; what is computed always has a tuple.
    """

    operands: tuple[Relation, ...]
    lines: tuple[Relation, ...]
    results: Mapping[str, Slot] = field(hash=False)

    @property
    def type(self) -> TensorType:
        """That of the first result."""
        return next(iter(self.results.values())).type

    @property
    def layout(self) -> Layout:
        """That of the first result; none has keys."""
        return next(iter(self.results.values())).layout

    @property
    def members(self) -> Mapping[str, Slot]:
        """Its columns, as of `HeldRow`."""
        return self.results


@dataclass(frozen=True)
class Join:
    """The pairs of tuples that agree on their shared promoted labels."""

    kind: JoinKind
    left: Relation
    right: Relation
    left_labels: tuple[str, ...]
    right_labels: tuple[str, ...]


@dataclass(frozen=True)
class MaskedJoin:
    """Tuples of a mask with those of the factors of the product that is computed behind it.

    Factors are in tiles of the same rows as the mask, or whole.
    """

    mask: Relation
    left: Relation
    right: Relation
    labels: tuple[str, ...]
    left_labels: tuple[str, ...]
    right_labels: tuple[str, ...]


@dataclass(frozen=True)
class Compute:
    """The kernel applied to each pair of a join, or to each tuple of a relation."""

    input: Join | MaskedJoin | Relation
    labels: tuple[str, ...]
    """Labels of the input's axes where the input is one relation."""
    kernel: Kernel
    combine: operators.Combine | None
    maps: tuple[Pointwise, ...]


@dataclass(frozen=True)
class Reduce:
    """Groups by the output's promoted labels and aggregates with ⊕ (None: nothing to aggregate)."""

    input: Compute
    operation: operators.Reduce | None
    labels: tuple[str, ...]
    """Labels of the output's axes."""
    type: TensorType
    layout: Layout
    missing: Missing | None = None
    """What groups must account for that did not meet every entry."""
    unordered: bool = False
    """Whether it aggregates slices, which come in no order."""


@dataclass(frozen=True)
class Reindex:
    """A tensor that is read by an index map.

    `axes` are the labels of the input's axes, `labels` those of the result's. `kernel` is what
    reads arrays; one without a name lets them pass as they are.
    """

    input: Relation
    index: IndexMap
    axes: tuple[str, ...]
    labels: tuple[str, ...]
    kernel: Kernel
    type: TensorType
    layout: Layout


@dataclass(frozen=True)
class Accumulate:
    """A tensor that is aggregated along an axis, which stays.

    `labels` are those of its axes. `kernel` is what runs inside of arrays; where it has no name,
    the axis is a key.
    """

    input: Relation
    along: Along
    labels: tuple[str, ...]
    kernel: Kernel
    type: TensorType
    layout: Layout

    @property
    def axis(self) -> int:
        """The axis along which it goes, the first one of a matrix."""
        return self.labels.index(self.along.labels[0])

    @property
    def axes(self) -> tuple[int, ...]:
        """All axes along which it goes."""
        return tuple(map(self.labels.index, self.along.labels))


@dataclass(frozen=True)
class FirstEntries:
    """The first entries of a tensor along an axis, with their positions.

    `axes` are the labels of the input's axes. `kernel` is what runs inside of arrays, or over them;
    where it has no name, all labels are keys. `whole` says that a tuple of the input is there for
    each that the bounds allow; otherwise those that are missing along the axis, which is a key,
    count with its fill.
    """

    input: Relation
    top: TopK
    axes: tuple[str, ...]
    kernel: Kernel
    type: TensorType
    layout: Layout
    whole: bool

    @property
    def axis(self) -> int:
        """The axis of the input along which they are the first."""
        return self.axes.index(self.top.label)

    @property
    def count(self) -> int:
        """How many."""
        return self.type.shape[-2]


@dataclass(frozen=True)
class Renamed(Rearrange):
    """The same tuples in columns of other names, and what else is known of the tensor."""

    as_type: TensorType

    @property
    def type(self) -> TensorType:
        """Type of the tensor, with its names for the axes."""
        return self.as_type

    @property
    def layout(self) -> Layout:
        """That of the input."""
        return self.input.layout


Repartition = Decompose | Stack | Compress | Expand | Recode | Gather
"""What brings a tensor into another layout in one of several ways (`repartition_paths`)."""

Relation = (
    Scan
    | Load
    | Held
    | HeldRow
    | Constant
    | Read
    | Slot
    | Decompose
    | Stack
    | Exchange
    | Compress
    | Expand
    | Recode
    | Gather
    | Renamed
    | Densify
    | ByReference
    | Nested
    | Slices
    | Sorted
    | Portion
    | Chain
    | Tape
    | Reduce
    | Reindex
    | Accumulate
    | FirstEntries
)


@dataclass(frozen=True)
class Step:
    """A named relation of the script: what it is, how it is made, and why it is there."""

    name: str
    tensor: str
    """The tensor that it holds, in one of its layouts."""
    role: Role
    relation: Relation
    comment: str
    cost: float = 0.0
    """What its vertex costs by estimate, with the repartitions of what it reads; 0 of others."""
    views: tuple[Step, ...] = ()
    """Steps that its statement holds, each after those that it reads."""
    rounds: tuple[Round, ...] = ()
    """If there are any, they fill the table one after the other: together they make `relation`."""


@dataclass(frozen=True)
class Round:
    """A statement that makes some of the tuples of a step, with its views.

    `tables` are steps of its own, which are gone when it has run.
    """

    tables: tuple[Step, ...]
    relation: Relation
    views: tuple[Step, ...]


@dataclass(frozen=True)
class Plan:
    """Steps in the order in which they are made, and the step of each output."""

    steps: tuple[Step, ...]
    outputs: Mapping[str, Read]
    dictionaries: tuple[Dictionary, ...] = ()
    """Tables of coordinates that steps look up, made before all of them."""
    checked: tuple[Read, ...] = ()
    """Steps in which a NaN means that the plan is not the right one (`ucle.ir.annihilation`)."""

    def __str__(self) -> str:
        return "\n".join(_line(x) for step in self.steps for x in (*step.views, step))


def _line(step: Step) -> str:
    return f"{step.role.value:5} {step.name} := {describe(step.relation)}"


def inputs(relation: Relation) -> tuple[Relation, ...]:
    """The relations that one is made of, from left to right."""
    match relation:
        case Rearrange(source) | Reindex(source) | Accumulate(source) | FirstEntries(source):
            return (source,)
        case Chain(operands) | Tape(operands):
            return operands
        case Reduce(Compute(Join(_, left, right))):
            return (left, right)
        case Reduce(Compute(MaskedJoin(mask, left, right))):
            return (mask, left, right)
        case Reduce(Compute(source)):
            assert not isinstance(source, Join | MaskedJoin)
            return (source,)
    return ()


def with_inputs(relation: Relation, new: Sequence[Relation]) -> Relation:
    """The same relation made of others."""
    if all(one is other for one, other in zip(inputs(relation), new, strict=True)):
        return relation
    match relation:
        case Chain() | Tape():
            return replace(relation, operands=tuple(new))
        case Reduce(Compute(Join() as joined) as compute):
            left, right = new
            joined = replace(joined, left=left, right=right)
            return replace(relation, input=replace(compute, input=joined))
        case Reduce(Compute(MaskedJoin() as masked) as compute):
            mask, left, right = new
            masked = replace(masked, mask=mask, left=left, right=right)
            return replace(relation, input=replace(compute, input=masked))
        case Reduce(compute):
            return replace(relation, input=replace(compute, input=new[0]))
        case Rearrange() | Reindex() | Accumulate() | FirstEntries():
            return replace(relation, input=new[0])
    raise AssertionError("a relation that is made of nothing")


def renamed(relation: Relation, names: Mapping[str, str]) -> Relation:
    """A relation that reads some steps under their new names."""
    if isinstance(relation, Read):
        return replace(relation, step=names.get(relation.step, relation.step))
    return with_inputs(relation, [renamed(x, names) for x in inputs(relation)])


def reading(relation: Relation, others: Mapping[str, Read]) -> Relation:
    """A relation that reads other steps, or their columns, in the places of some."""
    if isinstance(relation, Read):
        other = others.get(relation.step, relation)
        return replace(relation, step=other.step, column=other.column)
    return with_inputs(relation, [reading(x, others) for x in inputs(relation)])


def nodes(relation: Relation) -> Iterator[Relation]:
    """A relation and all relations below it."""
    return walk(relation, inputs)


def reads(relation: Relation) -> tuple[str, ...]:
    """Names of the steps that a relation reads, with repetition."""
    return tuple(node.step for node in nodes(relation) if isinstance(node, Read))


def describe(relation: Relation) -> str:
    """A relation as a nested expression, for a person."""
    return fold(relation, inputs, _describe)


def _describe(relation: Relation, children: list[str]) -> str:
    match relation:
        case Read(step, column=column):
            return step if column is None else f"{step}.{column}"
        case Scan(source):
            return f"scan({source.origin})"
        case Load(source):
            return f"load({source.tensor})"
        case Held():
            return "held"
        case HeldRow(members):
            return f"held {', '.join(members)}"
        case Slot(number):
            return f"${number}"
        case Tape(_, lines, results):
            made = "; ".join(map(describe, lines))
            kept = ", ".join(f"{name} = ${slot.number}" for name, slot in results.items())
            return f"tape of {', '.join(children)}: {made}; {kept}"
        case Constant(data):
            return f"constant({len(data)} bytes)"
        case ByReference():
            return f"reference({children[0]})"
        case Nested():
            return f"({children[0]})"
        case Slices(_, axis, starts):
            name = relation.type.axes[axis].name
            return f"{len(starts) + 1} slices({children[0]} by {name})"
        case Sorted():
            return f"sorted({children[0]})"
        case Portion(_, axis, start, end):
            name = relation.type.axes[axis].name
            ends = "" if start is None else f"{start}", "" if end is None else f"{end}"
            return f"portion({children[0]} of {name} {ends[0]}:{ends[1]})"
        case Chain(_, program):
            return f"{program} of {', '.join(children)}"
        case Rearrange():
            axes = ",".join(relation.type.axes[axis].name for axis in relation.layout.promoted)
            return f"{type(relation).__name__.lower()}({children[0]} by [{axes}])"
        case Reindex(index=index):
            return index.text(children[0])
        case Accumulate(along=along):
            return f"{along.name}[{','.join(along.labels)}]({children[0]})"
        case FirstEntries(top=top):
            return top.text(children[0], top.label)
        case Reduce(compute, operation, labels, _, layout):
            keys = ",".join(labels[axis] for axis in layout.promoted)
            inner = _describe_compute(compute, children)
            return f"{operation.name}({inner}) group by [{keys}]" if operation else inner


def _describe_compute(compute: Compute, children: list[str]) -> str:
    names = [*(str(step) for step in compute.maps), compute.kernel.name]
    if compute.kernel.name is None and compute.combine is not None:
        names.append(compute.combine.name)
    (inner,) = children[:1]
    if isinstance(compute.input, Join):
        inner = f"{compute.input.kind.name.lower()} join({', '.join(children)})"
    elif isinstance(compute.input, MaskedJoin):
        inner = f"join({', '.join(children)})"
    chain = " then ".join(name for name in names if name)
    return f"{chain} of {inner}" if chain else inner
