"""Integer overflow: tests whether integers may leave 64 bits, so that join orders matter.

Arithmetic with integers is checked on every route: an order of products gives the exact answer or
an error, never a number that wrapped around. But one order may overflow where another does not. If
no integer of a reordered program can overflow, the order does not matter. Otherwise the reordered
program runs first, and if it overflows, the program runs again in the order in which it is written
(`ucle.run.current_data`).
"""

from __future__ import annotations

from ucle.foundation.dtypes import DType
from ucle.ir.vertices import Program
from ucle.operators.values import Values, anything


def may_overflow(program: Program) -> bool:
    """Return whether integers that are joined or aggregated could leave 64 bits.

    Ranges (`ucle.ir.ranges`) are clipped at the ends of the type, so that a range which reaches an
    end may go beyond it. The test covers partial sums as well: every part of a sum of so many
    numbers between `low` and `high` lies in the hull of the range of the whole and the range of the
    entries.

    >>> from ucle import einsum_program
    >>> for large in (2**20, 2**31):
    ...     A = [[large, 1], [1, 1]]
    ...     program = einsum_program("s += A[i,j] * B[j,k] * c[k]", A=A, B=A, c=[1, 2])
    ...     print(may_overflow(program.compiled.program))
    False
    True
    """
    changed = (v for v in program.vertices if v.combine is not None or v.reduce is not None)
    types = (vertex.tensor.type for vertex in changed)
    return any(reaches_the_end(type_.entries, type_.dtype) for type_ in types)


def reaches_the_end(values: Values, dtype: DType) -> bool:
    """Return whether values may reach an end of an integer type, and so lie beyond it.

    >>> reaches_the_end(Values(0, 2**62), DType.INT64), reaches_the_end(Values(), DType.INT64)
    (False, True)
    """
    every = anything(dtype)
    return dtype.kind == "i" and (values.low <= every.low or values.high >= every.high)
