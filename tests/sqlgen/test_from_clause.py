"""No plan of DuckDB has a whole tensor crossed with one side of a join, which then copies it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import duckdb
import numpy as np
import pytest
import scipy.sparse as sp
from random_programs.levels import levelled_case

import ucle
from ucle.program import EinsumProgram
from ucle.testing.check_matrix import some_decompositions
from ucle.testing.generate import random_case

JOINS = ("HASH_JOIN", "CROSS_PRODUCT", "BLOCKWISE_NL_JOIN", "NESTED_LOOP_JOIN", "PIECEWISE_MERGE")
"""Operators that keep one side of what they join."""
CROSSING = ("CROSS_PRODUCT", "BLOCKWISE_NL_JOIN", "NESTED_LOOP_JOIN")
PASSING = ("FILTER", "LIMIT", "STREAMING_LIMIT")
"""Operators that hand on the columns of what is below them."""

MASKED = [
    "R[i,j] += A[i,j] * T[i,n] * Y[j,n]",
    "T[i,n] += X[i,m] * W[m,n]; R[i,j] += A[i,j] * T[i,n] * Y[j,n]",
    "S[i,j] += T[i,n] * Y[j,n]; R[i] += A[i,j] * S[i,j]",
]


def crossed_below_a_join(plan: dict[str, Any]) -> Iterator[str]:
    """The cross joins, of more than numbers, whose tuples a join may keep."""
    here = _name(plan)
    for child in plan["children"]:
        inner = child
        while _name(inner) in PASSING:
            (inner,) = inner["children"]
        if here.startswith(JOINS) and _name(inner) in CROSSING and not _is_of_numbers(inner):
            yield f"{_name(inner)} below {here}"
        yield from crossed_below_a_join(child)


def _name(plan: dict[str, Any]) -> str:
    return str(plan["name"]).strip().upper().replace(" ", "_")


def _is_of_numbers(plan: dict[str, Any]) -> bool:
    if not plan["children"]:
        return _name(plan) == "RANGE"
    return all(map(_is_of_numbers, plan["children"]))


def check_script(connection: duckdb.DuckDBPyConnection, script: str) -> None:
    """Run a script, and look at how DuckDB plans each statement that makes something."""
    for statement in connection.extract_statements(script):
        if statement.query.lstrip(" \n;").upper().startswith("CREATE TEMPORARY TABLE"):
            explain = f"EXPLAIN (FORMAT JSON) {statement.query}"
            (plan,) = json.loads(connection.execute(explain).fetchall()[0][1])
            assert not list(crossed_below_a_join(plan)), statement.query
        connection.execute(statement).fetchall()


def check_program(program: EinsumProgram, connection: duckdb.DuckDBPyConnection) -> None:
    """Check the script of a program on a connection that has no other tables."""
    with connection.cursor() as own:
        program.register(own)
        check_script(own, program.to_sql())


def test_the_check_finds_what_it_looks_for(native: duckdb.DuckDBPyConnection) -> None:
    query = """
        EXPLAIN (FORMAT JSON) SELECT a.i, concat(a.v, b.v, w.v) FROM a JOIN b USING (i) CROSS JOIN w
    """
    connection = native.cursor()
    for name, rows in (("a", 54), ("b", 54), ("w", 1)):
        select = f"SELECT range AS i, range::VARCHAR AS v FROM range({rows})"
        connection.execute(f"CREATE TEMPORARY TABLE {name} AS {select}")
    (plan,) = json.loads(connection.execute(query).fetchall()[0][1])
    assert list(crossed_below_a_join(plan)) == ["CROSS_PRODUCT below HASH_JOIN"]


@pytest.mark.parametrize("entries", [1, 40, 4_000])
@pytest.mark.parametrize("text", MASKED)
def test_masked_products(text: str, entries: int, native: duckdb.DuckDBPyConnection) -> None:
    """Tiles of a mask meet those of one factor on keys, and the whole other one beside that."""
    rng = np.random.default_rng(entries)
    rows = rng.integers(0, 700, (2, entries))
    mask = sp.coo_array((np.ones(entries), tuple(rows)), shape=(700, 700)).tocsr()
    arrays = {"T": (700, 20), "Y": (700, 20), "X": (700, 9), "W": (9, 20)}
    made = {"T"} if "T[i,n] +=" in text else set()
    inputs = {
        name: rng.random(shape)
        for name, shape in arrays.items()
        if f"{name}[" in text and name not in made
    }
    program = ucle.einsum_program(text, inputs={"A": mask, **inputs}, database=native)
    ways = [
        way
        for way in some_decompositions(program, entries, 40)
        if any(x.endswith("{}") for each in way.values() for x in each)
    ]
    check_program(program, native)
    for way in ways[:4]:
        check_program(program.with_decomposition(way), native)


def test_keys_of_several_axes(native: duckdb.DuckDBPyConnection) -> None:
    """Every position of several axes is crossed with the whole tensor, and not one axis before."""
    rng = np.random.default_rng(0)
    program = ucle.einsum_program(
        "P[i,j,k] = X[i,j,k] + Y[i,j,k]; Z[i,j,k] = P[i,j,k] * V[i,j]",
        X=rng.random((30, 400, 8)),
        Y=rng.random((30, 400, 8)),
        V=rng.random((30, 400)),
        database=native,
        decomposition={"P": [], "Z": ["i", "j"]},
    )
    check_program(program, native)


@pytest.mark.sample(1)
@pytest.mark.parametrize("make", [random_case, levelled_case])
def test_random_programs(make: Any, native: duckdb.DuckDBPyConnection) -> None:
    for seed in range(8):
        case = make(seed)
        case.create_tables(native)
        program = case.compile(native)
        for way in [None, *some_decompositions(program, seed, 3)]:
            chosen = program if way is None else program.with_decomposition(way)
            check_program(chosen, native)
        case.drop_tables(native)


PEAK = """
import numpy as np, scipy.sparse as sp, ucle
rng = np.random.default_rng(0)
rows = rng.integers(0, 10_240, (2, 20_000))
mask = sp.coo_array((np.ones(20_000), tuple(rows)), shape=(10_240, 10_240)).tocsr()
T, Y = rng.random((2, 10_240, 128))
program = ucle.einsum_program("R[i,j] += A[i,j] * T[i,n] * Y[j,n]", A=mask, T=T, Y=Y)
def status(name):
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith(name)) << 10
before = status("VmRSS")
program.execute().close()
print(status("VmHWM") - before)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="there is no /proc")
def test_the_peak_of_a_product_behind_a_mask() -> None:
    """Beside 10 MB in one tuple stand 40 tiles: with a copy for each of them it took 470 MB."""
    run = subprocess.run([sys.executable, "-c", PEAK], capture_output=True, text=True, check=True)
    assert int(run.stdout) < 150e6
