"""Wrong arguments are SQL errors, large groupings are right, and one image serves both loaders."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import duckdb
import numpy as np
import pytest
from kernel_meanings import MEANINGS
from kernel_routes import EXTENSION_CONFIG, Route
from kernel_table import KERNELS, base, compressed_arguments

from ucle.errors import ExtensionUnavailableError, KernelError
from ucle.udf_kernels import (
    ELEMENT_TYPES,
    capacity_suffix,
    load_extension,
    register_arrow,
    remove_arrow,
    typed_name,
)
from ucle.udf_kernels.native import load_module

SEVEN_BYTES = "'1234567'::BLOB"
BAD_SCALARS = (
    "pack([1, NULL, 3])",
    "full(-1, 0)",
    "full(1099511627776, 0)",
    "element(pack([1, 2]), 2)",
    "element(pack([1, 2]), -1)",
    "element(pack([]), 0)",
    "vec_mult(pack([1, 2]), pack([1]))",
    "inner_prod(pack([1, 2]), pack([1]))",
    "mat_vec_mult(pack([1, 2, 3]), pack([1, 2]))",
    "mat_vec_mult(pack([1, 2, 3]), pack([]))",
    "vec_mat_mult(pack([1, 2]), pack([1, 2, 3]))",
    "mat_mat_mult(pack([1, 2, 3]), pack([1, 2]), 2)",
    "mat_mat_mult(pack([1, 2]), pack([1, 2]), 0)",
    "mat_mat_mult(pack([1, 2]), pack([1, 2]), -2)",
    "slice(pack([1, 2, 3]), 0, [2], [3])",
    "slice(pack([1, 2, 3]), -1, [1], [1])",
    "slice(pack([1, 2, 3]), 0, [2], [-1])",
    "slice(pack([1, 2, 3]), 0, [2], [1, 1])",
    "slice(pack([1, 2, 3]), 0, [-2], [1])",
    "slice(pack([1, 2, 3]), 0, [NULL], [1])",
    "slice(pack([1, 2, 3]), 9223372036854775807, [2], [9223372036854775807])",
    "slice(pack([1]), 0, [9223372036854775807, 9223372036854775807], [0, 0])",
    "slice(pack([1]), 0, [1000000000000], [0])",
    f"slice(pack([1]), 0, {[1] * 17}, {[1] * 17})",
    "hits_i64(pack([1, 2]::BIGINT[]), 3, 'x')",
    "hits_i64(pack([]::BIGINT[]), 3, 'x')",
    "hits_i64(pack([3]::BIGINT[]), 3, 'x')",
    "hits_i64(pack([-1]::BIGINT[]), 3, 'x')",
    "hits_i64(pack([0]::BIGINT[]), 0, 'x')",
    "hits_i64(pack([0]::BIGINT[]), -1, '')",
    "hits_i64(pack([0]::BIGINT[]), 4611686018427387904, '')",
    "reindex(pack([1, 2]), [0], [1, 2, 1, 3, 1, 1, 0], 0)",
    "reindex(pack([1, 2]), [0], [1, 2, 1, 2, 2, 1, 0], 0)",
    "reindex(pack([1, 2]), [], [1, 2, 1, 2, 1, 1, 0], 0)",
    "reindex(pack([1, 2]), [0, 0], [1, 2, 1, 2, 1, 1, 0], 0)",
    "reindex(pack([1, 2]), [0], [1, 2, 1, 2, 1, 1], 0)",
    "reindex(pack([1, 2]), [0], [1, 2, 1, 2, 1, 1, 0, 0], 0)",
    "reindex(pack([1, 2]), [0], [1, -2, 1, 2, 1, 1, 0], 0)",
    "reindex(pack([1, 2]), [0], [1, 2, 1, -2, 1, 1, 0], 0)",
    "reindex(pack([1, 2]), [0], [1, 2, 1, 2, -1, 1, 0], 0)",
    "reindex(pack([1, 2]), [0], [-1], 0)",
    "reindex(pack([1, 2]), [0], [17], 0)",
    "reindex(pack([1, 2]), [0], [], 0)",
    "scatter([1, 2], [0], [1], 3, 0, 1)",
    "scatter([1, 2], [0, 3], [1], 3, 0, 1)",
    "scatter([1, 2], [0, -1], [1], 3, 0, 1)",
    "scatter([1, 2], [0, 9223372036854775807], [1], 3, 0, 1)",
    "scatter([1, 2], [0, 1], [3], 3, 0, 1)",
    "scatter([1, 2], [0, 1], [-1], 3, 0, 1)",
    "scatter([1, 2], [0, 1], [1], -1, 0, 1)",
    "scatter([1, 2], [0, 1], [1], 1099511627776, 0, 1)",
    "reindex(pack([1, 2]), [NULL], [1, 2, 1, 2, 1, 1, 0], 0)",
    "reindex(pack([1, 2]), [0], [1, 2, 1, 2, 1, NULL, 0], 0)",
    "reindex(pack([1, 2]), [0, 0], [1, 2, 1, 2, 1, 1, 1, 1, 3, 1], 0)",
    "reindex(pack([1, 2]), [0], [1, 2, 1, 2, 1, 1, 1, 0], 0)",
    "reindex(pack([1, 2]), [0], [1, 2, 1, 2, 1, 1, 65], 0)",
    "reindex(pack([1, 2]), [9223372036854775807], [1, 2, 1, 2, 1, 1, 0], 0)",
    "reindex(pack([1, 2]), [0], [1, 2, 1, 2, 1, 9223372036854775807, 0], 0)",
    "reindex(pack([1, 2]), [0], [1, 2, 1, 2, 9223372036854775807, 1, 0], 0)",
    "reindex(pack([1, 2]), [], [2, 9223372036854775807, 9223372036854775807, 0, 0], 0)",
    "reindex(pack([1, 2]), [], [1, 1000000000000, 0, 0], 0)",
    "reindex(pack([1, 2]), [0], [1, 2, 1, 2, 1, 0, 0, 0], 0)",
    "cumsum(pack([1, 2, 3]), 2, 1)",
    "cumsum(pack([1, 2, 3]), 0, 1)",
    "cumsum(pack([1, 2, 3]), -3, -1)",
    "cumsum(pack([1, 2, 3]), 9223372036854775807, 3)",
    "vec_top_max(pack([1, 2, 3]), 3, 1, 4)",
    "vec_top_max(pack([1, 2, 3]), 3, 1, -1)",
    "vec_top_max(pack([1, 2, 3]), 2, 1, 1)",
    "vec_top_max(pack([1, 2, 3]), -3, -1, 1)",
    "vec_top_max(pack([]), 9007199254740992, 0, 9007199254740992)",
    "vec_top_min_i64(pack_i64([1, 2]), 9223372036854775807, 3, 1)",
    "mat_inv(pack([1, 2, 2, 4]), 2, 2)",
    "mat_inv(pack([1, 2]), 1, 2)",
    "mat_inv(pack([1, 2, 3]), 2, 2)",
    "mat_cholesky(pack([1, 2, 2, 1]), 2, 2)",
    "mat_cholesky(pack(['nan'::DOUBLE]), 1, 1)",
    "mat_eigenvalues(pack([1, 'inf'::DOUBLE, 'inf'::DOUBLE, 1]), 2, 2)",
    "mat_eigenvectors(pack([]), 3037000500, 3037000500)",
    "mat_solve(pack([1, 2, 2, 4]), pack([1, 1]), 2)",
    "mat_solve(pack([1, 2, 3, 4]), pack([1, 2, 3]), 2)",
    "mat_solve(pack([1, 2, 3]), pack([1, 2]), 2)",
    "mat_solve(pack([]), pack([1, 2]), 2)",
    "mat_solve(pack([1]), pack([1]), 0)",
    "mat_solve(pack([1]), pack([1]), -1)",
    "mat_solve(pack([]), pack([]), 9223372036854775807)",
    "mat_pivots(pack([1, 2]), 1, 2)",
    "mat_singular_values(pack(['nan'::DOUBLE, 1]), 1, 2)",
    "mat_singular_values(pack([]), 9223372036854775807, 3)",
    "mat_qr(pack([1, 2, 3, 4]), 1, 2, 2)",
    "mat_qr(pack([1, 2, 3, 4]), 2, 2, 2)",
    "mat_qr(pack([1, 2, 3, 4]), 2, 2, -1)",
    "mat_qr(pack(['inf'::DOUBLE, 1]), 2, 1, 1)",
    "mat_svd(pack([1, 2, 3, 4]), 3, 2, 2)",
    "mat_svd(pack([1, 2, 3, 4, 5, 6]), 2, 1, 3)",
    "mat_svd(pack([]), 3, 3037000500, 3037000500)",
    "mat_svd(pack([]), 3, 9223372036854775807, 3)",
    "reindex(pack([1, 2]), [0], [1, 2, 1, 2, 1, 0, 0, 33], 0)",
    "reindex(pack([1, 2]), [0], [1, 2, 1, 2, 1, 0, 0, 1, 2, 0, 1, 0], 0)",
    "reindex(pack([1, 2]), [0, 0], [1, 2, 1, 2, 1, 0, 0, 1, 0, 0, 1, 0], 0)",
    "reindex(pack([1, 2]), [0, 0], [1, 2, 1, 2, 1, 0, 0, 1, -2, 0, 1, 0], 0)",
    "reindex(pack([1, 2]), [0, 0], [1, 2, 1, 2, 1, 0, 0, 1, 2, 0, 1], 0)",
    "reindex(pack([1, 2]), [0, 0], [1, 2, 1, 2, 1, 0, 0, 1, 2, 0, 1, 1, 2, 1, 0], 0)",
    "reindex(pack([1, 2]), [0, 0], [1, 2, 1, 2, 1, 0, 0, 1, 2, 0, 1, 1, 0, 1, 1], 0)",
    "reindex(pack([1, 2]), [0, 0], [1, 2, 1, 2, 1, 0, 0, 1, 2, 0, 1, 1, 1, 1, 0], 0)",
    "reindex(pack([1, 2]), [0, 0], [1, 2, 1, 2, 1, 0, 0, 1, 2, 0, 1, 129], 0)",
    "reindex(pack([1, 2]), [0, 9], [1, 2, 1, 2, 1, 0, 0, 1, 2, 0, 1, 1, 0, "
    "9223372036854775807, 0], 0)",
    "ein('', [], pack([1]), pack([1]))",
    "ein('ij', [1, 1], pack([1]), pack([1]))",
    "ein('i->i', [1], pack([1]), pack([1]))",
    "ein('i,j->k', [1, 1], pack([1]), pack([1]))",
    "ein('i,j->ii', [1, 1], pack([1]), pack([1]))",
    "ein('i,j->i2', [1, 1], pack([1]), pack([1]))",
    "ein('i,j->i', [1], pack([1]), pack([1]))",
    "ein('i,j->i', [2, 1], pack([1]), pack([1]))",
    "ein('i,j->i', [1, 2], pack([1]), pack([1]))",
    "ein('i,j->i', [-1, 1], pack([1]), pack([1]))",
    "ein('i,j->ij', [4294967296, 4294967296], pack([1]), pack([1]))",
    "ein('mean.mult i,j->i', [1, 1], pack([1]), pack([1]))",
    "ein('sum.mean i,j->i', [1, 1], pack([1]), pack([1]))",
    "ein('sum i,j->i', [1, 1], pack([1]), pack([1]))",
    "ein('max.add i,ij->i', [1, 0], pack([1]), pack([]))",
    "ein('abcdefghijklmnopq,a->a', [1], pack([1]), pack([1]))",
    "ein_sca('i,i->i', [1], pack([1]), pack([1]))",
    "ein1('sum.mult i->i', [1], pack([1]))",
    "ein1('i,i->i', [1], pack([1]))",
    "chain1('', pack([1]))",
    "chain1('a ', pack([1]))",
    "chain1('a  relu', pack([1]))",
    "chain1('b', pack([1]))",
    "chain1('_ relu', pack([1]))",
    "chain1('A relu', pack([1]))",
    "chain1('1', pack([1]))",
    "chain1('1 relu', pack([1]))",
    "chain1('a a', pack([1]))",
    "chain1('relu', pack([1]))",
    "chain1('a conj', pack([1]))",
    "chain1('a sum', pack([1]))",
    "chain1('a mult', pack([1]))",
    "chain1('1 2 add a add', pack([1]))",
    "chain1('a 1..5 add', pack([1]))",
    "chain1('a 0x10 add', pack([1]))",
    "chain1('a 1e add', pack([1]))",
    "chain1('a -é add', pack([1]))",
    f"chain1('a {'1' * 50} add', pack([1]))",
    "chain1('a:f32 f64 a add', pack([1]))",
    "chain1('a:f3 f64', pack([1]))",
    "chain1('a: f64', pack([1]))",
    "chain1('a:i64', pack([1]))",
    f"chain1('a{' relu' * 65}', pack([1]))",
    f"chain1('{'a ' * 33}{'add ' * 32}relu', pack([1]))",
    "chain2('a relu', pack([1]), pack([1]))",
    "chain2('a b add', pack([1]), pack([1, 2]))",
    "chain2('a B add', pack([1, 2]), pack([1, 2]))",
    "chain1_i64('a 9223372036854775808 add', pack_i64([1]))",
    "chain1_i64('a 1.0 add', pack_i64([1]))",
    "chain1_i64('a 1 add', pack_i64([9223372036854775807]))",
    "chain1_bool('a 1 add', pack_bool([true]))",
    "chain1_sca('a', pack([1]))",
    "chain1_sca('sum', pack([1]))",
    "chain1_sca('a any', pack([1]))",
    "chain1_sca('a max', pack([]))",
    "chain1_sca_i64('a mean', pack_i64([1]))",
    "chain1_sca_i64('a sum', pack_i64([9223372036854775807, 1]))",
)
BAD_AGGREGATES = (
    ("sum_vec", 64, ["pack(range(i))"]),
    ("sum_vec_sca_mult", 64, ["pack(range(i))", "1.0"]),
    ("sum_vec_mult", 64, ["pack([i])", "pack([i, i])"]),
    ("sum_mat_mat_mult", 64, ["pack([i])", "pack([i])", "3"]),
    ("sum_ein", 64, ["'max.mult i,i->i'", "[1]", "pack([i])", "pack([i])"]),
    ("sum_ein", 64, ["'i,i->i'", "[2]", "pack([i])", "pack([i])"]),
    ("min_ein1", 64, ["'i->i'", "[1]", "pack([i])"]),
    ("stack_sca", 64, ["i::DOUBLE", "i + 1", "3", "0"]),
    ("stack_sca", 64, ["i::DOUBLE", "-1 - i", "3", "0"]),
    ("stack_sca", 64, ["i::DOUBLE", "i", "-3", "0"]),
    ("stack", 64, ["pack([i, i])", "2", "3", "0"]),
    ("stack", 64, ["pack([i, i])", "9223372036854775807", "3", "0"]),
    ("top_max", 64, ["pack([i, i])", "-1", "2"]),
    ("top_max", 64, ["pack([i, i])", "9007199254740993", "2"]),
    ("top_max", 64, ["pack([i, i])", "i", "-2"]),
    ("top_max", 64, ["pack([i, i])", "i", "4611686018427387905"]),
    ("top_min", 64, ["pack(range(i))", "i", "2"]),
    ("stack_strided", 64, ["pack([i, i])", "0", "[2]", "[3]", "3", "0"]),
    ("stack_strided", 64, ["pack([i, i])", "0", "[3]", "[1]", "3", "0"]),
)


@pytest.mark.sample(250)
@pytest.mark.parametrize("expression", BAD_SCALARS)
def test_bad_scalar_arguments(route: Route, expression: str) -> None:
    name = expression[: expression.index("(")]
    with pytest.raises(duckdb.Error, match=rf"{name}: "):
        route.connection.execute(f"SELECT {expression}").fetchall()


@pytest.mark.parametrize("shift", range(4))
def test_a_long_message_ends_with_a_whole_character(route: Route, shift: int) -> None:
    spec = "a" * shift + "é😀" * 200
    with pytest.raises(duckdb.Error, match="ein"):
        route.connection.execute(f"SELECT ein('{spec}', [1], pack([1]), pack([1]))")


@pytest.mark.sample(None)
@pytest.mark.parametrize(("name", "length", "arguments"), BAD_AGGREGATES)
def test_bad_aggregate_arguments(
    route: Route, name: str, length: int, arguments: list[str]
) -> None:
    call = route.call(name, length, arguments)
    with pytest.raises(duckdb.Error, match=rf"{name}: expected"):
        route.connection.execute(f"SELECT {call} FROM range(3) t(i)").fetchall()


@pytest.mark.sample(250)
@pytest.mark.parametrize(
    "name", [n for n, k in KERNELS.items() if "BLOB" in k.parameters and k.tag != "bool"]
)
def test_blob_of_seven_bytes(route: Route, name: str) -> None:
    kernel, plain = KERNELS[name], base(name)
    element = ELEMENT_TYPES[kernel.tag]
    prefix = ""
    if kernel.is_aggregate:
        prefix = plain.partition("_")[0] + (" " if plain.endswith("1") else ".mult ")
    output = "i" if kernel.is_aggregate else ""
    chain = " ".join(["a", *(f"{x} add" for x in "bcd"[: len(kernel.parameters) - 2])])
    if plain.startswith("chain"):
        prefix = chain + (" sum" if "_sca" in plain else "")
    filler = {
        "BLOB": SEVEN_BYTES,
        "BIGINT": "1",
        "BIGINT[]": "[1]",
        "VARCHAR": "''"
        if "csr" in plain
        else "'1;0'"
        if "path" in plain
        else f"'{prefix}'"
        if plain.startswith("chain")
        else f"'{prefix}{'i' if '1' in plain else 'i,i'}->{output}'",
        element.sql: "{re: 1, im: 0}" if element.dtype.kind == "c" else "1",
    }
    arguments = [filler[kind] for kind in kernel.parameters]
    if kernel.is_aggregate:
        expression = route.call(name, 8, arguments)
    else:
        expression = f"{name}({', '.join(arguments)})"
    size = element.dtype.itemsize
    message = f"{element.dtype.name} .a multiple of {size} bytes"
    if compressed_arguments(kernel.name):
        message = "expected a compressed tensor as argument .*, got a BLOB that is too short"
    with pytest.raises(duckdb.Error, match=message):
        route.connection.execute(f"SELECT {expression} FROM range(3) t(i)").fetchall()


def test_every_error_leaves_the_connection_usable(route: Route) -> None:
    assert route.connection.execute("SELECT element(pack([4, 5]), 1)").fetchall() == [(5.0,)]


def test_state_longer_than_its_capacity() -> None:
    route = Route("extension")
    with pytest.raises(duckdb.Error, match="expected at most 8 elements"):
        route.connection.execute("SELECT sum_vec_8(pack(range(9)))").fetchall()
    ((got,),) = route.connection.execute(
        "SELECT vec_to_list(sum_vec_wide(pack(range(20000)))) FROM range(3)"
    ).fetchall()
    assert got == [3.0 * i for i in range(20000)]


@pytest.mark.sample(2)
@pytest.mark.parametrize("suffix", ["16", "64", "16384", "wide"])
def test_many_groups_on_two_threads(suffix: str) -> None:
    """Partial states meet in combine(), each thread having seen only some of a group."""
    connection = duckdb.connect(config=EXTENSION_CONFIG)
    load_extension(connection)
    rows, groups = (400_000, 5_000) if suffix in ("16", "64") else (300_000, 50)
    # One state per query: DuckDB dies of a division by zero when the states of one GROUP BY
    # together outgrow its blocks of 256 KiB.
    columns = []
    for call in (
        f"sum_vec_{suffix}(pack([i, 1, i % 7]))",
        f"max_vec_{suffix}(pack([i, -i]))",
        f"stack_sca_{suffix}(i, (i // {groups}) % 16, 16, -1)",
    ):
        got = connection.execute(
            f"SELECT vec_to_list({call}) FROM (SELECT i, i % {groups} AS g FROM range({rows}) t(i))"
            " GROUP BY g ORDER BY g"
        ).fetchall()
        columns.append([values for (values,) in got])
    assert [len(column) for column in columns] == [groups] * 3
    numbers = np.arange(rows).reshape(-1, groups)
    for g, (total, largest, stacked) in enumerate(zip(*columns, strict=True)):
        own = numbers[:, g]
        assert total == [own.sum(), len(own), (own % 7).sum()]
        assert largest == [own.max(), -own.min()]
        # Of several writers to one place either may win: the value belongs to the place.
        assert [(int(x) // groups) % 16 for x in stacked] == list(range(16))


def test_windows_reuse_their_states() -> None:
    """A window's segment tree combines the same partial state into many results."""
    connection = duckdb.connect(config=EXTENSION_CONFIG)
    load_extension(connection)
    for suffix in ("8", "wide"):
        got = connection.execute(
            f"SELECT element(sum_vec_{suffix}(pack([i])) OVER (ORDER BY i ROWS 99 PRECEDING), 0)"
            " FROM range(3000) t(i) ORDER BY i"
        ).fetchall()
        expected = [sum(range(max(0, i - 99), i + 1)) for i in range(3000)]
        assert [int(x) for (x,) in got] == expected


