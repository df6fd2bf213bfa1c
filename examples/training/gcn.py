"""A graph convolutional network: which class is a node of, by its own words and its neighbours'?

Two layers with dropout, weight decay on the first one, Adam, and early stopping: training goes on
until the loss of the validation nodes has not fallen for some epochs, and the weights with the
least one are kept. The graph may lie in Parquet files, which are read where they are; nothing but
losses leaves the database before the end.

    python examples/training/gcn.py                           # on a graph that it makes
    python examples/training/gcn.py --graph planetoid_cora    # a folder of --data
    python examples/training/gcn.py --graph some/folder       # or of yours

A folder has ``edges.parquet`` (src, dst: both directions, no loops), ``features.parquet`` (node,
feature, value) and ``labels.parquet`` (node, label), whose ids count from 0.

Source: Kipf and Welling, Semi-supervised classification with graph convolutional networks, ICLR
2017.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

import ucle

DATA = Path(__file__).parents[3] / "shared" / "data" / "graphs"

FORWARD = """
degree[i] = 1 + sum[j](A[i,j])
L[i,j]    = (A[i,j] + (i == j)) / sqrt(degree[i] * degree[j])    # D^-1/2 (A + I) D^-1/2
X[i,f]    = words[i,f] / max(sum[g](words[i,g]), 1)

# With dropout, as it is trained.
drop_X[i,f] = when(random_uniform(seed1[], {words} * i + f) >= {rate}, X[i,f]) / (1 - {rate})
hidden[i,k] = relu(L[i,j] * drop_X[j,f] * W1[f,k] + b1[k])
drop_h[i,k] = when(random_uniform(seed2[], {hidden} * i + k) >= {rate}, hidden[i,k]) / (1 - {rate})
score[i,c]  = L[i,j] * drop_h[j,k] * W2[k,c] + b2[c]
loss        = sum[i](train[i] * (logsumexp[c](score[i,c]) - sum[c](target[i,c] * score[i,c])))

# Without, as it is used.
all_hidden[i,k] = relu(L[i,j] * X[j,f] * W1[f,k] + b1[k])
all_score[i,c]  = L[i,j] * all_hidden[j,k] * W2[k,c] + b2[c]
valid_loss      = sum[i](valid[i] * (logsumexp[c](all_score[i,c])
                                     - sum[c](target[i,c] * all_score[i,c])))
