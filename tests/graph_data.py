"""The paper's two workloads on the real graphs, and what scipy says of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import scipy.sparse as sp

PROGRAMS = Path(__file__).parent / "programs"
NAMES = ("cora_lcc", "planetoid_cora", "planetoid_citeseer", "amazon_photo")
HIDDEN = 256
CLASSES = 8
WIDTH = 1024


@dataclass(frozen=True)
class Workload:
    """A program text with its inputs, the tensor that is compared, and its true value."""

    text: str
    inputs: dict[str, Any]
    output: str
    expected: Any


@cache
def load(folder: Path) -> tuple[Any, Any]:
    """Adjacency and node features of a graph, as scipy CSR."""

    def columns(file: str, *names: str) -> list[Any]:
        table = pq.read_table(folder / f"{file}.parquet")
        return [table[name].to_numpy() for name in names]

    nodes = len(columns("labels", "node")[0])
    source, target = columns("edges", "src", "dst")
    node, feature, value = columns("features", "node", "feature", "value")
    shape = (nodes, int(feature.max()) + 1)
    adjacency = sp.csr_array((np.ones(len(source)), (source, target)), shape=(nodes, nodes))
    return adjacency, sp.csr_array((value.astype(float), (node, feature)), shape=shape)


@cache
def gcn(folder: Path) -> Workload:
    """Two layers of graph convolution with symmetric normalisation."""
    adjacency, features = load(folder)
    adjacency = sp.csr_array(adjacency + sp.eye_array(adjacency.shape[0]))
    scale = sp.csr_array(sp.diags_array(np.asarray(adjacency.sum(axis=1)).ravel() ** -0.5))
    random = np.random.default_rng(0)
    first = random.normal(size=(features.shape[1], HIDDEN)) / 16
    second = random.normal(size=(HIDDEN, CLASSES)) / 16
    normalised = scale @ adjacency @ scale
    inner = np.maximum((normalised @ features) @ first, 0)
    expected = np.maximum((normalised @ inner) @ second, 0)
    inputs = {"D": scale, "A": adjacency, "H": features, "W1": first, "W2": second}
    return Workload((PROGRAMS / "gcn.ein").read_text(encoding="utf-8"), inputs, "H2", expected)


@cache
def attention(folder: Path) -> Workload:
    """Attention scores along the edges of a graph."""
    adjacency, features = load(folder)
    random = np.random.default_rng(0)
    query = random.normal(size=(features.shape[1], WIDTH)) / 32
    key = random.normal(size=(features.shape[1], WIDTH)) / 32
    queries, keys = features @ query, features @ key
    rows, columns = adjacency.tocoo().coords
    scores = np.empty(len(rows))
    for start in range(0, len(rows), 8192):  # all at once would copy gigabytes
        part = slice(start, start + 8192)
        scores[part] = np.einsum("ek,ek->e", queries[rows[part]], keys[columns[part]])
    expected = sp.csr_array((scores / np.sqrt(WIDTH), (rows, columns)), shape=adjacency.shape)
    inputs = {"X": features, "WQ": query, "WK": key, "A": adjacency}
    text = (PROGRAMS / "attention.ein").read_text(encoding="utf-8")
    return Workload(text, inputs, "Attn", expected)
