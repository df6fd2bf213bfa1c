"""The roles of a table's columns: the keys, and the column that holds the values.

Nothing is guessed. Keys are named, or are the leading columns. The values are in the named column,
in the only column left, or are a constant. The error lists the columns and shows what to write
where several columns are left, or where the only one left was not put there by the user (pandas'
index, the folders of a glob).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from ucle.errors import InputError, did_you_mean
from ucle.foundation.names import fold_name
from ucle.inputs.column_types import Column, nesting, value_type
from ucle.inputs.table_input import TableInput

INDEX_NAMES = re.compile(r"__index_level_\d+__|Unnamed: \d+")
"""Names that pandas gives to an unnamed index in Parquet and to an unnamed column in CSV."""

UNNAMED = re.compile(r"column\d+")
"""Names that DuckDB gives to unnamed columns of a CSV file."""

ROW_NUMBERS = {"id", "rowid", "row_id", "row", "index", "idx", "pk", "uuid"}
"""Names of columns that often number the rows instead of an axis."""


def assign_columns(
    spec: TableInput,
    columns: Sequence[Column],
    labels: Sequence[str],
    where: str,
    foreign: Mapping[str, str],
) -> tuple[list[Column], Column | None]:
    """The key columns of a table in the order of the axes, and its value column.

    Args:
        spec: the caller's options for the table.
        columns: the columns of the table.
        labels: labels of the tensor's axes; their number is the rank.
        where: the table, for messages.
        foreign: columns that the user did not put into the data, with a description of each; they
            are used only if they are named.

    Returns:
        The keys, and the value column, or None if each row holds a constant.

    Raises:
        InputError: a column is missing, there are too few, or the roles are ambiguous.
    """
    foreign = with_index_columns(spec, columns, foreign)
    value = find_column(columns, where, spec.value) if isinstance(spec.value, str) else None
    if spec.columns is not None:
        keys = _named_keys(spec, columns, labels, where)
        if spec.value is not None:
            return keys, value
    else:
        own = [c for c in columns if c.name not in foreign and c is not value]
        keys = own[: _key_count(spec, own, value, labels)]
        depth = array_rank(spec, value) if value else 0
        short = len(labels) + tiled_axes(spec) - len(keys) - depth
        if short > 0 and not any(nesting(column.type) for column in own):
            raise InputError(
                "the table has too few columns",
                where=where,
                expected=f"{len(labels)} key columns, and a value column unless every value is 1",
                found=", ".join(c.name for c in columns) or "no column",
                hint="name the columns: ucle.table(relation, columns, value)"
                + "".join(f"; {name} is {role}" for name, role in foreign.items()),
            )
        if spec.value is not None:
            return keys, value
    left = [column for column in columns if column not in keys]
    if not left:
        return keys, None
    if len(left) == 1 and left[0].name not in foreign:
        return keys, left[0]
    raise _several(spec, keys, left, columns, where, foreign)


def assign_keys(
    spec: TableInput,
    columns: Sequence[Column],
    labels: Sequence[str],
    where: str,
    foreign: Mapping[str, str],
) -> list[Column]:
    """The key columns of a wide table: those that are named, or the leading ones.

    Arguments are those of `assign_columns`, with the labels of the axes that have a key column.

    Raises:
        InputError: a column is missing, or there are too few or too many.
    """
    if spec.columns is not None:
        keys = _named_keys(spec, columns, labels, where)
    else:
        keys = [x for x in columns if x.name not in foreign][: len(labels)]
    if len(keys) != len(labels):
        raise InputError(
            "the columns do not make a tensor of this rank",
            where=where,
            expected=f"{len(labels)} key columns, and an axis {spec.columns_as} of value columns",
            found="keys " + (", ".join(key.name for key in keys) or "(none)"),
            hint="name the key columns: ucle.table(relation, columns, columns_as=...)",
        )
    return keys


def with_index_columns(
    spec: TableInput, columns: Sequence[Column], foreign: Mapping[str, str]
) -> dict[str, str]:
    """Columns that the user did not put into the data, with those of an index of pandas."""
    index = () if spec.header is False else _index_columns(columns)
    return {**dict.fromkeys(index, "pandas' index"), **foreign}


def find_column(columns: Sequence[Column], where: str, name: str) -> Column:
    """The column with this name, ignoring case.

    Raises:
        InputError: there is none.
    """
    (found,) = find_columns(columns, where, [name])
    return found


def find_columns(columns: Sequence[Column], where: str, names: Sequence[str]) -> list[Column]:
    """The columns with some names, as `find_column` finds each of them."""
    by_name: dict[str, Column] = {}
    for column in columns:
        by_name.setdefault(fold_name(column.name), column)
    for name in names:
        if fold_name(name) not in by_name:
            raise InputError(
                f"there is no column {name!r}",
                where=where,
                expected="one of " + ", ".join(column.name for column in columns),
                found=name,
                hint=did_you_mean(name, [column.name for column in columns]),
            )
    return [by_name[fold_name(name)] for name in names]


def stated_dictionaries(
    stated: Sequence[tuple[str, str]], labels: Sequence[str], keys: Sequence[str]
) -> tuple[dict[int, str], list[str]]:
    """The dictionaries that a caller has stated, by axis, and the names that are of no axis.

    Args:
        stated: pairs of an axis, by its label or its key column, and a dictionary.
        labels: labels of the axes.
        keys: names of the key columns, in the order of the axes.
    """
    places = {fold_name(key): axis for axis, key in enumerate(keys[: len(labels)])}
    found: dict[int, str] = {}
    unknown = []
    for name, dictionary in stated:
        axis = labels.index(name) if name in labels else places.get(fold_name(name))
        if axis is None:
            unknown.append(name)
        else:
            found[axis] = dictionary
    return found, unknown


def check_label(label: str, labels: Sequence[str], argument: str, where: str) -> None:
    """Check that a label is one of the tensor's.

    Raises:
        InputError: it is not.
    """
    if label not in labels:
        raise InputError(
            f"{argument} names the label {label!r}",
            where=where,
            expected="labels of the tensor, as the program first reads it: " + ", ".join(labels),
            found=label,
            hint=did_you_mean(label, labels) or "a list names columns in the order of the axes",
        )


def _index_columns(columns: Sequence[Column]) -> list[str]:
    """Names of columns that may be pandas' index; none if no column has a name (no header)."""
    names = [column.name for column in columns]
    some = any(not UNNAMED.fullmatch(name) for name in names)
    return [x for x in names if INDEX_NAMES.fullmatch(x) or (some and UNNAMED.fullmatch(x))]