def test_a_constant_matrix_gives_the_same_as_a_varying_one(route: Route) -> None:
    rng = np.random.default_rng(5)
    x, a = rng.normal(size=(3000, 33)), rng.normal(size=(33, 29))
    connection = route.connection
    for name, matrix in (("a", a), ("at", a.T)):
        connection.execute(
            f'CREATE OR REPLACE TEMP TABLE "{name}" AS SELECT pack(?::DOUBLE[]) AS v',
            [matrix.ravel().tolist()],
        )
    connection.execute(
        "CREATE OR REPLACE TEMP TABLE x AS"
        " SELECT i, CASE WHEN i % 500 <> 7 THEN pack(v) END AS v"
        " FROM (SELECT unnest(range(3000)) AS i, unnest(?::DOUBLE[][]) AS v)",
        [x.tolist()],
    )
    for query in (
        "SELECT i, vec_to_list(vec_mat_mult(x.v, a.v)) FROM x, a ORDER BY i",
        'SELECT i, vec_to_list(mat_vec_mult("at".v, x.v)) FROM x, "at" ORDER BY i',
    ):
        for i, got in connection.execute(query).fetchall():
            if i % 500 == 7:
                assert got is None
            else:
                np.testing.assert_allclose(got, x[i] @ a, rtol=1e-12, atol=1e-12)


