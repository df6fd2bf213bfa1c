"""Loops, gradients and training on a cluster of two workers, against one machine and NumPy."""

from __future__ import annotations

import gc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from cluster import ELSEWHERE, REMOTE
from events import jobs, places, shuffled
from on_spark import arrays, entries, on_spark
from random_programs.indices import indexed_case
from random_programs.loops import is_tame, with_carry

import ucle
from ucle import einsum_program, table
from ucle.errors import UnsupportedError, ValueTypeError
from ucle.testing.generate import Case, random_case
from ucle.testing.oracle import assert_equal
from ucle.testing.oracle_operators import UndefinedError

RNG = np.random.default_rng(11)
LOOPS = 30
STEPS = 3
NODES = 300

RANK = f"""
q[i] += 0.85 * A[i,j] * p[j]
r[i] = q[i] + 0.15 / {NODES}
delta[] = sum[i](abs(r[i] - p[i]))
"""


def transition() -> np.ndarray[Any, Any]:
    follows = RNG.random((NODES, NODES)) < 0.02
    np.fill_diagonal(follows, val=True)
    return np.asarray(follows / follows.sum(axis=0))


def ranks(spark: Any, matrix: np.ndarray[Any, Any], engine: str = "spark") -> Any:
    return einsum_program(
        RANK,
        A=entries(spark, matrix, "i", "j"),
        p=np.full(NODES, 1 / NODES),
        outputs=["r", "delta"],
        database=spark,
        engine=engine,
    )


def random_loop(seed: int) -> tuple[Case, dict[str, str]] | None:
    draw: Callable[[int], Case] = indexed_case if seed % 3 == 2 else random_case
    try:
        case, carry = with_carry(draw(seed), seed)
        case.expected()
    except (UndefinedError, ValueError):
        return None
    return (case, carry) if carry else None


@pytest.mark.sample(None)
@pytest.mark.parametrize("seed", range(LOOPS))
def test_random_loops(seed: int, spark: Any) -> None:
    loop = random_loop(seed)
    if loop is None:
        pytest.skip("the program has no answer")
    case, carry = loop
    program = einsum_program(
        case.text,
        inputs=on_spark(case, spark),
        bounds=case.stated,
        database=spark,
        engine="duckdb" if seed % 6 == 5 else "spark",
    )
    state = dict(case.arrays)
    with program.prepare(carry=carry) as run:
        for step in range(STEPS):
            expected = case.evaluate(state)
            if not all(map(is_tame, expected.values())):
                break
            result = run()
            for name in result:
                context = f"step {step}, carry {carry}, {name}\n{case}"
                assert_equal(result[name].to_numpy(), expected[name], context)
            state |= {x: expected[output] for x, output in carry.items()}


@pytest.mark.parametrize("engine", ["spark", "duckdb"])
def test_page_rank_until_it_converges(engine: str, spark: Any) -> None:
    matrix = transition()
    program = ranks(spark, matrix, engine)
    with program.iterate({"p": "r"}, "delta[] < 1e-10", max_steps=200) as found:
        expected = np.full(NODES, 1 / NODES)
        for _ in range(found.steps):
            expected = 0.85 * matrix @ expected + 0.15 / NODES
        assert found.converged
        assert found.history["delta"][-1] < 1e-10 <= found.history["delta"][-2]
        np.testing.assert_allclose(found["r"].to_numpy(), expected, rtol=1e-10)
        assert found["r"].relation.count() == NODES


@pytest.mark.skipif(REMOTE is not None, reason="Spark Connect has no RDDs")
def test_a_step_moves_nothing_that_is_there(spark: Any, event_log: Path) -> None:
    """The graph moves once, the state not at all, and a step is one job with one stage."""
    program = ranks(spark, transition())
    assert program.step_plan({"p": "r"}).bytes == 0.0
    moved, begun = [], []
    with program.prepare(carry={"p": "r"}) as run:
        for _ in range(8):
            before, jobs_before = shuffled(event_log), jobs(event_log)
            run()
            moved.append(shuffled(event_log) - before)
            begun.append(jobs(event_log) - jobs_before)
    assert moved[0] > 40_000
    assert moved[1:] == [0] * 7
    assert begun[1:] == [1] * 7


