"""Constants, and chains of one ⊗, recognised in expressions before lowering."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any, Protocol

import numpy as np

from ucle.foundation import tree_walk
from ucle.foundation.dataclasses import dataclass
from ucle.foundation.dtypes import DType, Scalar, is_finite
from ucle.ir.contraction_trees import Tree
from ucle.ir.tensor_types import TensorType
from ucle.language.syntax import (
    Binary,
    Call,
    Expression,
    Number,
    Reduction,
    Size,
    accesses,
    fold,
    with_children,
)
from ucle.operators import (
    ADD,
    MULT,
    Combine,
    PointwiseMap,
    Reduce,
    Typing,
)


def with_sizes(expression: Expression, bound: Callable[[str], int]) -> Expression:
    """Replace the sizes of labels in an expression by numbers."""

    def insert_sizes(part: Expression, parts: list[Expression]) -> Expression:
        if isinstance(part, Size):
            return Number(math.prod(bound(label) for label in part.over), part.span)
        return with_children(part, parts)

    return fold(expression, insert_sizes)


def constant_value(expression: Expression) -> Scalar | None:
    """The value of a constant expression; None if it reads a tensor."""
    return fold(expression, constant_of_parts) if expression.constant else None


def constant_of_parts(expression: Expression, parts: Sequence[Any]) -> Scalar | None:
    """The value of an expression from the values of its parts; None if one of them has none."""
    match expression, parts:
        case Number(value), []:
            return value
        case Call(PointwiseMap() as function), [inner] if inner is not None:
            return _item(function.numpy, inner)
        case Call(DType() as dtype), [inner] if inner is not None:
            return dtype.scalar(inner)
        case Binary(operator), [one, other] if one is not None and other is not None:
            return _item(operator.numpy, one, other)
        case _:
            return None


def _item(function: Callable[..., object], *values: Scalar) -> Scalar:
    with np.errstate(all="ignore"):
        result: Scalar = np.asarray(function(*values)).item()
    return result


@dataclass(frozen=True)
class ScalarCase:
    """A binary expression with a constant on one side."""

    value: Scalar
    first: bool
    other: Expression


def scalar_case(expression: Binary) -> ScalarCase | None:
    """Split off the constant of a binary expression; None unless exactly one side is constant."""
    left, right = constant_value(expression.left), constant_value(expression.right)
    if left is not None and right is None:
        return ScalarCase(left, True, expression.right)
    if right is not None and left is None:
        return ScalarCase(right, False, expression.left)
    return None


@dataclass(frozen=True)
class ProductChain:
    """Factors combined by one ⊗ and aggregated by one ⊕ over which ⊗ distributes.

    `constants` are the factors without tensors. `over` holds the labels that are aggregated
    anywhere in the expression: each may be aggregated as soon as no other factor has it.
    """

    expression: Expression
    combine: Combine
    reduce: Reduce | None
    over: tuple[str, ...]
    factors: tuple[Expression, ...]
    constants: tuple[Scalar, ...]
    places: tuple[int, ...]
    """The number of factors that are written before each constant."""
    written: Tree | None
    """The association of the factors in the text; None if all are constants."""

    @property
    def outermost(self) -> bool:
        """True if the ⊕ encloses the whole product."""
        return isinstance(self.expression, Reduction)


def chain(expression: Expression, unreduced: set[int] | None = None) -> ProductChain | None:
    """Recognise an expression as a chain; None if it has no ⊗ that can be reordered.

    Args:
        expression: a part of a resolved statement.
        unreduced: the ids of parts that were found to contain no aggregation; more are added. This
            avoids searching the parts of a long sum repeatedly.

    >>> from ucle.language.parse import parse_program
    >>> from ucle.language.resolve import resolve
    >>> (statement,) = parse_program("T[i] = A[i,j] * B[j,k] * c[k]")
    >>> product = chain(resolve(statement).expression)
    >>> len(product.factors), product.reduce.name, product.over
    (3, 'sum', ('k', 'j'))
    """
    root = expression
    if isinstance(expression, Reduction):  # sums of sums are one sum, as they are inside a product
        while isinstance(root, Reduction) and root.operator is expression.operator:
            root = root.argument
    if not isinstance(root, Binary):
        return None
    combine = root.operator
    if not (combine.associative and combine.commutative):
        return None
    reduce = _first_reduction(expression, combine, set() if unreduced is None else unreduced)
    if isinstance(expression, Reduction) and reduce is not expression.operator:
        return None
    if reduce is None and combine is not MULT:
        return None
    over, factors = _flatten(expression, combine, reduce)
    constants = [constant_value(factor) for factor in factors]
    numbers = iter(range(len(factors)))
    places = [next(numbers) if constant is None else None for constant in constants]
    before = accumulate((constant is None for constant in constants[:-1]), initial=0)
    return ProductChain(
        expression,
        combine,
        reduce,
        over,
        tuple(f for f, c in zip(factors, constants, strict=True) if c is None),
        tuple(c for c in constants if c is not None),
        tuple(n for n, c in zip(before, constants, strict=True) if c is not None),
        written=_build_tree(expression, combine, reduce, iter(places)),
    )


class ProductLike(Protocol):
    """The properties that all representations of a chain have."""

    @property
    def combine(self) -> Combine | None:
        """⊗; None if there is none."""

    @property
    def reduce(self) -> Reduce | None:
        """⊕; None if nothing is aggregated."""

    @property
    def factors(self) -> Sequence[object]:
        """The factors, without constants."""

    @property
    def constants(self) -> Sequence[object]:
        """The factors without tensors."""

    @property
    def outermost(self) -> bool:
        """True if the ⊕ encloses the whole product."""


def may_chain(product: ProductLike, used: Collection[TensorType], exact: bool = True) -> bool:
    """True if the factors of a chain may be aggregated before all of them are combined.

    They may not if an entry is not finite: 1 * inf + 0 * inf is NaN, but (1 + 0) * inf is inf.

    Args:
        product: the chain.
        used: types of the tensors in it.
        exact: True if NaN and infinity have to be as in NumPy.
    """
    if product.reduce is None:
        return len(product.factors) + len(product.constants) > 1
    # Outside an `any`, factors are numbers; inside, they are booleans.
    inside = product.outermost and not product.constants
    if product.reduce.typing is Typing.LOGICAL and not inside:
        return False
    if exact and not all(type_.entries.finite for type_ in used):
        return False
    combine = product.combine
    if combine is None:
        return False
    if combine is ADD and any(type_.dtype is DType.BOOL for type_ in used):
        return False  # True + True + 1 is 2: the first sum is an `or`
    infinite = {str(type_.fill) for type_ in used if not is_finite(type_.fill)}
    return not infinite or (combine is not MULT and len(infinite) == 1)


def types_used(joined: ProductChain, types: Mapping[str, TensorType]) -> list[TensorType]:
    """Types of the tensors that a chain reads anywhere in its factors."""
    return [types[a.tensor] for factor in joined.factors for a in accesses(factor)]


def _first_reduction(
    expression: Expression, combine: Combine, unreduced: set[int]
) -> Reduce | None:
    """The outermost ⊕ in a chain over which ⊗ distributes."""
    if id(expression) in unreduced:
        return None
    met = []
    for part in tree_walk.walk(expression, _within(combine, None)):
        if isinstance(part, Reduction) and part.operator.name in combine.distributes_over:
            return part.operator
        if isinstance(part, Binary) and part.operator is combine:
            met.append(id(part))
    unreduced.update(met)
    return None


def _within(
    combine: Combine, reduce: Reduce | None
) -> Callable[[Expression], tuple[Expression, ...]]:
    """A function that returns the parts of an expression that belong to a chain of ⊗ and ⊕."""

    def parts(expression: Expression) -> tuple[Expression, ...]:
        match expression:
            case Reduction(operator, _, argument) if operator is reduce:
                return (argument,)
            case Binary(operator, left, right) if operator is combine:
                return left, right
            case _:
                return ()

    return parts


def _flatten(
    expression: Expression, combine: Combine, reduce: Reduce | None
) -> tuple[tuple[str, ...], list[Expression]]:
    """The labels that a chain aggregates, and its factors, including constants."""
    parts = _within(combine, reduce)
    over, factors = list[str](), list[Expression]()
    for part in tree_walk.walk(expression, parts):
        if not parts(part):
            factors.append(part)
        elif isinstance(part, Reduction):
            over.extend(part.over)
    return tuple(over), factors


def _build_tree(
    expression: Expression, combine: Combine, reduce: Reduce | None, places: Iterator[int | None]
) -> Tree | None:
    """The tree of the factors in the text; `places` numbers them, or has None for constants."""

    def join_sides(_: Expression, sides: list[Tree | None]) -> Tree | None:
        if not sides:
            return next(places)
        trees = [side for side in sides if side is not None]
        return (trees[0], trees[1]) if len(trees) == 2 else trees[0] if trees else None

    return tree_walk.fold(expression, _within(combine, reduce), join_sides)
