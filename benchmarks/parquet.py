"""A product of a graph in a Parquet file that was never seen with an array, as the graph grows.

Each run is a process of its own, which has read a file of two edges before, and reports processor
time and its peak memory. The side of SciPy reads the file by pyarrow into memory. Edges have 64-bit
coordinates; rows and columns follow a power law.

``python -m benchmarks.parquet --edges 100000000`` measures a larger graph than the table does, and
``--sorted`` one whose file is in the order of the rows.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import scipy.sparse as sp
from numpy.typing import NDArray

import ucle
from benchmarks.larger_than_memory import peak
from benchmarks.measure import THREADS, Table, ratio

EDGES = (1_000_000, 10_000_000)
WIDTHS = (16, 64)
EDGES_PER_NODE = 10
LIMIT = "8GB"

SKEW = 2.5
"""The exponent of the power law: the k-th of n nodes is met in proportion to (k/n)^(1/SKEW - 1)."""

CHECKED = 50
"""Rows of the result that are compared."""


def write_graph(path: str, edges: int, *, in_order: bool) -> None:
    """Write a file of so many distinct edges; without order they are shuffled."""
    rng, nodes = np.random.default_rng(edges), edges // EDGES_PER_NODE
    names = rng.permutation(nodes)
    # A third of more edges than that, some of which are equal.
    ends = (
        names[np.minimum((nodes * rng.random(edges * 4 // 3) ** SKEW).astype(np.int64), nodes - 1)]
        for _ in "ij"
    )
    keys = np.unique(next(ends) * nodes + next(ends))
    rng.shuffle(keys)
    keys = keys[:edges]
    assert len(keys) == edges
    if in_order:
        keys.sort()
    columns = {"i": keys // nodes, "j": keys % nodes, "val": rng.standard_normal(edges)}
    pq.write_table(pa.table(columns), path)


def _features(nodes: int, width: int) -> NDArray[np.float64]:
    features = np.random.default_rng(width).standard_normal((nodes, width))
    features.setflags(write=False)
    return features


def _by_ucle(path: str, features: NDArray[np.float64]) -> tuple[dict[str, float], Any]:
    """Return the seconds of each phase, and the result as an array."""
    with ucle.connect(threads=THREADS, memory_limit=LIMIT) as connection:
        times = [time.process_time()]
        program = ucle.einsum_program(
            "Z[i,k] += A[i,j] * H[j,k]",
            A=path,
            H=features,
            database=connection,
            bounds={"i": len(features), "j": len(features)},
            memory_limit=LIMIT,
        )
        times.append(time.process_time())
        result = program.execute()
        times.append(time.process_time())
        found = result["Z"].to_numpy()
        times.append(time.process_time())
    seconds = np.diff(times).tolist()
    return dict(zip(("compile", "execute", "read"), seconds, strict=True)), found


def _by_scipy(path: str, features: NDArray[np.float64]) -> tuple[dict[str, float], Any]:
    start = time.process_time()
    table = pq.read_table(path)
    i, j, values = (table[name].to_numpy() for name in ("i", "j", "val"))
    graph = sp.coo_array((values, (i, j)), shape=(len(features),) * 2).tocsr()
    found = graph @ features
    return {"total": time.process_time() - start}, found


SIDES = {"ucle": _by_ucle, "scipy": _by_scipy}


def run(side: str, path: str, edges: int, width: int) -> dict[str, Any]:
    """Run one side in this process; return seconds, the peak in bytes, and some rows' sums."""
    with tempfile.TemporaryDirectory() as folder:
        first = f"{folder}/first.parquet"
        pq.write_table(pa.table({"i": [0, 1], "j": [1, 0], "val": [1.0, 2.0]}), first)
        SIDES[side](first, _features(2, 2))
    seconds, found = SIDES[side](path, _features(edges // EDGES_PER_NODE, width))
    sums = found[:: max(len(found) // CHECKED, 1)].sum(axis=1)
    return {"seconds": seconds, "peak": peak(), "sums": sums.tolist()}


def _apart(*arguments: str) -> dict[str, Any]:
    command = [sys.executable, "-m", __spec__.name, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(arguments)}: {done.stderr}")
    return dict(json.loads(done.stdout or "{}"))


def _size(edges: int, width: int, *, in_order: bool) -> tuple[str, ...]:
    return "--edges", f"{edges}", "--width", f"{width}", *(["--sorted"] if in_order else [])


def measure(
    path: str, edges: int, width: int, rounds: int, *, in_order: bool
) -> tuple[dict[str, float], dict[str, int]]:
    """Run both sides in turn; return the median seconds of each phase, and peaks."""
    runs: dict[str, list[dict[str, Any]]] = {side: [] for side in SIDES}
    for _ in range(rounds):
        for side, every in runs.items():
            every.append(_apart(*_size(edges, width, in_order=in_order), "--run", side, path))
        sums = [every[-1]["sums"] for every in runs.values()]
        if not np.allclose(*sums, rtol=1e-9, atol=1e-9):
            raise SystemExit(f"{edges:,} edges, width {width}: the sums of rows are wrong")
    seconds = {
        phase: statistics.median(each["seconds"][phase] for each in every)
        for every in runs.values()
        for phase in every[0]["seconds"]
    }
    return seconds, {side: max(each["peak"] for each in every) for side, every in runs.items()}


def lines(
    sizes: Sequence[int], widths: Sequence[int], rounds: int, *, in_order: bool = False
) -> Iterator[Sequence[str]]:
    """Yield a line of the table for each size and width."""
    before: dict[int, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        for edges in sizes:
            path = f"{folder}/edges.parquet"
            _apart(*_size(edges, 0, in_order=in_order), "--run", "write", path)
            for width in widths:
                seconds, peaks = measure(path, edges, width, rounds, in_order=in_order)
                phases = [seconds[phase] for phase in ("compile", "execute", "read")]
                whole = sum(phases)
                growth = ratio(whole / before[width]) if width in before else ""
                before[width] = whole
                yield (
                    f"{edges:,}",
                    f"{width}",
                    *(f"{each:.2f}" for each in phases),
                    f"{seconds['total']:.2f}",
                    ratio(whole / seconds["total"]),
                    *(f"{peaks[side] / 1e6:,.0f}" for side in SIDES),
                    growth,
                )
            Path(path).unlink()


TABLE = Table(
    "parquet",
    "SpMM on a new Parquet file",
    f"Processor seconds for shuffled float64 entries, {EDGES_PER_NODE} edges per node, and a\n"
    f"memory limit of {LIMIT}. SciPy's time includes reading the file. `growth` is the time\n"
    "of all three phases, divided by that for the next smaller file. Goals: at most SciPy's\n"
    "time from 10^7 edges on; a growth of at most 11.",
    (
        "edges",
        "width",
        "compile",
        "execute",
        "read",
        "SciPy",
        "ucle / SciPy",
        "peak MB",
        "SciPy's peak MB",
        "growth",
    ),
    lambda rounds: lines(EDGES, WIDTHS, min(rounds, 3)),
)


@click.command()
@click.option("--edges", multiple=True, type=int, default=EDGES, show_default=True)
@click.option("--width", multiple=True, type=int, default=WIDTHS, show_default=True)
@click.option("--sorted", "in_order", is_flag=True, help="Files in the order of the rows.")
@click.option("--rounds", default=1, show_default=True, help="Runs of each side.")
@click.option("--run", "side", type=click.Choice([*SIDES, "write"]), help="One run over PATH.")
@click.argument("path", required=False)
def main(
    edges: Sequence[int],
    width: Sequence[int],
    in_order: bool,
    rounds: int,
    side: str | None,
    path: str | None,
) -> None:
    """Measure graphs of other sizes, 10^8 edges on request."""
    if side is not None and path is not None:
        if side == "write":
            write_graph(path, edges[0], in_order=in_order)
        else:
            print(json.dumps(run(side, path, edges[0], width[0])))
        return
    click.echo(f"| {' | '.join(TABLE.header)} |")
    for line in lines(edges, width, rounds, in_order=in_order):
        click.echo(f"| {' | '.join(line)} |")


if __name__ == "__main__":
    main()