@pytest.mark.skipif(REMOTE is not None, reason="Spark Connect has no RDDs")
def test_a_step_runs_where_its_rows_are(spark: Any, event_log: Path) -> None:
    """On the executor that has them, and not only on its host."""
    with ranks(spark, transition()).prepare(carry={"p": "r"}) as run:
        run()
        before = len(places(event_log))
        for _ in range(12):
            run()
    later = places(event_log)[before:]
    assert len(later) >= 24
    kept = [place for place in later if place[2] == "PROCESS_LOCAL"]
    assert len(set(kept)) == len({part for part, _, _ in kept})
    assert len(kept) == len(later)


@pytest.mark.skipif(REMOTE is not None, reason="Spark Connect has no RDDs")
def test_what_steps_read_moves_once_before_them(spark: Any, event_log: Path) -> None:
    """A graph comes to its partitions when it is made ready, and not once more to be kept there."""
    nodes, follows = 4_000, 12
    graph = spark.range(0, nodes * follows, 1, 4).selectExpr(
        f"cast(id % {nodes} as int) i",
        f"cast((id * 7 + 31 * (id div {nodes})) % {nodes} as int) j",
        "rand(5) val",
    )
    rows = graph.toArrow()
    matrix = sp.csr_array(
        (rows["val"].to_numpy(), (rows["i"].to_numpy(), rows["j"].to_numpy())), (nodes, nodes)
    )
    start = RNG.random(nodes)
    program = einsum_program(
        "r[i] += A[i,j] * p[j]",
        A=table(graph, bounds=[nodes, nodes]),
        p=start,
        outputs=["r"],
        database=spark,
        engine="spark",
    )
    estimate, before = program.step_plan({"p": "r"}).bytes_once, shuffled(event_log)
    with program.prepare(carry={"p": "r"}) as run:
        run()
        moved = shuffled(event_log) - before
        np.testing.assert_allclose(run()["r"].to_numpy(), matrix @ (matrix @ start), rtol=1e-9)
    assert estimate > 16 * nodes * follows
    assert 0.4 * estimate <= moved <= 1.1 * estimate


@pytest.mark.skipif(ELSEWHERE, reason="it notes no events here")
def test_a_step_moves_what_is_estimated(spark: Any, event_log: Path) -> None:
    """Copies of the weights for all partitions, and what each of them adds to the gradient."""
    rows, width = 200_000, 40
    numbers = spark.range(0, rows, 1, 4).selectExpr(
        "cast(id as int) i",
        f"transform(sequence(1, {width}), f -> cast(id * f % 13 as double) / 13) val",
    )
    program = einsum_program(
        "p[i] += X[i,f] * w[f]; g[f] += X[i,f] * p[i]; w_next[f] = w[f] - 1e-7 * g[f]",
        X=table(numbers, bounds=[rows, width]),
        w=np.ones(width),
        outputs=["w_next"],
        database=spark,
        engine="spark",
    )
    ids, factors = np.arange(rows)[:, None], np.arange(1, width + 1)
    matrix, expected = (ids * factors % 13) / 13, np.ones(width)
    plan = program.step_plan({"w": "w_next"})
    moved = []
    with program.prepare(carry={"w": "w_next"}) as run:
        for _ in range(4):
            before = shuffled(event_log)
            result = run()
            moved.append(shuffled(event_log) - before)
            expected = expected - 1e-7 * (matrix.T @ (matrix @ expected))
            np.testing.assert_allclose(result["w_next"].to_numpy(), expected, rtol=1e-9)
    later, heads = moved[1:], 6_000  # of Arrow's streams and Spark's blocks, which are small here
    assert max(later) <= plan.bytes + heads


