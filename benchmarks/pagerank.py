"""One step of PageRank with a division, as the graph grows: memory and CPU time.

``A[i,j] / max(sum[k](A[i,k]), 1)`` is the natural form, ``A[i,j] * (1 / max(...))`` one that stays
sparse without the knowledge that a maximum is not 0. Each is run in a process of its own.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

import ucle
from benchmarks.measure import Table, ratio

EDGES_PER_NODE = 8
FORMS = {
    "division": "A[i,j] / max(sum[k](A[i,k]), 1)",
    "product": "A[i,j] * (1 / max(sum[k](A[i,k]), 1))",
}


def run(nodes: int, form: str) -> dict[str, float]:
    """Run one step over a random graph; return peak MB, CPU seconds, and the sum of the ranks."""
    rng = np.random.default_rng(0)
    ends = rng.integers(0, nodes, (2, nodes * EDGES_PER_NODE))
    edges = np.unique(ends[0] * nodes + ends[1])
    columns = {"i": edges // nodes, "j": edges % nodes, "v": np.ones(len(edges))}
    graph = ucle.table(pa.table(columns), bounds=(nodes, nodes))
    started = time.process_time()
    program = ucle.einsum_program(
        f"P[i,j] = {FORMS[form]}; y[j] = {0.15 / nodes} + 0.85 * P[i,j] * r[i]",
        A=graph,
        r=np.full(nodes, 1 / nodes),
    )
    with program.execute() as result:
        total = float(result["y"].to_numpy().sum())
    seconds = time.process_time() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"megabytes": peak, "seconds": seconds, "total": total}


def measured(nodes: int, form: str) -> dict[str, float]:
    """Run one step in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.pagerank", str(nodes), form]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def _rows(rounds: int) -> Iterator[Sequence[str]]:
    first = None
    for nodes in (10_000, 30_000, 100_000, 1_000_000):
        found = {form: measured(nodes, form) for form in FORMS}
        one, other = found["division"], found["product"]
        assert abs(one["total"] - other["total"]) < 1e-9
        each = one["seconds"] / nodes
        first = first or each
        memory = [f"{found[form]['megabytes']:.0f}" for form in FORMS]
        relative = ratio(one["megabytes"] / other["megabytes"])
        yield f"{nodes:,}", *memory, relative, f"{one['seconds']:.2f}", ratio(each / first)


TABLE = Table(
    "pagerank",
    "PageRank with a division",
    f"Graphs with {EDGES_PER_NODE} edges per node. `division` divides by a maximum,\n"
    "`product` multiplies by its reciprocal. The table shows the peak memory of the process\n"
    "and CPU seconds; the last column divides the seconds per node by those of the smallest\n"
    "graph. Goals at 30,000 nodes: less than 400 MB, and at most 1.5 times the memory of\n"
    "the product. The time should grow no faster than the graph.",
    ("nodes", "division, MB", "product, MB", "ratio", "division, s", "a node, against the first"),
    _rows,
)

if __name__ == "__main__":
    print(json.dumps(run(int(sys.argv[1]), sys.argv[2])))
