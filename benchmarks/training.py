"""Steps of training: a graph network by Adam, in DuckDB and in PyTorch.

The network, numbers and masks are the same on both sides: two layers of graph convolution with
dropout in between, cross-entropy over the nodes of a training set, weight decay on the first layer.
ucle's parameters stay in the database from step to step, where the first step finds them in memory
or in tables; PyTorch has all data in memory, sparse matrices as CSR.
"""

from __future__ import annotations

import contextlib
import importlib.util
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import scipy.sparse as sp
from numpy.typing import NDArray

import ucle
from benchmarks.measure import THREADS, Table, expect_close, race, ratio
from benchmarks.workloads import GRAPHS, load
from ucle.database.session import Session

RATE, DECAY, KEPT = 0.01, 5e-4, 0.5
"""The rate of Adam, the decay of the first layer's weights, and the share that dropout keeps."""

STEPS = 10
"""Steps that are timed together."""

TEXT = """
H[i,h] = relu(A[i,j] * X[j,f] * W1[f,h]) * keep[i,h]
L[i,c] = A[i,j] * H[j,h] * W2[h,c]
loss = -sum[i,c](Y[i,c] * (L[i,c] - logsumexp[c](L[i,c])))
"""


@dataclass(frozen=True)
class Network:
    """Training data of a network: `shares` has a row for each node, zero for unused ones."""

    graph: str
    adjacency: Any
    features: Any
    shares: NDArray[np.float64]
    first: NDArray[np.float64]
    second: NDArray[np.float64]
    rate: float = RATE

    def mask(self, step: int) -> NDArray[np.float64]:
        """Return the dropout mask of a step, divided by the share that it keeps."""
        shape = (len(self.shares), self.first.shape[1])
        return (np.random.default_rng(step).random(shape) < KEPT) / KEPT


def network(graph: str, hidden: int, rate: float = RATE, trained: int = 140) -> Network:
    """Return a graph with normalised adjacency and features, and initial weights."""
    adjacency, features = load(graph)
    adjacency = sp.csr_array(adjacency + sp.eye_array(adjacency.shape[0]))
    scale = sp.diags_array(np.asarray(adjacency.sum(axis=1)).ravel() ** -0.5)
    rows = sp.diags_array(1 / np.maximum(np.asarray(features.sum(axis=1)).ravel(), 1))
    labels = pq.read_table(GRAPHS / graph / "labels.parquet")["label"].to_numpy()
    shares = np.zeros((len(labels), labels.max() + 1))
    shares[np.arange(trained), labels[:trained]] = 1 / trained
    random = np.random.default_rng(0)
    width, classes = features.shape[1], shares.shape[1]
    return Network(
        graph,
        sp.csr_array(scale @ adjacency @ scale),
        sp.csr_array(rows @ features),
        shares,
        random.normal(size=(width, hidden)) * (2 / (width + hidden)) ** 0.5,
        random.normal(size=(hidden, classes)) * (2 / (hidden + classes)) ** 0.5,
        rate,
    )


def _step(data: Network, connection: duckdb.DuckDBPyConnection, *, tables: bool) -> Any:
    """Return the program of a step, with initial parameters in memory or in tables."""
    given: dict[str, Any] = {"W1": data.first, "W2": data.second}
    if tables:
        for name, array in given.items():
            columns = {"i": np.arange(len(array), dtype=np.int32), "v": list(array)}
            connection.register("given", pa.table(columns))
            connection.execute(f"CREATE OR REPLACE TABLE {name} AS SELECT i, v FROM given")
            connection.unregister("given")
            shape = array.shape[1:]
            given[name] = ucle.table(name, ["i"], "v", shape=shape, bounds=array.shape)
    program = ucle.einsum_program(
        TEXT,
        inputs={
            "A": data.adjacency,
            "X": data.features,
            "Y": data.shares,
            "keep": ucle.parameter(np.ones((len(data.shares), data.first.shape[1]))),
            **given,
        },
        database=connection,
    )
    return program.minimize("loss", ["W1", "W2"], optimiser(data))


def optimiser(data: Network) -> Any:
    """Return the optimiser of a network: Adam, which has the first layer's weights decay."""
    return ucle.optim.adam(data.rate, weight_decay={"W1": DECAY})


