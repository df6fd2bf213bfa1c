"""Peak memory against the prediction: random programs whose tensors take 50 to 500 MB.

    python -m benchmarks.memory --programs 500
    python -m benchmarks.memory --graph amazon_photo --graph generated-14000-490000-770-35

Each program runs in a process of its own, with its inputs in a database in memory. The peak is the
largest memory of the process minus that before the execution; sizes are in MB. The last lines are
the largest peak and the median, each as a ratio to the prediction.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

import click
import numpy as np
import scipy.sparse as sp

import ucle
from benchmarks.peaks import MB, forget_peak, peak_since, predicted_seconds, status
from benchmarks.stored import input_tables
from benchmarks.workloads import attention, chain, gcn, power_law

THREADS = 2
LARGEST = 500.0
SLOWEST = 600
"""Seconds after which a process is ended."""

Drawn = tuple[str, Mapping[str, Any]]


def draw(seed: int, largest: float = LARGEST) -> Drawn:
    """Draw a random program and its inputs."""
    rng = np.random.default_rng(seed)
    return FAMILIES[int(rng.integers(len(FAMILIES)))](rng, float(rng.uniform(50, largest)) * MB)


def _dense(rng: np.random.Generator, *shape: int) -> Any:
    return rng.random(shape)


def _graph(rng: np.random.Generator, nodes: int, degree: float) -> Any:
    return power_law(nodes, max(int(nodes * degree), 1), np.float64)


def _sides(rng: np.random.Generator, size: float) -> tuple[int, int]:
    """Draw rows and columns of a matrix of float64 with so many bytes."""
    columns = int(2 ** rng.uniform(4, 10))
    return max(int(size / 8 / columns), 2), columns


def _neighbours(rng: np.random.Generator, size: float) -> Drawn:
    rows, columns = _sides(rng, size)
    inputs = {"A": _graph(rng, rows, rng.uniform(1, 8)), "H": _dense(rng, rows, columns)}
    return "T[i,m] += A[i,l] * H[l,m]; Z[i] max= T[i,m]", inputs


def _layer(rng: np.random.Generator, size: float) -> Drawn:
    rows, columns = _sides(rng, size / 2)
    width = int(rng.integers(8, 64))
    inputs = {
        "A": _graph(rng, rows, rng.uniform(1, 6)),
        "X": _dense(rng, rows, width),
        "W": _dense(rng, width, columns),
    }
    return "Z[i,n] = relu(A[i,l] * X[l,m] * W[m,n])", inputs


def _scores(rng: np.random.Generator, size: float) -> Drawn:
    rows, columns = _sides(rng, size / 2)
    rows = min(rows, 20_000)
    inputs = {
        "A": _graph(rng, rows, rng.uniform(1, 20)),
        "Q": _dense(rng, rows, columns),
        "K": _dense(rng, rows, columns),
    }
    return "S[i,j] += A[i,j] * Q[i,k] * K[j,k]", inputs


def _product(rng: np.random.Generator, size: float) -> Drawn:
    rows, columns = _sides(rng, size)
    inner = int(rng.integers(4, 48))
    inputs = {"X": _dense(rng, rows, inner), "Y": _dense(rng, inner, columns)}
    return "P[i,k] += X[i,j] * Y[j,k]; Z[k] += P[i,k] * P[i,k]", inputs


def _pointwise(rng: np.random.Generator, size: float) -> Drawn:
    rows, columns = _sides(rng, size)
    inputs = {"X": _dense(rng, rows, columns), "b": _dense(rng, columns)}
    return "P[i,j] = exp(X[i,j]) * b[j]; Z[i,j] = P[i,j] + X[i,j]", inputs


def _turned(rng: np.random.Generator, size: float) -> Drawn:
    rows, columns = _sides(rng, size)
    return "Z[j,i] = X[i,j] + 1", {"X": _dense(rng, rows, columns)}


def _features(rng: np.random.Generator, size: float) -> Drawn:
    rows, columns = _sides(rng, size)
    stored = sp.random_array(
        (rows, columns), density=min(0.3, 2e6 / rows / columns), rng=rng, format="csr"
    )
    width = int(rng.integers(4, 200))
    return "Z[i,n] += X[i,m] * W[m,n]", {"X": stored, "W": _dense(rng, columns, width)}


FAMILIES: tuple[Callable[[np.random.Generator, float], Drawn], ...] = (
    _neighbours,
    _layer,
    _scores,
    _product,
    _pointwise,
    _turned,
    _features,
)

GRAPH_PROGRAMS = {"attention": attention, "gcn": gcn, "chain": chain}


def measure(text: str, inputs: Mapping[str, Any], **options: Any) -> dict[str, float]:
    """Measure memory and time of the first execution of a program, with the predictions."""
    with ucle.connect(threads=THREADS) as connection:
        connection.execute("SET enable_progress_bar = false")
        tables = input_tables(connection, inputs)
        program = ucle.einsum_program(text, inputs=tables, database=connection, **options)
        before = forget_peak()
        start, used = time.perf_counter(), time.process_time()
        program.execute(connection).close()
        seconds, processor = time.perf_counter() - start, time.process_time() - used
        return {
            "predicted": program.compiled.peak_memory / MB,
            "peak": peak_since(before),
            "process": status("VmHWM"),
            "seconds": seconds,
            "processor": processor,
            "cost": predicted_seconds(program),
        }


def in_its_own_process(*arguments: str) -> dict[str, Any] | str:
    """Return the result of a process of its own, or the reason why there is none."""
    command = [sys.executable, "-m", "benchmarks.memory", *arguments]
    try:
        run = subprocess.run(command, capture_output=True, text=True, timeout=SLOWEST, check=False)
    except subprocess.TimeoutExpired:
        return "takes too long"
    if run.returncode:
        return run.stderr.strip().splitlines()[-1] if run.stderr.strip() else "was ended"
    found: dict[str, Any] = json.loads(run.stdout.splitlines()[-1])
    return found


@click.command()
@click.option("--programs", default=60, show_default=True, help="How many random programs.")
@click.option("--first", default=0, show_default=True, help="The seed of the first one.")
@click.option("--largest", default=LARGEST, show_default=True, help="MB of a tensor at most.")
@click.option("--graph", "graphs", multiple=True, help="Programs on this graph instead.")
@click.option("--one", type=int, help="Run this one here, and print what is found.")
@click.option("--of-graph", nargs=2, help="Run a program on a graph here.")
def main(
    programs: int,
    first: int,
    largest: float,
    graphs: tuple[str, ...],
    one: int | None,
    of_graph: tuple[str, str],
) -> None:
    """Measure, and print a table."""
    if one is not None:
        print(json.dumps(measure(*draw(one, largest))))
        return
    if of_graph:
        name, graph = of_graph
        workload = GRAPH_PROGRAMS[name](graph)
        print(json.dumps(measure(workload.program, workload.inputs)))
        return
    asked = [(f"{x} {g}", ("--of-graph", x, g)) for g in graphs for x in GRAPH_PROGRAMS]
    if not asked:
        seeds = range(first, first + programs)
        asked = [
            (f"{n} {draw_name(n)}", ("--one", str(n), "--largest", str(largest))) for n in seeds
        ]
    ratios = []
    print(f"{'program':40} predicted   peak  ratio  seconds  processor  cost")
    for name, arguments in asked:
        found = in_its_own_process(*arguments)
        if isinstance(found, str):
            print(f"{name:40} {found[:70]}", flush=True)
            continue
        ratios.append(found["peak"] / found["predicted"])
        shown = f"{found['predicted']:9.0f} {found['peak']:6.0f} {ratios[-1]:6.2f}"
        times = f"{found['seconds']:8.2f} {found['processor']:10.2f} {found['cost']:5.2f}"
        print(f"{name:40} {shown} {times}", flush=True)
    if ratios:
        middle = statistics.median(1 / x for x in ratios)
        print(f"peak at most {max(ratios):.2f} of what is predicted (1.5 is to be reached),")
        print(f"predicted {middle:.2f} of the peak in the median (3 is to be reached)")
        sys.exit(max(ratios) > 1.5 or middle > 3)


def draw_name(seed: int) -> str:
    """Return the family of a random program."""
    rng = np.random.default_rng(seed)
    return FAMILIES[int(rng.integers(len(FAMILIES)))].__name__.strip("_")


if __name__ == "__main__":
    main()
