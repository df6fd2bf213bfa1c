"""The dialect of DuckDB: its names of element types, and the texts that rows of operators hold.

A text stands over the arguments ``x`` and ``y``, with ``zero`` and ``one`` for those numbers in the
type at hand, and ``x.re``, ``x.im`` for the parts of a complex number.
"""

from __future__ import annotations

from ucle.foundation.dtypes import DType
from ucle.operators import COMBINES, MAPS, REDUCES
from ucle.sqlgen.dialects.tables import Dialect
from ucle.udf_kernels.element_types import ELEMENT_TYPES

DUCKDB_SQL = Dialect(
    "duckdb",
    combines={row: row.texts for row in COMBINES.values() if row.texts},
    reduces={row: row.texts for row in REDUCES.values() if row.texts},
    maps={row: row.texts for row in MAPS.values() if row.texts},
    types={dtype: ELEMENT_TYPES[dtype.tag].sql for dtype in DType},
    sqlglot="duckdb",
    growing=("sum(", "product(", "power(", "exp(x", "sinh(", "cosh(", " / "),
    own=True,
)
