"""Repartitions in SQL: a tensor relation brought from one layout to another.

Decompose and STACK are the paper's (sparse_einsum.txt, section 6). Where keys are exchanged for
others, doing one after the other makes a tuple of every entry; `plan.Exchange` does not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from sqlglot import exp

from ucle.ir.layouts import Layout
from ucle.ir.tensor_types import TensorType
from ucle.plan import steps as plan
from ucle.sqlgen.kernel_calls import KernelCalls
from ucle.sqlgen.sql_trees import (
    VALUE,
    cast,
    column,
    differs,
    function,
    grouped,
    integer,
    integers,
    integers_below,
    join,
    key_columns,
    key_type,
    named,
    number,
    scaled,
    select_from,
    strides,
    subquery,
    total,
)


def repartition(
    node: plan.Decompose | plan.Stack | plan.Exchange,
    source: exp.Expr,
    alias: str,
    kernels: KernelCalls,
    *,
    prune: bool = True,
) -> exp.Select:
    """The query of a repartition.

    Args:
        node: the repartition.
        source: what stands in the FROM clause for its input, under `alias`.
        alias: of the input.
        kernels: how kernels are called.
        prune: whether tuples of a `Decompose` that hold only the fill are left out.
    """
    match node:
        case plan.Decompose():
            return _decompose(node, source, alias, kernels, prune)
        case plan.Stack():
            return _stack(node, source, alias, kernels)
        case plan.Exchange():
            return _Exchange(node, alias, kernels).query(source)


def _steps(type_: TensorType, layout: Layout) -> dict[int, int]:
    """By how many elements a position of each dense axis moves within an array."""
    return dict(zip(layout.dense, strides(type_.dense_shape(layout)), strict=True))


def _joined(sizes: Sequence[int], steps: Sequence[int]) -> tuple[list[int], list[int]]:
    """Sizes and steps of axes, those that lie one behind the other as one: kernels take few.

    >>> _joined((2, 3, 4), (12, 4, 1)), _joined((2, 3, 4), (100, 4, 1))
    (([24], [1]), ([2, 12], [100, 1]))
    """
    joined: list[tuple[int, int]] = []
    for size, step in zip(sizes, steps, strict=True):
        if joined and joined[-1][1] == size * step:
            joined[-1] = joined[-1][0] * size, step
        else:
            joined.append((size, step))
    return [size for size, _ in joined], [step for _, step in joined]


def _decompose(
    node: plan.Decompose, source: exp.Expr, alias: str, kernels: KernelCalls, prune: bool
) -> exp.Select:
    """A tuple for every position of the axes that become keys (the paper's decompose)."""
    type_, before, after = node.type, node.input.layout, node.layout
    names = key_columns(type_)
    added = [axis for axis in after.promoted if axis not in before.promoted]
    step = _steps(type_, before)
    ranges = {axis: f"{names[axis]}_range" for axis in added}
    keys = [
        named(cast(column(names[a], ranges[a]), key_type(type_, a)), names[a])
        if a in ranges
        else column(names[a], alias)
        for a in after.promoted
    ]
    offset = total([scaled(column(names[axis], ranges[axis]), step[axis]) for axis in added])
    tensor = column(VALUE, alias)
    if not kernels.available:
        # The arrays are lists as they lie in the table; DuckDB counts their positions from 1.
        position = exp.Add(this=exp.Paren(this=offset), expression=integer(1))
        value: exp.Expr = function("list_extract", tensor, position)
    elif after.scalar:
        value = kernels.scalar("element", tensor, offset, dtype=type_.dtype)
    else:
        sizes, steps = _joined(type_.dense_shape(after), [step[axis] for axis in after.dense])
        places = integers(sizes), integers(steps)
        value = kernels.scalar("slice", tensor, offset, *places, dtype=type_.dtype)
    query = select_from(source, *keys, named(value, VALUE))
    for axis in added:
        positions = integers_below(type_.shape[axis], ranges[axis], names[axis])
        query = join(query, positions, "CROSS")
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
    step = _steps(type_, after)
    stacked = [axis for axis in before.promoted if axis not in after.promoted]
    keys = [column(names[axis], alias) for axis in after.promoted]
    offset = cast(
        total([scaled(cast(column(names[a], alias), "BIGINT"), step[a]) for a in stacked]),
        "BIGINT",
    )
    size = type_.dense_size(after)
    ends = [integer(size), number(type_.fill, type_.dtype)]
    rows: list[exp.Expr] = [column(VALUE, alias), offset]
    name, places = "stack", []
    if before.scalar:
        name = "stack_sca"
    elif after.dense[len(stacked) :] != before.dense:
        name = "stack_strided"
        sizes, steps = _joined(type_.dense_shape(before), [step[axis] for axis in before.dense])
        places = [integers(sizes), integers(steps)]
    trailing = [*places, *ends]
    value = kernels.aggregate(name, size, rows, trailing=trailing, dtype=type_.dtype)
    query = select_from(source, *keys, named(value, VALUE))
    return grouped(query, keys)


@dataclass(frozen=True)
class _Exchange:
    """The three queries of an exchange of keys, one inside the other."""

    node: plan.Exchange
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
        """Axes that are keys of the input, but for the one that is blocked."""
        return [axis for axis in self.node.input.layout.promoted if axis != self.node.axis]

    @cached_property
    def added(self) -> list[int]:
        """Axes that become keys."""
        before = self.node.input.layout
        return [axis for axis in self.node.layout.promoted if axis not in before.promoted]

    @cached_property
    def unmoved(self) -> list[int]:
        """Axes that stay inside of the arrays."""
        return [axis for axis in self.node.input.layout.dense if axis not in self.added]

    def blocks(self, source: exp.Expr) -> exp.Select:
        """Tuples of the input, one after the other in arrays of `block` of them."""
        node, type_ = self.node, self.node.type
        width = type_.dense_size(node.input.layout)
        position = cast(column(self.names[node.axis], self.alias), "BIGINT")
        part = exp.IntDiv(this=position, expression=integer(node.block))
        within = exp.Paren(this=exp.Mod(this=position.copy(), expression=integer(node.block)))
        length = node.block * width
        stacked = self.kernels.aggregate(
            "stack",
            length,
            [column(VALUE, self.alias), scaled(within, width)],
            trailing=[integer(length), number(type_.fill, type_.dtype)],
            dtype=type_.dtype,
        )
        keys = [column(self.names[axis], self.alias) for axis in self.others]
        query = select_from(source, *keys, named(part, self.numbered), named(stacked, VALUE))
        return grouped(query, [*keys, part])

    def cuts(self, blocks: exp.Select) -> exp.Select:
        """Of each block the part at every position of the axes that become keys."""
        type_, names = self.node.type, self.names
        before = self.node.input.layout
        step = _steps(type_, before)
        ranges = {axis: f"{names[axis]}_range" for axis in self.added}
        keys = [column(names[axis], "blocks") for axis in self.others]
        new = [
            named(cast(column(names[axis], ranges[axis]), key_type(type_, axis)), names[axis])
            for axis in self.added
        ]
        cut = self.kernels.scalar(
            "slice",
            column(VALUE, "blocks"),
            total([scaled(column(names[axis], ranges[axis]), step[axis]) for axis in self.added]),
            self._sizes(),
            integers([type_.dense_size(before), *(step[axis] for axis in self.unmoved)]),
            dtype=type_.dtype,
        )
        columns = *keys, *new, column(self.numbered, "blocks"), named(cut, VALUE)
        query = select_from(subquery(blocks, "blocks"), *columns)
        for axis in self.added:
            names_of = integers_below(type_.shape[axis], ranges[axis], names[axis])
            query = join(query, names_of, "CROSS")
        return query

    def query(self, source: exp.Expr) -> exp.Select:
        """The cuts in their places."""
        node, type_ = self.node, self.node.type
        place, size = _steps(type_, node.layout), type_.dense_size(node.layout)
        moved = [axis for axis in self.others if axis not in node.layout.promoted]
        offset = total(
            [
                scaled(column(self.numbered, "cuts"), node.block * place[node.axis]),
                *(
                    scaled(cast(column(self.names[axis], "cuts"), "BIGINT"), place[axis])
                    for axis in moved
                ),
            ]
        )
        # Where a cut stays in one piece, its length says all; else blocks are of one size.
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
        return grouped(select_from(cuts, *keys, named(value, VALUE)), keys)

    def _sizes(self) -> exp.Expr:
        """The shape of a cut: the last block may be shorter than the others."""
        type_, block = self.node.type, self.node.block
        bound, unmoved = type_.shape[self.node.axis], [type_.shape[axis] for axis in self.unmoved]
        if bound % block == 0:
            return integers([block, *unmoved])
        left = exp.Sub(this=integer(bound), expression=scaled(column(self.numbered), block))
        count = exp.func("least", integer(block), left, copy=False)
        return exp.Array(expressions=[count, *(integer(size) for size in unmoved)])
