"""The optimiser: SparseEinSum and the order of products, by what they cost.

In: a program with statistics, where its inputs lie, a cost profile and resources. Out: a
`DecomposedProgram`: the promoted labels of each vertex, the cheapest or those that are given.
Imports neither sqlglot nor duckdb. May import: `ucle.lowering`, `ucle.inputs`, `ucle.stats`,
`ucle.plan`.
"""
