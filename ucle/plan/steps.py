"""Plans: the steps and relations that compute a decomposed program.

`plan_program` lowers a decomposed program to named steps, each a small tree of relational nodes
that ends in a tensor relation. A vertex becomes Reduce over Compute over Join (sparse_einsum.txt,
Equation 6); a mismatch of layouts becomes Decompose and Stack (section 6); a fill that a join or an
aggregation may not drop becomes Densify or an outer join. The nodes know tensors, labels and
layouts, and nothing of SQL.

Passes (`ucle.plan.passes`) rewrite such a plan into the one that runs. There a step is a statement
with views of its own, and there are more nodes: ConstantRelation, ByReference, Nested, FusedMaps,
and FusedStep, which is several steps in one call; Slices and Sorted, which spread a statement over
threads; and Portion, for statements that run in rounds.
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
from ucle.plan.kernel_choice import ChosenKernel
from ucle.plan.sources import ArraySource, Dictionary, TableSource


class Role(Enum):
    """The role of a step in the script."""

    INPUT = "input"
    """Data from memory, registered under the step's name, or a table that is there already."""
    VIEW = "view"
    TABLE = "table"
    """Materialised: an output, or a relation that more than one step reads."""


@dataclass(frozen=True)
class TableScan:
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
    """A tensor in a table made before the script runs; the script receives its name then."""

    type: TensorType
    layout: Layout


@dataclass(frozen=True)
class HeldRow:
    """Tensors without keys in the columns of a one-row table that was made before."""

    members: Mapping[str, Held] = field(hash=False)

    @property
    def type(self) -> TensorType:
        """The type of the first tensor."""
        return next(iter(self.members.values())).type

    @property
    def layout(self) -> Layout:
        """The layout of the first tensor; none has keys."""
        return next(iter(self.members.values())).layout


@dataclass(frozen=True)
class ConstantRelation:
    """An array from memory as one tuple, which is written out as a constant."""

    data: bytes
    """The elements in the order of the tensor's axes."""
    type: TensorType
    layout: Layout


@dataclass(frozen=True)
class Read:
    """The relation of an earlier step, or a column of its only row (`FusedStep`, `HeldRow`)."""

    step: str
    tensor: str
    type: TensorType
    layout: Layout
    column: str | None = None


@dataclass(frozen=True)
class Rearrange:
    """The tensor of the input, in other tuples."""

    input: Relation

    @property
    def type(self) -> TensorType:
        """The type of the tensor."""
        return self.input.type


@dataclass(frozen=True)
class Decompose(Rearrange):
    """Promotes further axes: each tuple becomes one for every position that stores something."""

    layout: Layout


@dataclass(frozen=True)
class Stack(Rearrange):
    """Demotes axes: tuples that agree on the remaining keys become one (the paper's STACK)."""

    layout: Layout


@dataclass(frozen=True)
class Compress(Rearrange):
    """Compresses entries: for each row of an axis, lists positions of another with values."""

    layout: Layout


@dataclass(frozen=True)
class Expand(Rearrange):
    """Makes a tuple for each position that compressed arrays list."""

    layout: Layout


@dataclass(frozen=True)
class Recode(Rearrange):
    """Compresses a dense axis of each array, or makes a compressed one dense."""

    layout: Layout


@dataclass(frozen=True)
class Gather(Rearrange):
    """Combines compressed arrays of tiles into one for all rows."""

    layout: Layout


@dataclass(frozen=True)
class BlockRepartition(Rearrange):
    """Exchanges promoted and dense axes without a tuple for each entry in between.

    Tuples are stacked into blocks of `block` positions along the promoted `axis`. Blocks are cut at
    every position of the axes that become keys, and the cuts are put into their places.
    """

    layout: Layout
    axis: int
    block: int


@dataclass(frozen=True)
class Densify(Rearrange):
    """Stores every tuple that the bounds allow; tuples that were missing hold the fill."""

    @property
    def layout(self) -> Layout:
        """The layout of the tensor."""
        return self.input.layout


