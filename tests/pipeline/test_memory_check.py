"""Plans that need more memory than is free: other plans run, or nothing does."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse as sp
from scipy.sparse.csgraph import dijkstra

import ucle
from ucle.database.engine import DUCKDB
from ucle.database.session import Session, parse_size
from ucle.errors import DatabaseError, MemoryLimitError
from ucle.foundation.free_memory import PER_THREAD, FreeMemory
from ucle.pipeline import memory_check
from ucle.pipeline.memory_check import ALWAYS_FREE, Engine, Need, find_excess
from ucle.run import current_data

SIDE = 1200


@pytest.mark.parametrize("switch", ["0", "1"])
def test_the_check_can_be_turned_off(
    switch: str, monkeypatch: pytest.MonkeyPatch, native: duckdb.DuckDBPyConnection
) -> None:
    monkeypatch.setenv(memory_check.SWITCH, switch)
    monkeypatch.setattr(current_data, "free_memory", lambda _: FreeMemory(1.0, "a test", True))
    monkeypatch.setattr(memory_check, "ALWAYS_FREE", 0.0)
    program = ucle.einsum_program("y[i] = x[i] + 1", x=np.ones(3), database=native)
    if switch == "1":
        with pytest.raises(MemoryLimitError, match="than is free"):
            program.execute()
    else:
        with program.execute() as result:
            assert result["y"].to_numpy().tolist() == [2, 2, 2]


@pytest.fixture
def free(monkeypatch: pytest.MonkeyPatch) -> Any:
    """State what is free; every plan is looked at, however little it needs."""

    def state(size: float, *, kills: bool = True) -> list[str]:
        looks: list[str] = []

        def look(_threads: int) -> FreeMemory:
            looks.append("looked")
            return FreeMemory(size, "a test", kills)

        monkeypatch.setattr(current_data, "free_memory", look)
        return looks

    return state


def product(connection: duckdb.DuckDBPyConnection, **options: Any) -> tuple[Any, Any]:
    """A product of a sparse and a dense matrix, and its answer."""
    rng = np.random.default_rng(3)
    A = sp.random_array((SIDE, SIDE), density=0.01, rng=rng, format="csr")
    H = rng.random((SIDE, 2000))
    j, k = np.indices(H.shape).reshape(2, -1)
    rows = pa.table({"j": j, "k": k, "val": H.reshape(-1)})
    program = ucle.einsum_program(
        "Z[i,k] += A[i,j] * H[j,k]",
        A=A,
        H=ucle.table(rows, ["j", "k"], "val"),
        database=connection,
    )
    return program, A @ H


def pairs(connection: duckdb.DuckDBPyConnection) -> tuple[Any, Any]:
    """A product of sparse matrices, most memory of which is in the tables of joins and groups."""
    rng = np.random.default_rng(7)
    A, B = (sp.random_array((9000, 9000), density=2e-3, rng=rng, format="csr") for _ in range(2))
    text = "Z[i,k] += A[i,j] * B[j,k]"
    return ucle.einsum_program(
        text, A=A, B=B, database=connection, decomposition="relational"
    ), A @ B


def assert_equal(found: ucle.Result, expected: Any) -> None:
    np.testing.assert_allclose(abs(found["Z"].to_scipy() - expected).max(), 0.0, atol=1e-12)


def test_small_plans_do_not_look(native: duckdb.DuckDBPyConnection, free: Any) -> None:
    looks = free(0.0)
    x = np.ones(9)
    with ucle.einsum_program("Z[i] = x[i] + 1", x=x, database=native).execute(native) as result:
        assert (result["Z"].to_numpy() == 2).all()
    assert looks == []


def test_spilled_bytes_count_up_to_what_the_engine_may_take() -> None:
    asked = []

    def engine() -> Engine:
        asked.append("engine")
        return Engine(memory=100e6, disk=8.5e9)

    def exceeds(peak: float, outside: float) -> bool:
        look = lambda: FreeMemory(1e9, "a test")  # noqa: E731
        return find_excess(peak, lambda: Need(peak, outside), look, engine) is not None

    assert not exceeds(0.59e9, 0.5e9)
    assert asked == []
    assert exceeds(0.9e9, 0.9e9)  # it is too close
    assert not exceeds(9e9, 0.4e9)
    assert set(asked) == {"engine"}
    assert exceeds(9e9, 0.9e9)  # outside of its account
    assert exceeds(10e9, 0.5e9)  # more than the disk has


@pytest.mark.turns(3)
def test_another_plan_runs_where_the_chosen_one_does_not_fit(
    native: duckdb.DuckDBPyConnection, free: Any
) -> None:
    program, expected = product(native)
    chosen = program.compiled
    assert chosen.peak_memory > ALWAYS_FREE
    free(0.8 * chosen.peak_memory)
    before = native.execute("SELECT current_setting('memory_limit')").fetchall()
    with program.execute(native) as result:
        np.testing.assert_allclose(result["Z"].to_numpy(), expected)
    assert native.execute("SELECT current_setting('memory_limit')").fetchall() == before
    assert program.compiled is chosen


def test_nothing_runs_where_no_plan_fits(
    native: duckdb.DuckDBPyConnection, free: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    program, expected = product(native)
    free(30e6)
    with monkeypatch.context() as patched:
        patched.setattr(current_data, "execute_script", None)  # no statement may run
        with pytest.raises(MemoryLimitError, match="needs more memory than is free") as refused:
            program.execute(native)
    assert "a test leaves" in str(refused.value)
    assert "Z[" in str(refused.value)
    free(1e12)
    with program.execute(native) as result:  # memory may become free
        np.testing.assert_allclose(result["Z"].to_numpy(), expected)


@pytest.mark.turns(3)
def test_the_plan_that_fits_is_kept(
    native: duckdb.DuckDBPyConnection, free: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    program, _ = product(native)
    free(0.8 * program.compiled.peak_memory)
    program.execute(native).close()
    monkeypatch.setattr(current_data, "plans_within_memory", None)
    program.execute(native).close()


@pytest.mark.parametrize("kills", [True, False])
def test_a_plan_that_may_fit_runs_within_limits(
    native: duckdb.DuckDBPyConnection, free: Any, monkeypatch: pytest.MonkeyPatch, kills: bool
) -> None:
    """Its upper estimate exceeds what is free, and no plan with a lower one is found."""
    program, expected = pairs(native)
    size = 0.8 * program.compiled.peak_memory
    monkeypatch.setattr(memory_check, "TIGHTER", ())
    monkeypatch.setattr(memory_check.Budget, "spilling", lambda *_: None)
    free(size, kills=kills)
    taken: list[tuple[float, float]] = []
    limited = Session.limited_memory

    def watched(session: Session, more: float, kernels: float) -> Any:
        taken.append((more, kernels))
        return limited(session, more, kernels)

    monkeypatch.setattr(Session, "limited_memory", watched)
    with program.execute(native) as result:
        assert_equal(result, expected)
    ((engine, kernels),) = taken
    assert engine > 0
    assert kernels > 0
    assert (engine + kernels <= size) is kills


@pytest.mark.parametrize("kills", [True, False])
def test_margins_count_where_a_process_would_be_killed(
    native: duckdb.DuckDBPyConnection, kills: bool
) -> None:
    """What the plan certainly holds is free, but not what else the system may take for it."""
    program, _ = product(native)
    need = Need.of(program.compiled)
    free = FreeMemory(max(need.certain, need.unbounded) - 1e6, "a test", kills)
    budget = memory_check.Budget(free, Engine(memory=1e9, disk=1e9))
    assert memory_check._is_hopeless(program.compiled, budget) is kills


def test_what_needs_too_much_is_tried_again_with_another_plan(
    native: duckdb.DuckDBPyConnection, free: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    program, expected = product(native)
    free(0.8 * program.compiled.peak_memory, kills=False)
    execute, runs = current_data.execute_script, []

    def fails_once(*arguments: Any, **options: Any) -> Any:
        runs.append(arguments)
        if len(runs) == 1:
            raise MemoryLimitError("out of memory")
        return execute(*arguments, **options)

    monkeypatch.setattr(current_data, "execute_script", fails_once)
    with program.execute(native) as result:
        np.testing.assert_allclose(result["Z"].to_numpy(), expected)
    assert len(runs) == 2
    runs.clear()
    native.execute("BEGIN")
    program = product(native)[0]
    with pytest.raises(MemoryLimitError, match="out of memory"):
        program.execute(native)
    native.execute("ROLLBACK")
    assert len(runs) == 1


LOST = (
    'Database "temp" has been invalidated because checkpointing failed. It is an in-memory '
    "database, so its data cannot be recovered. Original error: "
)
NO_BLOCK = "Failed to allocate block of 262144 bytes (bad allocation)\n\nPossible solutions:"


class Losing:
    """A connection that loses its temporary objects when a table is made in them."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, cause: str) -> None:
        self._connection, self._cause = connection, cause
        self.tables = 0
        self.is_lost = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)

    def execute(self, sql: str, *values: Any) -> Any:
        if self.is_lost:
            raise duckdb.IOException(f"IO Error: {LOST}{self._cause}")
        if sql.startswith("CREATE TEMPORARY TABLE"):
            self.tables += 1
            self.is_lost = True
            raise duckdb.TransactionException(
                'TransactionContext Error: Failed to commit: Checkpoint failed for database "temp".'
                f" The database has been invalidated. Original error: {self._cause}"
            )
        return self._connection.execute(sql, *values)

    def unregister(self, name: str) -> None:
        self._connection.unregister(name)
        if self.is_lost:
            raise duckdb.IOException(f"IO Error: {LOST}{self._cause}")


