"""Repartitions in SQL: a tensor relation converted from one layout to another.

Decompose and STACK are the paper's (sparse_einsum.txt, section 6). Where some keys are replaced by
others, doing one after the other would make a tuple of every entry; `plan.Exchange` does not.
"""

from __future__ import annotations

from functools import cached_property

from sqlglot import exp

from ucle.foundation.dataclasses import dataclass
from ucle.ir.layouts import Layout, Level
from ucle.ir.tensor_types import TensorType
from ucle.plan import relation_nodes as plan
from ucle.sqlgen.array_extents import Extents, merge_axes
from ucle.sqlgen.compressed_arrays import repartition_compressed
from ucle.sqlgen.from_clause import positions
from ucle.sqlgen.kernel_calls import KernelCalls
from ucle.sqlgen.operand_aliases import joined_column
from ucle.sqlgen.sql_trees import (
    VALUE,
    add_alias,
    cast,
    column,
    differs,
    first_of,
    function,
    group_by_keys,
    integer,
    integers,
    join,
    key_columns,
    key_type,
    number,
    scale_key,
    select_from,
    strides,
    subquery,
    total,
)


def repartition(
    node: plan.Rearrange,
    source: exp.Expr,
    alias: str,
    kernels: KernelCalls,
    *,
    prune: bool = True,
) -> exp.Select:
    """The query of a repartition.

    Args:
        node: the repartition.
        source: the relation in the FROM clause for its input, under `alias`.
        alias: of the input.
        kernels: how kernels are called.
        prune: whether tuples of a `Decompose` that hold only the fill are left out.
    """
    match node:
        case plan.Decompose():
            return _decompose(node, source, alias, kernels, prune)
        case plan.Stack():
            return _stack(node, source, alias, kernels)
        case plan.BlockRepartition():
            return _Exchange(node, alias, kernels).query(source)
    return repartition_compressed(node, source, alias, kernels)


def tile_keys(type_: TensorType, layout: Layout, alias: str | None) -> dict[int, exp.Expr]:
    """The columns that number the tiles of a relation along each tiled axis."""
    names = key_columns(type_)
    return {axis: column(names[axis], alias) for axis in layout.tiled}


def _decompose(
    node: plan.Decompose, source: exp.Expr, alias: str, kernels: KernelCalls, prune: bool
) -> exp.Select:
    """A tuple for every position, or tile, of the axes that become keys (the paper's decompose)."""
    type_, before, after = node.type, node.input.layout, node.layout
    names = key_columns(type_)
    added = [a for a in after.promoted if before.levels[a] is not after.levels[a]]
    old_tiles = tile_keys(type_, before, alias)
    # Without kernels the arrays are lists as in the table, the last tiles included.
    extents = Extents(type_, before, old_tiles, padded=not kernels.available)
    counts = {
        axis: min(before.tile, type_.shape[axis])
        if before.levels[axis] is Level.TILED
        else type_.key_range(after, axis)
        for axis in added
    }
    numbers, numbered = positions({names[a]: count for a, count in counts.items()}, alias)
    ranges = {axis: numbered[names[axis]] for axis in added}
    places: dict[int, exp.Expr] = {axis: ranges[axis] for axis in added}
    for axis in added:
        if before.levels[axis] is Level.TILED:
            first = scale_key(column(names[axis], alias), before.tile)
            places[axis] = exp.Add(this=first, expression=ranges[axis].copy())
    keys = [
        add_alias(cast(places[a].copy(), key_type(type_, a)), names[a])
        if a in places
        else column(names[a], alias)
        for a in after.promoted
    ]
    moved = {
        axis: exp.Mul(this=ranges[axis].copy(), expression=integer(after.tile))
        if after.levels[axis] is Level.TILED
        else ranges[axis].copy()
        for axis in added
    }
    offset = total([extents.scale_position(moved[axis], extents.steps[axis]) for axis in added])
    tensor: exp.Expr = column(VALUE, alias)
    if isinstance(node.input, plan.ByReference):
        tensor = first_of(column(joined_column(node.input), alias))
    if not kernels.available:
        # DuckDB counts the positions of lists from 1.
        place = exp.Add(this=exp.Paren(this=offset), expression=integer(1))
        value: exp.Expr = function("list_extract", tensor, place)
    elif after.scalar:
        value = kernels.scalar("element", tensor, offset, dtype=type_.dtype)
    else:
        new_tiles = {axis: ranges.get(axis, old_tiles.get(axis)) for axis in after.tiled}
        inside = Extents(type_, after, {a: key for a, key in new_tiles.items() if key is not None})
        sizes, steps = merge_axes(
            [inside.sizes[axis] for axis in after.dense],
            [extents.steps[axis] for axis in after.dense],
        )
        shape = inside.list_sql(sizes), extents.list_sql(steps)
        value = kernels.scalar("slice", tensor, offset, *shape, dtype=type_.dtype)
    query = join(select_from(source, *keys, add_alias(value, VALUE)), numbers, "CROSS")
    for axis in added:
        if before.levels[axis] is Level.TILED and axis in extents.ragged:
            length = extents.tile_length(axis)
            query = query.where(exp.LT(this=ranges[axis].copy(), expression=length), copy=False)
    if not prune:
        return query
    if after.scalar:
        return query.where(differs(value, type_), copy=False)
    fill = number(type_.fill, type_.dtype)
    some = kernels.scalar("any_not", value.copy(), fill, dtype=type_.dtype)
    return query.where(some, copy=False)


