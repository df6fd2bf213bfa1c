"""Executions after which nothing has run do not look at their tables again; all others do."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import ucle
from ucle.database import change_detection, data_versions

# What it stores depends on whether each node has an edge, which is looked at and not computed.
TEXT = "y[i,j] = A[i,j] / sum[k](A[i,k])"
EDGES = (
    "CREATE OR REPLACE TABLE t AS SELECT i::INT i, j::INT j, 1.0 + (i + j) % 3 v "
    "FROM range(9) a(i), range(9) b(j) WHERE j IN (i, (i * 2 + 1) % 9)"
)
numbered = pytest.mark.skipif(
    duckdb.__version__.startswith("1."), reason="its transactions are not numbered one by one"
)


@pytest.fixture(params=["memory", "file"])
def connection(
    request: pytest.FixtureRequest, tmp_path: Path
) -> Iterator[duckdb.DuckDBPyConnection]:
    path = ":memory:" if request.param == "memory" else str(tmp_path / "edges.db")
    with ucle.connect(path) as opened:
        opened.execute(EDGES).fetchall()
        yield opened


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """A number for each look at how tables are stored."""
    seen: list[int] = []
    look = data_versions._look_now

    def counted(*args: Any) -> Any:
        seen.append(len(seen))
        return look(*args)

    monkeypatch.setattr(data_versions, "_look_now", counted)
    return seen


def run(program: ucle.EinsumProgram) -> None:
    program.execute().close()


@numbered
def test_nobody_looks_when_nothing_has_run(
    connection: duckdb.DuckDBPyConnection, looks: list[int]
) -> None:
    program = ucle.einsum_program(TEXT, A="t", database=connection)
    other = ucle.einsum_program("x[i] += A[i,j]", A="t", database=connection)
    run(program)
    looks.clear()
    for _ in range(3):
        run(program)
        run(other)  # on the same tables
    assert not looks
    connection.execute("SELECT 1").fetchall()
    run(program)
    assert len(looks) == 1


@numbered
def test_nobody_looks_between_compiling_and_running(
    connection: duckdb.DuckDBPyConnection, looks: list[int]
) -> None:
    """Nor when another program on the same tables is compiled after that."""
    run(ucle.einsum_program(TEXT, A="t", database=connection))
    run(ucle.einsum_program("x[i] += A[i,j]", A="t", database=connection))
    tensor = ucle.tensor("t", axes=("i", "j"), database=connection)
    (tensor.sum("j") / tensor.max("j")).to_table("sums", connection)
    assert len(looks) == 1


@numbered
@pytest.mark.parametrize("width", [2, 20_000])
def test_arrays_beside_a_table(
    connection: duckdb.DuckDBPyConnection,
    looks: list[int],
    width: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Large ones are registered, and that is undone, which DuckDB does in transactions."""
    H = np.ones((9, width))
    program = ucle.einsum_program("Z[i,k] += A[i,j] * H[j,k]", A="t", H=H, database=connection)
    run(program)
    looks.clear()
    with monkeypatch.context() as patch:
        # The rows came with the number of their transaction.
        patch.setattr(change_detection, "_number", lambda _: pytest.fail("asked for the number"))
        for _ in range(3):
            run(program)
    assert not looks
    connection.execute("UPDATE t SET v = v + 1").fetchall()
    with program.execute() as result:
        ((total,),) = connection.execute("SELECT sum(v) FROM t").fetchall()
        assert result["Z"].to_numpy()[:, 0].sum() == total
    assert looks


@numbered
def test_a_result_that_is_held(connection: duckdb.DuckDBPyConnection, looks: list[int]) -> None:
    program = ucle.einsum_program(TEXT, A="t", database=connection)
    held = [program.execute() for _ in range(3)]
    looks.clear()
    held.append(program.execute())
    assert not looks
    for result in held:
        result.close()
    run(program)
    assert not looks


