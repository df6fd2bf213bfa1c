"""SparseEinSum: the dynamic program that picks the decomposition of every vertex.

This is Algorithm 1 of sparse_einsum.txt (section 8.1) with two corrections: the minimum is reset
for every output layout, and a label that both inputs share has the same level in both even where it
is aggregated away. A vertex used more than once is the root of a tree of its own, optimised before
its consumers and then fixed (section 8.2). Statistics come in as an `Estimator`; SQL and DuckDB are
unknown here.

The table, for each tensor of one tree:

    table[tensor][layout] = Cell(total, promoted)

`total` is the least cost of making the tensor in that layout, over everything below it in the tree;
`promoted` is the decomposition of its vertex that attains it. With in(o) the layouts of operand o,

    table[v][layout].total = min over decompositions p of v whose output layout is `layout` of
        join(v, p) + aggregate(v, p)
        + sum over operands o of
            min over l in in(o) of table[o][l].total + repartition(l, needed(o, p))
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Set
from dataclasses import dataclass
from functools import cached_property
from itertools import product

from ucle.cost import AggregateWork, JoinWork, LoadWork, Profile, RepartitionWork, cost
from ucle.errors import LabelError, MemoryLimitError
from ucle.ir import Layout, Operand, Program, Vertex
from ucle.kernel_choice import choose_kernel
from ucle.stats.estimate import Estimator

MAX_ELEMENTS = 2**31 - 1
MAX_BYTES = 2**32 - 1
VECTOR_ROWS = 2048


@dataclass(frozen=True)
class Resources:
    """What a plan may use: bytes of memory, and threads that run at once."""

    memory: float = math.inf
    threads: int = 1


@dataclass(frozen=True)
class StoredInput:
    """Where an input lies: in one layout, or (None) in memory, from where any layout can be had."""

    layout: Layout | None


@dataclass(frozen=True)
class VertexCost:
    """The cost of one vertex under its decomposition, taken apart."""

    join: float
    aggregate: float
    repartition: float = 0.0

    @property
    def total(self) -> float:
        """Sum of the parts."""
        return self.join + self.aggregate + self.repartition


@dataclass(frozen=True)
class DecomposedProgram:
    """A program in upper-case-lower-case form: the promoted labels of every vertex.

    Layouts of tensors and the repartitions between them follow from that and from where the inputs
    are stored.
    """

    program: Program
    promoted: Mapping[str, frozenset[str]]
    stored: Mapping[str, StoredInput]
    costs: Mapping[str, VertexCost]

    @cached_property
    def total_cost(self) -> float:
        """Estimated cost of the whole program under the profile it was optimised for."""
        return sum(part.total for part in self.costs.values())

    def __str__(self) -> str:
        return "\n".join(v.text(self.promoted[v.name]) for v in self.program.vertices)

    def needed_layout(self, vertex: Vertex, operand: Operand) -> Layout:
        """The layout in which a vertex reads an operand."""
        return operand_layout(operand, self.promoted[vertex.name])

    def made_layout(self, name: str) -> Layout | None:
        """The layout in which a tensor is produced or stored; None where any can be had."""
        if name in self.stored:
            return self.stored[name].layout
        vertex = next(v for v in self.program.vertices if v.name == name)
        return output_layout(vertex, self.promoted[name])


def operand_layout(operand: Operand, promoted: Set[str]) -> Layout:
    """The layout of an operand under a decomposition of its vertex."""
    return Layout.of(name in promoted for name in operand.names)


def output_layout(vertex: Vertex, promoted: Set[str]) -> Layout:
    """The layout of a vertex's tensor under a decomposition."""
    return Layout.of(label.name in promoted for label in vertex.labels)


def decompositions(vertex: Vertex) -> Iterator[frozenset[str]]:
    """Every decomposition of a vertex: every subset of its labels, promoted."""
    names = [label.name for label in vertex.all_labels]
    for choice in product((False, True), repeat=len(names)):
        yield frozenset(name for name, chosen in zip(names, choice, strict=True) if chosen)


@dataclass(frozen=True)
class _Cell:
    """One entry of the table: the least cost of a tensor in a layout, and what attains it."""

    total: float
    promoted: frozenset[str] = frozenset()
    sources: tuple[Layout | None, ...] = ()


