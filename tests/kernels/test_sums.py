"""Sums of many terms: float32 as accurate as NumPy's, int64 exact wherever the sum fits."""

from __future__ import annotations

import duckdb
import numpy as np
import pytest
from kernel_routes import Route, from_sql

TERMS = 1 << 20
TENTHS = f"full_f32({TERMS}, 0.1::FLOAT)"
ONES = f"full_f32({TERMS}, 1)"
LARGE = 2**62

DENSE = {
    "ein1_sca_f32('i->', [{n}], {x})": 1,
    "ein1_f32('ij->j', [{half}, 2], {x})": 2,
    "ein1_f32('ijk->k', [1024, {part}, 2], {x})": 2,
    "ein1_f32('ij->i', [2, {half}], {x})": 2,
    "ein1_f32('ijk->j', [{part}, 2, 1024], {x})": 2,
    "ein_sca_f32('i,i->', [{n}], {x}, {one})": 1,
    "ein_f32('ij,i->j', [{half}, 2], {x}, slice_f32({one}, 0, [{half}], [1]))": 2,
    "ein_f32('sum.least i,i->', [{n}], {x}, {one})": 1,
    "inner_prod_f32({x}, {one})": 1,
    "mat_vec_mult_f32({x}, {one})": 1,
    "vec_mat_mult_f32({x}, {one})": 1,
    "vec_mat_mult_f32(slice_f32({one}, 0, [{half}], [1]), {x})": 2,
    "mat_mat_mult_f32(slice_f32({one}, 0, [{half}], [1]), {x}, {half})": 2,
    "mat_mat_mult_f32({one}, {x}, {half})": 2,
    "ein1_sca_c64('i->', [{n}], vec_cast_f32_c64({x}))": 1,
}


