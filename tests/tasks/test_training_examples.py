"""The examples of training and loops in `examples/training`, against NumPy and SciPy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import components
import duckdb
import factorisation
import k_means
import numpy as np
import page_rank
import pytest
import regression
import word_vectors
from click.testing import CliRunner
from scipy.optimize import minimize
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components
from scipy.special import logsumexp

import ucle

Array = np.ndarray[Any, Any]


@pytest.fixture
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with ucle.connect() as con:
        yield con


def rows(connection: duckdb.DuckDBPyConnection, query: str) -> list[tuple[Any, ...]]:
    return connection.execute(query).fetchall()


# ---- Regression ----


def patients(connection: duckdb.DuckDBPyConnection) -> tuple[Array, Array, Array]:
    """The features, standardised and in the order of their names, and what is to be predicted."""
    every = rows(
        connection, "SELECT age, pressure, sugar, ill, stage FROM patients ORDER BY patient"
    )
    x = np.array([row[:3] for row in every])
    ill, stage = np.array([row[3] for row in every]), np.array([row[4] for row in every])
    return (x - x.mean(axis=0)) / x.std(axis=0), ill, stage


def optimum(loss: Any, size: int) -> Array:
    found = minimize(loss, np.zeros(size), method="BFGS", tol=1e-12)
    return np.asarray(found.x)


def test_logistic_regression(connection: duckdb.DuckDBPyConnection) -> None:
    regression.make_patients(connection, 200, 0)
    x, ill, _ = patients(connection)

    def loss(w: Array) -> float:
        score = x @ w[:3] + w[3]
        data = np.mean(np.logaddexp(0, score) - ill * score)
        return float(data + regression.PENALTY * (w[:3] ** 2).sum())

    expected = optimum(loss, 4)
    with regression.train(regression.logistic(connection)) as found:
        assert found.converged
        np.testing.assert_allclose(found["w_next"].to_numpy(), expected[:3], atol=1e-6)
        np.testing.assert_allclose(found["b_next"].to_numpy(), expected[3], atol=1e-6)
        np.testing.assert_allclose(found.history["loss"][-1], loss(expected), atol=1e-12)
        found["w_next"].to_table("risk")
    names = [name for name, _ in rows(connection, "FROM risk ORDER BY k")]
    assert names == ["age", "pressure", "sugar"]


def test_softmax_regression(connection: duckdb.DuckDBPyConnection) -> None:
    regression.make_patients(connection, 200, 1)
    x, _, stage = patients(connection)
    stages, place = np.unique(stage, return_inverse=True)

    def loss(w: Array) -> float:
        score = x @ w[:9].reshape(3, 3).T + w[9:]
        data = np.mean(logsumexp(score, axis=1) - score[np.arange(len(x)), place])
        return float(data + regression.PENALTY * (w[:9] ** 2).sum())

    expected = optimum(loss, 12)
    with regression.train(regression.softmax(connection)) as found:
        assert found["W_next"].coordinates("c").to_pylist() == list(stages)
        np.testing.assert_allclose(found["W_next"].to_numpy().ravel(), expected[:9], atol=1e-6)
        # Intercepts are determined but for what is added to all of them.
        b = found["b_next"].to_numpy()
        np.testing.assert_allclose(b - b.mean(), expected[9:] - expected[9:].mean(), atol=1e-6)


# ---- Factorisation ----


def adam(
    ratings: Array, people: int, items: int, steps: int, seed: int
) -> tuple[dict[str, Array], list[float]]:
    """Train the same model in NumPy, with columns person, item, stars, held out."""
    held_out = ratings[:, 3] == 1
    train, later = ratings[~held_out], ratings[held_out]
    mean = train[:, 2].mean()
    keys = [ucle.random.key(seed, n) for n in (0, 1)]
    P, Q = (
        ucle.random.normal(0, 0.1, seed=key).array((size, 3))
        for key, size in zip(keys, (people, items), strict=True)
    )
    w = {"P": P, "Q": Q, "b": np.zeros(people), "c": np.zeros(items)}
    m = {name: np.zeros_like(x) for name, x in w.items()}
    v = {name: np.zeros_like(x) for name, x in w.items()}

    def errors(rows: Array) -> tuple[Array, Array, Array]:
        u, i = rows[:, 0].astype(int), rows[:, 1].astype(int)
        guess = mean + w["b"][u] + w["c"][i] + (w["P"][u] * w["Q"][i]).sum(axis=1)
        return u, i, rows[:, 2] - guess

    history = []
    for step in range(1, steps + 1):
        history.append(float(np.sqrt((errors(later)[2] ** 2).mean())))
        u, i, error = errors(train)
        g = {name: 2 * factorisation.PENALTY * x for name, x in w.items()}
        np.add.at(g["P"], u, -2 * error[:, None] * w["Q"][i])
        np.add.at(g["Q"], i, -2 * error[:, None] * w["P"][u])
        np.add.at(g["b"], u, -2 * error)
        np.add.at(g["c"], i, -2 * error)
        for name, slope in g.items():
            m[name] = 0.9 * m[name] + 0.1 * slope
            v[name] = 0.999 * v[name] + 0.001 * slope**2
            size = np.sqrt(v[name] / (1 - 0.999**step)) + 1e-8
            w[name] = w[name] - 0.05 * m[name] / (1 - 0.9**step) / size
    return w, history


def test_factorisation(connection: duckdb.DuckDBPyConnection) -> None:
    factorisation.make_ratings(connection, 60, 30, 900, seed=3)
    every = rows(connection, "SELECT person, item, stars, held_out FROM ratings")
    names = [sorted({row[n] for row in every}) for n in (0, 1)]
    places = [{name: n for n, name in enumerate(x)} for x in names]
    ratings = np.array([(places[0][u], places[1][i], s, h) for u, i, s, h in every])
    w, history = adam(ratings, len(names[0]), len(names[1]), 25, seed=3)
    assert history[-1] < 0.75 * history[0]
    with factorisation.model(connection, 3, seed=3).iterate(max_steps=25) as found:
        np.testing.assert_allclose(found.history["rmse"], history, rtol=1e-9)
        factorisation.write(found)
    for table, name, keys in (("likes", "P", 0), ("has", "Q", 1)):
        written = rows(connection, f"FROM {table} ORDER BY ALL")
        assert [key for key, _ in written] == names[keys]
        np.testing.assert_allclose([vector for _, vector in written], w[name], rtol=1e-6, atol=1e-9)
    written = dict(rows(connection, "FROM kindness"))
    np.testing.assert_allclose([written[x] for x in names[0]], w["b"], rtol=1e-6, atol=1e-9)

    person = names[0][5]
    best = connection.execute(factorisation.BEST, {"person": person}).fetchall()
    guesses = w["b"][5] + w["c"] + w["Q"] @ w["P"][5]
    guesses[[places[1][i] for u, i, _, _ in every if u == person]] = -np.inf
    order = np.argsort(-guesses)[:3]
    assert [item for item, _ in best] == [names[1][n] for n in order]
    np.testing.assert_allclose([guess for _, guess in best], guesses[order], rtol=1e-6)


# ---- Clusters ----


def lloyd(points: Array, centres: Array) -> Array:
    """k-means as it is written everywhere, from these centres on."""
    while True:
        nearest = ((points[:, None] - centres) ** 2).sum(axis=-1).argmin(axis=1)
        after = np.array([points[nearest == n].mean(axis=0) for n in range(len(centres))])
        if (after == centres).all():
            return centres
        centres = after


def test_k_means(connection: duckdb.DuckDBPyConnection) -> None:
    k_means.make_points(connection, 120, 0)
    points = np.array([x for (x,) in rows(connection, "SELECT place FROM places ORDER BY name")])
    tensor = ucle.tensor("places", axes=["point", "feature"], database=connection)
    first = np.stack([points[:4], points[4:8]])
    with k_means.move(tensor, first) as found:
        assert found.converged
        expected = [lloyd(points, centres) for centres in first]
        np.testing.assert_allclose(found.state.to_numpy(), expected)
    centres = k_means.k_means(connection, "places", 4, attempts=2, seed=0)
    k_means.assign(connection, "places", centres, "clusters")
    both = rows(connection, "SELECT around, val FROM clusters JOIN points USING (name)")
    assert len(both) == 120
    assert word_vectors.agreement(*map(list, zip(*both, strict=True))) > 0.9


@pytest.mark.slow
def test_word_vectors(connection: duckdb.DuckDBPyConnection) -> None:
    word_vectors.make_corpus(connection, topics=4, words=8, sentences=250, seed=0)
    count = word_vectors.count_pairs(connection)
    assert count == 4 * 8 + 6
    with word_vectors.train(connection, count, size=6, steps=25, seed=0) as found:
        assert found.history["loss"][-1] < 0.7 * found.history["loss"][0]
        assert found.history["next_seed"].tolist() == list(range(1, 26))
        word_vectors.write_vectors(connection, found)
    (lengths,) = zip(*rows(connection, "SELECT len(vector) FROM vectors"), strict=True)
    assert set(lengths) == {6}
    names, clusters = zip(*word_vectors.topics_of_words(connection, 4, seed=0), strict=True)
    topics = [name.partition(",")[0] for name in names]
    assert len(set(topics)) == 4
    assert word_vectors.agreement(topics, list(clusters)) >= 0.9


def test_agreement() -> None:
    assert word_vectors.agreement(["a", "a", "b"], [1, 1, 0]) == pytest.approx(1)
    assert word_vectors.agreement(["a", "b"] * 2, [0, 0, 1, 1]) == pytest.approx(0)
    left, right = [0.25, 0.75], [0.5, 0.5]
    entropies = [-sum(x * np.log(x) for x in each) for each in (left, right)]
    shared = 0.25 * np.log(2) + 0.25 * np.log(0.25 / 0.375) + 0.5 * np.log(0.5 / 0.375)
    found = word_vectors.agreement(["a", "b", "b", "b"], [0, 0, 1, 1])
    assert found == pytest.approx(2 * shared / sum(entropies))


# ---- Graphs ----


def test_page_rank(connection: duckdb.DuckDBPyConnection) -> None:
    page_rank.make_links(connection, 100, 0)
    links = rows(connection, "FROM links")
    names = sorted({name for link in links for name in link})
    place = {name: n for n, name in enumerate(names)}
    L = np.zeros((len(names), len(names)))
    for page, to in links:
        L[place[page], place[to]] = 1
    out = L.sum(axis=1)
    assert (out == 0).any()
    rank = np.full(len(names), 1 / len(names))
    for _ in range(400):
        lost = rank[out == 0].sum()
        rank = (0.15 + 0.85 * lost) / len(names) + 0.85 * L.T @ (rank / np.maximum(out, 1))
    with page_rank.page_rank(connection) as found:
        assert found.converged
        assert found["next"].coordinates("j").to_pylist() == names
        np.testing.assert_allclose(found["next"].to_numpy(), rank, atol=1e-10)


def test_components(connection: duckdb.DuckDBPyConnection) -> None:
    components.make_friends(connection, 200, 0)
    friends = rows(connection, "FROM friends")
    names = sorted({name for pair in friends for name in pair})
    place = {name: n for n, name in enumerate(names)}
    ends = np.array([(place[one], place[other]) for one, other in friends]).T
    graph = csr_array((np.ones(len(friends)), tuple(ends)), shape=(len(names), len(names)))
    _, expected = connected_components(graph, directed=False)
    with components.components(connection) as found:
        labels = found["next"].to_numpy()
        assert found.history["moved"][-1] == 0
    least = [min(np.flatnonzero(expected == each)) for each in expected]
    np.testing.assert_array_equal(labels, least)


# ---- As commands ----


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("module", "options", "printed"),
    [
        (regression, ["--count", "80"], "pressure"),
        (
            factorisation,
            ["--people", "20", "--items", "9", "--count", "150", "--steps", "2"],
            "item",
        ),
        (k_means, ["--count", "60"], "cluster"),
        (page_rank, ["--pages", "40"], "page 0"),
        (components, ["--people", "60"], "size"),
    ],
)
def test_commands(module: Any, options: list[str], printed: str) -> None:
    done = CliRunner().invoke(module.main, options, catch_exceptions=False)
    assert done.exit_code == 0
    assert printed in done.output