class CostedProgram:
    """A program with statistics and a profile: it prices decompositions.

    The dynamic program and anything that checks it (a brute-force search) ask the same questions
    here, so that they cannot disagree about what a decomposition costs.
    """

    def __init__(
        self,
        program: Program,
        statistics: Estimator,
        stored: Mapping[str, StoredInput],
        profile: Profile,
        resources: Resources,
    ) -> None:
        self.program = program
        self.statistics = statistics
        self.stored = stored
        self.profile = profile
        self.resources = resources
        self._repartitions: dict[tuple[str, Layout | None, Layout], float] = {}

    def vertex_cost(self, vertex: Vertex, promoted: frozenset[str]) -> VertexCost:
        """Cost of the join and the aggregation of a vertex (section 7.2)."""
        kernel = choose_kernel(vertex, promoted)
        rows = self.statistics.join_rows(vertex, promoted)
        groups = self.statistics.output_rows(vertex, promoted)
        demoted = [label for label in vertex.all_labels if label.name not in promoted]
        flops = 2.0 * math.prod(label.bound for label in demoted)
        sizes = [self._tuple_bytes(operand, promoted) for operand in vertex.inputs]
        once = [not any(x in promoted for x in operand.names) for operand in vertex.inputs]
        sizes, once = [*sizes, 0.0][:2], [*once, True][:2]
        batched = kernel.batched and (any(once[: len(vertex.inputs)]) or kernel.inner is not None)
        output = output_layout(vertex, promoted)
        type_ = vertex.tensor.type
        aggregated = any(label.name in promoted for label in vertex.reduced)
        fused = output.scalar or (aggregated and kernel.fusible)
        made = 0.0 if fused else type_.tuple_bytes(output)
        join = cost(JoinWork(rows, *sizes, flops, *once, batched, made), self.profile)
        if not aggregated:
            return VertexCost(join, 0.0)
        size = type_.tuple_bytes(output) + _key_bytes(output)
        aggregate = AggregateWork(rows, groups, size, type_.dense_size(output))
        return VertexCost(join, cost(aggregate, self.profile))

    def repartition_cost(self, name: str, source: Layout | None, target: Layout) -> float:
        """Cost of bringing a tensor from one layout to another (section 7.2)."""
        key = (name, source, target)
        if key not in self._repartitions:
            self._repartitions[key] = self._repartition_cost(name, source, target)
        return self._repartitions[key]

    def _repartition_cost(self, name: str, source: Layout | None, target: Layout) -> float:
        type_ = self.program.types[name]
        if source is None:
            rows = self.statistics.rows(name, target).estimate
            return cost(LoadWork(rows, type_.tuple_bytes(target)), self.profile)
        free = self.profile.inputs_free and name in self.stored
        if free or source.levels == target.levels:
            return 0.0
        finer = source.union(target)
        before, between, after = (
            self.statistics.rows(name, layout).estimate for layout in (source, finer, target)
        )
        sizes = type_.tuple_bytes(finer), type_.tuple_bytes(target)
        work = RepartitionWork(before, between, after, *sizes)
        return cost(work, self.profile)

    def fits(self, vertex: Vertex, promoted: frozenset[str]) -> bool:
        """Whether a decomposition of a vertex stays below the limits (section 8.2).

        One tensor in a tuple stays below 2^31 elements and 4 GiB. Tensors that are made for every
        row count a vector of rows for every thread; so do groups whose state is too long to be
        inline, which DuckDB cannot spill.
        """
        types = self.program.types
        layouts = [
            (types[operand.tensor], operand_layout(operand, promoted)) for operand in vertex.inputs
        ]
        output = output_layout(vertex, promoted)
        layouts.append((vertex.tensor.type, output))
        for type_, layout in layouts:
            if type_.dense_size(layout) > MAX_ELEMENTS or type_.tuple_bytes(layout) > MAX_BYTES:
                return False
        payload = 0 if output.scalar else vertex.tensor.type.tuple_bytes(output)
        rows = self.statistics.output_rows(vertex, promoted)
        at_once = min(rows, VECTOR_ROWS * self.resources.threads) if rows else 1.0
        operands = sum(0 if layout.scalar else t.tuple_bytes(layout) for t, layout in layouts[:-1])
        whole = sum(t.tuple_bytes(layout) for t, layout in layouts)
        if whole > self.profile.kernel_bytes:
            return False
        return payload * at_once + operands <= self.resources.memory / 2

    def _tuple_bytes(self, operand: Operand, promoted: frozenset[str]) -> float:
        layout = operand_layout(operand, promoted)
        type_ = self.program.types[operand.tensor]
        return type_.tuple_bytes(layout) + _key_bytes(layout)


def _key_bytes(layout: Layout) -> int:
    return 4 * len(layout.promoted)


def sparse_einsum(
    costed: CostedProgram, pinned: Mapping[str, frozenset[str]] | None = None
) -> DecomposedProgram:
    """Pick the cheapest decomposition of every vertex.

    Args:
        costed: the program with its statistics and profile.
        pinned: decompositions that are given, by vertex name; the others are chosen around them.

    Returns:
        The decomposed program with its costs, vertex by vertex.

    Raises:
        MemoryLimitError: no decomposition of some vertex stays below the limits.
        LabelError: a pinned decomposition names a label that its vertex does not have.
    """
    program, given = costed.program, dict(pinned or {})
    _check_pinned(program, given)
    fixed: dict[str, Layout | None] = {name: costed.stored[name].layout for name in costed.stored}
    promoted: dict[str, frozenset[str]] = {}
    for tree in trees(program):
        table = _fill_table(costed, tree, fixed, given)
        root = tree[-1]
        layout = min(table[root.name], key=lambda key: table[root.name][key].total)
        fixed[root.name] = layout
        _read_back(table, tree, layout, promoted)
    return price(costed, promoted)


