"""Kernel calls in SQL, on either route.

`KernelCalls` spells what `ucle.kernel_choice` chose. A call has leading constants (a specification,
sizes), arguments that change from row to row, and trailing constants. An aggregate bears its
capacity in its name on the native route; on the Arrow route it is a scalar function over gathered
lists.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from ucle.ir import Map
from ucle.kernel_choice import Kernel
from ucle.operators import COMBINES
from ucle.sqlgen.capabilities import Capabilities
from ucle.sqlgen.tree import function, integer, integers, number, text
from ucle.udf_kernels import capacity_suffix


@dataclass(frozen=True)
class Value:
    """An expression for the payload of a tuple: a number, or a tensor of `size` elements."""

    sql: exp.Expr
    scalar: bool


class KernelCalls:
    """Spells kernel calls for an engine with given capabilities."""

    def __init__(self, capabilities: Capabilities) -> None:
        self._capabilities = capabilities

    def scalar(self, name: str, *arguments: exp.Expr) -> exp.Expr:
        """A call of a scalar kernel."""
        return function(self._capabilities.prefix + name, *arguments)

    def aggregate(
        self,
        name: str,
        size: int,
        rows: Sequence[exp.Expr],
        leading: Sequence[exp.Expr] = (),
        trailing: Sequence[exp.Expr] = (),
    ) -> exp.Expr:
        """A call of an aggregate kernel whose result has `size` elements."""
        if self._capabilities.native_aggregates:
            title = f"{name}_{capacity_suffix(size)}"
            return function(self._capabilities.prefix + title, *leading, *rows, *trailing)
        gathered = [function("list", row) for row in rows]
        return function(self._capabilities.prefix + name, *leading, *gathered, *trailing)

    def contract(self, kernel: Kernel, values: Sequence[Value]) -> exp.Expr:
        """The kernel applied to one tuple or one pair."""
        assert kernel.name is not None
        leading, rows, trailing = self._arguments(kernel, values)
        return self.scalar(kernel.name, *leading, *rows, *trailing)

    def contract_and_reduce(
        self, kernel: Kernel, operation: str, values: Sequence[Value], size: int
    ) -> exp.Expr:
        """Kernel and aggregation in one pass where there is such an aggregate, else one by one."""
        if kernel.name is None or not kernel.fusible:
            payload = values[0].sql if kernel.name is None else self.contract(kernel, values)
            return self.aggregate(f"{operation}_vec", size, [payload])
        leading, rows, trailing = self._arguments(kernel, values)
        return self.aggregate(f"{operation}_{kernel.name}", size, rows, leading, trailing)

    def map(self, mapped: Map, tensor: exp.Expr) -> exp.Expr:
        """A pointwise map of a tensor."""
        if mapped.constant is None:
            return self.scalar(f"vec_{mapped.name}", tensor)
        constant = number(mapped.constant)
        if mapped.constant_first and not COMBINES[mapped.name].commutative:
            return self.scalar(f"sca_vec_{mapped.name}", constant, tensor)
        return self.scalar(f"vec_sca_{mapped.name}", tensor, constant)

    def _arguments(
        self, kernel: Kernel, values: Sequence[Value]
    ) -> tuple[list[exp.Expr], list[exp.Expr], list[exp.Expr]]:
        ordered = list(reversed(values)) if kernel.swap else list(values)
        if kernel.specification is None:
            inner = [] if kernel.inner is None else [integer(kernel.inner)]
            return [], [value.sql for value in ordered], inner
        rows = [
            self.scalar("sca_to_vec", value.sql) if value.scalar else value.sql for value in ordered
        ]
        return [text(kernel.specification), integers(kernel.sizes)], rows, []
