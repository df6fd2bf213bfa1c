"""PageRank of a table of links between pages that are called by strings.

A step hands the rank of each page on to those that it links to, and what pages without links have
to all of them. The loop ends when the ranks of all pages together have changed by less than 1e-10.

To run it: `python examples/training/page_rank.py`.
"""

from __future__ import annotations

import click
import duckdb
import numpy as np
from tables import store

import ucle
from ucle.run.iterate import Iteration

DAMPING = 0.85

STEP = f"""
links[i] = sum[j](L[i,j])
lost[] = sum[i](when(links[i] == 0, rank[i]))
given[j] = sum[i](L[i,j] * (rank[i] / max(links[i], 1)))
next[j] = ({1 - DAMPING} + {DAMPING} * lost[]) / pages[] + {DAMPING} * given[j]
moved[] = sum[i](abs(next[i] - rank[i]))
"""


def make_links(connection: duckdb.DuckDBPyConnection, pages: int, seed: int) -> None:
    """Make links from each page but every tenth, mostly to pages with small numbers."""
    rng = np.random.default_rng(seed)
    here = np.repeat(np.arange(pages), rng.integers(1, 8, pages))
    there = (rng.random(len(here)) ** 2 * pages).astype(int)
    pairs = np.unique(np.stack([here, there])[:, (here != there) & (here % 10 != 0)], axis=1)
    names = np.array([f"page {n}" for n in range(pages)])
    store(connection, "links", {"page": names[pairs[0]], "to": names[pairs[1]]})


def page_rank(connection: duckdb.DuckDBPyConnection) -> Iteration:
    """The ranks of all pages, in ``next``."""
    ((pages,),) = connection.execute(
        'SELECT count(*) FROM (SELECT page FROM links UNION SELECT "to" FROM links)'
    ).fetchall()
    program = ucle.einsum_program(
        STEP,
        # Pages have one dictionary, also those that nothing links to.
        L=ucle.table("links", ["page", "to"], value=1, coordinates={"i": "page", "j": "page"}),
        rank=ucle.parameter(np.full(pages, 1 / pages)),
        pages=pages,
        outputs=["next"],
        database=connection,
    )
    return program.iterate({"rank": "next"}, until="moved[] < 1e-10", max_steps=200)


@click.command()
@click.option("--pages", default=1000, show_default=True)
@click.option("--seed", default=0, show_default=True)
def main(pages: int, seed: int) -> None:
    """Rank pages, and show the first of them."""
    with ucle.connect() as connection:
        make_links(connection, pages, seed)
        with page_rank(connection) as found:
            print(f"{found.steps} steps; ranks moved by {found.history['moved'][-1]:.1e}")
            found["next"].to_table("ranks", mode="replace")
        print(connection.sql("SELECT j AS page, val AS rank FROM ranks ORDER BY rank DESC LIMIT 5"))


if __name__ == "__main__":
    main()
