"""The paper's workloads on real graphs: inputs, and the same steps in scipy.

A `Workload` holds named inputs (scipy.sparse or NumPy), the program, the hand-written relational
script, and `reference`, which computes the output in memory with the same steps.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import scipy.sparse as sp

HERE = Path(__file__).parent
GRAPHS = HERE.parent.parent / "shared" / "data" / "graphs"
GENERATED = "generated-"
SECOND = f"{GENERATED}14000-490000-770-35"
"""A second graph beside the real ones, because a result on one graph may be a coincidence."""


@dataclass(frozen=True)
class Workload:
    """One program on one graph; `output` names the tensor that is compared.

    Programs of the paper run in its order, which `reference` uses, too.
    """

    name: str
    graph: str
    inputs: dict[str, Any]
    output: str
    reference: Callable[[], Any]
    association: str = "as-written"

    @property
    def program(self) -> str:
        """The EinSum program."""
        return (HERE / "programs" / f"{self.name}.ein").read_text(encoding="utf-8")

    @property
    def relational(self) -> str:
        """The purely relational script."""
        return (HERE / "relational" / f"{self.name}.sql").read_text(encoding="utf-8")


def _columns(graph: str, file: str, *names: str) -> list[Any]:
    table = pq.read_table(GRAPHS / graph / f"{file}.parquet")
    return [table[name].to_numpy() for name in names]


def load(graph: str) -> tuple[Any, Any]:
    """Return adjacency and node features of a graph, as scipy CSR.

    A graph ``generated-NODES-EDGES-FEATURES`` is made up, with power-law degrees and one entry in
    ten of its features, or a percentage given as a fourth number.
    """
    if graph.startswith(GENERATED):
        counts = [int(part) for part in graph.removeprefix(GENERATED).split("-")]
        nodes, edges, width, percent = (*counts, 10)[:4]
        made = power_law(nodes, edges, np.float64)
        random = np.random.default_rng(1)
        features = sp.random_array((nodes, width), density=percent / 100, rng=random, format="csr")
        return sp.csr_array((np.ones_like(made.data), made.indices, made.indptr)), features
    (labels,) = _columns(graph, "labels", "node")
    source, target = _columns(graph, "edges", "src", "dst")
    node, feature, value = _columns(graph, "features", "node", "feature", "value")
    nodes = len(labels)
    width = int(feature.max()) + 1
    adjacency = sp.csr_array((np.ones(len(source)), (source, target)), shape=(nodes, nodes))
    return adjacency, sp.csr_array((value.astype(float), (node, feature)), shape=(nodes, width))


def gcn(graph: str, hidden: int = 256, classes: int = 8) -> Workload:
    """Two layers of graph convolution with symmetric normalisation."""
    adjacency, features = load(graph)
    adjacency = sp.csr_array(adjacency + sp.eye_array(adjacency.shape[0]))
    scale = sp.csr_array(sp.diags_array(np.asarray(adjacency.sum(axis=1)).ravel() ** -0.5))
    random = np.random.default_rng(0)
    first = random.normal(size=(features.shape[1], hidden)) / 16
    second = random.normal(size=(hidden, classes)) / 16

    def reference() -> Any:
        normalised = scale @ adjacency @ scale
        inner = np.maximum((normalised @ features) @ first, 0)
        return np.maximum((normalised @ inner) @ second, 0)

    inputs = {"D": scale, "A": adjacency, "H": features, "W1": first, "W2": second}
    return Workload("gcn", graph, inputs, "H2", reference)


def attention(graph: str, width: int = 1024) -> Workload:
    """Attention scores along the edges of a graph."""
    adjacency, features = load(graph)
    random = np.random.default_rng(0)
    query = random.normal(size=(features.shape[1], width)) / 32
    key = random.normal(size=(features.shape[1], width)) / 32
    rows, columns = adjacency.tocoo().coords

    def reference() -> Any:
        queries, keys = features @ query, features @ key
        scores = np.empty(len(rows))
        for start in range(0, len(rows), 8192):  # all at once would copy gigabytes
            part = slice(start, start + 8192)
            scores[part] = np.einsum("ek,ek->e", queries[rows[part]], keys[columns[part]])
        return sp.csr_array((scores * adjacency.data / 32, (rows, columns)), shape=adjacency.shape)

    inputs = {"X": features, "WQ": query, "WK": key, "A": adjacency}
    return Workload("attention", graph, inputs, "Attn", reference)


def dense(graph: str, width: int = 1024) -> Workload:
    """Attention scores between all nodes of a graph."""
    _, features = load(graph)
    random = np.random.default_rng(0)
    query = random.normal(size=(features.shape[1], width)) / 32
    key = random.normal(size=(features.shape[1], width)) / 32
    array = features.toarray()
    inputs = {"X": features, "WQ": query, "WK": key}
    return Workload("dense", graph, inputs, "Attn", lambda: (array @ query) @ (array @ key).T / 32)


def chain(graph: str, width: int = 256) -> Workload:
    """Neighbours' features, projected: a product of three matrices."""
    adjacency, features = load(graph)
    weights = np.random.default_rng(0).normal(size=(features.shape[1], width)) / 16
    inputs = {"A": adjacency, "X": features, "W": weights}
    return Workload(
        "chain", graph, inputs, "Z", lambda: adjacency @ (features @ weights), association="free"
    )


def power_law(nodes: int, edges: int, dtype: Any, exponent: float = 0.75) -> Any:
    """A random graph as CSR: the k-th node is drawn as an end in proportion to k^-exponent."""
    random = np.random.default_rng(0)
    shares = np.cumsum(np.arange(1, nodes + 1) ** -exponent)
    names = random.permutation(nodes)
    ends = [names[np.searchsorted(shares, random.random(2 * edges) * shares[-1])] for _ in range(2)]
    cells = random.permutation(np.unique(ends[0].astype(np.int64) * nodes + ends[1]))[:edges]
    values = random.random(len(cells)).astype(dtype)
    return sp.csr_array((values, np.divmod(cells, nodes)), shape=(nodes, nodes))
