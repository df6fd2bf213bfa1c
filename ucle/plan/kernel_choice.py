"""The choice of the kernel for the demoted part of a vertex.

This module alone maps (⊗, ⊕, pattern of demoted labels) to a kernel: a kernel of the field with a
name of its own if the pattern has one, otherwise the general contraction ``ein``. The result says
what to call; `ucle.sqlgen` writes the call in SQL.
"""

from __future__ import annotations

import math
import string
from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import lru_cache

from ucle.foundation.dataclasses import dataclass
from ucle.foundation.dtypes import DType, Scalar
from ucle.ir.fills import absorbed_sides
from ucle.ir.index_maps import IndexMap
from ucle.ir.layouts import RESULT, Decomposition, Layout
from ucle.ir.linear_systems import LinearSystem
from ucle.ir.masked_products import MaskedProduct
from ucle.ir.tensor_types import TensorType
from ucle.ir.vertices import Operand, Vertex
from ucle.operators import (
    MAX,
    MULT,
    SUM,
    Combine,
    Reduce,
)
from ucle.udf_kernels.kernel_limits import kernel_limits

Numbers = tuple[int, ...]

MOST_OF_LITTLE = 1 << 24
"""The most elements that an index map's kernel makes from fewer elements (``csrc/call.h``)."""


@dataclass(frozen=True)
class Tile:
    """A label of size `bound` in tiles of `tile` positions; the last tile may have fewer."""

    label: str
    bound: int
    tile: int


@dataclass(frozen=True)
class Ragged:
    """A size that is smaller in last tiles: `factor` times the positions of the tiles.

    `place` is its position among the sizes.
    """

    place: int
    factor: int
    tiles: tuple[Tile, ...]


