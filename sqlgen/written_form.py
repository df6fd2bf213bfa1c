"""The SQL that writes a tensor in a form: columns and rows that do not depend on the plan.

The stored relation is converted to the form's layout, rows are pruned or completed, and coordinates
become those of the data. Nothing passes through Python.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from sqlglot import exp, select

from ucle.foundation.names import fold_name, unique_names
from ucle.ir.layouts import Layout
from ucle.ir.tensor_types import TensorType
from ucle.plan import relation_nodes as plan
from ucle.plan.forms import WrittenForm
from ucle.plan.plan_program import RELATIONS
from ucle.plan.repartition_paths import LayoutChange, changes
from ucle.sqlgen.cached_texts import cached_rows
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

MANY_ARRAYS = 32
"""From so many arrays on, their positions are constant lists, which divide each place once.

DuckDB takes 0.1 us for each element of a constant, as long as for 30 divisions.
"""

LONG_CONSTANT = 4096
"""The longest list of positions that is a constant whatever the number of arrays is."""


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
    return select_readable(
        source,
        ALIAS,
        type_,
        form.layout,
        capabilities,
        dictionaries,
        lists=lists,
        length=type_.dense_size(form.layout) if form.fixed_length else None,
        unnested=not set(form.layout.promoted) <= set(layout.promoted),
    )


@cached_rows(varying=["name", "dictionaries"])
def written_rows(
    name: str,
    value: str,
    type_: TensorType,
    layout: Layout,
    form: WrittenForm,
    capabilities: Capabilities,
    dictionaries: Mapping[str, str],
    lists: bool,
) -> exp.Select:
    """Return `written_query`, remembered as text.

    `name` is that of the table that holds the tensor, and `value` the column of its values. The
    others are as there.
    """
    place = name, value
    return written_query(place, type_, layout, form, capabilities, dictionaries, lists=lists)


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
        """A row for each entry: arrays are unnested together with their positions.

        That is faster than a join with the positions.
        """
        type_ = self._type
        keys = [column(self._names[axis], ALIAS) for axis in layout.promoted]
        entries = self._kernels.scalar("vec_to_list", column(VALUE, ALIAS), dtype=type_.dtype)
        arrays = math.prod(type_.key_range(layout, axis) for axis in layout.promoted)
        size = type_.dense_size(layout)
        steps = dict(zip(layout.dense, strides(type_.dense_shape(layout)), strict=True))
        if arrays < MANY_ARRAYS and size > LONG_CONSTANT:
            query = self._divide_places(source, keys, entries, size, steps)
        else:
            unnested = [
                add_alias(
                    function("unnest", self._positions(axis, size, steps[axis])), self._names[axis]
                )
                for axis in layout.dense
            ]
            query = select(*keys, *unnested, add_alias(function("unnest", entries), VALUE))
            query = query.from_(source)
        if prune:
            query = select(exp.Star()).from_(query.subquery(alias=identifier(ALIAS)))
            query = query.where(differs(column(VALUE, ALIAS), type_))
        return _subquery(query)

    def _divide_places(
        self,
        source: exp.Expr,
        keys: list[exp.Column],
        entries: exp.Expr,
        size: int,
        steps: Mapping[int, int],
    ) -> exp.Select:
        """The entries of long arrays, each at the quotients of its number in its array."""
        listed = _subquery(select(*keys, add_alias(entries, VALUE)).from_(source))
        own = column(VALUE, ALIAS)
        numbers = function("unnest", function("range", function("len", own.copy())))
        (place,) = unique_names(("place",), {fold_name(name) for name in (*self._names, VALUE)})
        numbered = select(
            *(key.copy() for key in keys),
            add_alias(numbers, place),
            add_alias(function("unnest", own), VALUE),
        ).from_(listed)
        divided = [
            add_alias(
                cast(
                    self._divide_place(column(place, ALIAS), axis, size, step),
                    key_type(self._type, axis),
                ),
                self._names[axis],
            )
            for axis, step in steps.items()
        ]
        every = select(*(key.copy() for key in keys), *divided, column(VALUE, ALIAS))
        return every.from_(_subquery(numbered))

    def _positions(self, axis: int, size: int, step: int) -> exp.Expr:
        """The position along an axis of each element of an array, as a constant list."""
        whole = function("range", integer(size))
        listed = f"{key_type(self._type, axis)}[]"
        place = exp.to_identifier("place")
        number: exp.Expr = exp.column(place.copy())
        position = self._divide_place(number, axis, size, step)
        if position is number:
            return cast(whole, listed)
        each = exp.Lambda(this=position, expressions=[place], colon=True)
        return cast(function("list_transform", whole, each), listed)

    def _divide_place(self, place: exp.Expr, axis: int, size: int, step: int) -> exp.Expr:
        """The position along an axis by the number of an element in its array."""
        bound = self._type.shape[axis]
        if step > 1:
            place = exp.IntDiv(this=place, expression=integer(step))
        if step * bound < size:
            place = exp.Mod(this=exp.paren(place), expression=integer(bound))
        return place


def _subquery(query: exp.Select) -> exp.Expr:
    return query.subquery(alias=identifier(ALIAS))
