"""A plan to SQL: one SELECT per step, as sqlglot trees.

Every emitted relation has one key column per promoted axis, named after its label, and ``val``. The
emitter knows the engine only through `Capabilities`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

from sqlglot import exp, select

from ucle.foundation.names import fold_name, unique_names
from ucle.ir.fills import JoinKind, Missing
from ucle.ir.layouts import Layout
from ucle.ir.tensor_types import TensorType
from ucle.plan import relation_nodes as plan
from ucle.plan.relation_tree import inputs
from ucle.plan.sources import TableSource
from ucle.plan.steps import Plan, Role, Round, Step
from ucle.sqlgen.array_extents import Extents
from ucle.sqlgen.capabilities import Capabilities
from ucle.sqlgen.entry_rows import tile_entries
from ucle.sqlgen.finiteness_checks import StoredPayload, nan_query
from ucle.sqlgen.from_clause import Joined, cross_join
from ucle.sqlgen.fused_steps import tape_query
from ucle.sqlgen.index_maps import reindex_tensor
from ucle.sqlgen.input_tables import (
    dictionary_query,
    duplicates_sum,
    key_value,
    list_value,
    scalar_value,
    source_table,
    sum_duplicates,
    sum_lists,
)
from ucle.sqlgen.kernel_calls import KernelCalls, Value
from ucle.sqlgen.missing_tuples import densify, fill_value
from ucle.sqlgen.nested_expressions import NestedExpression, SingleRow
from ucle.sqlgen.repartitions import repartition
from ucle.sqlgen.scalar_operators import combine_sql, is_long, reduce_sql, repeat_sql
from ucle.sqlgen.scans import scan_prefixes
from ucle.sqlgen.sql_trees import (
    VALUE,
    add_alias,
    ascending,
    beside,
    cast,
    column,
    constant,
    differs,
    either,
    first_of,
    group_by_keys,
    identifier,
    in_list,
    integer,
    join,
    key_columns,
    key_type,
    number,
    select_from,
    subquery,
    table,
    when,
)
from ucle.sqlgen.top_k import first_entries


@dataclass(frozen=True)
class SqlStep:
    """A step of the script: its name, its role, and its query (None: data from memory).

    `check` is a query that has a row if the computed data shows that this script is not valid for
    it.
    """

    name: str
    role: Role
    query: exp.Expr | None
    comment: str
    check: exp.Expr | None = None
    rounds: tuple[SqlRound, ...] = ()
    """Queries that fill the table one after the other, in place of `query`, if any."""


@dataclass(frozen=True)
class SqlRound:
    """One of several queries that fill a table; it reads `tables`, which belong to it alone."""

    tables: tuple[SqlStep, ...]
    query: exp.Expr


def emit(
    program_plan: Plan, capabilities: Capabilities, prefix: str = ""
) -> tuple[tuple[SqlStep, ...], dict[str, exp.Select]]:
    """Emit the steps of a plan, and for each output the SELECT that shows it as lists.

    Args:
        program_plan: the plan.
        capabilities: those of the engine.
        prefix: prepended to the name of every relation that the script makes.
    """
    emitter = _Emitter(capabilities, prefix)
    steps = [
        SqlStep(
            prefix + dictionary.name,
            Role.TABLE,
            dictionary_query(dictionary, prefix),
            f"{dictionary.name}: coordinates of "
            + ", ".join(f"{source.origin}.{name}" for source, name in dictionary.columns),
        )
        for dictionary in program_plan.dictionaries
    ]
    for step in program_plan.steps:
        query = None if step.role is Role.INPUT else emitter.statement(step)
        checked = [x for x in program_plan.checked if x.step == step.name]
        check = None
        if checked and step.role is Role.TABLE:
            check = nan_query([locate_payload(read, prefix) for read in checked], capabilities)
        rounds = tuple(map(emitter.round, step.rounds))
        steps.append(SqlStep(prefix + step.name, step.role, query, step.comment, check, rounds))
    axes = [axis for read in program_plan.outputs.values() for axis in read.type.axes]
    dictionaries = {x.dictionary: prefix + x.dictionary for x in axes if x.dictionary is not None}
    outputs = {
        name: result_query(locate_payload(read, prefix), capabilities, dictionaries)
        for name, read in program_plan.outputs.items()
    }
    return tuple(steps), outputs


def locate_payload(read: plan.Read, prefix: str) -> StoredPayload:
    """The table and column that hold the tensor of a step when the script has run."""
    return StoredPayload(prefix + read.step, read.type, read.layout, read.column or VALUE)


def result_query(
    stored: StoredPayload, capabilities: Capabilities, dictionaries: Mapping[str, str]
) -> exp.Select:
    """Return the SELECT that shows a tensor with arrays as lists and ids decoded.

    Args:
        stored: where it is.
        capabilities: those of the engine.
        dictionaries: the tables of dictionaries by their names.
    """
    type_, layout = stored.type, stored.layout
    alias = "T" if any(axis.dictionary for axis in type_.axes) else None
    source = table(stored.name, alias=alias)
    return select_readable(
        source, alias, type_, layout, capabilities, dictionaries, value=stored.value
    )


def select_readable(
    source: exp.Expr,
    alias: str | None,
    type_: TensorType,
    layout: Layout,
    capabilities: Capabilities,
    dictionaries: Mapping[str, str],
    *,
    lists: bool = True,
    value: str = VALUE,
) -> exp.Select:
    """Return the SELECT that shows any relation in FROM; dictionaries require an alias."""
    names = key_columns(type_)
    keys: list[exp.Expr] = []
    query = select_from(source)
    for axis in layout.promoted:
        key: exp.Expr = column(names[axis], alias)
        if (dictionary := type_.axes[axis].dictionary) is not None:
            ids = f"{names[axis]}_ids"
            match = exp.EQ(this=column("id", ids), expression=key)
            query = join(query, table(dictionaries[dictionary], alias=ids), on=match)
            key = column("value", ids)
        keys.append(add_alias(key, names[axis]))
    payload: exp.Expr = column(value, alias)
    if lists and not layout.scalar:
        payload = KernelCalls(capabilities).scalar("vec_to_list", payload, dtype=type_.dtype)
    return query.select(*keys, add_alias(payload, VALUE), copy=False)


class _Emitter:
    """Emits the query of one relation at a time."""

    def __init__(self, capabilities: Capabilities, prefix: str) -> None:
        self._capabilities = capabilities
        self._kernels = KernelCalls(capabilities)
        self._prefix = prefix

    def statement(self, step: Step) -> exp.Query:
        """Return the query that makes a step, with its views as common table expressions.

        Those that are marked as tables are computed once.
        """
        return self._with_views(self.query(step.relation), step.views)

    def round(self, part: Round) -> SqlRound:
        """Return the tables of a round, and its query."""
        tables = tuple(
            SqlStep(self._prefix + x.name, x.role, self.statement(x), x.comment)
            for x in part.tables
        )
        return SqlRound(tables, self._with_views(self.query(part.relation), part.views))

    def _with_views(self, query: exp.Query, views: Sequence[Step]) -> exp.Query:
        for view in views:
            once = view.role is Role.TABLE
            name = identifier(self._prefix + view.name)
            inner = self.query(view.relation)
            first = inner
            while isinstance(first, exp.Union):
                first = first.this
            # DuckDB nests comments, and a glob of files would open one inside.
            first.add_comments([x.replace("/*", "/ *") for x in view.comment.splitlines()])
            query.with_(name, inner, materialized=once, copy=False)
        return query

    def query(self, relation: plan.Relation) -> exp.Query:
        """Return the query that makes a relation."""
        match relation:
            case plan.ConstantRelation() | plan.FusedMaps():
                return self._expression(relation).query()
            case plan.Aggregate() if any(isinstance(x, plan.Nested) for x in inputs(relation)):
                return self._expression(relation).query()
            case plan.TableScan():
                return self._scan(relation)
            case plan.Densify():
                return self._densify(relation)
            case plan.Slices():
                return self._slices(relation)
            case plan.Portion(source, axis, start, end):
                return self._part(source, axis, start, end)
            case plan.Sorted(source):
                query, keys = self.query(source), len(relation.layout.promoted)
                # By place: in DuckDB 1.4 a column name of both sides of a join is ambiguous here.
                query.set("order", ascending(*(integer(n + 1) for n in range(keys))))
                return query
            case plan.Reindex():
                alias = _alias(relation.input)
                return reindex_tensor(
                    relation, self._from(relation.input, alias), alias, self._kernels
                )
            case plan.PrefixScan():
                alias = _alias(relation.input)
                before = self._from(relation.input, alias)
                return scan_prefixes(relation, before, alias, self._kernels)
            case plan.TopKEntries():
                alias = _alias(relation.input)
                return first_entries(
                    relation, self._from(relation.input, alias), alias, self._kernels
                )
            case plan.Aggregate():
                return self._reduce(relation)
            case plan.Read(step, column=member):
                value = exp.Star() if member is None else add_alias(column(member), VALUE)
                return select_from(table(self._prefix + step), value)
            case plan.FusedStep():
                return tape_query(relation, self._capabilities, self._prefix)
            case plan.Renamed(source):
                return self._rename_keys(source, relation.type)
            case plan.Load() | plan.Held() | plan.HeldRow():
                raise AssertionError("an array from memory is registered, not queried")
            case plan.Slot():
                raise AssertionError("what a tape has made is no relation")
            case plan.ByReference() | plan.Nested():
                raise AssertionError("a part of an expression or of a join is no query")
        alias = _alias(relation)
        before = self._from(relation.input, alias)
        return repartition(relation, before, alias, self._kernels)

    def _expression(self, relation: plan.Relation) -> NestedExpression:
        """Return a relation of one tuple as an expression over others."""
        if isinstance(relation, plan.ConstantRelation):
            return NestedExpression(constant(relation.data), ())
        if isinstance(relation, plan.TableScan):
            query = self._scan(relation)
            name = query.args["from_"].this.name
            value = query.expressions[0].unalias()
            (read,) = value.find_all(exp.Column)
            read.set("table", identifier(name))
            return NestedExpression(value, [SingleRow(name, name, read.name)])
        operands = inputs(relation)
        sources = [
            SingleRow(alias, self._prefix + name, _column_of(operand))
            for operand, alias, name in zip(
                operands, _aliases(operands), map(_step_of, operands), strict=True
            )
        ]
        nested = NestedExpression(self._apply_to_values(relation, sources), sources)
        for operand, source in zip(operands, sources, strict=True):
            if isinstance(operand, plan.Nested):
                nested.put(source.alias, self._expression(operand.input))
        return nested

    def _apply_to_values(self, relation: plan.Relation, sources: Sequence[SingleRow]) -> exp.Expr:
        """The values of a relation without keys, computed from those of its operands."""
        values = [source.value() for source in sources]
        if isinstance(relation, plan.FusedMaps):
            return self._kernels.chain(
                relation.program,
                [Value(v, x.layout.scalar) for v, x in zip(values, relation.operands, strict=True)],
                [operand.type.dtype for operand in relation.operands],
                relation.type.dtype,
                reduced=relation.layout.scalar,
            )
        assert isinstance(relation, plan.Aggregate)
        operands = inputs(relation)
        scalar = [operand.layout.scalar for operand in operands]
        maps = relation.input.maps
        if maps and operands[0].layout.compressed is not None:
            values = [self._kernels.map_entries(operands[0].type, maps, values[0])]
        elif maps and not scalar[0]:
            values = [self._kernels.maps(maps, values[0])]
        elif maps:
            for step in maps:
                values[0] = self._kernels.map_number(step, values[0])
        return self._payload(relation, [Value(*x) for x in zip(values, scalar, strict=True)], {})

    def _from(self, relation: plan.Relation, alias: str) -> exp.Expr:
        if isinstance(relation, plan.Read) and relation.column is None:
            return table(self._prefix + relation.step, alias=alias)
        if isinstance(relation, plan.ByReference):
            return in_list(self._from(relation.input, alias), alias)
        return subquery(self.query(relation), alias)

    def _rename_keys(self, source: plan.Relation, type_: TensorType) -> exp.Select:
        alias = _alias(source)
        old, new = key_columns(source.type), key_columns(type_)
        keys = [column(old[a], alias).as_(identifier(new[a])) for a in source.layout.promoted]
        return select(*keys, column(VALUE, alias)).from_(self._from(source, alias))

    def _slices(self, node: plan.Slices) -> exp.Query:
        """The tuples of a table in slices, one after the other."""
        ends = [*node.starts, None]
        parts: list[exp.Query] = [
            self._part(node.input, node.axis, start, end)
            for start, end in zip([None, *node.starts], ends, strict=True)
        ]
        whole = parts[0]
        for part in parts[1:]:
            whole = exp.Union(this=whole, expression=part, distinct=False)
        return whole

    def _part(
        self, relation: plan.Relation, axis: int, start: int | None, end: int | None
    ) -> exp.Select:
        """The tuples of a table whose position on a promoted axis is in a range."""
        query = self.query(relation)
        assert isinstance(query, exp.Select)
        key = column(key_columns(relation.type)[axis])
        if isinstance(relation, plan.TableScan):  # the expression behind a name of the SELECT list
            key = query.expressions[relation.layout.promoted.index(axis)].unalias()
        limits: list[exp.Expr] = []
        if start is not None:
            limits.append(exp.GTE(this=key.copy(), expression=integer(start)))
        if end is not None:
            limits.append(exp.LT(this=key.copy(), expression=integer(end)))
        return query.where(*limits, copy=False)

    def _scan(self, scan: plan.TableScan) -> exp.Select:
        source, type_ = scan.source, scan.type
        if len(source.tile_sizes) > 1:
            return tile_entries(source, type_, self._prefix)
        names = key_columns(type_)
        # The columns of a source need a qualifier only beside those of a dictionary.
        alias = _alias(scan) if any(source.encoded) else None
        query = select_from(source_table(source, self._prefix, alias))
        keys = []
        for axis, key, encoded in zip(
            scan.layout.promoted, source.keys, source.encoded, strict=True
        ):
            position: exp.Expr = column(key, alias)
            dictionary = type_.axes[axis].dictionary
            if encoded and dictionary is not None:
                ids = f"{names[axis]}_ids"
                match = exp.EQ(this=column("value", ids), expression=key_value(source, key, alias))
                query = join(query, table(self._prefix + dictionary, alias=ids), on=match)
                position = column("id", ids)
            keys.append(add_alias(cast(position, key_type(type_, axis)), names[axis]))
        query = query.select(*keys, copy=False)
        if not scan.layout.scalar:
            assert source.value is not None
            if source.kept_as is not None:
                return query.select(add_alias(column(source.value, alias), VALUE), copy=False)
            value = list_value(column(source.value, alias), source)
            if source.sum_duplicates and not self._capabilities.kernels:
                return sum_lists(query, value, type_.dtype)
            if self._capabilities.kernels:
                value = self._kernels.scalar("pack", value, dtype=type_.dtype)
            if source.sum_duplicates:
                size = math.prod(source.dense)
                stem = duplicates_sum(type_.dtype).stem
                value = self._kernels.aggregate(f"{stem}_vec", size, [value], dtype=type_.dtype)
                query = group_by_keys(query, [integer(n + 1) for n in range(len(keys))])
            if self._capabilities.kernels:
                value = self._cut(source, type_, value, [key.unalias() for key in keys])
            return query.select(add_alias(value, VALUE), copy=False)
        value = scalar_value(source, alias)
        if source.sum_duplicates:
            summed = sum_duplicates(source, value, self._capabilities.dialect)
            positions = [integer(n + 1) for n in range(len(keys))]
            query = query.select(add_alias(summed, VALUE), copy=False)
            query = query.group_by(*positions, copy=False)
            return query.having(differs(summed, type_), copy=False) if keys else query
        query = query.select(add_alias(value, VALUE), copy=False)
        return query.where(differs(value, type_), copy=False)

    def _cut(
        self, source: TableSource, type_: TensorType, value: exp.Expr, keys: Sequence[exp.Expr]
    ) -> exp.Expr:
        """A stored tile with these keys, cut off at the bounds."""
        inside = Extents(type_, source.layout, dict(enumerate(keys)))
        whole = Extents(type_, source.layout, padded=True)
        if not source.tiles or inside.sizes == whole.sizes:
            return value
        axes = source.layout.dense
        sizes = inside.list_sql([inside.sizes[axis] for axis in axes])
        steps = whole.list_sql([whole.steps[axis] for axis in axes])
        return self._kernels.scalar("slice", value, integer(0), sizes, steps, dtype=type_.dtype)

    def _densify(self, node: plan.Densify) -> exp.Select:
        alias = _alias(node.input)
        source = self._from(node.input, alias)
        return densify(node.type, node.layout, source, alias, self._kernels)

    def _reduce(self, node: plan.Aggregate) -> exp.Select:
        compute = node.input
        if isinstance(compute.input, plan.Join):
            query, values, keys = self._join(compute.input)
        elif isinstance(compute.input, plan.MaskedJoin):
            query, values, keys = self._masked_join(compute.input)
        else:
            query, values, keys = self._single(compute)
        value, met = self._payload(node, values, keys), exp.Count(this=exp.Star())
        missing = None if node.operation is None else node.missing
        # A long expression gets a name before missing entries are added, as it occurs several
        # times.
        apart = missing is not None and is_long(value)
        if missing is not None and not apart:
            value = self._account(value, met, node, missing)
        names = key_columns(node.type)
        outputs = [add_alias(keys[node.labels[axis]], names[axis]) for axis in node.layout.promoted]
        query = query.select(*outputs, add_alias(value, VALUE), copy=False)
        if node.operation is None:
            return query
        groups = [keys[node.labels[axis]] for axis in node.layout.promoted]
        # Without groups, DuckDB adds floats in the order of their rows: one slice after the other.
        one_group = [exp.true()] if node.unordered else []
        query = group_by_keys(query, groups or one_group, node.type.tuple_bytes(node.layout))
        if missing is None or not apart:
            return query
        (count,) = unique_names(["met"], {VALUE, *map(fold_name, names)})
        part = subquery(query.select(add_alias(met, count), copy=False), "met")
        group_keys = [column(names[axis]) for axis in node.layout.promoted]
        value = self._account(column(VALUE), column(count), node, missing)
        return select_from(part, *group_keys, add_alias(value, VALUE))

    def _payload(
        self, node: plan.Aggregate, values: Sequence[Value], keys: Mapping[str, exp.Expr]
    ) -> exp.Expr:
        """The payload of a result tuple: kernel and aggregation of the input's values."""
        kernel, combine, dtype = node.input.kernel, node.input.combine, node.type.dtype
        if node.operation is not None and not node.layout.scalar:
            size = node.type.dense_size(node.layout)
            return self._kernels.contract_and_reduce(
                kernel, node.operation, values, size, dtype, keys
            )
        if kernel.name is not None:
            value = self._kernels.contract(kernel, values, dtype, keys)
        elif combine is not None:
            value = self._kernels.combine_numbers(combine, values[0].sql, values[1].sql, dtype)
        else:
            value = values[0].sql
        if node.operation is None:
            return value
        return reduce_sql(node.operation, value, dtype, self._capabilities.dialect)

    def _account(
        self, value: exp.Expr, met: exp.Expr, node: plan.Aggregate, missing: Missing
    ) -> exp.Expr:
        """Combine the result of an aggregate with the value of the entries that it has not met."""
        assert node.operation is not None
        operator, dtype = node.operation, node.type.dtype
        dialect = self._capabilities.dialect
        assert operator.merge is not None
        cells = integer(missing.cells)
        unmet = exp.Paren(this=exp.Sub(this=cells, expression=met))
        repeated = repeat_sql(operator, number(missing.value, dtype), unmet, dtype, dialect)
        decided = operator.merge.absorbs_right(missing.value) and dtype.kind in "bi"
        if decided and node.layout.scalar:  # a value may exceed 64 bits: 0 times it is 0
            merged = number(missing.value, dtype)
        elif node.layout.scalar:
            merged = combine_sql(operator.merge, value.copy(), repeated, dtype, dialect)
        else:
            merge = f"vec_sca_{operator.merge.stem}"
            merged = self._kernels.scalar(merge, value.copy(), repeated, dtype=dtype)
        complete = exp.EQ(this=met.copy(), expression=cells.copy())
        return when(complete, value, merged)

    def _single(self, compute: plan.Compute) -> tuple[exp.Select, list[Value], dict[str, exp.Expr]]:
        source = compute.input
        assert not isinstance(source, plan.Join | plan.MaskedJoin)
        alias, names = _alias(source), key_columns(source.type)
        relation, value = self._apply_maps(compute, alias)
        query = select_from(relation)
        keys: dict[str, exp.Expr] = {}
        for axis in source.layout.promoted:
            key = column(names[axis], alias)
            label = compute.labels[axis]
            if label in keys:
                same = exp.EQ(this=keys[label].copy(), expression=key)
                query = query.where(same, copy=False)
            keys.setdefault(label, key)
        return query, [Value(value, source.layout.scalar)], keys

    def _apply_maps(self, compute: plan.Compute, alias: str) -> tuple[exp.Expr, exp.Expr]:
        """Return the relation that a unary computation reads, and its value with all maps applied.

        The SQL of a function may name its argument several times. Where expressions would become
        long, the value computed so far gets a SELECT of its own and a name.
        """
        source = compute.input
        assert not isinstance(source, plan.Join | plan.MaskedJoin)
        relation = self._from(source, alias)
        value: exp.Expr = column(VALUE, alias)
        if source.layout.compressed is not None:
            return relation, self._kernels.map_entries(source.type, compute.maps, value)
        if not source.layout.scalar:
            return relation, self._kernels.maps(compute.maps, value)
        names = key_columns(source.type)
        keys = [column(names[axis], alias) for axis in source.layout.promoted]
        for step in compute.maps:
            mapped = self._kernels.map_number(step, value)
            if not isinstance(value, exp.Column) and is_long(mapped):
                query = select_from(
                    relation, *(key.copy() for key in keys), add_alias(value, VALUE)
                )
                relation = subquery(query, alias)
                mapped = self._kernels.map_number(step, column(VALUE, alias))
            value = mapped
        return relation, value

    def _masked_join(
        self, node: plan.MaskedJoin
    ) -> tuple[exp.Select, list[Value], dict[str, exp.Expr]]:
        """The mask joined with the product that it restricts, tile by tile."""
        relations = node.mask, node.left, node.right
        labels = node.labels, node.left_labels, node.right_labels
        aliases = unique_names([_alias(relation) for relation in relations])
        sides = tuple(map(_Side, relations, labels, aliases))
        keyed = [side for side in sides if side.keys]
        if not keyed:
            query, tensors = self._beside(sides)
            return query, [Value(tensor, scalar=False) for tensor in tensors], {}
        mask = sides[0]
        query = select_from(self._from(mask.relation, mask.alias))
        for side in keyed[1:]:
            matches = [
                exp.EQ(this=mask.keys[label].copy(), expression=key)
                for label, key in side.keys.items()
            ]
            source = self._from(side.relation, side.alias)
            query = join(query, source, on=exp.and_(*matches, copy=False))
        joined = Joined(query, mask.keys, {side.alias: side.stored for side in keyed})
        if whole := [self._alone(side) for side in sides if not side.keys]:
            joined = cross_join(joined, reduce(cross_join, whole))
        values = [Value(side.value_of(joined.tensors[side.alias]), False) for side in sides]
        return joined.query, values, dict(joined.keys)

    def _join(self, node: plan.Join) -> tuple[exp.Select, list[Value], dict[str, exp.Expr]]:
        left_alias, right_alias = _aliases((node.left, node.right))
        sides = (
            _Side(node.left, node.left_labels, left_alias),
            _Side(node.right, node.right_labels, right_alias),
        )
        left_keys, right_keys = sides[0].keys, sides[1].keys
        shared = [label for label in left_keys if label in right_keys]
        conditions = [
            exp.EQ(this=left_keys[label].copy(), expression=right_keys[label].copy())
            for label in shared
        ]
        if node.kind is JoinKind.INNER and not (left_keys or right_keys):
            query, tensors = self._beside(sides)
            scalar = [side.relation.layout.scalar for side in sides]
            return query, [Value(*x) for x in zip(tensors, scalar, strict=True)], {}
        left, right = (self._from(side.relation, side.alias) for side in sides)
        query = select_from(left)
        if conditions:
            query = join(query, right, node.kind.value, exp.and_(*conditions, copy=False))
        elif node.kind is JoinKind.INNER:
            query = join(query, right, "CROSS")
        else:
            query = join(query, right, node.kind.value, exp.true())
        keys: dict[str, exp.Expr] = {**right_keys, **left_keys}
        if node.kind is JoinKind.RIGHT:
            keys = {**left_keys, **right_keys}
        elif node.kind is JoinKind.FULL:
            keys = {x: either(left_keys[x].copy(), right_keys[x].copy()) for x in shared}
        missing = (
            node.kind in (JoinKind.RIGHT, JoinKind.FULL),
            node.kind in (JoinKind.LEFT, JoinKind.FULL),
        )
        values = []
        for side, absent in zip(sides, missing, strict=True):
            value = side.value
            if absent:
                type_, layout = side.relation.type, side.relation.layout
                tiles = {axis: keys[side.labels[axis]].copy() for axis in layout.tiled}
                value = self._kernels.coalesce_fill(
                    value, fill_value(type_, layout, self._kernels, tiles)
                )
            values.append(Value(value, side.relation.layout.scalar))
        return query, values, keys

    def _alone(self, side: _Side) -> Joined:
        """One side alone in a FROM clause."""
        query = select_from(self._from(side.relation, side.alias))
        return Joined(query, side.keys, {side.alias: side.stored})

    def _beside(self, sides: Sequence[_Side]) -> tuple[exp.Select, list[exp.Expr]]:
        """Relations of one tuple beside each other, and their values."""
        sources: list[exp.Expr] = []
        values: list[exp.Expr] = []
        for side in sides:
            if isinstance(side.relation, plan.Read):
                sources.append(table(self._prefix + side.relation.step, alias=side.alias))
            else:
                sources.append(self._from(side.relation, side.alias))
            values.append(column(_column_of(side.relation), side.alias))
        return beside(exp.Select(), sources, values), values


