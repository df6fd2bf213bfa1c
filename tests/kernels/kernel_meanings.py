"""The meaning of the kernels in NumPy: `MEANINGS`, the definitions that the tests go by.

A BLOB is a one-dimensional array of the element's type here, a compressed one is a `Csr`, and a
number is a Python or NumPy scalar. Aggregates take sequences of rows where an argument is gathered.
Nothing here is fast. Integers wrap around here, where the kernels raise an error.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import count
from typing import Any

import compressed_meanings as compressed
import numpy as np
from forest_meanings import forest, forest_pack
from kernel_table import KERNELS
from matrix_meanings import KERNEL_PARTS, mat_map, mat_parts, mat_solve
from multiway_meanings import multiway
from numpy.typing import NDArray
from operator_meanings import COMBINES, MAPS, ORDERED, REDUCES, Array, Function
from tape_meanings import run_tape

from ucle.operators import MAX, MEAN, MIN, MULT, RANDOM_BITS, SUM
from ucle.udf_kernels import ELEMENT_TYPES, ElementType, typed_name

_COMBINES = frozenset(name for combines in COMBINES.values() for name in combines)
_MAPS = frozenset(name for maps in MAPS.values() for name in maps)


def cast(to: str) -> Function:
    """The elements as those of another type, whatever theirs is."""

    def reference(v: Array) -> Array:
        target = ELEMENT_TYPES[to].dtype
        return (v.real if v.dtype.kind == "c" and target.kind in "fi" else v).astype(target)

    return reference


def inner_prod(a: Array, b: Array) -> Any:
    """The sum of products of two vectors."""
    return np.sum(a * b)


def outer_prod(a: Array, b: Array) -> Array:
    """Every entry of a times every entry of b."""
    return np.multiply.outer(a, b).ravel()


def mat_vec_mult(a: Array, x: Array) -> Array:
    """Matrix times vector; the vector's length gives the shape."""
    return a.reshape(len(a) // len(x), len(x)) @ x if len(x) else np.empty(0, a.dtype)


def vec_mat_mult(x: Array, a: Array) -> Array:
    """Vector times matrix; the vector's length gives the shape."""
    return x @ a.reshape(len(x), len(a) // len(x)) if len(x) else np.empty(0, a.dtype)


def mat_mat_mult(a: Array, b: Array, k: int) -> Array:
    """Matrix times matrix, of inner size k; without one, nothing tells the shape: empty."""
    return (a.reshape(-1, k) @ b.reshape(k, -1)).ravel() if k else np.empty(0, a.dtype)


def slice_(v: Array, offset: int, sizes: Sequence[int], strides: Sequence[int]) -> Array:
    """The strided sub-tensor, made dense."""
    return v[positions(offset, sizes, strides)]


def scatter(
    dtype: np.dtype[Any],
    xs: Sequence[Any],
    places: Sequence[int | None],
    others: Sequence[int | None],
    total: int,
    fill: Any,
    x: Any,
) -> Array:
    """Elements at their positions, x at others, fill elsewhere; None is no element, or nowhere."""
    out = np.full(total, fill, dtype)
    pairs = [*zip(xs, places, strict=True), *((x, place) for place in others)]
    for value, place in pairs:
        if value is not None and place is not None:
            out[place] = value
    return out


def reindex(v: Array, constants: Sequence[int], program: Sequence[int], outside: Any) -> Array:
    """Entries at affine functions of their places; a number outside, and where no clause holds.

    The program is what ``csrc/reindex.c`` says: labels and their sizes; axes, each with its size,
    stride and factors; clauses of comparisons, each with its sign and factors; digits, each with
    its divisor, whether it is the remainder, and factors; terms, of a function, a factor and a
    digit.
    """
    added = _of_digits(constants, program)
    numbers, constant, number = iter(program), iter(constants), count()
    shape = tuple(next(numbers) for _ in range(next(numbers)))
    grid = np.indices(shape, dtype=np.int64)

    def function() -> NDArray[np.int64]:
        start = np.full(shape, next(constant), np.int64) + added.get(next(number), 0)
        return sum((next(numbers) * grid[n] for n in range(len(shape))), start=start)

    offset, read = np.zeros(shape, np.int64), np.ones(shape, bool)
    for _ in range(next(numbers)):
        size, stride = next(numbers), next(numbers)
        at = function()
        read &= (at >= 0) & (at < size)
        offset += np.where(read, at, 0) * stride
    for _ in range(next(numbers)):
        met = np.zeros(shape, bool)
        for _ in range(next(numbers)):
            sign = (np.greater_equal, np.equal, np.not_equal)[next(numbers)]
            met |= sign(function(), 0)
        read &= met
    result = np.full(shape, outside, v.dtype)
    result[read] = v[offset[read]]
    return result.ravel()


def hits(position: Array, n: int, read: str) -> Array:
    """True at one position; nowhere if that is outside, which has to be allowed by no text."""
    (at,) = position
    assert not read or 0 <= at < n
    return np.arange(n) == at


def _of_digits(constants: Sequence[int], program: Sequence[int]) -> dict[int, NDArray[np.int64]]:
    """Return the amounts that digits add to the functions of an index map, by their numbers."""
    rank = program[0]
    shape, at = tuple(program[1 : rank + 1]), rank + 1
    grid = np.indices(shape, dtype=np.int64)
    axes, at = program[at], at + 1 + program[at] * (rank + 2)
    clauses, at = program[at], at + 1
    comparisons = 0
    for _ in range(clauses):
        comparisons, at = comparisons + program[at], at + 1 + program[at] * (rank + 1)
    added: dict[int, NDArray[np.int64]] = {}
    if at == len(program):
        return added
    first, digits, at = axes + comparisons, program[at], at + 1
    terms = list(program[at + digits * (rank + 2) + 1 :])
    for n in range(digits):
        by, remainder, *factors = program[at + n * (rank + 2) : at + (n + 1) * (rank + 2)]
        of = np.full(shape, constants[first + n], np.int64) + added.get(first + n, 0)
        of = sum((f * g for f, g in zip(factors, grid, strict=True)), start=of)
        own = of % by if remainder else of // by
        for function, factor, digit in zip(terms[::3], terms[1::3], terms[2::3], strict=True):
            if digit == n:
                added[function] = added.get(function, 0) + factor * own
    return added


def running(operation: np.ufunc, v: Array, length: int, inner: int) -> Array:
    """The aggregates up to each position of an axis, with so many entries inside of it."""
    planes = v.reshape(-1, length, inner) if v.size else v.reshape(0, 1, 1)
    return np.asarray(operation.accumulate(planes, axis=1, dtype=v.dtype)).ravel()


def positions(offset: int, sizes: Sequence[int], strides: Sequence[int]) -> NDArray[np.int64]:
    """The positions of a strided sub-tensor, row-major over its sizes."""
    grid = np.indices(tuple(sizes), dtype=np.int64)
    return (offset + np.tensordot(np.asarray(strides, dtype=np.int64), grid, axes=1)).ravel()


def count_not(v: Array, fill: Any) -> int:
    """Count the entries that differ from fill; NaN differs from everything but NaN."""
    return int(np.sum(~np.isnan(v) if np.isnan(fill) else v != v.dtype.type(fill)))


def count_null(v: Sequence[Any]) -> int:
    """Count the missing elements of a list."""
    return sum(x is None or (isinstance(x, dict) and None in x.values()) for x in v)


def all_finite(v: Array) -> bool:
    """True if no entry is NaN or infinite; integers and truth values never are."""
    return bool(np.all(np.isfinite(v)))


def ein(tag: str, spec: str, sizes: Sequence[int], *operands: Array) -> Array:
    """`reduce.combine ab,bc->ac`: broadcast over all labels, combine, reduce the others."""
    prefix, _, labels = spec.rpartition(" ")
    reduce, _, combine = prefix.partition(".")
    inputs, output = labels.split("->")
    names = "".join(dict.fromkeys(inputs.replace(",", "")))
    size = dict(zip(names, sizes, strict=True))
    spread = [
        _spread(operand, term, names, size)
        for operand, term in zip(operands, inputs.split(","), strict=True)
    ]
    joint = functools.reduce(COMBINES[tag][combine or MULT.stem], spread)
    joint = np.broadcast_to(joint, [size[name] for name in names])
    summed = tuple(i for i, name in enumerate(names) if name not in output)
    result = REDUCES[tag][reduce or SUM.stem].reduce(joint, axis=summed)
    remaining = [name for name in names if name in output]
    return np.asarray(np.transpose(result, [remaining.index(name) for name in output])).ravel()


def _spread(operand: Array, term: str, names: str, size: dict[str, int]) -> Array:
    """An operand with one axis per label of the whole spec, of size 1 where it lacks the label."""
    own = "".join(name for name in names if name in term)
    diagonal = np.einsum(f"{term}->{own}", operand.reshape([size[name] for name in term]))
    return np.asarray(diagonal).reshape([size[name] if name in term else 1 for name in names])


def ein_sca(tag: str, spec: str, sizes: Sequence[int], *operands: Array) -> Any:
    """A contraction without output labels."""
    return ein(tag, spec, sizes, *operands)[0]


def chain(tag: str, program: str, *operands: Array) -> Array:
    """Pointwise functions one after the other, as ``a b mult 1 add relu`` for a stack.

    Letters are operands, capital ones of one element; ``a:i64`` is one of another type than the
    kernel's, and a type alone is a cast. Other words are names of `MAPS` and `COMBINES`.
    """
    stack: list[tuple[str, Any]] = []
    for word in program.split(" "):
        name, _, kind = word.partition(":")
        if len(name) == 1 and name.isalpha():
            number, kind = ord(name.lower()) - ord("a"), kind or tag
            stack.append((kind, operands[number].view(ELEMENT_TYPES[kind].dtype)))
        elif word in _COMBINES:
            (kind, y), (other, x) = stack.pop(), stack.pop()
            kind = kind or other
            x, y = (_constant(z, kind) if isinstance(z, str) else z for z in (x, y))
            stack.append((kind, COMBINES[kind][word](x, y)))
        elif word in ELEMENT_TYPES:
            stack.append((word, cast(word)(stack.pop()[1])))
        elif word in _MAPS:
            kind, x = stack.pop()
            stack.append((kind, MAPS[kind][word](x)))
        else:
            stack.append(("", word))
    ((_, result),) = stack
    return np.asarray(result)


def _constant(word: str, tag: str) -> Array:
    """A number in the program of a chain; complex ones are written as ``re,im``."""
    dtype = ELEMENT_TYPES[tag].dtype
    if dtype.kind == "c":
        re, _, im = word.partition(",")
        return np.array([complex(float(re), float(im or "0"))], dtype)
    return np.array([word == "true" if dtype.kind == "b" else dtype.type(word)], dtype)


def chain_sca(tag: str, program: str, *operands: Array) -> Any:
    """A chain whose last word names a reduction of all entries."""
    steps, _, word = program.rpartition(" ")
    values = chain(tag, steps, *operands)
    dtype = ELEMENT_TYPES[tag].dtype
    if word == MEAN.name:
        return dtype.type(np.sum(values) / dtype.type(len(values)))
    return dtype.type(REDUCES[tag][word].reduce(values))


def reduced(operation: np.ufunc, function: Function) -> Callable[..., Array]:
    """The aggregate of a function: its results over the rows, reduced entry by entry."""

    def reference(*columns: Sequence[object]) -> Array:
        rows = [function(*row) for row in zip(*columns, strict=True)]
        return np.asarray(operation.reduce(np.array(rows), axis=0))

    return reference


def reduced_mat_mat(a: Sequence[Array], b: Sequence[Array], k: int) -> Array:
    """The sum of products of matrices that share their inner size."""
    return reduced(np.add, mat_mat_mult)(a, b, [k] * len(a))


def reduced_ein(operation: np.ufunc, tag: str) -> Callable[..., Array]:
    """The aggregate of contractions that share their spec and sizes."""

    def reference(spec: str, sizes: Sequence[int], *operands: Sequence[Array]) -> Array:
        return reduced(operation, functools.partial(ein, tag, spec, sizes))(*operands)

    return reference


def stack_sca(
    dtype: np.dtype[Any], xs: Sequence[Any], offsets: Sequence[int], total: int, fill: Any
) -> Array:
    """Numbers at their offsets, fill elsewhere."""
    return stack(dtype, [np.array([x]) for x in xs], offsets, total, fill)


def stack(
    dtype: np.dtype[Any], vs: Sequence[Array], offsets: Sequence[int], total: int, fill: Any
) -> Array:
    """Tensors at their offsets, fill elsewhere."""
    out = np.full(total, fill, dtype)
    for v, offset in zip(vs, offsets, strict=True):
        out[offset : offset + len(v)] = v
    return out


def stack_strided(
    dtype: np.dtype[Any],
    vs: Sequence[Array],
    offsets: Sequence[int],
    sizes: Sequence[int],
    strides: Sequence[int],
    total: int,
    fill: Any,
) -> Array:
    """Tensors scattered over strided places, fill elsewhere."""
    out = np.full(total, fill, dtype)
    for v, offset in zip(vs, offsets, strict=True):
        out[positions(offset, sizes, strides)] = v
    return out


def _first(largest: bool, x: Array, k: int) -> Array:
    """Where the first k entries of each column are; NaN is the greatest number."""
    if not largest:
        return np.argsort(x, axis=0, kind="stable")[:k]
    return len(x) - 1 - np.argsort(x[::-1], axis=0, kind="stable")[::-1][:k]


def vec_top(largest: bool, v: Array, length: int, inner: int, k: int) -> Array:
    """Pairs of the first k entries along the middle one of three axes, and their positions."""
    planes = v.reshape(-1, length, inner) if length * inner else v.reshape(0, length, inner)
    places = np.array([_first(largest, plane, k) for plane in planes], int)
    places = places.reshape(len(planes), k, inner)
    values = np.take_along_axis(planes, places, axis=1)
    return np.stack([values, places.astype(v.dtype)], axis=-1).transpose(0, 2, 1, 3).reshape(-1)


def top(
    dtype: np.dtype[Any], largest: bool, rows: Sequence[Any], positions: Sequence[int], k: int
) -> Array:
    """Pairs of the first k of each column of rows, and their positions."""
    order = np.argsort(positions, kind="stable")
    x, own = np.array(rows, dtype).reshape(len(rows), -1)[order], np.array(positions)[order]
    places = _first(largest, x, k)
    pairs = np.full((x.shape[1], k, 2), -k, dtype)
    pairs[:, : len(places), 0] = np.take_along_axis(x, places, axis=0).T
    pairs[:, : len(places), 1] = own[places].T
    return pairs.reshape(-1)


OF_COMPRESSED = (
    "csr_nnz", "csr_rows", "csr_cols", "csr_values", "csr_stored", "csr_with", "csr_prune",
    "csr_to_mat",
    "mat_to_csr", "csr_transpose", "csr_row", "stack_csr_rows",
)  # fmt: skip
BY_SPEC = (
    "csr_mat", "csr_t_mat", "csr_csr", "csr_csr_masked", "csr_csr_t_masked", "csr_sddmm",
    "csr_scale_rows", "csr_scale_cols", "csr_at", "csr_csr_at", "csr_csr_filled",
    "csr_csr_union",
    "csr_reduce_rows", "csr_reduce_cols", "csr_reduce",
)  # fmt: skip
"""Kernels of compressed tensors whose operations are those of their element type."""


def _of_tensors(element: ElementType) -> Iterator[tuple[str, Function]]:
    """Kernels that make tensors, read them, and put them at places in larger ones."""
    dtype = element.dtype
    as_tensor = partial(np.asarray, dtype=dtype)
    yield "pack", as_tensor
    yield "count_null", count_null
    yield "vec_to_list", as_tensor
    yield "full", lambda n, x: np.full(n, x, dtype)
    yield "sca_to_vec", lambda x: np.array([x], dtype)
    yield "element", lambda v, i: v[i]
    yield "slice", slice_
    yield "reindex", reindex
    yield "any_not", lambda v, fill: count_not(v, fill) > 0
    yield "count_not", count_not
    yield "all_finite", all_finite
    yield "stack_sca", partial(stack_sca, dtype)
    yield "stack", partial(stack, dtype)
    yield "stack_strided", partial(stack_strided, dtype)
    yield "stack_csr", partial(compressed.stack_csr, dtype)
    yield "stack_runs", partial(compressed.stack_runs, dtype)
    for name in OF_COMPRESSED:
        yield name, getattr(compressed, name)


def _of_operators(element: ElementType) -> Iterator[tuple[str, Function]]:
    """Kernels that apply operators of an element type, and contractions."""
    tag = element.tag
    for name, function in MAPS[tag].items():
        yield f"vec_{name}", function
    for name, function in COMBINES[tag].items():
        yield f"vec_{name}", function
        yield f"vec_sca_{name}", function
        if name in ORDERED:
            yield f"sca_vec_{name}", function
    for name, reduce in REDUCES[tag].items():
        yield f"cum{name}", partial(running, reduce)
        yield f"{name}_vec", reduced(reduce, np.copy)
        yield f"{name}_ein", reduced_ein(reduce, tag)
        yield f"{name}_ein1", reduced_ein(reduce, tag)
    for name in ("ein", "ein1"):
        yield name, partial(ein, tag)
        yield f"{name}_sca", partial(ein_sca, tag)
    for number in range(1, 5):
        yield f"chain{number}", partial(chain, tag)
        yield f"chain{number}_sca", partial(chain_sca, tag)
    for name in BY_SPEC:
        yield name, partial(getattr(compressed, name), tag)


def _products(element: ElementType) -> Iterator[tuple[str, Function]]:
    """Products of vectors and matrices, and their sums over rows."""
    scale = COMBINES[element.tag][MULT.stem]
    yield from (
        ("inner_prod", inner_prod),
        ("outer_prod", outer_prod),
        ("mat_vec_mult", mat_vec_mult),
        ("vec_mat_mult", vec_mat_mult),
        ("mat_mat_mult", mat_mat_mult),
        ("sum_vec_sca_mult", reduced(np.add, scale)),
        ("sum_vec_mult", reduced(np.add, scale)),
        ("sum_outer_prod", reduced(np.add, outer_prod)),
        ("sum_vec_mat_mult", reduced(np.add, vec_mat_mult)),
        ("sum_mat_vec_mult", reduced(np.add, mat_vec_mult)),
        ("sum_mat_mat_mult", reduced_mat_mat),
        ("sum_csr_t_mat", partial(compressed.sum_csr_t_mat, element.tag)),
    )


def _first_entries(element: ElementType) -> Iterator[tuple[str, Function]]:
    """The first entries in an order, of types that hold positions as well as values."""
    for name, largest in ((MAX.stem, True), (MIN.stem, False)):
        yield f"vec_top_{name}", partial(vec_top, largest)
        yield f"top_{name}", partial(top, element.dtype, largest)
        yield f"top_{name}_sca", partial(top, element.dtype, largest)


def _of_reals(element: ElementType) -> Iterator[tuple[str, Function]]:
    """Sums of products of any number of operands, and elements at positions of their own."""
    yield "scatter", partial(scatter, element.dtype)
    for name in ("multiway", "multiway_sca"):
        yield name, partial(multiway, element.tag)


def _of_positions(element: ElementType) -> Iterator[tuple[str, Function]]:
    """The entry at a position, in truth values."""
    del element
    yield "hits", hits


def _of_matrices(element: ElementType) -> Iterator[tuple[str, Function]]:
    """Functions of whole matrices."""
    del element
    for name, parts in KERNEL_PARTS.items():
        yield f"mat_{name}", partial(mat_map if len(parts) == 1 else mat_parts, parts)
    yield "mat_solve", mat_solve


_FAMILIES = {
    _of_tensors: ELEMENT_TYPES.keys(),
    _of_operators: ELEMENT_TYPES.keys(),
    _products: ELEMENT_TYPES.keys() - {"bool"},
    _first_entries: {"f64", "i64"},
    _of_matrices: {"f32", "f64"},
    _of_positions: {"i64"},
    _of_reals: {"bool", "i64", "f32", "f64"},
}
"""Families of kernels, and the tags of the types that have them."""


def _tape(program: str, *operands: bytes | None) -> list[bytes]:
    return run_tape(KERNELS, MEANINGS, program, operands)


def _meanings() -> Iterator[tuple[str, Function]]:
    yield "csr_empty", compressed.csr_empty
    yield RANDOM_BITS.stem, RANDOM_BITS.numpy
    yield "tape", _tape
    yield "forest_pack", forest_pack
    yield "forest", forest
    for tag, element in ELEMENT_TYPES.items():
        for family in (x for x, tags in _FAMILIES.items() if tag in tags):
            for name, function in family(element):
                yield typed_name(name, tag), function
        for to in ELEMENT_TYPES:
            yield f"vec_cast_{tag}_{to}", cast(to)


MEANINGS: Mapping[str, Function] = dict(_meanings())
"""The meaning of every kernel, by its name."""
