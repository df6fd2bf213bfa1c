"""The time of the search for a decomposition, and the losses of the paper's simpler searches.

The paper compares greedy search with its dynamic program by running both (Table 9). Here plans of
all three searches are run where there is a real graph, and compared by predicted cost everywhere.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

import ucle
from benchmarks.measure import THREADS, Table, race, ratio
from benchmarks.stored import input_tables
from benchmarks.workloads import GRAPHS, attention, chain, gcn
from ucle.optimiser.sparse_einsum import METHODS, sparse_einsum
from ucle.pipeline.replan import costed_program

LAYERS = 145
"""Layers of the network, which makes 1,015 vertices."""
Case = tuple[str, str, Mapping[str, Any], bool]


def network(layers: int, nodes: int = 200, width: int = 16) -> Case:
    """Graph convolutions with residual connections, so that every layer is read twice."""
    lines, state = [], "X"
    random = np.random.default_rng(0)
    inputs: dict[str, Any] = {
        "A": sp.random_array((nodes, nodes), density=0.02, rng=random, format="coo"),
        "X": random.random((nodes, width)),
    }
    for n in range(layers):
        inputs |= {f"W{n}": random.random((width, width)), f"b{n}": random.random(width)}
        lines += [
            f"P{n}[i,m] += A[i,j] * {state}[j,m]",
            f"Q{n}[i,n] += P{n}[i,m] * W{n}[m,n]",
            f"R{n}[i,n] = relu(Q{n}[i,n] + b{n}[n])",
            f"X{n}[i,n] = 0.5 * R{n}[i,n] + 0.5 * {state}[i,n]",
        ]
        state = f"X{n}"
    return f"network of {layers} layers", "\n".join(lines), inputs, False


def gates(qubits: int, count: int) -> Case:
    """Hadamard gates on one qubit after the other, from a basis state."""
    state = np.zeros((2,) * qubits, dtype=np.complex128)
    state[(0,) * qubits] = 1
    gate = np.array([[1, 1], [1, -1]]) / np.sqrt(2)
    labels, lines, name = [f"q{n}" for n in range(qubits)], [], "S"
    for n in range(count):
        at = n % qubits
        made = [f"r{n}" if axis == at else label for axis, label in enumerate(labels)]
        gate_text = f"G[r{n},{labels[at]}]"
        lines.append(f"S{n}[{','.join(made)}] += {name}[{','.join(labels)}] * {gate_text}")
        labels, name = made, f"S{n}"
    return f"{count} gates on {qubits} qubits", "\n".join(lines), {"S": state, "G": gate}, False


def cases() -> Iterator[Callable[[], Case]]:
    """Yield a maker for each line of the table; inputs are made when they are needed."""
    if GRAPHS.is_dir():
        for make in (gcn, attention, chain):
            for graph in ("planetoid_cora", "amazon_photo"):
                yield lambda make=make, graph=graph: (
                    (w := make(graph)).name + f", {graph}",
                    w.program,
                    w.inputs,
                    True,
                )
    yield lambda: network(LAYERS)
    for qubits, count in ((5, 60), (12, 60), (20, 24)):
        yield lambda q=qubits, c=count: gates(q, c)


def _measure(case: Case, rounds: int) -> Sequence[str]:
    name, text, inputs, runs = case
    with ucle.connect(threads=THREADS) as connection:
        program = ucle.einsum_program(
            text,
            database=connection,
            inputs=input_tables(connection, inputs),
            association="as-written",
        )
        found, seconds = {}, []
        for method in METHODS:
            for _ in range(rounds if method == "dag" else 1):
                costed = costed_program(program.compiled, program.options)  # has no prices yet
                start = time.perf_counter()
                found[method] = sparse_einsum(costed, method=method)
                if method == "dag":
                    seconds.append(time.perf_counter() - start)
        search = found["dag"].search
        assert search is not None
        sides = {}
        for method, decomposed in found.items() if runs else ():
            plan = program.with_decomposition(decomposed.promoted)
            sides[method] = lambda plan=plan: plan.execute(connection)
        times = race(sides, rounds)
    costs = {m: d.total_cost / found["dag"].total_cost for m, d in found.items()}
    return (
        name,
        str(len(program.compiled.program.vertices)),
        f"2^{search.levels}",
        "yes" if search.exact else "no",
        f"{1000 * statistics.median(seconds):.0f}",
        ratio(costs["trees"]),
        ratio(costs["greedy"]),
        ratio(times["trees"] / times["dag"]) if runs else "",
        ratio(times["greedy"] / times["dag"]) if runs else "",
    )


def _rows(rounds: int) -> Iterator[Sequence[str]]:
    for make in cases():
        yield _measure(make(), rounds)


TABLE = Table(
    "optimiser",
    "The search for decompositions",
    "`ms` is the time of the search over the whole DAG, for products as written, and\n"
    "`optimum` says whether it finds the optimum. The last four columns show two simpler\n"
    "searches of the paper, which cut the DAG into trees or are greedy: the predicted costs\n"
    "of their plans and the measured times, divided by those of the search over the whole\n"
    "DAG.",
    (
        "program",
        "vertices",
        "decompositions",
        "optimum",
        "ms",
        "trees, predicted",
        "greedy, predicted",
        "trees, measured",
        "greedy, measured",
    ),
    _rows,
)
