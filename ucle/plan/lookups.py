"""Look-up joins: an expression of several tensors, computed at the tuples of one of them.

``y[i] += L[i,s,p] * (a[s] + b[p])`` needs the sum where L has a tuple, and nowhere else. A tensor
has at most one tuple for each of its keys. So if the keys of a are among those of L, looking a up
keeps the number of tuples: the tuples of L, the *base*, are joined with all the others, as a table
with foreign keys is joined with the tables that these refer to. The tensors of two keys that binary
joins make, one for each ⊗ of the expression, are not made.
"""

from __future__ import annotations

from collections.abc import Sequence

from ucle import operators
from ucle.foundation.dataclasses import dataclass
from ucle.foundation.dtypes import DType
from ucle.ir.layouts import Layout
from ucle.ir.maps import Partial, Pointwise
from ucle.ir.tensor_types import TensorType
from ucle.ir.vertices import Operand, Vertex
from ucle.plan.kernel_choice import ChosenKernel


@dataclass(frozen=True)
class RowOperation:
    """⊗ of two values of a tuple, or maps of one, by a kernel if they are arrays.

    `inputs` are numbers of values: first those of the operands, then those of earlier operations.
    """

    inputs: tuple[int, ...]
    kernel: ChosenKernel
    combine: operators.Combine | None
    maps: tuple[Pointwise, ...]
    dtype: DType

    @property
    def infix(self) -> bool:
        """True if its text needs brackets inside another one's."""
        last = self.maps[-1] if self.maps else None
        combine = last.combine if isinstance(last, Partial) else self.combine
        return combine is not None and combine.infix

    def text(self, values: Sequence[str]) -> str:
        """Return the operation as a person would write it, given the texts of all values."""
        own = [values[number] for number in self.inputs]
        if self.combine is not None:
            return self.combine.text(*own)
        expression = own[0]
        for function in self.maps:
            expression = function.apply_text(expression)
        return expression


@dataclass(frozen=True)
class LookupPlan:
    """The look-up join that computes a vertex.

    `operands` are the base and the tensors that are looked up, under labels of the vertex and in
    `layouts`. The last one of `operations` makes the value that the vertex aggregates, by `kernel`;
    it has the type `type`, in `layout`, and one tuple for each of the base. `inside` are the
    vertices whose tensors are not needed for it.
    """

    operands: tuple[Operand, ...]
    layouts: tuple[Layout, ...]
    operations: tuple[RowOperation, ...]
    type: TensorType
    layout: Layout
    kernel: ChosenKernel
    inside: tuple[str, ...]

    def text(self, vertex: Vertex) -> str:
        """Return the vertex with the whole expression, as a person would write it."""
        values = list(map(str, self.operands))
        for operation in self.operations:
            text = operation.text(values)
            values.append(f"({text})" if operation.infix else text)
        operator = "=" if vertex.reduce is None else vertex.reduce.assignment
        target, base = Operand(vertex.name, vertex.labels), self.operands[0].tensor
        return f"{target} {operator} {self.operations[-1].text(values)}, at the tuples of {base}"
