"""Which kernel does the demoted part of a vertex.

One place maps (⊗, ⊕, pattern of demoted labels) to a kernel: a kernel of the field with a name of
its own where the pattern has one, the general contraction ``ein`` for every other. The answer says
what to call; how the call is spelled in SQL is `ucle.sqlgen`'s business.
"""

from __future__ import annotations

import math
import string
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache

from ucle.foundation.dtypes import DType
from ucle.ir.index_maps import IndexMap
from ucle.ir.layouts import Decomposition, Layout
from ucle.ir.masked_products import MaskedProduct
from ucle.ir.vertices import Operand, Vertex
from ucle.operators import (
    MAX,
    MULT,
    SUM,
    Combine,
    Reduce,
)
from ucle.udf_kernels import kernel_limits

Numbers = tuple[int, ...]

MOST_OF_LITTLE = 1 << 24
"""Elements that the kernel of an index map makes at most of fewer (``csrc/call.h``)."""


@dataclass(frozen=True)
class Tile:
    """A label of size `bound` in tiles of `tile` positions, of which the last one has fewer."""

    label: str
    bound: int
    tile: int


@dataclass(frozen=True)
class Ragged:
    """A size that is shorter for last tiles: `factor` times the positions of the tiles.

    `place` is that among the sizes.
    """

    place: int
    factor: int
    tiles: tuple[Tile, ...]


@dataclass(frozen=True)
class Kernel:
    """A call of one kernel on the values of a pair of tuples, or of one tuple.

    `name` is None where plain SQL does it: both sides are scalars, or the value passes as it is.
    `swap` says that the right value comes first. `specification` and `sizes` are the leading
    arguments of the general kernels, whose longest term has `rank` labels, `inner` the trailing one
    of `mat_mat_mult`. `scalar` tells whether the result is a number. `fusible` says that an
    aggregate exists that multiplies and adds in one pass. `batched` says that it can become a
    matrix product. Of the `sizes` the `ragged` ones are those of tiles, which may be the last
    ones. A `compressed` kernel has a specification and no sizes; `finish` reduces what it makes.
    """

    name: str | None
    scalar: bool
    swap: bool = False
    specification: str | None = None
    sizes: tuple[int, ...] = ()
    inner: int | None = None
    fusible: bool = False
    batched: bool = False
    rank: int = 0
    ragged: tuple[Ragged, ...] = ()
    compressed: bool = False
    finish: tuple[str, str] | None = None
    """A kernel and its specification."""

    @property
    def exists(self) -> bool:
        """Whether the general kernels take so many labels."""
        return self.rank == 0 or self.rank <= kernel_limits().labels


@dataclass(frozen=True)
class _Pattern:
    """A vertex as its kernel sees it: demoted labels by number, in the order of appearance."""

    inputs: tuple[Numbers, ...]
    output: Numbers
    sizes: tuple[int, ...]
    """By number."""
    combine: Combine | None
    reduce: Reduce | None
    boolean: bool
    aggregated: bool = False
    ragged: tuple[tuple[int, Tile], ...] = ()
    """The labels of which arrays have tiles of two lengths."""

    @classmethod
    def of(cls, vertex: Vertex, decomposition: Decomposition) -> _Pattern:
        """The pattern that a decomposition leaves inside the arrays."""
        inside = decomposition.inside
        numbers: dict[str, int] = {}
        sizes, inputs, ragged = [], [], []
        for operand in vertex.inputs:
            own = []
            for label in operand.labels:
                if (name := label.name) in inside:
                    if name not in numbers:
                        numbers[name] = len(numbers)
                        tiled = name in decomposition.tiled
                        size = min(label.bound, decomposition.tile) if tiled else label.bound
                        sizes.append(size)
                        if tiled and size and label.bound % size:
                            ragged.append((numbers[name], Tile(name, label.bound, size)))
                    own.append(numbers[name])
            inputs.append(tuple(own))
        output = tuple(numbers[x.name] for x in vertex.labels if x.name in inside)
        return cls(
            tuple(inputs),
            output,
            tuple(sizes),
            vertex.combine,
            vertex.reduce,
            vertex.tensor.type.dtype is DType.BOOL,
            vertex.aggregates(decomposition),
            tuple(ragged),
        )


