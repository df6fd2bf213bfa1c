"""Lowering: from resolved statements to the vertices of the EinSum DAG.

In: statements with the sizes of their labels and the types of inputs (`normalise.Source`).
Out: a program of unary and binary vertices, common subexpressions shared; which statements merge
into others (`merging`), and in which orders factors may be joined (`contraction_orders`).
May import: `ucle.stats`, `ucle.language`, `ucle.ir`.
"""
