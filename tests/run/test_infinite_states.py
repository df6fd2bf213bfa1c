"""Loops whose state is an array with infinities: distances, and the widest of paths."""

from __future__ import annotations

from typing import Any

import duckdb
import numpy as np
import pytest
import scipy.sparse as sp

import ucle
from ucle.database.temporary_tables import FetchedRows

Array = np.ndarray[Any, Any]
NAN, INF = np.nan, np.inf
STEPS = 3

SHORTEST = "N[i] min= A[j,i] + D[j]; M[i] = min(N[i], D[i])"
TWICE = "N[i] min= A[j,i] + D[j]; O[i] = min(N[i], D[i]); M[i] min= A[j,i] + O[j]"
LONGEST = "N[i] max= A[j,i] + D[j]; M[i] = max(N[i], D[i])"
DIFFERENCE = "N[i] min= A[j,i] - D[j]; M[i] = min(N[i], D[i])"
CHANGE = "N[i] min= A[j,i] + D[j]; M[i] = N[i] - D[i]"


def shortest(A: Array, D: Array) -> Array:
    return np.minimum((A + D[:, None]).min(axis=0), D)


def twice(A: Array, D: Array) -> Array:
    return (A + shortest(A, D)[:, None]).min(axis=0)


def longest(A: Array, D: Array) -> Array:
    return np.maximum((A + D[:, None]).max(axis=0), D)


def difference(A: Array, D: Array) -> Array:
    return np.minimum((A - D[:, None]).min(axis=0), D)


def change(A: Array, D: Array) -> Array:
    return (A + D[:, None]).min(axis=0) - D


LOOPS = {
    SHORTEST: (shortest, INF),
    TWICE: (twice, INF),
    LONGEST: (longest, -INF),
    DIFFERENCE: (difference, INF),
    CHANGE: (change, INF),
}
"""Programs with their meaning and the fill of their graph. The last two make NaN of infinities."""


def case(text: str, seed: int) -> tuple[Array, Array]:
    """A graph with whole lengths, some of them negative, and a first state of infinities."""
    rng = np.random.default_rng([seed, len(text)])
    n, fill = int(rng.integers(3, 9)), LOOPS[text][1]
    A = np.where(rng.random((n, n)) < 0.4, rng.integers(-2, 9, (n, n)), fill).astype(float)
    D = np.where(rng.random(n) < 0.4, rng.integers(-1, 3, n), fill).astype(float)
    D[0] = 0
    if seed % 2:
        D[rng.integers(n)] = rng.choice([NAN, -fill])
    return A, D


def stored(A: Array, fill: float) -> Any:
    """The graph as a sparse table."""
    rows, columns = np.nonzero(fill != A)
    return ucle.table(sp.coo_array((A[rows, columns], (rows, columns)), A.shape), fill=fill)


def forms(D: Array) -> dict[str, Any]:
    """The first state, spelled in several ways."""
    entries = {x: ucle.table(D, fill=x) for x in (INF, -INF)}
    return {"plain": D, "fill inf": entries[INF], "fill -inf": entries[-INF]}


@pytest.mark.sample(4)
@pytest.mark.parametrize("text", LOOPS)
@pytest.mark.parametrize("way", ["auto", "relational", "dense"])
def test_states_are_what_numpy_makes(
    text: str, way: str, connection: duckdb.DuckDBPyConnection
) -> None:
    """All plans have the same answers and the same rows; NaN and the other infinity come up."""
    step, fill = LOOPS[text]
    for seed in range(2):
        A, D = case(text, seed)
        for form, state in forms(D).items():
            program = ucle.einsum_program(
                text, A=stored(A, fill), D=state, outputs=["M"], database=connection
            )
            if way != "auto":
                vertices = dict.fromkeys(program.decomposition, ())
                program = program.with_decomposition(vertices if way == "dense" else way)
            expected = D
            with program.prepare(carry={"D": "M"}) as run:
                for _ in range(STEPS):
                    with np.errstate(invalid="ignore"):
                        expected = step(A, expected)
                    found = run()["M"].to_numpy()
                    np.testing.assert_array_equal(found, expected, f"{form} {seed}")


