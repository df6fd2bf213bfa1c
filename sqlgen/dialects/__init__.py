"""The dialects of SQL that are written: one module each, tables and no branches.

In: the rows of `ucle.operators` and the element types. Out: `DUCKDB_SQL` and the others of
`DIALECTS`, the texts that `ucle.sqlgen.scalar_operators` parses and puts arguments into. Opens no
connection. May import: `ucle.plan`, `ucle.udf_kernels`, `ucle.ir`.
"""

from collections.abc import Mapping

from ucle.sqlgen.dialects.duckdb import DUCKDB_SQL
from ucle.sqlgen.dialects.postgres import POSTGRES_SQL
from ucle.sqlgen.dialects.spark import SPARK_SQL
from ucle.sqlgen.dialects.tables import Dialect

DIALECTS: Mapping[str, Dialect] = {
    dialect.name: dialect for dialect in (DUCKDB_SQL, SPARK_SQL, POSTGRES_SQL)
}
"""The dialects of `ucle.program.EinsumProgram.to_sql`, by their names."""

__all__ = ["DIALECTS", "DUCKDB_SQL", "POSTGRES_SQL", "SPARK_SQL", "Dialect"]