@pytest.mark.skipif(ELSEWHERE, reason="it notes no events here")
def test_a_step_moves_the_array_that_it_is_given(spark: Any, event_log: Path) -> None:
    """To the partitions of its readers: with the tasks, or by a shuffle on Spark Connect."""
    rows, width = 2_000, 20
    features = RNG.normal(size=(rows, width))
    program = einsum_program(
        "p[i] += X[i,f] * k[i,f] * w[f]; g[f] += X[i,f] * p[i]; w_next[f] = w[f] - 1e-4 * g[f]",
        X=table(arrays(spark, features, "i"), bounds=[rows, width]),
        k=np.ones((rows, width)),
        w=np.ones(width),
        outputs=["w_next"],
        database=spark,
        engine="spark",
    )
    carry, expected, moved = {"w": "w_next"}, np.ones(width), []
    estimate = program.step_plan(carry, swap=["k"]).bytes
    without = program.step_plan(carry).bytes
    assert estimate - without > 7 * rows * width
    assert f"moves {estimate:,.0f} bytes" in program.explain(carry=carry, swap=["k"])
    with program.prepare(carry=carry, swap=["k"]) as run:
        for _ in range(4):
            given = RNG.random((rows, width))
            before = shuffled(event_log)
            result = run(k=given)
            moved.append(shuffled(event_log) - before)
            expected = expected - 1e-4 * (features.T @ ((features * given) @ expected))
            np.testing.assert_allclose(result["w_next"].to_numpy(), expected, rtol=1e-9)
    if REMOTE is None:
        assert max(moved[1:]) <= without + 6_000  # heads of streams and blocks
    else:
        assert estimate / 1.5 <= min(moved[1:])
        assert max(moved[1:]) <= 1.5 * estimate


@pytest.mark.skipif(REMOTE is None or ELSEWHERE, reason="it asks a server of Spark Connect")
def test_a_step_over_connect_moves_its_state_alone(spark: Any, event_log: Path) -> None:
    """The graph moves before the first step; each later one moves the same bytes."""
    nodes = 4_000
    i, j = RNG.integers(nodes, size=(2, 12 * nodes))
    matrix = sp.csr_array((np.full(len(i), 0.05), (i, j)), shape=(nodes, nodes))
    program = einsum_program(
        "r[i] += A[i,j] * p[j]",
        A=table(entries(spark, matrix, "i", "j"), bounds=[nodes, nodes]),
        p=RNG.random(nodes),
        outputs=["r"],
        database=spark,
        engine="spark",
    )
    plan, moved, begun = program.step_plan({"p": "r"}), [], []
    assert plan.bytes_once > 5 * plan.bytes > 0
    with program.prepare(carry={"p": "r"}) as run:
        for _ in range(11):
            before, jobs_before = shuffled(event_log), jobs(event_log)
            run()
            moved.append(shuffled(event_log) - before)
            begun.append(jobs(event_log) - jobs_before)
    assert max(begun[2:]) == min(begun[2:])  # none copies the state of those before it
    assert max(moved[2:]) <= 1.02 * min(moved[2:])
    assert plan.bytes / 1.5 <= max(moved[2:]) <= 1.5 * plan.bytes


def test_frames_of_earlier_steps_go(spark: Any) -> None:
    if REMOTE is not None:
        pytest.skip("there is no context")
    gc.collect()
    count = spark.sparkContext._jsc.getPersistentRDDs
    before = len(count())
    program = ranks(spark, transition())
    with program.prepare(carry={"p": "r"}) as run:
        sizes = []
        for _ in range(5):
            run()
            sizes.append(len(count()))
        assert max(sizes[2:]) - before <= 4  # the graph, this state, the one before, and a plan's
    assert len(count()) <= before


