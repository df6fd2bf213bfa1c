"""The pipeline: from the statements of a program to its plan. Read `stages` first.

In: resolved statements and bound inputs. Out: a `Compiled` program (`artifacts`), which can be
planned again for another decomposition (`replan`) or for other sizes (`resize`). Runs nothing.
May import: `ucle.optimiser` and what is below it.
"""
