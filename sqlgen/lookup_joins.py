"""Look-up joins in SQL: the base joined with all that is looked up, and one expression of them.

`ucle.plan.lookups` says what they are. Each operand but the base is the right side of a LEFT JOIN
by its keys, so that no tuple of the base is lost or repeated. In a FROM clause of such joins DuckDB
builds a table of each operand, and takes the base through all of them in one pipeline.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from ucle.foundation.names import unique_names
from ucle.plan.lookups import RowOperation
from ucle.plan.relation_nodes import LookupJoin
from ucle.sqlgen.kernel_calls import KernelCalls, Value
from ucle.sqlgen.missing_tuples import fill_value
from ucle.sqlgen.operand_aliases import Side
from ucle.sqlgen.scalar_operators import is_long
from ucle.sqlgen.sql_trees import (
    VALUE,
    add_alias,
    column,
    join,
    key_columns,
    select_from,
    subquery,
)


def look_up(
    node: LookupJoin, sides: Sequence[Side], sources: Sequence[exp.Expr], kernels: KernelCalls
) -> exp.Select:
    """Return the tuples of the base with the value of the last operation.

    Args:
        node: the look-up join.
        sides: its operands under their aliases.
        sources: the relations of these in FROM.
        kernels: how kernels are called.
    """
    base, *others = sides
    query = select_from(sources[0])
    values = [Value(base.value, scalar=True)]
    for side, source in zip(others, sources[1:], strict=True):
        matches = [
            exp.EQ(this=base.keys[label].copy(), expression=key) for label, key in side.keys.items()
        ]
        query = join(
            query, source, "LEFT", exp.and_(*matches, copy=False) if matches else exp.true()
        )
        type_, layout = side.relation.type, side.relation.layout
        fill = fill_value(type_, layout, kernels, {})
        values.append(Value(kernels.coalesce_fill(side.value, fill), layout.scalar))
    names = key_columns(node.type)
    keys = [base.keys[base.labels[axis]] for axis in base.relation.layout.promoted]
    own = [names[axis] for axis in node.layout.promoted]
    rows = _Rows(query, [add_alias(key, x) for key, x in zip(keys, own, strict=True)], values)
    for operation in node.operations:
        rows.apply(operation, kernels)
    return rows.query.select(*rows.keys, add_alias(rows.values[-1].sql, VALUE), copy=False)


class _Rows:
    """The query of some tuples: its FROM clause, its keys, and the values that are known so far."""

    def __init__(
        self, query: exp.Select, keys: Sequence[exp.Expr], values: Sequence[Value]
    ) -> None:
        self.query = query
        self.keys = list(keys)
        self.values = list(values)

    def apply(self, operation: RowOperation, kernels: KernelCalls) -> None:
        """Add the value of an operation."""
        given = [self.values[number] for number in operation.inputs]
        if any(value.scalar and is_long(value.sql) for value in given):
            self._name_values()
            given = [self.values[number] for number in operation.inputs]
        given = [Value(value.sql.copy(), value.scalar) for value in given]
        sql, scalar = given[0].sql, given[0].scalar
        if operation.maps and not scalar:
            sql = kernels.maps(operation.maps, sql)
        for step in operation.maps if scalar else ():
            sql = kernels.map_number(step, sql)
        if operation.combine is not None and operation.kernel.name is None:
            sql = kernels.combine_numbers(
                operation.combine, given[0].sql, given[1].sql, operation.dtype
            )
        elif operation.kernel.name is not None:
            given[0] = Value(sql, scalar)
            sql = kernels.contract(operation.kernel, given, operation.dtype, {})
        self.values.append(Value(sql, operation.kernel.scalar))

    def _name_values(self) -> None:
        """Compute all values so far in a SELECT of its own, so that their texts stay short."""
        keys = [key.alias_or_name for key in self.keys]
        names = unique_names(["v"] * len(self.values), {VALUE, *map(str.casefold, keys)})
        named = (add_alias(value.sql, x) for value, x in zip(self.values, names, strict=True))
        inner = subquery(self.query.select(*self.keys, *named, copy=False), "T")
        self.query = select_from(inner)
        self.keys = [column(name, "T") for name in keys]
        self.values = [
            Value(column(name, "T"), value.scalar)
            for value, name in zip(self.values, names, strict=True)
        ]
