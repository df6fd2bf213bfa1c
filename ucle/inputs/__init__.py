"""Inputs: the data that a caller passes, bound to columns, types, sizes and statistics.

In: arrays, tables, files and the options of `ucle.table`. Out: the facts about each input, in the
stages of `states`; dictionaries of coordinates; checks that the data has not changed. Reads data
and changes none. May import: `ucle.database`, `ucle.stats`, `ucle.language`, `ucle.plan`.
"""
