"""The operators of ONNX, each a function from a node to statements.

Each module has the operators of one kind, in a table called ``OPERATORS``; `known_operators` has
all of them.

In: `ucle.models.calls.Call`, a node with its operands. Out: the values of its outputs; the
statements that compute them are in the `ucle.models.writer.Writer`.
May import: the modules beside this folder, and what they may: `ucle.program`, `ucle.inputs`,
`ucle.foundation` and `ucle.errors`.
"""
