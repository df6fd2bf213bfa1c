"""Lowering: from resolved statements to the logical program, and from that to vertices.

In: statements with sizes of labels and types of inputs (`syntax_to_logical.Source`). Out: the
logical program (`logical`), which statements merge into others (`merge`), in which orders factors
may be joined (`contraction_orders`), and the vertices of the EinSum DAG (`contract`, `share`).
May import: `ucle.stats`, `ucle.language`, `ucle.ir`.
"""