@pytest.mark.parametrize(
    ("cause", "kind"),
    [(NO_BLOCK, MemoryLimitError), ("a damaged block", DatabaseError)],
    ids=["no memory", "another cause"],
)
def test_a_connection_that_lost_its_temporary_tables_runs_no_other_plan(
    native: duckdb.DuckDBPyConnection, free: Any, cause: str, kind: type[Exception]
) -> None:
    """DuckDB 2.0 does so where a checkpoint of temporary tables finds no memory."""
    program, _ = product(native)
    free(0.8 * program.compiled.peak_memory, kills=False)
    before = native.execute("SELECT current_setting('memory_limit')").fetchall()
    session = DUCKDB.open(native)
    losing: Any = Losing(native, cause)
    session.connection = losing
    prepared = program._preparations.fresh(DUCKDB.open(native))
    with pytest.raises(kind, match=r"open(ed)? .*again"):
        prepared.run(session, None)
    assert losing.tables == 1
    assert native.execute("SELECT current_setting('memory_limit')").fetchall() == before


@pytest.mark.parametrize("share", [0.8, 1.2])
def test_no_plan_is_tried_twice_within_the_same_limits(
    native: duckdb.DuckDBPyConnection, free: Any, monkeypatch: pytest.MonkeyPatch, share: float
) -> None:
    program, _ = pairs(native)
    free(share * program.compiled.peak_memory)
    tried: list[tuple[Any, Any]] = []

    def fails(self: Any, *_: Any) -> Any:
        tried.append((self.compiled, self._fitted.limits))
        raise MemoryLimitError("out of memory")

    monkeypatch.setattr(current_data.Prepared, "_run", fails)
    with pytest.raises(MemoryLimitError, match="needs more memory than is free"):
        program.execute(native)
    assert tried
    assert len({(id(plan), limits) for plan, limits in tried}) == len(tried)