def test_matrices_that_share_one_go_into_one_product(route: Route) -> None:
    rng = np.random.default_rng(6)
    x, a = rng.normal(size=(200, 7, 33)), rng.normal(size=(33, 29))
    connection = route.connection
    connection.execute(
        "CREATE OR REPLACE TEMP TABLE a AS SELECT pack(?::DOUBLE[]) AS v", [a.ravel().tolist()]
    )
    connection.execute(
        "CREATE OR REPLACE TEMP TABLE x AS"
        " SELECT i, CASE WHEN i % 50 <> 7 THEN pack(v) END AS v"
        " FROM (SELECT unnest(range(200)) AS i, unnest(?::DOUBLE[][]) AS v)",
        [x.reshape(200, -1).tolist()],
    )
    # Rows of another shape interrupt the run, and so does another inner size.
    for inner in ("33", "CASE WHEN i % 60 = 3 THEN 3 ELSE 33 END"):
        rows = connection.execute(
            f"SELECT i, vec_to_list(mat_mat_mult(x.v, a.v, {inner})) FROM x, a ORDER BY i"
        ).fetchall()
        for i, got in rows:
            if i % 50 == 7:
                assert got is None
                continue
            k = 3 if inner != "33" and i % 60 == 3 else 33
            expected = x[i].reshape(-1, k) @ a.reshape(k, -1)
            np.testing.assert_allclose(got, expected.ravel(), rtol=1e-12, atol=1e-12)


