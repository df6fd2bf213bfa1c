"""Text: counts of words by document, where both have names."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pytest

import ucle

TEXTS = {
    "fox": "the quick brown fox jumps over the lazy dog and the dog sleeps",
    "dog": "the dog barks at the brown cat and the cat runs from the dog",
    "cat": "a cat sleeps over a warm stove while rain falls on the roof",
    "rain": "rain falls and falls and the river rises over the old bridge",
    "river": "the old river runs slow past the bridge and the quick boats",
    "empty": "zzz",
}


@pytest.fixture(scope="module")
def counts() -> pd.DataFrame:
    """One row for each word of each document."""
    rows = [
        (document, word, number)
        for document, text in TEXTS.items()
        for word, number in Counter(text.split()).items()
    ]
    return pd.DataFrame(rows, columns=["document", "word", "n"])


@pytest.fixture(scope="module")
def dense(counts: pd.DataFrame) -> pd.DataFrame:
    """Documents by words, both sorted."""
    return counts.pivot(index="document", columns="word", values="n").fillna(0)


def tf_idf(dense: pd.DataFrame) -> pd.DataFrame:
    """The expected values of the programs below."""
    idf = np.log(len(dense) / (dense > 0).sum())
    return dense.div(dense.sum(axis=1), axis=0) * idf


def test_tf_idf_of_a_csv_file(counts: pd.DataFrame, dense: pd.DataFrame, tmp_path: Path) -> None:
    pa.csv.write_csv(pa.Table.from_pandas(counts), tmp_path / "counts.csv")
    n = ucle.tensor(str(tmp_path / "counts.csv"), axes=("document", "word"))
    documents = (n.sum("word") > 0).sum()
    weight = n / n.sum("word") * ucle.log(documents / (n > 0).sum("document"))
    weight.save(tmp_path / "tf_idf.parquet")
    found = pd.read_parquet(tmp_path / "tf_idf.parquet")
    assert list(found.columns) == ["document", "word", "val"]
    expected = tf_idf(dense)
    # 0 / 0 stands where nothing is stored in all of a row: the values are written out everywhere.
    assert len(found) == expected.size
    for document, word, value in found.itertuples(index=False):
        assert value == pytest.approx(expected.loc[document, word])


def test_bm25_of_a_query(counts: pd.DataFrame, dense: pd.DataFrame) -> None:
    """The words of the query are coordinates of the same dictionary, and one of them is unknown."""
    query = pa.table({"word": ["old", "river", "dog", "unheard"]})
    words = {"w": "words"}
    program = ucle.einsum_program(
        """
        size[d] += N[d,w]
        docs = sum[d](size[d] > 0)
        mean_size = sum[d](size[d]) / docs
        with_word[w] count= N[d,w]
        df[w] += N[d,w] > 0
        idf[w] = log(1 + (docs - df[w] + 0.5) / (df[w] + 0.5))
        tf[d,w] = N[d,w] * 2.2 / (N[d,w] + 1.2 * (0.25 + 0.75 * size[d] / mean_size))
        score[d] += Q[w] * idf[w] * tf[d,w]
        """,
        N=ucle.table(counts, ["document", "word"], "n", coordinates={"d": "documents", **words}),
        Q=ucle.table(query, ["word"], coordinates=words),
        outputs=["score"],
    )
    with program.execute() as result:
        found = result["score"].to_pandas().set_index("d")["val"]
    size, df = dense.sum(axis=1), (dense > 0).sum()
    idf = np.log(1 + (len(dense) - df + 0.5) / (df + 0.5))
    norm = 1.2 * (0.25 + 0.75 * size / size.mean())
    tf = dense * 2.2 / dense.add(norm, axis=0)
    expected = (tf * idf)[["old", "river", "dog"]].sum(axis=1)
    pd.testing.assert_series_equal(found.sort_index(), expected, check_names=False)


def test_documents_alike(counts: pd.DataFrame, dense: pd.DataFrame) -> None:
    n = ucle.tensor(counts.astype({"n": float}), axes=("document", "word"))
    unit = n / ucle.sqrt((n * n).sum("word"))
    alike = unit.rename({"document": "other"}).dot(unit, axis="word")
    one = alike.sel(other="fox").to_pandas().set_index("document")["val"]
    known = dense.div(np.sqrt((dense**2).sum(axis=1)), axis=0)
    expected = (known @ known.loc["fox"]).drop("empty")
    pd.testing.assert_series_equal(one.sort_index(), expected, check_names=False)


def test_a_word_that_does_not_occur(counts: pd.DataFrame) -> None:
    n = ucle.tensor(counts, axes=("document", "word"))
    with pytest.raises(ucle.UcleError, match="unheard") as refused:
        n.sel(word="unheard").to_numpy()
    assert "word" in str(refused.value)


def test_projection_onto_topics(counts: pd.DataFrame, dense: pd.DataFrame) -> None:
    """Words have embeddings in an array column; documents get the mean of their words'."""
    random = np.random.default_rng(21)
    vectors = random.normal(size=(dense.shape[1], 64)).astype(np.float32)
    with ucle.connect() as connection:
        frame = pd.DataFrame({"word": dense.columns, "vector": list(vectors)})
        connection.register("frame", frame)
        connection.execute(
            "CREATE TABLE vectors AS SELECT word, vector::FLOAT[64] AS vector FROM frame"
        )
        connection.execute("CREATE TABLE counts AS FROM counts")
        program = ucle.einsum_program(
            "E[d,k] = sum[w](N[d,w] * V[w,k]) / sum[w](N[d,w])",
            N="counts",
            V="vectors",
            database=connection,
        )
        with program.execute() as result:
            result["E"].to_table("embeddings", keys=["d"])
        found = connection.sql("FROM embeddings ORDER BY d").fetchall()
        nearest = connection.sql("""
            SELECT b.d FROM embeddings a JOIN embeddings b ON a.d <> b.d WHERE a.d = 'rain'
            ORDER BY list_distance(a.val, b.val) LIMIT 1
        """).fetchall()
    expected = dense.to_numpy() @ vectors / dense.to_numpy().sum(axis=1, keepdims=True)
    assert [name for name, _ in found] == list(dense.index)
    np.testing.assert_allclose([row for _, row in found], expected, rtol=1e-4, atol=1e-6)
    away = pd.Series(
        np.linalg.norm(expected - expected[list(dense.index).index("rain")], axis=1), dense.index
    ).drop("rain")
    assert nearest == [(away.idxmin(),)]


