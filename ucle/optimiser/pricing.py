"""A program with prices: the decompositions of each vertex and their costs.

`CostedProgram` turns sizes into `ucle.plan.prices.Work` and applies the cost model; `price` does so
for a whole decomposition. The search (`ucle.optimiser.sparse_einsum`) and its checks both use this
module, so that they cannot disagree about the cost of a decomposition.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property

from ucle.foundation.dataclasses import dataclass
from ucle.ir.forests import FIELDS
from ucle.ir.index_maps import IndexMap
from ucle.ir.layouts import RESULT, TILE, Decomposition, Layout, Level
from ucle.ir.linear_systems import LinearSystem
from ucle.ir.masked_products import masked_products, reader_of
from ucle.ir.vertices import Operand, Program, Vertex
from ucle.optimiser import limits, repartition_cost
from ucle.optimiser.alternatives import Alternatives
from ucle.optimiser.known_prices import Prices, Wiring
from ucle.optimiser.sizes import SizedProgram, key_bytes
from ucle.optimiser.tiled_and_compressed import all_blocked, list_levelled, stored_blocks
from ucle.options import Optimisations
from ucle.plan.decomposition import Blocks, DecomposedProgram, VertexCost
from ucle.plan.early_ends import may_end_early
from ucle.plan.kernel_choice import (
    RUN_KERNELS,
    choose_kernel,
    is_transposed,
    keyed_labels,
    needs_scalars,
)
from ucle.plan.prices import (
    CACHED,
    POINTER,
    SHARED,
    AggregateWork,
    CopyWork,
    JoinWork,
    KernelWork,
    MaskedWork,
    SparseWork,
    cost,
)
from ucle.plan.resources import DUCKDB_LIMITS

DENSE = 0.5
"""The share of stored positions from which a tensor may be cut into dense blocks."""
SMALLEST = 16
"""The tile size below which a block costs more than the computation on it."""
REINDEXED_FLOPS = 100.0
"""The work to find the place where an entry is read, in operations of a streaming kernel."""
COPIED_FLOPS, SPAN_FLOPS = 10.0, 500.0
"""The same where entries are copied with their neighbours, and for each line of them."""
NODES_OF_VISIT = 64.0
"""The nodes of a forest for each that a row comes by: a tree of 1000 nodes has some 16 levels."""
VISIT_FLOPS = 10.0
"""The work of a step down a tree, in operations of a streaming kernel: it waits for memory."""


def decompositions(
    vertex: Vertex, program: Program | None = None, tile: int = TILE
) -> Iterator[Decomposition]:
    """Yield every decomposition that a vertex can have.

    Some labels may have to be promoted; if the vertex works on numbers only, all have to. If
    `program` is given, decompositions with compressed labels and tiles of size `tile` are included.
    """
    if needs_scalars(vertex):
        yield vertex.all_promoted
        return
    for each in vertex.decompositions():
        if vertex.is_product or keyed_labels(vertex, each.promoted) == each.promoted:
            yield each
    if program is not None:
        yield from list_levelled(vertex, program, tile)


@dataclass(frozen=True, eq=False)
class CostedProgram(SizedProgram):
    """A program that prices decompositions of its vertices.

    The dynamic program and its checks (a brute-force search) both use this class, so that they
    cannot disagree about the cost of a decomposition. `prices` shares the work with other programs
    over the same inputs. `optimisations` say how far the search goes.
    """

    prices: Prices = field(default_factory=Prices)
    optimisations: Optimisations = field(default_factory=Optimisations)
    runs: int = 1
    """The number of runs with new varying inputs for each computation of the rest."""
    varying: frozenset[str] = frozenset()
    multiway: bool = False
    """True if multiway joins may replace binary ones (`ucle.optimiser.multiway_joins`)."""
    lookups: bool = False
    """True if look-up joins may replace binary ones (`ucle.optimiser.lookup_joins`)."""

    @cached_property
    def _fixed(self) -> frozenset[str]:
        """The inputs and vertices that are computed once for all runs."""
        fixed = {tensor.name for tensor in self.program.inputs} - self.varying
        for vertex in self.program.vertices:
            if all(operand.tensor in fixed for operand in vertex.inputs):
                fixed.add(vertex.name)
        return frozenset(fixed) if self.runs > 1 else frozenset()

    @cached_property
    def _numbers(self) -> dict[str, int]:
        """The structural number of every tensor."""
        return self.prices.number_tensors(self.program)

    @cached_property
    def _signatures(self) -> tuple[dict[str, int], dict[str, int]]:
        """The signatures of tensors and of vertices, as far as they were needed."""
        return {}, {}

    @cached_property
    def wiring(self) -> Wiring:
        """The program without the names of its vertices: equal ones have the same optimum."""
        places = {name: place for place, name in enumerate(self.program.types)}
        inputs = tuple(self._numbers[tensor.name] for tensor in self.program.inputs)
        outputs = tuple(places[name] for name in self.program.outputs)
        vertices = (
            (self._numbers[vertex.name], *(places[operand.tensor] for operand in vertex.inputs))
            for vertex in self.program.vertices
        )
        return inputs, outputs, *vertices

    def _sign_tensor(self, name: str) -> int:
        signatures, _ = self._signatures
        if (signature := signatures.get(name)) is None:
            fixed = name in self._fixed
            signature = self.prices.sign_tensor(self, name, self._numbers[name], fixed=fixed)
            signatures[name] = signature
        return signature

    def _sign_vertex(self, vertex: Vertex) -> int:
        _, signatures = self._signatures
        if (signature := signatures.get(vertex.name)) is None:
            read = [self._sign_tensor(operand.tensor) for operand in vertex.inputs]
            made, number = self._sign_tensor(vertex.name), self._numbers[vertex.name]
            signature = self.prices.sign_vertex(self, vertex, number, made, read)
            signatures[vertex.name] = signature
        return signature

    def decompositions(self, vertex: Vertex) -> Iterator[Decomposition]:
        """Yield every decomposition considered; the paper's cost model has no other levels."""
        on = self._levels
        yield from decompositions(vertex, self.program if on else None, self.optimisations.tile)
        if on:
            yield from self._blocked.get(vertex.name, ())

    def fitting(self, vertex: Vertex) -> Iterator[Decomposition]:
        """Yield the decompositions that stay below the limits.

        If a vertex does not fit whole, decompositions in blocks are considered, too. With rows and
        columns it reads each number once for each row or column of the other side; with blocks,
        once for each block of them.
        """
        yield from (x for x in self.decompositions(vertex) if self.fits(vertex, x))
        if not self.fits(vertex, vertex.decomposition(())):
            yield from self._blocks(vertex)

    def _blocks(self, vertex: Vertex) -> Iterator[Decomposition]:
        """Yield the decompositions in blocks, of any labels, that fit, if all tensors are dense.

        Blocks are as large as possible: DuckDB holds a vector of rows of them at a time.
        """
        tensors = (*(operand.tensor for operand in vertex.inputs), vertex.name)
        if self._levels and all(map(self._is_dense, tensors)):
            tile = self.optimisations.tile
            while tile >= SMALLEST:
                every = all_blocked(vertex, self.program, tile)
                if found := [x for x in every if self.fits(vertex, x)]:
                    yield from found
                    return
                tile //= 4

    def _is_dense(self, name: str) -> bool:
        shape = self.program.types[name].shape
        entries = self.rows(name, Layout.of([True] * len(shape)))
        return entries >= DENSE * math.prod(map(float, shape))

    @property
    def _levels(self) -> bool:
        """True if labels may be tiled or compressed."""
        return self.optimisations.levels and self.profile.once and self.resources.kernels

    @cached_property
    def _blocked(self) -> dict[str, tuple[Decomposition, ...]]:
        return stored_blocks(self.program, {x: y.layouts for x, y in self.stored.items()})

    @property
    def priced(self) -> int:
        """The number of decompositions of vertices that the search has asked the prices of."""
        return len(self.prices.asked)

    def total(self, chosen: Mapping[str, Decomposition]) -> float:
        """Return the cost of the whole program under a decomposition of every vertex."""
        return price(self, chosen).total_cost

    def alternatives(self, vertex: Vertex, choices: tuple[Decomposition, ...]) -> Alternatives:
        """Return decompositions of a vertex with their costs and layouts."""
        key, known = (self._numbers[vertex.name], choices), self.prices.alternatives
        if (alternatives := known.get(key)) is None:
            costs = [self.vertex_cost(vertex, each).total for each in choices]
            alternatives = Alternatives.of(vertex, choices, costs)
            if all(each.deferred is None for each in choices):
                known[key] = alternatives
        return alternatives

    def vertex_cost(self, vertex: Vertex, decomposition: Decomposition) -> VertexCost:
        """Return the cost of a vertex's join, kernel and aggregation (section 7.2)."""
        if decomposition.deferred is not None:  # it depends on another vertex
            return self.per_run(vertex, self._deferred_cost(vertex, decomposition))
        key, asked = (self._numbers[vertex.name], decomposition), self.prices.asked
        if (price := asked.get(key)) is None:
            price = asked[key] = self._find_cost(vertex, decomposition)
        return price

    def _find_cost(self, vertex: Vertex, decomposition: Decomposition) -> VertexCost:
        if not decomposition.promoted:  # needs no statistics, which signatures do
            return self.per_run(vertex, self._vertex_cost(vertex, decomposition))
        key, prices = (self._sign_vertex(vertex), decomposition), self.prices.vertices
        if (price := prices.get(key)) is None:
            price = self.per_run(vertex, self._vertex_cost(vertex, decomposition))
            prices[key] = price
        return price

    def per_run(self, vertex: Vertex, each: VertexCost) -> VertexCost:
        """Return the cost of a vertex per run."""
        return each.spread_over(self.runs) if vertex.name in self._fixed else each

    def _vertex_cost(self, vertex: Vertex, decomposition: Decomposition) -> VertexCost:
        kernel = choose_kernel(vertex, decomposition)
        rows = self.statistics.join_rows(vertex, decomposition)
        groups = self.statistics.output_rows(vertex, decomposition)
        promoted = decomposition.promoted
        read = list(zip(vertex.inputs, vertex.reads(decomposition), strict=True))
        inside = (label for label in vertex.all_labels if label.name in decomposition.inside)
        flops = 2.0 * math.prod(
            min(label.bound, decomposition.tile) if label.name in promoted else label.bound
            for label in inside
        )
        if vertex.index is not None:  # the source is read at the entries of the result
            flops = _reindexed_flops(vertex, vertex.index, decomposition) if kernel.name else 0.0
        if vertex.top is not None:  # an entry is compared with the last one of a list
            ((operand, layout),) = read
            flops = 2.0 * self.program.types[operand.tensor].dense_size(layout)
        if vertex.pair is not None:
            flops = self._flops_of_pair(vertex, decomposition, flops)
        once = [promoted.isdisjoint(operand.names) for operand in vertex.inputs]
        output = vertex.makes(decomposition)
        type_ = vertex.tensor.type
        aggregated = vertex.aggregates(decomposition)
        fused = output.scalar or (aggregated and (kernel.fusible or vertex.top is not None))
        written = 0.0 if fused else self.payload_bytes(vertex.name, output)
        work = self._join_work(vertex, decomposition, rows)
        if len(read) == 1 and may_end_early(vertex, decomposition):
            # No hash table, and no group: the tuples are read until one decides.
            filtered = replace(work, rows=0.0)
            return VertexCost(cost(filtered, self.profile), 0.0, self.profile.step)
        # Rows of one matrix make a product by themselves, vectors when they share the matrix.
        join = cost(work, self.profile)
        threads = self.resources.threads
        if kernel.compressed:
            called = cost(
                self._sparse_work(vertex, decomposition, kernel.name, rows, written), self.profile
            )
        else:
            batched = kernel.batched and (kernel.by_itself or any(once))
            dot = kernel.name == "inner_prod"
            chunks = math.ceil(rows / DUCKDB_LIMITS.vector_rows)
            apart = kernel.specification is not None and not kernel.batched
            long = self._long_bytes(vertex, decomposition, rows, rows if apart else chunks)
            calls = kernel.name is not None or (bool(vertex.maps) and not output.scalar)
            done = KernelWork(rows, flops, batched, dot, written, long, threads, calls)
            called = cost(done, self.profile)
        if self.resources.copies:
            copied = rows * self.operand_bytes(vertex, decomposition)
            join += cost(CopyWork(copied), self.profile)
        windows = vertex.along is not None or vertex.top is not None
        if windows and kernel.name is None:  # the window sorts its rows
            window = AggregateWork(rows, rows, type_.tuple_bytes(output) + key_bytes(output), 1, 0)
            return VertexCost(join, called, cost(window, self.profile))
        if not aggregated:
            return VertexCost(join, called)
        size = type_.tuple_bytes(output) + key_bytes(output)
        states = self.state_bytes(type_.tuple_bytes(output), rows, groups)
        elements = type_.dense_size(output) if vertex.top is None else flops / 2.0
        aggregate = AggregateWork(rows, groups, size, elements, states)
        return VertexCost(join, called, cost(aggregate, self.profile))

    def _flops_of_pair(self, vertex: Vertex, decomposition: Decomposition, each: float) -> float:
        """Return the work of a call on two arrays, `each` if it were a product of both."""
        if isinstance(vertex.pair, LinearSystem):  # the matrices are eliminated first
            type_ = self.program.types[vertex.inputs[0].tensor]
            entries = type_.dense_size(vertex.reads(decomposition)[0])
            return each + 2 / 3 * type_.shape[-1] * entries
        # The rows in one array go through a forest.
        _, packed = (self.program.types[operand.tensor].shape for operand in vertex.inputs)
        nodes, outputs = packed[0] / FIELDS, max(packed[1], 1)
        rows = vertex.tensor.type.dense_size(vertex.makes(decomposition)) / outputs
        return VISIT_FLOPS * rows * nodes / NODES_OF_VISIT

    def _join_work(self, vertex: Vertex, decomposition: Decomposition, rows: float) -> JoinWork:
        """Return the work of a vertex's join, which has so many rows."""
        read = list(zip(vertex.inputs, vertex.reads(decomposition), strict=True))
        sizes = [self.tuple_bytes(operand.tensor, layout) for operand, layout in read]
        once = [decomposition.promoted.isdisjoint(operand.names) for operand in vertex.inputs]
        tuples = [self.rows(operand.tensor, layout) for operand, layout in read]
        within = self._within_rows(read)
        built, kept = (0.0, 0.0) if within else self._built(vertex, decomposition)
        return JoinWork(
            rows,
            left_bytes=sizes[0],
            right_bytes=sizes[1] if len(sizes) > 1 else 0.0,
            left_once=once[0],
            right_once=once[-1],
            read=max(tuples) if within else sum(tuples),
            keyed=bool(decomposition.promoted),
            built=built,
            kept=kept,
        )

    def _within_rows(self, read: Sequence[tuple[Operand, Layout]]) -> bool:
        """Return whether a join pairs columns of one table in each row (`ucle.plan.pair_scans`)."""
        rows = {self._stored_rows(*each) for each in read}
        keys = {tuple(operand.names[axis] for axis in layout.promoted) for operand, layout in read}
        scalar = any(layout.scalar for _, layout in read)
        return len(read) == 2 and len(rows) == len(keys) == 1 and None not in rows and scalar

    def _stored_rows(self, operand: Operand, layout: Layout) -> Hashable | None:
        """Return the rows of which table hold the tuples of an operand, if it is read as it is."""
        stored = self.stored.get(operand.tensor)
        as_it_is = layout.scalar if stored is None else layout in stored.layouts
        return self.row_tables.get(operand.tensor) if as_it_is else None

    def _built(self, vertex: Vertex, decomposition: Decomposition) -> tuple[float, float]:
        """Return the bytes that a join by keys puts into a hash table, and the tuples.

        The bytes include those of the arrays that tuples point to.
        """
        if len(vertex.inputs) < 2 or any(
            decomposition.promoted.isdisjoint(operand.names) for operand in vertex.inputs
        ):
            return 0.0, 0.0
        sides = [
            (self.rows(operand.tensor, layout), self.tuple_bytes(operand.tensor, layout))
            for operand, layout in zip(vertex.inputs, vertex.reads(decomposition), strict=True)
        ]
        return min((rows * (size + POINTER), rows) for rows, size in sides)

    def _long_bytes(
        self, vertex: Vertex, decomposition: Decomposition, rows: float, reads: float
    ) -> float:
        """Return the bytes of arrays too long for the cache, as often as a kernel reads them.

        Those that are the same for all rows are read so many times.
        """
        total = 0.0
        for operand, layout in zip(vertex.inputs, vertex.reads(decomposition), strict=True):
            size = self.array_bytes(operand.tensor, layout)
            if size > CACHED:
                once = decomposition.promoted.isdisjoint(operand.names)
                total += size * (reads if once else rows)
        return total

    def _sparse_work(
        self,
        vertex: Vertex,
        decomposition: Decomposition,
        kernel: str | None,
        rows: float,
        written: float,
    ) -> SparseWork:
        """Return the work of a kernel that follows the entries of compressed operands."""
        made = rows * written, rows
        threads = self.resources.threads
        drivers = dict(decomposition.compressed)
        numbers = [number for number in range(len(vertex.inputs)) if number in drivers]
        entries = sum(self.statistics.tensor(vertex.inputs[n].tensor).entries for n in numbers)
        if len(numbers) == 2:
            pairs = self.statistics.join_rows(vertex, vertex.all_promoted)
            pairs = pairs if vertex.reduced else 0.0
            return SparseWork(entries, 0.0, pairs, *made, threads=threads)
        (number,) = numbers
        own, stored = (
            vertex.inputs[number].names,
            self.statistics.tensor(vertex.inputs[number].tensor),
        )
        width = math.prod(x.bound for x in vertex.labels if x.name not in own)
        long = 0.0
        if stored.runs and drivers[number] == own[-1] and kernel in RUN_KERNELS:
            return SparseWork(stored.runs, 2.0 * entries * width, 0.0, *made, threads=threads)
        reached = []  # what entries point to; of a transpose, they are read and written there
        if is_transposed(vertex, decomposition):
            reached = [(vertex.name, vertex.makes(decomposition))] * 2
        elif len(vertex.inputs) == 2:
            reached = [(vertex.inputs[1 - number].tensor, vertex.reads(decomposition)[1 - number])]
        for dense in reached:
            if self.array_bytes(*dense) > SHARED:
                long += entries * width * vertex.tensor.type.dtype.bytes
        return SparseWork(entries, 2.0 * entries * width, 0.0, *made, long, threads)

    def _deferred_cost(self, vertex: Vertex, decomposition: Decomposition) -> VertexCost:
        """Return the cost of a masked product's vertex; one of the two carries the product."""
        reader = vertex if decomposition.deferred != RESULT else reader_of(self.program, vertex)
        assert reader is not None
        product = next(
            x for x in masked_products(self.program, reader) if vertex in (x.producer, x.reader)
        )
        view = self.profile.view if vertex is reader else 0.0
        owner = product.reader if product.masks_a_factor else product.producer
        if vertex is not owner:
            return VertexCost(view, 0.0)
        places = self.statistics.tensor(product.mask.operand.tensor).entries
        part = (
            product.right if product.right.of_producer == (vertex is not reader) else product.left
        )
        layout = vertex.reads(decomposition)[part.number]
        factors = product.left, product.right
        if layout.compressed is None:
            work = MaskedWork(places, 2.0 * places * product.inner.bound, 0.0)
        else:
            ends = product.row.bound, product.column.bound
            counts = [self.statistics.tensor(x.operand.tensor).entries for x in factors]
            lists = [count / max(end, 1) for count, end in zip(counts, ends, strict=True)]
            pairs = counts[0] * counts[1] / max(product.inner.bound, 1)
            listed = vertex.inputs[part.number].labels[layout.compressed]
            both_along = part is product.right and listed.name == product.inner.name
            work = MaskedWork(places, 0.0, places * sum(lists) if both_along else pairs)
        return VertexCost(view, cost(work, self.profile))

    def source_layout(
        self, name: str, needed: Layout, vertex_layouts: Mapping[str, Layout]
    ) -> Layout | None:
        """Return the layout from which a tensor comes: the cheapest of those that it is stored in.

        Args:
            name: name of the tensor.
            needed: the layout in which it is read.
            vertex_layouts: the layouts in which vertices make their tensors.
        """
        if name not in self.stored:
            return vertex_layouts[name]
        stored = self.stored[name]
        if stored.lists and needed.compressed is not None:
            return needed
        layouts = stored.layouts
        if stored.lists and needed.dense == (0, 1) and needed.levels[1] is Level.DENSE:
            # Lists become an array where they are read; entries go through a table.
            layouts = *layouts, needed.with_level(1, Level.COMPRESSED)
        if len(layouts) < 2:
            return layouts[0] if layouts else None

        def rank(layout: Layout) -> tuple[float, bool]:
            # An input that will be kept costs nothing in any layout; a stored layout needs no
            # change.
            return self.repartition_cost(name, layout, needed), layout != needed

        return min(layouts, key=rank)

    def repartition_cost(self, name: str, source: Layout | None, target: Layout) -> float:
        """Return the cost of bringing a tensor from one layout to another (section 7.2)."""
        if source == target:
            return 0.0
        key, prices = (self._sign_tensor(name), source, target), self.prices.repartitions
        if (price := prices.get(key)) is None:
            whole = repartition_cost.repartition_cost(self, name, source, target)
            price = prices[key] = whole / self.runs if name in self._fixed else whole
        return price

    def least_repartition_cost(self, name: str, source: Layout, target: Layout) -> float:
        """Return a lower bound of a repartition's cost, quickly."""
        least = repartition_cost.least_repartition_cost(self, name, source, target)
        return least / self.runs if name in self._fixed else least

    def repartition_blocks(self, name: str, source: Layout | None, target: Layout) -> Blocks | None:
        """Return the blocks in which a repartition exchanges keys; None if it does not."""
        return repartition_cost.exchange_blocks(self, name, source, target)

    def fits(self, vertex: Vertex, decomposition: Decomposition) -> bool:
        """Return whether a decomposition of a vertex stays below the limits (section 8.2)."""
        number, prices = self._numbers[vertex.name], self.prices
        if (small := prices.small.get(number)) is None:
            small = prices.small[number] = limits.is_small(self, vertex)
        if small:
            return True
        if decomposition.promoted:
            key, known = (self._sign_vertex(vertex), decomposition), prices.fits
        else:  # needs no statistics, which signatures do
            key, known = (number, decomposition), prices.fits_whole
        if (fits := known.get(key)) is None:
            fits = known[key] = limits.fits(self, vertex, decomposition)
        return fits


