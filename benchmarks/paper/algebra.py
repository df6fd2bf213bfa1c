"""Linear algebra and counting: the kernels of Galley and SPORES, subgraphs and triangles."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import scipy.sparse as sp

from benchmarks.paper.relational import Script, Step, chained, contract, one_statement
from benchmarks.paper.tasks import Task
from benchmarks.workloads import GRAPHS, load

SUBGRAPHS = GRAPHS.parent / "subgraph"
SIDE, DENSITY = 2000, 0.1
"""Side and density of the matrices A and B of galley.txt, section 7.2."""
RANK = 10
"""Rank of the factors of ALS."""


def _uniform(density: float, seed: int, side: int) -> Any:
    return sp.random_array(
        (side, side), density=density, rng=np.random.default_rng(seed), format="csr"
    )


def matrix_chain(density: str, side: int = SIDE) -> Task:
    """A product of three matrices; the last one has the given density."""
    a, b, c = (_uniform(d, n, side) for n, d in enumerate((DENSITY, DENSITY, float(density))))
    steps = (
        contract("P", "jl", ("B", "jk"), ("C", "kl")),
        contract("Z", "il", ("A", "ij"), ("P", "jl")),
    )
    return Task(
        "matrix chain",
        density,
        "Z[i,l] += A[i,j] * B[j,k] * C[k,l]",
        {"A": a, "B": b, "C": c},
        "Z",
        one_statement(steps),
        lambda: a @ (b @ c),
        association="free",
    )


def sddmm(density: str, side: int = SIDE) -> Task:
    """Entries of a product of two matrices at the places where a third one has entries."""
    a, b, c = (_uniform(d, n, side) for n, d in enumerate((DENSITY, DENSITY, float(density))))
    steps = (
        contract("P", "ikj", ("C", "ik"), ("A", "ij")),
        contract("Z", "ik", ("P", "ikj"), ("B", "jk")),
    )
    return Task(
        "SDDMM",
        density,
        "Z[i,k] += C[i,k] * A[i,j] * B[j,k]",
        {"A": a, "B": b, "C": c},
        "Z",
        one_statement(steps),
        lambda: sp.csr_array(c * (a @ b)),
        association="free",
    )


def als_loss(graph: str) -> Task:
    """The squared error of a factorisation of a graph's features (spores.txt, section 4.2)."""
    _, features = load(graph)
    random = np.random.default_rng(0)
    left, right = (random.random((n, RANK)) / RANK for n in features.shape)
    difference = "COALESCE(x.v, 0) - p.v"
    steps = (
        contract("P", "ij", ("U", "ik"), ("V", "jk")),
        Step(
            "loss",
            f"SELECT SUM(({difference}) * ({difference})) AS v\n"
            "FROM P p LEFT JOIN X x ON x.c0 = p.c0 AND x.c1 = p.c1",
        ),
    )
    return Task(
        "ALS loss",
        graph,
        "P[i,j] += U[i,k] * V[j,k]\nloss += square(X[i,j] - P[i,j])",
        {"X": features, "U": left, "V": right},
        "loss",
        one_statement(steps),
        lambda: np.square(features.toarray() - left @ right.T).sum(),
        association="free",
    )


def sum_of_product(side: str) -> Task:
    """``sum(WH)`` of PNMF with dense factors (spores.txt, section 4.2)."""
    random = np.random.default_rng(0)
    left, right = random.random((int(side), 2 * RANK)), random.random((2 * RANK, int(side)))
    steps = (
        contract("P", "ij", ("W", "ik"), ("H", "kj")),
        contract("total", "", ("P", "ij")),
    )
    return Task(
        "PNMF sum",
        side,
        "total += W[i,k] * H[k,j]",
        {"W": left, "H": right},
        "total",
        one_statement(steps),
        lambda: np.sum(left @ right),
        association="free",
    )


@cache
def _graph(name: str) -> tuple[Any, Any]:
    """Return the adjacency matrix and the label of every vertex."""
    vertices = pq.read_table(SUBGRAPHS / name / "vertices.parquet")
    edges = pq.read_table(SUBGRAPHS / name / "edges.parquet")
    count = len(vertices)
    ends = edges["src"].to_numpy(), edges["dst"].to_numpy()
    return sp.csr_array((np.ones(len(edges)), ends), shape=(count, count)), vertices[
        "label"
    ].to_numpy()


def triangles(name: str) -> Task:
    """Closed walks of three edges."""
    return of_triangles(name, _graph(name)[0])


def of_triangles(name: str, adjacency: Any) -> Task:
    """Closed walks of three edges, of an adjacency matrix."""
    steps = (
        contract("P", "ik", ("A", "ij"), ("A", "jk")),
        contract("t", "", ("P", "ik"), ("A", "ki")),
    )
    return Task(
        "triangles",
        name,
        "t += A[i,j] * A[j,k] * A[k,i]",
        {"A": adjacency},
        "t",
        one_statement(steps),
        lambda: np.sum(sp.csr_array(adjacency @ adjacency) * adjacency.T),
        association="free",
    )


def subgraph(which: str) -> Task:
    """The number of matches of a query, ``GRAPH/NAME``, from the file of its graph."""
    graph, name = which.split("/")
    adjacency, labels = _graph(graph)
    queries = json.loads((SUBGRAPHS / graph / "queries.json").read_text(encoding="utf-8"))
    (query,) = [found for found in queries if found["name"] == name]
    inputs: dict[str, Any] = {"E": adjacency}
    factors: list[tuple[str, list[str]]] = []
    for vertex, label in enumerate(query["vertex_labels"]):
        inputs[f"L{label}"] = sp.coo_array((labels == label).astype(float))
        factors.append((f"L{label}", [f"x{vertex}"]))
    factors += [("E", [f"x{a}", f"x{b}"]) for a, b in query["edges"]]
    text = " * ".join(f"{tensor}[{','.join(axes)}]" for tensor, axes in factors)
    return Task(
        "subgraph",
        which,
        f"found += {text}",
        inputs,
        "found",
        Script(tuple(chained("result", (), _connected(factors)))),
        None,
        lambda: float(query["count_hom"]),
        association="free",
    )


def _connected(factors: list[tuple[str, list[str]]]) -> list[tuple[str, list[str]]]:
    """Order factors so that each shares a label with earlier ones, the smallest factors first."""
    waiting = sorted(factors, key=lambda factor: len(factor[1]))
    ordered, seen = [waiting.pop(0)], set[str]()
    while waiting:
        seen |= set(ordered[-1][1])
        # Factors without new labels only filter; after them, edges to one new vertex.
        new = [len(set(axes) - seen) if set(axes) & seen else 9 for _, axes in waiting]
        ordered.append(waiting.pop(int(np.argmin(new))))
    return ordered
