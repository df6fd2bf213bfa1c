"""The states of inputs: tables of their keys and values as of the last refresh."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from ucle.database.session import Session
from ucle.errors import InputError, MaintenanceError
from ucle.maintenance.document import Parts, WatchedInput
from ucle.plan.sources import TableSource
from ucle.sqlgen.cached_texts import Rows
from ucle.sqlgen.maintained_tables import (
    digest_of_rows,
    digests_of_queries,
    side_by_side,
    state_columns,
    state_rows,
)
from ucle.sqlgen.write_statements import all_rows, describe

Digest = tuple[int | None, ...]
"""The number of some rows, and a digest of them."""

NO_ROWS: Digest = (0, None, None)
"""That of no rows."""


def read_digest(session: Session, query: Rows, source: TableSource) -> Digest:
    """Return the digest of a query with the columns of the state of a source."""
    ((count, *digest),) = session.read(digest_of_rows(query, state_columns(source)))
    return (int(count), *(None if x is None else int(x) for x in digest))


def read_digests(
    session: Session, queries: Sequence[tuple[Rows, bool]], source: TableSource
) -> list[Digest]:
    """Return the digests of queries with the columns of a state, which one look finds.

    Each is given with whether the third number, which equal rows take, may be left out.
    """
    rows = session.read(digests_of_queries(queries, state_columns(source))) if queries else []
    return [tuple(None if x is None else int(x) for x in row) for row in rows]


def combine_digests(before: Digest, come: Digest, went: Digest) -> Digest:
    """Return the digest of rows without some of them, and with others."""
    counts, digests, totals = zip(*((x or 0 for x in y) for y in (before, come, went)), strict=True)
    count = counts[0] + counts[1] - counts[2]
    if not count:
        return NO_ROWS
    return (count, digests[0] ^ digests[1] ^ digests[2], totals[0] + totals[1] - totals[2])


def check_state(session: Session, watched: WatchedInput, source: TableSource) -> None:
    """Check that nobody else has changed the state of an input.

    Raises:
        MaintenanceError: it has other rows than the last refresh left.
    """
    check_state_and_read(session, watched, source, ())


def check_state_and_read(
    session: Session, watched: WatchedInput, source: TableSource, others: Sequence[Rows]
) -> list[Digest]:
    """Check that nobody else has changed the state of an input; return digests of other rows.

    One look finds all of them.

    Raises:
        MaintenanceError: it has other rows than the last refresh left.
    """
    assert watched.state is not None
    short = not source.sum_duplicates  # two equal rows cancel each other in a short digest
    state = all_rows(watched.state, state_columns(source)), short
    try:
        found, *digests = read_digests(session, [state, *((x, False) for x in others)], source)
    except InputError:  # it is gone, or has other columns
        found, digests = (), []
    places = 2 if short else 3
    if not found or found[:places] != watched.digest[:places]:
        raise MaintenanceError(
            "a kept table was changed by others",
            where=f"refresh, input {watched.name}",
            expected="the rows of the last refresh",
            found=f"others in {'.'.join(watched.state)}",
            hint="call drop(), and maintain the program again",
        )
    return digests


def has_types_of_input(session: Session, state: Parts, source: TableSource) -> bool:
    """True if the columns of a state have the types that those of the input have now."""
    sides = [state_rows(source), all_rows(state, state_columns(source))]
    found = session.look_once("types of columns", sides, partial(_types_of, session))
    now, before = (found[x] for x in sides)
    return now == before


def _types_of(session: Session, queries: Sequence[Rows]) -> dict[Rows, tuple[str, ...]]:
    """The types of the columns of queries with equally many columns, which one look finds."""
    rows = session.read(describe(side_by_side(queries)))
    types, count = [str(kind) for _, kind, *_ in rows], len(rows) // len(queries)
    return {x: tuple(types[n * count : (n + 1) * count]) for n, x in enumerate(queries)}
