"""Lowering: from resolved statements to the logical program, and from that to vertices.

In: statements with sizes of labels and types of inputs (`syntax_to_logical.ResolvedProgram`). Out:
the logical program (`logical`), the statements that may be inlined in others (`find_inlinable`,
`inline_statements`), the orders in which factors may be joined (`contraction_orders`), and the
vertices of the EinSum DAG (`contract`, `share_subexpressions`). May import: `ucle.stats`,
`ucle.language`, `ucle.ir`.
"""
