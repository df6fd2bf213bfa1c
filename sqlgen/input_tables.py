"""Input tables in SQL: their place in a FROM clause, and their values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp, select

from ucle.foundation.dtypes import DType
from ucle.operators import ANY, SUM, Reduce
from ucle.plan.sources import (
    NAME,
    CsvFile,
    DataFile,
    Dictionary,
    InMemory,
    Names,
    Nulls,
    OneRow,
    ParquetFile,
    TableName,
    TableSource,
)
from ucle.sqlgen.dialects import DUCKDB_SQL, Dialect
from ucle.sqlgen.feature_rows import feature_names, feature_rows
from ucle.sqlgen.item_rows import item_rows
from ucle.sqlgen.pairs_of_times import (
    PERIOD,
    is_the_column,
    periods,
    results_of_pairs,
    time_pairs,
)
from ucle.sqlgen.run_rows import run_rows
from ucle.sqlgen.scalar_operators import reduce_sql
from ucle.sqlgen.sql_trees import (
    ONE,
    add_alias,
    ascending,
    cast,
    column,
    either,
    function,
    group_by_keys,
    integer,
    integers_below,
    number,
    pair_of,
    select_from,
    subquery,
    table,
    table_function,
    text,
    texts,
)


def source_table(
    source: TableSource, prefix: str = "", alias: str | None = None, beside: Sequence[str] = ()
) -> exp.Expr:
    """The relation of a source in a FROM clause, with all rows that it represents.

    A row that is an array of its own also has the columns `beside`.
    """
    if source.times is not None:
        stored = stored_table(source, prefix)
        return subquery(time_pairs(source.times, stored), alias or "times")
    if not source.symmetric:
        return stored_table(source, prefix, alias, beside)
    one, other, *others = source.keys
    columns = [*others, *([] if source.value is None else [source.value])]
    first, second = key_value(source, one), key_value(source, other)
    rows = select(_as_named(first, one), _as_named(second, other), *map(column, columns))
    rows = rows.from_(stored_table(source, prefix))
    mirrored = select(add_alias(second, one), add_alias(first, other), *map(column, columns))
    mirrored = mirrored.from_(stored_table(source, prefix))
    mirrored = mirrored.where(exp.NEQ(this=first.copy(), expression=second.copy()))
    both = exp.Union(this=rows, expression=mirrored, distinct=False)
    return subquery(both, alias or "both orders")


def _as_named(key: exp.Expr, name: str) -> exp.Expr:
    return key if isinstance(key, exp.Column) else add_alias(key, name)


def key_value(source: TableSource, key: str, alias: str | None = None) -> exp.Expr:
    """A key column in the type in which it is compared with others, which is the same for all."""
    read_as = source.key_as(key)
    return column(key, alias) if read_as is None else cast(column(key, alias), read_as)


def table_rows(source: TableSource) -> exp.Select:
    """All columns of a source, as they are stored."""
    return select(exp.Star()).from_(whole_table(source))


def stored_table(
    source: TableSource, prefix: str = "", alias: str | None = None, beside: Sequence[str] = ()
) -> exp.Expr:
    """The relation of a source in a FROM clause, with a column for its values."""
    if source.features is not None:
        return subquery(feature_rows(source, whole_table(source, prefix)), alias or "features")
    if source.times is not None and source.times.of is not None:
        made = source.times.of
        inner = stored_table(replace(source, times=made), prefix)
        return subquery(results_of_pairs(made, inner), alias or "results")
    if not source.wide:
        return _item_table(source, prefix, alias)
    assert source.value is not None
    values = [wide_value(source, name) for name in source.wide]
    array = _as_named(exp.Array(expressions=values), source.value)
    columns = (*map(column, source.keys), array, *map(column, beside))
    return subquery(select_from(whole_table(source, prefix), *columns), alias or "rows")


def _item_table(source: TableSource, prefix: str, alias: str | None = None) -> exp.Expr:
    """The relation of a source in a FROM clause, with a row for each item of lists, or of runs."""
    if source.ends is not None:
        return subquery(run_rows(source, whole_table(source, prefix)), alias or "places")
    if not source.ragged:
        return whole_table(source, prefix, alias)
    return subquery(item_rows(source, whole_table(source, prefix)), alias or "items")


def is_null(name: str) -> exp.Expr:
    """Condition: a column is NULL."""
    return _is_null(column(name))


def _is_null(value: exp.Expr) -> exp.Expr:
    return exp.Is(this=value, expression=exp.Null())


def wide_value(source: TableSource, name: str) -> exp.Expr:
    """One entry of a row of a wide table, in the element type of the tensor."""
    return _wide_value(source, column(name))


def every_wide_value(source: TableSource) -> tuple[exp.Expr, exp.Expr]:
    """Expressions that DuckDB repeats for each value column of a wide table, in any order.

    Returns:
        Whether it is NULL, and the entry, as for `wide_value`. In an expression, DuckDB repeats
        all of it, so that a few trees stand for hundreds of columns.
    """
    every = exp.Columns(this=exp.array(*map(text, source.wide)))
    return _is_null(every), _wide_value(source, every.copy())


def _wide_value(source: TableSource, value: exp.Expr) -> exp.Expr:
    if source.nulls is Nulls.OBSERVED:
        return exp.not_(_is_null(value))
    if not source.uncast:
        value = cast(value, source.dtype)
    if source.nulls is Nulls.REFUSED:
        return value
    return either(value, number(source.missing, source.dtype))


def whole_table(source: TableSource, prefix: str = "", alias: str | None = None) -> exp.Expr:
    """The relation of a source in a FROM clause, with all of its columns."""
    match source.origin:
        case TableName(parts):
            return table(*parts, alias=alias)
        case CsvFile() as file:
            return csv_table(file, alias)
        case DataFile(path) as file:
            united = isinstance(file, ParquetFile) and file.united
            nan = source.dtype.kind in "fc" or source.of_floats
            return parquet_table(path, alias, nan=nan, united=united)
        case InMemory(_, name):
            return table(prefix + name, alias=alias)
        case OneRow():
            return integers_below(1, alias or ONE, ONE)
        case Names(names):
            return subquery(select(add_alias(_each(names), NAME)), alias or "names")


def parquet_table(
    path: str, alias: str | None = None, *, nan: bool, united: bool = False
) -> exp.Expr:
    """A Parquet file, or several, in a FROM clause; `nan` is True if they may hold NaN.

    Columns have the types of the first file, or, where `united`, types that hold those of all
    files.

    Statistics in such files leave NaN out. DuckDB from 2.0 on concludes that there is none, unless
    an option says otherwise, and answers ``isnan(x)`` or ``x > 4`` without reading the data.
    """
    arguments: list[exp.Expr] = [text(path)]
    if nan:
        arguments.append(_build_option("can_have_nan", exp.true()))
    if united:
        arguments.append(_build_option("union_by_name", exp.true()))
    return table_function(function("read_parquet", *arguments), alias or "parquet")


def csv_table(file: CsvFile, alias: str | None = None, *, in_order: bool = False) -> exp.Expr:
    """A text file in a FROM clause, read exactly as specified; `in_order` by one thread.

    A line with another number of fields is an error.
    """
    types = [exp.PropertyEQ(this=text(x), expression=text(kind)) for x, kind in file.columns]
    header_alone = file.skipped == 1 and not file.comment
    stated: dict[str, exp.Expr] = {
        "auto_detect": exp.false(),
        "delim": text(file.delimiter),
        "quote": text('"'),
        "escape": text('"'),
        "header": exp.true() if header_alone else exp.false(),
        "columns": exp.Struct(expressions=types),
    }
    if file.skipped and not header_alone:
        stated["skip"] = integer(file.skipped)
    if file.comment:
        stated["comment"] = text(file.comment)
    if in_order:
        stated["parallel"] = exp.false()
    arguments = [text(file.path), *(_build_option(name, value) for name, value in stated.items())]
    return table_function(function("read_csv", *arguments), alias or "csv")


def lines_table(path: str) -> exp.Expr:
    """The lines of a text file, unchanged, in a column ``line``; NULL where one is empty."""
    line = exp.PropertyEQ(this=text("line"), expression=text("VARCHAR"))
    stated: dict[str, exp.Expr] = {
        "auto_detect": exp.false(),
        **dict.fromkeys(("delim", "quote", "escape"), text("")),
        "header": exp.false(),
        "columns": exp.Struct(expressions=[line]),
    }
    arguments = [text(path), *(_build_option(name, value.copy()) for name, value in stated.items())]
    return table_function(function("read_csv", *arguments), "lines")


def _build_option(name: str, value: exp.Expr) -> exp.Expr:
    """An option of a table function."""
    return exp.EQ(this=exp.to_identifier(name), expression=value)


def scalar_value(source: TableSource, alias: str | None = None) -> exp.Expr:
    """The value of a row of a COO table in its element type; the constant where none is stored."""
    if source.value is None:
        return number(source.constant, source.dtype)
    stored = column(source.value, alias)
    if source.nulls is Nulls.OBSERVED:
        return exp.not_(_is_null(stored))
    value = in_type(stored, source)
    if source.nulls is Nulls.MISSING:  # the row stays, as its coordinates exist
        value = either(value, number(source.missing, source.dtype))
    if isinstance(source.origin, DataFile) and source.dtype.kind == "f":
        # DuckDB 2.0 takes NaN for the largest value of any column that may hold NaN, and answers
        # max(x) by that without reading the data. It has no such statistics of a sum.
        return exp.Add(this=value, expression=number(0, source.dtype))
    return value


def in_type(value: exp.Expr, source: TableSource) -> exp.Expr:
    """A value of a column in the element type of the tensor."""
    if source.presence:
        there = exp.Is(this=value, expression=exp.Null()).not_()
        return exp.Case(ifs=[exp.If(this=there, true=exp.true())])
    if source.pairs or source.dtype.kind != "c":
        return cast(value, source.dtype)
    return pair_of(cast(value, source.dtype.real), number(0, source.dtype.real))


def duplicates_sum(dtype: DType) -> Reduce:
    """The ⊕ of entries that share coordinates; for booleans it is logical or."""
    return ANY if dtype is DType.BOOL else SUM


def sum_duplicates(source: TableSource, value: exp.Expr, dialect: Dialect = DUCKDB_SQL) -> exp.Expr:
    """The sum of the entries that share coordinates."""
    return reduce_sql(duplicates_sum(source.dtype), value, source.dtype, dialect)


def sum_lists(query: exp.Select, value: exp.Expr, dtype: DType) -> exp.Select:
    """Sum lists that share keys, element by element, where there are no kernels.

    Args:
        query: selects the keys.
        value: the lists of its rows.
        dtype: of their elements.
    """
    names = [key.alias_or_name for key in query.expressions]
    element, place = "an element", "its place"  # labels have no blanks
    places = function("unnest", function("range", function("len", value.copy())))
    unnested = query.select(add_alias(function("unnest", value), element), add_alias(places, place))
    total = reduce_sql(duplicates_sum(dtype), column(element), dtype)
    keys = [column(name) for name in names]
    sums = select(*keys, column(place), add_alias(total, element)).from_(
        unnested.subquery("elements")
    )
    sums = sums.group_by(*(column(name) for name in (*names, place)))
    order = exp.Order(expressions=[exp.Ordered(this=column(place), nulls_first=False)])
    whole = function("list", exp.Order(this=column(element), expressions=order.expressions))
    lists = select(*(key.copy() for key in keys), add_alias(whole, "val")).from_(
        sums.subquery("sums")
    )
    return group_by_keys(lists, keys)


def list_value(value: exp.Expr, source: TableSource) -> exp.Expr:
    """An array column as a flat list of the element type."""
    if not source.presence and (source.pairs or source.dtype.kind != "c"):
        return flatten_lists(cast(value, source.dtype, source.nesting), source.nesting)
    element = exp.to_identifier("element")
    if not source.presence:
        value = cast(value, source.dtype.real, source.nesting)
    entry = in_type(exp.column(element), source)
    return function(
        "list_transform",
        flatten_lists(value, source.nesting),
        exp.Lambda(this=entry, expressions=[element], colon=True),
    )


def flatten_lists(lists: exp.Expr, nesting: int) -> exp.Expr:
    """Lists of lists flattened into one list."""
    for _ in range(nesting - 1):
        lists = function("flatten", lists)
    return lists


def dictionary_values(dictionary: Dictionary, prefix: str = "") -> exp.Query:
    """The distinct values of a dictionary, without numbers and in no order."""
    # Several inputs may read one column, such as the rows of a table and what it stores.
    parts = list(
        dict.fromkeys(_coordinates(source, name, prefix) for source, name in dictionary.columns)
    )
    if len(parts) == 1:
        return parts[0].distinct()
    return exp.union(*parts, distinct=True)


def _coordinates(source: TableSource, key: str, prefix: str) -> exp.Select:
    """The values of a key column, which may recur."""
    value, times = key_value(source, key), source.times
    if source.features is not None:
        relation = whole_table(source, prefix)
        if key == source.keys[-1]:
            relation = subquery(feature_names(source, relation), "features")
    elif source.ragged and key != source.keys[-1]:
        relation = whole_table(source, prefix)  # lists without items have coordinates, too
    elif source.ends is not None:
        relation = whole_table(source, prefix)  # and so have runs without positions
    elif times is None:
        relation = source_table(source.keys_alone, prefix)
    elif is_the_column(times, key):
        relation, own = stored_table(source.keys_alone, prefix), column(times.column)
        value = own if (read_as := source.key_as(key)) is None else cast(own, read_as)
    elif key == PERIOD and times.kind != "range":
        relation = subquery(periods(times, stored_table(source.keys_alone, prefix)), "times")
    else:
        relation = source_table(source.keys_alone, prefix)
    return select(exp.alias_(value, "value", quoted=True)).from_(relation)


def dictionary_query(
    dictionary: Dictionary, prefix: str = "", *, checked: bool = False
) -> exp.Select:
    """The table of a dictionary: its values, and the numbers that stand for them.

    Values are numbered in their order, and the columns of a single wide table as they stand there.
    With `checked`, no two rows share coordinates where that is refused: where these are the values
    of one column, they are distinct, and looking for others takes as long as numbering them.
    """
    if (names := only_names(dictionary)) is not None:
        places = function("unnest", function("range", integer(len(names))))
        return select(add_alias(cast(places, "BIGINT"), "id"), add_alias(_each(names), "value"))
    number_ = exp.Window(this=exp.RowNumber(), order=ascending(column("value")))
    position = exp.Sub(this=number_, expression=exp.Literal.number(1))
    values = (
        _coordinates(*dictionary.columns[0], prefix)
        if checked and _is_unique(dictionary)
        else dictionary_values(dictionary, prefix)
    ).subquery("values")
    id_ = exp.alias_(cast(position, "BIGINT"), "id", quoted=True)
    return select(id_, column("value")).from_(values)


def _is_unique(dictionary: Dictionary) -> bool:
    """True if each value of a dictionary is the only coordinate of one row of one relation."""
    if len({_coordinates(source, name, "") for source, name in dictionary.columns}) > 1:
        return False
    return any(_is_only_key(source, name) for source, name in dictionary.columns)


def _is_only_key(source: TableSource, key: str) -> bool:
    """True if no two rows of a relation have the same value in a key column."""
    if source.times is not None:
        return source.times.unique and is_the_column(source.times, key)
    return (
        len(source.without_features.keys) == 1
        and (source.single_rows or source.features is None)
        and key == source.keys[0]
        and not (source.sum_duplicates or source.tiles)
    )


def only_names(dictionary: Dictionary) -> tuple[str, ...] | None:
    """The values of a dictionary that only numbers the columns of one wide table; else None."""
    origins = [source.origin for source, _ in dictionary.columns]
    return origins[0].names if len(origins) == 1 and isinstance(origins[0], Names) else None


def _each(names: Sequence[str]) -> exp.Expr:
    """One row for each of some names."""
    return function("unnest", texts(names))


def placed_list(source: TableSource, lists: exp.Expr, ids: exp.Expr, size: int) -> exp.Expr:
    """The values of a row of a wide table at the places that a dictionary gives their names.

    Args:
        source: the table.
        lists: a list of the values of a row, in the order of the columns.
        ids: the table of the dictionary in a FROM clause.
        size: the length of the axis; other places hold the fill.
    """
    fill = number(source.missing, source.dtype)
    with_fill = function("list_append", lists, fill)
    nothing = integer(len(source.wide) + 1)
    # A join, as looking for each name in the list would take the square of their number.
    count = function("range", integer(1), nothing.copy())
    pairs = select(_each(source.wide).as_("name"), function("unnest", count).as_("place"))
    place = either(column("place"), nothing.copy())
    ordered = exp.Order(this=place, expressions=ascending(column("id")).expressions)
    places = (
        select(function("list", ordered))
        .from_(ids)
        .join(
            subquery(pairs, "names"),
            on=exp.EQ(this=column("name"), expression=column("value")),
            join_type="left",
        )
        .subquery()
    )
    return function(
        "list_select", with_fill, function("list_resize", places, integer(size), nothing)
    )
