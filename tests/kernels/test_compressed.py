"""Compressed tensors: wrong BLOBs are errors, large ones are right, sums keep their promises."""

from __future__ import annotations

from typing import Any

import compressed_meanings
import duckdb
import numpy as np
import pytest
from compressed_meanings import csr_with
from compressed_samples import OF_PLACES, sparse
from kernel_routes import EXTENSION_CONFIG, Route, to_sql
from kernel_table import KERNELS, base, compressed_arguments

from ucle.udf_kernels import (
    ELEMENT_TYPES,
    Csr,
    load_extension,
    typed_name,
)
from ucle.udf_kernels.native import load_module

TAKERS = [
    (name, place)
    for name, kernel in KERNELS.items()
    for place in compressed_arguments(kernel.name)
    if kernel.tag in ("f64", "c64", "bool")
]
GOOD = Csr(
    2, 3, np.array([0, 2, 3]), np.array([0, 2, 1]), np.array([1.0, 2.0, 3.0])
)  # 3 entries of 2 x 3


def words_changed(blob: bytes, changes: dict[int, int]) -> bytes:
    """Some of the 32-bit words replaced."""
    words = bytearray(blob)
    for place, value in changes.items():
        words[4 * place : 4 * place + 4] = value.to_bytes(4, "little")
    return bytes(words)


def malformed(tag: str) -> dict[str, bytes]:
    """Malformed tensors by name; words 4 to 6 are ptr, words 7 to 9 idx."""
    good = csr_with(GOOD, GOOD.values.astype(ELEMENT_TYPES[tag].dtype)).to_bytes()
    return {
        "empty": b"",
        "only a header": good[:16],
        "truncated": good[:-1],
        "without values": good[:40],
        "one byte more": good + b"\0",
        "wrong magic": words_changed(good, {0: 0x02525343}),
        "wrong version": words_changed(good, {3: 1}),
        "more rows than bytes": words_changed(good, {1: 2**32 - 1}),
        "fewer columns": words_changed(good, {2: 2}),
        "no columns": words_changed(good, {2: 0}),
        "ptr from 1 on": words_changed(good, {4: 1}),
        "ptr not monotone": words_changed(good, {5: 4}),
        "ptr too long": words_changed(good, {6: 2**32 - 1}),
        "ptr too short": words_changed(good, {6: 2}),
        "unsorted": words_changed(good, {7: 2, 8: 0}),
        "twice": words_changed(good, {8: 0}),
        "out of range": words_changed(good, {8: 3}),
        "far out of range": words_changed(good, {9: 2**32 - 1}),
    }


def call_with(route: Route, name: str, place: int, blob: str) -> str:
    """A call with a BLOB in one place and good ones in the others."""
    kernel = KERNELS[name]
    element = ELEMENT_TYPES[kernel.tag]
    other = csr_with(GOOD, GOOD.values.astype(element.dtype)).to_bytes().hex()
    number = {"b": "true", "c": "{re: 1, im: 0}"}.get(element.dtype.kind, "1")
    filler = {
        "BLOB": "''::BLOB",
        "BIGINT": "1",
        "VARCHAR": "'max.mult'" if kernel.tag == "bool" else "''",
        element.sql: number,
    }
    arguments = [filler[kind] for kind in kernel.parameters]
    if kernel.parameters[0] == "VARCHAR" and name.startswith("csr_reduce"):
        arguments[0] = "'max'" if kernel.tag == "bool" else "''"
    if base(name) in OF_PLACES:
        arguments[0] = "'mult'"
    for j in compressed_arguments(kernel.name):
        arguments[j] = blob if j == place else f"from_hex('{other}')"
    if kernel.is_aggregate:
        return route.call(name, 8, arguments)
    return f"{name}({', '.join(arguments)})"


