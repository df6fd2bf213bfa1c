"""Kernels called by hand: right in windows and with ORDER BY, bounded, and ended by Ctrl-C."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

import duckdb
import pytest
from kernel_routes import Route

from ucle.udf_kernels.native import load_module

ENDLESS = {
    "product": "SELECT ein_sca('i,j->', [4000000, 4000000], full(4000000, x), full(4000000, 1))"
    " FROM (SELECT 1.0 + i FROM range(1) t(i)) s(x)",
    "forest": "SELECT octet_length(forest(full(4000000, x), forest_pack("
    "pack([16.0 * (i % 6 = 4)::INT for i in range(36000)]), 1, 1)))"
    " FROM (SELECT 1.0 + i FROM range(1) t(i)) s(x)",
}
"""Not of constants alone: DuckDB evaluates these while it plans the query, takes no notice of the
error, and evaluates them again in later passes, which one interruption each ends."""

CALLS = (
    "{0}(b ORDER BY i) FROM t GROUP BY g",
    "{0}(b ORDER BY i % 5, i) FILTER (i > 90) FROM t GROUP BY GROUPING SETS ((g), (g, i % 2), ())",
    "{0}(b) OVER () FROM t",
    "{0}(b) OVER (PARTITION BY g) FROM t",
    "{0}(b) FILTER (i % 3 = 1) OVER (PARTITION BY g) FROM t",
    "{0}(DISTINCT b) OVER (PARTITION BY g) FROM t",
    "{0}(b) OVER (PARTITION BY g ORDER BY i ROWS BETWEEN 9 PRECEDING AND 2 FOLLOWING) FROM t",
    "{0}(b) OVER (ORDER BY i ROWS UNBOUNDED PRECEDING EXCLUDE CURRENT ROW) FROM t WHERE i < 99",
    "{0}(b ORDER BY i DESC) OVER (PARTITION BY g) FROM t WHERE i < 900",
    "{0}(DISTINCT b) FROM t GROUP BY g",
    "{0}(b) FROM t WHERE i < 0",
)


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("suffix", ["8", "wide"])
def test_aggregates_are_right_wherever_duckdb_calls_them(call: str, suffix: str) -> None:
    connection = Route("extension").connection
    connection.execute(
        "CREATE TABLE t AS SELECT i, i % 7 AS g, CASE WHEN i % 11 <> 3 THEN i % 1000 END AS x,"
        " CASE WHEN i % 11 <> 3 THEN sca_to_vec(i % 1000) END AS b FROM range(5000) s(i)"
    )
    got, expected = (
        sorted(
            (row[0] is not None, row[0] or 0)
            for row in connection.execute(f"SELECT {query}").fetchall()
        )
        for query in (
            f"element(v, 0) FROM (SELECT {call.format(f'sum_vec_{suffix}')}) u(v)",
            f"v FROM (SELECT {call.format('sum').replace('b', 'x', 1)}) u(v)"
            if "DISTINCT b" not in call
            else f"v FROM (SELECT {call.format('sum').replace('DISTINCT b', 'DISTINCT x')}) u(v)",
        )
    )
    assert got == expected


@pytest.mark.sample(None)
@pytest.mark.parametrize(
    "expression",
    [
        "ein('ij,jk->ik', [16000, 0, 16000], '', '')",
        "ein1('ij->i', [400000000, 0], '')",
        """tape('ein("ij,jk->ik",[16000 0 16000],$0,$1);return $2', ''::BLOB, ''::BLOB)""",
        "csr_empty(4000000000, 1)",
        "slice(pack([1]), 0, [400000000], [0])",
        "ein('ij,jk->ik', [1000000000, 0, 1000000000], '', '')",
    ],
)
def test_nothing_large_is_made_of_nothing(route: Route, expression: str) -> None:
    with pytest.raises(duckdb.Error, match="expected"):
        route.connection.execute(f"SELECT {expression}").fetchall()


def test_a_product_of_nothing_ends_at_once(route: Route) -> None:
    for k in (2**63 - 1, 2**40, 0):
        statement = f"SELECT mat_mat_mult(''::BLOB, ''::BLOB, {k})"
        assert route.connection.execute(statement).fetchall() == [(b"",)]


def test_strides_of_axes_of_size_one_are_nobodys(route: Route) -> None:
    for stride in (2**62, -(2**63), 2**63 - 1):
        statement = f"SELECT vec_to_list(slice(pack([1, 2]), 1, [1, 1], [{stride}, {stride}]))"
        assert route.connection.execute(statement).fetchall() == [([2.0],)]


def test_index_maps_at_the_ends_of_64_bits(route: Route) -> None:
    """Nothing leaves them on its way, which the sanitizer build would tell."""
    least = -(2**63)
    remainder = [1, 2, 1, 3, 1, 0, 0, 1, 3, 1, 0, 1, 0, 1, 0]  # v[least % 3], twice
    stride = [1, 2, 1, 1, 2**62, 4, 0]  # v[4 * i] along an axis of one position
    for constants, program, expected in (
        ([0, least], remainder, [20.0, 20.0]),
        ([0], stride, [10.0, -1.0]),
    ):
        call = f"reindex(pack([10, 20, 30]), {constants}::BIGINT[], {program}::BIGINT[], -1)"
        assert route.connection.execute(f"SELECT vec_to_list({call})").fetchall() == [(expected,)]
    later = [1, 2, 1, 3, 1, 0, 0, 2, 3, 0, 1, 2, 0, 1, 2, 1, 1, 1, 0, 1, 0]
    with pytest.raises(duckdb.Error, match="digits to be complete"):
        route.connection.execute(f"SELECT reindex(pack([10, 20, 30]), [0, 0, 0], {later}, -1)")


def test_operations_are_listed_to_the_last(route: Route) -> None:
    for call in (
        "csr_mat('no', ''::BLOB, ''::BLOB, 1)",
        "ein('no i,i->', [1, 1], ''::BLOB, ''::BLOB)",
    ):
        with pytest.raises(duckdb.Error, match=r"nextafter\)"):
            route.connection.execute(f"SELECT {call}").fetchall()


@pytest.mark.sample(1)
def test_memory_that_duckdb_does_not_see_is_bounded(route: Route) -> None:
    lib = load_module().lib
    before = lib.ucle_memory_held()
    states = route.call("sum_vec", None, ["full(2000000, i)"])
    tape = "tape('vec_neg($0);vec_neg($1);return $2', full(1000000, 1))[1]"
    with route.limited(40_000_000) as connection:
        if route.name == "extension":
            with pytest.raises(duckdb.Error, match=r"may hold at a time \(40000000 bytes"):
                connection.execute(f"SELECT {states} FROM range(8) t(i) GROUP BY i").fetchall()
        with pytest.raises(duckdb.Error, match="at most 268435456 bytes in one batch"):
            connection.execute("SELECT full(12000000, i) FROM range(3) t(i)").fetchall()
    refused = pytest.raises(duckdb.Error, match=r"may hold at a time \(12000000 bytes")
    with route.limited(12_000_000) as connection, refused:
        connection.execute(f"SELECT {tape}").fetchall()
    query = f"SELECT octet_length({tape}), octet_length({states}) FROM range(1) t(i)"
    assert route.connection.execute(query).fetchall()
    assert lib.ucle_memory_held() == before


@pytest.mark.slow
@pytest.mark.parametrize("endless", ENDLESS)
@pytest.mark.parametrize("name", ["extension", "arrow"])
def test_ctrl_c_ends_a_long_call(name: str, endless: str) -> None:
    script = (
        "import duckdb, sys\n"
        "from ucle.udf_kernels import load_extension, register_arrow\n"
        "c = duckdb.connect(config={'allow_unsigned_extensions': 'true', 'threads': '2'})\n"
        f"{'load_extension' if name == 'extension' else 'register_arrow'}(c)\n"
        "print('ready', flush=True)\n"
        f'try: c.execute("""{ENDLESS[endless]}""").fetchall()\n'
        "except (KeyboardInterrupt, duckdb.Error) as error: print(type(error).__name__)\n"
        "print('still here')\n"
    )
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    try:
        for _ in range(60):  # the signal may come before the call, which then is not begun
            time.sleep(1)
            process.send_signal(signal.SIGINT)
            if process.poll() is not None:
                break
        out, _ = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode in (0, 1, -signal.SIGINT)
    assert "still here" in out or out == ""
