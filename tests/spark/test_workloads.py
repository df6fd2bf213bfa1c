"""Typical Spark workloads: graph networks, PageRank, factorisation, tables with ids, files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from cluster import ELSEWHERE, REMOTE
from events import jobs, shuffled
from graph_data import attention, gcn, load
from on_spark import arrays, entries

import ucle
from ucle import einsum_program, table
from ucle.errors import (
    ArgumentError,
    CoordinateError,
    DuplicateCoordinatesError,
    ExecutionError,
    InputError,
    ResultClosedError,
)
from ucle.spark.program import Cluster

GRAPHS = Path(__file__).parents[3] / "shared" / "data" / "graphs"
RNG = np.random.default_rng(7)


@pytest.mark.parametrize("workload", [gcn, attention])
def test_graph_networks(workload: Any, spark: Any) -> None:
    folder = GRAPHS / "planetoid_cora"
    if not folder.exists():
        pytest.skip("the graphs are not there")
    work = workload(folder)
    inputs = {
        name: entries(spark, value, "r", "c") if hasattr(value, "tocsr") else value
        for name, value in work.inputs.items()
    }
    program = einsum_program(work.text, inputs=inputs, database=spark, engine="spark")
    with program.execute() as result:
        got = result[work.output].to_numpy()
    expected = work.expected.toarray() if hasattr(work.expected, "toarray") else work.expected
    np.testing.assert_allclose(got, expected, rtol=1e-9, atol=1e-9)


def test_page_rank(spark: Any) -> None:
    """A loop of the caller's: each step reads what the one before has made."""
    nodes = 300
    follows = RNG.random((nodes, nodes)) < 0.02
    np.fill_diagonal(follows, val=True)
    transition = follows / follows.sum(axis=0)
    links = entries(spark, transition, "i", "j")
    expected = rank = np.full(nodes, 1 / nodes)
    text = "q[i] += 0.85 * A[i,j] * p[j]\nr[i] = q[i] + 0.15 / 300"
    held = table(entries(spark, rank, "i"), bounds=[nodes])
    made = []
    for _ in range(3):
        expected = 0.85 * transition @ expected + 0.15 / nodes
        program = einsum_program(
            text, A=links, p=held, database=spark, engine="spark", bounds={"i": nodes, "j": nodes}
        )
        made.append(program.execute())
        held = table(made[-1]["r"].relation, bounds=[nodes])
    np.testing.assert_allclose(made[-1]["r"].to_numpy(), expected, rtol=1e-12)
    for result in made:
        result.close()


def test_alternating_least_squares(spark: Any) -> None:
    """A batch of small systems, one for each user, and one for each thing."""
    users, things, rank = 60, 40, 4
    seen = RNG.random((users, things)) < 0.3
    ratings = np.where(seen, RNG.integers(1, 6, size=seen.shape), 0).astype(float)
    factors = RNG.random((things, rank))
    text = """
        G[u,f,g] += M[u,t] * V[t,f] * V[t,g]
        S[u,f,g] = G[u,f,g] + 0.1 * (f == g)
        B[u,f] += R[u,t] * V[t,f]
        I[u,f,g] = inv[f,g](S[u,f,g])
        U[u,f] += I[u,f,g] * B[u,g]
    """
    program = einsum_program(
        text,
        M=entries(spark, seen.astype(float), "u", "t"),
        R=entries(spark, ratings, "u", "t"),
        V=arrays(spark, factors, "t"),
        database=spark,
        engine="spark",
        outputs=["U"],
        bounds={"u": users, "t": things},
    )
    with program.execute() as result:
        got = result["U"].to_numpy()
    for user in range(users):
        own = factors[seen[user]]
        system = own.T @ own + 0.1 * np.eye(rank)
        expected = np.linalg.solve(system, own.T @ ratings[user][seen[user]])
        np.testing.assert_allclose(got[user], expected, rtol=1e-9, atol=1e-12)


