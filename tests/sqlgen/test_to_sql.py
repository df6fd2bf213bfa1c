"""The scripts of `to_sql()`: as they were, and right when run by hand in a fresh process.

A golden file holds EinSum, plan, decomposition and SQL of a program. ``--update-golden`` writes
them again; a script must give the oracle's answer as well, so that none can enshrine a wrong one.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from classics import TEXTS, classic

import ucle
from ucle.plan.steps import Role
from ucle.testing.generate import Case
from ucle.testing.oracle import assert_equal

GOLDEN = Path(__file__).parents[1] / "golden"
GOLDEN_PROGRAMS = ("matmul", "gcn", "attention", "broadcast_add", "self_join", "softmax", "trace")
OPTIONS: dict[str, dict[str, Any]] = {
    "native": {},
    "arrow": {},
    "plain": {"decomposition": "relational"},
}


def case_in_file(name: str, path: Path) -> Case:
    """A classic program whose inputs are tables of a file, columns i0, i1, ..., v."""
    case = classic(name, kind="tables")
    with duckdb.connect(str(path)) as connection:
        case.create_tables(connection)
    return case


def compile_case(case: Case, path: Path, route: str, **options: Any) -> ucle.EinsumProgram:
    """Compiled for a route; the connection is closed again, so that the file can be opened."""
    opened = duckdb.connect(str(path)) if route == "arrow" else ucle.connect(path)
    with opened as connection:
        program = case.compile(connection, **OPTIONS[route], **options)
        # Where everything is promoted, no kernels are needed on any route.
        assert program.route in (route, "plain")
        program.script = program.to_sql()  # type: ignore[attr-defined]
    return program


def replay(path: Path, route: str, script: str, folder: Path) -> list[list[Any]]:
    """Rows of the script's last SELECT, run in a process of its own."""
    file = folder / "script.sql"
    file.write_text(script, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, str(Path(__file__).parents[1] / "replay.py"), str(path), route, str(file)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    rows: list[list[Any]] = json.loads(done.stdout)
    return rows


def dense(program: ucle.EinsumProgram, rows: list[list[Any]]) -> Any:
    """The tensor that a program's last output shows as rows of keys and a value."""
    name = program.outputs[-1]
    read = program.compiled.plan.outputs[name]
    array = np.full(read.type.shape, read.type.fill)
    view = array.transpose(read.layout.promoted + read.layout.dense)
    for *keys, value in rows:
        view[tuple(keys)] = np.reshape(value, read.type.dense_shape(read.layout))
    return array


@pytest.mark.slow
@pytest.mark.parametrize("route", OPTIONS)
@pytest.mark.parametrize("name", TEXTS)
def test_replayed_in_a_fresh_process(name: str, route: str, tmp_path: Path) -> None:
    path = tmp_path / "case.duckdb"
    case = case_in_file(name, path)
    program = compile_case(case, path, route)
    rows = replay(path, route, program.script, tmp_path)  # type: ignore[attr-defined]
    assert_equal(dense(program, rows), case.expected()[program.outputs[-1]], f"{name}, {route}")


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", GOLDEN_PROGRAMS)
def test_golden(name: str, tmp_path: Path, pytestconfig: pytest.Config) -> None:
    path = tmp_path / "case.duckdb"
    program = compile_case(case_in_file(name, path), path, "native", association="as-written")
    compiled = program.compiled
    parts = (str(compiled.program), str(compiled.decomposed), str(compiled.physical))
    text = "\n\n".join([*parts, program.script])  # type: ignore[attr-defined]
    golden = GOLDEN / f"{name}.txt"
    if pytestconfig.getoption("--update-golden"):
        golden.write_text(text, encoding="utf-8")
    assert golden.read_text(encoding="utf-8") == text, "see --update-golden"


def test_inputs_from_memory_are_named_and_registered(native: duckdb.DuckDBPyConnection) -> None:
    arrays = {"A": np.eye(200), "x": np.arange(200.0)}
    program = ucle.einsum_program("y[i] += A[i,j] * x[j]", database=native, **arrays)
    script = program.to_sql()
    names = [step.name for step in program.compiled.physical.steps if step.role is Role.INPUT]
    assert len(names) == 2
    for name in names:
        assert name in script.split("CREATE")[0], "the header names the inputs"
    with native.cursor() as connection:
        program.register(connection)
        rows = connection.execute(script).fetchall()
    assert_equal(dense(program, [list(row) for row in rows]), np.arange(200.0))


def test_small_inputs_from_memory_are_written_out(native: duckdb.DuckDBPyConnection) -> None:
    arrays = {"A": np.eye(3), "x": np.arange(3.0)}
    program = ucle.einsum_program(
        "y[i] += A[i,j] * x[j]", database=native, decomposition={"y": ()}, **arrays
    )
    script = program.to_sql()
    assert "Inputs from memory" not in script
    with ucle.connect() as connection:  # which has nothing registered
        rows = connection.execute(script).fetchall()
    assert_equal(dense(program, [list(row) for row in rows]), np.arange(3.0))


def test_relational_sql_is_plain(native: duckdb.DuckDBPyConnection) -> None:
    program = ucle.einsum_program(
        "T[i,k] = relu(A[i,j] * B[j,k])",
        A=np.eye(3),
        B=np.eye(3),
        database=native,
        decomposition="relational",
    )
    script = program.to_sql()
    assert program.route == "plain"
    for kernel in ("vec_", "ein(", "stack", "pack(", "element("):
        assert kernel not in script


@pytest.mark.sample(3)
@pytest.mark.parametrize("rows", [None, "nonfill", "all"])
@pytest.mark.parametrize("keys", [["k"], ["i", "k"], ["k", "i"], None])
def test_a_script_shows_the_form_that_a_table_has(keys: list[str] | None, rows: str | None) -> None:
    """Whatever the plan has stored: names of coordinates, columns and rows are those asked for."""
    fresh = ucle.connect()
    fresh.execute("""
        CREATE TABLE A AS SELECT 'p' || i AS i, 'q' || j AS j, (i - j)::DOUBLE AS val
        FROM range(4) a(i), range(3) b(j)
    """)
    W = np.array([[1.0, 0.0], [2.0, 0.0], [1.0, 0.0]])
    text = "Z[i,k] += A[i,j] * W[j,k]"
    for promoted in ([], ["i"]):
        given = {"A": "A", "W": W, "database": fresh, "decomposition": {"Z": promoted}}
        program = ucle.einsum_program(text, **given)
        with program.execute() as result:
            result["Z"].to_table("form", mode="replace", keys=keys, rows=rows)
        expected = fresh.execute("FROM form ORDER BY ALL").fetchall()
        cursor = fresh.cursor()
        program.register(cursor)
        script = program.to_sql(keys=keys, rows=rows)
        if keys is None and rows is None:  # as it lies
            assert script == program.to_sql()
            continue
        assert sorted(cursor.execute(script).fetchall()) == expected
        cursor.close()
    fresh.close()


def test_forms_that_there_are_not(native: duckdb.DuckDBPyConnection) -> None:
    text = "Z[i] += A[i,j]; S = sum[i](Z[i])"
    program = ucle.einsum_program(text, A=np.eye(3), database=native, outputs=["Z", "S"])
    with pytest.raises(ucle.errors.ArgumentError, match="which output"):
        program.to_sql(keys=["i"])
    with pytest.raises(ucle.errors.NameResolutionError, match="Q"):
        program.to_sql(keys={"Q": ["i"]})
    with pytest.raises(ucle.errors.ArgumentError, match="rows"):
        program.to_sql(rows="all", max_rows=2)
