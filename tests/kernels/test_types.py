"""Peculiarities of element types: overflow, casts, bytes of bool, complex parts."""

from __future__ import annotations

import duckdb
import numpy as np
import pytest
from kernel_routes import EXTENSION_CONFIG, Route, from_sql

from ucle.udf_kernels import ELEMENT_TYPES, capacity_suffix, load_extension, typed_name

LARGE = "4611686018427387904"  # 2 ** 62
LEAST = "(-9223372036854775807 - 1)"
NUMBERS = {"c128": "{re: 1, im: 2}", "c64": "{re: 1, im: 2}", "bool": "true"}

OVERFLOWS = (
    f"vec_add_i64(pack_i64([0, {LARGE}]), pack_i64([0, {LARGE}]))",
    f"vec_sub_i64(pack_i64([{LEAST}]), pack_i64([1]))",
    f"vec_mult_i64(pack_i64([{LARGE}, 1]), pack_i64([-4, 1]))",
    "vec_pow_i64(pack_i64([2]), pack_i64([63]))",
    "vec_sca_pow_i64(pack_i64([-3]), 41)",
    f"vec_sca_mult_i64(pack_i64([1, 2]), {LARGE})",
    f"sca_vec_sub_i64({LARGE}, pack_i64([-{LARGE}]))",
    f"vec_abs_i64(pack_i64([{LEAST}]))",
    f"vec_neg_i64(pack_i64([{LEAST}]))",
    "vec_square_i64(pack_i64([3037000500]))",
    f"inner_prod_i64(pack_i64([{LARGE}, 1]), pack_i64([2, 1]))",
    f"outer_prod_i64(pack_i64([{LARGE}]), pack_i64([1, 2]))",
    f"mat_vec_mult_i64(pack_i64([{LARGE}, {LARGE}]), pack_i64([1, 1]))",
    f"vec_mat_mult_i64(pack_i64([1, 1]), pack_i64([{LARGE}, {LARGE}]))",
    f"mat_mat_mult_i64(full_i64(5, {LARGE}), full_i64(5, 1), 5)",
    f"ein_i64('ij,jk->ik', [3, 4, 5], full_i64(12, 1), full_i64(20, {LARGE}))",
    f"ein_i64('sum.greatest i,i->', [2], full_i64(2, 1), full_i64(2, {LARGE}))",
    f"ein_sca_i64('prod.add i,i->', [2], full_i64(2, 1), full_i64(2, {LARGE}))",
    f"ein1_sca_i64('i->', [9], full_i64(9, {LARGE}))",
    f"ein1_i64('prod i->', [9], full_i64(9, {LARGE}))",
)
AGGREGATE_OVERFLOWS = (
    ("sum_vec_i64", [f"full_i64(1, {LARGE})"]),
    ("prod_vec_i64", [f"full_i64(1, {LARGE})"]),
    ("sum_ein_i64", ["'i,i->i'", "[1]", f"full_i64(1, {LARGE})", "full_i64(1, 1)"]),
    ("sum_ein1_i64", ["'i->'", "[1]", f"full_i64(1, {LARGE})"]),
    ("sum_vec_sca_mult_i64", ["pack_i64([1])", LARGE]),
    ("sum_vec_mult_i64", ["pack_i64([1])", f"full_i64(1, {LARGE})"]),
    ("sum_outer_prod_i64", ["pack_i64([1])", f"full_i64(1, {LARGE})"]),
    ("sum_mat_vec_mult_i64", ["pack_i64([1])", f"full_i64(1, {LARGE})"]),
    ("sum_vec_mat_mult_i64", ["pack_i64([1])", f"full_i64(1, {LARGE})"]),
    ("sum_mat_mat_mult_i64", ["pack_i64([1])", f"full_i64(1, {LARGE})", "1"]),
)


@pytest.mark.sample(None)
@pytest.mark.parametrize("expression", OVERFLOWS)
def test_int64_overflow(route: Route, expression: str) -> None:
    name = expression[: expression.index("(")]
    with pytest.raises(duckdb.Error, match=f"{name}: int64 overflow"):
        route.connection.execute(f"SELECT {expression}").fetchall()


