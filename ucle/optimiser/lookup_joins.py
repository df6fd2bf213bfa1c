"""Look-up joins: expressions that are computed at the tuples of a sparse factor, in one join.

A binary plan of ``y[i] += L[i,s,p] * (a[s] + b[p])`` makes the sum first, a tensor over s and p, or
what a mask leaves of it. Where L absorbs by its fill, the sum is needed at the tuples of L alone,
and each operand of it has at most one tuple for a tuple of L (`ucle.plan.lookups`). A look-up join
is taken where it costs less than the vertices that it replaces. An operand that has far fewer
tuples than L is made before it is looked up.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

from ucle.foundation.dtypes import DType, is_finite, same_value
from ucle.ir.annihilation import checked_tensors
from ucle.ir.fills import absorbed_sides, meets_all
from ucle.ir.layouts import Label, Layout
from ucle.ir.maps import Cast, Partial, Pointwise
from ucle.ir.masked_products import repeats
from ucle.ir.tensor_types import NamedTensor, TensorType
from ucle.ir.vertex_types import vertex_type
from ucle.ir.vertices import Operand, Program, Vertex
from ucle.operators import ANY, NOT_EQUAL, WHEN
from ucle.optimiser.pricing import CostedProgram
from ucle.plan.decomposition import DecomposedProgram, VertexCost
from ucle.plan.early_ends import may_raise
from ucle.plan.kernel_choice import choose_kernel
from ucle.plan.lookups import LookupPlan, RowOperation
from ucle.plan.prices import JoinWork, KernelWork, cost

MOST_OPERANDS, MOST_OPERATIONS = 12, 32
"""Limits of one look-up join: DuckDB builds a hash table of each operand at once."""

MADE_FIRST = 0.25
"""The share of the base's tuples below which a tensor is made before it is looked up."""


def join_lookups(costed: CostedProgram, decomposed: DecomposedProgram) -> DecomposedProgram:
    """Return a decomposed program with look-up joins wherever they cost less.

    Args:
        costed: the program with its prices.
        decomposed: the program with a decomposition of its vertices; it stays the same object if
            no look-up join is cheaper.
    """
    least = costed.optimisations.lookups
    if not costed.lookups or least is None or decomposed.total_cost < least:
        return decomposed
    return _Lookups(costed, decomposed, least).find()


