"""Shortest paths.

How far is each node of a network from some sources? Links have lengths. In a step each node takes
the least of its distance and of those by way of its neighbours, until nothing changes.
What is in no row, of links and of distances, is infinitely far: the search begins with one row for
each source, and is planned again when it has many.
"""

import numpy as np
from data import adjacency, columns, count, make_graph
from scipy.sparse.csgraph import dijkstra
from tables import store

import ucle

PEER = "scipy.sparse"
SMALL = {"nodes": 400, "degree": 6, "groups": 20, "sources": 3}
FULL = {"nodes": 50_000, "degree": 8, "groups": 500, "sources": 8}


def make_data(connection, nodes, degree, groups, sources):
    make_graph(connection, nodes, degree, groups)
    connection.execute("""
        CREATE OR REPLACE TABLE roads AS
        SELECT src, dst, 1 + (7919 * least(src, dst) + 104729 * greatest(src, dst)) % 1000 / 100
               AS length
        FROM edges
    """)
    chosen = connection.sql("SELECT DISTINCT src FROM edges ORDER BY src").fetchnumpy()["src"]
    begin = {"source": np.arange(sources), "node": chosen[:sources], "distance": np.zeros(sources)}
    store(connection, "sources", begin)


def program(connection):
    return ucle.einsum_program(
        """
        around[node,source] min= D[j,source] + L[j,node]
        next[node,source] = min(D[node,source], around[node,source])
        moved[] = sum[node,source](next[node,source] < D[node,source])
        """,
        L=ucle.table("roads", ["src", "dst"], "length", fill=np.inf),
        D=ucle.table("sources", ["node", "source"], "distance", fill=np.inf),
        bounds={"node": count(connection, "max(src) + 1", "roads")},
        outputs=["next"],
        database=connection,
    )


def by_ucle(connection):
    with program(connection).iterate({"D": "next"}, until="moved[] == 0") as found:
        found["next"].to_table("distances", mode="replace")
    return connection.table("distances")


def by_sql(connection):
    connection.execute("""
        CREATE OR REPLACE TEMP TABLE distances_by_sql AS
        WITH RECURSIVE paths(node, source, distance) USING KEY (node, source) AS (
            SELECT node, source, distance FROM sources
            UNION
            SELECT dst, now.source, min(now.distance + length)
            FROM paths now JOIN roads ON src = now.node
            LEFT JOIN recurring.paths old ON old.source = now.source AND old.node = dst
            GROUP BY dst, now.source
            HAVING min(now.distance + length) < coalesce(min(old.distance), 'inf')
        )
        SELECT node, source, distance FROM paths
    """)
    return connection.table("distances_by_sql")


def arrays(connection):
    graph = adjacency(connection, count(connection, "max(src) + 1", "roads"))
    src, dst, length = columns(connection, "SELECT src, dst, length FROM roads")
    graph[src, dst] = length
    return graph, *columns(connection, "SELECT node FROM sources ORDER BY source")


def by_peer(roads, sources):
    distance = dijkstra(roads, indices=sources).T
    return np.where(np.isfinite(distance), distance, 0)  # what is not reached has no row


def picture(axes, connection):
    for source in range(3):
        query = f"SELECT val FROM distances WHERE source = {source} AND val > 0"
        axes.hist(*columns(connection, query), bins=40, histtype="step")
    axes.set(xlabel="distance", ylabel="nodes", title="How far nodes are from three sources")
