"""The examples of training: their losses are PyTorch's, and what they are for comes of them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import attention
import duckdb
import gcn
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from example_cases import ATTENTION, GCN, REAL

import ucle

VECTORS: dict[str, Any] = json.loads(
    Path(__file__).with_name("example_vectors.json").read_text(encoding="utf-8")
)


def check_losses(found: gcn.Trained, name: str) -> None:
    expected = VECTORS[f"gcn, {name}"]
    np.testing.assert_allclose(found.losses, expected["loss"], rtol=1e-9)
    np.testing.assert_allclose(found.valid_losses, expected["valid_loss"], rtol=1e-9)


@pytest.mark.slow
def test_a_graph_convolutional_network(native: duckdb.DuckDBPyConnection) -> None:
    """Twenty steps as of PyTorch; the weights are those of the best epoch."""
    graph = gcn.made_graph()
    trained = gcn.train(graph, GCN, native)
    check_losses(trained, "a graph that is made")
    assert trained.best == np.argmin(trained.valid_losses) > 0
    network = gcn.network(graph, GCN, trained.weights, native)
    with network.execute() as result:
        assert result["valid_loss"].item() == pytest.approx(trained.valid_losses.min())


@pytest.mark.slow
def test_on_a_real_graph(graphs: Path, native: duckdb.DuckDBPyConnection) -> None:
    graph = gcn.read_graph(graphs / REAL)
    assert [len(x) for x in (graph.train, graph.valid, graph.test)] == [140, 500, 1000]
    assert (graph.test == np.arange(1708, 2708)).all()
    check_losses(gcn.train(graph, GCN, native), REAL)


@pytest.mark.slow
def test_early_stopping(native: duckdb.DuckDBPyConnection) -> None:
    """Classes have nothing to do with words here: the first weights are the best ones."""
    graph = gcn.made_graph()
    wrong = replace(graph, labels=np.random.default_rng(1).permutation(graph.labels))
    settings = replace(GCN, patience=2, epochs=30, rate=0.1)
    trained = gcn.train(wrong, settings, native)
    assert (trained.best, len(trained.losses)) == (0, 3)
    for name, weight in gcn.initial_weights(wrong, settings).items():
        np.testing.assert_array_equal(trained.weights[name], weight)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The graph that is made as files."""
    graph = gcn.made_graph()
    edges, words = (ucle.tensor(x).to_numpy() for x in (graph.edges, graph.words))
    src, dst = np.nonzero(edges)
    node, feature = np.nonzero(words)
    ids = np.arange(graph.nodes)
    tables = {
        "edges": {"src": src, "dst": dst},
        "features": {"node": node, "feature": feature, "value": np.ones(len(node), np.float32)},
        "labels": {"node": ids[::-1], "label": graph.labels[::-1]},
    }
    made = tmp_path / "it's a graph"
    made.mkdir()
    for name, columns in tables.items():
        pq.write_table(pa.table(columns), made / f"{name}.parquet")
    return made


def test_a_graph_in_files(folder: Path) -> None:
    made, read = gcn.made_graph(), gcn.read_graph(folder)
    assert (read.labels == made.labels).all()
    assert (read.nodes, read.classes, read.vocabulary) == (300, 3, 60)
    assert (np.bincount(read.labels[read.train]) == 20).all()
    ids = np.concatenate([read.train, read.valid, read.test])
    assert len(set(ids.tolist())) == len(ids) == 300
    assert (len(read.valid), len(read.test)) == (120, 120)


def test_nodes_are_divided() -> None:
    labels = np.concatenate([np.repeat(np.arange(4), 20), np.arange(2000) % 4])
    described = np.delete(np.arange(2080), [1500, 2079])
    train, valid, test = gcn.split(labels, described)
    assert (train == np.arange(80)).all()
    assert (valid == np.arange(80, 580)).all()
    assert (test == described[-1000:]).all()
    assert len(test) == 1000
    train, valid, test = gcn.split(labels[::-1] % 3, described)
    assert (np.bincount(labels[::-1][train] % 3) == 20).all()
    assert (len(valid), len(test)) == (500, 1000)


@pytest.mark.slow
def test_what_it_prints(folder: Path) -> None:
    arguments = ["--graph", folder.name, "--data", str(folder.parent), "--seeds", "2"]
    shown = CliRunner().invoke(gcn.main, [*arguments, "--epochs", "2"], catch_exceptions=False)
    first, *seeds, last = shown.output.splitlines()
    assert first.startswith("it's a graph: 300 nodes, 3 classes, 60 words; 60 to train, 120 to")
    assert [line[:17] for line in seeds] == ["seed 0: 2 epochs,", "seed 1: 2 epochs,"]
    assert last.startswith("mean test accuracy 0.")
    missing = CliRunner().invoke(gcn.main, ["--graph", "nothing", "--data", str(folder)])
    assert missing.exit_code == 2
    assert "has a labels.parquet" in missing.stderr


@pytest.mark.slow
def test_self_attention(native: duckdb.DuckDBPyConnection) -> None:
    weights, losses = attention.train(ATTENTION, native)
    np.testing.assert_allclose(losses, VECTORS["attention"]["loss"], rtol=1e-9)
    answers, looks = attention.answers(ATTENTION, weights, attention.HELD_OUT, native)
    assert answers.shape == (16,)
    assert looks.shape == (16, 2, 6)
    np.testing.assert_allclose(looks.sum(axis=2), 1)


def test_batches_have_their_answers() -> None:
    for number in (0, 1):
        word, answer = attention.batch(attention.Settings(), number).values()
        assert (answer == word[np.arange(64), word[:, 0]]).all()
        assert set(word[:, 0]) == set(range(1, 6))
        assert set(word[:, 1:].ravel()) == set(range(8))


def test_what_attention_prints(monkeypatch: pytest.MonkeyPatch) -> None:
    def trained(settings: attention.Settings, database: Any) -> tuple[Any, list[float]]:
        return attention.initial_weights(settings), [2.0] * settings.steps

    monkeypatch.setattr(attention, "train", trained)
    shown = CliRunner().invoke(attention.main, ["--steps", "9"], catch_exceptions=False)
    assert [line[:8] for line in shown.output.splitlines()[1:5]] == [
        *("  step 0", "  step 2", "  step 4", "  step 8")
    ]
    assert shown.output.count("looking at") == 3
