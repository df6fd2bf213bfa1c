"""Three jobs in the idiomatic form of each library, for `benchmarks.comparison`.

Functions are named for a job and a side. Each gets the data in the form of its side: arrays in
memory, a matrix type of the library, or tables of DuckDB. Lines that are not imports are counted.
"""

# ruff: noqa: PLC0415  # packages that are not installed are not compared

from __future__ import annotations

from typing import Any

import duckdb
import numpy as np
import scipy.sparse as sp

import ucle

# ---- The mean of the embeddings of each topic ----


def mean_numpy(topic: Any, embedding: Any) -> Any:
    order, counts = np.argsort(topic), np.bincount(topic)
    sums = np.add.reduceat(embedding[order], np.cumsum(counts) - counts)
    return sums / counts[:, None]


def mean_scipy(topic: Any, embedding: Any) -> Any:
    ones = np.ones(len(topic), embedding.dtype)
    members = sp.csr_array((ones, (topic, np.arange(len(topic)))))
    return members @ embedding / np.bincount(topic)[:, None]


def mean_torch(topic: Any, embedding: Any) -> Any:
    import torch

    counts = torch.bincount(topic)
    sums = torch.zeros(len(counts), embedding.shape[1]).index_add_(0, topic, embedding)
    return sums / counts[:, None]


def mean_graphblas(topic: Any, embedding: Any) -> Any:
    from graphblas import Matrix, monoid, semiring, unary

    members = Matrix.from_coo(topic, np.arange(len(topic)), np.float32(1))
    sums = semiring.plus_times(members @ embedding)
    shares = members.reduce_rowwise(monoid.plus).apply(unary.minv).new()
    return semiring.plus_times(shares.diag() @ sums.new()).new()


def mean_ibis(backend: Any) -> Any:
    import ibis

    docs = backend.table("docs")
    places = ibis.range(docs.embedding.length())
    entries = docs.select("topic", x=docs.embedding.unnest(), k=places.unnest())
    entries = entries.group_by("topic", "k").agg(x=entries.x.mean())
    means = entries.group_by("topic").agg(mean=entries.x.collect(order_by="k"))
    return means.to_pyarrow()


def mean_duckdb(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute("""
        CREATE OR REPLACE TEMP TABLE answer AS
        WITH entries AS (
            SELECT topic, unnest(embedding) AS x, generate_subscripts(embedding, 1) AS k FROM docs
        ), means AS (SELECT topic, k, avg(x) AS x FROM entries GROUP BY topic, k)
        SELECT topic, list(x ORDER BY k) AS mean FROM means GROUP BY topic
    """).fetchall()


def mean_ucle(connection: duckdb.DuckDBPyConnection) -> ucle.EinsumProgram:
    x = ucle.table("docs", ["topic", "doc"], "embedding")
    one = ucle.table("docs", ["topic", "doc"], value=1)
    text = "answer[t,k] = sum[i](X[t,i,k]) / sum[i](one[t,i])"
    return ucle.einsum_program(text, X=x, one=one, database=connection)


# ---- A graph convolution: relu(A H W), where A is sparse ----


def convolution_numpy(edges: Any, weight: Any, features: Any, layer: Any) -> Any:
    source, target = edges
    answer = np.zeros((len(features), layer.shape[1]), features.dtype)
    np.add.at(answer, source, weight[:, None] * (features @ layer)[target])
    return np.maximum(answer, 0)


def convolution_scipy(graph: Any, features: Any, layer: Any) -> Any:
    return np.maximum(graph @ (features @ layer), 0)


def convolution_torch(graph: Any, features: Any, layer: Any) -> Any:
    return (graph @ (features @ layer)).relu()


def convolution_graphblas(graph: Any, features: Any, layer: Any) -> Any:
    from graphblas import binary, semiring

    hidden = semiring.plus_times(features @ layer).new()
    return semiring.plus_times(graph @ hidden).new().apply(binary.max, right=0).new()


def convolution_ibis(backend: Any) -> Any:
    edges, entries, layer = (backend.table(name) for name in ("edges", "entries", "layer"))
    hidden = entries.join(layer, "m")
    hidden = hidden.group_by("node", "n").agg(x=(hidden.x * hidden.w).sum())
    pairs = edges.join(hidden, edges.dst == hidden.node)
    answer = pairs.group_by("src", "n").agg(x=(pairs.weight * pairs.x).sum().clip(lower=0))
    return answer.to_pyarrow()


def convolution_duckdb(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute("""
        CREATE OR REPLACE TEMP TABLE answer AS
        WITH hidden AS (
            SELECT node, n, array_inner_product(val, w) AS x FROM features, layer_columns
        )
        SELECT src, n, greatest(sum(weight * x), 0) AS x
        FROM edges JOIN hidden ON dst = node GROUP BY src, n
    """).fetchall()


def convolution_ucle(connection: duckdb.DuckDBPyConnection, layer: Any) -> ucle.EinsumProgram:
    text = "answer[i,n] = relu(A[i,l] * H[l,m] * W[m,n])"
    return ucle.einsum_program(text, A="edges", H="features", W=layer, database=connection)


# ---- For each query, the greatest cosine that a document has with it ----


def cosine_numpy(queries: Any, documents: Any) -> Any:
    queries = queries / np.linalg.norm(queries, axis=1, keepdims=True)
    documents = documents / np.linalg.norm(documents, axis=1, keepdims=True)
    return (queries @ documents.T).max(axis=1)


def cosine_torch(queries: Any, documents: Any) -> Any:
    from torch.nn.functional import normalize

    return (normalize(queries) @ normalize(documents).T).amax(1)


def cosine_graphblas(queries: Any, documents: Any) -> Any:
    from graphblas import binary, monoid, semiring, unary

    def normal(x: Any) -> Any:
        squares = x.apply(binary.pow, right=2).reduce_rowwise(monoid.plus)
        scale = squares.apply(unary.sqrt).new().apply(unary.minv).new()
        return semiring.plus_times(scale.diag() @ x).new()

    scores = semiring.plus_times(normal(queries) @ normal(documents).T)
    return scores.new().reduce_rowwise(monoid.max).new()


def cosine_ibis(backend: Any) -> Any:
    import ibis

    @ibis.udf.scalar.builtin
    def list_cosine_similarity(x: list[float], y: list[float]) -> float: ...

    queries, documents = backend.table("queries"), backend.table("documents")
    pairs = queries.cross_join(documents.rename(doc="id", other="val"))
    cosine = list_cosine_similarity(pairs.val, pairs.other)
    answer = pairs.group_by("id").agg(x=cosine.max())
    return answer.to_pyarrow()


def cosine_duckdb(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute("""
        CREATE OR REPLACE TEMP TABLE answer AS
        SELECT queries.id, max(array_cosine_similarity(queries.val, documents.val)) AS x
        FROM queries, documents GROUP BY queries.id
    """).fetchall()


def cosine_ucle(connection: duckdb.DuckDBPyConnection) -> ucle.EinsumProgram:
    text = """
        norm_q[q] = sqrt(sum[k](square(Q[q,k])))
        norm_d[d] = sqrt(sum[k](square(D[d,k])))
        answer[q] max= sum[k](Q[q,k] * D[d,k]) / (norm_q[q] * norm_d[d])
    """
    return ucle.einsum_program(text, Q="queries", D="documents", database=connection)
