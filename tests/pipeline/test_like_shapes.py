"""Plans are fitted to data of like shape where that cannot be noticed, and chosen anew elsewhere.

Each test compiles a program on some data and then on other data, and compares both answers with
NumPy's. `optimiser` counts how often a plan was chosen.
"""

from __future__ import annotations

import math
import os
import zlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import duckdb
import numpy as np
import pytest
import scipy.sparse as sp
from counted_optimiser import Counted

import ucle
from ucle.options import Optimisations
from ucle.pipeline import plan_cache
from ucle.testing.check_matrix import Routes, recompiled
from ucle.testing.generate import Case, exact_case, is_stable, random_case, special_case
from ucle.testing.oracle import assert_equal
from ucle.testing.random_inputs import make_input

LIKE = "for data of like shape"
"""What `explain` says of a plan that was taken over."""


@pytest.fixture
def optimiser(monkeypatch: pytest.MonkeyPatch) -> Counted:
    counted = Counted()
    monkeypatch.setattr(plan_cache, "optimise", counted)
    return counted


def graph(seed: int, nodes: int = 60, edges: int = 300, weight: float = 1.0) -> sp.coo_array:
    """A random graph in which each node has an edge in either direction."""
    rng = np.random.default_rng(seed)
    rows = np.concatenate([np.arange(nodes), rng.integers(0, nodes, edges)])
    columns = np.concatenate([rng.permutation(nodes), rng.integers(0, nodes, edges)])
    dense = np.zeros((nodes, nodes))
    dense[rows, columns] = weight * (1 + rng.random(len(rows)))
    return sp.coo_array(dense)


def store(connection: duckdb.DuckDBPyConnection, name: str, matrix: sp.coo_array) -> None:
    connection.execute(f"CREATE OR REPLACE TABLE {name} (i INTEGER, j INTEGER, v DOUBLE)")
    rows = np.stack([*matrix.coords, matrix.data], axis=1)  # read by DuckDB
    connection.register("rows_of_matrix", {"i": rows[:, 0], "j": rows[:, 1], "v": rows[:, 2]})
    connection.execute(f"INSERT INTO {name} SELECT * FROM rows_of_matrix")
    connection.unregister("rows_of_matrix")


TWO = "H[i,n] = relu(A[i,l] * X[l,m] * W[m,n]); Z[i,o] = A[i,l] * H[l,n] * B[n,o]"


def two_layers(A: np.ndarray, X: np.ndarray, W: np.ndarray, B: np.ndarray) -> np.ndarray:
    return np.asarray(A @ np.maximum(A @ X @ W, 0) @ B)


def check_sum(optimiser: Counted, *pairs: tuple[Any, np.ndarray], **options: Any) -> list[int]:
    """Compile and run a product with each matrix; return the runs of the optimiser after each."""
    runs = []
    for A, x in pairs:
        program = ucle.einsum_program("y[i] += A[i,j] * x[j]", A=A, x=x, **options)
        with program.execute() as result:
            dense = A.todense() if sp.issparse(A) else A
            with np.errstate(invalid="ignore"):
                rtol = 1e-5 if x.dtype == np.float32 else 1e-9
                np.testing.assert_allclose(result["y"].to_numpy(), dense @ x, rtol)
        runs.append(optimiser.runs)
    return runs


def test_one_plan_for_many_tables_of_like_shape(optimiser: Counted, routes: Routes) -> None:
    for connection in routes.values():
        optimiser.runs = 0
        for seed in range(4):
            rng = np.random.default_rng(seed)
            nodes = 60 + 10 * seed
            A = graph(seed, nodes, 300 + 50 * seed)
            X, W, B = rng.random((nodes, 20)), rng.random((20, 8)), rng.random((8, 3))
            store(connection, f"edges_{seed}", A)
            program = ucle.einsum_program(
                TWO, A=f"edges_{seed}", X=X, W=W, B=B, database=connection
            )
            assert (LIKE in program.explain()) == (seed > 0)
            with program.execute() as result:
                expected = two_layers(A.todense(), X, W, B)
                np.testing.assert_allclose(result["Z"].to_numpy(), expected)
            connection.execute(f"DROP TABLE edges_{seed}")
        assert optimiser.runs == 1


def test_a_fitted_plan_is_kept_for_its_own_data(optimiser: Counted) -> None:
    one, other = ((graph(seed), np.ones(60)) for seed in range(2))
    assert check_sum(optimiser, one, other, other, one) == [1, 1, 1, 1]
    assert len(plan_cache.fitted_choices) == 1


