"""The index of a pandas frame: when its levels are key columns, and when they are ignored.

Whole numbers without a name count the rows and are ignored. The levels of any other index are the
keys of a wide table, unless its caller names the keys; elsewhere the caller has to name them.
Takes frames; nothing here imports pandas.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ucle.errors import InputError
from ucle.inputs.objects import is_instance
from ucle.inputs.table_input import TableInput
from ucle.inputs.wide_tables import check_distinct_names


def index_as_keys(name: str, spec: TableInput) -> TableInput:
    """Name the levels of an index as the keys of a wide frame; other inputs are unchanged.

    Their coordinates go through a dictionary, whatever their type, as those of a series.

    Args:
        name: the tensor, for messages.
        spec: the input.

    Raises:
        InputError: a level and a column have the same name.
    """
    if spec.columns_as is None or spec.columns is not None:
        return spec
    if not is_instance(spec.relation, "pandas", "DataFrame") or counts_rows(spec.relation.index):
        return spec
    levels = level_names(spec.relation.index)
    columns = [str(each) for each in spec.relation.columns]
    read = columns if spec.values is None else [x for x in columns if x in spec.values]
    check_distinct_names([*levels, *read], f"input {name}, pandas frame")
    return replace(spec, columns=tuple(levels), encoded_keys=tuple(range(len(levels))))


def counts_rows(index: Any) -> bool:
    """True if an index holds no data: whole numbers without a name, some possibly filtered out."""
    return _is_plain(index) and getattr(index.dtype, "kind", "") in "iu"


def _is_plain(index: Any) -> bool:
    """True if an index has one level, without a name."""
    return index.nlevels == 1 and index.names[0] is None


def level_names(index: Any) -> list[str]:
    """The names of the levels of an index, with those that pandas gives to levels without one."""
    unnamed = ["index"] if index.nlevels == 1 else [f"level_{n}" for n in range(index.nlevels)]
    return [
        other if label is None else str(label)
        for label, other in zip(index.names, unnamed, strict=True)
    ]


def check_index(name: str, spec: TableInput) -> None:
    """Check that the index of a frame holds no data, unless the caller names the columns to read.

    Raises:
        InputError: it holds data, and no columns are named.
    """
    index = spec.relation.index
    empty = _is_plain(index) and not len(index)
    if spec.columns is not None or empty or counts_rows(index):
        return
    names = [str(label) for label in index.names if label is not None]
    levels = f"{index.nlevels} levels" if index.nlevels > 1 else f"{index.dtype}"
    raise InputError(
        "the index of this frame is not read",
        where=f"input {name}, pandas frame",
        expected="columns of keys and values",
        found="an index of " + (", ".join(names) or levels),
        hint="make columns of it with frame.reset_index(), or drop it with "
        "frame.reset_index(drop=True); or name the columns and levels to read: "
        "ucle.table(frame, columns, value); ucle.table(frame, columns_as='feature') "
        "reads a matrix whose coordinates are the index and the names of the columns",
    )


def with_index(spec: TableInput) -> Any:
    """The frame of an input, with the index levels that the caller names as columns."""
    frame = spec.relation
    named = [column if isinstance(column, str) else column[1] for column in spec.columns or ()]
    named += [each for each in (spec.value, spec.ends) if isinstance(each, str)]
    names = level_names(frame.index)
    levels = [n for n, level in enumerate(names) if level in named and level not in frame.columns]
    if not levels:
        return frame
    frame = frame.copy(deep=False)
    frame.columns = [str(each) for each in frame.columns]  # of several levels, or numbers
    frame.index = frame.index.set_names(names)
    return frame.reset_index(level=levels)
