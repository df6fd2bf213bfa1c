"""Calls of forests, ``forest[f,p](X[r,f], F[p,k])``: what has to hold of their labels."""

from __future__ import annotations

from ucle.errors import LabelError, ProgramSyntaxError
from ucle.ir.forests import NAME
from ucle.ir.vertices import Span
from ucle.language.syntax import Expression, ForestCall


def forest_call(over: tuple[str, ...], arguments: tuple[Expression, ...], span: Span) -> ForestCall:
    """Return the call of a forest as it is written.

    Args:
        over: the labels of features and of packed nodes.
        arguments: the features and the packed forest.
        span: the place of the call.

    Raises:
        ProgramSyntaxError: there are other numbers of labels or arguments.
    """
    if len(set(over)) != 2 or len(over) != 2 or len(arguments) != 2:
        raise ProgramSyntaxError(
            f"{NAME} needs the labels of features and of nodes, and the tensors that have them",
            where=str(span),
            expected=f"{NAME}[f,p](X[r,f], F[p,k])",
            found=f"{NAME}[{','.join(over)}]({', '.join('...' for _ in arguments)})",
        )
    return ForestCall(*over, *arguments, span)


def output_label(call: ForestCall) -> str:
    """Return the label of the outputs of a call whose labels were checked."""
    (output,) = (label for label in call.packed.labels if label != call.node)
    return output


def check_labels(call: ForestCall) -> None:
    """Check that features have the label f, and that a packed forest has p and one label more.

    Raises:
        LabelError: they have not.
    """
    features, packed = call.features.labels, call.packed.labels
    outputs = [label for label in packed if label != call.node]
    fits = call.feature in features and call.node in packed and len(outputs) == 1
    if not fits or call.node in features or outputs[0] in features:
        f, p = call.feature, call.node
        raise LabelError(
            "the labels of a forest do not fit its arguments",
            where=str(call.span),
            expected=f"features with the label {f}, and a packed forest with {p} and one label "
            "more, which the features do not have",
            found=f"{NAME}[{f},{p}] of features with {', '.join(features) or 'no label'} and a "
            f"packed forest with {', '.join(packed) or 'no label'}",
        )
