"""Break-even of a cluster: the cost model at 1 to 64 workers, with the network as a parameter.

Nothing runs. Two layers of graph convolution over a power-law graph of 10^8 edges, and a step of
their training, are compiled for made-up statistics, and distributed for each cluster. The constants
are those of `Network`, which were measured on Spark (`benchmarks.spark`), and those of the kernels
in `ucle.plan.prices`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

import ucle
from benchmarks.measure import Table
from ucle.inputs.table_input import TableInput
from ucle.partitions import DistributedPlan, Network, distribute
from ucle.partitions.choices import Repeated
from ucle.partitions.distribute import EstimatedSizes, candidates, distribute_cheapest
from ucle.partitions.step_plans import StepPlans
from ucle.pipeline.artifacts import Compiled, Planned
from ucle.plan.placement_rules import Spread
from ucle.spark.program import CANDIDATES
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
LOSS = "loss[] = mean[i,c](square(Z[i,c] - Y[i,c]))"
MACHINE = 8
"""Cores of the single machine that clusters are compared with."""


def of_arrays(name: str, width: int) -> TableInput:
    """A table with an array of `width` numbers for each node."""
    shape = (NODES, width)
    ranges = (-1.0, 1.0)
    found = MeasuredInput(shape, True, float(NODES * width), ranges, tuple(map(float, shape)), True)
    return TableInput(name, measured=found, bounds=shape)


def program(*, trained: bool) -> ucle.EinsumProgram:
    """Compile the program over empty tables that represent those of the statistics."""
    connection = ucle.connect()
    connection.execute("CREATE TABLE a (i INTEGER, j INTEGER, val DOUBLE)")
    connection.execute(f"CREATE TABLE h (j INTEGER, val DOUBLE[{WIDTH}])")
    connection.execute(f"CREATE TABLE y (i INTEGER, val DOUBLE[{CLASSES}])")
    sizes = (NODES, NODES)
    edges = MeasuredInput(
        sizes, True, EDGES, (0.0, 1.0), (0.8 * NODES, 0.8 * NODES), False, (LARGEST, LARGEST)
    )
    rng = np.random.default_rng(0)
    inputs = {
        "A": TableInput("a", measured=edges, bounds=sizes),
        "H": of_arrays("h", WIDTH),
        "W1": rng.normal(size=(WIDTH, WIDTH)),
        "W2": rng.normal(size=(WIDTH, CLASSES)),
    }
    options: dict[str, Any] = {"database": connection, "memory_limit": "64GB"}
    if not trained:
        return ucle.einsum_program(LAYERS, inputs=inputs, **options)
    inputs["Y"] = of_arrays("y", CLASSES)
    made = ucle.einsum_program(LAYERS + LOSS, inputs=inputs, **options)
    return made.minimize("loss", ["W1", "W2"], ucle.optim.adam(0.01))


def fetched(compiled: Compiled, network: Network) -> float:
    """Seconds in which one machine fetches all inputs through its link."""
    return network.price_fetch(EstimatedSizes(compiled).read(compiled.inputs)) / 1e9


def on_cluster(made: ucle.EinsumProgram, network: Network) -> DistributedPlan:
    """The plan of an execution, or of a step if an input is carried."""
    tried = candidates(made.compiled, made.options, CANDIDATES, network)
    if not made.carry:
        return distribute_cheapest(tried, network, network.workers)[1]

    def cut(planned: Planned, repeated: Repeated) -> DistributedPlan:
        return distribute(planned, network, network.workers, repeated)

    plans = (StepPlans(each, made.carry, tuple(made.carry), cut) for each in tried)
    return min((each.step.again for each in plans), key=lambda plan: plan.seconds)


def describe(plan: DistributedPlan) -> str:
    """Say what moves, and what is copied to all workers each time."""
    count = len(plan.fragments)
    stages = f"{count} stages" if count > 1 else "1 stage"
    copied = sorted(
        each.tensor
        for fragment in plan.fragments
        for each in fragment.incoming
        if each.placement.spread is Spread.REPLICATED and each.bytes > 1e6 and not each.kept
    )
    copies = f", copies {', '.join(dict.fromkeys(copied))}" if copied else ""
    return f"{plan.bytes / 1e9:.1f} GB in {stages}{copies}"


def rows_of(made: ucle.EinsumProgram, once: str) -> Iterator[Sequence[str]]:
    """Yield a row for each number of workers; `once` says what a machine fetches."""
    alone = made.compiled
    there = alone.decomposed.total_cost / 1e9 / MACHINE
    far = [there + fetched(alone, Network(gigabits=gigabits)) for gigabits in GIGABITS]
    yield [f"one machine of {MACHINE} cores that has the data", *[f"{there:.1f} s"] * len(far)]
    yield [f"one machine of {MACHINE} cores that fetches {once}", *(f"{x:.1f} s" for x in far)]
    for workers in WORKERS:
        plans = [on_cluster(made, Network(workers=workers, gigabits=x)) for x in GIGABITS]
        machine = [there] * len(far) if made.carry else far
        yield [
            str(workers),
            *(
                f"{plan.seconds:.1f} s ({plan.seconds / alone:.2f}), {describe(plan)}"
                for plan, alone in zip(plans, machine, strict=True)
            ),
        ]


def rows(rounds: int) -> Iterator[Sequence[str]]:
    """Yield the rows of an execution, and those of a step of training."""
    del rounds
    yield ["**two layers, once**", *[""] * len(GIGABITS)]
    yield from rows_of(program(trained=False), "it")
    yield ["**a step of their training**", *[""] * len(GIGABITS)]
    yield from rows_of(program(trained=True), "it, and takes one step")


TABLE = Table(
    "cluster",
    "Two layers of graph convolution on a cluster, by the cost model",
    f"A graph with {EDGES:,.0f} edges and {NODES:,} nodes, and features of width {WIDTH}.\n"
    "Nothing ran: all figures are estimates of the cost model. A worker has one core. In\n"
    "parentheses, the time is compared with that of one machine: for a single execution,\n"
    "with a machine that first fetches all inputs through its own link; for training steps,\n"
    "with a machine that already has them. After the parentheses, the cells show how much\n"
    "data moves in each execution or step, and which tensors are copied to all workers.",
    ["workers", *(f"{gigabits:g} Gbit/s" for gigabits in GIGABITS)],
    rows,
)
