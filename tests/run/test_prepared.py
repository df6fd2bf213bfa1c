"""Programs that run again on new data: what is passed, what is carried, and what is left behind."""

from __future__ import annotations

from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy.sparse as sp
from leftovers import temporary_objects

import ucle
from ucle.errors import (
    ArgumentError,
    BoundError,
    ExecutionError,
    InputError,
    LabelError,
    NameResolutionError,
    ResultClosedError,
    UcleError,
    ValueTypeError,
)

Connection = duckdb.DuckDBPyConnection
A = np.array([[0.0, 2.0, 0.0], [1.0, 0.0, 0.5], [0.0, 0.25, 1.0]])
POWER = "y[i] += A[i,j] * x[j]"


def power(database: Any, **more: Any) -> ucle.EinsumProgram:
    inputs = {"A": A, "x": np.array([1.0, 0.0, 0.0])}
    return ucle.einsum_program(POWER, inputs=inputs, database=database, **more)


# ---- New data ----


def test_other_arrays_take_the_place_of_inputs(connection: Connection) -> None:
    program = power(connection)
    for seed in range(4):
        x = np.random.default_rng(seed).normal(size=3)
        np.testing.assert_allclose(program.execute(x=x)["y"].to_numpy(), A @ x)
        np.testing.assert_allclose(
            program.execute(inputs={"x": x, "A": A.T})["y"].to_numpy(), A.T @ x
        )
    np.testing.assert_allclose(program.execute()["y"].to_numpy(), A[:, 0])


def test_new_arrays_compile_once(connection: Connection, caplog: Any) -> None:
    program = power(connection)
    program.execute(x=np.ones(3)).close()
    with caplog.at_level("INFO", logger="ucle.compile"):
        for n in range(3):
            program.execute(x=np.full(3, float(n))).close()
    assert not caplog.records


@pytest.mark.parametrize(
    "other",
    [
        sp.csr_array(A.T),
        ucle.table(pd.DataFrame({"i": [0, 2], "j": [1, 0], "v": [4.0, 5.0]}), bounds=(3, 3)),
        A.T.astype(np.int64),
    ],
)
def test_other_kinds_of_inputs_are_compiled_for(other: Any, connection: Connection) -> None:
    dense = np.zeros((3, 3))
    if sp.issparse(other):
        dense = other.toarray()
    elif isinstance(other, np.ndarray):
        dense = other
    else:
        dense[0, 1], dense[2, 0] = 4, 5
    x = np.array([1.0, 2.0, 3.0])
    found = power(connection).execute(inputs={"A": other}, x=x)["y"].to_numpy()
    np.testing.assert_allclose(found, dense @ x)


def test_sizes_may_change_where_the_program_is_compiled_for_them(connection: Connection) -> None:
    with pytest.raises(InputError, match="another shape"):
        power(connection).execute(x=np.ones(4))


def test_what_is_passed_is_an_input_and_passed_once() -> None:
    program = power(None)
    with pytest.raises(NameResolutionError, match="no input z"):
        program.execute(z=np.ones(3))
    with pytest.raises(ArgumentError, match="twice"):
        program.execute(inputs={"x": np.ones(3)}, x=np.ones(3))
    with pytest.raises(ValueTypeError, match="not finite"):
        program.execute(x=np.array([1.0, np.nan, 0.0]))


# ---- Prepared programs ----


def test_what_is_passed_stays(connection: Connection) -> None:
    x = np.array([1.0, 2.0, 3.0])
    with power(connection).prepare() as run:
        run(x=x)
        np.testing.assert_allclose(run(A=A.T)["y"].to_numpy(), A.T @ x)
        np.testing.assert_allclose(run()["y"].to_numpy(), A.T @ x)
        np.testing.assert_allclose(run(x=2 * x)["y"].to_numpy(), A.T @ (2 * x))
        assert run.steps == 4


def test_carried_inputs_begin_again_with_what_is_passed(connection: Connection) -> None:
    with power(connection).prepare(carry={"x": "y"}) as run:
        run()
        before = run.state
        np.testing.assert_allclose(run()["y"].to_numpy(), A @ A[:, 0])
        np.testing.assert_allclose(run(x=np.ones(3))["y"].to_numpy(), A.sum(axis=1))
        run.restore(before)
        np.testing.assert_allclose(run()["y"].to_numpy(), A @ A[:, 0])


