"""The language: from the text of a program to statements whose meaning is explicit.

In: EinSum text, or NumPy's subscripts. Out: the syntax tree (`syntax`), with explicit sums and
expanded functions (`resolve`), the size of every label (`bounds`) and the types of expressions
(`promotion`). Reads no data. May import: `ucle.ir` and the packages below it.
"""
