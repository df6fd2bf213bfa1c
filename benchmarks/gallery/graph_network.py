"""A graph network that was trained elsewhere, on the tables of a graph.

Which class is a node of? The network (GraphSAGE) joins the features of a node with the mean of
those of its neighbours, twice. It comes as a file of ONNX, as PyTorch writes it; the graph stays a
table of edges.
"""

from functools import cache

import numpy as np
import scipy.sparse as sp
from array_queries import times
from data import adjacency, columns, count, make_graph, make_nodes
from networks import network

import ucle

PEER = "scipy.sparse, NumPy"
SMALL = {"nodes": 400, "degree": 10, "groups": 5, "features": 16}
FULL = {"nodes": 50_000, "degree": 20, "groups": 500, "features": 64}
HIDDEN, CLASSES = 16, 8


def make_data(connection, nodes, degree, groups, features):
    make_graph(connection, nodes, degree, groups)
    make_nodes(connection, nodes, groups, features)


@cache
def weights(connection):
    """Random weights, as if they had been trained."""
    rng = np.random.default_rng(2)
    features = count(connection, "max(len(x))", "nodes")
    shapes = {"own1": (features, HIDDEN), "around1": (features, HIDDEN)}
    shapes |= {"own2": (HIDDEN, CLASSES), "around2": (HIDDEN, CLASSES)}
    return {name: rng.normal(size=shape) / shape[0] ** 0.5 for name, shape in shapes.items()}


def layer(number, x, result):
    """The nodes of a layer: the features of each node, and the mean of those around it."""
    names = [f"{what}{number}" for what in ("own", "around")]
    return [
        ("MatMul", ["A", x], f"sum{number}"),
        ("Div", [f"sum{number}", "degree"], f"mean{number}"),
        ("MatMul", [x, names[0]], f"self{number}"),
        ("MatMul", [f"mean{number}", names[1]], f"others{number}"),
        ("Add", [f"self{number}", f"others{number}"], result),
    ]


def model_of(connection):
    """The network as a file of ONNX has it."""
    w = weights(connection)
    nodes = [
        ("ReduceSum", ["A", "axis"], "links"),
        ("Max", ["links", "one"], "degree"),
        *layer(1, "x", "h"),
        ("Relu", ["h"], "positive"),
        *layer(2, "positive", "scores"),
    ]
    shape = ["nodes", len(w["own1"])]
    inputs = {"A": ("double", ["nodes", "nodes"]), "x": ("double", shape)}
    constants = {**w, "axis": np.array([1]), "one": np.array(1.0)}
    return network(nodes, constants, inputs, ("scores", ["nodes", CLASSES]))


def program(connection):
    nodes = count(connection, "count(*)", "nodes")
    model = ucle.models.from_onnx(model_of(connection), sizes={"nodes": nodes})
    return model.program(
        A=ucle.table("edges", ["src", "dst"], value=1.0, bounds=[nodes, nodes]),
        x=ucle.table("nodes", ["node"], "x"),
        database=connection,
    )


def by_ucle(connection):
    with program(connection).execute() as result:
        (label, _) = result["scores"].columns[:2]
        result["scores"].to_table("scores", keys=[label], mode="replace", rows="all")
    return connection.table("scores")


def means(row, width):
    """SQL for the means of arrays."""
    return f"[{', '.join(f'avg({row}[{n}])' for n in range(1, width + 1))}]::DOUBLE[{width}]"


def by_sql(connection):
    w = weights(connection)
    features = len(w["own1"])
    relu = ", ".join(f"greatest(a[{n}] + coalesce(b[{n}], 0), 0)" for n in range(1, HIDDEN + 1))
    both = ", ".join(f"a[{n}] + coalesce(b[{n}], 0)" for n in range(1, CLASSES + 1))
    connection.execute(f"""
        CREATE OR REPLACE TEMP TABLE layer AS
        WITH around AS (
            SELECT src AS node, {means("x", features)} AS m
            FROM edges JOIN nodes ON dst = node GROUP BY src
        ),
        parts AS (
            SELECT node, {times("x", w["own1"])} AS a, {times("m", w["around1"])} AS b
            FROM nodes LEFT JOIN around USING (node)
        )
        SELECT node, [{relu}]::DOUBLE[{HIDDEN}] AS x FROM parts;

        CREATE OR REPLACE TEMP TABLE scored AS
        WITH around AS (
            SELECT src AS node, {means("x", HIDDEN)} AS m
            FROM edges JOIN layer ON dst = node GROUP BY src
        ),
        parts AS (
            SELECT node, {times("x", w["own2"])} AS a, {times("m", w["around2"])} AS b
            FROM layer LEFT JOIN around USING (node)
        )
        SELECT node, [{both}]::DOUBLE[{CLASSES}] AS val FROM parts
    """)
    return connection.table("scored")


def arrays(connection):
    (x,) = columns(connection, "SELECT x FROM nodes ORDER BY node")
    return adjacency(connection, len(x)), x, weights(connection)


def by_peer(graph, x, w):
    mean = sp.diags_array(1 / np.maximum(graph.sum(axis=1), 1)) @ graph
    h = np.maximum(x @ w["own1"] + (mean @ x) @ w["around1"], 0)
    return h @ w["own2"] + (mean @ h) @ w["around2"]


def picture(axes, connection):
    (scores,) = columns(connection, "SELECT val FROM scores LIMIT 200")
    axes.boxplot(list(scores.T), showfliers=False, tick_labels=range(1, CLASSES + 1))
    axes.set(xlabel="class", ylabel="score", title="Scores of the classes of nodes")
