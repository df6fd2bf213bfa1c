"""What passes over a plan decide by and the plan does not say."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from ucle.foundation.dtypes import DType
from ucle.ir.layouts import Layout
from ucle.plan.steps import Compute

REFERENCE_BYTES = 1 << 14
"""Payload from which copies for each chunk are worth a longer statement."""


@dataclass(frozen=True)
class Expression:
    """How numbers are computed from numbers, as far as an expression may stand inside of others.

    `uses` says how often it names each of its arguments, `height` how many nodes lie above each
    other in it.
    """

    uses: tuple[int, ...]
    height: int


def no_expression(compute: Compute, dtype: DType) -> Expression | None:
    """Where nothing is known of a language, no expression is put into another one."""
    return None


@dataclass(frozen=True)
class Spreading:
    """What is known of relations where statements are spread over threads.

    `least` is the cost from which on that is worth the while. `rows` estimates the tuples of a
    tensor in a layout, `payload` the bytes of the value of each, and `positions` how many different
    ones its axes hold.
    """

    threads: int
    least: float
    rows: Callable[[str, Layout], float]
    payload: Callable[[str, Layout], float]
    positions: Callable[[str], Sequence[float]]


@dataclass(frozen=True)
class Memory:
    """What is known of relations where they may exceed the memory, which has so many `bytes`.

    `share` is the share of it with which the engine groups tuples before it spills them. `rows` and
    `payload` are those of `Spreading`.
    """

    bytes: float
    share: float
    rows: Callable[[str, Layout], float]
    payload: Callable[[str, Layout], float]

    def exceeded_by(self, size: float) -> bool:
        """Whether groups of so many bytes would be spilled."""
        return size > self.share * self.bytes


@dataclass(frozen=True)
class PassContext:
    """What passes decide by.

    `statement_price` is what one more statement costs, in the units of the steps' costs.
    `constants` are the elements of arrays from memory that may be written out, by tensor.
    `expression` tells of a computation on numbers what it is in the language of the database; None
    where it is no expression that may stand inside of another one. `reference_bytes` is the payload
    from which cross joins get a tensor by reference. `tapes` says that calls on whole tensors may
    become one call. `spreading` is None where statements are left to one thread, `memory` where
    each runs as a whole, however much it groups.
    """

    statement_price: float = 0.0
    constants: Mapping[str, bytes] = field(default_factory=dict)
    expression: Callable[[Compute, DType], Expression | None] = no_expression
    reference_bytes: int = REFERENCE_BYTES
    tapes: bool = False
    spreading: Spreading | None = None
    memory: Memory | None = None
