"""The syntax tree of a program: statements and expressions, with their places in the text.

`ucle.parse` builds it, `ucle.normalise` consumes it. Names are not resolved and ranks not checked
here.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from ucle.ir import Span


@dataclass(frozen=True)
class Number:
    """A literal."""

    value: float
    span: Span

    @property
    def labels(self) -> tuple[str, ...]:
        """A literal has no labels."""
        return ()


@dataclass(frozen=True)
class Access:
    """A tensor with its labels: ``A[i,j]``, ``s`` or ``s[]``."""

    tensor: str
    labels: tuple[str, ...]
    span: Span


@dataclass(frozen=True)
class Call:
    """A pointwise function of one expression: ``relu(...)``; ``-x`` is ``neg``."""

    function: str
    argument: Expression
    span: Span

    @property
    def labels(self) -> tuple[str, ...]:
        """Labels of the argument."""
        return self.argument.labels


@dataclass(frozen=True)
class Binary:
    """⊗ of two expressions; `operator` names a row of `operators.COMBINES`."""

    operator: str
    left: Expression
    right: Expression
    span: Span

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """Distinct labels of both sides, in order of first use."""
        return tuple(dict.fromkeys((*self.left.labels, *self.right.labels)))


Expression = Number | Access | Call | Binary


@dataclass(frozen=True)
class Statement:
    """``target[labels] = expression``, or ``+=`` with `accumulate` naming the aggregation."""

    target: Access
    accumulate: str | None
    expression: Expression
    span: Span


def accesses(expression: Expression) -> tuple[Access, ...]:
    """Every tensor access in an expression, left to right."""
    match expression:
        case Number():
            return ()
        case Access():
            return (expression,)
        case Call():
            return accesses(expression.argument)
        case Binary():
            return (*accesses(expression.left), *accesses(expression.right))
