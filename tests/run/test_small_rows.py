"""Programs of small dense tensors, which one query with parameters answers without any table."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from leftovers import temporary_objects
from sqlglot import parse_one

import ucle
from ucle import errors
from ucle.run import execute, script
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

    class Counted(execute.FetchedRow):
        def __init__(self, session: Any, name: str, *rest: Any) -> None:
            made.append(name)
            super().__init__(session, name, *rest)

    monkeypatch.setattr(execute, "FetchedRow", Counted)
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
    in_tables = answers(text, inputs, connection)
    assert not rows
    for name, (array, table, dtype) in in_tables.items():
        np.testing.assert_array_equal(found[name][0], array)
        assert found[name][0].dtype == array.dtype == dtype
        assert found[name][1].sort_by([(x, "ascending") for x in table.column_names]) == (
            table.sort_by([(x, "ascending") for x in table.column_names])
        )


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
    monkeypatch.setattr(script, "MOST_ROW_BYTES", 8 * (6 * 7 + 7 * 5 + 6 * 5) - 1)
    answers(TEXTS[0], {"P": P, "Q": Q}, connection)
    assert not rows
    ucle.clear_caches()
    monkeypatch.setattr(script, "MOST_ROW_BYTES", 8 * (6 * 7 + 7 * 5 + 6 * 5))
    answers(TEXTS[0], {"P": P, "Q": Q}, connection)
    assert rows


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
        ("SELECT f(c.v) AS v FROM c", None),
        ("SELECT f(a.v) AS v FROM a POSITIONAL JOIN range(2) AS r(r)", None),
        ("SELECT DISTINCT f(a.v) AS v FROM a", None),
        ("WITH a AS (SELECT 1 AS v) SELECT a.v AS v FROM a", None),
        ("SELECT a.v AS v FROM a UNION ALL SELECT a.v FROM a", None),
    ],
)
def test_queries(query: str, found: tuple[str, ...] | None) -> None:
    made = parameter_query(parse_one(query, dialect="duckdb"), TYPES_OF)
    assert (None if made is None else tuple(table for table, _ in made.parameters)) == found
