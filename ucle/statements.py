"""Checks on parsed statements as a whole: their order, the ranks of tensors, what they need.

Takes the syntax tree and gives it back sorted; looks at names and numbers of labels only.
"""

from __future__ import annotations

from ucle.errors import LabelError, NameResolutionError
from ucle.syntax import Access, Statement, accesses


def order_statements(statements: tuple[Statement, ...]) -> tuple[Statement, ...]:
    """Sort statements so that each comes after those whose targets it uses.

    Raises:
        NameResolutionError: a tensor is defined twice, or by means of itself.
    """
    defined: dict[str, Statement] = {}
    for statement in statements:
        name = statement.target.tensor
        if name in defined:
            raise NameResolutionError(
                f"{name} is defined twice",
                where=str(statement.span),
                expected="one statement for each tensor",
                found=f"an earlier definition at {defined[name].span}",
                hint="give one of them another name",
            )
        defined[name] = statement

    done: dict[str, Statement] = {}

    def visit(name: str, path: tuple[str, ...]) -> None:
        if name in path:
            cycle = " -> ".join((*path[path.index(name) :], name))
            raise NameResolutionError(
                f"{name} is defined by means of itself",
                where=str(defined[name].span),
                expected="definitions without a cycle",
                found=cycle,
                hint="write one statement for each iteration, with a new name each time",
            )
        if name in done:
            return
        for access in accesses(defined[name].expression):
            if access.tensor in defined:
                visit(access.tensor, (*path, name))
        done[name] = defined[name]

    for name in defined:
        visit(name, ())
    return tuple(done.values())


def check_ranks(statements: tuple[Statement, ...]) -> None:
    """Check that every tensor is used with one rank.

    Raises:
        LabelError: a tensor is used with two ranks, or with another rank than it is defined with.
    """
    ranks: dict[str, Access] = {s.target.tensor: s.target for s in statements}
    for statement in statements:
        for access in accesses(statement.expression):
            known = ranks.setdefault(access.tensor, access)
            if len(known.labels) != len(access.labels):
                raise LabelError(
                    f"{access.tensor} is used with two ranks",
                    where=str(access.span),
                    expected=f"{len(known.labels)} labels, as at {known.span}",
                    found=f"{len(access.labels)} labels: [{','.join(access.labels)}]",
                )


def check_output_labels(statements: tuple[Statement, ...]) -> None:
    """Check that every label on the left of a statement stands once there and also on the right.

    Raises:
        LabelError: an output label that no input has, or one that is repeated.
    """
    for statement in statements:
        labels, available = statement.target.labels, statement.expression.labels
        for label in labels:
            if labels.count(label) > 1:
                message, expected = f"output label {label!r} is repeated", "each once"
            elif label not in available:
                message = f"no input has the output label {label!r}"
                expected = "labels of the inputs: " + (", ".join(available) or "none")
            else:
                continue
            raise LabelError(
                message,
                where=str(statement.span),
                expected=expected,
                found=f"{statement.target.tensor}[{','.join(labels)}]",
            )


def input_labels(statements: tuple[Statement, ...]) -> dict[str, tuple[str, ...]]:
    """For every input the labels of its first use, which name its columns."""
    defined = {statement.target.tensor for statement in statements}
    uses: dict[str, Access] = {}
    for statement in statements:
        for access in accesses(statement.expression):
            if access.tensor not in defined:
                uses.setdefault(access.tensor, access)
    return {name: access.labels for name, access in uses.items()}
