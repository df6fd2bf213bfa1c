"""The time from nothing to an answer: fresh processes that import, compile, run and read.

Nobody owns this sum but whoever waits for it. Each answer is computed by a process of its own, in
turn for all sides, from the same files: arrays as ``.npy``, tables in a DuckDB file. The process
measures the processor time of its parts; its start and the interpreter's are in the whole alone.
A second program of the same text in the same process says what is kept.

    python -m benchmarks.run first_answer --rounds 5
"""

from __future__ import annotations

import json
import statistics
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scipy.sparse as sp

import ucle
from benchmarks.install import python
from benchmarks.measure import Table, expect_close, ratio
from benchmarks.workloads import power_law

UCLE = """
import json, sys, time
t0 = time.process_time()
import numpy as np
import ucle
t1 = time.process_time()
parts = {"import": t1 - t0}
for again in (False, True):
    start = time.process_time()
    PROGRAM
    compiled = time.process_time()
    result = program.execute()
    ran = time.process_time()
    out = np.asarray(result[OUTPUT].to_numpy())
    read = time.process_time()
    if not again:
        parts |= {"compile": compiled - start, "run": ran - compiled, "read": read - ran}
    else:
        parts |= {"again": read - start}
np.save("out.npy", out)
print(json.dumps(parts))
"""

OTHER = """
import numpy as np
CODE
np.save("out.npy", out)
"""


@dataclass(frozen=True)
class Job:
    """One answer: how each side computes it in the folder of its data."""

    name: str
    program: str
    """Assigns ucle's ``program``."""
    output: str
    others: Mapping[str, str]
    """Assigns ``out``, by side; the first of them is what ucle is compared with."""


GRAPH = 'database="data.duckdb", A="edges"'
READ = """
import duckdb
import scipy.sparse as sp
rows = duckdb.connect("data.duckdb", read_only=True).execute("FROM edges").fetchnumpy()
A = sp.csr_array((rows["v"], (rows["i"], rows["j"])))
"""

JOBS = (
    Job(
        "einsum of 100 x 100",
        'program = ucle.einsum_program("ij,jk->ik", np.load("M.npy"), np.load("M.npy"))',
        "out",
        {"NumPy": 'M = np.load("M.npy"); out = np.einsum("ij,jk->ik", M, M)'},
    ),
    Job(
        "neighbours' features (SpMM, 64)",
        f'program = ucle.einsum_program("Z[i,k] += A[i,j] * X[j,k]", X=np.load("X.npy"), {GRAPH})',
        "Z",
        {"scipy": READ + 'out = A @ np.load("X.npy")'},
    ),
    Job(
        "graph convolution",
        'program = ucle.einsum_program("H[i,n] = relu(A[i,l] * X[l,m] * W[m,n]); '
        'Z[i,o] += A[i,l] * H[l,n] * V[n,o]", X=np.load("X.npy"), W=np.load("W.npy"), '
        f'V=np.load("V.npy"), {GRAPH})',
        "Z",
        {
            "scipy": READ + 'X, W, V = (np.load(f"{x}.npy") for x in "XWV")\n'
            "out = A @ (np.maximum(A @ (X @ W), 0) @ V)"
        },
    ),
    Job(
        "attention along edges",
        'program = ucle.einsum_program("S[i,j] += A[i,j] * X[i,k] * X[j,k]; '
        f'O[i,k] += S[i,j] * X[j,k]", X=np.load("X.npy"), {GRAPH})',
        "O",
        {
            "scipy": READ + 'X = np.load("X.npy"); i, j = A.tocoo().coords\n'
            'scores = A.data * np.einsum("ek,ek->e", X[i], X[j])\n'
            "out = sp.csr_array((scores, (i, j)), A.shape) @ X"
        },
    ),
    Job(
        "PageRank of 20 unrolled steps",
        'text = "; ".join(f"r{n + 1}[j] += A[i,j] * r{n}[i]" for n in range(20))\n'
        f'    program = ucle.einsum_program(text, r0=np.load("r.npy"), {GRAPH})',
        "r20",
        {
            "scipy": READ + 'out, T = np.load("r.npy"), sp.csr_array(A.T)\n'
            "for _ in range(20): out = T @ out",
            "DuckDB by hand": "import duckdb\n"
            'run = duckdb.connect("data.duckdb", read_only=True).execute\n'
            'r = np.load("r.npy"); rows = {"i": np.arange(len(r)), "v": r}\n'
            "import pyarrow as pa\nr = pa.table(rows)\n"
            "for _ in range(20):\n"
            '    r = run("SELECT j AS i, sum(edges.v * r.v) AS v FROM edges JOIN r USING (i) '
            'GROUP BY j").to_arrow_table()\n'
            'out = np.zeros(len(rows["i"])); out[r["i"].to_numpy()] = r["v"].to_numpy()',
        },
    ),
)

