"""Programs with products in the order of the text, and in the join order that is chosen.

For each graph: the predicted cost and the time of both orders, and the time of the compiler with
and without the choice.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import ucle
from benchmarks.measure import THREADS, Table, expect_close, race, ratio
from benchmarks.stored import input_tables
from benchmarks.workloads import GRAPHS, gcn, load
from ucle.options import ASSOCIATIONS

WIDTH = 256
NARROW = 8


@dataclass(frozen=True)
class Case:
    """A program on a graph, in the order that its text has."""

    name: str
    text: str
    inputs: Mapping[str, Any]
    output: str


def cases(graph: str) -> Iterator[Case]:
    """Products of three matrices in either order, graph convolution, and one of four matrices."""
    adjacency, features = load(graph)
    random = np.random.default_rng(0)
    first = random.normal(size=(features.shape[1], WIDTH)) / 16
    second = random.normal(size=(WIDTH, NARROW)) / 16
    chain = {"A": adjacency, "X": features, "W": first}
    yield Case("(A X) W", "Y[i,m] += A[i,j] * X[j,m]; Z[i,n] += Y[i,m] * W[m,n]", chain, "Z")
    yield Case("A (X W)", "Y[j,n] += X[j,m] * W[m,n]; Z[i,n] += A[i,j] * Y[j,n]", chain, "Z")
    yield Case(
        "((A X) W) V",
        "Z[i,p] += A[i,j] * X[j,m] * W[m,n] * V[n,p]",
        {**chain, "V": second},
        "Z",
    )
    workload = gcn(graph)
    yield Case("gcn", workload.program, workload.inputs, workload.output)


def _measure(case: Case, graph: str, rounds: int) -> Sequence[str]:
    with ucle.connect(threads=THREADS) as connection:
        inputs = input_tables(connection, case.inputs)

        def compiled(choice: str) -> ucle.EinsumProgram:
            return ucle.einsum_program(
                case.text, database=connection, inputs=inputs, association=choice
            )

        compiling = race({choice: lambda c=choice: compiled(c) for choice in ASSOCIATIONS}, rounds)
        free, written = (compiled(choice) for choice in ASSOCIATIONS)
        expected: list[Any] = []

        def check(_: str, result: Any) -> None:
            found = result[case.output].to_numpy()
            if expected:
                expect_close(f"{case.name} on {graph}", found, expected[0], 1e-9)
            expected.append(found)

        sides = {"free": free, "as-written": written}
        times = race(
            {side: lambda p=program: p.execute(connection) for side, program in sides.items()},
            rounds,
            check,
        )
    chosen = free.compiled.association
    return (
        case.name,
        graph,
        ", ".join(chosen.products) if chosen else "as written",
        ratio(written.cost / free.cost),
        f"{times['as-written']:.3f}",
        f"{times['free']:.3f}",
        ratio(times["as-written"] / times["free"]),
        f"{1000 * compiling['as-written']:.0f}",
        f"{1000 * compiling['free']:.0f}",
    )


def _rows(rounds: int) -> Iterator[Sequence[str]]:
    if not GRAPHS.is_dir():
        raise SystemExit(f"the graphs are not there: {GRAPHS}")
    gains = []
    for graph in sorted(path.name for path in GRAPHS.iterdir()):
        for case in cases(graph):
            row = _measure(case, graph, rounds)
            gains.append(float(row[6]))
            yield row
    mean = math.exp(float(np.mean(np.log(gains))))
    yield ("geometric mean", "", "", "", "", "", ratio(mean), "", "")


TABLE = Table(
    "association",
    "Products as written and as chosen",
    "`predicted` is the predicted cost of the written order, divided by that of the chosen\n"
    "order. `measured` is the same ratio for the measured times, which are in seconds. The\n"
    "last two columns show the time of compilation in milliseconds, in the written order\n"
    "and with a free choice. Sparse inputs are tables of entries, dense inputs are arrays\n"
    "from memory.",
    (
        "program",
        "graph",
        "chosen",
        "predicted",
        "as written",
        "as chosen",
        "measured",
        "compile, as written",
        "compile, free",
    ),
    _rows,
)
