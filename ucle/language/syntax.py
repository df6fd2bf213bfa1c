"""The syntax tree of a program: statements and expressions, with their places in the text.

`ucle.language.parse` builds it, `ucle.language.resolve` makes its meaning explicit and
`ucle.lowering.syntax_to_logical` lowers it. Operators are rows of `ucle.ir.operators`, no names;
names of tensors are not resolved and ranks not checked here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar, TypeVar

from ucle.foundation import stackless
from ucle.foundation.dtypes import DType, Scalar
from ucle.ir.operators import Combine, PointwiseMap, Reduce
from ucle.ir.vertices import Span

T = TypeVar("T")


@dataclass(frozen=True)
class Number:
    """A literal."""

    value: Scalar
    span: Span
    constant: ClassVar[bool] = True

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
    constant: ClassVar[bool] = False


@dataclass(frozen=True)
class Call:
    """A function of expressions, entry by entry: ``relu(...)``, ``where(...)``; ``-x`` is ``neg``.

    Functions of two arguments that are a ⊗ are parsed as `Binary`. A name stands for a function
    that is written with others, which there is none of in a resolved expression.
    """

    function: str | PointwiseMap | DType
    arguments: tuple[Expression, ...]
    span: Span

    def __post_init__(self) -> None:
        _know_facts(self)

    @property
    def name(self) -> str:
        """What programs call the function."""
        match self.function:
            case PointwiseMap(name):
                return name
            case DType(value=name):
                return name
        return self.function

    @cached_property
    def constant(self) -> bool:
        """Whether there is no tensor in the arguments."""
        return all(argument.constant for argument in self.arguments)

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """Distinct labels of the arguments, in order of first use."""
        return tuple(dict.fromkeys(x for argument in self.arguments for x in argument.labels))


@dataclass(frozen=True)
class Binary:
    """⊗ of two expressions."""

    operator: Combine
    left: Expression
    right: Expression
    span: Span

    def __post_init__(self) -> None:
        _know_facts(self)

    @cached_property
    def constant(self) -> bool:
        """Whether there is no tensor on either side."""
        return self.left.constant and self.right.constant

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """Distinct labels of both sides, in order of first use."""
        return tuple(dict.fromkeys((*self.left.labels, *self.right.labels)))


@dataclass(frozen=True)
class Reduction:
    """⊕ of an expression over labels: ``sum[j](...)``. The labels are its own."""

    operator: Reduce
    over: tuple[str, ...]
    argument: Expression
    span: Span

    def __post_init__(self) -> None:
        _know_facts(self)

    @cached_property
    def constant(self) -> bool:
        """Whether there is no tensor in the argument."""
        return self.argument.constant

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """The labels of the argument that are left."""
        return tuple(x for x in self.argument.labels if x not in self.over)


@dataclass(frozen=True)
class Size:
    """How many entries labels have together: a number that is known when their bounds are."""

    over: tuple[str, ...]
    span: Span
    constant: ClassVar[bool] = True

    @property
    def labels(self) -> tuple[str, ...]:
        """A number has no labels."""
        return ()


def _know_facts(expression: Call | Binary | Reduction) -> None:
    """Work out now what follows from the parts: later it would take a call for every level."""
    expression.labels, expression.constant  # noqa: B018


Expression = Number | Access | Call | Binary | Reduction | Size


@dataclass(frozen=True)
class Statement:
    """``target[labels] = expression``, or ``+=`` with `accumulate`, the aggregation.

    `renamed` gives for labels that were renamed to be unique what they were called in the text, and
    `aggregation`, once the statement is resolved, the ⊕ of its whole right side as it was written.
    """

    target: Access
    accumulate: Reduce | None
    expression: Expression
    span: Span
    renamed: Mapping[str, str] = field(default_factory=dict)
    aggregation: Reduce | None = None


def children(expression: Expression) -> tuple[Expression, ...]:
    """The direct subexpressions, left to right."""
    match expression:
        case Number() | Access() | Size():
            return ()
        case Call(_, arguments):
            return arguments
        case Binary(_, left, right):
            return (left, right)
        case Reduction(_, _, argument):
            return (argument,)


def with_children(expression: Expression, parts: Iterable[Expression]) -> Expression:
    """The expression with other direct subexpressions, left to right."""
    match expression:
        case Call(function, _, span):
            return Call(function, tuple(parts), span)
        case Binary(operator, _, _, span):
            left, right = parts
            return Binary(operator, left, right, span)
        case Reduction(operator, over, _, span):
            (argument,) = parts
            return Reduction(operator, over, argument, span)
        case _:
            return expression


def walk(expression: Expression) -> Iterator[Expression]:
    """An expression and all below it, each before what it is made of, left to right."""
    return stackless.walk(expression, children)


def fold(expression: Expression, make: Callable[[Expression, list[T]], T]) -> T:
    """What an expression comes to, from its leaves up, however deep it is.

    Args:
        expression: the expression.
        make: what a part of it comes to, given what its direct subexpressions have come to.
    """
    return stackless.fold(expression, children, make)


def accesses(expression: Expression) -> tuple[Access, ...]:
    """Every tensor access in an expression, left to right."""
    return tuple(part for part in walk(expression) if isinstance(part, Access))
