"""Read a table once for two tensors that are joined row by row.

The features of a row and what is to be predicted from them, or a price, a quantity and a discount,
are often columns of one table, and so inputs with the same keys. A join by all of these keys pairs
each row with itself, as no two rows have the same. DuckDB would build a hash table of one input to
find this out. What is computed from such tensors entry by entry has the same rows.

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
    MaskedJoin,
    PairedScan,
    Read,
    Relation,
    TableScan,
)
from ucle.plan.relation_tree import inputs, nodes, reads, with_inputs
from ucle.plan.sources import CsvFile, InMemory, Origin, TableSource
from ucle.plan.steps import Plan, Role, Step

MOST_COLUMNS = 8
"""The most columns of one view: what says which rows are stored names each of them once more."""


def pair_scans(plan: Plan, context: PassContext) -> Plan:
    """Return the plan with one scan of a table where its columns are joined by all keys."""
    steps = (
        _Statement(step, plan, context).paired() if _may_have_pairs(step) else step
        for step in plan.steps
    )
    return replace(plan, steps=tuple(steps))


def _may_have_pairs(step: Step) -> bool:
    """Return whether two views of a step are scans of one table by the same keys."""
    if step.rounds:
        return False
    scans = (x.relation.source for x in step.views if isinstance(x.relation, TableScan))
    rows = [known for source in scans if (known := find_rows(source)) is not None]
    return len(set(rows)) < len(rows)


@dataclass(frozen=True)
class _Statement:
    """A step of a plan with its views."""

    step: Step
    plan: Plan
    context: PassContext

    def paired(self) -> Step:
        """Return the step with views that are pairs of scans, and without those no longer read."""
        rows = self._rows()
        made: dict[PairedScan, Step] = {}

        def pair(relation: Relation, children: list[Relation]) -> Relation:
            same = with_inputs(relation, children)
            match same:
                case Aggregate(Compute(Join(_, Read() as left, Read() as right) as joined)):
                    sides = rows.get(left.step), rows.get(right.step)
                    if (found := _pair(joined, *sides)) is not None:
                        scan, turned = found
                        if scan not in made:
                            one, other = (right, left) if turned else (left, right)
                            made[scan] = self._view(scan, one.tensor, other.tensor, made)
                        within = _within(joined, made[scan].name, turned=turned)
                        return replace(same, input=replace(same.input, input=within))
            return same

        parts = [
            replace(x, relation=fold(x.relation, inputs, pair))
            for x in (*self.step.views, self.step)
        ]
        if not made:
            return self.step
        *views, step = parts
        return replace(step, views=tuple(_still_read([*made.values(), *views], step)))

    def _rows(self) -> dict[str, Relation]:
        """Return the views whose tuples are rows of one table, as relations over its scans."""
        found: dict[str, Relation] = {}
        for view in self.step.views:
            relation = view.relation
            if view.role is not Role.VIEW:
                continue
            if isinstance(relation, TableScan):
                if find_rows(relation.source) is not None:
                    found[view.name] = relation
            elif isinstance(relation, Aggregate) and self._is_entrywise(relation):
                sides = [found.get(x.step) for x in inputs(relation) if isinstance(x, Read)]
                whole = [x for x in sides if x is not None and x.layout.scalar]
                if len(whole) == len(inputs(relation)) and _same_rows(*whole):
                    found[view.name] = with_inputs(relation, whole)
        return found

    def _is_entrywise(self, node: Aggregate) -> bool:
        """Return whether each tuple is a number computed from one tuple of each input.

        A long expression stays in a view of its own, where it is written once.
        """
        source = node.input.input
        if node.operation is not None or not node.layout.scalar or node.input.kernel.name:
            return False
        if isinstance(source, MaskedJoin):
            return False
        keys = tuple(node.labels[axis] for axis in node.layout.promoted)
        own = (
            source.matched_keys
            if isinstance(source, Join)
            else tuple(node.input.labels[axis] for axis in source.layout.promoted)
        )
        written = self.context.expression(node.input, node.type.dtype)
        return own == keys and written is not None and max(written.uses) == 1

    def _view(
        self, scan: PairedScan, one: str, other: str, made: Mapping[PairedScan, Step]
    ) -> Step:
        """Return the view of a pair under a name of its own."""
        taken = {*self.plan.used_names, *(fold_name(view.name) for view in made.values())}
        (name,) = unique_names([f"{one}_and_{other}"], taken)
        return Step(name, one, Role.VIEW, scan, f"{name}: {one} and {other}, from the same rows")


def _still_read(views: list[Step], step: Step) -> Iterator[Step]:
    """Yield the views that a step reads, directly or not."""
    needed, kept = set(reads(step.relation)), list[Step]()
    for view in reversed(views):
        if view.name in needed:
            needed.update(reads(view.relation))
            kept.append(view)
    yield from reversed(kept)


def _within(joined: Join, step: str, *, turned: bool) -> Join:
    """Return a join as one of two columns of a step."""
    assert isinstance(joined.left, Read)
    assert isinstance(joined.right, Read)
    columns = (PAIRED, None) if turned else (None, PAIRED)
    left, right = (
        replace(side, step=step, column=each)
        for side, each in zip((joined.left, joined.right), columns, strict=True)
    )
    return replace(joined, left=left, right=right)


_TURNED = {JoinKind.LEFT: JoinKind.RIGHT, JoinKind.RIGHT: JoinKind.LEFT}


def _pair(
    joined: Join, left: Relation | None, right: Relation | None
) -> tuple[PairedScan, bool] | None:
    """Return the scan of both sides of a join, and whether the right one comes first in it.

    None if they are not numbers, or an array and a number, of the same rows.
    """
    if left is None or right is None or left is right or not joined.matched_keys:
        return None
    if not _same_rows(left, right) or len(_scans(left, right)) > MOST_COLUMNS:
        return None
    left, right = _reading_one_relation(left, right)
    if _may_stand_beside(left, right):
        return PairedScan(left, right, joined.kind), False
    if _may_stand_beside(right, left):
        return PairedScan(right, left, _TURNED.get(joined.kind, joined.kind)), True
    return None


def _scans(*relations: Relation) -> list[TableScan]:
    return [x for each in relations for x in nodes(each) if isinstance(x, TableScan)]


def _same_rows(*relations: Relation) -> bool:
    """Return whether relations over scans read one relation by the same keys."""
    scans = _scans(*relations)
    keys = [(find_rows(scan.source), _numbers(scan)) for scan in scans]
    return all(x == keys[0] for x in keys) and _unite([x.source for x in scans]) is not None


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


def _reading_one_relation(left: Relation, right: Relation) -> tuple[Relation, Relation]:
    """Return relations over scans of the same rows, all of which read the same columns."""
    origin = _unite([x.source for x in _scans(left, right)])
    assert origin is not None

    def read(relation: Relation, children: list[Relation]) -> Relation:
        if isinstance(relation, TableScan):
            return replace(relation, source=replace(relation.source, origin=origin))
        return with_inputs(relation, children)

    one, other = (fold(each, inputs, read) for each in (left, right))
    return one, other


def _unite(sources: list[TableSource]) -> Origin | None:
    """Return the relation that all sources of the same rows read; None if it is not one.

    In a text file, a column that a source does not read is text for it, whatever it holds.
    """
    origin = sources[0].origin
    if not isinstance(origin, CsvFile):
        return origin
    types, known = dict(origin.columns), set[str]()
    for source in sources:
        assert isinstance(source.origin, CsvFile)
        for name, type_ in source.origin.columns:
            if name in _read_columns(source):
                if name in known and types[name] != type_:
                    return None
                types[name] = type_
                known.add(name)
    return replace(origin, columns=tuple(types.items()))


def _read_columns(source: TableSource) -> set[str]:
    features = source.features
    named = () if features is None else (*features.numbers, *features.categories)
    return {*source.columns, *source.wide, *named}


def _may_stand_beside(first: Relation, second: Relation) -> bool:
    """Return whether the values of a relation can be columns beside the rows of another one."""
    if not all(map(_is_number, _scans(second))):
        return False
    if first.layout.scalar:
        return all(map(_is_number, _scans(first)))
    if not isinstance(first, TableScan):
        return False
    source = first.source
    taken = {fold_name(x) for x in (*source.keys, source.value) if x is not None}
    columns = (x.source.value for x in _scans(second))
    return all(x is None or fold_name(x) not in taken for x in columns)


def _is_number(scan: TableScan) -> bool:
    """Return whether the value of a row is a number in a column of the table."""
    return scan.layout.scalar and scan.source.has_entry_in_row and not scan.source.presence
