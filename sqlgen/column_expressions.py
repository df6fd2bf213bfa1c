"""Rows of wide tables by expressions over their columns: one SELECT inside another.

Each SELECT has the keys, the entries that are still needed, and those of one more operation. DuckDB
computes each of them once for a vector of rows. Expressions name what they are made of as columns,
so that none grows with the number of operations before it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sqlglot import exp, select

from ucle.foundation.dtypes import DType, Scalar
from ucle.foundation.names import fold_name, unique_names
from ucle.operators import Combine
from ucle.plan.relation_nodes import Cell, ColumnExpressions, ColumnStage
from ucle.sqlgen.input_tables import whole_table, wide_value
from ucle.sqlgen.kernel_calls import KernelCalls
from ucle.sqlgen.sql_trees import (
    VALUE,
    add_alias,
    cast,
    column,
    key_columns,
    number,
    select_from,
    subquery,
)
from ucle.sqlgen.table_scans import scan_keys

ALIAS = "T"

Entries = tuple[tuple[tuple[Cell | Scalar, ...], ...], ...]


def compute_rows(node: ColumnExpressions, kernels: KernelCalls, prefix: str) -> exp.Select:
    """Return the query that computes the array of each row of a table."""
    source, own = node.input.source, key_columns(node.type)
    keys = [own[axis] for axis in node.axes]
    stages, cells = _Splitter(kernels).split(node)
    wanted = _find_wanted(stages, cells)
    names = _name_cells(node, stages, wanted, keys)
    values = [
        wide_value(source, source.wide[x.number]).as_(names[x], quoted=True) for x in wanted[0]
    ]
    rows = select(*map(column, source.keys), *values).from_(whole_table(source, prefix))
    query, found = scan_keys(node.input, subquery(rows, ALIAS), ALIAS, prefix)
    query = query.select(
        *(add_alias(key.unalias(), name) for key, name in zip(found, keys, strict=True)),
        *(column(names[cell], ALIAS) for cell in wanted[0]),
        copy=False,
    )
    for place, stage in enumerate(stages, 1):
        outputs: list[exp.Expr] = [column(key) for key in keys]
        for cell in wanted[place]:
            if cell.stage == place:
                value = _write_entry(stage, stage.entries[cell.number], names, kernels)
                outputs.append(add_alias(value, names[cell]))
            else:
                outputs.append(column(names[cell]))
        query = select_from(subquery(query, ALIAS), *outputs)
    order = sorted(range(len(keys)), key=node.axes.__getitem__)
    entries = [column(names[cell]) for cell in cells]
    value = entries[0]
    if not node.layout.scalar:
        value = cast(exp.Array(expressions=entries), node.type.dtype, 1)
        if kernels.available:
            value = kernels.scalar("pack", value, dtype=node.type.dtype)
    shown = [column(keys[n]) for n in order]
    return select_from(subquery(query, ALIAS), *shown, add_alias(value, VALUE))


def _write_entry(
    stage: ColumnStage,
    terms: Sequence[Sequence[Cell | Scalar]],
    names: Mapping[Cell, str],
    kernels: KernelCalls,
) -> exp.Expr:
    """The expression of an entry: one operation, or a sum of products."""
    written = []
    for term in terms:
        operands = [
            column(names[x]) if isinstance(x, Cell) else number(x, stage.dtype) for x in term
        ]
        value: exp.Expr = operands[0]
        if stage.combine is not None:
            value = kernels.combine_numbers(stage.combine, value, operands[1], stage.dtype)
        for function in stage.maps:
            value = kernels.map_number(function, value)
        written.append(value)
    while len(written) > 1:  # in pairs, which loses fewer digits than one after the other
        assert stage.merge is not None
        pairs = [written[n : n + 2] for n in range(0, len(written), 2)]
        written = [
            kernels.combine_numbers(stage.merge, pair[0], pair[1], stage.dtype)
            if len(pair) > 1
            else pair[0]
            for pair in pairs
        ]
    return written[0]


def _find_wanted(stages: Sequence[ColumnStage], cells: Sequence[Cell]) -> list[list[Cell]]:
    """Return the entries that are needed after each stage, from the table on."""
    needed = set(cells)
    found = [needed]
    for place in range(len(stages), 0, -1):
        here = {cell for cell in needed if cell.stage == place}
        entries = (stages[place - 1].entries[cell.number] for cell in here)
        operands = {x for entry in entries for term in entry for x in term if isinstance(x, Cell)}
        needed = (needed - here) | operands
        found.append(needed)
    return [sorted(each, key=lambda cell: (cell.stage, cell.number)) for each in reversed(found)]


def _name_cells(
    node: ColumnExpressions,
    stages: Sequence[ColumnStage],
    wanted: Sequence[Sequence[Cell]],
    keys: Sequence[str],
) -> dict[Cell, str]:
    """Return names of columns that differ from each other and from the keys."""
    source = node.input.source
    every = list(dict.fromkeys(cell for level in wanted for cell in level))
    stems = [
        source.wide[cell.number]
        if not cell.stage
        else f"{stages[cell.stage - 1].tensor}_{cell.number}"
        for cell in every
    ]
    taken = {fold_name(name) for name in (*keys, *source.keys, VALUE)}
    return dict(zip(every, unique_names(stems, taken), strict=True))


class _Splitter:
    """Splits stages where an expression would name a long expression several times."""

    def __init__(self, kernels: KernelCalls) -> None:
        self._kernels = kernels
        self._stages: list[ColumnStage] = []

    def split(self, node: ColumnExpressions) -> tuple[list[ColumnStage], list[Cell]]:
        """Return stages that are one operation each, or sums of products, and the cells again."""
        moved: dict[Cell, Cell | Scalar] = {}

        def place(operand: Cell | Scalar) -> Cell | Scalar:
            return moved.get(operand, operand) if isinstance(operand, Cell) else operand

        for number_, stage in enumerate(node.stages, 1):
            entries = tuple(
                tuple(tuple(map(place, term)) for term in entry) for entry in stage.entries
            )
            made = self._split_stage(replace(stage, entries=entries))
            moved |= {Cell(number_, n): cell for n, cell in enumerate(made)}
        cells = [place(cell) for cell in node.cells]
        return self._stages, [cell for cell in cells if isinstance(cell, Cell)]

    def _split_stage(self, stage: ColumnStage) -> list[Cell | Scalar]:
        """Add the stages of one, and return its entries."""
        entries, merge = stage.entries, stage.merge
        if stage.combine is None or (merge is not None and not self._is_short(stage)):
            entries = self._term_by_term(stage)
            if merge is None:
                return [entry[0][0] for entry in entries]
            if self._is_short(stage):
                return self._add(replace(stage, combine=None, maps=(), entries=entries))
            return self._merge_pairs(stage, entries)
        return self._add(stage)

    def _term_by_term(self, stage: ColumnStage) -> Entries:
        """The entries with each term computed by itself, one function after the other."""
        terms = [term for entry in stage.entries for term in entry]
        if stage.combine is not None:
            made = self._add(replace(stage, merge=None, entries=tuple((x,) for x in terms)))
            terms = [(cell,) for cell in made]
        for function in stage.maps:
            one = replace(stage, maps=(function,), merge=None, entries=tuple((x,) for x in terms))
            terms = [(cell,) for cell in self._add(one)]
        left = iter(terms)
        return tuple(tuple(next(left) for _ in entry) for entry in stage.entries)

    def _merge_pairs(self, stage: ColumnStage, entries: Entries) -> list[Cell | Scalar]:
        """Merge the terms of each entry in pairs, a stage for each round."""
        while len(entries[0]) > 1:
            pairs = [
                [(*left, *right) for left, right in zip(entry[::2], entry[1::2], strict=False)]
                for entry in entries
            ]
            flat = tuple((pair,) for each in pairs for pair in each)
            merged = iter(
                self._add(replace(stage, combine=stage.merge, maps=(), merge=None, entries=flat))
            )
            entries = tuple(
                (*((next(merged),) for _ in each), *(entry[-1:] if len(entry) % 2 else ()))
                for each, entry in zip(pairs, entries, strict=True)
            )
        return [entry[0][0] for entry in entries]

    def _is_short(self, stage: ColumnStage) -> bool:
        """True if the text of ⊕ of two terms names each of them once."""
        assert stage.merge is not None
        return _names_once(stage.merge, stage.dtype, self._kernels)

    def _add(self, stage: ColumnStage) -> list[Cell | Scalar]:
        self._stages.append(stage)
        return [Cell(len(self._stages), n) for n in range(len(stage.entries))]


def _names_once(operator: Combine, dtype: DType, kernels: KernelCalls) -> bool:
    value = kernels.combine_numbers(operator, column("x"), column("y"), dtype)
    return sum(1 for _ in value.find_all(exp.Column)) == 2
