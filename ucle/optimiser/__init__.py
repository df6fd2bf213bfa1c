"""The optimiser: SparseEinSum and the order of products, by cost.

In: a program with statistics, the places of its inputs, a cost profile and resources. Out: a
`DecomposedProgram`: a decomposition of each vertex, either the cheapest or the one that is given.
Imports neither sqlglot nor duckdb. May import: `ucle.lowering`, `ucle.inputs`, `ucle.stats`,
`ucle.plan`.
"""
