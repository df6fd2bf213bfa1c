"""Principal components (PCA).

In which directions do points differ most, and where do they lie along them? The directions are
eigenvectors of the covariances, those of the greatest eigenvalues, which come last.
"""

import numpy as np
from data import columns, count, symmetric, upper_pairs, vectors
from sklearn.decomposition import PCA
from tables import store

import ucle

PEER = "scikit-learn"
TOLERANCE = 1e-8
SMALL = {"points": 1000, "width": 8}
FULL = {"points": 200_000, "width": 64}


def make_data(connection, points, width):
    rng = np.random.default_rng(0)
    hidden = rng.normal(size=(points, 2)) * [3, 1.5] + rng.integers(3, size=(points, 1)) * [4, -3]
    x = hidden @ rng.normal(size=(2, width)) + rng.normal(size=(points, width)) + 5
    store(connection, "points", {"point": np.arange(points), "x": vectors(x)})


def program(connection):
    last = count(connection, "max(len(x))", "points") - 1
    return ucle.einsum_program(
        f"""
        mean[a] = mean[point](X[point,a])
        D[point,a] = X[point,a] - mean[a]
        covariance[a,b] = sum[point](D[point,a] * D[point,b]) / (sum[point](one[point]) - 1)
        values[a] = eigenvalues[a,b](covariance[a,b])
        vectors[a,b] = eigenvectors[a,b](covariance[a,b])
        variance[c] = values[{last}-c]
        places[point,c] = D[point,a] * vectors[a,{last}-c]
        """,
        X="points",
        one=ucle.table("points", ["point"], value=1),
        bounds={"c": 2},
        outputs=["variance", "places"],
        database=connection,
    )


def by_ucle(connection):
    with program(connection).execute() as result:
        result["places"].to_table("places", keys=["point"], mode="replace", rows="all")
        return result["variance"].to_numpy(), connection.table("places")


def directions(covariance):
    """The variances along the first two components, and their directions as columns."""
    variance, vector = np.linalg.eigh(covariance)
    return variance[:-3:-1], oriented(vector[:, :-3:-1])


def oriented(vector):
    """Fix the arbitrary sign of a direction: its greatest entry becomes positive."""
    greatest = abs(vector).argmax(axis=0)
    return vector * np.sign(vector[greatest, np.arange(vector.shape[1])])


def by_sql(connection):
    (width,) = connection.execute("SELECT len(x) FROM points LIMIT 1").fetchone()
    x = [f"x[{n}]" for n in range(1, width + 1)]
    means = ", ".join(f"avg({a})" for a in x)
    sums = ", ".join(f"covar_samp({x[a]}, {x[b]})" for a, b in upper_pairs(width))
    mean = connection.execute(f"SELECT {means} FROM points").fetchone()
    found = connection.execute(f"SELECT {sums} FROM points").fetchone()
    variance, vector = directions(symmetric(width, found))
    products = ", ".join(f"list_inner_product(x::DOUBLE[], ${n}) - ${n + 2}" for n in (1, 2))
    connection.execute(
        f"CREATE OR REPLACE TEMP TABLE places_by_sql AS SELECT point, [{products}] FROM points",
        [*vector.T.tolist(), *(np.array(mean) @ vector).tolist()],
    )
    return variance, connection.table("places_by_sql")


def arrays(connection):
    return columns(connection, "SELECT x FROM points ORDER BY point")


def by_peer(x):
    model = PCA(2, svd_solver="covariance_eigh").fit(x)
    return model.explained_variance_, (x - model.mean_) @ oriented(model.components_.T)


def picture(axes, connection):
    (places,) = columns(connection, "SELECT val FROM places ORDER BY point LIMIT 400")
    axes.scatter(*places.T, s=6)
    axes.set(xlabel="first component", ylabel="second component")
