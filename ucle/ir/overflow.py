"""Whether integers of a program may leave 64 bits, which the order of its products decides.

Arithmetic with integers is checked on every route, so that an order gives the exact answer or an
error, never a number that wrapped around; but one order may overflow where another does not. Where
no integer of a reordered program can overflow, no order matters; else it runs in the hope that none
does, and once more as it is written if one did (`ucle.prepared`).
"""

from __future__ import annotations

from ucle.foundation.dtypes import DType
from ucle.ir.vertices import Program
from ucle.operators.values import Values, anything


def may_overflow(program: Program) -> bool:
    """Whether integers that are joined or aggregated may leave 64 bits, as far as is known.

    Ranges (`ucle.ir.ranges`) end where the type ends, so that one which reaches that far may have
    gone on. It covers what is summed on the way, too: each part of a sum of so many numbers between
    `low` and `high` lies in the range of the whole and of what is stored.

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
    """Whether values may lie at an end of a type of integers, and so beyond it.

    >>> reaches_the_end(Values(0, 2**62), DType.INT64), reaches_the_end(Values(), DType.INT64)
    (False, True)
    """
    every = anything(dtype)
    return dtype.kind == "i" and (values.low <= every.low or values.high >= every.high)
