"""The memory model: bytes that an execution holds at a time, computed from sizes alone.

`Part` records give estimated sizes; `count_held_bytes` is the whole model, as
`ucle.plan.prices.cost` is for costs. Nothing here knows tensors, plans or statements;
`ucle.plan.step_memory` makes the parts from them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from enum import Enum, auto
from functools import partial

from ucle.foundation.dataclasses import dataclass
from ucle.plan.resources import DUCKDB_LIMITS

ROW_BYTES = 16
"""Bytes of pointer and hash per row in DuckDB's tables of groups."""

HASH_BYTES, POINTER_BYTES, LOAD_FACTOR = 8, 8, 2
"""Bytes of a row's hash and of a place in DuckDB's join tables, and places for each row.

The number of places is a power of two: twice as many rows may take three times the memory.
"""

NUMBER_BYTES = 16
"""Bytes of the largest number, whose states DuckDB's own aggregates hold."""

FEW_ROWS = 64
"""Rows up to which DuckDB's joins and filters copy a chunk, to append it to others."""

FIXED = 24e6
"""Bytes of threads, pipelines and partly filled blocks, independent of the amount of work."""

LONG, BLOCK = 4096, 262_144
"""Sizes in DuckDB: a long value fills one block of a table, whose rest stays empty."""

SPILLED_STATES, SPILLED_TABLE = 0.5, 0.4
"""Shares of a memory limit that an aggregation and a join table need while DuckDB spills.

With less they fail at the last partitions.
"""

RETAINED = 1.25
"""Factor on the bytes held: allocators keep freed memory, in pieces that do not fit again."""


class Account(Enum):
    """Which bytes are counted, by who keeps an account of them and can refuse more."""

    ALL = auto()
    OUTSIDE = auto()
    """Those outside of DuckDB's account, which it cannot spill."""
    NOBODY = auto()
    """Those in no account, neither of DuckDB nor of the kernels: nothing bounds them."""


@dataclass(frozen=True)
class RowVectors:
    """Tensors of `size` bytes, made for each of `rows`, a vector of rows at a time."""

    rows: float
    size: float
    threads: int


@dataclass(frozen=True)
class GroupStates:
    """States of `size` bytes for `groups`, which are finished a vector at a time.

    States in DuckDB's own rows (`inline`) have sizes that are powers of two. Where tensors are
    stacked (`stacked`), each position is in the state of one thread only.
    """

    rows: float
    groups: float
    size: float
    inline: float
    threads: int
    stacked: bool = False


@dataclass(frozen=True)
class JoinTable:
    """A join on keys, which builds a table of the side with fewer rows: rows and bytes of both."""

    rows: float
    size: float
    other_rows: float
    other_size: float


@dataclass(frozen=True)
class ChunkCopies:
    """Chunks that a join makes of `rows`, which it copies where they have few rows."""

    rows: float
    size: float
    threads: int


@dataclass(frozen=True)
class CrossJoined:
    """A tensor in one tuple beside others: a list of one element that a join copies."""

    size: float


@dataclass(frozen=True)
class FilledTable:
    """A table of `rows` that exists until the execution ends."""

    rows: float
    size: float


Part = RowVectors | GroupStates | JoinTable | ChunkCopies | CrossJoined | FilledTable


def count_held_bytes(part: Part) -> float:
    """Compute the bytes that are held for a part of a statement.

    >>> count_held_bytes(JoinTable(rows=10, size=100, other_rows=2, other_size=84))
    216.0
    """
    match part:
        case RowVectors(rows, size, threads):
            return min(rows, DUCKDB_LIMITS.vector_rows * threads) * size
        case GroupStates(groups=groups, size=size, threads=threads):
            return states(part) + count_held_bytes(RowVectors(groups, size, threads))
        case JoinTable(rows, size, other_rows, other_size):
            count, each = min((rows, size), (other_rows, other_size))
            places = 1 << math.ceil(max(math.log2(LOAD_FACTOR * count), 0.0)) if count else 0
            return float(count * (each + HASH_BYTES) + places * POINTER_BYTES)
        case ChunkCopies(rows, size, threads):
            return rows * size if rows <= FEW_ROWS * threads else 0.0
        case CrossJoined(size):
            return 2 * size
        case FilledTable(rows, size):
            values = BLOCK // size if LONG < size < BLOCK else 0
            return rows * (BLOCK / values if values else size)


def count_outside_bytes(part: Part) -> float:
    """Compute the bytes held for a part outside of DuckDB's account, which DuckDB cannot spill.

    >>> count_outside_bytes(JoinTable(rows=10, size=100, other_rows=2, other_size=84))
    0.0
    """
    match part:
        case JoinTable() | FilledTable():
            return 0.0
        case GroupStates(groups=groups, size=size, threads=threads):
            return _outside_states(part) + count_held_bytes(RowVectors(groups, size, threads))
        case _:
            return count_held_bytes(part)


