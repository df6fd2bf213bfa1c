"""Programs that an earlier version kept without the sizes that their statements state.

Statements of lazy tensors state sizes beside their text, as that of `pad` does. A description of an
earlier version has the text alone, and nothing in it tells such a statement from one that follows
the sizes of what it reads. So a notice names the statements to which that can have happened.
"""

from __future__ import annotations

from collections.abc import Container, Sequence

from ucle.errors import MeaningWarning
from ucle.foundation.logs import warn_caller
from ucle.language.bounds import SizeClasses, statement_labels
from ucle.language.syntax import Statement, accesses
from ucle.maintenance.document import Document


def warn_of_unstated_sizes(document: Document) -> None:
    """Warn if a maintained program may have wrong sizes since an earlier version kept it.

    Warns:
        MeaningWarning: once, with the tensors of these statements.
    """
    if document.stated is not None:
        return
    found = unsized_tensors(document.statements, document.options.get("bounds") or {})
    if found:
        warn_caller(
            f"{document.name!r} was maintained by an earlier version of ucle, which did not keep "
            f"the sizes that statements of lazy tensors state: {', '.join(found)} may have too few "
            "or too many rows; call drop(), and maintain the program again",
            MeaningWarning,
        )


def unsized_tensors(statements: Sequence[Statement], bounds: Container[str]) -> tuple[str, ...]:
    """Return the tensors whose statements have a label with a size that no axis of an input gives.

    Args:
        statements: of a program.
        bounds: the labels with a size of their own.

    >>> from ucle.language.parse import parse_program
    >>> text = "p[i] = i; y[i] = p[i] * x[i]; s[i] = x[~(i-1)]; t[i,r] = top_k[j,r](A[i,j])"
    >>> unsized_tensors(parse_program(text), {})
    ('s', 't')
    >>> unsized_tensors(parse_program(text), {"r"})
    ('s',)
    """
    classes, computed = SizeClasses(), {x.target.tensor for x in statements}
    known = list[tuple[str, str | int]]()
    for statement in statements:
        own = statement.target.tensor
        for access in (statement.target, *accesses(statement.expression)):
            for axis, label in enumerate(access.labels if access.indices is None else ()):
                classes.join((access.tensor, axis), (own, label))
                if access.tensor not in computed:
                    known.append((own, label))
        known += [(own, label) for label in statement_labels(statement) if label in bounds]
    sized = {classes.find(x) for x in known}
    return tuple(
        x.target.tensor
        for x in statements
        if any(classes.find((x.target.tensor, y)) not in sized for y in statement_labels(x))
    )
