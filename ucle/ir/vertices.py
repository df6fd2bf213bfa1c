"""Vertices and programs: the EinSum DAG over labels, layouts and tensors.

With `layouts`, `tensor_types` and `maps` this is the whole intermediate representation, as frozen
structures with tuples inside. A tensor carries its element type, its fill and the range of its
entries. The level of a label (promoted or dense) belongs to a *use* of the tensor and so stands in
a `Layout` or in the `Decomposition` of a vertex, never in the tensor. Constructors reject
ill-formed values. Nothing here knows text, SQL or DuckDB.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cached_property

from ucle.errors import LabelError, NameResolutionError
from ucle.foundation.dataclasses import dataclass
from ucle.ir.axis_functions import Along, MatrixMap, TopK
from ucle.ir.forests import Forest
from ucle.ir.index_maps import IndexMap
from ucle.ir.layouts import RESULT, Decomposition, Label, Layout
from ucle.ir.linear_systems import LinearSystem
from ucle.ir.maps import Cast, Pointwise
from ucle.ir.tensor_types import NamedTensor, TensorType
from ucle.operators import Combine, Reduce

PairFunction = Forest | LinearSystem
"""A function of two whole operands that only a kernel computes."""


@dataclass(frozen=True)
class Span:
    """A place in the source text; lines and columns count from 1."""

    line: int
    column: int
    text: str = ""

    def __str__(self) -> str:
        return f"line {self.line}, column {self.column}"


@dataclass(frozen=True)
class Operand:
    """One use of a tensor: its name and the labels that index its axes."""

    tensor: str
    labels: tuple[Label, ...]

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the labels, axis by axis."""
        return tuple(label.name for label in self.labels)

    def text(self, decomposition: Decomposition | None = None, role: int | None = None) -> str:
        """Return the access as written; with a decomposition, promoted labels are in upper case."""
        names: Iterable[str] = self.names
        if decomposition is not None:
            names = (decomposition.spell_label(name, role) for name in names)
        return f"{self.tensor}[{','.join(names)}]"

    def __str__(self) -> str:
        return self.text()


