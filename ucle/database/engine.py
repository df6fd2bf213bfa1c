"""Engines: what runs programs, each with what it speaks, what it takes and how it is opened.

Whoever needs a database asks an engine for a session, and the session (`ucle.database.session`) for
everything else: it runs, reads and registers. No other room calls a connection, and nothing asks
for an engine or a route by its name: `Capabilities` say how kernels are called, limits what plans
keep to.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ucle.cost.prices import ENGINE, Profile
from ucle.database.open_sessions import open_catalogue, open_scratch, open_session
from ucle.database.session import Database, Session, register
from ucle.foundation.engine_limits import DUCKDB_LIMITS, EngineLimits
from ucle.sqlgen.dialects import DUCKDB_SQL, Dialect


@dataclass(frozen=True)
class Engine:
    """A database system that programs run on.

    `dialect` has the texts of operators and the names of types, `limits` what it does at most, and
    `profile` what its steps cost. `open` gives a session on a database, with the kernels on
    whatever route it has; `scratch` one on a database in memory, for one evaluation; `catalogue`
    one without kernels, for questions about what is in a file. `register` has a connection of the
    user find a table from memory.

    >>> with DUCKDB.open(":memory:") as session:
    ...     session.fetch("SELECT 1 + 1")
    [(2,)]
    """

    dialect: Dialect
    limits: EngineLimits
    profile: Profile
    open: Callable[[Database], Session]
    scratch: Callable[[], Session]
    catalogue: Callable[[str], Session]
    register: Callable[[Any, str, Any], None]


DUCKDB = Engine(
    DUCKDB_SQL, DUCKDB_LIMITS, ENGINE, open_session, open_scratch, open_catalogue, register
)
"""DuckDB in this process."""
