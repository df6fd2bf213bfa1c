"""Compiling a program that was never seen, one seen before, and one on other data of like shape.

Each round makes a database and its tables anew, so that nothing is known of them: neither texts nor
statistics nor plans. "Like shape" is other data under other names, with as many entries, for which
the plan is taken over.

    python -m benchmarks.run plan_cache --rounds 5
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import scipy.sparse as sp

import ucle
from benchmarks.measure import THREADS, Table
from benchmarks.training import DECAY, RATE, TEXT, network
from benchmarks.workloads import GRAPHS, SECOND, attention, gcn, load

Made = tuple[str, Mapping[str, Any]]
"""A text and its inputs; sparse ones become tables."""


def _of(workload: Callable[[str], Any]) -> Callable[[str, int], Made]:
    def make(graph: str, seed: int) -> Made:
        made = workload(graph)
        return made.program, {name: _varied(x, seed) for name, x in made.inputs.items()}

    return make


def _varied(given: Any, seed: int) -> Any:
    """The same entries at the same positions with other values: no two data have one value only."""
    random = np.random.default_rng(seed)
    if sp.issparse(given):
        other = given.tocoo(copy=True)
        other.data *= random.uniform(0.5, 1.5, len(other.data))
        return other
    return given * random.uniform(0.5, 1.5, np.shape(given))


def _neighbours(graph: str, seed: int) -> Made:
    adjacency, _ = load(graph)
    dense = np.random.default_rng(seed).random((adjacency.shape[1], 64))
    return "Z[i,k] += A[i,j] * X[j,k]", {"A": _varied(adjacency, seed), "X": dense}


def _page_rank(graph: str, seed: int) -> Made:
    adjacency, _ = load(graph)
    lines = [f"r{n + 1}[j] = 0.15 + 0.85 * sum[i](A[i,j] * r{n}[i])" for n in range(20)]
    return "; ".join(lines), {"A": _varied(adjacency, seed), "r0": np.ones(adjacency.shape[0])}


def _files(graph: str, seed: int) -> Made:
    """Four statements on a graph in a file of its own."""
    adjacency = _varied(load(graph)[0], seed).tocoo()
    path = Path(tempfile.mkdtemp()) / "edges.parquet"
    rows = dict(zip("ij", adjacency.coords, strict=True)) | {"v": adjacency.data}
    pq.write_table(pa.table(rows), path)
    text = (
        "d[i] += A[i,j]; P[i,j] = A[i,j] / max(d[i], 1e-9); "
        "y[j] += P[i,j] * x[i]; z[] = max[j](y[j])"
    )
    return text, {"A": str(path), "x": np.ones(adjacency.shape[0])}


PROGRAMS: Mapping[str, tuple[Callable[[str, int], Made], int]] = {
    "attention": (_of(attention), 60),
    "graph convolution": (_of(gcn), 50),
    "neighbours' features (SpMM, 64)": (_neighbours, 10),
    "PageRank of 20 unrolled steps": (_page_rank, 60),
    "four statements on Parquet": (_files, 20),
}
"""What is compiled, with the milliseconds to reach where it was never seen."""


def _tables(connection: Any, inputs: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    """Put sparse inputs into tables; return what the program is given."""
    given: dict[str, Any] = {}
    for name, each in inputs.items():
        if not sp.issparse(each):
            given[name] = each
            continue
        entries = each.tocoo()
        rows = dict(zip("ij", entries.coords, strict=True)) | {"v": entries.data}
        connection.register("entries", pa.table(rows))
        connection.execute(f"CREATE TABLE {prefix}{name} AS FROM entries").fetchall()
        connection.unregister("entries")
        given[name] = ucle.table(f"{prefix}{name}", bounds=each.shape)
    return given


def _compile(connection: Any, text: str, given: Mapping[str, Any]) -> float:
    start = time.process_time()
    ucle.einsum_program(text, inputs=dict(given), database=connection, association="as-written")
    return time.process_time() - start


def _measure(make: Callable[[str, int], Made], graph: str, rounds: int) -> list[float]:
    times = []
    for number in range(rounds + 1):
        ucle.clear_caches()
        with ucle.connect(threads=THREADS) as connection:
            made = [make(graph, seed) for seed in (2 * number + 1, 2 * number + 2)]
            first, like = (_tables(connection, x, f"t{n}_") for n, (_, x) in enumerate(made))
            _compile(connection, "y[i] += x[i]", {"x": np.ones(3)})  # a session is there already
            text = made[0][0]
            each = [_compile(connection, text, x) for x in (first, first, like)]
            if number:
                times.append(each)
    return [1e3 * statistics.median(x) for x in zip(*times, strict=True)]


def _training(rounds: int) -> Iterator[float]:
    """Yield the median milliseconds of `minimize` for a graph convolution over cora."""
    data = network("planetoid_cora", 16)
    mask = ucle.parameter(data.mask(0))
    times = []
    for number in range(rounds + 1):
        ucle.clear_caches()
        with ucle.connect(threads=THREADS) as connection:
            tables = {"A": data.adjacency, "X": data.features}
            given = _tables(connection, tables, "") | {
                "Y": data.shares, "keep": mask, "W1": data.first, "W2": data.second
            }  # fmt: skip
            program = ucle.einsum_program(TEXT, inputs=given, database=connection)
            optimiser = ucle.optim.adam(RATE, weight_decay={"W1": DECAY})
            start = time.process_time()
            program.minimize("loss", ["W1", "W2"], optimiser)
            if number:
                times.append(time.process_time() - start)
    yield 1e3 * statistics.median(times)


def _rows(rounds: int) -> Iterator[Sequence[str]]:
    graphs = ["planetoid_cora"] if (GRAPHS / "planetoid_cora").exists() else []
    for graph in [*graphs, SECOND]:
        for name, (make, reach) in PROGRAMS.items():
            never, before, like = _measure(make, graph, rounds)
            yield name, graph, f"{never:.0f}", str(reach), f"{before:.1f}", f"{like:.1f}"
    if graphs:
        for trained in _training(rounds):
            yield "training of a graph convolution", graphs[0], f"{trained:.0f}", "200", "", ""


TABLE = Table(
    "plan_cache",
    "Compiling new programs, and programs seen before",
    "Processor milliseconds of `einsum_program` in one process, over tables of a new\n"
    "database. The goal in the table is for programs that were never seen. Goals for the\n"
    "others: 5 ms if the program was seen before, 15 ms for other data of like shape.",
    ("program", "graph", "never seen", "goal", "seen before", "like shape"),
    _rows,
)
