"""`ucle demo --train` on a made installation: its losses and its baseline are NumPy's."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from click.testing import CliRunner

import ucle
from ucle.command.cli import main
from ucle.demo import run_demo
from ucle.demo.data import Bag, Graph, replaced_database, store_bag, store_graph
from ucle.demo.graph_programs import derive_bag, derive_graph, random_weights
from ucle.demo.options import DemoOptions
from ucle.demo.training import (
    HIDDEN,
    PATIENCE,
    ROUNDS,
    SPREAD,
    accuracy,
    derive_task,
    parts,
    propagate,
    share_of_the_largest,
    surest_mistakes,
    train,
    training_step,
)
from ucle.errors import InputError

SIZES = {"ant": 24, "bee": 40, "cat": 31, "dog": 19}
"""Packages by their modules; the last one is too small."""


def installation() -> tuple[Graph, Bag]:
    """Modules that import and say what others of their package do, and at times another's."""
    rng = np.random.default_rng(0)
    names = [f"{package}.m{n}" for package, size in SIZES.items() for n in range(size)]
    owners = np.repeat(np.arange(4), list(SIZES.values()))
    words = [f"{letter}{n}" for letter in "abcd" for n in range(15)]
    imports: Counter[tuple[int, int]] = Counter()
    features: Counter[tuple[int, int]] = Counter()
    for module, own in enumerate(owners):
        for _ in range(3):
            package = own if rng.random() < 0.6 else rng.integers(4)
            other = int(rng.choice(np.flatnonzero(owners == package)))
            if other != module:
                imports[module, other] += 1
        for _ in range(8):
            package = own if rng.random() < 0.4 else rng.integers(4)
            features[module, int(15 * package + rng.integers(15))] += 1
    return Graph((*names, "sys"), imports), Bag(tuple(words), features)


def store(graph: Graph, bag: Bag, path: Path) -> None:
    with replaced_database(path) as connection:
        store_graph(connection, graph)
        derive_graph(connection)
        store_bag(connection, bag)
        derive_bag(connection)


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("training") / "demo.duckdb"
    store(*installation(), path)
    return path


@pytest.fixture(scope="module")
def trained(stored: Path) -> Iterator[tuple[duckdb.DuckDBPyConnection, Any]]:
    """The database after training, and how that went."""
    path = stored.with_name("trained.duckdb")
    shutil.copy(stored, path)
    with ucle.connect(path) as connection:
        derive_task(connection)
        training = train(connection, training_step(connection))
        propagate(connection)
        yield connection, training


def arrays(connection: duckdb.DuckDBPyConnection) -> dict[str, Any]:
    """The inputs of the network as dense arrays; for each part of the task a package or -1."""
    shapes = {"adjacency": (115, 115), "bag": (115, 60), "scaling": (115,)}
    made: dict[str, Any] = {name: np.zeros(shape) for name, shape in shapes.items()}
    for name, array in made.items():
        for *place, value in connection.execute(f"FROM {name}").fetchall():
            array[tuple(place)] = value
    for part in ("told", "validation", "held out"):
        made[part] = np.full(115, -1)
        for module, package, at in connection.execute("FROM task").fetchall():
            made[part][module] = package if at == part else made[part][module]
    scale = made["scaling"]
    return {**made, "links": made["adjacency"] * scale * scale[:, None]}


@pytest.mark.slow
def test_the_task(trained: Any) -> None:
    connection, _ = trained
    assert connection.execute("SELECT name FROM packages ORDER BY id").fetchall() == [
        ("bee",),
        ("cat",),
        ("ant",),
    ]
    assert parts(connection) == {"told": 11, "validation": 11, "held out": 73}
    rows = connection.execute(
        "SELECT package, count(*) FILTER (part = 'told') FROM task GROUP BY package ORDER BY 1"
    ).fetchall()
    assert rows == [(0, 4), (1, 4), (2, 3)]
    name, share = share_of_the_largest(connection)
    assert (name, share) == ("bee", pytest.approx(32 / 73))


