"""A program with prices: what a decomposition of each vertex costs, and what it is.

`CostedProgram` turns statistics into `ucle.cost.Work` and asks the cost model; `price` applies it
to a whole decomposition. The search (`ucle.optimiser.sparse_einsum`) and whatever checks it ask the
same questions here, so that they cannot disagree about what a decomposition costs.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import product

from ucle.cost import (
    AggregateWork,
    CopyWork,
    JoinWork,
    KernelWork,
    LoadWork,
    Profile,
    RepartitionWork,
    cost,
)
from ucle.foundation.engine_limits import DUCKDB
from ucle.ir.fills import join_rule, meets_all
from ucle.ir.layouts import Layout
from ucle.ir.vertices import Operand, Program, Vertex
from ucle.plan.decomposition import (
    Blocks,
    DecomposedProgram,
    Promoted,
    StoredInput,
    VertexCost,
    operand_layout,
    output_layout,
)
from ucle.plan.kernel_choice import choose_kernel, needs_scalars
from ucle.plan.resources import Resources
from ucle.stats.estimate import ProgramStatistics
from ucle.udf_kernels import kernel_limits

COPIES_OF_WHOLE = 3
"""Of an operand that is one tuple: the BLOB that is read, that in a list of one by which it is
handed on, and the state or the column that it was made in."""


COPIES_OF_RESULT = 2
"""Of a result that is one tuple: what the kernel wrote, and the table that it goes into."""


SPILLING_STATES, SPILLING_TABLE = 0.5, 0.4
"""Shares of the memory with which an aggregation and the table of a join get by while DuckDB spills
the rest of them; with less they end when it comes to the last partitions."""


def decompositions(vertex: Vertex) -> Iterator[Promoted]:
    """Every decomposition of a vertex: every subset of its labels, promoted.

    A vertex that works on numbers only has one: all labels.
    """
    names = [label.name for label in vertex.all_labels]
    if needs_scalars(vertex):
        yield frozenset(names)
        return
    for choice in product((False, True), repeat=len(names)):
        yield frozenset(name for name, chosen in zip(names, choice, strict=True) if chosen)


class Prices:
    """What has been priced, for programs over the same inputs, under one profile and resources.

    Programs that differ in the order of a few operations have most vertices in common: those that
    do the same to the same. Each has a number here, whatever it is called.
    """

    def __init__(self) -> None:
        self.repartitions: dict[tuple[int, Layout | None, Layout], float] = {}
        self.vertices: dict[tuple[int, Promoted], VertexCost] = {}
        self.fits: dict[tuple[int, Promoted], bool] = {}
        self.small: dict[int, bool] = {}
        self._numbers: dict[tuple[object, ...], int] = {}

    def numbers(self, program: Program) -> dict[str, int]:
        """The number of every tensor of a program."""
        made = {tensor.name: self._number(tensor.name) for tensor in program.inputs}
        for vertex in program.vertices:
            operands = tuple((made[operand.tensor], operand.labels) for operand in vertex.inputs)
            work = vertex.tensor.type, operands, vertex.combine, vertex.maps, vertex.reduce
            made[vertex.name] = self._number(*work)
        return made

    def _number(self, *work: object) -> int:
        return self._numbers.setdefault(work, len(self._numbers))


class CostedProgram:
    """A program with statistics and a profile: it prices decompositions.

    The dynamic program and anything that checks it (a brute-force search) ask the same questions
    here, so that they cannot disagree about what a decomposition costs. What another program over
    the same inputs has found of `prices` is not worked out again.
    """

    def __init__(
        self,
        program: Program,
        statistics: ProgramStatistics,
        stored: Mapping[str, StoredInput],
        profile: Profile,
        resources: Resources,
        prices: Prices | None = None,
    ) -> None:
        self.program = program
        self.statistics = statistics
        self.stored = stored
        self.profile = profile
        self.resources = resources
        self._prices = prices or Prices()
        self._numbers = self._prices.numbers(program)

    @property
    def priced(self) -> int:
        """How many decompositions of vertices have been priced so far."""
        return len(self._prices.vertices)

    def total(self, promoted: Mapping[str, Promoted]) -> float:
        """Cost of the whole program under a decomposition of every vertex."""
        return price(self, promoted).total_cost

    def vertex_cost(self, vertex: Vertex, promoted: Promoted) -> VertexCost:
        """Cost of the join, the kernel and the aggregation of a vertex (section 7.2)."""
        key, known = (self._numbers[vertex.name], promoted), self._prices.vertices
        if key not in known:
            known[key] = self._vertex_cost(vertex, promoted)
        return known[key]

    def _vertex_cost(self, vertex: Vertex, promoted: Promoted) -> VertexCost:
        kernel = choose_kernel(vertex, promoted)
        rows = self.statistics.join_rows(vertex, promoted)
        groups = self.statistics.output_rows(vertex, promoted)
        demoted = [label for label in vertex.all_labels if label.name not in promoted]
        flops = 2.0 * math.prod(label.bound for label in demoted)
        sizes = [self._tuple_bytes(operand, promoted) for operand in vertex.inputs]
        once = [not any(x in promoted for x in operand.names) for operand in vertex.inputs]
        output = output_layout(vertex, promoted)
        type_ = vertex.tensor.type
        aggregated = vertex.aggregates(promoted)
        fused = output.scalar or (aggregated and kernel.fusible)
        made = 0.0 if fused else type_.tuple_bytes(output)
        work = JoinWork(
            rows,
            left_bytes=sizes[0],
            right_bytes=sizes[1] if len(sizes) > 1 else 0.0,
            left_once=once[0],
            right_once=once[-1],
            read=sum(self._tuples(operand, promoted) for operand in vertex.inputs),
            keyed=bool(promoted),
        )
        # Rows of one matrix make a product by themselves, vectors when they share the matrix.
        batched = kernel.batched and (kernel.inner is not None or any(once))
        dot = kernel.name == "inner_prod"
        join = cost(work, self.profile)
        called = cost(KernelWork(rows, flops, batched, dot, made), self.profile)
        if self.resources.copies:
            copied = rows * sum(self._array_bytes(vertex, promoted))
            join += cost(CopyWork(copied), self.profile)
        if not aggregated:
            return VertexCost(join, called)
        size = type_.tuple_bytes(output) + _key_bytes(output)
        states = self._states(type_.tuple_bytes(output), rows, groups)
        aggregate = AggregateWork(rows, groups, size, type_.dense_size(output), states)
        return VertexCost(join, called, cost(aggregate, self.profile))

    def source_layout(self, name: str, needed: Layout, made: Mapping[str, Layout]) -> Layout | None:
        """From where a tensor comes in a layout: of those that it is stored in the cheapest.

        Args:
            name: the tensor.
            needed: the layout in which it is read.
            made: the layouts in which vertices make their tensors.
        """
        if name not in self.stored:
            return made[name]
        layouts = self.stored[name].layouts
        if len(layouts) < 2:
            return layouts[0] if layouts else None

        def rank(layout: Layout) -> tuple[float, bool]:
            # What will be stored costs nothing in any layout; what is stored is there already.
            return self.repartition_cost(name, layout, needed), layout.levels != needed.levels

        return min(layouts, key=rank)

    def repartition_cost(self, name: str, source: Layout | None, target: Layout) -> float:
        """Cost of bringing a tensor from one layout to another (section 7.2)."""
        key, known = (self._numbers[name], source, target), self._prices.repartitions
        if key not in known:
            known[key] = self._repartition_cost(name, source, target)
        return known[key]

    def least_repartition_cost(self, name: str, source: Layout, target: Layout) -> float:
        """What a repartition costs at least, quickly: of other tuples there has to be made a step.

        How many tuples there are in between, which is most of the work of a price, is not asked.
        """
        if self._is_free(name, source, target):
            return 0.0
        before, after = (self.statistics.rows(name, x).estimate for x in (source, target))
        return self.profile.step if before != after else 0.0

    def _is_free(self, name: str, source: Layout, target: Layout) -> bool:
        """Whether a repartition has nothing to do, or is none under the profile."""
        free = self.profile.inputs_free and name in self.stored
        return free or source.levels == target.levels

    def exchange(self, name: str, source: Layout | None, target: Layout) -> Blocks | None:
        """The blocks in which a repartition exchanges keys; None where another way is cheaper."""
        if source is None or source.levels == target.levels:
            return None
        return self._cheapest_way(name, source, target)[1]

    def _repartition_cost(self, name: str, source: Layout | None, target: Layout) -> float:
        type_ = self.program.types[name]
        if source is None:
            rows = self.statistics.rows(name, target).estimate
            moved = target.promoted + target.dense != tuple(range(type_.rank))
            return cost(LoadWork(rows, type_.tuple_bytes(target), moved), self.profile)
        if self._is_free(name, source, target):
            return 0.0
        if self._stacked_bytes(name, source, target) > self.resources.memory / 2:
            return math.inf
        way = self._cheapest_way(name, source, target)[0]
        kept = name in self.stored and self.stored[name].kept
        return 0.0 if kept and way < math.inf else way

    def _cheapest_way(
        self, name: str, source: Layout, target: Layout
    ) -> tuple[float, Blocks | None]:
        """The cost of a repartition, and the blocks if it exchanges keys."""
        direct = self._direct_cost(name, source, target)
        if (blocks := self._blocks(name, source, target)) is None:
            return direct, None
        exchange = self._exchange_cost(name, source, target, blocks)
        return (exchange, blocks) if exchange < direct else (direct, None)

    def _direct_cost(self, name: str, source: Layout, target: Layout) -> float:
        """Decompose to what either layout promotes, then STACK."""
        type_, finer = self.program.types[name], source.union(target)
        before, between, after = (
            self.statistics.rows(name, layout).estimate for layout in (source, finer, target)
        )
        part_bytes = type_.tuple_bytes(finer)
        states = self._states(type_.tuple_bytes(target), between, after)
        added = set(finer.promoted) - set(source.promoted)
        positions = math.prod(type_.shape[axis] for axis in added)
        work = RepartitionWork(before, between, after, part_bytes, states, before * positions)
        total = cost(work, self.profile)
        if self.profile.once and added:
            # A tuple is paired with every position, and copied for each vector of them.
            vectors = max(positions / DUCKDB.vector_rows, 1.0)
            total += cost(CopyWork(before * vectors * type_.tuple_bytes(source)), self.profile)
        if self.resources.copies:
            whole = (
                0 if source.scalar or finer.levels == source.levels else type_.tuple_bytes(source)
            )
            part = 0 if finer.scalar or finer.levels == target.levels else part_bytes
            most = max(
                whole * min(between, DUCKDB.vector_rows), part * _gathered_rows(between, after)
            )
            if most > DUCKDB.column_bytes:
                return math.inf
            total += cost(CopyWork(between * (whole + part)), self.profile)
        return total

    def _blocks(self, name: str, source: Layout, target: Layout) -> Blocks | None:
        """The largest blocks whose state is inline, where keys can be exchanged.

        They are of one size where the cuts do not stay in one piece (`Blocks`).
        """
        type_ = self.program.types[name]
        removed = set(source.promoted) - set(target.promoted)
        added = set(target.promoted) - set(source.promoted)
        if not removed or not added or not self.profile.once or self.resources.copies:
            return None
        if not (each := type_.tuple_bytes(source)):  # an axis without positions
            return None
        axis = max(sorted(removed), key=lambda a: type_.shape[a])
        size = min(type_.shape[axis], self.resources.inline_state // each)
        rest = tuple(a for a in source.dense if a not in added)
        if target.dense[-1 - len(rest) :] != (axis, *rest):
            size = max((n for n in range(1, size + 1) if type_.shape[axis] % n == 0), default=0)
        return Blocks(axis, size) if size > 1 else None

    def _exchange_cost(self, name: str, source: Layout, target: Layout, blocks: Blocks) -> float:
        """Stack into blocks, cut those at every new key, and put the cuts into their places."""
        type_, statistics = self.program.types[name], self.statistics
        coarse = Layout.of(a in source.promoted and a != blocks.axis for a in range(type_.rank))
        before, after = (statistics.rows(name, x).estimate for x in (source, target))
        count = statistics.rows(name, coarse).estimate * -(-type_.shape[blocks.axis] // blocks.size)
        count = min(before, count)
        added = set(target.promoted) - set(source.promoted)
        cuts = math.prod(type_.shape[axis] for axis in added)
        whole, end = type_.tuple_bytes(source), type_.tuple_bytes(target)
        block, parts = blocks.size * whole, count * cuts
        stacked, placed = self._states(block, before, count), self._states(end, parts, after)
        stack = RepartitionWork(before, before, count, whole, stacked)
        cut = RepartitionWork(count, parts, after, block / cuts, placed, parts)
        return cost(stack, self.profile) + cost(cut, self.profile)

    def fits(self, vertex: Vertex, promoted: Promoted) -> bool:
        """Whether a decomposition of a vertex stays below the limits (section 8.2).

        One tensor in a tuple stays below 2^31 elements and 4 GiB. Tensors that are made for every
        row count a vector of rows for every thread, and states that DuckDB cannot spill count all.
        """
        key, known = (self._numbers[vertex.name], promoted), self._prices.fits
        if key not in known:
            small, number = self._prices.small, self._numbers[vertex.name]
            if number not in small:
                small[number] = self._is_small(vertex)
            known[key] = small[number] or self._fits_limits(vertex, promoted)
        return known[key]

    def _is_small(self, vertex: Vertex) -> bool:
        """Whether the limits are out of reach for all decompositions of a vertex.

        Whatever is inside the arrays, all tuples together hold no more than the whole tensor, and
        the states of a thread no more than the result.
        """
        if self.resources.copies:
            return False
        tensors = [self.program.types[x.tensor] for x in vertex.inputs] + [vertex.tensor.type]
        whole = sum(math.prod(map(float, x.shape)) * x.dtype.bytes for x in tensors)
        most = min(
            self.profile.kernel_bytes,
            self.resources.memory / 2,
            DUCKDB.array_elements,
            kernel_limits().blob_bytes,
        )
        rank = max(x.rank for x in tensors)
        return rank <= kernel_limits().labels and 2 * whole * self.resources.threads <= most

    def _fits_limits(self, vertex: Vertex, promoted: Promoted) -> bool:
        types = self.program.types
        layouts = [
            (types[operand.tensor], operand_layout(operand, promoted)) for operand in vertex.inputs
        ]
        output = output_layout(vertex, promoted)
        layouts.append((vertex.tensor.type, output))
        for type_, layout in layouts:
            if (
                type_.dense_size(layout) > DUCKDB.array_elements
                or type_.tuple_bytes(layout) > kernel_limits().blob_bytes
            ):
                return False
        if not choose_kernel(vertex, promoted).exists:
            return False
        whole = sum(t.tuple_bytes(layout) for t, layout in layouts)
        if whole > self.profile.kernel_bytes:
            return False
        if self.densified_bytes(vertex, promoted) > self.resources.memory:
            return False
        made = self._made_bytes(vertex, promoted)
        if self.resources.copies:
            copied = self._copied_rows(vertex, promoted)
            largest = max(0 if layout.scalar else t.tuple_bytes(layout) for t, layout in layouts)
            if largest * copied > DUCKDB.column_bytes:
                return False
            operands = sum(self._array_bytes(vertex, promoted)) * copied * self.resources.threads
            return made + operands <= self.resources.memory / 2
        return made + self._read_bytes(vertex, promoted) <= self.resources.memory

    def held_bytes(self, decomposed: DecomposedProgram, vertex: Vertex) -> float:
        """Bytes that a vertex holds at a time and DuckDB cannot spill, with its repartitions."""
        promoted = decomposed.promoted[vertex.name]
        made = self._made_bytes(vertex, promoted)
        if self.resources.copies:
            return made  # operands are copied batch by batch, and lists are stacked by DuckDB
        # A repartition is a part of the statement that reads what it makes.
        moved = sum(
            self._repartition_bytes(
                operand.tensor, source, decomposed.needed_layout(vertex, operand)
            )
            for operand in vertex.inputs
            if (source := _source_of(decomposed, vertex, operand)) is not None
        )
        return made + self._read_bytes(vertex, promoted) + moved

    def _repartition_bytes(self, name: str, source: Layout, target: Layout) -> float:
        """The states of a repartition, those that DuckDB spills among them."""
        type_, finer = self.program.types[name], source.union(target)
        if finer.levels == target.levels or not target.promoted:
            return 0.0  # a whole tensor's state is one of its copies
        size = type_.tuple_bytes(target)
        rows, groups = (self.statistics.rows(name, x).estimate for x in (finer, target))
        threads = min(self.resources.threads, math.ceil(rows / DUCKDB.rows_a_thread))
        return self._spilled(min(rows, groups * threads) * size, size)

    def _spilled(self, states: float, size: float) -> float:
        """What states of a size hold, as far as DuckDB cannot spill them."""
        if self.resources.copies:
            return 0.0  # DuckDB's own lists
        if size > self.resources.inline_state:
            return states
        return min(states, SPILLING_STATES * self.resources.memory)

    def _made_bytes(self, vertex: Vertex, promoted: Promoted) -> float:
        """Tensors that a vertex makes at a time: vectors of rows, or of states until the end."""
        output = output_layout(vertex, promoted)
        payload = 0 if output.scalar else vertex.tensor.type.tuple_bytes(output)
        groups = self.statistics.output_rows(vertex, promoted) or 1.0
        vectors = min(groups, DUCKDB.vector_rows * self.resources.threads) * payload
        if not output.promoted:
            vectors *= COPIES_OF_RESULT
        if not vertex.aggregates(promoted):
            return vectors
        rows = self.statistics.join_rows(vertex, promoted)
        states = min(rows, groups * self.resources.threads) * payload
        return max(vectors, self._spilled(states, payload))

    def _read_bytes(self, vertex: Vertex, promoted: Promoted) -> float:
        """Operands that a vertex holds at a time: whole tensors, vectors, a join's table."""
        total, tables = 0.0, []
        for operand, size in zip(vertex.inputs, self._array_bytes(vertex, promoted), strict=True):
            if not operand_layout(operand, promoted).promoted:
                total += COPIES_OF_WHOLE * size
                continue
            rows = self._tuples(operand, promoted)
            total += min(rows, DUCKDB.vector_rows * self.resources.threads) * size
            tables.append((rows, rows * size))
        if len(tables) == 2:  # DuckDB makes a table of the side of fewer rows
            total += min(min(tables)[1], SPILLING_TABLE * self.resources.memory)
        return total

    def _stacked_bytes(self, name: str, source: Layout, target: Layout) -> float:
        """What the STACK of a repartition holds."""
        type_, finer = self.program.types[name], source.union(target)
        if finer.levels == target.levels:
            return 0.0
        rows = [self.statistics.rows(name, layout).estimate for layout in (finer, target)]
        return self._state_bytes(type_.tuple_bytes(target), *rows)

    def _states(self, size: float, rows: float, groups: float) -> float:
        """Bytes of the states of an aggregation: those that are inline come in powers of two.

        Of longer ones there are few, and each thread that has rows makes all of them.
        """
        if size > self.resources.inline_state:
            threads = min(self.resources.threads, math.ceil(rows / DUCKDB.rows_a_thread))
            return min(rows, groups * threads) * size
        return groups * float(1 << math.ceil(math.log2(max(size, 1.0))))

    def _state_bytes(self, size: float, rows: float, groups: float) -> float:
        """States that are too long to be inline: each thread may have one for every group."""
        if self.resources.copies or size <= self.resources.inline_state:
            return 0.0
        return min(rows, groups * self.resources.threads) * size

    def densified_bytes(self, vertex: Vertex, promoted: Promoted) -> float:
        """Bytes of the operands that have to be made dense for a vertex (`ucle.ir.fills`)."""
        types = [self.program.types[operand.tensor] for operand in vertex.inputs]
        if len(types) == 1:
            dense = [meets_all(vertex)]
        else:
            rule = join_rule(vertex, types[0], types[1], promoted)
            dense = [rule.densify_left, rule.densify_right]
        total = 0.0
        for operand, needed in zip(vertex.inputs, dense, strict=True):
            if needed:
                keys = {label for label in operand.labels if label.name in promoted}
                rows = math.prod(float(label.bound) for label in keys)
                total += rows * self._tuple_bytes(operand, promoted)
        return total

    def _copied_rows(self, vertex: Vertex, promoted: Promoted) -> float:
        """Rows whose operands one thread holds at a time where they are copied.

        That is a vector of rows, and where an aggregation gathers arrays, a vector of groups.
        """
        rows = self.statistics.join_rows(vertex, promoted)
        groups = self.statistics.output_rows(vertex, promoted)
        if output_layout(vertex, promoted).scalar:
            return min(rows, DUCKDB.vector_rows)
        return _gathered_rows(rows, groups)

    def _array_bytes(self, vertex: Vertex, promoted: Promoted) -> list[int]:
        """Bytes of the array that each operand carries; 0 for a number."""
        types = (self.program.types[operand.tensor] for operand in vertex.inputs)
        layouts = (operand_layout(operand, promoted) for operand in vertex.inputs)
        return [
            0 if layout.scalar else type_.tuple_bytes(layout)
            for type_, layout in zip(types, layouts, strict=True)
        ]

    def tuple_bytes(self, name: str, layout: Layout) -> float:
        """Bytes of a tuple of a tensor in a layout, with its keys."""
        return self.program.types[name].tuple_bytes(layout) + _key_bytes(layout)

    def _tuples(self, operand: Operand, promoted: Promoted) -> float:
        return self.statistics.rows(operand.tensor, operand_layout(operand, promoted)).estimate

    def _tuple_bytes(self, operand: Operand, promoted: Promoted) -> float:
        return self.tuple_bytes(operand.tensor, operand_layout(operand, promoted))


