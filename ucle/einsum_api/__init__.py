"""The interface of NumPy's einsum: `ucle.einsum` takes the place of `numpy.einsum`.

In: subscripts and operands as NumPy takes them, with `dtype`, `casting`, `optimize` and `out`.
Out: an array, or a lazy tensor where an operand is one, by NumPy's rules for types and errors.
May import: `ucle.lazy`, `ucle.program` and modules below them.
"""
