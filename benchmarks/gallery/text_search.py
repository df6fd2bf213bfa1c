"""Search by TF-IDF and BM25.

Which documents fit a query best? A table has how often a word stands in a document, another one the
words of queries. Each word weighs by how rare it is: in TF-IDF with documents as vectors of length
1, in BM25 with a count that saturates and is told by how long the document is.
Divisors are bounded from below, so that nothing is 0 / 0, and what is sparse stays sparse:
`explain()` says what is made dense otherwise, and why.
"""

import numpy as np
import scipy.sparse as sp
from data import columns, count
from sklearn.feature_extraction.text import TfidfTransformer
from tables import store

import ucle

PEER = "scikit-learn, scipy.sparse"
SMALL = {"documents": 500, "words": 800, "length": 40, "queries": 10}
FULL = {"documents": 50_000, "words": 20_000, "length": 80, "queries": 100}


def make_data(connection, documents, words, length, queries):
    rng = np.random.default_rng(0)
    document = np.repeat(np.arange(documents), rng.integers(length // 2, 2 * length, documents))
    word = (words * rng.random(len(document)) ** 3).astype(int)  # some are much more frequent
    pairs, n = np.unique([document, word], axis=1, return_counts=True)
    store(connection, "counts", {"document": pairs[0], "word": pairs[1], "n": n})
    asked = [rng.choice(np.unique(word), 3, replace=False) for _ in range(queries)]
    columns = {"query": np.repeat(np.arange(queries), 3), "word": np.concatenate(asked)}
    store(connection, "queries", columns)


def program(connection):
    return ucle.einsum_program(
        """
        docs[] = sum[d](sum[w](n[d,w]) > 0)
        has[w] = sum[d](n[d,w] > 0)

        tfidf[d,w] = n[d,w] * (log((1 + docs[]) / (1 + has[w])) + 1)
        norm[d] = max(sqrt(sum[w](square(tfidf[d,w]))), 1e-300)
        cosine[query,document] = sum[w](asks[query,w] * tfidf[document,w]) / norm[document]

        length[d] = sum[w](n[d,w])
        usual[] = max(sum[d](length[d]) / max(docs[], 1), 1)
        long[d] = 1.2 * (0.25 + 0.75 * length[d] / usual[])
        rare[w] = log1p(max(docs[] - has[w] + 0.5, 0) / (has[w] + 0.5))
        often[d,w] = when(n[d,w] > 0, 2.2 * n[d,w] / (n[d,w] + long[d]))
        bm25[query,document] = sum[w](asks[query,w] * rare[w] * often[document,w])
        """,
        n=ucle.table("counts", ["document", "word"], "n", dtype="float64"),
        asks=ucle.table("queries", ["query", "word"], value=1),
        outputs=["cosine", "bm25"],
        database=connection,
    )


def by_ucle(connection):
    with program(connection).execute() as result:
        for name in result:
            result[name].to_table(name, mode="replace")
    return connection.table("cosine"), connection.table("bm25")


def by_sql(connection):
    connection.execute("""
        CREATE OR REPLACE TEMP TABLE weights AS
        WITH docs AS (SELECT document, sum(n) AS length FROM counts GROUP BY document),
        a AS (SELECT count(*) AS docs, avg(length) AS length FROM docs),
        words AS (SELECT word, count(*) AS has FROM counts GROUP BY word),
        weights AS (
            SELECT document, word,
                   n * (ln((1 + a.docs) / (1 + has)) + 1) AS tfidf,
                   ln(1 + (a.docs - has + 0.5) / (has + 0.5)) * 2.2 * n
                   / (n + 1.2 * (0.25 + 0.75 * docs.length / a.length)) AS bm25
            FROM counts JOIN docs USING (document) JOIN words USING (word), a
        ),
        norms AS (SELECT document, sqrt(sum(tfidf * tfidf)) AS norm FROM weights GROUP BY ALL)
        SELECT document, word, tfidf / norm AS cosine, bm25
        FROM weights JOIN norms USING (document);

        CREATE OR REPLACE TEMP TABLE scores AS
        SELECT query, document, sum(cosine) AS cosine, sum(bm25) AS bm25
        FROM queries JOIN weights USING (word) GROUP BY query, document
    """)
    scores = connection.table("scores")
    return scores.select("query, document, cosine"), scores.select("query, document, bm25")


def arrays(connection):
    documents, words = (count(connection, f"max({x}) + 1", "counts") for x in ("document", "word"))
    document, word, n = columns(connection, "SELECT document, word, n::DOUBLE FROM counts")
    query, asked = columns(connection, "SELECT query, word FROM queries")
    asks = sp.csr_array((np.ones(len(query)), (query, asked)), (query.max() + 1, words))
    return sp.csr_array((n, (document, word)), (documents, words)), asks


def by_peer(n, asks):
    cosine = asks @ TfidfTransformer().fit_transform(n).T
    has, length = np.bincount(n.indices, minlength=n.shape[1]), n.sum(axis=1)
    rare = np.log(1 + (n.shape[0] - has + 0.5) / (has + 0.5))
    long = np.repeat(1.2 * (0.25 + 0.75 * length / length.mean()), np.diff(n.indptr))
    weight = rare[n.indices] * 2.2 * n.data / (n.data + long)
    bm25 = asks @ sp.csr_array((weight, n.indices, n.indptr), n.shape).T
    return cosine, bm25


def picture(axes, connection):
    x, y = columns(
        connection,
        "SELECT c.val, b.val FROM cosine c JOIN bm25 b USING (query, document) "
        "WHERE query < 6 ORDER BY document LIMIT 400",
    )
    axes.scatter(x, y, s=6)
    axes.set(xlabel="cosine of TF-IDF", ylabel="BM25", title="How well documents fit six queries")
