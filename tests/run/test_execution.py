"""Execution leaves behind what it was asked for, and nothing else, however it ends."""

from __future__ import annotations

import gc
import threading
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from keyboard import interrupting, run_interrupted
from leftovers import temporary_objects

import ucle
from ucle.database.open_sessions import open_session
from ucle.errors import (
    ArgumentError,
    DatabaseError,
    ExecutionError,
    InputError,
    NumberRangeError,
    ReadOnlyError,
    UnsupportedError,
)
from ucle.run.stored_tensor import StoredTensor

RANDOM = np.random.default_rng(7)
A = RANDOM.random((6, 5)) * (RANDOM.random((6, 5)) < 0.5)
B = RANDOM.random((5, 4))
TEXT = "T[i,k] += A[i,j] * B[j,k]; Z[i,k] = relu(T[i,k] - 1)"
EXPECTED = np.maximum(A @ B - 1, 0)
LAYOUTS = ["", "i", "k", "ik"]

SLOW = "s[i,k] += E[i,j] * E[k,j]"


def program_on(connection: Any, promoted: str = "i", **options: Any) -> ucle.EinsumProgram:
    return ucle.einsum_program(
        TEXT, A=A, B=B, database=connection, decomposition={"T": promoted, "Z": promoted}, **options
    )


def make_file(path: Path) -> None:
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE a (i INTEGER, j INTEGER, v DOUBLE)")
        rows = [(int(i), int(j), float(A[i, j])) for i, j in np.argwhere(A)]
        connection.executemany("INSERT INTO a VALUES (?, ?, ?)", rows)


def contents(path: Path) -> Any:
    with duckdb.connect(str(path), read_only=True) as connection:
        tables = connection.execute("SELECT table_name FROM duckdb_tables()").fetchall()
        return tables, connection.execute("FROM a ORDER BY ALL").fetchall()


@pytest.mark.parametrize("promoted", LAYOUTS)
def test_results_in_every_form(promoted: str, connection: duckdb.DuckDBPyConnection) -> None:
    with program_on(connection, promoted).execute() as result:
        z = result["Z"]
        np.testing.assert_allclose(z.to_numpy(), EXPECTED)
        np.testing.assert_allclose(z.to_scipy().toarray(), EXPECTED)
        assert z.stored.columns == [*promoted, "val"]
        for table in z.to_arrow(), z.to_arrow(list(promoted)):
            # Keys and flat lists, put back by hand.
            keys = [axis for axis in range(2) if "ik"[axis] in table.column_names]
            dense = [axis for axis in range(2) if axis not in keys]
            found = np.zeros(z.shape)
            view = found.transpose(keys + dense)
            for *place, value in zip(*(c.to_pylist() for c in table.columns), strict=True):
                view[tuple(place)] = np.reshape(value, [z.shape[axis] for axis in dense])
            np.testing.assert_allclose(found, EXPECTED)
        assert z.to_arrow().column_names == z.relation.columns == list(z.columns)
        assert sorted(z.relation.fetchall()) == sorted(
            tuple(row.values()) for row in z.to_arrow().to_pylist()
        )


@pytest.mark.sample(4)
@pytest.mark.parametrize("promoted", LAYOUTS)
def test_to_table_can_be_read_back(promoted: str, fresh: duckdb.DuckDBPyConnection) -> None:
    with program_on(fresh, promoted).execute() as result:
        z = result["Z"]
        z.to_table("z")
        with pytest.raises(DatabaseError, match="cannot be stored") as caught:
            z.to_table("z")
        assert "replace" in (caught.value.hint or "")
        z.to_table("z", keys=list(promoted), replace=True)
        shape = z.type.dense_shape(z.layout) or None
    stored = ucle.table("z", {x: x for x in promoted}, "val", shape=shape, bounds=EXPECTED.shape)
    labels = ",".join([*promoted, *(x for x in "ik" if x not in promoted)])
    if promoted == "k":
        stored = ucle.table("z", ["k"], "val", shape=shape, bounds=EXPECTED.T.shape)
    again = ucle.einsum_program(f"Y[i,k] = Z[{labels}]", Z=stored, database=fresh)
    with again.execute() as result:
        np.testing.assert_allclose(result["Y"].to_numpy(), EXPECTED)


def test_scipy_needs_fill_zero(native: duckdb.DuckDBPyConnection) -> None:
    program = ucle.einsum_program("E[i,j] = exp(A[i,j])", A=A, database=native)
    with program.execute() as result, pytest.raises(UnsupportedError, match="no scipy"):
        result["E"].to_scipy()


