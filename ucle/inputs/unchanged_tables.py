"""Detection of changes to the tables that a program was compiled on.

Statistics, bounds and checks belong to a version of the data (`ucle.database.data_versions`). A
source whose version is unknown, such as a view, has to be treated as changed.
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