def choose_kernel(vertex: Vertex, decomposition: Decomposition) -> Kernel:
    """The kernel of a vertex under a decomposition.

    Args:
        vertex: unary or binary.
        decomposition: the levels of its labels.

    >>> from ucle.ir.layouts import Label
    >>> from ucle.ir.tensor_types import Tensor, TensorType
    >>> from ucle.ir.vertices import Operand
    >>> from ucle.operators import MULT
    >>> i, j = Label("i", 3), Label("j", 4)
    >>> y = Tensor("y", TensorType((i,)))
    >>> v = Vertex(y, (Operand("A", (i, j)), Operand("x", (j,))), (i,), MULT, reduce=SUM)
    >>> [choose_kernel(v, v.decomposition({key})).name for key in "ij"]
    ['inner_prod', 'vec_sca_mult']
    """
    if vertex.index is not None:
        return _index_kernel(vertex, vertex.index, decomposition)
    if vertex.along is not None:
        inside = [x for x in vertex.names if x not in decomposition.promoted]
        within = not {*vertex.along.labels}.isdisjoint(inside)
        return Kernel(vertex.along.kernel if within else None, scalar=not inside)
    if vertex.top is not None:
        if vertex.top.rank in decomposition.promoted:
            return Kernel(None, scalar=True)
        stem = "top" if vertex.top.label in decomposition.promoted else "vec_top"
        return Kernel(f"{stem}_{vertex.top.kernel}", scalar=False)
    if decomposition.compressed:
        return compressed_kernel(vertex, decomposition)
    return _kernel(_Pattern.of(vertex, decomposition))


def _index_kernel(vertex: Vertex, index: IndexMap, decomposition: Decomposition) -> Kernel:
    """The kernel that reads arrays by an index map; none where they pass as they are."""
    promoted = decomposition.promoted
    sides = vertex.inputs[0].names, vertex.names
    inside, result = ([x for x in side if x not in promoted] for side in sides)
    if index.leaves(inside, result) or _same_elements(vertex, index, promoted):
        return Kernel(None, scalar=not result)
    return Kernel("reindex", scalar=not result, rank=max(len(inside), len(result)))


def _same_elements(vertex: Vertex, index: IndexMap, promoted: frozenset[str]) -> bool:
    (operand,) = vertex.inputs
    if len(set(operand.names)) < len(operand.names):
        return False
    source = {x.name: 0 if x.name in promoted else x.bound for x in operand.labels}
    return index.same_elements(
        source, {x.name: x.bound for x in vertex.labels if x.name not in promoted}
    )


@lru_cache(maxsize=1 << 16)
def _kernel(pattern: _Pattern) -> Kernel:
    """The kernel of a pattern; large programs have the same few very often."""
    output = pattern.output
    if len(pattern.inputs) == 1:
        if pattern.inputs[0] == output:
            return Kernel(None, scalar=not output)
        return _general(pattern, "ein1")
    if not any(pattern.inputs):
        return Kernel(None, scalar=True)
    named = None if 0 in pattern.sizes else _named(pattern)
    if named is None or (output and pattern.aggregated and not named.fusible):
        return _general(pattern, "ein")  # its aggregates make no tensor for each row
    return named


def keyed_labels(vertex: Vertex, promoted: Collection[str] = ()) -> frozenset[str]:
    """The labels that have to be promoted where some are: no kernel works on arrays along them."""
    if vertex.index is not None:
        return vertex.index.keyed(promoted, vertex.inputs[0].names)
    if vertex.along is not None:  # windows are over numbers
        every = not {*vertex.along.labels}.isdisjoint(promoted)
        return frozenset(vertex.names) if every else frozenset(promoted)
    if vertex.top is not None:  # kernels make whole lists of pairs
        apart = not {vertex.top.rank, vertex.top.part}.isdisjoint(promoted)
        return frozenset(vertex.label_names) if apart else frozenset(promoted)
    return frozenset(vertex.label_names) if needs_scalars(vertex) else frozenset(promoted)


