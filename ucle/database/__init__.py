"""Databases: sessions, name resolution of tables, versions of data, and tables that ucle stores.

In: a path or a connection, and SQL from `ucle.sqlgen`. Out: rows, a `Session` with the kernels
loaded, and statistics of tables, measured once for each version of their data. Knows tables but not
programs. May import: `ucle.stats`, `ucle.sqlgen`, `ucle.udf_kernels`, `ucle.plan`.
"""
