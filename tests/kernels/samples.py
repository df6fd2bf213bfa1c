"""Arguments on which the kernels are compared with their references.

Values are such that every result is defined: integers stay far from overflow, exponents of integers
are positive. What is not defined, test_robustness.py asks for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from compressed_samples import TOO_LARGE, compressed_groups, compressed_rows
from forest_meanings import forest_pack
from kernel_table import KERNELS, base
from matrix_meanings import KERNEL_PARTS
from operator_meanings import COMBINES, MAPS, REDUCES, Array

from ucle.ir.axis_functions import MATRIX_FUNCTIONS
from ucle.testing.random_forests import random_forest, random_rows
from ucle.udf_kernels import ELEMENT_TYPES

LENGTHS = (0, 1, 2, 3, 5, 8, 17, 64, 131)
SHAPES = (
    (1, 1, 1), (2, 3, 4), (1, 7, 2), (5, 1, 3), (17, 19, 23), (16, 32, 16), (40, 50, 300),
    (0, 3, 2),
)  # fmt: skip
PLACES = (
    (0, [2, 3], [3, 1]),
    (5, [3], [2]),
    (4, [2, 2], [-1, 2]),
    (1, [], []),
    (0, [0, 2], [9, 9]),
    (11, [2, 1, 3], [-6, 5, -1]),
)
_LARGE = 1e30
SPECIAL = {
    "f": (np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 0.5, 2.5, -3.5, _LARGE, -1 / _LARGE),
    "i": (0, 1, -1, 2**62, -(2**62), 2**63 - 1, -(2**63)),
    "b": (False, True),
    "c": (0j, 1j, -1 + 0j, 3 - 4j, complex(np.nan, 1), complex(2, np.inf), -_LARGE * 1j),
}
OVERFLOWING = (
    "mult", "sparse_mult", "add", "sub", "pow", "abs", "neg", "square", "sum", "prod",
    "floor_divide", "bitwise_left_shift",
)  # fmt: skip
"""Operations of integers that the special ones are too large for."""

SPECS: tuple[tuple[str, list[int]], ...] = (
    ("ij,jk->ik", [2, 3, 4]),
    ("ij,jk->ik", [17, 19, 23]),
    ("ij,jk->ki", [32, 16, 24]),
    ("ji,jk->ik", [19, 20, 21]),
    ("ij,kj->ik", [20, 19, 21]),
    ("bij,bjk->bik", [3, 16, 17, 18]),
    ("bij,bjk->ik", [3, 16, 17, 18]),
    ("ibj,jkb->kbi", [16, 3, 17, 18]),
    ("ijk,klj->il", [5, 16, 17, 18]),
    ("ii,ij->j", [4, 5]),
    ("iij,jj->i", [3, 4]),
    ("ij,ij->", [6, 7]),
    ("i,->i", [3]),
    (",->", []),
    ("i,j->ij", [4, 9]),
    ("i,j->", [4, 9]),
    ("aBc,cBd->dBa", [2, 3, 4, 5]),
    ("ab,cd->dbca", [2, 3, 4, 5]),
    ("ij,jk->ik", [1, 300, 1]),
    ("ij,jk->ik", [3, 0, 2]),
    ("ij,jk->ik", [0, 3, 2]),
    ("abcdefgh,hgfedcba->ab", [2, 1, 2, 3, 1, 2, 2, 2]),
)
SPECS1: tuple[tuple[str, list[int]], ...] = (
    ("ij->ji", [5, 7]),
    ("ij->i", [5, 300]),
    ("ij->j", [300, 5]),
    ("ii->i", [6]),
    ("ii->", [6]),
    ("iji->j", [4, 3]),
    ("abcd->dbca", [2, 3, 4, 5]),
    ("->", []),
    ("i->", [1]),
    ("ij->i", [2, 0]),
    ("abc->", [3, 4, 5]),
)


def operand_lengths(spec: str, sizes: list[int]) -> list[int]:
    terms = spec.rpartition(" ")[2].split("->")[0].split(",")
    names = dict.fromkeys("".join(terms))
    size = dict(zip(names, sizes, strict=True))
    return [int(np.prod([size[name] for name in term], dtype=int)) for term in terms]


def has_empty_reduction(spec: str, sizes: list[int]) -> bool:
    """True if min or max would have to reduce nothing."""
    inputs, output = spec.split("->")
    size = dict(zip(dict.fromkeys(inputs.replace(",", "")), sizes, strict=True))
    return 0 in sizes and all(size[name] for name in output)


def tensor(rng: np.random.Generator, tag: str, length: int, special: bool = False) -> Array:
    """Small numbers, half of them special ones if asked for."""
    dtype = ELEMENT_TYPES[tag].dtype
    match dtype.kind:
        case "f":
            values = rng.normal(size=length)
        case "i":
            values = rng.integers(-9, 10, size=length)
        case "b":
            values = rng.random(length) < 0.5
        case _:
            values = rng.normal(size=length) + 1j * rng.normal(size=length)
    if special and length:
        choice = rng.choice(np.array(SPECIAL[dtype.kind], values.dtype), size=length)
        values = np.where(rng.random(length) < 0.5, choice, values)
    return np.asarray(values).astype(dtype)


def number(rng: np.random.Generator, tag: str) -> Any:
    return tensor(rng, tag, 1)[0].item()


def factors(rng: np.random.Generator, tag: str, length: int, exponents: bool = False) -> Array:
    """Numbers whose products stay small, and which are often equal."""
    dtype = ELEMENT_TYPES[tag].dtype
    choices = {
        "f": (0.9, 1.0, 1.1),
        "i": (0, 1, 2) if exponents else (-1, 1),
        "b": (False, True),
        "c": (1, 1j, 0.6 + 0.8j),
    }
    return rng.choice(np.array(choices[dtype.kind]), size=length).astype(dtype)


def ein_row(rng: np.random.Generator, tag: str, spec: str, sizes: list[int]) -> list[Any]:
    operands = [
        factors(rng, tag, length, exponents=i > 0 and ".pow" in spec)
        for i, length in enumerate(operand_lengths(spec, sizes))
    ]
    return [spec, sizes, *operands]


TAME = {
    "f": ["mult", "add", "sub", "least", "greatest", "relu", "abs", "neg", "tanh", "sigmoid"],
    "i": ["mult", "add", "sub", "least", "greatest", "relu", "abs", "neg", "sign", "not"],
    "b": ["mult", "add", "least", "greatest", "less", "equal", "when", "unless", "not"],
    "c": ["mult", "add", "sub", "neg", "conj", "real", "abs"],
}
"""Words of chains, by family, whose results are as exact as their arguments."""
CONSTANTS = {"f": ["1", "-0.5", "1e-3"], "i": ["2", "-1"], "b": ["true"], "c": ["1,-2", "0.5"]}


def chain_row(rng: np.random.Generator, name: str, length: int, exact: bool = True) -> list[Any]:
    """A random chain of random operands, of which each is read at least once.

    Args:
        rng: draws it.
        name: of the kernel.
        length: of the tensors.
        exact: whether words are tame and values small; else there is every word, and anything.
    """
    tag, count = KERNELS[name].tag, len(KERNELS[name].parameters) - 1
    tags = list(ELEMENT_TYPES)
    others = [tag, "bool"] if exact else tags
    kinds = [tag, *(str(rng.choice(others)) for _ in range(count - 1))]
    singles = [n > 0 and rng.random() < 0.25 for n in range(count)]
    operands = [
        factors(rng, kind, 1 if single else length)
        if exact
        else tensor(rng, kind, 1 if single else length, special=True)
        for kind, single in zip(kinds, singles, strict=True)
    ]
    words: list[str] = []
    for number, (kind, single) in enumerate(zip(kinds, singles, strict=True)):
        words.append(f"{chr((65 if single else 97) + number)}:{kind}".removesuffix(f":{tag}"))
        for _ in range(rng.integers(3)):
            words += _chain_step(rng, kind, exact)
        if kind != tag:
            words.append(tag)
        if number:
            words.append(_combination(rng, tag, exact))
    for _ in range(rng.integers(3)):
        words += _chain_step(rng, tag, exact)
    if "_sca" in name:
        grows = exact and length > 8  # a product does
        words.append(str(rng.choice([x for x in REDUCES[tag] if not grows or x != "prod"])))
    return [" ".join(words), *(x.view("u1").copy() for x in operands)]


def _words(tag: str, exact: bool, names: dict[str, Any]) -> list[str]:
    """The words of a type among some, tame ones if asked for."""
    tame = TAME[ELEMENT_TYPES[tag].dtype.kind]
    return [name for name in names if not exact or name in tame]


def _combination(rng: np.random.Generator, tag: str, exact: bool) -> str:
    return str(rng.choice(_words(tag, exact, COMBINES[tag])))


def _chain_step(rng: np.random.Generator, tag: str, exact: bool) -> list[str]:
    """A function of what lies on the stack, or a combination with a constant on its right."""
    if rng.random() < 0.5:
        return [str(rng.choice(_words(tag, exact, MAPS[tag])))]
    constant = str(rng.choice(CONSTANTS[ELEMENT_TYPES[tag].dtype.kind]))
    return [constant, _combination(rng, tag, exact)]


INDEX_MAPS: tuple[tuple[list[int], list[int]], ...] = (
    ([1], [1, 11, 1, 12, 1, 1, 0]),  # v[i+1]
    ([-2], [1, 12, 1, 12, 1, 1, 0]),  # v[~(i-2)]
    ([11], [1, 14, 1, 12, 1, -1, 0]),  # v[~(11-i)]
    ([1], [1, 9, 1, 12, 1, 2, 0]),  # v[~(2*i+1)]
    ([0], [2, 10, 3, 1, 12, 1, 1, 1, 0]),  # v[i+w]
    ([0, 0, -1], [2, 3, 4, 2, 3, 4, 1, 0, 4, 1, 0, 1, 1, 1, 0, -1, 1]),  # i < j
    ([0, 0, 0], [2, 4, 3, 2, 3, 4, 0, 1, 4, 1, 1, 0, 1, 1, 2, -1, 1]),  # transposed, i != j
    ([0, 0, 0, 0], [2, 12, 12, 1, 12, 1, 1, 0, 2, 1, 1, 1, -1, 2, 0, -2, 1, 2, 1, 1]),
    ([5], [0, 1, 12, 1, 0]),  # v[5]
    ([12], [0, 1, 12, 1, 0]),  # v[~12]
    ([], [1, 5, 0, 0]),  # v[0], five times
    ([0], [1, 0, 1, 12, 1, 1, 0]),  # nothing
    ([0], [1, 3, 1, 0, 1, 1, 0]),  # of an axis of nothing
    # v[i//4, i%4], of three rows, and with one more read outside
    ([0, 0, 0, 0], [1, 12, 2, 3, 4, 0, 4, 1, 0, 0, 2, 4, 0, 1, 4, 1, 1, 2, 0, 1, 0, 1, 1, 1]),
    ([0, 1, 0, 0], [1, 15, 2, 3, 4, 0, 4, 1, 0, 0, 2, 4, 0, 1, 4, 1, 1, 2, 0, 1, 0, 1, 1, 1]),
    # v[~((i-3)//2 + i)] where (i + 1) % 3 != 1
    ([0, -1, -3, 1], [1, 9, 1, 12, 1, 1, 1, 1, 2, 0, 2, 2, 0, 1, 3, 1, 1, 2, 0, 1, 0, 1, 1, 1]),
    # v[(i//2)%3]
    ([0, 0, 0], [1, 9, 1, 12, 1, 0, 0, 2, 2, 0, 1, 3, 1, 0, 2, 2, 1, 0, 0, 1, 1]),
)
"""Constants and programs of index maps over twelve entries."""

HALF = 1 << 62
"""A number from which on the kernel tests each position by itself."""


def index_maps(rng: np.random.Generator, count: int) -> Iterator[tuple[list[int], list[int]]]:
    """Index maps of one or two axes over twelve entries, by functions and conditions of chance."""
    for number_ in range(count):
        rank = int(rng.integers(1, 4))
        axes = [(12, 1)] if rng.random() < 0.5 else [(3, 4), (4, 1)]
        signs = [int(rng.integers(0, 2 + number_ % 2)) for _ in range(int(rng.integers(0, 3)))]
        constants = rng.integers(-6, 15, len(axes) + len(signs)).tolist()
        if number_ % 8 == 7:
            constants[-1] = int(rng.choice((-HALF - 9, HALF + 9)))
        factors = rng.integers(-2, 3, (len(constants), rank)).tolist()
        program = [rank, *rng.integers(1, 6, rank).tolist(), len(axes)]
        for axis, own in zip(axes, factors, strict=False):
            program += [*axis, *own]
        program.append(len(signs))
        for sign, own in zip(signs, factors[len(axes) :], strict=True):
            program += [1, sign, *own]
        yield constants, program


def ein_specs(
    specs: Sequence[tuple[str, list[int]]], prefixes: Sequence[str]
) -> Iterator[tuple[str, list[int]]]:
    """Small specs with every prefix; a large one with a few, different from its neighbours'."""
    for i, (spec, sizes) in enumerate(specs):
        small = np.prod(sizes) < 500
        for prefix in prefixes if small else prefixes[i % 8 :: 8]:
            if not (has_empty_reduction(spec, sizes) and prefix[:3] in ("min", "max")):
                yield prefix + spec, sizes