class _Lookups:
    """The search for look-up joins in a decomposed program."""

    def __init__(self, costed: CostedProgram, decomposed: DecomposedProgram, least: float) -> None:
        self._costed = costed
        self._decomposed = decomposed
        self._least = least
        self._program: Program = costed.program

    def find(self) -> DecomposedProgram:
        """Return the program with the joins that pay, from its results to its inputs."""
        current = self._decomposed
        roots = [vertex for vertex in self._program.vertices if self._may_be_root(vertex)]
        checked = checked_tensors(self._program) if roots else frozenset[str]()
        for vertex in reversed(roots):
            if vertex.name not in current.made:
                continue
            options = [self._plan(vertex, side, checked) for side in range(2)]
            for plan in options:
                if plan is not None:
                    current = self._cheaper(current, vertex, plan)
        return current

    def _cheaper(
        self, current: DecomposedProgram, vertex: Vertex, plan: LookupPlan
    ) -> DecomposedProgram:
        """Return the program with a look-up join for a vertex, or as it is if that costs less."""
        joined = replace(current, lookups={**current.lookups, vertex.name: plan})
        none = VertexCost(0.0, 0.0)
        costs = {
            name: each if name in joined.made else none for name, each in current.costs.items()
        }
        costs[vertex.name] = self._cost(vertex, plan)
        joined = replace(joined, costs=costs)
        return joined if current.total_cost - joined.total_cost > self._least else current

    # ---- Which vertices ----

    def _may_be_root(self, vertex: Vertex) -> bool:
        """Return whether a vertex may aggregate what a look-up join computes."""
        decomposed = self._decomposed
        if not vertex.is_product or vertex.combine is None or meets_all(vertex):
            return False
        if vertex.name in decomposed.multiway or any(map(repeats, vertex.inputs)):
            return False
        return decomposed.decompositions[vertex.name].plain and any(
            self._is_expression(operand.tensor) for operand in vertex.inputs
        )

    def _is_expression(self, name: str) -> bool:
        """Return whether a tensor is ⊗ of two others or maps of one, entry by entry."""
        made = self._program.by_name.get(name)
        if made is None or not made.is_product or made.reduce is not None:
            return False
        if any(map(repeats, made.inputs)) or name in self._program.results:
            return False
        decomposed = self._decomposed
        return name not in decomposed.multiway and decomposed.decompositions[name].plain

    # ---- Plans ----

    def _plan(self, vertex: Vertex, side: int, checked: frozenset[str]) -> LookupPlan | None:
        """Return the look-up join whose base is one side of a product; None if there is none."""
        program, chosen = self._program, self._decomposed.decompositions[vertex.name]
        base, other = vertex.inputs[side], vertex.inputs[1 - side]
        layouts = vertex.reads(chosen)
        if not layouts[side].scalar or not layouts[side].promoted:
            return None
        if not chosen.promoted <= set(base.names) or not self._is_expression(other.tensor):
            return None
        types = [program.types[operand.tensor] for operand in vertex.inputs]
        absorbed = absorbed_sides(vertex, *types)
        kept = vertex.combine is not None and vertex.combine.absorbs_all
        if not absorbed[side] or (absorbed[1 - side] and not (kept or _is_finite(types[side]))):
            return None
        expression = _Expression(self, base, layouts[side], checked)
        value = expression.add(other, layouts[1 - side])
        if value is None or not any(each.combine for each in expression.operations):
            return None  # DuckDB computes maps in the join anyway
        labels = tuple(dict.fromkeys((*base.labels, *other.labels)))
        tensor = NamedTensor(vertex.name, TensorType(labels, types[side].dtype))
        whole = Vertex(tensor, vertex.inputs, labels, vertex.combine)
        type_ = vertex_type(whole, program.types)
        split = whole.decomposition(chosen.promoted)
        kernel = choose_kernel(whole, split)
        numbers = (0, value) if side == 0 else (value, 0)
        expression.operations.append(
            RowOperation(numbers, kernel, vertex.combine, (), tensor.type.dtype)
        )
        rows = Operand(vertex.name, labels)
        summed = Vertex(vertex.tensor, (rows,), vertex.labels, reduce=vertex.reduce)
        return LookupPlan(
            tuple(expression.operands),
            tuple(expression.layouts),
            expression.numbered(),
            type_,
            whole.makes(split),
            choose_kernel(summed, summed.decomposition(chosen.promoted)),
            tuple(expression.inside),
        )

    def rows(self, name: str, layout: Layout) -> float:
        """Return the tuples of a tensor in a layout."""
        return self._costed.rows(name, layout)

    def most_rows(self, name: str, layout: Layout) -> float:
        """Return the most tuples that a tensor may have in a layout, whatever is estimated."""
        type_ = self._program.types[name]
        every = math.prod(float(type_.key_range(layout, axis)) for axis in layout.promoted)
        return min(every, self._costed.statistics.rows(name, layout).high)

    def decomposed_vertex(self, name: str, layout: Layout) -> tuple[Vertex, tuple[Layout, ...]]:
        """Return the vertex that makes a tensor in a layout, and the layouts that it reads.

        None are read if it makes another layout.
        """
        made = self._program.by_name[name]
        chosen = self._decomposed.decompositions[name]
        same = chosen.plain and made.makes(chosen) == layout
        return made, made.reads(chosen) if same else ()

    def operation(self, made: Vertex, inputs: tuple[int, ...]) -> list[RowOperation]:
        """Return the operations of a vertex without ⊕: one for each map of numbers."""
        chosen, dtype = self._decomposed.decompositions[made.name], made.tensor.type.dtype
        kernel = choose_kernel(made, chosen)
        if len(made.maps) < 2 or not kernel.scalar:
            return [RowOperation(inputs, kernel, made.combine, made.maps, dtype)]
        return [RowOperation(inputs, kernel, None, (step,), dtype) for step in made.maps]

    def is_expression(self, name: str) -> bool:
        """Return whether a tensor is computed entry by entry, and no result."""
        return self._is_expression(name)

    @property
    def program(self) -> Program:
        """The program."""
        return self._program

    # ---- Costs ----

    def _cost(self, vertex: Vertex, plan: LookupPlan) -> VertexCost:
        """Return the cost of a look-up join: a join for each operand, and the aggregation."""
        costed, profile = self._costed, self._costed.profile
        rows = costed.rows(plan.operands[0].tensor, plan.layouts[0])
        joins = moves = 0.0
        layouts = {name: self._decomposed.made_layout(name) for name in self._program.by_name}
        for number, (operand, layout) in enumerate(zip(plan.operands, plan.layouts, strict=True)):
            source = costed.source_layout(operand.tensor, layout, layouts)
            moves += costed.repartition_cost(operand.tensor, source, layout)
            if number == 0:
                continue
            kept = costed.rows(operand.tensor, layout)
            size = costed.tuple_bytes(operand.tensor, layout)
            work = JoinWork(rows, 0.0, size, read=rows + kept, built=kept * size, kept=kept)
            joins += cost(work, profile)
        width = plan.type.dense_size(plan.layout)
        kernels = 0.0
        if not plan.layout.scalar:
            made = float(plan.type.tuple_bytes(plan.layout))
            call = KernelWork(rows, 2.0 * width, made_bytes=made, threads=costed.resources.threads)
            on_arrays = sum(not each.kernel.scalar for each in plan.operations)
            kernels = on_arrays * cost(call, profile)
        own = VertexCost(joins, kernels, self._decomposed.costs[vertex.name].aggregate, moves)
        return costed.per_run(vertex, own)


