"""Statements that are written into the one statement that uses them.

``P[i,m] += N[i,j] * H[j,m]; Q[i,n] += P[i,m] * W[m,n]`` says the same as
``Q[i,n] += N[i,j] * H[j,m] * W[m,n]``, where the three factors may be associated in any order.
`find_merges` tells which statements can go that way, `merge` takes some of them there. Whether it
pays is not asked here.

A statement is merged where nobody could tell: it is a chain of the same ⊗ and ⊕ as the one in which
it is a factor, nobody else wants its tensor, and both are of one element type, which is none of
integers (sums that overflow in one order do not in another). What entries that are not stored are
worth must absorb in ⊗, so that no order makes sparse tensors dense, and all inputs are finite.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import replace

from ucle.foundation.dtypes import is_finite
from ucle.ir.tensor_types import TensorType
from ucle.language.bounds import Bounds
from ucle.language.factors import Chain, chain, may_chain, types_used, with_sizes
from ucle.language.promotion import expression_type
from ucle.language.resolve import renamed_apart
from ucle.language.syntax import (
    Access,
    Expression,
    Reduction,
    Statement,
    accesses,
    children,
    fold,
    with_children,
)

Merges = Mapping[str, str]
"""Tensors of statements that are merged, each with the tensor of the statement that takes it; those
that take others come after them."""


def find_merges(
    statements: tuple[Statement, ...],
    types: Mapping[str, TensorType],
    bounds: Bounds,
    outputs: Collection[str],
    fixed: Collection[str],
    exact: bool = True,
) -> dict[str, str]:
    """The statements that may be merged into another.

    Args:
        statements: resolved and in order.
        types: of all tensors.
        bounds: of the labels of all statements.
        outputs: tensors that are wanted.
        fixed: tensors whose statements have to stay as they are written.
        exact: whether what is not finite has to be as in NumPy.
    """
    uses = Counter(access.tensor for s in statements for access in accesses(s.expression))
    known = _by_name(statements, bounds)
    found: dict[str, str] = {}
    for statement in statements:
        into = statement.target.tensor
        if into in fixed:
            continue
        for access in accesses(statement.expression):
            name = access.tensor
            if name not in known or name in outputs or name in fixed or uses[name] > 1:
                continue
            if _may_merge(known[name], known[into], types, exact):
                known[into], bounds = _merged(known[name], known[into], bounds)
                found[name] = into
    return found


def merge(
    statements: tuple[Statement, ...], bounds: Bounds, merges: Merges
) -> tuple[tuple[Statement, ...], Bounds]:
    """The statements without those that are merged, and the bounds of the labels they have now.

    >>> from ucle.language.bounds import AxisBound, infer_bounds, size_classes
    >>> from ucle.language.parse import parse_program
    >>> from ucle.language.resolve import resolve
    >>> text = "P[i,m] += N[i,j] * H[j,m]; Q[i,j] += P[i,m] * W[m,j]"
    >>> statements = tuple(resolve(statement) for statement in parse_program(text))
    >>> axes = {name: (AxisBound(9, True, name),) * 2 for name in "NHW"}
    >>> bounds = infer_bounds(statements, axes, {}, size_classes(statements))
    >>> (one,), _ = merge(statements, bounds, {"P": "Q"})
    >>> [access.labels for access in accesses(one.expression)]
    [('i', 'j_1'), ('j_1', 'm'), ('m', 'j')]
    """
    known = _by_name(statements, bounds)
    for name, into in merges.items():
        known[into], bounds = _merged(known[name], known[into], bounds)
    return tuple(known[name] for name in known if name not in merges), bounds


def _by_name(statements: tuple[Statement, ...], bounds: Bounds) -> dict[str, Statement]:
    """The statements by their tensors, with sizes as numbers: labels will have other names."""

    def sized(statement: Statement) -> Statement:
        name = statement.target.tensor
        expression = with_sizes(statement.expression, lambda x: bounds.label(name, x).bound)
        return replace(statement, expression=expression)

    return {statement.target.tensor: sized(statement) for statement in statements}


def _merged(statement: Statement, into: Statement, bounds: Bounds) -> tuple[Statement, Bounds]:
    """A statement with the expression of another one in the place of its tensor."""
    source, target = statement.target, into.target
    (access,) = (a for a in accesses(into.expression) if a.tensor == source.tensor)
    taken = {label for a in (target, *accesses(into.expression)) for label in a.labels}
    names = dict(zip(source.labels, access.labels, strict=True))
    apart, adopted = renamed_apart(statement.expression, names, taken)
    made = replace(into, expression=_put(into.expression, source.tensor, apart))
    return made, bounds.adopted(target.tensor, adopted, source.tensor)


def _put(expression: Expression, tensor: str, value: Expression) -> Expression:
    """The expression with another one in the place of a tensor."""

    def put(part: Expression, parts: list[Expression]) -> Expression:
        if isinstance(part, Access) and part.tensor == tensor:
            return value
        return with_children(part, parts)

    return fold(expression, put)


def _may_merge(
    statement: Statement, into: Statement, types: Mapping[str, TensorType], exact: bool
) -> bool:
    """Whether a statement is a chain, and its tensor a factor of one with the same algebra."""
    inner = chain(statement.expression)
    outer = _chain_with(into.expression, statement.target.tensor, types, exact)
    if inner is None or outer is None or inner.combine is not outer.combine:
        return False
    if inner.reduce is not None and outer.reduce is not None and inner.reduce is not outer.reduce:
        return False
    if not may_chain(inner, types_used(inner, types), exact):
        return False
    made = [types[s.target.tensor].entries for s in (statement, into)]
    if exact and not all(values.finite for values in made):
        return False
    dtype = types[statement.target.tensor].dtype
    if dtype.kind == "f" and any(x.finite and x.overflows for x in made):
        return False  # the order of products decides what outgrows its type
    if dtype.kind == "i" or expression_type(outer.expression, types) is not dtype:
        return False
    if not all(is_finite(constant) for constant in (*inner.constants, *outer.constants)):
        return False
    factors = (*inner.factors, *outer.factors)
    fills = [types[factor.tensor].fill for factor in factors if isinstance(factor, Access)]
    return all(inner.combine.absorbs_left(x) and inner.combine.absorbs_right(x) for x in fills)


def _chain_with(
    expression: Expression, tensor: str, types: Mapping[str, TensorType], exact: bool
) -> Chain | None:
    """The chain in an expression that has a tensor as one of its factors."""
    waiting = [expression]
    while waiting:
        part = waiting.pop()
        found = chain(part)
        if found is None or not may_chain(found, types_used(found, types), exact):
            product = part.argument if isinstance(part, Reduction) else part
            parts = children(product)  # the product under another ⊕ is no chain of its own
        elif any(isinstance(x, Access) and x.tensor == tensor for x in found.factors):
            return found
        else:
            parts = found.factors
        waiting.extend(reversed(parts))
    return None
