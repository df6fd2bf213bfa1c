"""Break-even of a cluster: the cost model at 1 to 64 workers, with the network as a parameter.

Nothing runs. Two layers of graph convolution over a power-law graph of 10^8 edges are compiled for
made-up statistics, and distributed for each cluster. The constants are those of `Network`, which
were measured on Spark (`benchmarks.spark`), and those of the kernels in `ucle.plan.prices`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import duckdb
import numpy as np

import ucle
from benchmarks.measure import Table
from ucle.inputs.table_input import TableInput
from ucle.partitions import Network
from ucle.partitions.distribute import EstimatedSizes, candidates, distribute_cheapest
from ucle.pipeline.artifacts import Compiled
from ucle.plan.placement_rules import Spread
from ucle.stats.measure import MeasuredInput

WORKERS = (1, 2, 4, 8, 16, 32, 64)
GIGABITS = (1.0, 10.0, 25.0)
EDGES, NODES, WIDTH, CLASSES = 1e8, 5_000_000, 64, 16
LARGEST = 200_000.0
"""Degree of the largest node, according to a power law of exponent 2.3."""

LAYERS = """
T[i,k] += A[i,j] * H[j,k]
X[i,n] = relu(T[i,k] * W1[k,n])
U[i,n] += A[i,j] * X[j,n]
Z[i,c] += U[i,n] * W2[n,c]
"""
MACHINE = 8
"""Cores of the single machine that clusters are compared with."""

CANDIDATES = 4


def program() -> ucle.EinsumProgram:
    """Compile the program over empty tables that represent those of the statistics."""
    connection = duckdb.connect()
    connection.execute("CREATE TABLE a (i INTEGER, j INTEGER, val DOUBLE)")
    connection.execute(f"CREATE TABLE h (j INTEGER, val DOUBLE[{WIDTH}])")
    sizes = (NODES, NODES)
    edges = MeasuredInput(
        sizes, True, EDGES, (0.0, 1.0), (0.8 * NODES, 0.8 * NODES), False, (LARGEST, LARGEST)
    )
    shape = (NODES, WIDTH)
    features = MeasuredInput(
        shape, True, float(NODES * WIDTH), (-1.0, 1.0), tuple(map(float, shape)), True
    )
    rng = np.random.default_rng(0)
    return ucle.einsum_program(
        LAYERS,
        A=TableInput("a", measured=edges, bounds=sizes),
        H=TableInput("h", measured=features, bounds=shape),
        W1=rng.normal(size=(WIDTH, WIDTH)),
        W2=rng.normal(size=(WIDTH, CLASSES)),
        database=connection,
        memory_limit="64GB",
    )


def fetched(compiled: Compiled, network: Network) -> float:
    """Seconds in which one machine fetches all inputs through its link."""
    return network.price_fetch(EstimatedSizes(compiled).read(compiled.inputs)) / 1e9


def rows(rounds: int) -> Iterator[Sequence[str]]:
    """Yield a row for each number of workers."""
    del rounds
    made = program()
    alone = made.compiled
    there = alone.decomposed.total_cost / 1e9 / MACHINE
    far = [there + fetched(alone, Network(gigabits=gigabits)) for gigabits in GIGABITS]
    yield [f"one machine of {MACHINE} cores that has the data", *[f"{there:.1f} s"] * len(far)]
    yield [f"one machine of {MACHINE} cores that fetches it", *(f"{x:.1f} s" for x in far)]
    for workers in WORKERS:
        cells = []
        for gigabits, machine in zip(GIGABITS, far, strict=True):
            network = Network(workers=workers, gigabits=gigabits)
            tried = candidates(made.compiled, made.options, CANDIDATES, network)
            _, plan = distribute_cheapest(tried, network, workers)
            count = len(plan.fragments)
            stages = f"{count} stages" if count > 1 else "1 stage"
            copied = sorted(
                each.tensor
                for fragment in plan.fragments
                for each in fragment.incoming
                if each.placement.spread is Spread.REPLICATED and each.bytes > 1e6
            )
            moves = f"{plan.bytes / 1e9:.1f} GB in {stages}"
            copies = f", copies {', '.join(dict.fromkeys(copied))}" if copied else ""
            cells.append(f"{plan.seconds:.1f} s ({plan.seconds / machine:.2f}), {moves}{copies}")
        yield [str(workers), *cells]


TABLE = Table(
    "cluster",
    "Two layers of graph convolution on a cluster, by the cost model",
    f"A graph of {EDGES:.0e} edges and {NODES:,} nodes, features of width {WIDTH}. Seconds by "
    "estimate, in brackets as a multiple of\none machine that fetches all inputs through its own "
    "link; a worker is one core. Behind it, what moves.\nThis is the model alone: nothing ran.",
    ["workers", *(f"{gigabits:g} Gbit/s" for gigabits in GIGABITS)],
    rows,
)