@pytest.mark.sample(None)
@pytest.mark.parametrize(("name", "arguments"), AGGREGATE_OVERFLOWS)
def test_int64_overflow_of_aggregates(route: Route, name: str, arguments: list[str]) -> None:
    call = route.call(name, 1, arguments)
    with pytest.raises(duckdb.Error, match=f"{name}: int64 overflow"):
        route.connection.execute(f"SELECT {call} FROM range(3) t(i)").fetchall()


def test_int64_overflow_where_partial_states_meet() -> None:
    connection = duckdb.connect(config=EXTENSION_CONFIG)
    load_extension(connection)
    connection.execute(
        f"CREATE TABLE t AS SELECT full_i64(1, {LARGE} // 200000) AS v FROM range(500000)"
    )
    with pytest.raises(duckdb.Error, match="sum_vec_i64: int64 overflow"):
        connection.execute("SELECT sum_vec_i64_8(v) FROM t").fetchall()


def test_int64_up_to_its_ends(route: Route) -> None:
    ((got,),) = route.connection.execute(
        f"""SELECT [
            element_i64(vec_sub_i64(pack_i64([{LEAST}]), pack_i64([0])), 0),
            element_i64(vec_mult_i64(pack_i64([{LARGE}]), pack_i64([-2])), 0),
            element_i64(vec_pow_i64(pack_i64([-2]), pack_i64([63])), 0),
            element_i64(vec_pow_i64(pack_i64([0]), pack_i64([9223372036854775807])), 0),
            element_i64(vec_square_i64(pack_i64([-3037000499])), 0),
            element_i64(vec_neg_i64(pack_i64([9223372036854775807])), 0)
        ]"""
    ).fetchall()
    assert got == [-(2**63), -(2**63), -(2**63), 0, 3037000499**2, 1 - 2**63]


@pytest.mark.parametrize("base", ["1", "2"])
def test_negative_powers_of_integers(route: Route, base: str) -> None:
    with pytest.raises(duckdb.Error, match="vec_sca_pow_i64: integers to negative integer powers"):
        route.connection.execute(f"SELECT vec_sca_pow_i64(pack_i64([{base}]), -1)").fetchall()


@pytest.mark.parametrize("tag", ["c128", "c64"])
def test_complex_powers(route: Route, tag: str) -> None:
    """Powers of 0, whole and negative ones, and some that overflow."""
    dtype = ELEMENT_TYPES[tag].dtype
    bases = np.array([0, 1, -1, 1j, 2, -0.5, 3 + 4j, -0.3 - 0.7j, 1e30], dtype)
    exponents = np.array(
        [0, -0.0, 1, 2, 3, 7, -1, -2, 99, -99, 100, 0.5, 1j, -1 + 1j, 0.3 - 2j], dtype
    )
    x, y = (grid.ravel() for grid in np.meshgrid(bases, exponents))
    ((blob,),) = route.connection.execute(
        f"SELECT vec_pow_{tag}(?::BLOB, ?::BLOB)", [x.tobytes(), y.tobytes()]
    ).fetchall()
    with np.errstate(all="ignore"):
        expected = np.power(x, y)
    np.testing.assert_allclose(from_sql(blob, tag), expected, rtol=1e-4)


@pytest.mark.parametrize("tag", ["f64", "f32", "c128", "c64"])
def test_casts_to_int64(route: Route, tag: str) -> None:
    dtype = ELEMENT_TYPES[tag].dtype
    cast = f"vec_to_list_i64(vec_cast_{tag}_i64(?::BLOB))"
    for value in (np.nan, np.inf, -np.inf, 2.0**63, -(2.0**63) * 1.001):
        blob = np.array([1, value], dtype).tobytes()
        with pytest.raises(duckdb.Error, match=f"vec_cast_{tag}_i64: int64 cannot hold"):
            route.connection.execute(f"SELECT {cast}", [blob]).fetchall()
    largest = np.nextafter(dtype.type(2.0**63).real, dtype.type(0).real)
    values = [-(2.0**63), largest, 1.9, -1.9, -0.0]
    blob = np.array(values, dtype).tobytes()
    ((got,),) = route.connection.execute(f"SELECT {cast}", [blob]).fetchall()
    assert got == [int(x) for x in values]


