"""Rows for the features of a wide table: a row for each number, and one for each category.

A number is the entry at the name of its column. A category, such as the colour red, is a 1 at a
name of its own, ``colour_red``: that is one row for each value, however many categories there are.
Each column is read by itself.
"""

from __future__ import annotations

from sqlglot import exp, select

from ucle.plan.sources import Nulls, TableSource
from ucle.sqlgen.sql_trees import add_alias, cast, column, integer, subquery, text

CATEGORY = "category"


def feature_rows(source: TableSource, relation: exp.Expr) -> exp.Query:
    """Select the keys, the names of features and the values of a source from its relation.

    Where NULLs are refused, a category that is NULL is a NULL at the name of its column.
    """
    assert source.features is not None
    assert source.value is not None
    *keys, name = source.keys
    entry = source.value
    masks = source.nulls is Nulls.OBSERVED

    def part(feature: exp.Expr, value: exp.Expr) -> exp.Select:
        named = add_alias(feature, name), add_alias(cast(value, source.dtype), entry)
        return select(*map(column, keys), *named).from_(relation.copy())

    parts = []
    for number in source.features.numbers:
        entries = part(text(number), exp.true() if masks else column(number))
        parts.append(_without_nulls(source, entries, number))
    for category in source.features.categories:
        if masks:  # it is known for each category whether it is the one
            others = select(add_alias(_category(source, category), CATEGORY)).from_(relation.copy())
            others = _without_nulls(source, others, category).distinct()
            entries = part(column(CATEGORY, "categories"), exp.true())
            entries = entries.join(subquery(others, "categories"), join_type="CROSS")
        else:
            there = exp.Is(this=column(category), expression=exp.Null()).not_()
            one = exp.Case(ifs=[exp.If(this=there, true=integer(1))])
            own = exp.func("coalesce", _category(source, category), text(category))
            entries = part(own, one)
        parts.append(_without_nulls(source, entries, category))
    return parts[0] if len(parts) == 1 else exp.union(*parts, distinct=False)


def feature_names(source: TableSource, relation: exp.Expr) -> exp.Query:
    """Select the names of all features of a source, which may recur, from its relation."""
    assert source.features is not None
    name = source.keys[-1]
    parts = [select(add_alias(text(number), name)) for number in source.features.numbers]
    for category in source.features.categories:
        there = select(add_alias(_category(source, category), name)).from_(relation.copy())
        known = exp.Is(this=column(category), expression=exp.Null()).not_()
        parts.append(there.where(known).distinct())
    return parts[0] if len(parts) == 1 else exp.union(*parts, distinct=False)


def _category(source: TableSource, name: str) -> exp.Expr:
    """The name of the feature that a category is, as pandas and scikit-learn name it."""
    assert source.features is not None
    value: exp.Expr = cast(column(name), "VARCHAR")
    if name in source.features.booleans:
        yes = exp.If(this=column(name), true=text("True"))
        no = exp.If(this=exp.not_(column(name)), true=text("False"))
        value = exp.Case(ifs=[yes, no])
    return exp.DPipe(this=text(f"{name}_"), expression=value)


def _without_nulls(source: TableSource, rows: exp.Select, name: str) -> exp.Select:
    if source.nulls is Nulls.REFUSED:
        return rows
    return rows.where(exp.Is(this=column(name), expression=exp.Null()).not_())
