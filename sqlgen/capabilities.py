"""Capabilities of the engine behind a connection, as far as the text of the SQL depends on them."""

from __future__ import annotations

from ucle.foundation.dataclasses import dataclass
from ucle.sqlgen.dialects import DUCKDB_SQL, Dialect


@dataclass(frozen=True)
class Capabilities:
    """The way kernels are called on a route.

    `kernels` is True if there are any. `native_aggregates` is True if kernels aggregate themselves,
    under a name that ends in the capacity of their state; otherwise a group is gathered with one
    ``list`` and a scalar function works on it. `registered` is True if kernels are functions of one
    connection, which exist while they are needed and under names that nobody else has. `prefix`
    stands before every kernel's name, and `dialect` has the texts of operators. `name` is for
    people: nothing is decided by it.
    """

    name: str
    kernels: bool = True
    native_aggregates: bool = False
    registered: bool = False
    prefix: str = ""
    dialect: Dialect = DUCKDB_SQL

    @property
    def relational(self) -> Capabilities:
        """The capabilities for programs that call no kernel."""
        return PLAIN if self.kernels else self


NATIVE = Capabilities("native", native_aggregates=True)
"""Kernels loaded into DuckDB as an extension."""
ARROW = Capabilities("arrow", registered=True)
"""Kernels called as Arrow UDFs, for a connection that allows no extension."""
PLAIN = Capabilities("plain", kernels=False)
"""No kernels: everything is promoted and the SQL is plain."""
