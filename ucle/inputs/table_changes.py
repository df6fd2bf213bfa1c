"""Changes of tables since a program was compiled on them: versions, and numbers of entries.

Statistics, bounds and checks belong to a version of the data (`ucle.database.data_versions`). A
source whose version is unknown, such as a view, has to be treated as changed. A program's results
are right whatever the statistics say, but its plan may no longer be the cheapest. The numbers of
entries that show it are by-products of checks that changed data has to pass anyway.
"""

from __future__ import annotations

from collections.abc import Mapping

from ucle.database.change_detection import Quiet
from ucle.database.data_versions import Version, look, observing
from ucle.database.session import Session
from ucle.foundation.dataclasses import dataclass
from ucle.inputs.states import BoundInput
from ucle.plan.sources import TableSource


@dataclass(frozen=True)
class Versions:
    """The states of all tables and files that hold inputs."""

    states: tuple[Version, ...]
    known: bool
    """True if equal states guarantee equal data."""


def tables_of(inputs: Mapping[str, BoundInput]) -> tuple[TableSource, ...]:
    """The tables and files that hold inputs, in a database or in the file system."""
    sources = [source for bound in inputs.values() for source in bound.sources]
    return tuple(x for x in sources if isinstance(x, TableSource) and x.from_database)


def table_versions(
    session: Session, inputs: Mapping[str, BoundInput], quiet: Quiet | None = None
) -> Versions:
    """The states of all tables and files that hold inputs, as `session` sees them.

    Args:
        session: on their database.
        inputs: by name.
        quiet: the current execution; tables are not examined again until a statement has run.
    """
    with observing(session, {} if quiet is None else quiet.seen):
        seen = look(session, tables_of(inputs))
    return Versions(tuple(x.state for x in seen), all(x.known for x in seen))


FACTOR = 10.0
"""The ratio of entries from which statistics are stale; `explain` points out such misses."""

LEAST_ENTRIES = 10_000
"""The number of entries below which no plan takes long enough for another to be worthwhile."""


@dataclass(frozen=True)
class Drift:
    """An input whose number of entries has grown or shrunk by a large factor.

    >>> print(Drift("A", "edges", 1000, 250000))
    A (edges) held 1,000 entries when the program was compiled and holds 250,000 now
    """

    tensor: str
    source: str
    """Its table or file, as named in messages."""
    compiled: float
    """The number of entries at compilation."""
    found: float
    """The current number of entries."""

    def __str__(self) -> str:
        return (
            f"{self.tensor} ({self.source}) held {self.compiled:,.0f} entries when the program was "
            f"compiled and holds {self.found:,.0f} now"
        )


def is_stale(compiled: float, current: float) -> bool:
    """True if statistics for one number of entries no longer apply to another number.

    >>> is_stale(1000, 250000), is_stale(1000, 9000), is_stale(5, 500)
    (True, False, False)
    """
    fewer, more = sorted((compiled, current))
    return more >= LEAST_ENTRIES and more > FACTOR * max(fewer, 1.0)


def drifts(
    compiled: Mapping[str, float], current: Mapping[str, float], sources: Mapping[str, str]
) -> tuple[Drift, ...]:
    """The inputs whose statistics are stale.

    Args:
        compiled: numbers of entries at compilation, by input.
        current: current numbers of entries, for the inputs that were examined.
        sources: the names of the inputs' tables or files for messages.
    """
    return tuple(
        Drift(name, sources[name], compiled[name], entries)
        for name, entries in current.items()
        if is_stale(compiled[name], entries)
    )
