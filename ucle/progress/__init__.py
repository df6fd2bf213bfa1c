"""The progress of executions: how far one is, and a bar that shows it.

In: what DuckDB knows of a running statement. Out: a `Progress` for each look at it (`execution`),
shown on stderr where somebody may be looking (`bar`, which alone imports click).
May import: `ucle.errors`.
"""

from ucle.progress.execution import Progress, Watch

__all__ = ["Progress", "Watch"]