def _outside_states(part: GroupStates) -> float:
    return 0.0 if part.size <= part.inline else states(part)


def count_unbounded_bytes(part: Part) -> float:
    """Compute the bytes of a part that neither DuckDB nor the kernels count: its vectors of rows.

    >>> count_unbounded_bytes(GroupStates(1e6, groups=10, size=800, inline=64, threads=2))
    8000
    """
    match part:
        case GroupStates(groups=groups, size=size, threads=threads):
            return count_held_bytes(RowVectors(groups, size, threads))
        case _:
            return count_outside_bytes(part)


def count_unspilled_bytes(part: Part, limit: float) -> float:
    """Compute the bytes held for a part under a memory limit, where DuckDB spills what it can.

    >>> table = JoinTable(rows=1e6, size=84, other_rows=2e6, other_size=84)
    >>> count_unspilled_bytes(table, limit=100e6)
    40000000.0
    """
    match part:
        case JoinTable():
            return min(count_held_bytes(part), SPILLED_TABLE * limit)
        case GroupStates(groups=groups, size=size, threads=threads):
            return unspilled_states(part, limit) + count_held_bytes(
                RowVectors(groups, size, threads)
            )
        case _:
            return count_held_bytes(part)


def unspilled_states(part: GroupStates, limit: float) -> float:
    """Bytes of the states of an aggregation under a limit: DuckDB spills those that are inline."""
    return min(states(part), SPILLED_STATES * limit) if part.size <= part.inline else states(part)


def states(part: GroupStates) -> float:
    """Bytes of the states of an aggregation, before it is finished."""
    state = part.size
    if 0.0 < state <= part.inline:
        state = float(1 << math.ceil(math.log2(state)))
    # Each thread has the groups that it meets, and they are merged into those of one thread. A
    # thread reads a row group at a time; tables from memory are divided among at least two threads.
    # Zeros that are never written to take no memory.
    threads = float(min(part.threads, max(2, math.ceil(part.rows / DUCKDB_LIMITS.rows_a_thread))))
    if part.stacked:
        threads = (1.0 + threads) / 2
    return min(part.rows, part.groups * threads) * (state + ROW_BYTES)


def kernel_states(part: GroupStates) -> float:
    """Bytes of states as far as kernels hold them: those of tensors, but not those of numbers."""
    return 0.0 if part.size <= NUMBER_BYTES else states(part)


def _unbounded_states(_: GroupStates) -> float:
    return 0.0


_COUNTS = {
    Account.ALL: count_held_bytes,
    Account.OUTSIDE: count_outside_bytes,
    Account.NOBODY: count_unbounded_bytes,
}
_STATES = {Account.ALL: states, Account.OUTSIDE: _outside_states, Account.NOBODY: _unbounded_states}


def statement(first: Iterable[Part], then: Iterable[Part], account: Account = Account.ALL) -> float:
    """Compute the peak of a statement: `first` makes whole tensors, `then` runs beside them.

    Groups may be gathered at the same time, and are finished when whole tensors exist. Lists of one
    element exist one after the other. Bytes in other accounts do not count.

    >>> statement([RowVectors(1, 500, 1)], [CrossJoined(100), RowVectors(1, 300, 1)])
    700.0
    """
    return _at_once(first, list(then), _COUNTS[account], _STATES[account])


def unspilled_statement(parts: Iterable[Part], limit: float) -> float:
    """Compute the peak of a statement under a memory limit, where DuckDB spills what it can.

    >>> unspilled_statement([RowVectors(1, 500, 1), CrossJoined(100)], limit=1e9)
    600.0
    """
    count = partial(count_unspilled_bytes, limit=limit)
    return _at_once([], list(parts), count, partial(unspilled_states, limit=limit))


def _at_once(
    first: Iterable[Part],
    then: Sequence[Part],
    count: Callable[[Part], float],
    gather: Callable[[GroupStates], float],
) -> float:
    sizes = [part.size for part in then if isinstance(part, CrossJoined)]
    waiting = sum(gather(part) for part in then if isinstance(part, GroupStates))
    beside = sum(sizes)
    others = sum(count(part) for part in then if not isinstance(part, CrossJoined))
    made = sum(map(count, first)) + beside + max(sizes, default=0.0) + waiting
    return float(max(made, beside + others))


def peak(statements: Iterable[tuple[float, float]]) -> float:
    """Compute the peak of an execution from the bytes held in statements and kept after each.

    >>> peak([(10e6, 4e6), (20e6, 1e6)]) == FIXED + RETAINED * 24e6
    True
    """
    most = kept = 0.0
    for inside, made in statements:
        most = max(most, kept + inside)
        kept += made
    return FIXED + RETAINED * most