class _Expression:
    """The operands and operations of a look-up join, as they are found.

    Operands and operations are numbered apart until all are known: operations by negative numbers.
    """

    def __init__(
        self, search: _Lookups, base: Operand, layout: Layout, checked: frozenset[str]
    ) -> None:
        self._search = search
        self._base = base
        self._checked = checked
        self._rows = search.rows(base.tensor, layout)
        self._known: dict[tuple[str, tuple[Label, ...], Layout], int] = {}
        self.operands = [base]
        self.layouts = [layout]
        self.operations: list[RowOperation] = []
        self.inside: list[str] = []

    def numbered(self) -> tuple[RowOperation, ...]:
        """Return the operations with the numbers that values have behind all operands."""
        first = len(self.operands)
        return tuple(
            replace(each, inputs=tuple(n if n >= 0 else first - 1 - n for n in each.inputs))
            for each in self.operations
        )

    def add(self, operand: Operand, layout: Layout) -> int | None:
        """Return the number of a tensor's value at a tuple of the base; None if it has none."""
        key = operand.tensor, operand.labels, layout
        if key not in self._known:
            number = self._find(operand, layout)
            if number is None:
                return None
            self._known[key] = number
        return self._known[key]

    def _find(self, operand: Operand, layout: Layout) -> int | None:
        if operand == self._base:
            return 0
        if (maps := self._mask(operand)) is not None:
            return self._map_base(maps)
        number = self._expand(operand, layout)
        return self._look_up(operand, layout) if number is None else number

    def _look_up(self, operand: Operand, layout: Layout) -> int | None:
        keys = {operand.labels[axis].name for axis in layout.promoted}
        if not layout.plain or not keys.issubset(self._base.names):
            return None
        if repeats(operand) or not (keys or layout.scalar):
            return None  # the array would be copied for each tuple
        if len(self.operands) == MOST_OPERANDS:
            return None
        self.operands.append(operand)
        self.layouts.append(layout)
        return len(self.operands) - 1

    def _expand(self, operand: Operand, layout: Layout) -> int | None:
        """Return the number of an expression's value, computed from what it is made of."""
        name = operand.tensor
        if name in self._checked or not self._search.is_expression(name):
            return None
        if self._search.most_rows(name, layout) < MADE_FIRST * self._rows:
            return None
        made, layouts = self._search.decomposed_vertex(operand.tensor, layout)
        if not layouts or may_raise(made) or not _drops_nothing(made, self._search.program):
            return None
        before = len(self.operands), len(self.operations), dict(self._known)
        names = dict(zip(made.names, operand.labels, strict=True))
        parts = [Operand(x.tensor, tuple(names[name] for name in x.names)) for x in made.inputs]
        if made.combine is WHEN and self._holds_everywhere(parts[0]):
            self.inside.append(made.name)
            return self.add(parts[1], layouts[1])  # it is True wherever the value is needed
        numbers = []
        for there, own in zip(parts, layouts, strict=True):
            number = self.add(there, own)
            if number is None or len(self.operations) > MOST_OPERATIONS:
                del self.operands[before[0] :], self.layouts[before[0] :]
                del self.operations[before[1] :]
                self._known = before[2]
                return None
            numbers.append(number)
        self.inside.append(made.name)
        value = tuple(numbers)
        for operation in self._search.operation(made, value):
            value = (self._append(replace(operation, inputs=value)),)
        return value[0]

    def _append(self, operation: RowOperation) -> int:
        self.operations.append(operation)
        return -len(self.operations)

    # ---- Masks ----

    def _mask(self, operand: Operand) -> tuple[Pointwise, ...] | None:
        """Return the maps of the base that a mask aggregates with ``any``; None for other tensors.

        It is True wherever the base has an entry. Where the base has none, nothing is needed: its
        fill absorbs.
        """
        root, before = self._root
        found = self._trace(operand, root.tensor)
        if found is None or found[1][: len(before)] != before:
            return None
        labels, maps = found[0], found[1][len(before) :]
        same = zip(labels, root.labels, strict=True)
        if any(one is not None and one != other for one, other in same):
            return None
        type_ = self._search.program.types[self._base.tensor]
        return maps if _is_mask(maps, type_) else None

    @cached_property
    def _root(self) -> tuple[Operand, tuple[Pointwise, ...]]:
        """The tensor that the base is made of entry by entry, and the maps that make it."""
        program, base, maps = self._search.program, self._base, tuple[Pointwise, ...]()
        while (made := program.by_name.get(base.tensor)) is not None:
            if not self._search.is_expression(base.tensor) or made.combine is not None:
                break
            names = dict(zip(made.names, base.labels, strict=True))
            part = made.inputs[0]
            base = Operand(part.tensor, tuple(names[name] for name in part.names))
            maps = (*made.maps, *maps)
        return base, maps

    def _trace(
        self, operand: Operand, tensor: str
    ) -> tuple[tuple[Label | None, ...], tuple[Pointwise, ...]] | None:
        """Return the labels under which a mask reads a tensor, and its maps, if it is made of it.

        Labels that ``any`` aggregates away are None.
        """
        name, labels = operand.tensor, tuple[Label | None, ...](operand.labels)
        maps = tuple[Pointwise, ...]()
        while name != tensor:
            made = self._search.program.by_name.get(name)
            if made is None or not made.is_product or len(made.inputs) != 1:
                return None
            if made.reduce not in (None, ANY) or repeats(made.inputs[0]):
                return None
            own = dict(zip(made.names, labels, strict=True))
            labels = tuple(own.get(x) for x in made.inputs[0].names)
            maps = (*made.maps, *maps)
            name = made.inputs[0].tensor
        return labels, maps

    def _holds_everywhere(self, condition: Operand) -> bool:
        """Return whether a condition is true wherever the base has an entry."""
        if condition == self._base:
            return self._search.program.types[self._base.tensor].fill == 0
        return self._mask(condition) is not None

    def _map_base(self, maps: Sequence[Pointwise]) -> int:
        value = 0
        for step in maps:
            value = self._append(RowOperation((value,), _NUMBER, None, (step,), step.result))
        return value


