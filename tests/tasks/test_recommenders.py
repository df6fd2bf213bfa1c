"""Recommenders: ratings and clicks, with users and items as they are called."""

from __future__ import annotations

import datetime
from decimal import Decimal
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import pytest

import ucle


@pytest.fixture(scope="module")
def ratings() -> pd.DataFrame:
    """A frame as it comes out of other work: an index that means nothing, and more columns."""
    random = np.random.default_rng(11)
    pairs = np.unique(random.integers(0, [30, 12], (170, 2)), axis=0)
    day = datetime.date(2024, 3, 1)
    frame = pd.DataFrame(
        {
            "user": [f"user {n}" for n in pairs[:, 0]],
            "item": [f"item {n:02}" for n in pairs[:, 1]],
            "stars": random.integers(1, 11, len(pairs)) / 2,
            "day": [day + datetime.timedelta(int(n)) for n in random.integers(0, 9, len(pairs))],
        }
    )
    return frame.sample(frac=1, random_state=1)


@pytest.fixture(scope="module")
def matrix(ratings: pd.DataFrame) -> pd.DataFrame:
    """Users by items, in the order of their names, 0 where nothing was rated."""
    return ratings.pivot(index="user", columns="item", values="stars").fillna(0)


def test_several_columns_have_to_be_named(ratings: pd.DataFrame) -> None:
    with pytest.raises(ucle.UcleError, match="which column holds the values") as refused:
        ucle.einsum_program("s[u] += R[u,i]", R=ratings)
    assert "ucle.table(" in str(refused.value)


def test_items_seen_together(ratings: pd.DataFrame, matrix: pd.DataFrame) -> None:
    seen = ucle.tensor(ucle.table(ratings, ["user", "item"], value=1), axes=("user", "item"))
    together = seen.rename({"item": "other"}).dot(seen, axis="user")
    with duckdb.connect() as connection:
        together.to_table("together", connection)
        found = connection.sql("SELECT other, item, val FROM together WHERE other < item").df()
    known = (matrix > 0).astype(int)
    expected = known.T @ known
    assert len(found) == np.count_nonzero(np.triu(expected, 1))
    for other, item, value in found.itertuples(index=False):
        assert value == expected.loc[other, item]


def test_cosine_similarity_of_items(ratings: pd.DataFrame, matrix: pd.DataFrame) -> None:
    program = ucle.einsum_program(
        """
        norm[i] = sqrt(sum[u](R[u,i] ^ 2))
        S[i,j] = sum[u](R[u,i] * R[u,j]) / (norm[i] * norm[j])
        """,
        R=ucle.table(ratings, ["user", "item"], "stars"),
    )
    with program.execute() as result:
        found = result["S"].to_pandas().pivot(index="i", columns="j", values="val")
    known = matrix / np.sqrt((matrix**2).sum())
    pd.testing.assert_frame_equal(found.fillna(0), known.T @ known, check_names=False)


def test_gradient_of_a_factorisation(ratings: pd.DataFrame, matrix: pd.DataFrame) -> None:
    """The loss counts what was rated and nothing else."""
    random = np.random.default_rng(12)
    left, right = random.normal(size=(30, 4)), random.normal(size=(12, 4))
    left = left[: len(matrix)]
    program = ucle.einsum_program(
        """
        E[u,i] = when(M[u,i], R[u,i] - sum[k](P[u,k] * Q[i,k]))
        loss = sum[u,i](E[u,i] ^ 2) + 0.1 * (sum[u,k](P[u,k] ^ 2) + sum[i,k](Q[i,k] ^ 2))
        dP[u,k] = 0.2 * P[u,k] - 2 * sum[i](E[u,i] * Q[i,k])
        dQ[i,k] = 0.2 * Q[i,k] - 2 * sum[u](E[u,i] * P[u,k])
        """,
        R=ucle.table(ratings, ["user", "item"], "stars"),
        M=ucle.table(ratings, ["user", "item"], value=1, dtype="bool"),
        P=left,
        Q=right,
        outputs=["loss", "dP", "dQ"],
    )
    with program.execute() as result:
        found = {name: result[name].to_numpy() for name in result}
    known = matrix.to_numpy()
    error = np.where(known > 0, known - left @ right.T, 0)
    loss = (error**2).sum() + 0.1 * ((left**2).sum() + (right**2).sum())
    np.testing.assert_allclose(found["loss"], loss)
    np.testing.assert_allclose(found["dP"], 0.2 * left - 2 * error @ right)
    np.testing.assert_allclose(found["dQ"], 0.2 * right - 2 * error.T @ left)