READS: dict[str, Callable[[Any], object]] = {
    "numpy": lambda y: y.to_numpy(),
    "arrow": lambda y: y.to_arrow(),
    "pandas": lambda y: y.to_pandas(),
    "scipy": lambda y: y.to_scipy(),
}


@numbered
@pytest.mark.parametrize("text", ["y[i,j] = 2 * A[i,j]", "y[i] += A[i,j]", "y += A[i,j]"])
@pytest.mark.parametrize("read", READS)
def test_results_that_are_read(
    connection: duckdb.DuckDBPyConnection, looks: list[int], read: str, text: str
) -> None:
    """Reading counts as no change, but whatever runs while a result is read does."""
    if text == "y += A[i,j]" and read == "scipy":
        pytest.skip("a number is no sparse matrix")
    program = ucle.einsum_program(text, A="t", database=connection)
    run(program)
    looks.clear()
    for _ in range(3):
        with program.execute() as result:
            READS[read](result["y"])
            READS[read](result["y"])
    run(program)
    assert not looks
    with program.execute() as result:
        READS[read](result["y"])
        connection.execute("DELETE FROM t WHERE i = 4").fetchall()
        READS[read](result["y"])
    with program.execute() as result:
        assert looks
        expected = connection.execute("SELECT sum(v) FROM t").fetchall()[0][0]
        assert np.sum(result["y"].to_numpy()) == expected * (2 if "2" in text else 1)


@numbered
def test_a_transaction_that_has_changed_a_table(connection: duckdb.DuckDBPyConnection) -> None:
    """All of its statements have the number that follows that of the last execution."""
    program = ucle.einsum_program(TEXT, A="t", database=connection)
    run(program)
    sql("BEGIN", "DELETE FROM t WHERE i = 4")(connection)
    with program.execute() as result:
        assert np.isnan(result["y"].to_numpy()[4]).all()
    sql("ROLLBACK")(connection)


@pytest.mark.sample(2)
@pytest.mark.parametrize("others", range(4))
@pytest.mark.parametrize("read", READS)
def test_results_that_are_read_within_a_transaction(
    connection: duckdb.DuckDBPyConnection, read: str, others: int
) -> None:
    """All of its statements have one number, whatever number others have brought it to."""
    program = ucle.einsum_program(TEXT, A="t", database=connection)
    for after in range(4):
        result = program.execute()
        sql(*["SELECT 1"] * others, "BEGIN")(connection)
        READS[read](result["y"])
        sql("DELETE FROM t WHERE i = 4", "COMMIT", *["SELECT 1"] * after)(connection)
        result.close()
        with program.execute() as found:
            assert np.isnan(found["y"].to_numpy()[4]).all()
        sql(EDGES)(connection)


@numbered
@pytest.mark.parametrize("mode", ["replace", "append", "upsert"])
def test_results_that_are_written_into_another_table(
    connection: duckdb.DuckDBPyConnection, looks: list[int], mode: str
) -> None:
    program = ucle.einsum_program(TEXT, A="t", database=connection)
    with program.execute() as result:
        result["y"].to_table("other")
    run(program)
    looks.clear()
    with program.execute() as result:
        result["y"].to_table("other", mode=mode)
    assert not looks
    run(program)
    assert len(looks) == (mode == "upsert")  # two statements in a transaction
    connection.execute("DELETE FROM t WHERE i = 4").fetchall()
    with program.execute() as result:
        assert np.isnan(result["y"].to_numpy()[4]).all()


@numbered
@pytest.mark.parametrize("name", ["t", "T", "main.t"])
def test_results_that_are_written_into_the_table_that_was_read(
    connection: duckdb.DuckDBPyConnection, name: str
) -> None:
    connection.execute("ALTER TABLE t RENAME v TO val").fetchall()
    program = ucle.einsum_program("y[i,j] = 2 * A[i,j]", A="t", database=connection)
    run(program)
    with program.execute() as result:
        before = result["y"].to_numpy()
        result["y"].to_table(name, mode="replace")
    with program.execute() as result:
        assert np.array_equal(result["y"].to_numpy(), 2 * before)


Change = Callable[[duckdb.DuckDBPyConnection], object]