@pytest.mark.sample(3)
@pytest.mark.parametrize("kind", ["DOUBLE", "FLOAT", "BIGINT", "BOOLEAN"])
@pytest.mark.parametrize("lengths", ["3", "i % 5", "700", "i % 3 * 500", "20 + i % 2"])
def test_lists_of_many_rows_are_packed_one_by_one(route: Route, kind: str, lengths: str) -> None:
    """A scan hands out lists one behind the other: short, empty and missing ones among them."""
    tag = next(e.tag for e in ELEMENT_TYPES.values() if e.sql == kind)
    pack, back = typed_name("pack", tag), typed_name("vec_to_list", tag)
    route.connection.execute(
        f"""CREATE OR REPLACE TEMP TABLE lists AS SELECT i, CASE WHEN i % 97 <> 5 THEN
        [((x * 7 + i) % 3)::{kind} FOR x IN range({lengths})] END AS v FROM range(5000) t(i)"""
    )
    for order in ("", "WHERE i % 7 <> 3", "ORDER BY hash(i)"):
        wrong = route.connection.execute(
            f"""SELECT count(*) FROM (SELECT v, {pack}(v) AS p FROM lists {order})
            WHERE {back}(p) IS DISTINCT FROM v OR p <> {pack}(list_transform(v, lambda x: x))"""
        ).fetchall()
        assert wrong == [(0,)]


