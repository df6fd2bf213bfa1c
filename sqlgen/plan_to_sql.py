"""A plan to SQL: one SELECT per step, as sqlglot trees.

Every emitted relation has one key column per promoted axis, named after its label, and ``val``. The
emitter knows the engine only through `Capabilities`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import reduce

from sqlglot import exp, select

from ucle.foundation.dataclasses import dataclass
from ucle.foundation.names import fold_name, unique_names
from ucle.ir.fills import JoinKind, Missing
from ucle.ir.layouts import Layout
from ucle.ir.tensor_types import TensorType
from ucle.plan import relation_nodes as plan
from ucle.plan.relation_tree import inputs
from ucle.plan.steps import Plan, Role, Round, Step
from ucle.sqlgen.capabilities import Capabilities
from ucle.sqlgen.column_expressions import compute_rows
from ucle.sqlgen.compressed_arrays import recode_array
from ucle.sqlgen.early_ends import end_early
from ucle.sqlgen.finiteness_checks import StoredPayload, limit_query, nan_query
from ucle.sqlgen.forests import pack_forest
from ucle.sqlgen.from_clause import Joined, NestedExpression, SingleRow, cross_join
from ucle.sqlgen.fused_steps import tape_query
from ucle.sqlgen.index_maps import reindex_tensor
from ucle.sqlgen.input_tables import dictionary_query
from ucle.sqlgen.kernel_calls import KernelCalls, Value
from ucle.sqlgen.lookup_joins import look_up
from ucle.sqlgen.missing_tuples import densify, fill_value
from ucle.sqlgen.operand_aliases import Side, choose_alias, choose_aliases, find_column, find_step
from ucle.sqlgen.paired_scans import scan_pairs
from ucle.sqlgen.repartitions import repartition
from ucle.sqlgen.scalar_operators import combine_sql, is_long, reduce_sql, repeat_sql
from ucle.sqlgen.scans import scan_prefixes
from ucle.sqlgen.sql_trees import (
    VALUE,
    add_alias,
    ascending,
    beside,
    cast_to_array,
    column,
    constant,
    either,
    function,
    group_by_keys,
    identifier,
    in_list,
    integer,
    join,
    key_columns,
    number,
    select_from,
    subquery,
    table,
    when,
)
from ucle.sqlgen.table_scans import scan_table
from ucle.sqlgen.time_windows import aggregate_steps, aggregate_windows, column_of_times
from ucle.sqlgen.top_k import first_entries


@dataclass(frozen=True)
class SqlStep:
    """A step of the script: its name, its role, and its query (None: data from memory).

    `check` is a query that has a row if the computed data shows that this script is not valid for
    it, and `limit` one that has a row if a condition number is too large for it.
    """

    name: str
    role: Role
    query: exp.Expr | None
    comment: str
    check: exp.Expr | None = None
    rounds: tuple[SqlRound, ...] = ()
    """Queries that fill the table one after the other, in place of `query`, if any."""
    limit: exp.Expr | None = None


@dataclass(frozen=True)
class SqlRound:
    """One of several queries that fill a table; it reads `tables`, which belong to it alone."""

    tables: tuple[SqlStep, ...]
    query: exp.Expr


def emit(
    program_plan: Plan, capabilities: Capabilities, prefix: str = "", *, checked: bool = False
) -> tuple[tuple[SqlStep, ...], dict[str, exp.Select]]:
    """Emit the steps of a plan, and for each output the SELECT that shows it as lists.

    Args:
        program_plan: the plan.
        capabilities: those of the engine.
        prefix: prepended to the name of every relation that the script makes.
        checked: True if the steps run on data that was checked, as it will be then.
    """
    emitter = _Emitter(capabilities, prefix)
    steps = [
        SqlStep(
            prefix + dictionary.name,
            Role.TABLE,
            dictionary_query(dictionary, prefix, checked=checked),
            f"{dictionary.name}: coordinates of "
            + ", ".join(f"{source.origin}.{name}" for source, name in dictionary.columns),
        )
        for dictionary in program_plan.dictionaries
    ]
    for step in program_plan.steps:
        query = None if step.role is Role.INPUT else emitter.statement(step)
        check = limit = None
        if step.role is Role.TABLE:
            checks = [x for x in program_plan.checked if x.step == step.name]
            read = [locate_payload(x.read, prefix) for x in checks if x.largest is None]
            check = nan_query(read, capabilities) if read else None
            limits = {x.read.column or VALUE: n for x in checks if (n := x.largest) is not None}
            limit = limit_query(prefix + step.name, limits) if limits else None
        rounds = tuple(map(emitter.round, step.rounds))
        steps.append(
            SqlStep(prefix + step.name, step.role, query, step.comment, check, rounds, limit)
        )
    dictionaries = {name: prefix + name for name in program_plan.shown_dictionaries}
    outputs = {
        name: result_query(locate_payload(read, prefix), capabilities, dictionaries)
        for name, read in program_plan.shown.items()
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
    alias = "T" if type_.dictionaries else None
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
    length: int | None = None,
    value: str = VALUE,
    unnested: bool = False,
) -> exp.Select:
    """Return the SELECT that shows any relation in FROM; dictionaries require an alias.

    With `length`, the type of the lists states that they have this length. `unnested` says that
    rows come from arrays. DuckDB takes them for as few as the arrays, and would hash them all to
    join them with the coordinates: these are elements of a list instead.
    """
    names = key_columns(type_)
    keys: list[exp.Expr] = []
    query = select_from(source)
    listed: dict[str, str] = {}
    for axis in layout.promoted:
        key: exp.Expr = column(names[axis], alias)
        if (dictionary := type_.axes[axis].dictionary) is not None:
            ids, stored = f"{names[axis]}_ids", dictionaries[dictionary]
            if unnested and type_.shape[axis] <= LONGEST_LIST:
                if stored not in listed:
                    listed[stored] = ids
                    query = join(query, _list_of_values(stored, ids), "CROSS")
                after = exp.Add(this=key, expression=integer(1))
                key = function("list_extract", column(VALUES, listed[stored]), after)
                # A larger bound allows positions without coordinates: there are no rows for them.
                query = query.where(exp.not_(exp.Is(this=key, expression=exp.null())), copy=False)
                key = key.copy()
            else:
                match = exp.EQ(this=column("id", ids), expression=key)
                query = join(query, table(stored, alias=ids), on=match)
                key = column("value", ids)
        keys.append(add_alias(key, names[axis]))
    payload: exp.Expr = column(value, alias)
    if lists and not layout.scalar:
        payload = KernelCalls(capabilities).scalar("vec_to_list", payload, dtype=type_.dtype)
        if length is not None:
            payload = cast_to_array(payload, type_.dtype, length)
    if type_.positions_in is not None:
        named = table(dictionaries[type_.positions_in], alias=f"{VALUE}_ids")
        if layout.scalar:  # a position that a larger bound allows has no coordinate: NULL
            match = exp.EQ(this=column("id", f"{VALUE}_ids"), expression=payload)
            query = join(query, named, "LEFT", on=match)
            payload = column("value", f"{VALUE}_ids")
        elif lists:
            payload = _named_list(payload, named)
    return query.select(*keys, add_alias(payload, VALUE), copy=False)


VALUES = "values"

LONGEST_LIST = 1 << 20
"""The most coordinates of a dictionary that become a list, which is made for each reading."""


def _list_of_values(dictionary: str, alias: str) -> exp.Expr:
    """One row in FROM with the coordinates of a dictionary, in their order."""
    every = add_alias(_every_value(), VALUES)
    return subquery(select_from(table(dictionary), every), alias)


def _every_value() -> exp.Expr:
    """The aggregate of the coordinates of a dictionary, in their order."""
    order = exp.Order(this=column("value"), expressions=[exp.Ordered(this=column("id"))])
    return function("list", order)


def _named_list(positions: exp.Expr, named: exp.Expr) -> exp.Expr:
    """Return the list of the coordinates at a list of positions."""
    every = exp.select(_every_value()).from_(named)
    place = exp.to_identifier("place")
    after = exp.Add(this=exp.column(place.copy()), expression=integer(1))
    shifted = exp.Lambda(this=after, expressions=[place], colon=True)
    return function("list_select", every.subquery(), function("list_transform", positions, shifted))


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
            case plan.Aggregate() | plan.Recode() if any(
                isinstance(x, plan.Nested) for x in inputs(relation)
            ):
                return self._expression(relation).query()
            case plan.TableScan():
                return scan_table(relation, self._kernels, self._prefix)
            case plan.PairedScan():
                return scan_pairs(relation, self._kernels, self._prefix)
            case plan.ColumnExpressions():
                return compute_rows(relation, self._kernels, self._prefix)
            case plan.WindowOfTimes(_, source, counted=counted):
                alias = "T" if source is None else choose_alias(source)
                entries = None if source is None or counted else self._from(source, alias)
                times = relation.times.source.times
                windows = times is not None and times.kind == "window"
                aggregate = aggregate_windows if windows else aggregate_steps
                return aggregate(relation, entries, alias, self._kernels, self._prefix)
            case plan.ColumnOfTimes(source):
                return column_of_times(relation, self._from(source, "T"), "T")
            case plan.PackedForest(source):
                alias = choose_alias(source)
                return pack_forest(relation, self._from(source, alias), alias, self._kernels)
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
                alias = choose_alias(relation.input)
                return reindex_tensor(
                    relation, self._from(relation.input, alias), alias, self._kernels
                )
            case plan.PrefixScan():
                alias = choose_alias(relation.input)
                before = self._from(relation.input, alias)
                return scan_prefixes(relation, before, alias, self._kernels)
            case plan.TopKEntries():
                alias = choose_alias(relation.input)
                return first_entries(
                    relation, self._from(relation.input, alias), alias, self._kernels
                )
            case plan.Aggregate():
                return self._reduce(relation)
            case plan.MultiwayJoin():
                return self._join_multiway(relation)
            case plan.LookupJoin(operands, labels):
                aliases = unique_names(map(choose_alias, operands))
                sides = list(map(Side, operands, labels, aliases))
                sources = list(map(self._from, operands, aliases))
                return look_up(relation, sides, sources, self._kernels)
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
        alias = choose_alias(relation)
        before = self._from(relation.input, alias)
        return repartition(relation, before, alias, self._kernels)

    def _expression(self, relation: plan.Relation) -> NestedExpression:
        """Return a relation of one tuple as an expression over others."""
        if isinstance(relation, plan.ConstantRelation):
            return NestedExpression(constant(relation.data), ())
        if isinstance(relation, plan.TableScan):
            query = scan_table(relation, self._kernels, self._prefix)
            name = query.args["from_"].this.name
            value = query.expressions[0].unalias()
            (read,) = value.find_all(exp.Column)
            read.set("table", identifier(name))
            return NestedExpression(value, [SingleRow(name, name, read.name)])
        operands = inputs(relation)
        sources = [
            SingleRow(alias, self._prefix + name, find_column(operand))
            for operand, alias, name in zip(
                operands, choose_aliases(operands), map(find_step, operands), strict=True
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
        if isinstance(relation, plan.Recode):
            before, after = relation.input.layout, relation.layout
            return recode_array(relation.type, before, after, values[0], self._kernels)
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
        match relation:
            case plan.ByReference(plan.Read(step, column=plan.LISTED)):
                return table(self._prefix + step, alias=alias)
            case plan.ByReference(source):
                return in_list(self._from(source, alias), alias)
        return subquery(self.query(relation), alias)

    def _rename_keys(self, source: plan.Relation, type_: TensorType) -> exp.Select:
        alias = choose_alias(source)
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

    def _densify(self, node: plan.Densify) -> exp.Select:
        alias = choose_alias(node.input)
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
        if node.early and node.operation is not None:
            each = self._payload(replace(node, operation=None), values, keys)
            return end_early(query, each, node.operation, node.missing)
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
        alias, names = choose_alias(source), key_columns(source.type)
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
        aliases = unique_names([choose_alias(relation) for relation in relations])
        sides = tuple(map(Side, relations, labels, aliases))
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

    def _join_multiway(self, node: plan.MultiwayJoin) -> exp.Select:
        """The operands beside each other; where one has no tuple, nor has the result."""
        aliases = unique_names([choose_alias(operand) for operand in node.operands])
        sides = [Side(x, (), alias) for x, alias in zip(node.operands, aliases, strict=True)]
        query, tensors = self._beside(sides)
        scalar, dtype = node.layout.scalar, node.type.dtype
        value = self._kernels.multiway(node.program, tensors, dtype, scalar=scalar)
        return query.select(add_alias(value, VALUE), copy=False)

    def _join(self, node: plan.Join) -> tuple[exp.Select, list[Value], dict[str, exp.Expr]]:
        left_alias, right_alias = choose_aliases((node.left, node.right))
        sides = (
            Side(node.left, node.left_labels, left_alias),
            Side(node.right, node.right_labels, right_alias),
        )
        if node.within_rows:
            return self._within_rows(sides)
        left_keys, right_keys = sides[0].keys, sides[1].keys
        shared = [label for label in left_keys if label in right_keys]
        conditions = [
            exp.EQ(this=left_keys[label].copy(), expression=right_keys[label].copy())
            for label in shared
        ]
        if node.kind is JoinKind.INNER and not (left_keys or right_keys):
            query, tensors = self._beside(sides)
            scalars = [side.relation.layout.scalar for side in sides]
            return query, [Value(*x) for x in zip(tensors, scalars, strict=True)], {}
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

    def _within_rows(
        self, sides: Sequence[Side]
    ) -> tuple[exp.Select, list[Value], dict[str, exp.Expr]]:
        """The tuples of one relation, of which both sides are columns."""
        whole = next(side for side in sides if find_column(side.relation) == VALUE)
        values = [
            Value(
                whole.value_of(column(find_column(side.relation), whole.alias)),
                side.relation.layout.scalar,
            )
            for side in sides
        ]
        return self._alone(whole).query, values, dict(whole.keys)

    def _alone(self, side: Side) -> Joined:
        """One side alone in a FROM clause."""
        query = select_from(self._from(side.relation, side.alias))
        return Joined(query, side.keys, {side.alias: side.stored})

    def _beside(self, sides: Sequence[Side]) -> tuple[exp.Select, list[exp.Expr]]:
        """Relations of one tuple beside each other, and their values."""
        sources: list[exp.Expr] = []
        values: list[exp.Expr] = []
        for side in sides:
            if isinstance(side.relation, plan.Read):
                sources.append(table(self._prefix + side.relation.step, alias=side.alias))
            else:
                sources.append(self._from(side.relation, side.alias))
            values.append(column(find_column(side.relation), side.alias))
        return beside(exp.Select(), sources, values), values
