"""Plans to SQL, by sqlglot trees only; the one package that imports sqlglot."""

from ucle.sqlgen.capabilities import ARROW, NATIVE, PLAIN, Capabilities
from ucle.sqlgen.plan_to_sql import SqlStep, emit, nan_query
from ucle.sqlgen.script import render_script

__all__ = [
    "ARROW",
    "NATIVE",
    "PLAIN",
    "Capabilities",
    "SqlStep",
    "emit",
    "nan_query",
    "render_script",
]
