"""Predictions of graph neural networks.

Which class is a node of, by its features and those of its neighbours? The weights are known. Two
layers of graph convolution (GCN) take means over neighbours; a layer of graph attention (GAT) has
weights for edges, which the features of both ends say, and which are 1 together for each node.
"""

import numpy as np
import scipy.sparse as sp
from array_queries import dot, sums, times
from data import adjacency, columns, count, make_graph, make_nodes

import ucle

PEER = "scipy.sparse, NumPy"
SMALL = {"nodes": 400, "degree": 10, "groups": 5, "features": 16}
FULL = {"nodes": 100_000, "degree": 20, "groups": 500, "features": 64}
HIDDEN, CLASSES = 16, 8


def make_data(connection, nodes, degree, groups, features):
    make_graph(connection, nodes, degree, groups)
    make_nodes(connection, nodes, groups, features)


def weights(connection):
    """Random weights of both networks, as if they had been trained."""
    rng = np.random.default_rng(2)
    features = count(connection, "max(len(x))", "nodes")
    shapes = {
        "W1": (features, HIDDEN),
        "W2": (HIDDEN, CLASSES),
        "V": (features, CLASSES),
        "own": (CLASSES,),
        "other": (CLASSES,),
    }
    return {name: rng.normal(size=shape) / shape[0] ** 0.5 for name, shape in shapes.items()}


def program(connection):
    nodes = count(connection, "count(*)", "nodes")
    return ucle.einsum_program(
        """
        degree[i] = 1 + sum[j](A[i,j])
        L[i,j] = (A[i,j] + (i == j)) / sqrt(degree[i]) / sqrt(degree[j])
        hidden[i,k] = relu(sum[j,f](L[i,j] * X[j,f] * W1[f,k]))
        convolved[i,c] = sum[j,k](L[i,j] * hidden[j,k] * W2[k,c])

        value[i,c] = sum[f](X[i,f] * V[f,c])
        from[i] = sum[c](value[i,c] * own[c])
        to[j] = sum[c](value[j,c] * other[c])
        fits[i,j] = when(A[i,j], exp(leaky_relu(from[i] + to[j])))
        attended[i,c] = sum[j](fits[i,j] * value[j,c]) / max(sum[j](fits[i,j]), 1e-300)
        """,
        A=ucle.table("edges", ["src", "dst"], value=1, bounds=[nodes, nodes]),
        X=ucle.table("nodes", ["node"], "x"),
        **weights(connection),
        outputs=["convolved", "attended"],
        database=connection,
    )


def by_ucle(connection):
    with program(connection).execute() as result:
        for name in result:
            result[name].to_table(name, keys=["i"], mode="replace", rows="all")
    return connection.table("convolved"), connection.table("attended")


def by_sql(connection):
    w = weights(connection)
    relu = ", ".join(f"greatest(h[{n}], 0)" for n in range(1, HIDDEN + 1))
    connection.execute(f"""
        CREATE OR REPLACE TEMP TABLE links AS
        WITH loops AS (FROM edges UNION ALL SELECT node, node FROM nodes),
        degrees AS (SELECT src AS node, count(*) AS degree FROM loops GROUP BY src)
        SELECT src, dst, 1 / sqrt(a.degree * b.degree) AS weight
        FROM loops JOIN degrees a ON src = a.node JOIN degrees b ON dst = b.node;

        CREATE OR REPLACE TEMP TABLE convolved_by_sql AS
        WITH one AS (SELECT node, {times("x", w["W1"])} AS h FROM nodes),
        around AS (
            SELECT src AS node, {sums("weight", "h", HIDDEN)} AS h
            FROM links JOIN one ON dst = node GROUP BY src
        ),
        hidden AS (SELECT node, [{relu}]::DOUBLE[{HIDDEN}] AS h FROM around),
        two AS (SELECT node, {times("h", w["W2"])} AS h FROM hidden)
        SELECT src AS node, {sums("weight", "h", CLASSES)} AS val
        FROM links JOIN two ON dst = node GROUP BY src;

        CREATE OR REPLACE TEMP TABLE attended_by_sql AS
        WITH looked AS (SELECT node, {times("x", w["V"])} AS v FROM nodes),
        ends AS (
            SELECT node, v, {dot("v", w["own"])} AS own, {dot("v", w["other"])} AS other FROM looked
        ),
        fits AS (
            SELECT src AS node, b.v, exp(greatest(a.own + b.other, 0.01 * (a.own + b.other))) AS fit
            FROM edges JOIN ends a ON src = a.node JOIN ends b ON dst = b.node
        ),
        seen AS (
            SELECT node, {sums("fit", "v", CLASSES)} AS v, sum(fit) AS fit FROM fits GROUP BY node
        )
        SELECT node, list_transform(v, lambda y: y / fit) AS val FROM seen
    """)
    return connection.table("convolved_by_sql"), connection.table("attended_by_sql")


def arrays(connection):
    (x,) = columns(connection, "SELECT x FROM nodes ORDER BY node")
    return adjacency(connection, len(x)), x, weights(connection)


def by_peer(graph, x, w):
    looped = graph + sp.eye_array(len(x))
    scale = sp.diags_array(looped.sum(axis=1) ** -0.5)
    links = (scale @ looped @ scale).tocsr()
    hidden = np.maximum(links @ (x @ w["W1"]), 0)
    convolved = links @ (hidden @ w["W2"])

    value = x @ w["V"]
    src = np.repeat(np.arange(len(x)), np.diff(graph.indptr))
    score = (value @ w["own"])[src] + (value @ w["other"])[graph.indices]
    fits = sp.csr_array(
        (np.exp(np.maximum(score, 0.01 * score)), graph.indices, graph.indptr), graph.shape
    )
    attended = (fits @ value) / np.maximum(fits.sum(axis=1), 1e-300)[:, None]
    return convolved, attended


def picture(axes, connection):
    query = "SELECT a.val, b.val FROM convolved a JOIN attended b USING (i) WHERE i < 100"
    for scores, marker, name in zip(columns(connection, query), "ox", ("GCN", "GAT"), strict=True):
        axes.scatter(scores[:, 0], scores[:, 1], s=10, marker=marker, label=name)
    axes.legend()
    axes.set(xlabel="score of class 0", ylabel="score of class 1", title="What networks predict")
