"""The language: from the text of a program to statements whose meaning is explicit.

In: EinSum text, or NumPy's subscripts. Out: the syntax tree (`syntax`), with what is summed where
and what functions stand for (`resolve`), the size of every label (`bounds`) and the types of
expressions (`promotion`). Looks at no data. May import: `ucle.ir` and what is below it.
"""
