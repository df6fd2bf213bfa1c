"""The harness of the paper's experiments on made-up data; who is not installed is left out."""

from __future__ import annotations

import doctest
import json
import os
import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from circuits import convert
from qiskit.circuit.random import random_circuit

from benchmarks.paper import algebra, relational
from benchmarks.paper.catalogue import make_task
from benchmarks.paper.circuits import of_circuit
from benchmarks.paper.components import STAGES, best_plans, components, profile
from benchmarks.paper.measuring import make_workers, measure
from benchmarks.paper.report import report
from benchmarks.paper.targets import Target, targets
from benchmarks.paper.tasks import Task
from benchmarks.paper.workers import Limits, Worker, error_of, load_truth, save_truth
from benchmarks.peers import MODULES, SkippedError, make_engine
from benchmarks.peers.tables import Entries

GRAPH = "generated-50-200-16"


def random_state_through_a_circuit() -> Task:
    circuit = convert(random_circuit(4, 5, max_operands=3, seed=3))
    rng = np.random.default_rng(0)
    state = rng.normal(size=(2,) * 4) + 1j * rng.normal(size=(2,) * 4)
    return of_circuit("random", circuit, state / np.linalg.norm(state))


def small_triangles() -> Task:
    adjacency = sp.random_array((40, 40), density=0.2, rng=np.random.default_rng(0), format="csr")
    return algebra.of_triangles("small", adjacency)


TASKS: dict[str, Callable[[], Task]] = {
    "gcn": partial(make_task, f"gcn:{GRAPH}"),
    "attention": partial(make_task, f"attention:{GRAPH}"),
    "dense": partial(make_task, f"dense:{GRAPH}"),
    "layer": partial(make_task, f"layer:{GRAPH}"),
    "ALS loss": partial(make_task, f"ALS loss:{GRAPH}"),
    "PNMF sum": partial(make_task, "PNMF sum:60"),
    "matrix chain": partial(algebra.matrix_chain, "0.05", 60),
    "SDDMM": partial(algebra.sddmm, "0.05", 60),
    "triangles": small_triangles,
    "circuit": random_state_through_a_circuit,
}


@pytest.mark.parametrize("engine", MODULES)
@pytest.mark.parametrize("name", TASKS)
def test_engines_agree(name: str, engine: str) -> None:
    task = TASKS[name]()
    try:
        peer = make_engine(engine)
        peer.load(task)
    except SkippedError as error:
        pytest.skip(str(error))
    try:
        for _ in range(2):  # what the first run has left is in nobody's way
            peer.run()
        assert error_of(peer.result(), task.expected()) < 1e-9
    finally:
        peer.close()


def test_a_wrong_result_shows(tmp_path: Path) -> None:
    dense = np.array([[1.0, 0.0], [0.0, 4.0]])
    for expected in (dense, sp.csr_array(dense)):
        truth = load_truth(save_truth(expected, tmp_path))
        right = Entries([np.array([0, 1]), np.array([0, 1])], np.array([1.0, 4.0]))
        missing = Entries([np.array([1]), np.array([1])], np.array([4.0]))
        assert error_of(right, truth) == error_of(sp.coo_array(dense), truth) == 0
        assert error_of(missing, truth) == 0.25
    assert error_of(Entries([], np.array([3.0])), load_truth(save_truth(2.0, tmp_path))) == 0.5


@pytest.mark.slow
def test_workers_take_turns_and_are_measured() -> None:
    workers = make_workers(["ucle", "SciPy / NumPy"], {})
    try:
        found = measure(f"gcn:{GRAPH}", workers, rounds=2)
    finally:
        for worker in workers.values():
            worker.close()
    for measurement in found.values():
        assert measurement["status"] == "ok"
        assert len(measurement["seconds"]) == 2
        assert measurement["error"] < 1e-9


@pytest.mark.slow
def test_a_worker_is_ended_at_its_limit_and_started_again() -> None:
    worker = Worker("SciPy / NumPy", Limits(seconds=0.0))
    try:
        assert worker.ask("load", f"gcn:{GRAPH}", seconds=60).status == "ok"
        # However short a run is, a process that is stopped does not end it in time.
        os.kill(worker._process.pid, signal.SIGSTOP)
        assert worker.ask("run").status == "TLE"
        assert worker.ask("load", "gcn:nowhere", seconds=60).status == "failed"
    finally:
        worker.close()


def test_components_and_plans() -> None:
    parts = components(f"gcn:{GRAPH}", 1)
    predicted = {"execution, predicted", "peak, MB", "peak, predicted"}
    assert set(parts) == {*STAGES, "loading", "other", "execution", *predicted}
    assert all(seconds >= 0 for seconds in parts.values())
    assert all(parts[name] > 0 for name in STAGES)
    plans = best_plans(f"gcn:{GRAPH}", 1)
    assert [plan["cost"] for plan in plans] == sorted(plan["cost"] for plan in plans)
    assert len(plans) == 3
    # Of all steps: which of them take longest is another matter on a busy machine.
    assert "T1[i,l]" in profile(f"gcn:{GRAPH}", 99).replace("I", "i").replace("L", "l")


def measured() -> dict[str, Any]:
    """Made-up measurements of two tasks."""

    def ran(*seconds: float) -> dict[str, Any]:
        return {"status": "ok", "seconds": list(seconds), "error": 1e-12, "note": ""}

    return {
        "machine": "A machine.",
        "tasks": {
            "attention:planetoid_cora": {
                "ucle": ran(0.1, 0.2, 0.3),
                "DuckDB, relational": ran(5.0),
            },
            "attention:amazon_photo": {"ucle": ran(1.0), "SciPy / NumPy": ran(2.0)},
            "dense:planetoid_cora": {
                "ucle": ran(1.0),
                "DuckDB, relational": {"status": "TLE", "note": "late", "limit": 150.0},
            },
            "circuit:seca_n11": {"ucle": {"status": "wrong", "note": "by 1", "error": 1.0}},
        },
    }


def test_targets_are_computed() -> None:
    found = {target.what: target for target in targets(measured())}

    def of(what: str) -> Target:
        return found[what]

    missed = of("attention:planetoid_cora: DuckDB, relational / ucle")
    assert (missed.seen, missed.met) == ("25", False)
    assert of("attention:amazon_photo: ucle / SciPy / NumPy").met is True
    assert of("attention:amazon_photo: ucle / PyTorch").seen == "PyTorch not measured"
    late = of("dense:planetoid_cora: DuckDB, relational / ucle")
    assert (late.seen, late.met) == ("> 150", True)
    assert of("circuit:seca_n11: error of ucle").met is False
    assert of("circuit:seca_n11: DuckDB, relational / ucle").met is None


def test_the_report_is_made_of_measurements() -> None:
    text = "\n".join(report(json.loads(json.dumps(measured()))))
    assert (
        "| attention:planetoid_cora: DuckDB, relational / ucle | ≥ 30 | 25 | **missed** |" in text
    )
    assert "| ucle | 0.200 | 1.000 |" in text
    assert "| DuckDB, relational | TLE | late | dense:planetoid_cora |" in text


def test_relational_scripts() -> None:
    assert not doctest.testmod(relational).failed
    steps = relational.chained("r", (), [("A", "ij"), ("B", "jk"), ("C", "ki")])
    assert [step.name for step in steps] == ["r_0", "r"]
    assert "b.c1 AS c1" in steps[0].select
    assert "GROUP BY" not in steps[1].select