@pytest.mark.usefixtures("results_in_tables")
def test_nothing_is_temporary_objects(connection: Connection) -> None:
    before = temporary_objects(connection)
    with power(connection).prepare(carry={"x": "y"}) as run:
        kept = [run() for _ in range(3)]
        tables = temporary_objects(connection)
        assert len(tables) > len(before)
        for _ in range(5):
            run()
        assert len(temporary_objects(connection)) <= len(tables) + 1  # old states go
        np.testing.assert_allclose(kept[0]["y"].to_numpy(), A[:, 0])
    assert temporary_objects(connection) == before
    with pytest.raises(ResultClosedError):
        run()
    with pytest.raises(ResultClosedError):
        kept[0]["y"].to_numpy()


def test_what_does_not_change_is_computed_once(connection: Connection) -> None:
    text = "B[i,k] += A[i,j] * A[j,k]\ny[i] += B[i,j] * x[j]"
    program = ucle.einsum_program(text, A=A, x=np.ones(3), database=connection)
    with program.prepare(swap=["x"]) as run:
        run()
        before = temporary_objects(connection)
        run()
        made = [name for name in temporary_objects(connection) if name not in before]
        assert not any("B" in name for name in made)


@pytest.mark.parametrize("kind", ["native", "arrow"])
def test_swapped_tables_are_followed(kind: str, tmp_path: Any) -> None:
    connect = ucle.connect if kind == "native" else duckdb.connect
    with connect() as con:
        con.execute("CREATE TABLE e AS SELECT * FROM (VALUES (0, 1, 2.0), (1, 0, 3.0)) t(i, j, v)")
        inputs = {"A": ucle.table("e", bounds=(3, 3)), "x": np.ones(3)}
        program = ucle.einsum_program(POWER, inputs=inputs, database=con)
        with program.prepare(swap=["A"]) as run:
            np.testing.assert_allclose(run()["y"].to_numpy(), [2, 3, 0])
            con.execute("INSERT INTO e VALUES (2, 2, 7.0)")
            np.testing.assert_allclose(run()["y"].to_numpy(), [2, 3, 7])
            con.execute("UPDATE e SET v = v + 1")
            np.testing.assert_allclose(run()["y"].to_numpy(), [3, 4, 8])
            con.execute("DELETE FROM e")
            np.testing.assert_allclose(run(x=2 * np.ones(3))["y"].to_numpy(), [0, 0, 0])
            con.execute("INSERT INTO e VALUES (0, 0, 1.0)")
            np.testing.assert_allclose(run()["y"].to_numpy(), [2, 0, 0])


def test_ids_that_come_and_go() -> None:
    """A dictionary numbers carried state; a state with other ids is not mistaken for it."""
    with ucle.connect() as con:
        con.execute(
            "CREATE TABLE e AS SELECT * FROM (VALUES ('a', 'b', 2.0), ('b', 'a', 3.0)) t(i, j, v)"
        )
        con.execute("CREATE TABLE s AS SELECT * FROM (VALUES ('a', 1.0), ('b', 5.0)) t(i, v)")
        same = {"i": "node", "j": "node"}
        inputs = {
            "A": ucle.table("e", coordinates=same),
            "x": ucle.table("s", coordinates={"j": "node"}),
        }
        program = ucle.einsum_program(POWER, inputs=inputs, database=con)
        with program.prepare(carry={"x": "y"}, swap=["A"]) as run:
            np.testing.assert_allclose(run()["y"].to_numpy(), [10, 3])
            np.testing.assert_allclose(run()["y"].to_numpy(), [6, 30])
            con.execute("UPDATE e SET v = 1")
            np.testing.assert_allclose(run()["y"].to_numpy(), [30, 6])
            assert run()["y"].coordinates("i").tolist() == ["a", "b"]
            con.execute("UPDATE e SET i = 'c' WHERE i = 'a'")
            with pytest.raises(UcleError):
                run()