@dataclass(frozen=True)
class ByReference(Rearrange):
    """One tuple with its array in a list, so that a cross join copies only a pointer."""

    @property
    def layout(self) -> Layout:
        """The layout of the tensor."""
        return self.input.layout


@dataclass(frozen=True)
class Nested(Rearrange):
    """The relation of a step without keys, as an expression in place of a read."""

    step: str = field(compare=False)
    tensor: str = field(compare=False)

    @property
    def layout(self) -> Layout:
        """The layout of the tensor."""
        return self.input.layout


@dataclass(frozen=True)
class Slices(Rearrange):
    """The input's tuples, read in parts: each part is a range of positions of one promoted axis.

    `starts` are the positions at which the parts after the first begin. They may be any positions:
    each tuple is in exactly one part.
    """

    axis: int
    starts: tuple[int, ...]

    @property
    def layout(self) -> Layout:
        """The layout of the tensor."""
        return self.input.layout


@dataclass(frozen=True)
class Sorted(Rearrange):
    """The input's tuples, sorted by their keys."""

    @property
    def layout(self) -> Layout:
        """The layout of the tensor."""
        return self.input.layout


@dataclass(frozen=True)
class Portion(Rearrange):
    """The tuples whose positions on one promoted axis are in a range.

    `start` is the first position, `end` the one behind the last; None means no limit.
    """

    axis: int
    start: int | None
    end: int | None

    @property
    def layout(self) -> Layout:
        """The layout of the tensor."""
        return self.input.layout


@dataclass(frozen=True)
class FusedMaps:
    """Pointwise functions of whole tensors, each an operand of the next, as one call.

    `program` is the argument of the kernel ``chain``. The result is a number if it ends in a
    reduction of all entries.
    """

    operands: tuple[Relation, ...]
    program: str
    type: TensorType
    layout: Layout


@dataclass(frozen=True)
class Slot:
    """An operand of a fused step's line: an operand of the step, or the result of an earlier line.

    Operands and results share one numbering; the operands come first, in their order.
    """

    number: int
    type: TensorType
    layout: Layout


@dataclass(frozen=True)
class FusedStep:
    """Whole tensors computed in sequence in one call, as columns of one row.

    `lines` are relations without keys over `Slot`s. `results` are the columns with their contents.
    An operand that is not stored is NULL; a result always has a tuple.
    """

    operands: tuple[Relation, ...]
    lines: tuple[Relation, ...]
    results: Mapping[str, Slot] = field(hash=False)

    @property
    def type(self) -> TensorType:
        """The type of the first result."""
        return next(iter(self.results.values())).type

    @property
    def layout(self) -> Layout:
        """The layout of the first result; none has keys."""
        return next(iter(self.results.values())).layout

    @property
    def members(self) -> Mapping[str, Slot]:
        """The columns, as in `HeldRow`."""
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
    """Tuples of a mask joined with the factors of a product that is computed only under the mask.

    Factors have the same tiles of rows as the mask, or are whole.
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
    """The labels of the input's axes, if the input is one relation."""
    kernel: ChosenKernel
    combine: operators.Combine | None
    maps: tuple[Pointwise, ...]


@dataclass(frozen=True)
class Aggregate:
    """Groups by the output's promoted labels and aggregates with ⊕ (None: nothing to aggregate)."""

    input: Compute
    operation: operators.Reduce | None
    labels: tuple[str, ...]
    """The labels of the output's axes."""
    type: TensorType
    layout: Layout
    missing: Missing | None = None
    """The correction for groups that did not meet every entry."""
    unordered: bool = False
    """True if it aggregates slices, which come in no particular order."""


