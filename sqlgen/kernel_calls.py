"""Kernel calls in SQL, on either route.

`KernelCalls` spells what `ucle.plan.kernel_choice` chose. A call has leading constants (a
specification, sizes), arguments that change from row to row, and trailing constants. An aggregate
has its capacity in its name on the native route; on the Arrow route it is a scalar function of one
list with the rows of a group. It is one list because two lists of a GROUP BY need not be in the
same order.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

from sqlglot import exp

from ucle.errors import KernelsMissingError
from ucle.foundation.dataclasses import dataclass
from ucle.foundation.dtypes import DType
from ucle.ir.fills import apply_maps
from ucle.ir.maps import Cast, Map, Partial, Pointwise
from ucle.ir.tensor_types import TensorType
from ucle.operators import Combine, Reduce
from ucle.plan.fuse_maps import chain_parts, is_compiled, map_program
from ucle.plan.kernel_choice import ChosenKernel
from ucle.sqlgen.array_extents import product, tile_length
from ucle.sqlgen.capabilities import Capabilities
from ucle.sqlgen.dialects import Dialect
from ucle.sqlgen.scalar_operators import combine_sql, map_sql
from ucle.sqlgen.sql_trees import (
    cast,
    either,
    function,
    integer,
    integers,
    number,
    struct,
    text,
)
from ucle.udf_kernels import ROW_FIELDS, capacity_suffix, typed_name


@dataclass(frozen=True)
class Value:
    """An expression for the payload of a tuple: a number, or a tensor of `size` elements."""

    sql: exp.Expr
    scalar: bool


class KernelCalls:
    """Spells kernel calls for an engine with given capabilities."""

    def __init__(self, capabilities: Capabilities) -> None:
        self._capabilities = capabilities

    @property
    def available(self) -> bool:
        """True if there are kernels."""
        return self._capabilities.kernels

    @property
    def dialect(self) -> Dialect:
        """The dialect that has the texts of operators."""
        return self._capabilities.dialect

    def coalesce_fill(self, value: exp.Expr, fill: exp.Expr) -> exp.Expr:
        """A payload, or the fill where it is NULL because its tuple is not stored.

        Before DuckDB 2, COALESCE does not keep the memory of BLOBs alive that an Arrow function
        made.
        """
        if not self._capabilities.registered:
            return either(value, fill)
        missing = exp.Is(this=value.copy(), expression=exp.null())
        return exp.Case(ifs=[exp.If(this=missing, true=fill)], default=value)

    def scalar(self, name: str, *arguments: exp.Expr, dtype: DType) -> exp.Expr:
        """A call of a scalar kernel of an element type."""
        return function(self._title(name, dtype), *arguments)

    def aggregate(
        self,
        name: str,
        size: int,
        rows: Sequence[exp.Expr],
        leading: Sequence[exp.Expr] = (),
        trailing: Sequence[exp.Expr] = (),
        *,
        dtype: DType,
    ) -> exp.Expr:
        """A call of an aggregate kernel whose result has `size` elements."""
        title = self._title(name, dtype)
        if self._capabilities.native_aggregates:
            suffix = capacity_suffix(size, dtype.tag)
            return function(f"{title}_{suffix}", *leading, *rows, *trailing)
        return function(title, *leading, function("list", _row(rows)), *trailing)

    def compressing(
        self, name: str, rows: Sequence[exp.Expr], trailing: Sequence[exp.Expr], *, dtype: DType
    ) -> exp.Expr:
        """A call of an aggregate whose result is a compressed array, of any length."""
        title = self._title(name, dtype)
        if self._capabilities.native_aggregates:
            return function(title, *rows, *trailing)
        return function(title, function("list", _row(rows)), *trailing)

    def contract(
        self,
        kernel: ChosenKernel,
        values: Sequence[Value],
        dtype: DType,
        keys: Mapping[str, exp.Expr],
    ) -> exp.Expr:
        """Return the kernel applied to one tuple or one pair, with its keys given by label."""
        assert kernel.name is not None
        leading, rows, trailing = self._arguments(kernel, values, dtype, keys)
        value = self.scalar(kernel.name, *leading, *rows, *trailing, dtype=dtype)
        if kernel.finish is None:
            return value
        name, specification = kernel.finish
        return self.scalar(name, text(specification), value, dtype=dtype)

    def contract_and_reduce(
        self,
        kernel: ChosenKernel,
        operation: Reduce,
        values: Sequence[Value],
        size: int,
        dtype: DType,
        keys: Mapping[str, exp.Expr],
    ) -> exp.Expr:
        """Return kernel and aggregation in one pass where such an aggregate exists, else in two.

        An aggregate takes sizes that are the same in all rows of a group.
        """
        stem = operation.stem
        if kernel.name is None or not kernel.fusible or kernel.ragged:
            payload = values[0].sql
            if kernel.name is not None:
                payload = self.contract(kernel, values, dtype, keys)
            return self.aggregate(f"{stem}_vec", size, [payload], dtype=dtype)
        leading, rows, trailing = self._arguments(kernel, values, dtype, keys)
        if kernel.compressed:
            leading = []  # its name says what it reduces
        name = f"{stem}_{kernel.name}"
        return self.aggregate(name, size, rows, leading, trailing, dtype=dtype)

    def map(self, step: Pointwise, tensor: exp.Expr) -> exp.Expr:
        """A pointwise map of a tensor."""
        if isinstance(step, Cast):
            return self.scalar(
                f"vec_cast_{step.source.tag}_{step.result.tag}", tensor, dtype=DType.FLOAT64
            )
        if isinstance(step, Map):
            if not step.function.compiled:
                return self._map_list(step, tensor)
            return self.scalar(f"vec_{step.function.name}", tensor, dtype=step.dtype)
        operator, constant = step.combine, number(step.constant, step.dtype)
        if not operator.compiled:
            return self._map_list(step, tensor)
        if step.constant_first and not operator.commutative:
            return self.scalar(f"sca_vec_{operator.stem}", constant, tensor, dtype=step.dtype)
        return self.scalar(f"vec_sca_{operator.stem}", tensor, constant, dtype=step.dtype)

    def maps(self, steps: Sequence[Pointwise], tensor: exp.Expr) -> exp.Expr:
        """Apply pointwise maps to a tensor one after the other, as chains where possible."""
        for compiled, group in itertools.groupby(steps, key=is_compiled):
            if compiled:
                for part in chain_parts(tuple(group)):
                    tensor = self._chain_maps(part, tensor)
            else:
                for step in group:
                    tensor = self.map(step, tensor)
        return tensor

    def map_entries(
        self, type_: TensorType, maps: tuple[Pointwise, ...], array: exp.Expr
    ) -> exp.Expr:
        """Map what a compressed array lists, entries or runs; what becomes the fill is left out."""
        if not maps:
            return array
        values = self.scalar("csr_stored", array.copy(), dtype=type_.dtype)
        values = self.maps(maps, values)
        dtype, fill = maps[-1].result, apply_maps(maps, type_.fill)
        mapped = self.scalar("csr_with", array, values, dtype=dtype)
        return self.scalar("csr_prune", mapped, number(fill, dtype), dtype=dtype)

    def _chain_maps(self, steps: Sequence[Pointwise], tensor: exp.Expr) -> exp.Expr:
        if len(steps) == 1:
            return self.map(steps[0], tensor)
        program, source, result = map_program(steps)
        return self.chain(program, [Value(tensor, False)], [source], result)

    def chain(
        self,
        program: str,
        operands: Sequence[Value],
        dtypes: Sequence[DType],
        dtype: DType,
        *,
        reduced: bool = False,
    ) -> exp.Expr:
        """A chain of pointwise functions of some operands; numbers become tensors of one entry."""
        tensors = [
            self.scalar("sca_to_vec", value.sql, dtype=own) if value.scalar else value.sql
            for value, own in zip(operands, dtypes, strict=True)
        ]
        name = f"chain{len(operands)}" + ("_sca" if reduced else "")
        return self.scalar(name, text(program), *tensors, dtype=dtype)

    def tape(self, program: exp.Expr, operands: Sequence[exp.Expr]) -> exp.Expr:
        """A call of the kernel that runs a fused step, on tensors of any types."""
        return self.scalar("tape", program, *operands, dtype=DType.FLOAT64)

    def multiway(
        self, program: str, operands: Sequence[exp.Expr], dtype: DType, *, scalar: bool
    ) -> exp.Expr:
        """A sum of products of compressed matrices and dense vectors, label by label."""
        name = "multiway_sca" if scalar else "multiway"
        return self.scalar(name, text(program), *operands, dtype=dtype)

    def _title(self, name: str, dtype: DType) -> str:
        """Return the name of a kernel in SQL.

        Raises:
            KernelsMissingError: there are none.
        """
        if not self.available:
            raise KernelsMissingError(
                "arrays cannot be made or worked on without the compiled kernels",
                expected="all labels as key columns: plain SQL",
                found=f"a call of {typed_name(name, dtype.tag)}",
                hint="leave out keys=, or name all labels in it; ucle.udf_kernels."
                "load_extension(connection) says why there are no kernels",
            )
        return self._capabilities.prefix + typed_name(name, dtype.tag)

    def combine_numbers(
        self, operator: Combine, left: exp.Expr, right: exp.Expr, dtype: DType
    ) -> exp.Expr:
        """⊗ of two numbers: in SQL, or by a kernel where that would take much longer."""
        if operator.number_kernel and self._capabilities.kernels:
            return self.scalar(operator.name, left, right, dtype=DType.FLOAT64)  # it is of any type
        return combine_sql(operator, left, right, dtype, self.dialect)

    def map_number(self, step: Pointwise, value: exp.Expr) -> exp.Expr:
        """A pointwise map of a number, by the same rule as `combined`."""
        if isinstance(step, Partial) and step.combine.number_kernel:
            constant = number(step.constant, step.dtype)
            pair = (constant, value) if step.constant_first else (value, constant)
            return self.combine_numbers(step.combine, *pair, step.dtype)
        return map_sql(step, value, self.dialect)

    def _map_list(self, step: Map | Partial, tensor: exp.Expr) -> exp.Expr:
        """Apply a function that has SQL and no kernel: DuckDB maps it over the tensor as a list."""
        entry = exp.to_identifier("entry")
        body = map_sql(step, exp.column(entry))
        each = exp.Lambda(this=body, expressions=[entry], colon=True)
        entries = self.scalar("vec_to_list", tensor, dtype=step.dtype)
        mapped = cast(function("list_transform", entries, each), step.dtype, 1)
        return self.scalar("pack", mapped, dtype=step.dtype)

    def _arguments(
        self,
        kernel: ChosenKernel,
        values: Sequence[Value],
        dtype: DType,
        keys: Mapping[str, exp.Expr],
    ) -> tuple[list[exp.Expr], list[exp.Expr], list[exp.Expr]]:
        ordered = list(reversed(values)) if kernel.swap else list(values)
        inner = [] if kernel.inner is None else [integer(kernel.inner)]
        inner += [number(value, dtype) for value in kernel.absent]
        if kernel.compressed:
            assert kernel.specification is not None
            return [text(kernel.specification)], [value.sql for value in ordered], inner
        if kernel.specification is None:
            return [], [value.sql for value in ordered], inner
        rows = [
            self.scalar("sca_to_vec", value.sql, dtype=dtype) if value.scalar else value.sql
            for value in ordered
        ]
        return [text(kernel.specification), _sizes(kernel, keys)], rows, []


def _row(rows: Sequence[exp.Expr]) -> exp.Expr:
    """The arguments of an aggregate for one row, as the Arrow route gathers them."""
    return rows[0] if len(rows) == 1 else struct(dict(zip(ROW_FIELDS, rows, strict=False)))


def _sizes(kernel: ChosenKernel, keys: Mapping[str, exp.Expr]) -> exp.Expr:
    """The sizes of a general kernel; those of tiles may be the shorter ones of the last tile."""
    if not kernel.ragged:
        return integers(kernel.sizes)
    sizes = [integer(size) for size in kernel.sizes]
    for each in kernel.ragged:
        lengths = [tile_length(x.bound, x.tile, keys[x.label]) for x in each.tiles]
        sizes[each.place] = product(each.factor, lengths)
    return cast(exp.Array(expressions=sizes), "BIGINT[]")
