"""Plans to SQL, by sqlglot trees only; the one package that imports sqlglot.

In: a plan (`ucle.plan.steps`) and the capabilities of the engine behind a connection. Out: a SELECT
for each step, scripts for a person, and the text of every query that ucle sends to a database.
Opens no connection. May import: `ucle.plan`, `ucle.udf_kernels`, `ucle.ir`.
"""

from ucle.sqlgen.capabilities import ARROW, NATIVE, PLAIN, Capabilities
from ucle.sqlgen.finiteness_checks import infinite_query
from ucle.sqlgen.plan_to_sql import SqlStep, emit, stored_as
from ucle.sqlgen.script import render_script

__all__ = [
    "ARROW",
    "NATIVE",
    "PLAIN",
    "Capabilities",
    "SqlStep",
    "emit",
    "infinite_query",
    "render_script",
    "stored_as",
]