OF_MATRICES = tuple(f"mat_{name}" for name in KERNEL_PARTS)
"""Functions of whole matrices."""


def scalar_rows(name: str, rng: np.random.Generator) -> Iterator[list[Any]]:
    """Arguments for one scalar kernel, odd sizes and special values among them."""
    tag, plain = KERNELS[name].tag, base(name)
    if "csr" in plain:
        yield from compressed_rows(name, rng)
    elif plain.startswith("chain"):
        for length in LENGTHS[1:] if "_sca" in plain else (*LENGTHS, 513, 1300):
            yield chain_row(rng, name, length)
    elif plain.startswith("ein"):
        unary, scalar = plain.startswith("ein1"), plain.endswith("_sca")
        prefixes = [f"{r} " for r in REDUCES[tag]]
        if not unary:
            pairs = [f"{r}.{c}" for r in REDUCES[tag] for c in COMBINES[tag]]
            prefixes = [f"{pair} " for pair in pairs if pair != TOO_LARGE]
        specs = SPECS1 if unary else SPECS
        kept = [s for s in specs if not scalar or s[0].endswith(">")]
        for spec, sizes in ein_specs(kept, prefixes):
            yield ein_row(rng, tag, spec, sizes)
        for spec, sizes in kept if tag != "bool" else ():
            yield ein_row(rng, tag, spec, sizes)
    elif plain == "slice":
        for offset, sizes, strides in PLACES:
            yield [tensor(rng, tag, 12), offset, sizes, strides]
    elif plain == "reindex":
        for constants, program in (*INDEX_MAPS, *index_maps(rng, 64)):
            yield [tensor(rng, tag, 12), constants, program, number(rng, tag)]
    elif plain.startswith(
        ("cum", "vec_top_", "forest", "scatter", "hits", "mat_solve", *OF_MATRICES)
    ):
        yield from _rows_along(plain)(rng, tag)
    elif plain == "element":
        for length in LENGTHS[1:]:
            yield [tensor(rng, tag, length), int(rng.integers(length))]
    elif plain == "random_bits":
        words = (0, 1, -1, 2**32, *rng.integers(-(2**63), 2**63, 3).tolist())
        yield from ([seed, place] for seed in words for place in words)
    elif plain == "full":
        for length in LENGTHS:
            yield [length, number(rng, tag)]
    elif plain == "outer_prod":
        for length in LENGTHS[:7]:
            yield [tensor(rng, tag, length), tensor(rng, tag, 3)]
    elif plain in ("mat_vec_mult", "vec_mat_mult", "mat_mat_mult"):
        for m, n, k in SHAPES:
            if plain == "mat_vec_mult":
                yield [tensor(rng, tag, m * k), tensor(rng, tag, k)]
            elif plain == "vec_mat_mult":
                yield [tensor(rng, tag, k), tensor(rng, tag, k * n)]
            else:
                yield [tensor(rng, tag, m * k), tensor(rng, tag, k * n), k]
    elif plain in ("any_not", "count_not"):
        dtype = ELEMENT_TYPES[tag].dtype
        for fill in np.array(SPECIAL[dtype.kind], dtype):
            for length in LENGTHS:
                yield [tensor(rng, tag, length, special=True), fill.item()]
                yield [np.full(length, fill), fill.item()]
    elif plain == "all_finite":
        for length in (*LENGTHS, 5000):
            yield [tensor(rng, tag, length)]
            for special in SPECIAL[ELEMENT_TYPES[tag].dtype.kind] if length else ():
                almost = tensor(rng, tag, length)
                almost[rng.integers(length)] = special
                yield [almost]
    else:
        yield from _elementwise_rows(name, rng)


