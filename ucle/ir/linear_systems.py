"""Systems of linear equations: ``X[u,j,k] = solve[i,j](A[u,i,j], b[u,i,k])``.

A has the coefficients of the equations i and the unknowns j, of which there are as many, and b the
right-hand sides: one for each position of its labels that A does not have. X has the unknowns in
place of the equations. Only a kernel computes it, which is given whole matrices: every entry of X
depends on all of A.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import ClassVar

from ucle.foundation.dataclasses import dataclass

NAME = "solve"
"""The name of the function in programs."""

Spelling = Callable[[str], str]


@dataclass(frozen=True)
class LinearSystem:
    """A system along the labels of equations, of unknowns, and of right-hand sides."""

    row: str
    column: str
    sides: tuple[str, ...] = ()
    name: ClassVar[str] = NAME
    kernel: ClassVar[str] = f"mat_{NAME}"
    plural: ClassVar[str] = "systems of linear equations"
    parts: ClassVar[str] = "the equations and the unknowns of a system"
    """The labels that stay inside arrays, in words."""

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels that stay inside arrays: those of equations and unknowns."""
        return self.row, self.column

    def operand_names(self, output: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the labels of matrices and of right-hand sides for those of the solutions.

        >>> LinearSystem("i", "j", ("k",)).operand_names(("u", "j", "k"))
        (('u', 'i', 'j'), ('u', 'i', 'k'))
        """
        others = output[: len(output) - 1 - len(self.sides)]
        return (*others, self.row, self.column), (*others, self.row, *self.sides)

    def output_names(self, others: tuple[str, ...]) -> tuple[str, ...]:
        """Return the labels of the solutions, of which some stand in front."""
        return (*others, self.column, *self.sides)

    def rename_labels(self, names: Mapping[str, str]) -> LinearSystem:
        """Return this system with its labels renamed."""
        row, column, *sides = (names.get(x, x) for x in (self.row, self.column, *self.sides))
        return replace(self, row=row, column=column, sides=tuple(sides))

    def text(self, matrix: str, sides: str, spell: Spelling = str) -> str:
        """Return the call on two tensors, as a person would write it.

        >>> LinearSystem("i", "j").text("A[i,j]", "b[i]")
        'solve[i,j](A[i,j], b[i])'
        """
        return f"{NAME}[{spell(self.row)},{spell(self.column)}]({matrix}, {sides})"
