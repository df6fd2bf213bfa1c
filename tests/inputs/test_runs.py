"""Tables of runs of one value: read like the entries at all of their positions, by every plan."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import ucle
from ucle import errors
from ucle.stats import measure

SQL = {"float64": "DOUBLE", "float32": "FLOAT", "int64": "BIGINT", "bool": "BOOLEAN"}
Routes = Mapping[str, duckdb.DuckDBPyConnection]
Dense = np.ndarray[Any, Any]
SHAPE = 9, 40


def _runs(seed: int, dtype: str, shape: tuple[int, int] = SHAPE) -> tuple[pa.Table, Dense]:
    """Runs in any order, some of which touch, and the matrix that they make."""
    rng = np.random.default_rng(seed)
    rows, dense = list[tuple[int, int, int, Any]](), np.zeros(shape, dtype)
    for row in range(shape[0]):
        cuts = np.unique(rng.integers(0, shape[1] + 1, size=7)).tolist()
        for start, stop in pairwise(cuts):
            value = np.array(rng.integers(1, 5)).astype(dtype).item()
            if rng.random() < 0.7:
                rows.append((row, start, stop, value))
                dense[row, start:stop] = value
    rows.append((2, 3, 3, rows[0][3]))  # of nothing
    order = rng.permutation(len(rows))
    columns = zip(*(rows[n] for n in order), strict=True)
    return pa.table(
        dict(zip(("line", "start", "stop", "ink"), map(list, columns), strict=True))
    ), dense


def _store(connection: duckdb.DuckDBPyConnection, runs: pa.Table, dtype: str) -> None:
    connection.register("given", runs)
    connection.execute(
        "CREATE OR REPLACE TABLE strokes AS SELECT line::INTEGER AS line, start::INTEGER AS start, "
        f"stop::INTEGER AS stop, ink::{SQL[dtype]} AS ink FROM given"
    ).fetchall()
    connection.unregister("given")


def _input(relation: Any = "strokes", **options: Any) -> ucle.TableInput:
    return ucle.table(relation, ["line", "start"], "ink", ends="stop", bounds=SHAPE, **options)


PROGRAMS = {
    "y[i] += A[i,j]": lambda a, x, b: a.sum(axis=1),
    "y[j] += A[i,j]": lambda a, x, b: a.sum(axis=0),
    "y += A[i,j]": lambda a, x, b: a.sum(),
    "y[i] = max[j](A[i,j])": lambda a, x, b: a.max(axis=1),
    "y[i] += A[i,j] * x[j]": lambda a, x, b: a @ x[:, 0],
    "y[i,k] += A[i,j] * X[j,k]": lambda a, x, b: a @ x,
    "y[j,k] += A[i,j] * B[i,k]": lambda a, x, b: a.T @ b,
    "y[i,h] += A[i,j] * A[h,j]": lambda a, x, b: a @ a.T,
    "y[j,l] += A[i,j] * A[i,l]": lambda a, x, b: a.T @ a,
    "y[i,j] = A[i,j] * B[i,j]": lambda a, x, b: a * b,
    "y[i,j] = A[i,j] > 2": lambda a, x, b: a > 2,
    "y[i] += (A[i,j] > 2) * x[j]": lambda a, x, b: (a > 2) @ x[:, 0],
    "y[i,j] = 3 * A[i,j] + 1": lambda a, x, b: 3 * a + 1,
    "y[i,j] = A[i,~(j-1)] + A[i,j]": lambda a, x, b: a + np.pad(a, ((0, 0), (1, 0)))[:, :-1],
}


@pytest.mark.sample(2)
@pytest.mark.parametrize("dtype", ["float64", "float32", "int64"])
@pytest.mark.parametrize("estimated", [False, True])
@pytest.mark.parametrize("text", PROGRAMS)
def test_every_plan(
    text: str, dtype: str, estimated: bool, routes: Routes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Statistics are counted entry by entry, or run by run, as those of large tables are."""
    if estimated:
        monkeypatch.setattr(measure, "EXACT_ENTRIES", 0)
    runs, dense = _runs(len(text), dtype)
    rng = np.random.default_rng(1)
    X, B = (rng.integers(-3, 4, size=shape).astype(dtype) for shape in ((SHAPE[1], 3), SHAPE))
    given: dict[str, Any] = {"x": X[:, 0].copy(), "X": X, "B": B}
    given = {name: value for name, value in given.items() if f" {name}[" in text}
    expected = PROGRAMS[text](dense, X, B)
    for connection in routes.values():
        _store(connection, runs, dtype)
        program = ucle.einsum_program(text, A=_input(), inputs=given, database=connection)
        for plan in [program, *program.plans(12)]:
            with plan.execute(connection) as result:
                np.testing.assert_array_equal(result["y"].to_numpy(), expected)


