"""Operands of an einsum as the caller passes them, and NumPy's strings of subscripts for them.

An axis of size 1 is broadcast to the size that other operands have for its label. As in NumPy,
truth values are not counted: the sum of their products is an `or`. Both depend on the operands, and
on the types of tables.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ucle.database.session import Session
from ucle.errors import InputError
from ucle.foundation.dtypes import DType
from ucle.inputs.objects import ask_object, dense_array, is_table
from ucle.inputs.relations import input_dtype
from ucle.inputs.sparse_arrays import is_sparse, without_axes
from ucle.inputs.table_input import TableInput
from ucle.language.subscripts import Subscripts, parse_string, resolve


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
        return ask_object("operand", operand, lambda: np.ndim(operand))
    if not isinstance(operand, TableInput):
        return None
    if operand.bounds is not None:
        return len(operand.bounds)
    return None if is_relation(operand.relation) else known_rank(operand.relation)


Shape = tuple[int, ...]


def parse_subscripts(text: str, operands: Sequence[Any]) -> tuple[Subscripts, list[Any]]:
    """Parse subscripts and drop the axes of size 1 that are broadcast, from the operands as well.

    An axis of size 1 stays if no other array is longer: sizes of tables are not known here.

    >>> subscripts, (x, y) = parse_subscripts("ij,ij->i", [np.ones((2, 3)), np.ones((2, 1))])
    >>> subscripts.operands, y.shape
    ((('i', 'j'), ('i',)), (2,))
    """
    resolved = resolve(parse_string(text), [known_rank(operand) for operand in operands])
    arrays = [_array(operand) for operand in operands]
    sizes: dict[str, int] = {}
    for labels, array in zip(resolved.operands, arrays, strict=True):
        for label, size in zip(labels, () if array is None else array.shape, strict=False):
            sizes[label] = max(size if size != 1 else -1, sizes.get(label, -1))
    operand_labels, reshaped = [], []
    for labels, array, operand in zip(resolved.operands, arrays, operands, strict=True):
        if array is None:
            operand_labels.append(labels)
            reshaped.append(operand)
            continue
        stretched = [n for n, x in enumerate(labels) if array.shape[n] == 1 and sizes[x] >= 0]
        operand_labels.append(tuple(x for n, x in enumerate(labels) if n not in stretched))
        reshaped.append(without_axes(array, stretched) if stretched else operand)
    return Subscripts(tuple(operand_labels), resolved.output), reshaped


def assignment(session: Session, subscripts: Subscripts, inputs: Mapping[str, Any]) -> str:
    """The operator that adds up products: ``+=``, or ``any=`` if all operands hold truth values."""
    for (name, value), labels in zip(inputs.items(), subscripts.operands, strict=True):
        if input_dtype(session, name, value, labels) is not DType.BOOL:
            return "+="
    return "any="


def _array(operand: Any) -> Any:
    """The operand if it is an array; None if it is a table, or an object that is refused later."""
    if is_relation(operand):
        return None
    if is_sparse(operand) or isinstance(operand, np.ndarray):
        return operand
    try:
        return dense_array("operand", operand)
    except InputError:
        return None
