"""Lazy tensors as data: a DAG each of whose nodes is one EinSum.

A node reads other nodes with labels, joins them by a function, aggregates the labels that its
output does not have, and gives the rest in order: a statement of the language without a name. A
`Lazy` is a node together with its axes. Axes of size 1 have no label: they are only noted, which
makes broadcasting a matter of labels that an operand does not have.

Nothing here computes, and nothing knows of NumPy's rules (`ucle.lazy.elementwise` and its siblings)
or of Python's operators (`ucle.lazy.tensor`). `ucle.lazy.statements` makes statements of nodes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from ucle.foundation.dtypes import DType, Scalar
from ucle.ir.affine import Affine
from ucle.ir.conditions import All, Compare, Condition, Some
from ucle.language.functions import function_named
from ucle.language.syntax import Index
from ucle.language.top_k import FirstFunction
from ucle.operators import COMBINES, REDUCES, Combine, PointwiseMap, Reduce

Function = Combine | PointwiseMap | DType | str
Aggregation = Reduce | Literal["dot"]

TYPED = frozenset(
    {"where", "difference", "size_squared"}
    | {"bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_invert"}
)
"""Functions that mean different things for different types."""


PLACES = (Compare, All, Some, Affine)
"""What an operand of labels alone is."""


@dataclass(frozen=True)
class Axis:
    """One axis of a lazy tensor.

    `name` is None for an axis that has only a position. `size` is None where the data of a table
    tells it, when the program is compiled. `encoded` says that coordinates are values of a
    dictionary and not positions.
    """

    name: str | None = None
    size: int | None = None
    encoded: bool = False

    @property
    def unit(self) -> bool:
        """Whether it is known to have one position, and so needs no label."""
        return self.size == 1

    def __str__(self) -> str:
        size = "?" if self.size is None else str(self.size)
        return size if self.name is None else f"{self.name}: {size}"


Axes = tuple[Axis, ...]


@dataclass(frozen=True, eq=False)
class Leaf:
    """An input: anything that `einsum_program` takes, with an axis for each of its labels."""

    value: Any
    axes: Axes
    name: str = "X"
    dtype: DType | None = None
    database: Any = None


@dataclass(frozen=True)
class Operand:
    """A node or a number as it is read; labels are numbers that mean something in one node only.

    With `indices` a node is read at functions of its labels, which these call by their numbers. A
    condition on labels is an operand, too, of yes and no, and so is a function of labels, of
    integers.
    """

    source: Node | Scalar | Condition | Affine
    labels: tuple[int, ...] = ()
    indices: tuple[Index, ...] | None = None


@dataclass(frozen=True)
class FirstAlong:
    """What comes first along a label: so many entries, with a label for their ranks."""

    function: FirstFunction
    label: int
    rank: int | None = None
    """None where there is one entry."""
    count: int = 1


@dataclass(frozen=True, eq=False)
class Apply:
    """One EinSum: operands, joined by a function, aggregated to the output's labels.

    `function` is a ⊗, a map or a cast; None stands for the one operand itself. It is a name where
    it is written with others, or one of `TYPED`: what that means is known when types are, as with
    the aggregation ``"dot"``. `axes` are those of the output's labels.
    """

    function: Function | None
    operands: tuple[Operand, ...]
    output: tuple[int, ...]
    axes: Axes
    reduce: Aggregation | None = None
    along: tuple[Reduce | str, tuple[int, ...]] | None = None
    """What the one operand is aggregated by up to each position of a label, which stays; or the
    function of matrices, and the labels of their axes."""
    first: FirstAlong | None = None
    """What it says of the first entries of the one operand along a label."""

    @property
    def title(self) -> str | None:
        """What messages call it."""
        if self.along is not None:
            what, _ = self.along
            return what if isinstance(what, str) else f"cum{what.stem}"
        if self.first is not None:
            return self.first.function.name
        match self.reduce or self.function:
            case DType(value=name):
                return name
            case str() | None as name:
                return name
            case operator:
                return operator.name

    @property
    def trivial(self) -> bool:
        """Whether it computes nothing."""
        plain = self.function is None and self.reduce is None and self.along is None
        return plain and not self.placed

    @property
    def placed(self) -> bool:
        """Whether it computes with labels or along one, or reads elsewhere, or repeats."""
        read = {label for operand in self.operands for label in operand.labels}
        return (
            not read.issuperset(self.output)
            or self.first is not None
            or any(x.indices is not None or isinstance(x.source, PLACES) for x in self.operands)
        )


@dataclass(frozen=True, eq=False)
class Backward:
    """What a tensor without axes is differentiated by, all in one pass."""

    loss: Node
    by: tuple[Node, ...]


@dataclass(frozen=True, eq=False)
class Gradient:
    """One of the gradients that a backward pass gives."""

    backward: Backward
    number: int

    @property
    def axes(self) -> Axes:
        """Those of what the loss is differentiated by."""
        return self.backward.by[self.number].axes


Node = Leaf | Apply | Gradient


@dataclass(frozen=True, eq=False)
class Lazy:
    """A node and all the axes of its tensor; those of size 1 are not among the node's."""

    node: Node
    axes: Axes

    @property
    def labelled(self) -> tuple[int, ...]:
        """Positions of the axes that have a label."""
        return tuple(n for n, axis in enumerate(self.axes) if not axis.unit)

    @property
    def named(self) -> bool:
        """Whether its axes have names; without axes it is named and unnamed alike."""
        return any(axis.name is not None for axis in self.axes)

    def operand(self, labels: Iterable[int]) -> Operand:
        """The tensor as it is read with a label for each of its axes, also those of size 1."""
        axis_labels = tuple(labels)
        return Operand(self.node, tuple(axis_labels[n] for n in self.labelled))

    def __str__(self) -> str:
        return f"({', '.join(map(str, self.axes))})"