@pytest.mark.parametrize("text", [False, True])
@pytest.mark.parametrize("order", ["Sx", "xS"])
def test_only_the_carried_input_is_replaced(order: str, text: bool, connection: Connection) -> None:
    """Another input may read the same table: it stays as it is."""
    rng = np.random.default_rng(order == "Sx")
    numbers, matrix = rng.normal(size=4), rng.normal(size=(4, 4))
    ids = np.array(list("abcd")) if text else np.arange(4)
    rows = pa.table({"i": np.repeat(ids, 4), "j": np.tile(ids, 4), "v": matrix.ravel()})
    connection.register("begins", pa.table({"i": ids, "v": numbers}))
    connection.execute("CREATE OR REPLACE TEMP TABLE first_state AS FROM begins")
    connection.unregister("begins")
    names = {"coordinates": {"i": "place", "j": "place"}} if text else {}
    program = ucle.einsum_program(
        "y[i] = S[i] + sum[j](A[i,j] * x[j])",
        inputs={"A": ucle.table(rows, **names), **dict.fromkeys(order, "first_state")},
        database=connection,
    )
    expected = numbers
    with program.prepare(carry={"x": "y"}) as run:
        for _ in range(3):
            expected = numbers + matrix @ expected
            np.testing.assert_allclose(run()["y"].to_numpy(), expected)


def test_outputs_have_to_fit() -> None:
    text = POWER + "\nZ[i,j] = A[i,j]\nn[i] = int64(x[i])\nw[k] += B[k,i] * x[i]"
    inputs = {"A": A, "x": np.ones(3), "B": np.ones((2, 3))}
    program = ucle.einsum_program(text, inputs=inputs)
    for carry, error in (
        ({"u": "y"}, NameResolutionError),
        ({"x": "u"}, NameResolutionError),
        ({"x": "Z"}, LabelError),
        ({"x": "w"}, BoundError),
        ({"x": "n"}, InputError),
    ):
        with pytest.raises(error):
            program.prepare(carry=carry)
    with pytest.raises(NameResolutionError):
        program.prepare(swap=["u"])


def test_an_error_leaves_the_state_as_it_was(connection: Connection) -> None:
    text = "y[i] = x[idx[i]] + 1"
    program = ucle.einsum_program(
        text, x=np.array([1.0, 2.0, 3.0]), idx=np.array([1, 2, 0]), database=connection
    )
    with program.prepare(carry={"x": "y"}) as run:
        np.testing.assert_allclose(run()["y"].to_numpy(), [3, 4, 2])
        with pytest.raises(UcleError):
            run(idx=np.array([1, 7, 0]))
        np.testing.assert_allclose(run(idx=np.array([0, 1, 2]))["y"].to_numpy(), [4, 5, 3])


def test_numbers_that_outgrow_their_type_are_not_carried(connection: Connection) -> None:
    program = ucle.einsum_program("y[i] = exp(x[i])", x=np.array([0.0, 1.0]), database=connection)
    x = np.array([0.0, 1.0])
    with program.prepare(carry={"x": "y"}) as run:
        for _ in range(3):
            x = np.exp(x)
            np.testing.assert_allclose(run()["y"].to_numpy(), x)
        with pytest.raises(ValueTypeError, match="outgrew"):
            run()
        with pytest.raises(ValueTypeError):  # from the state before
            run()


@pytest.mark.parametrize("promoted", [[], ["i"], ["j"], ["i", "j"]])
def test_fills_that_are_infinite_are_carried(promoted: list[str], connection: Connection) -> None:
    """Infinite fills of arrays are detected, where nothing else may be infinite."""
    steps = np.full((4, 4), np.inf)
    steps[0, 1], steps[1, 2], steps[2, 3] = 1, 2, 3
    distance = np.array([0, np.inf, np.inf, np.inf])
    connection.execute("CREATE TEMP TABLE here AS SELECT 0 AS i, 0.0::DOUBLE AS v").fetchall()
    made = "SELECT x AS i, x + 1 AS j, (x + 1)::DOUBLE AS v FROM range(3) t(x)"
    connection.execute(f"CREATE TEMP TABLE steps AS {made}").fetchall()
    program = ucle.einsum_program(
        "r[j] min= d[i] + W[i,j]; n[j] = min(r[j], d[j]) + more[]",
        inputs={
            "d": ucle.table("here", bounds=(4,), fill=np.inf),
            "W": ucle.table("steps", bounds=(4, 4), fill=np.inf),
            "more": 0.0,
        },
        database=connection,
        decomposition={"r": promoted},
        outputs=["n"],
    )
    with program.prepare(carry={"d": "n"}) as run:
        for _ in range(3):
            distance = np.minimum((distance[:, None] + steps).min(axis=0), distance)
            np.testing.assert_array_equal(run()["n"].to_numpy(), distance)
        for wrong in (-np.inf, np.nan):
            with pytest.raises(ValueTypeError):
                run(more=wrong)
    connection.execute("DROP TABLE here; DROP TABLE steps").fetchall()


