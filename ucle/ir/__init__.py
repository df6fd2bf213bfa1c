"""The EinSum DAG: labels, layouts, tensors and the vertices that make them.

In: nothing; rooms above make these values. Out: frozen structures that refuse what is ill-formed,
and what follows from them alone: types of vertices, ranges of entries, what a fill means to a join.
Knows nothing of text, prices, SQL or data. May import: `ucle.operators`, `ucle.foundation`.
"""
