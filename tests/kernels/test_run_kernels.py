"""Runs of one value in compressed tensors: kernels answer as for the entries that they are."""

from __future__ import annotations

import zlib
from typing import Any

import duckdb
import numpy as np
import pytest
from compressed_meanings import csr_prune, csr_transpose
from compressed_samples import FILLS, VALUES, exact, operands, operations
from kernel_routes import Route, from_sql, to_sql
from kernel_table import KERNELS, base, compressed_arguments
from runs import Runs, decoded
from test_compressed import words_changed

from ucle.udf_kernels import ELEMENT_TYPES, typed_name
from ucle.udf_kernels.compressed import MAGIC

SHAPES = ((3, 40), (1, 9), (20, 30), (2, 0), (0, 3), (1, 700), (150, 3))
TAKERS = [
    name
    for name, kernel in KERNELS.items()
    if compressed_arguments(name) and not kernel.is_aggregate and base(name) != "csr_stored"
]


def _values(tag: str) -> Any:
    dtype = ELEMENT_TYPES[tag].dtype
    return np.array(VALUES[dtype.kind]).astype(dtype)


def _others(name: str, rng: np.random.Generator, tag: str, x: Runs) -> list[list[Any]]:
    """The arguments before and after the first compressed tensor."""
    plain, fills = base(name), FILLS[ELEMENT_TYPES[tag].dtype.kind]
    if KERNELS[name].parameters[0] == "VARCHAR":
        entries = x.entries
        words = operations(plain, tag, x.rows == 3)
        return [
            [word, *others]
            for word in words
            for others in operands(plain, rng, tag, entries, 0.3, x.rows * x.cols < 200)
        ]
    if plain == "csr_with":
        return []  # whose values are those that are stored
    if plain in ("csr_prune", "csr_to_mat"):
        return [[fill] for fill in fills]
    if plain == "csr_row":
        return [[r] for r in range(min(x.rows, 3))]
    return [[]]


def _call(route: Route, name: str, arguments: list[Any]) -> Any:
    kinds = KERNELS[name].parameters
    marks = ", ".join(f"?::{kind}" for kind in kinds)
    given = [to_sql(argument) for argument in arguments]
    try:
        ((found,),) = route.connection.execute(f"SELECT {name}({marks})", given).fetchall()
    except duckdb.Error as error:
        return str(error).splitlines()[0]
    return found


def _compared(name: str, found: Any) -> Any:
    makes_csr = isinstance(found, bytes) and found[:4] == MAGIC.to_bytes(4, "little")
    tag = KERNELS[name].tag
    return decoded(found, ELEMENT_TYPES[tag].dtype) if makes_csr else from_sql(found, tag)


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", TAKERS)
def test_runs_are_read_like_their_entries(route: Route, name: str) -> None:
    rng, tag = np.random.default_rng(zlib.crc32(name.encode())), KERNELS[name].tag
    first, *_ = compressed_arguments(name)
    for rows, cols in SHAPES:
        x = Runs.random(rng, rows, cols, _values(tag))
        for others in _others(name, rng, tag, x):
            before, after = others[:first], others[first:]
            as_entries = [*before, x.entries.to_bytes(), *after]
            as_runs = [*before, x.to_bytes(), *after]
            expected, found = (
                _compared(name, _call(route, name, given)) for given in (as_entries, as_runs)
            )
            what = f"{name} {before} {rows} x {cols}"
            if isinstance(expected, np.ndarray) and expected.dtype.kind in "fc":
                np.testing.assert_allclose(found, expected, rtol=1e-6, err_msg=what)
            elif isinstance(expected, float | complex):
                assert found == pytest.approx(expected, rel=1e-6, nan_ok=True), what
            else:
                np.testing.assert_equal(found, expected, err_msg=what)


