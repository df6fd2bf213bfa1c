"""Programs of small dense tensors, which one query with parameters answers without any table."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
import scipy.sparse
from leftovers import temporary_objects
from sqlglot import parse_one

import ucle
from ucle import errors
from ucle.database.session import Session
from ucle.plan import parameters as small_parameters
from ucle.run import execute, script
from ucle.sqlgen import NATIVE
from ucle.sqlgen.parameter_query import parameter_query

rng = np.random.default_rng(0)
P, Q, X = rng.normal(size=(6, 7)), rng.normal(size=(7, 5)), rng.normal(size=(3, 6, 7))

TEXTS = [
    "Z[i,k] += P[i,j] * Q[j,k]",
    "Z[i,k] += P[i,j] * Q[j,k]; S[i] = sum[k](relu(Z[i,k])); n = max[i](S[i])",
    "n = sum[i,j](P[i,j])",
    "m[j] = mean[i](P[i,j]); C[j,l] = sum[i]((P[i,j] - m[j]) * (P[i,l] - m[l]))",
    "Z[a,i,k] += X[a,i,j] * Q[j,k]; T[k,a] = max[i](Z[a,i,k])",
    "W[i,j] = P[i,j] > 0; n = sum[i,j](W[i,j])",
    "T[i,j] = exp(P[i,j]) / sum[j](exp(P[i,j]))",
    "B[i] = max[j](P[i,j] > 0.5)",
]
TYPES = ["float64", "float32", "int64", "bool", "complex128", "complex64"]
NUMBERS = ["Z[i,k] += P[i,j] * Q[j,k]", "n += P[i,j]", "D[i,j] = P[i,j] * c", "e = c * c"]


@pytest.fixture
def rows(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The names of rows that were fetched in place of tables."""
    made: list[str] = []

    class Counted(execute.FetchedRows):
        def __init__(self, session: Any, name: str, *rest: Any) -> None:
            made.append(name)
            super().__init__(session, name, *rest)

    monkeypatch.setattr(execute, "FetchedRows", Counted)
    return made


def of_type(dtype: str) -> dict[str, Any]:
    if dtype == "bool":
        return {"P": P > 0, "Q": Q > 0, "c": True}
    scale = 9 if dtype == "int64" else 1
    inputs = {"P": P * scale, "Q": Q * scale, "c": np.float64(3.7)}
    if dtype.startswith("complex"):
        inputs = {name: value * (1 - 2j) for name, value in inputs.items()}
    return {name: np.asarray(value).astype(dtype) for name, value in inputs.items()}


def answers(text: str, inputs: dict[str, Any], connection: Any) -> dict[str, Any]:
    varying = {name: ucle.parameter(value) for name, value in inputs.items() if name in text}
    names = [part.split("[")[0].split()[0] for part in text.split("; ")]
    program = ucle.einsum_program(text, inputs=varying, outputs=names, database=connection)
    with program.execute() as result:
        return {
            name: (result[name].to_numpy(), result[name].to_arrow(rows="all"), result[name].dtype)
            for name in result
        }


