"""Executors that die, and workers with little memory: the right answer, or a typed error."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from cluster import MASTER, REMOTE
from on_spark import arrays

import ucle
from ucle import einsum_program

pytestmark = pytest.mark.skipif(
    REMOTE is not None or not MASTER.startswith("local-cluster"),
    reason="there are no executors of their own",
)


def processes(name: str) -> dict[int, int]:
    """Processes of this session with a name in their command, each with its parent."""
    found = subprocess.run(
        ["ps", "-A", "-ww", "-o", "pid=,ppid=,args="],
        capture_output=True,
        text=True,
        check=True,
    )
    parents, named = {}, set()
    for line in found.stdout.splitlines():
        own, parent, *command = line.split(maxsplit=2)
        parents[int(own)] = int(parent)
        if name in " ".join(command):
            named.add(int(own))
    below, size = {os.getpid()}, 0
    while len(below) > size:
        size = len(below)
        below |= {each for each, parent in parents.items() if parent in below}
    return {each: parents[each] for each in named & below}


def kill_an_executor() -> None:
    there = processes("CoarseGrainedExecutorBackend")
    assert there
    os.kill(min(there), signal.SIGKILL)


def kill_python_workers() -> None:
    """Kill those that executors keep for later tasks: children of a process of the same name."""
    there = processes("pyspark.daemon")
    idle = [each for each, parent in there.items() if parent in there]
    assert idle
    for each in idle:
        os.kill(each, signal.SIGKILL)


def edges(spark: Any, rows: int) -> Any:
    """A graph that Spark makes where it is read, so that nothing of it lies on the driver."""
    return spark.range(0, rows, 1, 4).selectExpr(
        "cast(id % 997 as int) i", "cast(id div 997 as int) j", "cast(1 + id % 7 as double) val"
    )


def expected(rows: int) -> np.ndarray[Any, Any]:
    ids = np.arange(rows)
    return np.bincount(ids % 997, weights=1.0 + ids % 7)


def test_an_executor_that_dies_in_mid_job(spark: Any) -> None:
    rows = 400_000
    program = einsum_program("y[i] += A[i,j]", A=edges(spark, rows), database=spark, engine="spark")
    stop = threading.Event()

    def strike() -> None:
        time.sleep(0.7)
        if not stop.is_set():
            kill_an_executor()

    with ThreadPoolExecutor(1) as pool:
        struck = pool.submit(strike)
        result = program.execute()
        stop.set()
        struck.result()
    with result:
        np.testing.assert_array_equal(result["y"].to_numpy(), expected(rows))


def test_an_executor_that_dies_after_the_job(spark: Any) -> None:
    """Spark computes blocks again that it kept on a lost executor."""
    rows = 50_000
    program = einsum_program("y[i] += A[i,j]", A=edges(spark, rows), database=spark, engine="spark")
    with program.execute() as result:
        kill_an_executor()
        np.testing.assert_array_equal(result["y"].to_numpy(), expected(rows))


def test_more_than_a_worker_may_hold(spark: Any) -> None:
    """DuckDB spills what exceeds the memory that it may use in a task."""
    rows = 3_000_000
    spark.conf.set("spark.ucle.memoryLimit", "60MB")
    try:
        program = einsum_program(
            "y[i] += A[i,j] * A[i,j]", A=edges(spark, rows), database=spark, engine="spark"
        )
        with program.execute() as result:
            ids = np.arange(rows)
            squares = np.bincount(ids % 997, weights=(1.0 + ids % 7) ** 2)
            np.testing.assert_array_equal(result["y"].to_numpy(), squares)
    finally:
        spark.conf.unset("spark.ucle.memoryLimit")


@pytest.mark.parametrize("kill", [kill_an_executor, kill_python_workers])
def test_processes_that_die_in_a_loop(kill: Callable[[], None], spark: Any) -> None:
    """What they held is computed again, and the losses are those of one machine."""
    rng = np.random.default_rng(5)
    features, target = rng.normal(size=(400, 6)), rng.normal(size=400)
    text = "p[i] += X[i,f] * w[f]; loss[] = mean[i](square(p[i] - y[i]))"
    small = {"y": target, "w": np.zeros(6)}
    sgd = ucle.optim.sgd(0.05, 0.9)
    alone = einsum_program(text, X=features, **small).minimize("loss", "w", sgd)
    expected = alone.iterate(max_steps=20).history["loss"]
    apart = einsum_program(
        text, X=arrays(spark, features, "i"), database=spark, engine="spark", **small
    ).minimize("loss", "w", sgd)

    def strike(progress: Any) -> None:
        if progress.number == 7:
            kill()

    with apart.iterate(max_steps=20, progress=strike) as found:
        np.testing.assert_allclose(found.history["loss"], expected, rtol=1e-9)
        np.testing.assert_allclose(found["w_next"].to_numpy().shape, (6,))
