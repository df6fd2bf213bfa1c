"""Common subexpressions: vertices that compute the same become one.

Two vertices compute the same if their shapes are equal: the same operators over the same tensors,
with labels in the same places, whatever the labels' names are. Operands of a commutative ⊗ are
sorted first: by their tensors, and two of the same tensor by their labels.
"""

from __future__ import annotations

from collections.abc import Iterator

from ucle.foundation.dataclasses import dataclass
from ucle.ir.axis_functions import Along, TopK
from ucle.ir.index_maps import IndexMap
from ucle.ir.layouts import Label
from ucle.ir.maps import Pointwise
from ucle.ir.vertices import Operand, PairFunction, Vertex
from ucle.operators import Combine, Reduce


@dataclass(frozen=True)
class Shape:
    """The shape of a vertex, equal for equal work; labels are numbers, in order of first use."""

    tensors: tuple[str, ...]
    labels: tuple[tuple[int, ...], ...]
    kept: frozenset[int]
    combine: Combine | None
    maps: tuple[Pointwise, ...]
    reduce: Reduce | None
    index: IndexMap | None = None
    along: Along | None = None
    top: TopK | None = None
    pair: PairFunction | None = None
    bounds: tuple[int, ...] = ()
    """The bounds of the labels, if they decide the size of the result."""


def shape(vertex: Vertex) -> tuple[Shape, dict[Label, int]]:
    """Return the shape of a vertex, and the number of each of its labels in it.

    >>> from ucle.operators import COMBINES
    >>> from ucle.ir.tensor_types import NamedTensor, TensorType
    >>> i, j = Label("i", 2), Label("j", 2)
    >>> one, other = Operand("A", (i,)), Operand("B", (j,))
    >>> tensor = NamedTensor("T", TensorType((i, j)))
    >>> both = [Vertex(tensor, x, (i, j), COMBINES["mult"]) for x in [(one, other), (other, one)]]
    >>> shape(both[0])[0] == shape(both[1])[0]
    True
    """
    inputs = vertex.inputs
    if vertex.combine is not None and vertex.combine.commutative:
        inputs = tuple(sorted(inputs, key=lambda operand: operand.tensor))
        if inputs[0].tensor == inputs[1].tensor:
            return min((_shape(vertex, x) for x in (inputs, inputs[::-1])), key=_places)
    return _shape(vertex, inputs)


def _shape(vertex: Vertex, inputs: tuple[Operand, ...]) -> tuple[Shape, dict[Label, int]]:
    """Return the shape of a vertex with its operands in the given order."""
    order: dict[Label, int] = {}
    own = vertex.labels if vertex.relabels else ()
    for label in (*(x for operand in inputs for x in operand.labels), *own):
        order.setdefault(label, len(order))
    numbers = {label.name: str(number) for label, number in order.items()}
    shape = Shape(
        tuple(operand.tensor for operand in inputs),
        tuple(tuple(order[label] for label in operand.labels) for operand in inputs),
        frozenset(order[label] for label in vertex.labels),
        vertex.combine,
        vertex.maps,
        vertex.reduce,
        None if vertex.index is None else vertex.index.rename_labels(numbers),
        None if vertex.along is None else vertex.along.rename_labels(numbers),
        None if vertex.top is None else vertex.top.rename_labels(numbers),
        None if vertex.pair is None else vertex.pair.rename_labels(numbers),
        tuple(label.bound for label in order) if vertex.relabels else (),
    )
    return shape, order


def _places(found: tuple[Shape, dict[Label, int]]) -> tuple[object, ...]:
    shape, _ = found
    return shape.labels, sorted(shape.kept)


class SharedVertices:
    """The vertices of a program under construction, each computed once."""

    def __init__(self) -> None:
        self._vertices: list[Vertex] = []
        self._places: dict[Shape, int] = {}

    def __iter__(self) -> Iterator[Vertex]:
        return iter(self._vertices)

    def __len__(self) -> int:
        return len(self._vertices)

    def find(self, vertex: Vertex) -> Operand | None:
        """Return the tensor that already holds a vertex's result, under that vertex's labels."""
        key, order = shape(vertex)
        if (place := self._places.get(key)) is None:
            return None
        existing = self._vertices[place]
        own = {number: label for label, number in order.items()}
        _, theirs = shape(existing)
        labels = tuple(own[theirs[label]] for label in existing.labels)
        return Operand(existing.name, labels)

    def add(self, vertex: Vertex) -> None:
        """Add a vertex, which `find` then gives for those that compute the same."""
        self._places.setdefault(shape(vertex)[0], len(self._vertices))
        self._vertices.append(vertex)

    def replace_last(self, vertex: Vertex) -> None:
        """Replace the last vertex by one that computes the same under another name."""
        self._vertices[-1] = vertex

    @property
    def last(self) -> Vertex:
        """The vertex that was added last."""
        return self._vertices[-1]