@pytest.mark.sample(32)
@pytest.mark.parametrize(("name", "place"), TAKERS)
def test_malformed_tensors_are_errors(route: Route, name: str, place: int) -> None:
    tag = KERNELS[name].tag
    for what, blob in malformed(tag).items():
        if name.startswith("csr_with") and what in ("truncated", "one byte more"):
            continue  # its values may be of any size: the next test
        call = call_with(route, name, place, "v")
        query = f"SELECT {call} FROM (SELECT ?::BLOB AS v, i FROM range(3) t(i))"
        with pytest.raises(duckdb.Error, match=f"{name}: expected a compressed tensor"):
            route.connection.execute(query, [blob]).fetchall()


def test_padding_is_zero(route: Route) -> None:
    blob = Csr.of([[1.0, 2.0]], 0.0).to_bytes()  # 16 + 8 + 8 bytes: none
    longer = Csr.of([[1.0, 0.0]], 0.0).to_bytes()
    assert len(blob) % 8 == len(longer) % 8 == 0
    wrong = words_changed(longer, {7: 1})
    assert wrong != longer
    assert route.connection.execute("SELECT csr_nnz(?::BLOB)", [longer]).fetchall() == [(1,)]
    with pytest.raises(duckdb.Error, match="something where there is to be nothing"):
        route.connection.execute("SELECT csr_nnz(?::BLOB)", [wrong]).fetchall()


def test_places_have_values_of_any_size(route: Route) -> None:
    for tag, element in ELEMENT_TYPES.items():
        blob = csr_with(GOOD, GOOD.values.astype(element.dtype)).to_bytes()
        query = "SELECT csr_with_f32(?::BLOB, pack_f32([4, 5, 6]))"
        ((got,),) = route.connection.execute(query, [blob]).fetchall()
        expected = csr_with(GOOD, np.array([4, 5, 6], "f4"))
        assert got == expected.to_bytes(), tag
        with pytest.raises(duckdb.Error, match="expected a compressed tensor"):
            route.connection.execute(query, [blob[:-1]]).fetchall()


BAD_CALLS = {
    "csr_mat('', {x}, pack([1, 2]), 1)": "3 x 1 elements",
    "csr_mat('', {x}, pack([1, 2, 3]), -1)": "n of at least 0",
    "csr_mat('', {x}, pack([1, 2, 3]), 9223372036854775807)": "n of at most 9007199254740992",
    "csr_mat('', {e}, ''::BLOB, 9223372036854775807)": "n of at most 9007199254740992",
    "csr_mat('', {e}, ''::BLOB, 100000000)": "at most 16777216 elements",
    "csr_t_mat('', {w}, ''::BLOB, 4611686018427387904)": "n of at most 9007199254740992",
    "csr_t_mat('', {x}, pack([1, 2, 3]), 1)": "2 x 1 elements",
    "csr_mat('sum', {x}, pack([1, 2, 3]), 1)": "operations like 'max.add'",
    "csr_mat('sum.', {x}, pack([1, 2, 3]), 1)": "operations like 'max.add'",
    "csr_mat('any.all', {x}, pack([1, 2, 3]), 1)": "operations like 'max.add'",
    "csr_mat('sum.rrsub', {x}, pack([1, 2, 3]), 1)": "operations like 'max.add'",
    "csr_scale_rows('sum.mult', {x}, pack([1, 2]))": "operations like 'rsub'",
    "csr_reduce('mult', {x})": "operations like 'max'",
    "csr_with({x}, pack([1, 2]))": "3 elements as values",
    "csr_to_mat({w}, 0)": "at most 536870911 elements",
    "csr_reduce_cols('', {w})": "at most 536870911 elements",
    "csr_transpose({w})": "compressed tensor of at most",
    "mat_to_csr(pack([1, 2, 3]), 2, 0)": "multiple of 2",
    "mat_to_csr(pack([1, 2, 3]), -1, 0)": "columns of at least 0",
    "mat_to_csr(pack([1, 2, 3]), 0, 0)": "multiple of 0",
    "csr_row({x}, 2)": "a row below 2",
    "csr_row({x}, -1)": "a row below 2",
    "csr_scale_rows('', {x}, pack([1, 2, 3]))": "2 elements",
    "csr_scale_cols('', {x}, pack([1, 2]))": "3 elements",
    "csr_at('', {x}, pack([1, 2]))": "6 elements",
    "csr_csr_at('', {x}, {e})": "as many rows",
    "csr_csr_filled('', {x}, {e}, 1)": "as many rows",
    "csr_csr_union('', {x}, {e}, 1, 1)": "as many rows",
    "csr_csr('', {x}, {x})": "as many rows in the second operand",
    "csr_csr_masked('', {x}, {x}, {x})": "as many rows in the second operand",
    "csr_csr_masked('', {x}, csr_transpose({x}), {x})": "as many rows in the mask",
    "csr_csr_t_masked('', {x}, {x}, {x})": "as many columns in the mask",
    "csr_csr_t_masked('', {x}, {x}, csr_transpose({x}))": "as many columns in both",
    "csr_sddmm('', {x}, pack([1, 2]), pack([1, 2]), 1)": "3 x 1 elements",
    "csr_sddmm('', {x}, pack([1]), pack([1, 2, 3]), 1)": "2 x 1 elements",
    "csr_sddmm('', {x}, pack([1]), pack([1, 2, 3]), -1)": "d of at least 0",
}


