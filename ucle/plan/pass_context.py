"""Context that passes need beyond the plan: prices, memory, threads."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field

from ucle.foundation.dataclasses import dataclass
from ucle.foundation.dtypes import DType
from ucle.ir.layouts import Layout
from ucle.ir.vertices import Vertex
from ucle.plan.relation_nodes import Compute

REFERENCE_BYTES = 1 << 14
"""The payload from which copies for each chunk justify a longer statement."""

TUPLE_BYTES = 16
"""The bytes of a tuple in a table, besides its value: of two keys, with room for a third."""


@dataclass(frozen=True)
class Expression:
    """A computation of numbers from numbers that may be nested in other expressions.

    `uses` is the number of times that it names each of its arguments, `height` the height of its
    expression tree.
    """

    uses: tuple[int, ...]
    height: int


def no_expression(compute: Compute, dtype: DType) -> Expression | None:
    """Return None: without a known language, no expression is nested in another one."""
    return None


@dataclass(frozen=True)
class Spreading:
    """Statistics for spreading statements over threads.

    `least` is the cost from which spreading pays. `rows` estimates the tuples of a tensor in a
    layout, `payload` the bytes of each tuple's value, and `positions` the number of distinct
    positions along its axes.
    """

    threads: int
    least: float
    rows: Callable[[str, Layout], float]
    payload: Callable[[str, Layout], float]
    positions: Callable[[str], Sequence[float]]


@dataclass(frozen=True)
class Memory:
    """Statistics for relations that may exceed the memory, of size `bytes`.

    `share` is the share of the memory in which the engine groups tuples before it spills them.
    `rows` and `payload` are as in `Spreading`.
    """

    bytes: float
    share: float
    rows: Callable[[str, Layout], float]
    payload: Callable[[str, Layout], float]

    def is_exceeded_by(self, size: float) -> bool:
        """Return whether groups of `size` bytes would be spilled."""
        return size > self.share * self.bytes

    def holds(self, tensor: str, layout: Layout) -> bool:
        """Return whether a table of a tensor's tuples stays far below the memory."""
        size = TUPLE_BYTES + self.payload(tensor, layout)
        return not self.is_exceeded_by(self.rows(tensor, layout) * size)


@dataclass(frozen=True)
class Meanings:
    """What steps compute, for passes that compute it in another way.

    `vertices` are those of the program by name, `constants` the elements of arrays that may be in
    expressions over columns, by tensor. `rows` estimates the tuples of a tensor in a layout, and
    `least` are the rows of a wide table from which such expressions pay.
    """

    vertices: Mapping[str, Vertex]
    constants: Mapping[str, bytes]
    rows: Callable[[str, Layout], float]
    least: float


@dataclass(frozen=True)
class PassContext:
    """The facts by which passes decide.

    `statement_price` is the cost of one more statement, in the units of the steps' costs.
    `constants` are the elements of arrays from memory that may be written out, by tensor.
    `expression` gives a computation on numbers as an expression in the language of the database;
    None if it cannot be nested in another one. `reference_bytes` is the payload from which cross
    joins get a tensor by reference. `tapes` is True if calls on whole tensors may become one call.
    `spreading` is None if each statement is left to one thread, `memory` if each runs as a whole,
    however much it groups, and `meanings` if steps are computed as they were planned.
    """

    statement_price: float = 0.0
    constants: Mapping[str, bytes] = field(default_factory=dict)
    expression: Callable[[Compute, DType], Expression | None] = no_expression
    reference_bytes: int = REFERENCE_BYTES
    tapes: bool = False
    spreading: Spreading | None = None
    memory: Memory | None = None
    meanings: Meanings | None = None
