"""The axes of inputs whose sizes stay open, and the sizes of labels, as numbers or as nodes.

Axes of one size are one class (`ucle.language.bounds.SizeClasses`). A class is open if inputs of
the model alone determine it. It is closed, at the size that the program was compiled for, if an
axis of a weight belongs to it, if the caller has stated its size, or if a tensor is read along it
elsewhere than at a label.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from ucle.export.graph import Graph, Value
from ucle.foundation.dataclasses import dataclass
from ucle.foundation.dtypes import DType
from ucle.foundation.names import find_free_name
from ucle.language.bounds import Bounds, SizeClasses, size_classes
from ucle.language.syntax import First, Pairs, Reindexed, Site, Statement, accesses, walk

Extent = int | Value
"""The size of a label: a number, or a node that gives it."""


@dataclass(frozen=True)
class OpenAxes:
    """The classes of axes that stay open.

    Args:
        classes: of all axes and labels.
        bounds: the sizes that the program was compiled for.
        names: the name of each open class.
        sources: the input and the axis that give the size of each.
        reasons: why other classes are closed.
    """

    classes: SizeClasses
    bounds: Bounds
    names: Mapping[Site, str]
    sources: Mapping[Site, tuple[str, int]]
    reasons: Mapping[Site, str]

    def dimension(self, tensor: str, axis: int) -> str | int:
        """The name of an open axis, or the size of a closed one."""
        name = self.names.get(self.classes.find((tensor, axis)))
        return self.bounds.sizes[tensor, axis] if name is None else name

    def label(self, target: str, name: str) -> str | int:
        """The name of an open label of a statement, or the size of a closed one."""
        own = self.names.get(self.classes.find((target, name)))
        return self.bounds.sizes[target, name] if own is None else own

    def why_closed(self, tensor: str, axis: int) -> str | None:
        """Why an axis is closed; None if it is open."""
        return self.reasons.get(self.classes.find((tensor, axis)))


def find_open_axes(
    statements: Sequence[Statement],
    bounds: Bounds,
    inputs: Mapping[str, tuple[str, ...]],
    weights: Collection[str],
    stated: Collection[str],
) -> OpenAxes:
    """Find the axes that stay open.

    Args:
        statements: resolved, all that the outputs need.
        bounds: the sizes of the program.
        inputs: inputs of the model, with names of their axes.
        weights: the other inputs.
        stated: labels whose bounds the caller has stated.
    """
    classes = size_classes(tuple(statements))
    reasons: dict[Site, str] = {}
    for site, reason in _closed(statements, classes, weights, stated):
        reasons.setdefault(classes.find(site), reason)
    names: dict[Site, str] = {}
    sources: dict[Site, tuple[str, int]] = {}
    for tensor, labels in inputs.items():
        for axis, label in enumerate(labels):
            root = classes.find((tensor, axis))
            if root not in reasons and root not in names:
                names[root] = find_free_name(label, names.values())
                sources[root] = tensor, axis
    return OpenAxes(classes, bounds, names, sources, reasons)


def _closed(
    statements: Sequence[Statement],
    classes: SizeClasses,
    weights: Collection[str],
    stated: Collection[str],
) -> Iterator[tuple[Site, str]]:
    """Yield the sites of closed classes, with reasons."""
    for statement in statements:
        target, expression = statement.target.tensor, statement.expression
        for access in accesses(expression):
            if access.tensor in weights:
                for axis in range(len(access.labels)):
                    yield (access.tensor, axis), f"the weight {access.tensor} has this axis"
        labels = {*statement.target.labels}
        for part in walk(expression):
            labels.update(part.labels)
            if isinstance(part, First | Pairs) and part.rank is not None:
                yield (target, part.rank), f"{part.rank} counts what comes first"
            if isinstance(part, Pairs):
                yield (target, part.part), "it tells values from positions"
        for label in labels:
            if statement.renamed.get(label, label) in stated or label in statement.sizes:
                yield (target, label), f"the size of {label} is stated"
        if isinstance(expression, Reindexed):
            yield from _moved(target, expression, classes)


def _moved(target: str, read: Reindexed, classes: SizeClasses) -> Iterator[tuple[Site, str]]:
    """Yield the axes that a statement reads elsewhere than at labels of the same size."""
    tensor = read.source.tensor
    for axis, index in enumerate(read.indices):
        label, site = index.affine.label, (tensor, axis)
        same = label is not None and classes.find((target, label)) == classes.find(site)
        if not same or index.permissive:
            reason = f"{tensor} is read at {index}"
            yield site, reason
            yield from (((target, x), reason) for x in index.affine.labels)
    if read.hit is not None and read.hit.made:
        yield (target, read.hit.label), f"{read.hit.read} is written at positions"


@dataclass
class Extents:
    """The sizes of the labels of one statement, and their coordinates.

    Args:
        axes: the axes that stay open.
        graph: where nodes are added.
        inputs: the inputs of the model.
        target: the tensor of the statement.
    """

    axes: OpenAxes
    graph: Graph
    inputs: Mapping[str, Value]
    target: str

    def size(self, label: str) -> Extent:
        """The size of a label."""
        site = self.target, label
        source = self.axes.sources.get(self.axes.classes.find(site))
        if source is None:
            return self.axes.bounds.sizes[site]
        tensor, axis = source
        shape = self.graph.node("Shape", (self.inputs[tensor],), DType.INT64)
        return self.graph.node("Gather", (shape, self.graph.constant(axis, DType.INT64)),
                               DType.INT64, axis=0)  # fmt: skip

    def number(self, label: str) -> int:
        """The size that the program was compiled for."""
        return self.axes.bounds.sizes[self.target, label]

    def count(self, labels: Sequence[str]) -> Extent:
        """The number of entries along labels."""
        sizes = [self.size(label) for label in labels]
        known = prod(size for size in sizes if isinstance(size, int))
        result: Any = None
        for size in sizes:
            if isinstance(size, Value):
                result = size if result is None else result * size
        return known if result is None else result if known == 1 else result * known

    def shape(self, labels: Sequence[str]) -> Value:
        """The sizes of labels as a list."""
        sizes = [self.size(label) for label in labels]
        known = [size for size in sizes if isinstance(size, int)]
        if len(known) == len(sizes):
            return self.graph.integers(known)
        parts = [
            self.graph.integers([size]) if isinstance(size, int) else size.axes("Unsqueeze", [0])
            for size in sizes
        ]
        return self.graph.node("Concat", parts, DType.INT64, axis=0)

    def coordinates(self, label: str) -> Any:
        """The coordinates of a label: an array, or a node if its size is open."""
        size = self.size(label)
        if isinstance(size, int):
            return np.arange(size, dtype=np.int64)
        zero, one = (self.graph.constant(n, DType.INT64) for n in (0, 1))
        return self.graph.node("Range", (zero, size, one), DType.INT64)
