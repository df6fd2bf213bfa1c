"""k-means of vectors in a table, as a loop in the database.

A step of the loop is a function of lazy tensors, which is called once: the distances of points from
centres, the nearest centre of each point, and the means of the points that have one nearest. The
loop ends when no centre has moved. Where it ends depends on where it begins, so that there are
several attempts, along an axis of their own, of which the best is taken.

To run it: `python examples/training/k_means.py`.
"""

from __future__ import annotations

import click
import duckdb
import numpy as np
from tables import store

import ucle
from ucle.lazy.loops import TensorIteration


def make_points(connection: duckdb.DuckDBPyConnection, count: int, seed: int) -> None:
    """Points around four centres, with names and with the number of the centre."""
    rng = np.random.default_rng(seed)
    around = rng.integers(0, 4, count)
    centres = np.array([[0.0, 0.0], [6.0, 0.0], [0.0, 6.0], [6.0, 6.0]])
    places = centres[around] + rng.normal(size=(count, 2))
    names = [f"point {n}" for n in range(count)]
    store(connection, "points", {"name": names, "place": list(places), "around": around})
    connection.execute(
        "CREATE OR REPLACE VIEW places AS SELECT name, place::DOUBLE[] AS place FROM points"
    )


def distances(points: ucle.Tensor, centres: ucle.Tensor) -> ucle.Tensor:
    """The squares of the distances between points and centres."""
    return ((points - centres) ** 2).sum("feature")


def move(points: ucle.Tensor, first: np.ndarray) -> TensorIteration:
    """Centres that move no more, from those of some attempts on: attempt, centre, feature."""
    numbers = ucle.array(np.arange(first.shape[1]), axes=["centre"])

    def step(centres: ucle.Tensor) -> ucle.Tensor:
        nearest = distances(points, centres).argmin("centre")
        own = (nearest == numbers).astype("float64")
        count = own.sum("point")
        # A centre without points has no mean, so it stays where it is.
        means = own.dot(points, axis="point") / ucle.maximum(count, 1)
        return ucle.where(count > 0, means, centres)

    return ucle.iterate(
        step,
        ucle.array(first, axes=["attempt", "centre", "feature"]),
        until=lambda new, old: (new == old).all(),
        max_steps=100,
    )


def k_means(
    connection: duckdb.DuckDBPyConnection, table: str, clusters: int, attempts: int, seed: int
) -> np.ndarray:
    """The best centres of several attempts.

    Args:
        connection: where the table is.
        table: a row for each point, its name and its numbers in an array.
        clusters: how many centres.
        attempts: each begins with some of the points, drawn at random.
        seed: of these.
    """
    points = ucle.tensor(table, axes=["point", "feature"], database=connection)
    every = points.to_numpy()
    seeds = [ucle.random.key(seed, n) for n in range(attempts)]
    drawn = [ucle.random.permutation(len(every), seed=x)[:clusters] for x in seeds]
    with move(points, every[np.array(drawn)]) as found:
        centres = found.state.to_numpy()
    named = ucle.array(centres, axes=["attempt", "centre", "feature"])
    spread = distances(points, named).min("centre").sum("point").to_numpy()
    return centres[spread.argmin()]


def assign(
    connection: duckdb.DuckDBPyConnection, table: str, centres: np.ndarray, target: str
) -> None:
    """Write a table with the number of the nearest centre for each name."""
    points = ucle.tensor(table, axes=["name", "feature"], database=connection)
    cluster = distances(points, ucle.array(centres, axes=["centre", "feature"])).argmin("centre")
    cluster.to_table(target, connection, mode="replace", rows="all")


@click.command()
@click.option("--count", default=1000, show_default=True, help="Points.")
@click.option("--seed", default=0, show_default=True)
def main(count: int, seed: int) -> None:
    """Find the centres again around which points were made."""
    with ucle.connect() as connection:
        make_points(connection, count, seed)
        centres = k_means(connection, "places", clusters=4, attempts=3, seed=seed)
        assign(connection, "places", centres, "clusters")
        print(centres[np.lexsort(centres.T.round())].round(2))
        print(
            connection.sql("""
                SELECT around, val AS cluster, count(*) AS points
                FROM clusters JOIN points USING (name) GROUP BY ALL ORDER BY ALL
            """)
        )


if __name__ == "__main__":
    main()