def _source_of(decomposed: DecomposedProgram, vertex: Vertex, operand: Operand) -> Layout | None:
    return decomposed.source_layout(operand.tensor, decomposed.needed_layout(vertex, operand))


def _key_bytes(layout: Layout) -> int:
    return 4 * len(layout.promoted)


def _gathered_rows(rows: float, groups: float) -> float:
    """Rows of a vector of groups."""
    return min(groups, DUCKDB.vector_rows) * rows / groups if groups else 0.0


def price(costed: CostedProgram, promoted: Mapping[str, Promoted]) -> DecomposedProgram:
    """A program under given decompositions, with its costs."""
    program = costed.program
    costs: dict[str, VertexCost] = {}
    made: dict[str, Layout] = {}
    sources: dict[tuple[str, Layout], Layout | None] = {}
    exchanges: dict[tuple[str, Layout | None, Layout], Blocks] = {}
    for vertex in program.vertices:
        own, moves = costed.vertex_cost(vertex, promoted[vertex.name]), 0.0
        made[vertex.name] = output_layout(vertex, promoted[vertex.name])
        for operand in vertex.inputs:
            name, needed = operand.tensor, operand_layout(operand, promoted[vertex.name])
            source = costed.source_layout(name, needed, made)
            if name in costed.stored:
                sources[name, needed] = source
            moves += costed.repartition_cost(name, source, needed)
            if (blocks := costed.exchange(name, source, needed)) is not None:
                exchanges[name, source, needed] = blocks
        costs[vertex.name] = replace(own, repartition=moves)
    return DecomposedProgram(program, dict(promoted), costed.stored, costs, sources, exchanges)