def test_a_state_that_has_grown_is_not_refused(native: duckdb.DuckDBPyConnection) -> None:
    """What a step of a search would hold at most is far more than what it holds."""
    rng = np.random.default_rng(2)
    nodes = 3000
    G = sp.random_array((nodes, nodes), density=2 / nodes, rng=rng, format="csr")
    G.data[:] = 1.0
    start = pa.table({"node": np.arange(64), "source": np.arange(64), "val": np.zeros(64)})
    links = pa.table(dict(zip(("a", "b"), G.nonzero(), strict=True)) | {"val": G.data})
    search = ucle.einsum_program(
        "next[node,source] = min(D[node,source], min[j](D[j,source] + L[j,node]))\n"
        "moved[] = sum[node,source](next[node,source] < D[node,source])",
        L=ucle.table(links, ["a", "b"], "val", fill=np.inf),
        D=ucle.table(start, ["node", "source"], "val", fill=np.inf),
        bounds={"node": nodes, "source": nodes},
        database=native,
    )
    with search.iterate({"D": "next"}, until="moved[] == 0") as found:
        distances = found["next"].to_numpy()[:, :64]
    np.testing.assert_array_equal(distances, dijkstra(G, indices=range(64)).T)


def test_limits_are_as_before_after_a_block(native: duckdb.DuckDBPyConnection) -> None:
    native.execute("SET memory_limit = '1.9 GiB'")
    settings = "SELECT current_setting('memory_limit')"
    ((before,),) = native.execute(settings).fetchall()
    session = DUCKDB.open(native)
    for _ in range(3):
        with session.limited_memory(300e6, kernels=200e6):
            ((inside,),) = native.execute(settings).fetchall()
            assert 0 < parse_size(inside) < 500e6
        assert native.execute(settings).fetchall() == [(before,)]
    with session.limited_memory(1e15, kernels=1e15):
        assert native.execute(settings).fetchall() == [(before,)]


