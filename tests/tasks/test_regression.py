"""Regression and statistics: normal equations over joins, gradients, moments by group."""

from __future__ import annotations

import datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

import ucle


@pytest.fixture(scope="module")
def sales() -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
    """Sales by store and product; features of the stores and of the products."""
    random = np.random.default_rng(51)
    pairs = np.unique(random.integers(0, [25, 18], (150, 2)), axis=0)
    stores, products = random.normal(size=(25, 3)), random.normal(size=(18, 2))
    amount = stores[pairs[:, 0]] @ [1, -2, 0.5] + products[pairs[:, 1]] @ [3, 1]
    amount += random.normal(size=len(pairs)) / 10
    frame = pd.DataFrame({"store": pairs[:, 0], "product": pairs[:, 1], "amount": amount})
    return frame, stores, products


def test_least_squares_over_a_star_join(
    sales: tuple[pd.DataFrame, np.ndarray, np.ndarray],
) -> None:
    """The wide table is never made: each block of the normal equations is a program's output."""
    frame, stores, products = sales
    program = ucle.einsum_program(
        """
        SS[a,b] += M[s,p] * S[s,a] * S[s,b]
        SP[a,b] += M[s,p] * S[s,a] * P[p,b]
        PP[a,b] += M[s,p] * P[p,a] * P[p,b]
        Sy[a] += Y[s,p] * S[s,a]
        Py[a] += Y[s,p] * P[p,a]
        """,
        M=ucle.table(frame, ["store", "product"], value=1),
        Y=ucle.table(frame, ["store", "product"], "amount"),
        S=stores,
        P=products,
    )
    with program.execute() as result:
        part = {name: result[name].to_numpy() for name in result}
    gram = np.block([[part["SS"], part["SP"]], [part["SP"].T, part["PP"]]])
    found = np.linalg.solve(gram, np.concatenate([part["Sy"], part["Py"]]))
    x = np.hstack([stores[frame["store"]], products[frame["product"]]])
    np.testing.assert_allclose(found, np.linalg.lstsq(x, frame["amount"])[0])


def test_ridge_of_a_frame_as_it_comes() -> None:
    """Columns of a frame are an array's columns; gradient descent ends where the solution is."""
    random = np.random.default_rng(52)
    frame = pd.DataFrame(random.normal(size=(60, 3)), columns=["age", "dose", "weight"])
    frame["outcome"] = frame @ [0.5, 1, -1] + random.normal(size=60)
    x = ucle.array(frame[["age", "dose", "weight"]].to_numpy(), axes=("case", "feature"))
    y = ucle.array(frame["outcome"].to_numpy(), axes=("case",))
    gram, right = ucle.compute(
        x.rename({"feature": "other"}).dot(x, axis="case"), x.dot(y, axis="case")
    )
    found = np.linalg.solve(gram.to_numpy() + 2 * np.eye(3), right.to_numpy())
    wide = frame[["age", "dose", "weight"]].to_numpy()
    stacked = np.vstack([wide, np.sqrt(2) * np.eye(3)])
    expected = np.linalg.lstsq(stacked, np.append(frame["outcome"], np.zeros(3)))[0]
    np.testing.assert_allclose(found, expected)


def test_logistic_gradient() -> None:
    """The labels are booleans in a table, the features sparse."""
    random = np.random.default_rng(53)
    x = np.where(random.random((40, 6)) < 0.3, random.normal(size=(40, 6)), 0)
    y = random.random(40) < 0.5
    w = random.normal(size=6)
    with ucle.connect() as connection:
        outcomes = pd.DataFrame({"patient": range(40), "ill": y})
        connection.register("frame", outcomes)
        connection.execute("CREATE TABLE outcomes AS FROM frame")
        case, feature = np.nonzero(x)
        entries = pd.DataFrame({"i": case, "j": feature, "x": x[case, feature]})
        program = ucle.einsum_program(
            """
            p[i] = sigmoid(sum[j](X[i,j] * w[j]))
            g[j] += X[i,j] * (p[i] - y[i])
            loss = -sum[i](where(y[i], log(p[i]), log(1 - p[i])))
            """,
            X=ucle.table(entries, bounds=[40, 6]),
            y="outcomes",
            w=w,
            database=connection,
            outputs=["g", "loss"],
        )
        with program.execute() as result:
            gradient, loss = result["g"].to_numpy(), result["loss"].to_numpy()
    p = 1 / (1 + np.exp(-x @ w))
    np.testing.assert_allclose(gradient, x.T @ (p - y))
    np.testing.assert_allclose(loss, -np.log(np.where(y, p, 1 - p)).sum())


