"""Calls of ``solve[i,j](A[i,j], b[i,k])``: what has to hold of their labels."""

from __future__ import annotations

from ucle.errors import LabelError, ProgramSyntaxError
from ucle.ir.linear_systems import NAME
from ucle.ir.vertices import Span
from ucle.language.syntax import Expression, SystemCall


def system_call(over: tuple[str, ...], arguments: tuple[Expression, ...], span: Span) -> SystemCall:
    """Return the call as it is written.

    Args:
        over: the labels of equations and of unknowns.
        arguments: the matrix and the right-hand sides.
        span: the place of the call.

    Raises:
        ProgramSyntaxError: there are other numbers of labels or arguments.
    """
    if len(set(over)) != 2 or len(over) != 2 or len(arguments) != 2:
        raise ProgramSyntaxError(
            f"{NAME} needs the labels of equations and of unknowns, a matrix and right-hand sides",
            where=str(span),
            expected=f"{NAME}[i,j](A[i,j], b[i]), which has the label j",
            found=f"{NAME}[{','.join(over)}]({', '.join('...' for _ in arguments)})",
        )
    return SystemCall(*over, *arguments, span)


def check_system(call: SystemCall) -> None:
    """Check that the matrix has both labels, and the right-hand sides that of the equations.

    Raises:
        LabelError: they have not.
    """
    matrix, sides = call.matrix.labels, call.sides.labels
    if {call.row, call.column} <= {*matrix} and call.row in sides and call.column not in sides:
        return
    raise LabelError(
        f"the labels of {NAME} do not fit its arguments",
        where=str(call.span),
        expected=f"a matrix with the labels {call.row} and {call.column}, and right-hand sides "
        f"with {call.row} and without {call.column}",
        found=f"{NAME}[{call.row},{call.column}] of a matrix with {', '.join(matrix) or 'no label'}"
        f" and right-hand sides with {', '.join(sides) or 'no label'}",
    )