def sources(node: Node) -> tuple[Node, ...]:
    """The nodes that a node reads, in order."""
    match node:
        case Leaf():
            return ()
        case Gradient(backward):
            return (backward.loss, *backward.by)
    return tuple(o.source for o in node.operands if isinstance(o.source, Node))


def in_order(outputs: Iterable[Node]) -> tuple[Node, ...]:
    """Every node that outputs depend on, once, after those that it reads.

    Not recursive: programs that iterate are thousands of nodes deep.
    """
    ordered: dict[Node, None] = {}
    for output in outputs:
        waiting = [(output, iter(sources(output)))]
        while waiting:
            node, unvisited = waiting[-1]
            following = next((source for source in unvisited if source not in ordered), None)
            if following is None:
                ordered.setdefault(node)
                waiting.pop()
            else:
                waiting.append((following, iter(sources(following))))
    return tuple(ordered)


def apply(
    function: str | None,
    operands: Iterable[Operand],
    axes: Iterable[Axis],
    labels: Iterable[int] | None = None,
    *,
    reduce: str | None = None,
) -> Lazy:
    """A lazy tensor with these axes, whose labels are their positions or the ones given.

    Names are those of the operators that there are now, whatever is registered later.
    """
    every = tuple(axes)
    axis_labels = tuple(range(len(every)) if labels is None else labels)
    output = tuple(x for x, axis in zip(axis_labels, every, strict=True) if not axis.unit)
    long = tuple(axis for axis in every if not axis.unit)
    operation = None if function is None else _function(function)
    aggregation = None if reduce is None else _aggregation(reduce)
    return Lazy(Apply(operation, tuple(operands), output, long, aggregation), every)


def _function(name: str) -> Function:
    return name if name in TYPED else COMBINES.get(name) or function_named(name)


def _aggregation(name: str) -> Aggregation:
    return "dot" if name == "dot" else REDUCES[name]
