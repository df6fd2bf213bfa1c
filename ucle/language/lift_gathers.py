"""Gathers rewritten as products: ``W[idx[i],k]`` selects W where the index matches.

The axis gets a label of its own, along which the one entry is picked that the index matches
(`ucle.language.syntax.Hit`): ``pick[at](when(idx[i] == at, W[at,k]))``. Indices that share labels
are picked together, as in ``A[p[i],q[i]]``; others one after the other. Takes and returns resolved
statements.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ucle.foundation.names import find_free_name
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
    """Rewrite a statement to read tensors only at labels and functions of labels.

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
    names = _GatherNames({*statement.target.labels, *(x for part in parts for x in part.labels)})

    def lift_part(part: Expression, parts: list[Expression]) -> Expression:
        whole = with_children(part, parts)
        if isinstance(whole, Access) and whole.computed:
            return names.name_gather(whole)
        return whole

    expression = fold(statement.expression, lift_part)
    return replace(statement, expression=expression, renamed={**statement.renamed, **names.renamed})


class _GatherNames:
    """The used labels of a statement, and the accesses for which new labels were added."""

    def __init__(self, taken: set[str]) -> None:
        self._taken = taken
        self.renamed: dict[str, str] = {}

    def name_gather(self, access: Access) -> Expression:
        """Rewrite an access that has entries of tensors among its indices."""
        hits: list[Hit] = []
        indices: list[Index] = []
        for index in access.indices or ():
            if index.entries is None:
                indices.append(index)
                continue
            label = find_free_name("at", self._taken)
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
    """Group indices that share labels, directly or through others."""
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
