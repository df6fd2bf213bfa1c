"""Whether the tables that a program was compiled on are still what they were.

Statistics, bounds and checks belong to a version of the data (`ucle.database.data_versions`). A
source whose version is not known, such as a view, has to be taken for changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ucle.database.change_detection import Quiet
from ucle.database.data_versions import Version, look
from ucle.database.session import Session
from ucle.inputs.states import BoundInput
from ucle.plan.sources import TableName, TableSource


@dataclass(frozen=True)
class Versions:
    """What is seen of all tables and files that hold inputs."""

    states: tuple[Version, ...]
    known: bool
    """Whether equal ones are of equal data."""


def tables_of(inputs: Mapping[str, BoundInput]) -> tuple[TableSource, ...]:
    """The tables and files that hold inputs, of a database or of the file system."""
    sources = [source for bound in inputs.values() for source in bound.sources]
    return tuple(x for x in sources if isinstance(x, TableSource) and x.from_database)


def table_versions(
    session: Session, inputs: Mapping[str, BoundInput], quiet: Quiet | None = None
) -> Versions:
    """What is seen of all tables and files that hold inputs, as `session` sees them.

    Args:
        session: on their database.
        inputs: by name.
        quiet: the execution that they are looked at for; nobody looks again at tables while nothing
            has run.
    """
    tables = tables_of(inputs)
    if quiet is not None and tables in quiet.known:
        known: Versions = quiet.known[tables]
        return known
    seen = look(session, tables)
    versions = Versions(tuple(x.state for x in seen), all(x.known for x in seen))
    inside = all(isinstance(x.origin, TableName) for x in tables)
    if quiet is not None and versions.known and inside:  # files change without the database
        quiet.known[tables] = versions
    return versions
