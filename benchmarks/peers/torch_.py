"""The same steps in memory with PyTorch: sparse matrices in CSR, gathers along edges."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch

from benchmarks.paper.tasks import Task
from benchmarks.peers import THREADS, SkippedError

EDGES = 8192
"""Edges of a block in which both ends' vectors are gathered."""


def tensor(value: Any) -> Any:
    """Return a tensor, in CSR where the input is sparse."""
    if not sp.issparse(value):
        return torch.from_numpy(np.ascontiguousarray(value))
    csr = sp.csr_array(value)
    indices = (
        torch.from_numpy(csr.indptr.astype(np.int64)),
        torch.from_numpy(csr.indices.astype(np.int64)),
    )
    return torch.sparse_csr_tensor(*indices, torch.from_numpy(csr.data), size=csr.shape)


def attention(x: dict[str, Any]) -> Any:
    """Products of the vectors at both ends of every edge."""
    queries, keys = x["X"] @ x["WQ"], x["X"] @ x["WK"]
    rows, columns = x["edges"]
    scores = torch.empty(len(rows), dtype=queries.dtype)
    for start in range(0, len(rows), EDGES):
        part = slice(start, start + EDGES)
        scores[part] = (queries[rows[part]] * keys[columns[part]]).sum(dim=1)
    values = scores * x["values"] * 0.03125
    return sp.csr_array((values.numpy(), (rows.numpy(), columns.numpy())), shape=x["A"].shape)


def dense(x: dict[str, Any]) -> Any:
    """All pairs."""
    return (0.03125 * ((x["X"] @ x["WQ"]) @ (x["X"] @ x["WK"]).T)).numpy()


def gcn(x: dict[str, Any]) -> Any:
    """Sparse products, and dense ones for the weights."""
    normalised = x["D"] @ x["A"] @ x["D"]
    features = (normalised @ x["H"]).to_dense()
    inner = torch.relu(features @ x["W1"])
    return torch.relu((normalised @ inner) @ x["W2"]).numpy()


def layer(x: dict[str, Any]) -> Any:
    """One layer on dense features."""
    return torch.relu((x["A"] @ x["H"]) @ x["W"]).numpy()


def matrix_chain(x: dict[str, Any]) -> Any:
    """The sparser product first."""
    return _scipy(x["A"] @ (x["B"] @ x["C"]))


def sddmm(x: dict[str, Any]) -> Any:
    """Products of dense rows and columns where the third matrix has an entry."""
    left, right = x["A"].to_dense(), x["B"].to_dense()
    # beta = 0 leaves only the product; the sample's own values are multiplied after it.
    made = torch.sparse.sampled_addmm(x["C"], left, right, beta=0.0)
    return _scipy(
        torch.sparse_csr_tensor(
            made.crow_indices(), made.col_indices(), made.values() * x["C"].values(), made.shape
        )
    )


def als_loss(x: dict[str, Any]) -> Any:
    """The dense difference."""
    return (x["X"].to_dense() - x["U"] @ x["V"].T).square().sum().numpy()


def sum_of_product(x: dict[str, Any]) -> Any:
    """The dense product."""
    return (x["W"] @ x["H"]).sum().numpy()


def triangles(x: dict[str, Any]) -> Any:
    """A sparse product, and its entries along edges."""
    product = _scipy(x["A"] @ x["A"])
    return np.asarray((product * _scipy(x["A"]).T).sum())


def _scipy(matrix: Any) -> Any:
    parts = (matrix.values(), matrix.col_indices(), matrix.crow_indices())
    return sp.csr_array(tuple(part.numpy() for part in parts), shape=tuple(matrix.shape))


STEPS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "attention": attention,
    "dense": dense,
    "gcn": gcn,
    "layer": layer,
    "matrix chain": matrix_chain,
    "SDDMM": sddmm,
    "ALS loss": als_loss,
    "PNMF sum": sum_of_product,
    "triangles": triangles,
}


class Engine:
    """Inputs as tensors."""

    def load(self, task: Task) -> None:
        """Convert the inputs."""
        torch.set_num_threads(THREADS)
        self._result: Any = None
        if task.name == "circuit":
            gates = [(torch.from_numpy(g.tensor), g.qubits) for g in task.steps]
            self._inputs = {"state": torch.from_numpy(task.inputs["s0"]), "gates": gates}
            self._steps = circuit
            return
        if task.name not in STEPS:
            raise SkippedError("no such operation")
        self._steps = STEPS[task.name]
        dense_features = task.name == "dense"
        self._inputs = {
            name: tensor(value.toarray() if dense_features and sp.issparse(value) else value)
            for name, value in task.inputs.items()
        }
        if task.name == "attention":
            coo = sp.coo_array(task.inputs["A"])
            self._inputs["edges"] = [torch.from_numpy(c.astype(np.int64)) for c in coo.coords]
            self._inputs["values"] = torch.from_numpy(coo.data)

    def run(self) -> None:
        """Run the steps."""
        self._result = None
        self._result = self._steps(self._inputs)

    def result(self) -> Any:
        """Return the result."""
        return self._result

    def close(self) -> None:
        """Do nothing, as nothing is open."""


def circuit(x: dict[str, Any]) -> Any:
    """Gate by gate, on the axes of its qubits."""
    state = x["state"]
    for gate, qubits in x["gates"]:
        count = len(qubits)
        state = torch.tensordot(gate, state, (list(range(count, 2 * count)), list(qubits)))
        state = torch.movedim(state, list(range(count)), list(qubits))
    return state.numpy()