@dataclass(frozen=True)
class Reindex:
    """A tensor that is read by an index map.

    `axes` are the labels of the input's axes, `labels` those of the result's. `kernel` reads
    arrays; one without a name passes them unchanged.
    """

    input: Relation
    index: IndexMap
    axes: tuple[str, ...]
    labels: tuple[str, ...]
    kernel: ChosenKernel
    type: TensorType
    layout: Layout


@dataclass(frozen=True)
class PrefixScan:
    """A tensor that is scanned along an axis, which stays.

    `labels` are the labels of its axes. `kernel` is the kernel within arrays; if it has no name,
    the axis is a key.
    """

    input: Relation
    along: Along
    labels: tuple[str, ...]
    kernel: ChosenKernel
    type: TensorType
    layout: Layout

    @property
    def axis(self) -> int:
        """The axis along which it goes; for a matrix, the first of the two."""
        return self.labels.index(self.along.labels[0])

    @property
    def axes(self) -> tuple[int, ...]:
        """All axes along which it goes."""
        return tuple(map(self.labels.index, self.along.labels))


@dataclass(frozen=True)
class TopKEntries:
    """The top-k entries of a tensor along an axis, with their positions.

    `axes` are the labels of the input's axes. `kernel` works within arrays or aggregates them; if
    it has no name, all labels are keys. `whole` is True if the input has every tuple that the
    bounds allow. Otherwise tuples that are missing along the axis, which is a key, count with the
    fill.
    """

    input: Relation
    top: TopK
    axes: tuple[str, ...]
    kernel: ChosenKernel
    type: TensorType
    layout: Layout
    whole: bool

    @property
    def axis(self) -> int:
        """The axis of the input along which the entries are ranked."""
        return self.axes.index(self.top.label)

    @property
    def count(self) -> int:
        """The number of entries, k."""
        return self.type.shape[-2]


@dataclass(frozen=True)
class Renamed(Rearrange):
    """The input's tuples with other column names and another type of the tensor."""

    as_type: TensorType

    @property
    def type(self) -> TensorType:
        """The type of the tensor, with its own names for the axes."""
        return self.as_type

    @property
    def layout(self) -> Layout:
        """The layout of the input."""
        return self.input.layout


Repartition = Decompose | Stack | Compress | Expand | Recode | Gather
"""A change of a tensor's layout, one step of a path (`repartition_paths`)."""

Relation = (
    TableScan
    | Load
    | Held
    | HeldRow
    | ConstantRelation
    | Read
    | Slot
    | Decompose
    | Stack
    | BlockRepartition
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
    | FusedMaps
    | FusedStep
    | Aggregate
    | Reindex
    | PrefixScan
    | TopKEntries
)


@dataclass(frozen=True)
class Step:
    """A named relation of the script, with its role, its computation and its purpose."""

    name: str
    tensor: str
    """The tensor that it holds, in one of its layouts."""
    role: Role
    relation: Relation
    comment: str
    cost: float = 0.0
    """The estimated cost of its vertex with the repartitions of its operands; 0 for other steps."""
    views: tuple[Step, ...] = ()
    """Steps inside its statement, each after those that it reads."""
    rounds: tuple[Round, ...] = ()
    """The rounds that fill the table in sequence; together they make `relation`. Empty if it is
    made at once."""