def test_one_number(native: duckdb.DuckDBPyConnection) -> None:
    text = "n = sum[i](x[i]) > 1; m[i,j] = when(x[i] > 5, y[j]); k = x[i]"
    program = ucle.einsum_program(text, x=[3], y=[2.0], database=native)
    with program.execute() as result:
        found = {name: result[name].item() for name in result}
    assert found == {"n": True, "m": 0.0, "k": 3}
    assert [type(found[name]) for name in "nmk"] == [bool, float, int]
    for x in ([1.0, 2.0], np.zeros(0)):
        several = ucle.einsum_program("y[i] = 2 * x[i]", x=x, database=native)
        with several.execute() as result, pytest.raises(ArgumentError, match="not one number"):
            result["y"].item()


@pytest.mark.slow
def test_a_file_stays_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "graph.duckdb"
    make_file(path)
    before, size = contents(path), path.read_bytes()
    program = ucle.einsum_program("T[i,k] += A[i,j] * B[j,k]", A="a", B=B, database=path)
    with program.execute() as result:
        np.testing.assert_allclose(result["T"].to_numpy(), A @ B)
    del result
    gc.collect()
    assert path.read_bytes() == size
    assert contents(path) == before
    assert [file.name for file in tmp_path.iterdir()] == ["graph.duckdb"]
    with program.execute(path) as result:
        result["T"].to_table("t")
    assert ("t",) in contents(path)[0]


def test_a_read_only_file_gives_no_tables(tmp_path: Path) -> None:
    path = tmp_path / "graph.duckdb"
    make_file(path)
    with ucle.connect(path, read_only=True) as connection:
        program = ucle.einsum_program("T[i,k] += A[i,j] * B[j,k]", A="a", B=B, database=connection)
        with program.execute() as result:
            np.testing.assert_allclose(result["T"].to_numpy(), A @ B)
            with pytest.raises(ReadOnlyError):
                result["T"].to_table("t")


@pytest.mark.sample(1)
@pytest.mark.usefixtures("results_in_tables")
@pytest.mark.parametrize("end", ["close", "collect"])
def test_nothing_is_left_after_success(end: str, fresh: duckdb.DuckDBPyConnection) -> None:
    fresh.register("mine", np_table())
    result = program_on(fresh, "").execute()
    assert len(temporary_objects(fresh)) == 2, "what the user registered, and one output"
    if end == "close":
        result.close()
    else:
        del result
        gc.collect()
    assert temporary_objects(fresh) == ["view mine"]


def np_table() -> Any:
    import pyarrow as pa

    return pa.table({"x": [1]})


@pytest.mark.sample(1)
def test_a_busy_connection_drops_later(fresh: duckdb.DuckDBPyConnection) -> None:
    result = program_on(fresh).execute()
    pending = fresh.execute("SELECT * FROM range(1000000)")
    pending.fetchmany(1)
    del result  # DuckDB 2 refuses the DROP while a result is unfinished
    gc.collect()
    fresh.execute("SELECT 1").fetchall()
    program_on(fresh).execute().close()
    assert temporary_objects(fresh) == []


def test_nothing_is_left_after_an_error(fresh: duckdb.DuckDBPyConnection) -> None:
    fresh.execute("CREATE TABLE a (i INTEGER, j INTEGER, v DOUBLE)")
    fresh.execute("INSERT INTO a VALUES (0, 0, 1), (1, 1, 2)")
    fresh.execute(
        "CREATE VIEW fragile AS SELECT i, j, CASE WHEN getvariable('broken') THEN "
        "error('broken on purpose')::DOUBLE ELSE v END AS v FROM a"
    )
    program = ucle.einsum_program(
        "T[i,k] += A[i,j] * B[j,k]; U[i] += T[i,k] * T[i,k]",
        A="fragile",
        B=np.ones((2, 2)),
        database=fresh,
        decomposition={"T": "i"},
    )
    program.execute().close()
    fresh.execute("SET VARIABLE broken = true")
    with pytest.raises(InputError, match="broken on purpose"):
        program.execute()
    assert temporary_objects(fresh) == ["view fragile"]


@pytest.mark.sample(1)
def test_nothing_is_left_after_an_interrupt(fresh: duckdb.DuckDBPyConnection) -> None:
    fresh.execute(
        "CREATE TABLE e AS SELECT (n % 2000)::INTEGER AS i, (n // 2000)::INTEGER AS j, 1.0 AS v "
        "FROM range(4000000) t(n)"
    )
    program = ucle.einsum_program(
        SLOW, E="e", database=fresh, decomposition={"s": "ijk"}, memory_limit="100GB"
    )
    with interrupting(fresh), pytest.raises(ExecutionError, match="Interrupt"):
        program.execute()
    assert temporary_objects(fresh) == []