@pytest.mark.parametrize("length", [12, 8191, 8192, 8193, 300_000])
def test_large_results_are_whole(route: Route, length: int) -> None:
    """Large ones are computed where DuckDB keeps them; it compares BLOBs by their first bytes."""
    for expression, expected in (
        ("vec_square(v)", "[x * x FOR x IN l]"),
        ("vec_add(v, v)", "[x + x FOR x IN l]"),
        ("outer_prod(v, pack([2]))", "[x * 2 FOR x IN l]"),
        ("slice(v, 0, [len(l)], [1])", "l"),
        ("full(len(l), 7.5)", "[7.5 FOR x IN l]"),
    ):
        equal = route.connection.execute(
            f"""SELECT list({expression} = pack({expected}))
            FROM (SELECT pack(l) AS v, l FROM (
                SELECT [(x * 7 + i + 1)::DOUBLE FOR x IN range({length})] AS l FROM range(3) t(i)
            ))"""
        ).fetchall()
        assert equal == [([True] * 3,)], expression


def test_arrow_arrays_of_several_lengths_and_slices() -> None:
    """Arrow hands out slices: offsets of arrays and of their children count."""
    import pyarrow as pa

    from ucle.udf_kernels.arrow import _function

    blobs = [np.full(3, float(i)).tobytes() for i in range(20)]
    for kind in (pa.binary(), pa.large_binary()):
        column = pa.chunked_array([pa.array([None, *blobs], kind)[3:9]])
        got = _function("vec_neg", 1 << 30)(column)
        assert got.to_pylist() == [np.full(3, -float(i)).tobytes() for i in range(2, 8)]
        lists = pa.array([[blobs[0]], blobs[1:4], None, [], [blobs[4], None]], pa.list_(kind))
        got = _function("sum_vec", 1 << 30)(pa.chunked_array([lists[1:]]))
        assert [None if b is None else np.frombuffer(b)[0] for b in got.to_pylist()] == [
            6.0, None, None, 4.0,
        ]  # fmt: skip


