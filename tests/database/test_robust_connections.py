"""Connections with settings of their own: what Arrow hands over, what is left as it was."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.testing import assert_array_equal

import ucle
from ucle.database.engine_errors import error_text, execution_error
from ucle.errors import DatabaseError, InputError, MemoryLimitError, NumberRangeError
from ucle.udf_kernels import kernels

ARROW_SETTINGS = (
    "arrow_output_version = '1.4'",
    "arrow_lossless_conversion = true",
    "arrow_output_list_view = true",
    "arrow_large_buffer_size = true",
    "produce_arrow_string_view = true",
)
TYPES = ("float64", "float32", "int64", "bool", "complex128", "complex64")


def with_settings(connection: duckdb.DuckDBPyConnection) -> None:
    for setting in ARROW_SETTINGS:
        known = connection.execute(
            "SELECT count(*) FROM duckdb_settings() WHERE name = ?", [setting.split(" ")[0]]
        ).fetchall()
        if known == [(1,)]:
            connection.execute(f"SET {setting}")


def test_rows_of_a_group_stay_together(connection: duckdb.DuckDBPyConnection) -> None:
    """DuckDB 2.0 aggregates each list of a GROUP BY below the join that it is made of."""
    program = ucle.einsum_program(
        "T[i,k] += min(A[i,k,n], B[m,k])",
        A=np.array([[[4.0, 5.0]]]),
        B=np.array([[8.0], [0.0]]),
        database=connection,
        decomposition={"T": ["k", "n", "m"]},
    )
    with program.execute(connection) as result:
        assert_array_equal(result["T"].to_numpy(), [[9.0]])


def test_no_kernel_takes_two_lists_of_a_group() -> None:
    for kernel in kernels().values():
        given = kernel.arrow_parameters
        gathered = [kind for kind in given if kind.endswith("[]") and kind not in kernel.parameters]
        if kernel.is_aggregate:
            assert len(given) == len(kernel.parameters) - sum(kernel.gathered) + 1
            assert len(gathered) == 1 or any(kernel.gathered), kernel.name


@pytest.mark.sample(3)
@pytest.mark.parametrize("dtype", TYPES)
def test_arrow_types_of_a_session_do_not_matter(
    dtype: str, fresh: duckdb.DuckDBPyConnection
) -> None:
    with_settings(fresh)
    rng = np.random.default_rng(0)
    a, b = (rng.integers(0, 3, shape).astype(dtype) for shape in ((3, 4), (4, 5)))
    plain = np.int64 if dtype == "bool" else a.dtype
    expected = a.astype(plain) @ b.astype(plain)
    for promoted in ([], ["j"], ["i", "k"], ["i", "j"]):
        program = ucle.einsum_program(
            "T[i,k] += A[i,j] * B[j,k]; M[i,j] = A[i,j] == A[i,j]",
            A=a,
            B=b,
            database=fresh,
            decomposition={"T": promoted},
        )
        with program.execute(fresh) as result:
            assert_array_equal(result["T"].to_numpy(), expected)
            assert_array_equal(result["M"].to_numpy(), np.ones((3, 4), bool))
            assert_array_equal(result["T"].to_scipy().toarray(), expected)
            assert result["T"].to_arrow().num_rows == len(result["T"].relation.fetchall())


def test_slices_and_single_rows_of_large_tensors(
    fresh: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Offsets of Arrow's BLOBs have 32 bits; whoever set them to 64 keeps that."""
    a = np.arange(24.0).reshape(6, 4)
    program = ucle.einsum_program(
        "T[i,k] += A[i,j] * B[j,k]", A=a, B=np.eye(4), database=fresh, decomposition={"T": ["i"]}
    )
    fresh.execute("SET arrow_large_buffer_size = true")
    reading = import_module("ucle.run.read_tuples")
    with program.execute(fresh) as result:
        for name, most in {"SLICE_BYTES": 100, "LARGEST_BATCH": 31}.items():
            monkeypatch.setattr(reading, name, most)
            assert_array_equal(result["T"].to_numpy(), a)
            assert_array_equal(result["T"].entries()["val"].to_numpy(), a[a != 0])
    assert fresh.execute("SELECT current_setting('arrow_large_buffer_size')").fetchall() == [
        (True,)
    ]


def test_kernels_stay_where_no_more_extensions_are_allowed() -> None:
    with ucle.connect() as connection:
        allowed = connection.execute("SELECT current_setting('allow_unsigned_extensions')")
        assert allowed.fetchall() == [(False,)]
        program = ucle.einsum_program("y[i] += A[i,j]", A=np.eye(3), database=connection)
        assert program.with_decomposition({"y": []}).route == "native"
        other = connection.cursor()
        again = ucle.einsum_program("y[i] += A[i,j]", A=np.eye(3), database=other)
        assert again.with_decomposition({"y": []}).route == "native"


