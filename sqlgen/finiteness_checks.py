"""Queries that look for NaN, infinity and large numbers in tensors that a script has made."""

from __future__ import annotations

import cmath
from collections.abc import Mapping, Sequence

from sqlglot import exp, select

from ucle.foundation.dataclasses import dataclass
from ucle.foundation.dtypes import DType
from ucle.ir.layouts import Layout
from ucle.ir.tensor_types import TensorType
from ucle.sqlgen.capabilities import Capabilities
from ucle.sqlgen.kernel_calls import KernelCalls
from ucle.sqlgen.sql_trees import (
    VALUE,
    column,
    integer,
    is_finite,
    is_nan,
    number,
    table,
    when,
)


@dataclass(frozen=True)
class StoredPayload:
    """A tensor relation in a table; `value` is the column of payloads."""

    name: str
    type: TensorType
    layout: Layout
    value: str = VALUE


def nan_query(tensors: Sequence[StoredPayload], capabilities: Capabilities) -> exp.Expr:
    """Return a SELECT that has a row if there is a NaN.

    Args:
        tensors: of real or complex numbers, all in one table.
        capabilities: those of the engine.
    """
    calls = KernelCalls(capabilities)
    found = exp.or_(*(_has_nan(stored, calls) for stored in tensors), copy=False)
    return select(integer(1)).from_(table(tensors[0].name)).where(found).limit(1)


def _has_nan(stored: StoredPayload, calls: KernelCalls) -> exp.Expr:
    dtype, value = stored.type.dtype, _entries(stored, calls)
    if stored.layout.scalar:
        return exp.or_(*(is_nan(part) for part in _parts(value, dtype)))
    finite = calls.scalar("all_finite", value, dtype=dtype)
    marks = calls.scalar("vec_isnan", value.copy(), dtype=dtype)
    marked = calls.scalar("any_not", marks, number(0, dtype), dtype=dtype)
    return when(finite, exp.false(), marked)


def limit_query(name: str, largest: Mapping[str, float]) -> exp.Expr:
    """Return a SELECT that has a row if a number without axes is NaN or above its limit.

    Args:
        name: the table.
        largest: the limits by the columns of the numbers. NaN is above all of them.
    """
    within = (
        exp.LTE(this=column(value), expression=number(limit, DType.FLOAT64))
        for value, limit in largest.items()
    )
    outside = exp.not_(exp.and_(*within, copy=False), copy=False)
    return select(integer(1)).from_(table(name)).where(outside).limit(1)


def infinite_query(tensors: Sequence[StoredPayload], capabilities: Capabilities) -> exp.Expr:
    """Return a SELECT that has a row if a number other than the fill is not finite.

    The arguments are those of `nan_query`.
    """
    calls = KernelCalls(capabilities)
    finite = exp.and_(*(_is_finite(stored, calls) for stored in tensors), copy=False)
    source = table(tensors[0].name)
    return select(integer(1)).from_(source).where(exp.not_(finite, copy=False)).limit(1)


def _is_finite(stored: StoredPayload, calls: KernelCalls) -> exp.Expr:
    type_, value = stored.type, _entries(stored, calls)
    dtype, usual = type_.dtype, cmath.isfinite(type_.fill)
    if stored.layout.scalar:
        finite = exp.and_(*(is_finite(part) for part in _parts(value, dtype)))
        if usual:
            return finite
        return exp.or_(finite, exp.EQ(this=value, expression=number(type_.fill, dtype)))
    call, is_wrong = finiteness_call(value, type_, calls)
    return exp.not_(call, copy=False) if is_wrong else call


def finiteness_call(
    value: exp.Expr, type_: TensorType, calls: KernelCalls
) -> tuple[exp.Expr, bool]:
    """Return a boolean call about an array: whether a number other than the fill is not finite.

    Beside it is False if the call is true where all of them are finite.
    """
    dtype = type_.dtype
    if cmath.isfinite(type_.fill):
        return calls.scalar("all_finite", value, dtype=dtype), False
    # Of the two marks one is 1 and the other 0 where nothing is wrong.
    marks = calls.scalar("vec_isfinite", value, dtype=dtype)
    if cmath.isnan(type_.fill):
        fills = calls.scalar("vec_isnan", value.copy(), dtype=dtype)
    else:
        fill = number(type_.fill, dtype)
        fills = calls.scalar("vec_sca_equal", value.copy(), fill, dtype=dtype)
    either = calls.scalar("vec_add", marks, fills, dtype=dtype)
    return calls.scalar("any_not", either, number(1, dtype), dtype=dtype), True


def _entries(stored: StoredPayload, calls: KernelCalls) -> exp.Expr:
    """The stored values of a tuple: a number, or the numbers in an array."""
    value = column(stored.value)
    if stored.layout.compressed is None:
        return value
    return calls.scalar("csr_stored", value, dtype=stored.type.dtype)


def _parts(value: exp.Expr, dtype: DType) -> list[exp.Expr]:
    """A number, or both parts of a complex one."""
    if dtype.kind != "c":
        return [value]
    return [exp.Dot(this=value.copy(), expression=exp.to_identifier(x)) for x in ("re", "im")]
