"""The workloads: the task of each engine, and the expected result.

A `Task` holds inputs as NumPy arrays or scipy matrices, the EinSum program, the relational script
over tables of the inputs' entries, and the same computation in memory. Tasks are identified by name
and data set, as each engine's process makes its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks import workloads
from benchmarks.paper.relational import Script, contract, one_statement, relu

LAYER_WIDTH = 256
"""The paper's hidden dimension."""


@dataclass(frozen=True)
class Task:
    """One program on one data set; `output` names the tensor that is compared."""

    name: str
    data: str
    program: str
    inputs: Mapping[str, Any]
    output: str
    relational: Script
    in_memory: Callable[[], Any] | None
    """The same computation with scipy or NumPy; None where they have nothing for it."""
    truth: Callable[[], Any] | None = None
    """Computes the expected result, where `in_memory` does not."""
    stored: bool = True
    """True if inputs are stored in the plan's layouts, False if they come from memory."""
    association: str = "as-written"
    """The paper's order; ``"free"`` where the order is the subject of an experiment."""
    steps: tuple[Any, ...] = ()
    """The data that peers with a library of their own need beside the inputs."""

    @property
    def key(self) -> str:
        """Name and data set."""
        return f"{self.name}:{self.data}"

    def expected(self) -> Any:
        """Return the expected result: a scipy matrix or an array."""
        made = self.truth or self.in_memory
        assert made is not None, f"{self.key} has no truth"
        found = made()
        return found if sp.issparse(found) else np.asarray(found)


def _of(workload: workloads.Workload, script: Script) -> Task:
    return Task(
        workload.name,
        workload.graph,
        workload.program,
        workload.inputs,
        workload.output,
        script,
        workload.reference,
    )


def attention(graph: str) -> Task:
    """Scores along the edges (section 9.2)."""
    steps = (
        contract("T0", "ik", ("X", "im"), ("WQ", "mk")),
        contract("T1", "jk", ("X", "jn"), ("WK", "nk")),
        contract("T2", "ijk", ("T0", "ik"), ("A", "ij")),
        contract("T3", "ij", ("T2", "ijk"), ("T1", "jk")),
        contract("Attn", "ij", ("T3", "ij"), scale=0.03125),
    )
    return _of(workloads.attention(graph), one_statement(steps))


def dense(graph: str) -> Task:
    """Scores between all nodes."""
    steps = (
        contract("T0", "ik", ("X", "im"), ("WQ", "mk")),
        contract("T1", "jk", ("X", "jn"), ("WK", "nk")),
        contract("T3", "ij", ("T0", "ik"), ("T1", "jk")),
        contract("Attn", "ij", ("T3", "ij"), scale=0.03125),
    )
    return _of(workloads.dense(graph), one_statement(steps))


def gcn(graph: str) -> Task:
    """Two layers of graph convolution in the paper's order."""
    steps = (
        contract("T0", "ik", ("D", "ij"), ("A", "jk")),
        contract("T1", "il", ("T0", "ik"), ("D", "kl")),
        contract("T2", "im", ("T1", "il"), ("H", "lm")),
        contract("T3", "in", ("T2", "im"), ("W1", "mn")),
        relu("H1", "T3", 2),
        contract("T4", "in", ("T1", "il"), ("H1", "ln")),
        contract("T5", "ic", ("T4", "in"), ("W2", "nc")),
        relu("H2", "T5", 2),
    )
    return _of(workloads.gcn(graph), one_statement(steps))


def layer(graph: str) -> Task:
    """One layer on dense features of a generated graph: ``generated-NODES-EDGES-WIDTH``."""
    counts = graph.removeprefix(workloads.GENERATED).split("-")
    nodes, edges, width = (int(part) for part in counts)
    adjacency = workloads.power_law(nodes, edges, np.float64)
    random = np.random.default_rng(1)
    features = random.random((nodes, width))
    weights = random.normal(size=(width, LAYER_WIDTH)) / 16

    steps = (
        contract("T2", "im", ("A", "il"), ("H", "lm")),
        contract("T3", "in", ("T2", "im"), ("W", "mn")),
        relu("Z", "T3", 2),
    )
    return Task(
        "layer",
        graph,
        "T2[i,m] += A[i,l] * H[l,m]\nT3[i,n] += T2[i,m] * W[m,n]\nZ[i,n] = relu(T3[i,n])",
        {"A": adjacency, "H": features, "W": weights},
        "Z",
        one_statement(steps),
        lambda: np.maximum((adjacency @ features) @ weights, 0),
    )


def entries(value: Any) -> tuple[list[Any], Any]:
    """Return the coordinates and values of the nonzero entries."""
    if sp.issparse(value):
        coo = sp.coo_array(value)
        return list(coo.coords), coo.data
    array = np.asarray(value)
    where = np.nonzero(array)
    return list(where), array[where]