@pytest.fixture(scope="module")
def survey() -> pd.DataFrame:
    """People of three countries, with two measures and a weight in the sample."""
    random = np.random.default_rng(54)
    frame = pd.DataFrame({"person": [f"id-{n}" for n in range(50)]})
    frame["country"] = random.choice(["AT", "BE", "CH"], 50)
    frame["height"] = random.normal(170, 9, 50).round(1)
    frame["mass"] = (frame["height"] - 100 + random.normal(0, 9, 50)).round(1)
    frame["weight"] = [Decimal(int(n)) / 4 for n in random.integers(1, 9, 50)]
    frame["born"] = [datetime.date(1950 + n, 1, 1 + n % 28) for n in range(50)]
    return frame


def test_weighted_means_by_group(survey: pd.DataFrame) -> None:
    keys = ["country", "person"]
    weight = ucle.tensor(ucle.table(survey, keys, "weight"), axes=keys)
    height = ucle.tensor(ucle.table(survey, keys, "height"), axes=keys)
    mean = (weight * height).sum("person") / weight.sum("person")
    found = mean.to_pandas().set_index("country")["val"].sort_index()
    for country, group in survey.groupby("country"):
        expected = np.average(group["height"], weights=group["weight"].astype(float))
        assert found[country] == pytest.approx(expected)
    assert len(found) == 3


def test_covariance_and_correlation_by_group(survey: pd.DataFrame) -> None:
    """Measures are melted into rows; each group's mean is over its own people only."""
    long = survey.melt(["country", "person"], ["height", "mass"], "measure", "x")
    program = ucle.einsum_program(
        """
        n[c] += G[c,p]
        mean[c,m] = sum[p](X[c,p,m]) / n[c]
        D[c,p,m] = G[c,p] * (X[c,p,m] - mean[c,m])
        C[c,m,k] = sum[p](D[c,p,m] * D[c,p,k]) / (n[c] - 1)
        r[c] = C_hm[c] / sqrt(C_hh[c] * C_mm[c])
        C_hm[c] = sum[m,k](C[c,m,k] * h[m] * w[k])
        C_hh[c] = sum[m,k](C[c,m,k] * h[m] * h[k])
        C_mm[c] = sum[m,k](C[c,m,k] * w[m] * w[k])
        """,
        G=ucle.table(survey, ["country", "person"], value=1),
        X=ucle.table(long, ["country", "person", "measure"], "x"),
        h=[1, 0],
        w=[0, 1],
        outputs=["C", "r"],
    )
    with program.execute() as result:
        covariance = result["C"].to_pandas().set_index(["c", "m", "k"])["val"]
        correlation = result["r"].to_pandas().set_index("c")["val"]
    for country, group in survey.groupby("country"):
        pair = group[["height", "mass"]]
        for m in pair:
            for k in pair:
                assert covariance[country, m, k] == pytest.approx(pair.cov().loc[m, k])
        assert correlation[country] == pytest.approx(pair.corr().loc["height", "mass"])


def test_one_hot_of_a_category(survey: pd.DataFrame) -> None:
    """A table of (person, country) is the one-hot matrix."""
    table = ucle.table(survey, ["person", "country"], value=1, dtype="int64")
    hot = ucle.tensor(table, axes=("person", "country"))
    expected = pd.get_dummies(survey.set_index("person")["country"]).astype(int).sort_index()
    result = hot.compute()
    assert (result.to_numpy() == expected.to_numpy()).all()
    assert result.coordinates("country").to_pylist() == list(expected.columns)


def test_keys_that_are_dates(survey: pd.DataFrame) -> None:
    born = ucle.tensor(ucle.table(survey, ["born"], "mass"), axes=("born",))
    young = born.sel(born=[datetime.date(1999, 1, 22), datetime.date(1950, 1, 1)])
    # As the page says: in the order of the axis, not of the list.
    assert young.to_numpy().tolist() == [survey["mass"][0], survey["mass"][49]]
