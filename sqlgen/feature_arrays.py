"""Arrays for the features of a wide table: an array for each row, numbers and categories in it.

Rows are neither unnested nor gathered again. The position of a number is that of its column in the
dictionary of features, and the same in all rows. A category is looked up among those names in the
dictionary that begin as its own does: so no name is made for any row.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp, select

from ucle.foundation.dtypes import DType
from ucle.foundation.names import fold_name, unique_names
from ucle.plan.sources import Nulls, TableSource
from ucle.sqlgen.feature_rows import feature_name, is_there, there, written_category
from ucle.sqlgen.kernel_calls import KernelCalls
from ucle.sqlgen.sql_trees import (
    add_alias,
    ascending,
    cast,
    column,
    function,
    integer,
    join,
    number,
    select_from,
    subquery,
    text,
    texts,
)

ROWS = "T"
FIXED = "fixed"
"""The relation of one row with what is the same for all rows."""
NUMBERS = "numbers"


def feature_arrays(
    source: TableSource, relation: exp.Expr, ids: exp.Expr, beside: Sequence[str] = ()
) -> exp.Select:
    """Select the keys and the parts of arrays from the relation of a source: see `scatter`.

    Args:
        source: the rows, with the shape of their arrays.
        relation: in FROM, under the alias `ROWS`.
        ids: the table of the dictionary of features in a FROM clause.
        beside: more columns of the relation to select.
    """
    features = source.features
    assert features is not None
    masks = source.nulls is Nulls.OBSERVED
    rows = select_from(relation)
    parts = [] if not features.numbers else [number_places(features.numbers, ids)]
    if masks and features.categories:
        parts.append(_category_places(source, relation, ids))
    for n, part in enumerate(parts):
        rows = join(rows, subquery(part, f"{FIXED} {n}"), "CROSS")
    if not masks:
        rows = _look_up(source, rows, ids)
    others = _known_categories(source) if masks else _found_categories(source)
    values = [
        is_there(column(name, ROWS)) if masks else column(name, ROWS) for name in features.numbers
    ]
    lists = (
        exp.Array(expressions=[cast(value, source.dtype) for value in values]),
        column(NUMBERS, f"{FIXED} 0") if features.numbers else exp.Array(expressions=[]),
        others,
    )
    types: tuple[DType | str, ...] = (source.dtype, "BIGINT", "BIGINT")
    kept = (column(name, ROWS) for name in (*source.keys, *beside))
    named = (
        add_alias(cast(each, type_, 1), name)
        for each, type_, name in zip(lists, types, find_parts(source, beside), strict=True)
    )
    return rows.select(*kept, *named, copy=False)


def scatter(
    source: TableSource, kernels: KernelCalls, parts: Sequence[exp.Expr], size: int
) -> exp.Expr:
    """The array of a row: numbers at their positions, a 1 at those of categories, else the fill."""
    ends = number(source.missing, source.dtype), number(1, source.dtype)
    return kernels.scalar("scatter", *parts, integer(size), *ends, dtype=source.dtype)


def find_parts(source: TableSource, beside: Sequence[str] = ()) -> list[str]:
    """The columns with the numbers of a row, their positions, and those of its categories."""
    taken = set(map(fold_name, (*source.keys, *beside)))
    return unique_names(["values", "places", "others"], taken)


def number_places(names: Sequence[str], ids: exp.Expr) -> exp.Select:
    """One row with the positions of the columns of numbers, in their order."""
    place = "place"
    count = function("range", integer(len(names)))
    each = select(
        add_alias(function("unnest", texts(names)), "name"),
        add_alias(function("unnest", count), place),
    )
    on = exp.EQ(this=column("name"), expression=column("value"))
    rows = join(select_from(subquery(each, "names")), ids.copy(), "LEFT", on)
    return rows.select(add_alias(_list("id", place), NUMBERS), copy=False)


def _list(item: str, order: str) -> exp.Expr:
    ordered = exp.Order(this=column(item), expressions=ascending(column(order)).expressions)
    return function("list", ordered)


# ---- Categories ----


def _look_up(source: TableSource, rows: exp.Select, ids: exp.Expr) -> exp.Select:
    """Join rows with the positions of their categories."""
    assert source.features is not None
    for n, name in enumerate(source.features.categories):
        start, alias = f"{name}_", _ids(n)
        own = function("substr", column("value"), integer(len(start) + 1))
        known = select(add_alias(own, "category"), column("id")).from_(ids.copy())
        known = known.where(function("starts_with", column("value"), text(start)))
        category = written_category(source, name, ROWS)
        on = exp.EQ(this=column("category", alias), expression=category)
        rows = join(rows, subquery(known, alias), "LEFT", on)
    return rows


def _found_categories(source: TableSource) -> exp.Expr:
    assert source.features is not None
    found = (column("id", _ids(n)) for n in range(len(source.features.categories)))
    return exp.Array(expressions=list(found))


def _ids(number_: int) -> str:
    return f"ids {number_}"


def _category_places(source: TableSource, relation: exp.Expr, ids: exp.Expr) -> exp.Select:
    """One row with the positions of all categories of each column, in columns 0, 1, 2 ...

    They are those that are in this table: a dictionary may have those of others.
    """
    assert source.features is not None
    parts, owner = list[exp.Select](), "owner"
    for n, name in enumerate(source.features.categories):
        feature = feature_name(name, written_category(source, name, ROWS))
        own = select(add_alias(feature, "name"), add_alias(integer(n), owner))
        there_alone = own.from_(relation.copy()).where(is_there(column(name, ROWS)))
        parts.append(there_alone.distinct())
    every: exp.Query = parts[0] if len(parts) == 1 else exp.union(*parts, distinct=False)
    rows = select_from(subquery(every, "features"))
    rows = join(rows, ids.copy(), on=exp.EQ(this=column("name"), expression=column("value")))
    lists = (
        exp.Filter(
            this=_list("id", "id"),
            expression=exp.Where(this=exp.EQ(this=column(owner), expression=integer(n))),
        )
        for n in range(len(parts))
    )
    named = (add_alias(each, str(n)) for n, each in enumerate(lists))
    return rows.select(*named, copy=False)


def _known_categories(source: TableSource) -> exp.Expr:
    """The positions of all categories of the columns in which a row has one."""
    features = source.features
    assert features is not None
    alias = f"{FIXED} {int(bool(features.numbers))}"
    known = [
        there(column(name, ROWS), column(str(n), alias))
        for n, name in enumerate(features.categories)
    ]
    return function("flatten", exp.Array(expressions=known))