def test_costs_and_sizes_are_those_of_the_data(optimiser: Counted) -> None:
    """Whatever is shown or checked later is not that of the program before."""
    small, large = graph(0, 60, 300), graph(1, 100, 500)
    kept, chosen = [], []
    for A in (small, large):
        kept.append(ucle.einsum_program("y[i] += A[i,j] * x[j]", A=A, x=np.ones(A.shape[1])))
    for A in (small, large):
        ucle.clear_caches()
        chosen.append(ucle.einsum_program("y[i] += A[i,j] * x[j]", A=A, x=np.ones(A.shape[1])))
    for one, other in zip(kept, chosen, strict=True):
        assert one.cost == other.cost
        assert one.to_sql() == other.to_sql()
        assert one.explain().replace(f", {LIKE}", "") == other.explain()


@pytest.mark.parametrize(
    "other",
    [
        lambda: (graph(1, 130, 650), np.ones(130)),
        lambda: (graph(1, 60, 1500), np.ones(60)),
        lambda: (graph(1, 25, 125), np.ones(25)),
        lambda: (sp.coo_array(np.pad(graph(1, 25, 330).todense(), (0, 35))), np.ones(60)),
    ],
    ids=["longer axes", "more entries", "shorter axes", "fewer coordinates"],
)
def test_sizes_beyond_a_factor_of_two(
    optimiser: Counted, other: Callable[[], tuple[Any, np.ndarray]]
) -> None:
    assert check_sum(optimiser, (graph(0), np.ones(60)), other()) == [1, 2]


def test_drift_is_measured_from_the_data_of_the_choice(optimiser: Counted) -> None:
    """Each step is small; three of them are more than a factor of two."""
    sizes = [60, 80, 110, 150, 200, 270, 360]
    runs = check_sum(optimiser, *((graph(n, n, 5 * n), np.ones(n)) for n in sizes))
    assert runs == [1, 1, 1, 2, 2, 2, 3]


def _loss(n: float) -> dict[str, Any]:
    return {"X": _sparse(n, 1600, 1200, 57_600), "U": _array(n, 1600, 0), "V": _array(n, 1200, 0)}


def _attention(n: float) -> dict[str, Any]:
    return {"A": _sparse(n, 3000, 3000, 18_000), "H": _array(n, 3000, 0)}


def _chain(n: float) -> dict[str, Any]:
    return {"D": _array(n, 500, 400), "F": _array(n, 400, 300), "K": _array(n, 500, 300)}


def _sparse(n: float, rows: int, columns: int, entries: int) -> Any:
    shape = int(n * rows), int(n * columns)
    keys = np.random.default_rng(0).choice(math.prod(shape), int(n * entries), replace=False)
    return sp.coo_array((np.ones(len(keys)) + keys % 3, np.unravel_index(keys, shape)), shape)


def _array(n: float, rows: int, columns: int) -> np.ndarray:
    return np.random.default_rng(1).random((int(n * rows), int(n * columns) or 10)) + 0.1


LOSS = "L += square(X[i,j] - sum[f](U[i,f] * V[j,f]))"
ATTENTION = (
    "S[i,j] = A[i,j] * exp(sum[k](H[i,k] * H[j,k])); n[i] += S[i,j];"
    "Z[i,k] += S[i,j] / (n[i] + 1) * H[j,k]"
)
CHAIN = "T[a,c] += D[a,b] * F[b,c]; P[a,e] += T[a,c] * K[e,c]; t = sum[a](P[a,a])"


@pytest.mark.sample(6)
@pytest.mark.parametrize("other", [0.55, 1.8], ids=["shrunk", "grown"])
@pytest.mark.parametrize(
    ("text", "make", "size"),
    [
        (LOSS, _loss, 0.7),  # where no form is measured that is multiplied out
        (LOSS, _loss, 1.0),
        (ATTENTION, _attention, 1.0),
        (CHAIN, _chain, 1.0),
    ],
    ids=["small loss", "loss", "attention", "chain"],
)
def test_other_sizes_cost_what_a_search_finds(
    text: str, make: Callable[[float], dict[str, Any]], size: float, other: float
) -> None:
    output = text.rpartition(";")[2].strip()[0]
    costs = []
    for sizes in ((size, size * other), (size * other,)):
        ucle.clear_caches()
        for n in sizes:
            program = ucle.einsum_program(text, inputs=make(n), outputs=[output])
        costs.append(program.cost)
    assert costs[0] <= 1.2 * costs[1] + 1e5


