"""Checks of parsed statements as a whole: their order, ranks of tensors, and inputs.

Takes the syntax tree and returns it sorted; inspects only names and numbers of labels.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from ucle.errors import LabelError, NameResolutionError, did_you_mean
from ucle.foundation.dtypes import DType
from ucle.foundation.names import find_free_name
from ucle.language.syntax import (
    Access,
    Binary,
    Call,
    Expression,
    Reduction,
    Statement,
    accesses,
    walk,
)
from ucle.operators import PointwiseMap


def order_statements(statements: tuple[Statement, ...]) -> tuple[Statement, ...]:
    """Sort statements so that each comes after those whose targets it uses.

    Raises:
        NameResolutionError: a tensor is defined twice, or in terms of itself.
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

    ordered: dict[str, Statement] = {}
    for first, start in defined.items():  # not recursive: programs have thousands of statements
        path = {first: _uses(start, defined)} if first not in ordered else {}
        while path:
            name = next(reversed(path))
            used = next((x for x in path[name] if x not in ordered), None)
            if used is None:
                ordered[name] = defined[name]
                del path[name]
            elif used in path:
                cycle = list(path)
                raise NameResolutionError(
                    f"{used} is defined by means of itself",
                    where=str(defined[used].span),
                    expected="definitions without a cycle",
                    found=" -> ".join((*cycle[cycle.index(used) :], used)),
                    hint="write one statement for each iteration, with a new name each time",
                )
            else:
                path[used] = _uses(defined[used], defined)
    return tuple(ordered.values())


def _uses(statement: Statement, defined: Mapping[str, Statement]) -> Iterator[str]:
    """The names of the statements that a statement uses, in the order of its text."""
    names = dict.fromkeys(access.tensor for access in accesses(statement.expression))
    return iter([name for name in names if name in defined])


def check_ranks(statements: tuple[Statement, ...]) -> None:
    """Check that every tensor is used with only one rank.

    Raises:
        LabelError: a tensor is used with two ranks, or with another rank than in its definition.
    """
    ranks: dict[str, Access] = {s.target.tensor: s.target for s in statements}
    for statement in statements:
        for access in accesses(statement.expression):
            earlier = ranks.setdefault(access.tensor, access)
            if earlier.rank != access.rank:
                raise LabelError(
                    f"{access.tensor} is used with two ranks",
                    where=str(access.span),
                    expected=f"{earlier.rank} labels, as at {earlier.span}",
                    found=f"{access.rank} labels: [{','.join(access.shown)}]",
                )


def check_output_labels(statements: tuple[Statement, ...], stated: Collection[str]) -> None:
    """Check that every label on the left of a statement is also on the right, or has a bound.

    Args:
        statements: the program as it is written.
        stated: labels whose bounds the caller states.

    Raises:
        LabelError: no input has an output label.
    """
    for statement in statements:
        labels, available = statement.target.labels, statement.expression.labels
        for label in labels:
            known = (available, stated, statement.sizes, statement.like)
            if any(label in each for each in known):
                continue
            raise LabelError(
                f"no input has the output label {label!r}",
                where=str(statement.span),
                expected="labels of the inputs: " + (", ".join(available) or "none"),
                hint=f"bounds={{{label!r}: ...}} repeats the right side along it",
                found=f"{statement.target.tensor}[{','.join(labels)}]",
            )


def input_labels(statements: tuple[Statement, ...]) -> dict[str, tuple[str, ...]]:
    """The labels of each input in its first use, which name its columns."""
    defined = {statement.target.tensor for statement in statements}
    uses: dict[str, Access] = {}
    for statement in statements:
        for access in accesses(statement.expression):
            if access.tensor not in defined:
                uses.setdefault(access.tensor, access)
    return {name: access.axis_names for name, access in uses.items()}


def names_of_axes(
    statements: Sequence[Statement], tensor: str, stated: Collection[str] = ()
) -> tuple[str, ...]:
    """Labels for the axes of a tensor in additional statements, named after its own labels.

    They are distinct, and none has a stated bound, which might be that of a shorter axis.

    Args:
        statements: the program.
        tensor: a tensor that is defined or read there.
        stated: labels whose bounds the caller states.

    >>> from ucle.language.parse import parse_program
    >>> program = parse_program("p[i] += A[i,j] * w[j+1,2]; t = A[i,i]")
    >>> [names_of_axes(program, name, ["i"]) for name in ("p", "w")]
    [('i_1',), ('j', 'at')]
    """
    uses = [x for s in statements for x in (s.target, *accesses(s.expression))]
    names: list[str] = []
    for name in next(use for use in uses if use.tensor == tensor).axis_names:
        names.append(find_free_name(name, {*names, *stated}))
    return tuple(names)


def asks_for_zeros(statements: tuple[Statement, ...]) -> bool:
    """True if some operator, such as a quotient, needs to know that numbers are not 0."""
    return any(
        _may_be_undefined(part) for statement in statements for part in walk(statement.expression)
    )


def _may_be_undefined(part: Expression) -> bool:
    """True if an operator makes NaN or infinities of some numbers; a user's own may, too."""
    match part:
        case Call(DType()):
            return False
        case Call(PointwiseMap() as operator) | Binary(operator) | Reduction(operator):
            return operator.undefined_somewhere or not operator.compiled
    return isinstance(part, Call)


def choose_outputs(
    statements: tuple[Statement, ...], outputs: Iterable[str] | None = None
) -> tuple[str, ...]:
    """The outputs of a program: the named ones, or else the tensors that no statement uses.

    Raises:
        NameResolutionError: an unknown output.
    """
    defined = {s.target.tensor for s in statements}
    if outputs is None:
        used = {access.tensor for s in statements for access in accesses(s.expression)}
        outputs = [s.target.tensor for s in statements if s.target.tensor not in used]
    names = tuple(dict.fromkeys(outputs))
    if missing := [name for name in names if name not in defined]:
        raise NameResolutionError(
            f"unknown output {missing[0]}",
            where="outputs",
            expected="one of " + ", ".join(sorted(defined)),
            found=missing[0],
            hint=did_you_mean(missing[0], defined),
        )
    return names


def paths_by_tensor(
    statements: tuple[Statement, ...],
    path: Sequence[Sequence[int]] | Mapping[str, Sequence[Sequence[int]]] | None,
) -> dict[str, tuple[tuple[int, ...], ...]]:
    """The stated contraction paths, by the name of the statement's tensor.

    Raises:
        NameResolutionError: it is unclear which statement a path is for, or there is none.
    """
    names = [statement.target.tensor for statement in statements]
    if path is None:
        return {}
    if not isinstance(path, Mapping):
        if len(names) != 1:
            raise NameResolutionError(
                "a contraction path does not state for which statement it is",
                where="path",
                expected="a dict from tensor to path, as the program has several statements",
                found=str(path),
                hint=f"path={{{names[-1]!r}: ...}}",
            )
        path = {names[0]: path}
    for name in path:
        if name not in names:
            raise NameResolutionError(
                f"the contraction path names an unknown tensor {name}",
                where=f"path, {name}",
                expected="one of " + ", ".join(names),
                found=name,
                hint=did_you_mean(name, names),
            )
    return {name: tuple(tuple(step) for step in steps) for name, steps in path.items()}
