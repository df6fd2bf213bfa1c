"""Plans: what a decomposed program does, relation by relation.

`plan_program` lowers a decomposed program to named steps, each a small tree of relational nodes
that ends in a tensor relation. A vertex becomes Reduce over Compute over Join (sparse_einsum.txt,
Equation 6); a mismatch of layouts becomes Decompose and Stack (section 6); a fill that a join or an
aggregation may not drop becomes Densify or an outer join. The nodes know tensors, labels and
layouts, and nothing of SQL.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from ucle.ir import operators
from ucle.ir.fills import JoinKind, Missing
from ucle.ir.layouts import Layout
from ucle.ir.maps import Pointwise
from ucle.ir.tensor_types import TensorType
from ucle.plan.kernel_choice import Contraction, Kernel
from ucle.plan.sources import ArraySource, Dictionary, TableSource


class Role(Enum):
    """What a step is in the script."""

    INPUT = "input"
    """Data from memory, registered under the step's name."""
    VIEW = "view"
    TABLE = "table"
    """Materialised, because more than one step reads it."""


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
class Read:
    """The relation that an earlier step made."""

    step: str
    tensor: str
    type: TensorType
    layout: Layout


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
class Join:
    """The pairs of tuples that agree on their shared promoted labels."""

    kind: JoinKind
    left: Relation
    right: Relation
    left_labels: tuple[str, ...]
    right_labels: tuple[str, ...]


@dataclass(frozen=True)
class Compute:
    """The kernel applied to each pair of a join, or to each tuple of a relation."""

    input: Join | Relation
    labels: tuple[str, ...]
    """Labels of the input's axes where the input is one relation."""
    kernel: Kernel
    combine: operators.Combine | None
    maps: tuple[Pointwise, ...]
    contraction: Contraction | None = None
    """What the kernel does to whole tensors, where there are no keys."""


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


Relation = Scan | Load | Read | Decompose | Stack | Exchange | Densify | Reduce


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
        return "\n".join(f"{s.role.value:5} {s.name} := {describe(s.relation)}" for s in self.steps)


def reads(relation: Join | Compute | Relation) -> tuple[str, ...]:
    """Names of the steps that a relation reads, with repetition."""
    match relation:
        case Read(step):
            return (step,)
        case Scan() | Load():
            return ()
        case Join(_, left, right):
            return (*reads(left), *reads(right))
        case Rearrange(source) | Compute(source) | Reduce(source):
            return reads(source)


def describe(relation: Join | Compute | Relation) -> str:
    """A relation as a nested expression, for a person."""
    match relation:
        case Read(step):
            return step
        case Scan(source):
            return f"scan({source.origin})"
        case Load(source):
            return f"load({source.tensor})"
        case Rearrange(source):
            axes = ",".join(relation.type.axes[axis].name for axis in relation.layout.promoted)
            return f"{type(relation).__name__.lower()}({describe(source)} by [{axes}])"
        case Join(kind, left, right):
            return f"{kind.name.lower()} join({describe(left)}, {describe(right)})"
        case Compute(source, _, kernel, combine, maps):
            names = [*(str(step) for step in maps), kernel.name or (combine and combine.name)]
            chain = " then ".join(name for name in names if name)
            inner = describe(source)
            return f"{chain} of {inner}" if chain else inner
        case Reduce(compute, operation, labels, _, layout):
            keys = ",".join(labels[axis] for axis in layout.promoted)
            inner = describe(compute)
            return f"{operation.name}({inner}) group by [{keys}]" if operation else inner