"""

Array = NDArray[Any]
Weights = Mapping[str, Array]


@dataclass(frozen=True)
class Graph:
    """A graph whose nodes have words and classes; only those of `train` are told the network."""

    edges: Any
    words: Any
    vocabulary: int
    labels: Array
    train: Array
    valid: Array
    test: Array

    @property
    def nodes(self) -> int:
        """The number of nodes."""
        return len(self.labels)

    @property
    def classes(self) -> int:
        """The number of classes."""
        return int(self.labels.max()) + 1


@dataclass(frozen=True)
class Settings:
    """Sizes of the network and settings of its training."""

    hidden: int = 16
    dropout: float = 0.5
    rate: float = 0.01
    weight_decay: float = 5e-4
    epochs: int = 200
    patience: int = 10
    seed: int = 0


@dataclass(frozen=True)
class Trained:
    """The weights with the least validation loss, and what each epoch began with."""

    weights: Weights
    best: int
    losses: Array
    valid_losses: Array
    seconds: float


def read_graph(folder: Path) -> Graph:
    """A graph in Parquet files; `split` says which nodes are for what."""
    query = "SELECT {} FROM '" + str(folder).replace("'", "''") + "/{}.parquet' {}"
    with duckdb.connect() as connection:

        def column(what: str, file: str, rest: str) -> Array:
            fetched = connection.execute(query.format(what, file, rest)).fetchnumpy()
            return np.asarray(next(iter(fetched.values())))

        labels = column("label", "labels", "ORDER BY node").astype(np.int64)
        described = column("DISTINCT node", "features", "ORDER BY node")
        vocabulary = int(column("max(feature) + 1", "features", "")[0])
    nodes = len(labels)
    return Graph(
        ucle.table(folder / "edges.parquet", ["src", "dst"], value=1, bounds=[nodes, nodes]),
        ucle.table(folder / "features.parquet", bounds=[nodes, vocabulary], dtype="float64"),
        vocabulary,
        labels,
        *split(labels, described),
    )


def split(labels: Array, described: Array, each: int = 20) -> tuple[Array, Array, Array]:
    """Ids of nodes to train on, to validate and to test with.

    Planetoid's graphs begin with 20 nodes of each class, for training; the next 500 are for
    validation, and the last 1,000 that have words for testing. Of others 20 nodes of each class are
    drawn, and as many as there are of the rest, up to 500 to validate and 1,000 to test with.

    Args:
        labels: the classes of all nodes.
        described: the nodes that have words, in order.
        each: how many of each class are trained on.
    """
    classes = int(labels.max()) + 1
    first = np.arange(each * classes)
    if (np.bincount(labels[: len(first)], minlength=classes) == each).all():
        return first, np.arange(len(first), len(first) + 500), described[-1000:]
    order = ucle.random.permutation(len(labels), seed=0)
    train = np.concatenate([order[labels[order] == label][:each] for label in range(classes)])
    rest = order[~np.isin(order, train)]
    valid = rest[: min(500, len(rest) // 2)]
    return train, valid, rest[len(valid) :][:1000]


def made_graph(seed: int = 0, size: int = 100, classes: int = 3, words: int = 60) -> Graph:
    """A graph whose edges and words are more often those of the own class than of others."""
    rng = np.random.default_rng(seed)
    labels = rng.permutation(np.repeat(np.arange(classes), size))
    alike = labels[:, None] == labels
    linked = np.triu(rng.random(alike.shape) < np.where(alike, 0.05, 0.005), 1)
    own = labels[:, None] == np.arange(words) % classes
    used = rng.random(own.shape) < np.where(own, 0.2, 0.05)
    rows = [np.argwhere(each).astype(np.int32).T for each in (linked | linked.T, used)]
    edges, uses = (pa.table({"i": i, "j": j, "value": np.ones(len(i))}) for i, j in rows)
    return Graph(
        ucle.table(edges, bounds=alike.shape),
        ucle.table(uses, bounds=own.shape),
        words,
        labels,
        *np.split(rng.permutation(len(labels)), [20 * classes, 50 * classes]),
    )


def initial_weights(graph: Graph, settings: Settings) -> dict[str, Array]:
    """Glorot's, and biases of 0."""
    shapes = {"W1": (graph.vocabulary, settings.hidden), "W2": (settings.hidden, graph.classes)}
    drawn = {
        name: ucle.init.glorot_uniform(shape, seed=ucle.random.key(settings.seed, layer))
        for layer, (name, shape) in enumerate(shapes.items())
    }
    return {**drawn, "b1": np.zeros(settings.hidden), "b2": np.zeros(graph.classes)}


def seeds(settings: Settings, epoch: int) -> dict[str, int]:
    """Return the keys that draw the dropout of an epoch, one for each layer."""
    return {f"seed{n}": ucle.random.key(settings.seed, epoch, n) for n in (1, 2)}


def network(
    graph: Graph,
    settings: Settings,
    weights: Weights,
    database: Any = None,
    outputs: Sequence[str] = ("loss", "valid_loss"),
) -> ucle.EinsumProgram:
    """The program of the network; its weights, and the seeds of dropout, are others in each run."""
    text = FORWARD.format(words=graph.vocabulary, hidden=settings.hidden, rate=settings.dropout)
    share = {
        name: np.bincount(ids, minlength=graph.nodes) / len(ids)
        for name, ids in (("train", graph.train), ("valid", graph.valid))
    }
    varying = {**weights, **seeds(settings, 0)}
    return ucle.einsum_program(
        text,
        A=graph.edges,
        words=graph.words,
        target=np.eye(graph.classes)[graph.labels],
        **share,
        **{name: ucle.parameter(value) for name, value in varying.items()},
        outputs=outputs,
        database=database,
    )