def _rows_of_forests(plain: str, rng: np.random.Generator, tag: str) -> Iterator[list[Any]]:
    """Forests to pack, or rows of features and packed forests."""
    del tag
    for trees, leaves, features, outputs in product((0, 1, 4), (1, 2, 40), (1, 5), (1, 3)):
        packed = random_forest(rng, trees, leaves, features, outputs)
        missing = int(rng.integers(6)) * (len(packed) > 0 and leaves == 1)
        kept = packed[: len(packed) - missing].reshape(-1)
        sizes = features, outputs
        if plain == "forest_pack":
            yield [kept, *sizes]
            continue
        for rows, share in ((0, 0), (1, 0.3), (3, 0), (40, 0.0), (40, 0.2)):
            x = random_rows(rng, rows * features, missing=share)
            yield [x, forest_pack(kept, *sizes)]


def _rows_of_places(rng: np.random.Generator, tag: str) -> Iterator[list[Any]]:
    """Elements and positions, some of which are NULL."""

    def some(items: Sequence[Any], share: float) -> list[Any]:
        return [item if rng.random() < share else None for item in items]

    for length, others, share in product(LENGTHS, (0, 1, 7), (1, 0.6)):
        values = tensor(rng, tag, length).astype(ELEMENT_TYPES[tag].dtype).tolist()
        places, more = (rng.integers(length + 3, size=n).tolist() for n in (length, others))
        yield [
            *(some(values, share), some(places, share), some(more, share)),
            *(length + 3, number(rng, tag), number(rng, tag)),
        ]


