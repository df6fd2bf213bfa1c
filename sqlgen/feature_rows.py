"""Rows for the features of a wide table: a row for each number, and one for each category.

A number is the entry at the name of its column. A category, such as the colour red, is a 1 at a
name of its own, ``colour_red``: that is one row for each value, however many categories there are.
All columns of a row are read at once, and its features are unnested: where each column is read by
itself, what aggregates the rows has states for each of them.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp, select

from ucle.plan.sources import Nulls, TableSource
from ucle.sqlgen.sql_trees import add_alias, cast, column, integer, subquery, text, texts

CATEGORY = "category"


def feature_rows(source: TableSource, relation: exp.Expr) -> exp.Query:
    """Select the keys, the names of features and the values of a source from its relation.

    Where NULLs are refused, a category that is NULL is a NULL at the name of its column.
    """
    features, masks = source.features, source.nulls is Nulls.OBSERVED
    assert features is not None
    entries: list[tuple[exp.Expr, exp.Expr]] = [
        (text(name), there(column(name), exp.true()) if masks else column(name))
        for name in features.numbers
    ]
    if masks:  # it is known for each category whether it is the one
        parts = [_category_masks(source, relation, name) for name in features.categories]
    else:
        parts = []
        for name in features.categories:
            own = exp.func("coalesce", _category(source, name), text(name))
            entries.append((own, there(column(name), integer(1))))
    if entries:
        parts.insert(0, _unnested(source, relation, entries))
    return parts[0] if len(parts) == 1 else exp.union(*parts, distinct=False)


def reads_once(source: TableSource) -> bool:
    """Return whether the rows of features read the relation of their source in one place."""
    assert source.features is not None
    return source.nulls is not Nulls.OBSERVED or not source.features.categories


def _unnested(
    source: TableSource, relation: exp.Expr, entries: Sequence[tuple[exp.Expr, exp.Expr]]
) -> exp.Select:
    *keys, name = source.keys
    assert source.value is not None
    names = exp.Array(expressions=[feature for feature, _ in entries])
    values = exp.Array(expressions=[cast(value, source.dtype) for _, value in entries])
    rows = select(
        *map(column, keys),
        add_alias(exp.func("unnest", names), name),
        add_alias(exp.func("unnest", values), source.value),
    ).from_(relation.copy())
    if source.nulls is Nulls.REFUSED:
        return rows
    whole = select(*map(column, source.keys), column(source.value)).from_(subquery(rows, "entries"))
    return _without_nulls(source, whole, source.value)


def _category_masks(source: TableSource, relation: exp.Expr, name: str) -> exp.Select:
    """Select a true value at each category of a column, for each row in which it has one."""
    *keys, feature = source.keys
    assert source.value is not None
    others = select(add_alias(_category(source, name), CATEGORY)).from_(relation.copy())
    others = _without_nulls(source, others, name).distinct()
    named = add_alias(column(CATEGORY, "categories"), feature)
    value = add_alias(cast(exp.true(), source.dtype), source.value)
    rows = select(*map(column, keys), named, value).from_(relation.copy())
    rows = rows.join(subquery(others, "categories"), join_type="CROSS")
    return _without_nulls(source, rows, name)


def there(entry: exp.Expr, value: exp.Expr) -> exp.Expr:
    """A value in the rows in which an entry is not NULL."""
    return exp.Case(ifs=[exp.If(this=is_there(entry), true=value)])


def is_there(entry: exp.Expr) -> exp.Expr:
    """Condition: an entry is not NULL."""
    return exp.Is(this=entry, expression=exp.Null()).not_()


def feature_names(source: TableSource, relation: exp.Expr) -> exp.Query:
    """Select the names of all features of a source, which may recur, from its relation."""
    assert source.features is not None
    name = source.keys[-1]
    parts: list[exp.Select] = []
    if source.features.numbers:
        every = exp.func("unnest", texts(source.features.numbers))
        parts.append(select(add_alias(every, name)))
    for category in source.features.categories:
        each = select(add_alias(_category(source, category), name)).from_(relation.copy())
        parts.append(each.where(is_there(column(category))).distinct())
    return parts[0] if len(parts) == 1 else exp.union(*parts, distinct=False)


def _category(source: TableSource, name: str) -> exp.Expr:
    """The name of the feature that the category of a row is."""
    return feature_name(name, written_category(source, name))


def feature_name(name: str, category: exp.Expr) -> exp.Expr:
    """The name of the feature that a category of a column is, as pandas and scikit-learn do it."""
    return exp.DPipe(this=text(f"{name}_"), expression=category)


def written_category(source: TableSource, name: str, alias: str | None = None) -> exp.Expr:
    """The category of a row in a column, as it is written in the name of its feature."""
    assert source.features is not None
    value = column(name, alias)
    if name not in source.features.booleans:
        return cast(value, "VARCHAR")
    yes = exp.If(this=value, true=text("True"))
    no = exp.If(this=exp.not_(value.copy()), true=text("False"))
    return exp.Case(ifs=[yes, no])


def _without_nulls(source: TableSource, rows: exp.Select, name: str) -> exp.Select:
    if source.nulls is Nulls.REFUSED:
        return rows
    return rows.where(is_there(column(name)))
