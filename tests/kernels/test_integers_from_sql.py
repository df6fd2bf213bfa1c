"""Integers that SQL hands to kernels: whatever they are, the process lives, within its memory.

A sample runs here; `UCLE_FUZZ_CALLS` of 100 or more has every integer argument of every kernel get
every one of them, alone and with others, as `make sanitize` asks for.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import duckdb
import pytest
from kernel_routes import EXTENSION_CONFIG

from ucle.udf_kernels import load_extension, native

WHOLE = int(os.environ.get("UCLE_FUZZ_CALLS", "4")) >= 100
SCRIPT = Path(__file__).with_name("integers_from_sql.py")


@pytest.mark.turns(3)
@pytest.mark.sample(1)
@pytest.mark.parametrize("name", ["extension", "arrow"])
def test_any_integers(name: str) -> None:
    how_many = 0 if WHOLE else 150
    done = subprocess.run(
        [sys.executable, str(SCRIPT), name, str(how_many), "7"],
        capture_output=True,
        text=True,
        check=False,
    )
    lines = done.stdout.splitlines()
    assert done.returncode == 0, (done.returncode, lines[-1:], done.stderr[-2000:])
    answered, refused = map(int, lines[-1].split())
    assert min(answered, refused) > (len(lines) - 1) / 10, "too wild, or too tame"


TOP = "top_max_8(''::BLOB, 0, {k}) OVER (ORDER BY i ROWS BETWEEN 99 PRECEDING AND CURRENT ROW)"


def test_lists_of_no_lanes() -> None:
    """Nothing is divided by twice a number that has no double."""
    with duckdb.connect(config=EXTENSION_CONFIG) as connection:
        load_extension(connection)
        for k in (2**63 - 1, 2**62, 2**31, 2**28):
            query = f"SELECT count(x) FROM (SELECT {TOP.format(k=k)} x FROM range(200) t(i))"
            with pytest.raises(duckdb.Error, match="expected a number of entries of at most"):
                connection.execute(query).fetchall()
        query = f"SELECT count(x) FROM (SELECT {TOP.format(k=2**28 - 1)} x FROM range(200) t(i))"
        assert connection.execute(query).fetchall() == [(200,)]


def test_rows_of_a_group_agree_on_how_many() -> None:
    """Two lists of one entry are as long as one list of two."""
    with duckdb.connect(config=EXTENSION_CONFIG) as connection:
        load_extension(connection)
        for call in (
            "top_max_8(CASE WHEN i = 0 THEN pack([1, 2]) ELSE pack([3]) END, i, i + 1)",
            "stack_sca_8(1, i, 4, i)",
            "stack_sca_wide(1, i, 4, CASE WHEN i = 1 THEN 'nan'::DOUBLE ELSE 0 END)",
        ):
            for rows in (2, 9):
                with pytest.raises(duckdb.Error, match="in all rows of a group"):
                    connection.execute(f"SELECT {call} FROM range({rows}) t(i)").fetchall()


REFUSED = (
    "stack_csr(1.0::DOUBLE, 0, 0, 1000000000, 1, 0.0::DOUBLE)",
    "stack_csr_i64(1, 0, 0, 1000000000, 0, 0)",
    "stack_csr_rows(csr_empty(0, 1), 0, 1000000000, 1)",
    "csr_transpose(csr_empty(0, 1000000000))",
    "octet_length(csr_reduce_cols('max', csr_empty(0, 400000000)))",
    "full(300000000, 0)",
    "csr_empty(17000000, 1)",
)
TAKEN = (
    "mat_inv(''::BLOB, 16384, 16384)",
    "csr_mat('', csr_empty(0, 0), ''::BLOB, 100000000)",
    "csr_mat_i64('', csr_empty(0, 0), ''::BLOB, 9007199254740992)",
    "csr_t_mat_f32('', csr_empty(200, 4294967295), ''::BLOB, 0)",
    "vec_top_max(''::BLOB, 4503599627370496, 512, 9)",
)


def test_asked_before_it_is_filled() -> None:
    """Excessive sizes are refused at once, and empty ones take no memory."""
    with duckdb.connect(config=EXTENSION_CONFIG | {"memory_limit": "300MB"}) as connection:
        load_extension(connection)
        begun = time.process_time()
        for call in REFUSED:
            with pytest.raises(duckdb.Error, match="expected"):
                connection.execute(f"SELECT {call}").fetchall()
        for call in TAKEN:
            connection.execute(f"SELECT {call}").fetchall()
        assert time.process_time() - begun < 1
        # DuckDB 1 never destroys the states of an aggregate that ends with an error.
        left = len(REFUSED) * 1024 if duckdb.__version__.startswith("1.") else 0
        assert native.load_module().lib.ucle_memory_held() <= left


def test_a_limit_belongs_to_its_database() -> None:
    """Another database with less of it, a second connection, a change: each sees its own."""
    states = "SELECT stack_sca_wide(1, i, 500000, 0) x FROM range(20) t(i) GROUP BY i"
    query = f"SELECT sum(octet_length(x)) FROM ({states})"

    def limit(connection: duckdb.DuckDBPyConnection) -> int:
        told = "SELECT kernel_memory_limit(current_setting('memory_limit'))"
        return int(connection.execute(told).fetchall()[0][0])

    with duckdb.connect(config=EXTENSION_CONFIG | {"memory_limit": "4GB"}) as large:
        load_extension(large)
        assert large.execute(query).fetchall() == [(80_000_000,)]
        with duckdb.connect(config=EXTENSION_CONFIG | {"memory_limit": "60MB"}) as small:
            load_extension(small)
            with pytest.raises(duckdb.Error, match="may hold at a time"):
                small.execute(query).fetchall()
            assert large.execute(query).fetchall() == [(80_000_000,)]
        assert large.execute(query).fetchall() == [(80_000_000,)]
        assert limit(large) > 3_900_000_000
        with large.cursor() as second:
            second.execute("SET memory_limit = '64MB'")
            load_extension(second)
        with pytest.raises(duckdb.Error, match="may hold at a time"):
            large.execute(query).fetchall()
        for text in ("much", "", "-1 MB", "1.5", "2 XB"):
            with pytest.raises(duckdb.Error, match="expected a size such as"):
                large.execute("SELECT kernel_memory_limit(?)", [text]).fetchall()


def test_sessions_tell_the_kernels_of_their_databases() -> None:
    """A program runs again after another database was opened with less; and sees a new limit."""
    import numpy as np

    import ucle

    rng = np.random.default_rng(1)
    x = rng.normal(size=(300, 600))
    with ucle.connect(memory_limit="4GB") as large:
        program = ucle.einsum_program("G[i,j] = X[i,k] * X[j,k]", X=x, database=large)
        first = program.execute()["G"].to_numpy()
        ucle.connect(memory_limit="20MB").close()
        assert (program.execute()["G"].to_numpy() == first).all()
        large.execute("SET memory_limit = '3GB'")
        program.execute()
        query = "SELECT sum_vec_wide(full(1, 0)), kernel_memory_limit('1 bytes')"
        assert large.execute(query).fetchall()[0][1] == 1
        program.execute()
        told = large.execute("SELECT csr_nnz(stack_csr(1, 0, 0, 1, 1, 0))").fetchall()
        assert told == [(1,)]
