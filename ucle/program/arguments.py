"""Checks of what users pass to programs, in the form that `ucle.foundation.arguments` takes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ucle.errors import ArgumentError, ArgumentTypeError
from ucle.foundation import arguments as args
from ucle.foundation.libraries import LateModule
from ucle.language.syntax import Statement

if TYPE_CHECKING:
    from ucle.optim import descent
else:
    descent = LateModule("ucle.optim.descent")

FORMATS = ("text", "json", "html", "dot", "svg")
"""Formats of `EinsumProgram.explain`."""

KEYS = args.either(
    (Mapping, args.mapping(args.text, args.labels, "a dict from output to labels")),
    otherwise=args.labels,
)
"""Checks the labels that are to have a column: of all outputs, or by name of the output."""


def check_statements(value: Any, where: str) -> None:
    """Check that a value is a tuple of parsed statements."""
    if not isinstance(value, tuple) or not all(isinstance(x, Statement) for x in value):
        raise ArgumentTypeError(
            "this is not a program",
            where=where,
            expected="its text, or what ucle.language.parse.parse_program makes of it",
            found=repr(value)[:80],
        )


def check_optimiser(value: Any, where: str) -> None:
    """Check that a value is an optimiser."""
    if not isinstance(value, descent.Optimiser):
        raise ArgumentTypeError(
            "this is no optimiser",
            where=where,
            expected="an optimiser of ucle.optim, such as sgd(...)",
            found=repr(value)[:80],
        )


def merge_inputs(inputs: Mapping[str, Any] | None, tensors: Mapping[str, Any]) -> dict[str, Any]:
    """Merge inputs that are passed by name and as keywords.

    Raises:
        ArgumentError: one is passed in both ways.
    """
    twice = [name for name in tensors if name in (inputs or {})]
    if twice:
        raise ArgumentError(
            "an input is passed twice",
            where=f"input {twice[0]}",
            expected="a keyword, or an entry of inputs",
            found="both",
        )
    return {**(inputs or {}), **tensors}