def _rows_of_hits(rng: np.random.Generator, tag: str) -> Iterator[list[Any]]:
    """Positions, some of which are outside where that is allowed, and the size of the axis."""
    del rng, tag
    for length in LENGTHS:
        for at in (-1, 0, length // 2, length - 1, length, 2**40, -(2**40)):
            yield [np.array([at]), length, ""]
            if 0 <= at < length:
                yield [np.array([at]), length, "x[t[]]"]


def _rows_along(plain: str) -> Callable[[np.random.Generator, str], Iterator[list[Any]]]:
    """Return a function that makes arguments of a kernel that works along axes."""
    if plain.startswith("forest"):
        return partial(_rows_of_forests, plain)
    if plain == "mat_solve":
        return _rows_of_systems
    if plain == "scatter":
        return _rows_of_places
    if plain == "hits":
        return _rows_of_hits
    if plain in OF_MATRICES:
        return partial(_rows_of_matrices, plain.removeprefix("mat_"))
    return _rows_with_first_entries if plain.startswith("vec_top_") else _running_rows


def _running_rows(rng: np.random.Generator, tag: str) -> Iterator[list[Any]]:
    """Tensors, lengths of the axis along which they are aggregated, and what is inside of it."""
    for length, inner in ((12, 1), (4, 3), (1, 12), (2, 2), (3, 0), (0, 0)):
        if length * inner:
            yield [tensor(rng, tag, 12), length, inner]
        yield [tensor(rng, tag, 0), length, inner]
    if ELEMENT_TYPES[tag].dtype.kind != "i":
        yield [tensor(rng, tag, 12, special=True), 6, 1]
        yield [tensor(rng, tag, 1300), 650, 1]


def _rows_with_first_entries(rng: np.random.Generator, tag: str) -> Iterator[list[Any]]:
    """Tensors with many equal entries, an axis, what is inside, and how many come first."""
    for length, inner in ((12, 1), (4, 3), (1, 12), (2, 2), (3, 0), (0, 0), (0, 3), (400, 3)):
        for k in sorted({0, min(length, 1), length // 2, length}):
            for special in (False, True):
                size = 3 * length * inner
                yield [_with_equals(rng, tag, size, special), length, inner, k]


def _rows_of_matrices(name: str, rng: np.random.Generator, tag: str) -> Iterator[list[Any]]:
    """Some matrices each, whose eigenvalues or singular values are far apart, and their shape."""
    parts, shape = len(KERNEL_PARTS[name]), MATRIX_FUNCTIONS[KERNEL_PARTS[name][0]].shape
    for size, count in ((1, 1), (2, 3), (3, 2), (8, 1), (33, 2), (4, 0), (0, 0)):
        turned, _ = np.linalg.qr(rng.normal(size=(count, size, size)))
        made = turned * np.arange(1.0, size + 1) @ turned.transpose(0, 2, 1)
        made += np.triu(rng.normal(scale=0.1, size=made.shape), 1)  # where nobody looks, but inv
        for rows, columns in sorted({(size, size), (size, size // 2), (size // 2, size)}):
            if shape.fits(rows, columns):
                padded = np.repeat(made[:, None, :rows, :columns], parts, axis=1)
                ends = [rows, columns] if parts == 1 else [parts, rows, columns]
                yield [padded.reshape(-1).astype(ELEMENT_TYPES[tag].dtype), *ends]


def _rows_of_systems(rng: np.random.Generator, tag: str) -> Iterator[list[Any]]:
    """Some matrices each, as many blocks of right-hand sides, and the number of equations."""
    dtype = ELEMENT_TYPES[tag].dtype
    for n, count, sides in product((1, 2, 5, 17, 40), (0, 1, 3), (0, 1, 3, 20)):
        matrices = rng.normal(size=(count, n, n)) + 2 * n * np.eye(n)[rng.permutation(n)]
        right = rng.normal(size=count * n * sides)
        yield [matrices.reshape(-1).astype(dtype), right.astype(dtype), n]
    yield [np.zeros(0, dtype), np.zeros(0, dtype), 0]


def _with_equals(rng: np.random.Generator, tag: str, length: int, special: bool) -> Array:
    few = tensor(rng, tag, 5, special)
    return few[rng.integers(len(few), size=length)]


def _elementwise_rows(name: str, rng: np.random.Generator) -> Iterator[list[Any]]:
    """Tensors of one length, with numbers and lists from among their entries."""
    kernel, tag, plain = KERNELS[name], KERNELS[name].tag, base(name)
    element = ELEMENT_TYPES[tag]
    integers = element.dtype.kind == "i"
    operation = plain.rpartition("vec_")[2].removeprefix("sca_")
    small = (
        (integers and operation in OVERFLOWING)
        or (plain.startswith("vec_cast_") and plain.endswith("_i64"))
        or plain == "inner_prod"
    )
    for length in LENGTHS:
        for special in (False,) if small else (False, True):
            values = [tensor(rng, tag, length, special) for _ in range(2)]
            numbers = [tensor(rng, tag, 1, special)[0].item() for _ in range(2)]
            if integers and operation == "pow":
                values[1], numbers[1] = np.abs(values[1]), abs(numbers[1])
            yield [
                values[j % 2]
                if parameter == "BLOB"
                else numbers[j % 2]
                if parameter == element.sql
                else values[j % 2].tolist()
                for j, parameter in enumerate(kernel.parameters)
            ]


def aggregate_groups(name: str, rng: np.random.Generator) -> Iterator[list[list[Any]]]:
    """Groups of rows for one aggregate; within a group all states have one length."""
    tag, plain = KERNELS[name].tag, base(name)
    if "csr" in plain or plain == "stack_runs":
        yield from compressed_groups(name, rng)
        return
    kind = ELEMENT_TYPES[tag].dtype.kind
    fills = np.array(SPECIAL[kind][:4], ELEMENT_TYPES[tag].dtype).tolist()
    for count, lengths in ((1, LENGTHS[::3]), (2, LENGTHS), (7, LENGTHS[1::3])):
        if plain == "stack_sca":
            for fill in fills:
                yield [[number(rng, tag), 2 * i, 15, fill] for i in range(count)]
        elif plain == "stack":
            for fill in fills:
                yield [[tensor(rng, tag, 3), 4 * i, 29, fill] for i in range(count)]
        elif plain == "stack_strided":
            for fill in fills:
                yield [[tensor(rng, tag, 6), i, [2, 3], [30, 8], 60, fill] for i in range(count)]
        elif plain.startswith("top_"):
            for k, lanes, special in product((0, 1, 3, 7, 9), lengths, (False, True)):
                places = rng.permutation(50)[:count].tolist()
                rows = [_with_equals(rng, tag, lanes, special) for _ in places]
                if plain.endswith("_sca"):
                    rows = [_with_equals(rng, tag, 1, special)[0].item() for _ in places]
                yield [[row, place, k] for row, place in zip(rows, places, strict=True)]
        elif "_ein" in plain:
            unary = plain.endswith("1")
            prefix = plain.partition("_")[0] + (" " if unary else ".add ")
            for spec, sizes in (SPECS1 if unary else SPECS) if count == 2 else ():
                if not has_empty_reduction(spec, sizes) or prefix[:3] not in ("min", "max"):
                    yield [ein_row(rng, tag, prefix + spec, sizes) for _ in range(count)]
        elif plain.endswith("_vec"):
            overflows = kind == "i" and plain.startswith(OVERFLOWING)
            for length in lengths:
                special = length > 3 and not overflows
                yield [[tensor(rng, tag, length, special)] for _ in range(count)]
        elif plain.endswith("vec_sca_mult"):
            for length in lengths:
                yield [[tensor(rng, tag, length), number(rng, tag)] for _ in range(count)]
        elif plain == "sum_vec_mult":
            for length in lengths:
                yield [[tensor(rng, tag, length), tensor(rng, tag, length)] for _ in range(count)]
        else:
            scalar = name.removeprefix("sum_")
            for row in scalar_rows(scalar, rng):
                yield [
                    [tensor(rng, tag, len(v)) if isinstance(v, np.ndarray) else v for v in row]
                    for _ in range(count)
                ]
