"""k-means.

Around which centres do points lie? The loop is that of examples/training/k_means.py, with three
attempts at once, each from other points on.
"""

import k_means
import numpy as np
from data import columns
from sklearn.cluster import KMeans

import ucle

PEER = "scikit-learn"
TOLERANCE = 1e-8
SMALL = {"points": 500}
FULL = {"points": 200_000}
ATTEMPTS, CENTRES = 3, 4


def make_data(connection, points):
    k_means.make_points(connection, points, seed=0)
    connection.execute("""
        CREATE OR REPLACE TABLE numbered AS
        SELECT row_number() OVER (ORDER BY name) - 1 AS point, place FROM places
    """)


def first_centres(connection):
    """Points to begin with: attempt, centre, feature."""
    query = f"SELECT place FROM numbered WHERE point < {ATTEMPTS * CENTRES} ORDER BY point"
    return columns(connection, query)[0].reshape(ATTEMPTS, CENTRES, -1)


def program(connection):
    points = ucle.tensor("numbered", axes=("point", "feature"), database=connection)
    centres = ucle.array(first_centres(connection), axes=("attempt", "centre", "feature"))
    return k_means.distances(points, centres).argmin("centre").program()


def by_ucle(connection):
    points = ucle.tensor("numbered", axes=("point", "feature"), database=connection)
    with k_means.move(points, first_centres(connection)) as found:
        return found.state.to_numpy()


def by_sql(connection):
    centres = first_centres(connection)
    while True:
        attempt, centre = np.indices(centres.shape[:2]).reshape(2, -1).tolist()
        connection.execute(
            "CREATE OR REPLACE TEMP TABLE centres AS "
            "SELECT unnest($1) AS attempt, unnest($2) AS centre, unnest($3) AS middle",
            [attempt, centre, centres.reshape(len(attempt), -1).tolist()],
        )
        moved = centres.copy()
        rows = connection.execute("""
            WITH nearest AS (
                SELECT attempt, point, any_value(place) AS place,
                       arg_min(centre, list_distance(place, middle)) AS centre
                FROM numbered, centres GROUP BY attempt, point
            )
            SELECT attempt, centre, avg(place[1]), avg(place[2])
            FROM nearest GROUP BY attempt, centre
        """).fetchall()
        for attempt, centre, *mean in rows:
            moved[attempt, centre] = mean
        if np.allclose(moved, centres, rtol=0, atol=1e-12):
            return moved
        centres = moved


def arrays(connection):
    return *columns(connection, "SELECT place FROM numbered ORDER BY point"), first_centres(
        connection
    )


def by_peer(points, first):
    models = (KMeans(CENTRES, init=x, n_init=1, tol=0, algorithm="lloyd") for x in first)
    return np.stack([model.fit(points).cluster_centers_ for model in models])


def picture(axes, connection):
    k_means.assign(connection, "numbered", by_ucle(connection)[0], "clusters")
    place, cluster = columns(
        connection,
        "SELECT place, val FROM numbered JOIN clusters ON point = name ORDER BY point LIMIT 250",
    )
    axes.scatter(*place.T, c=cluster, s=6, cmap="tab10")
    axes.set(title="Points and their clusters")
