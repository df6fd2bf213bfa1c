"""Read tensors and not their copies: a statement that only names or transposes another tensor.

After ``T[j,i] = X[i,j]``, other statements can read X under the labels of T. Then T need not be
computed, unless it is an output, and what reads it can choose from all the layouts of X.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import ClassVar

from ucle.foundation.dataclasses import dataclass
from ucle.ir.vertices import Operand
from ucle.lowering.logical import (
    Contraction,
    LogicalProgram,
    LogicalStatement,
    Use,
    find_needed_statements,
)
from ucle.lowering.step_types import types_of


@dataclass(frozen=True)
class ReadOriginals:
    """A program without copies, and a line about each of them.

    `fixed` are tensors whose statements stay as they are.
    """

    program: LogicalProgram
    fixed: frozenset[str]
    lines: tuple[str, ...]
    key: ClassVar[str] = "copies"
    costs: ClassVar[None] = None

    def replay(self, logical: LogicalProgram) -> LogicalProgram:
        """A program that differs in sizes, without its copies."""
        read = read_originals(logical, self.fixed)
        return logical if read is None else read.program


def read_originals(logical: LogicalProgram, fixed: Collection[str] = ()) -> ReadOriginals | None:
    """Replace reads of copies by reads of the tensors that they are copies of.

    Args:
        logical: the program.
        fixed: tensors whose statements stay as they are, and read what they read.

    Returns:
        The program, with the same values; None if nothing that is read is a copy.

    >>> from ucle.foundation.dtypes import DType
    >>> from ucle.ir.layouts import Label
    >>> from ucle.ir.tensor_types import TensorType
    >>> from ucle.ir.vertices import Span
    >>> from ucle.lowering.logical import Contraction
    >>> from ucle.operators import SUM
    >>> i, j = Label("i", 9), Label("j", 9)
    >>> X, T = Use("X", (i, j), DType.FLOAT64), Use("T", (j, i), DType.FLOAT64)
    >>> copy = LogicalStatement("T", (j, i), (), X, Span(1, 1), ("X",))
    >>> step = Contraction("y.1", (T,), None, SUM, (i,), DType.FLOAT64)
    >>> result = Use("y.1", (j,), DType.FLOAT64)
    >>> total = LogicalStatement("y", (j,), (step,), result, Span(2, 1), (i, "T"))
    >>> types = {"X": TensorType((i, j))}
    >>> types |= types_of(LogicalProgram(("X",), (), (), types), [copy, total])
    >>> print(read_originals(LogicalProgram(("X",), (copy, total), ("y",), types)).program)
    y.1 = sum[i](X[i,j])
    y[j] = y.1[j]
    """
    stay = {*fixed, *logical.reindexed}
    kept = stay.union(logical.results)
    copies = {x.target: x for x in logical.statements if x.target not in kept and _is_copy(x)}
    if not copies:
        return None
    statements = [x if x.target in stay else _read_originals(x, copies) for x in logical.statements]
    if statements == list(logical.statements):
        return None
    needed = find_needed_statements(logical, statements)
    program = replace(logical, statements=tuple(needed), types=types_of(logical, needed))
    gone = copies.keys() - program.by_name.keys()
    lines = (
        f"{Operand(x.target, x.labels)} is {x.result}" for x in copies.values() if x.target in gone
    )
    return ReadOriginals(program, frozenset(fixed), tuple(lines))


def _is_copy(statement: LogicalStatement) -> bool:
    """Return whether a statement gives a tensor of the same axes, in any order, another name."""
    result = statement.result
    same_axes = sorted(x.name for x in result.labels) == sorted(x.name for x in statement.labels)
    distinct = len(result.distinct) == len(result.labels)
    return not statement.steps and not result.maps and same_axes and distinct


def _read_originals(
    statement: LogicalStatement, copies: Mapping[str, LogicalStatement]
) -> LogicalStatement:
    if copies.keys().isdisjoint(statement.reads):
        return statement
    steps: dict[str, Contraction] = {}

    def read(use: Use) -> Use:
        """Return a use of what a tensor is a copy of; steps may have another order of labels."""
        step = steps.get(use.tensor)
        return _original(use, copies) if step is None else replace(use, labels=step.labels)

    for step in statement.steps:
        steps[step.name] = replace(step, factors=tuple(map(read, step.factors)))
    text = tuple(_source(x, copies) if isinstance(x, str) else x for x in statement.text)
    result = read(statement.result)
    return replace(statement, steps=tuple(steps.values()), result=result, text=text)


def _original(use: Use, copies: Mapping[str, LogicalStatement]) -> Use:
    """Return the same entries, read from the tensor that a copy, or a copy of it, was made of."""
    while (copy := copies.get(use.tensor)) is not None:
        names = dict(zip(copy.labels, use.labels, strict=True))
        labels = tuple(names[label] for label in copy.result.labels)
        use = replace(use, tensor=copy.result.tensor, labels=labels)
    return use


def _source(tensor: str, copies: Mapping[str, LogicalStatement]) -> str:
    while tensor in copies:
        tensor = copies[tensor].result.tensor
    return tensor
