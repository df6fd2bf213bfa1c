"""The cost model: the cost of a join, an aggregation or a repartition of given size.

Sizes come in as `Work` records, made by `ucle.optimiser.sparse_einsum` from statistics; a `Profile`
holds the constants; `cost` is the whole model (sparse_einsum.txt, section 7.2). Nothing here
estimates a cardinality. Costs are comparable only under the same profile.

The scan of a stored input has no cost: every plan reads it in its stored layout, once for each use.
(A byte of LIST costs 0.2 ns more than one of an array from memory, 0.3 ns more from DuckDB's file
and 1 ns more from Parquet, for every plan alike.)
"""

from __future__ import annotations

import math

from ucle.foundation.dataclasses import dataclass
from ucle.plan.resources import DUCKDB_LIMITS


@dataclass(frozen=True)
class Profile:
    """Constants of the cost model: the price of a unit of each kind of work.

    Tuples and groups:

    - `scan`: a tuple that a join reads
    - `fixed`: a tuple that leaves a join, or enters an aggregation
    - `group`: a group that an aggregation makes; `state`: a byte of all of its states
    - `call`: a tuple that a kernel takes; `made`: a tensor that it makes for the tuple

    Bytes and places of arrays:

    - `transfer`: a byte that a kernel reads; `read`: the same, in addition, if the array is longer
      than `CACHED`, or lies anywhere in a hash table that is
    - `write`: a byte of a tensor that is made; `fresh`: the same, in addition, if a vector of such
      tensors takes more than `REUSED`
    - `position`: a place where a decomposition looks for an entry
    - `differs`: a place of an array in memory

    Floating-point operations:

    - `flop`: in a streaming kernel; `dot`: in an inner product; `gemm`: in a matrix product that
      is computed for a batch of rows
    - `sparse`: where entries of a compressed array point to rows of the other operand; `pair`:
      where they meet entries of another compressed array
    - `masked` and `compared`: the same two, at the places of a mask

    Entries of compressed arrays, and memory:

    - `listed`: an entry of a compressed array that points to a row of the other operand
    - `entry`: sorting an entry into a compressed array
    - `near`: waiting for an address that no core's own cache holds; `far`: for an address that no
      cache holds at all

    Statements:

    - `step`: an aggregation or a repartition, however small
    - `view`: a vertex in which key columns take part (without them, it is a call in the query of
      another vertex)
    - `statement`: a table of its own, where a view could be repeated

    `inputs_free` means that an input may be read in any layout at no cost. If `once` is
    true, an operand that is a single tuple moves once for each vector of rows, not for each row.
    `paper_estimates` selects the paper's size of an aggregation, which ``ucle.stats.textbook``
    corrects. `kernel_bytes` bounds the bytes that one kernel call may read and write. The cost of a
    kernel beyond `spread` is counted once more for each thread that idles because there are too few
    tuples.
    """

    name: str
    fixed: float
    transfer: float
    flop: float
    gemm: float
    dot: float = 0.0
    group: float = 0.0
    write: float = 0.0
    fresh: float = 0.0
    call: float = 0.0
    made: float = 0.0
    state: float = 0.0
    scan: float = 0.0
    read: float = 0.0
    position: float = 0.0
    differs: float = 0.0
    listed: float = 0.0
    sparse: float = 0.0
    pair: float = 0.0
    masked: float = 0.0
    compared: float = 0.0
    entry: float = 0.0
    near: float = 0.0
    far: float = 0.0
    step: float = 0.0
    view: float = 0.0
    statement: float = 0.0
    inputs_free: bool = False
    once: bool = False
    paper_estimates: bool = False
    kernel_bytes: float = math.inf
    spread: float = math.inf


CACHED = 1 << 20
"""Bytes up to which a kernel finds an array in the cache of its processor core.

It is not asked of the machine: plans, and the last digits of results, are the same on all.
"""

REUSED = 1 << 24
"""Bytes of the tensors of a vector of rows up to which the next vector reuses their memory."""

SHARED = 1 << 26
"""Bytes of an array up to which it fits the cache that cores share."""

SCATTERED = 2.0
"""The cost of reading scattered memory, as a multiple of reading it in sequence."""

POINTER = 16
"""Bytes of a tuple of a hash table beside its columns: its hash, and the next with that hash."""

POINTED = 1 << 23
"""Bytes of pointers up to which the cache that cores share keeps them beside what they point to."""

OPEN = 1 << 10
"""Groups that entries are appended to in any order, up to which their ends stay in a cache."""


PAPER = Profile(
    "paper",
    fixed=15.0,
    transfer=1.0,
    flop=1.0,
    gemm=1.0,
    dot=1.0,
    inputs_free=True,
    paper_estimates=True,
    kernel_bytes=2**24,
)
"""Weights of the paper's published prototype: a byte 1, a flop 1, a tuple 15; inputs are free.

The paper bounds the bytes of a kernel call and does not print the bound. Its Table 8 keeps matrices
of 1.6 MB whole, and Tables 7 and 8 break up ones of 20 and 30 MB "due to memory limitations".
"""

