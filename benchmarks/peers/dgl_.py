"""The message passing of graph programs with DGL, where it can be imported."""

from __future__ import annotations

from typing import Any

import dgl
import numpy as np
import scipy.sparse as sp
import torch

from benchmarks.paper.tasks import Task
from benchmarks.peers import THREADS, SkippedError
from benchmarks.peers.torch_ import tensor


class Engine:
    """The graph as a DGL graph, the rest as tensors."""

    def load(self, task: Task) -> None:
        """Build the graph."""
        if task.name not in ("attention", "gcn", "layer"):
            raise SkippedError("no such operation")
        torch.set_num_threads(THREADS)
        self._name = task.name
        rows, columns = sp.coo_array(task.inputs["A"]).coords
        nodes = task.inputs["A"].shape[0]
        ends = [torch.from_numpy(index.astype(np.int64)) for index in (columns, rows)]
        self._graph = dgl.graph(tuple(ends), num_nodes=nodes)
        self._values = torch.from_numpy(sp.coo_array(task.inputs["A"]).data)
        self._edges = rows, columns
        self._inputs = {name: tensor(value) for name, value in task.inputs.items() if name != "A"}
        self._result: Any = None

    def _gather(self, weights: Any, vectors: Any) -> Any:
        return dgl.ops.u_mul_e_sum(self._graph, vectors, weights[:, None])

    def run(self) -> None:
        """Pass the messages."""
        x, rows, columns = self._inputs, *self._edges
        self._result = None
        if self._name == "attention":
            queries, keys = x["X"] @ x["WQ"], x["X"] @ x["WK"]
            scores = dgl.ops.u_dot_v(self._graph, keys, queries)[:, 0] * self._values * 0.03125
            shape = (self._graph.num_nodes(),) * 2
            self._result = sp.csr_array((scores.numpy(), (rows, columns)), shape=shape)
        elif self._name == "layer":
            self._result = torch.relu(self._gather(self._values, x["H"]) @ x["W"]).numpy()
        else:
            scale = x["D"].values()
            weights = scale[rows] * self._values * scale[columns]
            inner = torch.relu(self._gather(weights, x["H"].to_dense()) @ x["W1"])
            self._result = torch.relu(self._gather(weights, inner) @ x["W2"]).numpy()

    def result(self) -> Any:
        """Return the result."""
        return self._result

    def close(self) -> None:
        """Do nothing, as nothing is open."""