def sql(*statements: str) -> Change:
    def change(connection: duckdb.DuckDBPyConnection) -> None:
        for statement in statements:
            connection.execute(statement).fetchall()

    return change


def by_a_cursor(connection: duckdb.DuckDBPyConnection) -> None:
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM t WHERE i = 4").fetchall()


def by_a_thread(connection: duckdb.DuckDBPyConnection) -> None:
    thread = threading.Thread(target=by_a_cursor, args=(connection,))
    thread.start()
    thread.join()


def by_appending(connection: duckdb.DuckDBPyConnection) -> None:
    connection.append("t", pa.table({"i": [4], "j": [5], "v": [0.5]}).to_pandas())


CHANGES: dict[str, Change] = {
    "deleted": sql("DELETE FROM t WHERE i = 4"),
    "updated": sql("UPDATE t SET v = 0 WHERE i = 4"),
    "updated twice": sql("UPDATE t SET v = 5 WHERE i = 4", "UPDATE t SET v = 0 WHERE i = 4"),
    "exchanged": sql("DELETE FROM t WHERE i = 4", "INSERT INTO t VALUES (5, 0, 2), (5, 3, 2)"),
    "created again": sql(EDGES.replace("WHERE", "WHERE i <> 4 AND")),
    "committed": sql("BEGIN", "DELETE FROM t WHERE i = 4", "COMMIT"),
    "open": sql("BEGIN", "DELETE FROM t WHERE i = 4"),
    "rolled back": sql("BEGIN", "DELETE FROM t WHERE i = 4", "ROLLBACK"),
    "shadowed": sql("CREATE TEMP TABLE t AS SELECT 3::INT i, 8::INT j, 2.0 v"),
    "elsewhere": sql(
        "CREATE SCHEMA s", "CREATE TABLE s.t AS FROM main.t WHERE i > 4", "SET search_path = 's'"
    ),
    "cursor": by_a_cursor,
    "thread": by_a_thread,
    "append": by_appending,
}


@pytest.mark.sample(2)
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("again", [False, True])
def test_whatever_runs_is_noticed(
    change: str, again: bool, connection: duckdb.DuckDBPyConnection
) -> None:
    """Also in a transaction that goes on, and between executions whose results are held."""
    bounds = ucle.table("t", bounds=(9, 9))
    program = ucle.einsum_program(TEXT, A=bounds, database=connection)
    held = [program.execute() for _ in range(3)]
    CHANGES[change](connection)
    if again:
        for result in held:
            result.close()
    for _ in range(2):
        with (
            ucle.einsum_program(TEXT, A=bounds, database=connection).execute() as expected,
            program.execute() as result,
        ):
            assert str(result["y"].fill) == str(expected["y"].fill)
            np.testing.assert_array_equal(result["y"].to_numpy(), expected["y"].to_numpy())


@pytest.mark.sample(2)
@pytest.mark.parametrize("change", CHANGES)
def test_whatever_runs_after_a_compilation_is_noticed(
    change: str, connection: duckdb.DuckDBPyConnection
) -> None:
    bounds = ucle.table("t", bounds=(9, 9))
    program = ucle.einsum_program(TEXT, A=bounds, database=connection)
    CHANGES[change](connection)
    for made in (program, ucle.einsum_program(TEXT, A=bounds, database=connection)):
        with made.execute() as result:
            found = result["y"].to_numpy()
        rows = connection.execute("FROM t").fetchall()
        matrix = np.zeros((9, 9))
        for i, j, v in rows:
            matrix[i, j] = v
        with np.errstate(invalid="ignore"):
            np.testing.assert_array_equal(found, matrix / matrix.sum(axis=1, keepdims=True))


@pytest.mark.parametrize("after", ["compiling", "running"])
def test_a_transaction_that_was_open_while_a_program_was_compiled(
    after: str, connection: duckdb.DuckDBPyConnection
) -> None:
    with connection.cursor() as cursor:
        cursor.execute("BEGIN; DELETE FROM t WHERE i = 4").fetchall()
        program = ucle.einsum_program(TEXT, A="t", database=connection)
        if after == "running":
            run(program)
        cursor.execute("COMMIT").fetchall()
        with program.execute() as result:
            assert np.isnan(result["y"].to_numpy()[4]).all()


