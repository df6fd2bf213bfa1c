"""Plans: what a decomposed program does, relation by relation.

`plan_program` lowers a decomposed program to named steps, each a small tree of relational nodes
that ends in a tensor relation. A vertex becomes Reduce over Compute over Join (sparse_einsum.txt,
Equation 6); a mismatch of layouts becomes Decompose and Stack (section 6); a fill that a join or an
aggregation may not drop becomes Densify or an outer join. The nodes know tensors, labels and
layouts, and nothing of SQL.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum

from ucle.fills import JoinKind, Missing, join_rule, missing_entries
from ucle.ir import Layout, Map, Operand, TensorType, Vertex
from ucle.kernel_choice import Kernel, choose_kernel
from ucle.names import unique_names
from ucle.sources import ArraySource, Source, TableName, TableSource
from ucle.sparse_einsum import DecomposedProgram, output_layout


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
class Decompose:
    """Promotes further axes: each tuple becomes one for every position that holds something."""

    input: Relation
    layout: Layout

    @property
    def type(self) -> TensorType:
        """Type of the tensor."""
        return self.input.type


@dataclass(frozen=True)
class Stack:
    """Demotes axes: tuples that agree on the remaining keys become one (the paper's STACK)."""

    input: Relation
    layout: Layout

    @property
    def type(self) -> TensorType:
        """Type of the tensor."""
        return self.input.type


@dataclass(frozen=True)
class Densify:
    """Stores every tuple that the bounds allow; those that were missing hold the fill."""

    input: Relation

    @property
    def type(self) -> TensorType:
        """Type of the tensor."""
        return self.input.type

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
    combine: str | None
    maps: tuple[Map, ...]


@dataclass(frozen=True)
class Reduce:
    """Groups by the output's promoted labels and aggregates with ⊕ (None: nothing to aggregate)."""

    input: Compute
    operation: str | None
    labels: tuple[str, ...]
    """Labels of the output's axes."""
    type: TensorType
    layout: Layout
    missing: Missing | None = None
    """What groups must account for that did not meet every entry."""


Relation = Scan | Load | Read | Decompose | Stack | Densify | Reduce


@dataclass(frozen=True)
class Step:
    """A named relation of the script: what it is, how it is made, and why it is there."""

    name: str
    role: Role
    relation: Relation
    comment: str


@dataclass(frozen=True)
class Plan:
    """Steps in the order in which they are made, and the step of each output."""

    steps: tuple[Step, ...]
    outputs: Mapping[str, Read]

    def __str__(self) -> str:
        return "\n".join(f"{s.role.value:5} {s.name} := {describe(s.relation)}" for s in self.steps)


def plan_program(decomposed: DecomposedProgram, sources: Mapping[str, Source]) -> Plan:
    """Lower a decomposed program to a plan.

    Args:
        decomposed: the program with the promoted labels of every vertex.
        sources: where each input lies.
    """
    planner = _Planner(decomposed, sources)
    for vertex in decomposed.program.vertices:
        planner.plan_vertex(vertex)
    outputs = {name: planner.made[name] for name in decomposed.program.outputs}
    return Plan(_materialise_shared(planner.steps, outputs), outputs)


class _Planner:
    """Collects steps; `made` and `converted` remember what exists already."""

    def __init__(self, decomposed: DecomposedProgram, sources: Mapping[str, Source]) -> None:
        self.steps: list[Step] = []
        self.made: dict[str, Read] = {}
        self._converted: dict[tuple[str, Layout], Read] = {}
        self._decomposed = decomposed
        self._sources = sources
        # Database names fold case, so names are compared folded; names of tables that the program
        # reads are taken as well, or a view could hide its own source.
        self._taken = {
            source.origin.parts[-1].casefold()
            for source in sources.values()
            if isinstance(source, TableSource) and isinstance(source.origin, TableName)
        }

    def plan_vertex(self, vertex: Vertex) -> None:
        decomposed = self._decomposed
        promoted = decomposed.promoted[vertex.name]
        inputs = [
            self._operand(operand, decomposed.needed_layout(vertex, operand))
            for operand in vertex.inputs
        ]
        source: Join | Relation
        if len(inputs) == 1:
            (source,) = inputs
        else:
            left, right = inputs
            rule = join_rule(vertex, left.type, right.type, promoted)
            source = Join(
                rule.kind,
                Densify(left) if rule.densify_left else left,
                Densify(right) if rule.densify_right else right,
                vertex.inputs[0].names,
                vertex.inputs[1].names,
            )
        compute = Compute(
            source,
            vertex.inputs[0].names,
            choose_kernel(vertex, promoted),
            vertex.combine,
            vertex.maps,
        )
        aggregated = any(label.name in promoted for label in vertex.reduced)
        relation = Reduce(
            compute,
            vertex.reduce if aggregated else None,
            tuple(label.name for label in vertex.labels),
            vertex.tensor.type,
            output_layout(vertex, promoted),
            missing_entries(vertex, decomposed.program.types, promoted) if aggregated else None,
        )
        self.made[vertex.name] = self._add(
            vertex.name, vertex.name, relation, vertex.text(promoted)
        )

    def _operand(self, operand: Operand, needed: Layout) -> Read:
        """The operand in the layout that its vertex needs, converted where it must be."""
        name = operand.tensor
        source = self._sources.get(name)
        if isinstance(source, ArraySource):
            if (name, needed) not in self._converted:
                type_ = self._decomposed.program.types[name]
                comment = (
                    f"{name}: array {' x '.join(map(str, source.shape)) or 'scalar'} in memory"
                )
                read = self._add(
                    _layout_name(name, type_, needed), name, Load(source, type_, needed), comment
                )
                self._converted[name, needed] = read
            return self._converted[name, needed]
        if name not in self.made:
            assert isinstance(source, TableSource)
            type_ = self._decomposed.program.types[name]
            scan = Scan(source, type_, source.layout)
            self.made[name] = self._add(name, name, scan, f"{name}: {source.origin}")
        made = self.made[name]
        if made.layout.levels == needed.levels:
            return made
        if (name, needed) not in self._converted:
            self._converted[name, needed] = self._convert(made, needed)
        return self._converted[name, needed]

    def _convert(self, made: Read, needed: Layout) -> Read:
        finer = made.layout.union(needed)
        relation: Relation = made
        if finer.levels != made.layout.levels:
            relation = Decompose(relation, finer)
            comment = f"repartition {made.tensor}: decompose"
            name = _layout_name(made.tensor, made.type, finer)
            made = self._add(name, made.tensor, relation, comment)
        if finer.levels != needed.levels:
            relation = Stack(made, needed)
            comment = f"repartition {made.tensor}: stack"
            name = _layout_name(made.tensor, made.type, needed)
            made = self._add(name, made.tensor, relation, comment)
        return made

    def _add(self, name: str, tensor: str, relation: Relation, comment: str) -> Read:
        (unique,) = unique_names([name], self._taken)
        role = Role.INPUT if isinstance(relation, Load) else Role.VIEW
        self.steps.append(Step(unique, role, relation, comment))
        return Read(unique, tensor, relation.type, relation.layout)


def _layout_name(tensor: str, type_: TensorType, layout: Layout) -> str:
    """A name that says how a tensor is decomposed: H_by_i, H_by_i_j, H_whole."""
    promoted = [type_.axes[axis].name for axis in layout.promoted]
    return f"{tensor}_by_{'_'.join(promoted)}" if promoted else f"{tensor}_whole"


def reads(relation: Join | Compute | Relation) -> tuple[str, ...]:
    """Names of the steps that a relation reads, with repetition."""
    match relation:
        case Read(step):
            return (step,)
        case Scan() | Load():
            return ()
        case Join(_, left, right):
            return (*reads(left), *reads(right))
        case Decompose(source) | Stack(source) | Densify(source) | Compute(source) | Reduce(source):
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
        case Decompose(source) | Stack(source) | Densify(source):
            axes = ",".join(relation.type.axes[axis].name for axis in relation.layout.promoted)
            return f"{type(relation).__name__.lower()}({describe(source)} by [{axes}])"
        case Join(kind, left, right):
            return f"{kind.name.lower()} join({describe(left)}, {describe(right)})"
        case Compute(source, _, kernel, combine, maps):
            names = [*(str(function) for function in maps), kernel.name or combine]
            chain = " then ".join(name for name in names if name)
            inner = describe(source)
            return f"{chain} of {inner}" if chain else inner
        case Reduce(compute, operation, labels, _, layout):
            keys = ",".join(labels[axis] for axis in layout.promoted)
            inner = describe(compute)
            return f"{operation}({inner}) group by [{keys}]" if operation else inner


def _materialise_shared(steps: list[Step], outputs: Mapping[str, Read]) -> tuple[Step, ...]:
    """Turn views that several steps read into tables; a mere scan is cheaper read again."""
    readers = [name for step in steps for name in reads(step.relation)]
    readers += [read.step for read in outputs.values()]

    def shared(step: Step) -> bool:
        cheap = isinstance(step.relation, Scan | Load)
        return not cheap and readers.count(step.name) > 1

    return tuple(replace(step, role=Role.TABLE) if shared(step) else step for step in steps)