def test_kernels_have_limits_too(native: duckdb.DuckDBPyConnection) -> None:
    session = DUCKDB.open(native)
    state = "SELECT octet_length(sum_vec_wide(full(1000000, 1.0)))"
    with session.limited_memory(1e9, kernels=1e6), pytest.raises(MemoryLimitError):
        session.run(state, "test")
    assert session.run(state, "test") == [(8_000_000,)]


def test_disk_bounds_what_is_spilled(fresh: duckdb.DuckDBPyConnection) -> None:
    session = DUCKDB.open(fresh)
    assert 0 < session.spill_limit < 1e18
    fresh.execute("SET max_temp_directory_size = '1GB'")
    assert session.spill_limit <= 1e9
    fresh.execute("SET temp_directory = ''")
    assert session.spill_limit == 0


def test_steps_of_a_loop_fit_too(native: duckdb.DuckDBPyConnection, free: Any) -> None:
    rng = np.random.default_rng(5)
    A, H = rng.random((SIDE, SIDE)) / SIDE, rng.random((SIDE, 2000))
    program = ucle.einsum_program("G[i,k] += A[i,j] * H[j,k]", A=A, H=H, database=native)
    free(30e6)
    with (
        program.prepare(native, carry={"H": "G"}) as step,
        pytest.raises(MemoryLimitError, match="needs more memory than is free"),
    ):
        step()
    free(1e12)
    with program.prepare(native, carry={"H": "G"}) as step:
        step()
        np.testing.assert_allclose(step()["G"].to_numpy(), A @ (A @ H))


