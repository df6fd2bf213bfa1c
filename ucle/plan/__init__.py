"""Relational plans: the relations that a decomposed program computes, before there is SQL.

In: a program with a decomposition of each vertex (`decomposition`), and the places of its inputs
(`sources`). Out: a `Plan` of steps (`steps`), made by `plan_program`, rewritten by `passes` into
the plan that runs, and checked by `check`; and the models of what work of given sizes takes in time
(`prices`) and in bytes (`memory_model`). Knows tensors, labels and layouts, and nothing of SQL.
May import: `ucle.language`, `ucle.udf_kernels`, `ucle.ir`.
"""
