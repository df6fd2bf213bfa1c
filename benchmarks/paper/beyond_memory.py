"""Tensors of four times the memory limit: a layer of graph convolution and sparse attention.

The program runs on a database file under DuckDB's `memory_limit`. scipy does the same under a limit
of its address space that leaves it as much memory in addition to the loaded sparse inputs. Each
runs in a process of its own. All numbers are small integers, so that sums are the same in any
order, and a sample of the result is compared.
"""

from __future__ import annotations

import json
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import scipy.sparse as sp

import ucle

THREADS = 1
"""Number of threads: with two, their working memory exceeds the limit in some runs of the layer."""
LIMITS = {"graph convolution": 512 << 20, "sparse attention": 256 << 20}
"""Bytes of memory that a case may use."""
NODES, WIDTH = 2_200_000, 128
"""Shape of the features of the nodes: 4.2 times the limit, as are all tensors made from them."""
FEATURES, LENGTH, TOKENS = 1000, 256, 550_000
"""Of the attention: columns of its sparse input, length of its vectors, and rows; equally large."""
EDGES = 2
"""Edges per node."""
SAMPLE = 97
TIMEOUT = 300

LAYER = "T[i,m] += A[i,j] * H[j,m]\nU[i,n] += T[i,m] * W[m,n]\nZ[i,n] = relu(U[i,n])"
ATTENTION = """
T0[i,k]   += X[i,m] * WQ[m,k]
T1[j,k]   += X[j,n] * WK[n,k]
T2[i,j,k]  = T0[i,k] * A[i,j]
Z[i,j]    += T2[i,j,k] * T1[j,k]
"""


def peak() -> int:
    """Return the largest resident size of this process so far, in bytes.

    The value of `getrusage` would be that of the process that started this one, if that was larger.
    """
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return 1024 * int(re.findall(r"VmHWM:\s+(\d+) kB", status)[0])


def leave(limit: int) -> None:
    """Limit the address space of this process to so many bytes more than now; 0 for no limit."""
    if limit:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
        most = pages * resource.getpagesize() + limit
        resource.setrlimit(resource.RLIMIT_AS, (most, most))


def weights(rows: int, columns: int, seed: int) -> Any:
    """A dense matrix of small integers, whose sums are exact."""
    return np.random.default_rng(seed).integers(-3, 4, (rows, columns)).astype(float)


def prepare(path: Path) -> None:
    """Create the tables ``A_layer``, ``H``, ``A_attention`` and ``X``."""
    with duckdb.connect(str(path), config={"threads": THREADS}) as connection:
        for name, nodes in (("A_layer", NODES), ("A_attention", TOKENS)):
            connection.execute(
                f"""CREATE TABLE {name} AS
                SELECT (x // {EDGES})::INT AS i,
                    ((hash(x // {EDGES}) + 7919 * (x % {EDGES})) % {nodes})::INT AS j,
                    (1 + x % 3)::DOUBLE AS v
                FROM range({EDGES * nodes}) t(x)"""
            ).fetchall()
        connection.execute(
            f"""CREATE TABLE H AS
            SELECT x::INT AS j, [((x * 7 + y) % 11)::DOUBLE FOR y IN range({WIDTH})] AS v
            FROM range({NODES}) t(x)"""
        ).fetchall()
        connection.execute(
            f"""CREATE TABLE X AS
            SELECT (x // 3)::INT AS i, ((x * 31 + 300 * (x % 3)) % {FEATURES})::INT AS j,
                1.0::DOUBLE AS v
            FROM range({3 * TOKENS}) t(x) GROUP BY ALL"""
        ).fetchall()


def run_layer(path: str) -> dict[str, float]:
    """Run a layer of graph convolution with ucle."""
    return _run(
        path,
        LIMITS["graph convolution"],
        LAYER,
        A=ucle.table("A_layer", ["i", "j"], "v", bounds=(NODES, NODES)),
        H=ucle.table("H", ["j"], "v", shape=(WIDTH,), bounds=(NODES, WIDTH)),
        W=weights(WIDTH, WIDTH, 0),
    )


def run_attention(path: str) -> dict[str, float]:
    """Run sparse attention with ucle."""
    return _run(
        path,
        LIMITS["sparse attention"],
        ATTENTION,
        A=ucle.table("A_attention", ["i", "j"], "v", bounds=(TOKENS, TOKENS)),
        X=ucle.table("X", ["i", "j"], "v", bounds=(TOKENS, FEATURES)),
        WQ=weights(FEATURES, LENGTH, 1),
        WK=weights(FEATURES, LENGTH, 2),
    )