def test_which_letter_follows_which() -> None:
    """Bigrams come one a row and repeat; rows without a follower do not divide by zero."""
    letters = " ".join(TEXTS.values())
    bigrams = pd.DataFrame({"this": list(letters[:-1]), "then": list(letters[1:])})
    table = ucle.table(
        bigrams, ["this", "then"], duplicates="sum", coordinates={"i": "letter", "j": "letter"}
    )
    program = ucle.einsum_program("P[i,j] = N[i,j] / sum[k](N[i,k])", N=table)
    with program.execute() as result:
        found = result["P"].to_pandas().pivot(index="i", columns="j", values="val").fillna(0)
    expected = pd.crosstab(bigrams["this"], bigrams["then"], normalize="index")
    pd.testing.assert_frame_equal(found, expected[found.columns], check_names=False)


def test_words_of_documents_that_match_a_pattern(counts: pd.DataFrame) -> None:
    """A SQL query chooses the rows to read; its relation goes in as Arrow."""
    with duckdb.connect() as connection:
        connection.register("counts", counts)
        chosen = connection.sql("SELECT document, word, n FROM counts WHERE word LIKE 'r%'")
        total = ucle.tensor(chosen, axes=("document", "word")).sum("document")
        found = dict(total.to_pandas().itertuples(index=False))
    expected = counts[counts["word"].str.startswith("r")].groupby("word")["n"].sum()
    assert found == expected.to_dict()
