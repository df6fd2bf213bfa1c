"""Regression over a star join.

How does an amount depend on features of the store and of the product? Sales name a store and a
product, whose features lie in tables of their own. The wide table is never made: the database
computes the blocks of the normal equations, and NumPy solves them, by least squares (OLS) and with
a penalty (ridge).
"""

import numpy as np
from data import columns, symmetric, upper_pairs, vectors
from sklearn.linear_model import Ridge
from tables import store

import ucle

PEER = "scikit-learn"
SMALL = {"sales": 2000, "stores": 50, "products": 80, "width": 4}
FULL = {"sales": 2_000_000, "stores": 5000, "products": 20_000, "width": 10}
PENALTY = 10.0


def make_data(connection, sales, stores, products, width):
    rng = np.random.default_rng(0)
    s, p = rng.normal(size=(stores, width)), rng.normal(size=(products, width))
    sold = np.unique(rng.integers(stores * products, size=sales))
    store_of, product_of = sold // products, sold % products
    amount = s[store_of] @ rng.normal(size=width) + p[product_of] @ rng.normal(size=width)
    amount += rng.normal(size=len(sold))
    names = {"store": store_of, "product": product_of, "amount": amount}
    store(connection, "sales", names)
    store(connection, "stores", {"store": np.arange(stores), "features": vectors(s)})
    store(connection, "products", {"product": np.arange(products), "features": vectors(p)})


def program(connection):
    return ucle.einsum_program(
        """
        SS[a,b] += sold[s,p] * S[s,a] * S[s,b]
        SP[a,b] += sold[s,p] * S[s,a] * P[p,b]
        PP[a,b] += sold[s,p] * P[p,a] * P[p,b]
        Sy[a] += amount[s,p] * S[s,a]
        Py[a] += amount[s,p] * P[p,a]
        """,
        sold=ucle.table("sales", ["store", "product"], value=1),
        amount=ucle.table("sales", ["store", "product"], "amount"),
        S="stores",
        P="products",
        database=connection,
    )


def solve(gram, right):
    """The coefficients by either method."""
    penalty = PENALTY * np.eye(len(gram))
    return np.linalg.solve(np.stack([gram, gram + penalty]), right[:, None])[..., 0]


def by_ucle(connection):
    with program(connection).execute() as result:
        block = {name: result[name].to_numpy() for name in result}
    gram = np.block([[block["SS"], block["SP"]], [block["SP"].T, block["PP"]]])
    return solve(gram, np.concatenate([block["Sy"], block["Py"]]))


def by_sql(connection):
    (width,) = connection.execute("SELECT 2 * len(features) FROM stores LIMIT 1").fetchone()
    x = [f"x[{n}]" for n in range(1, width + 1)]
    pairs = upper_pairs(width)
    sums = [f"sum({x[a]} * {x[b]})" for a, b in pairs] + [f"sum({a} * amount)" for a in x]
    found = connection.execute(f"""
        WITH wide AS (
            SELECT list_concat(stores.features::DOUBLE[], products.features::DOUBLE[]) AS x, amount
            FROM sales JOIN stores USING (store) JOIN products USING (product)
        ) SELECT {", ".join(sums)} FROM wide
    """).fetchone()
    return solve(symmetric(width, found[: len(pairs)]), np.array(found[len(pairs) :]))


def arrays(connection):
    sales = columns(connection, "SELECT store, product, amount FROM sales")
    features = [
        *columns(connection, "SELECT features FROM stores ORDER BY store"),
        *columns(connection, "SELECT features FROM products ORDER BY product"),
    ]
    return *sales, *features


def by_peer(store, product, amount, stores, products):
    x = np.hstack([stores[store], products[product]])
    models = (Ridge(penalty, fit_intercept=False, solver="cholesky") for penalty in (0, PENALTY))
    return np.stack([model.fit(x, amount).coef_ for model in models])


def picture(axes, connection):
    ols, ridge = by_ucle(connection)
    places = np.arange(len(ols))
    axes.bar(places - 0.2, ols, 0.4, label="OLS")
    axes.bar(places + 0.2, ridge, 0.4, label="ridge")
    axes.legend()
    axes.set(xlabel="feature", ylabel="coefficient", title="What the amount depends on")
