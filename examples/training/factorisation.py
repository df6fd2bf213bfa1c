"""Matrix factorisation with biases: ratings of items by people, both called by strings.

A rating is guessed as the mean of all, plus what is due to the person, plus what is due to the
item, plus an inner product of what each of them likes and has. The loss counts ratings that are in
the table and no others. Some ratings are held out, and how far off the guesses of these are is
measured beside the loss, in the same step. What was learnt is written back as tables, whose columns
hold the names of people and items.

To run it: `python examples/training/factorisation.py`.
"""

from __future__ import annotations

import click
import duckdb
import numpy as np
from tables import store

import ucle
from ucle.run.iterate import Iteration

PENALTY = 2.0

MODEL = f"""
guess[u,i] = mean[] + b[u] + c[i] + sum[k](P[u,k] * Q[i,k])
error[u,i] = when(known[u,i], stars[u,i] - guess[u,i])
factors[] = sum[u,k](square(P[u,k])) + sum[i,k](square(Q[i,k]))
biases[] = sum[u](square(b[u])) + sum[i](square(c[i]))
loss = sum[u,i](square(error[u,i])) + {PENALTY} * (factors[] + biases[])
later[u,i] = when(held_out[u,i], later_stars[u,i] - guess[u,i])
rmse = sqrt(sum[u,i](square(later[u,i])) / sum[u,i](held_out[u,i]))
"""


def make_ratings(
    connection: duckdb.DuckDBPyConnection, people: int, items: int, count: int, seed: int
) -> None:
    """Ratings that such a model explains but for some noise; a fifth of them is held out."""
    rng = np.random.default_rng(seed)
    likes, has = rng.normal(0, 0.6, (people, 3)), rng.normal(0, 0.6, (items, 3))
    kind, good = rng.normal(0, 0.4, people), rng.normal(0, 0.5, items)
    u, i = np.unique(rng.integers(0, [people, items], (count, 2)), axis=0).T
    stars = 3.4 + kind[u] + good[i] + (likes[u] * has[i]).sum(axis=1)
    columns = {
        "person": [f"person {n:04}" for n in u],
        "item": [f"item {n:03}" for n in i],
        "stars": stars + rng.normal(0, 0.3, len(u)),
        "held_out": rng.random(len(u)) < 0.2,
    }
    store(connection, "ratings", columns)
    connection.execute("""
        CREATE OR REPLACE VIEW earlier AS
        SELECT person, item, stars FROM ratings WHERE NOT held_out;
        CREATE OR REPLACE VIEW later AS
        SELECT person, item, stars FROM ratings WHERE held_out
    """)


def model(connection: duckdb.DuckDBPyConnection, factors: int, seed: int) -> ucle.EinsumProgram:
    """One step of Adam; its outputs are the loss and the error of ratings that are held out."""
    ((people, items, mean),) = connection.execute("""
        SELECT count(DISTINCT person), count(DISTINCT item), avg(stars) FILTER (NOT held_out)
        FROM ratings
    """).fetchall()
    # One dictionary for people and one for items, whichever of the tables somebody is in.
    named = {"u": "person", "i": "item"}
    keys = ["person", "item"]
    start_p, start_q = (ucle.random.normal(0, 0.1, seed=ucle.random.key(seed, n)) for n in (0, 1))
    program = ucle.einsum_program(
        MODEL,
        stars=ucle.table("earlier", keys, "stars", coordinates=named),
        known=ucle.table("earlier", keys, value=1, dtype="bool", coordinates=named),
        later_stars=ucle.table("later", keys, "stars", coordinates=named),
        held_out=ucle.table("later", keys, value=1, dtype="bool", coordinates=named),
        mean=mean,
        P=ucle.parameter(start_p.array((people, factors))),
        Q=ucle.parameter(start_q.array((items, factors))),
        b=ucle.parameter(np.zeros(people)),
        c=ucle.parameter(np.zeros(items)),
        outputs=["loss", "rmse"],
        database=connection,
    )
    return program.minimize("loss", ["P", "Q", "b", "c"], ucle.optim.adam(0.05))


def write(found: Iteration) -> None:
    """Tables of what was learnt, with a row for each person and each item."""
    found["P_next"].to_table("likes", keys=["u"], mode="replace")
    found["Q_next"].to_table("has", keys=["i"], mode="replace")
    found["b_next"].to_table("kindness", mode="replace")
    found["c_next"].to_table("goodness", mode="replace")


BEST = """
SELECT i AS item, kindness.val + goodness.val + list_inner_product(likes.val, has.val) AS above_mean
FROM likes JOIN kindness USING (u) CROSS JOIN has JOIN goodness USING (i)
ANTI JOIN ratings ON person = u AND item = i
WHERE u = $person ORDER BY above_mean DESC LIMIT 3
"""
"""Query for the three unrated items that a person is expected to like best."""


@click.command()
@click.option("--people", default=300, show_default=True)
@click.option("--items", default=120, show_default=True)
@click.option("--count", default=9000, show_default=True, help="Ratings, some of them twice.")
@click.option("--steps", default=100, show_default=True)
@click.option("--seed", default=0, show_default=True)
def main(people: int, items: int, count: int, steps: int, seed: int) -> None:
    """Train, and recommend something to somebody."""
    with ucle.connect() as connection:
        make_ratings(connection, people, items, count, seed)
        with model(connection, factors=3, seed=seed).iterate(max_steps=steps) as found:
            history = found.history["rmse"]
            print(f"error of held-out ratings: {history[0]:.4f} at first, {history[-1]:.4f} now")
            write(found)
        print(connection.sql(BEST, params={"person": "person 0000"}))


if __name__ == "__main__":
    main()
