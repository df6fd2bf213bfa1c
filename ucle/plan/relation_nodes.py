"""The nodes of relations: the computation of a step as a small tree that ends in a tensor.

The nodes know tensors, labels and layouts, and nothing of SQL. Passes (`ucle.plan.passes`) add
those that a lowered program has not: ConstantRelation, ByReference, Nested, FusedMaps, and
FusedStep, which is several steps in one call; PairedScan, which is two scans of one table;
ColumnExpressions, which is several steps over the columns of a table; Slices and Sorted, which
spread a statement over threads; and Portion, for statements that run in rounds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace

from ucle import operators
from ucle.foundation.dataclasses import dataclass
from ucle.foundation.dtypes import DType, Scalar
from ucle.ir.axis_functions import Along, TopK
from ucle.ir.fills import JoinKind, Missing
from ucle.ir.index_maps import IndexMap
from ucle.ir.layouts import Layout
from ucle.ir.maps import Pointwise
from ucle.ir.tensor_types import TensorType
from ucle.plan.kernel_choice import ChosenKernel
from ucle.plan.lookups import RowOperation
from ucle.plan.sources import ArraySource, ListsSource, TableSource


@dataclass(frozen=True)
class TableScan:
    """An input table, read in the layout in which it is stored.

    A table of runs may be read in a compressed layout, too: into arrays that list its runs.
    Keys along the axes in `unnumbered` stay the coordinates of the table (`keep_coordinates`).
    """

    source: TableSource
    type: TensorType
    layout: Layout
    unnumbered: frozenset[int] = frozenset()

    @property
    def gathers(self) -> bool:
        """True if rows of runs are gathered in compressed arrays."""
        return self.source.ends is not None and self.layout.compressed is not None


PAIRED = "paired"
"""The column of a `PairedScan` that has the entries of its second tensor."""


@dataclass(frozen=True)
class PairedScan:
    """An input table whose rows have an entry of two tensors each, read once for both.

    The sides are scans of the table, or computed from such scans entry by entry. The keys and the
    column of values are those of the `first`; the values of the `second`, which are numbers, are in
    the column `PAIRED`. The tuples are those of a join of `kind` by all keys: a value that is not
    stored is the fill.
    """

    first: Relation
    second: Relation
    kind: JoinKind

    @property
    def type(self) -> TensorType:
        """The type of the first tensor."""
        return self.first.type

    @property
    def layout(self) -> Layout:
        """The layout of the first tensor."""
        return self.first.layout

    @property
    def members(self) -> Mapping[str, Relation]:
        """The column of the second tensor, as in `HeldRow`."""
        return {PAIRED: self.second}


LISTED = "listed"
"""The column of a table in memory that has its array as the only element of a list."""


@dataclass(frozen=True)
class Load:
    """An array from memory, handed over in a layout of our choice that it can have.

    Tuples that hold only the fill are left out, unless it is `complete`. Its only tuple may be
    `listed`: there is a second column then, `LISTED`, with the array as the element of a list.
    """

    source: ArraySource | ListsSource
    type: TensorType
    layout: Layout
    complete: bool = False
    listed: bool = False

    @property
    def table_type(self) -> TensorType:
        """The type of the table: if it is complete, one of a tensor with an entry everywhere."""
        if not self.complete:
            return self.type
        return replace(self.type, values=replace(self.type.every, full=True))


@dataclass(frozen=True)
class Held:
    """A tensor in a table made before the script runs; the script receives its name then.

    An entry everywhere may be the fill, which tuples along keys leave out. Where a table is made of
    such tuples, it is not `complete`: without keys, it may have no tuple at all.
    """

    type: TensorType
    layout: Layout
    complete: bool = True


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
    """The relation of an earlier step, or a column of its only row.

    `FusedStep` and `HeldRow` have several columns, and a `Load` may be `listed`.
    """

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
class PackedForest(Rearrange):
    """A forest in one tuple, checked once and packed as the kernel ``forest`` walks it."""

    features: int

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
class MultiwayJoin:
    """A sum of products of matrices and vectors, each of one tuple, computed label by label.

    `program` is the argument of the kernel ``multiway`` (`ucle.plan.multiway.LoopNest`), `held` the
    bytes that it works with, beside operands and result.
    """

    operands: tuple[Relation, ...]
    program: str
    type: TensorType
    layout: Layout
    held: float


@dataclass(frozen=True)
class LookupJoin:
    """The tuples of the first operand, each with an expression of the values of all operands.

    Every other operand has at most one tuple for each of the first one's, which has all its keys.
    Where it has none, its fill counts. `labels` are those of the operands' axes. The last of the
    `operations` makes the value (`ucle.plan.lookups`).
    """

    operands: tuple[Relation, ...]
    labels: tuple[tuple[str, ...], ...]
    operations: tuple[RowOperation, ...]
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

    `lines` are relations without keys over `Slot`s. `results` are the columns with their contents,
    and `tensors` are those that lines compute, by their slots. An operand that is not stored is
    NULL; a result always has a tuple.
    """

    operands: tuple[Relation, ...]
    lines: tuple[Relation, ...]
    results: Mapping[str, Slot] = field(hash=False)
    tensors: Mapping[int, str] = field(hash=False, default_factory=dict)

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

    @property
    def within_rows(self) -> bool:
        """True if each tuple of one relation is paired with itself: no other one has its keys."""
        one, other = self.left, self.right
        columns = isinstance(one, Read) and isinstance(other, Read) and one.step == other.step
        return (one == other or columns) and bool(self.matched_keys)

    @property
    def matched_keys(self) -> tuple[str, ...]:
        """The labels of the keys, if both sides have the same in the same order; else nothing."""
        one = [self.left_labels[axis] for axis in self.left.layout.promoted]
        other = [self.right_labels[axis] for axis in self.right.layout.promoted]
        return tuple(one) if one == other and len(set(one)) == len(one) else ()


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
    early: bool = False
    """True if it ends at the tuple that decides it (`ucle.plan.early_ends`)."""


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
    bounds allow, or if the result leaves out those that are missing. Otherwise tuples that are
    missing along the axis, which is a key, count with the fill.
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
    def leaves_out(self) -> bool:
        """True if only the values of tuples that are there are ranked."""
        return self.top.stored_first and self.kernel.name is None

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


