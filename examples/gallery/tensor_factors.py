"""Factors of a sparse tensor of three axes (CP).

Who buys what, and when? Amounts are to be sums of a few patterns, each of which is a product of
three factors: one for the user, one for the item, and one for the month. In each half step two
matrices of factors are known, and the tensor times these (MTTKRP) is all that the third needs:
the database computes it, and NumPy solves for the third (CP-ALS).
"""

import numpy as np
import scipy.sparse as sp
from data import columns, count, vectors
from tables import store

import ucle

PEER = "scipy.sparse"
TOLERANCE = 1e-7
SMALL = {"users": 100, "items": 60, "months": 12, "sales": 3000}
FULL = {"users": 20_000, "items": 5000, "months": 36, "sales": 1_000_000}
RANK, SWEEPS = 8, 4
AXES = ("user", "item", "month")


def make_data(connection, users, items, months, sales):
    rng = np.random.default_rng(0)
    shape = (users, items, months)
    places = np.unravel_index(np.unique(rng.integers(np.prod(shape), size=sales)), shape)
    patterns = [rng.gamma(0.5, size=(size, RANK)) for size in shape]
    rows = (pattern[place] for pattern, place in zip(patterns, places, strict=True))
    val = np.prod(list(rows), axis=0).sum(axis=1) + rng.random(len(places[0]))
    store(connection, "sales", {**dict(zip(AXES, places, strict=True)), "val": val})


def sizes(connection):
    return [count(connection, f'max("{axis}") + 1', "sales") for axis in AXES]


def others(axis):
    """The axes beside one."""
    return [other for other in range(3) if other != axis]


def program(connection, axis=0):
    size, order = sizes(connection), [axis, *others(axis)]
    return ucle.einsum_program(
        "M[i,r] += X[i,j,k] * B[j,r] * C[k,r]",
        X=ucle.table("sales", [AXES[n] for n in order], "val", bounds=[size[n] for n in order]),
        B=ucle.parameter(np.zeros((size[order[1]], RANK))),
        C=ucle.parameter(np.zeros((size[order[2]], RANK))),
        database=connection,
    )


def decompose(mttkrp, size):
    """The factors after some sweeps over the axes."""
    rng = np.random.default_rng(1)
    factors = [rng.random((n, RANK)) for n in size]
    for _ in range(SWEEPS):
        for axis in range(3):
            b, c = (factors[n] for n in others(axis))
            factors[axis] = np.linalg.solve((b.T @ b) * (c.T @ c), mttkrp(axis, b, c).T).T
    return tuple(factors)


def by_ucle(connection):
    with (
        program(connection, 0).prepare() as users,
        program(connection, 1).prepare() as items,
        program(connection, 2).prepare() as months,
    ):
        runs = users, items, months
        return decompose(lambda axis, b, c: runs[axis](B=b, C=c)["M"].to_numpy(), sizes(connection))


def by_sql(connection):
    size = sizes(connection)
    sums = ", ".join(f"sum(val * b.v[{r}] * c.v[{r}])" for r in range(1, RANK + 1))

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
    *places, val = columns(connection, "SELECT user, item, month, val FROM sales")
    number = np.arange(len(val))
    unfolded = (sp.csr_array((val, (place, number))) for place in places)
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
