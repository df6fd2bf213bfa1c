"""Placements: the partitions on which the tuples of a tensor lie, and the rules for them.

A layout says what is in a tuple. A placement says where the tuple is: at which sites of a physical
relation (tensor_relational_algebra.txt, section 4). Rules say what placements each relation needs
of its inputs, and which its result has.

The rules are those of the tensor relational algebra (tensor_relational_algebra.txt, Table 2). A
join combines two relations placed by the same keys, or one with a copy of the other on every
partition (R2-6, R2-7). An aggregation by the keys of the placement needs no exchange (R2-4); any
other aggregation has two phases, and only its partial results travel (R2-5). Work inside a tuple is
done wherever the tuple lies (R2-2, R2-3).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import Enum

from ucle.foundation.dataclasses import dataclass
from ucle.ir.fills import JoinKind
from ucle.ir.layouts import Layout, Level
from ucle.plan.relation_nodes import (
    Aggregate,
    BlockRepartition,
    Compress,
    Decompose,
    Densify,
    Expand,
    Gather,
    Held,
    Join,
    Load,
    LookupJoin,
    MaskedJoin,
    MultiwayJoin,
    PackedForest,
    PrefixScan,
    Read,
    Recode,
    Reindex,
    Relation,
    Renamed,
    Stack,
    TableScan,
    TopKEntries,
)
from ucle.plan.relation_tree import inputs
from ucle.plan.sources import Nulls, OneRow


class Spread(Enum):
    """The distribution of tuples over partitions."""

    SINGLE = "single"
    """All tuples lie on the first partition."""
    REPLICATED = "replicated"
    """All tuples lie on every partition (the paper's BCAST)."""
    BY_AXES = "by axes"
    """Tuples that agree on some keys lie on one partition (the paper's SHUF)."""
    SCATTERED = "scattered"
    """Any partition may hold a tuple, but only one does."""


@dataclass(frozen=True)
class Placement:
    """The partitions of a tensor's tuples.

    >>> print(Placement(Spread.BY_AXES, (0,)), REPLICATED)
    by axes 0 replicated
    """

    spread: Spread
    axes: tuple[int, ...] = ()
    """The axes whose keys decide the partition of a tuple."""

    @staticmethod
    def by(*axes: int) -> Placement:
        """Return the placement in which tuples that agree on the keys of some axes lie together."""
        return Placement(Spread.BY_AXES, axes)

    def serves(self, wanted: Placement) -> bool:
        """Return whether tuples placed like this can be used where another placement is wanted.

        >>> Placement.by(0).serves(SCATTERED), SCATTERED.serves(Placement.by(0))
        (True, False)
        >>> REPLICATED.serves(SINGLE), REPLICATED.serves(SCATTERED)
        (True, False)
        """
        if self == wanted:
            return True
        if wanted.spread is Spread.SCATTERED:
            # Copies would each be counted; a single partition's tuples are computed on one
            # partition only.
            return self.spread is Spread.BY_AXES
        return wanted.spread is Spread.SINGLE and self.spread is Spread.REPLICATED

    @property
    def stored(self) -> Placement:
        """The placement of the rows of a result: of copies, the first partition's are enough."""
        return SINGLE if self.spread is Spread.REPLICATED else self

    def describe(self, labels: tuple[str, ...]) -> str:
        """Return the placement in words, with labels for axes."""
        if self.spread is not Spread.BY_AXES:
            return str(self.spread.value)
        return "by " + ", ".join(labels[axis] for axis in self.axes)

    def __str__(self) -> str:
        return " ".join([self.spread.value, *map(str, self.axes)])


SINGLE = Placement(Spread.SINGLE)
REPLICATED = Placement(Spread.REPLICATED)
SCATTERED = Placement(Spread.SCATTERED)


SOURCES = TableScan | Load | Held
"""Relations of data from outside, or from earlier runs, that is brought to partitions as needed."""


@dataclass(frozen=True)
class Way:
    """One way to compute a relation on partitions.

    `reads` are the placements of the relations that it reads, from left to right; `makes` is the
    placement of the result. If `combined` is True, partitions make partial results, which are
    brought to the placement of the result and aggregated again there.
    """

    reads: tuple[Placement, ...]
    makes: Placement
    combined: bool = False


def ways(relation: Relation) -> tuple[Way, ...]:
    """Return all ways to compute a relation that reads others; the first needs one partition."""
    return tuple(dict.fromkeys(_ways(relation)))


def placements(layout: Layout) -> tuple[Placement, ...]:
    """Return the possible placements of a relation's tuples, as far as any rule needs them."""
    keys = layout.promoted
    if not keys:  # a single tuple, which a statement may assume to be there
        return (SINGLE, REPLICATED)
    by = [Placement.by(axis) for axis in keys]
    if len(keys) > 1:
        by.append(Placement.by(*keys))
    return (SINGLE, REPLICATED, SCATTERED, *by)


def source_placements(source: SOURCES) -> tuple[Placement, ...]:
    """Return the placements in which an input can be read if its rows are moved accordingly."""
    if isinstance(source, Load | Held):
        return placements(source.layout)
    table = source.source
    if isinstance(table.origin, OneRow):
        return (SINGLE, REPLICATED)  # otherwise it would be there several times
    if table.features is not None and table.nulls is Nulls.OBSERVED:
        return (SINGLE, REPLICATED)  # what a row may have depends on the categories of all rows
    raw = tuple(
        placement
        for placement in placements(source.layout)
        if not placement.axes or raw_columns(source, placement) is not None
    )
    return tuple(x for x in raw if not table.sum_duplicates or x.spread is not Spread.SCATTERED)


def raw_columns(scan: TableScan, placement: Placement) -> tuple[str, ...] | None:
    """Return the columns by which an input's rows must be placed, for a placement of its tuples.

    None if tuples have other keys than the rows that they are made of.
    """
    table = scan.source
    if table.symmetric or len(table.tile_sizes) > 1 or table.kept_as is not None:
        return None
    keys = dict(zip(scan.layout.promoted, table.keys, strict=True))
    if any(table.is_encoded(table.keys.index(keys[axis])) for axis in placement.axes):
        return None
    return tuple(keys[axis] for axis in placement.axes)


def _ways(relation: Relation) -> Iterator[Way]:
    match relation:
        case Read(layout=layout):
            for placement in placements(layout):
                yield Way((placement,), placement)
        case Densify(source):
            # A missing tuple must be made only once.
            yield from (way for way in _ways(source) if _in_one_place(way.makes))
        case PackedForest(source) | Renamed(source):
            yield from _ways(source)
        case Decompose() | Expand() | Recode():
            yield from _tuple_by_tuple(relation, relation.input.layout)
        case Stack() | Compress() | Gather() | BlockRepartition():
            kept = find_kept_axes(relation.input.layout, relation.layout)
            for way in _ways(relation.input):
                if _in_one_place(way.makes) or _together(way.makes, kept):
                    yield way
        case Reindex():
            for way in _ways(relation.input):
                yield _elsewhere(way)
        case PrefixScan():
            inside = not set(relation.axes) & set(relation.layout.promoted)
            for way in _ways(relation.input):
                if inside or _in_one_place(way.makes):
                    yield way
        case TopKEntries():
            inside = relation.axis not in relation.input.layout.promoted
            for way in _ways(relation.input):
                if inside or _in_one_place(way.makes):
                    yield _elsewhere(way)
        case Aggregate():
            yield from _reductions(relation)
        case LookupJoin(operands):
            yield from _look_up(operands)
        case MultiwayJoin(operands):
            yield from _whole(operands)
        case _:
            raise AssertionError("a relation that no plan of vertices has")


def _in_one_place(placement: Placement) -> bool:
    """Return whether a partition that sees one tuple sees all of them."""
    return placement.spread in (Spread.SINGLE, Spread.REPLICATED)


def _together(placement: Placement, axes: frozenset[int]) -> bool:
    """Return whether tuples that agree on some axes lie together."""
    return placement.spread is Spread.BY_AXES and axes.issuperset(placement.axes)


def find_kept_axes(before: Layout, after: Layout) -> frozenset[int]:
    """Return the axes whose keys are the same in both layouts."""
    return frozenset(
        axis
        for axis in before.promoted
        if before.levels[axis] is after.levels[axis]
        and (before.levels[axis] is not Level.TILED or before.tile == after.tile)
    )


def _elsewhere(way: Way) -> Way:
    """Return a way whose tuples get other keys."""
    return Way(way.reads, way.makes if _in_one_place(way.makes) else SCATTERED)


def _tuple_by_tuple(relation: Decompose | Expand | Recode, before: Layout) -> Iterator[Way]:
    kept = find_kept_axes(before, relation.layout)
    for way in _ways(relation.input):
        same = _in_one_place(way.makes) or _together(way.makes, kept)
        yield way if same else Way(way.reads, SCATTERED)


# ---- Joins and aggregations ----


@dataclass(frozen=True)
class _Pairs:
    """The placement of the pairs of a join: by the keys of some labels, or another placement."""

    reads: tuple[Placement, ...]
    spread: Spread
    labels: tuple[str, ...] = ()


def _reductions(relation: Aggregate) -> Iterator[Way]:
    compute = relation.input
    match compute.input:
        case Join() as joined:
            pairs = _place_join(joined)
        case MaskedJoin() as masked:
            pairs = _place_masked_join(masked)
        case single:
            pairs = _single(single, compute.labels)
    places = {name: axis for axis, name in enumerate(relation.labels)}
    keys = {relation.labels[axis]: axis for axis in relation.layout.promoted}
    for each in pairs:
        if each.spread in (Spread.SINGLE, Spread.REPLICATED):
            yield Way(each.reads, Placement(each.spread))
        elif each.labels and all(label in keys for label in each.labels):
            yield Way(each.reads, Placement.by(*(places[label] for label in each.labels)))
        elif relation.operation is None and keys:
            yield Way(each.reads, SCATTERED)
        elif relation.operation is not None and _splits(relation):
            for placement in placements(relation.layout):
                if placement.spread is not Spread.SCATTERED:
                    yield Way(each.reads, placement, combined=True)


def _splits(relation: Aggregate) -> bool:
    """Return whether partial results can be aggregated to the whole result.

    Not if a group must know how many tuples it has met, nor for compressed arrays.
    """
    return relation.missing is None and relation.layout.compressed is None


def _single(source: Relation, labels: Sequence[str]) -> Iterator[_Pairs]:
    for way in _ways(source):
        yield _Pairs(way.reads, way.makes.spread, tuple(labels[axis] for axis in way.makes.axes))


def _look_up(operands: Sequence[Relation]) -> Iterator[Way]:
    """Yield ways to look up tuples for those of the first operand, which stay where they are."""
    for base in _ways(operands[0]):
        spread = base.makes.spread if _in_one_place(base.makes) else Spread.REPLICATED
        others = [
            next((way for way in _ways(x) if way.makes.spread is spread), None)
            for x in operands[1:]
        ]
        if None not in others:
            reads = (place for way in others if way is not None for place in way.reads)
            yield Way((*base.reads, *reads), base.makes)


def _whole(operands: Sequence[Relation]) -> Iterator[Way]:
    """Yield the ways to read operands of one tuple each: all on one partition, or on each."""
    for place in (SINGLE, REPLICATED):
        every = [next((way for way in _ways(x) if way.makes == place), None) for x in operands]
        if None not in every:
            yield Way(tuple(p for way in every if way is not None for p in way.reads), place)


def _place_join(node: Join) -> Iterator[_Pairs]:
    left, right = tuple(_ways(node.left)), tuple(_ways(node.right))
    shared = _find_shared_labels(
        node.left.layout, node.left_labels, node.right.layout, node.right_labels
    )
    for one in left:
        for other in right:
            reads = (*one.reads, *other.reads)
            whole = one.makes.spread, other.makes.spread
            if whole == (Spread.REPLICATED, Spread.REPLICATED):
                yield _Pairs(reads, Spread.REPLICATED)
            elif all(map(_in_one_place, (one.makes, other.makes))):
                yield _Pairs(reads, Spread.SINGLE)
            elif other.makes == REPLICATED and node.kind in (JoinKind.INNER, JoinKind.LEFT):
                yield _Pairs(reads, whole[0], _labels(one.makes, node.left_labels))
            elif one.makes == REPLICATED and node.kind in (JoinKind.INNER, JoinKind.RIGHT):
                yield _Pairs(reads, whole[1], _labels(other.makes, node.right_labels))
            elif whole == (Spread.BY_AXES, Spread.BY_AXES):
                names = _labels(one.makes, node.left_labels)
                same = names == _labels(other.makes, node.right_labels)
                if same and all(
                    shared.get(name) == (axis, beside)
                    for name, axis, beside in zip(
                        names, one.makes.axes, other.makes.axes, strict=True
                    )
                ):
                    yield _Pairs(reads, Spread.BY_AXES, names)


def _place_masked_join(node: MaskedJoin) -> Iterator[_Pairs]:
    """Yield pairs with the mask in any placement, and the same tiles or all of each factor."""
    factors = (node.left, node.left_labels), (node.right, node.right_labels)
    for mask in _ways(node.mask):
        names = _labels(mask.makes, node.labels)
        beside = [_beside(mask, names, node, *factor) for factor in factors]
        for left in beside[0]:
            for right in beside[1]:
                reads = (*mask.reads, *left.reads, *right.reads)
                if mask.makes == REPLICATED or not _in_one_place(mask.makes):
                    yield _Pairs(reads, mask.makes.spread, names)
                else:
                    yield _Pairs(reads, Spread.SINGLE)


def _beside(
    mask: Way, names: tuple[str, ...], node: MaskedJoin, factor: Relation, labels: tuple[str, ...]
) -> list[Way]:
    """Return the ways of a factor that fit a way of the mask."""
    found = []
    shared = _find_shared_labels(node.mask.layout, node.labels, factor.layout, labels)
    for way in _ways(factor):
        same = way.makes.spread is Spread.BY_AXES and _labels(way.makes, labels) == names
        aligned = same and all(
            shared.get(name) == pair
            for name, pair in zip(
                names, zip(mask.makes.axes, way.makes.axes, strict=True), strict=True
            )
        )
        if way.makes == REPLICATED or aligned or way.makes == mask.makes == SINGLE:
            found.append(way)
    return found


def _labels(placement: Placement, labels: Sequence[str]) -> tuple[str, ...]:
    return tuple(labels[axis] for axis in placement.axes)


def _find_shared_labels(
    left: Layout, left_labels: Sequence[str], right: Layout, right_labels: Sequence[str]
) -> Mapping[str, tuple[int, int]]:
    """Return the labels whose keys two relations share, with the first axis of each.

    If two axes of a relation have one label, they are equal in all tuples that count.
    """
    one, other = _first_keys(left, left_labels), _first_keys(right, right_labels)
    return {
        name: (axis, other[name])
        for name, axis in one.items()
        if name in other and _same_key(left, axis, right, other[name])
    }


def _first_keys(layout: Layout, labels: Sequence[str]) -> dict[str, int]:
    return {labels[axis]: axis for axis in reversed(layout.promoted)}


def _same_key(left: Layout, axis: int, right: Layout, other: int) -> bool:
    tiled = left.levels[axis] is Level.TILED
    return left.levels[axis] is right.levels[other] and (not tiled or left.tile == right.tile)


def leaves(relation: Relation) -> tuple[Read, ...]:
    """Return the reads of a relation, from left to right, with repetition."""
    if isinstance(relation, Read):
        return (relation,)
    return tuple(leaf for each in inputs(relation) for leaf in leaves(each))