def test_a_program_for_which_more_is_looked_at_now_is_searched_again(optimiser: Counted) -> None:
    """At the first sizes, no form is measured, which costs more than it may save there."""
    for n, runs in ((0.7, 1), (0.72, 1), (0.84, 2), (0.9, 2)):
        program = ucle.einsum_program(LOSS, inputs=_loss(n))
        assert optimiser.runs == runs
        assert (program.cost < 2e6) == (runs == 2)


def test_a_plan_that_becomes_much_dearer_is_searched_again(optimiser: Counted) -> None:
    """All coordinates are computed: many more than the entries by which an input may differ."""
    for n, runs in ((1.0, 1), (1.05, 1), (1.9, 2)):
        ucle.einsum_program(LOSS, inputs=_loss(n), rewrite="safe")
        assert optimiser.runs == runs


def test_plans_for_several_sizes(optimiser: Counted) -> None:
    sizes = [60, 600, 60, 600, 70, 620]
    runs = check_sum(optimiser, *((graph(k, n, 5 * n), np.ones(n)) for k, n in enumerate(sizes)))
    assert runs == [1, 2, 2, 2, 2, 2]


def _with(seed: int, **changed: float) -> sp.coo_array:
    matrix = graph(seed)
    matrix.data[: len(changed)] = list(changed.values())
    return matrix


@pytest.mark.parametrize(
    "other",
    [
        lambda: (graph(1, weight=-1.0), np.ones(60)),
        lambda: (_with(1, one=-1.0), np.ones(60)),
        lambda: (_with(1, one=np.inf), np.zeros(60)),
        lambda: (_with(1, one=np.nan), np.zeros(60)),
        lambda: (graph(1).astype(np.float32), np.ones(60, np.float32)),
        lambda: (sp.coo_array(np.ceil(graph(1).todense()).astype(int)), np.ones(60, int)),
        lambda: (graph(1).todense(), np.ones(60)),
        lambda: (sp.coo_array((graph(1).todense() != 0) * 1.0), np.ones(60)),
    ],
    ids=["negative", "one sign", "infinite", "nan", "float32", "int64", "an array", "all ones"],
)
def test_facts_that_differ(optimiser: Counted, other: Callable[[], tuple[Any, np.ndarray]]) -> None:
    assert check_sum(optimiser, (graph(0), np.ones(60)), other()) == [1, 2]


@pytest.mark.parametrize(
    "options",
    [
        {"memory_limit": "1GB"},
        {"decomposition": "relational"},
        {"nonfinite": "sparse"},
        {"rewrite": "none"},
        {"association": "as-written"},
        {"profile": "paper"},
    ],
    ids=str,
)
def test_options_that_differ(optimiser: Counted, options: dict[str, Any]) -> None:
    check_sum(optimiser, (graph(0), np.ones(60)))
    check_sum(optimiser, (graph(1), np.ones(60)), **options)
    assert optimiser.runs == 2


def test_one_and_two_are_not_alike(optimiser: Counted) -> None:
    """A label of size 1 takes part in no choice."""
    runs = []
    for size in (1, 2, 3):
        A = np.random.default_rng(0).random((60, size))
        with ucle.einsum_program("y[i] += A[i,j]", A=A).execute() as result:
            np.testing.assert_allclose(result["y"].to_numpy(), A.sum(axis=1))
        runs.append(optimiser.runs)
    assert runs == [1, 2, 2]


def test_it_can_be_switched_off() -> None:
    shown = []
    for seed in range(2):
        given = ucle.einsum_program("y[i] += A[i,j] * x[j]", A=graph(seed), x=np.ones(60))
        alone = recompiled(given, Optimisations(like_shapes=None))
        shown.append([LIKE in program.explain() for program in (given, alone)])
    assert shown == [[False, False], [True, False]]


@pytest.mark.parametrize(
    "statement",
    [
        "ALTER TABLE edges ALTER v TYPE FLOAT",
        "ALTER TABLE edges ALTER i TYPE VARCHAR",
        "CREATE OR REPLACE VIEW edges_view AS SELECT * FROM edges",
        "UPDATE edges SET j = 59 WHERE j = 58 AND i NOT IN (SELECT i FROM edges WHERE j = 59)",
    ],
    ids=["type", "dictionary", "view", "a node without edges"],
)
def test_tables_of_another_kind(optimiser: Counted, statement: str) -> None:
    text = "y[] += A[i,j] * A[i,k]"
    with duckdb.connect() as connection:
        store(connection, "edges", graph(0))
        for other in (False, True):
            name = "edges_view" if other and "VIEW" in statement else "edges"
            program = ucle.einsum_program(text, A=name, database=connection)
            with program.execute() as result:
                ((total,),) = connection.execute(
                    "SELECT sum(x.v::DOUBLE * y.v) FROM edges x JOIN edges y USING (i)"
                ).fetchall()
                assert result["y"].to_numpy() == pytest.approx(total)
            connection.execute("DELETE FROM edges WHERE i = 58 AND j = 58")
            connection.execute(statement)
    assert optimiser.runs == 2


