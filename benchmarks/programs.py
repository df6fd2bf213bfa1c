"""Sparse attention and graph convolution: ucle against scipy and purely relational SQL.

Times are of execution alone, with inputs stored in the layouts that the optimiser chose.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import duckdb
import scipy.sparse as sp

import ucle
from benchmarks.measure import THREADS, Table, expect_close, race, ratio
from benchmarks.peaks import MB, peak_of, predicted_seconds
from benchmarks.stored import store_chosen, store_coo
from benchmarks.workloads import GRAPHS, SECOND, Workload, attention, gcn

RELATIONAL_ROUNDS = 3
NAMES = ("planetoid_cora", "amazon_photo", SECOND)


def _measure(workload: Workload, rounds: int) -> Sequence[str]:
    connection = ucle.connect(threads=THREADS)
    program = store_chosen(connection, workload.program, workload.inputs, workload.association)
    relational = duckdb.connect(config={"threads": THREADS})
    store_coo(relational, workload.inputs)
    expected = workload.reference()

    def run_relational() -> None:
        relational.execute(f"DROP TABLE IF EXISTS {workload.name}").fetchall()
        relational.execute(workload.relational).fetchall()

    def check(side: str, result: object) -> None:
        if isinstance(result, ucle.Result):
            tensor = result[workload.output]
            sparse = sp.issparse(expected)
            found = sp.csr_array(tensor.to_scipy()) if sparse else tensor.to_numpy()
            expect_close(f"{workload.name} on {workload.graph}", found, expected, 1e-9)

    sides = {"scipy": workload.reference, "ucle": lambda: program.execute(connection)}
    peak = peak_of(lambda: program.execute(connection).close())
    times = race(sides, rounds, check)
    times |= race({"relational": run_relational}, min(rounds, RELATIONAL_ROUNDS))
    return (
        workload.name,
        workload.graph,
        f"{times['scipy']:.3f}",
        f"{times['ucle']:.3f}",
        f"{times['relational']:.2f}",
        ratio(times["ucle"] / times["scipy"]),
        ratio(times["relational"] / times["ucle"]),
        f"{predicted_seconds(program):.3f}",
        f"{peak:.0f}",
        f"{program.compiled.peak_memory / MB:.0f}",
    )


def _rows(rounds: int) -> Iterator[Sequence[str]]:
    if not GRAPHS.is_dir():
        raise SystemExit(f"the graphs are not there: {GRAPHS}")
    for graph in NAMES:
        for workload in (attention(graph), gcn(graph)):
            yield _measure(workload, rounds)


TABLE = Table(
    "programs",
    "Programs against scipy and relational SQL",
    "The relational side is `benchmarks/relational/*.sql`, written by hand. `predicted` is\n"
    "the estimated time on one thread, in seconds. `peak` is the memory that the first\n"
    "execution takes; the last column is its estimate.",
    (
        "program",
        "graph",
        "scipy",
        "ucle",
        "relational",
        "ucle / scipy",
        "relational / ucle",
        "predicted",
        "peak, MB",
        "predicted, MB",
    ),
    _rows,
)
