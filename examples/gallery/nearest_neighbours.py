"""The nearest neighbours of all queries at once.

Which ten documents are the most similar to each query? All queries go through the table in one
pass, as a product of matrices of which the ten best of each row are kept.
"""

import numpy as np
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
        best[q,rank] = top_k[d,rank](score[q,d])
        document[q,rank] = arg_top_k[d,rank](score[q,d])
        """,
        Q="queries",
        D="documents",
        bounds={"rank": K},
        outputs=["best", "document"],
        database=connection,
    )


def by_ucle(connection):
    with program(connection).execute() as result:
        for name in ("best", "document"):
            result[name].to_table(name, keys=["q", "rank"], rows="all", mode="replace")
    return connection.table("best"), connection.table("document")


def by_sql(connection):
    connection.execute(f"""
        CREATE OR REPLACE TEMP TABLE found AS
        WITH scores AS (
            SELECT q.id AS q, d.id AS d, array_inner_product(q.vector, d.vector) AS score
            FROM queries q, documents d
        ),
        best AS (SELECT q, max_by({{'d': d, 'score': score}}, score, {K}) AS best
            FROM scores GROUP BY q)
        SELECT q, generate_subscripts(best, 1) - 1 AS rank, unnest(best, recursive := true)
        FROM best
    """)
    return (
        connection.sql("SELECT q, rank, score FROM found"),
        connection.sql("SELECT q, rank, d FROM found"),
    )


def arrays(connection):
    return [
        columns(connection, f"SELECT vector FROM {name} ORDER BY id")[0]
        for name in ("queries", "documents")
    ]


def by_peer(queries, documents):
    scores = queries @ documents.T
    found = np.argpartition(scores, -K, axis=1)[:, -K:]
    order = np.argsort(-np.take_along_axis(scores, found, axis=1), axis=1)
    document = np.take_along_axis(found, order, axis=1)
    return np.take_along_axis(scores, document, axis=1), document


def picture(axes, connection):
    rank, score = columns(connection, "SELECT rank, val FROM best")
    axes.boxplot([score[rank == n] for n in range(K)], tick_labels=range(1, K + 1))
    axes.set(xlabel="rank", ylabel="score", title="How near the nearest are")