def test_booleans_that_are_bytes() -> None:
    """Values outside all lists may be anything; DuckDB 1.4 fills no list at all."""
    import pyarrow as pa

    from ucle.udf_kernels.arrow_arrays import as_parameter

    odd = pa.array([-33, 0, 1, 1, -1], pa.int8())
    lists = pa.ListArray.from_arrays([1, 3, 4], odd)
    if int(duckdb.__version__.split(".")[0]) < 2:
        with pytest.raises(KernelError, match="arrow_lossless_conversion"):
            as_parameter(lists, "BOOLEAN[]")
    else:
        assert as_parameter(lists, "BOOLEAN[]").to_pylist() == [[0, 1], [1]]
    assert as_parameter(odd[1:4], "BOOLEAN").to_pylist() == [0, 1, 1]


def test_symlink_shares_one_image() -> None:
    lib = load_module().lib
    before = lib.ucle_load_count()
    connection = duckdb.connect(config=EXTENSION_CONFIG)
    load_extension(connection)
    load_extension(connection)
    assert lib.ucle_load_count() == before + 1


def test_extension_needs_permission() -> None:
    with pytest.raises(ExtensionUnavailableError, match="allow_unsigned_extensions"):
        load_extension(duckdb.connect())


def test_arrow_names() -> None:
    connection = duckdb.connect()
    names = register_arrow(connection, prefix="u_", names=["pack", "element"])
    assert names == ("u_pack", "u_element")
    assert connection.execute("SELECT u_element(u_pack([1, 2]), 1)").fetchall() == [(2.0,)]
    remove_arrow(connection, names)
    with pytest.raises(duckdb.Error):
        connection.execute("SELECT u_pack([1])")
    with pytest.raises(KernelError, match="no kernel named"):
        register_arrow(connection, names=["pakc"])


