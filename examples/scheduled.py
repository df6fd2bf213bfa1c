"""A job of a scheduler, which tries again what fails: Dagster runs it.

Somebody else has the database open when the job begins, so that its first tries fail. Each step may
be run as often as one likes: `to_table` replaces a table as a whole, or leaves it as it was.

To run it: `python examples/scheduled.py [folder]`.
"""

import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import duckdb
import numpy as np
from dagster import AssetExecutionContext, RetryPolicy, asset, materialize

import ucle

AGAIN = RetryPolicy(max_retries=20, delay=0.2)
HOLD = """
import duckdb, sys
with duckdb.connect(sys.argv[1]):
    print("open", flush=True)
    sys.stdin.readline()
"""
"""Another process, which keeps the file open until it receives a line."""


def job(database: Path, begin: Callable[[str], None]) -> list:
    """Two steps, the second one after the first; each says when it begins."""

    @asset(retry_policy=AGAIN)
    def purchases() -> None:
        """Write a table of customers and products, as another system would have done."""
        begin("purchases")
        with duckdb.connect(database) as connection:
            connection.execute("""
                CREATE OR REPLACE TABLE purchases AS
                SELECT i % 97 AS customer, i * i % 23 AS product FROM range(1000) t(i)
            """)

    @asset(retry_policy=AGAIN, deps=[purchases])
    def together(context: AssetExecutionContext) -> None:
        """Count how often products are bought together."""
        begin("together")
        program = ucle.einsum_program(
            "together[p,q] += bought[c,p] * bought[c,q]",
            bought=ucle.table("purchases", ["customer", "product"], duplicates="sum"),
            database=database,
        )
        with program.execute() as result:
            result["together"].to_table("together", mode="replace")
        context.add_output_metadata({"plan": str(program)})

    return [purchases, together]


def expected() -> np.ndarray:
    """The expected result, computed with NumPy."""
    i = np.arange(1000)
    bought = np.zeros((97, 23))
    np.add.at(bought, (i % 97, i * i % 23), 1)
    return bought.T @ bought


def found(database: Path) -> np.ndarray:
    """Read the table that the job has left."""
    made = np.zeros((23, 23))
    with duckdb.connect(database, read_only=True) as connection:
        for p, q, times in connection.execute("FROM together").fetchall():
            made[p, q] = times
    return made


def main(folder: Path) -> None:
    """Two nights, the first of which begins while somebody has the file open."""
    database, attempts = folder / "shop.duckdb", []
    pipe = subprocess.PIPE
    other = subprocess.Popen([sys.executable, "-c", HOLD, database], stdin=pipe, stdout=pipe)
    other.stdout.readline()

    def begin(step: str) -> None:
        attempts.append(step)
        if len(attempts) == 3:
            other.communicate(b"\n")

    for night in ("first", "second"):
        before = len(attempts)
        assert materialize(job(database, begin)).success
        np.testing.assert_array_equal(found(database), expected())
        print(f"{night} night: {len(attempts) - before} attempts at two steps")
    assert len(attempts) == 3 + 1 + 2


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as made:
            main(Path(made))
