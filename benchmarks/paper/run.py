"""The paper's experiments: ``python -m benchmarks.paper.run`` measures them.

It writes ``benchmarks/REPORT.json`` as it goes; `benchmarks.paper.report` makes the report from it.
"""

from __future__ import annotations

import contextlib
import json
import platform
import signal
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from benchmarks import training
from benchmarks.measure import machine
from benchmarks.paper import beyond_memory
from benchmarks.paper.catalogue import QUICK, SCALE, SUITE
from benchmarks.paper.measuring import LIMITS, Measurement, make_workers, measure
from benchmarks.paper.targets import missed, seconds_of
from benchmarks.paper.workers import LOADING, Worker
from benchmarks.peers import MODULES, SkippedError
from benchmarks.workloads import GRAPHS, SECOND

MEASUREMENTS = Path(__file__).parents[1] / "REPORT.json"
POSTGRES = "PostgreSQL, relational"
GROWING = ("gcn", "attention", "layer")
"""Tasks on ever larger graphs: an engine that exceeds the time on one skips the next."""
SCALED = ("ucle", "DuckDB, relational", "SciPy / NumPy", "PyTorch", "DGL")
GRAPH_NAMES = ("cora_lcc", "planetoid_cora", "planetoid_citeseer", "amazon_photo")
COMPONENTS = (
    *(f"{name}:{graph}" for name in ("gcn", "attention") for graph in (*GRAPH_NAMES, SECOND)),
    "dense:planetoid_cora",
    "circuit:seca_n11",
    "circuit:multiplier_n13",
    "circuit:ising_n10",
)
PLANS = (
    *(f"{name}:{graph}" for name in ("gcn", "attention") for graph in GRAPH_NAMES[1::2]),
    "circuit:seca_n11+",
    "circuit:multiplier_n13+",
)
FEW = 3
"""Rounds of measurements inside ucle."""


@click.command()
@click.option("--rounds", default=5, show_default=True, help="Runs of each engine that is quick.")
@click.option("--quick", is_flag=True, help="A few tasks only.")
@click.option(
    "--task", "tasks", multiple=True, help="Only this task, NAME:DATA; as often as wanted."
)
@click.option("--training", "only_training", is_flag=True, help="Training alone, beside the rest.")
@click.option(
    "--output", type=click.Path(path_type=Path), default=MEASUREMENTS, help="Where JSON goes."
)
def main(
    rounds: int, quick: bool, tasks: tuple[str, ...], only_training: bool, output: Path
) -> None:
    """Measure the paper's experiments."""
    if not GRAPHS.is_dir():
        raise SystemExit(f"the data is not there: {GRAPHS.parent}")
    if only_training:
        kept = json.loads(output.read_text(encoding="utf-8"))
        _write({**kept, "training": _training(rounds)}, output)
        return
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended"))  # with the cluster and the workers
    chosen = tasks or (QUICK if quick else SUITE)
    whole = not (quick or tasks)
    found: dict[str, Any] = {"machine": machine(rounds), "python": platform.python_version()}
    with contextlib.ExitStack() as stack:
        workers = make_workers(MODULES, stack.enter_context(_options()))
        stack.callback(lambda: [worker.close() for worker in workers.values()])
        ours = workers["ucle"]
        _tasks(found, "tasks", chosen, workers, rounds, output)
        inside = set(COMPONENTS if whole else chosen)
        found["components"] = _inside(ours, "components", [k for k in COMPONENTS if k in inside])
        found["plans"] = _inside(ours, "best_plans", [k for k in PLANS if whole or k in inside])
        found["profiles"] = _inside(ours, "profile", {t.task for t in missed(found) if t.task})
        if whole:
            scaled = {engine: workers[engine] for engine in SCALED}
            _tasks(found, "scale", SCALE, scaled, FEW, output)
    if whole:
        found["beyond_memory"] = beyond_memory.measure()
        found["training"] = _training(rounds)
    _write(found, output)


@contextlib.contextmanager
def _options() -> Iterator[dict[str, Any]]:
    """Yield the options of engines; starts PostgreSQL where it is installed."""
    with contextlib.ExitStack() as stack:
        options: dict[str, Any] = {}
        try:
            from benchmarks.peers.postgres import cluster  # noqa: PLC0415 - psycopg may be missing

            address = stack.enter_context(cluster(LIMITS[POSTGRES]))
            options[POSTGRES] = {"postgres": address}
        except (ImportError, SkippedError) as error:
            options[POSTGRES] = {"reason": str(error)}
        yield options


def _tasks(
    found: dict[str, Any],
    section: str,
    keys: Sequence[str],
    workers: Mapping[str, Worker],
    rounds: int,
    output: Path,
) -> None:
    """Measure tasks, and write the results after each."""
    found[section] = {}
    late: dict[tuple[str, str], str] = {}
    for key in keys:
        name = key.partition(":")[0]
        start = time.perf_counter()
        able = {engine: w for engine, w in workers.items() if (engine, name) not in late}
        measured = measure(key, able, rounds)
        for engine in workers:
            if engine not in able:
                note = f"not tried after {late[engine, name]}"
                measured[engine] = {"status": "TLE", "note": note}
            elif name in GROWING and measured[engine]["status"] in ("TLE", "OOM"):
                late[engine, name] = key
        found[section][key] = measured
        _write(found, output)
        _tell(key, measured, time.perf_counter() - start)


def _training(rounds: int) -> dict[str, Any]:
    """Measure steps of training on each graph."""
    found = {"machine": machine(rounds), "graphs": {}}
    for graph in GRAPH_NAMES:
        found["graphs"][graph] = training.of_the_paper(graph, rounds)
        click.echo(f"training on {graph}: {found['graphs'][graph]}")
    return found


def _inside(worker: Worker, function: str, keys: Any) -> dict[str, Any]:
    """Collect the results of `benchmarks.paper.components` for tasks."""
    found = {}
    for key in keys:
        arguments = () if function == "profile" else (FEW,)
        reply = worker.ask(
            "call", "benchmarks.paper.components", function, key, *arguments, seconds=LOADING
        )
        if reply.status != "ok":
            click.echo(f"{function} of {key}: {reply.status}, {reply.note}", err=True)
            continue
        found[key] = reply.value
        click.echo(f"{function} of {key}")
    return found


def _tell(key: str, measured: Mapping[str, Measurement], taken: float) -> None:
    click.echo(f"{key} ({taken:.0f} s)")
    for engine, found in measured.items():
        seconds = seconds_of(found)
        shown = f"{found['status']} {found['note']}" if seconds is None else f"{seconds:.4f}"
        click.echo(f"  {engine:24} {shown}")


def _write(found: Mapping[str, Any], output: Path) -> None:
    output.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