@dataclass(frozen=True)
class _Side:
    """One side of a join under its alias."""

    relation: plan.Relation
    labels: tuple[str, ...]
    alias: str

    @property
    def stored(self) -> exp.Column:
        """The column with the payload."""
        return column(VALUE, self.alias)

    @property
    def value(self) -> exp.Expr:
        """The payload."""
        return self.value_of(self.stored)

    def value_of(self, stored: exp.Expr) -> exp.Expr:
        """The payload, given the column that has it."""
        return first_of(stored) if isinstance(self.relation, plan.ByReference) else stored

    @property
    def keys(self) -> dict[str, exp.Column]:
        """The key column of each promoted label."""
        names = key_columns(self.relation.type)
        return {
            self.labels[axis]: column(names[axis], self.alias)
            for axis in self.relation.layout.promoted
        }


def _aliases(operands: Sequence[plan.Relation]) -> list[str]:
    """Return an alias for each operand: the name of its tensor where that is unique."""
    names = [_alias(operand) for operand in operands]
    if len(names) == 2 and names[0].casefold() == names[1].casefold():
        return [f"{names[0]}_1", f"{names[1]}_2"]
    return names if len(names) <= 2 else unique_names(names)


def _column_of(operand: plan.Relation) -> str:
    """The column with the value of an operand."""
    match operand:
        case plan.Read(column=str() as member):
            return member
    return VALUE


def _step_of(operand: plan.Relation) -> str:
    """The step that an operand reads or denotes."""
    match operand:
        case plan.Read(step):
            return step
        case plan.Nested():
            return operand.step
    raise AssertionError("no operand of an expression")


def _alias(relation: plan.Relation) -> str:
    match relation:
        case plan.Read(_, tensor):
            return tensor
        case plan.Nested():
            return relation.tensor
        case (
            plan.TableScan()
            | plan.Load()
            | plan.Held()
            | plan.Aggregate()
            | plan.Reindex()
            | plan.ConstantRelation()
        ):
            return "T"
        case plan.FusedMaps() | plan.PrefixScan() | plan.TopKEntries():
            return "T"
        case plan.FusedStep() | plan.HeldRow() | plan.Slot():
            return "T"
        case plan.Rearrange(source):
            return _alias(source)
