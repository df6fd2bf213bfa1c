"""Wrong tables, arrays, databases and installations: the error, its parts, and nothing left behind.

Wrong programs are in `test_bad_input`.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse
from leftovers import temporary_objects

import ucle
from ucle import errors, table
from ucle.udf_kernels import native as native_module

ROOT = Path(__file__).parents[2]
ROWS = "y[i] += A[i,j]"
EDGES = "CREATE TABLE edges AS SELECT * FROM (VALUES (0, 1, 2.0), (1, 2, 3.0)) t(src, dst, w)"


@contextmanager
def raises(
    kind: type[errors.UcleError], where: str, expected: str, found: str, hint: str | None = None
) -> Iterator[None]:
    """The block raises exactly this class; the place is exact, the other parts are in there."""
    with pytest.raises(errors.UcleError) as info:
        yield
    error = info.value
    assert (type(error), error.where) == (kind, where)
    assert expected in (error.expected or "")
    assert found in (error.found or "")
    assert hint is None or hint in (error.hint or "")


def content(connection: duckdb.DuckDBPyConnection) -> Any:
    """All that the catalogue and the tables of a connection hold."""
    tables = connection.execute("SELECT table_name FROM duckdb_tables() ORDER BY 1").fetchall()
    rows = [connection.execute(f'FROM "{name}" ORDER BY ALL').fetchall() for (name,) in tables]
    return tables, rows, temporary_objects(connection)


GONE = "DuckDB cannot find"
TABLES = [
    (
        "edge",
        errors.InputError,
        ", edge",
        "a table or view",
        "no table or view of that name",
        '"edges"',
    ),
    ("/no/e.parquet", errors.InputError, ", /no/e.parquet", "Parquet", "no such file", None),
    ("a.b.c.d", errors.InputError, "", "schema.table", "'a.b.c.d'", None),
    (table("edges", ["src", "to"]), errors.InputError, ", edges", "src, dst, w", "to", None),
    (table("edges", {"j": "to"}), errors.InputError, ", edges", "src, dst, w", "to", None),
    (table("edges", value="v"), errors.InputError, ", edges", "src, dst, w", "v", None),
    (table("edges", {"q": "dst"}), errors.InputError, ", edges", "labels of the", "q", None),
    (table("edges", ["src"], "w"), errors.InputError, ", edges", "rank 2: A[i,j]", "src", "table("),
    (table("edges", bounds=[3]), errors.InputError, "", "2 bounds: A[i,j]", "(3,)", None),
    (
        table("edges", bounds=[2, 2]),
        errors.CoordinateError,
        ", edges, column dst",
        "below 2",
        "coordinate 2",
        None,
    ),
]


@pytest.mark.parametrize(("given", "kind", "where", "expected", "found", "hint"), TABLES)
def test_tables(
    given: Any, kind: Any, where: str, expected: str, found: str, hint: str | None
) -> None:
    with duckdb.connect() as connection:
        connection.execute(EDGES)
        before = content(connection)
        with raises(kind, f"input A{where}", expected, found, hint):
            ucle.einsum_program(ROWS, A=given, database=connection)
        assert content(connection) == before


def test_table_of_another_rank_and_given_bound() -> None:
    with duckdb.connect() as connection:
        connection.execute(EDGES)
        with raises(errors.InputError, "input A, edges", "4 key columns", "src, dst, w"):
            ucle.einsum_program("y[i] += A[i,j,k,l]", A="edges", database=connection)
        with raises(errors.BoundError, "input A, edges, dst", "below 2, the bound", "coordinate 2"):
            ucle.einsum_program(ROWS, A="edges", bounds={"j": 2}, database=connection)


# Rows of a table t(i, j, v) or t(i, v), the error, the column, what its parts hold.
COORDINATE, VALUE = errors.CoordinateError, errors.ValueTypeError
DATA = [
    ("(0, 0, 1), (0, 0, 2)", errors.DuplicateCoordinatesError, None, "one row", "i = 0, j = 0"),
    ("(0, -5, 1)", COORDINATE, "j", "integers from 0", "-5, as in the row (0, -5"),
    ("(0, 1, 1), (0, NULL, 1)", COORDINATE, "j", "a coordinate", "1 NULLs, as in the row (0, None"),
    ("(0, 1, 1), (0, 2, NULL)", VALUE, "v", "a number in", "1 NULLs, as in the row (0, 2, None"),
    ("(0.5::DOUBLE, 1, 1)", VALUE, "i", "integers, or strings", "DOUBLE"),
    ("(0, 1, '1')", VALUE, "v", "a numeric type", "VARCHAR"),
    ("(0, ['a'])", VALUE, "v", "lists of either", "VARCHAR[]"),
    ("(0, [1, 2]), (1, [1, 2, 3])", VALUE, "v", "2 numbers in every row", "(1, [1, 2, 3])"),
    ("(0, [1, 2]), (1, [1, NULL])", VALUE, "v", "none of them NULL", "(1, [1, None])"),
    ("(0, [1, 2]), (1, NULL)", VALUE, "v", "none of them NULL", "(1, None)"),
    ("(0, NULL::INT[3])", VALUE, "v", "3 numbers in every row", "(0, None)"),
    ("(0, NULL::INT[])", VALUE, "v", "lists 1 deep", "None"),
    ("(0, [1]), (0, [2])", errors.DuplicateCoordinatesError, None, "one row", "2 rows at i = 0"),
]


@pytest.mark.parametrize(("rows", "kind", "column", "expected", "found"), DATA)
@pytest.mark.parametrize("memory", [False, True], ids=["table", "arrow"])
def test_data(
    rows: str, kind: Any, column: str | None, expected: str, found: str, memory: bool
) -> None:
    names = "i, v" if "[" in rows else "i, j, v"
    with duckdb.connect() as connection:
        connection.execute(f"CREATE TABLE t AS SELECT * FROM (VALUES {rows}) t({names})")
        given = connection.sql("FROM t").to_arrow_table() if memory else "t"
        before = content(connection)
        where = f"input A, {'Arrow table' if memory else 't'}"
        with raises(kind, where + (f", column {column}" if column else ""), expected, found):
            ucle.einsum_program(ROWS, A=given, database=connection)
        assert content(connection) == before


def test_duplicates(connection: duckdb.DuckDBPyConnection) -> None:
    data = pa.table({"i": [0, 0, 1], "j": [1, 1, 0], "v": [1.0, 2.0, 4.0]})
    summed = table(data, duplicates="sum")
    program = ucle.einsum_program("y[i,j] = 2 * A[i,j]", A=summed, database=connection)
    with program.execute() as result:
        assert result["y"].to_numpy().tolist() == [[0, 6], [8, 0]]
    with raises(errors.InputError, "table(duplicates=...)", "'error' or 'sum'", "'max'"):
        table(data, duplicates="max")


NO_NUMBERS = [
    np.array([["a", None]], dtype=object),
    np.ones((2, 2), "clongdouble"),
    np.array([["a"]]),
]


@pytest.mark.parametrize("data", NO_NUMBERS)
def test_arrays_of_no_numbers(data: Any) -> None:
    with raises(VALUE, "input A", "float64", f"dtype {data.dtype}"):
        ucle.einsum_program(ROWS, A=data)


def test_ragged_lists() -> None:
    with raises(errors.InputError, "input A", "an array", "inhomogeneous"):
        ucle.einsum_program(ROWS, A=[[1], [1, 2]])


EMPTY = {
    "coo": ("i INT, j INT, v DOUBLE", {}),
    "array": ("i INT, v DOUBLE[2]", {}),
    "list": ("i INT, v DOUBLE[]", {"shape": [2]}),
}


@pytest.mark.sample(4)
@pytest.mark.parametrize("kind", EMPTY)
@pytest.mark.parametrize("chosen", ["auto", "relational", {"y": []}, {"y": ["i"]}, {"y": ["j"]}])
def test_empty_tables_are_empty_tensors(fresh: Any, kind: str, chosen: Any) -> None:
    columns, options = EMPTY[kind]
    fresh.execute(f"CREATE TABLE t({columns})")
    before = content(fresh)
    x, text = np.ones(2), "y[i] += A[i,j] * x[j]"
    for rows in (0, 3):
        given = table("t", bounds=[rows, 2], **options)
        program = ucle.einsum_program(text, A=given, x=x, database=fresh, decomposition=chosen)
        with program.execute() as result:
            assert result["y"].to_numpy().tolist() == [0.0] * rows
            assert result["y"].to_arrow().num_rows == 0
    assert content(fresh) == before


def test_empty_arrays_are_empty_tensors(connection: duckdb.DuckDBPyConnection) -> None:
    for shape in ((0, 3), (3, 0), (0, 0)):
        for data in (np.ones(shape), scipy.sparse.coo_array(shape)):
            with ucle.einsum_program(ROWS, A=data, database=connection).execute() as result:
                assert result["y"].to_numpy().tolist() == [0.0] * shape[0]


AGAIN = "recompile() compiles the program again"
STATED = "ucle.table(bounds=...) takes a larger one, or None for what the data says"
CHANGES = [
    ("INSERT INTO t VALUES (7, [1, 2])", COORDINATE, "i", "below 2", "coordinate 7", STATED),
    ("INSERT INTO t VALUES (-1, [1, 2])", COORDINATE, "i", "integers from 0", "-1", None),
    ("INSERT INTO t VALUES (1, [1, 2, 3])", VALUE, "v", "2 numbers", "(1, [1.0, 2.0, 3.0]", None),
    (
        "INSERT INTO t VALUES (1, ['inf'::DOUBLE, 1])",
        VALUE,
        "v",
        "finite numbers",
        "NaN",
        AGAIN,
    ),
    (
        "INSERT INTO t VALUES (0, [5, 5])",
        errors.DuplicateCoordinatesError,
        None,
        "one row for each position",
        "2 rows at i = 0",
        None,
    ),
    (
        "CREATE OR REPLACE TABLE t(i INT, w DOUBLE[])",
        errors.InputError,
        None,
        "one of i, w",
        "v",
        None,
    ),
    (
        "CREATE OR REPLACE TABLE t(i TEXT, v DOUBLE[])",
        VALUE,
        "i",
        "an integer",
        "VARCHAR",
        AGAIN,
    ),
    ("CREATE OR REPLACE TABLE t(i INT, v DOUBLE)", VALUE, "v", "lists 1 deep", "DOUBLE", AGAIN),
    (
        "DROP TABLE t",
        errors.InputError,
        None,
        "a table or view",
        "no table or view of that name",
        None,
    ),
]


@pytest.mark.parametrize(("change", "kind", "column", "expected", "found", "hint"), CHANGES)
def test_data_that_changed_since(
    fresh: Any, change: str, kind: Any, column: Any, expected: str, found: str, hint: Any
) -> None:
    fresh.execute("CREATE TABLE t(i INT, v DOUBLE[]); INSERT INTO t VALUES (0, [1, 2])")
    given = table("t", bounds=[2, None])
    program = ucle.einsum_program(ROWS, A=given, database=fresh, decomposition={"y": ["i"]})
    program.execute().close()
    fresh.execute(change)
    before = content(fresh)
    where = "input A, t" + (f", column {column}" if column else "")
    with raises(kind, where, expected, found, hint):
        program.execute()
    assert content(fresh) == before


def test_another_database_whose_data_does_not_fit(fresh: Any, path: Path) -> None:
    given = table("edges", bounds=[None, 3])
    program = ucle.einsum_program(ROWS, A=given, database=path)
    fresh.execute(EDGES + "; INSERT INTO edges VALUES (0, 9, 1)")
    before = content(fresh), path.read_bytes()
    with raises(COORDINATE, "input A, edges, column dst", "below 3", "coordinate 9", STATED):
        program.execute(fresh)
    assert (content(fresh), path.read_bytes()) == before


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A database file that holds the edges."""
    with duckdb.connect(tmp_path / "data.duckdb") as connection:
        connection.execute(EDGES)
    return tmp_path / "data.duckdb"