def _stack(node: plan.Stack, source: exp.Expr, alias: str, kernels: KernelCalls) -> exp.Select:
    """Tuples that agree on the remaining keys, put into their places in one array (STACK)."""
    type_, before, after = node.type, node.input.layout, node.layout
    names = key_columns(type_)
    stacked = [a for a in before.promoted if before.levels[a] is not after.levels[a]]
    columns = {axis: column(names[axis], alias) for axis in before.promoted}
    keys: dict[int, exp.Expr] = {axis: columns[axis] for axis in after.promoted}
    places = {axis: cast(columns[axis].copy(), "BIGINT") for axis in stacked}
    for axis in stacked:
        if after.levels[axis] is Level.TILED:
            keys[axis] = exp.IntDiv(this=columns[axis].copy(), expression=integer(after.tile))
            places[axis] = exp.paren(exp.Mod(this=places[axis], expression=integer(after.tile)))
        elif before.levels[axis] is Level.TILED:
            places[axis] = scale_key(places[axis], before.tile)
    inside = Extents(type_, after, {axis: keys[axis] for axis in after.tiled})
    pieces = Extents(type_, before, tile_keys(type_, before, alias))
    offset = cast(
        total([inside.scale_position(places[a], inside.steps[a]) for a in stacked]), "BIGINT"
    )
    size = type_.dense_size(after)
    ends = [inside.sql(inside.length), number(type_.fill, type_.dtype)]
    rows: list[exp.Expr] = [column(VALUE, alias), offset]
    name, shape = "stack", []
    if before.scalar:
        name = "stack_sca"
    elif any(pieces.steps[axis] != inside.steps[axis] for axis in before.dense):
        name = "stack_strided"
        sizes, steps = merge_axes(
            [pieces.sizes[axis] for axis in before.dense],
            [inside.steps[axis] for axis in before.dense],
        )
        shape = [pieces.list_sql(sizes), inside.list_sql(steps)]
    value = kernels.aggregate(name, size, rows, trailing=[*shape, *ends], dtype=type_.dtype)
    named_keys = [
        add_alias(cast(key.copy(), key_type(type_, axis)), names[axis])
        if not isinstance(key, exp.Column)
        else column(names[axis], alias)
        for axis, key in keys.items()
    ]
    query = select_from(source, *named_keys, add_alias(value, VALUE))
    return group_by_keys(query, list(keys.values()), type_.tuple_bytes(after))


def _steps(type_: TensorType, layout: Layout) -> dict[int, int]:
    """The number of elements between neighbouring positions of each dense axis within an array."""
    return dict(zip(layout.dense, strides(type_.dense_shape(layout)), strict=True))