def test_the_losses_are_numpys(trained: Any) -> None:
    connection, training = trained
    given = arrays(connection)
    first, second = random_weights(60, HIDDEN, 1), random_weights(HIDDEN, 3, 2)

    def loss(scores: Any, part: str) -> float:
        chosen = np.flatnonzero(given[part] >= 0)
        right = scores[chosen, given[part][chosen]]
        return float(np.mean(np.log(np.exp(scores[chosen]).sum(axis=1)) - right))

    hidden = np.maximum(given["links"] @ given["bag"] @ first, 0)
    kept = ucle.random.uniform(seed=0).array(hidden.shape) >= 0.5
    scores, dropped = (given["links"] @ x @ second for x in (hidden, hidden * kept / 0.5))
    assert training.epochs[0].validation == pytest.approx(loss(scores, "validation"))
    assert training.epochs[0].loss == pytest.approx(loss(dropped, "told"))
    validation = [epoch.validation for epoch in training.epochs]
    assert training.best == np.argmin(validation)
    assert training.ended.startswith("validation got no better")
    assert len(validation) == training.best + PATIENCE + 1
    assert training.step > 0


def test_propagation_is_numpys(trained: Any) -> None:
    connection, _ = trained
    given = arrays(connection)
    told = (given["told"][:, None] == np.arange(3)) * 1.0
    now = np.zeros_like(told)
    for _ in range(ROUNDS):
        now = SPREAD * given["links"] @ now + (1 - SPREAD) * told
    rows = dict(connection.execute("SELECT i, val FROM propagation_scores").fetchall())
    found = np.array([rows.get(module, [0.0] * 3) for module in range(115)])
    np.testing.assert_allclose(found, now, atol=1e-12)
    held_out = np.flatnonzero(given["held out"] >= 0)
    right = (now[held_out].argmax(axis=1) == given["held out"][held_out]) & now[held_out].any(
        axis=1
    )
    assert accuracy(connection, "propagation") == pytest.approx(right.mean())


def test_what_the_network_says(trained: Any) -> None:
    connection, _ = trained
    assert accuracy(connection, "network") > max(
        accuracy(connection, "propagation"), share_of_the_largest(connection)[1] + 0.2
    )
    query = "SELECT val, package, sure FROM network_scores JOIN network ON i = module"
    rows = connection.execute(query).fetchall()
    assert len(rows) == 115
    for scores, package, sure in rows:
        weights = np.exp(scores)
        assert package == np.argmax(scores)
        assert sure == pytest.approx(weights.max() / weights.sum())
    mistakes = surest_mistakes(connection, 100)
    assert len(mistakes) == round(73 * (1 - accuracy(connection, "network")))
    assert all(not name.startswith(taken) for name, taken, _ in mistakes)


def test_training_ends_in_time(trained: Any) -> None:
    connection, _ = trained
    told: list[int] = []
    training = train(
        connection, training_step(connection), 0.0, lambda number, epoch: told.append(number)
    )
    assert (told, training.best, training.ended) == ([0], 0, "0 s are over")


@pytest.mark.slow
def test_the_report(stored: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def build(options: DemoOptions, reading: Any, echo: Any) -> None:
        shutil.copy(stored, options.database)

    monkeypatch.setattr(run_demo, "build_database", build)
    path = stored.with_name("report.duckdb")
    shown = CliRunner().invoke(
        main,
        ["demo", "--train", "--all-sql", "--limit", "5", "-d", str(path)],
        catch_exceptions=False,
    )
    for part in (
        "  3 packages of 20 modules or more: 11 modules are told, 11 for validation, 73 held out",
        "  scores[i,c] = L[i,j] * h[j,k] * W2[k,c] + b2[c]",
        "vertices: loss, gradients, and Adam\n",
        '"W1_next"',
        "  epoch  5: loss 0.",
        "epochs; epoch ",
        " s for a step, ",
        "%  the network\n",
        "%  label propagation",
        "43.8%  the package with most modules, bee, for all",
        "Where the network is surest, and wrong",
    ):
        assert part in shown.output
    queries = [line for line in shown.output.splitlines() if ".sql(" in line]
    assert len(queries) == 2
    with ucle.connect(path) as connection:
        found = [eval(line, {"connection": connection}).fetchall() for line in queries]
    assert [len(rows) for rows in found] == [115, 3]


def test_too_few_packages(tmp_path: Path) -> None:
    path = tmp_path / "demo.duckdb"
    graph, _ = installation()
    store(Graph(graph.modules[:60], Counter()), Bag((), Counter()), path)
    with ucle.connect(path) as connection, pytest.raises(InputError, match="too few packages"):
        derive_task(connection)