@dataclass(frozen=True)
class Vertex:
    """One EinSum: ``tensor[labels] = ⊕ maps(left ⊗ right)`` (sparse_einsum.txt, Equation 3).

    A binary vertex has two inputs and `combine` (⊗) and no maps. A unary vertex has one input, no
    `combine`, and applies `maps` to every entry, first to last, before it reduces. `reduce` (⊕) is
    None if every label of the inputs stands on the left.
    """

    tensor: NamedTensor
    inputs: tuple[Operand, ...]
    labels: tuple[Label, ...]
    combine: Combine | None = None
    maps: tuple[Pointwise, ...] = ()
    reduce: Reduce | None = None
    span: Span | None = None
    index: IndexMap | None = None
    """The coordinates at which a reindexing vertex reads its one input. It does nothing else."""
    along: Along | None = None
    """The scan or function of matrices that is applied to the one input. The vertex does nothing
    else."""
    top: TopK | None = None
    """The top-k operation that is applied to the one input. The vertex does nothing else."""
    pair: PairFunction | None = None
    """The forest or the system of equations that is applied to two inputs: features and the packed
    forest, or matrices and right-hand sides. The vertex does nothing else."""

    def __post_init__(self) -> None:
        if self.index is not None:
            self._check_index(self.index)
            return
        if self.top is not None:
            self._check_top(self.top)
            return
        if self.pair is not None:
            self._check_pair(self.pair)
            return
        if self.along is not None:
            (operand,) = self.inputs
            fits = operand.labels == self.labels and {*self.along.labels}.issubset(self.names)
            if self.is_of_matrices:  # kernels take matrices one after the other in memory
                own = self.along.labels
                fits = fits and self.names[-len(own) :] == own
            if not fits or self.combine is not None or self.maps or self.reduce is not None:
                raise LabelError(f"vertex {self.name}: {self.along.name} beside something else")
        if len(self.inputs) not in (1, 2) or (len(self.inputs) == 2) != (self.combine is not None):
            raise LabelError(f"vertex {self.name} is neither unary nor binary")
        if self.combine is not None and self.maps:
            raise LabelError(f"vertex {self.name}: maps on a binary vertex")
        available = {label for operand in self.inputs for label in operand.labels}
        if not set(self.labels) <= available or len(set(self.labels)) != len(self.labels):
            raise LabelError(f"vertex {self.name}: output labels are not distinct input labels")
        if bool(self.reduced) != (self.reduce is not None):
            raise LabelError(f"vertex {self.name}: ⊕ and the labels it reduces do not agree")

    def _check_index(self, index: IndexMap) -> None:
        if len(self.inputs) != 1 or self.combine is not None or self.maps or self.reduce:
            raise LabelError(f"vertex {self.name}: an index map beside something else")
        (operand,) = self.inputs
        if len(index.indices) != len(operand.labels) or not set(index.labels) <= set(self.names):
            raise LabelError(f"vertex {self.name}: the index map is one of other labels")
        if len(set(self.labels)) != len(self.labels):
            raise LabelError(f"vertex {self.name}: output labels are not distinct")

    def _check_top(self, top: TopK) -> None:
        (operand,) = self.inputs
        kept = tuple(x for x in operand.names if x != top.label)
        fits = top.label in operand.names and self.names == (*kept, top.rank, top.part)
        if not fits or self.combine is not None or self.maps or self.reduce is not None:
            raise LabelError(f"vertex {self.name}: first entries beside something else")
        if len(set(self.names)) != len(self.names):
            raise LabelError(f"vertex {self.name}: output labels are not distinct")

    def _check_pair(self, pair: PairFunction) -> None:
        one, other = (operand.names for operand in self.inputs)
        fits = (one, other) == pair.operand_names(self.names)
        if not fits or self.combine is not None or self.maps or self.reduce is not None:
            raise LabelError(f"vertex {self.name}: {pair.plural} beside something else")
        if any(len(set(names)) != len(names) for names in (one, other, self.names)):
            raise LabelError(f"vertex {self.name}: labels of {pair.plural} are not distinct")

    @property
    def name(self) -> str:
        """The name of the tensor that the vertex defines."""
        return self.tensor.name

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the output's labels, axis by axis."""
        return tuple(label.name for label in self.labels)

    @property
    def relabels(self) -> bool:
        """True if labels are replaced and not aggregated: by an index map, top-k or a pair."""
        return self.index is not None or self.top is not None or self.pair is not None

    @property
    def is_product(self) -> bool:
        """True if the vertex joins, maps and aggregates: no index map, top-k, pair or `along`."""
        return not self.relabels and self.along is None

    @property
    def is_of_matrices(self) -> bool:
        """True if the vertex is a function of matrices."""
        return isinstance(self.along, MatrixMap)

    @property
    def needs_kernel(self) -> bool:
        """True if SQL cannot express the vertex: a function of matrices, or a pair."""
        return self.is_of_matrices or self.pair is not None

    @cached_property
    def all_labels(self) -> tuple[Label, ...]:
        """Every distinct label, in order of first use."""
        every = dict.fromkeys(label for op in self.inputs for label in op.labels)
        return tuple(dict.fromkeys((*every, *self.labels)) if self.relabels else every)

    @cached_property
    def reduced(self) -> tuple[Label, ...]:
        """The labels that ⊕ aggregates away."""
        if self.relabels:
            return ()
        return tuple(label for label in self.all_labels if label not in self.labels)

    @cached_property
    def label_names(self) -> tuple[str, ...]:
        """Names of all labels, in order of first use."""
        return tuple(label.name for label in self.all_labels)

    def decomposition(self, promoted: Collection[str]) -> Decomposition:
        """Return the decomposition that promotes some of the labels."""
        return Decomposition.promoting(self.label_names, promoted)

    def decompositions(self) -> Iterator[Decomposition]:
        """Yield every decomposition, from none promoted to all promoted."""
        return Decomposition.every(self.label_names)

    @property
    def all_promoted(self) -> Decomposition:
        """The decomposition that promotes all labels."""
        return self.decomposition(self.label_names)

    def reads(self, decomposition: Decomposition) -> tuple[Layout, ...]:
        """Return the layouts in which the vertex reads its operands under a decomposition."""
        # Called most often of all, and a list takes half of the time of a generator.
        return tuple([decomposition.layout(x.names, n) for n, x in enumerate(self.inputs)])

    def makes(self, decomposition: Decomposition) -> Layout:
        """Return the layout in which the vertex makes its tensor under a decomposition."""
        return decomposition.layout(self.names, RESULT)

    def aggregates(self, decomposition: Decomposition) -> bool:
        """Return whether a decomposition aggregates tuples, and not only within arrays."""
        promoted = decomposition.promoted
        if self.top is not None:
            return self.top.label in promoted
        return any(label.name in promoted for label in self.reduced)

    def text(self, decomposition: Decomposition | None = None) -> str:
        """Return the vertex as a person would write it; upper-case-lower-case if decomposed."""
        if self.index is not None:
            return self._index_text(self.index, decomposition)
        operands = [operand.text(decomposition, n) for n, operand in enumerate(self.inputs)]
        if self.along is not None:
            cased = str if decomposition is None else decomposition.spell_label
            along = ",".join(map(cased, self.along.labels))
            target = Operand(self.name, self.labels).text(decomposition, RESULT)
            return f"{target} = {self.along.name}[{along}]({operands[0]})"
        if self.top is not None:
            top = self.top
            along = top.label if decomposition is None else decomposition.spell_label(top.label)
            target = Operand(self.name, self.labels).text(decomposition, RESULT)
            return f"{target} = {top.text(operands[0], along)}"
        if self.pair is not None:
            cased = str if decomposition is None else decomposition.spell_label
            target = Operand(self.name, self.labels).text(decomposition, RESULT)
            first, second = operands
            return f"{target} = {self.pair.text(first, second, cased)}"
        if self.combine is not None:
            expression = self.combine.text(*operands)
        else:
            expression = operands[0]
            for function in self.maps:
                expression = function.apply_text(expression)
        target = Operand(self.name, self.labels).text(decomposition, RESULT)
        operator = "=" if self.reduce is None else self.reduce.assignment
        return f"{target} {operator} {expression}"

    def _index_text(self, index: IndexMap, decomposition: Decomposition | None) -> str:
        names = str if decomposition is None else decomposition.spell_label
        target = Operand(self.name, self.labels).text(decomposition)
        return f"{target} = {index.text(self.inputs[0].tensor, names)}"

    def __str__(self) -> str:
        return self.text()


