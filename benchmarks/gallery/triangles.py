"""Triangles and clustering coefficients.

How many triangles is each node of a graph in, and what share of its pairs of neighbours are
neighbours of each other?
"""

import numpy as np
from data import adjacency, columns, count, make_graph

import ucle

PEER = "scipy.sparse"
SMALL = {"nodes": 500, "degree": 12, "groups": 20}
FULL = {"nodes": 50_000, "degree": 30, "groups": 1000}
make_data = make_graph


def program(connection):
    return ucle.einsum_program(
        """
        degree[i] = sum[j](A[i,j])
        triangles[i] = sum[j,k](A[i,j] * A[j,k] * A[i,k]) / 2
        coefficient[i] = 2 * triangles[i] / max(degree[i] * (degree[i] - 1), 1)
        """,
        A=ucle.table("edges", ["src", "dst"], value=1),
        outputs=["triangles", "coefficient"],
        database=connection,
    )


def by_ucle(connection):
    with program(connection).execute() as result:
        for name in result:
            result[name].to_table(name, mode="replace")
    return connection.table("triangles"), connection.table("coefficient")


def by_sql(connection):
    connection.execute("""
        CREATE OR REPLACE TEMP TABLE nodes AS
        WITH up AS (FROM edges WHERE src < dst), found AS (
            SELECT a.src AS i, a.dst AS j, b.dst AS k
            FROM up a JOIN up b ON a.dst = b.src JOIN up c ON c.src = a.src AND c.dst = b.dst
        ), hits AS (
            SELECT node, count(*) AS triangles FROM (SELECT unnest([i, j, k]) AS node FROM found)
            GROUP BY node
        ), degrees AS (SELECT src AS node, count(*) AS degree FROM edges GROUP BY src)
        SELECT node, triangles, 2 * triangles / (degree * (degree - 1)) AS coefficient
        FROM hits JOIN degrees USING (node)
    """)
    nodes = connection.table("nodes")
    return nodes.select("node, triangles"), nodes.select("node, coefficient")


def arrays(connection):
    return (adjacency(connection, count(connection, "max(src) + 1", "edges")),)


def by_peer(graph):
    degree = graph.sum(axis=1)
    triangles = (graph @ graph).multiply(graph).sum(axis=1) / 2
    return triangles, 2 * triangles / np.maximum(degree * (degree - 1), 1)


def picture(axes, connection):
    (coefficient,) = columns(connection, "SELECT val FROM coefficient")
    axes.hist(coefficient, bins=40)
    axes.set(xlabel="clustering coefficient", ylabel="nodes")
