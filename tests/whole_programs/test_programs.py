"""Programs that people write, against NumPy and scipy: attention, paths, counting, learning.

Small data runs over decompositions and both routes. On the real graphs the chosen plan runs, and
one or two pinned ones.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse as sp
import scipy.special
from graph_data import load
from known import check_known, known, run
from scipy.sparse import csgraph

import ucle
from ucle.testing.check_matrix import Routes

INF = np.inf
RELATIVE = 1e-9


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


# ---- Attention ----

ATTENTION = """
    S[i,j] = 0.5 * Q[i,d] * K[j,d]
    L[i,j] = where(M[i,j], S[i,j], masked)
    P[i,j] = exp(L[i,j] - max[k](L[i,k])) / sum[k](exp(L[i,k] - max[m](L[i,m])))
    O[i,d] = P[i,j] * V[j,d]
"""


@pytest.mark.sample(1)
@pytest.mark.parametrize("masked", [-INF, -1e30])
def test_softmax_attention_with_a_mask(masked: float, routes: Routes) -> None:
    """No entry outside the mask gets any weight; the mask is lower triangular, as in a decoder."""
    queries, keys, values = (rng(n).normal(size=(5, 4)) for n in range(3))
    mask = np.tri(5, dtype=bool)
    scores = np.where(mask, queries @ keys.T / 2, -INF)
    weights = scipy.special.softmax(scores, axis=1)
    case = known(
        ATTENTION,
        {"P": weights, "O": weights @ values},
        Q=queries,
        K=keys,
        V=values,
        M=mask,
        masked=np.float64(masked),
    )
    check_known(case, routes)


@pytest.mark.slow
def test_attention_over_neighbours(graphs: Path, native: duckdb.DuckDBPyConnection) -> None:
    """Graph attention: the softmax runs over the edges of a node and never leaves them."""
    adjacency, features = load(graphs / "cora_lcc")
    nodes = adjacency.shape[0]
    weights = rng().normal(size=(features.shape[1], 8)) / 4
    left, right = rng(1).normal(size=(2, 8))
    text = """
        Z[i,k] = H[i,f] * W[f,k]
        S[i,j] = A[i,j] * (Z[i,k] * a[k]) + A[i,j] * (Z[j,k] * b[k])
        E[i,j] = when(A[i,j], exp(leaky_relu(S[i,j])))
        total[i] = E[i,j]
        O[i,k] = when(total[i], 1 / total[i]) * E[i,j] * Z[j,k]
    """
    made = features @ weights
    rows, columns = adjacency.tocoo().coords
    scores = made[rows] @ left + made[columns] @ right
    powers = np.exp(np.where(scores < 0, 0.01 * scores, scores))
    totals = np.bincount(rows, powers, minlength=nodes)
    shares = sp.csr_array((powers / totals[rows], (rows, columns)), shape=adjacency.shape)
    inputs = {"H": features, "W": weights, "A": adjacency, "a": left, "b": right}
    for decomposition in ("auto", "relational"):
        found = run(text, native, decomposition, **inputs)
        np.testing.assert_allclose(found["O"], shares @ made, rtol=RELATIVE, atol=1e-12)


# ---- Semirings ----


def random_weights(adjacency: Any) -> Any:
    """A weight for every directed edge of a graph."""
    made = adjacency.tocsr().copy()
    made.data = rng(7).uniform(0.1, 1.0, size=made.nnz)
    return made


def test_one_step_of_bellman_and_ford(routes: Routes) -> None:
    weights = np.where(rng().random((6, 6)) < 0.4, rng(1).random((6, 6)), INF)
    distance = np.array([0.0, INF, 0.25, INF, INF, 3.0])
    case = known(
        "next[i] = min(d[i], min[j](d[j] + W[j,i]))",
        {"next": np.minimum(distance, (distance[:, None] + weights).min(axis=0))},
        d=ucle.table(distance, fill=INF),
        W=ucle.table(weights, fill=INF),
    )
    check_known(case, routes, sample=40)


@pytest.mark.slow
@pytest.mark.parametrize(
    "decomposition", ["auto", "relational", {"next_1": ("j",)}], ids=["auto", "relational", "rows"]
)
def test_bellman_ford_on_a_graph(
    decomposition: Any, graphs: Path, native: duckdb.DuckDBPyConnection
) -> None:
    """One compiled step, executed until no distance changes; the distances lie in a table."""
    adjacency, _ = load(graphs / "cora_lcc")
    weights = random_weights(adjacency)
    nodes = weights.shape[0]
    expected = csgraph.bellman_ford(weights, indices=0)
    distance = np.full(nodes, INF)
    distance[0] = 0.0
    store(native, distance)
    coo = weights.tocoo()
    edges = pa.table({"j": coo.coords[0], "i": coo.coords[1], "weight": coo.data})
    program = ucle.einsum_program(
        "next[i] = min(d[i], min[j](d[j] + W[j,i]))",
        d=ucle.table("distance", bounds=(nodes,), fill=INF),
        W=ucle.table(edges, bounds=(nodes, nodes), fill=INF),
        database=native,
        decomposition=decomposition,
    )
    for _ in range(nodes):
        with program.execute(native) as result:
            found = result["next"].to_numpy()
        if np.array_equal(found, distance):
            break
        distance = found
        store(native, distance)
    native.execute("DROP TABLE distance")
    np.testing.assert_allclose(distance, expected, rtol=RELATIVE)


def store(connection: duckdb.DuckDBPyConnection, distance: Any) -> None:
    """Put the distances that are known into their table."""
    reached = np.flatnonzero(np.isfinite(distance))
    connection.register("reached", pa.table({"i": reached, "d": distance[reached]}))
    connection.execute("CREATE OR REPLACE TABLE distance AS SELECT * FROM reached")
    connection.unregister("reached")


@pytest.mark.slow
def test_four_steps_in_one_program(graphs: Path, connection: duckdb.DuckDBPyConnection) -> None:
    """From four sources at once, four steps to a program, each handed on as an array."""
    adjacency, _ = load(graphs / "planetoid_citeseer")
    weights = random_weights(adjacency)
    sources = np.arange(0, 2000, 500)
    expected = csgraph.dijkstra(weights, indices=sources)
    steps = [f"d{n + 1}[s,i] = min(d{n}[s,i], min[j](d{n}[s,j] + W[j,i]))" for n in range(4)]
    distances = np.full((len(sources), weights.shape[0]), INF)
    distances[np.arange(len(sources)), sources] = 0.0
    coo = weights.tocoo()
    edges = pa.table({"j": coo.coords[0], "i": coo.coords[1], "weight": coo.data})
    for _ in range(weights.shape[0]):
        found = run(
            "\n".join(steps),
            connection,
            d0=ucle.table(distances, fill=INF),
            W=ucle.table(edges, bounds=weights.shape, fill=INF),
        )["d4"]
        if np.array_equal(found, distances):
            break
        distances = found
    np.testing.assert_allclose(distances, expected, rtol=RELATIVE)


def test_reachability_by_squaring(routes: Routes) -> None:
    edges = rng(4).random((7, 7)) < 0.18
    closed = np.linalg.matrix_power((edges | np.eye(7, dtype=bool)).astype(int), 8) > 0
    text = """
        R1[i,k] = A[i,k] or I[i,k]
        R2[i,k] = any[j](R1[i,j] and R1[j,k])
        R4[i,k] any= R2[i,j] and R2[j,k]
        R8[i,k] any= R4[i,j] and R4[j,k]
        everything = all[i,k](R8[i,k])
        pairs = count[i,k](R8[i,k])
    """
    answer = {"R8": closed, "everything": closed.all(), "pairs": closed.sum()}
    check_known(known(text, answer, A=edges, I=np.eye(7, dtype=bool)), routes)


@pytest.mark.parametrize("decomposition", ["auto", "relational"])
def test_reachability_on_a_graph(
    decomposition: Any, graphs: Path, native: duckdb.DuckDBPyConnection
) -> None:
    """The nodes of one component of a graph that has many."""
    adjacency, _ = load(graphs / "planetoid_citeseer")
    edges = adjacency.astype(bool)
    _, component = csgraph.connected_components(edges, directed=False)
    text = "\n".join(f"r{n + 1}[i] = r{n}[i] or any[j](r{n}[j] and A[j,i])" for n in range(4))
    reached = component == component[0]
    seen = np.zeros(len(reached), dtype=bool)
    seen[0] = True
    for _ in range(len(reached)):
        found = run(text, native, decomposition, r0=seen, A=edges)["r4"]
        if np.array_equal(found, seen):
            break
        seen = found
    assert seen.dtype == bool
    np.testing.assert_array_equal(seen, reached)
    assert 1 < reached.sum() < len(reached)


def test_most_reliable_paths(routes: Routes) -> None:
    """Max-times: probabilities multiply along a path, and the greatest product wins."""
    stored = rng(2).random((6, 6)) < 0.4
    chances = np.where(stored, rng(3).uniform(0.2, 1.0, size=(6, 6)), 0.0)
    np.fill_diagonal(chances, 1.0)
    with np.errstate(divide="ignore"):
        lengths = np.where(chances > 0, -np.log(chances), INF)
    for middle in range(6):
        lengths = np.minimum(lengths, lengths[:, [middle]] + lengths[[middle]])
    text = """
        two[i,k]   max= P[i,j] * P[j,k]
        four[i,k]  max= two[i,j] * two[j,k]
        best[i,k]  max= four[i,j] * two[j,k]
    """
    check_known(known(text, {"best": np.exp(-lengths)}, P=sp.csr_array(chances)), routes)


# ---- Counting ----

TRIANGLES = {
    "product": "t += A[i,j] * A[j,k] * A[k,i]",
    "count": "t count= A[i,j] and A[j,k] and A[k,i]",
    "nested": "t = sum[i,k](A[i,k] * sum[j](A[i,j] * A[j,k]))",
}


@pytest.mark.sample(1)
@pytest.mark.parametrize("dtype", ["int64", "bool", "float64", "float32"])
@pytest.mark.parametrize("name", TRIANGLES)
def test_triangles_of_a_small_graph(name: str, dtype: str, routes: Routes) -> None:
    upper = np.triu(rng(5).random((7, 7)) < 0.5, 1)
    adjacency = (upper | upper.T).astype(dtype)
    number = np.trace(np.linalg.matrix_power(adjacency.astype(np.int64), 3))
    # As in NumPy, a sum of yes and no counts, and a sum of smaller floats is no wider than they.
    result = "int64" if name == "count" or dtype == "bool" else dtype
    case = known(TRIANGLES[name], {"t": np.asarray(number, result)}, A=adjacency)
    check_known(case, routes)


@pytest.mark.parametrize("decomposition", ["auto", "relational"])
@pytest.mark.parametrize("dtype", ["int64", "float64"])
def test_triangles_of_a_graph(
    dtype: str, decomposition: Any, graphs: Path, native: duckdb.DuckDBPyConnection
) -> None:
    adjacency, _ = load(graphs / "cora_lcc")
    expected = (adjacency @ adjacency).multiply(adjacency).sum()
    found = run(TRIANGLES["product"], native, decomposition, A=adjacency.astype(dtype))["t"]
    assert found.dtype == dtype
    assert found == expected > 0


def test_triangles_of_yes_and_no(graphs: Path, native: duckdb.DuckDBPyConnection) -> None:
    adjacency, _ = load(graphs / "cora_lcc")
    expected = (adjacency @ adjacency).multiply(adjacency).sum()
    found = run(TRIANGLES["count"], native, A=adjacency.astype(bool))["t"]
    assert found.dtype == np.int64
    assert found == expected


@pytest.mark.slow
@pytest.mark.parametrize("decomposition", ["auto", "relational"])
def test_pagerank_on_a_graph(
    decomposition: Any, graphs: Path, native: duckdb.DuckDBPyConnection
) -> None:
    """Nodes without an edge give what they have to everybody; some of this graph have none."""
    adjacency, _ = load(graphs / "planetoid_citeseer")
    nodes = adjacency.shape[0]
    text = "degree[i] = A[i,j]\n" + "\n".join(
        f"""
        out{n}[i] = when(degree[i] > 0, r{n}[i] / degree[i])
        idle{n} = mean[i](unless(degree[i] > 0, r{n}[i]))
        r{n + 1}[j] = {0.15 / nodes} + 0.85 * (idle{n} + out{n}[i] * A[i,j])
        """
        for n in range(4)
    )
    rank = np.full(nodes, 1 / nodes)
    for _ in range(3):
        rank = run(text, native, decomposition, A=adjacency, r0=rank)["r4"]
    np.testing.assert_allclose(rank, pagerank(adjacency, 12), rtol=RELATIVE)
    assert rank.sum() == pytest.approx(1.0)


def pagerank(adjacency: Any, steps: int) -> Any:
    nodes = adjacency.shape[0]
    degree = np.asarray(adjacency.sum(axis=1)).ravel()
    rank = np.full(nodes, 1 / nodes)
    for _ in range(steps):
        share = np.divide(rank, degree, out=np.zeros(nodes), where=degree > 0)
        idle = rank[degree == 0].sum() / nodes
        rank = 0.15 / nodes + 0.85 * (idle + adjacency.T @ share)
    return rank


# ---- Learning ----

GRADIENT_STEP = """
    z{n}[i] = X[i,f] * w{n}[f] + b{n}
    off{n}[i] = sigmoid(z{n}[i]) - y[i]
    w{m}[f] = w{n}[f] - 2 * (X[i,f] * off{n}[i]) / count
    b{m} = b{n} - 2 * mean[i](off{n}[i])
    loss{n} = mean[i](softplus(z{n}[i]) - y[i] * z{n}[i])