@dataclass(frozen=True)
class Program:
    """An EinSum DAG: inputs, vertices in topological order, and the names of its outputs."""

    inputs: tuple[NamedTensor, ...]
    vertices: tuple[Vertex, ...]
    outputs: tuple[str, ...]
    condition_numbers: tuple[str, ...] = ()
    """Tensors that say how much rewritten sums may have lost (`ucle.ir.rounding_bounds`)."""

    def __post_init__(self) -> None:
        types = {tensor.name: tensor.type for tensor in self.inputs}
        for vertex in self.vertices:
            for operand in vertex.inputs:
                if operand.tensor not in types:
                    raise NameResolutionError(
                        f"{vertex} uses {operand.tensor} before it is defined"
                    )
                if len(operand.labels) != types[operand.tensor].rank:
                    raise LabelError(f"{vertex}: {operand} does not fit the rank of the tensor")
            _check_types(vertex, types)
            if vertex.name in types:
                raise NameResolutionError(f"{vertex.name} is defined twice")
            types[vertex.name] = vertex.tensor.type
        if missing := set(self.results) - types.keys():
            raise NameResolutionError(f"unknown outputs: {', '.join(sorted(missing))}")

    @property
    def results(self) -> tuple[str, ...]:
        """The tensors that an execution looks at: outputs and condition numbers."""
        return (*self.outputs, *self.condition_numbers)

    @cached_property
    def types(self) -> dict[str, TensorType]:
        """The type of every tensor, by name."""
        named = (*self.inputs, *(v.tensor for v in self.vertices))
        return {tensor.name: tensor.type for tensor in named}

    @cached_property
    def by_name(self) -> dict[str, Vertex]:
        """The vertices by the names of their tensors."""
        return {vertex.name: vertex for vertex in self.vertices}

    @cached_property
    def uses(self) -> dict[str, tuple[tuple[int, int], ...]]:
        """The readers of every tensor, as pairs (vertex number, operand number)."""
        places_of: dict[str, list[tuple[int, int]]] = {name: [] for name in self.types}
        for number, vertex in enumerate(self.vertices):
            for position, operand in enumerate(vertex.inputs):
                places_of[operand.tensor].append((number, position))
        return {name: tuple(places) for name, places in places_of.items()}

    @cached_property
    def summed_axes(self) -> dict[str, frozenset[int]]:
        """The axes along which matrices are summed while the other axis is kept, by tensor.

        Vertices that compute a matrix of the same axes count as readers of what they read.
        """
        axes: dict[str, frozenset[int]] = {}
        for vertex in reversed(self.vertices):
            for operand in vertex.inputs:
                if len(operand.labels) != 2:
                    continue
                gone = [axis for axis, name in enumerate(operand.names) if name not in vertex.names]
                if len(gone) == 1:
                    found = {gone[0]}
                elif sorted(operand.names) == sorted(vertex.names):
                    own = axes.get(vertex.name, ())
                    found = {operand.names.index(vertex.names[axis]) for axis in own}
                else:
                    continue
                axes[operand.tensor] = axes.get(operand.tensor, frozenset()) | found
        return axes

    @cached_property
    def input_names(self) -> frozenset[str]:
        """Names of the input tensors."""
        return frozenset(tensor.name for tensor in self.inputs)

    def __str__(self) -> str:
        return "\n".join(str(vertex) for vertex in self.vertices)


def _check_types(vertex: Vertex, types: Mapping[str, TensorType]) -> None:
    """Check that operands have one element type that only casts and some index maps change.

    Index maps that give a coordinate or compare with one have an element type of their own.
    """
    index = vertex.index
    if index is not None and (index.value is not None or index.hit is not None):
        return
    dtypes = {types[operand.tensor].dtype for operand in vertex.inputs}
    for step in vertex.maps:
        expected = step.source if isinstance(step, Cast) else step.dtype
        assert dtypes == {expected}, f"{vertex}: {step} works on {expected.value}"
        dtypes = {step.result}
    assert dtypes == {vertex.tensor.type.dtype}, f"{vertex}: element types do not agree"