def needs_scalars(vertex: Vertex) -> bool:
    """Whether a vertex works on numbers only: its ⊗ or ⊕ has SQL and no kernels."""
    combined = vertex.combine is not None and not vertex.combine.compiled
    return combined or (vertex.reduce is not None and not vertex.reduce.compiled)


def _named(pattern: _Pattern) -> Kernel | None:
    assert pattern.combine is not None
    left, right, output = *pattern.inputs, pattern.output
    operator = pattern.combine
    fusible = operator.stem == MULT.stem and pattern.reduce in (None, SUM) and not pattern.boolean
    if (left == output and not right) or (right == output and not left):
        if not right or operator.commutative:
            return Kernel(f"vec_sca_{operator.stem}", False, swap=not left, fusible=fusible)
        return Kernel(f"sca_vec_{operator.stem}", False)
    if left == right == output:
        return Kernel(f"vec_{operator.stem}", False, fusible=fusible)
    if fusible:
        return _product(pattern, left, right, False) or _product(pattern, right, left, True)
    return None


def _product(pattern: _Pattern, left: Numbers, right: Numbers, swap: bool) -> Kernel | None:
    """Dot, outer and matrix products, where each group of labels lies together and in order."""
    output = pattern.output
    if len(set(left)) < len(left) or len(set(right)) < len(right):
        return None
    if left == right and not output:
        return Kernel("inner_prod", True, swap=swap)
    shared = tuple(label for label in left if label in right)
    if not shared and output == left + right:
        return Kernel("outer_prod", False, swap=swap, fusible=True)
    rows, columns = left[: len(left) - len(shared)], right[len(shared) :]
    fits = left == rows + shared and right == shared + columns and output == rows + columns
    if not fits or not shared or set(shared) & set(output):
        return None
    if rows and columns:
        if any(label in shared for label, _ in pattern.ragged):
            return None  # its inner size would change from row to row
        size = math.prod(pattern.sizes[label] for label in shared)
        return Kernel("mat_mat_mult", False, swap, inner=size, fusible=True, batched=True)
    name = "mat_vec_mult" if rows else "vec_mat_mult"
    return Kernel(name, False, swap=swap, fusible=True, batched=True)


def _general(pattern: _Pattern, stem: str) -> Kernel:
    runs = _runs((*pattern.inputs, pattern.output))
    terms = [[runs[x] for x in term if x in runs] for term in (*pattern.inputs, pattern.output)]
    sizes = {
        run: math.prod(pattern.sizes[label] for label in run) for term in terms for run in term
    }
    # Those of more than the kernels take are not called.
    symbols = dict(zip(sizes, string.ascii_letters, strict=False))
    *sides, result = ("".join(symbols.get(run, "?") for run in term) for term in terms)
    specification = f"{','.join(sides)}->{result}"
    # Of yes and no there is no sum; where nothing is reduced, any reduction will do.
    default = MAX.stem if pattern.boolean else SUM.stem
    reduce = pattern.reduce.stem if pattern.reduce else default
    words = [reduce, *([pattern.combine.stem] if pattern.combine else [])]
    plain = words in ([SUM.stem], [SUM.stem, MULT.stem])
    prefix = "" if plain else ".".join(words) + " "
    output, ragged = pattern.output, []
    for place, run in enumerate(sizes):
        tiles = tuple(tile for label, tile in pattern.ragged if label in run)
        if tiles:
            factor = sizes[run] // math.prod(tile.tile for tile in tiles)
            ragged.append(Ragged(place, factor, tiles))
    return Kernel(
        stem if output else f"{stem}_sca",
        not output,
        specification=prefix + specification,
        sizes=tuple(sizes.values()),
        fusible=bool(output),
        batched=words == [SUM.stem, MULT.stem],
        rank=max(map(len, terms)),
        ragged=tuple(ragged),
    )