def test_a_view_that_fails_says_where(connection: duckdb.DuckDBPyConnection) -> None:
    words = "(VALUES (1, 'x'), (2, '3')) words(i, v)"
    connection.execute(f"CREATE TEMP VIEW failing AS SELECT i, v::DOUBLE AS v FROM {words}")
    connection.execute("CREATE TEMP MACRO broken(x) AS CASE WHEN x > 1 THEN error('no') ELSE x END")
    connection.execute(f"CREATE TEMP VIEW raising AS SELECT i, broken(i)::DOUBLE AS v FROM {words}")
    for name in ("failing", "raising"):
        with pytest.raises(InputError, match=f"input A.*{name}") as caught:
            ucle.einsum_program("y[i] += A[i]", A=name, database=connection)
        assert isinstance(caught.value.__cause__, duckdb.Error)


def test_memory_that_ends_at_compilation_is_its_own_error() -> None:
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE a AS SELECT range AS i, 1.0 AS v FROM range(3000000)")
        connection.execute("SET memory_limit = '40MB'; SET max_temp_directory_size = '0KB'")
        connection.execute(
            "CREATE VIEW w AS SELECT list(i)[1] AS i, 1.0 AS v FROM a GROUP BY i + 0"
        )
        with pytest.raises(MemoryLimitError, match="input A, w"):
            ucle.einsum_program("y[i] += A[i]", A="w", database=connection)


def test_damaged_files_are_called_so(tmp_path: Path) -> None:
    """Their errors speak of blocks and ranges; neither is a lock or a number."""
    database, parquet = tmp_path / "b-lock.duckdb", tmp_path / "overflow.parquet"
    database.write_bytes(b"no database " * 1000)
    with pytest.raises(DatabaseError, match="cannot be opened") as caught:
        ucle.einsum_program("y[i] += A[i]", A="a", database=database)
    assert "lock" not in caught.value.message
    pq.write_table(
        pa.table({"i": range(5000), "v": np.random.default_rng(0).random(5000)}), parquet
    )
    whole = bytearray(parquet.read_bytes())
    whole[100:3000] = bytes(255 - byte for byte in whole[100:3000])
    parquet.write_bytes(whole)
    with pytest.raises(InputError, match="input A") as caught_too:
        ucle.einsum_program("y[i] += A[i]", A=str(parquet))
    assert not isinstance(caught_too.value, NumberRangeError)


def test_a_database_that_is_locked_is_called_so(tmp_path: Path) -> None:
    path = tmp_path / "a.duckdb"
    holder = "import sys, duckdb; c = duckdb.connect(sys.argv[1]); print(1, flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", holder, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        with pytest.raises(DatabaseError, match="locked by another process"):
            ucle.einsum_program("y[i] += A[i]", A="a", database=path)
        process.communicate(b"\n")


def test_views_leave_no_transaction_behind(fresh: duckdb.DuckDBPyConnection) -> None:
    fresh.execute("CREATE TABLE a AS SELECT range AS i, 1.0 AS v FROM range(3)")
    program = ucle.einsum_program(
        "y[i] = 2 * A[i]", A="a", database=fresh, decomposition="relational"
    )

    class Interrupted(BaseException):
        pass

    def interrupt(*_: object) -> None:
        raise Interrupted

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ucle.database.session.Session.run", interrupt)
        with pytest.raises(Interrupted):
            program.create_views(fresh)
    fresh.execute("BEGIN")  # which fails within a transaction
    fresh.execute("ROLLBACK")


def test_results_of_a_closed_connection(fresh: duckdb.DuckDBPyConnection) -> None:
    result = ucle.einsum_program("y[i] += A[i,j]", A=np.eye(3), database=fresh).execute()
    fresh.close()
    for read in (result["y"].to_numpy, result["y"].to_arrow, lambda: result["y"].relation):
        with pytest.raises(DatabaseError, match="result y"):
            read()


def test_errors_in_json_are_read(connection: duckdb.DuckDBPyConnection) -> None:
    error = duckdb.Error(
        '{"exception_type": "Invalid Input", "exception_message": "int64 overflow"}'
    )
    assert error_text(error) == "Invalid Input Error: int64 overflow"
    assert isinstance(execution_error(error, "here"), NumberRangeError)


def test_a_second_connection_to_a_file_can_be_used_at_once(tmp_path: Path) -> None:
    """Nothing that was asked for while it was opened is left over."""
    with ucle.connect(tmp_path / "a.duckdb") as one, ucle.connect(tmp_path / "a.duckdb") as other:
        assert other.sql("SELECT 1").fetchall() == [(1,)]
        assert one.sql("SELECT 2").fetchall() == [(2,)]
