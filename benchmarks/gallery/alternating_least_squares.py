"""Factors of ratings by alternating least squares (ALS).

What do people like, and what do items have of it? A rating is to be the inner product of a vector
of the person with one of the item. Where the vectors of items are known, those of people are the
answers to small systems of equations, one for each person, and the other way round. The database
makes all systems of half a sweep, and solves them, at once.
"""

import numpy as np
import scipy.sparse as sp
from data import columns, count, upper_pairs, vectors
from tables import store

import ucle

PEER = "scipy.sparse"
TOLERANCE = 1e-8
SMALL = {"users": 200, "items": 80, "ratings": 4000}
FULL = {"users": 20_000, "items": 2000, "ratings": 1_000_000}
RANK, SWEEPS, PENALTY = 8, 5, 2.0


def make_data(connection, users, items, ratings):
    rng = np.random.default_rng(0)
    likes, has = rng.normal(size=(users, 4)), rng.normal(size=(items, 4))
    user, item = np.divmod(np.unique(rng.integers(users * items, size=ratings)), items)
    stars = 3 + 0.5 * (likes[user] * has[item]).sum(axis=1) + rng.normal(0, 0.3, len(user))
    store(connection, "ratings", {"user": user, "item": item, "stars": stars})


def sizes(connection):
    return {name: count(connection, f'max("{name}") + 1', "ratings") for name in ("user", "item")}


def first_items(items):
    """Vectors of items to begin with."""
    return np.random.default_rng(1).normal(size=(items, RANK))


def program(connection):
    size = sizes(connection)
    keys, bounds = list(size), list(size.values())
    return ucle.einsum_program(
        f"""
        P[u,a] = inv[a,b](sum[i](rated[u,i] * F[i,a] * F[i,b]) + {PENALTY} * (a == b)) *
            sum[i](stars[u,i] * F[i,b])
        next[i,a] = inv[a,b](sum[u](rated[u,i] * P[u,a] * P[u,b]) + {PENALTY} * (a == b)) *
            sum[u](stars[u,i] * P[u,b])
        """,
        rated=ucle.table("ratings", keys, value=1, bounds=bounds),
        stars=ucle.table("ratings", keys, "stars", bounds=bounds),
        F=ucle.parameter(first_items(size["item"])),
        outputs=["P", "next"],
        database=connection,
    )


def sweep(users_of, items_of, items):
    """The vectors of users and of items after some sweeps, each from the other ones."""
    has = first_items(items)
    for _ in range(SWEEPS):
        likes = users_of(has)
        has = items_of(likes)
    return likes, has


def by_ucle(connection):
    with program(connection).iterate({"F": "next"}, max_steps=SWEEPS) as found:
        return found["P"].to_numpy(), found["next"].to_numpy()


def solve(gram, right):
    """The vectors that answer all systems, with a penalty on their lengths."""
    return np.linalg.solve(gram + PENALTY * np.eye(RANK), right[..., None])[..., 0]


def by_sql(connection):
    size, pairs = sizes(connection), upper_pairs(RANK)
    sums = [f"sum(v[{a + 1}] * v[{b + 1}])" for a, b in pairs]
    sums += [f"sum(stars * v[{a + 1}])" for a in range(RANK)]

    def half(here, there):
        def vectors_from(others):
            store(connection, "others", {"id": np.arange(len(others)), "v": vectors(others)})
            at, *found = columns(
                connection,
                f"""
                SELECT "{here}", {", ".join(sums)}
                FROM ratings JOIN others ON "{there}" = id GROUP BY "{here}"
                """,
            )
            gram, right = np.zeros((size[here], RANK, RANK)), np.zeros((size[here], RANK))
            for (a, b), entries in zip(pairs, found, strict=False):
                gram[at, a, b] = gram[at, b, a] = entries
            right[at] = np.stack(found[len(pairs) :], axis=1)
            return solve(gram, right)

        return vectors_from

    return sweep(half("user", "item"), half("item", "user"), size["item"])


def arrays(connection):
    user, item, stars = columns(connection, "SELECT user, item, stars FROM ratings")
    return (sp.csr_array((stars, (user, item)), tuple(sizes(connection).values())),)


def by_peer(stars):
    def half(stars):
        rated = sp.csr_array((np.ones(stars.nnz), stars.indices, stars.indptr), stars.shape)

        def vectors_from(others):
            squares = others[:, :, None] * others[:, None]
            gram = rated @ squares.reshape(len(others), -1)
            return solve(gram.reshape(-1, RANK, RANK), stars @ others)

        return vectors_from

    return sweep(half(stars), half(stars.T.tocsr()), stars.shape[1])


def picture(axes, connection):
    likes, has = by_ucle(connection)
    user, item, stars = columns(
        connection, 'SELECT "user", item, stars FROM ratings ORDER BY "user", item LIMIT 400'
    )
    axes.scatter(stars, (likes[user] * has[item]).sum(axis=1), s=6)
    axes.set(xlabel="stars", ylabel="product of the vectors", title="How ratings are explained")
