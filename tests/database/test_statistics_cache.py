"""Facts of inputs: exact or estimated by size, found once for each version of the data."""

from __future__ import annotations

import gc
import json
import re
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from keyboard import run_interrupted

import ucle
from ucle.database import data_versions, statistics_cache
from ucle.database.open_sessions import open_session
from ucle.database.session import Session
from ucle.errors import DuplicateCoordinatesError, InputError, ValueTypeError
from ucle.plan.sources import TableName, TableSource
from ucle.stats import TensorStatistics, measure

LARGE = 1000
"""Entries from which on an input is large, in these tests."""

ERROR = 0.1 if int(duckdb.__version__.split(".")[0]) > 1 else 0.5
"""The error of DuckDB's HyperLogLog: that of 1.4 has few registers."""


@pytest.fixture(autouse=True)
def _small_thresholds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure, "EXACT_ENTRIES", LARGE)
    monkeypatch.setattr(statistics_cache, "NOTED_ENTRIES", 2 * LARGE)


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The queries over data that have been run."""
    seen: list[str] = []
    original = Session.read

    def read(self: Session, sql: str, *where: str) -> list[tuple[Any, ...]]:
        if "pragma_storage_info" not in sql and not sql.startswith("DESCRIBE"):
            seen.append(sql)
        return original(self, sql, *where)

    monkeypatch.setattr(Session, "read", read)
    return seen


@pytest.fixture
def path(tmp_path: Path) -> str:
    """A file with a large table t of the positions (3 k mod 5000, k mod 70), in random order."""
    place = str(tmp_path / "data.db")
    with duckdb.connect(place) as connection:
        connection.execute(
            "CREATE TABLE t AS SELECT (3 * range % 5000)::INT i, (range % 70)::INT j, "
            "(range % 10)::DOUBLE v FROM range(5000) ORDER BY hash(range)"
        ).fetchall()
    return place


@pytest.fixture
def connection(path: str) -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(path) as opened:
        yield opened


def statistics(
    database: Any, table: Any = "t", labels: str = "i,j", **options: Any
) -> TensorStatistics:
    text = f"y[{labels}] = 2 * A[{labels}]"
    program = ucle.einsum_program(text, A=table, database=database, **options)
    return program.compiled.statistics.tensor("A")


def kept(database: Any) -> list[Any]:
    """The notes in a database."""
    connection = database if not isinstance(database, str) else duckdb.connect(database)
    tables = connection.execute("SELECT table_name FROM duckdb_tables() WHERE schema_name = 'ucle'")
    found = connection.execute("FROM ucle.facts").fetchall() if tables.fetchall() else []
    if isinstance(database, str):
        connection.close()
    return found


def test_small_inputs_are_counted(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute(f"CREATE TABLE small AS FROM t LIMIT {LARGE}").fetchall()
    ((v, entries),) = connection.execute(
        "SELECT count(DISTINCT i), count(*) FROM small WHERE v <> 0"
    ).fetchall()
    found = statistics(connection, "small")
    assert found.exact
    assert (found.entries, found.distinct[0]) == (entries, v)


def test_large_inputs_are_estimated(path: str) -> None:
    """T is exact; V within the error of HyperLogLog, and never above T."""
    found = statistics(path)
    assert not found.exact
    assert found.entries == 4500
    # k mod 10 is 0 for a tenth of both: of all i, and of those j that are multiples of 10.
    assert found.distinct == pytest.approx((4500, 63), rel=ERROR)
    exact = statistics(path, statistics="exact")
    assert exact == TensorStatistics(4500, (4500, 63), exact=True, largest=(1, 72))


def counts(reads: list[str]) -> int:
    """Count the queries that test whether all coordinates have an entry, and clear `reads`."""
    found = sum("BITSTRING_AGG" in sql.upper() for sql in reads)
    reads.clear()
    return found


def test_coordinates_that_all_have_an_entry(
    path: str, reads: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are counted where it matters, once for each version, also if it did not at first."""
    monkeypatch.setattr(measure, "EXACT_DEGREES", 1000)
    with duckdb.connect(path) as connection:
        connection.execute("UPDATE t SET v = v + 1").fetchall()
    plain, quotient = "y[i,j] = 2 * A[i,j]", "y[i,j] = A[i,j] / sum[k](A[i,k])"

    def measured(text: str) -> frozenset[int]:
        program = ucle.einsum_program(text, A="t", database=path)
        return program.compiled.program.types["A"].covered

    assert (measured(plain), counts(reads)) == (set(), 0)
    assert (measured(quotient), counts(reads)) == ({0, 1}, 1)
    assert (measured(plain), counts(reads)) == ({0, 1}, 0)
    statistics_cache.forget()
    assert (measured(quotient), counts(reads)) == ({0, 1}, 0)
    with duckdb.connect(path) as connection:
        connection.execute("DELETE FROM t WHERE j = 7").fetchall()
    assert (measured(quotient), counts(reads)) == (set(), 1)
    assert (measured(quotient), counts(reads)) == (set(), 0)