def price(costed: CostedProgram, chosen: Mapping[str, Decomposition]) -> DecomposedProgram:
    """Return a program under given decompositions, with its costs."""
    program = costed.program
    costs: dict[str, VertexCost] = {}
    vertex_layouts: dict[str, Layout] = {}
    sources: dict[tuple[str, Layout], Layout | None] = {}
    exchanges: dict[tuple[str, Layout | None, Layout], Blocks] = {}
    for vertex in program.vertices:
        decomposition = chosen[vertex.name]
        own, moves = costed.vertex_cost(vertex, decomposition), 0.0
        vertex_layouts[vertex.name] = vertex.makes(decomposition)
        for operand, needed in zip(vertex.inputs, vertex.reads(decomposition), strict=True):
            name = operand.tensor
            source = costed.source_layout(name, needed, vertex_layouts)
            if name in costed.stored:
                sources[name, needed] = source
            moves += costed.repartition_cost(name, source, needed)
            if (blocks := costed.repartition_blocks(name, source, needed)) is not None:
                exchanges[name, source, needed] = blocks
        costs[vertex.name] = replace(own, repartition=moves)
    return DecomposedProgram(program, dict(chosen), costed.stored, costs, sources, exchanges)


def _reindexed_flops(vertex: Vertex, index: IndexMap, decomposition: Decomposition) -> float:
    """Return the work to read arrays by an index map, in operations of a streaming kernel."""
    layout = vertex.makes(decomposition)
    shape = vertex.tensor.type.dense_shape(layout)
    entries = math.prod(shape)
    if not index.reads_spans:
        return REINDEXED_FLOPS * entries
    lines = entries / max(shape[-1], 1) if shape else 1.0
    return COPIED_FLOPS * entries + SPAN_FLOPS * lines
