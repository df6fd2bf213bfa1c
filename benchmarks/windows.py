"""Windows and steps along dates, from a table into a table, against the windows of SQL."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import duckdb
import numpy as np

import ucle
from benchmarks.measure import THREADS, Table, race, ratio

ROWS = 1_000_000

TABLES = f"""
CREATE TABLE long AS
    SELECT DATE '2000-01-01' + i::INTEGER AS day, random() + 0.5 AS v FROM range({ROWS}) t(i);
CREATE TABLE many AS
    SELECT i // 1000 AS who, DATE '2000-01-01' + (i % 1000)::INTEGER AS day, random() + 0.5 AS v
    FROM range({ROWS}) t(i);
"""
"""One series of all rows, and 1,000 series of 1,000 rows each."""

AXES = {"long": ("day",), "many": ("who", "day")}
LAST = "(PARTITION BY {who} ORDER BY day ROWS BETWEEN {before} PRECEDING AND CURRENT ROW)"

DAYS = (
    "avg(v) OVER (PARTITION BY {who} ORDER BY day "
    "RANGE BETWEEN INTERVAL 29 DAYS PRECEDING AND CURRENT ROW)"
)

Work = tuple[str, str, Callable[[Any], Any], str]
"""A title, a table, its aggregate, and the same in SQL."""

WORKS: tuple[Work, ...] = (
    ("rolling(7).mean()", "long", lambda x: x.rolling(7, "day").mean(), f"avg(v) OVER {LAST}"),
    ("rolling(7).mean()", "many", lambda x: x.rolling(7, "day").mean(), f"avg(v) OVER {LAST}"),
    (
        "rolling(7, stored=True).mean()",
        "long",
        lambda x: x.rolling(7, "day", stored=True).mean(),
        f"avg(v) OVER {LAST}",
    ),
    ("rolling(7).max()", "long", lambda x: x.rolling(7, "day").max(), f"max(v) OVER {LAST}"),
    ("rolling(7).std()", "long", lambda x: x.rolling(7, "day").std(), f"stddev(v) OVER {LAST}"),
    ("rolling('30d').mean()", "long", lambda x: x.rolling("30d", "day").mean(), DAYS),
    ("rolling('30d').mean()", "many", lambda x: x.rolling("30d", "day").mean(), DAYS),
    (
        "lag",
        "long",
        lambda x: ucle.lag(x, 1, "day"),
        "lag(v) OVER (PARTITION BY {who} ORDER BY day)",
    ),
    (
        "lag",
        "many",
        lambda x: ucle.lag(x, 1, "day"),
        "lag(v) OVER (PARTITION BY {who} ORDER BY day)",
    ),
    ("resample('1mo').mean()", "long", lambda x: x.resample("1mo", "day").mean(), ""),
    ("resample('1mo').mean()", "many", lambda x: x.resample("1mo", "day").mean(), ""),
)


def statement(table: str, value: str) -> str:
    """The query in SQL; without a value it is that of means of months."""
    who = "".join(f"{name}, " for name in AXES[table][:-1])
    if not value:
        return f"SELECT {who}time_bucket(INTERVAL 1 MONTH, day), avg(v) FROM {table} GROUP BY ALL"
    shown = value.format(who=AXES[table][0] if who else "1", before=6)
    return f"SELECT {who}day, {shown} FROM {table}"


def _measure(connection: duckdb.DuckDBPyConnection, work: Work, rounds: int) -> Sequence[str]:
    title, table, aggregate, value = work

    def by_ucle() -> None:
        tensor = ucle.tensor(table, axes=AXES[table], database=connection)
        aggregate(tensor).to_table("by_ucle", connection, replace=True)

    def by_sql() -> None:
        query = statement(table, value)
        connection.execute(f"CREATE OR REPLACE TABLE by_sql AS {query}").fetchall()

    times = race({"ucle": by_ucle, "SQL": by_sql}, rounds, clock=time.process_time)
    _check(connection, title)
    series = "1" if table == "long" else "1,000"
    cells = (f"{times[side]:.3f}" for side in ("ucle", "SQL"))
    return title, series, *cells, ratio(times["ucle"] / times["SQL"])


def _check(connection: duckdb.DuckDBPyConnection, title: str) -> None:
    """Refuse to show times of different answers; ucle stores no row for a 0."""
    one, other = (
        list(connection.execute(f"FROM {name}").fetchnumpy().values())[-1]
        for name in ("by_ucle", "by_sql")
    )
    found, expected = (float(np.nansum(np.ma.filled(each, 0))) for each in (one, other))
    if not abs(found - expected) <= 1e-9 * abs(expected):
        raise SystemExit(f"{title}: the sums are {found} and {expected}")


def _rows(rounds: int) -> Iterator[Sequence[str]]:
    with ucle.connect() as connection:
        connection.execute(f"SET threads = {THREADS}")
        connection.execute(TABLES)
        for work in WORKS:
            yield _measure(connection, work, rounds)


TABLE = Table(
    "windows",
    "Windows and resampling along dates",
    f"Processor seconds from a table with {ROWS:,} rows to a new table: of `to_table` of a\n"
    "lazy tensor, whose plan is found in the cache, and of `CREATE TABLE AS` with a window\n"
    "of DuckDB, or with `GROUP BY time_bucket(...)`.",
    ("work", "series", "ucle", "DuckDB", "ucle / DuckDB"),
    _rows,
)
