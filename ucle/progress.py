"""The progress of executions, as functions for ``progress=`` receive it."""

from ucle.foundation.progress import Progress, Watch

__all__ = ["Progress", "Watch"]
