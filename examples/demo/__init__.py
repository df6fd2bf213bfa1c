"""The programs and the data of `ucle demo`: the import graph of the reader's own Python.

In: options, and the Python files of the running installation. Out: a DuckDB file, and a report in
plain text. This is an example; it is installed as `ucle.demo`, so that the command has it wherever
ucle is, and nothing but the command uses it. May import: `ucle.program` and what is below it.
"""