FREE = "a whole DuckDB file that this user may read"


def test_files_that_are_no_database(tmp_path: Path) -> None:
    path = tmp_path / "x.duckdb"
    with raises(errors.DatabaseError, str(path), "an existing DuckDB file", "no file"):
        ucle.einsum_program(ROWS, A="edges", database=path)
    assert not path.exists()
    path.write_text("no database" * 999)
    for opened in (
        lambda: ucle.einsum_program(ROWS, A="e", database=path),
        lambda: ucle.connect(path),
    ):
        with raises(errors.DatabaseError, str(path), FREE, "not a valid DuckDB database"):
            opened()
    assert path.read_text() == "no database" * 999


def test_locked_database(path: Path) -> None:
    before = path.read_bytes()
    hold = "import duckdb, sys; c = duckdb.connect(sys.argv[1]); print('open', flush=True); input()"
    command = [sys.executable, "-c", hold, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"open\n"
        for opened in (
            lambda: ucle.einsum_program(ROWS, A="edges", database=path),
            lambda: ucle.connect(path),
        ):
            free = "a DuckDB file that no other process has open for writing"
            with raises(errors.DatabaseError, str(path), free, "lock", "close the other process"):
                opened()
        holder.communicate(b"\n")
    assert path.read_bytes() == before


def test_to_table(path: Path) -> None:
    where, free = "to_table('edges')", "a name that is free"
    with ucle.einsum_program(ROWS, A="edges", database=path).execute() as result:
        with raises(errors.DatabaseError, where, free, "already exists", "mode='replace'"):
            result["y"].to_table("edges")
        with raises(errors.DatabaseError, "to_table('no.y')", "a schema", "no"):
            result["y"].to_table("no.y")
        with raises(errors.InputError, "to_table", "schema.table", "'a.b.c.d'"):
            result["y"].to_table("a.b.c.d")
        result["y"].to_table("y")
        result["y"].to_table("y", replace=True)
    with duckdb.connect(path) as connection:
        names, (edges, y), left = content(connection)
        assert (names, y, len(edges), left) == ([("edges",), ("y",)], [(0, 2.0), (1, 3.0)], 2, [])


def test_to_table_on_a_read_only_database(path: Path) -> None:
    before = path.read_bytes()
    with duckdb.connect(path, read_only=True) as connection:
        with ucle.einsum_program(ROWS, A="edges", database=connection).execute() as result:
            for replace in (False, True):
                with raises(errors.ReadOnlyError, "to_table('y')", "open for writing", "read-only"):
                    result["y"].to_table("y", replace=replace)
        assert temporary_objects(connection) == []
    assert path.read_bytes() == before


def test_connect_on_a_file_that_is_open_without_extensions(path: Path) -> None:
    with (
        duckdb.connect(path),
        raises(
            errors.DatabaseError, str(path), "no other connection", "configuration", "database="
        ),
    ):
        ucle.connect(path)


@pytest.mark.sample(1)
@pytest.mark.parametrize("required", [True, False])
def test_installation_without_a_compiler(tmp_path: Path, required: bool) -> None:
    for module in ("setuptools", "cffi"):
        if importlib.util.find_spec(module) is None:
            pytest.skip(f"{module} is not installed, and a build needs it")
    if not (ROOT / "setup.py").is_file():
        pytest.skip("these tests do not run in the source tree")
    parts = ("setup.py", "pyproject.toml", "README.md", "LICENSE")
    for name in parts:
        shutil.copy(ROOT / name, tmp_path)
    for folder in ("ucle", "sqlgen", "stats", "udf_kernels"):
        unbuilt = shutil.ignore_patterns("*.duckdb_extension", "*.so", "*.o", "__pycache__")
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=unbuilt)
    done = subprocess.run(
        [sys.executable, "setup.py", "build_ext", "--inplace"],
        cwd=tmp_path,
        env={**os.environ, "CC": "/nonexistent/cc", "UCLE_KERNELS": "required" if required else ""},
        capture_output=True,
        text=True,
        check=False,
    )
    if required:
        assert done.returncode != 0
        assert "ucle could not compile its C kernels" in done.stderr
        assert "apt-get install gcc python3-dev" in done.stderr
    else:
        assert done.returncode == 0
        assert "ucle is built WITHOUT its C kernels" in done.stderr
        assert "/nonexistent/cc" in done.stderr
    assert "Traceback" not in done.stderr
    assert not list(tmp_path.rglob("*.duckdb_extension"))


def test_kernels_that_are_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    native_module.load_module.cache_clear()
    native_module._load_library.cache_clear()
    with monkeypatch.context() as patched:
        patched.setattr(native_module, "LIBRARY", tmp_path / "gone.duckdb_extension")
        with pytest.raises(errors.KernelsMissingError) as info:
            native_module.load_module()
    assert type(info.value) is errors.KernelsMissingError
    assert info.value.where == "module ucle.udf_kernels._kernels"
    assert info.value.expected == "a module that was compiled for this Python and this machine"
    assert "gone.duckdb_extension" in str(info.value.found)
    assert "pip install -e ." in str(info.value.hint)
    assert "gcc python3-dev" in str(info.value.hint)
    assert native_module.load_module() is not None
