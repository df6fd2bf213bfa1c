"""Whether the tables that a program was compiled on are still what they were.

Statistics, bounds and checks belong to a version of the data (`ucle.source_versions`). A source
whose version is not known, such as a view, has to be taken for changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import duckdb

from ucle.binding import BoundInput, table_columns
from ucle.columns import ANEW, check_columns
from ucle.dictionaries import Dictionaries, check_sizes
from ucle.errors import CoordinateError, ValueTypeError
from ucle.facts import check_facts
from ucle.session import Session, execution_error
from ucle.source_versions import Version, look
from ucle.sources import InMemory, TableSource


@dataclass(frozen=True)
class Versions:
    """What is seen of all tables and files that hold inputs."""

    states: tuple[Version, ...]
    known: bool
    """Whether equal ones are of equal data."""


def table_versions(session: Session, inputs: Mapping[str, BoundInput]) -> Versions:
    """What is seen of all tables and files that hold inputs, as `session` sees them."""
    sources = [source for bound in inputs.values() for source in bound.sources]
    tables = [x for x in sources if isinstance(x, TableSource) and x.from_database]
    seen = look(session, tables)
    return Versions(tuple(x.state for x in seen), all(x.known for x in seen))


def verify_inputs(
    session: Session, inputs: Mapping[str, BoundInput], dictionaries: Dictionaries
) -> dict[str, float]:
    """Check data that the program was not compiled on against what was compiled.

    Returns:
        How many entries each table holds that is an input.

    Raises:
        CoordinateError: a coordinate lies outside the bound that the program was compiled for.
        InputError: a table or a column is gone.
        ValueTypeError: a column has another type, or values are not finite where the program
            relies on it.
        UcleError: whatever `ucle.stats.measure` finds wrong.
    """
    check_sizes(session, dictionaries)
    entries = {}
    for name, bound in inputs.items():
        source = bound.source
        if not isinstance(source, TableSource) or isinstance(source.origin, InMemory):
            continue
        check_columns(name, source, table_columns(session, name, source))
        try:
            measured = check_facts(session, name, source, bound.fill)
        except duckdb.Error as error:  # a view that fails on what its tables hold now
            raise execution_error(error, f"input {name}, {source.origin}") from error
        entries[name] = measured.entries
        for axis, size in enumerate(measured.sizes):
            if size > bound.shape[axis]:
                column = source.keys[axis] if axis < len(source.keys) else source.value
                raise CoordinateError(
                    "a coordinate is outside the bound that the program was compiled for",
                    where=f"input {name}, {source.origin}, column {column}",
                    expected=f"coordinates below {bound.shape[axis]}",
                    found=f"coordinate {size - 1}",
                    hint=ANEW,
                )
        if bound.finite and not measured.finite:
            raise ValueTypeError(
                "a value is not finite, and all were when the program was compiled",
                where=f"input {name}, {source.origin}, column {source.value}",
                expected="finite numbers",
                found="NaN or infinity",
                hint=ANEW,
            )
    return entries
