"""A decomposed program: the decomposition of each vertex, and its cost."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import field
from functools import cached_property

from ucle.foundation.dataclasses import dataclass
from ucle.ir.layouts import Decomposition, Layout
from ucle.ir.vertices import Operand, Program, Vertex
from ucle.plan.lookups import LookupPlan
from ucle.plan.multiway import MultiwayPlan, needed_tensors


@dataclass(frozen=True)
class StoredInput:
    """The layouts in which an input is stored; none if it is in memory, which gives any layout.

    `kept` is True if the input will be available in every layout in which a program reads it,
    because it is stored in them or carried from run to run. Then the change of layout costs
    nothing. `lists` is True if memory has it in every layout with a compressed axis, too. `pairs`
    is True if its entries are pairs of times, which are made as they are read. `rows` says what its
    rows are (`ucle.plan.pair_scans`): inputs that have the same are columns of one table.
    """

    layouts: tuple[Layout, ...] = ()
    kept: bool = False
    lists: bool = False
    pairs: bool = False
    rows: Hashable | None = None


@dataclass(frozen=True)
class VertexCost:
    """The cost of one vertex under its decomposition, by parts."""

    join: float
    kernel: float
    aggregate: float = 0.0
    repartition: float = 0.0

    @property
    def total(self) -> float:
        """The sum of the parts."""
        return self.join + self.kernel + self.aggregate + self.repartition

    def spread_over(self, runs: int) -> VertexCost:
        """Return the cost per run, if the vertex is computed once for all runs."""
        parts = self.join, self.kernel, self.aggregate, self.repartition
        return VertexCost(*(part / runs for part in parts))


@dataclass(frozen=True)
class Blocks:
    """Blocks of `size` positions along a promoted axis, in which keys are exchanged.

    Unless `size` divides the bound, the axis must be followed in the target's arrays by exactly the
    axes that stay inside. Then a cut of a block is contiguous there, whatever its length.
    """

    axis: int
    size: int


@dataclass(frozen=True)
class Search:
    """A description of the search that found a decomposition: its method, size and result.

    `exact` is True if the decomposition is the optimum. The program has `2**levels` decompositions.
    `priced` is the number of decompositions of single vertices that were priced, including those in
    other orders of its products, of which there were `orders`. `is_cut` is True if other orders
    were left out, as looking at them takes longer than they may save. `like` is True if that was
    for another program, of like shape (`ucle.pipeline.shapes`).
    """

    method: str
    exact: bool
    levels: int
    priced: int
    orders: int = 1
    is_cut: bool = False
    like: bool = False

    def __str__(self) -> str:
        proof = "the optimum" if self.exact else "no proven optimum"
        where = ", for data of like shape" if self.like else ""
        orders = f" in {self.orders:,} orders" if self.orders > 1 else ""
        rest = "; others take longer to price than they may save" if self.is_cut else ""
        counted = f"{self.priced:,} of vertices priced{where}{orders}{rest}"
        return f"{self.method}, {proof} of 2^{self.levels} ({counted})"


@dataclass(frozen=True)
class DecomposedProgram:
    """A program in upper-case-lower-case form: the decomposition of every vertex.

    The layouts of tensors and the repartitions between them follow from the decompositions and from
    the stored layouts of the inputs.
    """

    program: Program
    decompositions: Mapping[str, Decomposition]
    stored: Mapping[str, StoredInput]
    costs: Mapping[str, VertexCost]
    sources: Mapping[tuple[str, Layout], Layout | None] = field(default_factory=dict)
    """The stored layout that each input is read from, by input and the layout in which it is
    read."""
    exchanges: Mapping[tuple[str, Layout | None, Layout], Blocks] = field(default_factory=dict)
    """The repartitions that exchange keys in blocks, by tensor and layouts
    (`plan.BlockRepartition`)."""
    multiway: Mapping[str, MultiwayPlan] = field(default_factory=dict)
    """The vertices that are computed by multiway joins, without the binary joins before them."""
    lookups: Mapping[str, LookupPlan] = field(default_factory=dict)
    """The vertices that are computed by look-up joins, without the binary joins before them."""
    search: Search | None = None
    """The search that found the decomposition; None if it was given."""

    @cached_property
    def total_cost(self) -> float:
        """The estimated cost of the whole program under the profile it was optimised for."""
        return sum(part.total for part in self.costs.values())

    @cached_property
    def relational(self) -> bool:
        """True if every label is promoted: then there are no arrays, and no kernels.

        It is False for functions of matrices, forests and multiway joins, which only kernels
        compute.
        """
        promoted = all(each.relational for each in self.decompositions.values())
        return (
            promoted
            and not self.multiway
            and not any(vertex.needs_kernel for vertex in self.program.vertices)
        )

    @cached_property
    def made(self) -> frozenset[str]:
        """The tensors that results need: all that are read, but not those inside other joins."""
        if not self.multiway and not self.lookups:
            return frozenset(self.program.types)
        reads = {
            vertex.name: tuple(operand.tensor for operand in vertex.inputs)
            for vertex in self.program.vertices
        }
        for name, plan in self.multiway.items():
            reads[name] = tuple(source.tensor for source in plan.sources)
        for name, lookups in self.lookups.items():
            reads[name] = tuple(operand.tensor for operand in lookups.operands)
        return needed_tensors(reads, self.program.results)

    @cached_property
    def promoted(self) -> Mapping[str, frozenset[str]]:
        """The promoted labels of each vertex, as callers write a decomposition."""
        return {name: each.spelled for name, each in self.decompositions.items()}

    def __str__(self) -> str:
        return "\n".join(v.text(self.decompositions[v.name]) for v in self.program.vertices)

    def needed_layouts(self, vertex: Vertex) -> tuple[tuple[Operand, Layout], ...]:
        """Return the operands of a vertex with the layouts in which it reads them."""
        layouts = vertex.reads(self.decompositions[vertex.name])
        return tuple(zip(vertex.inputs, layouts, strict=True))

    def made_layout(self, name: str) -> Layout:
        """Return the layout in which readers find the tensor of a vertex."""
        if (joined := self.multiway.get(name)) is not None:
            return joined.handed
        return self.program.by_name[name].makes(self.decompositions[name])

    def source_layout(self, name: str, needed: Layout) -> Layout | None:
        """Return the layout from which a tensor is brought to one that is read; None for any."""
        return self.sources[name, needed] if name in self.stored else self.made_layout(name)
