"""Relational plans: what a decomposed program does, relation by relation, before it is SQL.

In: a program with a decomposition of each vertex (`decomposition`), and where its inputs lie
(`sources`). Out: a `Plan` of steps (`steps`), made by `plan_program`, rewritten into what runs by
`passes`, and checked by `check`.
Knows tensors, labels and layouts, and nothing of SQL. May import: `ucle.language`,
`ucle.udf_kernels`, `ucle.ir`.
"""
