"""Lazy tensors as data: a DAG in which each node is one EinSum.

A node reads other nodes with labels, combines them by a function, aggregates the labels that its
output does not have, and returns the rest in order: an unnamed statement of the language. A `Lazy`
is a node together with its axes. Axes of size 1 have no label and are only recorded, so that
broadcasting means that an operand lacks a label.

Nothing here computes, or depends on NumPy's rules (`ucle.lazy.elementwise` and related modules) or
on Python's operators (`ucle.lazy.tensor`). `ucle.lazy.statements` translates nodes to statements.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

from ucle.foundation.dataclasses import dataclass
from ucle.foundation.dtypes import DType, Scalar
from ucle.ir.affine import Affine
from ucle.ir.conditions import All, Compare, Condition, Some
from ucle.language.functions import FirstFunction, function_named
from ucle.language.syntax import Index
from ucle.operators import COMBINES, REDUCES, Combine, PointwiseMap, Reduce

Function = Combine | PointwiseMap | DType | str
Aggregation = Reduce | Literal["dot"]

AVERAGE = "average"
"""A sum divided by a count, in the type of the sum."""

TYPED = frozenset(
    {"where", "difference", "size_squared", AVERAGE}
    | {"bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_invert"}
)
"""Functions whose meaning depends on the types of operands."""


PLACES = (Compare, All, Some, Affine)
"""The kinds of operands that consist of labels only."""


@dataclass(frozen=True)
class Axis:
    """One axis of a lazy tensor.

    `name` is None for an axis that has only a position. `size` is None if it comes from the data of
    a table when the program is compiled. `encoded` is true if coordinates are values of a
    dictionary and not positions.
    """

    name: str | None = None
    size: int | None = None
    encoded: bool = False

    @property
    def unit(self) -> bool:
        """True if it is known to have size 1, and so needs no label."""
        return self.size == 1

    def __str__(self) -> str:
        size = "?" if self.size is None else str(self.size)
        return size if self.name is None else f"{self.name}: {size}"


Axes = tuple[Axis, ...]


@dataclass(frozen=True, eq=False)
class Leaf:
    """An input of any kind that `einsum_program` takes, with an axis for each of its labels."""

    value: Any
    axes: Axes
    name: str = "X"
    dtype: DType | None = None
    database: Any = None


@dataclass(frozen=True)
class NodeOperand:
    """A node or a number as it is read; labels are numbers that are local to one node.

    With `indices`, a node is read at functions of its labels, which refer to them by number. A
    condition on labels is a boolean operand, and a function of labels is an integer operand.
    """

    source: Node | Scalar | Condition | Affine
    labels: tuple[int, ...] = ()
    indices: tuple[Index, ...] | None = None


@dataclass(frozen=True)
class FirstAlong:
    """The first entries along a label: their number, and a label for their ranks."""

    function: FirstFunction
    label: int
    rank: int | None = None
    """None if there is only one entry."""
    count: int = 1


@dataclass(frozen=True, eq=False)
class Apply:
    """One EinSum: operands, combined by a function, aggregated to the output's labels.

    `function` is a ⊗, a map or a cast; None returns the only operand itself. It is a string if it
    is composed of other functions, or is one of `TYPED`, whose meaning depends on types, as does
    the aggregation ``"dot"``. `axes` are those of the output's labels.
    """

    function: Function | None
    operands: tuple[NodeOperand, ...]
    output: tuple[int, ...]
    axes: Axes
    reduce: Aggregation | None = None
    along: tuple[Reduce | str, tuple[int, ...]] | None = None
    """The scan of the only operand along a label, which is kept, or a function of matrices.

    The second part is the label of the scan, or the labels of the matrices' axes. ``solve`` has two
    operands: matrices and right-hand sides, which have the first of these labels.
    """
    first: FirstAlong | None = None
    """The first entries of the only operand along a label, if requested."""
    flat: bool = False
    """True if the only label of the output numbers all entries of the only operand, in order."""

    @property
    def title(self) -> str | None:
        """The name of the node in messages."""
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
        """True if it computes nothing."""
        plain = self.function is None and self.reduce is None and self.along is None
        return plain and not self.placed

    @property
    def placed(self) -> bool:
        """True if it uses positions: by indices, conditions, first entries or repetition."""
        read = {label for operand in self.operands for label in operand.labels}
        return (
            not read.issuperset(self.output)
            or self.first is not None
            or any(x.indices is not None or isinstance(x.source, PLACES) for x in self.operands)
        )


@dataclass(frozen=True, eq=False)
class Backward:
    """A tensor without axes, and the tensors by which it is differentiated in one pass."""

    loss: Node
    by: tuple[Node, ...]


@dataclass(frozen=True, eq=False)
class Gradient:
    """One of the gradients that a backward pass computes."""

    backward: Backward
    number: int

    @property
    def axes(self) -> Axes:
        """The axes of the tensor by which the loss is differentiated."""
        return self.backward.by[self.number].axes


Node = Leaf | Apply | Gradient


@dataclass(frozen=True, eq=False)
class Lazy:
    """A node and all axes of its tensor; the node itself lacks those of size 1."""

    node: Node
    axes: Axes

    @property
    def labelled(self) -> tuple[int, ...]:
        """Positions of the axes that have a label."""
        return tuple(n for n, axis in enumerate(self.axes) if not axis.unit)

    @property
    def named(self) -> bool:
        """True if its axes have names; a rank-0 tensor combines with named and unnamed axes."""
        return any(axis.name is not None for axis in self.axes)

    def operand(self, labels: Iterable[int]) -> NodeOperand:
        """The tensor as an operand, given a label for each axis, including those of size 1."""
        axis_labels = tuple(labels)
        return NodeOperand(self.node, tuple(axis_labels[n] for n in self.labelled))

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
    """The nodes that outputs depend on, each once, after those that it reads.

    Not recursive: programs with loops are thousands of nodes deep.
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
    operands: Iterable[NodeOperand],
    axes: Iterable[Axis],
    labels: Iterable[int] | None = None,
    *,
    reduce: str | None = None,
) -> Lazy:
    """Make a lazy tensor with these axes, labelled by position unless labels are given.

    Names refer to the operators that are registered now, whatever is registered later.
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