def compressed_kernel(vertex: Vertex, decomposition: Decomposition) -> Kernel:
    """The kernel of a vertex with a compressed tensor (`ucle.optimiser.tiled_and_compressed`)."""
    drivers = dict(decomposition.compressed)
    if len(vertex.inputs) == 1:
        if vertex.reduce is None:
            return Kernel(None, scalar=False, compressed=True)
        name, reduce = _finish(vertex, vertex.inputs[0])
        return Kernel(name, not vertex.labels, specification=reduce, compressed=True)
    shared = {label.name for label in vertex.reduced}
    first = 0 if 0 in drivers else 1
    if 1 - first in drivers and drivers[0] != drivers[1]:
        # The one whose columns are aggregated away is the first factor.
        first = next(n for n in (0, 1) if drivers[n] in shared)
    own, other = vertex.inputs[first], vertex.inputs[1 - first]
    combine, swap = _combination(vertex, first), first == 1
    if set(other.names) <= set(own.names):
        name = {
            (drivers[first],): "csr_scale_cols",
            own.names: "csr_csr_at" if 1 - first in drivers else "csr_at",
        }.get(other.names, "csr_scale_rows")
        finish = None if vertex.reduce is None else _finish(vertex, own)
        scalar = not vertex.labels
        return Kernel(name, scalar, swap, combine, compressed=True, finish=finish)
    words = _semiring(vertex, combine)
    if 1 - first in drivers:
        return Kernel("csr_csr", False, swap, words, compressed=True)
    columns = math.prod(x.bound for x in vertex.labels if x.name in other.names)
    return Kernel("csr_mat", False, swap, words, inner=columns, compressed=True)


def masked_kernel(product: MaskedProduct, right: Layout) -> Kernel:
    """The kernel that computes a product of matrices only where a mask has entries.

    Args:
        product: which product.
        right: the layout of its second factor.
    """
    name, inner = "csr_sddmm", None
    if right.compressed is None:
        inner = product.inner.bound
    else:
        listed = product.right.operand.labels[right.compressed]
        name = "csr_csr_t_masked" if listed == product.inner else "csr_csr_masked"
    reader = product.reader
    summing = reader if product.masks_a_factor else product.producer
    assert summing.combine is not None
    finish = None
    if {product.row, product.column} - set(reader.labels):
        finish = _finish(reader, product.mask.operand)
    return Kernel(
        name,
        not reader.labels,
        specification=_semiring(summing, summing.combine.stem),
        inner=inner,
        compressed=True,
        finish=finish,
    )


def _combination(vertex: Vertex, first: int) -> str:
    """⊗ as kernels of compressed arrays name it, which get the compressed operand first."""
    assert vertex.combine is not None
    reverse = first == 1 and not vertex.combine.commutative
    return f"r{vertex.combine.stem}" if reverse else vertex.combine.stem


def _semiring(vertex: Vertex, combine: str) -> str:
    assert vertex.reduce is not None
    words = vertex.reduce.stem, combine
    return "" if words == (SUM.stem, MULT.stem) else ".".join(words)


def _finish(vertex: Vertex, matrix: Operand) -> tuple[str, str]:
    """The kernel that reduces a compressed array: to a number, or one for each row."""
    assert vertex.reduce is not None
    rows = bool(vertex.labels)
    assert not rows or set(vertex.names) < set(matrix.names)
    return ("csr_reduce_rows" if rows else "csr_reduce"), vertex.reduce.stem


def _runs(terms: Sequence[Numbers]) -> dict[int, Numbers]:
    """Labels that follow each other wherever they stand, by the first of each run.

    A run is one axis, as long as all its labels together.

    >>> _runs([(0, 1, 2), (2,), (0, 1)])
    {0: (0, 1), 2: (2,)}
    """
    after: dict[int, set[int | None]] = {}
    before: dict[int, set[int | None]] = {}
    for term in terms:
        for label, following in zip(term, (*term, None)[1:], strict=True):
            after.setdefault(label, set()).add(following)
        for label, previous in zip(term, (None, *term)[:-1], strict=True):
            before.setdefault(label, set()).add(previous)
    joined = {
        label: following
        for label, (following, *others) in ((x, tuple(after[x])) for x in after)
        if not others and following is not None and before[following] == {label}
    }
    runs: dict[int, Numbers] = {}
    for first in sorted(after.keys() - joined.values()):
        run = [first]
        while run[-1] in joined:
            run.append(joined[run[-1]])
        runs[first] = tuple(run)
    return runs
