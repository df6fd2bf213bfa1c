"""The cost model and the memory model: what work of given sizes takes in time and in bytes.

In: numbers of rows, groups and bytes. Out: nanoseconds under a `Profile` (`prices`) and bytes that
are held at a time (`memory`). Arithmetic only: nothing here knows of tensors, plans or statements.
May import: `ucle.foundation`.
"""

from ucle.cost.prices import ENGINE, PAPER, Profile

__all__ = ["ENGINE", "PAPER", "Profile"]