def _named_keys(
    spec: TableInput, columns: Sequence[Column], labels: Sequence[str], where: str
) -> list[Column]:
    """The columns that the caller names, in the order of the axes."""
    names = list(spec.columns or ())
    if spec.header is False and names and not isinstance(names[0], tuple):
        # The names are for the columns of the file; as always, the first of these are keys.
        names = [name for name in names if name != spec.value][: len(labels) + tiled_axes(spec)]
    if not names or not isinstance(names[0], tuple):
        return find_columns(columns, where, [str(name) for name in names])
    by_label: dict[str, Column] = {}
    for label, name in names:
        check_label(label, labels, "columns", where)
        by_label[label] = find_column(columns, where, name)
    leading = labels[: len(by_label)]
    if any(label not in by_label for label in leading):
        raise InputError(
            "the labels of the key columns are not the leading ones",
            where=where,
            expected=f"columns for {', '.join(leading)}: arrays hold the last axes",
            found="columns for " + ", ".join(by_label),
        )
    return [by_label[label] for label in leading]


def array_rank(spec: TableInput, value: Column) -> int:
    """The number of axes of the arrays in a value column."""
    if spec.shape is not None:
        return len(spec.shape)
    depth = nesting(value.type)
    # A block in a flat list has the shape of its tile.
    return tiled_axes(spec) if spec.tiles and depth == 1 else depth


def tiled_axes(spec: TableInput) -> int:
    """The number of axes along which keys number tiles."""
    return sum(map(bool, spec.tiles or ()))


def _key_count(
    spec: TableInput, own: Sequence[Column], value: Column | None, labels: Sequence[str]
) -> int:
    """The number of key columns if the caller names none."""
    if value is None and spec.value is None:
        # The values are plain numbers, or are in the first column of arrays, which is not a key.
        value = next((column for column in own if nesting(column.type)), None)
    depth = array_rank(spec, value) if value else 0
    return max(len(labels) + tiled_axes(spec) - depth, 0)


def _several(
    spec: TableInput,
    keys: Sequence[Column],
    left: Sequence[Column],
    columns: Sequence[Column],
    where: str,
    foreign: Mapping[str, str],
) -> InputError:
    own = [column for column in left if column.name not in foreign]
    fit = [column.name for column in own if value_type(column.type) is not None]
    relation = repr(spec.relation) if isinstance(spec.relation, str) else "data"
    call = f"ucle.table({relation}, {[key.name for key in keys]}"
    ways = [f"{call}, {name!r})" for name in fit[:1]] + [f"{call}, value=1) for a 1 in every row"]
    notes = [f"{c.name} is {foreign[c.name]}" for c in columns if c.name in foreign]
    first = columns[0].name
    if spec.columns is None and first.casefold() in ROW_NUMBERS:
        notes.append(f"if {first} numbers the rows, it is not a key")
    return InputError(
        "it is not clear which column holds the values",
        where=where,
        expected="one column beside the keys "
        + (", ".join(key.name for key in keys) or "(there are none)"),
        found=", ".join(f"{column.name} {column.type}" for column in left),
        hint="write " + ", or ".join(ways) + "".join(f"; {note}" for note in notes),
    )
