"""A decomposed program: the decomposition of each vertex, and what that costs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from ucle.ir.layouts import Decomposition, Layout
from ucle.ir.vertices import Operand, Program, Vertex


@dataclass(frozen=True)
class StoredInput:
    """Where an input lies: in some layouts, or (none) in memory, from where any can be had.

    `kept` says that it will lie in whatever layouts a program reads it in, as it is stored in them
    or carried from run to run, so that it does not count what the change takes.
    """

    layouts: tuple[Layout, ...] = ()
    kept: bool = False


@dataclass(frozen=True)
class VertexCost:
    """The cost of one vertex under its decomposition, taken apart."""

    join: float
    kernel: float
    aggregate: float = 0.0
    repartition: float = 0.0

    @property
    def total(self) -> float:
        """Sum of the parts."""
        return self.join + self.kernel + self.aggregate + self.repartition

    def shared(self, runs: int) -> VertexCost:
        """The same for each of some runs, where it is computed once."""
        parts = self.join, self.kernel, self.aggregate, self.repartition
        return VertexCost(*(part / runs for part in parts))


@dataclass(frozen=True)
class Blocks:
    """Blocks of `size` positions along a promoted axis, by which keys are exchanged.

    Unless `size` divides the bound, the axis has to be followed in the target's arrays by just
    those that stay inside: then a cut of a block lies in one piece there, however long it is.
    """

    axis: int
    size: int


@dataclass(frozen=True)
class Search:
    """How a decomposition was found: whether it is the optimum, and of how much.

    The program has `2**levels` decompositions; `priced` is the number of decompositions of single
    vertices that were looked at, with those of other orders of its products.
    """

    method: str
    exact: bool
    levels: int
    priced: int

    def __str__(self) -> str:
        proof = "the optimum" if self.exact else "no proven optimum"
        return f"{self.method}, {proof} of 2^{self.levels} ({self.priced:,} of vertices priced)"


@dataclass(frozen=True)
class DecomposedProgram:
    """A program in upper-case-lower-case form: the decomposition of every vertex.

    Layouts of tensors and the repartitions between them follow from that and from where the inputs
    are stored.
    """

    program: Program
    decompositions: Mapping[str, Decomposition]
    stored: Mapping[str, StoredInput]
    costs: Mapping[str, VertexCost]
    sources: Mapping[tuple[str, Layout], Layout | None] = field(default_factory=dict)
    """For inputs and layouts in which they are read, the stored layout from which they are made."""
    exchanges: Mapping[tuple[str, Layout | None, Layout], Blocks] = field(default_factory=dict)
    """The repartitions, by tensor and layouts, that exchange keys in blocks (`plan.Exchange`)."""
    search: Search | None = None
    """How the decomposition was found; None where it was given."""

    @cached_property
    def total_cost(self) -> float:
        """Estimated cost of the whole program under the profile it was optimised for."""
        return sum(part.total for part in self.costs.values())

    @cached_property
    def relational(self) -> bool:
        """Whether every label is promoted: then there are no arrays, and no kernels.

        Functions of matrices have kernels and nothing else.
        """
        promoted = all(each.relational for each in self.decompositions.values())
        return promoted and not any(vertex.is_of_matrices for vertex in self.program.vertices)

    @cached_property
    def promoted(self) -> Mapping[str, frozenset[str]]:
        """The promoted labels of each vertex, as callers write a decomposition."""
        return {name: each.spelled for name, each in self.decompositions.items()}

    def __str__(self) -> str:
        return "\n".join(v.text(self.decompositions[v.name]) for v in self.program.vertices)

    def needed(self, vertex: Vertex) -> tuple[tuple[Operand, Layout], ...]:
        """The operands of a vertex with the layouts in which it reads them."""
        layouts = vertex.reads(self.decompositions[vertex.name])
        return tuple(zip(vertex.inputs, layouts, strict=True))

    def made_layout(self, name: str) -> Layout:
        """The layout in which a vertex makes its tensor."""
        return self.program.by_name[name].makes(self.decompositions[name])

    def source_layout(self, name: str, needed: Layout) -> Layout | None:
        """The layout from which a tensor is brought to one that is read; None for any."""
        return self.sources[name, needed] if name in self.stored else self.made_layout(name)