@dataclass(frozen=True)
class _Exchange:
    """The three nested queries of an exchange of keys."""

    node: plan.BlockRepartition
    alias: str
    kernels: KernelCalls

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The key column of each axis."""
        return key_columns(self.node.type)

    @cached_property
    def numbered(self) -> str:
        """The column with the number of a block."""
        name = f"{self.names[self.node.axis]}_block"
        while name.casefold() in {taken.casefold() for taken in self.names}:
            name += "_"
        return name

    @cached_property
    def others(self) -> list[int]:
        """Axes that are keys of the input, except the one that is blocked."""
        return [axis for axis in self.node.input.layout.promoted if axis != self.node.axis]

    @cached_property
    def added(self) -> list[int]:
        """Axes that become keys."""
        before = self.node.input.layout
        return [axis for axis in self.node.layout.promoted if axis not in before.promoted]

    @cached_property
    def unmoved(self) -> list[int]:
        """Axes that stay inside the arrays."""
        return [axis for axis in self.node.input.layout.dense if axis not in self.added]

    def blocks(self, source: exp.Expr) -> exp.Select:
        """Gather tuples of the input into arrays of `block` consecutive ones."""
        node, type_ = self.node, self.node.type
        width = type_.dense_size(node.input.layout)
        position = cast(column(self.names[node.axis], self.alias), "BIGINT")
        part = exp.IntDiv(this=position, expression=integer(node.block))
        within = exp.Paren(this=exp.Mod(this=position.copy(), expression=integer(node.block)))
        length = node.block * width
        stacked = self.kernels.aggregate(
            "stack",
            length,
            [column(VALUE, self.alias), scale_key(within, width)],
            trailing=[integer(length), number(type_.fill, type_.dtype)],
            dtype=type_.dtype,
        )
        keys = [column(self.names[axis], self.alias) for axis in self.others]
        query = select_from(
            source, *keys, add_alias(part, self.numbered), add_alias(stacked, VALUE)
        )
        return group_by_keys(query, [*keys, part])

    def cuts(self, blocks: exp.Select) -> exp.Select:
        """Cut each block at every position of the axes that become keys."""
        type_, names = self.node.type, self.names
        before = self.node.input.layout
        step = _steps(type_, before)
        sizes = {names[axis]: type_.shape[axis] for axis in self.added}
        numbers, ranges = positions(sizes, "blocks")
        keys = [column(names[axis], "blocks") for axis in self.others]
        new = [
            add_alias(cast(ranges[names[axis]].copy(), key_type(type_, axis)), names[axis])
            for axis in self.added
        ]
        cut = self.kernels.scalar(
            "slice",
            column(VALUE, "blocks"),
            total([scale_key(ranges[names[axis]].copy(), step[axis]) for axis in self.added]),
            self._sizes(),
            integers([type_.dense_size(before), *(step[axis] for axis in self.unmoved)]),
            dtype=type_.dtype,
        )
        columns = *keys, *new, column(self.numbered, "blocks"), add_alias(cut, VALUE)
        query = select_from(subquery(blocks, "blocks"), *columns)
        return join(query, numbers, "CROSS")

    def query(self, source: exp.Expr) -> exp.Select:
        """Put the cuts in their places."""
        node, type_ = self.node, self.node.type
        place, size = _steps(type_, node.layout), type_.dense_size(node.layout)
        moved = [axis for axis in self.others if axis not in node.layout.promoted]
        offset = total(
            [
                scale_key(column(self.numbered, "cuts"), node.block * place[node.axis]),
                *(
                    scale_key(cast(column(self.names[axis], "cuts"), "BIGINT"), place[axis])
                    for axis in moved
                ),
            ]
        )
        # Where a cut stays in one piece, its length suffices; else all blocks have one size.
        whole = node.layout.dense[-1 - len(self.unmoved) :] == (node.axis, *self.unmoved)
        places = integers([place[node.axis], *(place[axis] for axis in self.unmoved)])
        value = self.kernels.aggregate(
            "stack" if whole else "stack_strided",
            size,
            [column(VALUE, "cuts"), offset],
            trailing=[
                *([] if whole else [self._sizes(), places]),
                integer(size),
                number(type_.fill, type_.dtype),
            ],
            dtype=type_.dtype,
        )
        keys = [column(self.names[axis], "cuts") for axis in node.layout.promoted]
        cuts = subquery(self.cuts(self.blocks(source)), "cuts")
        query = select_from(cuts, *keys, add_alias(value, VALUE))
        return group_by_keys(query, keys, type_.tuple_bytes(node.layout))

    def _sizes(self) -> exp.Expr:
        """The shape of a cut: the last block may be shorter than the others."""
        type_, block = self.node.type, self.node.block
        bound, unmoved = type_.shape[self.node.axis], [type_.shape[axis] for axis in self.unmoved]
        if bound % block == 0:
            return integers([block, *unmoved])
        left = exp.Sub(this=integer(bound), expression=scale_key(column(self.numbered), block))
        count = exp.func("least", integer(block), left, copy=False)
        return exp.Array(expressions=[count, *(integer(size) for size in unmoved)])
