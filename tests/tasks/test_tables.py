"""Tables of a business: counting, pivoting, scaling, shares, with keys and values as they are."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.special

import ucle


@pytest.fixture(scope="module")
def orders() -> pd.DataFrame:
    """Orders with an id of their own, of which several have the same shop, product and day."""
    random = np.random.default_rng(71)
    frame = pd.DataFrame({"order_id": np.sort(random.choice(10**12, 300, replace=False))})
    frame["shop"] = random.choice(["Graz", "Linz", "Wien"], 300)
    frame["product"] = random.choice([1001, 2002, 700700], 300)
    frame["day"] = pd.Timestamp("2024-05-01") + pd.to_timedelta(random.integers(0, 6, 300), "D")
    frame["units"] = random.integers(1, 9, 300)
    frame["price"] = [Decimal(int(n)) / 100 for n in random.integers(100, 9999, 300)]
    frame["returned"] = random.random(300) < 0.2
    return frame


KEYS = ["order_id", "shop", "product"]


@pytest.fixture
def shop(orders: pd.DataFrame, tmp_path: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """The orders in a database of one's own, with types as a schema has them."""
    with ucle.connect(tmp_path / "shop.duckdb") as connection:
        connection.register("frame", orders)
        connection.execute("""
            CREATE TABLE orders AS SELECT order_id, shop, product, day::DATE AS day,
                units::USMALLINT AS units, price::DECIMAL(7,2) AS price, returned
            FROM frame
        """)
        connection.unregister("frame")
        yield connection


def test_pivot_of_units(shop: duckdb.DuckDBPyConnection, orders: pd.DataFrame) -> None:
    table = ucle.table(
        "orders", ["shop", "product"], "units", duplicates="sum", coordinates="dictionary"
    )
    units = ucle.tensor(table, axes=("shop", "product"), database=shop)
    result = units.compute(shop)
    found = pd.DataFrame(
        result.to_numpy(),
        result.coordinates("shop").to_pylist(),
        result.coordinates("product").to_pylist(),
    )
    expected = orders.pivot_table(index="shop", columns="product", values="units", aggfunc="sum")
    pd.testing.assert_frame_equal(found, expected, check_names=False)


def test_shares_of_revenue(shop: duckdb.DuckDBPyConnection, orders: pd.DataFrame) -> None:
    """Units and decimal prices are two inputs of one table, multiplied order by order."""
    given = {
        name: ucle.table("orders", KEYS, name, coordinates={"o": "orders", "p": "products"})
        for name in ("units", "price")
    }
    program = ucle.einsum_program(
        """
        revenue[s,p] += units[o,s,p] * price[o,s,p]
        share[s,p] = revenue[s,p] / sum[a,b](revenue[a,b])
        """,
        inputs=given,
        outputs=["revenue", "share"],
        database=shop,
    )
    with program.execute() as result:
        revenue = result["revenue"].to_pandas().set_index(["s", "p"])["val"].sort_index()
        result["share"].to_table("shares")
    known = orders.assign(x=orders["units"] * orders["price"].astype(float))
    expected = known.groupby(["shop", "product"])["x"].sum()
    pd.testing.assert_series_equal(revenue, expected, check_names=False)
    ((total, best),) = shop.sql("SELECT sum(val), max_by(s, val) FROM shares").fetchall()
    assert total == pytest.approx(1)
    assert best == expected.idxmax()[0]


def test_counting_with_conditions(shop: duckdb.DuckDBPyConnection, orders: pd.DataFrame) -> None:
    """Orders that are large and came back, by shop; the condition is on two columns."""
    at = {"o": "orders"}
    program = ucle.einsum_program(
        """
        large[s] += units[o,s] >= 5 and returned[o,s]
        kept[s] += when(not returned[o,s], units[o,s])
        """,
        units=ucle.table("orders", ["order_id", "shop"], "units", coordinates=at),
        returned=ucle.table("orders", ["order_id", "shop"], "returned", coordinates=at),
        database=shop,
    )
    with program.execute() as result:
        large = dict(result["large"].to_pandas().itertuples(index=False))
        kept = dict(result["kept"].to_pandas().itertuples(index=False))
    condition = (orders["units"] >= 5) & orders["returned"]
    assert large == orders[condition].groupby("shop").size().to_dict()
    assert kept == orders[~orders["returned"]].groupby("shop")["units"].sum().to_dict()


def test_null_prices_are_refused(shop: duckdb.DuckDBPyConnection) -> None:
    shop.execute("UPDATE orders SET price = NULL WHERE returned")
    table = ucle.table("orders", KEYS, "price", coordinates="dictionary")
    with pytest.raises(ucle.UcleError, match="NULL") as refused:
        ucle.tensor(table, axes=("o", "s", "p"), database=shop).sum().to_numpy()
    assert "price" in str(refused.value)
    shop.execute("CREATE VIEW priced AS FROM orders WHERE price IS NOT NULL")
    priced = ucle.table("priced", KEYS, "price", coordinates="dictionary")
    found = ucle.tensor(priced, axes=("o", "s", "p"), database=shop).sum().item()
    ((expected,),) = shop.sql("SELECT sum(price) FROM orders").fetchall()
    assert found == pytest.approx(float(expected))


def test_min_max_scaling_of_polars() -> None:
    """Sensors by hour, wide in polars, brought into long form by polars itself."""
    random = np.random.default_rng(72)
    wide = pl.DataFrame({"hour": range(24), **{f"s{n}": random.normal(n, 2, 24) for n in range(3)}})
    long = wide.unpivot(index="hour", variable_name="sensor", value_name="reading")
    x = ucle.tensor(long, axes=("hour", "sensor"))
    low, high = x.min("hour"), x.max("hour")
    scaled = ((x - low) / (high - low)).to_polars(rows="all")
    found = scaled.pivot("sensor", index="hour", values="val").sort("hour")
    values = wide.drop("hour").to_numpy()
    expected = (values - values.min(0)) / (values.max(0) - values.min(0))
    np.testing.assert_allclose(found.select("s0", "s1", "s2").to_numpy(), expected, atol=1e-12)


