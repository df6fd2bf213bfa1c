"""Multiway joins: products of many factors that are computed in one step, label by label.

A binary plan of a cyclic pattern makes tensors of three and more labels. Where it does, the
vertices that make and read them are one product of matrices and vectors, which the kernel
``multiway`` computes without these tensors (`ucle.plan.multiway`). It is taken where it costs less
than the binary joins that it replaces: these are priced by the tuples that they emit, the kernel by
the entries of lists that it looks up (`ucle.optimiser.loop_nests`). Its readers take the result in
the layout in which it comes if that costs less than to bring it to that of the vertex first.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from ucle.foundation.dataclasses import dataclass
from ucle.foundation.dtypes import DType
from ucle.ir.annihilation import checked_tensors
from ucle.ir.layouts import Label, Layout, Level
from ucle.ir.masked_products import absorbing, adds_nothing, reader_of, repeats
from ucle.ir.vertices import Operand, Program, Vertex
from ucle.operators import AND, ANY, MULT, SUM
from ucle.optimiser.loop_nests import Factor, PricedNest, find_nest, row_operand
from ucle.optimiser.pricing import CostedProgram
from ucle.plan.decomposition import DecomposedProgram, VertexCost
from ucle.plan.multiway import MultiwayPlan, MultiwaySource

MOST_FACTORS, MOST_LABELS = 48, 16
"""Limits of one multiway join; the kernel's are higher (``csrc/multiway.h``)."""

MOST_POSITIONS = 1 << 26
"""The most positions of a label, for each of which some lists keep a number."""

TYPES = (DType.FLOAT64, DType.FLOAT32, DType.INT64, DType.BOOL)


@dataclass(frozen=True)
class _Use:
    """A factor of the product: a tensor and the numbers of its labels."""

    tensor: str
    labels: tuple[int, ...]


@dataclass(frozen=True)
class _Product:
    """The product that a vertex is, once others are multiplied out.

    `outputs` are the labels of the result, `inside` the vertices that were multiplied out.
    """

    uses: tuple[_Use, ...]
    labels: Mapping[int, Label]
    outputs: tuple[int, ...]
    inside: tuple[str, ...]


@dataclass(frozen=True)
class _PricedJoin:
    """A multiway join with its cost, and what the repartitions of its readers cost more with it."""

    plan: MultiwayPlan
    cost: VertexCost
    readers: Mapping[str, float]

    @property
    def total(self) -> float:
        return self.cost.total + sum(self.readers.values())


def join_multiway(costed: CostedProgram, decomposed: DecomposedProgram) -> DecomposedProgram:
    """Return a decomposed program with multiway joins wherever they cost less.

    Args:
        costed: the program with its prices.
        decomposed: the program with a decomposition of its vertices; it stays the same object if
            no multiway join is cheaper.
    """
    least = costed.optimisations.multiway
    if not costed.multiway or least is None or not _may_save(decomposed, least):
        return decomposed
    return _Joins(costed, decomposed, least).find()


def _may_save(decomposed: DecomposedProgram, least: float) -> bool:
    """Return whether tensors of three and more labels are made, by a plan that costs so much."""
    makes_large = any(len(vertex.labels) > 2 for vertex in decomposed.program.vertices)
    return makes_large and decomposed.total_cost >= least


