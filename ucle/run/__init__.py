"""Execution: runs scripts on a session, returns results, and writes files, tables and views.

In: a compiled program (`ucle.pipeline.artifacts`) and a session. Out: a `Result` of tensor
relations, which are read, written or saved; views that compute the program; inputs stored in other
layouts. May import: `ucle.pipeline`, `ucle.sqlgen`, `ucle.inputs`, `ucle.database`.
"""