@pytest.mark.parametrize("tag", [tag for tag in ELEMENT_TYPES if tag not in ("i64", "bool")])
def test_nan_is_true(route: Route, tag: str) -> None:
    blob = np.array([np.nan, 0, -0.0, 0.5], ELEMENT_TYPES[tag].dtype).tobytes()
    for mask in (
        f"vec_cast_{tag}_bool(v)",
        f"vec_cast_{tag}_bool({typed_name('vec_when', tag)}(v, v))",
    ):
        ((got,),) = route.connection.execute(
            f"SELECT vec_to_list_bool({mask}) FROM (SELECT ?::BLOB AS v)", [blob]
        ).fetchall()
        assert got == [True, False, False, True]


@pytest.mark.sample(None)
@pytest.mark.parametrize(
    "expression",
    [
        "vec_to_list_bool(v)",
        "vec_to_list_bool(slice_bool(v, 0, [4], [1]))",
        "vec_to_list_bool(vec_mult_bool(v, full_bool(4, true)))",
        "vec_to_list_bool(vec_not_bool(vec_not_bool(v)))",
        "vec_to_list_bool(vec_not_equal_bool(v, full_bool(4, false)))",
        "vec_to_list_bool(vec_cast_bool_bool(v))",
        "vec_to_list_bool(ein_bool('max.mult i,i->i', [4], v, v))",
        "vec_to_list_bool(ein1_bool('max i->i', [4], v))",
        "[element_bool(v, i) FOR i IN range(4)]",
        "[x = 1 FOR x IN vec_to_list_i64(vec_cast_bool_i64(v))]",
        "[x = 1 FOR x IN vec_to_list(vec_cast_bool_f64(v))]",
        "vec_to_list_bool({max_vec}) FROM t",
        "vec_to_list_bool({stack}) FROM t",
    ],
)
def test_any_byte_but_zero_is_true(route: Route, expression: str) -> None:
    route.connection.execute(
        r"CREATE OR REPLACE TEMP TABLE t AS SELECT 0 AS i, '\x00\x02\x01\xFF'::BLOB AS v"
    )
    expression = expression.format(
        max_vec=route.call("max_vec_bool", 4, ["v"]),
        stack=route.call("stack_bool", 4, ["v", "0", "4", "true"]),
    )
    source = "" if "FROM t" in expression else " FROM t"
    ((got,),) = route.connection.execute(f"SELECT {expression}{source}").fetchall()
    assert got == [False, True, True, True]


def test_counting_true_bytes(route: Route) -> None:
    assert route.connection.execute(
        r"SELECT count_not_bool(v, false), any_not_bool(v, true)"
        r" FROM (SELECT '\x02\x00\xFF'::BLOB AS v)"
    ).fetchall() == [(2, True)]


@pytest.mark.sample(None)
@pytest.mark.parametrize(
    "expression",
    [
        "pack_c128([{re: 1, im: 2}, {re: 1, im: NULL}])",
        "pack_c64([{re: NULL, im: 1}])",
        "pack_c64([{re: 1, im: 1}, NULL])",
        "sca_to_vec_c128({re: NULL, im: 1})",
        "vec_sca_mult_c64(full_c64(2, {re: 1, im: 1}), {re: 1, im: NULL})",
    ],
)
def test_parts_that_are_null(route: Route, expression: str) -> None:
    name = expression[: expression.index("(")]
    with pytest.raises(duckdb.Error, match=f"{name}: expected .* NULL"):
        route.connection.execute(f"SELECT {expression}").fetchall()


@pytest.mark.sample(None)
@pytest.mark.parametrize(
    ("spec", "tag", "message"),
    [
        (
            "i,i->i",
            "bool",
            r"for bool \(min, max; mult, add, least, greatest, equal, not_equal, sparse_mult, less",
        ),
        ("sum.mult i,i->i", "bool", "for bool"),
        (
            "max.mult i,i->i",
            "c64",
            r"for complex64 \(sum, prod; mult, add, equal, not_equal, sparse_mult, sub,",
        ),
        ("sum.div i,i->i", "i64", "for int64"),
        ("sum.les i,i->i", "f32", "for float32"),
        ("sum.less_equa i,i->i", "f64", "for float64"),
        ("sum.  i,i->i", "f64", "for float64"),
        ("summ.mult i,i->i", "f64", "for float64"),
        ("sum.mult.mult i,i->i", "f64", "for float64"),
    ],
)
def test_prefixes_that_a_type_lacks(route: Route, spec: str, tag: str, message: str) -> None:
    one = NUMBERS.get(tag, "1")
    make = f"{typed_name('full', tag)}(1, {one})"
    with pytest.raises(duckdb.Error, match=message):
        route.connection.execute(
            f"SELECT {typed_name('ein', tag)}('{spec}', [1], {make}, {make})"
        ).fetchall()


