"""Whether the tables that a program was compiled on are still what they were.

Statistics, bounds and checks belong to a version of the data (`ucle.source_versions`). Of a source
whose version is not known, what can be seen of it has to do.
"""

from __future__ import annotations

from collections.abc import Mapping

from ucle.binding import BoundInput, table_columns
from ucle.columns import check_columns
from ucle.dictionaries import Dictionaries, check_sizes
from ucle.errors import CoordinateError, ValueTypeError
from ucle.facts import check_facts
from ucle.session import Session
from ucle.source_versions import Version, look
from ucle.sources import InMemory, TableSource

Versions = tuple[Version, ...]


def table_versions(session: Session, inputs: Mapping[str, BoundInput]) -> Versions:
    """What is seen of all tables and files that hold inputs, as `session` sees them."""
    sources = [source for bound in inputs.values() for source in bound.sources]
    tables = [x for x in sources if isinstance(x, TableSource) and x.from_database]
    return tuple(seen.state for seen in look(session, tables))


def verify_inputs(
    session: Session, inputs: Mapping[str, BoundInput], dictionaries: Dictionaries
) -> None:
    """Check data that the program was not compiled on against what was compiled.

    Raises:
        CoordinateError: a coordinate lies outside the bound that the program was compiled for.
        InputError: a table or a column is gone.
        ValueTypeError: a column has another type, or values are not finite where the program
            relies on it.
        UcleError: whatever `ucle.stats.measure` finds wrong.
    """
    check_sizes(session, dictionaries)
    for name, bound in inputs.items():
        source = bound.source
        if not isinstance(source, TableSource) or isinstance(source.origin, InMemory):
            continue
        check_columns(name, source, table_columns(session, name, source))
        measured = check_facts(session, name, source, bound.fill)
        for axis, size in enumerate(measured.sizes):
            if size > bound.shape[axis]:
                column = source.keys[axis] if axis < len(source.keys) else source.value
                raise CoordinateError(
                    "a coordinate is outside the bound that the program was compiled for",
                    where=f"input {name}, {source.origin}, column {column}",
                    expected=f"coordinates below {bound.shape[axis]}",
                    found=f"coordinate {size - 1}",
                    hint="compile the program again on this data",
                )
        if bound.finite and not measured.finite:
            raise ValueTypeError(
                "a value is not finite, and all were when the program was compiled",
                where=f"input {name}, {source.origin}, column {source.value}",
                expected="finite numbers",
                found="NaN or infinity",
                hint="compile the program again on this data",
            )
