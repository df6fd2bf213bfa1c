"""Lower a decomposed program to a plan: joins, kernels and repartitions, a step for each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from ucle.foundation.names import unique_names
from ucle.ir.annihilation import checked_tensors
from ucle.ir.axis_functions import Along, TopK
from ucle.ir.fills import JoinKind, join_rule, meets_all, missing_entries
from ucle.ir.forests import Forest
from ucle.ir.index_maps import IndexMap
from ucle.ir.layouts import RESULT, Layout
from ucle.ir.masked_products import MaskedOperand, masked_products
from ucle.ir.tensor_types import TensorType
from ucle.ir.vertices import Operand, Vertex
from ucle.plan.decomposition import DecomposedProgram
from ucle.plan.early_ends import may_end_early, never_raises
from ucle.plan.every_tuple import has_every_tuple
from ucle.plan.kernel_choice import at_absent_places, choose_kernel, masked_kernel
from ucle.plan.lookups import LookupPlan
from ucle.plan.multiway import MultiwayPlan
from ucle.plan.relation_nodes import (
    Aggregate,
    BlockRepartition,
    Compress,
    Compute,
    Decompose,
    Densify,
    Expand,
    Gather,
    Join,
    Load,
    LookupJoin,
    MaskedJoin,
    MultiwayJoin,
    PackedForest,
    PrefixScan,
    Read,
    Recode,
    Reindex,
    Relation,
    Repartition,
    Stack,
    TableScan,
    TopKEntries,
)
from ucle.plan.repartition_paths import ChangeKind, LayoutChange, changes
from ucle.plan.sources import ArraySource, Dictionary, InputSource, TableName, TableSource
from ucle.plan.steps import Check, Plan, Role, Step


def plan_program(
    decomposed: DecomposedProgram,
    sources: Mapping[str, tuple[InputSource, ...]],
    dictionaries: tuple[Dictionary, ...] = (),
    condition_numbers: Mapping[str, float] | None = None,
) -> Plan:
    """Lower a decomposed program to a plan.

    Args:
        decomposed: the program with the decomposition of every vertex.
        sources: the sources of each input; tables in the layouts that the decomposition knows.
        dictionaries: dictionaries of the labels that have one.
        condition_numbers: the largest values of the program's condition numbers.
    """
    planner = _Planner(decomposed, sources)
    planner.take_names(dictionary.name for dictionary in dictionaries)
    for vertex in decomposed.program.vertices:
        planner.plan_vertex(vertex)
    outputs = {name: planner.vertex_reads[name] for name in decomposed.program.outputs}
    reads = (planner.vertex_reads[x] for x in checked_tensors(decomposed.program))
    checks = {read.step: Check(read) for read in reads}
    for name, largest in (condition_numbers or {}).items():
        read = planner.vertex_reads[name]
        checks[read.step] = Check(read, largest)
    checked = tuple(checks[step.name] for step in planner.steps if step.name in checks)
    return Plan(tuple(planner.steps), outputs, dictionaries, checked)


class _Planner:
    """Collects steps, and remembers the relations and conversions that already exist."""

    def __init__(
        self, decomposed: DecomposedProgram, sources: Mapping[str, tuple[InputSource, ...]]
    ) -> None:
        self.steps: list[Step] = []
        self.vertex_reads: dict[str, Read] = {}
        self._relations: dict[str, Relation] = {}
        """The relations of the steps, by name."""
        self._scanned: dict[tuple[object, ...], Read] = {}
        self._converted: dict[tuple[str, Layout], Read] = {}
        self._decomposed = decomposed
        self._sources = sources
        # Database names fold case, so names are compared folded. Names of tables that the program
        # reads are taken as well; otherwise a view could hide its own source.
        self._taken = {
            source.origin.parts[-1].casefold()
            for every in sources.values()
            for source in every
            if isinstance(source, TableSource) and isinstance(source.origin, TableName)
        }

    def take_names(self, names: Iterable[str]) -> None:
        """Reserve names, so that no step gets them."""
        self._taken |= {name.casefold() for name in names}

    def plan_vertex(self, vertex: Vertex) -> None:
        decomposed = self._decomposed
        decomposition = decomposed.decompositions[vertex.name]
        if decomposition.deferred == RESULT or vertex.name not in decomposed.made:
            return  # its reader plans it
        if (joined := decomposed.multiway.get(vertex.name)) is not None:
            self._plan_multiway(vertex, joined)
            return
        if (lookups := decomposed.lookups.get(vertex.name)) is not None:
            compute = self._plan_lookups(lookups)
            self._add_vertex(vertex, compute, lookups.text(vertex))
            return
        if decomposition.deferred is not None:
            self._add_vertex(vertex, self._plan_masked_product(vertex, decomposition.deferred))
            return
        inputs = [
            self._operand(operand, layout) for operand, layout in decomposed.needed_layouts(vertex)
        ]
        if vertex.index is not None:
            self.vertex_reads[vertex.name] = self._plan_reindex(vertex, vertex.index, inputs[0])
            return
        if vertex.along is not None:
            self.vertex_reads[vertex.name] = self._plan_scan(vertex, vertex.along, inputs[0])
            return
        if vertex.top is not None:
            self.vertex_reads[vertex.name] = self._first_entries(vertex, vertex.top, inputs[0])
            return
        source: Join | Relation
        kernel = choose_kernel(vertex, decomposition)
        if vertex.pair is not None:
            source = self._join_pair(vertex, *inputs)
        elif len(inputs) == 1:
            (source,) = inputs
            if meets_all(vertex):
                source = Densify(source)
        else:
            left, right = inputs
            kernel = at_absent_places(kernel, vertex, left.type, right.type)
            rule = join_rule(vertex, left.type, right.type, decomposition)
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
            kernel,
            vertex.combine,
            vertex.maps,
        )
        self._add_vertex(vertex, compute)

    def _join_pair(self, vertex: Vertex, left: Read, right: Read) -> Join:
        """Return each row of features, or each matrix, stored or not, beside what is applied."""
        one: Relation = left if has_every_tuple(left, self._relations) else Densify(left)
        other: Relation = right if has_every_tuple(right, self._relations) else Densify(right)
        if isinstance(vertex.pair, Forest):
            other = PackedForest(other, left.type.shape[-1])
        return Join(JoinKind.INNER, one, other, vertex.inputs[0].names, vertex.inputs[1].names)

    def _plan_masked_product(self, vertex: Vertex, number: int) -> Compute:
        """Return a product that a vertex masks, computed only at the places of the mask."""
        decomposed = self._decomposed
        producer = decomposed.program.by_name[vertex.inputs[number].tensor]
        needed = {
            True: decomposed.needed_layouts(producer),
            False: decomposed.needed_layouts(vertex),
        }

        def layout(part: MaskedOperand) -> Layout:
            return needed[part.of_producer][part.number][1]

        def read(part: MaskedOperand) -> Read:
            return self._operand(*needed[part.of_producer][part.number])

        # Either factor may be the mask of the other if both labels are aggregated away.
        product = next(
            x
            for x in masked_products(decomposed.program, vertex)
            if x.number == number and layout(x.mask).compressed == 1
        )
        parts = product.mask, product.left, product.right
        mask, left, right = map(read, parts)
        joined = MaskedJoin(mask, left, right, *(part.operand.names for part in parts))
        kernel = masked_kernel(product, right.layout)
        return Compute(joined, product.mask.operand.names, kernel, vertex.combine, ())

    def _plan_multiway(self, vertex: Vertex, plan: MultiwayPlan) -> None:
        types = self._decomposed.program.types
        operands = tuple(
            self._operand(Operand(x.tensor, types[x.tensor].axes), x.layout) for x in plan.sources
        )
        type_, program = vertex.tensor.type, plan.nest.program()
        relation = MultiwayJoin(operands, program, type_, plan.layout, plan.held)
        cost = self._decomposed.costs[vertex.name].total
        read = self._add(vertex.name, vertex.name, relation, plan.text(vertex), cost)
        same = plan.handed == plan.layout
        self.vertex_reads[vertex.name] = read if same else self._convert(read, plan.handed)

    def _plan_lookups(self, plan: LookupPlan) -> Compute:
        """Return the values that a vertex aggregates, one for each tuple of the base."""
        operands = tuple(map(self._operand, plan.operands, plan.layouts))
        labels = tuple(operand.names for operand in plan.operands)
        joined = LookupJoin(operands, labels, plan.operations, plan.type, plan.layout)
        names = tuple(label.name for label in plan.type.axes)
        return Compute(joined, names, plan.kernel, None, ())

    def _add_vertex(self, vertex: Vertex, compute: Compute, comment: str = "") -> None:
        decomposed = self._decomposed
        decomposition = decomposed.decompositions[vertex.name]
        aggregated, types = vertex.aggregates(decomposition), decomposed.program.types
        relation = Aggregate(
            compute,
            vertex.reduce if aggregated else None,
            vertex.names,
            vertex.tensor.type,
            vertex.makes(decomposition),
            missing_entries(vertex, types, decomposition) if aggregated else None,
            early=may_end_early(vertex, decomposition) and never_raises(decomposed.program, vertex),
        )
        self.vertex_reads[vertex.name] = self._add(
            vertex.name,
            vertex.name,
            relation,
            comment or vertex.text(decomposition),
            decomposed.costs[vertex.name].total,
        )

    def _plan_reindex(self, vertex: Vertex, index: IndexMap, source: Read) -> Read:
        decomposition = self._decomposed.decompositions[vertex.name]
        relation = Reindex(
            Densify(source) if meets_all(vertex) else source,
            index,
            vertex.inputs[0].names,
            vertex.names,
            choose_kernel(vertex, decomposition),
            vertex.tensor.type,
            vertex.makes(decomposition),
        )
        cost = self._decomposed.costs[vertex.name].total
        return self._add(vertex.name, vertex.name, relation, vertex.text(decomposition), cost)

    def _plan_scan(self, vertex: Vertex, along: Along, source: Read) -> Read:
        decomposition = self._decomposed.decompositions[vertex.name]
        relation = PrefixScan(
            Densify(source) if meets_all(vertex) else source,
            along,
            vertex.names,
            choose_kernel(vertex, decomposition),
            vertex.tensor.type,
            vertex.makes(decomposition),
        )
        cost = self._decomposed.costs[vertex.name].total
        return self._add(vertex.name, vertex.name, relation, vertex.text(decomposition), cost)

    def _first_entries(self, vertex: Vertex, top: TopK, source: Read) -> Read:
        decomposition = self._decomposed.decompositions[vertex.name]
        whole = has_every_tuple(source, self._relations)
        keyed = top.label in decomposition.promoted
        relation = TopKEntries(
            source if whole or keyed else Densify(source),
            top,
            vertex.inputs[0].names,
            choose_kernel(vertex, decomposition),
            vertex.tensor.type,
            vertex.makes(decomposition),
            whole or not keyed,
        )
        if relation.leaves_out:
            relation = replace(relation, whole=True)
        cost = self._decomposed.costs[vertex.name].total
        return self._add(vertex.name, vertex.name, relation, vertex.text(decomposition), cost)

    def _operand(self, operand: Operand, needed: Layout) -> Read:
        """Return the operand in the layout that its vertex needs, converted if necessary."""
        key = operand.tensor, needed
        if key not in self._converted:
            read = self._source(*key)
            same = read.layout == needed
            self._converted[key] = read if same else self._convert(read, needed)
        return self._converted[key]

    def _source(self, name: str, needed: Layout) -> Read:
        """Return the source of a tensor for a layout: made by a vertex, scanned, or from memory."""
        if name in self.vertex_reads:
            return self.vertex_reads[name]
        layout = self._decomposed.source_layout(name, needed)
        if layout is None:
            return self._load(name, needed)
        matching = [
            source
            for source in self._sources[name]
            if isinstance(source, TableSource) and source.layout == layout
        ]
        if not matching:
            return self._load(name, layout)
        source = max(matching, key=lambda each: each.kept_as is not None)
        type_ = self._decomposed.program.types[name]
        # What replaces an input must not replace others that read the same table. One that has
        # another fill has other entries, and one of another size other arrays.
        varies = name if type_.entries.varies else None
        scanned = source, type_.shape, repr(type_.fill), varies
        if scanned not in self._scanned:
            kept = source.key_axes is not None
            step = _layout_name(name, type_, layout) if kept else name
            scan = TableScan(source, type_, layout)
            self._scanned[scanned] = self._add(step, name, scan, f"{name}: {source.origin}")
        return self._scanned[scanned]

    def _load(self, name: str, needed: Layout) -> Read:
        (source,) = (x for x in self._sources[name] if not isinstance(x, TableSource))
        type_ = self._decomposed.program.types[name]
        shape = " x ".join(map(str, source.shape)) or "scalar"
        load = Load(source, type_, needed)
        kind = f"array {shape}" if isinstance(source, ArraySource) else source.kind
        comment = f"{name}: {kind} in memory"
        return self._add(_layout_name(name, type_, needed), name, load, comment)

    def _convert(self, read: Read, needed: Layout) -> Read:
        relation: Relation = read
        blocks = self._decomposed.exchanges.get((read.tensor, read.layout, needed))
        if blocks is not None:
            relation = BlockRepartition(read, needed, blocks.axis, blocks.size)
            name = _layout_name(read.tensor, read.type, needed)
            comment = f"repartition {read.tensor}: exchange keys in blocks of {blocks.size}"
            return self._add(name, read.tensor, relation, comment)
        for change in changes(read.layout, needed, read.type.shape):
            relation = self._changed(read, change)
            comment = f"repartition {read.tensor}: {change.kind.value}"
            name = _layout_name(read.tensor, read.type, change.layout)
            read = self._add(name, read.tensor, relation, comment)
        return read

    def _changed(self, read: Read, change: LayoutChange) -> Relation:
        """Return a tensor in another layout; runs are compressed from the table as they are."""
        scan = self._relations[read.step]
        if change.kind is ChangeKind.COMPRESS and isinstance(scan, TableScan):
            runs = scan.source.ends is not None and scan.layout == scan.source.layout
            if runs and change.layout.compressed == read.type.rank - 1:
                return replace(scan, layout=change.layout)
        return RELATIONS[change.kind](read, change.layout)

    def _add(
        self, name: str, tensor: str, relation: Relation, comment: str, cost: float = 0.0
    ) -> Read:
        (unique,) = unique_names([name], self._taken)
        role = Role.INPUT if isinstance(relation, Load) else Role.VIEW
        self.steps.append(Step(unique, tensor, role, relation, comment, cost))
        self._relations[unique] = relation
        return Read(unique, tensor, relation.type, relation.layout)


RELATIONS: Mapping[ChangeKind, Callable[[Relation, Layout], Repartition]] = {
    ChangeKind.DECOMPOSE: Decompose,
    ChangeKind.STACK: Stack,
    ChangeKind.COMPRESS: Compress,
    ChangeKind.EXPAND: Expand,
    ChangeKind.RECODE: Recode,
    ChangeKind.GATHER: Gather,
}


def _layout_name(tensor: str, type_: TensorType, layout: Layout) -> str:
    return layout.name_tensor(tensor, [axis.name for axis in type_.axes])