def test_ids_tables_and_files(spark: Any, tmp_path: Path) -> None:
    who, what = ["ann", "bob", "ann"], ["tea", "tea", "ale"]
    likes = pa.table({"who": who, "what": what, "n": [1.0, 2.0, 4.0]})
    price = pa.table({"what": ["tea", "ale", "gin"], "p": [3.0, 5.0, 7.0]})
    spark.createDataFrame(likes).write.mode("overwrite").saveAsTable("likes")
    path = str(tmp_path / "price.parquet")
    spark.createDataFrame(price).write.parquet(path)
    for engine in ("spark", "duckdb"):
        program = einsum_program(
            "z[u] += A[u,d] * p[d]", A="likes", p=path, database=spark, engine=engine
        )
        with program.execute() as result:
            z = result["z"]
            assert z.columns == ("u", "val")
            rows = z.to_arrow().sort_by("u").to_pydict()
            assert rows == {"u": ["ann", "bob"], "val": [23.0, 6.0]}
            assert z.coordinates("u").to_pylist() == ["ann", "bob"]
            assert z.to_numpy().tolist() == [23.0, 6.0]
            z.to_table("spent", mode="overwrite")
            z.to_parquet(str(tmp_path / engine))
        assert spark.table("spent").count() == 2
        assert spark.read.parquet(str(tmp_path / engine)).count() == 2
        with pytest.raises(ResultClosedError):
            _ = result["z"].to_arrow()


@pytest.mark.parametrize("engine", ["spark", "duckdb"])
@pytest.mark.parametrize("outputs", [["double", "cost"], ["double"]])
def test_names_of_a_table_in_memory(spark: Any, engine: str, outputs: list[str]) -> None:
    """A dictionary reads them, also those of a table that no output reads."""
    bought = pa.table({"n": [0, 0], "fruit": ["fig", "apple"], "val": [1.0, 2.0]})
    price = pa.table({"fruit": ["fig", "pear"], "val": [1.0, 2.0]})
    program = einsum_program(
        "double[fruit] = 2 * price[fruit]; cost[n] = bought[n,fruit] * price[fruit]",
        price=spark.createDataFrame(price),
        bought=table(bought),
        outputs=outputs,
        database=spark,
        engine=engine,
    )
    expected = {"double": [0.0, 2.0, 4.0], "cost": [1.0]}
    with program.execute() as result:
        assert {x: result[x].to_numpy().tolist() for x in outputs}.items() <= expected.items()
    with program.prepare() as run:
        made = run()
        assert {x: made[x].to_numpy().tolist() for x in outputs}.items() <= expected.items()


@pytest.mark.skipif(REMOTE is not None, reason="it notes no events here")
def test_bytes_and_jobs_are_as_estimated(spark: Any, event_log: Path) -> None:
    """Shuffled bytes are within a factor of 1.5 of the estimate, and no product moves."""
    folder = GRAPHS / "amazon_photo"
    if not folder.exists():
        pytest.skip("the graphs are not there")
    adjacency, _ = load(folder)
    features = RNG.random((adjacency.shape[0], 64))
    program = einsum_program(
        "Z[i,k] += A[i,j] * H[j,k]",
        A=entries(spark, adjacency, "i", "j"),
        H=arrays(spark, features, "j"),
        database=spark,
        engine="spark",
    )
    # Frames from memory are cut by a shuffle of their own, which is not the program's.
    program.execute().close()
    before, begun = shuffled(event_log), jobs(event_log)
    with program.execute() as result:
        # Those of the two frames, which Spark does not keep, are shuffled each time.
        own = adjacency.nnz * 24 + features.size * 8
        moved = shuffled(event_log) - before - own
        assert jobs(event_log) - begun <= 8
        np.testing.assert_allclose(result["Z"].to_numpy(), adjacency @ features, rtol=1e-9)
    entries_and_copies = adjacency.nnz * 16 + 2 * (features.size * 8 + 4 * len(features))
    assert program.plan.bytes == pytest.approx(entries_and_copies, rel=0.01)
    assert moved <= 1.2 * entries_and_copies


