"""The nearest neighbours of all queries at once.

Which ten documents are the most similar to each query? All queries go through the table in one
pass, as a product of matrices of which the ten best of each row are kept.
"""

import numpy as np
import scipy.sparse as sp
from data import columns, vectors
from tables import store

import ucle

PEER = "NumPy"
K = 10
SMALL = {"queries": 20, "documents": 500, "width": 16}
FULL = {"queries": 200, "documents": 100_000, "width": 128}


def make_data(connection, queries, documents, width):
    rng = np.random.default_rng(0)
    for name, size in (("queries", queries), ("documents", documents)):
        rows = rng.normal(size=(size, width))
        store(connection, name, {"id": np.arange(size), "vector": vectors(rows)})


def program(connection):
    return ucle.einsum_program(
        """
        score[q,d] = sum[k](Q[q,k] * D[d,k])
        best[q,d] = when(among_top_k[d,rank](score[q,d]), score[q,d])
        """,
        Q="queries",
        D="documents",
        bounds={"rank": K},
        outputs=["best"],
        database=connection,
    )


def by_ucle(connection):
    with program(connection).execute() as result:
        result["best"].to_table("best", mode="replace")
    return connection.table("best")


def by_sql(connection):
    connection.execute(f"""
        CREATE OR REPLACE TEMP TABLE found AS
        WITH scores AS (
            SELECT q.id AS q, d.id AS d, array_inner_product(q.vector, d.vector) AS score
            FROM queries q, documents d
        ),
        best AS (SELECT q, max_by({{'d': d, 'score': score}}, score, {K}) AS best
            FROM scores GROUP BY q)
        SELECT q, unnest(best, recursive := true) FROM best
    """)
    return connection.table("found")


def arrays(connection):
    return [
        columns(connection, f"SELECT vector FROM {name} ORDER BY id")[0]
        for name in ("queries", "documents")
    ]


def by_peer(queries, documents):
    scores = queries @ documents.T
    document = np.argpartition(scores, -K, axis=1)[:, -K:]
    query = np.repeat(np.arange(len(queries)), K)
    score = np.take_along_axis(scores, document, axis=1)
    return sp.coo_array((score.ravel(), (query, document.ravel())), scores.shape).tocsr()


def picture(axes, connection):
    rank, score = columns(
        connection,
        "SELECT row_number() OVER (PARTITION BY q ORDER BY val DESC) - 1 AS rank, val FROM best",
    )
    axes.boxplot([score[rank == n] for n in range(K)], tick_labels=range(1, K + 1))
    axes.set(xlabel="rank", ylabel="score", title="How near the nearest are")
