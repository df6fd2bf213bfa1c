"""Runs of one value and bits in words against SciPy and NumPy on the same data, expanded.

Finch's case studies of run-length and bit-packed data (section 7) are stored here as tables of runs
(`ucle.table(..., ends=...)`) and as words of 64 bits (`ucle.bits`); the others have each entry in
memory. The bytes are those of the inputs.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import scipy.sparse as sp
from scipy import ndimage

import ucle
from benchmarks import structures
from benchmarks.by_hand import TOLERANCE
from benchmarks.measure import THREADS, Table, expect_close, race, ratio

TIMES, SHARE = 2.0, 0.1
"""The most processor time, of the faster of the others, and the most bytes, of theirs."""

ROWS, COLUMNS, RUNS, LENGTH = 20_000, 20_000, 40_000, 490
"""Sizes of a matrix of runs, of which two are in each row in the mean: 20 million entries."""

SIDE = 4096
"""Pixels along each side of an image."""

EROSION = """
    V1[i,j] = A[~(i-1),j] and A[i,j] and A[~(i+1),j]
    E1[i,j] = V1[i,~(j-1)] and V1[i,j] and V1[i,~(j+1)]
    V2[i,j] = E1[~(i-1),j] and E1[i,j] and E1[~(i+1),j]
    E2[i,j] = V2[i,~(j-1)] and V2[i,j] and V2[i,~(j+1)]
