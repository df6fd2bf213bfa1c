"""Scans of a table for several tensors at once: each row has an entry of all of them."""

from __future__ import annotations

from sqlglot import exp

from ucle.foundation.dataclasses import dataclass
from ucle.ir.fills import JoinKind
from ucle.plan import relation_nodes as plan
from ucle.plan.relation_tree import inputs, nodes
from ucle.sqlgen.input_tables import scalar_value, whole_table
from ucle.sqlgen.kernel_calls import KernelCalls
from ucle.sqlgen.operand_aliases import choose_alias
from ucle.sqlgen.sql_trees import VALUE, add_alias, differs, key_columns, number, when
from ucle.sqlgen.table_scans import scan_keys, scan_table


def scan_pairs(pair: plan.PairedScan, kernels: KernelCalls, prefix: str) -> exp.Select:
    """Return the query that reads a table with the values of two tensors.

    A row is a tuple if a tensor of which the join requires an entry has one there.
    """
    first, second = pair.first, pair.second
    scans = [x for x in nodes(second) if isinstance(x, plan.TableScan)]
    scan = next(x for x in nodes(first) if isinstance(x, plan.TableScan))
    alias = choose_alias(scan) if any(scan.source.encoded) else None
    if first.layout.scalar:
        rows = whole_table(scan.source, prefix, alias)
        query, keys = scan_keys(scan, rows, alias, prefix)
        names = key_columns(first.type)
        for key, axis in zip(keys, first.layout.promoted, strict=True):
            query = query.select(add_alias(key.unalias(), names[axis]), copy=False)
        one = _entry(first, alias, kernels)
        query = query.select(add_alias(one.in_rows(pair.kind, JoinKind.LEFT), VALUE), copy=False)
    else:
        beside = dict.fromkeys(x.source.value for x in scans if x.source.value is not None)
        query = scan_table(scan, kernels, prefix, tuple(beside))
        one = _Entry(exp.null(), None, first, exact=True)  # every row has an array
    other = _entry(second, alias, kernels)
    value = other.in_rows(pair.kind, JoinKind.RIGHT)
    query = query.select(add_alias(value, plan.PAIRED), copy=False)
    condition = _stored(pair.kind, one, other)
    return query if condition is None else query.where(condition, copy=False)


@dataclass(frozen=True)
class _Entry:
    """The entry of a tensor in a row, and whether it is stored (None: everywhere).

    `exact` is True if the value is the fill wherever it is not stored.
    """

    value: exp.Expr
    stored: exp.Expr | None
    relation: plan.Relation
    exact: bool

    @property
    def filled(self) -> exp.Expr:
        """The value, or the fill where it is not stored."""
        if self.exact or self.stored is None:
            return self.value
        fill = number(self.relation.type.fill, self.relation.type.dtype)
        return when(self.stored.copy(), self.value, fill)

    def in_rows(self, kind: JoinKind, outer: JoinKind) -> exp.Expr:
        """The value in the rows of a join; `outer` is the one that requires this entry alone."""
        return self.value if kind in (JoinKind.INNER, outer) else self.filled


def _entry(relation: plan.Relation, alias: str | None, kernels: KernelCalls) -> _Entry:
    """Return the entry of a scan, or of what is computed from scans of the same rows."""
    if isinstance(relation, plan.TableScan):
        value = scalar_value(relation.source, alias)
        return _Entry(value, differs(value, relation.type), relation, exact=True)
    assert isinstance(relation, plan.Aggregate)
    compute, (first, *others) = relation.input, inputs(relation)
    one = _entry(first, alias, kernels)
    if not isinstance(compute.input, plan.Join):
        value = one.filled
        for step in compute.maps:
            value = kernels.map_number(step, value)
        return _Entry(value, one.stored, relation, exact=True)
    other = _entry(others[0], alias, kernels)
    assert compute.combine is not None
    value = kernels.combine_numbers(
        compute.combine, one.filled.copy(), other.filled.copy(), relation.type.dtype
    )
    kind = compute.input.kind
    return _Entry(value, _stored(kind, one, other), relation, exact=kind is JoinKind.FULL)


def _stored(kind: JoinKind, one: _Entry, other: _Entry) -> exp.Expr | None:
    """Return the condition that a join has a row; None if it has all."""
    left, right = (None if x.stored is None else x.stored.copy() for x in (one, other))
    if kind is JoinKind.FULL:
        return None if left is None or right is None else exp.or_(left, right, copy=False)
    needed = {JoinKind.INNER: (left, right), JoinKind.LEFT: (left,), JoinKind.RIGHT: (right,)}
    conditions = [x for x in needed[kind] if x is not None]
    return exp.and_(*conditions, copy=False) if conditions else None
