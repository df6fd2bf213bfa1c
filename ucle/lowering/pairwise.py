"""Turn a contraction and a tree of its factors into binary vertices, under temporary names.

Each label is aggregated as soon as no other factor needs it. Nothing is named, shared or added to a
program here, so that the costs and types of many trees can be computed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set

from ucle.ir.annihilation import annihilating
from ucle.ir.contraction_trees import Tree, joins
from ucle.ir.tensor_types import NamedTensor, TensorType
from ucle.ir.vertex_types import binary_type
from ucle.ir.vertices import Operand, Span, Vertex
from ucle.lowering.logical import Contraction, Labels
from ucle.operators import Combine, Reduce
from ucle.stats.estimate import Statistics

Factor = tuple[Labels, TensorType]
"""A factor of a join: its labels, axis by axis, and its type."""


def binary_vertex(
    name: str,
    operator: Combine,
    inputs: tuple[Operand, Operand],
    labels: Labels,
    reduce: Reduce | None,
    types: Mapping[str, TensorType],
    span: Span | None,
    exact: bool,
) -> Vertex:
    """Return the vertex for ⊗ of two operands, with its type.

    Raises:
        UcleError: as `ucle.ir.vertex_types.binary_type`.
    """
    one, other = (types[operand.tensor] for operand in inputs)
    if not exact:
        operator = annihilating(operator, one, other)
    every = (*inputs[0].labels, *inputs[1].labels)
    type_ = binary_type(operator, (one, other), every, labels, reduce, span)
    return Vertex(
        NamedTensor(name, type_), inputs, labels, combine=operator, reduce=reduce, span=span
    )


def alone(factors: Sequence[Labels], over: Labels) -> list[Labels]:
    """Return for each factor the aggregated labels that no other factor has.

    >>> from ucle.ir.layouts import Label
    >>> i, j, k = (Label(name, 2) for name in "ijk")
    >>> [[x.name for x in labels] for labels in alone([(i, j), (i, k), (i,)], (j, i))]
    [['j'], [], []]
    """
    holders = Counter(label for labels in factors for label in set(labels))
    own = {label for label in over if holders[label] == 1}
    return [tuple(label for label in labels if label in own) for labels in factors]


class Pairwise:
    """The vertices of one chain in any tree; work that two trees have in common is done once.

    The inputs of a vertex are factors, by the names that `leaf` gives, and other vertices of the
    same tree.

    Args:
        step: the chain.
        factors: factors to join, without maps and in one element type.
        span: span of the statement.
        exact: as in `ucle.lowering.logical.LogicalProgram`.
        wanted: labels in the preferred order of results.

    >>> from ucle.foundation.dtypes import DType
    >>> from ucle.ir.layouts import Label
    >>> from ucle.operators import COMBINES, SUM
    >>> from ucle.lowering.logical import Use
    >>> i, j, k, l = (Label(name, 2) for name in "ijkl")
    >>> sides = (i, j), (j, k), (k, l)
    >>> uses = tuple(Use(name, labels, DType.FLOAT64) for name, labels in zip("ABC", sides))
    >>> chain = Contraction("T.1", uses, COMBINES["mult"], SUM, (j, k), DType.FLOAT64, ((0, 1), 2))
    >>> pairwise = Pairwise(chain, [(labels, TensorType(labels)) for labels in sides])
    >>> print(*pairwise.vertices((0, (1, 2))), sep="; ")
    (3)[j,l] += (1)[j,k] * (2)[k,l]; (4)[i,l] += (0)[i,j] * (3)[j,l]
    """

    def __init__(
        self,
        step: Contraction,
        factors: Sequence[Factor],
        span: Span | None = None,
        exact: bool = True,
        wanted: Labels = (),
    ) -> None:
        over = set(step.over)
        self._wanted = wanted
        self._step, self._span, self._exact = step, span, exact
        self._kept = {x.name for labels, _ in factors for x in labels if x not in over}
        self._operands = [Operand(leaf(n), labels) for n, (labels, _) in enumerate(factors)]
        self._types = {leaf(n): type_ for n, (_, type_) in enumerate(factors)}
        self._holders = Counter(name for x in self._operands for name in set(x.names))
        self._vertices: dict[tuple[str, str], Vertex] = {}
        self.ranked: dict[tuple[Tree | Statistics | str, ...], tuple[Tree, ...]] = {}
        """Trees that were ranked, by the written tree, the statistics of the factors, and for each
        the first that is the same tensor."""

    @property
    def factors(self) -> tuple[Operand, ...]:
        """The factors to join, by the names that `leaf` gives."""
        return tuple(self._operands)

    def join_factors(self, left: Operand, right: Operand, others: Iterable[Operand]) -> Vertex:
        """Return the vertex that joins two operands while `others` are still to be joined.

        Raises:
            UcleError: as `binary_vertex`.
        """
        return self._get_vertex(
            left, right, Counter(x for other in others for x in set(other.names))
        )

    def vertices(self, tree: Tree) -> list[Vertex]:
        """Return the vertices of a tree, each after those that it reads.

        Raises:
            UcleError: as `binary_vertex`.
        """
        waiting = dict(enumerate(self._operands))
        holders = self._holders.copy()
        vertices = list[Vertex]()
        for first, second in joins(tree):
            left, right = waiting.pop(first), waiting.pop(second)
            for factor in (left, right):
                holders.subtract(set(factor.names))
            vertex = self._get_vertex(left, right, holders)
            vertices.append(vertex)
            waiting[first] = Operand(vertex.name, vertex.labels)
            holders.update(set(vertex.names))
        return vertices

    def _get_vertex(self, left: Operand, right: Operand, holders: Mapping[str, int]) -> Vertex:
        key = left.tensor, right.tensor
        vertex = self._vertices.get(key)
        if vertex is None:  # the needed labels follow from the factors joined
            vertex = self._vertices[key] = self._vertex(left, right, holders)
        return vertex

    def _vertex(self, left: Operand, right: Operand, holders: Mapping[str, int]) -> Vertex:
        step = self._step
        assert step.combine is not None
        names = {*left.names, *right.names}
        needed = {name for name in names if name in self._kept or holders[name]}
        pair = left, right
        labels = labels_in_place(
            left.labels, right.labels, needed, self._wanted, by_right=self._is_fuller(*pair, needed)
        )
        reduce = step.reduce if len(labels) < len({*left.labels, *right.labels}) else None
        name = leaf(len(self._types))
        rest = self._types, self._span, self._exact
        vertex = binary_vertex(name, step.combine, pair, labels, reduce, *rest)
        self._types[name] = vertex.tensor.type
        return vertex

    def _is_fuller(self, left: Operand, right: Operand, needed: Set[str]) -> bool:
        """True if the right one of two matrices that begin with a summed label is the dense one."""
        if not len(left.labels) == len(right.labels) == 2 or left.names[0] != right.names[0]:
            return False
        if left.names[0] in needed:
            return False
        return self._types[right.tensor].covers_axes and not self._types[left.tensor].covers_axes


def leaf(number: int) -> str:
    """Return the name of a factor that has no name yet; no tensor has such a name."""
    return f"({number})"


class KnownPairwise:
    """A cache of the `Pairwise` of all chains, by the arguments that decide them."""

    def __init__(self) -> None:
        self._known: dict[tuple[object, ...], Pairwise] = {}

    def of(
        self,
        step: Contraction,
        factors: Sequence[Factor],
        span: Span | None,
        exact: bool,
        wanted: Labels,
    ) -> Pairwise:
        """Return the `Pairwise` of a chain; the arguments are those of `Pairwise`."""
        key = step.combine, step.reduce, step.over, tuple(factors), span, exact, wanted
        if key not in self._known:
            self._known[key] = Pairwise(step, factors, span, exact, wanted)
        return self._known[key]


def labels_in_place(
    left: Labels,
    right: Labels,
    needed: Set[str],
    wanted: Labels = (),
    *,
    by_right: bool = False,
) -> Labels:
    """Return the needed labels of a product, in the order of the factor that has more labels.

    Labels that only the other factor has take the places of the aggregated labels. So a state keeps
    the order of its axes whatever is applied to it, and kernels work on long runs of it. If both
    factors have the same number of labels, the one whose order is `wanted` decides: an operator may
    stand on either side. If neither is wanted, the left one does, or the right one if `by_right`:
    that of a sparse and a dense matrix is the order of the dense one, whose rows the entries of the
    sparse one select and whose columns stay next to each other.

    >>> from ucle.ir.layouts import Label
    >>> i, j, k, l = (Label(name, 2) for name in "ijkl")
    >>> [x.name for x in labels_in_place((i, j), (k, j, l), {"i", "k", "l"})]
    ['k', 'i', 'l']
    >>> [x.name for x in labels_in_place((j, i), (j, k), {"i", "k"}, wanted=(i, k))]
    ['i', 'k']
    >>> [x.name for x in labels_in_place((j, i), (j, k), {"i", "k"}, by_right=True)]
    ['i', 'k']
    """
    if len(left) == len(right):
        found = [_in_place(*pair, needed) for pair in ((left, right), (right, left))]
        order = tuple(label for label in wanted if label.name in needed)
        return order if order in found else found[by_right]
    base, other = (left, right) if len(left) > len(right) else (right, left)
    return _in_place(base, other, needed)


def _in_place(base: Labels, other: Labels, needed: Set[str]) -> Labels:
    new = [label for label in other if label not in base and label.name in needed]
    gone = [label for label in other if label in base and label.name not in needed]
    places = dict(zip(gone, new, strict=False))
    order = [places.get(label, label) for label in base] + new[len(gone) :]
    return tuple(dict.fromkeys(label for label in order if label.name in needed))