@pytest.mark.parametrize("tag", ELEMENT_TYPES)
def test_other_operands_may_be_runs(route: Route, tag: str) -> None:
    rng = np.random.default_rng(3)
    a, b = (Runs.random(rng, 9, 9, _values(tag)) for _ in range(2))
    word = "max.least" if tag == "bool" else "prod.mult" if tag.startswith("c") else "max.least"
    calls = {
        "csr_csr": [word],
        "csr_csr_at": [word.split(".")[1]],
        "csr_csr_filled": [word.split(".")[1]],
        "csr_csr_union": [word.split(".")[1]],
        "csr_csr_masked": [word, a.entries],
        "csr_csr_t_masked": [word, a.entries],
    }
    for plain, before in calls.items():
        name = typed_name(plain, tag)
        behind = [_values(tag)[0]] * {"csr_csr_filled": 1, "csr_csr_union": 2}.get(plain, 0)
        expected = _call(route, name, [*before, a.entries, b.entries, *behind])
        assert isinstance(expected, bytes), expected
        for one in (a, a.entries):
            found = _call(route, name, [*before, one.to_bytes(), b.to_bytes(), *behind])
            assert found == expected, name


@pytest.mark.parametrize("tag", ["f64", "i64", "bool", "c64"])
def test_maps_keep_runs(route: Route, tag: str) -> None:
    """What is stored is mapped and put back; runs that become the fill are left out."""
    rng, dtype = np.random.default_rng(4), ELEMENT_TYPES[tag].dtype
    x = Runs.random(rng, 6, 50, _values(tag))
    stored = _call(route, typed_name("csr_stored", tag), [x.to_bytes()])
    assert stored == x.values.tobytes()
    other = exact(rng, tag, len(x.values))
    moved = Runs(x.rows, x.cols, x.row, x.begin, x.end, other)
    found = _call(route, typed_name("csr_with", tag), [x.to_bytes(), other])
    assert found == moved.to_bytes()
    fill = _values(tag)[0]
    pruned = _call(route, typed_name("csr_prune", tag), [found, fill])
    assert len(pruned) < len(found)
    assert pruned[12] == 1  # still runs
    assert decoded(pruned, dtype) == decoded(csr_prune(moved.entries, fill).to_bytes(), dtype)


def test_sums_of_runs_may_cancel_and_overflow(route: Route) -> None:
    """What a run adds up to may be beyond the type where its product is not."""
    x = Runs(1, 4, np.zeros(1, int), np.zeros(1, int), np.array([4]), np.array([1e-300]))
    found = _call(route, "csr_mat", ["", x.to_bytes(), np.full(4, 1e308), 1])
    np.testing.assert_allclose(np.frombuffer(found), [4e8])
    two = np.array([0, 2]), np.array([2, 4])
    x = Runs(1, 4, np.zeros(2, int), *two, np.array([2**62, -(2**62)]))
    assert _call(route, "csr_reduce_i64", ["", x.to_bytes()]) == 0
    found = _call(route, "csr_mat_i64", ["", x.to_bytes(), np.ones(4, "i8"), 1])
    assert np.frombuffer(found, "i8").tolist() == [0]
    x = Runs(1, 4, np.zeros(1, int), *(each[:1] for each in two), np.array([2**62]))
    assert "overflow" in _call(route, "csr_reduce_i64", ["", x.to_bytes()])


def test_float32_sums_of_long_runs(route: Route) -> None:
    rng = np.random.default_rng(5)
    x = Runs(1, 10**6, np.zeros(1, int), np.zeros(1, int), np.array([10**6]), np.ones(1, "f4"))
    vector = rng.random(10**6).astype("f4")
    exactly = vector.astype(float).sum()
    found = _call(route, "csr_mat_f32", ["", x.to_bytes(), vector, 1])
    np.testing.assert_allclose(np.frombuffer(found, "f4"), exactly, rtol=1e-6)
    both = np.stack([vector, vector], axis=1)
    found = _call(route, "csr_mat_f32", ["", x.to_bytes(), both, 2])
    np.testing.assert_allclose(np.frombuffer(found, "f4"), exactly, rtol=1e-6)


