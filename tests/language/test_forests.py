"""Forests of decision trees against an oracle of loops: on every decomposition and both routes."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import ucle
from ucle.errors import (
    BoundError,
    ExecutionError,
    KernelsMissingError,
    LabelError,
    NameResolutionError,
    ProgramSyntaxError,
    UnsupportedError,
    ValueTypeError,
)
from ucle.optimiser import choose_decomposition
from ucle.testing.check_matrix import Routes, check_everywhere
from ucle.testing.generate import Case, make_input
from ucle.testing.oracle_forests import sum_forest
from ucle.testing.partitions import run_on_partitions
from ucle.testing.random_forests import random_forest, random_rows

RNG = np.random.default_rng(17)
R, S, N = 5, 3, 4

DATA: dict[str, np.ndarray] = {
    "X": random_rows(RNG, R, N),
    "Y": random_rows(RNG, R, N, missing=0).astype(np.float32),
    "Z": RNG.integers(-2, 3, (R, N)),
    "B": RNG.random((R, N)) < 0.5,
    "G": random_rows(RNG, R, S, N),
    "v": random_rows(RNG, N),
    "w": np.array([1.0, 2.0, 0.5, -1.0]),
    "F": random_forest(RNG, features=N),
    "P": random_forest(RNG, features=N, trees=20, leaves=3, outputs=1, codes=(1,)),
    "L": random_forest(RNG, features=N, trees=1, leaves=1, outputs=3),
    "T": random_forest(RNG, features=N, trees=2).T,
    "I": np.nan_to_num(random_forest(RNG, features=N, codes=(2, 3)), posinf=9, neginf=-9).astype(
        int
    ),
    "E": np.zeros((12, 2)),
}

FORMS = [
    "E[r,k] = forest[f,p](X[r,f], F[p,k])",
    "E[r,k] = forest[f,p](Y[r,f], F[p,k])",
    "E[r,k] = forest[f,p](Z[r,f], F[p,k])",
    "E[r,k] = forest[f,p](B[r,f], P[p,k])",
    "E[k] = forest[f,p](v[f], L[p,k])",
    "E[k,r] = forest[f,p](X[r,f], P[p,k])",
    "E[r,k] = forest[f,p](X[r,f], T[k,p])",
    "E[r,k] = forest[f,p](X[r,f], I[p,k])",
    "E[r,s,k] = forest[f,p](G[r,s,f], F[p,k])",
    "E[s,k,r] = forest[f,p](G[r,s,f], F[p,k])",
    "E[s,k] += forest[f,p](G[r,s,f], F[p,k])",
    "E[r] = forest[f,p](X[r,f], F[p,k])",
    "E[r,k] = forest[f,p](Y[r,f] * w[f], F[p,k])",
    "E[r,k] = forest[f,p](X[r,f], 2 * F[p,k] - F[p,k])",
    "E[r,k] = 1 / (1 + exp(-forest[f,p](X[r,f], F[p,k])))",
    "E[r,k] = forest[f,p](X[r,f], F[p,k]) + forest[p,f](Y[r,p], F[f,k])",
    "E[r] = argmax[k](forest[f,p](X[r,f], L[p,k]))",
    "E[r,f] = forest[f,p](X[r,f], F[p,k]) * Y[r,f]",
    "M[r,k] = forest[f,p](Y[r,f], P[p,k]); E[r,j] = M[r,k] * forest[f,p](X[r,f], F[p,j])",
]


@pytest.mark.sample(1)
@pytest.mark.parametrize("text", FORMS)
def test_every_decomposition(text: str, routes: Routes) -> None:
    names = [name for name in DATA if re.search(rf"\b{name}\[", text.replace("E[", ""))]
    made = {name: make_input(RNG, name, DATA[name], 0) for name in names}
    inputs = {name: value for name, (value, _) in made.items()}
    tables = {name: table for name, (_, table) in made.items() if table is not None}
    arrays = {name: DATA[name] for name in names}
    case = Case(text, arrays, inputs, {}, ("E",), tables)
    assert check_everywhere(case, routes, seed=len(text), sample=12)


def test_an_empty_forest() -> None:
    with ucle.einsum_program(FORMS[0], X=DATA["X"], F=np.zeros((0, 2))).execute() as result:
        np.testing.assert_array_equal(result["E"].to_numpy(), np.zeros((R, 2)))


@pytest.mark.parametrize("promoted", [["r"], []])
def test_rows_that_are_not_stored(
    promoted: list[str], connection: duckdb.DuckDBPyConnection
) -> None:
    """They are rows of fill, and come to leaves like all others."""
    stored = [(r, f, DATA["Y"][r, f].item()) for r in (0, 3) for f in range(N)]
    table = pa.table(dict(zip("rfv", map(list, zip(*stored, strict=True)), strict=True)))
    X = ucle.table(table, ["r", "f"], "v", bounds=[R, N])
    packed = DATA["F"].copy()
    packed[-1] = 0  # what is not stored at the end is 0
    given = {"X": X, "F": packed, "database": connection, "decomposition": {"E": promoted}}
    program = ucle.einsum_program(FORMS[0], **given)
    whole = np.where(np.isin(np.arange(R), (0, 3))[:, None], DATA["Y"], 0)
    with program.execute() as result:
        np.testing.assert_array_equal(result["E"].to_numpy(), sum_forest(whole, packed))


@pytest.mark.turns(3)
@pytest.mark.sample(1)
def test_a_table_with_a_column_of_arrays(fresh: duckdb.DuckDBPyConnection) -> None:
    """Its rows stay key columns, and the forest is packed once."""
    x = random_rows(RNG, 3000, N)
    packed = random_forest(RNG, features=N, trees=50, leaves=200)
    rows = pa.table({"r": np.arange(len(x)), "x": list(x)})
    fresh.register("rows_in_memory", rows)
    fresh.execute("CREATE TABLE samples AS SELECT r, x FROM rows_in_memory")
    given = {"X": "samples", "F": packed, "database": fresh}
    program = ucle.einsum_program(FORMS[0], **given, decomposition={"E": ["r"]})
    assert program.to_sql().count("forest_pack") == 1
    with program.execute() as result:
        np.testing.assert_array_equal(result["E"].to_numpy(), sum_forest(x, packed))


@pytest.mark.parametrize("promoted", [["r"], []])
def test_views_follow_their_tables(promoted: list[str]) -> None:
    with ucle.connect() as connection:
        connection.execute(
            "CREATE TABLE X AS SELECT r, f, 1.0 AS v FROM range(3) a(r), range(2) b(f)"
        )
        stump = np.zeros((18, 1))
        stump[:5, 0] = 1, 0.5, 1, 2, 17
        stump[11], stump[17] = 10, 20
        connection.register(
            "stump", pa.table({"p": np.arange(18), "k": [0] * 18, "v": stump[:, 0]})
        )
        connection.execute("CREATE TABLE F AS FROM stump")
        given = {"X": "X", "F": "F", "database": connection, "decomposition": {"E": promoted}}
        program = ucle.einsum_program(FORMS[0], **given)
        program.create_views(rows="nonfill")
        assert connection.sql("SELECT val FROM E ORDER BY r").fetchall() == [(20.0,)] * 3
        connection.execute("DELETE FROM X WHERE r = 1")
        assert connection.sql("SELECT val FROM E ORDER BY r").fetchall() == [
            (20.0,),
            (10.0,),
            (20.0,),
        ]
        connection.execute("UPDATE F SET v = 30 WHERE p = 17")
        assert connection.sql("SELECT sum(val) FROM E").fetchall() == [(70.0,)]


@pytest.mark.parametrize("partitions", [1, 3])
def test_on_partitions(partitions: int, fresh: duckdb.DuckDBPyConnection) -> None:
    x = random_rows(RNG, 40, N, missing=0)
    rows = {"r": np.repeat(np.arange(40), N), "f": np.tile(np.arange(N), 40), "v": x.reshape(-1)}
    X = ucle.table(pa.table(rows), ["r", "f"], "v", bounds=[40, N])
    given = {"X": X, "F": DATA["F"], "database": fresh, "decomposition": {"E": ["r"]}}
    program = ucle.einsum_program(FORMS[0], **given)
    with run_on_partitions(program, fresh, partitions, seed=1) as result:
        np.testing.assert_array_equal(result["E"].to_numpy(), sum_forest(x, DATA["F"]))


# ---- What is wrong ----


@pytest.mark.parametrize(
    ("text", "error", "said"),
    [
        ("E[r,k] = forest[f](X[r,f], F[p,k])", ProgramSyntaxError, "labels of features"),
        ("E[r,k] = forest[f,f](X[r,f], F[f,k])", ProgramSyntaxError, "labels of features"),
        ("E[r,k] = forest[f,p](X[r,f])", ProgramSyntaxError, "tensors that have them"),
        ("E[r,k] = forest[f,p](X[r,f], F[p,k], w[f])", ProgramSyntaxError, "tensors"),
        ("E[r,k] = sum[f,p](X[r,f], F[p,k])", ProgramSyntaxError, "more than one argument"),
        ("E[r,k] = forest(X[r,k], F[r,k])", NameResolutionError, "forest"),
        ("E[r,k] = forest[g,p](X[r,f], F[p,k])", LabelError, "do not fit"),
        ("E[r,k] = forest[f,q](X[r,f], F[p,k])", LabelError, "do not fit"),
        ("E[p,k] = forest[f,p](X[p,f], F[p,k])", LabelError, "do not fit"),
        ("E[r] = forest[f,p](X[r,f], F[p,r])", LabelError, "do not fit"),
        ("E[r] = forest[f,p](X[r,f], w[p])", LabelError, "do not fit"),
        ("E[r,k] = forest[f,p](C[r,f], F[p,k])", ValueTypeError, "real"),
        ("E[r,k] = forest[f,p](O[r,f], F[p,k])", BoundError, "no features"),
    ],
)
def test_refused(text: str, error: type[Exception], said: str) -> None:
    data = DATA | {"C": DATA["X"] * 1j, "O": np.zeros((R, 0))}
    inputs = {name: data[name] for name in data if f"{name}[" in text.split("=", 1)[1]}
    with pytest.raises(error, match=said):
        ucle.einsum_program(text, **inputs)


@pytest.mark.parametrize(("place", "value"), [(0, N), (2, 0), (3, 1e9), (4, 7), (4, 0.5)])
def test_no_forest_is_an_error(
    place: int, value: float, connection: duckdb.DuckDBPyConnection
) -> None:
    packed = np.zeros((18, 2))
    packed[:5, 0] = 1, 0.5, 1, 2, 17
    packed[place, 0] = value
    program = ucle.einsum_program(FORMS[0], X=DATA["X"], F=packed, database=connection)
    with pytest.raises(ExecutionError, match="forest_pack: expected"):
        program.execute()


@pytest.mark.parametrize("promoted", [["f"], ["r", "p"], ["k"], ["r", "f", "p", "k"]])
def test_what_has_to_be_inside_arrays(promoted: list[str]) -> None:
    with pytest.raises(UnsupportedError, match="inside arrays"):
        ucle.einsum_program(FORMS[0], X=DATA["X"], F=DATA["F"], decomposition={"E": promoted})


def test_there_is_no_sql_for_it() -> None:
    with pytest.raises(UnsupportedError, match="no SQL for forests"):
        ucle.einsum_program(FORMS[0], X=DATA["X"], F=DATA["F"], decomposition="relational")


def test_there_is_no_gradient() -> None:
    text = FORMS[0] + "; loss += E[r,k]"
    program = ucle.einsum_program(text, X=DATA["Z"] * 1.0, F=DATA["P"])
    with pytest.raises(UnsupportedError, match="forest"):
        program.gradient("loss", ["X"])


def test_without_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    original = choose_decomposition.price_program

    def without(*arguments: Any) -> Any:
        costed = original(*arguments)
        return replace(costed, resources=replace(costed.resources, kernels=False))

    monkeypatch.setattr(choose_decomposition, "price_program", without)
    with pytest.raises(KernelsMissingError, match="forests"):
        ucle.einsum_program(FORMS[0], X=DATA["X"], F=DATA["F"])
