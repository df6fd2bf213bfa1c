"""Large tables of numbers, read column by column: all that answers rest on is exact."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import duckdb
import numpy as np
import pytest

import ucle
from ucle.database import statistics_cache
from ucle.database.session import Session
from ucle.errors import CoordinateError, DuplicateCoordinatesError, ValueTypeError
from ucle.stats import measure, position_counts, positions
from ucle.stats.arrays import Batches
from ucle.stats.model import TensorStatistics
from ucle.stats.positions import Positions, Table, by_positions

ROWS = 4000
WIDE = 97
"""Coordinates of the second axis."""


@pytest.fixture(autouse=True)
def small_is_large(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Tables of a few thousand rows count as large, and are read in several pieces."""
    monkeypatch.setattr(measure, "EXACT_ENTRIES", 100)
    monkeypatch.setattr(measure, "EXACT_DEGREES", 100)
    monkeypatch.setattr(position_counts, "CHUNK", 512)
    monkeypatch.setattr(positions, "BATCH", 256)
    statistics_cache.forget()
    yield
    statistics_cache.forget()


@pytest.fixture
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    """A table `t` of distinct coordinates in row order, all with values."""
    with ucle.connect() as opened:
        opened.execute(
            f"""CREATE TABLE t AS SELECT 3 * x // {WIDE} AS i, 3 * x % {WIDE} AS j,
            1.0 + x % 7 AS v FROM range({ROWS}) r(x)"""
        ).fetchall()
        yield opened


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The queries that read data."""
    seen: list[str] = []
    read = Session.read

    def spy(session: Session, sql: str, where: str = "database") -> object:
        seen.append(sql)
        return read(session, sql, where)

    monkeypatch.setattr(Session, "read", spy)
    return seen


Write = Callable[[str], str]


@pytest.fixture(params=["table", "parquet", "glob"])
def write(
    request: pytest.FixtureRequest, tmp_path: Path, connection: duckdb.DuckDBPyConnection
) -> Write:
    """Store a query's rows: in a table, a file of several row groups, or several files."""

    def store(query: str) -> str:
        if request.param == "table":
            connection.execute(f"CREATE OR REPLACE TABLE u AS {query}").fetchall()
            return "u"
        target = f"{tmp_path}/u.parquet"
        connection.execute(f"COPY ({query}) TO '{target}' (ROW_GROUP_SIZE 2048)").fetchall()
        if request.param == "parquet":
            return target
        ends = [-1, ROWS // 3, ROWS // 2, 10 * ROWS]
        connection.execute(f"CREATE OR REPLACE TABLE whole AS {query}").fetchall()
        for low, high in pairwise(ends):
            part = f"FROM whole WHERE rowid > {low} AND rowid <= {high}"
            connection.execute(f"COPY ({part}) TO '{tmp_path}/part{high:06}.parquet'").fetchall()
        return f"{tmp_path}/part*.parquet"

    return store


def program(connection: duckdb.DuckDBPyConnection, stored: str) -> ucle.EinsumProgram:
    text = "y[i] += A[i,j] * x[j]"
    source = ucle.table(stored, ["i", "j"], "v")
    return ucle.einsum_program(text, A=source, x=np.ones(WIDE), database=connection)


def statistics(connection: duckdb.DuckDBPyConnection, stored: str) -> TensorStatistics:
    return program(connection, stored).compiled.statistics.tensor("A")


ORDERS = ["i, j", "j, i", "v, i, j"]
LATE = f"CASE WHEN i * {WIDE} + j = {3 * (ROWS - 2)}"


@pytest.mark.parametrize("order", ORDERS)
def test_everything_is_counted(
    connection: duckdb.DuckDBPyConnection, write: Write, order: str, reads: list[str]
) -> None:
    stored = write(f"FROM t ORDER BY {order}")
    found = statistics(connection, stored)
    ((*expected,),) = connection.execute(
        """SELECT count(*), count(DISTINCT i), count(DISTINCT j),
        (SELECT max(n) FROM (SELECT count(*) n FROM t GROUP BY i)),
        (SELECT max(n) FROM (SELECT count(*) n FROM t GROUP BY j)) FROM t"""
    ).fetchall()
    assert [found.entries, *found.distinct, *found.largest] == expected
    assert not any("approx_count_distinct" in sql or "lag(" in sql for sql in reads)
    values = program(connection, stored).compiled.inputs["A"].values
    assert (values.low, values.high, values.finite) == (1, 7, True)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("apart", [0, 1, ROWS - 1])
def test_two_equal_rows_are_found(
    connection: duckdb.DuckDBPyConnection, write: Write, order: str, apart: int
) -> None:
    """Wherever they are: the first, the last, neighbours or not, in one piece or two."""
    twice = f"SELECT i, j, v + 1 FROM t LIMIT 1 OFFSET {apart}"
    stored = write(f"SELECT i, j, v FROM (FROM t UNION ALL ({twice})) ORDER BY {order}")
    with pytest.raises(DuplicateCoordinatesError, match="2 rows at i = ") as caught:
        program(connection, stored)
    assert "SELECT i, j, min(v) AS v ... GROUP BY ALL" in str(caught.value)
    summed = ucle.table(stored, ["i", "j"], "v", duplicates="sum")
    assert ucle.einsum_program("s += A[i,j]", A=summed, database=connection).execute()


@pytest.mark.parametrize(
    ("columns", "error", "message"),
    [
        (f"{LATE} THEN NULL ELSE i END AS i, j, v", CoordinateError, "coordinate is NULL"),
        (f"i, {LATE} THEN NULL ELSE j END AS j, v", CoordinateError, "coordinate is NULL"),
        (f"i, j, {LATE} THEN NULL ELSE v END AS v", ValueTypeError, "value is NULL"),
        (f"{LATE} THEN -1 ELSE i END AS i, j, v", CoordinateError, "outside its bound"),
        (f"i, {LATE} THEN -1 ELSE j END AS j, v", CoordinateError, "outside its bound"),
    ],
)
@pytest.mark.parametrize("order", ORDERS)
def test_late_defects_are_found(
    connection: duckdb.DuckDBPyConnection,
    write: Write,
    order: str,
    columns: str,
    error: type[Exception],
    message: str,
) -> None:
    stored = write(f"SELECT {columns} FROM t ORDER BY {order}")
    with pytest.raises(error, match=message):
        program(connection, stored)


@pytest.mark.parametrize("number", ["nan", "inf", "-inf"])
@pytest.mark.parametrize("zeros", [False, True])
def test_a_late_number_that_is_not_finite_is_noticed(
    connection: duckdb.DuckDBPyConnection, write: Write, number: str, zeros: bool
) -> None:
    others = "CASE WHEN i % 2 = 0 THEN 0 ELSE v END" if zeros else "v"
    stored = write(f"SELECT i, j, {LATE} THEN '{number}'::DOUBLE ELSE {others} END AS v FROM t")
    assert not program(connection, stored).compiled.inputs["A"].values.finite


@pytest.mark.parametrize("fill", [0.0, 3.0])
def test_stored_fills_are_no_entries(
    connection: duckdb.DuckDBPyConnection, write: Write, fill: float
) -> None:
    """T, the range of values, V and degrees are those of the other rows."""
    stored = write(
        "SELECT i, j, CASE WHEN i % 2 = 0 THEN v - 4 END + 0 AS v FROM t WHERE i % 2 = 0"
    )
    source = ucle.table(stored, ["i", "j"], "v", fill=fill)
    bound = ucle.einsum_program("B[i,j] = A[i,j] * 2", A=source, database=connection).compiled
    ((entries, low, high, rows, most),) = connection.execute(
        f"""SELECT count(*), min(w), max(w), count(DISTINCT i), count(*) // count(DISTINCT i)
        FROM (SELECT v - 4 AS w, i FROM t WHERE i % 2 = 0) WHERE w <> {fill}"""
    ).fetchall()
    found, values = bound.statistics.tensor("A"), bound.inputs["A"].values
    assert (found.entries, values.low, values.high) == (entries, low, high)
    assert entries < ROWS // 2
    assert found.distinct[0] == pytest.approx(rows, rel=0.5)
    assert found.largest[0] >= most


def test_stored_fills_leave_positions_in_one_scan(
    connection: duckdb.DuckDBPyConnection, reads: list[str]
) -> None:
    connection.execute("UPDATE t SET v = 0 WHERE i % 2 = 0").fetchall()
    statistics(connection, "t")
    assert any("approx_count_distinct" in sql for sql in reads)
    assert not any("lag(" in sql for sql in reads)


def test_the_largest_coordinate_may_be_the_last(
    connection: duckdb.DuckDBPyConnection, write: Write
) -> None:
    stored = write("FROM t UNION ALL SELECT 100_000, 96, 1.0")
    bounds = program(connection, stored).compiled.inputs["A"].bounds
    assert [bound.size for bound in bounds] == [100_001, WIDE]


def test_what_does_not_fit_into_memory_is_read_by_duckdb(
    connection: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch, reads: list[str]
) -> None:
    """With the same T, checks and answer; only V is estimated."""
    whole = program(connection, "t")
    statistics_cache.forget()
    monkeypatch.setattr(statistics_cache, "POSITIONS_SHARE", 0.0)
    reads.clear()
    other = program(connection, "t")
    assert any("approx_count_distinct" in sql for sql in reads)
    assert other.compiled.statistics.tensor("A").entries == ROWS
    np.testing.assert_array_equal(
        whole.execute()["y"].to_numpy(), other.execute()["y"].to_numpy(), strict=True
    )
    connection.execute("INSERT INTO t FROM t LIMIT 1").fetchall()
    with pytest.raises(DuplicateCoordinatesError):
        program(connection, "t")


def test_tables_that_change_are_checked_again(
    connection: duckdb.DuckDBPyConnection, write: Write
) -> None:
    """A second execution looks at new rows: duplicates, NULLs, and larger coordinates."""
    stored = write("FROM t")
    compiled = program(connection, stored)
    assert compiled.execute()["y"].to_numpy().sum() == pytest.approx(
        connection.execute("SELECT sum(v) FROM t").fetchall()[0][0]
    )
    write("FROM t UNION ALL FROM t LIMIT 4001")
    with pytest.raises(DuplicateCoordinatesError):
        compiled.execute()
    write("FROM t UNION ALL SELECT i, NULL, v FROM t LIMIT 4001")
    with pytest.raises(CoordinateError, match="NULL"):
        compiled.execute()


# ---- Positions by themselves ----


def batches_of(connection: duckdb.DuckDBPyConnection) -> Batches:
    return lambda sql, rows: connection.sql(sql).to_arrow_table().to_batches(rows)


def scan(connection: duckdb.DuckDBPyConnection, table: Table) -> Positions | None:
    return by_positions(batches_of(connection), 1e9)(table, True)


def table_of(connection: duckdb.DuckDBPyConnection, sizes: tuple[int, ...], rows: int) -> Table:
    source = program(connection, "t").compiled.inputs["A"].source
    return Table(source, sizes, rows)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("sizes", "rows"),
    [
        ((124, WIDE), ROWS + 1),  # rows are gone
        ((124, WIDE), ROWS - 1),  # there are more
        ((60, WIDE), ROWS),  # with larger coordinates
        ((2**40, 2**40), ROWS),  # their positions have more bits than an integer
    ],
)
def test_tables_that_are_not_as_stated_have_no_positions(
    connection: duckdb.DuckDBPyConnection, sizes: tuple[int, ...], rows: int
) -> None:
    assert scan(connection, table_of(connection, (124, WIDE), ROWS)) is not None
    assert scan(connection, table_of(connection, sizes, rows)) is None


@pytest.mark.parametrize("rows", [ROWS - 1, ROWS + 1])
def test_all_rows_have_to_be_read(connection: duckdb.DuckDBPyConnection, rows: int) -> None:
    table = table_of(connection, (124, WIDE), rows)
    assert positions._read_positions(batches_of(connection), table) is None


def test_long_axes_are_estimated_and_bounded(
    connection: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """V within the error that the module states, degrees from above; always the same."""
    monkeypatch.setattr(positions, "BUCKETS", 1024)
    connection.execute(
        "CREATE OR REPLACE TABLE t AS SELECT 64 * x AS i, 0 AS j, 1.0 AS v FROM range(4000) r(x)"
    ).fetchall()
    table = table_of(connection, (64 * 4000, 1), 4000)
    first, second = (scan(connection, table) for _ in range(2))
    assert first is not None
    assert first == second
    assert first.distinct[0] == pytest.approx(4000, rel=0.15)
    assert first.distinct[1] == 1
    assert first.largest[0] >= 1
    assert first.largest[1] == 4000