def test_a_note_to_which_nothing_is_added_is_left_alone(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = []
    write = statistics_cache.write_note

    def counted(*arguments: Any) -> None:
        written.append(arguments)
        write(*arguments)

    monkeypatch.setattr(statistics_cache, "write_note", counted)
    for _ in range(3):
        statistics_cache.forget()
        ucle.einsum_program("y[i,j] = A[i,j] / (1 + sum[k](A[i,k]))", A="t", database=path)
    assert len(written) == 1


def test_rows_that_come_to_have_no_entry(connection: duckdb.DuckDBPyConnection) -> None:
    """A quotient that was computed only at entries is 0 / 0 in a row that has lost its entries."""
    connection.execute("CREATE TABLE u AS SELECT i % 50 i, j, 1.0 v FROM t").fetchall()
    connection.execute("CREATE OR REPLACE TABLE u AS SELECT DISTINCT * FROM u").fetchall()
    assert connection.execute("SELECT count(*) FROM u").fetchall() == [(350,)]
    connection.execute("INSERT INTO u SELECT i, j + 70, v FROM u").fetchall()
    connection.execute("INSERT INTO u SELECT i, j + 140, v FROM u").fetchall()
    program = ucle.einsum_program("y[i,j] = A[i,j] / sum[k](A[i,k])", A="u", database=connection)
    assert program.compiled.program.types["y"].fill == 0
    rows = program.execute(connection)["y"].to_numpy()
    np.testing.assert_allclose(rows.sum(axis=1), 1)
    connection.execute("DELETE FROM u WHERE i = 7").fetchall()
    rows = program.execute(connection)["y"].to_numpy()
    assert np.isnan(rows[7]).all()
    np.testing.assert_allclose(np.delete(rows, 7, axis=0).sum(axis=1), 1)


@pytest.mark.parametrize("key", ["i", "'id ' || i"])
def test_degrees_of_large_inputs_are_bounds(
    connection: duckdb.DuckDBPyConnection, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Coordinates that share a group count as one; T and V are what they were."""
    connection.execute(f"CREATE TABLE u AS SELECT {key} i, j, v FROM t").fetchall()
    exact = statistics(connection, "u", statistics="exact")
    monkeypatch.setattr(measure, "EXACT_DEGREES", 1000)
    monkeypatch.setattr(measure, "BUCKETS", 64)
    statistics_cache.forget()
    found = statistics(connection, "u")
    assert found.entries == exact.entries
    assert found.distinct == pytest.approx(exact.distinct, rel=ERROR)
    assert exact.largest == (1, 72)
    assert all(np.greater_equal(found.largest, exact.largest))
    assert found.largest[0] < found.entries


def test_sums_of_duplicates_are_estimated(connection: duckdb.DuckDBPyConnection) -> None:
    """T counts positions, not rows."""
    connection.execute("INSERT INTO t FROM t").fetchall()
    table = ucle.table("t", duplicates="sum")
    assert statistics(connection, table).entries == pytest.approx(4500, rel=ERROR)
    connection.execute("INSERT INTO t VALUES (0, 0, NULL)").fetchall()
    assert statistics(connection, table).exact


def arrays_table(connection: duckdb.DuckDBPyConnection, array: Any) -> Any:
    rows = pa.table({"i": np.arange(len(array)), "v": [row.tolist() for row in array]})
    connection.register("rows", rows)
    connection.execute("CREATE OR REPLACE TABLE h AS FROM rows").fetchall()
    connection.unregister("rows")
    return ucle.table("h", ["i"], "v", shape=array.shape[1:])


def test_large_arrays(connection: duckdb.DuckDBPyConnection) -> None:
    rng = np.random.default_rng(1)
    array = rng.random((300, 8)) + 1
    array[5, 3] = 0
    found = statistics(connection, arrays_table(connection, array))
    assert found == TensorStatistics(2399, (300, 8), exact=False, largest=(8, 300), close=True)
    array *= rng.random((300, 8)) < 0.2
    array[100:] = array[:, 6:] = 0
    found = statistics(connection, arrays_table(connection, array))
    true = [np.count_nonzero(array.any(axis=axis)) for axis in (1, 0)]
    assert found.entries == np.count_nonzero(array)
    assert found.distinct == pytest.approx(true, rel=ERROR)
    matrices = arrays_table(connection, rng.random((300, 2, 3)) + 1)
    assert statistics(connection, matrices, "i,j,k").distinct == (300, 2, 3)


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ("UPDATE h SET v = v[:-2] WHERE i = 77", "the row"),
        ("UPDATE h SET v = NULL WHERE i = 77", "the row"),
        ("UPDATE h SET v = list_append(v[:-2], NULL) WHERE i = 77", "the row"),
    ],
)
def test_wrong_arrays_are_found(
    connection: duckdb.DuckDBPyConnection, change: str, found: str
) -> None:
    table = arrays_table(connection, np.ones((300, 8)))
    connection.execute(change).fetchall()
    with pytest.raises(ValueTypeError, match="an array") as caught:
        statistics(connection, table)
    assert "77" in (caught.value.found or "")
    assert found in (caught.value.found or "")


def test_what_is_not_finite_is_found(connection: duckdb.DuckDBPyConnection) -> None:
    array = np.ones((300, 8))
    array[77, 3] = np.nan
    for table in ("t", arrays_table(connection, array)):
        connection.execute("UPDATE t SET v = 'inf' WHERE i = 77").fetchall()
        program = ucle.einsum_program("y[i,j] = 2 * A[i,j]", A=table, database=connection)
        assert not program.compiled.inputs["A"].values.finite


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("order", ["i, j", "j, i", "hash(i)"])
@pytest.mark.parametrize("key", ["i", "i::HUGEINT << 50", "'id ' || i"])
def test_duplicates_are_found_wherever_they_are(
    connection: duckdb.DuckDBPyConnection, seed: int, order: str, key: str
) -> None:
    """In order or not; at positions within 64 bits and beyond, and with dictionaries."""
    twice = int(np.random.default_rng(seed).integers(5000))
    connection.execute(f"INSERT INTO t FROM t WHERE i = {twice}").fetchall()
    connection.execute(f"CREATE TABLE u AS SELECT {key} i, j, v FROM t ORDER BY {order}").fetchall()
    with pytest.raises(DuplicateCoordinatesError) as caught:
        statistics(connection, "u")
    ((name,),) = connection.execute(f"SELECT {key} FROM t WHERE i = {twice} LIMIT 1").fetchall()
    assert f"2 rows at i = {name}, " in (caught.value.found or "")
    connection.execute("DELETE FROM u WHERE rowid NOT IN (SELECT max(rowid) FROM u GROUP BY i, j)")
    assert statistics(connection, "u").entries == 4500


def test_rows_in_order_are_read_once_for_duplicates(
    connection: duckdb.DuckDBPyConnection, reads: list[str]
) -> None:
    connection.execute("CREATE TABLE u AS FROM t ORDER BY i, j").fetchall()
    statistics(connection, "u")
    assert [sql for sql in reads if "lag(" in sql and "ORDER BY" in sql] == []
    statistics(connection, "t")
    assert len([sql for sql in reads if "lag(" in sql and "ORDER BY" in sql]) == 1
    assert not any("HAVING" in sql for sql in reads)


def test_a_constraint_saves_looking_for_duplicates(
    connection: duckdb.DuckDBPyConnection, reads: list[str]
) -> None:
    connection.execute("CREATE TABLE u (i INT, j INT, v DOUBLE, PRIMARY KEY (j, i))").fetchall()
    connection.execute("INSERT INTO u FROM t").fetchall()
    statistics(connection, "u")
    assert reads
    assert not any("lag(" in sql or "HAVING" in sql for sql in reads)
    connection.execute("CREATE TABLE w (i INT, j INT, v DOUBLE UNIQUE)").fetchall()
    connection.execute("INSERT INTO w SELECT i, j, i FROM t").fetchall()
    statistics(connection, "w")
    assert any("lag(" in sql for sql in reads)


def test_a_later_compilation_reads_nothing(
    connection: duckdb.DuckDBPyConnection, reads: list[str]
) -> None:
    first = statistics(connection)
    assert reads
    reads.clear()
    assert statistics(connection) == first
    program = ucle.einsum_program("y[j] += 2 * A[i,j]", A="t", database=connection)
    with program.execute(connection):
        assert reads == []
    statistics(connection, ucle.table("t", fill=1))  # another reading
    assert reads


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("change", "entries"),
    [
        ("INSERT INTO t VALUES (6000, 1, 1)", 4501),
        ("DELETE FROM t WHERE i = 3", 4499),
        ("UPDATE t SET v = 0 WHERE i = 3", 4499),
        ("UPDATE t SET v = 1 - v WHERE v = 0; UPDATE t SET v = 0 WHERE v = 1", 4000),
        ("DROP TABLE t; CREATE TABLE t AS SELECT range i, 0 j, 1.0 v FROM range(5000)", 5000),
    ],
)
def test_changes_are_seen(path: str, reads: list[str], change: str, entries: int) -> None:
    """Changes are seen by the process that measured, and by another one that reads its notes."""
    for another in (False, True):
        with duckdb.connect(path) as connection:
            connection.execute("CREATE OR REPLACE TABLE before AS FROM t").fetchall()
            assert statistics(connection).entries == 4500
            for statement in change.split(";"):
                connection.execute(statement).fetchall()
                if another:
                    connection.execute("CHECKPOINT").fetchall()
            if another:
                statistics_cache.forget()
            assert statistics(connection).entries == entries
            connection.execute("CREATE OR REPLACE TABLE t AS FROM before").fetchall()


def test_another_file_is_another_table(path: str, tmp_path: Path) -> None:
    with duckdb.connect(str(tmp_path / "other.db")) as connection:
        connection.execute("CREATE TABLE t AS SELECT range i, 0 j, 1.0 v FROM range(5000)")
        connection.execute(f"ATTACH '{path}' AS data").fetchall()
        assert statistics(connection).entries == 5000
        assert statistics(connection, "data.main.t").entries == 4500
        connection.execute("USE data").fetchall()
        assert statistics(connection, "data.main.t").entries == 4500
        parquet = tmp_path / "t.parquet"
        for rows in (5000, 5001):
            connection.execute(
                f"COPY (SELECT range i, 1.0 v FROM range({rows})) TO '{parquet}'"
            ).fetchall()
            assert statistics(connection, str(parquet), "i").entries == rows


@pytest.mark.parametrize("mode", ["auto", "exact"])
def test_the_next_process_reads_a_digest(path: str, reads: list[str], mode: str) -> None:
    first = statistics(path, statistics=mode)
    assert len(kept(path)) == 1
    statistics_cache.forget()
    reads.clear()
    assert statistics(path, statistics=mode) == first
    assert [("hash(" in sql) for sql in reads if "SELECT COUNT(*) FROM" not in sql] == [True]
    with duckdb.connect(path) as connection:
        connection.execute("UPDATE t SET v = v + 1").fetchall()
    statistics_cache.forget()
    assert statistics(path, statistics=mode).entries == 5000
    assert len(kept(path)) == 1


FIRST_FIELDS = {
    "dense", "dtype", "encoded", "exact", "fill", "fixed_length", "kept_as", "key_axes",
    "key_types", "keys", "keys_as", "nesting", "origin", "pairs", "ragged", "sum_duplicates",
    "value",
}  # fmt: skip
"""What notes say of a plain table: those of earlier versions are found by it."""


def test_notes_of_earlier_versions_are_found() -> None:
    source = TableSource(TableName(("t",)), ("i",), "v")
    reading = statistics_cache._reading(source, 0.0, exact=True)
    assert json.loads(reading).keys() == FIRST_FIELDS
    for known in ("of_floats", "single_rows", "computed", "uncast"):
        more = replace(source, **{known: True})
        assert statistics_cache._reading(more, 0.0, exact=True) == reading


def test_notes_that_cannot_be_read_are_replaced(path: str) -> None:
    first = statistics(path)
    for text in ("{", "[]", '{"entries": 1}'):
        statistics_cache.forget()
        with duckdb.connect(path) as connection:
            connection.execute("UPDATE ucle.facts SET facts = ?", [text]).fetchall()
        assert statistics(path) == first
    (note,) = kept(path)
    assert '"entries"' in note[-1]


def test_where_nothing_is_noted(path: str, tmp_path: Path) -> None:
    statistics(path, statistics="transient")
    assert kept(path) == []
    with duckdb.connect(path, read_only=True) as connection:
        assert statistics(connection).entries == 4500
        assert kept(connection) == []
    with duckdb.connect(path) as connection:
        connection.execute("CREATE TABLE small AS FROM t LIMIT 10").fetchall()
        connection.execute("CREATE VIEW seen AS FROM t").fetchall()
        statistics(connection, "small")
        statistics(connection, "seen")
        assert kept(connection) == []
    with pytest.raises(InputError, match="unknown way of measuring"):
        statistics(path, statistics="guessed")


def test_inside_a_transaction(connection: duckdb.DuckDBPyConnection) -> None:
    """It sees its own changes, is not aborted, and nothing of it is noted or remembered."""
    connection.execute("BEGIN").fetchall()
    assert statistics(connection).entries == 4500
    connection.execute("DELETE FROM t WHERE i < 100").fetchall()
    inside = statistics(connection).entries
    assert inside < 4500
    connection.execute("ROLLBACK").fetchall()
    assert kept(connection) == []
    assert statistics(connection).entries == 4500


ENDLESS = """
import ucle
connection = ucle.connect()
connection.execute("CREATE VIEW endless AS SELECT range % 9 AS i FROM range(1000000000000)")
press_while_it_runs()
start = time.monotonic()
try:
    ucle.einsum_program("y[i] = 2 * A[i]", A="endless", database=connection)
except KeyboardInterrupt:
    print(time.monotonic() - start, connection.sql("SELECT 42").fetchall())
"""


@pytest.mark.slow
def test_a_key_that_interrupts_ends_a_measurement() -> None:
    seconds, answer = run_interrupted(ENDLESS)
    assert answer == "[(42,)]"
    assert seconds < 20  # the whole of it takes many minutes


@pytest.mark.parametrize("seconds", [0.0, 0.2])
def test_a_key_that_interrupts_while_a_statement_is_handed_over(
    seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The thread that runs it may have begun or not; it is waited for, and must end."""
    submit = ThreadPoolExecutor.submit

    def interrupted(pool: ThreadPoolExecutor, *work: Any) -> Any:
        submit(pool, *work)
        time.sleep(seconds)
        raise KeyboardInterrupt

    with ucle.connect() as connection:
        connection.execute("CREATE VIEW endless AS SELECT range % 9 AS i FROM range(1000000000000)")
        monkeypatch.setattr(ThreadPoolExecutor, "submit", interrupted)
        with pytest.raises(KeyboardInterrupt), closing(open_session(connection)) as session:
            session.read("SELECT count(DISTINCT i) FROM endless", "here")
        assert connection.sql("SELECT 42").fetchall() == [(42,)]


def test_other_data_is_checked_and_not_measured(
    path: str, tmp_path: Path, reads: list[str]
) -> None:
    program = ucle.einsum_program("y[j] += 2 * A[i,j]", A="t", database=path)
    other = str(tmp_path / "other.db")
    with duckdb.connect(other) as connection:
        connection.execute("CREATE TABLE t AS SELECT range i, 0 j, 1.0 v FROM range(2000)")
    reads.clear()
    with program.execute(other) as result:
        assert result["y"].to_numpy().sum() == 4000
    assert reads
    assert not any("DISTINCT" in sql or "distinct" in sql for sql in reads)
    with duckdb.connect(other) as connection:
        connection.execute("INSERT INTO t VALUES (7, 0, 1)").fetchall()
    with pytest.raises(DuplicateCoordinatesError):
        program.execute(other)


def test_dictionaries_are_counted_once_for_a_version(
    fresh: duckdb.DuckDBPyConnection, reads: list[str]
) -> None:
    fresh.execute("CREATE TABLE colours AS FROM (VALUES ('a', 1), ('b', 2)) t(k, v)")
    table = ucle.table("colours", ["k"], "v")
    for _ in range(2):
        program = ucle.einsum_program("Z[k] = 2 * T[k]", T=table, database=fresh)
        assert program.execute(fresh)["Z"].to_numpy().tolist() == [2, 4]
        assert sum(query.startswith("SELECT COUNT(*) FROM (SELECT DIST") for query in reads) == 1
    fresh.execute("INSERT INTO colours VALUES ('c', 3)")
    assert program.execute(fresh)["Z"].to_numpy().tolist() == [2, 4, 6]


def test_settled_tables_in_memory_are_measured_once(
    connection: duckdb.DuckDBPyConnection, reads: list[str]
) -> None:
    def made(factor: int, rows: int = 50) -> pa.Table:
        return pa.table(
            {"i": [str(n) for n in range(rows)], "v": [factor * n for n in range(rows)]}
        )

    settled, other = data_versions.settle(made(1)), made(1)
    first = statistics(connection, settled, "i")
    assert reads
    reads.clear()
    assert statistics(connection, settled, "i") == first
    assert not reads
    for table in (other, other, data_versions.settle(made(0))):
        reads.clear()
        found = statistics(connection, table, "i")
        assert reads
        assert found.entries == (49 if table is other else 0)
    few = ucle.einsum_program("y[i] = 2 * A[i]", A=data_versions.settle(made(1, 20)))
    assert few.execute()["y"].to_numpy().tolist() == sorted(
        range(0, 40, 2), key=lambda n: str(n // 2)
    )
    read_otherwise = statistics(connection, ucle.table(settled, ["i"], fill=1), "i")
    assert read_otherwise.entries == 49
    assert data_versions.memory_version(settled) != data_versions.memory_version(made(1))


def test_versions_of_tables_in_memory_go_with_them(connection: duckdb.DuckDBPyConnection) -> None:
    before = len(data_versions._settled)
    table = data_versions.settle(pa.table({"i": ["a", "b"], "v": [1.0, 2.0]}))
    assert statistics(connection, table, "i").entries == 2
    assert len(data_versions._settled) == before + 1
    ucle.clear_caches()
    del table
    gc.collect()
    assert len(data_versions._settled) == before


def test_loops_measure_their_first_state_once(
    connection: duckdb.DuckDBPyConnection, reads: list[str]
) -> None:
    connection.execute("CREATE TABLE named AS SELECT 'n' || i AS i, 'n' || j AS j FROM t")
    links = ucle.tensor(
        ucle.table("named", ["i", "j"], 1, coordinates={"i": "n", "j": "n"}, duplicates="sum"),
        axes=("i", "j"),
        database=connection,
    )
    out = links.sum("j")

    def step(rank: ucle.Tensor) -> ucle.Tensor:
        return 0.5 * links.dot(rank, axis="i").rename({"j": "i"}) + 1

    first = ucle.iterate(step, (out >= 0) / 3, max_steps=3)
    about = [re.sub("ucle_[0-9a-f]+_", "", sql) for sql in reads if "state" in sql]
    assert about
    assert len(set(about)) == len(about)
    reads.clear()
    again = ucle.iterate(step, (out >= 0) / 3, max_steps=3)
    np.testing.assert_array_equal(first.state.to_numpy(), again.state.to_numpy())
    connection.execute("INSERT INTO named VALUES ('n1', 'one more')")
    other = ucle.iterate(step, (out >= 0) / 3, max_steps=3)
    assert len(other.state.to_numpy()) == len(first.state.to_numpy()) + 1