@pytest.mark.sample(None)
@pytest.mark.parametrize("call", BAD_CALLS)
def test_bad_arguments(route: Route, call: str) -> None:
    blobs = {
        "x": GOOD,
        "e": Csr(4, 0, np.zeros(5), np.zeros(0), np.zeros(0)),
        "w": Csr(1, 2**32 - 1, np.array([0, 1]), np.array([7]), np.array([1.0])),
    }
    text = call.format(**{name: f"from_hex('{x.to_bytes().hex()}')" for name, x in blobs.items()})
    with pytest.raises(duckdb.Error, match=f"{call[: call.index('(')]}: .*{BAD_CALLS[call]}"):
        route.connection.execute(f"SELECT {text}").fetchall()


BAD_STACKS = {
    "i, i, 0, 2, 3, 0": "entries within 2 x 3, got one at .2, 0.",
    "i, 0, i, 3, 2, 0": "entries within 3 x 2, got one at .0, 2.",
    "i, -i, 0, 3, 3, 0": "got one at .-1, 0.",
    "i + 1, 1, 1, 3, 3, 0": "several at one in row 1",
    "i, i, 0, -3, 3, 0": "rows of at least 0",
    "i, i, 0, 3, 4294967296, 0": "columns of at most 4294967295",
    "i, i, 0, 4294967295, 3, 0": "compressed tensor of at most",
    "i, i, 0, 3 + i, 3, 0": "the same rows, columns and fill",
    "i, i, 0, 3, 3, i": "the same rows, columns and fill",
}


@pytest.mark.sample(None)
@pytest.mark.parametrize("arguments", BAD_STACKS)
def test_bad_entries(route: Route, arguments: str) -> None:
    if route.name == "arrow" and BAD_STACKS[arguments].startswith("the same"):
        pytest.skip("the Arrow route takes the first of each group")
    call = route.call("stack_csr", None, arguments.split(", "))
    with pytest.raises(duckdb.Error, match=f"stack_csr: .*{BAD_STACKS[arguments]}"):
        route.connection.execute(f"SELECT {call} FROM range(3) t(i)").fetchall()


def test_bad_tiles(route: Route) -> None:
    tile = f"from_hex('{GOOD.to_bytes().hex()}')"
    for arguments, message in {
        ("i", "9", "3"): "tiles of different rows, got row 1 twice",
        ("2 * i", "5", "3"): "tiles within 5 rows, got one of 2 rows from 4",
        ("-i", "5", "3"): "tiles within 5 rows",
        ("2 * i", "9", "4"): "tiles of 4 columns, got one of 3",
    }.items():
        call = route.call("stack_csr_rows", None, [tile, *arguments])
        with pytest.raises(duckdb.Error, match=f"stack_csr_rows: expected {message}"):
            route.connection.execute(f"SELECT {call} FROM range(3) t(i)").fetchall()