class _Joins:
    """The search for multiway joins in a decomposed program."""

    def __init__(self, costed: CostedProgram, decomposed: DecomposedProgram, least: float) -> None:
        self._costed = costed
        self._decomposed = decomposed
        self._least = least
        self._program: Program = costed.program
        self._checked = checked_tensors(costed.program)
        self._fusible = {v.name for v in self._program.vertices if self._may_join(v)}
        self._found: dict[str, _PricedJoin] = {}
        self._sources: dict[tuple[str, Layout], Layout | None] = {}

    def find(self) -> DecomposedProgram:
        """Return the program with the joins that pay, from its results to its inputs."""
        taken: set[str] = set()
        for vertex in reversed(self._program.vertices):
            if vertex.name in self._fusible and vertex.name not in taken and len(vertex.labels) < 3:
                taken |= self._consider(vertex)
        if not self._found:
            return self._decomposed
        sources = {**self._decomposed.sources, **self._sources}
        joined = replace(self._decomposed, multiway=self._plans(), sources=sources)
        none = VertexCost(0.0, 0.0)
        costs = {
            name: cost if name in joined.made else none
            for name, cost in self._decomposed.costs.items()
        }
        costs |= {name: join.cost for name, join in self._found.items()}
        for join in self._found.values():
            for name, more in join.readers.items():
                moved = costs[name].repartition + more
                costs[name] = replace(costs[name], repartition=moved)
        return replace(joined, costs=costs)

    def _plans(self) -> dict[str, MultiwayPlan]:
        return {name: join.plan for name, join in self._found.items()}

    def _may_join(self, vertex: Vertex) -> bool:
        """Return whether a vertex is a product or sum whose entries are numbers of its factors."""
        program, dtype = self._program, vertex.tensor.type.dtype
        if not vertex.is_product or vertex.maps or dtype not in TYPES or dtype.kind == "c":
            return False
        if any(map(repeats, vertex.inputs)) or vertex.name in self._checked:
            return False
        if vertex.reduce not in (None, SUM, ANY):
            return False
        types = [program.types[operand.tensor] for operand in vertex.inputs]
        if vertex.tensor.type.fill != 0 or any(x.fill != 0 for x in types):
            return False
        if not adds_nothing(vertex, program):
            return False
        if vertex.combine is None:
            return True
        return vertex.combine in (MULT, AND) and all(absorbing(vertex, program))

    def _consider(self, vertex: Vertex) -> frozenset[str]:
        """Take the best multiway join of a vertex, if it pays; return the vertices it replaces."""
        best = self._least
        for product in self._products(vertex):
            nest = self._nest(product)
            if nest is None:
                continue
            plan = self._plan(vertex, product, nest)
            if plan.held > self._costed.resources.memory:
                continue
            join = self._price(vertex, plan, nest)
            saved = self._saved(vertex, plan)
            if saved - join.total > best:
                best = saved - join.total
                self._found[vertex.name] = join
        if vertex.name not in self._found:
            return frozenset()
        plan = self._found[vertex.name].plan
        for source in plan.sources:
            key = source.tensor, source.layout
            if source.tensor in self._costed.stored:
                self._sources[key] = self._costed.source_layout(*key, {})
        return frozenset((vertex.name, *plan.inside))

    # ---- Products ----

    def _products(self, vertex: Vertex) -> Iterator[_Product]:
        """Yield the product with all vertices that only it reads, and that with large ones only."""
        whole = self._multiply_out(vertex, self._is_read_once)
        if whole is None or not any(len(self._program.by_name[x].labels) > 2 for x in whole.inside):
            return
        yield whole
        large = self._multiply_out(vertex, lambda _: False)
        if large is not None and len(large.inside) < len(whole.inside) and large.inside:
            yield large

    def _is_read_once(self, vertex: Vertex) -> bool:
        return reader_of(self._program, vertex) is not None

    def _multiply_out(self, vertex: Vertex, takes: Callable[[Vertex], bool]) -> _Product | None:
        """Return the product of a vertex; `takes` decides on tensors of one or two labels.

        The result is None if it has a factor with another number of labels.
        """
        labels: dict[int, Label] = {}
        uses: list[_Use] = []
        inside: list[str] = []
        counter = itertools.count()

        def number(label: Label) -> int:
            labels[found := next(counter)] = label
            return found

        def walk(each: Vertex, outputs: Sequence[int]) -> bool:
            own = dict(zip(each.names, outputs, strict=True))
            own |= {label.name: number(label) for label in each.reduced}
            for operand in each.inputs:
                numbers = tuple(own[name] for name in operand.names)
                made = self._program.by_name.get(operand.tensor)
                if made is not None and self._is_multiplied_out(made, takes):
                    inside.append(made.name)
                    if not walk(made, numbers):
                        return False
                    continue
                uses.append(_Use(operand.tensor, numbers))
                fits = len(numbers) in (1, 2) and len(uses) <= MOST_FACTORS
                if not fits or len(labels) > MOST_LABELS:
                    return False
            return True

        outputs = tuple(number(label) for label in vertex.labels)
        if not walk(vertex, outputs):
            return None
        if any(label.bound > MOST_POSITIONS for label in labels.values()):
            return None
        return _Product(tuple(uses), labels, outputs, tuple(dict.fromkeys(inside)))

    def _is_multiplied_out(self, made: Vertex, takes: Callable[[Vertex], bool]) -> bool:
        large = len(made.labels) > 2
        return made.name in self._fusible and (large or (bool(made.labels) and takes(made)))

    def _nest(self, product: _Product) -> PricedNest | None:
        tensors = list(dict.fromkeys(use.tensor for use in product.uses))
        factors = [self._factor(tensors.index(use.tensor), use) for use in product.uses]
        sizes = {number: label.bound for number, label in product.labels.items()}
        return find_nest(factors, sizes, product.outputs)

    def _factor(self, number: int, use: _Use) -> Factor:
        known = self._costed.statistics.tensor(use.tensor)
        positions = tuple(max(count, 1.0) for count in known.distinct)
        average = tuple(known.entries / count for count in positions)
        return Factor(number, use.labels, positions, average, known.largest or average)

    # ---- Plans ----

    def _plan(self, vertex: Vertex, product: _Product, priced: PricedNest) -> MultiwayPlan:
        """Return the plan of a loop nest, which hands on the tensor in the vertex's own layout."""
        tensors = list(dict.fromkeys(use.tensor for use in product.uses))
        nest, sources = priced.nest, dict[MultiwaySource, int]()
        sizes = [product.labels[label].bound for label in priced.labels]

        def matrix(operand: int) -> int:
            number, axis = divmod(operand, 2)
            assert operand == row_operand(number, axis)
            levels = [Level.COMPRESSED, Level.COMPRESSED]
            levels[axis] = Level.DENSE
            return _place(sources, tensors[number], levels)

        def longest(operand: int) -> float:
            number, axis = divmod(operand, 2)
            known = self._costed.statistics.tensor(tensors[number])
            positions = max(known.distinct[axis], 1.0)
            return float(known.largest[axis] if known.largest else known.entries / positions)

        def vector(number: int) -> int:
            return _place(sources, tensors[number], [Level.DENSE])

        rows = [longest(each.operand) for each in nest.lists]
        held = nest.held_bytes(vertex.tensor.type.dtype, sizes, rows)
        lists = tuple(
            replace(each, operand=matrix(each.operand), scales=tuple(map(vector, each.scales)))
            for each in nest.lists
        )
        nest = replace(nest, lists=lists, scales=tuple(map(vector, nest.scales)))
        levels = [
            Level.DENSE if x == priced.labels[0] else Level.COMPRESSED for x in product.outputs
        ]
        layout = Layout.from_levels(*levels)
        return MultiwayPlan(
            tuple(sources),
            nest,
            layout,
            self._decomposed.made_layout(vertex.name),
            _spell(product),
            product.inside,
            held,
        )

    def _price(self, vertex: Vertex, plan: MultiwayPlan, nest: PricedNest) -> _PricedJoin:
        """Return the cost of a plan, with the tensor handed on in the layout that costs less."""
        costed, moves = self._costed, 0.0
        layouts = {name: self._decomposed.made_layout(name) for name in self._program.by_name}
        for each in plan.sources:
            source = costed.source_layout(each.tensor, each.layout, layouts)
            moves += costed.repartition_cost(each.tensor, source, each.layout)
        own = VertexCost(costed.profile.view, nest.cost, 0.0, moves)
        if not vertex.labels:
            return _PricedJoin(replace(plan, handed=plan.layout), own, {})
        brought = costed.repartition_cost(vertex.name, plan.layout, plan.handed)
        as_it_is = self._moves_of_readers(vertex.name, plan.handed, plan.layout)
        if sum(as_it_is.values()) <= brought:
            return _PricedJoin(replace(plan, handed=plan.layout), own, as_it_is)
        return _PricedJoin(plan, replace(own, repartition=moves + brought), {})

    def _moves_of_readers(self, name: str, before: Layout, after: Layout) -> dict[str, float]:
        """Return what repartitions cost each reader more if a tensor comes in another layout."""
        costed, more = self._costed, dict[str, float]()
        decomposed = replace(self._decomposed, multiway=self._plans())
        for reader in self._program.vertices:
            if reader.name not in decomposed.made:
                continue
            reads: Sequence[tuple[str, Layout]] = [
                (operand.tensor, layout) for operand, layout in decomposed.needed_layouts(reader)
            ]
            if (join := self._found.get(reader.name)) is not None:
                reads = [(source.tensor, source.layout) for source in join.plan.sources]
            for needed in (layout for tensor, layout in reads if tensor == name):
                changed = costed.repartition_cost(name, after, needed)
                changed -= costed.repartition_cost(name, before, needed)
                more[reader.name] = more.get(reader.name, 0.0) + changed
        return more

    def _saved(self, vertex: Vertex, plan: MultiwayPlan) -> float:
        """Return the cost of the vertices that are not made any more, and of the vertex itself."""
        joins = {name: plan for name, plan in self._plans().items() if name != vertex.name}
        before = replace(self._decomposed, multiway=joins)
        after = replace(self._decomposed, multiway={**joins, vertex.name: plan})
        gone = (before.made - after.made) | {vertex.name}
        return sum(cost.total for x, cost in self._decomposed.costs.items() if x in gone)


def _place(sources: dict[MultiwaySource, int], tensor: str, levels: Sequence[Level]) -> int:
    return sources.setdefault(MultiwaySource(tensor, Layout.from_levels(*levels)), len(sources))


def _spell(product: _Product) -> tuple[Operand, ...]:
    """Return the factors with distinct names of their labels."""
    taken: set[str] = set()
    named: dict[int, Label] = {}
    for number, label in product.labels.items():
        name, again = label.name, itertools.count(1)
        while name in taken:
            name = f"{label.name}_{next(again)}"
        taken.add(name)
        named[number] = replace(label, name=name)
    return tuple(
        Operand(use.tensor, tuple(named[number] for number in use.labels)) for use in product.uses
    )
