"""The optimiser: SparseEinSum and the order of products, by what they cost.

In: a program with statistics, where its inputs lie, a cost profile and resources. Out: a
`DecomposedProgram`: a decomposition of each vertex, the cheapest or the one that is given.
Imports neither sqlglot nor duckdb. May import: `ucle.lowering`, `ucle.inputs`, `ucle.stats`,
`ucle.plan`.
"""
