"""Read tables at the affected coordinates of one axis: the rows that a refresh has to look at.

The coordinates are numbered in a temporary table, and so are the rows of each table that is read
at them (`ucle.maintenance.renumbered`). The program over these rows is as large as the change. The
axis ends at a power of two, so that the next change of about this size finds a compiled program.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ucle.database.session import Session
from ucle.database.table_names import note_temporary
from ucle.foundation.dataclasses import dataclass
from ucle.inputs.inputs import quoted_name
from ucle.inputs.table_input import TableInput
from ucle.ir.tensor_types import TensorType
from ucle.maintenance.document import Parts
from ucle.plan.sources import Nulls, TableSource
from ucle.sqlgen.affected_rows import describe_rows, number_keys, rows_at_keys
from ucle.sqlgen.cached_texts import Rows
from ucle.stats.measure import MeasuredInput

SHORTEST = 16
"""The least size of an axis of affected coordinates."""


@dataclass(frozen=True)
class AffectedRows:
    """The affected coordinates of an axis of a kept tensor, numbered in a temporary table."""

    table: Parts
    axis: int
    count: int

    @property
    def size(self) -> int:
        """The size of the axis of their numbers."""
        size = SHORTEST
        while size < self.count:
            size *= 2
        return size


def number_affected(
    session: Session, table: Parts, axis: int, masks: Sequence[tuple[Rows, str]], where: str
) -> AffectedRows:
    """Number the coordinates that masks have.

    Args:
        session: in a transaction.
        table: the name of a temporary table.
        axis: that of the coordinates.
        masks: queries for coordinates, each with its column of them.
        where: a description, for messages.
    """
    ((count,),) = session.run(number_keys(table, masks), where)
    note_temporary(session, table)
    return AffectedRows(table, axis, int(count))


def are_plain(source: TableSource, given: TableInput) -> bool:
    """True if each row of an input is an entry whose coordinates can be replaced by numbers."""
    other_rows = source.times or source.features or source.symmetric or any(source.tiles)
    arrays = source.dense or source.wide or source.ragged or source.pairs or source.kept_as
    other_axes = source.key_axes is not None or given.picks or given.unsorted or given.columns_as
    values = source.presence or source.nulls is not Nulls.REFUSED
    return not (other_rows or arrays or other_axes or values)


@dataclass(frozen=True)
class CopiedRows:
    """The rows of a tensor at affected coordinates, with their numbers, in a temporary table."""

    table: Parts
    keys: tuple[str, ...]
    value: str | None
    count: int


def copy_rows(
    session: Session,
    table: Parts,
    rows: Rows,
    keys: tuple[str, ...],
    value: str | None,
    place: int,
    at: AffectedRows,
    where: str,
) -> CopiedRows:
    """Copy the rows of a query at affected coordinates.

    Args:
        session: in a transaction.
        table: the name of a temporary table.
        rows: the query.
        keys: its columns of keys.
        value: that of the values, if there is one.
        place: the place of the key that is numbered.
        at: the coordinates.
        where: a description, for messages.
    """
    columns = keys if value is None else (*keys, value)
    ((count,),) = session.run(rows_at_keys(table, rows, columns, place, at.table), where)
    note_temporary(session, table)
    return CopiedRows(table, keys, value, int(count))


def shorter_input(
    session: Session,
    given: TableInput,
    rows: CopiedRows,
    type_: TensorType,
    place: int,
    at: AffectedRows,
    whole: MeasuredInput | None,
) -> TableInput:
    """Return the input of rows at affected coordinates.

    Args:
        session: in a transaction.
        given: the input of all rows.
        rows: the copied ones.
        type_: the type of the tensor of all rows.
        place: the axis that is numbered.
        at: the coordinates.
        whole: what is known about all rows; None if they are not measured.
    """
    sizes = tuple(at.size if n == place else x for n, x in enumerate(type_.shape))
    return replace(
        given,
        relation=quoted_name(rows.table),
        columns=rows.keys,
        value=given.value if rows.value is None else rows.value,
        values=None,
        one_hot=(),
        shape=None,
        bounds=sizes,
        fill=type_.fill,
        encode=False,
        dictionaries=(),
        encoded_keys=(),
        tiles=None,
        delimiter=None,
        header=None,
        comment=None,
        measured=None if whole is None else _facts(session, rows, sizes, place, at, whole),
    )


def _facts(
    session: Session,
    rows: CopiedRows,
    sizes: tuple[int, ...],
    place: int,
    at: AffectedRows,
    whole: MeasuredInput,
) -> MeasuredInput:
    """Return what is known about copied rows: they have no more in common than all rows have."""
    count = float(rows.count)
    extremes = whole.extremes if rows.count else None
    if whole.largest:
        most = tuple(min(x, count) for x in whole.largest)
        found = [min(v, count) for v in whole.distinct]
        found[place] = min(float(at.count), count)
    else:
        ((_, *counts),) = session.fetch(describe_rows(rows.table, rows.keys))
        found, most = [float(x) for x in counts[::2]], tuple(float(x or 0) for x in counts[1::2])
    return MeasuredInput(
        sizes, whole.finite, count, extremes, tuple(found), exact=False, largest=most
    )
