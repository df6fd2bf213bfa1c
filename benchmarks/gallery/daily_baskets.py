"""Products bought together, kept up to date.

How often are two products in one basket, now that the baskets of one more day have arrived? A
maintained program computes what these change. SQL and the library compute all again; the picture
has the statement that one writes by hand for this change, too.
"""

from __future__ import annotations

import contextlib
import time

import numpy as np
import scipy.sparse as sp
from data import columns
from tables import store

import ucle
from ucle.foundation.caches import clear_caches

PEER = "scipy.sparse"
SMALL = {"baskets": 300, "products": 40, "arrivals": 10}
FULL = {"baskets": 200_000, "products": 2_000, "arrivals": 200}
ITEMS = 10
"""The number of items of a basket; some are the same."""

SHARES = (0.00001, 0.0001, 0.001, 0.01, 0.1)
"""The new baskets of the picture, as shares of those that are there."""

ALL_AGAIN = """
    CREATE OR REPLACE TABLE pairs_by_sql AS
    SELECT a.product AS p, b.product AS q, count(*) AS val
    FROM bought a JOIN bought b USING (basket) GROUP BY ALL
"""

BY_HAND = """
    MERGE INTO pairs_by_hand old
    USING (
        SELECT a.product AS p, b.product AS q, count(*) AS val
        FROM today a JOIN today b USING (basket) GROUP BY ALL
    ) new ON old.p = new.p AND old.q = new.q
    WHEN MATCHED THEN UPDATE SET val = old.val + new.val
    WHEN NOT MATCHED THEN INSERT (p, q, val) VALUES (new.p, new.q, new.val)
"""
"""Right as long as all rows of a basket come at once, and none is changed or removed."""


def make_data(connection, baskets, products, arrivals):
    rng = np.random.default_rng(0)
    count = baskets + max(arrivals, int(SHARES[-1] * baskets))
    popular = rng.integers(products, size=(count, ITEMS)) * rng.random((count, ITEMS))
    rows = {
        "basket": np.repeat(np.arange(count), ITEMS),
        "product": popular.ravel().astype(np.int64),
    }
    store(connection, "delivered", rows)
    connection.execute(f"""
        CREATE OR REPLACE TABLE arriving AS
        SELECT DISTINCT basket, product FROM delivered WHERE basket >= {baskets};
        CREATE OR REPLACE TABLE bought AS
        SELECT DISTINCT basket, product FROM delivered WHERE basket < {baskets};
        CREATE OR REPLACE TEMP TABLE sizes AS
        SELECT {baskets} AS baskets, {products} AS products, {arrivals} AS arrivals;
        {ALL_AGAIN};
        CREATE OR REPLACE TABLE pairs_by_hand AS FROM pairs_by_sql
    """)
    program(connection).maintain("pairs", connection, append_only=["B"])


def program(connection):
    return ucle.einsum_program(
        "pairs[p,q] += B[b,p] * B[b,q]",
        B=ucle.table("bought", ["basket", "product"], value=1, dtype="int64"),
        database=connection,
    )


@contextlib.contextmanager
def _a_day_more(connection, arrivals=None):
    """The rows of some new baskets; at the end, it is yesterday again."""
    ((baskets, usual),) = connection.execute("SELECT baskets, arrivals FROM sizes").fetchall()
    last = baskets + (usual if arrivals is None else arrivals)
    connection.execute("BEGIN")
    try:
        connection.execute(
            f"CREATE OR REPLACE TEMP TABLE today AS FROM arriving WHERE basket < {last};"
            "INSERT INTO bought FROM today"
        )
        yield
    finally:
        connection.execute("ROLLBACK")


def _of_each_product(connection, table):
    """How often it is with the product that is with it most often, and a sum over all."""
    return tuple(
        columns(
            connection,
            "SELECT max(val) FILTER (p <> q), sum(val * (q + 1))::BIGINT "
            f"FROM {table} GROUP BY p ORDER BY p",
        )
    )


def by_ucle(connection):
    clear_caches()  # as in a new process on a new day
    with _a_day_more(connection):
        ucle.maintained("pairs", connection).refresh()
        return _of_each_product(connection, "pairs")


def by_sql(connection):
    with _a_day_more(connection):
        connection.execute(ALL_AGAIN)
        return _of_each_product(connection, "pairs_by_sql")


def arrays(connection):
    ((products,),) = connection.execute("SELECT products FROM sizes").fetchall()
    with _a_day_more(connection):
        return products, *columns(connection, "SELECT basket, product FROM bought")


def by_peer(products, basket, product):
    ones = np.ones(len(basket), dtype=np.int64)
    bought = sp.csr_array((ones, (basket, product)), (int(basket.max()) + 1, products))
    pairs = (bought.T @ bought).tocsr()
    there = np.diff(pairs.indptr) > 0
    total = pairs @ np.arange(1, products + 1)
    pairs.setdiag(0)
    return pairs.max(axis=1).toarray().ravel()[there], total[there]


def picture(axes, connection):
    """Processor seconds of one day each, by the share of baskets that are new."""
    ((baskets,),) = connection.execute("SELECT baskets FROM sizes").fetchall()
    sides = {
        "full run": lambda: program(connection).execute()["pairs"].to_table("whole"),
        "SQL, all again": lambda: connection.execute(ALL_AGAIN),
        "refresh": lambda: ucle.maintained("pairs", connection).refresh(),
        "SQL, by hand": lambda: connection.execute(BY_HAND),
    }
    for side, run in sides.items():
        shares, seconds = [], []
        for share in SHARES:
            clear_caches()
            arrivals = max(1, round(share * baskets))
            with _a_day_more(connection, arrivals):
                start = time.process_time()
                run()
                seconds.append(time.process_time() - start)
            shares.append(arrivals / baskets)
        axes.plot(shares, seconds, marker="o", markersize=3, label=side)
    axes.set(
        xscale="log",
        yscale="log",
        xlabel="share of baskets that are new",
        ylabel="processor seconds",
    )
    axes.legend(frameon=False, labelcolor="#7d8590")