def test_log_sum_exp_of_scores(tmp_path: Path) -> None:
    """A score that is not stored is -inf, and not 0."""
    random = np.random.default_rng(73)
    scores = pd.DataFrame({"model": list("aabbbc"), "run": [0, 2, 0, 1, 2, 1]})
    scores["score"] = random.normal(size=6) * 300
    scores.to_parquet(tmp_path / "scores.parquet", index=False)
    table = ucle.table(str(tmp_path / "scores.parquet"), ["model", "run"], "score", fill=-np.inf)
    found = ucle.tensor(table, axes=("model", "run")).logsumexp("run").to_pandas()
    expected = scores.groupby("model")["score"].apply(scipy.special.logsumexp)
    assert dict(found.itertuples(index=False)) == pytest.approx(expected.to_dict())


def test_best_month_by_name(tmp_path: Path) -> None:
    """Positions of months; which they are by name, the members tell."""
    random = np.random.default_rng(74)
    frame = pd.DataFrame(
        [(shop, month) for shop in ("Graz", "Linz", "Wien") for month in range(12)],
        columns=["shop", "month"],
    )
    frame["sold"] = random.permutation(36)
    sold = ucle.tensor(frame, axes=("shop", "month"))
    best = sold.argmax("month").compute()
    found = dict(zip(best.coordinates("shop").to_pylist(), best.to_numpy().tolist(), strict=True))
    wide = frame.pivot(index="shop", columns="month", values="sold")
    assert found == wide.idxmax(axis=1).to_dict()
    frame["month"] = [f"month {n}" for n in frame["month"]]
    members = ucle.tensor(frame, axes=("shop", "month")).among_top_k(1, "month").to_pandas()
    assert set(zip(members["shop"], members["month"], strict=True)) == {
        (shop, f"month {n}") for shop, n in found.items()
    }


def test_nearest_embeddings_by_surrogate_id(tmp_path: Path) -> None:
    """Documents with scattered ids and FLOAT[64] columns; names come back by a join on the id."""
    random = np.random.default_rng(75)
    vectors = random.normal(size=(30, 64)).astype(np.float32)
    ids = np.sort(random.choice(10**9, 30, replace=False))
    with ucle.connect(tmp_path / "docs.duckdb") as connection:
        frame = pd.DataFrame({"id": ids, "title": [f"Title {n}" for n in ids], "v": list(vectors)})
        connection.register("frame", frame)
        connection.execute("CREATE TABLE docs AS SELECT id, title, v::FLOAT[64] AS v FROM frame")
        program = ucle.einsum_program(
            """
            length[d] = sqrt(sum[k](V[d,k] ^ 2))
            alike[d,e] = sum[k](V[d,k] * V[e,k]) / (length[d] * length[e])
            """,
            V=ucle.table("docs", ["id"], "v", coordinates="dictionary"),
            database=connection,
            outputs=["alike"],
        )
        with program.execute() as result:
            result["alike"].to_table("alike", keys=["d", "e"], rows="all")
        found = connection.sql("""
            SELECT a.title, b.title, val FROM alike
            JOIN docs a ON a.id = d JOIN docs b ON b.id = e WHERE d <> e
            QUALIFY row_number() OVER (PARTITION BY d ORDER BY val DESC) = 1 ORDER BY d
        """).fetchall()
    unit = vectors.astype(float) / np.linalg.norm(vectors, axis=1, keepdims=True)
    known = unit @ unit.T - 2 * np.eye(30)
    best = known.argmax(axis=1)
    assert [names[:2] for names in found] == [
        (f"Title {ids[n]}", f"Title {ids[best[n]]}") for n in range(30)
    ]
    np.testing.assert_allclose([row[2] for row in found], known.max(axis=1), rtol=1e-5)


def test_ids_that_are_huge_are_no_positions() -> None:
    """Positions would need petabytes; the error says what to write."""
    invoices = pd.DataFrame({"invoice": [10**15, 3], "total": [1.5, 2.5]})
    with pytest.raises(ucle.UcleError, match="does not fit into memory") as refused:
        ucle.tensor(invoices, axes=("invoice",)).to_numpy()
    assert "coordinates='dictionary'" in str(refused.value)
    table = ucle.table(invoices, coordinates="dictionary")
    assert ucle.tensor(table, axes=("invoice",)).to_numpy().tolist() == [2.5, 1.5]


def test_a_view_follows_new_orders(
    shop: duckdb.DuckDBPyConnection, orders: pd.DataFrame, tmp_path: Path
) -> None:
    """Left in the database by one program, queried later on a connection without ucle."""
    table = ucle.table(
        "orders", ["day", "shop"], "units", duplicates="sum", coordinates={"t": "days"}
    )
    program = ucle.einsum_program(
        "sold[t] += U[t,s]", U=table, database=shop, decomposition="relational"
    )
    program.create_views(shop)
    shop.close()
    later = duckdb.connect(tmp_path / "shop.duckdb")
    later.execute("INSERT INTO orders VALUES (1, 'Wels', 7, '2024-06-01', 11, 1.5, false)")
    found = dict(later.sql("FROM sold").fetchall())
    later.close()
    expected = orders.groupby(orders["day"].dt.date)["units"].sum().to_dict()
    assert found == {**expected, datetime.date(2024, 6, 1): 11}