def test_every_kernel_has_a_meaning() -> None:
    """The table in C has the kernels of all operators and types, and no others."""
    assert KERNELS.keys() == MEANINGS.keys()


def test_types_of_kernels_are_read_from_c() -> None:
    stack, tape, pack = KERNELS["stack_strided_c64"], KERNELS["tape"], KERNELS["pack_f32"]
    expected = ("BLOB", "BIGINT", "BIGINT[]", "BIGINT[]", "BIGINT", ELEMENT_TYPES["c64"].sql)
    assert (stack.tag, stack.parameters, stack.returns) == ("c64", expected, "BLOB")
    assert stack.gathered == (True, True, False, False, False, False)
    assert (tape.parameters, tape.variadic, tape.returns) == (("VARCHAR",), True, "BLOB[]")
    assert (pack.parameters, pack.is_aggregate) == (("FLOAT[]",), False)


@pytest.mark.parametrize("tag", ELEMENT_TYPES)
def test_capacities_are_registered(tag: str) -> None:
    connection = duckdb.connect(config=EXTENSION_CONFIG)
    load_extension(connection)
    stem = typed_name("stack_sca", tag) + "_"
    found = {
        name.removeprefix(stem)
        for (name,) in connection.execute(
            "SELECT function_name FROM duckdb_functions() WHERE starts_with(function_name, ?)",
            [stem],
        ).fetchall()
        if tag != "f64" or name.removeprefix(stem).partition("_")[0] not in ELEMENT_TYPES
    }
    capacities = ELEMENT_TYPES[tag].capacities
    assert found == {*map(str, capacities), "wide"}
    assert [capacity_suffix(n, tag) for n in capacities] == [str(n) for n in capacities]
    assert capacity_suffix(capacities[-1] + 1, tag) == "wide"
    assert capacities[-1] * ELEMENT_TYPES[tag].dtype.itemsize == 128 * 1024


def test_missing_library_is_reported_on_first_use() -> None:
    script = (
        "import duckdb, pathlib, ucle.udf_kernels as k\n"
        "k.native.LIBRARY = pathlib.Path('gone.duckdb_extension')\n"
        "try: k.register_arrow(duckdb.connect(), names=['pack'])\n"
        "except k.native.KernelsMissingError as error: print(error.hint)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert "pip install" in done.stdout


def test_library_ends_with_the_footer() -> None:
    tail = Path(load_module().__file__).read_bytes()[-512:]
    fields = [tail[i : i + 32].rstrip(b"\0").decode() for i in range(0, 256, 32)]
    ((platform,),) = duckdb.connect().execute("PRAGMA platform").fetchall()
    assert fields == ["", "", "", "C_STRUCT", "1", "v1.2.0", platform, "4"]
    assert tail[256:] == bytes(256)
