"""Lazy tensors: NumPy's operators and functions as EinSum programs.

nodes        a DAG of EinSums, and tensors with named axes on it
axes, elementwise, reductions, products, selection, matrices
             NumPy's operations as nodes
meaning, types, statements
             nodes as statements of the language
compute      statements through the pipeline
tensor, functions, gradients, loops, random
             the public interface
einsum, einsum_casting, einsum_path, kept_programs
             `ucle.einsum`, which takes the place of `numpy.einsum`

In: arrays, tables and files, as a user of NumPy passes them. Out: `ucle.Tensor`, and results on
request. May import: `ucle.program` and the packages below it.
"""
