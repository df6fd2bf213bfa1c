"""The public interface of a compiled program.

In: a text, inputs and options, which `einsum_program` (`compile_text`) has compiled. Out: an
`EinsumProgram` (`executable_program`), which writes its script, explains itself, runs, and derives
other programs. May import: `ucle.explain`, `ucle.gradients`, `ucle.maintenance`, `ucle.run`, and
packages below them; `ucle.spark` for its users alone. Operators of a user are registered here, too
(`registry`).
"""

from ucle.program.compile_text import einsum_program
from ucle.program.executable_program import EinsumProgram

__all__ = ["EinsumProgram", "einsum_program"]
