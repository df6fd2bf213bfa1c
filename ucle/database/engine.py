"""Engines: the systems that run programs, each with its dialect, its limits and its sessions.

Code that needs a database requests a session from an engine. The session (`ucle.database.session`)
runs, reads and registers everything. No other package calls a connection, and no code tests the
name of an engine or route: `Capabilities` state how kernels are called, and limits constrain plans.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ucle.database.open_sessions import open_catalogue, open_scratch, open_session
from ucle.database.session import Database, Session, register
from ucle.foundation.dataclasses import dataclass
from ucle.plan.prices import ENGINE, Profile
from ucle.plan.resources import DUCKDB_LIMITS, EngineLimits
from ucle.sqlgen.dialects import DUCKDB_SQL, Dialect


@dataclass(frozen=True)
class Engine:
    """A database system that programs run on.

    `dialect` has the texts of operators and the names of types, `limits` the maximal sizes, and
    `profile` the costs of its steps. `open` returns a session on a database, with the kernels on
    the route that it supports; `scratch` one on a database in memory, for one evaluation;
    `catalogue` one without kernels, for queries about the contents of a file. `register` makes a
    table in memory visible to a connection of the user.

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
