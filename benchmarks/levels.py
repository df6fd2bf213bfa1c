"""Programs whose arrays are sparse inside, or few and wide, against SciPy and NumPy.

The references are in `benchmarks.references`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

import ucle
from benchmarks.measure import THREADS, Table, expect_close, race, ratio
from benchmarks.peaks import MB, peak_of, predicted_seconds
from benchmarks.references import dense, graphs, sparse_products
from benchmarks.references.work import Work
from benchmarks.stored import input_tables, store_chosen
from benchmarks.workloads import GRAPHS

WORKS = (graphs.works, sparse_products.works, dense.works)


def _found(work: Work, result: ucle.Result) -> Any:
    tensor, expected = result[work.output], work.reference()
    if sp.issparse(expected):
        return sp.csr_array(tensor.to_scipy()), expected
    return np.asarray(tensor.to_numpy(), dtype=np.float64), np.asarray(expected)


def _measure(work: Work, rounds: int) -> Sequence[str]:
    with contextlib.closing(ucle.connect(threads=THREADS)) as connection:
        if work.stored:
            association = str(work.options.get("association", "free"))
            program = store_chosen(connection, work.text, work.inputs, association)
        else:
            inputs = input_tables(connection, work.inputs)
            program = ucle.einsum_program(
                work.text, inputs=inputs, database=connection, **work.options
            )

        def check(side: str, result: object) -> None:
            if isinstance(result, ucle.Result):
                expect_close(work.name, *_found(work, result), 1e-9)

        sides = {"reference": work.reference, "ucle": lambda: program.execute(connection)}
        peak = peak_of(lambda: program.execute(connection).close())
        times = race(sides, rounds, check)
    return (
        work.name,
        f"{times['reference']:.4f}",
        f"{times['ucle']:.4f}",
        ratio(times["ucle"] / times["reference"]),
        f"{work.reach:g}",
        f"{predicted_seconds(program):.4f}",
        f"{peak:.0f}",
        f"{program.compiled.peak_memory / MB:.0f}",
    )


def _rows(rounds: int) -> Iterator[Sequence[str]]:
    if not GRAPHS.is_dir():
        raise SystemExit(f"the graphs are not there: {GRAPHS}")
    for works in WORKS:
        for work in works():
            yield _measure(work, rounds)


TABLE = Table(
    "levels",
    "Arrays that are sparse inside, few wide tuples, and steps on grids",
    "Seconds from `execute` until the result is in DuckDB. Inputs are stored as the program\n"
    "wants them, unless the row says that they come from memory or from tables of entries.\n"
    "`predicted` is the estimated time on one thread, in seconds. `peak` is the memory that\n"
    "the first execution takes, in a process that has already measured the rows above; the\n"
    "last column is its estimate.",
    (
        "work",
        "SciPy or NumPy",
        "ucle",
        "ucle / reference",
        "goal",
        "predicted",
        "peak, MB",
        "predicted, MB",
    ),
    _rows,
)
