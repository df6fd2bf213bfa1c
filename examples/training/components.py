"""Connected components of an undirected graph: each node takes the least number around it.

To begin with, each node has a number of its own. A step gives it the least of its number and of
those of its neighbours, so that the least number of a component spreads until all of it has it.

To run it: `python examples/training/components.py`.
"""

from __future__ import annotations

import click
import duckdb
import numpy as np
from tables import store

import ucle
from ucle.run.iterate import Iteration

STEP = """
around[i] min= when_highest(F[i,j], label[j])
next[i] = min(label[i], around[i])
moved[] = sum[i](next[i] < label[i])
"""


def make_friends(connection: duckdb.DuckDBPyConnection, people: int, seed: int) -> None:
    """Friends that fall into a few large groups, and some pairs; each pair is in the table once."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, people // 40 + 1, people)
    pairs = rng.integers(0, people, (2, 40 * people))
    pairs = pairs[:, (pairs[0] < pairs[1]) & (group[pairs[0]] == group[pairs[1]])]
    names = np.array([f"person {n}" for n in range(people)])
    one, other = np.unique(pairs, axis=1)
    store(connection, "friends", {"one": names[one], "other": names[other]})


def components(connection: duckdb.DuckDBPyConnection) -> Iteration:
    """A number for each person, in ``next``, which the others of the component have, too."""
    ((people,),) = connection.execute(
        "SELECT count(*) FROM (SELECT one FROM friends UNION SELECT other FROM friends)"
    ).fetchall()
    program = ucle.einsum_program(
        STEP,
        F=ucle.table("friends", ["one", "other"], value=1, dtype="bool", symmetric=True),
        label=ucle.parameter(np.arange(people)),
        outputs=["next"],
        database=connection,
    )
    return program.iterate({"label": "next"}, until="moved[] == 0")


@click.command()
@click.option("--people", default=1000, show_default=True)
@click.option("--seed", default=0, show_default=True)
def main(people: int, seed: int) -> None:
    """Find the components, and show how large they are."""
    with ucle.connect() as connection:
        make_friends(connection, people, seed)
        with components(connection) as found:
            print(f"{found.steps} steps; labels that moved in each: {found.history['moved']}")
            found["next"].to_table("component", mode="replace", rows="all")
        print(
            connection.sql("""
                SELECT size, count(*) AS components
                FROM (SELECT count(*) AS size FROM component GROUP BY val)
                GROUP BY size ORDER BY size DESC LIMIT 5
            """)
        )


if __name__ == "__main__":
    main()