"""


def logistic_regression(features: Any, labels: Any, steps: int) -> dict[str, Any]:
    """Weights and losses of gradient descent from nothing, with step 2."""
    weights, offset, found = np.zeros(features.shape[1]), 0.0, {}
    for n in range(steps):
        scores = features @ weights + offset
        found[f"loss{n}"] = np.mean(np.logaddexp(scores, 0) - labels * scores)
        off = scipy.special.expit(scores) - labels
        weights = weights - 2 * (features.T @ off) / len(labels)
        offset = offset - 2 * off.mean()
        found[f"w{n + 1}"], found[f"b{n + 1}"] = weights, offset
    return found


def test_logistic_regression(routes: Routes) -> None:
    features = sp.random_array((6, 5), density=0.4, rng=rng(8), format="csr")
    labels = np.array([1.0, 0, 1, 0, 0, 1])
    expected = logistic_regression(features, labels, 2)
    text = "".join(GRADIENT_STEP.format(n=n, m=n + 1) for n in range(2))
    case = known(
        text,
        {name: expected[name] for name in ("w2", "b2", "loss1")},
        X=features,
        y=labels,
        w0=np.zeros(5),
        b0=np.float64(0),
        count=np.float64(6),
    )
    check_known(case, routes, sample=6)


@pytest.mark.turns(3)
@pytest.mark.sample(1)
@pytest.mark.parametrize("decomposition", ["auto", "relational"])
def test_logistic_regression_on_a_graph(
    decomposition: Any, graphs: Path, native: duckdb.DuckDBPyConnection
) -> None:
    """One class against the others by the sparse features of the nodes; three steps a program."""
    _, features = load(graphs / "planetoid_cora")
    labels = (np.arange(features.shape[0]) % 7 == 3).astype(float)
    expected = logistic_regression(features, labels, 6)
    text = "".join(GRADIENT_STEP.format(n=n, m=n + 1) for n in range(3))
    weights, offset = np.zeros(features.shape[1]), np.float64(0)
    for start in (0, 3):
        found = run(
            text,
            native,
            decomposition,
            X=features,
            y=labels,
            w0=weights,
            b0=offset,
            count=np.float64(len(labels)),
        )
        for n in range(3):
            np.testing.assert_allclose(found[f"loss{n}"], expected[f"loss{start + n}"], RELATIVE)
        weights, offset = found["w3"], found["b3"]
    np.testing.assert_allclose(weights, expected["w6"], rtol=RELATIVE, atol=1e-12)


FACTORISATION_LOSS = {
    # r occurs in the product alone and is summed there; i and j are the aggregation's own.
    "inner sum implied": "loss = sum[i,j]((X[i,j] - U[i,r] * V[j,r]) ^ 2)",
    # += aggregates the right side as a whole, so that the inner sum has to be written.
    "inner sum written": "loss += (X[i,j] - sum[r](U[i,r] * V[j,r])) ^ 2",
    "two statements": "Y[i,j] = U[i,r] * V[j,r]; loss += (X[i,j] - Y[i,j]) ^ 2",
    # Never as large as X is dense: |X|^2 - 2 <X, U V'> + <U'U, V'V>.
    "expanded": """
        squares += square(X[i,j])
        crossed = X[i,j] * U[i,r] * V[j,r]
        dense = U[i,r] * U[i,s] * V[j,r] * V[j,s]
        loss = squares - 2 * crossed + dense
    """,
}


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", FACTORISATION_LOSS)
def test_loss_of_a_factorisation(name: str, routes: Routes) -> None:
    """Alternating least squares minimises the sum of (X - U V')^2, also where X holds nothing."""
    matrix = sp.random_array((5, 4), density=0.3, rng=rng(1), format="csr")
    left, right = rng(2).normal(size=(5, 3)), rng(3).normal(size=(4, 3))
    loss = ((matrix.toarray() - left @ right.T) ** 2).sum()
    text = FACTORISATION_LOSS[name]
    check_known(known(text, {"loss": loss}, X=matrix, U=left, V=right), routes)


@pytest.mark.turns(3)
def test_what_the_wrong_spellings_of_that_loss_mean(routes: Routes) -> None:
    """`+=` sums the squares of every r; `=` sums i and j where they first meet: in the bracket."""
    matrix = sp.random_array((5, 4), density=0.3, rng=rng(1), format="csr")
    left, right = rng(2).normal(size=(5, 3)), rng(3).normal(size=(4, 3))
    each = matrix.toarray()[:, :, None] - left[:, None] * right[None]
    answers = {
        "loss += (X[i,j] - U[i,r] * V[j,r]) ^ 2": (each**2).sum(),
        "loss = (X[i,j] - U[i,r] * V[j,r]) ^ 2": (matrix.toarray() - left @ right.T).sum() ** 2,
    }
    for text, answer in answers.items():
        check_known(known(text, {"loss": answer}, X=matrix, U=left, V=right), routes)


# ---- Statistics and stability ----


@pytest.mark.turns(3)
def test_logsumexp_and_softmax_of_large_numbers(routes: Routes) -> None:
    """Written out or built in: exp(1000) is never computed, and a row of -inf is -inf."""
    logits = rng(6).normal(size=(4, 5)) * 10 + np.array([1000.0, -1000.0, 0.0, 700.0])[:, None]
    text = """
        l[i] logsumexp= X[i,j]
        same[i] = log(sum[j](exp(X[i,j] - max[k](X[i,k])))) + max[k](X[i,k])
        P[i,j] = exp(X[i,j] - logsumexp[k](X[i,k]))
        whole = logsumexp[i,j](X[i,j])
    """
    sums = scipy.special.logsumexp(logits, axis=1)
    answer = {
        "l": sums,
        "same": sums,
        "P": scipy.special.softmax(logits, axis=1),
        "whole": scipy.special.logsumexp(logits),
    }
    check_known(known(text, answer, X=logits), routes)


def test_logsumexp_of_nothing_but_minus_infinity(routes: Routes) -> None:
    logits = np.array([[-INF, -INF, -INF], [0.0, -INF, 1.0], [INF, 0.0, -INF]])
    answer = {"l": scipy.special.logsumexp(logits, axis=1)}
    case = known("l[i] logsumexp= X[i,j]", answer, X=ucle.table(logits, fill=-INF))
    check_known(case, routes)


LAYER_NORM = """
    Z[i,j] = g[j] * (X[i,j] - mean[k](X[i,k])) /
             sqrt(mean[k]((X[i,k] - mean[m](X[i,m])) ^ 2) + 1e-5) + b[j]
"""


@pytest.mark.sample(1)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_layer_norm(dtype: str, routes: Routes) -> None:
    data = rng(9).normal(size=(4, 6)).astype(dtype)
    gain, bias = rng(10).normal(size=(2, 6)).astype(dtype)
    centred = data - data.mean(axis=1, keepdims=True)
    variance = (centred**2).mean(axis=1, keepdims=True)
    expected = gain * centred / np.sqrt(variance + np.dtype(dtype).type(1e-5)) + bias
    check_known(known(LAYER_NORM, {"Z": expected}, X=data, g=gain, b=bias), routes)


def test_mean_and_variance_of_sparse_columns(routes: Routes) -> None:
    """Entries that are not stored count."""
    data = sp.random_array((7, 4), density=0.4, rng=rng(11), format="csr")
    text = "m[j] mean= X[i,j]; v[j] = mean[i]((X[i,j] - m[j]) ^ 2); s[j] = sqrt(v[j])"
    dense = data.toarray()
    answer = {"m": dense.mean(axis=0), "v": dense.var(axis=0), "s": dense.std(axis=0)}
    check_known(known(text, answer, X=data), routes)


def test_one_round_of_k_means(routes: Routes) -> None:
    """Distances, assignment to the nearest centre, and the new centres."""
    points = rng(12).normal(size=(8, 3))
    centres = points[:3] + 0.1
    distances = ((points[:, None] - centres[None]) ** 2).sum(axis=2)
    near = distances == distances.min(axis=1, keepdims=True)
    moved = (near.T @ points) / near.sum(axis=0)[:, None]
    text = """
        D[i,c] = sum[f]((X[i,f] - C[c,f]) ^ 2)
        near[i,c] = D[i,c] == min[k](D[i,k])
        size[c] = count[i](near[i,c])
        N[c,f] = near[i,c] * X[i,f] / size[c]
    """
    answer = {"D": distances, "near": near, "size": near.sum(axis=0), "N": moved}
    check_known(known(text, answer, X=points, C=centres), routes)


def test_cosine_similarity_on_a_graph(graphs: Path, native: duckdb.DuckDBPyConnection) -> None:
    """Neighbours' features are compared without the matrix of all pairs."""
    adjacency, features = load(graphs / "cora_lcc")
    text = """
        norm[i] = sqrt(sum[f](H[i,f] * H[i,f]))
        dots[i,j] = A[i,j] * H[i,f] * H[j,f]
        C[i,j] = when(A[i,j], dots[i,j] / (norm[i] * norm[j]))
    """
    norms = np.sqrt(np.asarray(features.multiply(features).sum(axis=1)).ravel())
    rows, columns = adjacency.tocoo().coords
    dots = np.asarray(features[rows].multiply(features[columns]).sum(axis=1)).ravel()
    with np.errstate(divide="ignore", invalid="ignore"):
        cosines = dots / (norms[rows] * norms[columns])
    for decomposition in ("auto", "relational"):
        found = run(text, native, decomposition, A=adjacency, H=features)["C"]
        np.testing.assert_allclose(found[rows, columns], cosines, rtol=RELATIVE)
        found[rows, columns] = 0
        assert not found.any()