@pytest.mark.filterwarnings("ignore::ucle.errors.StaleStatisticsWarning")
def test_data_that_has_grown_counts(
    native: duckdb.DuckDBPyConnection, free: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    native.execute(
        "CREATE TABLE wider AS SELECT x % 999 AS i, x // 999 AS j, 1.0 AS v FROM range(20000) t(x)"
    )
    program = ucle.einsum_program(
        "Z[i,k] += A[i,j] * A[k,j]",
        A="wider",
        database=native,
        bounds={"i": 3000, "k": 3000, "j": 3000},
    )
    program.execute(native).close()
    few = program.compiled.peak_memory
    native.execute(
        "INSERT INTO wider SELECT 1000 + x % 1999, 21 + x // 1999, 1.0 FROM range(2000000) t(x)"
    )
    free(max(few, 2 * ALWAYS_FREE))
    with monkeypatch.context() as patched:
        patched.setattr(current_data, "execute_script", run_out)  # within limits, it may run
        with pytest.raises(MemoryLimitError, match="needs more memory than is free"):
            program.execute(native)
    assert program.compiled.peak_memory == few


def run_out(*_: Any, **__: Any) -> Any:
    raise MemoryLimitError("out of memory")


@pytest.mark.turns(3)
def test_the_written_order_stays(native: duckdb.DuckDBPyConnection, free: Any) -> None:
    """A plan that needs less keeps to the form that the data asked for."""
    program, expected = product(native)
    prepared = program._preparations.fresh(DUCKDB.open(native)).as_written()
    free(0.8 * prepared.compiled.peak_memory)
    session = DUCKDB.open(native)
    with prepared.run(session, None) as result:
        np.testing.assert_allclose(result["Z"].to_numpy(), expected)
    assert prepared._smaller is not None
    assert prepared._smaller.compiled.association is None


COVARIANCE = """
import resource, sys
import numpy as np, scipy.sparse as sp
resource.setrlimit(resource.RLIMIT_AS, (4 << 30, resource.getrlimit(resource.RLIMIT_AS)[1]))
import ucle
rng = np.random.default_rng(0)
lines, suppliers, parts, width = 60_000, 500, 2000, 139
s, p = rng.integers(0, suppliers, lines), rng.integers(0, parts, lines)
L = sp.coo_array((np.ones(lines), (s, p)), shape=(suppliers, parts)).tocsr()
L.data[:] = 1
S, P = rng.random((suppliers, width)), rng.random((parts, width))
pairs = "L[s,p] * L[u,p] * (S[s,j] + S[u,j] + P[p,j])"
text = f"G[j,q] += {pairs} * (S[s,q] + S[u,q] + P[p,q])"
with ucle.connect(threads=2, max_temp_directory_size="9GB") as connection:
    program = ucle.einsum_program(text, L=L, S=S, P=P, database=connection, **OPTIONS)
    try:
        with program.execute(connection) as result:
            G = result["G"].to_numpy()
    except ucle.errors.MemoryLimitError as error:
        print("refused", "is free" in str(error))
        sys.exit()
N, B = L.toarray(), L.toarray().sum(0)
LS = N.T @ S
pair_sum = (S * (N @ B)[:, None]).T @ S * 2 + 2 * LS.T @ LS
cross = 2 * LS.T @ (B[:, None] * P)
expected = pair_sum + cross + cross.T + (P * (B**2)[:, None]).T @ P
np.testing.assert_allclose(G, expected, rtol=1e-6)
print("right")
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits addresses")
@pytest.mark.parametrize(
    ("options", "ends"),
    [({}, "right"), ({"rewrite": "none"}, "refused True")],
)
def test_the_covariance_of_a_self_join_is_never_killed(options: Any, ends: str) -> None:
    """In the written form it would fill memory and disk with terabytes."""
    script = COVARIANCE.replace("**OPTIONS", f"**{options!r}")
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == ends


def test_no_search_without_memory(native: duckdb.DuckDBPyConnection) -> None:
    program, _ = product(native)
    for kills in (True, False):
        budget = memory_check.Budget(FreeMemory(0.0, "a test", kills), Engine(1e9, 1e9))
        found = memory_check._plan_smaller(program.compiled, program.options, budget, None)  # type: ignore[arg-type]
        assert list(found) == []


def test_where_memory_is_refused_all_plans_are_tried(
    native: duckdb.DuckDBPyConnection, free: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first of them was made for what is free without a margin for threads."""
    program, _ = product(native)
    size = 0.3 * program.compiled.peak_memory
    searched, tried = [], []
    plan = current_data.plan_from_source

    def watched(compiled: Any, options: Any) -> Any:
        searched.append(options.resources.memory)
        return plan(compiled, options)

    def fails(self: Any, *_: Any) -> Any:
        tried.append(self.compiled)
        raise MemoryLimitError("out of memory")

    monkeypatch.setattr(current_data.Prepared, "_run", fails)
    monkeypatch.setattr(memory_check, "_is_hopeless", lambda *_: False)
    for kills in (True, False):
        free(size, kills=kills)
        prepared = current_data.Prepared(program.compiled, program.options, plan=watched)
        with pytest.raises(MemoryLimitError, match="needs more memory than is free"):
            prepared.run(DUCKDB.open(native), None)
        if kills:
            assert max(searched) == size
            few = len({id(x) for x in tried})
            searched.clear()
            tried.clear()
    assert searched[0] == size + program.compiled.threads * PER_THREAD
    assert len({id(x) for x in tried}) > few
