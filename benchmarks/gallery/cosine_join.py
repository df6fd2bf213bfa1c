"""Pairs that are alike, and their clusters.

Which items are so alike that the cosine of their vectors is 0.9 or more, and which groups do they
form? The first is a join with a threshold, the second are the connected components of its pairs.
"""

import numpy as np
import scipy.sparse as sp
from components import STEP
from data import columns, count, vectors
from sklearn.neighbors import radius_neighbors_graph
from tables import store

import ucle

PEER = "scikit-learn, scipy.sparse"
TOLERANCE = 1e-6
SMALL = {"items": 300, "groups": 20, "width": 16}
FULL = {"items": 10_000, "groups": 1000, "width": 64}


def make_data(connection, items, groups, width):
    rng = np.random.default_rng(0)
    around = rng.normal(size=(groups, width))[rng.integers(groups, size=items)]
    around += rng.normal(0, 0.33, size=around.shape)
    store(connection, "items", {"item": np.arange(items), "vector": vectors(around)})


def program(connection):
    return ucle.einsum_program(
        """
        norm[i] = sqrt(sum[k](square(X[i,k])))
        cosine[i,j] = sum[k](X[i,k] * X[j,k]) / (norm[i] * norm[j])
        alike[i,j] = when(cosine[i,j] >= 0.9, cosine[i,j])
        """,
        X="items",
        outputs=["alike"],
        database=connection,
    )


def by_ucle(connection):
    with program(connection).execute() as result:
        result["alike"].to_table("alike", mode="replace")
    items = count(connection, "count(*)", "items")
    pairs = ucle.table("alike", ["i", "j"], 1, dtype="bool", bounds=[items, items])
    # The step of examples/training/components.py: each takes the least number around it.
    step = ucle.einsum_program(
        STEP, F=pairs, label=ucle.parameter(np.arange(items)), outputs=["next"], database=connection
    )
    with step.iterate({"label": "next"}, until="moved[] == 0") as found:
        found["next"].to_table("clusters", mode="replace", rows="all")
    return connection.table("alike").filter("i < j"), connection.table("clusters")


def by_sql(connection):
    connection.execute("""
        CREATE OR REPLACE TEMP TABLE near AS
        SELECT a.item AS i, b.item AS j, array_cosine_similarity(a.vector, b.vector) AS val
        FROM items a JOIN items b ON a.item < b.item WHERE val >= 0.9;
        CREATE OR REPLACE TEMP TABLE clusters_by_sql AS
        WITH RECURSIVE pairs AS (SELECT i, j FROM near UNION ALL SELECT j, i FROM near),
        labels(item, label) USING KEY (item) AS (
            SELECT item, item FROM items
            UNION
            SELECT i, min(now.label) FROM labels now JOIN pairs ON j = now.item
            JOIN recurring.labels old ON old.item = i
            GROUP BY i HAVING min(now.label) < min(old.label)
        )
        SELECT item, label FROM labels
    """)
    return connection.table("near"), connection.table("clusters_by_sql")


def arrays(connection):
    return columns(connection, "SELECT vector FROM items ORDER BY item")


def by_peer(vector):
    unit = vector / np.linalg.norm(vector, axis=1, keepdims=True)
    near = radius_neighbors_graph(unit, np.sqrt(2 - 2 * 0.9), mode="distance")
    near.data = 1 - near.data**2 / 2
    _, component = sp.csgraph.connected_components(near)
    _, first = np.unique(component, return_index=True)
    return sp.csr_array(sp.triu(near, 1)), first[component]


def picture(axes, connection):
    (size,) = columns(connection, "SELECT count(*) FROM clusters GROUP BY val")
    axes.hist(size, bins=np.arange(size.max() + 2) - 0.5)
    axes.set(xlabel="items", ylabel="clusters", title="How large clusters are", yscale="log")
