"""Write vertices over the rows of wide tables as stages of expressions over their columns.

In: a vertex, the tensors of rows that it reads, and constants. Out: the tensor of rows that it
makes, as stages of `ucle.plan.relation_nodes.ColumnExpressions`, or None where they would be too
many. `ucle.plan.compute_columns` decides which of them are used.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ucle.foundation.dataclasses import dataclass
from ucle.foundation.dtypes import Scalar, same_value
from ucle.ir.layouts import Layout
from ucle.ir.tensor_types import TensorType
from ucle.ir.vertices import Vertex
from ucle.operators import ADD, MULT
from ucle.plan.relation_nodes import Cell, ColumnStage, TableScan, Term

WIDEST = 256
"""The most entries of a row in one stage: DuckDB binds and plans an expression for each."""

PER_ENTRY = 4
"""The most products for each entry that is read or made: above it, packing entries and calling a
kernel is faster than two operations of SQL for each product."""

MOST_TERMS = 2000
"""The most terms of all stages together: the text of each takes 20 us to write."""

Entries = NDArray[Any]
"""Cells of rows, or numbers, along the axes that are not keys."""


@dataclass(frozen=True)
class RowTensor:
    """A tensor with an array for each row of a wide table.

    `keys` are its axes that have the keys of the table, in the order of these. `cells` are the
    entries of the array of a row, along the other axes. `missing` are those of a row that is not
    there; None if none can be missing.
    """

    scan: TableScan
    keys: tuple[int, ...]
    type: TensorType
    cells: Entries
    missing: Entries | None
    stages: tuple[ColumnStage, ...] = ()
    """The stages so far; cells name them by their place from 1 on."""
    computed: bool = False
    """True if a vertex makes it; False for a table and for repartitions."""

    @property
    def layout(self) -> Layout:
        """The layout with a tuple for each row."""
        return Layout.of(axis in self.keys for axis in range(self.type.rank))


def write_vertex(
    vertex: Vertex, operands: Sequence[RowTensor | NDArray[Any] | None]
) -> RowTensor | None:
    """Return the tensor of a vertex over rows; None if it is not one, or takes too much.

    Args:
        vertex: a vertex that combines, maps and aggregates.
        operands: what it reads: tensors of rows, constants, or None for what is neither.
    """
    tables = [each for each in operands if isinstance(each, RowTensor)]
    keys = _find_keys(vertex, operands)
    if not tables or keys is None or not set(keys) <= set(vertex.names):
        return None
    sides = _find_sides(vertex, operands, keys)
    if sides is None:
        return None
    stages, moved = _join_stages(tables)
    numbers = iter(moved)
    cells = [
        _renumber(side, next(numbers)) if isinstance(each, RowTensor) else side
        for side, each in zip(sides, operands, strict=True)
    ]
    places = _Places.of(vertex, keys)
    before = sum(len(stage.entries) * len(stage.entries[0]) for stage in stages)
    read = sum(each.cells.size for each in tables)
    if not places.fit(read, before):
        return None
    missing = None
    if any(each.missing is not None for each in tables):
        ghosts = [
            replace(side, entries=each.missing)
            if isinstance(each, RowTensor) and each.missing is not None
            else side
            for side, each in zip(sides, operands, strict=True)
        ]
        if not _are_fills(vertex, places.terms(ghosts)):
            return None
        missing = np.full(places.shape, vertex.tensor.type.fill, object)
    merge = None if vertex.reduce is None else vertex.reduce.merge
    dtype, entries = vertex.tensor.type.dtype, tuple(places.terms(cells))
    stage = ColumnStage(vertex.name, dtype, vertex.combine, vertex.maps, merge, entries)
    new, made = _share_opposites(stage, len(stages) + 1)
    result = np.empty(places.shape, object)
    result.reshape(-1)[:] = made
    axes = tuple(vertex.names.index(name) for name in keys)
    type_, scan = vertex.tensor.type, tables[0].scan
    return RowTensor(scan, axes, type_, result, missing, (*stages, *new), computed=True)


def _find_keys(
    vertex: Vertex, operands: Sequence[RowTensor | NDArray[Any] | None]
) -> tuple[str, ...] | None:
    """Return the labels of the keys of the table; None if operands are of different rows."""
    found = {
        (each.scan, tuple(operand.names[axis] for axis in each.keys))
        for operand, each in zip(vertex.inputs, operands, strict=True)
        if isinstance(each, RowTensor)
    }
    if len(found) != 1:
        return None
    ((_, keys),) = found
    return keys if len(set(keys)) == len(keys) else None


@dataclass(frozen=True)
class _Side:
    """An operand: the labels of its axes that are not keys, and its entries along these."""

    names: tuple[str, ...]
    entries: Entries

    def at(self, place: Mapping[str, int]) -> Any:
        """Return the entry at a place."""
        value = self.entries[tuple(place[name] for name in self.names)]
        return value.item() if isinstance(value, np.generic) else value


def _find_sides(
    vertex: Vertex, operands: Sequence[RowTensor | NDArray[Any] | None], keys: Sequence[str]
) -> list[_Side] | None:
    """Return the operands; None if one is unknown, or differs from row to row by itself."""
    sides = []
    for operand, each in zip(vertex.inputs, operands, strict=True):
        if isinstance(each, RowTensor):
            inner = [name for n, name in enumerate(operand.names) if n not in each.keys]
            if set(inner) & set(keys):
                return None
            sides.append(_Side(tuple(inner), each.cells))
        elif each is None or set(operand.names) & set(keys):
            return None
        else:
            sides.append(_Side(operand.names, each))
    return sides


@dataclass(frozen=True)
class _Places:
    """The entries of a vertex in a row, and the terms of each of them."""

    inner: tuple[str, ...]
    shape: tuple[int, ...]
    reduced: tuple[str, ...]
    over: tuple[int, ...]
    """The bounds of the labels that are aggregated away."""

    @classmethod
    def of(cls, vertex: Vertex, keys: Sequence[str]) -> _Places:
        inner = [label for label in vertex.labels if label.name not in keys]
        return cls(
            tuple(label.name for label in inner),
            tuple(label.bound for label in inner),
            tuple(label.name for label in vertex.reduced),
            tuple(label.bound for label in vertex.reduced),
        )

    def fit(self, read: int, before: int) -> bool:
        """Return whether expressions pay, for entries that are read and terms that are there."""
        made, terms = math.prod(self.shape), math.prod(self.over)
        if not 0 < made <= WIDEST or not terms or before + made * terms > MOST_TERMS:
            return False
        return terms == 1 or made * terms <= PER_ENTRY * (made + read)

    def terms(self, sides: Sequence[_Side]) -> Iterator[tuple[Term, ...]]:
        """Yield the terms of each entry."""
        for place in itertools.product(*map(range, self.shape)):
            here = dict(zip(self.inner, place, strict=True))
            yield tuple(
                tuple(side.at(here | dict(zip(self.reduced, along, strict=True))) for side in sides)
                for along in itertools.product(*map(range, self.over))
            )


def _are_fills(vertex: Vertex, entries: Iterator[tuple[Term, ...]]) -> bool:
    """Return whether each entry, given its terms as numbers, is the fill."""
    type_ = vertex.tensor.type
    for terms in entries:
        total, *others = (_evaluate(vertex, term) for term in terms)
        for value in others:
            merge = None if vertex.reduce is None else vertex.reduce.merge
            assert merge is not None, "several terms that nothing aggregates"
            total = merge.scalar(total, value, type_.dtype)
        if not same_value(total, type_.fill):
            return False
    return True


def _evaluate(vertex: Vertex, term: Term) -> Scalar:
    first, *second = (x for x in term if not isinstance(x, Cell))
    if vertex.combine is not None:
        return vertex.combine.scalar(first, second[0], vertex.tensor.type.dtype)
    for function in vertex.maps:
        first = function(first)
    return first


# ---- Stages of several operands ----


def _join_stages(
    tables: Sequence[RowTensor],
) -> tuple[tuple[ColumnStage, ...], list[Sequence[int]]]:
    """Return the stages of several tensors, each once, and the new number of each old one."""
    stages: list[ColumnStage] = []
    moved: list[Sequence[int]] = []
    for rows in tables:
        numbers = [0]
        for stage in rows.stages:
            entries = tuple(
                tuple(tuple(_move(x, numbers) for x in term) for term in entry)
                for entry in stage.entries
            )
            here = replace(stage, entries=entries)
            if here not in stages:
                stages.append(here)
            numbers.append(stages.index(here) + 1)
        moved.append(numbers)
    return tuple(stages), moved


def _renumber(side: _Side, numbers: Sequence[int]) -> _Side:
    entries = np.empty(side.entries.shape, object)
    entries.reshape(-1)[:] = [_move(x, numbers) for x in side.entries.reshape(-1)]
    return replace(side, entries=entries)


def _move(operand: Cell | Scalar, numbers: Sequence[int]) -> Cell | Scalar:
    return Cell(numbers[operand.stage], operand.number) if isinstance(operand, Cell) else operand


def _share_opposites(stage: ColumnStage, number: int) -> tuple[tuple[ColumnStage, ...], list[Cell]]:
    """Return a stage, and the cells of its entries, with one entry for opposite ones.

    A linear model of two classes has opposite coefficients for them. Sums of products with them are
    opposite, too, and exactly, as numbers are rounded alike on both sides of 0.

    Args:
        stage: the stage.
        number: the number that it gets.
    """
    plain = [Cell(number, n) for n in range(len(stage.entries))]
    sums = stage.combine is MULT and stage.merge in (None, ADD) and stage.dtype.kind == "f"
    if not sums or len(plain) < 2 or len(stage.entries[0]) < 2:
        return (stage,), plain
    first: dict[object, int] = {}
    kept: list[tuple[Term, ...]] = []
    cells: list[Cell] = []
    opposite: list[tuple[Term, ...]] = []
    for entry in stage.entries:
        other = tuple(tuple(x if isinstance(x, Cell) else -x for x in term) for term in entry)
        if entry in first:
            cells.append(Cell(number, first[entry]))
        elif other in first and all(_has_constant(term) for term in entry):
            cells.append(Cell(number + 1, len(opposite)))
            opposite.append(((Cell(number, first[other]), -1.0),))
        else:
            first[entry] = len(kept)
            cells.append(Cell(number, len(kept)))
            kept.append(entry)
    stages = [replace(stage, entries=tuple(kept))]
    if opposite:
        stages.append(replace(stage, merge=None, entries=tuple(opposite)))
    return tuple(stages), cells


def _has_constant(term: Term) -> bool:
    return sum(isinstance(x, Cell) for x in term) == 1