@dataclass(frozen=True)
class ChosenKernel:
    """A call of one kernel on the values of a pair of tuples, or of one tuple.

    `name` is None if plain SQL does it: both sides are scalars, or the value passes unchanged.
    `swap` means that the right value comes first. `specification` and `sizes` are the leading
    arguments of the general kernels, whose longest term has `rank` labels; `inner` is the trailing
    argument of `mat_mat_mult` and `mat_solve`. `scalar` is True if the result is a number.
    `fusible` means that an aggregate exists that multiplies and adds in one pass. `batched` means
    that the call is a matrix product, or becomes one with the calls of other rows. The `ragged`
    sizes are those of tiles, of which the last may be smaller. A `compressed` kernel has a
    specification and no sizes; `finish` reduces its result. `absent` are the values of entries that
    its operands do not have, the last operand's last.
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
    """The kernel and its specification."""
    absent: tuple[Scalar, ...] = ()

    @property
    def by_itself(self) -> bool:
        """True if a call reads its operands alone, and not together with the calls of other rows.

        Products of one matrix with vectors are one product for all vectors of a chunk.
        """
        return self.inner is not None or self.specification is not None

    @property
    def exists(self) -> bool:
        """True if the general kernels support as many labels as the call has."""
        return self.rank == 0 or self.rank <= kernel_limits().labels


@dataclass(frozen=True)
class _Pattern:
    """A vertex as its kernel sees it: demoted labels by number, in order of appearance."""

    inputs: tuple[Numbers, ...]
    output: Numbers
    sizes: tuple[int, ...]
    """The sizes of the labels, by number."""
    combine: Combine | None
    reduce: Reduce | None
    boolean: bool
    aggregated: bool = False
    ragged: tuple[tuple[int, Tile], ...] = ()
    """The labels whose tiles have two lengths."""

    @classmethod
    def of(cls, vertex: Vertex, decomposition: Decomposition) -> _Pattern:
        """Return the pattern that a decomposition leaves inside the arrays."""
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


def choose_kernel(vertex: Vertex, decomposition: Decomposition) -> ChosenKernel:
    """Return the kernel of a vertex under a decomposition.

    Args:
        vertex: a unary or binary vertex.
        decomposition: the levels of its labels.

    >>> from ucle.ir.layouts import Label
    >>> from ucle.ir.tensor_types import NamedTensor, TensorType
    >>> from ucle.ir.vertices import Operand
    >>> from ucle.operators import MULT
    >>> i, j = Label("i", 3), Label("j", 4)
    >>> y = NamedTensor("y", TensorType((i,)))
    >>> v = Vertex(y, (Operand("A", (i, j)), Operand("x", (j,))), (i,), MULT, reduce=SUM)
    >>> [choose_kernel(v, v.decomposition({key})).name for key in "ij"]
    ['inner_prod', 'vec_sca_mult']
    """
    if vertex.index is not None:
        return _index_kernel(vertex, vertex.index, decomposition)
    if vertex.along is not None:
        inside = [x for x in vertex.names if x not in decomposition.promoted]
        within = not {*vertex.along.labels}.isdisjoint(inside)
        return ChosenKernel(vertex.along.kernel if within else None, scalar=not inside)
    if vertex.top is not None:
        if vertex.top.rank in decomposition.promoted:
            return ChosenKernel(None, scalar=True)
        stem = "top" if vertex.top.label in decomposition.promoted else "vec_top"
        return ChosenKernel(f"{stem}_{vertex.top.kernel}", scalar=False)
    if isinstance(vertex.pair, LinearSystem):
        return ChosenKernel(
            vertex.pair.kernel, scalar=False, inner=vertex.inputs[0].labels[-1].bound
        )
    if vertex.pair is not None:
        return ChosenKernel(vertex.pair.kernel, scalar=False)
    if decomposition.compressed:
        return compressed_kernel(vertex, decomposition)
    return _kernel(_Pattern.of(vertex, decomposition))


def _index_kernel(vertex: Vertex, index: IndexMap, decomposition: Decomposition) -> ChosenKernel:
    """Return the kernel that reads arrays by an index map; no name if they pass unchanged."""
    promoted = decomposition.promoted
    sides = vertex.inputs[0].names, vertex.names
    inside, result = ([x for x in side if x not in promoted] for side in sides)
    if index.leaves(inside, result) or _same_elements(vertex, index, promoted):
        return ChosenKernel(None, scalar=not result)
    if index.hit in result:
        return ChosenKernel("hits", scalar=False)
    return ChosenKernel("reindex", scalar=not result, rank=max(len(inside), len(result)))


def _same_elements(vertex: Vertex, index: IndexMap, promoted: frozenset[str]) -> bool:
    (operand,) = vertex.inputs
    if len(set(operand.names)) < len(operand.names):
        return False
    source = {x.name: 0 if x.name in promoted else x.bound for x in operand.labels}
    return index.same_elements(
        source, {x.name: x.bound for x in vertex.labels if x.name not in promoted}
    )


@lru_cache(maxsize=1 << 16)
def _kernel(pattern: _Pattern) -> ChosenKernel:
    """Return the kernel of a pattern; cached, as large programs repeat the same few patterns."""
    output = pattern.output
    if len(pattern.inputs) == 1:
        if pattern.inputs[0] == output:
            return ChosenKernel(None, scalar=not output)
        return _general(pattern, "ein1")
    if not any(pattern.inputs):
        return ChosenKernel(None, scalar=True)
    named = None if 0 in pattern.sizes else _find_named_kernel(pattern)
    if named is None or (output and pattern.aggregated and not named.fusible):
        return _general(pattern, "ein")  # the aggregates of ``ein`` make no tensor per row
    return named


def keyed_labels(vertex: Vertex, promoted: Collection[str] = ()) -> frozenset[str]:
    """Return the labels to promote if some are: no kernel works on arrays along others."""
    if vertex.index is not None:
        return vertex.index.find_key_labels(promoted, vertex.inputs[0].names)
    if vertex.along is not None:  # windows are over numbers
        every = not {*vertex.along.labels}.isdisjoint(promoted)
        return frozenset(vertex.names) if every else frozenset(promoted)
    if vertex.top is not None:  # kernels make whole lists of pairs
        apart = not {vertex.top.rank, vertex.top.part}.isdisjoint(promoted)
        return frozenset(vertex.label_names) if apart else frozenset(promoted)
    if vertex.pair is not None:  # arrays hold whole rows of features, forests and matrices
        return frozenset(promoted) - {*vertex.pair.labels}
    return frozenset(vertex.label_names) if needs_scalars(vertex) else frozenset(promoted)


def needs_scalars(vertex: Vertex) -> bool:
    """Return whether a vertex works on numbers only, because its ⊗ or ⊕ has SQL and no kernels."""
    combined = vertex.combine is not None and not vertex.combine.compiled
    return combined or (vertex.reduce is not None and not vertex.reduce.compiled)


def _find_named_kernel(pattern: _Pattern) -> ChosenKernel | None:
    assert pattern.combine is not None
    left, right, output = *pattern.inputs, pattern.output
    operator = pattern.combine
    fusible = operator.stem == MULT.stem and pattern.reduce in (None, SUM) and not pattern.boolean
    if (left == output and not right) or (right == output and not left):
        if not right or operator.commutative:
            return ChosenKernel(f"vec_sca_{operator.stem}", False, swap=not left, fusible=fusible)
        return ChosenKernel(f"sca_vec_{operator.stem}", False)
    if left == right == output:
        return ChosenKernel(f"vec_{operator.stem}", False, fusible=fusible)
    if fusible:
        return _product(pattern, left, right, False) or _product(pattern, right, left, True)
    return None


def _product(pattern: _Pattern, left: Numbers, right: Numbers, swap: bool) -> ChosenKernel | None:
    """Return a dot, outer or matrix product, if each group of labels is contiguous and in order."""
    output = pattern.output
    if len(set(left)) < len(left) or len(set(right)) < len(right):
        return None
    if left == right and not output:
        return ChosenKernel("inner_prod", True, swap=swap)
    shared = tuple(label for label in left if label in right)
    if not shared and output == left + right:
        return ChosenKernel("outer_prod", False, swap=swap, fusible=True)
    rows, columns = left[: len(left) - len(shared)], right[len(shared) :]
    fits = left == rows + shared and right == shared + columns and output == rows + columns
    if not fits or not shared or set(shared) & set(output):
        return None
    if rows and columns:
        if any(label in shared for label, _ in pattern.ragged):
            return None  # its inner size would change from row to row
        size = math.prod(pattern.sizes[label] for label in shared)
        return ChosenKernel("mat_mat_mult", False, swap, inner=size, fusible=True, batched=True)
    name = "mat_vec_mult" if rows else "vec_mat_mult"
    return ChosenKernel(name, False, swap=swap, fusible=True, batched=True)


def _general(pattern: _Pattern, stem: str) -> ChosenKernel:
    runs = _runs((*pattern.inputs, pattern.output))
    terms = [[runs[x] for x in term if x in runs] for term in (*pattern.inputs, pattern.output)]
    sizes = {
        run: math.prod(pattern.sizes[label] for label in run) for term in terms for run in term
    }
    # Terms with more labels than the kernels support are not called.
    symbols = dict(zip(sizes, string.ascii_letters, strict=False))
    *sides, result = ("".join(symbols.get(run, "?") for run in term) for term in terms)
    specification = f"{','.join(sides)}->{result}"
    # Truth values have no sum; if nothing is reduced, any reduction will do.
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
    return ChosenKernel(
        stem if output else f"{stem}_sca",
        not output,
        specification=prefix + specification,
        sizes=tuple(sizes.values()),
        fusible=bool(output),
        batched=words == [SUM.stem, MULT.stem] and _has_product(pattern),
        rank=max(map(len, terms)),
        ragged=tuple(ragged),
    )


def _has_product(pattern: _Pattern) -> bool:
    """Return whether a sum of products has a matrix product in it, as its kernel looks for one.

    Each operand has a label of the result that the other one lacks, and they share a summed one.
    Without that, an entry of either is read for few of the results.
    """
    if len(pattern.inputs) < 2:
        return False
    left, right, output = map(set, (*pattern.inputs, pattern.output))
    return bool((left & output) - right and (right & output) - left and (left & right) - output)


TRANSPOSED = "csr_t_mat"
"""The kernel of the transpose of a compressed matrix times a dense one."""

RUN_KERNELS = frozenset({"csr_mat", TRANSPOSED, "csr_reduce_rows", "csr_reduce_cols", "csr_reduce"})
"""Kernels that read a run of one value in a few steps; others look at each of its entries."""

IN_BOTH = "csr_csr_at"
"""The kernel of entries that two compressed arrays have at the same places."""

KERNELS_OF_RUNS = RUN_KERNELS | {"csr_scale_rows"}
"""Kernels that read runs as they are stored; others make entries of them in their own memory."""


def compressed_kernel(vertex: Vertex, decomposition: Decomposition) -> ChosenKernel:
    """Return the kernel of a vertex with a compressed tensor.

    `ucle.optimiser.tiled_and_compressed` offers such decompositions.
    """
    drivers = dict(decomposition.compressed)
    if len(vertex.inputs) == 1:
        if vertex.reduce is None:
            return ChosenKernel(None, scalar=False, compressed=True)
        name, reduce = _finish(vertex, vertex.inputs[0])
        name = "csr_reduce_cols" if is_transposed(vertex, decomposition) else name
        return ChosenKernel(name, not vertex.labels, specification=reduce, compressed=True)
    shared = {label.name for label in vertex.reduced}
    first = 0 if 0 in drivers else 1
    if 1 - first in drivers and drivers[0] != drivers[1]:
        # The first factor is the one whose columns are aggregated away.
        first = next(n for n in (0, 1) if drivers[n] in shared)
    own, other = vertex.inputs[first], vertex.inputs[1 - first]
    combine, swap = _combination(vertex, first), first == 1
    if is_transposed(vertex, decomposition):
        words = _semiring(vertex, combine)
        columns = math.prod(x.bound for x in vertex.labels if x.name in other.names)
        return ChosenKernel(
            TRANSPOSED, False, swap, words, inner=columns, fusible=not words, compressed=True
        )
    if other.names == (drivers[first],) and shared == {drivers[first]} and len(own.names) == 2:
        # A vector is a matrix of one column.
        words = _semiring(vertex, combine)
        return ChosenKernel("csr_mat", False, swap, words, inner=1, compressed=True)
    if set(other.names) <= set(own.names):
        places = {(drivers[first],): "csr_scale_cols", own.names: "csr_at"}
        both = 1 - first in drivers
        name = IN_BOTH if both else places.get(other.names, "csr_scale_rows")
        finish = None if vertex.reduce is None else _finish(vertex, own)
        scalar = not vertex.labels
        return ChosenKernel(name, scalar, swap, combine, compressed=True, finish=finish)
    words = _semiring(vertex, combine)
    if 1 - first in drivers:
        return ChosenKernel("csr_csr", False, swap, words, compressed=True)
    columns = math.prod(x.bound for x in vertex.labels if x.name in other.names)
    return ChosenKernel("csr_mat", False, swap, words, inner=columns, compressed=True)


def is_transposed(vertex: Vertex, decomposition: Decomposition) -> bool:
    """Return whether a matrix is compressed along an axis that the result has, as a dense one."""
    drivers = dict(decomposition.compressed)
    return RESULT not in drivers and not set(vertex.names).isdisjoint(drivers.values())


def at_absent_places(
    kernel: ChosenKernel, vertex: Vertex, left: TensorType, right: TensorType
) -> ChosenKernel:
    """Return the kernel of a vertex for the fills of its operands.

    If both are compressed and the fill of one alone absorbs what it meets, the result has entries
    where that operand has, and these meet the fill of the other where it has none. If neither fill
    absorbs, the result has entries where one of them has.

    Args:
        kernel: what `choose_kernel` returned.
        vertex: its vertex.
        left: type of the first operand.
        right: type of the second operand.
    """
    if kernel.name != IN_BOTH:
        return kernel
    absorbing, fills = absorbed_sides(vertex, left, right), (left.fill, right.fill)
    if all(absorbing):
        return kernel
    if not any(absorbing):
        return replace(kernel, name="csr_csr_union", absent=fills)
    first = absorbing.index(True)
    return replace(
        kernel,
        name="csr_csr_filled",
        swap=first == 1,
        specification=_combination(vertex, first),
        absent=(fills[1 - first],),
    )


def masked_kernel(product: MaskedProduct, right: Layout) -> ChosenKernel:
    """Return the kernel that computes a product of matrices only where a mask has entries.

    Args:
        product: the masked product.
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
    return ChosenKernel(
        name,
        not reader.labels,
        specification=_semiring(summing, summing.combine.stem),
        inner=inner,
        compressed=True,
        finish=finish,
    )


def _combination(vertex: Vertex, first: int) -> str:
    """Return the kernels' name for ⊗ on compressed arrays, whose compressed operand comes first."""
    assert vertex.combine is not None
    reverse = first == 1 and not vertex.combine.commutative
    return f"r{vertex.combine.stem}" if reverse else vertex.combine.stem


def _semiring(vertex: Vertex, combine: str) -> str:
    assert vertex.reduce is not None
    words = vertex.reduce.stem, combine
    return "" if words == (SUM.stem, MULT.stem) else ".".join(words)


def _finish(vertex: Vertex, matrix: Operand) -> tuple[str, str]:
    """Return the kernel that reduces a compressed array to a number, or to one for each row."""
    assert vertex.reduce is not None
    rows = bool(vertex.labels)
    assert not rows or set(vertex.names) < set(matrix.names)
    return ("csr_reduce_rows" if rows else "csr_reduce"), vertex.reduce.stem


def _runs(terms: Sequence[Numbers]) -> dict[int, Numbers]:
    """Return runs of labels that follow each other in all terms, by their first label.

    A run acts as one axis whose size is the product of its labels' sizes.

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
