"""Personalised PageRank.

Which nodes are close to a seed, whichever way one goes from there? Somebody who walks along links
returns to the seed in 15 of 100 steps. All seeds are walked from at once.
"""

import numpy as np
import scipy.sparse as sp
from data import adjacency, columns, count, make_graph
from tables import store

import ucle

PEER = "scipy.sparse"
TOLERANCE = 1e-8
SMALL = {"nodes": 500, "degree": 8, "groups": 10, "seeds": 4}
FULL = {"nodes": 100_000, "degree": 16, "groups": 1000, "seeds": 8}


def make_data(connection, nodes, degree, groups, seeds):
    make_graph(connection, nodes, degree, groups)
    chosen = connection.sql("SELECT DISTINCT src FROM edges ORDER BY src").fetchnumpy()["src"]
    store(connection, "seeds", {"seed": np.arange(seeds), "node": chosen[:seeds]})


def program(connection):
    nodes = count(connection, "max(src) + 1", "edges")
    seeds = count(connection, "count(*)", "seeds")
    return ucle.einsum_program(
        """
        degree[i] = sum[j](A[i,j])
        follow[i,j] = A[i,j] / max(degree[i], 1)
        next[node,seed] = 0.15 * S[seed,node] + 0.85 * sum[i](follow[i,node] * rank[i,seed])
        moved[] = sum[i,s](abs(next[i,s] - rank[i,s]))
        """,
        A=ucle.table("edges", ["src", "dst"], value=1),
        S=ucle.table("seeds", ["seed", "node"], value=1, bounds=[seeds, nodes]),
        rank=ucle.parameter(np.zeros((nodes, seeds))),
        outputs=["next"],
        database=connection,
    )


def by_ucle(connection):
    loop = program(connection).iterate({"rank": "next"}, until="moved[] < 1e-9")
    with loop as found:
        found["next"].to_table("ranks", mode="replace")
    return connection.table("ranks")


def by_sql(connection):
    connection.execute("""
        CREATE OR REPLACE TEMP TABLE follow AS
        SELECT src, dst, 1 / count(*) OVER (PARTITION BY src) AS share FROM edges;
        CREATE OR REPLACE TEMP TABLE walked AS SELECT node, seed, 0.0::DOUBLE AS val FROM seeds
    """)
    moved = 1.0
    while moved >= 1e-9:
        connection.execute("""
            CREATE OR REPLACE TEMP TABLE walked_on AS
            SELECT node, seed, sum(val) AS val FROM (
                SELECT dst AS node, seed, 0.85 * share * val AS val
                FROM walked JOIN follow ON src = node
                UNION ALL SELECT node, seed, 0.15 FROM seeds
            ) GROUP BY node, seed
        """)
        (moved,) = connection.execute("""
            SELECT sum(abs(coalesce(a.val, 0) - coalesce(b.val, 0)))
            FROM walked a FULL JOIN walked_on b USING (node, seed)
        """).fetchone()
        connection.execute("CREATE OR REPLACE TEMP TABLE walked AS FROM walked_on")
    return connection.table("walked")


def arrays(connection):
    graph = adjacency(connection, count(connection, "max(src) + 1", "edges"))
    return graph, *columns(connection, "SELECT node FROM seeds ORDER BY seed")


def by_peer(graph, seeds):
    follow = (sp.diags_array(1 / np.maximum(graph.sum(axis=1), 1)) @ graph).T.tocsr()
    start = np.zeros((graph.shape[0], len(seeds)))
    start[seeds, np.arange(len(seeds))] = 0.15
    rank, moved = np.zeros_like(start), 1.0
    while moved >= 1e-9:
        following = start + 0.85 * (follow @ rank)
        rank, moved = following, abs(following - rank).sum()
    return rank


def picture(axes, connection):
    for seed in range(4):
        query = f"SELECT val FROM ranks WHERE seed = {seed} ORDER BY val DESC LIMIT 60"
        axes.semilogy(*columns(connection, query))
    axes.set(xlabel="place", ylabel="rank", title="The nodes closest to four seeds")
