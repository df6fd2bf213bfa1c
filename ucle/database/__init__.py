"""Databases: sessions, what names of tables mean, versions of data, and what ucle keeps there.

In: a path or a connection, and SQL from `ucle.sqlgen`. Out: rows, a `Session` on which kernels are
loaded, and facts of tables that are measured once for each version of their data.
Knows tables and no programs. May import: `ucle.stats`, `ucle.sqlgen`, `ucle.udf_kernels`,
`ucle.plan`.
"""
