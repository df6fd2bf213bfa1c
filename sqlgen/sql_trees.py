"""Constructors of small sqlglot trees that the emitters share.

Identifiers are always quoted and never built by string pasting; numbers become literals that DuckDB
reads back as the same float.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from itertools import accumulate

from sqlglot import exp

from ucle.foundation.dtypes import DType, Scalar
from ucle.foundation.names import unique_names
from ucle.ir.layouts import Coordinates
from ucle.ir.tensor_types import TensorType
from ucle.sqlgen.dialects import DUCKDB_SQL

VALUE = "val"

UNKNOWN_TYPES = frozenset({"TIMESTAMPTZ_NS"})
"""Types of DuckDB that sqlglot does not know."""


def identifier(name: str) -> exp.Identifier:
    """A quoted identifier."""
    return exp.to_identifier(name, quoted=True)


def column(name: str, table: str | None = None) -> exp.Column:
    """A column, qualified by a table alias if given."""
    return exp.Column(this=identifier(name), table=identifier(table) if table else None)


def table(*parts: str, alias: str | None = None) -> exp.Table:
    """A table by the parts of its name."""
    *qualifiers, name = (identifier(part) for part in parts)
    keys = dict(zip(("db", "catalog"), reversed(qualifiers), strict=False))
    named_as = exp.TableAlias(this=identifier(alias)) if alias else None
    return exp.Table(this=name, alias=named_as, **keys)


def table_function(call: exp.Expr, alias: str, columns: Sequence[str] = ()) -> exp.Table:
    """A table function with an alias and names for its columns."""
    names = [identifier(name) for name in columns]
    return exp.Table(this=call, alias=exp.TableAlias(this=identifier(alias), columns=names))


def function(name: str, *arguments: exp.Expr) -> exp.Anonymous:
    """A call of a function that sqlglot does not know, its name as given."""
    return exp.Anonymous(this=name, expressions=list(arguments))


def combined_digest(digests: exp.Expr) -> exp.Anonymous:
    """One digest for those of all rows, whatever their order; two equal rows cancel each other."""
    return function("bit_xor", digests)


def is_finite(value: exp.Expr) -> exp.Expr:
    """True if a real number is neither infinite nor NaN."""
    return function("isfinite", value)


def is_infinite(value: exp.Expr) -> exp.Expr:
    """True if a real number is infinite."""
    return function("isinf", value)


def is_nan(value: exp.Expr) -> exp.Expr:
    """True if a real number is NaN."""
    return function("isnan", value)


def number(value: Scalar, dtype: DType = DType.FLOAT64) -> exp.Expr:
    """A literal of an element type that reads back to the same value."""
    match dtype:
        case DType.BOOL:
            return exp.true() if value else exp.false()
        case DType.INT64:
            return cast(integer(int(value.real)), dtype)
        case DType.FLOAT64:
            return _double(float(value.real))
    if dtype.kind == "f":
        return cast(_double(float(value.real)), dtype)
    pair = pair_of(_double(float(value.real)), _double(float(value.imag)))
    return cast(pair, dtype) if dtype is DType.COMPLEX64 else pair


def pair_of(real: exp.Expr, imaginary: exp.Expr) -> exp.Expr:
    """A complex number by its parts."""
    return struct({"re": real, "im": imaginary})


def struct(fields: Mapping[str, exp.Expr]) -> exp.Expr:
    """A struct of named fields."""
    return exp.Struct(
        expressions=[
            exp.PropertyEQ(this=exp.to_identifier(name), expression=value)
            for name, value in fields.items()
        ]
    )


def _double(value: float) -> exp.Expr:
    if not math.isfinite(value):
        return cast(exp.Literal.string(str(value)), "DOUBLE")
    if value < 0 or math.copysign(1.0, value) < 0:
        return exp.Neg(this=_double(-value))
    text = repr(value)
    # DuckDB reads 1.0 as a DECIMAL and 1e0 as a DOUBLE.
    return exp.Literal.number(text if "e" in text else text + "e0")


def data_type(type_: DType | str, nesting: int = 0) -> exp.DataType:
    """A type, which is parsed once: ``FLOAT``, or ``FLOAT[]`` in a list."""
    return _data_type(type_, nesting).copy()


@cache
def _data_type(type_: DType | str, nesting: int) -> exp.DataType:
    name = DUCKDB_SQL.types[type_] if isinstance(type_, DType) else type_
    if name in UNKNOWN_TYPES:
        return exp.DataType.build(name, udt=True)
    return exp.DataType.build(name + "[]" * nesting, dialect=DUCKDB_SQL.sqlglot)


def cast(expression: exp.Expr, type_: DType | str, nesting: int = 0) -> exp.Expr:
    """``CAST(expression AS type)``; the type is parsed once and the expression not copied.

    Args:
        expression: the operand.
        type_: an element type, or the name of any type.
        nesting: how deep it is in lists.
    """
    return exp.Cast(this=expression, to=data_type(type_, nesting))


def cast_to_array(lists: exp.Expr, dtype: DType, length: int) -> exp.Expr:
    """``CAST(lists AS FLOAT[3])``: lists of numbers as arrays, whose type states their length."""
    return cast(lists, f"{DUCKDB_SQL.types[dtype]}[{length}]")


def integer(value: int) -> exp.Expr:
    """An integer literal."""
    return exp.Literal.number(value)


def integers(values: Iterable[int]) -> exp.Expr:
    """A BIGINT[] literal."""
    return cast(exp.Array(expressions=[integer(value) for value in values]), "BIGINT[]")


def text(value: str) -> exp.Expr:
    """A string literal."""
    return exp.Literal.string(value)


def texts(values: Iterable[str]) -> exp.Expr:
    """A list of strings."""
    return exp.Array(expressions=[text(value) for value in values])


def constant(data: bytes) -> exp.Expr:
    """A BLOB literal."""
    return function("unhex", text(data.hex()))


def total(terms: Sequence[exp.Expr]) -> exp.Expr:
    """The sum of terms; 0 for none."""
    if not terms:
        return integer(0)
    result = terms[0]
    for term in terms[1:]:
        result = exp.Add(this=result, expression=term)
    return result


def scale_key(key: exp.Expr, stride: int) -> exp.Expr:
    """``key * stride``."""
    return key if stride == 1 else exp.Mul(this=key, expression=integer(stride))


def strides(shape: Sequence[int]) -> tuple[int, ...]:
    """Row-major strides in elements.

    >>> strides((2, 3, 4))
    (12, 4, 1)
    """
    return tuple(accumulate(reversed(shape[1:]), lambda a, b: a * b, initial=1))[::-1]


def select_from(source: exp.Expr, *columns: exp.Expr) -> exp.Select:
    """``SELECT columns FROM source``.

    sqlglot's builders copy all their arguments, so that a nested tree is copied at every level;
    this function uses them uncopied.
    """
    return exp.Select(expressions=list(columns), from_=exp.From(this=source))


def subquery(query: exp.Query, alias: str) -> exp.Subquery:
    """``(query) AS alias``."""
    return exp.Subquery(this=query, alias=exp.TableAlias(this=identifier(alias)))


def when(condition: exp.Expr, value: exp.Expr, otherwise: exp.Expr) -> exp.Case:
    """``CASE WHEN condition THEN value ELSE otherwise END``."""
    return exp.Case().when(condition, value, copy=False).else_(otherwise, copy=False)


def either(value: exp.Expr, otherwise: exp.Expr) -> exp.Expr:
    """``COALESCE(value, otherwise)``."""
    return exp.Coalesce(this=value, expressions=[otherwise])


def differs(value: exp.Expr, type_: TensorType) -> exp.Expr:
    """Condition: a scalar is worth storing; in DuckDB NaN equals NaN, as wanted here."""
    return exp.NEQ(this=value.copy(), expression=number(type_.fill, type_.dtype))


def ascending(*keys: exp.Expr) -> exp.Order:
    """Ascending order, written out: a session may have ``default_order='DESC'``."""
    return exp.Order(expressions=[exp.Ordered(this=key, desc=False) for key in keys])


LARGE_BYTES = 1 << 20
"""Bytes of a tuple from which on the cost of a copy matters."""


STATE_BYTES = 1 << 16
"""Bytes of an aggregate state from which on it should be freed as soon as its result exists."""


def group_by_keys(query: exp.Select, keys: Sequence[exp.Expr], size: float = 0.0) -> exp.Select:
    """Group by keys; without keys, an input without rows must give no row.

    DuckDB keeps the state of an aggregation without groups until the statement ends, and copies the
    output of a filter where that is only a few rows. So a result of many bytes (`size`) is computed
    as that of one group. DuckDB also keeps all states where the groups are few integers, and one
    thread then finishes them in one vector. A boolean among the keys makes it use its general hash
    table, whose partitions all threads finish and free one after the other.
    """
    if size >= (STATE_BYTES if keys else LARGE_BYTES) and exp.true() not in keys:
        keys = [*keys, exp.true()]
    if keys:
        return query.group_by(*(key.copy() for key in keys), copy=False)
    count = exp.Count(this=exp.Star())
    return query.having(exp.GT(this=count, expression=integer(0)), copy=False)


def join(
    query: exp.Select, source: exp.Expr, kind: str = "", on: exp.Expr | None = None
) -> exp.Select:
    """Return the query with one more join, of a kind such as CROSS or LEFT. Changed in place.

    sqlglot's own `join` copies the query and parses the kind.
    """
    words = {"side" if kind in ("LEFT", "RIGHT", "FULL") else "kind": kind} if kind else {}
    query.append("joins", exp.Join(this=source, on=on, **words))
    return query


def beside(
    query: exp.Select, sources: Sequence[exp.Expr], values: Sequence[exp.Expr]
) -> exp.Select:
    """The query over the pair of tuples of relations of one tuple; empty if one has no tuple.

    A cross join would be equivalent, but copies its inputs.

    Args:
        query: is changed, not copied.
        sources: the relations.
        values: columns of them, one for each.
    """
    query = query.from_(sources[0], copy=False)
    for source in sources[1:]:
        query = join(query, source, "POSITIONAL")
    if len(sources) == 1:
        return query
    there = [exp.Is(this=x.copy(), expression=exp.Not(this=exp.null())) for x in values]
    return query.where(*there, copy=False)


def in_list(source: exp.Expr, alias: str) -> exp.Expr:
    """A relation of one tuple with its value as the only element of a list."""
    listed = add_alias(exp.Array(expressions=[column(VALUE)]), VALUE)
    return subquery(select_from(source, listed), alias)


def first_of(value: exp.Expr) -> exp.Expr:
    """The first element of a list, such as one that `in_list` makes."""
    return exp.Bracket(this=value, expressions=[integer(1)], offset=1)


def integers_below(size: int, alias: str, name: str) -> exp.Table:
    """The paper's ALLINTS: every integer below a size."""
    return table_function(function("range", integer(size)), alias, [name])


ONE = "one"
"""The relation of `one_row`, and its column."""


def one_row() -> exp.Table:
    """A relation of one row, whose column `ONE` is 0."""
    return integers_below(1, ONE, ONE)


def parameter(number: int) -> exp.Parameter:
    """The parameter of a statement with a number; the first one is 1."""
    return exp.Parameter(this=exp.Literal.number(number))


def add_alias(expression: exp.Expr, name: str) -> exp.Expr:
    """``expression AS name``, without the alias where a column already has the name."""
    if isinstance(expression, exp.Column) and expression.name == name:
        return expression
    return exp.Alias(this=expression, alias=identifier(name))


def key_columns(type_: TensorType) -> tuple[str, ...]:
    """A column name for every axis, unique regardless of case and different from ``val``."""
    return tuple(unique_names((axis.name for axis in type_.axes), taken={VALUE}))


def key_type(type_: TensorType, axis: int) -> str:
    """SQL type of the key column of an axis."""
    coordinates: Coordinates = type_.axes[axis].coordinates
    return coordinates.value