NODES, EDGES, WIDTH = 2708, 10556, 64


def _write_data(folder: Path) -> None:
    random = np.random.default_rng(0)
    np.save(folder / "M.npy", random.random((100, 100)))
    np.save(folder / "X.npy", random.random((NODES, WIDTH)))
    np.save(folder / "W.npy", random.random((WIDTH, 32)))
    np.save(folder / "V.npy", random.random((32, 7)))
    np.save(folder / "r.npy", np.full(NODES, 1 / NODES))
    graph = sp.coo_array(power_law(NODES, EDGES, np.float64))
    corner = sp.coo_array(([0.0], ([NODES - 1], [NODES - 1])), shape=graph.shape)
    i, j = (np.concatenate(x) for x in zip(graph.coords, corner.coords, strict=True))
    data = np.concatenate([graph.data / 8, corner.data])
    with ucle.connect(folder / "data.duckdb") as connection:
        connection.execute(
            "CREATE TABLE edges AS SELECT unnest(?) AS i, unnest(?) AS j, unnest(?) AS v",
            [i.tolist(), j.tolist(), data.tolist()],
        )


def _answer(folder: Path, script: str) -> tuple[float, str, np.ndarray]:
    """Run a script in a process of its own; return its CPU seconds, what it prints, the answer."""
    (folder / "script.py").write_text(script, encoding="utf-8")
    code = f"import os, sys; os.chdir({str(folder)!r}); exec(open('script.py').read())"
    seconds, said = python("-c", code)
    return seconds, said, np.load(folder / "out.npy")


def _measure(job: Job, folder: Path, rounds: int) -> Iterator[str]:
    ours = UCLE.replace("PROGRAM", job.program).replace("OUTPUT", repr(job.output))
    sides = {name: OTHER.replace("CODE", code) for name, code in job.others.items()}
    whole: dict[str, list[float]] = {name: [] for name in ("ucle", *sides)}
    parts: list[dict[str, float]] = []
    for number in range(rounds + 1):
        seconds, said, answer = _answer(folder, ours)
        measured = {"ucle": seconds}
        for name, script in sides.items():
            measured[name], _, other = _answer(folder, script)
            expect_close(f"{job.name}, {name}", answer, other, 1e-9)
        if number:  # the first may have written byte code
            parts.append(json.loads(said.splitlines()[-1]))
            for name, value in measured.items():
                whole[name].append(value)
    median = {name: statistics.median(values) for name, values in whole.items()}
    yield job.name
    for part in ("import", "compile", "run", "read", "again"):
        yield f"{1e3 * statistics.median(x[part] for x in parts):.0f}"
    yield f"{1e3 * median['ucle']:.0f}"
    yield ", ".join(f"{name} {1e3 * median[name]:.0f}" for name in sides)
    yield ratio(median["ucle"] / min(median[name] for name in sides))


def _rows(rounds: int) -> Iterator[Sequence[str]]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _write_data(folder)
        for job in JOBS:
            yield tuple(_measure(job, folder, rounds))


TABLE = Table(
    "first_answer",
    "The time to a first answer",
    f"Processor time of new processes in milliseconds, on a graph with {NODES:,} nodes and\n"
    f"{EDGES:,} edges in a DuckDB file. `whole` also includes the start of Python. `again`\n"
    "is the time to compile, run and read the program once more in the same process.\n"
    "`ratio` compares the whole time with that of the fastest other side.",
    ("answer", "import", "compile", "run", "read", "again", "whole", "others, whole", "ratio"),
    _rows,
)