@dataclass(frozen=True)
class Round:
    """A statement that makes some of the tuples of a step, with its views.

    `tables` are steps of its own, which are dropped after the round.
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
    """Tables of coordinates that steps look up, made before all steps."""
    checked: tuple[Read, ...] = ()
    """Steps in which a NaN shows that the plan is not the right one (`ucle.ir.annihilation`)."""

    def __str__(self) -> str:
        return "\n".join(_line(x) for step in self.steps for x in (*step.views, step))


def _line(step: Step) -> str:
    return f"{step.role.value:5} {step.name} := {describe(step.relation)}"


def inputs(relation: Relation) -> tuple[Relation, ...]:
    """Return the relations that a relation reads directly, from left to right."""
    match relation:
        case Rearrange(source) | Reindex(source) | PrefixScan(source) | TopKEntries(source):
            return (source,)
        case FusedMaps(operands) | FusedStep(operands):
            return operands
        case Aggregate(Compute(Join(_, left, right))):
            return (left, right)
        case Aggregate(Compute(MaskedJoin(mask, left, right))):
            return (mask, left, right)
        case Aggregate(Compute(source)):
            assert not isinstance(source, Join | MaskedJoin)
            return (source,)
    return ()


def with_inputs(relation: Relation, new: Sequence[Relation]) -> Relation:
    """Return a relation with other inputs."""
    if all(one is other for one, other in zip(inputs(relation), new, strict=True)):
        return relation
    match relation:
        case FusedMaps() | FusedStep():
            return replace(relation, operands=tuple(new))
        case Aggregate(Compute(Join() as joined) as compute):
            left, right = new
            joined = replace(joined, left=left, right=right)
            return replace(relation, input=replace(compute, input=joined))
        case Aggregate(Compute(MaskedJoin() as masked) as compute):
            mask, left, right = new
            masked = replace(masked, mask=mask, left=left, right=right)
            return replace(relation, input=replace(compute, input=masked))
        case Aggregate(compute):
            return replace(relation, input=replace(compute, input=new[0]))
        case Rearrange() | Reindex() | PrefixScan() | TopKEntries():
            return replace(relation, input=new[0])
    raise AssertionError("a relation that is made of nothing")


def rename_steps(relation: Relation, names: Mapping[str, str]) -> Relation:
    """Return a relation that reads some steps under their new names."""
    if isinstance(relation, Read):
        return replace(relation, step=names.get(relation.step, relation.step))
    return with_inputs(relation, [rename_steps(x, names) for x in inputs(relation)])


def reading(relation: Relation, others: Mapping[str, Read]) -> Relation:
    """Return a relation in which reads of some steps are replaced by other reads."""
    if isinstance(relation, Read):
        other = others.get(relation.step, relation)
        return replace(relation, step=other.step, column=other.column)
    return with_inputs(relation, [reading(x, others) for x in inputs(relation)])


def nodes(relation: Relation) -> Iterator[Relation]:
    """Yield a relation and all relations below it."""
    return walk(relation, inputs)


def reads(relation: Relation) -> tuple[str, ...]:
    """Return the names of the steps that a relation reads, with repetition."""
    return tuple(node.step for node in nodes(relation) if isinstance(node, Read))


def describe(relation: Relation) -> str:
    """Return a relation as a nested expression, for a person."""
    return fold(relation, inputs, _describe)


def _describe(relation: Relation, children: list[str]) -> str:
    match relation:
        case Read(step, column=column):
            return step if column is None else f"{step}.{column}"
        case TableScan(source):
            return f"scan({source.origin})"
        case Load(source):
            return f"load({source.tensor})"
        case Held():
            return "held"
        case HeldRow(members):
            return f"held {', '.join(members)}"
        case Slot(number):
            return f"${number}"
        case FusedStep(_, lines, results):
            made = "; ".join(map(describe, lines))
            kept = ", ".join(f"{name} = ${slot.number}" for name, slot in results.items())
            return f"tape of {', '.join(children)}: {made}; {kept}"
        case ConstantRelation(data):
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
        case FusedMaps(_, program):
            return f"{program} of {', '.join(children)}"
        case Rearrange():
            axes = ",".join(relation.type.axes[axis].name for axis in relation.layout.promoted)
            return f"{type(relation).__name__.lower()}({children[0]} by [{axes}])"
        case Reindex(index=index):
            return index.text(children[0])
        case PrefixScan(along=along):
            return f"{along.name}[{','.join(along.labels)}]({children[0]})"
        case TopKEntries(top=top):
            return top.text(children[0], top.label)
        case Aggregate(compute, operation, labels, _, layout):
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
