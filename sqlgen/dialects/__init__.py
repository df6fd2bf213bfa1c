"""The dialects of SQL that are written: one module each, tables and no branches.

In: the rows of `ucle.ir.operators` and the element types. Out: `DUCKDB_SQL`, the texts that
`ucle.sqlgen.scalar_operators` parses and puts arguments into. Opens no connection. May import:
`ucle.plan`, `ucle.udf_kernels`, `ucle.ir`.
"""

from ucle.sqlgen.dialects.duckdb import DUCKDB_SQL
from ucle.sqlgen.dialects.tables import Dialect

__all__ = ["DUCKDB_SQL", "Dialect"]
