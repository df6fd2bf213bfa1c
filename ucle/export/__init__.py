"""Export: programs as models of ONNX, for other runtimes.

to_onnx        the whole: inputs, weights, statements, and the model that is checked
weights        the numbers of inputs, dense
open_axes      which axes stay open, and sizes as numbers or nodes
statements     statements and expressions as nodes
reads          reads at computed positions, and conditions on labels
products       sums of products as `MatMul` and `Einsum`
formulas       operators of programs as nodes of ONNX
entries, graph values with labels, and the nodes and constants that are written

In: a compiled program. Out: an `onnx.ModelProto`. May import: `ucle.run` and what is below it; the
package `onnx` is imported when it is needed.
"""