def torch_steps(data: Network) -> Callable[[int], list[float]]:
    """Return a function that runs a number of steps and returns their losses."""
    import torch  # noqa: PLC0415

    torch.set_num_threads(THREADS)
    torch.set_default_dtype(torch.float64)

    def sparse(matrix: Any) -> torch.Tensor:
        parts = (torch.from_numpy(x) for x in (matrix.indptr, matrix.indices, matrix.data))
        return torch.sparse_csr_tensor(*parts, size=matrix.shape)

    adjacency, features = sparse(data.adjacency), sparse(data.features)
    shares = torch.from_numpy(data.shares)
    first, second = (torch.tensor(x, requires_grad=True) for x in (data.first, data.second))
    groups = [{"params": [first], "weight_decay": DECAY}, {"params": [second]}]
    adam = torch.optim.Adam(groups, lr=data.rate)
    done = 0

    def steps(count: int) -> list[float]:
        nonlocal done
        losses = []
        for _ in range(count):
            mask = torch.from_numpy(data.mask(done))
            done += 1
            adam.zero_grad()
            hidden = torch.relu(adjacency @ (features @ first)) * mask
            scores = adjacency @ (hidden @ second)
            loss = -(shares * torch.log_softmax(scores, 1)).sum()
            loss.backward()
            adam.step()
            losses.append(float(loss.detach()))
        return losses

    return steps


def _ucle_steps(run: Any, data: Network) -> Callable[[int], list[float]]:
    def steps(count: int) -> list[float]:
        return [float(run(keep=data.mask(run.steps))["loss"].to_numpy()) for _ in range(count)]

    return steps


@contextlib.contextmanager
def _counted() -> Iterator[list[str]]:
    """Record the statements that sessions send, except those that drop something."""
    sent: list[str] = []
    fetch, run = Session.fetch, Session.run

    def noted(function: Any) -> Any:
        def send(self: Session, sql: str, *arguments: Any, **more: Any) -> Any:
            sent.append(sql)
            return function(self, sql, *arguments, **more)

        return send

    Session.fetch, Session.run = noted(fetch), noted(run)  # type: ignore[method-assign]
    try:
        yield sent
    finally:
        Session.fetch, Session.run = fetch, run  # type: ignore[method-assign]


@dataclass(frozen=True)
class Steps:
    """Seconds of steps of training; `statements` are those of a step after the first."""

    compiled: float
    torch: float
    ucle: float
    statements: int


def measure(data: Network, rounds: int, *, tables: bool) -> Steps:
    """Time both sides in turn, after checking that their losses are equal."""
    with contextlib.closing(ucle.connect(threads=THREADS)) as connection:
        started = time.perf_counter()
        step = _step(data, connection, tables=tables)
        compiled = time.perf_counter() - started
        with step.prepare(connection) as run:
            by_torch, by_ucle = torch_steps(data), _ucle_steps(run, data)
            expect_close("losses", np.array(by_ucle(5)), np.array(by_torch(5)), 1e-6)
            sides = {"torch": lambda: by_torch(STEPS), "ucle": lambda: by_ucle(STEPS)}
            times = race(sides, rounds)
            with _counted() as sent:
                by_ucle(1)
    return Steps(compiled, times["torch"] / STEPS, times["ucle"] / STEPS, len(sent))


def of_the_paper(graph: str, rounds: int) -> dict[str, float]:
    """Measure steps of the network that the paper trains (section 9.2), as a dict of `Steps`."""
    return asdict(measure(network(graph, hidden=256, rate=0.1), rounds, tables=False))


def _rows(rounds: int) -> Iterator[Sequence[str]]:
    if not GRAPHS.is_dir():
        raise SystemExit(f"the graphs are not there: {GRAPHS}")
    if importlib.util.find_spec("torch") is None:
        raise SystemExit("PyTorch is not installed: make bench TORCH=torch")
    for graph, hidden in (
        ("planetoid_cora", 16),
        ("planetoid_citeseer", 16),
        ("planetoid_cora", 256),
        ("amazon_photo", 16),
        ("amazon_photo", 256),
    ):
        for tables in (False, True):
            found = measure(network(graph, hidden), rounds, tables=tables)
            yield (
                f"{graph}, {hidden} hidden, parameters in {'tables' if tables else 'memory'}",
                f"{found.compiled:.2f} s",
                f"{1000 * found.torch:.1f} ms",
                f"{1000 * found.ucle:.1f} ms",
                ratio(found.ucle / found.torch),
                str(found.statements),
            )


TABLE = Table(
    "training",
    "Steps of training",
    "One step of Adam for a graph network with two layers and dropout, including reading\n"
    "the loss. The dropout mask of each step comes from memory. Compilation happens once.\n"
    "The last column is the number of statements of a step, after the first steps.",
    ("network", "compile", "PyTorch", "ucle", "ucle / PyTorch", "statements"),
    _rows,
)