def _run(path: str, limit: int, text: str, **inputs: Any) -> dict[str, float]:
    with ucle.connect(path, threads=THREADS, memory_limit=f"{limit}B") as connection:
        connection.execute("SET enable_progress_bar = false")
        connection.execute("SET preserve_insertion_order = false")  # else DuckDB holds rows back
        program = ucle.einsum_program(text, database=connection, association="as-written", **inputs)
        base = peak()
        start = time.perf_counter()
        with program.execute(connection) as result:
            seconds = time.perf_counter() - start
            high = peak()
            sample = result["Z"].stored.filter(f"i % {NODES // SAMPLE} = 0")
            total = float(sum(np.sum(row[-1]) for row in sample.fetchall()))
    return {"seconds": seconds, "base": base, "peak": high, "sum": total}


def scipy_layer(path: str, limit: int) -> dict[str, float]:
    """Run the same layer with scipy."""
    adjacency = _matrix(path, "A_layer", (NODES, NODES))
    leave(limit)
    features = (np.arange(NODES)[:, None] * 7.0 + np.arange(WIDTH)) % 11
    made = np.maximum((adjacency @ features) @ weights(WIDTH, WIDTH, 0), 0)
    return {"sum": float(made[:: NODES // SAMPLE].sum())}


def scipy_attention(path: str, limit: int) -> dict[str, float]:
    """Run the same attention with scipy."""
    adjacency = _matrix(path, "A_attention", (TOKENS, TOKENS)).tocoo()
    tokens = _matrix(path, "X", (TOKENS, FEATURES))
    leave(limit)
    queries, keys = (tokens @ weights(FEATURES, LENGTH, seed) for seed in (1, 2))
    rows, columns = adjacency.coords
    total = 0.0
    for start in range(0, len(rows), 8192):
        part = slice(start, start + 8192)
        scores = np.einsum("ek,ek->e", queries[rows[part]], keys[columns[part]])
        total += float((scores * adjacency.data[part])[rows[part] % (NODES // SAMPLE) == 0].sum())
    return {"sum": total}


def _matrix(path: str, table: str, shape: tuple[int, int]) -> Any:
    with duckdb.connect(path, read_only=True, config={"threads": 1}) as connection:
        found = connection.sql(f"SELECT i, j, v FROM {table}").fetchnumpy()
    return sp.csr_array((found["v"], (found["i"], found["j"])), shape=shape)


CASES: dict[str, tuple[Callable[[str], Any], Callable[[str, int], Any]]] = {
    "graph convolution": (run_layer, scipy_layer),
    "sparse attention": (run_attention, scipy_attention),
}


def measure() -> dict[str, Any]:
    """Run every case: ucle under the limit, scipy without one for the truth, then with one."""
    found: dict[str, Any] = {"limits": LIMITS, "cases": {}}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "graph.duckdb"
        prepare(path)
        for name in CASES:
            ours = _process("ucle", name, path)
            truth = _process("scipy", name, path, 0)
            if ours["status"] == "ok" and not np.isclose(ours["sum"], truth["sum"], rtol=1e-9):
                ours = {"status": "wrong", "note": f"{ours['sum']}, not {truth['sum']}"}
            limited = _process("scipy", name, path, LIMITS[name])
            found["cases"][name] = {"ucle": ours, "SciPy": limited}
    found["sizes"] = {
        "graph convolution": 8 * NODES * WIDTH,
        "sparse attention": 8 * TOKENS * LENGTH,
    }
    return found


def _process(*arguments: object) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.paper.beyond_memory", *map(str, arguments)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=TIMEOUT)
    except subprocess.TimeoutExpired:
        return {"status": "TLE", "note": f"more than {TIMEOUT} s"}
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if "Error" in line] or ["no message"]
        out = re.search("memory|MemoryError|bad_alloc", done.stderr) or done.returncode < 0
        return {"status": "OOM" if out else "failed", "note": lines[-1][:200]}
    return {"status": "ok", **json.loads(done.stdout)}


def _main(engine: str, case: str, path: str, limit: str = "0") -> None:
    ours, theirs = CASES[case]
    print(json.dumps(ours(path) if engine == "ucle" else theirs(path, int(limit))))


if __name__ == "__main__":
    _main(*sys.argv[1:])