@pytest.mark.sample(None)
@pytest.mark.parametrize("expression", DENSE)
def test_dense_sums_of_float32_keep_their_digits(route: Route, expression: str) -> None:
    entries = TERMS // DENSE[expression]
    call = expression.format(n=TERMS, half=TERMS // 2, part=TERMS // 2048, x=TENTHS, one=ONES)
    ((got,),) = route.connection.execute(f"SELECT {call}").fetchall()
    got = from_sql(got, "f32")
    np.testing.assert_allclose(got, np.float32(0.1) * np.float64(entries), rtol=1e-5)


AGGREGATES = (
    ("sum_vec_f32", ["x"]),
    ("sum_vec_sca_mult_f32", ["x", "1::FLOAT"]),
    ("sum_vec_mult_f32", ["x", "one"]),
    ("sum_outer_prod_f32", ["x", "sca_to_vec_f32(1)"]),
    ("sum_vec_mat_mult_f32", ["sca_to_vec_f32(1)", "x"]),
    ("sum_mat_vec_mult_f32", ["x", "sca_to_vec_f32(1)"]),
    ("sum_mat_mat_mult_f32", ["x", "sca_to_vec_f32(1)", "1"]),
    ("sum_ein_f32", ["'ij,j->j'", "[1, 2]", "x", "one"]),
    ("sum_ein1_f32", ["'ij->j'", "[1, 2]", "x"]),
)


@pytest.mark.parametrize(("name", "arguments"), AGGREGATES)
def test_sums_of_float32_over_rows_keep_their_digits(
    route: Route, name: str, arguments: list[str]
) -> None:
    rows = 200_000
    for length in (2, None):
        ((got,),) = route.connection.execute(
            f"""SELECT {route.call(name, length, arguments)} FROM (SELECT i,
            full_f32(2, 0.1::FLOAT) AS x, full_f32(2, 1) AS one FROM range({rows}) t(i))"""
        ).fetchall()
        expected = np.float32(0.1) * np.float64(rows)
        np.testing.assert_allclose(from_sql(got, "f32"), [expected] * 2, rtol=1e-5)


EXACT = (
    f"ein1_sca_i64('i->', [3], pack_i64([{LARGE}, {LARGE}, -{LARGE}]))",
    f"ein_sca_i64('i,i->', [3], pack_i64([{LARGE}, {LARGE}, -{LARGE}]), full_i64(3, 1))",
    f"ein_sca_i64('i,i->', [2], pack_i64([{LARGE}, {LARGE // 4}]), pack_i64([4, -12]))",
    f"ein_sca_i64('sum.greatest i,i->', [3], pack_i64([{LARGE}, {LARGE}, -{LARGE}]), "
    f"full_i64(3, -{LARGE}))",
    f"element_i64(ein1_i64('ij->j', [3, 1], pack_i64([{LARGE}, {LARGE}, -{LARGE}])), 0)",
    f"inner_prod_i64(pack_i64([{LARGE}, {LARGE}, -{LARGE}]), full_i64(3, 1))",
    f"element_i64(mat_vec_mult_i64(pack_i64([{LARGE}, {LARGE}, -{LARGE}]), full_i64(3, 1)), 0)",
    f"element_i64(vec_mat_mult_i64(pack_i64([{LARGE}, {LARGE}, -{LARGE}]), full_i64(3, 1)), 0)",
    f"element_i64(mat_mat_mult_i64(pack_i64([{LARGE}, {LARGE}, -{LARGE}]), full_i64(3, 1), 3), 0)",
)


@pytest.mark.sample(None)
@pytest.mark.parametrize("expression", EXACT)
def test_dense_sums_of_int64_may_overflow_in_between(route: Route, expression: str) -> None:
    assert route.connection.execute(f"SELECT {expression}").fetchall() == [(LARGE,)]


AGGREGATES_I64 = (
    ("sum_vec_i64", ["x"]),
    ("sum_vec_sca_mult_i64", ["x", "1"]),
    ("sum_vec_mult_i64", ["x", "one"]),
    ("sum_outer_prod_i64", ["x", "sca_to_vec_i64(1)"]),
    ("sum_vec_mat_mult_i64", ["sca_to_vec_i64(1)", "x"]),
    ("sum_mat_vec_mult_i64", ["x", "sca_to_vec_i64(1)"]),
    ("sum_mat_mat_mult_i64", ["x", "sca_to_vec_i64(1)", "1"]),
    ("sum_ein_i64", ["'ij,j->j'", "[1, 2]", "x", "one"]),
    ("sum_ein1_i64", ["'ij->j'", "[1, 2]", "x"]),
)


@pytest.mark.sample(None)
@pytest.mark.parametrize(("name", "arguments"), AGGREGATES_I64)
def test_sums_of_int64_over_rows_may_overflow_in_between(
    route: Route, name: str, arguments: list[str]
) -> None:
    """Eight large numbers, seven negative ones, and 5 from every other row."""
    for length in (2, None):
        query = f"""SELECT {route.call(name, length, arguments)} FROM (SELECT i,
            full_i64(2, CASE WHEN i < 8 THEN {LARGE} WHEN i < 15 THEN -{LARGE} ELSE 5 END) AS x,
            full_i64(2, 1) AS one FROM range(3000) t(i))"""
        ((got,),) = route.connection.execute(query).fetchall()
        assert list(from_sql(got, "i64")) == [LARGE + 5 * 2985] * 2
        with pytest.raises(duckdb.Error, match=f"{name}: int64 overflow"):
            route.connection.execute(query.replace("i < 15", "i < 9")).fetchall()


def test_totals_meet_in_windows_and_on_threads() -> None:
    """Segment trees finish and combine the same states again and again."""
    connection = Route("extension").connection
    connection.execute(
        f"""CREATE TABLE t AS SELECT i, full_f32(3, 0.1::FLOAT) AS x,
        full_i64(3, CASE WHEN i % 3 = 1 THEN -2 * {LARGE} ELSE {LARGE} END) AS n
        FROM range(300_000) t(i)"""
    )
    ((f, n),) = connection.execute("SELECT sum_vec_f32_8(x), sum_vec_i64_8(n) FROM t").fetchall()
    np.testing.assert_allclose(from_sql(f, "f32"), np.float32(0.1) * np.float64(300_000), rtol=1e-5)
    assert list(from_sql(n, "i64")) == [0, 0, 0]
    rows = connection.execute(
        """SELECT sum_vec_f32_8(x) OVER w, sum_vec_i64_8(n) OVER w FROM t WHERE i < 3000
        WINDOW w AS (ORDER BY i ROWS 999 PRECEDING) ORDER BY i"""
    ).fetchall()
    for f, n in rows[999::3]:
        np.testing.assert_allclose(from_sql(f, "f32"), np.float32(0.1) * 1000, rtol=1e-5)
        assert from_sql(n, "i64")[0] in (0, LARGE, -LARGE, 2 * -LARGE)
