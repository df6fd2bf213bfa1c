"""Columns of categories beside those of numbers in a wide table: `one_hot`.

Each category is a feature of its own, which is 1 in the rows that have it and 0 in others. The
categories are those of the data, whenever it is read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ucle.errors import ValueTypeError
from ucle.foundation import arguments as args
from ucle.foundation.arguments import validated
from ucle.foundation.dataclasses import dataclass
from ucle.foundation.dtypes import Scalar
from ucle.foundation.names import fold_name
from ucle.inputs.column_types import INTEGER_TYPES, Column, key_kind
from ucle.inputs.table_input import TableInput
from ucle.plan.sources import Features, TableSource


@dataclass(frozen=True)
class OneHot:
    """A column of categories among the value columns of a wide table; made by `one_hot`."""

    column: str


@validated(column=args.text)
def one_hot(column: str) -> OneHot:
    """Make each category of a value column of `ucle.table` a feature of its own.

    The features are named like those of ``pandas.get_dummies`` and of scikit-learn's
    ``OneHotEncoder``: ``colour_red``. A feature is 1 in the rows with its category, and 0 in all
    others.

    Args:
        column: a column of strings, ENUM values, booleans or integers.

    >>> import pyarrow as pa
    >>> import ucle
    >>> rows = pa.table({"who": ["a", "b"], "age": [40, 50], "colour": ["red", "blue"]})
    >>> values = ["age", ucle.one_hot("colour")]
    >>> people = ucle.tensor(ucle.table(rows, ["who"], values, columns_as="feature"))
    >>> people.to_arrow(columns="feature").column_names
    ['who', 'age', 'colour_blue', 'colour_red']
    """
    return OneHot(column)


def split_categories(
    spec: TableInput, values: Sequence[Column]
) -> tuple[list[Column], list[Column]]:
    """The columns of numbers of a wide table, and those of categories."""
    categories = set(map(fold_name, spec.one_hot))
    numbers = [column for column in values if fold_name(column.name) not in categories]
    return numbers, [column for column in values if fold_name(column.name) in categories]


def features_of(numbers: Sequence[Column], categories: Sequence[Column], where: str) -> Features:
    """The features that some columns stand for.

    Raises:
        ValueTypeError: a column does not hold categories.
    """
    for column in categories:
        if column.type not in (*INTEGER_TYPES, "BOOLEAN") and key_kind(column.type) != "text":
            raise ValueTypeError(
                "a column does not hold categories",
                where=f"{where}, one_hot({column.name!r})",
                expected="strings, ENUM values, booleans or integers",
                found=column.type,
                hint=f"in a view, {column.name}::VARCHAR makes each value a category; "
                "CASE or floor(...) makes a few categories of them",
            )
    return Features(
        tuple(column.name for column in numbers),
        tuple(column.name for column in categories),
        tuple(column.name for column in categories if column.type == "BOOLEAN"),
    )


MOST_WIDTH = 64
"""The most features for each column with which rows are read as arrays. To look up one of them and
to stack it takes as long as so many entries of an array that hold the fill."""


def as_arrays(source: TableSource, features: int, fill: Scalar) -> TableSource | None:
    """The same rows of features with an array in each, in the order of the dictionary of features.

    Args:
        source: rows with a tuple for each of their features.
        features: the length of the axis of features.
        fill: what stands for entries that are not stored.

    Returns:
        The arrays; None where they would be too long, or several rows may be one array.
    """
    own = source.features
    if own is None or not source.single_rows:
        return None
    columns = len(own.numbers) + len(own.categories)
    keyed, numbered = len(source.keys) > 1, source.encoded[-1]
    if not (keyed and numbered and source.dtype.kind != "c" and features <= MOST_WIDTH * columns):
        return None
    keys_as = source.keys_as[:-1]
    return replace(
        source,
        keys=source.keys[:-1],
        encoded=source.encoded[:-1],
        key_types=source.key_types[:-1],
        keys_as=keys_as if any(keys_as) else (),
        dense=(features,),
        nesting=1,
        placed=True,
        missing=fill,
    )
