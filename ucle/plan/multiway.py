"""Multiway joins: a sum of products of many matrices and vectors, computed label by label.

Binary joins of a cyclic pattern make tensors of three and more labels, which may have many times
the entries of the result. The kernel ``multiway`` (``udf_kernels/csrc/multiway.h``) makes none: it
binds one label after the other, and intersects the lists of positions that the matrices leave for
the others.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

from ucle.foundation.dataclasses import dataclass
from ucle.foundation.dtypes import DType
from ucle.ir.layouts import Layout
from ucle.ir.vertices import Operand, Vertex

WEIGHT_BYTES = {DType.FLOAT64: 8, DType.FLOAT32: 8, DType.INT64: 16, DType.BOOL: 1}
"""The bytes of a weight or sum in the kernel, which are as wide as makes them exact."""

INDEX_BYTES, KEY_BYTES = 4, 8

MOST_GIVEN, MOST_REMEMBERED = 2, 1 << 16
"""Limits of the sums that the kernel remembers: the labels that they depend on, and how many."""


@dataclass(frozen=True)
class CandidateList:
    """The positions of `label` that remain once `binder` is bound.

    They are the entries of a row of the matrix `operand` that are also in the list `source`; None
    for all entries. `scales` are the vectors by which the entries are multiplied.
    """

    binder: int
    label: int
    source: int | None
    operand: int
    scales: tuple[int, ...] = ()


@dataclass(frozen=True)
class LoopNest:
    """The order in which labels are bound, and the lists that this makes.

    Labels have numbers; 0 is bound first, and the labels below one are independent of each other
    once it and those above it are bound. `parents` and `walked` hold for each label but the first
    the one above it, and the list whose positions it takes. `scales` are the vectors of label 0,
    `output` is the label of the result's last axis, if it has any. Lists are in the order of their
    binders.
    """

    output: int | None
    scales: tuple[int, ...]
    lists: tuple[CandidateList, ...]
    parents: tuple[int, ...]
    walked: tuple[int, ...]

    @cached_property
    def way(self) -> frozenset[int]:
        """The labels from the first one, which is left out, to that of the result's last axis."""
        found, label = set[int](), self.output or 0
        while label:
            found.add(label)
            label = self.parents[label - 1]
        return frozenset(found)

    @cached_property
    def given(self) -> tuple[frozenset[int], ...]:
        """For each label but the first, those above on which sums over it and those below depend.

        The kernel remembers such sums.
        """
        binders: list[set[int]] = [set() for _ in range(len(self.parents) + 1)]
        for label in range(len(self.parents), 0, -1):
            number: int | None = self.walked[label - 1]
            while number is not None:
                binders[label].add(self.lists[number].binder)
                number = self.lists[number].source
            binders[self.parents[label - 1]] |= binders[label]
        # The labels below have higher numbers, but not all labels with higher numbers are below.
        return tuple(
            frozenset(x for x in binders[label] if x in self._above(label))
            for label in range(1, len(binders))
        )

    def _above(self, label: int) -> frozenset[int]:
        found = set[int]()
        while label:
            label = self.parents[label - 1]
            found.add(label)
        return frozenset(found)

    @cached_property
    def listed(self) -> frozenset[int]:
        """The lists whose positions are kept: those walked, and those that others are made of.

        Of the others, the kernel needs the sum alone.
        """
        walked = {
            number
            for label, number in enumerate(self.walked, 1)
            if label in self.way or label in self.parents
        }
        return frozenset(walked | self.sources)

    @cached_property
    def sources(self) -> frozenset[int]:
        """The lists that others are made of."""
        return frozenset(each.source for each in self.lists if each.source is not None)

    @cached_property
    def remembered(self) -> tuple[int, ...]:
        """The labels whose sums are remembered: those that depend on few of the labels above."""
        return tuple(
            label
            for label, given in enumerate(self.given, 1)
            if label not in self.way
            and label in self.parents
            and len(given) <= MOST_GIVEN
            and len(given) < len(self._above(label))
        )

    def held_bytes(self, dtype: DType, sizes: Sequence[int], longest: Sequence[float]) -> float:
        """Return the bytes that the kernel works with, beside operands and result.

        Args:
            dtype: the type of the entries.
            sizes: the positions of each label.
            longest: the entries of the longest row of each list's matrix.

        Triangles over 1000 positions, in rows of 10 entries at most:

        >>> lists = CandidateList(0, 1, None, 0), CandidateList(1, 2, 0, 0)
        >>> nest = LoopNest(None, (), lists, (0, 1), (0, 1))
        >>> nest.held_bytes(DType.FLOAT64, (1000, 1000, 1000), (10, 10))
        8140.0
        """
        weight = WEIGHT_BYTES[dtype]
        total = float(sum((longest[n] + 1) * (INDEX_BYTES + weight) for n in self.listed))
        total += sum(sizes[self.lists[n].label] * weight for n in self.sources)
        for label in self.remembered:
            sums = min(math.prod(sizes[x] for x in self.given[label - 1]), MOST_REMEMBERED)
            total += sums * (KEY_BYTES + weight)
        return total + (1 if self.output is None else sizes[self.output]) * weight

    def program(self) -> str:
        """Return the argument of the kernel that says what to do (``csrc/multiway.c``).

        Triangles:

        >>> lists = CandidateList(0, 1, None, 0), CandidateList(1, 2, 0, 0)
        >>> LoopNest(None, (), lists, (0, 1), (0, 1)).program()
        '3 -1 0 2 0 1 -1 0 0 1 2 0 0 0 0 0 1 1'
        """
        return " ".join(map(str, self._numbers()))

    def _numbers(self) -> Iterator[int]:
        yield len(self.parents) + 1
        yield -1 if self.output is None else self.output
        yield from (len(self.scales), *self.scales)
        yield len(self.lists)
        for each in self.lists:
            source = -1 if each.source is None else each.source
            yield from (each.binder, each.label, source, each.operand)
            yield from (len(each.scales), *each.scales)
        for parent, walked in zip(self.parents, self.walked, strict=True):
            yield from (parent, walked)


@dataclass(frozen=True)
class MultiwaySource:
    """An operand of a multiway join: a matrix in compressed arrays, or a dense vector."""

    tensor: str
    layout: Layout


@dataclass(frozen=True)
class MultiwayPlan:
    """The multiway join that computes a vertex, and in which layout.

    `layout` is that of the kernel's result, `handed` that in which readers find the tensor.
    `factors` are the operands of the whole product as a person would write them, `inside` the
    vertices whose tensors it does not need.
    """

    sources: tuple[MultiwaySource, ...]
    nest: LoopNest
    layout: Layout
    handed: Layout
    factors: tuple[Operand, ...]
    inside: tuple[str, ...]
    held: float
    """The bytes that the kernel works with, beside operands and result."""

    def text(self, vertex: Vertex) -> str:
        """Return the product that the vertex is, as a person would write it."""
        sign = " and " if vertex.tensor.type.dtype is DType.BOOL else " * "
        operator = "=" if vertex.reduce is None else vertex.reduce.assignment
        target = Operand(vertex.name, vertex.labels)
        return f"{target} {operator} {sign.join(map(str, self.factors))}, label by label"


def needed_tensors(reads: Mapping[str, Sequence[str]], results: Sequence[str]) -> frozenset[str]:
    """Return the tensors that results depend on, given what each vertex reads.

    >>> sorted(needed_tensors({"x": ["A"], "y": ["A"], "z": ["y"]}, ["z"]))
    ['A', 'y', 'z']
    """
    waiting, found = list(results), set[str]()
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += reads.get(name, ())
    return frozenset(found)