def test_small_programs_run_on_one_duckdb(spark: Any) -> None:
    matrix = RNG.random((20, 20))
    program = einsum_program(
        "y[i] += A[i,j] * x[j]", A=entries(spark, matrix, "i", "j"), x=np.ones(20), database=spark
    )
    assert program.engine == "duckdb"
    assert 'engine="spark" overrides this' in program.explain()
    with program.execute() as result:
        np.testing.assert_allclose(result["y"].to_numpy(), matrix.sum(axis=1))
    text = program.to_sql()
    assert "fragment 1" in text
    assert "CREATE" in text


def test_bad_inputs(spark: Any) -> None:
    text = "y[i] += A[i,j]"
    with pytest.raises(InputError, match="no such table"):
        einsum_program(text, A="nowhere.edges", database=spark)
    twice = spark.createDataFrame(pa.table({"i": [0, 0], "j": [1, 1], "val": [1.0, 2.0]}))
    with pytest.raises(DuplicateCoordinatesError, match="same coordinates"):
        einsum_program(text, A=twice.repartition(2, "val"), database=spark)
    with einsum_program(
        text, A=table(twice, duplicates="sum"), database=spark, engine="spark"
    ).execute() as result:
        assert result["y"].to_numpy().tolist() == [3.0]
    negative = spark.createDataFrame(pa.table({"i": [0, -1], "j": [1, 1], "val": [1.0, 2.0]}))
    with pytest.raises(CoordinateError, match="outside its bound"):
        einsum_program(text, A=negative, database=spark)
    missing = spark.createDataFrame(pa.table({"i": [0, None], "j": [1, 1], "val": [1.0, 2.0]}))
    with pytest.raises(CoordinateError, match="NULL"):
        einsum_program(text, A=missing, database=spark)


def test_results_are_bounded(spark: Any) -> None:
    matrix = RNG.random((20, 20))
    program = einsum_program(
        "y[i,j] = A[i,j] * 2", A=entries(spark, matrix, "i", "j"), database=spark, engine="spark"
    )
    with program.execute() as result, pytest.raises(ArgumentError, match="too many rows"):
        result["y"].to_arrow(max_rows=399)


def test_errors_of_tasks_are_typed(spark: Any) -> None:
    """An overflow on a worker is the same error as on one machine, and nothing is left."""
    large = pa.table({"i": [0, 1], "val": pa.array([2**62, 2**62], pa.int64())})
    frame = spark.createDataFrame(large).repartition(2)
    program = einsum_program("s += 3 * x[i]", x=frame, database=spark, engine="spark")
    with pytest.raises(ucle.errors.NumberRangeError):
        program.execute()
    if REMOTE is None:
        assert len(spark.sparkContext._jsc.getPersistentRDDs()) == 0


def test_another_version_on_an_executor(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    matrix = RNG.random((20, 20))
    frame = entries(spark, matrix, "i", "j")
    program = einsum_program("y[i] += A[i,j]", A=frame, database=spark, engine="spark")
    monkeypatch.setattr("ucle.spark.tasks.TaskContext.version", "0.0.1")
    monkeypatch.setattr(
        "ucle.spark.engine.TaskContext",
        lambda **options: ucle.spark.tasks.TaskContext(version="0.0.1", **options),
    )
    with pytest.raises(ExecutionError, match="another version of ucle"):
        program.execute()


@pytest.mark.skipif(ELSEWHERE, reason="that server has as many cores as it has")
def test_a_cluster_has_the_partitions_of_its_cores(spark: Any) -> None:
    """Otherwise, over Spark Connect, small stages have 64 tasks."""
    cluster = Cluster.of(spark)
    assert (cluster.partitions, cluster.network.workers) == (2, 2)