@pytest.mark.parametrize("row", ["3, j, 1.5", "NULL, 2, 1.5", "-1, 2, 1.5", "1, 2, NULL"])
def test_data_that_is_wrong(optimiser: Counted, row: str) -> None:
    """Duplicates, NULLs and negative coordinates are found in tables of like shape, too."""
    with duckdb.connect() as connection:
        for seed in range(2):
            store(connection, f"edges_{seed}", graph(seed))
        program = ucle.einsum_program("y[] += A[i,j]", A="edges_0", database=connection)
        with program.execute() as result:
            assert result["y"].to_numpy() == pytest.approx(graph(0).sum())
        connection.execute(f"INSERT INTO edges_1 SELECT {row} FROM edges_1 WHERE i = 3 LIMIT 1")
        with pytest.raises(ucle.UcleError):
            ucle.einsum_program("y[] += A[i,j]", A="edges_1", database=connection)


def test_duplicates_that_are_summed(optimiser: Counted) -> None:
    with duckdb.connect() as connection:
        for seed in range(2):
            store(connection, f"edges_{seed}", graph(seed))
        connection.execute("INSERT INTO edges_1 SELECT * FROM edges_1 WHERE i < 5")
        twice = graph(1).sum() + graph(1).todense()[:5].sum()
        for seed, total in ((0, graph(0).sum()), (1, twice)):
            given = ucle.table(f"edges_{seed}", duplicates="sum")
            program = ucle.einsum_program("y[] += A[i,j]", A=given, database=connection)
            with program.execute() as result:
                assert result["y"].to_numpy() == pytest.approx(total)


def test_another_connection_and_a_rolled_back_transaction(optimiser: Counted) -> None:
    with duckdb.connect() as one, duckdb.connect() as two:
        store(one, "edges", graph(0))
        store(two, "edges", graph(1))
        one.execute("BEGIN")
        store(one, "edges", graph(2))
        expected = [(one, 2), (two, 1), (one, 2)]
        for connection, seed in [*expected, (one, 0)]:
            if seed == 0:
                one.execute("ROLLBACK")
            program = ucle.einsum_program("y[i] += A[i,j]", A="edges", database=connection)
            with program.execute() as result:
                total = graph(seed).todense().sum(axis=1)
                np.testing.assert_allclose(result["y"].to_numpy(), total)
    assert optimiser.runs == 1


@pytest.mark.parametrize(("limit", "runs"), [(14, 2), (24, 1)])
def test_limits_are_checked_again(
    optimiser: Counted, native: duckdb.DuckDBPyConnection, limit: int, runs: int
) -> None:
    """The arrays of the first plan are too large for the second program, or are not."""
    chosen = []
    for size in (100, 140):
        A = np.random.default_rng(size).random((size, size))
        given = {"A": A, "B": A, "memory_limit": limit * 8 * 100**2}
        program = ucle.einsum_program("C[i,k] += A[i,j] * B[j,k]", database=native, **given)
        chosen.append(program.compiled.decomposed.promoted)
        with program.execute() as result:
            np.testing.assert_allclose(result["C"].to_numpy(), A @ A)
    assert optimiser.runs == runs
    assert (chosen[0] == chosen[1]) == (runs == 1)


def test_limits_of_a_kernel_are_checked_again(optimiser: Counted) -> None:
    """The largest matrices are too large for one call by the paper's profile."""
    runs = []
    for size in (700, 800, 870):
        A = np.ones((size, size)) + np.eye(size)
        program = ucle.einsum_program("C[i,k] += A[i,j] * B[j,k]", A=A, B=A, profile="paper")
        runs.append(optimiser.runs)
        (decomposition,) = program.compiled.decomposed.promoted.values()
        assert bool(decomposition) == (size == 870)
    assert runs == [1, 1, 2]


