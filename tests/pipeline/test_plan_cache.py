"""Choices of the optimiser are kept for the same program, and for nothing else.

Each test compiles a program, changes one thing that no key may overlook, and compares the answer
with NumPy's.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import duckdb
import numpy as np
import pytest
from counted_optimiser import Counted

import ucle
from ucle.database import table_names
from ucle.errors import UnsupportedError
from ucle.pipeline import plan_cache
from ucle.run import script
from ucle.sqlgen import emit


@pytest.fixture
def optimiser(monkeypatch: pytest.MonkeyPatch) -> Iterator[Counted]:
    ucle.clear_caches()
    counted = Counted()
    monkeypatch.setattr(plan_cache, "optimise", counted)
    yield counted
    ucle.clear_caches()


@pytest.fixture
def edges() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE edges AS SELECT i, i * i % 7 AS j, i + 0.5::DOUBLE AS v "
                           "FROM range(20) t(i)")  # fmt: skip
        yield connection


def answer(program: str, **arguments: Any) -> np.ndarray:
    with ucle.einsum_program(program, **arguments).execute() as result:
        return np.asarray(result["y"].to_numpy())


def matrix(connection: duckdb.DuckDBPyConnection, relation: str = "edges") -> np.ndarray:
    rows = connection.execute(f"SELECT i, j, v FROM {relation}").fetchall()
    dense = np.zeros((1 + max(r[0] for r in rows), 1 + max(r[1] for r in rows)))
    for i, j, v in rows:
        dense[i, j] += float(v)
    return dense


SUM = "y[i] += A[i,j] * x[j]"


def test_the_same_program_is_optimised_once(
    optimiser: Counted, edges: duckdb.DuckDBPyConnection
) -> None:
    for _ in range(3):
        x = np.ones(matrix(edges).shape[1])
        got = answer(SUM, A="edges", x=x, database=edges)
        np.testing.assert_allclose(got, matrix(edges) @ x)
    assert optimiser.runs == 1


def test_other_statistics(optimiser: Counted, edges: duckdb.DuckDBPyConnection) -> None:
    """The sizes of all axes stay, and the best plan may be another one."""
    for _ in range(2):
        answer(SUM, A="edges", x=np.ones(5), database=edges)
        edges.execute("INSERT INTO edges SELECT i, j + 1, v FROM edges WHERE j = 1 AND i < 10")
    assert optimiser.runs == 2


def test_other_numbers_in_an_array(optimiser: Counted) -> None:
    """Arrays are in no key, and their numbers are in no kept choice."""
    A = np.arange(6.0).reshape(2, 3)
    for x in (np.array([1.0, 2.0, 3.0]), np.array([3.0, 1.0, 2.0])):
        np.testing.assert_array_equal(answer(SUM, A=A, x=x), A @ x)
    x = np.array([1.0, 2.0, 3.0])
    for A[0, 0] in (5.0, 7.0):
        np.testing.assert_array_equal(answer(SUM, A=A, x=x), A @ x)


@pytest.mark.parametrize(
    ("one", "other"),
    [("1", "1.0"), ("0.0", "-0.0"), ("1", "True"), ("2", "3")],
)
def test_numbers_that_python_takes_for_equal(optimiser: Counted, one: str, other: str) -> None:
    x, numbers = np.array([1, 2]), {}
    for text in (one, other):
        word = text.replace("True", "(1 < 2)")
        expected = np.array([1, 2]) * eval(text)  # the literals above
        got = answer(f"y[i] = x[i] * {word}", x=x)
        numbers[text] = got
        assert got.dtype == expected.dtype
        np.testing.assert_array_equal(got, expected)
        np.testing.assert_array_equal(np.signbit(got), np.signbit(expected))
    assert len(numbers) == 2


@pytest.mark.parametrize(
    "change",
    [
        {"bounds": {"i": 30}},
        {"decomposition": "relational"},
        {"decomposition": {"y": ["i", "j"]}},
        {"memory_limit": "1GB"},
        {"profile": "paper"},
        {"association": "as-written"},
        {"rewrite": "none"},
        {"search": "greedy"},
        {"nonfinite": "sparse"},
        {"path": [(0, 1)]},
    ],
    ids=str,
)
def test_options_are_in_the_key(
    optimiser: Counted, edges: duckdb.DuckDBPyConnection, change: dict[str, Any]
) -> None:
    x = np.arange(5.0)
    plain = answer(SUM, A="edges", x=x, database=edges)
    changed = answer(SUM, A="edges", x=x, database=edges, **change)
    assert optimiser.runs == 2
    np.testing.assert_allclose(changed[: len(plain)], plain)
    assert len(changed) == change.get("bounds", {}).get("i", len(plain))
    answer(SUM, A="edges", x=x, database=edges, **change)
    assert optimiser.runs == 2


def test_an_option_that_has_no_key(optimiser: Counted) -> None:
    """An iterator is read by whoever comes first: such programs are not kept."""
    A, x = np.eye(2), np.ones(2)
    for _ in range(2):
        path = tuple(map(tuple, [(0, 1)]))
        chosen = {"y": {"i", "j"}}
        np.testing.assert_array_equal(answer(SUM, A=A, x=x, path=path, decomposition=chosen), A @ x)
    assert optimiser.runs == 1


def test_an_operator_that_is_registered_again(optimiser: Counted) -> None:
    x = np.array([1.0, 2.0])
    try:
        for factor in (2, 3):
            ucle.register_operator(
                "scaled",
                "map",
                sql=f"{factor} * x",
                numpy=lambda x, factor=factor: factor * x,
                replace=True,
            )
            np.testing.assert_array_equal(answer("y[i] = scaled(x[i])", x=x), factor * x)
    finally:
        ucle.unregister_operator("scaled")
    with pytest.raises(ucle.UcleError, match="scaled"):
        answer("y[i] = scaled(x[i])", x=x)


def test_a_parsed_text_knows_no_operator_that_is_gone(optimiser: Counted) -> None:
    x = np.array([[1.0, 2.0]])
    with pytest.raises(ucle.UcleError):
        answer("y[i] = first[j](x[i,j])", x=x)
    ucle.register_operator("first", "reduce", sql="min(x)", numpy=np.min, identity=np.inf)
    try:
        np.testing.assert_array_equal(answer("y[i] = first[j](x[i,j])", x=x), [1.0])
    finally:
        ucle.unregister_operator("first")
    with pytest.raises(ucle.UcleError):
        answer("y[i] = first[j](x[i,j])", x=x)


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO edges VALUES (3, 40, 1.5)",
        "UPDATE edges SET v = 9 WHERE i = 3",
        "DELETE FROM edges WHERE i > 10",
        "ALTER TABLE edges ALTER v TYPE DOUBLE",
        "ALTER TABLE edges ALTER v TYPE INTEGER",
        "CREATE OR REPLACE TABLE edges AS SELECT j AS i, i AS j, v FROM edges",
    ],
)
def test_changed_tables(
    optimiser: Counted, edges: duckdb.DuckDBPyConnection, statement: str
) -> None:
    text = "y[] += A[i,j]; z[i] += A[i,j]"
    assert answer(text, A="edges", database=edges) == pytest.approx(matrix(edges).sum())
    edges.execute(statement)
    assert answer(text, A="edges", database=edges) == pytest.approx(float(matrix(edges).sum()))


@pytest.mark.parametrize("row", ["(3, 2, 1.5)", "(NULL, 2, 1.5)", "(-1, 2, 1.5)"])
def test_data_that_is_wrong_now(
    optimiser: Counted, edges: duckdb.DuckDBPyConnection, row: str
) -> None:
    """Duplicates, NULLs and negative coordinates are found although the plan is kept."""
    total = answer("y[] += A[i,j]", A="edges", database=edges)
    edges.execute(f"INSERT INTO edges VALUES {row}")
    with pytest.raises(ucle.UcleError):
        answer("y[] += A[i,j]", A="edges", database=edges)
    edges.execute("DELETE FROM edges WHERE i IS NULL OR i < 0 OR (i = 3 AND v = 1.5)")
    assert answer("y[] += A[i,j]", A="edges", database=edges) == pytest.approx(total)


def test_values_that_are_not_finite_now(
    optimiser: Counted, edges: duckdb.DuckDBPyConnection
) -> None:
    """0 times infinity is NaN, so that the plan of finite numbers does not fit."""
    edges.execute("ALTER TABLE edges ALTER v TYPE DOUBLE")
    x = np.zeros(5)
    assert not answer(SUM, A="edges", x=x, database=edges).any()
    edges.execute("UPDATE edges SET v = 'inf' WHERE i = 3")
    with np.errstate(invalid="ignore"):
        expected = matrix(edges) @ x
    np.testing.assert_array_equal(answer(SUM, A="edges", x=x, database=edges), expected)


def test_another_connection(optimiser: Counted, edges: duckdb.DuckDBPyConnection) -> None:
    with duckdb.connect() as other:
        other.execute("CREATE TABLE edges AS SELECT 0 AS i, i AS j, 1.0 AS v FROM range(9) t(i)")
        for connection in (edges, other, edges):
            x = np.ones(matrix(connection).shape[1])
            got = answer(SUM, A="edges", x=x, database=connection)
            np.testing.assert_allclose(got, matrix(connection) @ x)


def test_a_transaction_that_is_rolled_back(
    optimiser: Counted, edges: duckdb.DuckDBPyConnection
) -> None:
    text = "y[] += A[i,j]"
    before = answer(text, A="edges", database=edges)
    edges.execute("BEGIN")
    edges.execute("UPDATE edges SET v = v + 1")
    assert answer(text, A="edges", database=edges) == pytest.approx(before + 20)
    edges.execute("ROLLBACK")
    assert answer(text, A="edges", database=edges) == pytest.approx(before)


def test_a_table_that_another_schema_shadows(
    optimiser: Counted, edges: duckdb.DuckDBPyConnection
) -> None:
    edges.execute("CREATE SCHEMA s; CREATE TABLE s.edges AS SELECT 1 AS i, 2 AS j, 4.0 AS v")
    total = answer("y[] += A[i,j]", A="edges", database=edges)
    edges.execute("SET search_path = 's,main'")
    assert answer("y[] += A[i,j]", A="edges", database=edges) == 4.0
    edges.execute("SET search_path = 'main'")
    assert answer("y[] += A[i,j]", A="edges", database=edges) == total


def test_a_view_with_another_text(optimiser: Counted, edges: duckdb.DuckDBPyConnection) -> None:
    for factor in (1, 2):
        edges.execute(f"CREATE OR REPLACE VIEW w AS SELECT i, j, {factor} * v AS v FROM edges")
        got = answer("y[] += A[i,j]", A="w", database=edges)
        assert got == pytest.approx(factor * matrix(edges).sum())


def test_errors_are_not_kept(optimiser: Counted) -> None:
    A = np.ones((3, 3))
    for _ in range(2):
        with pytest.raises(ucle.UcleError, match="q"):
            answer("y[i] += A[i,j]", A=A, decomposition={"y": ["q"]})
    assert optimiser.runs == 2


def test_a_decomposition_that_no_kernel_computes_is_refused_at_once(optimiser: Counted) -> None:
    A, texts = np.ones((3, 3)), []
    for _ in range(2):
        with pytest.raises(UnsupportedError) as refused:
            answer("y[i,j] = cumsum[j](A[i,j])", A=A, decomposition={"y": ["j"]})
        texts.append((str(refused.value), getattr(refused.value, "__notes__", [])))
        refused.value.add_note("what a caller adds")
    assert texts[0] == texts[1]
    assert optimiser.runs == 1


def test_keys_that_a_tensor_cannot_have_are_tried_once(optimiser: Counted) -> None:
    """The keys of an export are preferred; a scan is computed along other axes if it has to be."""
    A = np.arange(1.0, 13.0).reshape(3, 4)
    runs = []
    for _ in range(3):
        scanned = ucle.tensor(A, axes=("i", "j")).cumsum("j")
        frame = scanned.to_pandas(keys=["j"], rows="all")
        np.testing.assert_array_equal(np.stack(frame["val"], axis=1), A.cumsum(1))
        runs.append(optimiser.runs)
    assert runs[0] == runs[1] == runs[2]


def test_small_arrays_are_written_into_statements_as_they_are(optimiser: Counted) -> None:
    """Physical plans and scripts are kept, too, and hold the numbers of small arrays."""
    for x in (np.array([1.0, 2.0, 3.0]), np.array([1.0, 3.0, 2.0]), np.array([3.0, 2.0, 1.0])):
        np.testing.assert_array_equal(answer("y[i] = A[i] * x[i]", A=np.ones(3), x=x), x)
    assert optimiser.runs == 1


def test_the_script_is_emitted_once_for_a_route(
    optimiser: Counted, edges: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    emitted = []
    monkeypatch.setattr(
        script, "emit", lambda *given, **options: emitted.append(given) or emit(*given, **options)
    )
    x = np.ones(2000)
    for _ in range(3):
        answer(SUM, A="edges", x=x, database=edges)
    assert len(emitted) == 1
    answer(SUM, A="edges", x=x, database=edges, decomposition="relational")
    assert len(emitted) == 2


def test_two_tables_are_looked_at_together(
    optimiser: Counted, edges: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A compilation asks the catalogue once for all tables, and sees one version of each."""
    edges.execute("CREATE TABLE other AS SELECT j AS i, i AS j, v * 2 AS v FROM edges")
    asked = []
    real = table_names.catalogue_query

    def ask(names: tuple[str, ...], **options: bool) -> str:
        asked.append(names)
        return real(names, **options)

    monkeypatch.setattr(table_names, "catalogue_query", ask)
    text = "y[] += A[i,j] * B[j,i]"
    program = ucle.einsum_program(text, A="edges", B="other", database=edges)
    assert asked == [("edges", "other")]
    with program.execute() as result:
        assert result["y"].to_numpy() == pytest.approx(2 * (matrix(edges) ** 2).sum())
    for table in ("edges", "other"):
        edges.execute(f"UPDATE {table} SET v = v + 1")
        expected = (matrix(edges) * matrix(edges, "other").T).sum()
        with program.execute() as result:
            assert result["y"].to_numpy() == pytest.approx(expected)