@numbered
def test_a_table_that_is_written_is_looked_at(
    connection: duckdb.DuckDBPyConnection, looks: list[int]
) -> None:
    connection.execute("ALTER TABLE t RENAME v TO val").fetchall()
    program = ucle.einsum_program("y[i,j] = 2 * A[i,j]", A="t", database=connection)
    run(program)
    looks.clear()
    with program.execute() as result:
        result["y"].to_table("t", mode="replace")
    assert not looks
    run(program)
    assert looks


@numbered
def test_a_table_that_is_written_is_looked_up_again(
    connection: duckdb.DuckDBPyConnection,
) -> None:
    """A name that meant a table of another place means the new one."""
    sql("CREATE SCHEMA s", "SET search_path = 's,main'")(connection)
    program = ucle.einsum_program("y[i,j] = 2 * A[i,j]", A="t", database=connection)
    with program.execute() as result:
        twice = result["y"].to_numpy()
        result["y"].to_table("s.t")
    other = ucle.table("t", value="val")
    with ucle.einsum_program("y[i,j] = 2 * A[i,j]", A=other, database=connection).execute() as new:
        assert np.array_equal(new["y"].to_numpy(), 2 * twice)


@pytest.mark.sample(2)
@pytest.mark.parametrize("closed", [False, True])
def test_a_transaction_that_was_open_before(
    closed: bool, connection: duckdb.DuckDBPyConnection
) -> None:
    """A cursor began it before anybody looked, and commits it when everything seems quiet."""
    program = ucle.einsum_program(TEXT, A="t", database=connection)
    run(program)
    with connection.cursor() as cursor:
        cursor.execute("BEGIN; DELETE FROM t WHERE i = 4").fetchall()
        held = [program.execute() for _ in range(3)]
        if closed:
            for result in held:
                result.close()
        cursor.execute("COMMIT").fetchall()
        with program.execute() as result:
            assert np.isnan(result["y"].to_numpy()[4]).all()


@pytest.mark.sample(2)
@pytest.mark.parametrize("inside", ["SELECT 1", "DELETE FROM t WHERE i = 4"])
def test_results_that_go_within_a_transaction(
    inside: str, connection: duckdb.DuckDBPyConnection
) -> None:
    """Their tables are dropped in it, which takes no number of its own."""
    program = ucle.einsum_program(TEXT, A="t", database=connection)
    for statements in (("BEGIN", inside), ("BEGIN",)):
        held = [program.execute() for _ in range(3)]
        sql(*statements)(connection)
        for result in held:
            result.close()
        sql("DELETE FROM t WHERE i = 4", "COMMIT")(connection)
        with program.execute() as result:
            assert np.isnan(result["y"].to_numpy()[4]).all()
        sql(EDGES)(connection)


@numbered
@pytest.mark.parametrize(
    "statement",
    [
        "SELECT 1",
        "USE memory.main",
        "SET search_path = 'main'",
        "SET threads = 2",
        "CREATE TEMP VIEW t AS SELECT 1",
        "ATTACH ':memory:' AS other",
        "CREATE MACRO one() AS 1",
        "UPDATE t SET v = 3",
        "PREPARE p AS DELETE FROM t",
        "EXPLAIN FROM t",
        "CHECKPOINT",
    ],
)
def test_statements_are_numbered(statement: str) -> None:
    """DuckDB numbers statements as `ucle.database.change_detection` expects."""

    def ask() -> int:
        ((number,),) = connection.execute("SELECT txid_current()").fetchall()
        return int(number)

    with ucle.connect() as connection:
        connection.execute(EDGES).fetchall()
        assert ask() + 1 == ask()
        before = ask()
        connection.execute(statement).fetchall()
        assert ask() == before + 2
