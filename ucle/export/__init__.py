"""Export: programs as models of ONNX, for other runtimes.

to_onnx        builds and checks the model from inputs, weights and statements
weights        the values of inputs as dense arrays
open_axes      which axes stay open, and sizes as numbers or nodes
statements     statements and expressions as nodes
reads          reads at computed positions, and conditions on labels
products       sums of products as `MatMul` and `Einsum`
formulas       operators of programs as nodes of ONNX
entries, graph values with labels, and the nodes and constants that are written

In: a compiled program. Out: an `onnx.ModelProto`. May import: `ucle.run` and what is below it; the
package `onnx` is imported when it is needed.
"""