def test_facts_that_follow_from_values(optimiser: Counted) -> None:
    """Both inputs are positive; only of the first is it known that no root is NaN."""
    text = "P[i,j] = sqrt(A[i,j] * (A[i,j] - 1)); Q[i,m] += P[i,j] * H[j,m]"
    rng = np.random.default_rng(0)
    H = rng.random((60, 40)) * (rng.random((60, 40)) < 0.1)
    for least in (2.0, 0.75):
        A = least * (1 + rng.random((60, 60)))
        with np.errstate(invalid="ignore"):
            expected = np.sqrt(A * (A - 1)) @ H
        with ucle.einsum_program(text, A=A, H=H).execute() as result:
            np.testing.assert_allclose(result["Q"].to_numpy(), expected)
    assert optimiser.runs == 2


def test_rows_do_not_depend_on_the_plan_before(routes: Routes) -> None:
    """A table of a result holds the same rows, whatever was compiled before."""
    text = "T[i,m] += A[i,j] * H[j,m]; Z[i,n] += T[i,m] * W[m,n]"
    rng = np.random.default_rng(0)
    whole = [sp.coo_array(np.round(graph(seed, 60, 40).todense())) for seed in range(2)]
    for seed, A in enumerate(whole):
        A.data[:10] = 0
        whole[seed] = sp.coo_array(A.todense())
    H, W = np.round(rng.random((60, 9))), np.round(rng.random((9, 30)))
    for connection in routes.values():
        rows = []
        for before in (whole[:1], ()):
            ucle.clear_caches()
            for A in before:
                ucle.einsum_program(text, A=A, H=H, W=W, database=connection)
            program = ucle.einsum_program(text, A=whole[1], H=H, W=W, database=connection)
            assert (LIKE in program.explain()) == bool(before)
            with program.execute() as result:
                rows.append(sorted(result["Z"].relation.fetchall()))
                result["Z"].to_table("stored_z")
            rows.append(sorted(connection.execute("FROM stored_z").fetchall()))
            connection.execute("DROP TABLE stored_z")
        assert all(each == rows[0] for each in rows)


def test_it_is_cleared_and_bounded(optimiser: Counted) -> None:
    check_sum(optimiser, (graph(0), np.ones(60)))
    ucle.clear_caches()
    assert check_sum(optimiser, (graph(1), np.ones(60))) == [2]
    for nodes in (4, 10, 25, 64, 160, 400):
        check_sum(optimiser, (graph(nodes, nodes, 5 * nodes), np.ones(nodes)))
    assert optimiser.runs == 7  # of 64 nodes, as of 60
    ((kept, _),) = plan_cache.models._kept.values()
    assert len(kept) == plan_cache.MOST_MODELS


def vary(case: Case, seed: int) -> Case:
    """The same program on other entries, of which some are repeated along longer axes.

    The objects to pass are of the same kinds.
    """
    rng = np.random.default_rng(seed)
    sizes = {*case.bounds.values(), *(n for array in case.arrays.values() for n in array.shape)}
    longer = {n: n + int(n > 2 and rng.random() < 0.5) for n in sorted(sizes)}
    arrays, inputs, tables = {}, {}, {}
    for name, array in case.arrays.items():
        mixed = rng.permuted(array.reshape(-1)).reshape(array.shape)
        more = [(0, longer[n] - n) for n in array.shape]
        how = "wrap" if array.size else "constant"
        arrays[name] = np.pad(mixed, more, mode=how) if array.ndim else mixed
    for name, array in arrays.items():
        kind = np.random.default_rng(zlib.crc32(f"{name} of {case.text}".encode()))
        inputs[name], table = make_input(kind, name, array)
        tables |= {} if table is None else {name: table}
    bounds = {label: longer[n] for label, n in case.bounds.items()}
    return replace(case, arrays=arrays, inputs=inputs, tables=tables, bounds=bounds)


@pytest.mark.sample(1)
@pytest.mark.parametrize("make", [exact_case, random_case, special_case])
def test_random_programs(optimiser: Counted, routes: Routes, make: Callable[[int], Case]) -> None:
    """The answer for data B is NumPy's, whether data A was compiled before or not."""
    compiled = 0
    for seed in range(int(os.environ.get("UCLE_FUZZ_PROGRAMS", "3"))):
        first = make(seed)
        for number in range(4):
            case = vary(first, number)
            if make is not special_case and not is_stable(case, np.random.default_rng(number)):
                continue
            with np.errstate(all="ignore"):
                expected = case.expected()
            for route, connection in routes.items():
                case.create_tables(connection)
                try:
                    with case.compile(connection).execute() as result:
                        for name in result:
                            context = f"{route}, seed {seed}, data {number}\n{case}"
                            assert_equal(result[name].to_numpy(), expected[name], context)
                finally:
                    case.drop_tables(connection)
                compiled += 1
    assert optimiser.runs < 0.9 * compiled