def price(costed: CostedProgram, promoted: Mapping[str, frozenset[str]]) -> DecomposedProgram:
    """A program under given decompositions, with its costs."""
    program = costed.program
    bare = DecomposedProgram(program, dict(promoted), costed.stored, {})
    costs: dict[str, VertexCost] = {}
    for vertex in program.vertices:
        own = costed.vertex_cost(vertex, promoted[vertex.name])
        moves = sum(
            costed.repartition_cost(
                operand.tensor,
                bare.made_layout(operand.tensor),
                bare.needed_layout(vertex, operand),
            )
            for operand in vertex.inputs
        )
        costs[vertex.name] = VertexCost(own.join, own.aggregate, moves)
    return DecomposedProgram(program, dict(promoted), costed.stored, costs)


def trees(program: Program) -> list[tuple[Vertex, ...]]:
    """Cut the DAG into maximal trees, each in topological order with its root last.

    The root of a tree is a vertex that is used more than once, or not at all, or that is an output.
    """
    by_name = {vertex.name: vertex for vertex in program.vertices}
    roots = [v for v in program.vertices if len(program.uses[v.name]) != 1]

    def below(vertex: Vertex) -> Iterator[Vertex]:
        for operand in vertex.inputs:
            child = by_name.get(operand.tensor)
            if child is not None and len(program.uses[child.name]) == 1:
                yield from below(child)
        yield vertex

    return [tuple(below(root)) for root in roots]


def _fill_table(
    costed: CostedProgram,
    tree: tuple[Vertex, ...],
    fixed: Mapping[str, Layout | None],
    pinned: Mapping[str, frozenset[str]],
) -> dict[str, dict[Layout, _Cell]]:
    table: dict[str, dict[Layout, _Cell]] = {}
    for vertex in tree:
        reach = [
            _cheapest_source(costed, operand.tensor, table, fixed) for operand in vertex.inputs
        ]
        cells = table[vertex.name] = {}
        choices = [pinned[vertex.name]] if vertex.name in pinned else decompositions(vertex)
        for promoted in choices:
            if vertex.name not in pinned and not costed.fits(vertex, promoted):
                continue
            total = costed.vertex_cost(vertex, promoted).total
            sources: list[Layout | None] = []
            for operand, cheapest in zip(vertex.inputs, reach, strict=True):
                source, price_ = cheapest(operand_layout(operand, promoted))
                sources.append(source)
                total += price_
            layout = output_layout(vertex, promoted)
            if layout not in cells or total < cells[layout].total:
                cells[layout] = _Cell(total, promoted, tuple(sources))
        if not cells:
            raise _too_large(costed, vertex)
    return table


def _cheapest_source(
    costed: CostedProgram,
    name: str,
    table: Mapping[str, Mapping[Layout, _Cell]],
    fixed: Mapping[str, Layout | None],
) -> Callable[[Layout], tuple[Layout | None, float]]:
    """For a needed layout, from which layout of the tensor to come, and the cost of both."""
    known: dict[Layout, tuple[Layout | None, float]] = {}

    def cheapest(needed: Layout) -> tuple[Layout | None, float]:
        if needed not in known:
            if name in table:
                known[needed] = min(
                    (
                        (source, cell.total + costed.repartition_cost(name, source, needed))
                        for source, cell in table[name].items()
                    ),
                    key=lambda pair: pair[1],
                )
            else:
                source = fixed[name]
                known[needed] = (source, costed.repartition_cost(name, source, needed))
        return known[needed]

    return cheapest


def _read_back(
    table: Mapping[str, Mapping[Layout, _Cell]],
    tree: tuple[Vertex, ...],
    layout: Layout,
    promoted: dict[str, frozenset[str]],
) -> None:
    """Follow the choices from the root of a tree down to its leaves."""
    wanted: dict[str, Layout | None] = {tree[-1].name: layout}
    for vertex in reversed(tree):
        made = wanted[vertex.name]
        assert made is not None
        cell = table[vertex.name][made]
        promoted[vertex.name] = cell.promoted
        for operand, source in zip(vertex.inputs, cell.sources, strict=True):
            if operand.tensor in table:
                wanted[operand.tensor] = source


def _check_pinned(program: Program, pinned: Mapping[str, frozenset[str]]) -> None:
    by_name = {vertex.name: vertex for vertex in program.vertices}
    for name, promoted in pinned.items():
        labels = {x.name for x in by_name[name].all_labels} if name in by_name else set()
        if unknown := sorted(promoted - labels):
            raise LabelError(
                f"the decomposition of {name} promotes an unknown label",
                where=f"decomposition, {name}",
                expected="labels of the vertex: " + (", ".join(sorted(labels)) or "none"),
                found=unknown[0],
            )


def _too_large(costed: CostedProgram, vertex: Vertex) -> MemoryLimitError:
    shape = " x ".join(str(label.bound) for label in vertex.all_labels)
    return MemoryLimitError(
        f"no decomposition of {vertex.name} stays below the memory limit",
        where=str(vertex.span) if vertex.span else f"vertex {vertex.name}",
        expected=f"at most {costed.resources.memory:.3g} bytes",
        found=f"{vertex} over {shape}",
        hint="raise memory_limit, or pin a decomposition that promotes more labels",
    )