def test_confidence_of_clicks(tmp_path: Path) -> None:
    """Clicks come again and again: refused unless they are to be added up."""
    random = np.random.default_rng(13)
    clicks = pd.DataFrame({"u": random.integers(0, 9, 200), "i": random.integers(0, 7, 200)})
    clicks.to_parquet(tmp_path / "clicks.parquet")
    path = str(tmp_path / "clicks.parquet")
    with pytest.raises(ucle.UcleError, match="duplicates='sum'"):
        ucle.tensor(path, axes=("u", "i")).to_numpy()
    counted = ucle.tensor(
        ucle.table(path, ["u", "i"], duplicates="sum", bounds=[9, 7]), axes=("u", "i")
    )
    confidence = ucle.log1p(40 * counted)
    share = confidence / confidence.sum("i", keepdims=True)
    known = np.log1p(40 * pd.crosstab(clicks["u"], clicks["i"]).to_numpy())
    np.testing.assert_allclose(share.to_numpy(), known / known.sum(axis=1, keepdims=True))


def test_best_unseen_items_of_each_user(ratings: pd.DataFrame, matrix: pd.DataFrame) -> None:
    """Scores by similar items are stored; SQL takes the first two of each user."""
    with ucle.connect() as connection:
        connection.register("frame", ratings)
        connection.execute("CREATE TABLE ratings AS SELECT * FROM frame")
        rated = ucle.tensor(ucle.table("ratings", ["user", "item"], "stars"), axes=("user", "item"))
        alike = rated.rename({"item": "other"}).dot(rated, axis="user")
        (rated.rename({"item": "other"}) @ alike).to_table("scores", connection)
        found = connection.sql("""
            SELECT user, item FROM scores ANTI JOIN ratings USING (user, item)
            QUALIFY row_number() OVER (PARTITION BY user ORDER BY val DESC, item) <= 2
            ORDER BY user, val DESC, item
        """).fetchall()
    scores = (matrix @ (matrix.T @ matrix)).mask(matrix > 0)
    long = scores.rename_axis(columns="item").stack().rename("score").reset_index()
    long = long.sort_values(["user", "score", "item"], ascending=[True, False, True])
    expected = long.groupby("user").head(2)
    assert found == list(expected[["user", "item"]].itertuples(index=False, name=None))


def test_means_of_decimals_over_what_was_rated(ratings: pd.DataFrame) -> None:
    with ucle.connect() as connection:
        connection.execute("CREATE TABLE paid (customer TEXT, article TEXT, price DECIMAL(9,2))")
        rows = [
            (user, item, Decimal(int(stars * 199)) / 100)
            for user, item, stars, _ in ratings.itertuples(index=False)
        ]
        connection.executemany("INSERT INTO paid VALUES (?, ?, ?)", rows)
        paid = ucle.tensor("paid", axes=("customer", "article"), database=connection)
        bought = ucle.tensor(
            ucle.table("paid", ["customer", "article"], value=1), axes=("customer", "article")
        )
        mean = paid.sum("article") / bought.sum("article")
        found = mean.to_pandas(connection).set_index("customer")["val"]
    frame = pd.DataFrame(rows, columns=["customer", "article", "price"])
    expected = frame.astype({"price": float}).groupby("customer")["price"].mean()
    pd.testing.assert_series_equal(found.sort_index(), expected, check_names=False)


def test_nulls_are_refused_with_the_column(ratings: pd.DataFrame) -> None:
    gaps = ratings.assign(stars=ratings["stars"].where(ratings["stars"] < 5))
    with ucle.connect() as connection:
        connection.register("gaps", gaps)
        connection.execute(
            "CREATE TABLE t AS SELECT user, item, nullif(stars, 1) AS stars FROM gaps"
        )
        with pytest.raises(ucle.UcleError, match="NULL") as refused:
            ucle.einsum_program("s[u] += R[u,i]", R="t", database=connection).execute()
    assert "input R" in str(refused.value)
