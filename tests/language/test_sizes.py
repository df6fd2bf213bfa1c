"""Sizes follow the data: programs that are executed again after their tables have changed."""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

import ucle
from ucle.database.open_sessions import open_session
from ucle.errors import BoundError, UcleError
from ucle.pipeline.resize import follow_data

TEXT = """
    gram[i,k] += A[i,j] * A[k,j]
    mean[i] mean= A[i,j]
    power += exp(A[i,j])
    count = sum[i](float64(mean[i] >= 0))
    share[i] = gram[i,i] / count
"""
OUTPUTS = ["gram", "mean", "power", "share"]
NAMES = ["ann", "bob", "cy", "dee", "eve", "flo", "gus", "hal"]
FUZZ = [
    pytest.param(seed, marks=pytest.mark.fuzz)
    for seed in range(20, int(os.environ.get("UCLE_FUZZ_PROGRAMS", "0")))
]
MODES = ["relational", "auto", {"gram": [], "mean": [], "power": ["j"]}]


def dense(connection: duckdb.DuckDBPyConnection, strings: bool) -> Any:
    """The contents of the table as a NumPy array."""
    rows = connection.execute("FROM t").fetchall()
    if strings:
        axes = [sorted({row[axis] for row in rows}) for axis in (0, 1)]
        shape = [len(axis) for axis in axes]
        rows = [(axes[0].index(i), axes[1].index(j), v) for i, j, v in rows]
    else:
        shape = [max((row[axis] + 1 for row in rows), default=0) for axis in (0, 1)]
    made = np.zeros(shape)
    for i, j, value in rows:
        made[i, j] = value
    return made


def expected(a: Any) -> dict[str, Any]:
    gram, (rows, columns) = a @ a.T, a.shape
    share = np.diag(gram) / max(rows, 1)
    mean = a.sum(axis=1) / max(columns, 1)
    return {"gram": gram, "mean": mean, "power": np.exp(a).sum(), "share": share}


def changes(rng: random.Random, strings: bool) -> str:
    """One change of the table; what it inserts is at places that are free."""

    def key() -> str:
        return repr(rng.choice(NAMES)) if strings else str(rng.randrange(12))

    rows = ", ".join(f"({key()}, {key()}, {rng.randint(1, 9)}.0)" for _ in range(rng.randint(1, 6)))
    new = f"SELECT DISTINCT ON (i, j) i, j, v::DOUBLE AS v FROM (VALUES {rows}) r(i, j, v)"
    made = f"CREATE OR REPLACE TABLE t AS {new}"
    return rng.choice(
        [
            f"INSERT INTO t {new} WHERE (i, j) NOT IN (SELECT (i, j) FROM t)",
            f"INSERT INTO t {new} WHERE (i, j) NOT IN (SELECT (i, j) FROM t)",
            f"DELETE FROM t WHERE i = {key()}",
            f"DELETE FROM t WHERE j >= {key()}",
            "DELETE FROM t WHERE i = (SELECT max(i) FROM t)",
            f"UPDATE t SET v = v + 1 WHERE i <> {key()}",
            f"UPDATE t SET i = {key()} WHERE 1 = (SELECT count(*) FROM t)",
            made,
            f"ALTER TABLE t RENAME TO u; {made}; DROP TABLE u",
            "DELETE FROM t",
        ]
    )


def outcome(program: Any) -> dict[str, Any] | type[UcleError]:
    try:
        with program() as result:
            return {name: result[name].to_numpy() for name in OUTPUTS}
    except UcleError as error:
        return type(error)


