"""Compressed tensors with something changed: an error where that breaks the format, else an answer.

What the format is says a reader of its own here, so that no kernel takes what it refuses. The
sanitizer build runs these tests with many more changes (`UCLE_FUZZ_CALLS`).
"""

from __future__ import annotations

import os
import random
from typing import Any

import duckdb
import numpy as np
import pytest
from compressed_samples import OF_PLACES, exact, operands, sparse
from kernel_meanings import MEANINGS
from kernel_routes import Route, from_sql
from kernel_table import KERNELS, base, compressed_arguments
from test_reference import assert_same

from ucle.udf_kernels import ELEMENT_TYPES, Csr, Kernel
from ucle.udf_kernels.compressed import MAGIC, RUNS

CALLS = int(os.environ.get("UCLE_FUZZ_CALLS", "4"))
TAKERS = [name for name, kernel in KERNELS.items() if compressed_arguments(kernel.name)]
EXTREMES = (0, 1, 2, 2**31 - 1, 2**31, 2**32 - 1)
MOST_COLUMNS = 10_000
"""More of them are either as many as there can be, or not tried: results may be as large."""


def read(blob: bytes, dtype: np.dtype[Any] | None) -> Csr | None:
    """The parts of a BLOB that is as ``csr.h`` says, with values of a type or of any size."""
    if len(blob) < 20:
        return None
    magic, rows, cols, version = np.frombuffer(blob, "<u4", 4).tolist()
    if magic != MAGIC or version not in (0, RUNS) or len(blob) < 16 + 4 * (rows + 1):
        return None
    ptr = np.frombuffer(blob, "<u4", rows + 1, 16).astype(np.int64)
    entries, start = int(ptr[-1]), 16 + 4 * (rows + 1)
    end = start + 4 * entries * (2 if version == RUNS else 1)
    values = end + -end % 8
    if ptr[0] != 0 or (np.diff(ptr) < 0).any() or len(blob) < values or any(blob[end:values]):
        return None
    idx = np.frombuffer(blob, "<u4", entries, start).astype(np.int64)
    left = len(blob) - values
    if dtype is None:
        size = left // entries if entries else 1
        right, dtype = left == size * entries and size in (1, 4, 8, 16), np.dtype(f"V{size}")
    else:
        right = left == entries * dtype.itemsize
    places = np.repeat(np.arange(rows), np.diff(ptr)) * 2**32 + idx
    if not right or (np.diff(places) <= 0).any() or (idx >= cols).any():
        return None
    if version == RUNS:
        return _read_runs(blob, dtype, (rows, cols, ptr, idx), start + 4 * entries)
    return Csr(rows, cols, ptr, idx, np.frombuffer(blob, dtype, offset=values))


def _read_runs(
    blob: bytes, dtype: np.dtype[Any], parts: tuple[int, int, Any, Any], start: int
) -> Csr | None:
    """The entries of runs, which have columns, do not overlap, and end within the columns."""
    rows, cols, ptr, begin = parts
    end = np.frombuffer(blob, "<u4", len(begin), start).astype(np.int64)
    row = np.repeat(np.arange(rows), np.diff(ptr))
    free = np.where(row[1:] == row[:-1], end[:-1], 0)
    if (end <= begin).any() or (end > cols).any() or (begin[1:] < free).any():
        return None
    return Csr.from_bytes(blob, dtype)