def test_truth_values(routes: Routes) -> None:
    runs, dense = _runs(3, "bool")
    other, more = _runs(4, "bool")
    text = "y[i,j] = A[i,j] and B[i,j]; some[i] = any[j](A[i,j]); n += A[i,j] and not B[i,j]"
    for connection in routes.values():
        _store(connection, runs, "bool")
        given = {"A": _input(), "B": _input(other)}
        program = ucle.einsum_program(text, inputs=given, database=connection)
        for plan in [program, *program.plans(12)]:
            with plan.execute(connection) as result:
                np.testing.assert_array_equal(result["y"].to_numpy(), dense & more)
                np.testing.assert_array_equal(result["some"].to_numpy(), dense.any(axis=1))
                assert result["n"].to_numpy() == (dense & ~more).sum()


BY_RUNS = {
    "y[i] += A[i,j] * x[j]": lambda a, x, z: a @ x,
    "y[j] += A[i,j] * z[i]": lambda a, x, z: z @ a,
    "y[j] += z[i] * A[i,j]": lambda a, x, z: z @ a,
    "y[j] += A[i,j]": lambda a, x, z: a.sum(axis=0),
    "y[j] any= A[i,j] > 2": lambda a, x, z: (a > 2).any(axis=0),
}


@pytest.mark.sample(6)
@pytest.mark.parametrize("layout", [["{0}{{j}}"], ["i/4", "{0}{{j}}"]])
@pytest.mark.parametrize("dtype", ["float64", "float32", "int64"])
@pytest.mark.parametrize("text", BY_RUNS)
def test_runs_are_compressed_as_they_are(
    text: str, dtype: str, layout: list[str], routes: Routes
) -> None:
    runs, dense = _runs(5, dtype)
    x, z = np.arange(SHAPE[1]).astype(dtype), np.arange(SHAPE[0]).astype(dtype)
    given = {name: value for name, value in {"x": x, "z": z}.items() if f" {name}[" in text}
    place = text.count(" z[i] *")
    for connection in routes.values():
        _store(connection, runs, dtype)
        program = ucle.einsum_program(
            text,
            A=_input(),
            inputs=given,
            database=connection,
            association="as-written",
            decomposition={"y": [each.format(place) for each in layout]},
        )
        sql = program.to_sql()
        assert "stack_runs" in sql
        assert "unnest" not in sql
        with program.execute(connection) as result:
            np.testing.assert_allclose(result["y"].to_numpy(), BY_RUNS[text](dense, x, z))


def test_runs_do_not_cancel_each_other(routes: Routes) -> None:
    """A run adds to its own columns alone: no digits are lost to those that end before."""
    rows = "(0, 0, 20, 1e300), (1, 10, 30, 1.0), (2, 25, 40, 3.0)"
    expected = np.array([1e300] * 20 + [2] * 5 + [11] * 5 + [9] * 10)
    for connection in routes.values():
        connection.execute(
            f"CREATE OR REPLACE TABLE far AS FROM (VALUES {rows}) t(line, start, stop, ink)"
        ).fetchall()
        program = ucle.einsum_program(
            "y[j] += A[i,j] * z[i]", A=_input("far"), z=np.array([1.0, 2, 3, *[0] * 6]),
            database=connection,
        )  # fmt: skip
        for plan in [program, *program.plans(12)]:
            with plan.execute(connection) as result:
                assert result["y"].to_numpy().tolist() == expected.tolist()


@pytest.mark.parametrize("kind", ["table", "parquet", "csv", "arrow", "pandas", "view"])
@pytest.mark.parametrize("value", ["ink", 1])
def test_every_kind_of_relation(
    kind: str, value: Any, tmp_path: Path, native: duckdb.DuckDBPyConnection
) -> None:
    runs, dense = _runs(6, "int64")
    _store(native, runs, "int64")
    native.execute("CREATE OR REPLACE TEMP VIEW of_strokes AS FROM strokes").fetchall()
    pq.write_table(runs, tmp_path / "runs.parquet")
    runs.to_pandas().to_csv(tmp_path / "runs.csv", index=False)
    relation: Any = {
        "table": "strokes",
        "view": "of_strokes",
        "parquet": str(tmp_path / "runs.parquet"),
        "csv": str(tmp_path / "runs.csv"),
        "arrow": runs,
        "pandas": runs.to_pandas(),
    }[kind]
    A = ucle.table(relation, ["line", "start"], value, ends="stop")
    program = ucle.einsum_program("y[j] += A[i,j]", A=A, database=native)
    expected = (dense if value == "ink" else dense != 0).sum(axis=0)
    with program.execute() as result:
        found = result["y"].to_numpy()
        np.testing.assert_array_equal(found, expected[: len(found)])
        assert not expected[len(found) :].any()