@pytest.mark.sample(2)
@pytest.mark.parametrize("seed", [*range(20), *FUZZ])
def test_an_old_program_gives_what_a_new_one_gives(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    strings, native, mode = seed % 2 == 0, seed % 4 < 2, MODES[seed % 3]
    path = ":memory:" if seed % 5 < 2 else str(tmp_path / "t.db")
    with ucle.connect(path) if native else duckdb.connect(path) as connection:
        keys = "VARCHAR" if strings else "INTEGER"
        first = "('bob', 'cy', 2.0), ('ann', 'ann', 3.0)" if strings else "(1, 4, 2.0), (0, 1, 3.0)"
        connection.execute(f"CREATE TABLE t (i {keys}, j {keys}, v DOUBLE)").fetchall()
        connection.execute(f"INSERT INTO t VALUES {first}").fetchall()
        relation = "t"
        if rng.random() < 0.3:
            connection.execute("CREATE VIEW seen AS FROM t").fetchall()
            relation = "seen"

        def compile_() -> ucle.EinsumProgram:
            return ucle.einsum_program(
                TEXT, A=relation, database=connection, decomposition=mode, outputs=OUTPUTS
            )

        program = compile_()
        for last in (False, False, False, True):
            change = changes(rng, strings)
            connection.execute(change).fetchall()
            found = outcome(program.execute)
            if last or not isinstance(found, dict):
                again = outcome(lambda: compile_().execute())
                assert describe(found) == describe(again), change
            if isinstance(found, dict):
                for name, value in expected(dense(connection, strings)).items():
                    np.testing.assert_allclose(found[name], value, err_msg=f"{name} after {change}")


def describe(outcome: Any) -> Any:
    """Round outcomes, so that numbers added up in different orders are equal."""
    if not isinstance(outcome, dict):
        return outcome
    return {name: (value.shape, value.round(9).tolist()) for name, value in outcome.items()}


STRINGS = "SELECT * FROM (VALUES ('a', 'b', 1.0), ('b', 'c', 2.0), ('d', 'a', 3.0)) r(i, j, v)"
PAGES = {"i": "page", "j": "page"}


def pages(**options: Any) -> Any:
    return ucle.table("t", coordinates=PAGES, **options)


@pytest.fixture
def links() -> Any:
    with ucle.connect() as connection:
        connection.execute(f"CREATE TABLE t AS {STRINGS}").fetchall()
        yield connection


def test_counts_and_means_forget_what_is_gone(links: Any) -> None:
    out = ucle.tensor(pages(), axes=("i", "j"), database=links).sum("j")
    count, mean = (out >= 0).sum().program(), out.mean().program()
    for change, size, total in (
        ("DELETE FROM t WHERE j = 'c'", 3, 4),
        ("INSERT INTO t VALUES ('x', 'y', 6)", 5, 10),
        ("DELETE FROM t WHERE i = 'a'", 4, 9),
    ):
        links.execute(change).fetchall()
        assert float(count.execute()[count.outputs[0]].to_numpy()) == size
        assert float(mean.execute()[mean.outputs[0]].to_numpy()) == total / size


@pytest.mark.parametrize("decomposition", ["auto", "relational"])
def test_stated_bounds_hold(links: Any, decomposition: str) -> None:
    """Also beside dictionaries, whose coordinates come first."""
    program = ucle.einsum_program(
        "o[i] += A[i,j]; m mean= o[i]",
        A=pages(),
        database=links,
        bounds={"i": 9, "j": 9},
        outputs=["o", "m"],
        decomposition=decomposition,
    )
    for change in ("SELECT 1", "DELETE FROM t WHERE j = 'c'", "INSERT INTO t VALUES ('x', 'y', 6)"):
        links.execute(change).fetchall()
        with program.execute() as result:
            ((total,),) = links.sql("SELECT sum(v)::DOUBLE FROM t").fetchall()
            assert result["o"].to_numpy().shape == (9,)
            assert result["m"].to_numpy() == pytest.approx(total / 9)
    links.execute("INSERT INTO t SELECT chr(97 + x::INT), 'a', 1 FROM range(4, 12) r(x)").fetchall()
    with pytest.raises(BoundError, match="below 9"):
        program.execute()


def test_arrays_beside_tables_that_grow_or_shrink(links: Any) -> None:
    """An array has the size that it has: which coordinate a row of it is for, nothing would say."""
    program = ucle.einsum_program("o[i] += A[i,j] * x[j]", A=pages(), x=np.ones(4), database=links)
    for change in ("INSERT INTO t VALUES ('x', 'a', 6)", "DELETE FROM t WHERE i IN ('x', 'd')"):
        links.execute(change).fetchall()
        with pytest.raises(BoundError, match="4 in input x"):
            program.execute()
    links.execute("INSERT INTO t VALUES ('z', 'a', 6)").fetchall()
    assert program.execute()["o"].to_numpy().tolist() == [1, 2, 0, 6]


def test_arrays_in_tables_may_get_longer() -> None:
    with ucle.connect() as connection:
        made = "CREATE OR REPLACE TABLE h AS SELECT i, [i, i]::DOUBLE[] AS h FROM range(3) r(i)"
        connection.execute(made).fetchall()
        program = ucle.einsum_program("m[k] mean= H[i,k]", H="h", database=connection)
        connection.execute(made.replace("[i, i]", "[i, 1, 2]").replace("(3)", "(5)")).fetchall()
        assert program.execute()["m"].to_numpy().tolist() == [2, 1, 2]


def test_inputs_that_no_output_needs_have_sizes_too(links: Any) -> None:
    links.execute("CREATE TABLE n AS SELECT i FROM range(3) r(i)").fetchall()
    links.execute("CREATE TABLE w AS SELECT i FROM range(5) r(i)").fetchall()
    program = ucle.einsum_program(
        "a[i] = N[i] + 1; b[i] = N[i] * W[i]", N="n", W="w", database=links, outputs=["a"]
    )
    links.execute("INSERT INTO w VALUES (7)").fetchall()
    assert program.execute()["a"].to_numpy().tolist() == [2, 2, 2, 1, 1, 1, 1, 1]


def test_the_decomposition_stays_where_it_can(links: Any) -> None:
    links.execute("CREATE TABLE n AS SELECT i, i + 1 AS j, 2.0 AS v FROM range(30) r(i)").fetchall()
    program = ucle.einsum_program(
        "T[i,k] += A[i,j] * A[j,k]; Z[i,l] += T[i,k] * A[k,l]", A="n", database=links
    )
    given = {name: frozenset() for name in program.decomposition}
    for plan in (program, program.with_decomposition(given)):
        links.execute("INSERT INTO n VALUES (40 + (SELECT count(*) FROM n), 2, 1)").fetchall()
        followed, _ = follow_data(open_session(links), plan.compiled, plan.options)
        assert followed.decomposed.promoted == plan.decomposition
        assert followed.program.types != plan.compiled.program.types


@pytest.mark.parametrize("decomposition", ["auto", "relational"])
def test_numbers_alone_are_tensors_of_stated_sizes(connection: Any, decomposition: str) -> None:
    program = ucle.einsum_program(
        "Z[i,j] = 2.5; s = 3; y[i] += Z[i,j] * s[]",
        bounds={"i": 2, "j": 3},
        database=connection,
        decomposition=decomposition,
        outputs=["Z", "s", "y"],
    )
    with program.execute() as result:
        assert result["Z"].to_numpy().tolist() == [[2.5] * 3] * 2
        assert result["s"].to_numpy() == 3
        assert result["y"].to_numpy().tolist() == [22.5] * 2
