"""Graph convolution and attention along the edges of real graphs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.references.work import Work
from benchmarks.workloads import Workload, attention, gcn

SECOND = "generated-14000-490000-770-35"
"""A graph with power-law degrees, a third of whose features are stored."""
BATCH = 8192
"""Edges whose scores are computed at once: all of them would copy gigabytes."""


def works() -> Sequence[Work]:
    """GCN in the paper's order and in the best one, and sparse attention."""
    cora, photo = gcn("planetoid_cora"), gcn("amazon_photo")
    return (
        _work("GCN planetoid_cora, the paper's order", cora, lambda: _in_order(cora), 1.2),
        replace(
            _work("GCN planetoid_cora, free order", cora, lambda: _best_order(cora), 1.5),
            options={"association": "free"},
        ),
        replace(
            _work("GCN amazon_photo, free order", photo, lambda: _best_order(photo), 0.2),
            options={"association": "free"},
        ),
        _attention("planetoid_cora", 0.7),
        _attention("amazon_photo", 0.25),
        *(_from_entries(_attention(graph, 0.25)) for graph in ("amazon_photo", SECOND)),
        *map(_gcn_from_entries, (photo, gcn(SECOND))),
    )


def _gcn_from_entries(workload: Workload) -> Work:
    reference = partial(_best_order, workload)
    return _from_entries(_work(f"GCN {workload.graph}", workload, reference, 1.5))


def _from_entries(work: Work) -> Work:
    return replace(work, name=f"{work.name}, from entries", stored=False, options={})


def _work(name: str, workload: Workload, reference: Any, reach: float) -> Work:
    return Work(
        name,
        workload.program,
        workload.inputs,
        workload.output,
        reference,
        reach,
        options={"association": workload.association},
    )


def _in_order(workload: Workload) -> Any:
    d, a, h, w1, w2 = (workload.inputs[name] for name in ("D", "A", "H", "W1", "W2"))
    normalised = d @ a @ d
    hidden = np.maximum((normalised @ h) @ w1, 0)
    return np.maximum((normalised @ hidden) @ w2, 0)


def _best_order(workload: Workload) -> Any:
    """Each layer maps first, so that the edges meet the narrower side; degrees are vectors."""
    d, a, h, w1, w2 = (workload.inputs[name] for name in ("D", "A", "H", "W1", "W2"))
    scale = d.diagonal()[:, None]
    hidden = np.maximum(scale * (a @ (scale * (h @ w1))), 0)
    return np.maximum(scale * (a @ (scale * (hidden @ w2))), 0)


def _attention(graph: str, reach: float) -> Work:
    workload = attention(graph)
    x, wq, wk, a = (workload.inputs[name] for name in ("X", "WQ", "WK", "A"))
    rows, columns = a.tocoo().coords

    def reference() -> Any:
        queries, keys = x @ wq, x @ wk
        scores = np.empty(len(rows))
        for start in range(0, len(rows), BATCH):
            part = slice(start, start + BATCH)
            scores[part] = np.einsum("ek,ek->e", queries[rows[part]], keys[columns[part]])
        return sp.csr_array((scores * a.data * 0.03125, (rows, columns)), shape=a.shape)

    return _work(f"sparse attention {graph}", workload, reference, reach)