COMPLEX_LISTS = (
    "[{re: i, im: -i}, {re: 1, im: 2}]",
    "list_reverse([{re: 1, im: 2}, {re: i, im: -i}])",
    "[{re: 0, im: 0}, {re: i, im: -i}, {re: 1, im: 2}][2:3]",
    "list_filter([{re: 7, im: 7}, {re: i, im: -i}, {re: 1, im: 2}], lambda z: z.re <> 7)",
    "list_concat([{re: i, im: -i}], [{re: 1, im: 2}])",
    "(SELECT list(z ORDER BY z.im) FROM (VALUES ({re: 1, im: 2}), ({re: i, im: -i})) v(z))",
    "u.zs",
)


@pytest.mark.parametrize("expression", COMPLEX_LISTS)
@pytest.mark.parametrize("tag", ["c128", "c64"])
def test_lists_of_structs_from_anywhere(route: Route, expression: str, tag: str) -> None:
    """DuckDB makes lists in several ways: their children need not be flat, nor begin at 0."""
    sql = ELEMENT_TYPES[tag].sql_list
    got = route.connection.execute(
        f"""
        WITH u AS (SELECT i % 10 AS d, [{{re: i, im: -i}}, {{re: 1, im: 2}}]::{sql} AS zs
                   FROM range(5000) t(i))
        SELECT t.i, vec_to_list_{tag}(pack_{tag}(({expression})::{sql}))
        FROM range(5000) t(i) JOIN u ON u.zs[1].re = t.i
        WHERE t.i % 3 <> 1 AND t.i > 4 ORDER BY t.i
        """
    ).fetchall()
    assert len(got) > 3000
    for i, values in got:
        assert from_sql(values, tag) == [complex(i, -i), 1 + 2j]


def test_numbers_that_are_null_or_come_from_a_dictionary(route: Route) -> None:
    got = route.connection.execute(
        """
        WITH z AS (SELECT i, CASE WHEN i % 4 <> 1 THEN {re: i::DOUBLE, im: 1::DOUBLE} END AS z
                   FROM range(50) t(i))
        SELECT i, element_c128(vec_sca_mult_c128(sca_to_vec_c128(z), {re: 0, im: 1}), 0)
        FROM z JOIN range(3000) r(j) ON j % 50 = i WHERE i % 3 = 0 ORDER BY j
        """
    ).fetchall()
    assert len(got) == 17 * 60
    for i, value in got:
        assert from_sql(value, "c128") == (None if i % 4 == 1 else complex(-1, i))


@pytest.mark.parametrize("tag", ELEMENT_TYPES)
@pytest.mark.parametrize("length", [3, 40_000, 200_000])
def test_groups_on_two_threads(tag: str, length: int) -> None:
    """Partial states of every type meet, within capacities and in the wide state."""
    element = ELEMENT_TYPES[tag]
    connection = duckdb.connect(config=EXTENSION_CONFIG)
    load_extension(connection)
    reduce = "max" if tag == "bool" else "sum"
    rows = 300_000 if length == 3 else 40
    suffix = capacity_suffix(length, tag)
    cast = f"vec_cast_i64_{tag}"
    connection.execute(
        f"CREATE TABLE t AS SELECT i % 3 AS g, {cast}(full_i64({length}, i % 2)) AS v"
        f" FROM range({rows}) t(i)"
    )
    got = connection.execute(
        f"SELECT g, {typed_name(f'{reduce}_vec', tag)}_{suffix}(v) FROM t GROUP BY g ORDER BY g"
    ).fetchall()
    numbers = np.arange(rows)
    for g, blob in got:
        count = int((numbers[numbers % 3 == g] % 2).sum())
        expected = np.full(length, count, np.int64).astype(element.dtype)
        np.testing.assert_array_equal(from_sql(blob, tag), expected)


