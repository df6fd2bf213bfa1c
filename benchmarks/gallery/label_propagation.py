"""Label propagation.

Which group is a node of, if the groups of a few nodes are known? Each node hands what it is taken
for on to its neighbours, and those that are known always count as what they are (label spreading).
After some steps each node is of the group that most has arrived of.
"""

import numpy as np
import scipy.sparse as sp
from data import adjacency, columns, count, make_graph
from tables import store

import ucle

PEER = "scipy.sparse"
SMALL = {"nodes": 400, "degree": 10, "groups": 5}
FULL = {"nodes": 50_000, "degree": 16, "groups": 8}
STEPS, ALPHA = 30, 0.9


def make_data(connection, nodes, degree, groups):
    make_graph(connection, nodes, degree, groups)
    known = np.random.default_rng(1).choice(nodes, nodes // 50, replace=False)
    store(connection, "known", {"node": known, "label": known % groups})


def sizes(connection):
    return count(connection, "max(src) + 1", "edges"), count(connection, "max(label) + 1", "known")


def program(connection):
    shape = sizes(connection)
    return ucle.einsum_program(
        f"""
        degree[i] = sum[j](A[i,j])
        S[i,j] = A[i,j] / sqrt(max(degree[i] * degree[j], 1))
        next[node,label] = {ALPHA} * sum[j](S[node,j] * F[j,label]) + {1 - ALPHA} * Y[node,label]
        """,
        A=ucle.table("edges", ["src", "dst"], value=1),
        Y=ucle.table("known", ["node", "label"], value=1, bounds=shape),
        F=ucle.parameter(np.zeros(shape)),
        outputs=["next"],
        database=connection,
    )


def by_ucle(connection):
    with program(connection).iterate({"F": "next"}, max_steps=STEPS) as found:
        found["next"].to_table("propagated", mode="replace")
    return connection.table("propagated")


def by_sql(connection):
    connection.execute("""
        CREATE OR REPLACE TEMP TABLE links AS
        WITH degrees AS (SELECT src AS node, count(*) AS degree FROM edges GROUP BY src)
        SELECT src, dst, 1 / sqrt(a.degree * b.degree) AS weight
        FROM edges JOIN degrees a ON src = a.node JOIN degrees b ON dst = b.node;
        CREATE OR REPLACE TEMP TABLE spread AS
        SELECT node, label, 0.0::DOUBLE AS val FROM known WHERE false
    """)
    for _ in range(STEPS):
        connection.execute(f"""
            CREATE OR REPLACE TEMP TABLE spread AS
            SELECT node, label, sum(val) AS val FROM (
                SELECT src AS node, label, {ALPHA} * weight * val AS val
                FROM links JOIN spread ON dst = node
                UNION ALL SELECT node, label, {1 - ALPHA} FROM known
            ) GROUP BY node, label
        """)
    return connection.table("spread")


def arrays(connection):
    shape = sizes(connection)
    node, label = columns(connection, "SELECT node, label FROM known")
    known = np.zeros(shape)
    known[node, label] = 1
    return adjacency(connection, shape[0]), known


def by_peer(graph, known):
    scale = sp.diags_array(1 / np.sqrt(np.maximum(graph.sum(axis=1), 1)))
    links = (scale @ graph @ scale).tocsr()
    found = np.zeros(known.shape)
    for _ in range(STEPS):
        found = ALPHA * (links @ found) + (1 - ALPHA) * known
    return found


def picture(axes, connection):
    query = "SELECT node, arg_max(label, val) FROM propagated GROUP BY node"
    node, label = columns(connection, query)
    groups = sizes(connection)[1]
    right = [(label[node % groups == group] == group).mean() for group in range(groups)]
    axes.bar(np.arange(groups), right)
    axes.set(xlabel="group", ylabel="share that is right", title="Nodes whose group is found")
