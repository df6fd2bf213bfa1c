"""Estimated entries of a tensor that is read by an index map (`ucle.ir.index_maps`).

Entries of the source are taken to lie anywhere, as by the textbook. Of all places that the labels
of the result can have, an estimated share has source coordinates that hold an entry, and a share of
these meets the condition. The places that meet a condition are counted for some coordinates of all
labels but one, and along that one exactly.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache

import numpy as np

from ucle.ir.affine import Affine, Digit, Term
from ucle.ir.conditions import (
    NOTHING,
    All,
    Compare,
    Condition,
    Sign,
    Some,
    condition_labels,
    conjuncts,
)
from ucle.ir.vertices import Vertex
from ucle.stats.model import TensorStatistics

SAMPLED = 256
"""Coordinates of each label at which a condition is evaluated."""

MOST = 1 << 14
"""Coordinates of several labels together."""


def reindexed_counts(vertex: Vertex, source: TensorStatistics) -> TensorStatistics:
    """T and V of the tensor that a vertex with an index map makes.

    >>> from ucle.ir.affine import Affine
    >>> from ucle.ir.index_maps import IndexMap
    >>> from ucle.ir.layouts import Label
    >>> from ucle.ir.tensor_types import NamedTensor, TensorType
    >>> from ucle.ir.vertices import Operand
    >>> i, w, a = Label("i", 98), Label("w", 3), Label("a", 100)
    >>> map_ = IndexMap((Affine.of({"i": 1, "w": 1}),))
    >>> windows = NamedTensor("T", TensorType((i, w)))
    >>> vertex = Vertex(windows, (Operand("A", (a,)),), (i, w), index=map_)
    >>> reindexed_counts(vertex, TensorStatistics(50, (50,))).entries
    147.0
    """
    index = vertex.index
    assert index is not None
    (operand,) = vertex.inputs
    cells = math.prod(float(label.bound) for label in vertex.labels)
    places = math.prod(float(label.bound) for label in operand.labels)
    if index.hit is not None:
        return _hits(vertex, places)
    entries = places if index.dense else source.entries
    sizes = {label.name: label.bound for label in vertex.labels}
    share = estimate_share(
        index.condition, tuple((x, sizes[x]) for x in condition_labels(index.condition))
    )
    kept = min(entries / places * cells * share if places else 0.0, cells)
    if 0 < kept < 1:
        kept = 1.0
    own = dict(zip(operand.names, source.distinct, strict=True))
    distinct = [
        min(own[label.name], kept) if label.name in own else min(float(label.bound), kept)
        for label in vertex.labels
    ]
    return TensorStatistics(kept, tuple(distinct))


def _hits(vertex: Vertex, places: float) -> TensorStatistics:
    """T and V where each entry of a source hits one coordinate of a label, at random."""
    hit, distinct = None if vertex.index is None else vertex.index.hit, []
    for label in vertex.labels:
        bound = float(label.bound)
        of_label = estimate_occupied(places, bound) if label.name == hit else bound
        distinct.append(min(of_label, places))
    return TensorStatistics(places, tuple(distinct))


def estimate_occupied(balls: float, bins: float) -> float:
    """The expected number of `bins` that `balls` hit at random (Equation 7)."""
    return -bins * math.expm1(-balls / bins) if bins else 0.0


def entries_of_one(vertex: Vertex) -> float:
    """The most entries that one entry of the source becomes.

    Each entry hits one coordinate of a label. Each axis of the source determines one of the labels
    that it is read at, unless earlier equations determine them all, and so does an equality of
    labels: the longest label, which leaves the fewest entries.
    """
    index = vertex.index
    assert index is not None
    sizes = {label.name: label.bound for label in vertex.labels}
    free: dict[Term, float] = {
        label.name: float(label.bound) for label in vertex.labels if label.name != index.hit
    }
    equal = [
        each.affine
        for each in conjuncts(index.condition)
        if isinstance(each, Compare) and each.sign is Sign.EQUAL
    ]
    every = (*index.indices, *equal)
    pairs = dict.fromkeys((digit.of, digit.by) for each in every for digit in _digits(each))
    for of, by in pairs:
        quotient, remainder = Digit(of, by), Digit(of, by, remainder=True)
        low, high = quotient.ends(sizes.__getitem__)
        free |= {quotient: float(max(high - low + 1, 1)), remainder: float(by)}
        whole = Affine(((quotient, -by), (remainder, -1))).plus(of)
        every = (*every, whole)
    decided: list[tuple[Term, dict[Term, Fraction]]] = []
    for affine in every:
        row: dict[Term, Fraction] = {term: Fraction(n) for term, n in affine.terms}
        for label, other in decided:
            if factor := row.get(label, Fraction(0)):
                row = {
                    x: value
                    for x in {*row, *other}
                    if (value := row.get(x, Fraction(0)) - factor * other.get(x, Fraction(0)))
                }
        if row:
            longest = max(sorted(row, key=str), key=free.__getitem__)
            decided.append((longest, {x: n / row[longest] for x, n in row.items()}))
    for label, _ in decided:
        free.pop(label, None)
    return math.prod(free.values())


def _digits(affine: Affine) -> Iterator[Digit]:
    """The quotients and remainders in a function of labels, and those in their operands."""
    for term, _ in affine.terms:
        if isinstance(term, Digit):
            yield from _digits(term.of)
            yield term


@lru_cache(maxsize=1 << 8)
def estimate_share(condition: Condition, sizes: tuple[tuple[str, int], ...]) -> float:
    """The share of all places that meet a condition.

    Args:
        condition: the condition.
        sizes: of its labels.

    >>> from ucle.ir.affine import Affine
    >>> from ucle.ir.conditions import Compare, Sign
    >>> less = Compare(Affine.of({"j": 1, "i": -1}, -1), Sign.AT_LEAST)
    >>> estimate_share(less, (("i", 10), ("j", 10)))
    0.45
    """
    if condition == NOTHING:
        return 1.0
    if any(size == 0 for _, size in sizes):
        return 0.0
    if not sizes:
        return 0.0 if isinstance(condition, Some) else 1.0
    *others, (last, length) = sorted(sizes, key=lambda pair: pair[1])
    grid = _sample_coordinates(others)
    low, high = (np.full(grid.shape[1], end, np.float64) for end in (0, length))
    rows = {label: grid[n] for n, (label, _) in enumerate(others)}
    return float(np.mean(_share(condition, rows, last, low, high, length)))


def _sample_coordinates(
    sizes: Sequence[tuple[str, int]],
) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """Coordinates of some labels, one row for each combination."""
    if not sizes:
        return np.zeros((0, 1))
    each = max(int(MOST ** (1 / len(sizes))), 2)
    axes = [
        np.unique(np.linspace(0, size - 1, min(size, each, SAMPLED)).round()) for _, size in sizes
    ]
    return np.array([axis.ravel() for axis in np.meshgrid(*axes)])


def _share(
    condition: Condition,
    rows: Mapping[str, np.ndarray[tuple[int, ...], np.dtype[np.float64]]],
    last: str,
    low: np.ndarray[tuple[int, ...], np.dtype[np.float64]],
    high: np.ndarray[tuple[int, ...], np.dtype[np.float64]],
    length: int,
) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """The share of the last label's coordinates that meet a condition, for each place of others."""
    share = np.ones_like(low)
    for part in conjuncts(condition):
        match part:
            case Compare(affine, sign) if not affine.linear:
                share = share * _share_of_digits(affine, sign)
            case Compare(affine, sign):
                factor = dict(affine.terms).get(last, 0)
                rest = affine.constant + sum(n * rows[str(x)] for x, n in affine.terms if x != last)
                rest = np.broadcast_to(np.asarray(rest, np.float64), low.shape)
                if sign is Sign.UNEQUAL:
                    continue
                if not factor:
                    share = share * (rest == 0 if sign is Sign.EQUAL else rest >= 0)
                elif sign is Sign.EQUAL:
                    at = -rest / factor
                    low, high = np.maximum(low, np.ceil(at)), np.minimum(high, np.floor(at) + 1)
                elif factor > 0:
                    low = np.maximum(low, np.ceil(-rest / factor))
                else:
                    high = np.minimum(high, np.floor(rest / -factor) + 1)
            case Some(parts):
                missed = np.ones_like(low)
                for each in parts:
                    ends = np.zeros_like(low), np.full_like(high, length)
                    missed = missed * (1 - _share(each, rows, last, *ends, length))
                share = share * (1 - missed)
            case All():
                raise AssertionError("conjuncts are taken apart")
    return share * np.maximum(high - low, 0) / length


def _share_of_digits(affine: Affine, sign: Sign) -> float:
    """A rough share of the places that meet a comparison with quotients and remainders."""
    least = min(term.by for term, _ in affine.terms if isinstance(term, Digit))
    return {Sign.AT_LEAST: 0.5, Sign.EQUAL: 1 / least, Sign.UNEQUAL: 1 - 1 / least}[sign]