"""
DILATION = EROSION.replace("and", "or")


@dataclass(frozen=True)
class Work:
    """A program on packed inputs, and the same on expanded ones; bytes of both.

    An input may be a function that stores it on a connection.
    """

    name: str
    text: str
    inputs: Mapping[str, Any]
    output: str
    peers: Mapping[str, Callable[[], Any]]
    packed: int
    expanded: int
    unpack: Callable[[Any], Any] = np.asarray


def works() -> Iterator[Work]:
    """Yield the lines of the table."""
    yield from _matrices()
    yield from _images()


def _matrices() -> Iterator[Work]:
    rng = np.random.default_rng(0)
    row = np.sort(rng.integers(0, ROWS, RUNS))
    # The runs of a row start in parts of it that are as wide as a run is long.
    place = rng.permuted(np.tile(np.arange(COLUMNS // LENGTH - 1), (ROWS, 1)), axis=1)
    first = np.searchsorted(row, row)
    start = place[row, np.arange(RUNS) - first] * LENGTH + rng.integers(0, 10, RUNS)
    stop, value = start + LENGTH - 10, rng.integers(1, 10, RUNS).astype(np.float64)
    table = pa.table({"i": row, "j": start, "stop": stop, "val": value})
    places = (start[:, None] + np.arange(LENGTH - 10)).ravel()
    entries = np.repeat(value, LENGTH - 10)
    rows = np.repeat(row, LENGTH - 10)
    matrix = sp.csr_array((entries, (rows, places)), shape=(ROWS, COLUMNS))
    parts = matrix.data, matrix.indices, matrix.indptr
    expanded = sum(part.nbytes for part in parts)
    x, H = rng.random(COLUMNS), rng.random((COLUMNS, 8))

    def stored(connection: duckdb.DuckDBPyConnection) -> Any:
        connection.register("source", table)
        connection.execute("CREATE TABLE runs AS FROM source").fetchall()
        connection.unregister("source")
        return ucle.table("runs", ["i", "j"], "val", ends="stop", bounds=(ROWS, COLUMNS))

    for name, text, inputs, peer in (
        ("SpMV", "y[i] += A[i,j] * x[j]", {"x": x}, lambda: matrix @ x),
        ("SpMV, transposed", "y[j] += A[i,j] * z[i]", {"z": x[:ROWS]}, lambda: x[:ROWS] @ matrix),
        ("SpMM, 8 columns", "y[i,k] += A[i,j] * H[j,k]", {"H": H}, lambda: matrix @ H),
        ("sums of rows", "y[i] += A[i,j]", {}, lambda: matrix.sum(axis=1)),
        ("entries above 5", "y[i] += A[i,j] > 5", {}, lambda: (matrix > 5).sum(axis=1)),
    ):
        peers = {"SciPy": peer}
        yield Work(
            f"runs, {name}", text, {"A": stored, **inputs}, "y", peers, table.nbytes, expanded
        )


def _images() -> Iterator[Work]:
    image = structures.blobs(SIDE, 32)
    words = np.packbits(image, axis=1, bitorder="little").view(np.int64)
    around, sizes = np.ones((3, 3), dtype=bool), (words.nbytes, image.nbytes)
    inputs = {"A": ucle.bits(words, SIDE)}

    def unpack(found: Any) -> Any:
        return np.unpackbits(found.view(np.uint8), axis=1, bitorder="little").astype(bool)

    yield Work(
        "bits, two erosions",
        EROSION,
        inputs,
        "E2_words",
        {
            "SciPy": lambda: ndimage.binary_erosion(image, around, iterations=2),
            "NumPy": lambda: _neighbours(image, np.logical_and),
        },
        *sizes,
        unpack,
    )
    yield Work(
        "bits, two dilations",
        DILATION,
        inputs,
        "E2_words",
        {
            "SciPy": lambda: ndimage.binary_dilation(image, around, iterations=2),
            "NumPy": lambda: _neighbours(image, np.logical_or),
        },
        *sizes,
        unpack,
    )
    for name, text, peer in (
        ("number of pixels", "y += A[i,j]", lambda: np.count_nonzero(image)),
        ("rows that have one", "y[i] any= A[i,j]", lambda: image.any(axis=1)),
    ):
        yield Work(f"bits, {name}", text, inputs, "y", {"NumPy": peer}, *sizes)


def _neighbours(image: Any, combine: Any) -> Any:
    """Combine each pixel with its neighbours twice; beyond the rim it is black."""
    for _ in range(2):
        for axis in (0, 1):
            padded = np.pad(image, [(1, 1) if n == axis else (0, 0) for n in (0, 1)])
            before, middle, after = (
                padded[tuple(slice(k, k + SIDE) if n == axis else slice(None) for n in (0, 1))]
                for k in range(3)
            )
            image = combine(combine(before, middle), after)
    return image


def _row(work: Work, rounds: int) -> Sequence[str]:
    with ucle.connect(threads=THREADS) as connection:
        inputs = {x: y(connection) if callable(y) else y for x, y in work.inputs.items()}
        program = ucle.einsum_program(
            work.text,
            database=connection,
            inputs=inputs,
            outputs=[work.output],
            store=[name for name, value in work.inputs.items() if callable(value)],
        )
        expected = next(iter(work.peers.values()))()

        def check(side: str, result: Any) -> None:
            found = work.unpack(result[work.output].to_numpy()) if side == "ucle" else result
            as_numbers = (np.asarray(x, dtype=np.float64) for x in (found, expected))
            expect_close(f"{work.name}, {side}", *as_numbers, TOLERANCE)

        sides = {**work.peers, "ucle": lambda: program.execute(connection)}
        seconds = race(sides, rounds, check, clock=time.process_time)
    least, share = min(seconds[side] for side in work.peers), work.packed / work.expanded
    reached = seconds["ucle"] <= TIMES * least and share <= SHARE
    shown = (f"{1e3 * seconds[x]:.2f}" if x in seconds else "" for x in ("ucle", "SciPy", "NumPy"))
    return (
        work.name,
        *shown,
        ratio(seconds["ucle"] / least),
        f"{work.packed / 1e6:.2f}",
        f"{share:.3f}",
        "reached" if reached else "missed",
    )


def _rows(rounds: int) -> Iterator[Sequence[str]]:
    for work in works():
        yield _row(work, rounds)


TABLE = Table(
    "runs_and_bits",
    "Runs of one value and bits in words",
    "Processor milliseconds of one execution: of ucle on a table of runs and on words of\n"
    "bits, and of SciPy and NumPy on all entries. `MB` is the size of ucle's inputs, and\n"
    f"`of all` is this size divided by the size of all entries. Goal: at most {TIMES:g}\n"
    f"times the time of the faster library, and at most {SHARE:g} of the bytes.",
    ("work", "ucle", "SciPy", "NumPy", "ucle / fastest", "MB", "of all", "goal"),
    _rows,
)
