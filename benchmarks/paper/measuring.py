"""One task on all engines: the participants, the turns, and the stored results.

The measurement of an engine is a dict, in the form of the JSON file:

    {"status": "ok", "seconds": [0.12, 0.11], "load": 0.4, "error": 1e-16, "note": ""}
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from benchmarks.measure import PAUSE
from benchmarks.paper.catalogue import make_task
from benchmarks.paper.workers import LOADING, TOLERANCE, Limits, Reply, Worker, save_truth

LIMITS = {
    "DuckDB, relational": 90.0,
    "Hyper, relational": 30.0,
    "PostgreSQL, relational": 10.0,
    "SQLite, relational": 10.0,
}
"""Seconds of one run; the others' times are compared with that of DuckDB."""
LIMIT = 60.0
SLOW = 4.0
"""Seconds from which on one run is enough."""

Measurement = dict[str, Any]


def make_workers(engines: Iterable[str], options: Mapping[str, Any]) -> dict[str, Worker]:
    """Return a worker for each engine; none is started yet."""
    return {
        engine: Worker(engine, Limits(LIMITS.get(engine, LIMIT)), **options.get(engine, {}))
        for engine in engines
    }


def measure(key: str, workers: Mapping[str, Worker], rounds: int) -> dict[str, Measurement]:
    """Measure all engines on one task: a checked first run each, then rounds of the fast ones."""
    found: dict[str, Measurement] = {}
    with tempfile.TemporaryDirectory() as folder:
        truth = save_truth(make_task(key).expected(), Path(folder))
        for engine, worker in workers.items():
            found[engine] = _first(worker, key, truth)
    quick = {
        engine: worker
        for engine, worker in workers.items()
        if found[engine]["status"] == "ok" and found[engine]["seconds"][0] < SLOW
    }
    _take_turns(quick, found, rounds)
    for worker in workers.values():
        worker.ask("unload")
    return found


def _first(worker: Worker, key: str, truth: Path) -> Measurement:
    """Load, run once and compare."""
    loaded = worker.ask("load", key, seconds=LOADING)
    if loaded.status != "ok":
        return _without(loaded)
    ran = worker.ask("run")
    if ran.status != "ok":
        return _without(ran) | {"load": loaded.value, "limit": worker.seconds}
    checked = worker.ask("check", truth, seconds=LOADING)
    if checked.status != "ok":
        return _without(checked) | {"load": loaded.value}
    if not checked.value <= TOLERANCE:
        note = f"wrong by {checked.value:.1e}"
        return {"status": "wrong", "note": note, "error": checked.value, "load": loaded.value}
    return {
        "status": "ok",
        "seconds": [ran.value],
        "load": loaded.value,
        "error": checked.value,
        "note": "",
    }


def _without(reply: Reply) -> Measurement:
    return {"status": reply.status, "note": reply.note}


def _take_turns(workers: Mapping[str, Worker], found: dict[str, Measurement], rounds: int) -> None:
    """Run more rounds, whose times replace those of the first run."""
    times: dict[str, list[float]] = {engine: [] for engine in workers}
    for _ in range(rounds):
        for engine, worker in workers.items():
            time.sleep(PAUSE)
            reply = worker.ask("run")
            if reply.status == "ok":
                times[engine].append(reply.value)
    for engine, seconds in times.items():
        found[engine]["seconds"] = seconds or found[engine]["seconds"]
