"""Gradients: the backward pass of a program, by reverse-mode differentiation.

adjoints        the adjoints of an operator's operands
masked          adjoints that are 0 where a condition does not hold
real_squares    squares of absolute values, replaced by plain squares
reads           adjoints of reads, passed back to the places that were read
differentiate   statements to statements: a program with its backward pass
build_gradient  a compiled program to one that also computes gradients, with masks for sparse inputs
build_training  a compiled program to one step of an optimiser

In: statements, or a compiled program. Out: statements, or a build. The derivatives themselves are
stored with the operators (`ucle.operators`). May import: `ucle.run` and modules below it.
"""
