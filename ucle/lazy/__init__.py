"""Lazy tensors: NumPy's operators and functions as EinSum programs.

nodes        a DAG of EinSums, and tensors with named axes on it
axes, elementwise, reductions, products, selection, matrices
             what NumPy's operations are as nodes
meaning, types, statements
             nodes as statements of the language
compute      statements through the pipeline
tensor, functions, gradients, loops
             what users see

In: arrays, tables and files, as a user of NumPy hands them over. Out: `ucle.Tensor`, and results
once they are asked for. May import: `ucle.program` and what is below it.
"""
