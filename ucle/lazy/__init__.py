"""Lazy tensors: NumPy's operators and functions as EinSum programs.

nodes        a DAG of EinSums, and tensors with named axes on it
axes, elementwise, reductions, products, selection
             what NumPy's operations are as nodes
meaning, types, statements
             nodes as statements of the language
compute      statements through the pipeline
tensor, functions
             what users see
"""
