"""Tables of runs of one value: the column of their ends, and what the columns have to be."""

from __future__ import annotations

from collections.abc import Sequence

from ucle.errors import ValueTypeError
from ucle.inputs.column_roles import find_column
from ucle.inputs.column_types import INTEGER_TYPES, Column
from ucle.inputs.table_input import TableInput
from ucle.plan.sources import TableSource


def split_ends(
    spec: TableInput, columns: Sequence[Column], where: str
) -> tuple[Sequence[Column], Column | None]:
    """Return the columns that may be keys or values, and that of the ends of runs if there is one.

    Raises:
        InputError: the table has no such column.
    """
    if spec.ends is None:
        return columns, None
    ends = find_column(columns, where, spec.ends)
    return [column for column in columns if column is not ends], ends


def check_runs(source: TableSource, ends: Column, where: str) -> None:
    """Check that runs go from one whole number to another, and have a number as their value.

    Raises:
        ValueTypeError: they do not.
    """
    begin = source.key_types[-1] if source.key_types else "no key column"
    numbers = {begin, ends.type} <= INTEGER_TYPES
    if not numbers or source.dense or source.nesting or source.encoded[-1]:
        found = f"{', '.join(source.keys)} {begin}, {ends.name} {ends.type}"
        raise ValueTypeError(
            "runs go from one position to another, and have one value",
            where=f"{where}, ends",
            expected="a last key and ends that are integers, and a number in each row",
            found=f"{found}, numbered by a dictionary" if numbers and not source.dense else found,
        )
