"""Logistic regression by Newton's method.

Which customers buy? The table has a row for each customer, with features in an array, the first of
which is 1. A step is one pass over the table: the database computes what the coefficients so far
say, the gradient and the Hessian matrix, and NumPy solves for where to go (IRLS).
"""

import numpy as np
from data import columns, count, symmetric, upper_pairs, vectors
from sklearn.linear_model import LogisticRegression
from tables import store

import ucle

PEER = "scikit-learn"
TOLERANCE = 1e-8
SMALL = {"customers": 2000, "features": 5}
FULL = {"customers": 200_000, "features": 32}


def make_data(connection, customers, features):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(customers, features))
    x[:, 0] = 1
    likely = x @ rng.normal(0, 0.5, features) + rng.logistic(size=customers)
    names = {"customer": np.arange(customers), "x": vectors(x), "bought": likely > 1}
    store(connection, "customers", names)


def program(connection):
    return ucle.einsum_program(
        """
        p[i] = sigmoid(sum[a](X[i,a] * w[a]))
        gradient[a] = sum[i](X[i,a] * (bought[i] - p[i]))
        hessian[a,b] = sum[i](p[i] * (1 - p[i]) * X[i,a] * X[i,b])
        move[a] = sum[b](inv[a,b](hessian[a,b]) * gradient[b])
        next[a] = w[a] + move[a]
        moved[] = max[a](abs(move[a]))
        """,
        X=ucle.table("customers", ["customer"], "x"),
        bought=ucle.table("customers", ["customer"], "bought"),
        w=ucle.parameter(np.zeros(count(connection, "max(len(x))", "customers"))),
        outputs=["next"],
        database=connection,
    )


def newton(derivatives, width):
    """Follow the derivatives by Newton's method, from coefficients of 0 on."""
    w, move = np.zeros(width), np.inf
    while np.max(abs(move)) > 1e-9:
        gradient, hessian = derivatives(w)
        move = np.linalg.solve(hessian, gradient)
        w = w + move
    return w


def by_ucle(connection):
    with program(connection).iterate({"w": "next"}, until="moved[] < 1e-9") as found:
        return found["next"].to_numpy()


def by_sql(connection):
    width = count(connection, "max(len(x))", "customers")
    x = [f"x[{n}]" for n in range(1, width + 1)]
    sums = [f"sum({a} * (bought - p))" for a in x]
    sums += [f"sum(p * (1 - p) * {x[a]} * {x[b]})" for a, b in upper_pairs(width)]
    query = f"""
        WITH likely AS (
            SELECT x, bought::DOUBLE AS bought,
                   1 / (1 + exp(-array_inner_product(x, $1::DOUBLE[{width}]))) AS p
            FROM customers
        ) SELECT {", ".join(sums)} FROM likely
    """

    def derivatives(w):
        (found,) = connection.execute(query, [w.tolist()]).fetchall()
        return np.array(found[:width]), symmetric(width, found[width:])

    return newton(derivatives, width)


def arrays(connection):
    return columns(connection, "SELECT x, bought FROM customers")


def by_peer(x, bought):
    model = LogisticRegression(C=np.inf, solver="newton-cholesky", tol=1e-10, fit_intercept=False)
    return model.fit(x, bought).coef_[0]


def picture(axes, connection):
    found = by_ucle(connection)
    axes.bar(np.arange(len(found)), found)
    axes.set(xlabel="feature", ylabel="coefficient", title="What makes customers buy")
