"""Gradients: the backward pass of a program, by reverse-mode differentiation.

adjoints        what an operator passes back to its operands
masked          adjoints that are 0 where a condition does not hold, whatever they meet there
real_squares    squares of absolute values, as what they are of real numbers
reads           what a read passes back to the tensor, at whatever place it was read
differentiate   statements to statements: a program with its backward pass
stored_entries  masks for the gradients of sparse inputs
build_gradient  a compiled program to one that computes gradients, too
build_training  a compiled program to one step of an optimiser

In: statements, or a compiled program. Out: statements, or a build. The derivatives themselves stand
with the operators (`ucle.operators`). May import: `ucle.compile` and what is below it.
"""
