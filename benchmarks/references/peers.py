"""The installed libraries that work in memory, side by side."""

from __future__ import annotations

import importlib.util
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.measure import THREADS

Side = Callable[[], Any]
Peers = Mapping[str, "Side | None"]
"""Sides by name; None if not installed."""

SIDES = {"NumPy": "numpy", "SciPy": "scipy", "GraphBLAS": "graphblas", "torch": "torch"}
"""The sides, and the package that each of them needs."""


def peers(**prepare: Callable[[], Side]) -> Peers:
    """Return the call of each installed side; `prepare` puts its data in place."""
    return {
        side: prepare[side]() if importlib.util.find_spec(module) else None
        for side, module in SIDES.items()
        if side in prepare
    }


def to_graphblas(array: Any) -> Any:
    """Convert a sparse or dense array for GraphBLAS."""
    import graphblas  # noqa: PLC0415

    graphblas.ss.config["nthreads"] = THREADS
    if sp.issparse(array):
        return graphblas.io.from_scipy_sparse(array)
    kind = graphblas.Vector if array.ndim == 1 else graphblas.Matrix
    return kind.from_dense(array)


def to_torch(array: Any) -> Any:
    """Convert a sparse or dense array for torch."""
    import torch  # noqa: PLC0415

    torch.set_num_threads(THREADS)
    if not sp.issparse(array):
        return torch.from_numpy(array)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # warns that its sparse tensors are in beta
        return torch.sparse_csr_tensor(
            torch.from_numpy(array.indptr.astype(np.int64)),
            torch.from_numpy(array.indices.astype(np.int64)),
            torch.from_numpy(array.data),
            array.shape,
        )


def to_array(answer: Any, fill: float = 0) -> Any:
    """Return the answer of any side as a NumPy array, or in SciPy's CSR for a sparse matrix."""
    module = type(answer).__module__.partition(".")[0]
    if module == "torch":
        import torch  # noqa: PLC0415

        if answer.layout == torch.strided:
            return answer.numpy()
        ends = (answer.values(), answer.col_indices(), answer.crow_indices())
        return sp.csr_array(tuple(end.numpy() for end in ends), shape=tuple(answer.shape))
    if module == "graphblas":
        import graphblas  # noqa: PLC0415

        if isinstance(answer, graphblas.Matrix):
            return sp.csr_array(graphblas.io.to_scipy_sparse(answer, "csr"))
        if isinstance(answer, graphblas.Vector):
            return answer.to_dense(fill_value=fill)
        return np.asarray(answer.value)
    return sp.csr_array(answer) if sp.issparse(answer) else np.asarray(answer)
