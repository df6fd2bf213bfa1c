"""Tasks by key, ``NAME:DATA``, and the selection for each kind of run."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.paper import algebra, tasks
from benchmarks.paper.tasks import Task
from benchmarks.workloads import SECOND


def _circuit(name: str) -> Task:
    from benchmarks.paper.circuits import circuit  # noqa: PLC0415 - qiskit takes a second

    return circuit(name)


MAKERS: dict[str, Callable[[str], Task]] = {
    "gcn": tasks.gcn,
    "attention": tasks.attention,
    "dense": tasks.dense,
    "layer": tasks.layer,
    "circuit": _circuit,
    "subgraph": algebra.subgraph,
    "triangles": algebra.triangles,
    "matrix chain": algebra.matrix_chain,
    "SDDMM": algebra.sddmm,
    "ALS loss": algebra.als_loss,
    "PNMF sum": algebra.sum_of_product,
}

QUICK = ("gcn:planetoid_cora", "attention:planetoid_cora", "circuit:seca_n11")
"""The tasks of `--quick`."""

SUITE = (
    "gcn:planetoid_cora",
    "gcn:amazon_photo",
    "attention:planetoid_cora",
    "attention:amazon_photo",
    f"gcn:{SECOND}",
    f"attention:{SECOND}",
    "dense:planetoid_cora",
    "circuit:seca_n11",
    "circuit:multiplier_n13",
    "circuit:seca_n11+",
    "circuit:multiplier_n13+",
    "circuit:ising_n10",
    "subgraph:yeast/query_dense_4_115",
    "subgraph:yeast/query_sparse_8_129",
    "subgraph:yeast/query_dense_8_196",
    "triangles:yeast",
    "triangles:human",
    "matrix chain:0.001",
    "SDDMM:0.001",
    "ALS loss:amazon_photo",
    "PNMF sum:2000",
)

SCALE = tuple(
    f"layer:generated-{nodes}-{edges}-{width}"
    for nodes, edges, width in (
        (10_584, 72_890, 128),  # ogbn-arxiv by 16
        (42_336, 291_561, 128),  # by 4
        (169_343, 1_166_243, 128),
        (153_000, 3_866_000, 100),  # ogbn-products by 16
        (306_000, 7_732_000, 100),  # by 8
    )
)
"""Graphs of the sizes of ogbn-arxiv and ogbn-products, and of fractions of them."""


def make_task(key: str) -> Task:
    """Return the task of a key."""
    name, _, data = key.partition(":")
    return MAKERS[name](data)