@pytest.mark.parametrize("order", ["row, col", "col, row", "hash(row, col)"])
@pytest.mark.parametrize("shape", [(300, 70), (20, 5000), (5000, 20), (1, 40_000)])
def test_large_stacks(order: str, shape: tuple[int, int]) -> None:
    """Short rows and long ones, in every order, with partial states that meet."""
    rows, cols = shape
    connection = duckdb.connect(config=EXTENSION_CONFIG)
    load_extension(connection)
    connection.execute(
        f"CREATE TABLE t AS SELECT k // {cols} AS row, k % {cols} AS col, k % 5 AS v"
        f" FROM range({rows * cols}) t(k) WHERE hash(k) % 3 > 0 ORDER BY {order}"
    )
    row, col, values = connection.execute("SELECT * FROM t").fetchnumpy().values()
    expected = compressed_meanings.stack_csr(np.dtype("f8"), values, row, col, rows, cols, 0.0)
    query = f"SELECT stack_csr(v, row, col, {rows}, {cols}, 0) FROM t"
    ((got,),) = connection.execute(query).fetchall()
    assert got == expected.to_bytes()


@pytest.mark.turns(3)
def test_many_groups_of_entries_on_two_threads() -> None:
    connection = duckdb.connect(config=EXTENSION_CONFIG)
    load_extension(connection)
    got = connection.execute(
        "SELECT g, csr_rows(x), csr_cols(x), vec_to_list_i64(csr_values_i64(x)) FROM"
        " (SELECT g, stack_csr_i64(i, i // 5000 % 10, i // 5000 // 10, 10, 30, 0) AS x FROM"
        " (SELECT i, i % 5000 AS g FROM range(1_000_000) t(i)) GROUP BY g) ORDER BY g"
    ).fetchall()
    assert len(got) == 5000
    for g, rows, cols, values in got:
        order = sorted((n % 10, n // 10, 5000 * n + g) for n in range(200) if n or g)
        assert list(zip(rows, cols, values, strict=True)) == order


def test_windows_go_on_with_their_states() -> None:
    connection = duckdb.connect(config=EXTENSION_CONFIG)
    load_extension(connection)
    got = connection.execute(
        "SELECT csr_cols(stack_csr(1, 0, i, 1, 500, 0) OVER (ORDER BY i ROWS 9 PRECEDING))"
        " FROM range(500) t(i) ORDER BY i"
    ).fetchall()
    assert [cols for (cols,) in got] == [list(range(max(0, i - 9), i + 1)) for i in range(500)]


def test_states_that_grow_are_bounded(route: Route) -> None:
    lib = load_module().lib
    before = lib.ucle_memory_held()
    call = route.call("stack_csr", None, ["1", "0", "i", "1", "10_000_000", "0"])
    refused = pytest.raises(duckdb.Error, match=r"may hold at a time \(10000000 bytes")
    with route.limited(10_000_000) as connection, refused:
        connection.execute(f"SELECT {call} FROM range(1_000_000) t(i)").fetchall()
    assert lib.ucle_memory_held() == before


def test_hypersparse_operands(route: Route) -> None:
    """Columns up to 2^32 - 1 of which a few are there: nothing is as large as they are many."""
    rng = np.random.default_rng(3)
    most = 2**32 - 1
    columns = np.unique(rng.integers(0, most, 40))
    row = rng.integers(0, 5, len(columns))
    b = Csr.at_places(5, most, row, columns, rng.integers(1, 9, len(columns)).astype(float))
    a = sparse(rng, "f64", 300, 5, 0.6)
    mask = Csr.at_places(300, most, np.arange(300), rng.choice(columns, 300), np.ones(300))
    connection = route.connection
    blobs: list[Any] = [to_sql(x) for x in (a, b, mask)]
    query = "SELECT csr_csr('', $1::BLOB, $2::BLOB), csr_csr_masked('', $3::BLOB, $1, $2::BLOB)"
    for product, masked in connection.execute(f"{query} FROM range(3)", blobs).fetchall():
        assert product == compressed_meanings.csr_csr("f64", "", a, b).to_bytes()
        assert masked == compressed_meanings.csr_csr_masked("f64", "", mask, a, b).to_bytes()


def test_long_rows_against_short_ones(route: Route) -> None:
    """Rows of which one is many times as long as the other are met in leaps."""
    rng = np.random.default_rng(4)
    long, short = sparse(rng, "f64", 4, 5000, 0.9), sparse(rng, "f64", 4, 5000, 0.003)
    for first, second in ((long, short), (short, long), (long, long), (short, short)):
        ((got,),) = route.connection.execute(
            "SELECT csr_csr_at('', ?::BLOB, ?::BLOB)", [first.to_bytes(), second.to_bytes()]
        ).fetchall()
        assert got == compressed_meanings.csr_csr_at("f64", "", first, second).to_bytes()
        ((got,),) = route.connection.execute(
            "SELECT csr_csr_filled('', ?::BLOB, ?::BLOB, 3)", [first.to_bytes(), second.to_bytes()]
        ).fetchall()
        assert got == compressed_meanings.csr_csr_filled("f64", "", first, second, 3.0).to_bytes()
        ((got,),) = route.connection.execute(
            "SELECT csr_csr_union('sub', ?::BLOB, ?::BLOB, 3, 2)",
            [first.to_bytes(), second.to_bytes()],
        ).fetchall()
        expected = compressed_meanings.csr_csr_union("f64", "sub", first, second, 3.0, 2.0)
        assert got == expected.to_bytes()
    mask = Csr.of(np.ones((4, 4)), 0.0)
    ((got,),) = route.connection.execute(
        "SELECT csr_csr_t_masked('', ?::BLOB, ?::BLOB, ?::BLOB)",
        [x.to_bytes() for x in (mask, long, short)],
    ).fetchall()
    np.testing.assert_allclose(
        Csr.from_bytes(got, np.dtype("f8")).dense(0.0), long.dense(0.0) @ short.dense(0.0).T
    )


SUMS = (
    "csr_mat_{0}('', x, v, 1)",
    "csr_mat_{0}('', x, v2, 2)",
    "csr_mat_{0}('sum.add', x, v2, 2)",
    "csr_t_mat_{0}('', csr_transpose_{0}(x), v2, 2)",
    "csr_csr_{0}('', x, csr_transpose_{0}(x))",
    "csr_sddmm_{0}('', one, v, v, n)",
    "csr_reduce_rows_{0}('', x)",
    "csr_reduce_cols_{0}('', csr_transpose_{0}(x))",
    "csr_csr_t_masked_{0}('', one, x, x)",
    "csr_csr_masked_{0}('', one, x, csr_transpose_{0}(x))",
)
"""Each sums up n terms of one sign, or of both, for its first entry."""


def sums_of(route: Route, tag: str, values: np.ndarray[Any, Any], call: str) -> float:
    """The first element that a call comes to."""
    n, dtype = len(values), values.dtype
    x = Csr.at_places(1, n, np.zeros(n), np.arange(n), values)
    one = Csr.at_places(1, 1, [0], [0], np.ones(1, dtype))
    ones = np.ones(n, dtype)
    ((got,),) = route.connection.execute(
        f"SELECT {call.format(tag)} FROM (SELECT $1::BLOB AS x, $2::BLOB AS v, $3::BLOB AS v2,"
        " $4::BLOB AS one, $5::BIGINT AS n)",
        [x.to_bytes(), ones.tobytes(), np.repeat(ones, 2).tobytes(), one.to_bytes(), n],
    ).fetchall()
    if call.startswith(("csr_csr", "csr_sddmm")):
        return Csr.from_bytes(got, dtype).values[0].item()
    return float(np.frombuffer(got, dtype)[0])


@pytest.mark.sample(None)
@pytest.mark.parametrize("call", SUMS)
def test_sums_of_float32_keep_their_digits(route: Route, call: str) -> None:
    n = 200_000
    values = np.full(n, 0.1, "f4")
    expected = {"csr_mat_{0}('sum.add', x, v2, 2)": n * 1.1, "csr_sddmm_{0}('', one, v, v, n)": n}
    squared = call.startswith(("csr_csr", "csr_csr_t"))
    total = expected.get(call, n * 0.01 if squared else n * 0.1)
    assert abs(sums_of(route, "f32", values, call) / total - 1) < 3e-6


@pytest.mark.sample(None)
@pytest.mark.parametrize("call", [call for call in SUMS if "_csr_" not in call[3:]])
def test_sums_of_integers_may_leave_and_come_back(route: Route, call: str) -> None:
    if "sddmm" in call:
        pytest.skip("its operands are ones")
    values = np.array([2**62, 2**62, 2**62, -(2**62), -(2**62), 5], "i8")
    expected = 2**62 + 5 + (6 if "add" in call else 0)
    assert sums_of(route, "i64", values, call) == float(expected)
    with pytest.raises(duckdb.Error, match="int64 overflow"):
        sums_of(route, "i64", values[:3], call)


@pytest.mark.parametrize("tag", ["f32", "i64"])
def test_sums_of_tiles(route: Route, tag: str) -> None:
    """The aggregate keeps digits, and integers within their range come back from beyond it."""
    dtype = ELEMENT_TYPES[tag].dtype
    value = 0.1 if tag == "f32" else 2**62
    column = Csr.of(np.full((1000, 1), value, dtype), dtype.type(0))
    dense = np.ones(1000, dtype)
    if tag == "i64":
        dense[::2] = -1
    name = typed_name("sum_csr_t_mat", tag)
    call = route.call(name, 1, ["x", "d", "1"])
    ((got,),) = route.connection.execute(
        f"SELECT {call} FROM (SELECT ?::BLOB AS x, ?::BLOB AS d, i FROM range(200) t(i))",
        [column.to_bytes(), dense.tobytes()],
    ).fetchall()
    total = np.frombuffer(got, dtype)[0]
    assert total == 0 if tag == "i64" else abs(total / 20_000 - 1) < 1e-6


def test_what_is_nan_or_infinite(route: Route) -> None:
    """A fill of NaN is equal to NaN, and entries that are missing never meet an infinity."""
    x = Csr.of([[1.0, np.nan], [np.nan, 2.0]], np.nan)
    assert x.idx.tolist() == [0, 1]
    ((product, pruned),) = route.connection.execute(
        "SELECT csr_mat('', $1::BLOB, pack(['inf', 'nan']::DOUBLE[]), 1),"
        " csr_prune($2::BLOB, 'nan'::DOUBLE)",
        [x.to_bytes(), csr_with(x, np.array([np.nan, 3.0])).to_bytes()],
    ).fetchall()
    np.testing.assert_array_equal(np.frombuffer(product), [np.inf, np.nan])
    assert Csr.from_bytes(pruned, np.dtype("f8")).values.tolist() == [3.0]


def test_the_same_operand_in_many_rows(route: Route) -> None:
    """A checked operand is not checked again, but another one is."""
    bad = words_changed(GOOD.to_bytes(), {8: 0})
    connection = route.connection
    connection.execute("CREATE OR REPLACE TEMP TABLE one AS SELECT ?::BLOB AS v", [GOOD.to_bytes()])
    query = (
        "SELECT sum(csr_nnz(CASE WHEN i = {0} THEN ?::BLOB ELSE v END)) FROM one, range(5000) t(i)"
    )
    assert connection.execute(query.format(-1), [bad]).fetchall() == [(15_000,)]
    with pytest.raises(duckdb.Error, match="do not ascend"):
        connection.execute(query.format(4321), [bad]).fetchall()
