"""What is asked of tensors that a script has made: whether there is NaN, or infinity."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp, select

from ucle.foundation.dtypes import DType
from ucle.ir.layouts import Layout
from ucle.ir.tensor_types import TensorType
from ucle.sqlgen.capabilities import Capabilities
from ucle.sqlgen.kernel_calls import KernelCalls
from ucle.sqlgen.sql_trees import (
    VALUE,
    column,
    function,
    integer,
    number,
    table,
    when,
)


@dataclass(frozen=True)
class Stored:
    """A tensor relation in a table; `value` is the column of payloads."""

    name: str
    type: TensorType
    layout: Layout
    value: str = VALUE


def nan_query(tensors: Sequence[Stored], capabilities: Capabilities) -> exp.Expr:
    """The SELECT that has a row if there is a NaN.

    Args:
        tensors: of real or complex numbers, all in one table.
        capabilities: what the engine can do.
    """
    calls = KernelCalls(capabilities)
    found = exp.or_(*(_has_nan(stored, calls) for stored in tensors), copy=False)
    return select(integer(1)).from_(table(tensors[0].name)).where(found).limit(1)


def _has_nan(stored: Stored, calls: KernelCalls) -> exp.Expr:
    dtype, value = stored.type.dtype, _entries(stored, calls)
    if stored.layout.scalar:
        return exp.or_(*(function("isnan", part) for part in _parts(value, dtype)))
    finite = calls.scalar("all_finite", value, dtype=dtype)
    marks = calls.scalar("vec_isnan", value.copy(), dtype=dtype)
    marked = calls.scalar("any_not", marks, number(0, dtype), dtype=dtype)
    return when(finite, exp.false(), marked)


def infinite_query(tensors: Sequence[Stored], capabilities: Capabilities) -> exp.Expr:
    """The SELECT that has a row if a number is not finite; arguments as of `nan_query`."""
    calls = KernelCalls(capabilities)
    finite = exp.and_(*(_is_finite(stored, calls) for stored in tensors), copy=False)
    source = table(tensors[0].name)
    return select(integer(1)).from_(source).where(exp.not_(finite, copy=False)).limit(1)


def _is_finite(stored: Stored, calls: KernelCalls) -> exp.Expr:
    dtype, value = stored.type.dtype, _entries(stored, calls)
    if stored.layout.scalar:
        return exp.and_(*(function("isfinite", part) for part in _parts(value, dtype)))
    return calls.scalar("all_finite", value, dtype=dtype)


def _entries(stored: Stored, calls: KernelCalls) -> exp.Expr:
    """What is stored of a tuple: a number, or numbers in an array."""
    value = column(stored.value)
    if stored.layout.compressed is None:
        return value
    return calls.scalar("csr_values", value, dtype=stored.type.dtype)


def _parts(value: exp.Expr, dtype: DType) -> list[exp.Expr]:
    """A number, or both parts of a complex one."""
    if dtype.kind != "c":
        return [value]
    return [exp.Dot(this=value.copy(), expression=exp.to_identifier(x)) for x in ("re", "im")]
