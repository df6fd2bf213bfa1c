"""Mean pooling of embeddings.

What is the mean of the embeddings of each topic? A table has a row with an array for each document.
"""

import numpy as np
import scipy.sparse as sp
from data import columns, vectors
from tables import store

import ucle

PEER = "scipy.sparse"
TOLERANCE = 1e-5  # of float32
SMALL = {"documents": 2000, "topics": 20, "width": 32}
FULL = {"documents": 100_000, "topics": 1000, "width": 256}


def make_data(connection, documents, topics, width):
    rng = np.random.default_rng(0)
    topic = rng.integers(topics, size=documents)
    about = rng.normal(size=(topics, width)).cumsum(axis=1)[topic]
    embedding = vectors((about + rng.normal(size=about.shape)).astype(np.float32))
    store(connection, "docs", {"doc": np.arange(documents), "topic": topic, "embedding": embedding})


def program(connection):
    return ucle.einsum_program(
        "mean[topic,k] = sum[d](X[topic,d,k]) / sum[d](member[topic,d])",
        X=ucle.table("docs", ["topic", "doc"], "embedding"),
        member=ucle.table("docs", ["topic", "doc"], value=1),
        database=connection,
    )


def by_ucle(connection):
    with program(connection).execute() as result:
        result["mean"].to_table("means", keys=["topic"], mode="replace")
    return connection.table("means")


def by_sql(connection):
    connection.execute("""
        CREATE OR REPLACE TABLE means AS
        WITH entries AS (
            SELECT topic, unnest(embedding) AS x, generate_subscripts(embedding, 1) AS k FROM docs
        ), means AS (SELECT topic, k, avg(x) AS x FROM entries GROUP BY topic, k)
        SELECT topic, list(x ORDER BY k) AS val FROM means GROUP BY topic
    """)
    return connection.table("means")


def arrays(connection):
    return columns(connection, "SELECT topic, embedding FROM docs")


def by_peer(topic, embedding):
    members = sp.csr_array((np.ones(len(topic), np.float32), (topic, np.arange(len(topic)))))
    return members @ embedding / np.bincount(topic)[:, None]


def picture(axes, connection):
    (means,) = columns(connection, "SELECT val FROM means ORDER BY topic LIMIT 6")
    axes.plot(means[:, :32].T)
    axes.set(xlabel="number within the embedding", ylabel="mean", title="The means of six topics")