def test_arrow_slices_of_structs_and_truth_values() -> None:
    """Arrow hands out slices: offsets of structs, of their parts and of bits count."""
    import pyarrow as pa

    from ucle.udf_kernels.arrow import _function

    for tag, part in (("c128", pa.float64()), ("c64", pa.float32())):
        re = pa.array(np.arange(30.0), part)
        im = pa.array(np.arange(40.0), part)[7:37]
        structs = pa.StructArray.from_arrays([re, im], ["re", "im"])[3:]
        got = _function(f"sca_to_vec_{tag}", 1 << 30)(pa.chunked_array([structs[2:9]]))
        numbers = [complex(from_sql(blob, tag)[0]) for blob in got.to_pylist()]
        assert numbers == [complex(i, i + 7) for i in range(5, 12)]
        lists = pa.ListArray.from_arrays(pa.array([0, 2, 2, 5, 9]), structs[1:])
        got = _function(f"pack_{tag}", 1 << 30)(pa.chunked_array([lists[2:]]))
        assert [list(from_sql(blob, tag)) for blob in got.to_pylist()] == [
            [complex(i, i + 7) for i in range(6, 9)],
            [complex(i, i + 7) for i in range(9, 13)],
        ]
    bits = pa.array([i % 3 == 0 for i in range(50)])
    got = _function("sca_to_vec_bool", 1 << 30)(pa.chunked_array([bits[11:30]]))
    assert got.to_pylist() == [bytes([i % 3 == 0]) for i in range(11, 30)]
    lists = pa.ListArray.from_arrays(pa.array([1, 4, 4, 9]), bits[3:])
    got = _function("pack_bool", 1 << 30)(pa.chunked_array([lists[1:]]))
    assert got.to_pylist() == [b"", bytes(i % 3 == 0 for i in range(7, 12))]


@pytest.mark.parametrize("tag", ["f64", "f32", "c128", "c64"])
def test_the_one_entry_that_is_not_finite_is_found(route: Route, tag: str) -> None:
    """Wherever it lies: in the first block, in the last one, in either part of a number."""
    dtype, function = ELEMENT_TYPES[tag].dtype, typed_name("all_finite", tag)
    largest = np.finfo(dtype).max
    route.connection.execute("CREATE OR REPLACE TEMP TABLE blobs (i INTEGER, v BLOB)")
    bad = [np.nan, np.inf, -np.inf]
    if dtype.kind == "c":
        bad += [complex(0, x) for x in bad]
    cases = [(place, value) for place in (0, 3, 4095, 4096, 9999) for value in (*bad, -largest)]
    for i, (place, value) in enumerate(cases):
        v = np.full(10_000, largest, dtype)
        v[place] = value
        route.connection.execute("INSERT INTO blobs VALUES (?, ?::BLOB)", [i, v.tobytes()])
    got = route.connection.execute(f"SELECT {function}(v) FROM blobs ORDER BY i").fetchall()
    assert [finite for (finite,) in got] == [bool(np.isfinite(value)) for _, value in cases]


@pytest.mark.sample(None)
@pytest.mark.parametrize("tag", list(ELEMENT_TYPES))
def test_elements_that_are_missing_are_counted(route: Route, tag: str) -> None:
    """Also where lists are slices of others, and where only a part of a number is missing."""
    sql, function = ELEMENT_TYPES[tag].sql, typed_name("count_null", tag)
    one = "{'re': 1, 'im': 0}" if tag in ("c64", "c128") else "1"
    lists = [f"[{one}, {one}]", f"[NULL, {one}, NULL]", "[]", f"[{one}]", "[NULL]"]
    expected = [0, 2, 0, 0, 1]
    if tag in ("c64", "c128"):
        lists.append("[{'re': 1, 'im': NULL}, {'re': NULL, 'im': NULL}, {'re': 1, 'im': 2}]")
        expected.append(2)
    rows = ", ".join(f"({i}, {text}::{sql}[])" for i, text in enumerate(lists))
    route.connection.execute(f"CREATE OR REPLACE TEMP TABLE lists AS FROM (VALUES {rows}) t(i, v)")
    for start in range(len(lists)):
        query = f"SELECT {function}(v) FROM lists WHERE i >= {start} ORDER BY i"
        got = [count for (count,) in route.connection.execute(query).fetchall()]
        assert got == expected[start:]
    assert route.connection.execute(f"SELECT {function}(NULL)").fetchall() == [(None,)]
