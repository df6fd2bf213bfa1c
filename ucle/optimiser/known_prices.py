"""Prices that are known already, by signatures that leave out what no price depends on.

A program of unrolled steps has the same few vertices again and again, and programs that differ in
the order of a few operations have most of theirs in common. What a price depends on is the
operators of a vertex, its labels, the sizes and the element type of its tensors, and their
statistics; the range of the entries, which is another one in each step, matters only by which fill
absorbs the other side's entries.

Signatures are numbers of two kinds. A *structural* number stands for the same operations on the
same inputs, whatever their labels are called: it needs no statistics. A *signature* stands for all
tensors or vertices that look alike to prices. It needs the statistics of a tensor in all layouts,
so that tensors with many axes have a signature of their own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy

from ucle.ir.fills import absorbed_sides
from ucle.ir.layouts import Decomposition, Layout
from ucle.ir.tensor_types import TensorType
from ucle.ir.vertices import Program, Vertex
from ucle.optimiser.alternatives import Alternatives
from ucle.optimiser.sizes import SizedProgram
from ucle.plan.decomposition import VertexCost

VERTEX_WORK, FIT_WORK, REPARTITION_WORK = 80_000.0, 40_000.0, 20_000.0
"""Nanoseconds that it takes to price a vertex, to compare it with the limits, and to price a
repartition: by least squares over some 500 programs of the searches of the benchmarks."""

MOST_AXES = 4
"""The most axes of a tensor whose statistics are compared: it has 2^axes layouts."""


Wiring = tuple[tuple[int, ...], ...]
"""The numbers of a program's inputs, the places of its outputs, and for each vertex its number and
the places of its operands."""


class Prices:
    """A cache of prices for programs over the same inputs, under one profile and resources."""

    def __init__(self) -> None:
        self.repartitions: dict[tuple[int, Layout | None, Layout], float] = {}
        """By the signature of the tensor."""
        self.vertices: dict[tuple[int, Decomposition], VertexCost] = {}
        self.fits: dict[tuple[int, Decomposition], bool] = {}
        """Both by the signature of the vertex."""
        self.fits_whole: dict[tuple[int, Decomposition], bool] = {}
        self.small: dict[int, bool] = {}
        """Both by structural number."""
        self.asked: dict[tuple[int, Decomposition], VertexCost] = {}
        """The prices of vertices that one search asked for, by structural number."""
        self.alternatives: dict[tuple[int, tuple[Decomposition, ...]], Alternatives] = {}
        """By structural number."""
        self.solutions: dict[Wiring, tuple[Decomposition, ...]] = {}
        """The optima of the programs of one search that were solved exactly."""
        self._numbers: dict[tuple[object, ...], int] = {}
        self._signatures: dict[tuple[object, ...], int] = {}
        self._tensors: dict[int, int] = {}
        self._vertices: dict[int, int] = {}
        """Signatures by structural number."""

    def for_search(self) -> Prices:
        """Return the same cache for another search, whose effort is counted from 0."""
        other = copy(self)
        other.asked, other.alternatives, other.solutions = {}, {}, {}
        return other

    @property
    def work(self) -> float:
        """The nanoseconds of work in all prices, by their number: the same on every machine."""
        return (
            VERTEX_WORK * len(self.vertices)
            + FIT_WORK * (len(self.fits) + len(self.fits_whole))
            + REPARTITION_WORK * len(self.repartitions)
        )

    def number_tensors(self, program: Program) -> dict[str, int]:
        """Return the structural number of every tensor of a program."""
        number_of = {x.name: self._number(x.name, x.type) for x in program.inputs}
        for vertex in program.vertices:
            place_of = {name: place for place, name in enumerate(vertex.label_names)}
            labels = vertex.names, *(operand.names for operand in vertex.inputs)
            places = tuple(tuple([place_of[name] for name in names]) for names in labels)
            read = tuple(number_of[operand.tensor] for operand in vertex.inputs)
            work = _work(vertex, {name: str(place) for name, place in place_of.items()})
            number_of[vertex.name] = self._number(*_facts(vertex.tensor.type), read, places, *work)
        return number_of

    def _number(self, *work: object) -> int:
        return self._numbers.setdefault(work, len(self._numbers))

    def sign_tensor(self, sized: SizedProgram, name: str, number: int, *, fixed: bool) -> int:
        """Return the signature of a tensor.

        Args:
            sized: a program with the tensor.
            name: its name there.
            number: its structural number.
            fixed: True if it is computed once for all runs.
        """
        if (signature := self._tensors.get(number)) is None:
            type_ = sized.program.types[name]
            if name in sized.program.input_names or type_.rank > MOST_AXES:
                signature = self._sign(number)
            else:
                seen = sized.statistics.signature(name)
                rows = sized.row_tables.get(name)
                signature = self._sign(type_.shape, type_.dtype, fixed, rows, *seen)
            self._tensors[number] = signature
        return signature

    def sign_vertex(
        self, sized: SizedProgram, vertex: Vertex, number: int, made: int, read: Sequence[int]
    ) -> int:
        """Return the signature of a vertex.

        Args:
            sized: a program with the vertex.
            vertex: the vertex.
            number: the structural number of its tensor.
            made: the signature of its tensor.
            read: the signatures of its operands.
        """
        if (signature := self._vertices.get(number)) is None:
            types = [sized.program.types[operand.tensor] for operand in vertex.inputs]
            absorbed = absorbed_sides(vertex, *types) if len(types) == 2 else None
            labels = vertex.labels, *(operand.labels for operand in vertex.inputs)
            own = {name: name for name in vertex.label_names}
            signature = self._sign(made, *read, absorbed, *labels, *_work(vertex, own))
            self._vertices[number] = signature
        return signature

    def _sign(self, *seen: object) -> int:
        return self._signatures.setdefault(seen, len(self._signatures))


def _facts(type_: TensorType) -> tuple[object, ...]:
    """A type without the names of its labels."""
    entries = type_.values, type_.covered, type_.occupied, type_.decided
    return type_.shape, type_.dtype, type_.fill, *entries


def _work(vertex: Vertex, names: Mapping[str, str]) -> tuple[object, ...]:
    """The operators of a vertex, with these names of its labels."""
    named = vertex.index, vertex.along, vertex.top, vertex.pair
    renamed = (each and each.rename_labels(names) for each in named)
    return vertex.combine, vertex.maps, vertex.reduce, *renamed
