"""The EinSum DAG: labels, layouts, tensors and the vertices that make them.

In: nothing; the packages above construct these values. Out: frozen structures that reject
ill-formed values, and the facts that follow from them alone: types of vertices, ranges of entries,
the effect of a fill on a join. Knows nothing of text, prices, SQL or data. May import:
`ucle.operators`, `ucle.foundation`.
"""