def test_training(spark: Any) -> None:
    """Losses of a graph network are those of one machine."""
    nodes, width, hidden = 60, 8, 5
    graph = (RNG.random((nodes, nodes)) < 0.1) * 1.0
    features, target = RNG.normal(size=(nodes, width)), RNG.normal(size=(nodes, 2))
    weights = RNG.normal(size=(width, hidden)), RNG.normal(size=(hidden, 2))
    text = """
        T[i,f] += A[i,j] * X[j,f]
        H[i,h] = relu(sum[f](T[i,f] * W[f,h]))
        S[i,h] += A[i,j] * H[j,h]
        P[i,c] += S[i,h] * V[h,c]
        loss[] = mean[i,c](square(P[i,c] - Y[i,c]))
    """
    small = {"Y": target, "W": weights[0], "V": weights[1]}
    alone = einsum_program(text, A=graph, X=features, **small)
    apart = einsum_program(
        text,
        A=table(entries(spark, graph, "i", "j"), bounds=[nodes, nodes]),
        X=arrays(spark, features, "j"),
        database=spark,
        engine="spark",
        **small,
    )
    adam = ucle.optim.adam(0.01)
    expected = alone.minimize("loss", ["W", "V"], adam).iterate(max_steps=12)
    with apart.minimize("loss", ["W", "V"], adam).iterate(max_steps=12) as found:
        np.testing.assert_allclose(found.history["loss"], expected.history["loss"], rtol=1e-9)
        np.testing.assert_allclose(
            found["W_next"].to_numpy(), expected["W_next"].to_numpy(), rtol=1e-6
        )


def test_gradients_at_stored_entries(spark: Any) -> None:
    ratings = (RNG.random((20, 15)) < 0.3) * RNG.normal(size=(20, 15))
    factors = RNG.normal(size=(15, 3))
    text = "loss = sum[i,k](square(sum[j](R[i,j] * V[j,k])))"
    program = einsum_program(
        text,
        R=table(entries(spark, ratings, "i", "j"), bounds=[20, 15]),
        V=factors,
        database=spark,
        engine="spark",
    )
    with program.gradient("loss", ["R"], stored=["R"]).execute() as result:
        expected = 2 * (ratings @ factors @ factors.T) * (ratings != 0)
        np.testing.assert_allclose(result["d_R"].to_numpy(), expected, rtol=1e-9, atol=1e-12)


def test_swapped_arrays(spark: Any) -> None:
    matrix = transition()
    program = ranks(spark, matrix)
    with program.prepare(carry={"p": "r"}, swap=["p"]) as run:
        run()
        start = RNG.random(NODES)
        result = run(p=start)
        np.testing.assert_allclose(
            result["r"].to_numpy(), 0.85 * matrix @ start + 0.15 / NODES, rtol=1e-10
        )
    with pytest.raises(UnsupportedError, match="not read again"):
        program.prepare(swap=["A"])


def test_checkpoints(spark: Any) -> None:
    program = ranks(spark, transition())
    with program.iterate({"p": "r"}, max_steps=2, checkpoint={"p": "ranks"}) as found:
        rows = spark.table("ranks").toArrow().sort_by("i")
        np.testing.assert_allclose(rows["val"].to_numpy(), found["r"].to_numpy())


def test_a_state_that_is_not_finite(spark: Any) -> None:
    program = einsum_program(
        "y[i] = x[i] * x[i] * 1e200", x=np.array([1.0, 2.0, 0.0]), database=spark, engine="spark"
    )
    with program.prepare(carry={"x": "y"}) as run:
        run()
        with pytest.raises(ValueTypeError, match=r"y in the place of x"):
            run()


def test_lazy_tensors(spark: Any) -> None:
    frame = spark.createDataFrame([(0, 1, 2.0), (1, 0, 3.0)], ["i", "j", "val"])
    tensor = ucle.tensor(frame, axes=("i", "j"), database=spark)
    assert tensor.sum("j").to_numpy().tolist() == [2.0, 3.0]
