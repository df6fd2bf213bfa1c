"""Forests of decision trees: the sums of the leaves that rows of features come to.

``Y[r,k] = forest[f,p](X[r,f], F[p,k])``: X has the features of each row along f, F the packed
forest along p, with a column for each output k. Only a kernel computes it, because what a tree
reads next depends on what it has read: as joins, each step down a tree would be one of all rows.

Node n of a forest occupies the rows 6n to 6n + 5 of F. All but the last mean something in column 0
alone:

- 6n: the number of the feature, 6n + 1: the threshold.
- 6n + 2 and 6n + 3: the nodes that follow if the condition holds, and if not. Children have greater
  numbers than their parents, so that no walk comes back.
- 6n + 4: the code, which is 0 for a leaf and else the condition: 1 ``x <= t``, 2 ``x < t``,
  3 ``x >= t``, 4 ``x > t``, 5 ``x == t``, 6 ``x != t``. 8 more if the condition holds for NaN,
  which it does not otherwise, and 16 more if the node is the root of a tree.
- 6n + 5: what a leaf adds to each of the outputs.

Y is the sum over the trees in the order of their roots, in float64. A node that is all 0, as where
rows of F are not stored, is a leaf that adds nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import ClassVar

from ucle.errors import ValueTypeError
from ucle.foundation.dataclasses import dataclass
from ucle.foundation.dtypes import DType

NAME = "forest"
"""The name of the function in programs and of its kernel."""

FIELDS = 6
"""The rows of a packed forest that a node occupies."""


@dataclass(frozen=True)
class Forest:
    """A forest along the label of features, the label of packed nodes, and that of outputs."""

    feature: str
    node: str
    output: str
    name: ClassVar[str] = NAME
    kernel: ClassVar[str] = NAME
    plural: ClassVar[str] = "forests"
    parts: ClassVar[str] = "the features, the nodes and the outputs of a forest"
    """The labels that stay inside arrays, in words."""

    @property
    def labels(self) -> tuple[str, str, str]:
        """The labels that stay inside arrays: those of features, nodes and outputs."""
        return self.feature, self.node, self.output

    def rename_labels(self, names: Mapping[str, str]) -> Forest:
        """Return this forest with its labels renamed."""
        feature, node, output = (names.get(label, label) for label in self.labels)
        return replace(self, feature=feature, node=node, output=output)

    def operand_names(self, output: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the labels of features and of packed nodes for those of the result.

        >>> Forest("f", "p", "k").operand_names(("r", "k"))
        (('r', 'f'), ('p', 'k'))
        """
        return (*output[:-1], self.feature), (self.node, self.output)

    def text(self, features: str, packed: str, spell: Callable[[str], str] = str) -> str:
        """Return the call on two tensors, as a person would write it.

        >>> Forest("f", "p", "k").text("X[r,f]", "F[p,k]")
        'forest[f,p](X[r,f], F[p,k])'
        """
        return f"{NAME}[{spell(self.feature)},{spell(self.node)}]({features}, {packed})"


def forest_dtype(dtype: DType, where: str) -> DType:
    """Return the element type in which a forest reads numbers of a type.

    Args:
        dtype: element type of features, or of a packed forest.
        where: place in the program, for messages.

    Raises:
        ValueTypeError: the numbers are complex.

    >>> forest_dtype(DType.FLOAT32, "")
    <DType.FLOAT64: 'float64'>
    """
    if dtype.kind == "c":
        raise ValueTypeError(
            f"{NAME} needs real numbers",
            where=where,
            expected="real numbers, integers or truth values",
            found=dtype.value,
            hint="real and imag make real numbers of complex ones",
        )
    return DType.FLOAT64
