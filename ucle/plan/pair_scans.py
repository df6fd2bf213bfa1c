"""Read a table once for two tensors that are joined row by row.

The features of a row and what is to be predicted from them, or a weight and what it weighs, are
often columns of one table, and so two inputs with the same keys. A join by all of these keys pairs
each row with itself, as no two rows have the same. DuckDB would build a hash table of one input to
find this out.

What goes in: a plan whose steps are statements, with the scans of tables as views inside. What
comes out: the plan in which such a join reads two columns of one view.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import replace

from ucle.foundation.dataclasses import dataclass
from ucle.foundation.names import fold_name, unique_names
from ucle.foundation.tree_walk import fold
from ucle.ir.fills import JoinKind
from ucle.plan.pass_context import PassContext
from ucle.plan.relation_nodes import (
    PAIRED,
    Aggregate,
    Compute,
    Join,
    PairedScan,
    Read,
    Relation,
    TableScan,
)
from ucle.plan.relation_tree import inputs, nodes, reads, with_inputs
from ucle.plan.sources import CsvFile, InMemory, Nulls, Origin, TableName, TableSource
from ucle.plan.steps import Plan, Role, Step


def pair_scans(plan: Plan, context: PassContext) -> Plan:
    """Return the plan with one scan of a table where two of its columns are joined by all keys."""
    taken = frozenset(map(fold_name, _names(plan)))
    steps = (x if x.rounds or not x.views else _Statement(x, taken).paired() for x in plan.steps)
    return replace(plan, steps=tuple(steps))


def _names(plan: Plan) -> Iterator[str]:
    """Yield the names that a script uses; a view of ours would hide another relation."""
    for dictionary in plan.dictionaries:
        yield dictionary.name
    for statement in plan.steps:
        for step in (*statement.views, statement):
            yield step.name
            for node in nodes(step.relation):
                if isinstance(node, TableScan) and isinstance(node.source.origin, TableName):
                    yield node.source.origin.parts[-1]


@dataclass(frozen=True)
class _Statement:
    """A step with its views, and the names that other relations have."""

    step: Step
    taken: frozenset[str]

    def paired(self) -> Step:
        """Return the step with views that are pairs of scans, and without those no longer read."""
        scans = {x.name: x for x in self.step.views if _is_scan(x)}
        made: dict[PairedScan, Step] = {}

        def pair(relation: Relation, children: list[Relation]) -> Relation:
            same = with_inputs(relation, children)
            match same:
                case Aggregate(Compute(Join(_, Read() as left, Read() as right) as joined)):
                    sides = scans.get(left.step), scans.get(right.step)
                    if (found := _pair(joined, *sides)) is not None:
                        step = made.setdefault(found.scan, self._view(found, made))
                        within = found.join(joined, step.name)
                        return replace(same, input=replace(same.input, input=within))
            return same

        parts = [
            replace(x, relation=fold(x.relation, inputs, pair))
            for x in (*self.step.views, self.step)
        ]
        if not made:
            return self.step
        read = {name for part in parts for name in reads(part.relation)}
        *views, step = parts
        kept = (x for x in views if x.name in read or x.name not in scans)
        return replace(step, views=(*made.values(), *kept))

    def _view(self, found: _Pair, made: Mapping[PairedScan, Step]) -> Step:
        """Return the view of a pair under a name of its own."""
        taken = {*self.taken, *(fold_name(view.name) for view in made.values())}
        (name,) = unique_names(["_and_".join(found.tensors)], taken)
        comment = f"{name}: {' and '.join(found.tensors)}, from the same rows"
        return Step(name, found.tensors[0], Role.VIEW, found.scan, comment)


@dataclass(frozen=True)
class _Pair:
    """The scan of both sides of a join, and the tensors in its columns.

    `turned` is True if the first of them is the right side.
    """

    scan: PairedScan
    tensors: tuple[str, str]
    turned: bool

    def join(self, joined: Join, step: str) -> Join:
        """Return the join as one of two columns of a step."""
        assert isinstance(joined.left, Read)
        assert isinstance(joined.right, Read)
        columns = (PAIRED, None) if self.turned else (None, PAIRED)
        left, right = (
            replace(side, step=step, column=each)
            for side, each in zip((joined.left, joined.right), columns, strict=True)
        )
        return replace(joined, left=left, right=right)


_TURNED = {JoinKind.LEFT: JoinKind.RIGHT, JoinKind.RIGHT: JoinKind.LEFT}


def _pair(joined: Join, left: Step | None, right: Step | None) -> _Pair | None:
    """Return the scan of both sides of a join, if they are numbers or arrays of the same rows."""
    if left is None or right is None or left is right or not joined.matched_keys:
        return None
    assert isinstance(left.relation, TableScan)
    assert isinstance(right.relation, TableScan)
    if (scans := _read_alike(left.relation, right.relation)) is None:
        return None
    one, other = scans
    if _may_stand_beside(one, other):
        return _Pair(PairedScan(one, other, joined.kind), (left.tensor, right.tensor), False)
    if _may_stand_beside(other, one):
        kind = _TURNED.get(joined.kind, joined.kind)
        return _Pair(PairedScan(other, one, kind), (right.tensor, left.tensor), True)
    return None


def _is_scan(view: Step) -> bool:
    return view.role is Role.VIEW and isinstance(view.relation, TableScan)


def _read_alike(one: TableScan, other: TableScan) -> tuple[TableScan, TableScan] | None:
    """Return two scans that read one relation by the same keys, of which each row has its own."""
    rows = find_rows(one.source)
    if rows is None or rows != find_rows(other.source) or _numbers(one) != _numbers(other):
        return None
    origin = _unite(one.source, other.source)
    if origin is None:
        return None
    first, second = (replace(x, source=replace(x.source, origin=origin)) for x in (one, other))
    return first, second


def find_rows(source: TableSource) -> Hashable | None:
    """Return what the rows of a source are read from, and by which keys.

    None if a row is no tuple of its own, or the rows are in memory: each input has its own there.
    """
    origin = source.origin
    if isinstance(origin, InMemory) or source.kept_as is not None:
        return None
    if source.features is not None and not (source.dense and source.single_rows):
        return None
    spread = source.sum_duplicates, source.symmetric, source.times, source.ends, source.ragged
    if any((*spread, *source.tiles)):
        return None
    if isinstance(origin, CsvFile):
        origin = replace(origin, columns=())
    return origin, source.keys, source.key_types, source.keys_as, source.encoded


def _numbers(scan: TableScan) -> list[tuple[str | None, bool]]:
    """Return what numbers the keys of a scan."""
    axes = scan.type.axes
    return [(axes[n].dictionary, n in scan.unnumbered) for n in scan.layout.promoted]


def _unite(one: TableSource, other: TableSource) -> Origin | None:
    """Return the relation that two sources of the same rows read; None if it is not one.

    In a text file, a column that a source does not read is text for it, whatever it holds.
    """
    first, second = one.origin, other.origin
    if not isinstance(first, CsvFile) or not isinstance(second, CsvFile):
        return first
    types, mine, others = dict(second.columns), _read_columns(one), _read_columns(other)
    for name, type_ in first.columns:
        if name in mine:
            if name in others and types[name] != type_:
                return None
            types[name] = type_
    return replace(second, columns=tuple(types.items()))


def _read_columns(source: TableSource) -> set[str]:
    features = source.features
    named = () if features is None else (*features.numbers, *features.categories)
    return {*source.columns, *source.wide, *named}


def _is_number(scan: TableScan) -> bool:
    """Return whether the value of a row is a number in a column of the table."""
    source = scan.source
    return (
        scan.layout.scalar
        and source.has_entry_in_row
        and source.nulls is not Nulls.OBSERVED
        and not source.presence
    )


def _may_stand_beside(scan: TableScan, other: TableScan) -> bool:
    """Return whether the value of another scan can be a column beside the rows of a scan."""
    if not _is_number(other):
        return False
    if scan.layout.scalar:
        return _is_number(scan)
    source, column = scan.source, other.source.value
    taken = (*source.keys, *(() if source.value is None else (source.value,)))
    return column is None or fold_name(column) not in map(fold_name, taken)