@pytest.mark.parametrize("columns", [1, 3])
@pytest.mark.parametrize("tag", [tag for tag in ELEMENT_TYPES if tag != "bool"])
def test_sums_of_transposes(tag: str, columns: int, route: Route) -> None:
    """The aggregate adds each run to its columns; integers come back from beyond their range."""
    rng, dtype = np.random.default_rng(7), ELEMENT_TYPES[tag].dtype
    values = np.array([2**61, 2**62]) if tag == "i64" else _values(tag)[:3]
    x = Runs.random(rng, 150, 40, values.astype(dtype))
    matrix = exact(rng, tag, 150 * columns).reshape(150, columns)
    back = -matrix if tag == "i64" else matrix
    dense = np.zeros((150, 40), object)
    dense[x.entries.row, x.entries.idx] = x.entries.values
    expected = dense.T @ (matrix.astype(object) + back.astype(object))
    call = route.call(typed_name("sum_csr_t_mat", tag), 40 * columns, ["x", "d", str(columns)])
    query = (
        f"SELECT {call} FROM (SELECT $1::BLOB AS x, "
        "CASE i WHEN 0 THEN $2::BLOB ELSE $3::BLOB END AS d, i FROM range(2) t(i))"
    )
    given = [x.to_bytes(), matrix.tobytes(), back.tobytes()]
    ((found,),) = route.connection.execute(query, given).fetchall()
    np.testing.assert_allclose(
        np.frombuffer(found, dtype).reshape(40, columns), expected.astype(dtype), rtol=1e-6
    )
    if tag == "i64":
        given[2] = given[1]
        with pytest.raises(duckdb.Error, match="int64 overflow"):
            route.connection.execute(query, given).fetchall()


def _malformed() -> dict[str, bytes]:
    """Words 4 to 6 are ptr, 7 to 9 where runs begin, 10 to 12 where they end."""
    row, begin, end = np.array([0, 0, 1]), np.array([0, 3, 1]), np.array([2, 5, 4])
    good = Runs(2, 5, row, begin, end, np.array([1.0, 2.0, 3.0])).to_bytes()
    return {
        "a later version": words_changed(good, {3: 2}),
        "truncated": good[:-8],
        "overlap": words_changed(good, {8: 1}),
        "without columns": words_changed(good, {10: 0}),
        "backwards": words_changed(good, {12: 0}),
        "beyond the columns": words_changed(good, {11: 6}),
        "fewer columns": words_changed(good, {2: 4}),
        "not in order": words_changed(good, {7: 3, 8: 0, 10: 5, 11: 2}),
        "ptr not monotone": words_changed(good, {5: 4}),
        "as entries": words_changed(good, {3: 0}),
    }


@pytest.mark.parametrize("what", _malformed())
def test_malformed_runs_are_errors(route: Route, what: str) -> None:
    for call in ("csr_nnz(v)", "csr_mat('', v, full(5, 1), 1)", "csr_reduce('', v)"):
        with pytest.raises(duckdb.Error, match="expected a compressed tensor"):
            route.connection.execute(
                f"SELECT {call} FROM (SELECT ?::BLOB AS v)", [_malformed()[what]]
            ).fetchall()


BAD_RUNS = {
    "i, i, 0, 2, 2, 3, 0": "runs within 2 x 3, got one of row 2 from 0 to 2",
    "i, 0, 2, 1, 3, 3, 0": "got one of row 0 from 2 to 1",
    "i, 0, 2, 4, 3, 3, 0": "got one of row 0 from 2 to 4",
    "i, 0, -1, 2, 3, 3, 0": "got one of row 0 from -1 to 2",
    "i, 1, 2 - i, 4 - i, 3, 9, 0": "runs that do not overlap, got two at .1, 1.",
    "i, 1, i, i + 1, -3, 9, 0": "rows of at least 0",
}


@pytest.mark.parametrize("arguments", BAD_RUNS)
def test_bad_runs(route: Route, arguments: str) -> None:
    call = route.call("stack_runs", None, arguments.split(", "))
    with pytest.raises(duckdb.Error, match=f"stack_runs: .*{BAD_RUNS[arguments]}"):
        route.connection.execute(f"SELECT {call} FROM range(3) t(i)").fetchall()


def test_long_runs_take_few_bytes(route: Route) -> None:
    query = "SELECT octet_length({0}), csr_nnz({0}), csr_reduce('', {0}) FROM range(1000) t(i)"
    call = route.call(
        "stack_runs", None, ["2.0", "i % 10", "i * 1000", "i * 1000 + 900", "10", "1000000", "0"]
    )
    ((size, entries, total),) = route.connection.execute(query.format(call)).fetchall()
    assert (entries, total) == (900_000, 1_800_000.0)
    assert size < 20_000


def test_a_transpose_twice(route: Route) -> None:
    x = Runs.random(np.random.default_rng(6), 30, 40, _values("f64"))
    found = _call(route, "csr_transpose", [x.to_bytes()])
    assert found == csr_transpose(x.entries).to_bytes()
