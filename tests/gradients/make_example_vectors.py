"""The examples of training as PyTorch runs them: writes ``example_vectors.json``.

Needs PyTorch, and ucle for the first weights and for what dropout keeps:

    python tests/gradients/make_example_vectors.py            # with --check it only compares
    python tests/gradients/make_example_vectors.py --accuracy planetoid_citeseer --seeds 10

The second one trains to the end, with PyTorch's own random numbers, to be compared with
``python examples/training/gcn.py --graph planetoid_citeseer --seeds 10``.
"""

from __future__ import annotations

import argparse
import importlib
import json
import math
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2] / "examples" / "training"))

import attention
import gcn
from example_cases import ATTENTION, GCN, REAL

import ucle

torch = importlib.import_module("torch")  # which the tests need not
cross_entropy = torch.nn.functional.cross_entropy

VECTORS = Path(__file__).with_name("example_vectors.json")


class Network:
    """The network of `gcn.py` on a graph, and its optimiser."""

    def __init__(self, graph: gcn.Graph, settings: gcn.Settings, weights: dict[str, Any]) -> None:
        links = ucle.tensor(graph.edges).to_numpy() + np.eye(graph.nodes)
        scale = links.sum(axis=1) ** -0.5
        words = ucle.tensor(graph.words).to_numpy()
        self.links = torch.tensor(links * scale * scale[:, None]).to_sparse_csr()
        self.words = torch.tensor(words / np.maximum(words.sum(axis=1, keepdims=True), 1))
        self.labels = torch.tensor(graph.labels)
        self.graph, self.kept = graph, 1 - settings.dropout
        self.weights = {x: torch.tensor(w, requires_grad=True) for x, w in weights.items()}
        W1, W2, b1, b2 = (self.weights[name] for name in ("W1", "W2", "b1", "b2"))
        groups = [{"params": [W1, b1], "weight_decay": settings.weight_decay}, {"params": [W2, b2]}]
        self.adam = torch.optim.Adam(groups, lr=settings.rate)

    def scores(self, masks: tuple[Any, Any] | None = None) -> Any:
        """The scores by node and class; `masks` are what dropout keeps."""
        weights = self.weights
        x = self.words if masks is None else self.words * masks[0] / self.kept
        h = torch.relu(self.links @ (x @ weights["W1"]) + weights["b1"])
        h = h if masks is None else h * masks[1] / self.kept
        return self.links @ (h @ weights["W2"]) + weights["b2"]

    def loss(self, scores: Any, ids: Any) -> Any:
        """The cross-entropy of some nodes."""
        return cross_entropy(scores[ids], self.labels[ids])

    def steps(self, masks: Iterator[tuple[Any, Any]]) -> Iterator[tuple[float, float, Any]]:
        """The loss, that of validation, and the scores without dropout, before each step."""
        for each in masks:
            with torch.no_grad():
                scores = self.scores()
                valid = self.loss(scores, self.graph.valid).item()
            loss = self.loss(self.scores(each), self.graph.train)
            yield loss.item(), valid, scores
            self.adam.zero_grad()
            loss.backward()
            self.adam.step()


def ucle_masks(graph: gcn.Graph, settings: gcn.Settings) -> Iterator[tuple[Any, Any]]:
    """The masks of dropout in `gcn.py`."""
    shapes = (graph.nodes, graph.vocabulary), (graph.nodes, settings.hidden)
    for epoch in range(settings.epochs):
        seeds = gcn.seeds(settings, epoch).values()
        drawn = (
            ucle.random.uniform(seed=seed).array(shape)
            for seed, shape in zip(seeds, shapes, strict=True)
        )
        one, other = (torch.tensor(each >= settings.dropout) for each in drawn)
        yield one, other


def gcn_losses(graph: gcn.Graph, settings: gcn.Settings) -> dict[str, list[float]]:
    """The losses of `gcn.train`."""
    network = Network(graph, settings, gcn.initial_weights(graph, settings))
    losses = [(loss, valid) for loss, valid, _ in network.steps(ucle_masks(graph, settings))]
    return dict(zip(("loss", "valid_loss"), map(list, zip(*losses, strict=True)), strict=True))


def attention_losses(settings: attention.Settings) -> dict[str, list[float]]:
    """The losses of `attention.train`."""
    weights = attention.initial_weights(settings)
    w = {name: torch.tensor(value, requires_grad=True) for name, value in weights.items()}
    adam = torch.optim.Adam(w.values(), lr=settings.rate)
    losses = []
    for number in range(settings.steps):
        word, answer = map(torch.tensor, attention.batch(settings, number).values())
        x = w["symbol"][word] + w["place"]
        query, key, value = (
            torch.einsum("btd,hde->bhte", x, w[name]) for name in ("Wq", "Wk", "Wv")
        )
        seen = torch.nn.functional.scaled_dot_product_attention(query, key, value)
        y = x + torch.einsum("bhte,hed->btd", seen, w["Wo"])
        loss = cross_entropy(y[:, 0] @ w["out"], answer)
        losses.append(loss.item())
        adam.zero_grad()
        loss.backward()
        adam.step()
    return {"loss": losses}


def accuracy(graph: gcn.Graph, settings: gcn.Settings) -> float:
    """Train a network to the end with PyTorch's own random numbers, and return its accuracy."""
    torch.manual_seed(settings.seed)
    weights = {
        name: torch.nn.init.xavier_uniform_(torch.empty(value.shape, dtype=torch.float64)).numpy()
        if value.ndim == 2
        else value
        for name, value in gcn.initial_weights(graph, settings).items()
    }
    network = Network(graph, settings, weights)
    shapes = (graph.nodes, graph.vocabulary), (graph.nodes, settings.hidden)
    masks = (
        tuple(torch.rand(shape) >= settings.dropout for shape in shapes)
        for _ in range(settings.epochs)
    )
    best, least, kept = 0, math.inf, None
    for epoch, (_, valid, scores) in enumerate(network.steps(masks)):
        if valid < least:
            best, least, kept = epoch, valid, scores
        elif epoch - best >= settings.patience:
            break
    assert kept is not None
    return gcn.accuracy(graph, kept.argmax(dim=1).numpy(), graph.test)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare with the file")
    parser.add_argument("--accuracy", help="a graph to train on to the end")
    parser.add_argument("--seeds", type=int, default=10, help="how often")
    arguments = parser.parse_args()
    if arguments.accuracy:
        graph = gcn.read_graph(gcn.find_graph(arguments.accuracy, gcn.DATA))
        found = [accuracy(graph, gcn.Settings(seed=n)) for n in range(arguments.seeds)]
        print(*(f"{x:.4f}" for x in found), f"mean {np.mean(found):.4f}")
        return
    made = {"attention": attention_losses(ATTENTION)}
    made["gcn, a graph that is made"] = gcn_losses(gcn.made_graph(), GCN)
    if (gcn.DATA / REAL).is_dir():
        made[f"gcn, {REAL}"] = gcn_losses(gcn.read_graph(gcn.DATA / REAL), GCN)
    if not arguments.check:
        VECTORS.write_text(json.dumps(made, indent=0) + "\n")
        return
    kept = json.loads(VECTORS.read_text())
    for name, vectors in made.items():
        for tensor, value in vectors.items():
            np.testing.assert_allclose(kept[name][tensor], value, 1e-12, err_msg=name)
    print(f"{len(made)} cases as PyTorch has them")


if __name__ == "__main__":
    main()
