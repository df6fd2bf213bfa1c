"""Scalar operators in SQL: the texts of a dialect parsed once, arguments put in place."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from functools import cache, lru_cache
from itertools import islice

from sqlglot import exp, parse_one
from sqlglot.errors import ParseError

from ucle.foundation.dtypes import DType
from ucle.ir.maps import Cast, Map, Pointwise
from ucle.operators import Combine, PointwiseMap, Reduce
from ucle.plan.pass_context import Expression
from ucle.plan.relation_nodes import Compute
from ucle.sqlgen.dialects import DUCKDB_SQL, Dialect
from ucle.sqlgen.sql_trees import VALUE, cast, column, function, number, pair_of

COMPOUND = exp.Binary | exp.Neg | exp.Not
SIMPLE = exp.Column | exp.Dot | exp.Literal


@cache
def _template(sql: str, dialect: str = DUCKDB_SQL.sqlglot) -> exp.Expr:
    tree = parse_one(sql, read=dialect)
    for node in tree.walk():
        node._meta = None  # where in the text it stood, which every copy would copy
    return tree


@cache
def _is_wide(sql: str) -> bool:
    """True if a text of complex numbers is computed in DOUBLE, whatever its type is.

    Products and sums of FLOAT are FLOAT, and infinite where they are too large, as in NumPy.
    """
    return any(
        part.find(exp.Func, exp.Div) is not None
        for struct in _template(sql).find_all(exp.Struct)
        for part in struct.expressions
    )


def bracket_value(value: exp.Expr, parent: type[object]) -> exp.Expr:
    """A value as it stands inside of another expression, in brackets where it needs them."""
    if issubclass(parent, exp.Dot | exp.Bracket):
        return value if isinstance(value, SIMPLE) else exp.Paren(this=value)
    inside = issubclass(parent, COMPOUND)
    return exp.Paren(this=value) if inside and isinstance(value, COMPOUND) else value


def _instantiate(
    operator: Combine | Reduce | PointwiseMap,
    arguments: Mapping[str, exp.Expr],
    dtype: DType,
    dialect: Dialect,
) -> exp.Expr:
    """An operator with its arguments in place, as a value of an element type."""
    sql = dialect.text(operator, dtype)
    expression = place_arguments(sql, arguments, dtype, dialect)
    if dtype in (DType.FLOAT64, DType.BOOL, DType.COMPLEX128):
        return expression
    if dtype is DType.COMPLEX64:
        wide = _is_wide(sql)
        return expression.transform(_single_parts, copy=False) if wide else expression
    own = dialect.uses_row(operator, dtype)
    if own and dtype.kind in operator.uncast_kinds:
        return expression
    bounded = own and isinstance(operator, PointwiseMap) and operator.bounded
    if dtype.kind == "f" and not bounded and any(sign in sql for sign in dialect.growing):
        return _single(expression, dialect)
    return cast(expression, dtype)


def place_arguments(
    sql: str, arguments: Mapping[str, exp.Expr], dtype: DType, dialect: Dialect
) -> exp.Expr:
    """A text of a dialect with its arguments in place, and numbers of an element type."""
    values = {**arguments, "zero": number(0, dtype), "one": number(1, dtype)}
    wide = dtype is DType.COMPLEX64 and _is_wide(sql)

    def place(node: exp.Expr) -> exp.Expr:
        if not isinstance(node, exp.Column):
            return node
        if node.table in arguments:  # x.re
            whole = bracket_value(arguments[node.table].copy(), exp.Dot)
            part = exp.Dot(this=whole, expression=exp.to_identifier(node.name))
            return cast(part, DType.FLOAT64) if wide else part
        if node.name not in values or node.table:
            return node
        return bracket_value(values[node.name].copy(), type(node.parent))

    template = _template(sql, dialect.sqlglot).copy()
    result: exp.Expr = template.transform(place, copy=False)
    return result


def text_functions(sql: str, dialect: Dialect) -> set[str]:
    """The lower-case names of the functions and the kinds of all other nodes in a text."""
    calls = _template(sql, dialect.sqlglot).walk()
    return {
        (call.name if isinstance(call, exp.Anonymous) else type(call).__name__).lower()
        for call in calls
    }


def _single(value: exp.Expr, dialect: Dialect = DUCKDB_SQL) -> exp.Expr:
    """A DOUBLE as a FLOAT; what is too large becomes infinite, which DuckDB's cast refuses."""
    if dialect.statements is not None:
        return place_arguments(dialect.statements.single, {"x": value}, DType.FLOAT32, dialect)
    tried = exp.TryCast(this=value, to=cast(value, DType.FLOAT32).args["to"])
    sign = function("sign", value.copy())
    infinite = exp.Mul(this=sign, expression=number(math.inf, DType.FLOAT32))
    return exp.Coalesce(this=tried, expressions=[infinite])


def _single_parts(node: exp.Expr) -> exp.Expr:
    """A literal pair of DOUBLE as one of FLOAT."""
    if not isinstance(node, exp.Struct):
        return node
    return pair_of(*(_single(part.expression) for part in node.expressions))


def template_columns(sql: str) -> set[str] | None:
    """The arguments that a text names; None where it is no expression."""
    try:
        tree = parse_one(sql, read=DUCKDB_SQL.sqlglot)
    except ParseError:
        return None
    if isinstance(tree, exp.Query | exp.DDL | exp.DML | exp.Command):
        return None
    return {column.table or column.name for column in tree.find_all(exp.Column)}


def combine_sql(
    operator: Combine,
    left: exp.Expr,
    right: exp.Expr,
    dtype: DType,
    dialect: Dialect = DUCKDB_SQL,
) -> exp.Expr:
    """⊗ of two scalars of a type."""
    expression = _instantiate(operator, {"x": left, "y": right}, dtype, dialect)
    return expression if operator.compiled else cast(expression, dtype)


