"""Statements that write at the entries of tensors: ``H[idx[i]] += v[i]`` is a sum by the index.

The axis gets a label of its own, and what is aggregated is taken where the index hits that label
(`ucle.language.syntax.Hit`): ``H[idx] += when(idx[i] == idx, v[i])``. What does not hit must leave
the aggregation as it is, so that it is worth what is aggregated of nothing.
"""

from __future__ import annotations

from ucle.errors import UnsupportedError
from ucle.foundation.names import find_free_name
from ucle.ir.vertices import Span
from ucle.language.syntax import (
    Access,
    Binary,
    Expression,
    Hit,
    Number,
    Reduction,
    Statement,
    accesses,
    all_hit,
    walk,
)
from ucle.operators import LOGSUMEXP, MULT, REDUCES, Reduce


def rewrite_scatter(
    target: Access, accumulate: Reduce, expression: Expression, span: Span
) -> Statement:
    """The statement with a label for each axis of the left side that is indexed by entries.

    Args:
        target: the left side, some of whose indices are entries of tensors.
        accumulate: the aggregation.
        expression: the right side.
        span: where the statement stands.

    Raises:
        UnsupportedError: an aggregation that cannot leave out entries.
    """
    select = accumulate.select
    if select is None:
        others = sorted(name for name, row in REDUCES.items() if row.select is not None)
        raise UnsupportedError(
            f"entries cannot be aggregated by {accumulate.name} where an index puts them",
            where=str(span),
            expected="one of " + ", ".join(others),
            found=f"{target} {accumulate.assignment} ...",
            hint="a mean is a sum divided by a count: N[idx[i]] += 1",
        )
    taken = {*target.labels, *_labels(expression)}
    labels: list[str] = []
    hits: list[Hit] = []
    for index in target.indices or ():
        if index.entries is None:
            assert index.plain is not None
            labels.append(index.plain)
            continue
        taken.update(_labels(index.entries))
        label = find_free_name(_stem(index.entries), taken)
        taken.add(label)
        labels.append(label)
        hits.append(Hit(index.entries, label, str(target), span, made=True))
    every = {label for hit in hits for label in hit.labels}
    alone = [x for x in expression.labels if x not in every and x not in labels]
    if accumulate is LOGSUMEXP:  # of integers, too, whose least number is not -inf
        expression = Binary(MULT, Number(1.0, span), expression, span)
    elif alone and not accumulate.derived:
        expression = Reduction(accumulate, tuple(alone), expression, span)
    expression = Binary(select, all_hit(hits, span), expression, span)
    return Statement(Access(target.tensor, tuple(labels), span), accumulate, expression, span)


def _labels(expression: Expression) -> set[str]:
    """All labels of an expression, those of its aggregations included."""
    return {label for part in walk(expression) for label in part.labels}


def _stem(entries: Expression) -> str:
    """The stem of the label for an axis that is indexed by entries: the name of their tensor."""
    return next((access.tensor for access in accesses(entries)), "at")