@dataclass(frozen=True)
class Cell:
    """An entry of a tensor in each row of a table: a column of a stage of `ColumnExpressions`.

    Stage 0 is the table, and a number there is the place of a column among its values.
    """

    stage: int
    number: int


Term = tuple[Cell | Scalar, ...]
"""What is combined in an entry: one or two operands."""


@dataclass(frozen=True)
class ColumnStage:
    """A vertex with an expression for each entry, over the columns of a row.

    Each entry is ⊕ of terms: of ⊗ of two operands, or of functions of one.
    """

    tensor: str
    dtype: DType
    combine: operators.Combine | None
    maps: tuple[Pointwise, ...]
    merge: operators.Combine | None
    """The ⊗ that aggregates two terms; None where each entry has one."""
    entries: tuple[tuple[Term, ...], ...]


@dataclass(frozen=True)
class ColumnExpressions:
    """Several vertices over the rows of a wide table, without arrays in between.

    `cells` are the entries of the array of each row. `axes` are the axes of the tensor that have
    the keys of the table, in their order.
    """

    input: TableScan
    stages: tuple[ColumnStage, ...]
    cells: tuple[Cell, ...]
    axes: tuple[int, ...]
    type: TensorType
    layout: Layout


@dataclass(frozen=True)
class WindowOfTimes:
    """An aggregate over the entries of a tensor at the times in the window before each time.

    `times` are the pairs whose windows these are (`ucle.plan.sources.TimePairs`); only the times
    are read of them. Without `input` the times in a window are counted. `place` is the axis of the
    input that has the times. `axes` are the axes of the input that become those of the result, with
    a time in place of those before it.

    If `counted`, `input` is the table whose rows are the times, each in one row; the times are
    counted in a column of their own, `COUNTED`, and a step without an entry has NULL.
    """

    times: TableScan
    input: Relation | None
    place: int
    axes: tuple[int, ...]
    operation: operators.Reduce
    type: TensorType
    layout: Layout
    counted: bool = False


COUNTED = "times"
"""The column of counts of a `WindowOfTimes` that has both."""


@dataclass(frozen=True)
class ColumnOfTimes:
    """The tuples of one column of a `WindowOfTimes` that also counts; None for the values."""

    input: Read
    column: str | None
    type: TensorType
    layout: Layout


Repartition = Decompose | Stack | Compress | Expand | Recode | Gather
"""A change of a tensor's layout, one step of a path (`repartition_paths`)."""

Relation = (
    TableScan
    | PairedScan
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
    | PackedForest
    | ByReference
    | Nested
    | Slices
    | Sorted
    | Portion
    | FusedMaps
    | MultiwayJoin
    | LookupJoin
    | FusedStep
    | Aggregate
    | Reindex
    | PrefixScan
    | TopKEntries
    | ColumnExpressions
    | WindowOfTimes
    | ColumnOfTimes
)