@pytest.mark.parametrize("promoted", [None, {"i"}, {"i", "j"}], ids=["free", "i", "ij"])
def test_zeros_become_others_and_others_zeros(
    connection: Connection, promoted: set[str] | None
) -> None:
    """A plan relies on no entry of what is carried, though it is sparse at first."""
    start = sp.csr_array(np.diag([1.0, 0.0, 0.0]))
    text = "Y[i,j] = 2 * (X[i,j] == 0)\ns[] += X[i,j]\nN[i,j] = float64(Y[i,j])"
    way = {"Y": promoted, "N": promoted} if promoted else "auto"
    program = ucle.einsum_program(text, X=start, database=connection, decomposition=way)
    X = start.toarray()
    with program.prepare(carry={"X": "N"}) as run:
        for _ in range(4):
            result = run()
            np.testing.assert_allclose(result["s"].to_numpy(), X.sum())
            X = 2.0 * (X == 0)
            np.testing.assert_allclose(result["N"].to_numpy(), X)


def test_a_transaction_that_is_rolled_back() -> None:
    with ucle.connect() as con:
        con.execute("BEGIN")
        run = power(con).prepare(carry={"x": "y"})
        np.testing.assert_allclose(run()["y"].to_numpy(), A[:, 0])
        con.execute("ROLLBACK")
        with pytest.raises((ExecutionError, ResultClosedError)):
            run()
        run.close()
        assert not temporary_objects(con)


def test_programs_side_by_side(connection: Connection) -> None:
    """Two prepared programs and plain executions on one connection do not meet."""
    one, other = (
        power(connection).prepare(carry={"x": "y"}),
        power(connection).prepare(carry={"x": "y"}),
    )
    with one, other:
        x, z = np.array([1.0, 0, 0]), np.ones(3)
        other(x=z)
        z = A @ z
        for _ in range(3):
            x, z = A @ x, A @ z
            np.testing.assert_allclose(one()["y"].to_numpy(), x)
            np.testing.assert_allclose(power(connection).execute()["y"].to_numpy(), A[:, 0])
            np.testing.assert_allclose(other()["y"].to_numpy(), z)


def test_what_stays_is_brought_into_a_layout_once(connection: Connection) -> None:
    """So it may be any layout, whatever it takes to get there: the runs are what counts."""
    n = 600
    ends = np.random.default_rng(1).integers(0, n, (2, 20_000))
    i, j = np.divmod(np.unique(ends[0] * n + ends[1]), n)
    edges = pd.DataFrame({"i": i, "j": j, "v": 1.0})
    connection.register("given edges", edges)
    connection.execute('CREATE OR REPLACE TABLE kept_edges AS FROM "given edges"').fetchall()
    connection.unregister("given edges")
    inputs = {"A": ucle.table("kept_edges", bounds=(n, n)), "x": ucle.parameter(np.ones(n))}
    program = ucle.einsum_program(
        "y[i] = 0.5 + sum[j](A[i,j] * x[j]) / 100", inputs=inputs, database=connection
    )
    x, dense = np.ones(n), sp.csr_array((edges["v"], (i, j)), shape=(n, n)).toarray()
    with program.prepare(carry={"x": "y"}) as run:
        assert run._build.compiled.decomposed.total_cost < program.cost
        for _ in range(3):
            x = 0.5 + dense @ x / 100
            np.testing.assert_allclose(run()["y"].to_numpy(), x)
    again = program.iterate({"x": "y"}, max_steps=3)
    np.testing.assert_allclose(again["y"].to_numpy(), x)
    pinned = program.with_decomposition("relational")
    np.testing.assert_allclose(pinned.iterate({"x": "y"}, max_steps=3)["y"].to_numpy(), x)
    with pinned.prepare(carry={"x": "y"}) as run:
        assert run._build.compiled.decomposed.relational
