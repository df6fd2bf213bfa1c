"""Wide tables: a row for each entity, and a column for each coordinate of the last axis.

The names of the value columns are the coordinates of that axis. The columns are read as one array
in each row, in one element type: the one to which NumPy promotes their types. Only names and types
are inspected here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ucle.errors import InputError, ValueTypeError
from ucle.foundation.dtypes import DType
from ucle.foundation.names import fold_name
from ucle.inputs.column_roles import (
    assign_columns,
    assign_keys,
    find_columns,
    with_index_columns,
)
from ucle.inputs.column_types import (
    EXACT_IN,
    INTEGER_TYPES,
    Column,
    is_pair,
    key_kind,
    narrowed_type,
    nesting,
    value_type,
)
from ucle.inputs.one_hot import split_categories
from ucle.inputs.runs import split_ends
from ucle.inputs.table_input import TableInput


def read_columns(
    spec: TableInput,
    columns: Sequence[Column],
    labels: Sequence[str],
    where: str,
    foreign: Mapping[str, str],
) -> tuple[list[Column], list[Column]]:
    """The key columns of any table, and the columns of its values: none, one, or those of a row.

    Columns of categories, and of the ends of runs, are among the keys.

    Arguments and errors are those of `ucle.inputs.column_roles.assign_columns`.
    """
    if spec.columns_as is not None:
        keys, values = assign_wide(spec, columns, labels, where, foreign)
        numbers, categories = split_categories(spec, values)
        return [*keys, *categories], numbers
    columns, ends = split_ends(spec, columns, where)
    keys, value = assign_columns(spec, columns, labels, where, foreign)
    return [*keys, *([] if ends is None else [ends])], [] if value is None else [value]


def assign_wide(
    spec: TableInput,
    columns: Sequence[Column],
    labels: Sequence[str],
    where: str,
    foreign: Mapping[str, str],
) -> tuple[list[Column], list[Column]]:
    """The key columns of a wide table, and its value columns in their order.

    Arguments are those of `ucle.inputs.column_roles.assign_columns`.

    Raises:
        InputError: a column is missing or is both a key and a value, or there are no value columns.
    """
    foreign = with_index_columns(spec, columns, foreign)
    keys = assign_keys(spec, columns, labels[:-1], where, foreign)
    if spec.values is None:
        values = [x for x in columns if x not in keys and x.name not in foreign]
    else:
        values = find_columns(columns, where, spec.values)
    names = [column.name for column in (*keys, *values)]
    if (twice := _first_repeated(names)) is not None:
        raise InputError(
            f"the column {names[twice[1]]!r} has two roles",
            where=where,
            expected="each column once, as a key or as a value",
            found=", ".join(names)[:200],
        )
    if not values:
        raise InputError(
            "no column is left for the values",
            where=where,
            expected="columns beside the keys " + (", ".join(x.name for x in keys) or "(none)"),
            found=", ".join(x.name for x in columns) or "no column",
        )
    return keys, values


def _first_repeated(names: Sequence[str]) -> tuple[int, int] | None:
    """The positions of a name and of the next one that is the same where case is ignored."""
    first: dict[str, int] = {}
    for n, name in enumerate(names):
        if (before := first.setdefault(fold_name(name), n)) < n:
            return before, n
    return None


def check_distinct_names(names: Sequence[str], where: str) -> None:
    """Check that no two columns of a wide table have one name, as DuckDB ignores case.

    Raises:
        InputError: two have, so that their coordinates would be other names.
    """
    if (twice := _first_repeated(names)) is not None:
        first, second = (names[n] for n in twice)
        raise InputError(
            "two columns have the same name",
            where=where,
            expected="different names, also where case is ignored: they are coordinates",
            found=f"{first!r} and {second!r}",
            hint="rename one of them",
        )


def check_wide_types(
    spec: TableInput, keys: Sequence[Column], values: Sequence[Column], where: str
) -> None:
    """Check that the value columns of a wide table hold real numbers or booleans.

    Raises:
        ValueTypeError: one does not.
    """
    unfit = [x for x in values if not holds_numbers(x)]
    if not unfit:
        return
    named = [key.name for key in keys]
    others = [column.name for column in values if column not in unfit]
    call = f"ucle.table({shown_relation(spec)}, {named}, "
    if len(others) <= 8:
        leave_out = f"{call}{others}, columns_as={spec.columns_as!r}) leaves it out"
    else:
        leave_out = f"{call}[...], columns_as={spec.columns_as!r}) with the columns to read"
    text = [column.name for column in unfit if key_kind(column.type) == "text"]
    if text:
        leave_out += f"; ucle.one_hot({text[0]!r}) in the list makes a column of each of its values"
    raise ValueTypeError(
        "a value column of a wide table does not hold numbers",
        where=f"{where}, column {unfit[0].name}",
        expected="numbers or booleans in every column but the keys",
        found=", ".join(f"{column.name} {column.type}" for column in unfit[:8]),
        hint=leave_out,
    )


def holds_numbers(column: Column) -> bool:
    """True if a column holds real numbers or booleans, one in each row."""
    plain = not nesting(column.type) and not is_pair(column.type)
    return plain and value_type(column.type) is not None


def shown_relation(spec: TableInput) -> str:
    """The relation of an input, for a call in a message."""
    return repr(spec.relation) if isinstance(spec.relation, str) else "data"


def common_value_type(values: Sequence[Column]) -> DType:
    """The element type to which NumPy promotes the types of some columns.

    >>> common_value_type([Column("a", "BOOLEAN"), Column("b", "SMALLINT")]).value
    'int64'
    >>> common_value_type([Column("a", "FLOAT"), Column("b", "INTEGER")]).value
    'float64'
    """
    types = {column.type: value_type(column.type) for column in values}
    kinds = set(types.values())
    if DType.FLOAT64 in kinds:
        return DType.FLOAT64
    if DType.FLOAT32 in kinds:
        exact = EXACT_IN["FLOAT"] | {"FLOAT", "BOOLEAN"}
        return DType.FLOAT32 if exact.issuperset(types) else DType.FLOAT64
    return DType.INT64 if DType.INT64 in kinds else DType.BOOL


def unfit_columns(
    values: Sequence[Column], dtype: DType, stated: DType | None
) -> tuple[tuple[str, str, bool], ...]:
    """The columns that may hold numbers that an element type cannot represent.

    Args:
        values: the value columns.
        dtype: the element type.
        stated: the one that the caller has stated, if any.

    Returns:
        Their names and types, and True for integers beside floats, which have to be exact unless
        the caller has stated that they are floats.
    """
    unfit = []
    for column in values:
        rounds = stated is None and dtype.kind == "f" and column.type in INTEGER_TYPES
        rounds &= column.type not in EXACT_IN["DOUBLE" if dtype is DType.FLOAT64 else "FLOAT"]
        if rounds or narrowed_type(column.type, dtype) is not None:
            unfit.append((column.name, column.type, rounds))
    return tuple(unfit)