@pytest.mark.parametrize("text", TEXTS)
def test_rows_and_tables_are_the_same(
    text: str,
    connection: duckdb.DuckDBPyConnection,
    rows: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    inputs = {"P": P, "Q": Q, "X": X}
    found = answers(text, inputs, connection)
    assert rows, "one query"
    ucle.clear_caches()
    monkeypatch.setattr(script, "MOST_ROW_BYTES", -1)
    del rows[:]
    expect_answers(found, answers(text, inputs, connection))
    assert not rows


def expect_answers(found: dict[str, Any], in_tables: dict[str, Any]) -> None:
    for name, (array, table, dtype) in in_tables.items():
        np.testing.assert_array_equal(found[name][0], array)
        assert found[name][0].dtype == array.dtype == dtype
        assert found[name][1].sort_by([(x, "ascending") for x in table.column_names]) == (
            table.sort_by([(x, "ascending") for x in table.column_names])
        )


STEP = """
z{t}[b,j] = sigmoid(sum[i](H{s}[b,i] * U[i,j]) + sum[k](E[{t},b,k] * W[k,j]))
H{t}[b,j] = (1 - z{t}[b,j]) * tanh(sum[i](H{s}[b,i] * V[i,j])) + z{t}[b,j] * H{s}[b,j]
"""
RECURRENT = "".join(STEP.format(t=t, s=t - 1 if t else "") for t in range(3))
SHAPES = {"H": (3, 4), "U": (4, 4), "V": (4, 4), "E": (3, 3, 2), "W": (2, 4)}
OF_ZEROS = [
    "Z[i,j] = P[i,j] + R[i,j]",
    "Z[i,j] = P[i,j] * R[i,j]; n += Z[i,j] + 1",
    "Z[i,k] += (P[i,j] + R[i,j]) * Q[j,k]; m = max[i,k](Z[i,k])",
    "n = count[i,j](P[i,j]) + sum[j,k](Q[j,k])",
    "m = mean[i,j](P[i,j]); s = max[j,k](Q[j,k])",
    "Z[i,j] = exp(P[i,j]); Y[j] = min[i](Z[i,j]); X2[j] = Y[j] / (1 + R[0,j])",
    "b = any[i,j](P[i,j] > 0); a = all[i,j](R[i,j] == 0)",
    "e = max(c[], -5)",
    "e = max(c[], -5) + min(d[], 3); Z[i,j] = P[i,j] * e[]",
    RECURRENT,
]


ZEROS = "P", "R", "Q", "PR", "PQR", "H", "E", "HE", "UVW", "HUVWE", "c", "d", "cd", "cdP"


@pytest.mark.parametrize(
    ("text", "zeros"),
    [(x, names) for x in OF_ZEROS for names in ZEROS if all(f"{name}[" in x for name in names)],
)
def test_arrays_of_zeros_have_no_row(
    text: str,
    zeros: str,
    connection: duckdb.DuckDBPyConnection,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    inputs = {"P": P, "Q": Q, "R": P + 1, "c": np.array(-7.5), "d": np.array(8.25)}
    inputs |= {name: rng.normal(size=shape) for name, shape in SHAPES.items()}
    inputs = {name: x for name, x in inputs.items() if f"{name}[" in text}
    inputs |= {name: np.zeros_like(inputs[name]) for name in zeros}

    def found() -> dict[str, Any]:
        program = ucle.einsum_program(text, inputs=inputs, database=connection)
        with program.execute() as result:
            return {
                name: (result[name].to_numpy(), result[name].to_arrow(), result[name].dtype)
                for name in result
            }

    by_parameters = found()
    ucle.clear_caches()
    monkeypatch.setattr(script, "MOST_ROW_BYTES", -1)
    expect_answers(by_parameters, found())


def test_a_state_of_zeros_is_a_parameter(
    connection: duckdb.DuckDBPyConnection, rows: list[str]
) -> None:
    """Recurrent networks begin so."""
    inputs = {name: np.ones(shape) for name, shape in SHAPES.items()}
    inputs["H"] = np.zeros(SHAPES["H"])
    ucle.einsum_program(RECURRENT, inputs=inputs, database=connection).execute().close()
    assert len(rows) == 1


BESIDE_TABLES = [
    ("n += A[i,j]", {}),
    ("n = max[i,j](A[i,j])", {}),
    ("y[i] += A[i,j] * x[j]; s += y[i]", {"y": set()}),
    ("Z[i,k] += A[i,j] * X[j,k]", {"Z": set()}),
    ("Z[i,k] = relu(sum[j](A[i,j] * X[j,k])); n += Z[i,k]", {"Z": set()}),
]


@pytest.mark.parametrize(("text", "way"), BESIDE_TABLES)
@pytest.mark.parametrize("rows_of_table", [40, 1, 0])
@pytest.mark.parametrize("most", [1 << 20, 200])
def test_tables_beside_arrays(
    text: str,
    way: dict[str, set[str]],
    rows_of_table: int,
    most: int,
    connection: duckdb.DuckDBPyConnection,
    rows: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A query that reads tables has arrays as parameters, or registered where they are larger."""
    monkeypatch.setattr(script, "MOST_ROW_BYTES", most)
    monkeypatch.setattr(small_parameters, "MOST_PARAMETER_BYTES", most)
    ucle.clear_caches()
    made = "SELECT x % 7 AS i, x % 6 AS j, x + 0.5 AS v FROM range(40) t(x)"
    connection.execute(
        f"CREATE OR REPLACE TEMP TABLE beside AS {made} LIMIT {rows_of_table}"
    ).fetchall()
    before = temporary_objects(connection)
    table = np.zeros((7, 6))
    for n in range(rows_of_table):
        table[n % 7, n % 6] = n + 0.5
    x, X = rng.normal(size=6), rng.normal(size=(6, 7))
    names = [part.split("[")[0].split()[0] for part in text.split("; ")]
    program = ucle.einsum_program(
        text,
        A=ucle.table("beside", bounds=(7, 6)),
        inputs={name: value for name, value in {"x": x, "X": X}.items() if f"* {name}[" in text},
        outputs=names,
        database=connection,
        decomposition=way or "auto",
    )
    stored = table[table != 0]
    Z = table @ X
    expected: dict[str, Any] = {"y": table @ x, "s": (table @ x).sum(), "Z": Z, "n": stored.sum()}
    if "relu" in text:
        expected |= {"Z": np.maximum(Z, 0), "n": np.maximum(Z, 0).sum()}
    if "max" in text:
        expected["n"] = table.max()
    with program.execute() as result:
        for name in names:
            np.testing.assert_allclose(result[name].to_numpy(), expected[name], atol=1e-12)
        assert rows or most == 200 or not rows_of_table
    assert temporary_objects(connection) == before
    connection.execute("DROP TABLE beside").fetchall()


WAYS: list[tuple[str, dict[str, Any]]] = [
    ("Z[i,k] += P[i,j] * Q[j,k]", {"Z": {"i"}}),
    ("Z[i,k] += P[i,j] * Q[j,k]", {"Z": {"i", "k"}}),
    ("Z[i,k] += P[i,j] * Q[j,k]", {"Z": {"k"}}),
    ("Z[a,i,k] += X[a,i,j] * Q[j,k]", {"Z": {"a", "k"}}),
    ("m[j] = mean[i](P[i,j])", {"m": {"j"}}),
    ("B[i] = max[j](P[i,j] > 0.5)", {"B": {"i"}}),
    ("W[i,j] = P[i,j] * (P[i,j] > 0.5)", {"W": {"i"}}),
    ("V[i,j] = sqrt(P[i,j]) / (P[i,j] > 0)", {"V": {"i", "j"}}),
]


@pytest.mark.parametrize(("text", "way"), WAYS)
@pytest.mark.parametrize("dtype", TYPES)
def test_few_rows_and_tables_are_the_same(
    text: str,
    way: dict[str, Any],
    dtype: str,
    connection: duckdb.DuckDBPyConnection,
    rows: list[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    if dtype.startswith("complex") and ">" in text:
        pytest.skip("complex numbers have no order")
    inputs = {"X": X.astype(dtype) if dtype != "bool" else X > 0, **of_type(dtype)}
    (output,) = way
    before = temporary_objects(connection)

    def read() -> list[Any]:
        program = ucle.einsum_program(
            text,
            inputs={name: value for name, value in inputs.items() if f"{name}[" in text},
            database=connection,
            decomposition=way,
        )
        with program.execute() as result:
            found = result[output]
            path = tmp_path / f"{len(rows)}.parquet"
            every = [found.to_numpy(), found.to_arrow(), found.to_arrow(rows="all")]
            if found.shape and found.fill == 0:
                every.append(found.to_scipy().toarray())
            stored = connection.execute(f'FROM "{found.table.name}"').fetchall()
            assert not rows or stored == sorted(stored, key=lambda row: row[:-1])
            found.save(path)
            return [*every, stored, connection.read_parquet(str(path)).fetchall()]

    fetched = read()
    assert rows
    ucle.clear_caches()
    monkeypatch.setattr(script, "MOST_ROW_BYTES", -1)
    del rows[:]
    in_tables = read()
    assert not rows
    for found, expected in zip(fetched, in_tables, strict=True):
        if isinstance(expected, np.ndarray):
            np.testing.assert_array_equal(found, expected)
            assert found.dtype == expected.dtype
        elif isinstance(expected, list):
            assert sorted(map(str, found)) == sorted(map(str, expected))
        else:
            order = [(x, "ascending") for x in expected.column_names if x != "val"]
            assert found.schema == expected.schema
            one, other = (str(x.sort_by(order).to_pylist()) for x in (found, expected))
            assert one == other  # NaN differs from itself, but not as text
    assert temporary_objects(connection) == before


@pytest.mark.parametrize("text", NUMBERS)
@pytest.mark.parametrize("dtype", TYPES)
def test_types(
    dtype: str, text: str, connection: duckdb.DuckDBPyConnection, rows: list[str]
) -> None:
    inputs = of_type(dtype)
    ((name, (array, _, _)),) = answers(text, inputs, connection).items()
    assert rows
    P, Q, c = inputs["P"], inputs["Q"], inputs["c"]
    counted = P.astype(int) @ Q.astype(int) if dtype == "bool" else P @ Q
    expected = {"Z": counted, "n": P.sum(), "D": P * c, "e": c * c}
    tolerance = 1e-5 if dtype in ("float32", "complex64") else 1e-12
    np.testing.assert_allclose(array, expected[name], rtol=tolerance, atol=tolerance)


def test_a_tensor_of_its_fill_has_no_row(connection: duckdb.DuckDBPyConnection) -> None:
    program = ucle.einsum_program("Z[i,k] += P[i,j] * Q[j,k]", P=P, Q=Q, database=connection)
    for zero in (np.zeros_like(P), P):
        np.testing.assert_allclose(program.execute(P=zero)["Z"].to_numpy(), zero @ Q)


def test_0_times_infinity(connection: duckdb.DuckDBPyConnection, rows: list[str]) -> None:
    """What outgrows its type on the way is planned again, as it is with tables."""
    large, zero = np.full((2, 2), 1e200), np.array([[0.0, 1.0], [1.0, 0.0]])
    inputs = {"A": large, "B": large, "C": zero}
    text = "Z[i,l] += A[i,j] * B[j,k] * C[k,l]"
    program = ucle.einsum_program(text, inputs=inputs, database=connection)
    with np.errstate(over="ignore"):
        expected = np.array([[np.inf, np.inf], [np.inf, np.inf]])
    np.testing.assert_array_equal(program.execute()["Z"].to_numpy(), expected)


def test_a_state_that_outgrows_its_type(connection: duckdb.DuckDBPyConnection) -> None:
    program = ucle.einsum_program(
        "y[i] = x[i] * x[i]", x=ucle.parameter(np.full(3, 1e100)), database=connection
    )
    with program.prepare(carry={"x": "y"}) as run:
        np.testing.assert_allclose(run()["y"].to_numpy(), np.full(3, 1e200))
        with pytest.raises(errors.ValueTypeError, match="outgrew"):
            run()
        np.testing.assert_allclose(run.state["x"].to_numpy(), np.full(3, 1e200))


def test_integers_that_overflow(connection: duckdb.DuckDBPyConnection) -> None:
    large = np.full((2, 2), 2**62)
    program = ucle.einsum_program("Z[i,k] += A[i,j] * A[j,k]", A=large, database=connection)
    before = temporary_objects(connection)
    with pytest.raises(errors.NumberRangeError):
        program.execute()
    assert temporary_objects(connection) == before


def test_larger_ones_are_in_tables(
    connection: duckdb.DuckDBPyConnection, rows: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    registered: list[str] = []
    register = Session.register

    def counted(session: Session, name: str, data: Any) -> None:
        if not name.endswith(" rows"):  # those of a result whose table is asked for
            registered.append(name)
        register(session, name, data)

    monkeypatch.setattr(Session, "register", counted)
    both = 8 * (42 + 35)
    for most, parameters, names in [
        (239, both, 2),
        (240, 0, 2),
        (240, both - 1, 1),
        (240, both, 0),
    ]:
        del rows[:], registered[:]
        ucle.clear_caches()
        monkeypatch.setattr(script, "MOST_ROW_BYTES", most)
        monkeypatch.setattr(small_parameters, "MOST_PARAMETER_BYTES", parameters)
        answers(TEXTS[0], {"P": P, "Q": Q}, connection)
        assert bool(rows) == (most >= 240)
        assert len(registered) == names


@pytest.mark.parametrize("size", [60, 600])
def test_lists_that_become_large_arrays_stay_in_tables(
    size: int, connection: duckdb.DuckDBPyConnection
) -> None:
    """DuckDB would make the array while it plans, and again: parameters are constants there."""
    A = scipy.sparse.random_array((size, size), density=0.01, rng=1, format="csr")
    B = rng.normal(size=(size, size))
    text = "y[j] += A[i,j] * B[i,j]"
    program = ucle.einsum_program(text, A=A, B=B, database=connection)
    made = script.script_of(program.compiled.physical, NATIVE).rows
    places = {table for row in made for table, _ in row.query.parameters}
    assert any("lists" in table for table in places) == (size == 60)
    with program.execute(connection) as result:
        np.testing.assert_allclose(result["y"].to_numpy(), (A.toarray() * B).sum(axis=0))


@pytest.mark.sample(1)
def test_a_table_is_made_when_it_is_asked_for(
    connection: duckdb.DuckDBPyConnection, rows: list[str], tmp_path: Path
) -> None:
    before = temporary_objects(connection)
    program = ucle.einsum_program(TEXTS[1], P=P, Q=Q, outputs=["Z", "S", "n"], database=connection)
    result = program.execute()
    assert len(rows) == 1
    np.testing.assert_allclose(result["Z"].to_numpy(), P @ Q)
    assert temporary_objects(connection) == before
    assert len(result["Z"].relation.fetchall()) == 30
    result["S"].save(tmp_path / "s.parquet")
    assert len(connection.read_parquet(str(tmp_path / "s.parquet")).fetchall()) == 6
    assert "6" in repr(result["S"])
    assert len(temporary_objects(connection)) == len(before) + 1
    del result
    gc.collect()
    assert temporary_objects(connection) == before


def test_it_goes_with_its_transaction(fresh: duckdb.DuckDBPyConnection, rows: list[str]) -> None:
    program = ucle.einsum_program(TEXTS[0], P=P, Q=Q, database=fresh)
    with program.execute() as outside:
        fresh.execute("BEGIN")
        inside = program.execute()["Z"]
        np.testing.assert_allclose(inside.to_numpy(), P @ Q)
        assert len(outside["Z"].relation.fetchall()) == 30
        fresh.execute("ROLLBACK")
        with pytest.raises(errors.ResultClosedError, match="rolled back"):
            inside.to_numpy()
        np.testing.assert_allclose(outside["Z"].to_numpy(), P @ Q)
        assert len(outside["Z"].relation.fetchall()) == 30
    with pytest.raises(errors.ResultClosedError, match="closed"):
        outside["Z"].to_numpy()


def test_progress_and_conditions(connection: duckdb.DuckDBPyConnection) -> None:
    seen: list[float] = []
    program = ucle.einsum_program(
        "y[i] = x[i] / 2; s = sum[i](y[i])", x=np.ones(4), outputs=["y", "s"], database=connection
    )
    program.execute(progress=lambda x: seen.append(x.share))
    assert seen[0] == 0
    assert seen[-1] == 1
    with program.iterate(carry={"x": "y"}, until="s < 0.3", max_steps=50) as done:
        np.testing.assert_allclose(done["y"].to_numpy(), np.full(4, 2.0**-4))


TYPES_OF = {("a", "v"): "BLOB", ("b", "v"): "DOUBLE"}


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("SELECT f(a.v, b.v) AS v FROM a POSITIONAL JOIN b", ("a", "b")),
        ("SELECT f(x.v) AS v FROM a AS x WHERE x.v IS NOT NULL", ("a",)),
        ("SELECT g(1) AS v", ()),
        ("SELECT m[1] AS v FROM (SELECT f(b.v) AS m FROM b) AS s", ("b",)),
        ("SELECT f(a.v) AS v FROM a CROSS JOIN b", None),
        ("SELECT f(a.v) AS v FROM a GROUP BY 1", None),
        ("SELECT f(a.v) AS v FROM a LIMIT 0", None),
        ("SELECT f(a.v, c.v) AS v FROM a POSITIONAL JOIN c", ("a",)),
        ("SELECT f(a.v, c.v) AS v FROM c POSITIONAL JOIN a POSITIONAL JOIN b", ("a",)),
        ("SELECT f(a.v, w) AS v FROM a POSITIONAL JOIN c", None),
        ("SELECT f(s.v) AS v FROM (SELECT * FROM a) AS s", None),
        ("SELECT sum(c.v) AS v FROM c GROUP BY TRUE", ()),
        ("WITH c AS (SELECT f(b.v) AS v FROM b LIMIT 1) SELECT a.v AS v FROM a", None),
        ("WITH c AS (SELECT sum(d.v) AS v FROM d) SELECT f(a.v, c.v) AS v FROM a, c", None),
        ("SELECT f(a.v) AS v FROM a POSITIONAL JOIN range(2) AS r(r)", None),
        ("SELECT DISTINCT f(a.v) AS v FROM a", None),
        ("WITH a AS (SELECT 1 AS v) SELECT a.v AS v FROM a", None),
        ("SELECT a.v AS v FROM a UNION ALL SELECT a.v FROM a", None),
    ],
)
def test_queries(query: str, found: tuple[str, ...] | None) -> None:
    """Which of the tables a and b are left out; c is one of many rows."""
    made = parameter_query(parse_one(query, dialect="duckdb"), TYPES_OF)
    assert (None if made is None else tuple(table for table, _ in made.parameters)) == found


def test_columns_keep_their_names() -> None:
    text = "WITH c AS (SELECT a.v FROM a) SELECT c.v AS v FROM c POSITIONAL JOIN b WHERE b.v > 0"
    made = parameter_query(parse_one(text, dialect="duckdb"), TYPES_OF)
    assert made is not None
    assert [table for table, _ in made.parameters] == ["b", "a"]
    with duckdb.connect() as connection:
        assert connection.execute(made.text, [1.5, b"x"]).fetchall()[0][0] == b"x"
