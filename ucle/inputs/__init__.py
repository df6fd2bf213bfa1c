"""Inputs: what a caller hands over, bound to columns, types, sizes and statistics.

In: arrays, tables, files and what `ucle.table` says of them. Out: what is known of each, in the
stages of `states`; dictionaries of coordinates, and whether the data is still what it was.
Reads data, and changes none. May import: `ucle.database`, `ucle.stats`, `ucle.language`,
`ucle.plan`.
"""