def test_a_vector_of_runs(routes: Routes) -> None:
    for connection in routes.values():
        connection.execute(
            "CREATE OR REPLACE TABLE steps AS FROM (VALUES (4, 9, 2.0), (0, 3, 1.0)) t(a, b, v)"
        ).fetchall()
        program = ucle.einsum_program(
            "s += A[i]; y[i] = A[i] + 1", A=ucle.table("steps", ["a"], "v", ends="b"),
            database=connection,
        )  # fmt: skip
        for plan in [program, *program.plans(6)]:
            with plan.execute(connection) as result:
                assert result["s"].to_numpy() == 13
                assert result["y"].to_numpy().tolist() == [2, 2, 2, 1, 3, 3, 3, 3, 3]


def test_other_keys_may_have_names(native: duckdb.DuckDBPyConnection) -> None:
    shifts = pa.table(
        {
            "who": ["Bo", "Ann", "Bo"],
            "start": [9, 8, 14],
            "stop": [12, 16, 18],
            "pay": [2.0, 1.0, 3.0],
        }
    )
    table = ucle.table(shifts, {"who": "who", "hour": "start"}, "pay", ends="stop")
    paid = ucle.tensor(table, database=native)
    assert paid.axes == ("who", "hour")
    assert paid.sum("hour").to_pandas().to_numpy().tolist() == [["Ann", 8.0], ["Bo", 18.0]]
    assert (paid > 0).sum("who").max().item() == 2
    program = ucle.einsum_program("most max= sum[who](A[who,hour])", A=table, database=native)
    for plan in [program, *program.plans(12)]:
        with plan.execute(native) as result:
            assert result["most"].to_numpy() == 4


