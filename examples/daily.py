"""Assets of Dagster, a partition for each day: what is computed from the rows of all days is kept.

The first day computes the tensor, later days what the new rows affect. An asset check computes it
once more from scratch and compares: a job may run that every week.

To run it: `python examples/daily.py [folder]`.
"""

import sys
import tempfile
from pathlib import Path

import duckdb
import numpy as np
from dagster import (
    AssetCheckResult,
    AssetExecutionContext,
    DailyPartitionsDefinition,
    asset,
    asset_check,
    materialize,
)

import ucle
from ucle.errors import NameResolutionError

DAYS = DailyPartitionsDefinition(start_date="2026-01-01")


def job(database: Path) -> list:
    """Two assets and a check."""

    @asset(partitions_def=DAYS)
    def baskets(context: AssetExecutionContext) -> None:
        """Write the baskets of a day; those that are there of an earlier run are replaced."""
        day = int(context.partition_key[-2:])
        with duckdb.connect(database) as connection:
            connection.execute(
                "CREATE TABLE IF NOT EXISTS baskets (basket INTEGER, product INTEGER, day INTEGER)"
            )
            connection.execute("DELETE FROM baskets WHERE day = ?", [day])
            connection.execute(
                "INSERT INTO baskets SELECT DISTINCT 1000 * $1 + i % 97, i * i * $1 % 23, $1 "
                "FROM range(500) t(i)",
                [day],
            )

    def program() -> ucle.EinsumProgram:
        return ucle.einsum_program(
            "together[p,q] += B[b,p] * B[b,q]",
            B=ucle.table("baskets", ["basket", "product"], value=1),
            database=database,
        )

    @asset(partitions_def=DAYS, deps=[baskets])
    def together(context: AssetExecutionContext) -> None:
        """Count how often products are in one basket."""
        try:
            kept = ucle.maintained("together", database)
        except NameResolutionError:  # the first day
            program().maintain("together")
            return
        report = kept.refresh()
        context.add_output_metadata({"changed": dict(report.changed), "refresh": str(report)})

    @asset_check(asset=together)
    def from_scratch() -> AssetCheckResult:
        """Compare the table that is kept with a full run."""
        with program().execute() as result:
            result["together"].to_table("expected", mode="replace")
        with duckdb.connect(database) as connection:
            differing = connection.execute("""
                SELECT count(*) FROM (FROM together EXCEPT FROM expected UNION ALL
                                      (FROM expected EXCEPT FROM together))
            """).fetchall()
        return AssetCheckResult(passed=differing == [(0,)])

    return [baskets, together, from_scratch]


def expected(days: list[int]) -> np.ndarray:
    """The expected result of some days, computed with NumPy."""
    i, bought = np.arange(500), np.zeros((97 * len(days), 23))
    for number, day in enumerate(days):
        bought[97 * number + i % 97, i * i * day % 23] = 1
    return bought.T @ bought


def found(database: Path) -> np.ndarray:
    """Read the table that is kept."""
    made = np.zeros((23, 23))
    with duckdb.connect(database, read_only=True) as connection:
        for p, q, times in connection.execute("FROM together").fetchall():
            made[p, q] = times
    return made


def main(folder: Path) -> None:
    """Two days, and the first one once more, as nothing else would have changed."""
    database, days = folder / "shop.duckdb", []
    for day in (1, 2, 1):
        run = materialize(job(database), partition_key=f"2026-01-0{day}")
        assert run.success
        (check,) = run.get_asset_check_evaluations()
        assert check.passed
        days = sorted({*days, day})
        np.testing.assert_array_equal(found(database), expected(days))
        print(f"day {day}: {int(found(database).trace())} products in baskets")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as made:
            main(Path(made))
