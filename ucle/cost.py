"""The cost model: what a join, an aggregation or a repartition of given size costs.

Sizes come in as `Work` records, made by `ucle.sparse_einsum` from statistics; a `Profile` holds the
constants; `cost` is the whole model (sparse_einsum.txt, section 7.2). Nothing here estimates a
cardinality. Costs under one profile compare with each other and with nothing else.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

VECTOR_ROWS = 2048
"""Rows that DuckDB sends through an operator at a time."""


@dataclass(frozen=True)
class Profile:
    """Constants of the cost model.

    `fixed` is charged per tuple through a join or an aggregation, `group` per group that an
    aggregation makes and `state` per byte of it, `transfer` per byte that a kernel reads, `write`
    per byte of a tensor that is made, `flop` per floating point operation of a streaming kernel,
    `gemm` where it batches into a matrix product, `statement` for a table of its own where a view
    could be repeated. `inputs_free` says that an input may be read in
    any layout at no cost. `once` says that an operand that is a single tuple moves once per vector
    of rows and not once per row.
    `paper_estimates` asks for the paper's size of an aggregation, which `stats.Occupancy` mends.
    `kernel_bytes` bounds the bytes that one kernel call may read and write.
    """

    name: str
    fixed: float
    transfer: float
    flop: float
    gemm: float
    group: float = 0.0
    write: float = 0.0
    state: float = 0.0
    statement: float = 0.0
    inputs_free: bool = False
    once: bool = False
    paper_estimates: bool = False
    kernel_bytes: float = math.inf


PAPER = Profile(
    "paper",
    fixed=15.0,
    transfer=1.0,
    flop=1.0,
    gemm=1.0,
    inputs_free=True,
    paper_estimates=True,
    kernel_bytes=2**24,
)
"""Weights of the paper's published prototype: a byte 1, a flop 1, a tuple 15; inputs are free.

The paper bounds the bytes of a kernel call and does not print the bound. Its Table 8 keeps matrices
of 1.6 MB whole, and Tables 7 and 8 break up ones of 20 and 30 MB "due to memory limitations".
"""

# Nanoseconds on a current x86 server, measured on the steps of graph convolution and attention.
ENGINE = Profile(
    "duckdb",
    fixed=30.0,  # a hash probe, or finding a group
    group=30.0,  # a new entry in the table of groups
    transfer=0.015,  # BLOBs travel as pointers; only kernels touch them, mostly in a shared cache
    write=0.3,  # fresh memory: the page is faulted in, written, and copied into DuckDB's result
    state=1.0,  # the same for a state that is made in each thread's table, merged and finished
    flop=0.06,  # multiply and add into a state that is read and written
    gemm=0.015,  # blocked matrix product, 70 GFlop/s
    statement=6e6,  # creating, filling, committing and dropping a small temporary table
    once=True,
)

PROFILES = {profile.name: profile for profile in (PAPER, ENGINE)}


@dataclass(frozen=True)
class JoinWork:
    """A join of `rows` result tuples. `left_once` and `right_once` mark a side of one tuple."""

    rows: float
    left_bytes: float
    right_bytes: float
    left_once: bool = False
    right_once: bool = False


@dataclass(frozen=True)
class KernelWork:
    """A kernel on each of `rows` tuples.

    `batched` marks one that becomes a matrix product. `made_bytes` is the tensor that it makes for
    each row; 0 where it makes a number, or adds into the state of an aggregate.
    """

    rows: float
    flops: float
    batched: bool = False
    made_bytes: float = 0.0


@dataclass(frozen=True)
class AggregateWork:
    """An aggregation of `rows` tuples into `groups`; each carries `elements` numbers."""

    rows: float
    groups: float
    bytes: float
    elements: float


@dataclass(frozen=True)
class RepartitionWork:
    """A change of layout: `rows` tuples are decomposed to `finer`, then stacked to `groups`.

    `bytes` are those of a finer tuple, `stacked_bytes` those of a tuple of the result.
    """

    rows: float
    finer: float
    groups: float
    bytes: float
    stacked_bytes: float = 0.0


@dataclass(frozen=True)
class LoadWork:
    """The hand-over of `rows` tuples from memory in a layout of our choice."""

    rows: float
    bytes: float


@dataclass(frozen=True)
class CopyWork:
    """The copies that an engine makes of arrays before a kernel sees them."""

    bytes: float


Work = JoinWork | KernelWork | AggregateWork | RepartitionWork | LoadWork | CopyWork


def cost(work: Work, profile: Profile) -> float:
    """Price a piece of work.

    >>> cost(AggregateWork(rows=10, groups=4, bytes=8, elements=1), PAPER)
    144.0
    """
    match work:
        case JoinWork(rows, left, right, left_once, right_once):
            if profile.once:
                left = left / VECTOR_ROWS if left_once else left
                right = right / VECTOR_ROWS if right_once else right
            return rows * ((left + right) * profile.transfer + profile.fixed)
        case KernelWork(rows, flops, batched, made):
            each = flops * (profile.gemm if batched else profile.flop) + made * profile.write
            return rows * each
        case AggregateWork(rows, groups, size, elements):
            each = size * profile.transfer + elements * profile.flop + profile.fixed
            return max(rows - groups, 0.0) * each + groups * (profile.group + size * profile.state)
        case RepartitionWork(rows, finer, groups, size, stacked):
            made = max(finer - rows, 0.0) + max(finer - groups, 0.0)
            fresh = max(finer - rows, 0.0) * size + (groups * stacked if finer > groups else 0.0)
            return made * (size * profile.transfer + profile.fixed) + fresh * profile.write
        case CopyWork(size):
            return size * profile.write
        case LoadWork(rows, size):
            return 0.0 if profile.inputs_free else rows * (size * profile.transfer + profile.fixed)