# Nanoseconds of processor time on a current x86 server: the least squares fit to 150 plans of graph
# convolution, attention and a chain of products on graphs, rounded.
ENGINE = Profile(
    "duckdb",
    fixed=14.0,  # a row out of a hash table, or into its group
    scan=8.5,  # a tuple that is read, and put into a hash table or looked up there
    group=37.0,  # a new entry in the table of groups
    read=0.1,  # of main memory, by one thread
    transfer=0.005,  # BLOBs travel as pointers; only kernels touch them, mostly in a shared cache
    write=0.27,  # fresh memory: the page is faulted in, written, and copied into DuckDB's result
    fresh=0.28,  # the same for a kernel's result, where its memory is not reused
    call=15.0,  # a kernel finds the arguments of a row, and checks them
    made=28.0,  # its tensor becomes a BLOB of DuckDB's
    state=1.6,  # the same for a state that is made in a thread's table, merged, and finished
    flop=0.04,  # multiply and add into a state that is read and written
    dot=0.32,  # an inner product reads twice as much, and each addition waits for the last
    gemm=0.018,  # blocked matrix product, 55 GFlop/s
    position=28.0,  # a row of a cross join, and the check if the array has an entry there
    differs=1.5,  # an entry of an array in memory is compared with the fill, and its place found
    listed=6.0,  # an entry of a compressed array is read, and its target located
    sparse=0.2,  # multiply and add its target, which lies anywhere
    pair=10.0,  # entries of two compressed arrays meet, and the result is put in order
    masked=0.12,  # multiply and add in an inner product of rows that lie anywhere
    compared=1.8,  # an entry of a list meets those of another one, of which a mask keeps some
    entry=45.0,  # an entry goes into its group, and is sorted into a compressed array there
    near=10.0,  # a row of a hash table, a state or a group, in the cache that cores share
    far=60.0,  # the same in main memory; rows of a join and states do not wait for each other
    step=1.1e6,  # planning and starting a pipeline
    view=0.5e6,  # planning a join and a projection
    statement=6e6,  # creating, filling, committing and dropping a small temporary table
    once=True,
    # the cost from which on DuckDB's threads and slices (`ucle.plan.split_small_scans`) pay off
    spread=5e6,
)

PROFILES = {profile.name: profile for profile in (PAPER, ENGINE)}


@dataclass(frozen=True)
class JoinWork:
    """A join of `rows` result tuples. `left_once` and `right_once` mark a side of one tuple.

    Both sides together have `read` tuples. `keyed` is True if there are key columns. The smaller
    side, which is put into a hash table, has `kept` tuples of `built` bytes together.
    """

    rows: float
    left_bytes: float
    right_bytes: float
    left_once: bool = False
    right_once: bool = False
    read: float = 0.0
    keyed: bool = True
    built: float = 0.0
    kept: float = 0.0


@dataclass(frozen=True)
class KernelWork:
    """A kernel on each of `rows` tuples; `called` is False where SQL computes by itself.

    `batched` marks a kernel that becomes a matrix product, `dot` an inner product. `made_bytes` is
    the size of the tensor that it makes for each row; 0 where it makes a number, or adds into the
    state of an aggregate. `long_bytes` is the total of all arrays that are too long for the cache,
    counted each time they are read. Up to `threads` rows are processed at once.
    """

    rows: float
    flops: float
    batched: bool = False
    dot: bool = False
    made_bytes: float = 0.0
    long_bytes: float = 0.0
    threads: int = 1
    called: bool = True


@dataclass(frozen=True)
class SparseWork:
    """A kernel that follows the entries of compressed arrays, on all `rows` together.

    Each of the `entries` is combined with its target in the other operand, which takes `flops`
    where that is dense. Where both are compressed, `pairs` of their entries meet. `long_bytes` are
    scattered reads of a dense operand that fits no cache.
    """

    entries: float
    flops: float
    pairs: float
    made_bytes: float
    rows: float
    long_bytes: float = 0.0
    threads: int = 1


@dataclass(frozen=True)
class MaskedWork:
    """A product of matrices at `places`: inner products of dense rows, or of lists.

    Dense rows take `flops`; lists take `compared` comparisons of entries.
    """

    places: float
    flops: float
    compared: float


@dataclass(frozen=True)
class AggregateWork:
    """An aggregation of `rows` tuples into `groups`; each carries `elements` numbers.

    The states take `states` bytes together.
    """

    rows: float
    groups: float
    bytes: float
    elements: float
    states: float = 0.0


@dataclass(frozen=True)
class RepartitionWork:
    """A change of layout: `rows` tuples are decomposed to `finer`, then stacked to `groups`.

    `bytes` are those of a finer tuple, `states` those of all states of the STACK. Finer tuples are
    found among `tried` positions.
    """

    rows: float
    finer: float
    groups: float
    bytes: float
    states: float = 0.0
    tried: float = 0.0


@dataclass(frozen=True)
class LoadWork:
    """The hand-over of `rows` tuples from memory, in a layout that the optimiser chooses.

    `moved` is True if the elements are in another order in memory, and are copied. Tuples are
    looked for among `tried` positions of a dense array; 0 if all of them are there.
    """

    rows: float
    bytes: float
    moved: bool = False
    tried: float = 0.0