def reduce_sql(
    operator: Reduce, argument: exp.Expr, dtype: DType, dialect: Dialect = DUCKDB_SQL
) -> exp.Expr:
    """⊕ over the scalars of a group."""
    expression = _instantiate(operator, {"x": argument}, dtype, dialect)
    return expression if operator.compiled else cast(expression, dtype)


def repeat_sql(
    operator: Reduce,
    value: exp.Expr,
    count: exp.Expr,
    dtype: DType,
    dialect: Dialect = DUCKDB_SQL,
) -> exp.Expr:
    """Reduce `count` copies of one value."""
    if operator.repeat_by is None:
        return value
    number_of = cast(count, dtype.real)
    if dtype.kind == "c":
        number_of = pair_of(number_of, number(0, dtype.real))
    return combine_sql(operator.repeat_by, value, number_of, dtype, dialect)


def map_sql(step: Pointwise, argument: exp.Expr, dialect: Dialect = DUCKDB_SQL) -> exp.Expr:
    """A pointwise map of one scalar."""
    if isinstance(step, Cast):
        return cast_sql(step, argument, dialect)
    if isinstance(step, Map):
        function = step.function
        expression = _instantiate(function, {"x": argument}, step.dtype, dialect)
        return expression if function.compiled else cast(expression, step.dtype)
    constant = number(step.constant, step.dtype)
    pair = (constant, argument) if step.constant_first else (argument, constant)
    return combine_sql(step.combine, *pair, step.dtype, dialect)


LONG = 120
"""Nodes of an expression that is better computed in two steps."""


def is_long(expression: exp.Expr) -> bool:
    """True if the result of an expression gets a SELECT of its own."""
    return sum(1 for _ in islice(expression.walk(), LONG + 1)) > LONG


def number_expression(compute: Compute, dtype: DType) -> Expression | None:
    """The SQL of a computation on numbers, for `ucle.plan.nest_keyless`.

    Args:
        compute: ⊗ of two numbers, or maps of one.
        dtype: of the result.
    """
    return _number_expression(compute.combine, compute.maps, dtype)


@lru_cache(maxsize=1 << 10)
def _number_expression(
    combine: Combine | None, maps: tuple[Pointwise, ...], dtype: DType
) -> Expression | None:
    names = ["x"] if combine is None else ["x", "y"]
    arguments: list[exp.Expr] = [column(VALUE, name) for name in names]
    value: exp.Expr = arguments[0]
    if combine is not None:
        value = combine_sql(combine, arguments[0], arguments[1], dtype)
    for step in maps:
        mapped = map_sql(step, value)
        if not isinstance(value, exp.Column) and is_long(mapped):
            return None
        value = mapped
    # Of a lambda the variable is a column, too.
    if value.find(exp.AggFunc, exp.Subquery, exp.Window, exp.Lambda):
        return None
    uses = Counter(read.table for read in value.find_all(exp.Column))
    return Expression(tuple(uses[name] for name in names), _height(value))


def _height(value: exp.Expr) -> int:
    """The number of nodes on the longest path from the root of an expression to a leaf."""
    heights = {id(value.parent): 0}
    for node in value.walk():  # each after the one above it
        heights[id(node)] = heights[id(node.parent)] + 1
    return max(heights.values())


def cast_sql(step: Cast, argument: exp.Expr, dialect: Dialect = DUCKDB_SQL) -> exp.Expr:
    """A scalar in another element type, by NumPy's rules: floats are cut off, not rounded."""
    source, result = step.source, step.result
    if dialect.statements is not None:
        if result is DType.FLOAT32 and source is DType.FLOAT64:
            return _single(argument, dialect)
        text = dialect.statements.casts.get(source.kind + result.kind, "x")
        return cast(place_arguments(text, {"x": argument}, source, dialect), result)
    if source is DType.COMPLEX128 and result is DType.COMPLEX64:
        parts = place_arguments("{'re': x.re, 'im': x.im}", {"x": argument}, source, dialect)
        return parts.transform(_single_parts, copy=False)
    if source.kind == "c" and result.kind == "c":
        return cast(argument, result)
    if result.kind == "c":
        real = cast_sql(Cast(source, result.real), argument)
        return pair_of(real, number(0, result.real))
    if source.kind == "c":
        if result is DType.BOOL:
            return place_arguments("x.re <> 0 OR x.im <> 0", {"x": argument}, result, dialect)
        argument = place_arguments("x.re", {"x": argument}, DType.FLOAT64, dialect)
    narrows = result.kind == "f" and result is not DType.FLOAT64
    if narrows and source in (DType.FLOAT64, DType.COMPLEX128):
        return _single(argument)
    if result is DType.INT64 and source is not DType.BOOL:
        argument = exp.Anonymous(this="trunc", expressions=[argument])
    if result is DType.BOOL and (condition := _indicated(argument)) is not None:
        return condition
    return cast(argument, result)


def _indicated(value: exp.Expr) -> exp.Expr | None:
    """The condition of ``CASE WHEN condition THEN 1 ELSE 0 END``; None for other values.

    Payloads are never NULL, and neither are conditions on them. DuckDB skips blocks of a table by
    the minima and maxima of a column that is compared in a condition, but not in a CASE.
    """
    match value:
        case exp.Case(args={"this": None, "ifs": [exp.If() as only], "default": default}):
            one, zero = only.args["true"], default
        case _:
            return None
    if not (isinstance(one, exp.Literal) and isinstance(zero, exp.Literal)):
        return None
    if one.is_string or zero.is_string or (float(one.name), float(zero.name)) != (1.0, 0.0):
        return None
    condition: exp.Expr = only.this
    return condition
