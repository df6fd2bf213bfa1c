"""Factors of a sparse tensor of three axes (CP).

Who buys what, and when? How often somebody buys something in a month is to be a sum of a few
patterns, each of which is a product of three factors: of the user, of the item, and of the month.
In each step two matrices of factors are known, and the tensor times these (MTTKRP) is all that the
third needs: the database computes it, and NumPy solves for the third (CP-ALS).
"""

import numpy as np
import scipy.sparse as sp
from data import columns, count, vectors
from tables import store

import ucle

PEER = "scipy.sparse"
TOLERANCE = 1e-7
SMALL = {"users": 160, "items": 96, "months": 24, "sales": 5000}
FULL = {"users": 20_000, "items": 5000, "months": 36, "sales": 1_000_000}
RANK, SWEEPS = 16, 3
AXES = ("user", "item", "month")


def make_data(connection, users, items, months, sales):
    """Some users buy some items at some time of the year."""
    rng = np.random.default_rng(0)
    pattern = rng.integers(RANK, size=sales)
    user, item = (
        pattern + RANK * rng.integers(size // RANK, size=sales) for size in (users, items)
    )
    month = 12 * rng.integers(months // 12, size=sales) + pattern + rng.normal(0, 2, sales).round()
    places, n = np.unique([user, item, month.astype(int) % months], axis=1, return_counts=True)
    store(connection, "sales", {**dict(zip(AXES, places, strict=True)), "n": n})


def sizes(connection):
    return [count(connection, f'max("{axis}") + 1', "sales") for axis in AXES]


def others(axis):
    """The axes beside one."""
    return [other for other in range(3) if other != axis]


def first_factors(size):
    """Factors to begin with."""
    rng = np.random.default_rng(1)
    return [rng.random((n, RANK)) for n in size]


def program(connection):
    size = sizes(connection)
    _, items, months = first_factors(size)
    return ucle.einsum_program(
        """
        II[r,s] = sum[i](I[i,r] * I[i,s])
        MM[r,s] = sum[m](M[m,r] * M[m,s])
        P[p,r] = inv[r,s](II[r,s] * MM[r,s]) * sum[i,m](X[p,i,m] * I[i,s] * M[m,s])
        PP[r,s] = sum[p](P[p,r] * P[p,s])
        next_I[i,r] = inv[r,s](PP[r,s] * MM[r,s]) * sum[p,m](X[p,i,m] * P[p,s] * M[m,s])
        JJ[r,s] = sum[i](next_I[i,r] * next_I[i,s])
        next_M[m,r] = inv[r,s](PP[r,s] * JJ[r,s]) * sum[p,i](X[p,i,m] * P[p,s] * next_I[i,s])
        """,
        X=ucle.table("sales", list(AXES), "n", dtype="float64", bounds=size),
        I=ucle.parameter(items),
        M=ucle.parameter(months),
        outputs=["P", "next_I", "next_M"],
        database=connection,
    )


def decompose(mttkrp, size):
    """The factors after some sweeps over the axes."""
    factors = first_factors(size)
    for _ in range(SWEEPS):
        for axis in range(3):
            b, c = (factors[n] for n in others(axis))
            factors[axis] = np.linalg.solve((b.T @ b) * (c.T @ c), mttkrp(axis, b, c).T).T
    return tuple(factors)


def by_ucle(connection):
    loop = program(connection).iterate({"I": "next_I", "M": "next_M"}, max_steps=SWEEPS)
    with loop as found:
        return tuple(found[name].to_numpy() for name in ("P", "next_I", "next_M"))


def by_sql(connection):
    size = sizes(connection)
    sums = ", ".join(f"sum(n * b.v[{r}] * c.v[{r}])" for r in range(1, RANK + 1))

    def mttkrp(axis, *known):
        for name, factor in zip("bc", known, strict=True):
            store(connection, name, {"id": np.arange(len(factor)), "v": vectors(factor)})
        j, k = (AXES[n] for n in others(axis))
        at, *found = columns(
            connection,
            f"""
            SELECT "{AXES[axis]}", {sums} FROM sales JOIN b ON b.id = "{j}" JOIN c ON c.id = "{k}"
            GROUP BY "{AXES[axis]}"
            """,
        )
        product = np.zeros((size[axis], RANK))
        product[at] = np.stack(found, axis=1)
        return product

    return decompose(mttkrp, size)


def arrays(connection):
    *places, n = columns(connection, "SELECT user, item, month, n::DOUBLE FROM sales")
    number = np.arange(len(n))
    unfolded = (sp.csr_array((n, (place, number))) for place in places)
    return places, *unfolded


def by_peer(places, *unfolded):
    def mttkrp(axis, b, c):
        j, k = others(axis)
        return unfolded[axis] @ (b[places[j]] * c[places[k]])

    return decompose(mttkrp, [x.shape[0] for x in unfolded])


def picture(axes, connection):
    _, _, months = by_ucle(connection)
    axes.plot(months[:, :4] / abs(months[:, :4]).max(axis=0))
    axes.set(xlabel="month", ylabel="factor", title="When four patterns are bought")
