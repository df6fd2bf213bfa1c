"""Embeddings of texts by a small transformer, and the nearest texts, in one program.

Which texts are the most alike? A layer of attention makes a vector of the tokens of each text, and
the ten texts whose vectors are the nearest to those of some queries come from the same program.
"""

from functools import cache

import numpy as np
import scipy.sparse as sp
from array_queries import sums, times
from data import columns
from networks import network
from tables import store

import ucle

PEER = "NumPy"
TOLERANCE = 1e-8
SMALL = {"texts": 60, "tokens": 8, "words": 50, "width": 8, "queries": 5}
FULL = {"texts": 10_000, "tokens": 16, "words": 5000, "width": 64, "queries": 100}
K = 10


def make_data(connection, texts, tokens, words, width, queries):
    rng = np.random.default_rng(0)
    about = rng.integers(words, size=(texts, 4))
    token = about[np.arange(texts)[:, None], rng.integers(4, size=(texts, tokens))]
    document, place = np.divmod(np.arange(texts * tokens), tokens)
    store(connection, "words", {"document": document, "place": place, "token": token.ravel()})
    store(connection, "sizes", {"words": [words], "width": [width], "queries": [queries]})


@cache
def weights(connection):
    """Random weights, as if they had been trained, and the number of queries."""
    rng = np.random.default_rng(1)
    ((words, width, queries),) = connection.execute("FROM sizes").fetchall()
    shapes = dict.fromkeys("QKV", (width, width))
    every = {name: rng.normal(size=shape) / shape[0] ** 0.5 for name, shape in shapes.items()}
    return {"E": rng.normal(size=(words, width)), **every}, queries


def encoder(connection):
    """The network as a file of ONNX has it."""
    w, _ = weights(connection)
    nodes = [
        ("Gather", ["E", "tokens"], "e"),
        ("MatMul", ["e", "Q"], "query"),
        ("MatMul", ["e", "K"], "key"),
        ("MatMul", ["e", "V"], "value"),
        ("Transpose", ["key"], "turned", {"perm": [0, 2, 1]}),
        ("MatMul", ["query", "turned"], "fits"),
        ("Softmax", ["fits"], "attention", {"axis": -1}),
        ("MatMul", ["attention", "value"], "seen"),
        ("Add", ["e", "seen"], "h"),
        ("ReduceMean", ["h", "axis"], "mean", {"keepdims": 0}),
        ("LpNormalization", ["mean"], "embedding", {"axis": -1, "p": 2}),
    ]
    width, length = w["Q"].shape[0], len(tokens_of(connection)[0])
    constants = {**w, "axis": np.array([1])}
    inputs = {"tokens": ("int64", ["texts", length])}
    return network(nodes, constants, inputs, ("embedding", ["texts", width]))


def tokens_of(connection):
    (tokens,) = columns(
        connection,
        """
        SELECT list(token ORDER BY place) AS tokens
        FROM words GROUP BY document ORDER BY document
        """,
    )
    return tokens


def program(connection):
    model = ucle.models.from_onnx(encoder(connection))
    _, queries = weights(connection)
    return ucle.einsum_program(
        f"""
        {model.statements}
        score[q,d] = sum[k](embedding[asked[q],k] * embedding[d,k])
        best[q,d] = when(among_top_k[d,rank](score[q,d]), score[q,d])
        """,
        inputs={
            **model.weights,
            "tokens": ucle.table("words", ["document", "place"], "token"),
            "asked": np.arange(queries),
        },
        bounds={"rank": K},
        outputs=["best"],
        database=connection,
    )


def by_ucle(connection):
    with program(connection).execute() as result:
        result["best"].to_table("best", mode="replace")
    return connection.table("best")


def by_sql(connection):
    w, queries = weights(connection)
    width = w["E"].shape[1]
    vectors = {"token": np.arange(len(w["E"])), "e": list(w["E"])}
    store(connection, "vectors", vectors)
    connection.execute(f"""
        CREATE OR REPLACE TEMP TABLE looked AS
        WITH known AS (SELECT token, e::DOUBLE[{width}] AS e FROM vectors),
        parts AS (
            SELECT token, e, {times("e", w["Q"])} AS q, {times("e", w["K"])} AS k,
                {times("e", w["V"])} AS v
            FROM known
        )
        SELECT document, place, e, q, k, v FROM words JOIN parts USING (token);

        CREATE OR REPLACE TEMP TABLE pairs AS
        SELECT a.document, a.place, exp(array_inner_product(a.q, b.k)) AS fit, b.v
        FROM looked a JOIN looked b USING (document);

        CREATE OR REPLACE TEMP TABLE embeddings AS
        WITH seen AS (
            SELECT document, place, {sums("fit / total", "v", width)} AS m
            FROM (SELECT *, sum(fit) OVER (PARTITION BY document, place) AS total FROM pairs)
            GROUP BY document, place
        ),
        means AS (
            SELECT document, {
        sums("1", "list_transform(list_zip(e, m), lambda x: x[1] + x[2])", width, "avg")
    }::DOUBLE[{width}] AS h
            FROM seen JOIN looked USING (document, place) GROUP BY document
        )
        SELECT document, list_transform(h, lambda x: x / sqrt(array_inner_product(h, h)))
            ::DOUBLE[{width}] AS v
        FROM means;

        CREATE OR REPLACE TEMP TABLE found AS
        WITH scores AS (
            SELECT q.document AS q, d.document AS d, array_inner_product(q.v, d.v) AS score
            FROM embeddings q, embeddings d WHERE q.document < {queries}
        ),
        best AS (SELECT q, max_by({{'d': d, 'score': score}}, score, {K}) AS best
            FROM scores GROUP BY q)
        SELECT q, unnest(best, recursive := true) FROM best
    """)
    return connection.table("found")


def arrays(connection):
    return tokens_of(connection), *weights(connection)


def by_peer(tokens, w, queries):
    e = w["E"][tokens]
    fits = (e @ w["Q"]) @ (e @ w["K"]).swapaxes(1, 2)
    weight = np.exp(fits - fits.max(axis=-1, keepdims=True))
    h = e + weight / weight.sum(axis=-1, keepdims=True) @ (e @ w["V"])
    mean = h.mean(axis=1)
    embedding = mean / np.linalg.norm(mean, axis=1, keepdims=True)
    scores = embedding[:queries] @ embedding.T
    document = np.argpartition(scores, -K, axis=1)[:, -K:]
    query = np.repeat(np.arange(queries), K)
    score = np.take_along_axis(scores, document, axis=1)
    return sp.coo_array((score.ravel(), (query, document.ravel())), scores.shape).tocsr()


def picture(axes, connection):
    rank, score = columns(
        connection,
        "SELECT row_number() OVER (PARTITION BY q ORDER BY val DESC) - 1 AS rank, val FROM best",
    )
    axes.boxplot([score[rank == n] for n in range(K)], tick_labels=range(1, K + 1))
    axes.set(xlabel="rank", ylabel="score", title="How alike the nearest texts are")