def test_runs_are_stored_as_runs(tmp_path: Path) -> None:
    """A tenth of the bytes of the entries, and less."""
    path = tmp_path / "runs.duckdb"
    with duckdb.connect(str(path), config={"allow_unsigned_extensions": "true"}) as connection:
        connection.execute(
            "CREATE TABLE long AS SELECT i // 5 AS line, i % 5 * 1000 AS start, "
            "i % 5 * 1000 + 900 AS stop, 1.0 + i % 7 AS ink FROM range(500) t(i)"
        ).fetchall()
        A = ucle.table("long", ["line", "start"], "ink", ends="stop")
        x = np.arange(4900.0)
        text = "y[i] += A[i,j] * x[j]"
        pinned = {"y": ["0{j}"]}
        for _ in range(2):  # stored by the first, read by the second
            program = ucle.einsum_program(
                text, A=A, x=x, database=connection, store=["A"], decomposition=pinned
            )
            with program.execute(connection) as result:
                found = result["y"].to_numpy()
        assert "stack_runs" not in program.to_sql()
        ((name,),) = connection.execute(
            "SELECT table_name FROM duckdb_tables() "
            "WHERE schema_name = 'ucle' AND table_name LIKE 'long%'"
        ).fetchall()
        ((size,),) = connection.execute(
            f'SELECT sum(octet_length(val)) FROM ucle."{name}"'
        ).fetchall()
        assert size < 450_000 * 12 / 100
    dense = np.zeros((100, 4900))
    for i in range(500):
        dense[i // 5, i % 5 * 1000 : i % 5 * 1000 + 900] = 1 + i % 7
    np.testing.assert_allclose(found, dense @ x)


def test_runs_change(native: duckdb.DuckDBPyConnection) -> None:
    native.execute(
        "CREATE OR REPLACE TABLE grows AS SELECT 0 AS r, 1 AS a, 3 AS b, 2 AS v"
    ).fetchall()
    A = ucle.table("grows", ["r", "a"], "v", ends="b")
    program = ucle.einsum_program("y[p] += A[r,p]", A=A, database=native)
    kept = program.maintain("sums_of_runs", native)
    try:
        native.execute("INSERT INTO grows VALUES (1, 0, 5, 1)").fetchall()
        assert program.execute(native)["y"].to_numpy().tolist() == [1, 3, 3, 1, 1]
        kept.refresh()
        rows = native.execute("FROM sums_of_runs ORDER BY 1").fetchall()
        assert rows == [(0, 1), (1, 3), (2, 3), (3, 1), (4, 1)]
        native.execute("UPDATE grows SET b = 2 WHERE r = 1").fetchall()
        kept.refresh()
        assert native.execute("FROM sums_of_runs ORDER BY 1").fetchall() == [(0, 1), (1, 3), (2, 2)]
        with pytest.raises(errors.UnsupportedError, match="no single entry"):
            kept.to_sql(inserted={"A": "grows"})
    finally:
        kept.drop()


BAD_RUNS = {
    "(0, 3, 2, 1.0)": (errors.CoordinateError, "ends before it begins"),
    "(0, 3, NULL, 1.0)": (errors.CoordinateError, "no end"),
    "(0, 3, 5, 1.0), (0, 4, 6, 1.0)": (errors.DuplicateCoordinatesError, "overlap"),
    "(0, 3, 5, 1.0), (0, 3, 4, 1.0)": (errors.DuplicateCoordinatesError, "overlap"),
    "(0, -1, 5, 1.0)": (errors.CoordinateError, "outside its bound"),
    "(0, 1, 5, NULL)": (errors.ValueTypeError, "a value is NULL"),
}


@pytest.mark.parametrize("estimated", [False, True])
@pytest.mark.parametrize("rows", BAD_RUNS)
def test_wrong_runs(
    rows: str,
    estimated: bool,
    connection: duckdb.DuckDBPyConnection,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if estimated:
        monkeypatch.setattr(measure, "EXACT_ENTRIES", 0)
    connection.execute(
        f"CREATE OR REPLACE TABLE wrong AS FROM (VALUES (7, 1, 2, 1.0), {rows}) t(r, a, b, v)"
    ).fetchall()
    A = ucle.table("wrong", ["r", "a"], "v", ends="b")
    expected, message = BAD_RUNS[rows]
    with pytest.raises(expected, match=message):
        ucle.einsum_program("y[r] += A[r,p]", A=A, database=connection)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"columns_as": "k"}, "ends= and columns_as= contradict"),
        ({"ragged": "k"}, "ends= and ragged= contradict"),
        ({"shape": (3,)}, "ends= and shape= contradict"),
        ({"tiles": (2,)}, "ends= and tiles= contradict"),
        ({"nulls": "missing"}, "ends= and nulls= contradict"),
        ({"duplicates": "sum"}, "ends= and duplicates= contradict"),
        ({"symmetric": True}, "ends= and symmetric= contradict"),
    ],
)
def test_options_that_contradict(options: dict[str, Any], message: str) -> None:
    with pytest.raises(errors.ArgumentError, match=message):
        ucle.table("any", ends="stop", **options)


def test_columns_that_are_no_runs(native: duckdb.DuckDBPyConnection) -> None:
    frame = pd.DataFrame({"a": ["x"], "b": [2], "c": [1.5], "v": [1.0]})
    for keys, ends in ((["a"], "b"), (["b"], "c")):
        A = ucle.table(frame, keys, "v", ends=ends)
        with pytest.raises(errors.ValueTypeError, match="runs go from one position to another"):
            ucle.einsum_program("y += A[p]", A=A, database=native)
    A = ucle.table(frame, ["b"], "v", ends="nowhere")
    with pytest.raises(errors.InputError, match="nowhere"):
        ucle.einsum_program("y += A[p]", A=A, database=native)


def test_entries_are_counted_by_runs(
    native: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a row for each entry: T, V and degrees, which are bounds along the runs."""
    runs, dense = _runs(8, "float64")
    _store(native, runs, "float64")
    monkeypatch.setattr(measure, "EXACT_ENTRIES", 0)
    program = ucle.einsum_program("y[i] += A[i,j]", A=_input(), database=native)
    found = program.compiled.inputs["A"].statistics
    assert found.entries == np.count_nonzero(dense)
    assert found.runs == len(runs)
    assert found.distinct[0] == np.count_nonzero(dense.any(axis=1))
    assert found.distinct[1] >= np.count_nonzero(dense.any(axis=0))
    assert found.largest[0] == np.count_nonzero(dense, axis=1).max()
    assert found.largest[1] >= np.count_nonzero(dense, axis=0).max()