def train(graph: Graph, settings: Settings, database: Any = None) -> Trained:
    """Train until the loss of the validation nodes falls no more."""
    initial = initial_weights(graph, settings)
    decay = dict.fromkeys(("W1", "b1"), settings.weight_decay)
    adam = ucle.optim.adam(settings.rate, weight_decay=decay)
    forward = network(graph, settings, initial, database)
    step = forward.minimize("loss", list(initial), adam, outputs="valid_loss")
    losses: list[tuple[float, float]] = []
    best, least = 0, math.inf
    with step.prepare() as run:
        kept = run.state
        start = time.perf_counter()
        for epoch in range(settings.epochs):
            before = run.state
            result = run(**seeds(settings, epoch))
            losses.append((result["loss"].item(), result["valid_loss"].item()))
            if losses[-1][1] < least:
                best, least, kept = epoch, losses[-1][1], before
            elif epoch - best >= settings.patience:
                break
        seconds = time.perf_counter() - start
        # Before the first step there is no state yet.
        weights = {x: kept[x].to_numpy() if x in kept else initial[x] for x in initial}
    return Trained(weights, best, *np.transpose(losses), seconds)


def classify(graph: Graph, settings: Settings, weights: Weights, database: Any = None) -> Array:
    """The class that the network gives to each node."""
    with network(graph, settings, weights, database, ["all_score"]).execute() as result:
        return np.asarray(result["all_score"].to_numpy().argmax(axis=1))


def accuracy(graph: Graph, classes: Array, ids: Array) -> float:
    """The share of some nodes whose classes are right."""
    return float((classes[ids] == graph.labels[ids]).mean())


@click.command()
@click.option("--graph", "name", help="A folder, or the name of one in --data.")
@click.option(
    "--data",
    type=click.Path(path_type=Path),
    default=DATA,
    show_default=True,
    help="Where folders of graphs are.",
)
@click.option("--seeds", "count", type=click.IntRange(1), default=1, help="How often to train.")
@click.option("--hidden", type=click.IntRange(1), default=16, show_default=True)
@click.option("--dropout", type=click.FloatRange(0, 1, max_open=True), default=0.5)
@click.option("--epochs", type=click.IntRange(1), default=200, show_default=True)
@click.option("--patience", type=click.IntRange(1), default=10, show_default=True)
def main(name: str | None, data: Path, count: int, **options: Any) -> None:
    """Train a graph convolutional network, once for each seed, and say how well it does."""
    graph = made_graph() if name is None else read_graph(find_graph(name, data))
    ids = ((graph.train, "train"), (graph.valid, "validate"), (graph.test, "test"))
    click.echo(
        f"{name or 'a graph that was made'}: {graph.nodes:,} nodes, {graph.classes} classes, "
        f"{graph.vocabulary:,} words; " + ", ".join(f"{len(x):,} to {what}" for x, what in ids)
    )
    found = []
    with ucle.connect() as connection:
        for seed in range(count):
            settings = Settings(**options, seed=seed)
            trained = train(graph, settings, connection)
            classes = classify(graph, settings, trained.weights, connection)
            found.append(accuracy(graph, classes, graph.test))
            epochs = len(trained.losses)
            click.echo(
                f"seed {seed}: {epochs} epochs, {1000 * trained.seconds / epochs:.0f} ms each; the "
                f"best is {trained.best}, with validation loss "
                f"{trained.valid_losses[trained.best]:.4f}; test accuracy {found[-1]:.4f}"
            )
    if count > 1:
        click.echo(f"mean test accuracy {np.mean(found):.4f}, from {min(found):.4f} on")


def find_graph(name: str, data: Path) -> Path:
    """The folder of a graph.

    Raises:
        click.BadParameter: there is none.
    """
    for folder in (Path(name), data / name):
        if (folder / "labels.parquet").is_file():
            return folder
    raise click.BadParameter(
        f"neither {name} nor {data / name} has a labels.parquet", param_hint="--graph"
    )


if __name__ == "__main__":
    main()
