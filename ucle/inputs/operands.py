"""Operands of an einsum as the caller passes them: tables or arrays, and their ranks."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from ucle.inputs.objects import asked, is_table
from ucle.inputs.table_input import TableInput


def is_relation(operand: Any) -> bool:
    """True if an operand is a table, whose shape and type only the database knows."""
    return isinstance(operand, str | os.PathLike | TableInput) or is_table(operand)


def known_rank(operand: Any) -> int | None:
    """The rank of an operand, or None if the operand itself does not determine it.

    >>> known_rank([[1, 2], [3, 4]]), known_rank("edges")
    (2, None)
    """
    if not is_relation(operand):
        if hasattr(operand, "shape"):
            return len(operand.shape)
        return asked("operand", operand, lambda: np.ndim(operand))
    if not isinstance(operand, TableInput):
        return None
    if operand.bounds is not None:
        return len(operand.bounds)
    return None if is_relation(operand.relation) else known_rank(operand.relation)
