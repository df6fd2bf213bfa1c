"""Rewrites of a logical program that were taken: replayed in other sizes, and described.

`ucle.optimiser.rewrite_passes` proposes them; each proposal leaves one of these records, which is
all that is needed to make the same program again and to explain it. A form that was declined leaves
a record for explanations alone.
"""

from __future__ import annotations

from typing import Protocol

from ucle.foundation.dataclasses import dataclass
from ucle.lowering.logical import LogicalProgram


@dataclass(frozen=True)
class RewriteCosts:
    """Predicted costs of a rewritten program, of the written one, and of other candidates.

    `written` is infinite where the written program cannot be run.
    """

    chosen: float
    written: float
    others: tuple[float, ...] = ()


@dataclass(frozen=True)
class DeclinedForm:
    """A form of sums that may lose digits, and costs too much with what measures how many.

    `lines` are the laws and the new statements, `cost` is that with the condition numbers, and
    `most` the largest with which it would have been taken.
    """

    lines: tuple[str, ...]
    cost: float
    most: float


class AppliedRewrite(Protocol):
    """A rewrite that was taken."""

    @property
    def key(self) -> str:
        """Its name in explanations."""
        ...

    @property
    def lines(self) -> tuple[str, ...]:
        """One line for each change."""
        ...

    @property
    def costs(self) -> RewriteCosts | None:
        """The costs by which it was taken; None if it never costs anything."""
        ...

    def replay(self, logical: LogicalProgram) -> LogicalProgram | None:
        """Rewrite a program that differs from the first one in sizes only.

        Returns:
            The rewritten program, or the same one where there is nothing to rewrite; None if a
            rewrite that was taken is no longer allowed, so that it is another program.
        """
        ...