_NUMBER = choose_kernel(
    Vertex(NamedTensor("x", TensorType(())), (Operand("x", ()),), ()),
    Vertex(NamedTensor("x", TensorType(())), (Operand("x", ()),), ()).all_promoted,
)
"""The kernel of maps of numbers: none."""


def _is_mask(maps: Sequence[Pointwise], type_: TensorType) -> bool:
    """Return whether maps say where a tensor differs from its fill."""
    match list(maps):
        case [Partial(combine=operator, constant=constant), *casts] if operator is NOT_EQUAL:
            same = same_value(constant, type_.fill)
        case casts:
            same = type_.dtype is DType.BOOL and not type_.fill
    return same and all(isinstance(step, Cast) for step in casts)


def _is_finite(type_: TensorType) -> bool:
    """Return whether an entry that is not stored annihilates whatever the tensor holds."""
    return type_.every.finite and not type_.every.overflows and is_finite(type_.fill)


def _drops_nothing(made: Vertex, program: Program) -> bool:
    """Return whether ⊗ of values, stored or not, is what the join of the stored ones gives."""
    if made.combine is None or made.combine.absorbs_all:
        return True
    left, right = (program.types[operand.tensor] for operand in made.inputs)
    by_left, by_right = absorbed_sides(made, left, right)
    return not (by_left and not _is_finite(right)) and not (by_right and not _is_finite(left))
