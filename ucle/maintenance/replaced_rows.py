"""Replace the rows of a kept tensor whose entries differ, and learn what there is to know of them.

One join finds these rows. Their number, the digest of the table after they are replaced, and the
range of the differences follow from them alone: the table is not looked through again.
"""

from __future__ import annotations

from collections.abc import Sequence

from ucle.database.session import Session
from ucle.database.table_names import note_temporary
from ucle.foundation.dataclasses import dataclass
from ucle.maintenance.changed_keys import ChangedKeys
from ucle.maintenance.document import KeptTensor, Parts
from ucle.maintenance.states import Digest, combine_digests
from ucle.sqlgen.cached_texts import Rows
from ucle.sqlgen.replaced_rows import (
    create_differing,
    delete_differing,
    describe_differing,
    insert_differing,
    insert_grown,
    insert_present,
)

Masks = Sequence[tuple[Rows, Sequence[str]]]
"""Queries for the keys at which entries may differ, with the columns of a kept tensor."""


@dataclass(frozen=True)
class NewRows:
    """The entries of a tensor that may differ, or by how much they grow."""

    query: Rows
    """With the columns of the kept tensor."""
    masks: Masks = ()
    """Where they are; none if they are all, and for what entries grow by."""
    grows: tuple[str, ...] | None = None
    """The columns of the axes with the most coordinates, if the values are added to those that are
    there."""


@dataclass(frozen=True)
class Replaced:
    """The entries of a tensor that differ, in a temporary table with a column for each key."""

    table: Parts
    count: int
    facts: ChangedKeys | None
    """None if they were not wanted."""
    added: bool
    """True if none of them was there before."""
    digest: Digest
    """That of the tensor after they were replaced."""


def replace_rows(
    session: Session,
    kept: KeptTensor,
    digest: Digest,
    new: NewRows,
    table: Parts,
    weight: int | float | None,
    *,
    described: bool = True,
) -> Replaced:
    """Replace the rows of a kept tensor that has axes.

    Args:
        session: in a transaction.
        kept: the tensor.
        digest: that of its table.
        new: its new rows.
        table: the name of the temporary table of entries that differ.
        weight: a number of the type of differences; None where these are not wanted.
        described: False if no facts about these entries are wanted.
    """
    where, keys = f"refresh, {kept.tensor}", kept.keys
    session.run(create_differing(table, kept.table, keys, weight), where)
    if new.grows is not None:
        found = insert_grown(table, kept.table, keys, new.query, new.grows, weight)
    else:
        found = insert_differing(table, kept.table, keys, new.query, new.masks, weight)
    session.run(found, where)
    positions = [n for n in range(len(keys)) if n not in kept.encoded]
    named, differs_by = [keys[n] for n in positions], weight is not None
    facts = describe_differing(table, keys, named, weight, described=described)
    (row,) = session.fetch(facts)
    count, before, now = (int(x) for x in row[:3])
    come, went = (now, *row[3:5]), (before, *row[5:7])
    if before:
        session.run(delete_differing(kept.table, table, keys), where)
    if now:
        session.run(insert_present(kept.table, table, keys), where)
    note_temporary(session, table)
    return Replaced(
        table,
        count,
        ChangedKeys.read(count, row[7:], len(keys), positions, differs_by) if described else None,
        added=not before,
        digest=combine_digests(digest, come, went),
    )
