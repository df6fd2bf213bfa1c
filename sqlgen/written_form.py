"""The SQL that writes a tensor in a form: columns and rows that do not depend on the plan.

The stored relation is converted to the form's layout, rows are pruned or completed, and coordinates
become those of the data. Nothing passes through Python.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp, select

from ucle.ir.layouts import Layout
from ucle.ir.tensor_types import TensorType
from ucle.plan import relation_nodes as plan
from ucle.plan.forms import WrittenForm
from ucle.plan.plan_program import RELATIONS
from ucle.plan.repartition_paths import LayoutChange, changes
from ucle.sqlgen.capabilities import Capabilities
from ucle.sqlgen.kernel_calls import KernelCalls
from ucle.sqlgen.missing_tuples import densify
from ucle.sqlgen.plan_to_sql import select_readable
from ucle.sqlgen.repartitions import repartition
from ucle.sqlgen.script import tuples_query
from ucle.sqlgen.sql_trees import (
    VALUE,
    add_alias,
    cast,
    column,
    differs,
    function,
    identifier,
    in_list,
    integer,
    key_columns,
    key_type,
    number,
    strides,
    subquery,
    table,
)

ALIAS = "T"


def written_query(
    place: tuple[str, str],
    type_: TensorType,
    layout: Layout,
    form: WrittenForm,
    capabilities: Capabilities,
    dictionaries: Mapping[str, str],
    *,
    lists: bool = True,
) -> exp.Select:
    """Return the SELECT that shows a tensor in a form.

    Args:
        place: the table that holds it, and the column of its values.
        type_: of the tensor.
        layout: of the relation.
        form: how it is to be shown.
        capabilities: those of the engine.
        dictionaries: the tables of dictionaries by their names.
        lists: whether arrays are shown as lists; else they stay BLOBs.
    """
    writer = _Writer(type_, KernelCalls(capabilities))
    name, value = place
    relation: exp.Expr = table(name, alias=ALIAS)
    if value != VALUE:
        relation = subquery(tuples_query(place), ALIAS)
    source = writer.convert_to(relation, layout, form)
    lists = lists and form.rows != "kept"
    length = type_.dense_size(form.layout) if form.fixed_length else None
    return select_readable(
        source, ALIAS, type_, form.layout, capabilities, dictionaries, lists=lists, length=length
    )


def needs_kernels(layout: Layout, form: WrittenForm) -> bool:
    """True if kernels are called to bring a relation into a form."""
    return not (layout.scalar and form.layout.scalar)


class _Writer:
    """Brings the relation of one tensor into forms; every source has the alias `ALIAS`."""

    def __init__(self, type_: TensorType, kernels: KernelCalls) -> None:
        self._type = type_
        self._kernels = kernels
        self._names = key_columns(type_)

    def convert_to(self, source: exp.Expr, layout: Layout, form: WrittenForm) -> exp.Expr:
        """Return the relation in FROM for the tensor in a form."""
        target, prune = form.layout, form.rows == "nonfill"
        if form.rows == "kept":
            return source
        if not layout.plain:
            for change in changes(layout, layout.shown):
                source = self._change_layout(source, layout, change)
                layout = change.layout
        if not set(layout.promoted) <= set(target.promoted):
            # A group of entries that differ from the fill stacks to an array that differs from it.
            finer = layout.union(target)
            if finer != layout:
                source = self._decompose_rows(source, layout, finer, prune=True)
            elif prune:
                source = self._prune_rows(source, layout)
            node = plan.Stack(self._read(finer), target)
            source = _subquery(repartition(node, source, ALIAS, self._kernels))
            layout, prune = target, False
        if form.every_row:
            source = self._complete(source, layout)
        if layout != target:
            if target.scalar:
                return self._entries(source, layout, prune)
            return self._decompose_rows(source, layout, target, prune)
        return self._prune_rows(source, layout) if prune else source

    def _change_layout(self, source: exp.Expr, layout: Layout, change: LayoutChange) -> exp.Expr:
        """Expand tiles and compressed arrays."""
        node = RELATIONS[change.kind](self._read(layout), change.layout)
        return _subquery(repartition(node, source, ALIAS, self._kernels))

    def _read(self, layout: Layout) -> plan.Read:
        return plan.Read("", "", self._type, layout)

    def _decompose_rows(
        self, source: exp.Expr, layout: Layout, target: Layout, prune: bool
    ) -> exp.Expr:
        if target.scalar:
            return self._entries(source, layout, prune)
        read: plan.Relation = self._read(layout)
        if not layout.promoted:  # a filter that lets some rows through copies the array for each
            read, source = plan.ByReference(read), in_list(source, ALIAS)
        node = plan.Decompose(read, target)
        return _subquery(repartition(node, source, ALIAS, self._kernels, prune=prune))

    def _prune_rows(self, source: exp.Expr, layout: Layout) -> exp.Expr:
        """The rows that hold an entry other than the fill."""
        type_, value = self._type, column(VALUE, ALIAS)
        if layout.scalar:
            condition = differs(value, type_)
        else:
            fill = number(type_.fill, type_.dtype)
            condition = self._kernels.scalar("any_not", value, fill, dtype=type_.dtype)
        return _subquery(select(exp.Star()).from_(source).where(condition))

    def _complete(self, source: exp.Expr, layout: Layout) -> exp.Expr:
        """A row for every position of the keys."""
        return _subquery(densify(self._type, layout, source, ALIAS, self._kernels))

    def _entries(self, source: exp.Expr, layout: Layout, prune: bool) -> exp.Expr:
        """A row for each entry: arrays are unnested together with lists of their positions.

        That is faster than a join with the positions, and than DuckDB's division of one number for
        each row: the lists are constants.
        """
        type_, names = self._type, self._names
        keys = [column(names[axis], ALIAS) for axis in layout.promoted]
        entries = self._kernels.scalar("vec_to_list", column(VALUE, ALIAS), dtype=type_.dtype)
        size = type_.dense_size(layout)
        steps = dict(zip(layout.dense, strides(type_.dense_shape(layout)), strict=True))
        unnested = [
            add_alias(function("unnest", self._positions(axis, size, steps[axis])), names[axis])
            for axis in layout.dense
        ]
        query = select(*keys, *unnested, add_alias(function("unnest", entries), VALUE)).from_(
            source
        )
        if prune:
            query = select(exp.Star()).from_(query.subquery(alias=identifier(ALIAS)))
            query = query.where(differs(column(VALUE, ALIAS), type_))
        return _subquery(query)

    def _positions(self, axis: int, size: int, step: int) -> exp.Expr:
        """The position along an axis of each element of an array, as a list."""
        bound, whole = self._type.shape[axis], function("range", integer(size))
        listed = f"{key_type(self._type, axis)}[]"
        if step == 1 and bound == size:
            return cast(whole, listed)
        place = exp.to_identifier("place")
        position: exp.Expr = exp.column(place.copy())
        if step > 1:
            position = exp.IntDiv(this=position, expression=integer(step))
        if step * bound < size:
            position = exp.Mod(this=exp.paren(position), expression=integer(bound))
        each = exp.Lambda(this=position, expressions=[place], colon=True)
        return cast(function("list_transform", whole, each), listed)


def _subquery(query: exp.Select) -> exp.Expr:
    return query.subquery(alias=identifier(ALIAS))
