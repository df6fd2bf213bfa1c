"""The dialects of SQL that are written: one module each, tables and no branches.

In: the rows of `ucle.ir.operators` and the element types. Out: `DUCKDB`, the texts that
`ucle.sqlgen.scalar_operators` parses and puts arguments into. Opens no connection. May import:
`ucle.plan`, `ucle.udf_kernels`, `ucle.ir`.
"""

from ucle.sqlgen.dialects.dialect import Dialect
from ucle.sqlgen.dialects.duckdb import DUCKDB

__all__ = ["DUCKDB", "Dialect"]