def changed(rng: random.Random, blob: bytes, tag: str) -> bytes:
    """The bytes with one to three things changed."""
    made = bytearray(blob)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        words = len(made) // 4
        kind = rng.choice(("byte", "word", "near", "near", "swap", "cut", "more", "repeat"))
        if kind == "byte" and made:
            made[rng.randrange(len(made))] = rng.randrange(256)
        elif kind in ("word", "near") and words:
            place = 4 * rng.randrange(min(words, 4 + words // 2))
            own = int.from_bytes(made[place : place + 4], "little")
            value = rng.choice(EXTREMES) if kind == "word" else (own + rng.choice((-1, 1))) % 2**32
            made[place : place + 4] = value.to_bytes(4, "little")
        elif kind == "swap" and words:
            one, other = (4 * rng.randrange(words) for _ in range(2))
            made[one : one + 4], made[other : other + 4] = (
                made[other : other + 4],
                made[one : one + 4],
            )
        elif kind == "cut":
            del made[rng.randint(0, len(made)) :]
        elif kind == "more":
            made += rng.randbytes(rng.choice((1, 4, 8)))
        elif made:
            place = 4 * rng.randrange(words + 1)
            made[place:place] = made[place : place + rng.choice((4, 8))]
    cols = int.from_bytes(made[8:12], "little")
    # From there on a row of the result is more than any value may have, and is refused.
    refused = 2**32 if tag == "bool" else 2**31
    return changed(rng, blob, tag) if MOST_COLUMNS < cols < refused else bytes(made)


def row_of(kernel: Kernel, rng: np.random.Generator) -> list[Any]:
    """Good arguments for one call of a scalar kernel."""
    plain, tag = base(kernel.name), kernel.tag
    x = sparse(rng, tag, *rng.choice([(3, 4), (1, 5), (4, 1), (2, 2)]).tolist(), 0.5)
    zero = ELEMENT_TYPES[tag].dtype.type(0).item()
    if kernel.parameters[0] == "VARCHAR":
        reduce, combine = ("max", "mult") if tag == "bool" else ("", "")
        word = f"{reduce}.{combine}" if tag == "bool" else ""
        if plain.startswith("csr_reduce"):
            word = reduce
        elif plain in OF_PLACES:
            word = combine
        return [word, x, *next(iter(operands(plain, rng, tag, x, 0.5, True)))]
    others = {
        "csr_with": lambda: [exact(rng, tag, len(x.idx))],
        "csr_prune": lambda: [zero],
        "csr_to_mat": lambda: [zero],
        "csr_row": lambda: [0],
    }
    return [x, *others.get(plain, list)()]


def group_of(kernel: Kernel, rng: np.random.Generator) -> list[Any]:
    """Good arguments for one row of an aggregate."""
    x = sparse(rng, kernel.tag, 3, 4, 0.5)
    if base(kernel.name) == "stack_csr_rows":
        return [x, 0, 3, 4]
    return [x, exact(rng, kernel.tag, 6), 2]


@pytest.mark.sample(20)
@pytest.mark.parametrize("name", TAKERS)
def test_changed_tensors(route: Route, name: str) -> None:
    kernel, seed = KERNELS[name], f"{name} {route.name}"
    rng, random_numbers = random.Random(seed), np.random.default_rng(list(seed.encode()))
    made = group_of if kernel.is_aggregate else row_of
    rows = [made(kernel, random_numbers) for _ in range(2 * CALLS)]
    given = []
    for row in rows:
        place = rng.choice(compressed_arguments(kernel.name))
        crafted = changed(rng, row[place].to_bytes(), kernel.tag)
        given.append([*row[:place], np.frombuffer(crafted, "u1"), *row[place + 1 :]])
    for row, values in zip(rows, given, strict=True):
        wanted = None if name.startswith("csr_with") else ELEMENT_TYPES[kernel.tag].dtype
        (place,) = (
            n for n in compressed_arguments(kernel.name) if isinstance(values[n], np.ndarray)
        )
        taken = read(values[place].tobytes(), wanted)
        got = _answer(route, kernel, values)
        if isinstance(got, duckdb.Error):
            assert not isinstance(got, duckdb.InternalException)
            assert not _should_answer(kernel, taken, row[place]), f"{name}{values}: {got}"
            continue
        assert taken is not None, f"{name} takes {values[place].tobytes().hex()}"
        whole = [*values[:place], taken, *values[place + 1 :]]
        assert got is not None
        _compare(name, got, whole)


def _answer(route: Route, kernel: Kernel, row: list[Any]) -> Any:
    """The kernel's result for a row, or its error."""
    try:
        if kernel.is_aggregate:
            return route.aggregate(kernel.name, [row], 16)
        (got,) = route.scalar(kernel.name, [row])
    except duckdb.Error as error:
        return error
    return got


def _should_answer(kernel: Kernel, taken: Csr | None, before: Csr) -> bool:
    """True if the kernel has nothing to refuse.

    Of other rows and columns, or of more entries, a tensor may not fit another argument, and
    integers may outgrow their type.
    """
    if taken is None or kernel.tag == "i64":
        return False
    sizes = [(x.rows, x.cols, len(x.idx)) for x in (taken, before)]
    return sizes[0] == sizes[1]


def _compare(name: str, got: Any, row: list[Any]) -> None:
    kernel = KERNELS[name]
    if kernel.is_aggregate:
        row = [[x] if mark else x for x, mark in zip(row, kernel.gathered, strict=True)]
    try:
        with np.errstate(all="ignore"):
            expected = MEANINGS[name](*row)
    except MemoryError:  # of billions of rows, of which most are empty, NumPy makes an array
        return
    if isinstance(expected, np.ndarray) and kernel.returns == "BLOB":
        assert len(from_sql(got, kernel.tag)) == expected.size
    values = next(x for x in _flat(row) if isinstance(x, Csr)).values
    tame = values.dtype.kind in "bV" or bool((np.abs(values.astype(complex)) < 2**10).all())
    if tame and not np.isnan(np.asarray(values, complex) if values.dtype.kind != "V" else 0).any():
        assert_same(name, got, expected, f"{name}{row}"[:400])


def _flat(row: list[Any]) -> list[Any]:
    return [y for x in row for y in (x if isinstance(x, list) else [x])]


def test_the_reader_is_that_of_the_kernels(route: Route) -> None:
    """Bits are changed one by one, of all words: what is taken is what is read here."""
    x = Csr.of([[1.0, 0, 2.0], [0, 3.0, 0]], 0.0)
    blob = x.to_bytes()
    crafted = [
        blob[: bit // 8] + bytes([blob[bit // 8] ^ 1 << bit % 8]) + blob[bit // 8 + 1 :]
        for bit in range(8 * 48)
    ]
    query = "SELECT csr_nnz(?::BLOB)"
    for bytes_ in crafted:
        taken = read(bytes_, np.dtype("f8"))
        try:
            ((entries,),) = route.connection.execute(query, [bytes_]).fetchall()
        except duckdb.Error:
            assert taken is None, bytes_.hex()
            continue
        assert taken is not None, bytes_.hex()
        assert entries == len(taken.idx)