ENDLESS = """
import ucle

with ucle.connect() as connection:
    connection.execute("SET enable_progress_bar = false")
    connection.execute(
        "CREATE TABLE a AS SELECT (n % 3000)::INT AS i, (n // 3000)::INT AS j, 1.0 AS v "
        "FROM range(9000000) t(n)"
    )
    connection.execute(
        "CREATE TABLE h AS SELECT n::INT AS j, [x::DOUBLE FOR x IN range(8000)] AS v "
        "FROM range(3000) t(n)"
    )
    program = ucle.einsum_program(
        "Z[i,k] max= A[i,j] * H[j,k]",
        A="a",
        H=ucle.table("h", ["j"], "v", shape=(8000,)),
        database=connection,
        decomposition={"Z": ["i", "j"]},
    )
    press_while_it_runs()
    start = time.monotonic()
    try:
        program.execute()
    except KeyboardInterrupt:
        print(time.monotonic() - start, connection.sql("SELECT 42").fetchall())
"""


@pytest.mark.slow
def test_a_key_that_interrupts_ends_a_running_kernel() -> None:
    """Ctrl-C on the native route, while aggregates that would take a minute are at work."""
    seconds, answer = run_interrupted(ENDLESS)
    assert answer == "[(42,)]"
    assert seconds < 20  # the whole program takes a minute or more


def test_a_path_with_the_word_option_is_no_setting(tmp_path: Path) -> None:
    path = tmp_path / "options.duckdb"
    path.write_text("this is not a database, as everyone can see who looks at its first bytes")
    with pytest.raises(DatabaseError, match="cannot be opened"):
        ucle.connect(path)
    with pytest.raises(DatabaseError, match="does not take a setting"):
        ucle.connect(nonsense=3)


def test_inside_a_transaction(fresh: duckdb.DuckDBPyConnection) -> None:
    fresh.execute("BEGIN")
    fresh.execute("CREATE TABLE a AS SELECT 1::INTEGER AS i, 2::INTEGER AS j, 3.0::DOUBLE AS v")
    program = ucle.einsum_program("t[i] += A[i,j]", A="a", database=fresh)
    with program.execute() as result:
        np.testing.assert_array_equal(result["t"].to_numpy(), [0, 3])
    with pytest.raises(ucle.UcleError):
        ucle.einsum_program("t[i] += A[i,j]", A="nowhere", database=fresh)
    fresh.execute("COMMIT")
    assert fresh.execute("FROM a").fetchall() == [(1, 2, 3.0)]
    assert temporary_objects(fresh) == []


def test_inside_a_transaction_an_error_is_the_first_one(fresh: duckdb.DuckDBPyConnection) -> None:
    """A shared step has made a table by then, which went with the transaction."""
    program = ucle.einsum_program(
        "T[i] += A[i,j] * x[j]; U[i,k] = T[i] * T[k]; V[i] = T[i] + 1",
        A=np.full((700, 700), 2**46),
        x=np.full(700, 2**6),
        database=fresh,
        decomposition="relational",
        outputs=["U", "V"],
    )
    assert "T" in {step.tensor for step in program.compiled.physical.steps}
    fresh.execute("BEGIN")
    with pytest.raises(NumberRangeError):
        program.execute(fresh)
    fresh.execute("ROLLBACK")
    assert temporary_objects(fresh) == []


def test_two_threads_run_one_program(connection: duckdb.DuckDBPyConnection) -> None:
    program = program_on(connection)
    wrong: list[Any] = []

    def work() -> None:
        with connection.cursor() as cursor:
            for _ in range(10):
                try:
                    with program.execute(cursor) as result:
                        np.testing.assert_allclose(result["Z"].to_numpy(), EXPECTED)
                except BaseException as error:  # a thread must hand on any
                    wrong.append(error)

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_interrupted_reading_is_an_error_of_ucle(fresh: duckdb.DuckDBPyConnection) -> None:
    """Arrow's reader raises errors of a class of its own, in measurements and in results alike."""
    session = open_session(fresh)
    endless = "SELECT a.range FROM range(100000) a(range), range(100000) b(range)"
    with interrupting(fresh), pytest.raises(ExecutionError, match="Interrupt"):
        for _ in session.batches(f"{endless} WHERE a.range + b.range > 5", 1000):
            pass
    with ucle.einsum_program("y[i] = a[i] + 1", a=np.ones(9), database=fresh).execute() as made:
        tensor = made["y"]
        assert isinstance(tensor, StoredTensor)
        reading = tensor._reading()
        with interrupting(fresh), pytest.raises(ExecutionError, match="Interrupt"), reading:
            for _ in session.reader(f"{endless} WHERE a.range + b.range > 5", 1000):
                pass