@dataclass(frozen=True)
class CopyWork:
    """The copies that an engine makes of arrays before a kernel sees them."""

    bytes: float


@dataclass(frozen=True)
class RecodeWork:
    """A change of the lists of positions in arrays: `rows` tuples, `bytes` read and written.

    `sorted` entries are sorted by their places, or read from sorted lists. They lie in any order,
    and go into `groups`. What is done `in_place`, array by array, is a call in the query of its
    reader, and no step of its own.
    """

    rows: float
    bytes: float
    sorted: float
    groups: float = 0.0
    in_place: bool = False


Work = (
    JoinWork
    | KernelWork
    | SparseWork
    | MaskedWork
    | AggregateWork
    | RepartitionWork
    | RecodeWork
    | LoadWork
    | CopyWork
)


def cost(work: Work, profile: Profile) -> float:
    """Price a piece of work.

    >>> cost(AggregateWork(rows=10, groups=4, bytes=8, elements=1), PAPER)
    144.0
    """
    match work:
        case JoinWork(rows, left, right, left_once, right_once, read, keyed, built, kept):
            if profile.once:
                left = left / DUCKDB_LIMITS.vector_rows if left_once else left
                right = right / DUCKDB_LIMITS.vector_rows if right_once else right
            each = (left + right) * profile.transfer + profile.fixed
            each += _lookup(built, kept, left + right, profile)
            if built > CACHED and not _is_far(built, kept):
                each += built / kept * profile.read  # from the cache that cores share
            return rows * each + read * profile.scan + (profile.view if keyed else 0.0)
        case SparseWork(entries, flops, pairs, made_bytes, rows, long_bytes, threads):
            followed = entries * profile.listed + flops * profile.sparse + pairs * profile.pair
            total = followed + made_bytes * _byte(made_bytes / max(rows, 1.0), rows, profile)
            total += long_bytes * profile.read * SCATTERED
            return total + _waiting(total, rows, threads, profile)
        case MaskedWork(places, flops, compared):
            followed = places * profile.listed + flops * profile.masked
            return followed + compared * profile.compared
        case KernelWork(rows, flops, batched, dot, made_bytes, long_bytes, threads, called):
            flop = profile.gemm if batched else profile.dot if dot else profile.flop
            each = flops * flop + made_bytes * _byte(made_bytes, rows, profile)
            if called:
                each += profile.call + (profile.made if made_bytes else 0.0)
            total = rows * each + long_bytes * profile.read
            return total + _waiting(total, rows, threads, profile)
        case AggregateWork(rows, groups, size, elements, states):
            each = size * profile.transfer + elements * profile.flop + profile.fixed
            fresh = groups * profile.group + states * profile.state
            each += _lookup(states, groups, size, profile)
            return max(rows - groups, 0.0) * each + fresh + profile.step
        case RepartitionWork(rows, finer, groups, size, states, tried):
            decomposed, gathered = max(finer - rows, 0.0), max(finer - groups, 0.0)
            total = (decomposed + gathered) * (size * profile.transfer + profile.fixed)
            if decomposed:
                total += tried * profile.position + decomposed * size * profile.write + profile.step
            if gathered:
                total += groups * profile.group + states * profile.state + profile.step
            return total
        case CopyWork(size):
            return size * profile.write
        case RecodeWork(rows, size, in_order, groups, in_place):
            entry = profile.entry + (profile.far if groups > OPEN else 0.0)
            total = rows * profile.fixed + size * profile.write + in_order * entry
            return total + (0.0 if in_place else profile.step)
        case LoadWork(rows, size, moved, tried):
            if profile.inputs_free:
                return 0.0
            each = size * (profile.write if moved else profile.transfer)
            return rows * (each + profile.fixed) + tried * profile.differs


def _lookup(whole: float, count: float, size: float, profile: Profile) -> float:
    """Cost of reaching `size` bytes that lie anywhere among `count` tuples of so many bytes.

    While the pointers to the tuples stay in a cache, the next tuple is fetched before it is needed.
    """
    if _is_far(whole, count):
        return profile.far + size * profile.read * SCATTERED
    return profile.near if whole > CACHED else 0.0


def _is_far(whole: float, count: float) -> bool:
    """True if no cache holds tuples of so many bytes, nor the pointers to them."""
    return whole > SHARED and count * POINTER > POINTED


def _byte(made_bytes: float, rows: float, profile: Profile) -> float:
    """Cost of one output byte when tensors are made for a vector of rows at a time."""
    vector = made_bytes * min(rows, DUCKDB_LIMITS.vector_rows)
    return profile.write + (profile.fresh if vector > REUSED else 0.0)


def _waiting(total: float, rows: float, threads: int, profile: Profile) -> float:
    """Cost of the time for which threads idle because there are too few rows."""
    idle = threads / min(max(rows, 1.0), threads) - 1
    return max(total - profile.spread, 0.0) * idle
