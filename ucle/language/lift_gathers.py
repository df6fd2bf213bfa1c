"""Reads at the entries of tensors made products: ``W[idx[i],k]`` takes W where the index hits.

The axis gets a label of its own, along which the one entry is picked at which the index hits
(`ucle.language.syntax.Hit`): ``pick[at](when(idx[i] == at, W[at,k]))``. Indices that have labels in
common go together, as in ``A[p[i],q[i]]``; others pick one after the other. Takes resolved
statements and gives resolved statements.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ucle.foundation.names import numbered
from ucle.ir.affine import Affine
from ucle.language.syntax import (
    Access,
    Binary,
    Expression,
    Hit,
    Index,
    Reduction,
    Statement,
    accesses,
    all_hit,
    fold,
    walk,
    with_children,
    with_indices,
)
from ucle.operators import PICK, PICK_OR_FILL, WHEN


def lift_gathers(statement: Statement) -> Statement:
    """A statement that reads tensors at labels, and functions of labels, alone.

    >>> from ucle.language.parse import parse_program
    >>> from ucle.language.resolve import resolve
    >>> from ucle.language.syntax_to_text import expression_text
    >>> lifted = lift_gathers(resolve(parse_program("Z[i,k] = W[idx[i],k]")[0]))
    >>> expression_text(lifted.expression)
    'pick[at](when(idx[i] == at, W[at,k]))'
    """
    if not any(access.computed for access in accesses(statement.expression)):
        return statement
    parts = walk(statement.expression)
    names = _Names({*statement.target.labels, *(x for part in parts for x in part.labels)})

    def lifted(part: Expression, parts: list[Expression]) -> Expression:
        whole = with_children(part, parts)
        if isinstance(whole, Access) and whole.computed:
            return names.gathered(whole)
        return whole

    expression = fold(statement.expression, lifted)
    return replace(statement, expression=expression, renamed={**statement.renamed, **names.renamed})


class _Names:
    """The labels of a statement, and for those that are added what was read at them."""

    def __init__(self, taken: set[str]) -> None:
        self._taken = taken
        self.renamed: dict[str, str] = {}

    def gathered(self, access: Access) -> Expression:
        """An access some of whose indices are entries of tensors."""
        hits: list[Hit] = []
        indices: list[Index] = []
        for index in access.indices or ():
            if index.entries is None:
                indices.append(index)
                continue
            label = numbered("at", self._taken)
            self._taken.add(label)
            self.renamed[label] = str(access)
            hits.append(Hit(index.entries, label, str(access), access.span, index.permissive))
            indices.append(Index(Affine(((label, 1),))))
        source = with_indices(access, indices)
        plain = tuple(index.plain for index in indices if index.plain is not None)
        if len(plain) == len(indices):
            source = Access(access.tensor, plain, access.span)
        picked: Expression = source
        for group in _groups(hits):
            labels = tuple(hit.label for hit in group)
            chosen = Binary(WHEN, all_hit(group, access.span), picked, access.span)
            pick = PICK_OR_FILL if any(hit.permissive for hit in group) else PICK
            picked = Reduction(pick, labels, chosen, access.span)
        return picked


def _groups(hits: Sequence[Hit]) -> list[list[Hit]]:
    """Indices that have labels in common, directly or by way of others."""
    groups: list[tuple[set[str], list[Hit]]] = []
    for hit in hits:
        labels, members = set(hit.entries.labels), [hit]
        apart = []
        for others, group in groups:
            if labels & others:
                labels |= others
                members = [*group, *members]
            else:
                apart.append((others, group))
        groups = [*apart, (labels, members)]
    return [group for _, group in groups]