def test_states_of_distances_keep_the_graph_sparse(connection: duckdb.DuckDBPyConnection) -> None:
    """The graph is not made dense, rows do not depend on the plan, and later arrays may be NaN."""
    n = 300
    graph = sp.random_array((n, n), density=0.01, rng=np.random.default_rng(3), format="coo")
    A, D = graph.toarray(), np.full(n, INF)
    A[A == 0], D[0] = INF, 0.0
    for form in ("plain", "fill inf"):
        program = ucle.einsum_program(
            SHORTEST, A=stored(A, INF), D=forms(D)[form], outputs=["M"], database=connection
        )
        assert not program.compiled.made_dense
        with program.prepare(carry={"D": "M"}) as run:
            first = shortest(A, D)
            result = run()["M"]
            assert not run._build.compiled.made_dense
            np.testing.assert_array_equal(result.to_numpy(), first)
            worth = first[first != (0 if form == "plain" else INF)]
            assert sorted(result.to_arrow()["val"].to_pylist()) == sorted(worth)
            for wrong in (NAN, -INF):
                other = np.where(np.arange(n) == 1, wrong, D)
                with np.errstate(invalid="ignore"):
                    after = shortest(A, other)
                np.testing.assert_array_equal(run(D=other)["M"].to_numpy(), after)
                with np.errstate(invalid="ignore"):
                    after = shortest(A, after)
                np.testing.assert_array_equal(run()["M"].to_numpy(), after)


def test_a_loop_of_lazy_tensors_keeps_the_graph_sparse(
    connection: duckdb.DuckDBPyConnection,
) -> None:
    A, D = case(SHORTEST, 0)
    graph = ucle.tensor(stored(A, INF), axes=("j", "i"), database=connection)
    found = ucle.iterate(
        lambda d: ucle.minimum((graph + d.rename({"i": "j"})).min("j"), d),
        ucle.tensor(D, axes=("i",), database=connection),
        max_steps=2,
        database=connection,
    )
    np.testing.assert_array_equal(found.state.to_numpy(), shortest(A, shortest(A, D)))


def test_all_entries_of_the_first_state_may_go(connection: duckdb.DuckDBPyConnection) -> None:
    """No plan counts on an entry that the first state has."""
    program = ucle.einsum_program(
        "M[i] = max(D[i], L[i]); near[] min= D[i]; out[i] = exp(0 - near[]) + x[i]",
        D=ucle.table(np.array([0.0, INF]), fill=INF),
        L=ucle.table(np.array([INF, -5.0]), fill=INF),
        x=np.array([2.0, 3.0]),
        outputs=["M", "out"],
        database=connection,
        decomposition="relational",
    )
    with program.prepare(carry={"D": "M"}) as run:
        assert not run._build.compiled.program.types["D"].occupied
        for out in ([3, 4], [2, 3], [2, 3]):
            np.testing.assert_array_equal(run()["out"].to_numpy(), out)


def test_no_plan_counts_on_states_without_nan_if_a_step_makes_it(
    connection: duckdb.DuckDBPyConnection,
) -> None:
    """What is not stored meets -inf in the second step, which is NaN."""
    A, D = np.array([[INF, 1.0], [INF, INF]]), np.array([0.0, INF])
    program = ucle.einsum_program(
        CHANGE, A=stored(A, INF), D=D, outputs=["M"], database=connection
    ).with_decomposition("relational")
    with program.prepare(carry={"D": "M"}) as run:
        for _ in range(2):
            with np.errstate(invalid="ignore"):
                D = change(A, D)
            np.testing.assert_array_equal(run()["M"].to_numpy(), D)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("text", [SHORTEST, LONGEST])
def test_infinite_fills_of_fetched_states_are_no_doubt(
    text: str, dtype: str, connection: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Steps make no table of a state to look for numbers that are not finite, but of the fill."""
    step, fill = LOOPS[text]
    tables = 0
    make = FetchedRows.table

    def counted(self: FetchedRows) -> Any:
        nonlocal tables
        tables += 1
        return make(self)

    monkeypatch.setattr(FetchedRows, "table", counted)
    A, D = (x.astype(dtype) for x in case(text, 2))
    D[1:] = fill  # so that some places are still out of reach
    program = ucle.einsum_program(
        text, A=stored(A, fill), D=ucle.table(D, fill=fill), outputs=["M"], database=connection
    )
    with program.prepare(carry={"D": "M"}) as run:
        run()
        second = run()["M"]
        assert not tables
        np.testing.assert_array_equal(second.to_numpy(), step(A, step(A, D)))
        for wrong in (NAN, -fill):
            other = np.where(np.arange(len(D)) == 1, wrong, D).astype(dtype)
            with np.errstate(invalid="ignore"):
                expected = step(A, step(A, other))
            run(D=other)
            np.testing.assert_array_equal(run()["M"].to_numpy(), expected)
