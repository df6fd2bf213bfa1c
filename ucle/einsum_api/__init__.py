"""NumPy's door: `ucle.einsum`, which stands in for `numpy.einsum`.

In: subscripts and operands as NumPy takes them, with `dtype`, `casting`, `optimize` and `out`.
Out: an array, or a lazy tensor where an operand is one, by NumPy's rules for types and errors.
May import: `ucle.lazy`, `ucle.program` and what is below them.
"""
