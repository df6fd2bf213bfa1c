"""A nightly job in plain DuckDB: which products are bought together.

A program is compiled once, where ucle is installed, and leaves two things behind: a script and a
view. Later nights need DuckDB alone, however the table has changed.

To run it: `python examples/nightly.py [folder]`.
"""

from __future__ import annotations

import sys
import tempfile
import warnings
from pathlib import Path

import duckdb
import numpy as np

import ucle

PROGRAM = "together[p,q] += bought[c,p] * bought[c,q]"


def first_day(database: Path) -> None:
    """A table of purchases, of which several may be of one customer and product."""
    with duckdb.connect(database) as connection:
        connection.execute(
            """
            CREATE SCHEMA reports;
            CREATE TABLE purchases AS
            SELECT 'customer ' || (i % 97) AS customer, 'product ' || (i * i % 23) AS product
            FROM range(1000) t(i)
            """
        )


def compile_once(database: Path, script: Path) -> ucle.EinsumProgram:
    """Compile the program, write its script, and create its view.

    `decomposition="relational"` makes every label a key column: SQL without kernels.
    """
    program = ucle.einsum_program(
        PROGRAM,
        bought=ucle.table("purchases", ["customer", "product"], duplicates="sum"),
        database=database,
        decomposition="relational",
    )
    script.write_text(program.to_sql())
    program.create_views(schema="reports")
    return program


def night(database: Path, script: Path) -> dict[tuple[str, str], float]:
    """Without ucle: run the script, and see that the view says the same."""
    with duckdb.connect(database) as connection:
        rows = connection.execute(script.read_text()).fetchall()
        assert sorted(connection.execute("FROM reports.together").fetchall()) == sorted(rows)
        return {(p, q): value for p, q, value in rows}


def next_day(database: Path) -> None:
    """Other customers, other products, more of everything."""
    with duckdb.connect(database) as connection:
        connection.execute(
            """
            DELETE FROM purchases WHERE product = 'product 3';
            INSERT INTO purchases
            SELECT 'customer ' || (i % 1999), 'novelty ' || (i * 7 % 41) FROM range(30000) t(i)
            """
        )


def expected(database: Path) -> dict[tuple[str, str], float]:
    """The expected result, computed with NumPy."""
    with duckdb.connect(database, read_only=True) as connection:
        rows = connection.execute("FROM purchases").fetchall()
    customers, products = (sorted(set(column)) for column in zip(*rows, strict=True))
    places = [{name: n for n, name in enumerate(names)} for names in (customers, products)]
    bought = np.zeros((len(customers), len(products)))
    for customer, product in rows:
        bought[places[0][customer], places[1][product]] += 1
    together = bought.T @ bought
    return {(products[p], products[q]): together[p, q] for p, q in np.argwhere(together)}


def main(folder: Path) -> None:
    """Two nights, with data that changes in between."""
    database, script = folder / "shop.duckdb", folder / "together.sql"
    first_day(database)
    program = compile_once(database, script)
    found = night(database, script)
    assert found == expected(database)
    print(f"first night: {len(found)} pairs of products")

    next_day(database)
    found = night(database, script)
    assert found == expected(database)
    print(f"second night: {len(found)} pairs of products")

    # The answers stay right; whether the plan is still the best is for ucle to say.
    for drift in program.drift():
        print(drift)
    program = program.recompile()
    assert program.drift() == ()
    with warnings.catch_warnings(), program.execute() as result:
        warnings.simplefilter("error")
        rows = result["together"].relation.fetchall()
    assert {(p, q): value for p, q, value in rows} == found
    print("compiled again: the same")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as made:
            main(Path(made))
